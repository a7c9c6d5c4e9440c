"""What every page of the book keeps to beyond being right; the tests and the pre-commit hook both use it.

A rule takes a page to the faults it finds. nbval passes some notebooks without looking (one that was never executed,
one whose cells are tagged to be skipped): the rules on outputs close those doors.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icalign.ledger import MIME, STALE, stamp

from . import launch, prose
from .notebooks import normalise, serialise

IGNORE = "# NBVAL_IGNORE_OUTPUT"
LINES, COLUMNS = 20, 88


@dataclass(frozen=True)
class Cell:
    """One cell of a notebook; ``at`` says where it stands."""

    at: str
    type: str
    source: str
    metadata: dict[str, Any]
    outputs: list[dict[str, Any]]
    execution_count: int | None

    @property
    def tree(self) -> ast.Module:
        """The syntax of a code cell, lines for IPython (``%pip``, ``!ls``) left out."""
        return ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", self.source))


@dataclass(frozen=True)
class Page:
    """A notebook, or a markdown file seen as a single markdown cell."""

    text: str
    notebook: dict[str, Any] | None
    code: list[Cell]
    markdown: list[Cell]

    @classmethod
    def read(cls, path: Path) -> "Page":
        """Read a .ipynb or .md file; cells count from 1."""
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            return cls(text, None, [], [Cell("page", "markdown", text, {}, [], None)])
        notebook = json.loads(text)
        cells = [
            Cell(
                at=f"cell {number}",
                type=cell["cell_type"],
                source="".join(cell["source"]),
                metadata=cell["metadata"],
                outputs=cell.get("outputs", []),
                execution_count=cell.get("execution_count"),
            )
            for number, cell in enumerate(notebook["cells"], 1)
        ]
        code, markdown = ([cell for cell in cells if cell.type == kind] for kind in ("code", "markdown"))
        return cls(text, notebook, code, markdown)


def in_normal_form(page: Page) -> Iterator[str]:
    """A notebook is stored as `make run` writes it: kernel python3, no timestamps, no editor settings."""
    if page.notebook and page.text != serialise(normalise(page.notebook)):
        yield "not in normal form (make run)"


def executed_in_order(page: Page) -> Iterator[str]:
    """Every code cell was executed, 1 to n from top to bottom, as a fresh kernel does it."""
    counts = [cell.execution_count for cell in page.code]
    if None in counts:
        yield f"not executed (make run): {counts.count(None)} of {len(counts)} code cells"
    elif counts != list(range(1, len(counts) + 1)):
        yield f"not executed in order (make run): the execution counts are {counts}"


def run_as_it_stands(page: Page) -> Iterator[str]:
    """The outputs are those of the code that is shown: a run leaves a hash of it."""
    if page.notebook and page.notebook.get("metadata", {}).get("icalign") != stamp(page.notebook):
        yield STALE


def clean_outputs(page: Page) -> Iterator[str]:
    """No output is an error or was written to stderr."""
    for cell in page.code:
        for output in cell.outputs:
            if output["output_type"] == "error":
                yield f"{cell.at}: ended in {output['ename']}"
            if output.get("name") == "stderr":
                yield f"{cell.at}: wrote to stderr"


def outputs_compared(page: Page) -> Iterator[str]:
    """Only a line `# NBVAL_IGNORE_OUTPUT` keeps nbval from comparing, and never where evidence is recorded."""
    for cell in page.code:
        marked = [line for line in cell.source.splitlines() if re.search(r"nbval|pytest_validate", line, re.I)]
        yield from [f"{cell.at}: write {IGNORE}, alone, not {line.strip()}" for line in marked if line != IGNORE]
        if marked and any(MIME in output.get("data", {}) for output in cell.outputs):
            yield f"{cell.at}: records evidence, so its output has to be compared"
        for tag in cell.metadata.get("tags", []):
            if re.match(r"nbval|pytest-validate|raises-exception", tag):
                yield f"{cell.at}: the tag {tag} hides it from nbval"


def short_cells(page: Page) -> Iterator[str]:
    """A code cell does one thing, and its lines fit the page."""
    for cell in page.code:
        lines = cell.source.splitlines()
        if not lines:
            yield f"{cell.at}: empty"
        if len(lines) > LINES:
            yield f"{cell.at}: {len(lines)} lines; up to {LINES} are easy to follow"
        yield from [f"{cell.at}: {len(x)} columns, over {COLUMNS}: {x}" for x in lines if len(x) > COLUMNS]


def set_up_first(page: Page) -> Iterator[str]:
    """The code begins with the cell that looks for icalign, word for word; it alone is kept off the page."""
    for cell in page.code[:1]:
        if cell.source != launch.set_up(*launch.repository()) or cell.metadata != {"tags": launch.CELL_TAGS}:
            yield f"{cell.at}: the first code cell is not the set-up cell (make run)"
    for cell in page.code[1:]:
        if launch.is_set_up(cell.source):
            yield f"{cell.at}: a second set-up cell (make run)"
    for cell in [*page.code[1:], *page.markdown]:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("remove"):
                yield f"{cell.at}: the tag {tag} hides it from the reader"


def imports_first(page: Page) -> Iterator[str]:
    """The first code cell after the set-up imports and configures nothing."""
    for cell in [cell for cell in page.code if not launch.is_set_up(cell.source)][:1]:
        statements = cell.tree.body
        if not statements or not all([isinstance(each, ast.Import | ast.ImportFrom) for each in statements]):
            yield f"{cell.at}: the first code cell imports, and does nothing else"


def figures_described(page: Page) -> Iterator[str]:
    """A cell that draws says in its metadata what the figure shows."""
    for cell in page.code:
        drawn = any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {}))
        if drawn and not cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip():
            yield f"{cell.at}: a figure without alternative text (metadata: mystnb: image: alt)"


def no_slips(page: Page) -> Iterator[str]:
    """A chapter takes no shortcut that can make "not shown" look like "zero"."""
    yield from [
        f"{cell.at}: {slip}" for cell in page.code for slip in (*maps_in_all(cell.tree), *simplify_calls(cell.tree))
    ]


def maps_in_all(tree: ast.Module) -> Iterator[str]:
    """``all(map(zero, M))`` takes a StopIteration raised by sympy inside ``zero`` for the end of ``M``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="all" | "any" as name), args=[ast.Call(func=ast.Name(id="map"))]):
                yield f"line {node.lineno}: write {name}([… for …]); inside map an exception can pass for the end"


def simplify_calls(tree: ast.Module) -> Iterator[str]:
    """``simplify`` fails in ways that only ``icalign/calculus`` knows how to catch."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="simplify") | ast.Name(id="simplify"):
                yield f"line {node.lineno}: simplify is for icalign/calculus"


def evidence_is_computed(page: Page) -> Iterator[str]:
    """A record comes from a check: a chapter neither writes one out nor changes what checks."""
    yield from [f"{cell.at}: {forged}" for cell in page.code for forged in forgeries(cell.tree)]


def forgeries(tree: ast.Module) -> Iterator[str]:
    """Records made without a check, raw outputs, and attributes set on what was imported."""
    kinds = {"Certificate", "Control", "Evidence", "Exhibit", "Kernel", "Measurement", "Proof"}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in kinds:
                yield f"line {node.lineno}: {name} is made by its class methods, which check"
            case ast.keyword(arg="raw", value=ast.Constant(value=True)):
                yield f"line {node.value.lineno}: a raw output says what no cell computed"
            case ast.Constant(value=str(text)) if MIME.split("+")[0] in text:
                yield f"line {node.lineno}: a record is not written out"
            case ast.Attribute(ctx=ast.Store()) | ast.Call(func=ast.Name(id="setattr")):
                yield f"line {node.lineno}: a chapter sets no attribute, so that what it imports stays what it is"


def proofs_begin_with_a_sentence(page: Page) -> Iterator[str]:
    """sphinx-proof garbles a proof that begins with a formula, a list or a fence, and does not warn."""
    for cell in page.markdown:
        for line in prose.lines(cell.source):
            if line.opens == "prf:proof" and not line.text.lstrip()[:1].isalpha():
                yield f"{cell.at}, line {line.number}: a proof begins with a sentence, not with {line.text.strip()!r}"


def numbers_are_glued(page: Page) -> Iterator[str]:
    """A result in the prose comes from a cell: one typed by hand stays when the result changes."""
    for cell in page.markdown:
        for line, number in prose.typed_numbers(cell.source):
            yield f"{cell.at}, line {line}: {number} is typed by hand (glue it)"


RULES: tuple[Callable[[Page], Iterator[str]], ...] = (
    in_normal_form,
    executed_in_order,
    run_as_it_stands,
    clean_outputs,
    outputs_compared,
    short_cells,
    set_up_first,
    imports_first,
    figures_described,
    no_slips,
    evidence_is_computed,
    proofs_begin_with_a_sentence,
    numbers_are_glued,
)


def faults(path: Path) -> list[str]:
    """Every fault of a page, one line each."""
    try:
        page = Page.read(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{path} cannot be read: {type(error).__name__}: {error}"]
    return [f"{path} {fault}" for rule in RULES for fault in rule(page)]


def main() -> int:
    """Print the faults of the pages named on the command line; exit code 1 when there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.hygiene", description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    found = [fault for path in parser.parse_args().pages for fault in faults(path)]
    for fault in found:
        print(fault)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
