"""The book's Sphinx extension: badges, the ledger, the claim graph. All of it is computed by ``icalign.ledger``.

- a badge with the claim's status in the title of every statement whose label is a claim
- ``{ledger}``, ``{ledger-counts}``, ``{claim-graph}``: the table, the counts, the graph
- ``{by-hand}`claim/part` ``: marks the argument that covers a part by hand
- every broken rule of evidence is a warning, so that a build with ``-W`` fails
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.nodes import make_refnode

from icalign.ledger import (
    HOLDS,
    NEW,
    SECTIONS,
    Cover,
    Entry,
    Ledger,
    LedgerError,
    Status,
    read,
)

Link = Callable[[str], str | None]
"""The address of a claim's statement, seen from the page that is being written."""

MEANINGS = {
    Status.KERNEL: "a proof assistant's kernel checked every part, for all sizes",
    Status.PROVED: "computer algebra or an exact decision settles every part, for all sizes",
    Status.HAND: "the same, except for steps that are argued on the page",
    Status.SIZED: "some part is decided exactly, for the sizes named",
    Status.MEASURED: "some part is checked on seeded random instances only: it speaks about floating point, or awaits a proof",
    Status.PARTIAL: "some part has no evidence",
    Status.UNCONTROLLED: "no broken twin was shown to be rejected",
    Status.OPEN: "stated, without evidence",
    Status.PLANNED: "a later chapter will state it",
}


class LedgerTable(nodes.General, nodes.Element):
    """Stands for the table until all pages are read."""


class LedgerCounts(nodes.General, nodes.Element):
    """Stands for the counts until all pages are read."""


class ClaimGraph(nodes.General, nodes.Element):
    """Stands for the graph until all pages are read."""


class Placeholder(SphinxDirective):
    """A directive whose content is computed when the page is written."""

    node: ClassVar[type[nodes.Element]]

    def run(self) -> list[nodes.Node]:
        """Puts the placeholder."""
        return [self.node()]


class LedgerDirective(Placeholder):
    """``{ledger}``."""

    node = LedgerTable


class CountsDirective(Placeholder):
    """``{ledger-counts}``."""

    node = LedgerCounts


class GraphDirective(Placeholder):
    """``{claim-graph}``."""

    node = ClaimGraph


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


def statement_html(entry: Entry, link: Link, text: str) -> str:
    """The text, linked to the claim's statement where that stands in a chapter."""
    target = link(entry.claim.id)
    return f'<a href="{escape(target)}">{text}</a>' if target else text


def plural(number: int, noun: str) -> str:
    """``1 control``, ``2 controls``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def counts_html(ledger: Ledger) -> str:
    """How many claims have which status, what that means, and how many records there are of each kind."""
    rows = "".join(
        f'<tr><td class="number">{number}</td><td>{badge_html(status, status)}</td><td>{MEANINGS[status]}</td></tr>'
        for status, number in ledger.counts.items()
    )
    records = ", ".join(plural(number, kind) for kind, number in ledger.evidence.items()) or "no records yet"
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
        f"<li><b>{escape(part.name)}</b>: {escape(part.says.replace('`', ''))}"
        + (f" ({escape(part.sizes)})" if part.sizes else "")
        + f' <span class="cover">{entry.covers[part.name]}</span></li>'
        for part in entry.claim.parts
    )
    covered = sum(cover is not Cover.NONE for cover in entry.covers.values())
    return f"<details><summary>{covered} of {plural(len(entry.covers), 'part')}</summary><ul>{items}</ul></details>"


def verdict_html(entry: Entry) -> str:
    """The verdict, on what, and with which qualification."""
    claim = entry.claim
    if claim.verdict == NEW or (claim.verdict == HOLDS and not claim.says):
        return claim.verdict
    qualified = f" ({escape(claim.qualified)})" if claim.qualified else ""
    return f"“{escape(claim.says)}”: <b>{claim.verdict}</b>{qualified}"


def table_html(ledger: Ledger, link: Link) -> str:
    """The ledger: one group of rows a chapter, one row a claim."""
    groups = []
    for section, entries in ledger.sections().items():
        rows = "".join(
            f'<tr id="ledger-{entry.claim.id}"><th scope="row">{statement_html(entry, link, escape(entry.claim.title))}'
            f"<br><code>{entry.claim.id}</code>{parts_html(entry)}</th>"
            f"<td>{badge_html(entry.status, entry.label)}<br><small>{escape(entry.remark)}</small></td>"
            f"<td>{'<br>'.join(plural(number, kind) for kind, number in entry.evidence.items()) or '–'}</td>"
            f"<td>{escape(entry.claim.place) or '–'}</td><td>{verdict_html(entry)}</td></tr>"
            for entry in entries
        )
        heading = f'<tr><th colspan="5" scope="rowgroup">{section}. {escape(SECTIONS[section])}</th></tr>'
        groups.append(f"<tbody>{heading}{rows}</tbody>")
    columns = "".join(
        f'<th scope="col">{name}</th>' for name in ("Claim", "Status", "Evidence", "In the paper", "Verdict")
    )
    return (
        '<div class="ledger-frame" tabindex="0" role="region" aria-label="The ledger">'
        f'<table class="table ledger"><thead><tr>{columns}</tr></thead>{"".join(groups)}</table></div>'
    )


# ─── the graph ───────────────────────────────────────────────────────────────────────────────────

WIDTH, LEFT, BOX, GAP_X, GAP_Y, BAND = 780, 34, 24, 10, 20, 16
LETTER = 6.35  # width of one letter of the boxes' 10.5px monospace, a little on the wide side


def layout(
    ledger: Ledger,
) -> tuple[dict[str, tuple[float, float, float]], dict[int, float], float]:
    """The place (left, top, width) of each box, the top of each chapter's band, and the height of all.

    Boxes stand in reading order, a band a chapter, as many on a line as fit: an arrow from what is used to what
    uses it then runs downwards, or along a band.
    """
    boxes: dict[str, tuple[float, float, float]] = {}
    bands: dict[int, float] = {}
    top = 8.0
    for section, entries in ledger.sections().items():
        bands[section] = top
        left = float(LEFT)
        for entry in entries:
            width = (len(entry.claim.id) + 2) * LETTER + 12
            if left > LEFT and left + width > WIDTH:
                left, top = float(LEFT), top + BOX + GAP_Y
            boxes[entry.claim.id] = (left, top, width)
            left += width + GAP_X
        top += BOX + GAP_Y + BAND
    return boxes, bands, top - BAND


def edge_path(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """A curve from the foot of one box to the head of another, or over the top between boxes on one line."""
    (x0, y0, w0), (x1, y1, w1) = start, end
    a, c = x0 + w0 / 2, x1 + w1 / 2
    if y0 == y1:
        bend = min(GAP_Y - 4.0, 6 + abs(c - a) / 16)
        return f"M{a:.0f} {y0:.0f}C{a:.0f} {y0 - bend:.0f} {c:.0f} {y0 - bend:.0f} {c:.0f} {y0:.0f}"
    b, d = (y0 + BOX, y1) if y0 < y1 else (y0, y1 + BOX)
    middle = (b + d) / 2
    return f"M{a:.0f} {b:.0f}C{a:.0f} {middle:.0f} {c:.0f} {middle:.0f} {c:.0f} {d:.0f}"


def graph_svg(ledger: Ledger, link: Link) -> str:
    """The graph as inline SVG; pointing at a claim brings out its arrows."""
    boxes, bands, height = layout(ledger)
    svg = [
        f'<svg class="claim-graph" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
        'role="group" aria-labelledby="claim-graph-title"><title id="claim-graph-title">Which claim uses which: '
        f"{plural(len(ledger), 'claim')}, {plural(len(ledger.graph), 'arrow')}</title>",
    ]
    # One rule a claim, so that no script is needed.
    rules = "".join(
        f".claim-graph:has(#node-{name}:hover,#node-{name}:focus-visible) .edge-{name}{{opacity:1;stroke-width:2px}}"
        for name in boxes
    )
    svg.append(f"<style>{rules}</style>")
    for section, top in bands.items():
        line = f'<path class="band" d="M0 {top - 11:.0f}H{WIDTH}"/>' if section != min(bands) else ""
        svg.append(f'{line}<text class="band" x="2" y="{top + 17:.0f}">{section}</text>')
    for used, user in ledger.graph:
        svg.append(
            f'<path class="edge edge-{used} edge-{user}" d="{edge_path(boxes[used], boxes[user])}">'
            f"<title>{user} uses {used}</title></path>"
        )
    for entry in ledger:
        name, status = entry.claim.id, entry.status
        left, top, width = boxes[name]
        says = escape(f"{entry.claim.title}: {entry.label}")
        body = (
            f'<title>{says}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BOX}" rx="4"/>'
            f'<text x="{left + 7:.1f}" y="{top + 16:.1f}"><tspan class="glyph">{status.glyph}</tspan> {name}</text>'
        )
        target = link(name)
        attributes = f'id="node-{name}" class="node {css(status)}"'
        if target:
            svg.append(f'<a {attributes} href="{escape(target)}" aria-label="{name}. {says}">{body}</a>')
        else:
            svg.append(f"<g {attributes}>{body}</g>")
    return "".join(svg) + "</svg>"


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
        '<div class="claim-graph-frame" tabindex="0" role="region" aria-label="The graph of claims">'
        f'{graph_svg(ledger, link)}</div><p class="claim-graph-legend">{legend}</p>'
        f'<details class="claim-graph-text"><summary>The graph as a list</summary><ul>{items}</ul></details>'
    )


# ─── the build ───────────────────────────────────────────────────────────────────────────────────


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
        return sorted(stated | {app.config.icalign_ledger_page} & env.found_docs)

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

        def link(claim: str) -> str | None:
            if entry := getattr(app.env, "proof_list", {}).get(claim):
                return f"{app.builder.get_relative_uri(docname, entry['docname'])}#{claim}"
            return None

        for node in doctree.findall(nodes.Admonition):
            if isinstance(node, nodes.Element) and "realtype" in node and node["label"] in self.ledger.entries:
                node[0] += self.badge(app, docname, self.ledger[node["label"]])
        for kind, content in (
            (LedgerTable, table_html(self.ledger, link)),
            (LedgerCounts, counts_html(self.ledger)),
            (ClaimGraph, graph_html(self.ledger, link)),
        ):
            for node in list(doctree.findall(kind)):
                node.replace_self(nodes.raw("", content, format="html"))

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


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the directives, the role and the handlers."""
    book = Book()
    app.add_config_value("icalign_ledger_page", "book/ledger", "env")
    app.add_directive("ledger", LedgerDirective)
    app.add_directive("ledger-counts", CountsDirective)
    app.add_directive("claim-graph", GraphDirective)
    app.add_role("by-hand", ByHand())
    for node in LedgerTable, LedgerCounts, ClaimGraph:
        app.add_node(node)
    app.connect("builder-inited", book.open)
    app.connect("env-updated", book.pages)
    app.connect("env-check-consistency", book.check)
    app.connect("doctree-resolved", book.resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
