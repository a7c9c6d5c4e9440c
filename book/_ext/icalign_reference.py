"""The pages that set the book beside the paper, and the page on this build. See ``icalign.paper`` for what is computed.

- ``{findings-summary}``, ``{findings}``, ``{findings-planned}``, ``{findings-as-stated}``, ``{findings-new}``: what was
  found about the paper's statements; no verdict shows before its claim is supported
- ``{paper-places}``: the two numberings of the paper
- ``{crosswalk}``: place in the paper → claim → chapter → code; ``{notation}``: symbol → name in code → shape
- ``{build-date}``, ``{build-notebooks}``, ``{build-versions}``: this build
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from icalign import paper
from icalign.ledger import SECTIONS, Entry, LedgerError, Record, plural, stamp
from icalign_book import Page, add_content, badge_html, scripts_html, statement_html

# ─── small pieces ────────────────────────────────────────────────────────────────────────────────


def table(name: str, label: str, columns: Iterable[str], body: str) -> str:
    """A table that becomes a list of cards on a narrow screen; ``body`` is its groups of rows."""
    heads = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="ledger-frame" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="table ledger {name}"><thead><tr>{heads}</tr></thead>{body}</table></div>'
    )


def items(rows: Iterable[str]) -> str:
    """A list, or nothing."""
    inner = "".join(f"<li>{row}</li>" for row in rows)
    return f"<ul>{inner}</ul>" if inner else ""


def claim_html(page: Page, name: str) -> str:
    """A claim's id, linked to its statement, with its status if that is not one that supports it."""
    entry = page.ledger[name]
    text = statement_html(entry, page.link, f"<code>{name}</code>")
    return text if entry.verdict else f"{text} {badge_html(entry.status, entry.label)}"


def chapter_html(page: Page, section: int) -> str:
    """A chapter's number and title, linked to the page that states its first claim."""
    title = f"{section}. {escape(SECTIONS[section])}"
    stated = (page.link(entry.claim.id) for entry in page.ledger.sections().get(section, []))
    target = next(filter(None, stated), None)
    return f'<a href="{escape(target.partition("#")[0])}">{title}</a>' if target else title


# ─── findings ────────────────────────────────────────────────────────────────────────────────────


def summary_html(page: Page) -> str:
    """How many statements of the paper were examined, and how they stand."""
    quoted = paper.findings(page.ledger)
    examined = [finding for finding in quoted if finding.supported]
    held = [entry for entry in paper.as_stated(page.ledger) if entry.verdict]
    plain = len(held) + sum(finding.simple for finding in examined)
    judged = sum(not finding.simple for finding in examined)
    waiting = len(quoted) - len(examined) + len(paper.as_stated(page.ledger)) - len(held)
    new = sum(bool(entry.verdict) for entry in paper.new_statements(page.ledger))
    wait = "waits for its chapter" if waiting == 1 else "wait for their chapters"
    rest = f" {waiting} more {wait}." if waiting else ""
    examined_so_far = plural(plain + judged, "statement")
    return (
        f"<p>As of this build the book has examined {examined_so_far} of the paper: {plain} hold as they "
        f"stand, {judged} with a change or an addition.{rest} {plural(new, 'statement')} that the paper does not make "
        "came with it.</p>"
    )


def instances(page: Page, entry: Entry) -> Iterator[str]:
    """The claim's counterexamples, each linked to the cell that recorded it."""
    refuting: dict[str, Record] = {}
    for record in entry.records:
        if record.kind == "exhibit" and record.details.get("refutes"):
            refuting.setdefault(record.details["refutes"], record)
    for refuted, record in refuting.items():
        docname = record.notebook.rpartition(".")[0]
        text = f"an instance against “{scripts_html(refuted)}”"
        if docname in page.app.env.found_docs:
            text = f'<a href="{escape(page.to(docname, f"cell-{record.cell}"))}">{text}</a>'
        yield text


def finding_html(page: Page, finding: paper.Finding) -> str:
    """One statement of the paper: what it says, what is true, what shows it, what repairs it."""
    places = "; ".join(map(escape, finding.places)) or "in the text"
    verdicts = "<br>".join(
        f"<b>{escape(verdict)}</b>{f': {escape(qualified)}' if qualified else ''}"
        for verdict, qualified in finding.verdicts
    )
    true = "".join(f"<p>{scripts_html(entry.claim.finding)}</p>" for entry in finding.supported)
    waiting = [claim_html(page, entry.claim.id) for entry in finding.entries if not entry.verdict]
    shown = items(claim_html(page, entry.claim.id) + items(instances(page, entry)) for entry in finding.supported)
    for what, claims in (
        ("Repaired by", [claim_html(page, name) for name in finding.repairs]),
        ("Still to come", waiting),
    ):
        shown += f"<p>{what}: {', '.join(claims)}</p>" if claims else ""
    return (
        f'<tr id="finding-{finding.entries[0].claim.id}"><th scope="row">{scripts_html(finding.says)}<br>'
        f"<small>{places}</small><p>{verdicts}</p></th><td>{true}</td><td>{shown}</td></tr>"
    )


def findings_html(page: Page) -> str:
    """The statements that hold with a change or an addition, as far as the claims that say so are supported."""
    found = [finding for finding in paper.findings(page.ledger) if finding.supported and not finding.simple]
    if not found:
        return "<p>None so far.</p>"
    columns = ("The paper says", "What is true", "Shown by")
    body = "".join(finding_html(page, finding) for finding in found)
    return table("findings", "What was found", columns, f"<tbody>{body}</tbody>")


def planned_html(page: Page) -> str:
    """The statements that wait for their chapter, without a verdict."""
    waiting = [finding for finding in paper.findings(page.ledger) if not finding.supported]
    rows = [
        f"<em>{scripts_html(finding.says)}</em>: chapter {finding.entries[0].claim.section}, "
        + ", ".join(claim_html(page, entry.claim.id) for entry in finding.entries)
        for finding in waiting
    ]
    rows += titled(page, (entry for entry in paper.as_stated(page.ledger) if not entry.verdict))
    return f'<div class="claim-list">{items(rows)}</div>' if rows else "<p>None: all of them have been examined.</p>"


def titled(page: Page, entries: Iterable[Entry]) -> list[str]:
    """Claims with title, id, place and status."""
    return [
        statement_html(entry, page.link, escape(entry.claim.title))
        + (f" ({escape(entry.claim.place)})" if entry.claim.place and not entry.claim.new else "")
        + f" <code>{entry.claim.id}</code> {badge_html(entry.status, entry.label)}"
        for entry in entries
    ]


def as_stated_html(page: Page) -> str:
    """What holds as the paper has it."""
    quoted = [
        f"<em>{scripts_html(finding.says)}</em>: "
        + ", ".join(claim_html(page, entry.claim.id) for entry in finding.supported)
        for finding in paper.findings(page.ledger)
        if finding.simple and finding.supported
    ]
    held = [entry for entry in paper.as_stated(page.ledger) if entry.verdict]
    return f'<div class="claim-list">{items(titled(page, held) + quoted)}</div>'


def new_html(page: Page) -> str:
    """The statements that are not in the paper, chapter by chapter; those to come are counted."""
    entries = paper.new_statements(page.ledger)
    shown = [entry for entry in entries if entry.verdict]
    groups = "".join(
        f"<li>{chapter_html(page, section)}{items(titled(page, [e for e in shown if e.claim.section == section]))}</li>"
        for section in dict.fromkeys(entry.claim.section for entry in shown)
    )
    waiting = len(entries) - len(shown)
    rest = f"<p>{waiting} more are to come; the ledger lists them.</p>" if waiting else ""
    return f'<div class="claim-list"><ul>{groups}</ul>{rest}</div>'


# ─── crosswalk ───────────────────────────────────────────────────────────────────────────────────


def code_html(page: Page, name: str) -> str:
    """A name of the package in short, linked to the API reference where there is one."""
    parts = name.split(".")
    short = ".".join(parts[-2:])
    objects = page.app.env.get_domain("py").objects  # type: ignore[attr-defined]
    target = objects.get(name)
    breakable = re.sub(r"([._])", r"\1<wbr>", escape(short))
    text = f'<code title="{escape(name)}">{breakable}</code>'
    return f'<a href="{escape(page.to(target.docname, target.node_id))}">{text}</a>' if target else text


def crosswalk_rows(page: Page, entries: Iterable[Entry], code: dict[str, list[str]]) -> str:
    """A row a claim: what it says, where it stands, which code belongs to it."""
    return "".join(
        f'<tr id="crosswalk-{entry.claim.id}"><th scope="row">'
        f"{statement_html(entry, page.link, escape(entry.claim.title))}<br><code>{entry.claim.id}</code></th>"
        f"<td>{chapter_html(page, entry.claim.section)}</td>"
        f"<td>{'<br>'.join(code_html(page, name) for name in code.get(entry.claim.id, [])) or '–'}</td></tr>"
        for entry in entries
    )


def crosswalk_html(page: Page) -> str:
    """Every claim, under its place in the paper; then those about remarks in its text, then those of this book only."""
    root = Path(page.app.srcdir)
    code = paper.functions(root / "icalign", list(page.ledger.entries))
    at: dict[str, list[Entry]] = {}
    for entry in page.ledger:
        at.setdefault(entry.claim.place, []).append(entry)
    unplaced = at.pop("", [])
    groups = [
        (f"{place_name(place)}<br><small>{escape(place.content)}</small>", at.pop(place.place, []))
        for place in paper.read_places(root / "book")
    ]
    if at:
        raise ExtensionError(f"book/places.yml lacks {', '.join(map(repr, at))}")
    groups.append(("Remarks in the paper’s text", [entry for entry in unplaced if entry.claim.says]))
    groups.append(("Only in this book", [entry for entry in unplaced if not entry.claim.says]))
    body = "".join(
        f'<tbody><tr><th colspan="3" scope="rowgroup">{title}</th></tr>{crosswalk_rows(page, entries, code)}</tbody>'
        for title, entries in groups
        if entries
    )
    return table("crosswalk", "From the paper to the code", ("Claim", "Chapter", "In <code>icalign</code>"), body)


def place_name(place: paper.Place) -> str:
    """A place in both numberings, where they differ."""
    if place.v2 == place.camera_ready:
        return escape(place.v2[:1].upper() + place.v2[1:])
    camera_ready = f"{place.camera_ready} in the camera-ready"
    return escape(camera_ready if place.v2 == "–" else f"{place.v2[:1].upper()}{place.v2[1:]} in v2, {camera_ready}")


class Markdown(SphinxDirective):
    """A directive whose content is a markdown table; ``rows`` gives its cells, the heads first."""

    classes: Sequence[str]
    source: str

    def rows(self, book: Path) -> Iterator[Sequence[str]]:
        """The cells of each row."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The table, as the parser of the page makes it."""
        book = Path(self.env.srcdir) / "book"
        self.env.note_dependency(str(book / self.source))
        try:
            heads, *rows = self.rows(book)
        except LedgerError as error:
            raise ExtensionError(str(error)) from error
        lines = [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]
        node = nodes.container(classes=list(self.classes))
        self.state.nested_parse(StringList(lines, source=self.source), self.content_offset, node)
        return [node]


class Places(Markdown):
    """``{paper-places}``."""

    classes = ("place-table",)
    source = "places.yml"

    def rows(self, book: Path) -> Iterator[Sequence[str]]:
        """Both numberings, and what stands there."""
        yield "arXiv, version 2", "camera-ready", "what"
        for place in paper.read_places(book):
            if place.v2 != place.camera_ready:
                yield place.v2, place.camera_ready, place.content


class Notation(Markdown):
    """``{notation}``."""

    classes = ("symbol-table",)
    source = "notation.yml"

    def rows(self, book: Path) -> Iterator[Sequence[str]]:
        """A symbol in the paper and here, what it means, its name in code, its shape."""
        yield "paper", "here", "what", "in code", "shape"
        for symbol in paper.read_notation(book):
            code, shape = f"`{symbol.code}`", "number" if symbol.shape == "()" else f"`{symbol.shape}`"
            yield tex(symbol.paper), tex(symbol.book), symbol.meaning, code, shape


def tex(formula: str) -> str:
    """A formula, or a dash where there is none."""
    return f"${formula}$" if formula else "–"


# ─── this build ──────────────────────────────────────────────────────────────────────────────────


def built() -> datetime:
    """When the site was built; ``SOURCE_DATE_EPOCH`` fixes it, as everywhere in reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)


def date_html(page: Page) -> str:
    """Date, version of the package, interpreter."""
    version = metadata.version("icalign")
    return (
        f'<p class="build-date">Built on <time datetime="{built():%Y-%m-%d}">{built():%-d %B %Y}</time>, from version '
        f"{version} of <code>icalign</code>, with Python {platform.python_version()}.</p>"
    )


def run_times(root: Path) -> dict[str, dict[str, object]]:
    """What ``make test`` noted of each notebook, if it ran: its time, and a hash of the code that ran."""
    try:
        times = json.loads((root / "_build" / "notebooks.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return times if isinstance(times, dict) else {}


def time_html(root: Path, notebook: str, times: dict[str, dict[str, object]]) -> str:
    """How long the notebook took when it was last checked, if it is still the same."""
    noted = times.get(notebook, {})
    current = stamp(json.loads((root / notebook).read_text(encoding="utf-8")))
    if noted.get("sources") != current["sources"] or not isinstance(noted.get("seconds"), int | float):
        return "not measured in this build"
    return f"{noted['seconds']:.0f} s"


def notebooks_html(page: Page) -> str:
    """Each notebook of the site: its code cells, its records, and the time that checking it took."""
    root = Path(page.app.srcdir)
    times = run_times(root)
    rows = ""
    for path in sorted((root / "book").glob("*.ipynb")):
        docname = f"book/{path.stem}"
        if docname not in page.app.env.found_docs:
            continue
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = sum(cell["cell_type"] == "code" for cell in cells)
        records = sum(record.notebook == f"book/{path.name}" for entry in page.ledger for record in entry.records)
        title = f'<a href="{escape(page.to(docname))}">{escape(page.app.env.titles[docname].astext())}</a>'
        counts = "".join(
            f'<td class="number">{cell}</td>' for cell in (code, records, time_html(root, f"book/{path.name}", times))
        )
        rows += f'<tr><th scope="row">{title}</th>{counts}</tr>'
    columns = ("Notebook", "Code cells", "Records", "Run time")
    heads = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return f'<table class="table ledger-counts build"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def required(root: Path) -> Iterator[tuple[str, str]]:
    """The direct dependencies and the versions that were checked."""
    for line in (root / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([\w.-]+)==(\S+)", line):
            yield match[1], match[2]


def installed(name: str) -> str:
    """The version in use, without a local suffix such as +cpu."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "not installed"


def versions_html(page: Page) -> str:
    """Each direct dependency: the version of this build, and that of the requirements where it is another."""
    rows = ""
    for name, pinned in required(Path(page.app.srcdir)):
        version = installed(name)
        remark = "" if version == pinned else f" (checked with {escape(pinned)})"
        rows += f'<tr><th scope="row">{escape(name)}</th><td>{escape(version)}{remark}</td></tr>'
    return (
        '<table class="table ledger-counts build"><thead><tr><th scope="col">Package</th><th scope="col">Version</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the directives; ``icalign_book`` fills them in."""
    app.setup_extension("icalign_book")
    add_content(
        app,
        {
            "findings-summary": summary_html,
            "findings": findings_html,
            "findings-planned": planned_html,
            "findings-as-stated": as_stated_html,
            "findings-new": new_html,
            "crosswalk": crosswalk_html,
            "build-date": date_html,
            "build-notebooks": notebooks_html,
            "build-versions": versions_html,
        },
    )
    app.add_directive("paper-places", Places)
    app.add_directive("notation", Notation)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
