"""The API reference: docstrings as pages, tied to the claims they serve and to the chapters whose code uses them.

- docstrings become reStructuredText: sections in Google's style, ``Shapes:``, ``Source:`` and ``Raises …:`` as fields,
  ids of claims as links to their statements, |x| as an absolute value
- ``:claim:`selection-bound` `` links to a statement
- a name in a signature that leads out of the package is shown plain; one that should lead into it and does not is a
  warning
- every chapter ends with what its code cells take from the package, and every entry says which chapters use it; both
  are computed from the cells
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from inspect import isclass, isfunction, ismodule
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from icalign_book import Page

PACKAGE = "icalign"

# ─── docstrings ──────────────────────────────────────────────────────────────────────────────────

FIELD = re.compile(r"(Shapes|Source|Raises \w+)(?::|, with) ?(.*)")
CODE = re.compile(r"(:[\w:]+:`[^`]*`|``[^`]+``|`[^`]+`)")
MATH = re.compile(r"\s*\.\. math::")
LETTER = re.compile(r"(^\s*|:\s+)(\w)\.(?=\s|$)")  # "N." alone would begin a list


def fields(lines: Sequence[str]) -> Iterator[str]:
    """Lines that begin with ``Shapes:``, ``Source:`` or ``Raises ValueError:`` as fields, up to the end of each."""
    inside = False
    for line in lines:
        match = FIELD.match(line)
        if match:
            if not inside:
                yield ""
            name = match[1].replace("Raises", "raises")
            yield f":{name}: {match[2]}"
        else:
            inside = inside and bool(line.strip()) and not line.startswith(" ")
            yield f"    {line}" if inside else line
        inside = inside or bool(match)


def inline(lines: Sequence[str], claims: frozenset[str]) -> Iterator[str]:
    """Claims as links, and bars that would mark a substitution as plain bars; formulas stay as they are."""
    formula: int | None = None  # the indentation of the displayed formula that is being read
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if formula is not None and line.strip() and indent <= formula:
            formula = None
        if MATH.match(line):
            formula = indent
        if formula is not None:
            yield line
            continue
        pieces = CODE.split(LETTER.sub(r"\1\\\2.", line))
        for place, piece in enumerate(pieces):
            if place % 2 == 0:
                pieces[place] = piece.replace("|", r"\|").replace("*‖", r"\*‖")
            elif not piece.startswith(":") and (name := piece.strip("`")) in claims:
                pieces[place] = f":claim:`{name}`"
        yield "".join(pieces)


def restructured(docstring: Sequence[str], claims: frozenset[str]) -> list[str]:
    """A docstring of the package as reStructuredText."""
    lines = list(inline(list(fields(docstring)), claims))
    # "method", whatever it is: napoleon reads the docstring of an attribute as "type: description"
    return list(GoogleDocstring(lines, Config(napoleon_use_rtype=False, napoleon_use_ivar=True), what="method").lines())


class Claim(SphinxRole):
    """``:claim:`selection-bound` ``: a claim's id, which becomes a link once all pages are read."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The id, marked."""
        return [nodes.literal(self.rawtext, self.text, classes=["claim-id"])], []


def link_claims(page: Page, doctree: nodes.document) -> None:
    """Links every marked id to its statement, or to its row in the ledger before a chapter states it."""
    for node in list(doctree.findall(nodes.literal)):
        if "claim-id" in node["classes"]:
            name = node.astext()
            target = page.link(name) or page.to(page.app.config.icalign_ledger_page, f"ledger-{name}")
            node.replace_self(nodes.reference("", "", node.deepcopy(), refuri=target, internal=True))


# ─── references ──────────────────────────────────────────────────────────────────────────────────


def entries(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Full name → page and anchor of everything the reference documents."""
    objects = env.get_domain("py").objects  # type: ignore[attr-defined]
    return {name: (entry.docname, entry.node_id) for name, entry in objects.items() if not entry.aliased}


def leads_out(node: addnodes.pending_xref) -> bool:
    """Whether a name in a signature belongs to another package: by its full name, or in its module's namespace."""
    target = str(node["reftarget"])
    first = target.partition(".")[0]
    if first == PACKAGE:
        return False
    if first != target:
        return True
    module = import_module(str(node.get("py:module") or PACKAGE))
    home = getattr(getattr(module, target, None), "__module__", "")
    return not str(home or "").startswith(PACKAGE) and (hasattr(module, target) or not target.isidentifier())


def home(target: str) -> str:
    """The name under which something is defined that a package passes on, ``icalign.calculus.pull``; or the target."""
    module, _, name = target.rpartition(".")
    if module.partition(".")[0] != PACKAGE or not find_spec(module):
        return target
    package = import_module(module)
    return full_name(getattr(package, name, None), package, name) or target


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement
) -> nodes.Node | None:
    """A short name by the one entry that ends with it; a name of another package as plain text."""
    if node.get("refdomain") != "py":
        return None
    target = home(str(node["reftarget"]))
    found = {place for name, place in entries(env).items() if target in (name, name.rpartition(".")[2])}
    if len(found) == 1:
        ((docname, anchor),) = found
        return make_refnode(app.builder, str(node["refdoc"]), docname, anchor, [text])
    return text if node["reftype"] in ("class", "obj", "exc") and leads_out(node) else None


# ─── chapters ────────────────────────────────────────────────────────────────────────────────────


def sources(notebook: Path) -> str:
    """The code of a notebook, without the lines that only IPython reads."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("%", "!")))


def full_name(value: object, found_in: ModuleType, name: str) -> str | None:
    """The name under which the reference has a value: of a module, of a class or function where it is defined, of
    anything else in the module that has it.
    """
    if ismodule(value):
        full = value.__name__
    elif isclass(value) or isfunction(value):
        full = f"{value.__module__}.{value.__qualname__}"
    else:
        full = f"{found_in.__name__}.{name}"
    return full if full.partition(".")[0] == PACKAGE else None


def uses(code: str) -> set[str]:
    """Full names of what code imports from the package, or reads as an attribute of its modules."""
    tree = ast.parse(code)
    modules: dict[str, ModuleType] = {}
    found: set[str] = set()

    def note(value: object, found_in: ModuleType, name: str, alias: str) -> None:
        if ismodule(value) and value.__name__.partition(".")[0] == PACKAGE:
            modules[alias] = value
        elif full := full_name(value, found_in, name):
            found.add(full)

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            module = import_module(str(node.module))
            for alias in node.names:
                value = getattr(module, alias.name, None) or import_module(f"{module.__name__}.{alias.name}")
                note(value, module, alias.name, alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == PACKAGE:
                    module = import_module(alias.name if alias.asname else PACKAGE)
                    modules[alias.asname or PACKAGE] = module
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            module = modules[node.value.id]
            if full := full_name(getattr(module, node.attr), module, node.attr):
                found.add(full)
    return found


def documented(name: str, known: dict[str, tuple[str, str]]) -> str | None:
    """The entry for a name: its own, or that of the module or class that has it."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


class Reference:
    """What the handlers share: which chapter uses which entry."""

    def __init__(self) -> None:
        self.used: dict[str, list[str]] = {}
        """Page of a chapter → full names, by page of the reference and in its order."""

    def read(self, app: Sphinx, env: BuildEnvironment) -> list[str]:
        """Reads the chapters' code, once all pages are read; names the pages that show something of it."""
        known = entries(env)
        order = {name: place for place, name in enumerate(known)}
        for docname in sorted(env.found_docs):
            notebook = Path(app.srcdir) / f"{docname}.ipynb"
            if notebook.is_file():
                found = {documented(name, known) for name in uses(sources(notebook))}
                self.used[docname] = sorted((name for name in found if name), key=order.__getitem__)
        return sorted({*self.used, *(docname for docname, _ in known.values())})

    def show(self, app: Sphinx, doctree: nodes.document, docname: str) -> None:
        """Links claims, ends a chapter with what it uses, and adds to an entry which chapters use it."""
        page = Page(app, docname, app.extensions["icalign_book"].metadata["book"].ledger)
        link_claims(page, doctree)
        if names := self.used.get(docname):
            doctree[0].append(nodes.raw("", used_html(page, names, entries(app.env)), format="html"))
        for entry in doctree.findall(addnodes.desc):
            if entry[-1].children and entry[-1][0].astext() == "Bases: object":
                entry[-1].pop(0)
            name = f"{entry[0].get('module')}.{entry[0].get('fullname')}"
            if chapters := [chapter for chapter, names in self.used.items() if name in names]:
                entry[-1].append(nodes.raw("", chapters_html(page, chapters), format="html"))


def used_html(page: Page, names: Sequence[str], known: dict[str, tuple[str, str]]) -> str:
    """What a chapter's code takes from the package, a line for each page of the reference."""
    by_page: dict[str, list[str]] = {}
    for name in names:
        by_page.setdefault(known[name][0], []).append(name)
    rows = ""
    for docname, group in by_page.items():
        title = escape(page.app.env.titles[docname].astext())
        links = ", ".join(
            f'<a href="{escape(page.to(*known[name]))}" title="{name}"><code>{name.rpartition(".")[2]}</code></a>'
            for name in group
        )
        rows += f"<dt>{title}</dt><dd>{links}</dd>"
    return (
        '<section class="api-used" id="used-here"><h2>In the code of this page</h2>'
        f"<p>What the cells above take from <code>icalign</code>, with its documentation.</p><dl>{rows}</dl></section>"
    )


def number(env: BuildEnvironment, docname: str) -> str:
    """A chapter's number in the table of contents, or its title if it has none."""
    numbers = env.toc_secnumbers.get(docname, {}).get("", ())
    return ".".join(map(str, numbers)) or env.titles[docname].astext()


def chapters_html(page: Page, chapters: Sequence[str]) -> str:
    """The chapters whose code uses an entry, by number, with the title to point at."""
    env = page.app.env
    links = ", ".join(
        f'<a href="{escape(page.to(name))}" title="{escape(env.titles[name].astext())}">{escape(number(env, name))}</a>'
        for name in chapters
    )
    return f'<p class="api-chapters">Used in chapter{"s" * (len(chapters) > 1)} {links}.</p>'


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the role and the handlers."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("icalign_book")
    reference = Reference()

    def process(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
        ledger = app.extensions["icalign_book"].metadata["book"].ledger
        lines[:] = restructured(lines, frozenset(ledger.entries))

    app.add_role("claim", Claim())
    app.connect("autodoc-process-docstring", process)
    app.connect("missing-reference", resolve)
    app.connect("env-updated", reference.read)
    app.connect("doctree-resolved", reference.show, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
