"""The book's Sphinx extension: badges, the ledger, the claim graph. All of it is computed by ``icalign.ledger``.

- a badge with the claim's status in the title of every statement whose label is a claim
- ``{ledger}``, ``{ledger-counts}``, ``{claim-graph}``: the table, the counts, the graph
- an entry in the general index for every claim: where it is stated, and its row in the ledger
- ``{by-hand}`claim/part` ``: marks the argument that covers a part by hand
- every broken rule of evidence is a warning, so that a build with ``-W`` fails
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.nodes import make_refnode

from icalign.ledger import SECTIONS, Cover, Entry, Ledger, LedgerError, Status, counted, plural, read

Link = Callable[[str], str | None]
"""The address of a claim's statement, seen from the page that is being written."""

MEANINGS = {
    Status.KERNEL: "a proof assistant's kernel checked every part, for all sizes",
    Status.PROVED: "computer algebra or an exact decision settles every part, for all sizes",
    Status.HAND: "the same, except for steps that are argued on the page",
    Status.SIZED: "some part is decided exactly, for the sizes named",
    Status.MEASURED: "some part is checked on seeded random instances only (floating point, or no proof yet)",
    Status.PARTIAL: "some part has no evidence",
    Status.UNCONTROLLED: "no broken twin was shown to be rejected",
    Status.OPEN: "stated, without evidence",
    Status.PLANNED: "a later chapter will state it",
}


@dataclass(frozen=True)
class Page:
    """A page that is being written, as computed content needs it."""

    app: Sphinx
    docname: str
    ledger: Ledger

    def to(self, docname: str, anchor: str = "") -> str:
        """The address of a place on another page, seen from this one."""
        address = self.app.builder.get_relative_uri(self.docname, docname)
        return f"{address}#{anchor}" if anchor else address

    def link(self, claim: str) -> str | None:
        """The address of a claim's statement, if it stands in a chapter."""
        entry = getattr(self.app.env, "proof_list", {}).get(claim)
        return self.to(entry["docname"], claim) if entry else None


class Computed(nodes.General, nodes.Element):
    """Stands for content that is computed when the page is written, once all pages are read."""


CONTENT: dict[str, Callable[[Page], str]] = {}
"""The directives whose content is computed, and the HTML of each."""


class ComputedDirective(SphinxDirective):
    """A directive of ``CONTENT``."""

    def run(self) -> list[nodes.Node]:
        """Puts the placeholder, and notes that the page has one."""
        self.env.metadata[self.env.docname]["icalign_computed"] = True
        return [Computed(name=self.name)]


def add_content(app: Sphinx, contents: dict[str, Callable[[Page], str]]) -> None:
    """Registers directives whose content is computed."""
    CONTENT.update(contents)
    for name in contents:
        app.add_directive(name, ComputedDirective)


class ByHand(SphinxRole):
    """``{by-hand}`claim/part` ``: a small tag; whether it stands where it may is the ledger's to judge."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The tag, with the part's name."""
        part = self.text.partition("/")[2]
        return [nodes.inline(self.rawtext, f"by hand: {part}", classes=["by-hand"])], []


# ─── HTML ────────────────────────────────────────────────────────────────────────────────────────


def css(status: Status) -> str:
    """The class that colours a status."""
    return f"status-{status.name.lower()}"


def badge_html(status: Status, label: str) -> str:
    """A badge as HTML; the glyph says it without colour."""
    return (
        f'<span class="claim-badge {css(status)}"><span aria-hidden="true">{status.glyph}</span> {escape(label)}</span>'
    )


def scripts_html(text: str) -> str:
    """Plain mathematics as HTML: ``y_j``, ``x^a``, ``s_τ(1)``, ``e^{−γΔ}`` with their letters low and high."""
    text = escape(text.replace("`", ""))
    text = re.sub(r"_(τt?\([^()]*\)|[^\W_]+)", r"<sub>\1</sub>", text)
    text = re.sub(r"\^([^\W_]+)", r"<sup>\1</sup>", text)
    text = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", text)
    return re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", text)


def statement_html(entry: Entry, link: Link, text: str) -> str:
    """The text, linked to the claim's statement where that stands in a chapter."""
    target = link(entry.claim.id)
    return f'<a href="{escape(target)}">{text}</a>' if target else text


def counts_html(ledger: Ledger) -> str:
    """How many claims have which status, what that means, and how many records there are of each kind."""
    rows = "".join(
        f'<tr><td class="number">{number}</td><td>{badge_html(status, status)}</td><td>{MEANINGS[status]}</td></tr>'
        for status, number in ledger.counts.items()
    )
    records = ", ".join(counted(ledger.evidence)) or "no records yet"
    broken = "".join(f"<li>{escape(sentence)}</li>" for sentence in ledger.violations)
    return (
        f'<table class="table ledger-counts"><caption>{len(ledger)} claims; their evidence: {records}.</caption>'
        f'<thead><tr><th scope="col">Claims</th><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        + (f'<div class="broken-rules"><p>Broken rules of evidence:</p><ul>{broken}</ul></div>' if broken else "")
    )


def parts_html(entry: Entry) -> str:
    """The folded list of a claim's parts, each with how it is covered."""
    items = "".join(
        f"<li><b>{escape(part.name)}</b>: {scripts_html(part.says)}"
        + (f" ({scripts_html(part.sizes)})" if part.sizes else "")
        + f' <span class="cover">{entry.covers[part.name]}</span></li>'
        for part in entry.claim.parts
    )
    covered = sum(cover is not Cover.NONE for cover in entry.covers.values())
    return f"<details><summary>{covered} of {plural(len(entry.covers), 'part')}</summary><ul>{items}</ul></details>"


def verdict_html(entry: Entry) -> str:
    """The verdict, on what, and with which qualification; nothing before the claim is supported."""
    claim = entry.claim
    if not entry.verdict:
        return "<i>not examined yet</i>"
    says = f"“{escape(claim.says)}”: " if claim.says else ""
    qualified = f" ({escape(claim.qualified)})" if claim.qualified else ""
    return f"{says}<b>{entry.verdict}</b>{qualified}"


def row_html(entry: Entry, link: Link) -> str:
    """One claim: what it says, how it stands, what the paper has."""
    claim = entry.claim
    title = statement_html(entry, link, escape(claim.title))
    records = " · ".join(counted(entry.evidence))
    facts = "<br>".join(f"<small>{escape(text)}</small>" for text in (entry.remark, records) if text)
    place = f"{escape(claim.place)}<br>" if claim.place else ""
    return (
        f'<tr id="ledger-{claim.id}"><th scope="row">{title}<br><code>{claim.id}</code>{parts_html(entry)}</th>'
        f"<td>{badge_html(entry.status, entry.label)}<br>{facts}</td><td>{place}{verdict_html(entry)}</td></tr>"
    )


def table_html(ledger: Ledger, link: Link) -> str:
    """The ledger: one group of rows a chapter, one row a claim."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "Status and evidence", "In the paper"))
    groups = "".join(
        f'<tbody><tr><th colspan="3" scope="rowgroup">{section}. {escape(SECTIONS[section])}</th></tr>'
        + "".join(row_html(entry, link) for entry in entries)
        + "</tbody>"
        for section, entries in ledger.sections().items()
    )
    return (
        '<div class="ledger-frame" tabindex="0" role="region" aria-label="The ledger">'
        f'<table class="table ledger"><thead><tr>{columns}</tr></thead>{groups}</table></div>'
    )


# ─── the graph ───────────────────────────────────────────────────────────────────────────────────

WIDTH, LEFT, BOX, GAP_X, GAP_Y, BAND = 688, 28, 24, 10, 22, 16
LETTER = 6.35  # width of a letter of 10.5px monospace, a little on the wide side


@dataclass(frozen=True)
class Box:
    """A claim's place in the drawing."""

    left: float
    top: float
    width: float


def lines(entries: Sequence[Entry]) -> list[list[tuple[str, float]]]:
    """The claims of a chapter, each with the width of its box, as many on a line as fit."""
    rows: list[list[tuple[str, float]]] = [[]]
    for entry in entries:
        width = (len(entry.claim.id) + 2) * LETTER + 12
        if rows[-1] and LEFT + sum(w + GAP_X for _, w in rows[-1]) + width > WIDTH:
            rows.append([])
        rows[-1].append((entry.claim.id, width))
    return rows


def layout(ledger: Ledger) -> tuple[dict[str, Box], dict[int, float], float]:
    """The box of each claim, the top of each chapter's band, and the height of all.

    Claims stand in reading order, a band a chapter, each line centred: an arrow from what is used to what uses it
    then runs downwards, or along a line.
    """
    boxes: dict[str, Box] = {}
    bands: dict[int, float] = {}
    top = 20.0
    for section, entries in ledger.sections().items():
        bands[section] = top
        for row in lines(entries):
            left = LEFT + (WIDTH - LEFT - sum(width + GAP_X for _, width in row) + GAP_X) / 2
            for name, width in row:
                boxes[name] = Box(left, top, width)
                left += width + GAP_X
            top += BOX + GAP_Y
        top += BAND
    return boxes, bands, top - BAND - GAP_Y + 6


def ports(box: Box, others: Sequence[Box]) -> list[float]:
    """Where along a box its arrows meet it: apart, and in the order in which they come, so that they cross less."""
    order = sorted(range(len(others)), key=lambda index: others[index].left)
    return [box.left + box.width * (order.index(index) + 1) / (len(others) + 1) for index in range(len(others))]


def edge_path(x0: float, start: Box, x1: float, end: Box) -> str:
    """A curve from the foot of one box to the head of another, or over the top between boxes on one line."""
    if start.top == end.top:
        y = start.top - min(GAP_Y - 6.0, 6 + abs(x1 - x0) / 16)
        return f"M{x0:.0f} {start.top:.0f}C{x0:.0f} {y:.0f} {x1:.0f} {y:.0f} {x1:.0f} {end.top:.0f}"
    y0, y1 = (start.top + BOX, end.top) if start.top < end.top else (start.top, end.top + BOX)
    middle = (y0 + y1) / 2
    return f"M{x0:.0f} {y0:.0f}C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"


def edges_svg(ledger: Ledger, boxes: dict[str, Box]) -> Iterator[str]:
    """The arrows, from what is used to what uses it."""
    leave: dict[tuple[str, str], float] = {}
    arrive: dict[tuple[str, str], float] = {}
    for name, box in boxes.items():
        users, used = ledger.used_by(name), ledger[name].claim.uses
        leave |= zip([(name, user) for user in users], ports(box, [boxes[user] for user in users]), strict=True)
        arrive |= zip([(one, name) for one in used], ports(box, [boxes[one] for one in used]), strict=True)
    for used, user in ledger.graph:
        path = edge_path(leave[used, user], boxes[used], arrive[used, user], boxes[user])
        title = f"<title>{user} uses {used}</title>"
        yield f'<path class="edge edge-{used} edge-{user}" marker-end="url(#arrow)" d="{path}">{title}</path>'


def node_svg(entry: Entry, box: Box, link: Link) -> str:
    """One claim: a box that links to its statement, and says title and status when pointed at."""
    name, status = entry.claim.id, entry.status
    says = escape(f"{entry.claim.title}: {entry.label}")
    x, y, width = f"{box.left:.1f}", f"{box.top:.1f}", f"{box.width:.1f}"
    body = (
        f'<title>{says}</title><rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="4"/>'
        f'<text x="{x}" y="{y}" dx="7" dy="16"><tspan class="glyph">{status.glyph}</tspan> {name}</text>'
    )
    attributes = f'id="node-{name}" class="node {css(status)}"'
    if target := link(name):
        return f'<a {attributes} href="{escape(target)}" aria-label="{name}. {says}">{body}</a>'
    return f"<g {attributes}>{body}</g>"


def graph_svg(ledger: Ledger, link: Link) -> str:
    """The graph as inline SVG; pointing at a claim brings out its arrows."""
    boxes, bands, height = layout(ledger)
    title = f"Which claim uses which: {plural(len(ledger), 'claim')}, {plural(len(ledger.graph), 'arrow')}"
    # One rule a claim does the bringing out, without a script.
    rules = "".join(
        f".claim-graph:has(#node-{name}:hover,#node-{name}:focus-visible) .edge-{name}{{opacity:1;stroke-width:2px}}"
        for name in boxes
    )
    borders = "".join(f'<path class="band" d="M0 {top - 20:.0f}H{WIDTH}"/>' for top in list(bands.values())[1:])
    numbers = "".join(f'<text class="band" x="2" y="{top + 17:.0f}">{n}</text>' for n, top in bands.items())
    marker = 'viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="5" markerHeight="5" orient="auto"'
    return (
        f'<svg class="claim-graph" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
        f'role="group" aria-labelledby="claim-graph-title"><title id="claim-graph-title">{title}</title>'
        f'<style>{rules}</style><defs><marker id="arrow" {marker}><path d="M0 0L6 3L0 6z"/></marker></defs>'
        f"{borders}{numbers}{''.join(edges_svg(ledger, boxes))}"
        f"{''.join(node_svg(entry, boxes[entry.claim.id], link) for entry in ledger)}</svg>"
    )


def graph_html(ledger: Ledger, link: Link) -> str:
    """The graph in a frame of its own, the legend, and the same as a folded list."""
    legend = " ".join(badge_html(status, status) for status in ledger.counts)
    items = "".join(
        f"<li>{statement_html(entry, link, f'<code>{entry.claim.id}</code>')} ({escape(entry.label)}): "
        + (f"uses {', '.join(f'<code>{used}</code>' for used in entry.claim.uses)}" if entry.claim.uses else "–")
        + "</li>"
        for entry in ledger
    )
    return (
        '<p class="claim-graph-wide">The drawing is wider than this screen: it scrolls sideways, and the list below it '
        'says the same.</p><div class="claim-graph-frame" tabindex="0" role="region" aria-label="The graph of claims">'
        f'{graph_svg(ledger, link)}</div><p class="claim-graph-legend">{legend}</p>'
        f'<details class="claim-graph-text"><summary>The graph as a list</summary><ul>{items}</ul></details>'
    )


# ─── the build ───────────────────────────────────────────────────────────────────────────────────


class ClaimIndex(SphinxTransform):
    """Enters claims into the general index, and so into the search: where they are stated, and their ledger rows."""

    default_priority = 840  # before Sphinx collects the entries

    def apply(self, **options: object) -> None:
        """Puts the entries of this page."""
        claims = self.app.extensions["icalign_book"].metadata["book"].ledger.entries
        stated = [node["label"] for node in statements(self.document) if node["label"] in claims]
        entries = [("single", label, label, "main", None) for label in stated]
        if self.env.docname == self.config.icalign_ledger_page:
            entries += [("single", name, f"ledger-{name}", "", None) for name in claims]
        if entries:
            self.document.append(addnodes.index(entries=entries))


def statements(document: nodes.document) -> Iterator[nodes.Element]:
    """The ``prf:`` directives of a page that have a number and a title."""
    yield from (node for node in document.findall(nodes.Admonition) if "realtype" in getattr(node, "attributes", {}))


EVIDENCE_BOX = '<div class="evidence '


def led_home(box: str, page: Page) -> str:
    """A box of evidence whose claim leads to its statement, which may stand on another page."""
    return re.sub(r'href="#([\w-]+)"', lambda match: f'href="{escape(page.link(match[1]) or "#" + match[1])}"', box)


STATEMENT = re.compile(r'<div class="evidence-statement math ([^"]*)">(.*?)</div>', re.DOTALL)
LONG = 1000  # characters of TeX; from there on a formula takes half a screen or more


def folded(box: str) -> str:
    """A box of evidence whose formula, if it is long, is folded, and typeset when it is unfolded (``unfold.js``)."""

    def fold(match: re.Match[str]) -> str:
        if len(match[2]) < LONG:
            return match[0]
        return (
            '<details class="evidence-long"><summary>The formula, a long one</summary>'
            f'<div class="evidence-statement mathjax_ignore {match[1]}">{match[2]}</div></details>'
        )

    return STATEMENT.sub(fold, box)


class Book:
    """What the event handlers share: the ledger, read once when a build begins."""

    ledger: Ledger

    def open(self, app: Sphinx) -> None:
        """Reads the ledger; a malformed registry ends the build with its own message."""
        try:
            self.ledger = read(Path(app.srcdir))
        except LedgerError as error:
            raise ExtensionError(str(error)) from error

    def pages(self, app: Sphinx, env: BuildEnvironment) -> list[str]:
        """The pages that show a status: written again in every build, since evidence lies on other pages."""
        stated = {entry["docname"] for entry in getattr(env, "proof_list", {}).values()}
        return sorted(stated | {name for name, about in env.metadata.items() if "icalign_computed" in about})

    def check(self, app: Sphinx, env: BuildEnvironment) -> None:
        """Warns of each broken rule, and of each statement that only Sphinx sees."""
        logger = logging.getLogger(__name__)
        for sentence in self.ledger.violations:
            logger.warning("ledger: %s", sentence)
        stated = {entry.claim.id for entry in self.ledger if entry.statements}
        shown = self.ledger.entries.keys() & getattr(env, "proof_list", {}).keys()
        for label in sorted(stated - shown):
            logger.warning("ledger: %s is stated on a page outside the table of contents", label)
        for label in sorted(shown - stated):
            logger.warning(
                "ledger: %s has a label that the ledger cannot read; write it as :label:",
                label,
            )

    def resolve(self, app: Sphinx, doctree: nodes.document, docname: str) -> None:
        """Puts badges into titles and content into the placeholders."""

        page = Page(app, docname, self.ledger)
        for node in statements(doctree):
            if node["label"] in self.ledger.entries:
                node[0] += self.badge(app, docname, self.ledger[node["label"]])
        for node in doctree.findall(nodes.Element):  # sphinx-proof gives these to every statement and every proof
            node["ids"] = [name for name in node.get("ids", []) if name not in ("proof", "proof-content")]
        self.anchor(doctree, docname)
        for node in list(doctree.findall(nodes.raw)):
            if EVIDENCE_BOX in node.astext():
                node.replace_self(nodes.raw("", folded(led_home(node.astext(), page)), format="html"))
        for node in list(doctree.findall(Computed)):
            node.replace_self(nodes.raw("", CONTENT[node["name"]](page), format="html"))

    def anchor(self, doctree: nodes.document, docname: str) -> None:
        """Gives every cell that recorded evidence an id, ``cell-12``, so that a link can lead to it."""
        recorded = {
            record.cell
            for entry in self.ledger
            for record in entry.records
            if record.notebook.rpartition(".")[0] == docname
        }
        for node in doctree.findall(nodes.container):
            if node.get("nb_element") == "cell_code" and (number := node["cell_index"] + 1) in recorded:
                node["ids"].append(f"cell-{number}")

    def badge(self, app: Sphinx, docname: str, entry: Entry) -> nodes.Element:
        """The status, linked to the claim's row in the ledger; the remark shows beside it."""
        said = " · ".join(filter(None, (entry.label, entry.remark)))
        text = nodes.inline(
            "",
            f"{entry.status.glyph} {said}",
            classes=["claim-badge", css(entry.status)],
            translatable=False,
        )
        page = app.config.icalign_ledger_page
        if page not in app.env.found_docs:
            return text
        return make_refnode(
            app.builder,
            docname,
            page,
            f"ledger-{entry.claim.id}",
            text,
            "Its evidence, in the ledger",
        )


def accessible(app: Sphinx, docname: str, template: str, context: dict[str, object], doctree: object) -> None:
    """What axe-core finds in the theme's and docutils' HTML: folding triangles without a name, a role out of use."""
    tree = context.get("generate_toctree_html")
    if callable(tree):
        label = '<summary aria-label="Show or hide the pages below">'
        context["generate_toctree_html"] = lambda *args, **kwargs: str(tree(*args, **kwargs)).replace(
            "<summary>", label
        )
    if isinstance(body := context.get("body"), str):
        context["body"] = body.replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the directives, the role and the handlers."""
    book = Book()
    app.add_config_value("icalign_ledger_page", "book/ledger", "env")
    add_content(
        app,
        {
            "ledger": lambda page: table_html(page.ledger, page.link),
            "ledger-counts": lambda page: counts_html(page.ledger),
            "claim-graph": lambda page: graph_html(page.ledger, page.link),
        },
    )
    app.add_node(Computed)
    app.add_role("by-hand", ByHand())
    app.add_transform(ClaimIndex)
    app.connect("builder-inited", book.open)
    app.connect("env-updated", book.pages)
    app.connect("env-check-consistency", book.check)
    app.connect("doctree-resolved", book.resolve)
    app.connect("html-page-context", accessible, priority=900)
    return {"version": "1", "book": book, "parallel_read_safe": True, "parallel_write_safe": True}
