"""What a link leads to, for a panel beside the link: statements, numbered equations and terms of the glossary.

The extension cuts each of them out of the page that shows it and writes all to ``_static/previews.js``, as a script, so
that the panel works without a server too. ``preview.js`` loads that file when a reader first points at such a link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

FILE = Path("_static") / "previews.js"
HEAD = "window.icalignPreviews = "

PERMALINK = re.compile(r'<a class="headerlink".*?</a>')
LINK = re.compile(r"</?a\b[^>]*>")  # a panel is no place for links, and an id is there once
ID = re.compile(r' id="[^"]*"')


def anchors(env: BuildEnvironment, docname: str) -> Iterator[str]:
    """The ids on a page that have a panel."""
    for label, about in getattr(env, "proof_list", {}).items():
        if about["docname"] == docname:
            yield label
    for label, (page, _) in env.get_domain("math").equations.items():  # type: ignore[attr-defined]
        if page == docname:
            yield nodes.make_id(f"equation-{label}")
    for (kind, _), (page, anchor) in env.get_domain("std").objects.items():  # type: ignore[attr-defined]
        if kind == "term" and page == docname:
            yield anchor


def element(body: str, anchor: str) -> str | None:
    """The element that has an id, from its first tag to its last; to a term of the glossary belongs what it means."""
    start = re.search(rf'<(div|dt)\b[^>]* id="{re.escape(anchor)}"', body)
    if not start:
        return None
    last = {"div": "div", "dt": "dd"}[start[1]]
    depth = 0
    for tag in re.compile(rf"<(/?){last}\b").finditer(body, start.start()):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return body[start.start() : tag.end()] + ">"
    return None


def panel(html: str) -> str:
    """An element as a panel shows it."""
    html = ID.sub("", LINK.sub("", PERMALINK.sub("", html)))
    return f"<dl>{html}</dl>" if html.startswith("<dt") else html


class Previews:
    """The panels of the pages that a build has written."""

    def __init__(self) -> None:
        self.pages: dict[str, dict[str, str]] = {}
        """Address of a page → address of a place on it → what a panel shows."""

    def cut(self, app: Sphinx, docname: str, template: str, context: dict[str, object], doctree: object) -> None:
        """Keeps what the page that is being written has to show."""
        if not doctree or app.builder.format != "html":
            return
        body, page = str(context["body"]), app.builder.get_target_uri(docname)
        found = {anchor: element(body, anchor) for anchor in anchors(app.env, docname)}
        self.pages[page] = {f"{page}#{anchor}": panel(html) for anchor, html in found.items() if html}

    def write(self, app: Sphinx, exception: Exception | None) -> None:
        """Writes the file; of pages that this build has not written it keeps what is there."""
        if exception or app.builder.format != "html":
            return
        path = Path(app.outdir) / FILE
        kept = json.loads(path.read_text(encoding="utf-8").removeprefix(HEAD)) if path.is_file() else {}
        merged: dict[str, str] = {}
        for page in map(app.builder.get_target_uri, sorted(app.env.found_docs)):
            before = {address: html for address, html in kept.items() if address.startswith(f"{page}#")}
            merged |= self.pages.get(page, before)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + json.dumps(merged, ensure_ascii=False, indent=0), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the handlers."""
    previews = Previews()
    app.connect("html-page-context", previews.cut, priority=950)  # after all that changes a page's body
    app.connect("build-finished", previews.write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
