"""The ledger: ``book/claims.yml`` and the evidence in the executed notebooks → the status of every claim.

No status is typed by hand: a claim is *planned* until a chapter states it, and what its badge says is
computed from the records that the chapters' cells stored, and from what the Rocq kernel checked, part by part. The
weakest part decides.

The module reads files only. It imports neither torch nor sympy, so that the site can be built without them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from . import kernel

MIME = "application/vnd.icalign.evidence+json"
STALE = "its code changed since it was run (make run)"

SECTIONS = {
    1: "The alignment task",
    2: "One gradient step is a change of targets",
    3: "Selecting the winner: Lemma C.2",
    4: "Weighing the field: the β head",
    5: "One block: heads and a feed-forward layer",
    6: "The paper's Theorem 3.3: N−1 blocks are one gradient step",
    7: "Multiple queries I: selection",
    8: "Multiple queries II: the whole gradient step",
    9: "Causal attention I: the online Plackett–Luce loss",
    10: "Causal attention II: positions from the mask alone",
    11: "Causal attention III: masked positional encodings",
    12: "Causal attention IV: the theorem, its gap, its repair",
    13: "Depth is not the price of ranking",
    14: "What else this says",
    15: "Finite precision",
    16: "Does training find it?",
}
APPENDIX = range(7, 13)  # the chapters on the appendix: their theorems are both proved and measured

STATEMENTS = ("theorem", "lemma", "proposition", "corollary", "example", "observation")
"""The ``prf:`` directives that state a claim; the others (definition, remark, …) claim nothing."""

KINDS = ("kernel", "proof", "certificate", "measurement", "exhibit", "control")
"""The kinds of evidence, strongest first."""

FAILS, HOLDS, NEW = "fails as stated", "holds", "new"
VERDICTS = (HOLDS, "holds with a hypothesis left out", "holds after a repair", FAILS, "not needed", NEW)


class LedgerError(ValueError):
    """The registry or a notebook cannot be read; the message names the file and the entry."""


class Status(StrEnum):
    """What the evidence of a claim amounts to, strongest first."""

    KERNEL = "kernel-checked for all sizes"
    PROVED = "proved for all sizes"
    HAND = "proved, k steps by hand"
    SIZED = "proved for sizes ≤ n"
    MEASURED = "measured"
    PARTIAL = "part proved"
    UNCONTROLLED = "no control"
    OPEN = "open"
    PLANNED = "planned"

    @property
    def glyph(self) -> str:
        """A sign that tells the status without colour."""
        return dict(zip(Status, "■●◐◔≈△!○·", strict=True))[self]


class Cover(StrEnum):
    """How one part of a claim is covered, strongest first."""

    KERNEL = "kernel-checked"
    PROVED = "proved"
    EXHIBIT = "shown by an instance"
    HAND = "by hand"
    SIZED = "proved for some sizes"
    MEASURED = "measured"
    NONE = "no evidence"


SETTLED = {Cover.KERNEL, Cover.PROVED, Cover.EXHIBIT, Cover.HAND}
"""The ways in which a part is covered for all sizes that it speaks of."""


@dataclass(frozen=True)
class Part:
    """A statement within a claim that needs evidence of its own.

    ``by`` is what covers it: ``proof``, ``measurement`` (it speaks about floating point), ``exhibit`` (one
    instance settles it) or ``hand``. ``sizes``, where given, are the only sizes it speaks of.
    """

    name: str
    says: str
    by: str = "proof"
    sizes: str = ""


@dataclass(frozen=True)
class Claim:
    """One entry of ``claims.yml``. ``section`` is the chapter, ``place`` where the paper has it (if it does).

    ``verdict`` judges the paper's statement ``says``; ``finding`` says what is true of it, ``qualified`` is what the
    verdict adds, ``repaired_by`` the claims that put it right.
    """

    id: str
    title: str
    kind: str
    section: int
    place: str
    new: bool
    uses: tuple[str, ...]
    verdict: str
    parts: tuple[Part, ...]
    says: str = ""
    finding: str = ""
    qualified: str = ""
    repaired_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """Evidence that a cell stored: what is equal on every machine, and the volatile ``figures``.

    For a theorem that the kernel checked, ``notebook`` is the file in ``proofs`` and ``cell`` the line.
    """

    kind: str
    claim: str
    part: str
    statement: str
    notebook: str
    cell: int
    sizes: str = ""
    all_sizes: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where the record is: file and cell, or line."""
        return f"{self.notebook}, {'line' if self.kind == 'kernel' else 'cell'} {self.cell}"


@dataclass(frozen=True)
class Statement:
    """A ``prf:`` directive on a page: its kind, its label (``""`` without one)."""

    kind: str
    label: str
    page: str


@dataclass(frozen=True)
class HandStep:
    """A ``by-hand`` role on a page: the part whose argument stands there, in a proof or (wrongly) not."""

    claim: str
    part: str
    page: str
    in_proof: bool


@dataclass(frozen=True)
class Entry:
    """A claim with all that the book holds about it."""

    claim: Claim
    statements: tuple[Statement, ...]
    records: tuple[Record, ...]
    by_hand: frozenset[str]

    def of(self, part: Part, *kinds: str) -> list[Record]:
        """The part's records of these kinds."""
        return [record for record in self.records if record.part == part.name and record.kind in kinds]

    def cover(self, part: Part) -> Cover:
        """How a part is covered; what settles it for all its sizes comes first, whatever ``by`` says."""
        exact = self.of(part, "proof", "certificate")
        if self.of(part, "kernel"):
            return Cover.KERNEL
        if any(record.all_sizes or (part.sizes and record.sizes == part.sizes) for record in exact):
            return Cover.PROVED
        if part.by == "hand":
            return Cover.HAND if part.name in self.by_hand else Cover.NONE
        if part.by == "exhibit":
            return Cover.EXHIBIT if self.of(part, "exhibit") else Cover.NONE
        if part.by == "proof" and exact:
            return Cover.SIZED
        return Cover.MEASURED if self.of(part, "measurement") else Cover.NONE

    @cached_property
    def covers(self) -> dict[str, Cover]:
        """How each part is covered, by name."""
        return {part.name: self.cover(part) for part in self.claim.parts}

    @cached_property
    def uncontrolled(self) -> tuple[Part, ...]:
        """The parts without the Control they need; steps by hand and exhibits have no check to attack."""
        return tuple(
            part for part in self.claim.parts if part.by in ("proof", "measurement") and not self.of(part, "control")
        )

    @property
    def begun(self) -> bool:
        """Whether the kernel has checked anything of the claim."""
        return any(record.kind == "kernel" for record in self.records)

    @property
    def left(self) -> tuple[str, ...]:
        """What the kernel has not checked of a claim that it has begun: parts that rest on proofs or steps by hand."""
        parts = [part for part in self.claim.parts if part.by in ("proof", "hand") and not self.of(part, "kernel")]
        return tuple(part.name for part in parts) if self.begun else ()

    @property
    def controlled(self) -> bool:
        """Every part that needs a Control has one, and the claim has at least one."""
        return not self.uncontrolled and any(record.kind == "control" for record in self.records)

    @property
    def status(self) -> Status:
        """The claim's status: that of its weakest part."""
        covers = set(self.covers.values())
        if not self.statements:
            return Status.PLANNED
        if not self.records and not self.by_hand:
            return Status.OPEN
        if Cover.NONE in covers:
            return Status.PARTIAL
        if not self.controlled:
            return Status.UNCONTROLLED
        if self.by_instance:
            return Status.SIZED
        weakest = {Cover.MEASURED: Status.MEASURED, Cover.SIZED: Status.SIZED, Cover.HAND: Status.HAND}
        for cover, status in weakest.items():
            if cover in covers:
                return status
        by_kernel = Cover.KERNEL in covers and covers <= {Cover.KERNEL, Cover.EXHIBIT}
        return Status.KERNEL if by_kernel else Status.PROVED

    @property
    def by_instance(self) -> bool:
        """Whether exact instances are all there is: they show that something exists, at the sizes they have."""
        return set(self.covers.values()) == {Cover.EXHIBIT}

    @property
    def verdict(self) -> str:
        """The verdict on the paper's statement, once the claim that judges it is supported; nothing before that."""
        unsupported = (Status.PARTIAL, Status.UNCONTROLLED, Status.OPEN, Status.PLANNED)
        return "" if self.status in unsupported else self.claim.verdict

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes for which the parts that are proved for some sizes only are proved."""
        partly = (part for part in self.claim.parts if self.covers[part.name] is Cover.SIZED)
        return tuple(dict.fromkeys(r.sizes for part in partly for r in self.of(part, "proof", "certificate")))

    @property
    def label(self) -> str:
        """The status as the badge says it: number of steps and sizes filled in."""
        match self.status:
            case Status.HAND:
                steps = list(self.covers.values()).count(Cover.HAND)
                return f"proved, {plural(steps, 'step')} by hand"
            case Status.SIZED if self.by_instance:
                return "proved for an instance"
            case Status.SIZED:
                return f"proved for {'; '.join(self.sizes)}"
            case status:
                return status.value

    @property
    def remark(self) -> str:
        """What the weakest part hides about the others, such as ``3 of 4 parts proved``; often empty."""
        settled, parts = sum(cover in SETTLED for cover in self.covers.values()), len(self.claim.parts)
        match self.status:
            case Status.MEASURED if settled:
                return f"{settled} of {parts} parts proved"
            case Status.SIZED if settled and not self.by_instance:
                return f"{settled} of {parts} parts for all sizes"
            case Status.HAND | Status.PROVED if checked := list(self.covers.values()).count(Cover.KERNEL):
                return f"{checked} of {parts} parts kernel-checked"
            case Status.PARTIAL:
                return f"{sum(cover is not Cover.NONE for cover in self.covers.values())} of {parts} parts"
            case _:
                return ""

    @cached_property
    def evidence(self) -> dict[str, int]:
        """Number of records of each kind that occurs."""
        count = Counter(record.kind for record in self.records)
        return {kind: count[kind] for kind in KINDS if count[kind]}

    def violations(self) -> Iterator[str]:
        """What breaks the rules of evidence, one sentence each. A planned claim owes nothing."""
        claim = self.claim
        for statement in self.statements:
            if statement.kind != claim.kind:
                yield f"{claim.id}: is a {claim.kind}, but {statement.page} states it as {statement.kind}."
        if len(self.statements) > 1:
            pages = ", ".join(statement.page for statement in self.statements)
            yield f"{claim.id}: stated {len(self.statements)} times ({pages}); a claim is stated once."
        if not self.statements:
            if self.records:
                yield f"{claim.id}: has evidence ({self.records[0].place}), but no page states it."
            return
        if self.status is Status.OPEN:
            yield f"{claim.id}: is stated, but has no evidence."
            return
        for part in claim.parts:
            if self.covers[part.name] is Cover.NONE:
                yield f"{claim.id}: part {part.name!r} has no evidence ({part.by} is expected)."
            if self.covers[part.name] is Cover.SIZED and "no size enters" in self.sizes:
                yield f"{claim.id}: part {part.name!r} speaks of all sizes, but no size enters its proof."
        for part in self.uncontrolled:
            yield f"{claim.id}: part {part.name!r} has no control."
        if not self.uncontrolled and not self.controlled:
            yield f"{claim.id}: has no control."
        if claim.verdict == FAILS and "exhibit" not in self.evidence:
            yield f"{claim.id}: said to fail as stated, without an exhibit."
        if claim.kind == "theorem" and claim.section in APPENDIX:
            if not {"kernel", "proof", "certificate"} & self.evidence.keys():
                yield f"{claim.id}: a theorem on the appendix needs a proof or a certificate."
            if "measurement" not in self.evidence:
                yield f"{claim.id}: a theorem on the appendix needs a measurement."

    def to_json(self) -> dict[str, Any]:
        """The entry as plain data."""
        parts = [asdict(part) | {"cover": self.covers[part.name]} for part in self.claim.parts]
        return asdict(self.claim) | {
            "status": self.status,
            "verdict": self.verdict,
            "label": self.label,
            "remark": self.remark,
            "stated_in": [statement.page for statement in self.statements],
            "parts": parts,
            "evidence": self.evidence,
            "records": [asdict(record) for record in self.records],
        }


@dataclass(frozen=True)
class Ledger:
    """Every claim of the book in reading order, and what on the pages belongs to none."""

    entries: dict[str, Entry]
    strays: tuple[str, ...] = ()

    def __getitem__(self, claim: str) -> Entry:
        return self.entries[claim]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def sections(self) -> dict[int, list[Entry]]:
        """The entries of each chapter."""
        chapters: dict[int, list[Entry]] = {}
        for entry in self:
            chapters.setdefault(entry.claim.section, []).append(entry)
        return chapters

    @property
    def counts(self) -> dict[Status, int]:
        """Number of claims of each status that occurs, strongest first."""
        count = Counter(entry.status for entry in self)
        return {status: count[status] for status in Status if count[status]}

    @property
    def evidence(self) -> dict[str, int]:
        """Number of records of each kind that occurs."""
        count = Counter(record.kind for entry in self for record in entry.records)
        return {kind: count[kind] for kind in KINDS if count[kind]}

    @property
    def graph(self) -> list[tuple[str, str]]:
        """The dependencies as pairs (claim used, claim that uses it)."""
        return [(used, entry.claim.id) for entry in self for used in entry.claim.uses]

    def used_by(self, claim: str) -> list[str]:
        """The claims whose argument uses this one."""
        return [user for used, user in self.graph if used == claim]

    @cached_property
    def violations(self) -> list[str]:
        """All that breaks the rules, one sentence each; those about a claim begin with its id."""
        found = [sentence for entry in self for sentence in entry.violations()]
        try:
            TopologicalSorter({entry.claim.id: entry.claim.uses for entry in self}).prepare()
        except CycleError as error:
            found.append(f"{error.args[1][0]}: rests on itself: {' → '.join(error.args[1])}.")
        return found + list(self.strays)

    def to_json(self) -> dict[str, Any]:
        """The whole ledger as plain data."""
        return {
            "claims": [entry.to_json() for entry in self],
            "counts": {status.value: number for status, number in self.counts.items()},
            "evidence": self.evidence,
            "graph": [list(edge) for edge in self.graph],
            "violations": self.violations,
        }


def plural(number: int, noun: str) -> str:
    """``1 control``, ``2 controls``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def counted(evidence: Mapping[str, int]) -> list[str]:
    """Numbers of records in words: ``["1 proof", "2 controls"]``."""
    return [plural(number, "kernel check" if kind == "kernel" else kind) for kind, number in evidence.items()]


def read(root: Path | str = ".") -> Ledger:
    """The ledger of the book below ``root``: ``book/claims.yml``, its executed notebooks, its pages, and ``proofs``.

    Raises:
        LedgerError: the registry is malformed, a notebook is not executed, or a proof not checked; names the file and
            the entry.
    """
    book = Path(root) / "book"
    claims = read_claims(book / "claims.yml")
    statements: list[Statement] = []
    steps: list[HandStep] = []
    records = list(kernel_records(root))
    for path in sorted([*book.glob("*.ipynb"), *book.glob("*.md")]):
        name = f"book/{path.name}"
        if path.suffix == ".md":
            texts = [path.read_text(encoding="utf-8")]
        else:
            texts, found = read_notebook(path, name)
            records += found
        marks = [mark for text in texts for mark in read_markdown(text, name)]
        statements += [mark for mark in marks if isinstance(mark, Statement)]
        steps += [mark for mark in marks if isinstance(mark, HandStep)]

    entries = {}
    for claim in claims:
        stated = tuple(statement for statement in statements if statement.label == claim.id)
        home = {statement.page for statement in stated}
        entries[claim.id] = Entry(
            claim,
            stated,
            tuple(record for record in records if record.claim == claim.id),
            frozenset(step.part for step in steps if step.claim == claim.id and step.page in home and step.in_proof),
        )
    return Ledger(entries, tuple(_strays(entries, statements, steps, records)))


def kernel_records(root: Path | str) -> Iterator[Record]:
    """What the kernel checked, one record for each part that a theorem covers.

    Raises:
        LedgerError: ``proofs`` and what the kernel said do not agree.
    """
    try:
        theorems = kernel.checked(root)
    except kernel.KernelError as error:
        raise LedgerError(str(error)) from error
    for theorem in theorems:
        for part in theorem.parts if theorem.covers else ():
            yield Record(
                kind="kernel",
                claim=theorem.claim,
                part=part,
                statement=theorem.statement,
                notebook=f"proofs/{theorem.file}",
                cell=theorem.line,
                sizes="all sizes",
                all_sizes=True,
                details={"theorem": theorem.name, "axioms": list(theorem.axioms)},
            )


def _strays(
    entries: Mapping[str, Entry], statements: list[Statement], steps: list[HandStep], records: list[Record]
) -> Iterator[str]:
    """What stands on the pages and belongs to no entry, part or proof."""
    parts = {(claim, part.name): part for claim, entry in entries.items() for part in entry.claim.parts}
    for statement in statements:
        if statement.kind in STATEMENTS and not statement.label:
            yield f"{statement.page}: a {statement.kind} has no label."
        elif statement.kind in STATEMENTS and statement.label not in entries:
            yield f"{statement.page}: the label {statement.label!r} has no entry in claims.yml."
    for record in records:
        if record.claim not in entries:
            yield f"{record.place}: evidence of an unknown claim {record.claim!r}."
        elif (record.claim, record.part) not in parts:
            yield f"{record.place}: evidence of an unknown part {record.part!r} of {record.claim}."
    for step in steps:
        part, name = parts.get((step.claim, step.part)), f"{step.claim}/{step.part}"
        if part is None or part.by != "hand":
            yield f"{step.page}: {name} is marked as by hand, which claims.yml does not say."
        elif step.page not in {statement.page for statement in entries[step.claim].statements}:
            yield f"{step.page}: the step by hand {name} stands outside the chapter that states the claim."
        elif not step.in_proof:
            yield f"{step.page}: the step by hand {name} stands outside a proof."


# ─── claims.yml ────────────────────────────────────────────────────────────────────────────────────


class _Strict(yaml.SafeLoader):
    """YAML in which a repeated key is an error: the second of two parts of one name would hide the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if repeated := [key for key, number in Counter(keys).items() if number > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"repeated key {repeated[0]!r}", node.start_mark)
        return super().construct_mapping(node, deep)


_REQUIRED: dict[str, type] = {
    "id": str,
    "title": str,
    "kind": str,
    "section": int,
    "place": str,
    "new": bool,
    "uses": list,
    "verdict": str,
    "parts": dict,
}
_OPTIONAL: dict[str, type] = {"says": str, "finding": str, "qualified": str, "repaired_by": list}


def read_claims(path: Path) -> list[Claim]:
    """The registry, validated.

    Raises:
        LedgerError: naming the file, the entry and what is wrong with it.
    """
    name = f"book/{path.name}"
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), _Strict)
    except OSError as error:
        raise LedgerError(f"{name}: cannot be read ({error.strerror}: {path})") from error
    except UnicodeDecodeError as error:
        raise LedgerError(f"{name}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise LedgerError(f"{name}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list) or not entries:
        raise LedgerError(f"{name}: a list of claims was expected")
    claims: list[Claim] = []
    for number, entry in enumerate(entries, start=1):
        where = f"{name}, entry {number}"
        if isinstance(entry, dict) and "id" in entry:
            where += f" ({entry['id']})"
        claim = _claim(entry, where)
        if claim.id in {earlier.id for earlier in claims}:
            raise LedgerError(f"{where}: the id {claim.id!r} is taken by an earlier entry")
        if claims and claim.section < claims[-1].section:
            raise LedgerError(f"{where}: section {claim.section} after section {claims[-1].section}")
        claims.append(claim)
    ids = {claim.id for claim in claims}
    for number, claim in enumerate(claims, start=1):
        for key, others in ("uses", claim.uses), ("repaired_by", claim.repaired_by):
            for other in others:
                if other not in ids:
                    where = f"{name}, entry {number} ({claim.id})"
                    raise LedgerError(f"{where}: {key} names an unknown claim {other!r}")
    return claims


def _claim(entry: object, where: str) -> Claim:
    """One entry of the registry as a Claim."""
    if not isinstance(entry, dict):
        raise LedgerError(f"{where}: a mapping was expected, not {entry!r}")
    known = _REQUIRED | _OPTIONAL
    _check_keys(entry, where, _REQUIRED, known)
    for key, value in entry.items():
        if type(value) is not known[key]:  # not isinstance: true is an int, but no section
            raise LedgerError(f"{where}: {key} should be of type {known[key].__name__}, not {value!r}")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise LedgerError(f"{where}: {key} should be a list of claim ids, not {value!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry["id"]):
        raise LedgerError(f"{where}: an id is lower-case words joined by hyphens, not {entry['id']!r}")
    for key, allowed in ("kind", STATEMENTS), ("verdict", VERDICTS), ("section", tuple(SECTIONS)):
        if entry[key] not in allowed:
            expected = ", ".join(map(str, allowed))
            raise LedgerError(f"{where}: unknown {key} {entry[key]!r}; expected one of {expected}")
    if entry["verdict"] == NEW and any(key in entry for key in _OPTIONAL):
        raise LedgerError(f"{where}: a new claim judges no statement of the paper: drop {', '.join(_OPTIONAL)}")
    if entry["verdict"] not in (NEW, HOLDS) and not entry.get("says"):
        raise LedgerError(f"{where}: the verdict {entry['verdict']!r} needs the paper's statement (says)")
    if not entry["parts"]:
        raise LedgerError(f"{where}: parts is empty; a claim has at least one")
    parts = tuple(_part(name, value, where) for name, value in entry["parts"].items())
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Claim(**{**entry, **lists, "parts": parts})


def _check_keys(found: Mapping[Any, object], where: str, required: Iterable[str], known: Iterable[str]) -> None:
    """Refuses a mapping with keys too few or too many, and names them all: a slip of the pen is often one of each."""
    missing, unknown = [key for key in required if key not in found], [key for key in found if key not in known]
    if missing or unknown:
        faults = {"missing": missing, "unknown": unknown}
        said = "; ".join(f"{what} {', '.join(map(repr, keys))}" for what, keys in faults.items() if keys)
        raise LedgerError(f"{where}: {said}")


def _part(name: object, value: object, where: str) -> Part:
    """One part of a claim: a line of text, or a mapping of ``says``, ``by``, ``sizes``."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise LedgerError(f"{where}: a part's name is lower-case words joined by hyphens, not {name!r}")
    where = f"{where}, part {name}"
    fields: object = {"says": value} if isinstance(value, str) else value
    if not isinstance(fields, dict) or not fields.get("says"):
        raise LedgerError(f"{where}: text or a mapping with says was expected, not {value!r}")
    _check_keys(fields, where, ["says"], ["says", "by", "sizes"])
    for key, text in fields.items():
        if not isinstance(text, str):
            raise LedgerError(f"{where}: {key} should be text, not {text!r}")
    part = Part(name, **fields)
    if part.by not in ("proof", "hand", "measurement", "exhibit"):
        raise LedgerError(f"{where}: unknown by {part.by!r}; expected one of proof, hand, measurement, exhibit")
    return part


# ─── pages ────────────────────────────────────────────────────────────────────────────────────


def stamp(notebook: Mapping[str, Any]) -> dict[str, str]:
    """What a run leaves in a notebook's metadata (``icalign``): a hash of its code cells' text, as it was then."""
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {"sources": hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]}


def read_notebook(path: Path, name: str) -> tuple[list[str], list[Record]]:
    """The markdown of an executed notebook, a text a cell, and the records that its cells stored.

    Raises:
        LedgerError: the file is no notebook, a cell was not executed, the code is not what was executed, or a record
            is malformed.
    """
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = notebook["cells"]
        runs = any(cell["cell_type"] == "code" for cell in cells)
        stale = runs and notebook.get("metadata", {}).get("icalign") != stamp(notebook)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(f"{name}: not a notebook ({error})") from error
    texts: list[str] = []
    records: list[Record] = []
    for number, cell in enumerate(cells, start=1):
        source = "".join(cell.get("source", ""))
        if cell.get("cell_type") == "markdown":
            texts.append(source)
        elif cell.get("cell_type") == "code":
            if source.strip() and cell.get("execution_count") is None:
                raise LedgerError(f"{name}, cell {number}: not executed; run the notebook (make run)")
            for output in cell.get("outputs", []):
                if (data := output.get("data", {}).get(MIME)) is not None:
                    records.append(_record(data, output.get("metadata", {}).get(MIME), name, number))
    if stale:
        raise LedgerError(f"{name}: {STALE}")
    return texts, records


def _record(data: object, figures: object, notebook: str, cell: int) -> Record:
    """A stored record, with the keys every record has checked."""
    where = f"{notebook}, cell {cell}"
    if not isinstance(data, dict):
        raise LedgerError(f"{where}: an evidence record should be a mapping, not {data!r}")
    if lacking := [key for key in ("kind", "claim", "part", "statement") if not isinstance(data.get(key), str)]:
        raise LedgerError(f"{where}: an evidence record without {', '.join(lacking)}")
    kind, sizes, all_sizes = data["kind"], data.get("sizes", ""), data.get("all_sizes", False)
    if kind not in KINDS:
        raise LedgerError(f"{where}: unknown kind of evidence {kind!r}; expected one of {', '.join(KINDS)}")
    if kind == "kernel":
        raise LedgerError(f"{where}: what the kernel checked stands in proofs/checked.json, not in a cell")
    sized = isinstance(sizes, str) and sizes and isinstance(all_sizes, bool)
    if kind in ("proof", "certificate") and not sized:
        raise LedgerError(f"{where}: a {kind} record must say for which sizes (sizes, all_sizes)")
    named = ("kind", "claim", "part", "statement", "sizes", "all_sizes")
    return Record(
        kind=kind,
        claim=data["claim"],
        part=data["part"],
        statement=data["statement"],
        notebook=notebook,
        cell=cell,
        sizes=sizes,
        all_sizes=all_sizes is True,
        details={key: value for key, value in data.items() if key not in named},
        figures=figures if isinstance(figures, dict) else {},
    )


_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<directive>[\w:-]+)\})?(?P<rest>.*)$")
_LABEL = re.compile(r"\s*:label:\s*(\S+)\s*$")
_OPTION = re.compile(r"\s*:[\w-]+:")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ROLE = re.compile(r"\{by-hand\}`([^`/]+)/([^`]+)`")
_CODE_SPAN = re.compile(r"(?<!`)(``+)(?!`).*?(?<!`)\1(?!`)")


def read_markdown(text: str, page: str) -> Iterator[Statement | HandStep]:
    """The ``prf:`` directives and ``by-hand`` roles of a page, those shown in code blocks left out."""
    lines = _without_comments(text).splitlines()
    open_fences: list[tuple[str, str | None]] = []  # fence, directive (None: a block of code)
    for number, line in enumerate(lines):
        in_code = bool(open_fences) and open_fences[-1][1] is None
        if match := _FENCE.match(line):
            fence, directive = match["fence"], match["directive"]
            bare = not directive and not match["rest"].strip()
            if bare and open_fences and fence.startswith(open_fences[-1][0]):
                open_fences.pop()
                continue
            if in_code:
                continue
            open_fences.append((fence, directive))
            if directive and directive.startswith("prf:") and directive != "prf:proof":
                yield Statement(directive.removeprefix("prf:"), _label(lines[number + 1 :]), page)
        elif not in_code:
            in_proof = "prf:proof" in {directive for _, directive in open_fences}
            for claim, part in _ROLE.findall(_CODE_SPAN.sub("", line)):
                yield HandStep(claim, part, page, in_proof)


def _without_comments(text: str) -> str:
    """The text with what no reader sees, HTML comments and lines that begin with %, made blank."""
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    return "\n".join(["" if line.lstrip().startswith("%") else line for line in text.split("\n")])


def _label(lines: list[str]) -> str:
    """The ``:label:`` among the options that open a directive's body."""
    for line in lines:
        if match := _LABEL.match(line):
            return match[1]
        if not _OPTION.match(line):
            return ""
    return ""
