"""``python -m icalign ledger``: what is proved, measured, open, read from the executed notebooks."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .ledger import KINDS, SECTIONS, Cover, Entry, Ledger, LedgerError, counted, plural, read


def short(text: str, width: int) -> str:
    """The text in exactly ``width`` columns, a space at its end, cut with an ellipsis where it is longer."""
    return f"{text[: width - 2]}… " if len(text) >= width else text.ljust(width)


def row(entry: Entry) -> str:
    """One claim in one line: glyph, id, status, parts covered, records of each kind."""
    covered = sum(cover is not Cover.NONE for cover in entry.covers.values())
    records = "".join(f"{entry.evidence.get(kind, '·'):>5}" for kind in KINDS)
    parts = f"{covered}/{len(entry.covers)}"
    return f"  {entry.status.glyph} {short(entry.claim.id, 31)}{short(entry.label, 29)}{parts:>5}{records}"


def table(ledger: Ledger) -> Iterator[str]:
    """The whole ledger, chapter by chapter, then the counts and what breaks the rules."""
    kinds = "".join(f"{name:>5}" for name in ("kern", "prf", "cert", "meas", "exh", "ctrl"))
    yield f"    {'claim':31}{'status':29}parts{kinds}"
    for section, entries in ledger.sections().items():
        yield f"\n{section:>2}  {SECTIONS[section]}"
        yield from map(row, entries)
    yield f"\n{plural(len(ledger), 'claim')}"
    for status, number in ledger.counts.items():
        yield f"{number:>5}  {status.glyph} {status}"
    if ledger.evidence:
        yield "records: " + ", ".join(counted(ledger.evidence))


def detail(entry: Entry, ledger: Ledger) -> Iterator[str]:
    """One claim in full: what the registry says and how each part is covered, by which cells."""
    claim = entry.claim
    yield f"{claim.title}  ({claim.kind} {claim.id})"
    facts = {
        "status": " · ".join(filter(None, (f"{entry.status.glyph} {entry.label}", entry.remark))),
        "chapter": f"{claim.section}  {SECTIONS[claim.section]}",
        "stated in": ", ".join(statement.page for statement in entry.statements),
        "paper": claim.place or "not in the paper",
        "verdict": " · ".join((entry.verdict, *filter(None, (claim.says, claim.qualified)))) if entry.verdict else "",
        "repaired by": ", ".join(claim.repaired_by),
        "uses": ", ".join(claim.uses),
        "used by": ", ".join(ledger.used_by(claim.id)),
    }
    yield from (f"  {name:13}{text}" for name, text in facts.items() if text)
    for part in claim.parts:
        yield f"\n  {part.name}: {entry.covers[part.name]}\n    {part.says}"
        for record in entry.records:
            if record.part == part.name:
                yield f"    {record.kind:13}{record.place}" + f"  ({record.sizes})" * bool(record.sizes)


def show(text: str) -> None:
    """Prints the text; a reader that has seen enough, such as ``head``, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python flushes what is left at its end


def show_ledger(root: Path, claim: str | None, as_json: bool) -> int:
    """Prints the ledger, or one claim of it; 1 when a rule is broken, that is when a claim does not hold."""
    if not (root / "book" / "claims.yml").is_file():
        raise LedgerError(f"{root.resolve()} has no book/claims.yml; say where the clone is with --root")
    ledger = read(root)
    violations = ledger.violations
    if claim is not None:
        if claim not in ledger.entries:
            raise LedgerError(f"no claim {claim!r} in book/claims.yml")
        violations = [sentence for sentence in violations if sentence.startswith(f"{claim}:")]
    if as_json:
        data = ledger.to_json() if claim is None else ledger[claim].to_json() | {"violations": violations}
        show(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        lines = list(table(ledger) if claim is None else detail(ledger[claim], ledger))
        if violations:
            lines += [f"\n{plural(len(violations), 'broken rule')}", *(f"  {sentence}" for sentence in violations)]
        show("\n".join(lines))
    return 1 if violations else 0


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code: 0 all holds, 1 a rule is broken, 2 the input cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m icalign", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    ledger = commands.add_parser("ledger", help="the status of every claim")
    ledger.add_argument("--json", action="store_true", help="plain data instead of a table")
    ledger.add_argument("--root", type=Path, default=Path(), help="the repository (default: the current directory)")
    ledger.add_argument("--claim", metavar="ID", help="one claim in full")
    options = parser.parse_args(arguments)
    try:
        return show_ledger(options.root, options.claim, options.json)
    except LedgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
