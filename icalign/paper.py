"""The book beside the paper: what was found, where each statement stands in the paper, which code a claim has.

Nothing is typed twice. Findings come from ``book/claims.yml`` and the ledger, places from ``book/places.yml``, symbols
from ``book/notation.yml``, and which function belongs to which claim from the docstrings, which name their claims.
Like the ledger, the module reads files only and imports neither torch nor sympy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from .ledger import HOLDS, NEW, Entry, Ledger, LedgerError

# ─── findings ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Finding:
    """A statement of the paper, and the claims that judge it."""

    says: str
    entries: tuple[Entry, ...]

    @property
    def simple(self) -> bool:
        """Whether the statement holds, with nothing to add."""
        return all([entry.claim.verdict == HOLDS and not entry.claim.qualified for entry in self.entries])

    @property
    def supported(self) -> tuple[Entry, ...]:
        """The claims whose verdict stands, because the claim is supported."""
        return tuple(entry for entry in self.entries if entry.verdict)

    @property
    def places(self) -> tuple[str, ...]:
        """Where the paper has it, as far as the claims say."""
        return tuple(dict.fromkeys(entry.claim.place for entry in self.entries if entry.claim.place))

    @property
    def verdicts(self) -> tuple[tuple[str, str], ...]:
        """The verdicts that stand, each with what it adds."""
        return tuple(dict.fromkeys((entry.verdict, entry.claim.qualified) for entry in self.supported))

    @property
    def repairs(self) -> tuple[str, ...]:
        """The claims that put it right."""
        return tuple(dict.fromkeys(repair for entry in self.supported for repair in entry.claim.repaired_by))


def findings(ledger: Ledger) -> list[Finding]:
    """The statements of the paper that the registry quotes, each with all claims that judge it, in reading order."""
    groups: dict[str, list[Entry]] = {}
    for entry in ledger:
        if entry.claim.says:
            groups.setdefault(entry.claim.says, []).append(entry)
    return [Finding(says, tuple(entries)) for says, entries in groups.items()]


def as_stated(ledger: Ledger) -> list[Entry]:
    """The claims that the paper states in the book's words, and that hold."""
    return [entry for entry in ledger if entry.claim.verdict == HOLDS and not entry.claim.says]


def new_statements(ledger: Ledger) -> list[Entry]:
    """The claims that judge no statement of the paper."""
    return [entry for entry in ledger if entry.claim.verdict == NEW]


# ─── places and symbols ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Place:
    """A place in the paper: as ``claims.yml`` writes it, in both numberings, and what stands there."""

    place: str
    v2: str
    camera_ready: str
    content: str


@dataclass(frozen=True)
class Symbol:
    """A symbol: in the paper (TeX, ``""`` where it has none), in the book, its name in code and its shape.

    ``code`` is an expression in the names that the page explains: ``task.x``, ``rows["sq"]``, ``symbols.eta``.
    ``shape`` is that of its value; ``()`` is a number.
    """

    paper: str
    book: str
    meaning: str
    code: str
    shape: str


T = TypeVar("T", Place, Symbol)


def _read(path: Path, kind: type[T]) -> list[T]:
    """The entries of a YAML list of mappings from a dataclass's fields to text.

    Raises:
        LedgerError: naming the file, the entry and what is wrong with it.
    """
    name = f"book/{path.name}"
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LedgerError(f"{name}: cannot be read ({' '.join(str(error).split())})") from error
    fields = set(kind.__dataclass_fields__)
    if not isinstance(entries, list) or not entries:
        raise LedgerError(f"{name}: a list was expected")
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or set(entry) != fields:
            raise LedgerError(f"{name}, entry {number}: a mapping of {', '.join(sorted(fields))} was expected")
        if wrong := [key for key, value in entry.items() if not isinstance(value, str)]:
            raise LedgerError(f"{name}, entry {number}: {', '.join(wrong)} should be text")
    return [kind(**entry) for entry in entries]


def read_places(book: Path) -> list[Place]:
    """``places.yml``, in the order of the paper.

    Raises:
        LedgerError: the file is missing or malformed.
    """
    return _read(book / "places.yml", Place)


def read_notation(book: Path) -> list[Symbol]:
    """``notation.yml``.

    Raises:
        LedgerError: the file is missing or malformed.
    """
    return _read(book / "notation.yml", Symbol)


# ─── which code belongs to which claim ─────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Mention:
    """A module, class, function or method whose docstring names claims; a pair is a range, first to last."""

    name: str
    claims: tuple[str | tuple[str, str], ...]

    @property
    def named(self) -> set[str]:
        """Every id that is written out."""
        return {name for item in self.claims for name in (item if isinstance(item, tuple) else (item,))}

    def covers(self, order: Sequence[str]) -> list[str]:
        """The ids, ranges filled in by the order of the registry.

        Raises:
            ValueError: an id that the registry does not have, or a range that runs backwards.
        """
        found: list[str] = []
        for item in self.claims:
            first, last = item if isinstance(item, tuple) else (item, item)
            for name in (first, last):
                if name not in order:
                    raise ValueError(f"{self.name}: names the unknown claim {name!r}")
            if not (between := order[order.index(first) : order.index(last) + 1]):
                raise ValueError(f"{self.name}: the range {first} to {last} runs backwards")
            found += between
        return list(dict.fromkeys(found))


ID = r"(?<!:)`{1,2}([a-z0-9]+(?:-[a-z0-9]+)*)`{1,2}"
_SAID = re.compile(r"\b(?:[Cc]laims?|Source:)\s+([^;.)]*)")
_ITEM = re.compile(rf"{ID}(?:\s+to\s+{ID})?")


def claims_in(docstring: str) -> tuple[str | tuple[str, str], ...]:
    """What follows "Claim", "Claims" or "Source:" in backticks, up to the end of the sentence.

    Ids, and pairs of ids for a range such as "Claims … to …".
    """
    items = (match.groups() for said in _SAID.findall(docstring) for match in _ITEM.finditer(said))
    return tuple(dict.fromkeys((first, last) if last else first for first, last in items))


def docstrings(package: Path) -> Iterator[tuple[str, str]]:
    """Dotted name and docstring of every public module, class, function and method below the package."""
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        name = ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from _documented(tree, name)


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> Iterator[tuple[str, str]]:
    if text := ast.get_docstring(node):
        yield name, text
    if isinstance(node, ast.FunctionDef):
        return
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            yield from _documented(child, f"{name}.{child.name}")


def mentions(package: Path) -> list[Mention]:
    """Everything below the package whose docstring names a claim, by file and in the order of the file."""
    return [Mention(name, claims) for name, text in docstrings(package) if (claims := claims_in(text))]


def functions(package: Path, order: Sequence[str]) -> dict[str, list[str]]:
    """For each claim the dotted names whose docstrings name it.

    Args:
        package: the folder of the package.
        order: all ids, in the order of the registry.

    Raises:
        ValueError: a docstring names a claim that the registry does not have.
    """
    found: dict[str, list[str]] = {}
    for mention in mentions(package):
        for claim in mention.covers(order):
            found.setdefault(claim, []).append(mention.name)
    return found
