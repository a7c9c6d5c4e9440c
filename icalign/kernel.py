"""What the Rocq kernel checked: ``proofs/*.v``, and ``proofs/checked.json``, what the kernel said about them.

A theorem belongs to a part of a claim if the comment before it says so::

    (* Claim selection-bound, part bound; paper: Lemma C.2 *)
    Theorem selection_bound : …

Several theorems may cover a part together; ``parts a, b`` names several. One that shows less than the part says begins
with ``Toward``, and covers nothing. ``make proofs`` compiles the files, lets the kernel print every statement and its
axioms, and compares them with ``checked.json``. This module reads; it needs no Rocq.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

# What the real numbers of Rocq's library rest on; no theorem may use more.
AXIOMS = (
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
)

# The processor's integers and floats, and what Rocq assumes of them: the pins may use these too (coq-interval).
PRIMITIVES = tuple(
    f"{module}.{name}"
    for module, names in {
        "FloatAxioms": "Prim2SF_SF2Prim Prim2SF_valid SF2Prim_Prim2SF abs_spec add_spec classify_spec compare_spec "
        "div_spec eqb_spec frshiftexp_spec ldshiftexp_spec ltb_spec mul_spec next_down_spec next_up_spec "
        "normfr_mantissa_spec of_uint63_spec opp_spec sqrt_spec sub_spec",
        "PrimFloat": "abs add classify compare div eqb float frshiftexp ldshiftexp ltb mul next_down next_up "
        "normfr_mantissa of_uint63 opp sqrt sub",
        "PrimInt63": "add eqb int land leb lor lsl lsr ltb sub",
        "Uint63": "add_spec eqb_correct eqb_refl land_spec leb_spec lor_spec lsl_spec lsr_spec ltb_spec of_to_Z "
        "sub_spec",
    }.items()
    for name in names.split()
)

_TAG = re.compile(
    r"""\(\*\s+ (?P<toward>Toward\ c|C)laim\s+ (?P<claim>[\w-]+),
        \s+parts?\s+ (?P<parts>[\w-]+(?:,\s+[\w-]+)*) \s*(?:[;:.](?P<rest>(?:(?!\*\)).)*))? \*\)""",
    re.DOTALL | re.VERBOSE,
)
_MUTANT = re.compile(r"\(\* Mutant of (?P<of>[\w']+): (?P<what>(?:(?!\*\)).)+?) \*\)", re.DOTALL)
_REFUTED = re.compile(r"\s*Lemma\s+(not_[\w']+)\s*:\s*~ \(")
_PIN = re.compile(r"^Lemma\s+(pin_[\w']+)", re.MULTILINE)
_THEOREM = re.compile(r"^Theorem\s+([\w']+)", re.MULTILINE)


class KernelError(ValueError):
    """The proofs or what the kernel said about them cannot be read; the message names the file."""


@dataclass(frozen=True)
class Theorem:
    """A theorem of ``proofs/`` that belongs to a claim.

    Attributes:
        name: as in the file.
        file: ``Selection.v``.
        line: where it begins, from 1.
        claim: the id of the claim.
        parts: the parts of the claim that it is about.
        covers: whether it shows all that the parts say (with the other theorems about them).
        remark: what its comment adds.
        statement: as the kernel prints it.
        axioms: those it rests on, as the kernel lists them.
    """

    name: str
    file: str
    line: int
    claim: str
    parts: tuple[str, ...]
    covers: bool
    remark: str
    statement: str = ""
    axioms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """A theorem with one thing changed, whose negation is a lemma of ``proofs/Mutants*.v``.

    Attributes:
        name: of the lemma.
        of: the theorem.
        what: the change.
        file: ``Mutants.v``.
        line: where the lemma begins, from 1.
    """

    name: str
    of: str
    what: str
    file: str
    line: int


def sources(proofs: Path) -> list[Path]:
    """The files of the development, in the order of ``_CoqProject``, which is that of compilation.

    Raises:
        KernelError: a file is missing, or is not listed.
    """
    lines = (proofs / "_CoqProject").read_text(encoding="utf-8").splitlines()
    listed = [proofs / line.strip() for line in lines if line.strip().endswith(".v")]
    present = set(proofs.glob("*.v"))
    if off := sorted(path.name for path in present.symmetric_difference(listed)):
        raise KernelError(f"proofs/_CoqProject: {', '.join(off)}: every file stands there once, and exists")
    return listed


def stamp(proofs: Path) -> dict[str, str]:
    """A hash of each file's text, by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sources(proofs)}


def tagged(path: Path) -> Iterator[Theorem]:
    """The theorems of one file, as their comments claim them.

    Raises:
        KernelError: a theorem without such a comment right before it (call it a Lemma), or a comment without one.
    """
    text = path.read_text(encoding="utf-8")
    tags = {match.end(): match for match in _TAG.finditer(text)}
    for theorem in _THEOREM.finditer(text):
        before = text[: theorem.start()].rstrip()
        line = text.count("\n", 0, theorem.start()) + 1
        tag = tags.pop(len(before), None)
        if tag is None:
            raise KernelError(
                f"proofs/{path.name}, line {line}: {theorem[1]} is a Theorem, which belongs to a claim: a comment "
                "right before it says to which part (or it is a Lemma)"
            )
        yield Theorem(
            theorem[1],
            path.name,
            line,
            tag["claim"],
            tuple(re.split(r",\s+", tag["parts"])),
            tag["toward"] == "C",
            " ".join((tag["rest"] or "").split()),
        )
    for tag in tags.values():
        line = text.count("\n", 0, tag.start()) + 1
        raise KernelError(f"proofs/{path.name}, line {line}: the comment names {tag['claim']}, but no Theorem follows")


def all_tagged(proofs: Path) -> list[Theorem]:
    """The theorems of all files, in the order of compilation.

    Raises:
        KernelError: as :func:`tagged`, or two theorems of one name.
    """
    found = [theorem for path in sources(proofs) for theorem in tagged(path)]
    names = [theorem.name for theorem in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise KernelError(f"proofs: {', '.join(twice)}: two theorems of one name")
    return found


def mutants(proofs: Path) -> list[Mutant]:
    """The mutants of all files, in the order of compilation.

    Raises:
        KernelError: the comment is not right before a lemma ``not_… : ~ (…)``, or names no theorem; such a lemma has no
            comment.
    """
    theorems = {theorem.name for theorem in all_tagged(proofs)}
    found = []
    for path in sources(proofs):
        text = path.read_text(encoding="utf-8")
        for tag in _MUTANT.finditer(text):
            lemma = _REFUTED.match(text, tag.end())
            line = text.count("\n", 0, lemma.start(1) if lemma else tag.start()) + 1
            if lemma is None:
                raise KernelError(f"proofs/{path.name}, line {line}: no lemma not_… : ~ (…) follows the comment")
            if tag["of"] not in theorems:
                raise KernelError(f"proofs/{path.name}, line {line}: {lemma[1]}: {tag['of']} is no theorem")
            found.append(Mutant(lemma[1], tag["of"], " ".join(tag["what"].split()), path.name, line))
        refuted = set(re.findall(r"^Lemma\s+(not_[\w']+)", text, re.MULTILINE))
        if bare := sorted(refuted - {mutant.name for mutant in found}):
            raise KernelError(f"proofs/{path.name}: {', '.join(bare)}: a comment says of which theorem it is a mutant")
    return found


def without_mutant(proofs: Path) -> list[str]:
    """The theorems of which no mutant is refuted."""
    mutated = {mutant.of for mutant in mutants(proofs)}
    return [theorem.name for theorem in all_tagged(proofs) if theorem.name not in mutated]


def blocked(proofs: Path) -> dict[str, str]:
    """What keeps the kernel from the rest of a claim that it has begun, by claim: ``proofs/open.yml``."""
    found = yaml.safe_load((proofs / "open.yml").read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise KernelError("proofs/open.yml: a mapping from claims to sentences was expected")
    return found


def pins(proofs: Path) -> dict[str, list[str]]:
    """The lemmas ``pin_…`` of each file that has some: bounds on values of the definitions."""
    named = {path.name: _PIN.findall(path.read_text(encoding="utf-8")) for path in sources(proofs)}
    return {file: names for file, names in named.items() if names}


def checked(root: Path | str = ".") -> list[Theorem]:
    """What the kernel checked, from ``proofs/checked.json``; nothing where that does not exist.

    Raises:
        KernelError: the files changed since the kernel read them, or a theorem rests on an axiom that none may use.
    """
    proofs = Path(root) / "proofs"
    if not (proofs / "checked.json").is_file():
        return []
    try:
        stored = json.loads((proofs / "checked.json").read_text(encoding="utf-8"))
        said = {entry["name"]: entry for entry in stored["theorems"]}
        files = stored["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelError(f"proofs/checked.json: cannot be read ({error}); make proofs writes it") from error
    if files != stamp(proofs):
        raise KernelError("proofs/checked.json: a file changed since the kernel read it (make proofs)")
    found = []
    for theorem in all_tagged(proofs):
        if (entry := said.get(theorem.name)) is None:
            raise KernelError(f"proofs/checked.json: nothing about {theorem.name} (make proofs)")
        statement, axioms = entry["statement"], tuple(entry["axioms"])
        if beyond := [axiom for axiom in axioms if axiom not in AXIOMS]:
            raise KernelError(f"proofs/{theorem.file}: {theorem.name} rests on {', '.join(beyond)}")
        found.append(Theorem(**{**asdict(theorem), "statement": statement, "axioms": axioms}))
    return found
