"""The API reference: docstrings as they are shown, names that lead out, and what a chapter's code uses."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from sphinx import addnodes

import icalign
from icalign import calculus, constructions, paper
from icalign.ledger import read_claims

ROOT = Path(__file__).parents[1]
CLAIMS = frozenset({"a-b", "c-d"})


@pytest.fixture(scope="module")
def api() -> Iterator[ModuleType]:
    """The Sphinx extension as a module."""
    folder = ROOT / "book" / "_ext"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("icalign_api", folder / "icalign_api.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(folder))


def documented_modules() -> list[str]:
    """The modules on the pages of the reference, in the order of the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    (index,) = [chapter for chapter in chapters if chapter["file"] == "book/api/index"]
    pages = [(ROOT / f"{page['file']}.md").read_text(encoding="utf-8") for page in index["sections"]]
    return [name for page in pages for name in re.findall(r"(?m)^\.\. automodule:: (\S+)$", page)]


def test_every_module_is_documented_once() -> None:
    modules = documented_modules()
    assert len(set(modules)) == len(modules)
    files = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "icalign").rglob("*.py")]
    public = {".".join(path.parts) for path in files if not path.name.startswith("_")}
    assert set(modules) == public | {"icalign.bounds", "icalign.calculus"}


def test_the_overview_names_every_module_on_its_page() -> None:
    overview = (ROOT / "book" / "api" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \[.*\) \| (.*) \|$", overview)
    listed = [f"icalign.{name}" for row in rows for name in row.split("`")[1::2]]
    assert listed == documented_modules()


@pytest.mark.parametrize(
    ("docstring", "shown"),
    [
        ("The bound (claim ``a-b``).", "The bound (claim :claim:`a-b`)."),
        ("Claims ``a-b`` to `c-d`; not ``a-c``.", "Claims :claim:`a-b` to :claim:`c-d`; not ``a-c``."),
        ("max |r| over the class", r"max \|r\| over the class"),
        ("as ``|r|`` and :math:`|r|` say", "as ``|r|`` and :math:`|r|` say"),
        (".. math:: |x|\n          + |y|\n\nand |z|", ".. math:: |x|\n          + |y|\n\nand \\|z\\|"),
        ("Text.\nShapes: (N) → ().\nMore of it.", "Text.\n\n:Shapes: (N) → ().\n    More of it."),
        ("Raises ValueError: a tie.\nSource: `a-b`.", ":raises ValueError: a tie.\n:Source: :claim:`a-b`."),
        ("Args:\n    x: |x| ≤ 1.", ":param x: \\|x\\| ≤ 1."),
        ("Raises:\n    OutOfClass: no.", ":raises OutOfClass: no."),
        ("The answer: yes.", "The answer: yes."),
        ("M.", r"\M."),
        ("Args:\n    responses: N.", r":param responses: \N."),
    ],
)
def test_a_docstring_is_shown(docstring: str, shown: str, api: ModuleType) -> None:
    assert "\n".join(api.restructured(docstring.splitlines(), CLAIMS)).strip() == shown


CODE = """
import icalign
from icalign import bounds
from icalign import symbols as s
from icalign.constructions import Selection
from icalign.constructions.selection import stream
from icalign.calculus import Chain
import torch
task = icalign.sample_task()
if bounds.share(bounds.crowd(s.gamma, 1, 2)):
    torch.zeros(1)
"""


def test_the_names_that_code_uses_are_where_they_are_defined(api: ModuleType) -> None:
    assert api.uses(CODE) == {
        "icalign.bounds.selection.crowd",
        "icalign.bounds.elementary.share",
        "icalign.calculus.chain.Chain",
        "icalign.constructions.selection.Selection",
        "icalign.constructions.selection.stream",
        "icalign.symbols.gamma",
        "icalign.tasks.sample_task",
    }


def test_a_value_without_an_entry_leads_to_its_module(api: ModuleType) -> None:
    known = {"icalign.symbols": ("page", "anchor")}
    assert api.documented("icalign.symbols.gamma", known) == "icalign.symbols"
    assert api.documented("icalign.bounds.elementary.share", known) is None


def test_a_name_that_a_package_passes_on_leads_home(api: ModuleType) -> None:
    assert api.home("icalign.calculus.pull") == "icalign.calculus.sums.pull"
    for name in ("pull", "sympy.Sum", "icalign.nowhere.pull", "icalign.tasks.AlignmentTask"):
        assert api.home(name) == name


def test_the_code_of_a_notebook_is_read_without_magics(api: ModuleType) -> None:
    code = api.sources(ROOT / "tests" / "canaries" / "healthy.ipynb")
    assert code and "%" not in {line[:1] for line in code.splitlines()}


@pytest.mark.parametrize("path", sorted((ROOT / "book").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_chapter_uses_the_package(path: Path, api: ModuleType) -> None:
    assert api.uses(api.sources(path))


def reference(target: str, module: str | None) -> Any:
    return addnodes.pending_xref("", reftarget=target, **{"py:module": module})


@pytest.mark.parametrize(
    ("target", "module", "out"),
    [
        ("Tensor", "icalign.tasks", True),
        ("sympy.core.expr.Expr", "icalign.bounds", True),
        ("torch.dtype", None, True),
        ("2ε₀", "icalign.bounds", True),
        ("AlignmentTask", "icalign.preferences", False),
        ("icalign.tasks.Gone", "icalign.preferences", False),
        ("Gone", "icalign.tasks", False),
    ],
)
def test_only_names_of_other_packages_lead_out(target: str, module: str | None, out: bool, api: ModuleType) -> None:
    assert api.leads_out(reference(target, module)) is out


@pytest.mark.parametrize("package", [icalign, constructions, calculus])
def test_the_public_names_have_docstrings(package: ModuleType) -> None:
    places = dict(paper.docstrings(ROOT / "icalign"))
    values = [getattr(package, name) for name in package.__all__]
    assert {f"{value.__module__}.{value.__qualname__}" for value in values} <= places.keys()


def test_every_claim_that_a_docstring_names_is_linked(api: ModuleType) -> None:
    ids = frozenset(claim.id for claim in read_claims(ROOT / "book" / "claims.yml"))
    texts = dict(paper.docstrings(ROOT / "icalign"))
    for mention in paper.mentions(ROOT / "icalign"):
        restructured = "\n".join(api.restructured(texts[mention.name].splitlines(), ids))
        linked = set(re.findall(r":claim:`([^`]+)`", restructured))
        assert mention.named <= linked, mention.name
