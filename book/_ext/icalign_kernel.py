"""What the Rocq kernel checked, on the site: a folded box below each statement, the files, and the table of theorems.

A theorem's source is a page of its own, ``proofs/Selection.html``, with an anchor for each theorem, so that the link
from a box works offline. Nothing here is typed: all of it comes from ``proofs/`` through :mod:`icalign.kernel`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from icalign import kernel
from icalign.ledger import SECTIONS
from icalign_book import Page, add_content, statements

PAGES = "proofs/"


class Theorems:
    """The checked theorems, read once when a build begins."""

    root: Path

    def open(self, app: Sphinx) -> None:
        """Says where the book lies."""
        self.root = Path(app.srcdir)
        for name in ("all", "mutants"):
            self.__dict__.pop(name, None)

    @cached_property
    def all(self) -> list[kernel.Theorem]:
        """Every theorem that the kernel checked, in the order of the files."""
        return kernel.checked(self.root)

    def of(self, claim: str) -> list[kernel.Theorem]:
        """Those of one claim."""
        return [theorem for theorem in self.all if theorem.claim == claim]

    def resolve(self, app: Sphinx, doctree: nodes.document, docname: str) -> None:
        """Puts a box below each statement that the kernel has something to say about."""
        for node in list(statements(doctree)):
            if found := self.of(node["label"]):
                node.parent.insert(
                    node.parent.index(node) + 1, nodes.raw("", box_html(app, docname, found), format="html")
                )

    @cached_property
    def mutants(self) -> list[kernel.Mutant]:
        """Every mutant that is refuted."""
        return kernel.mutants(self.root / "proofs") if self.all else []

    def pages(self, app: Sphinx) -> Iterator[tuple[str, dict[str, object], str]]:
        """A page for each file."""
        for path in kernel.sources(self.root / "proofs") if self.all else []:
            here = [named for named in (*self.all, *self.mutants) if named.file == path.name]
            yield f"{PAGES}{path.stem}", {"title": path.name, "body": source_html(path, here)}, "page.html"


def source(app: Sphinx, docname: str, theorem: kernel.Theorem | kernel.Mutant) -> str:
    """The address of a theorem, or of a mutant, in the page of its file, from another page."""
    target = app.builder.get_target_uri(f"{PAGES}{theorem.file.removesuffix('.v')}")
    return f"{relative_uri(app.builder.get_target_uri(docname), target)}#{theorem.name}"


def axioms_html(axioms: Iterable[str]) -> str:
    """The axioms by their last names."""
    names = ", ".join(f"<code>{escape(axiom.rpartition('.')[2])}</code>" for axiom in axioms)
    return f"Axioms: {names}." if names else "No axioms."


def theorem_html(app: Sphinx, docname: str, theorem: kernel.Theorem) -> str:
    """One theorem: its name, what it is about, its statement as the kernel prints it, its axioms."""
    about = ", ".join(map(escape, theorem.parts))
    toward = "" if theorem.covers else " <b>It shows less than the part says</b>"
    remark = f": {escape(theorem.remark)}" if theorem.remark and not theorem.covers else ""
    return (
        f'<p><a href="{escape(source(app, docname, theorem))}"><code>{escape(theorem.name)}</code></a>'
        f' <span class="kernel-parts">{about}</span>{toward}{remark}{"." if toward else ""}</p>'
        f'<pre tabindex="0">{escape(theorem.statement)}</pre><p class="kernel-axioms">{axioms_html(theorem.axioms)}</p>'
    )


def box_html(app: Sphinx, docname: str, theorems: list[kernel.Theorem]) -> str:
    """The folded box below a statement."""
    covered = sum(theorem.covers for theorem in theorems)
    number = f"{covered or len(theorems)} theorem{'s' * ((covered or len(theorems)) != 1)}"
    said = (
        f"Kernel-checked: {number} in Rocq, as the kernel prints them"
        if covered
        else f"Toward a kernel check: {number}"
    )
    body = "".join(theorem_html(app, docname, theorem) for theorem in theorems)
    return f'<details class="kernel-box"><summary>{said}</summary>{body}</details>'


def source_html(path: Path, theorems: Sequence[kernel.Theorem | kernel.Mutant]) -> str:
    """A file with an anchor before each of its theorems and mutants."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    starts = {theorem.line: theorem.name for theorem in theorems}
    cuts = sorted({1, *starts})
    parts = []
    for first, end in zip(cuts, [*cuts[1:], len(lines) + 1], strict=True):
        anchor = f' id="{escape(starts[first])}"' if first in starts else ""
        parts.append(f"<span{anchor}>{escape(''.join(lines[first - 1 : end - 1]))}</span>")
    return (
        f"<h1><code>{escape(path.name)}</code></h1><p>Compiled and checked with the rest of <code>proofs/</code> by "
        f'<code>make proofs</code>.</p><pre class="kernel-source" tabindex="0">{"".join(parts)}</pre>'
    )


def linked(page: Page, named: kernel.Theorem | kernel.Mutant) -> str:
    """The name, which leads to the source; where there is little room it breaks after an underscore."""
    name = escape(named.name).replace("_", "_<wbr>")
    return f'<a href="{escape(source(page.app, page.docname, named))}"><code>{name}</code></a>'


def table_html(page: Page, theorems: list[kernel.Theorem]) -> str:
    """Claim, theorem, file, by chapter, in the order of the claims."""

    def row(theorem: kernel.Theorem) -> str:
        target = page.link(theorem.claim)
        claim = f'<a href="{escape(target)}">{theorem.claim}</a>' if target else theorem.claim
        return (
            f"<tr><td>{claim}</td><td>{', '.join(theorem.parts)}{'' if theorem.covers else ' (toward)'}</td>"
            f"<td>{linked(page, theorem)}</td><td>{len(theorem.axioms)}</td></tr>"
        )

    heads = ("Claim", "Parts", "Theorem", "Axioms")
    return scrolling("Claims and theorems.", heads, by_chapter(page, theorems, lambda found: map(row, found)))


def mutants_html(page: Page, theorems: list[kernel.Theorem], mutants: list[kernel.Mutant]) -> str:
    """Theorem, what is changed in it, and the lemma that refutes the change, by chapter, in the order of the claims."""

    def rows(found: list[kernel.Theorem]) -> Iterator[str]:
        for theorem, mutant in ((t, m) for t in found for m in mutants if m.of == t.name):
            names = [linked(page, named) for named in (theorem, mutant)]
            yield f"<tr><td>{names[0]}</td><td>{escape(mutant.what)}</td><td>{names[1]}</td></tr>"

    heads = ("Theorem", "What is changed", "Refutation")
    return scrolling("Mutants, each refuted.", heads, by_chapter(page, theorems, rows))


def by_chapter(
    page: Page, theorems: list[kernel.Theorem], rows: Callable[[list[kernel.Theorem]], Iterable[str]]
) -> dict[str, list[str]]:
    """The rows about the theorems of each chapter, in the order of the claims, under its title."""
    found = {}
    for section, title in SECTIONS.items():
        claims = [entry.claim.id for entry in page.ledger if entry.claim.section == section]
        here = sorted((t for t in theorems if t.claim in claims), key=lambda theorem: claims.index(theorem.claim))
        if written := list(rows(here)):
            found[f"{section}. {title}"] = written
    return found


def scrolling(caption: str, heads: Sequence[str], groups: dict[str, list[str]]) -> str:
    """A table that scrolls within its box, with a title over each group of rows."""
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    bodies = "".join(
        f'<tbody><tr><th colspan="{len(heads)}" scope="rowgroup">{escape(title)}</th></tr>{"".join(rows)}</tbody>'
        for title, rows in groups.items()
    )
    return (
        '<div class="pst-scrollable-table-container kernel-scroll" tabindex="0"><table class="table kernel-table">'
        f"<caption>{caption}</caption><thead><tr>{columns}</tr></thead>{bodies}</table></div>"
    )


def open_html(page: Page, reasons: dict[str, str]) -> str:
    """The claims that the kernel has begun: their parts that no theorem covers, and what blocks them."""
    groups: dict[str, list[str]] = {}
    for entry in (entry for entry in page.ledger if entry.left):
        claim = entry.claim
        name = f'<a href="{escape(page.link(claim.id) or "")}">{claim.id}</a>'
        row = f"<tr><td>{name}</td><td>{', '.join(entry.left)}</td><td>{escape(reasons[claim.id])}</td></tr>"
        groups.setdefault(f"{claim.section}. {SECTIONS[claim.section]}", []).append(row)
    others = sum(not entry.begun for entry in page.ledger)
    table = scrolling("What no theorem covers.", ("Claim", "Parts", "What blocks them"), groups)
    return f"{table}<p>No theorem is about the other {others} claims.</p>"


def axioms_table_html(theorems: list[kernel.Theorem]) -> str:
    """How many theorems rest on each axiom."""
    count = Counter(axiom for theorem in theorems for axiom in theorem.axioms)
    free = sum(not theorem.axioms for theorem in theorems)
    items = "".join(f"<li><code>{escape(axiom)}</code>: {count[axiom]} theorems</li>" for axiom in kernel.AXIOMS)
    return f"<ul>{items}<li>no axiom at all: {free} theorems</li></ul>"


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the box, the pages and the tables; after icalign_book, which finds the statements."""
    app.setup_extension("icalign_book")
    theorems = Theorems()
    add_content(
        app,
        {
            "kernel-table": lambda page: table_html(page, theorems.all),
            "kernel-mutants": lambda page: mutants_html(page, theorems.all, theorems.mutants),
            "kernel-open": lambda page: open_html(page, kernel.blocked(theorems.root / "proofs")),
            "kernel-axioms": lambda page: axioms_table_html(theorems.all),
        },
    )
    app.connect("builder-inited", theorems.open)
    app.connect("doctree-resolved", theorems.resolve)
    app.connect("html-collect-pages", theorems.pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
