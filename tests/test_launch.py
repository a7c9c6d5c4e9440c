"""Chapters that open elsewhere: the set-up cell does what it says, and what Binder installs follows from the pins."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import launch, lock

ROOT = Path(__file__).parents[1]
NOTEBOOKS = [*sorted((ROOT / "book").glob("*.ipynb")), ROOT / "tools" / "template" / "chapter.ipynb"]
ADDRESS = "https://github.com/example/icalign"
LONG = "https://github.com/a-quite-long-name-of-an-owner/icalign-the-book"
TEXTS = {"no address": launch.set_up("", "main"), "an address": launch.set_up(ADDRESS, "main")}


def code_of(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_chapter_begins_with_the_same_cell_which_is_not_shown(path: Path) -> None:
    first, *others = code_of(path)
    assert "".join(first["source"]) == launch.set_up(*launch.repository())
    assert first["metadata"] == {"tags": ["remove-cell"]}
    assert first["outputs"] == []
    assert not [cell for cell in others if launch.is_set_up("".join(cell["source"]))]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_cell_does_nothing_where_icalign_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it runs something"))
    names: dict[str, Any] = {}
    exec(text, names)
    assert names.keys() - {"__builtins__"} <= {"importlib", "subprocess", "sys"}


def test_without_an_address_the_cell_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="`make book` in a copy of the whole book"):
        exec(TEXTS["no address"], {})


def test_with_an_address_the_cell_installs_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Any, ...]] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append((*command, check)))
    exec(TEXTS["an address"], {})
    source = "icalign[chapters] @ git+https://github.com/example/icalign@main"
    assert ran == [(sys.executable, "-m", "pip", "install", "--quiet", source, True)]
    assert Requirement(source).extras == {"chapters"}


@pytest.mark.parametrize("text", [*TEXTS.values(), launch.set_up(LONG, "a-branch")])
def test_the_cell_is_in_the_style_of_the_book(text: str) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--line-length=72", "-"]
    assert subprocess.run(command, input=f"{text}\n", capture_output=True, text=True).returncode == 0
    assert max(map(len, text.splitlines())) <= 88


def notebook(*sources: str) -> dict[str, Any]:
    """Text, then code cells."""
    cells = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": s} for n, s in enumerate(sources)]
    return {"cells": [{"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# Title"}, *cells]}


def sources(found: dict[str, Any]) -> list[str]:
    return [cell["source"] for cell in found["cells"]]


@pytest.mark.parametrize("before", [[], [TEXTS["no address"]], [TEXTS["an address"]], [TEXTS["an address"]] * 2])
def test_the_cell_is_put_before_all_code_once(before: list[str]) -> None:
    found = notebook(*before, "import math", "math.pi")
    launch.place(found)
    assert sources(found) == ["# Title", launch.set_up(*launch.repository()), "import math", "math.pi"]


def test_a_cell_out_of_place_is_moved_and_text_stays_text() -> None:
    found = notebook("import math", TEXTS["no address"])
    launch.place(found)
    assert sources(found) == ["# Title", launch.set_up(*launch.repository()), "import math"]
    text = notebook()
    launch.place(text)
    assert sources(text) == ["# Title"]


def configured(folder: Path, **repository: str) -> Path:
    (folder / "_config.yml").write_text(yaml.safe_dump({"repository": repository}), encoding="utf-8")
    return folder


def test_an_address_is_read_from_the_configuration(tmp_path: Path) -> None:
    assert launch.repository(configured(tmp_path, url="", branch="main")) == ("", "main")
    assert launch.repository(configured(tmp_path, url=ADDRESS, branch="v1/x")) == (ADDRESS, "v1/x")


@pytest.mark.parametrize(
    "url", ["icalign", "http://github.com/example/icalign", "https://github.com/example", f"{ADDRESS}/", f'{ADDRESS}"']
)
def test_what_is_no_address_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="repository: url"):
        launch.repository(configured(tmp_path, url=url, branch="main"))


def test_what_is_no_branch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="repository: branch"):
        launch.repository(configured(tmp_path, url=ADDRESS, branch='"'))


# ------------------------------------------------------------------------------------------------- what is installed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRA = [Requirement(text) for text in PROJECT["optional-dependencies"]["chapters"]]
PINS = {canonicalize_name(pin.name): str(pin.specifier) for pin in lock.read(ROOT / "requirements.txt")}


def test_the_environment_of_binder_is_the_one_that_the_pins_give() -> None:
    written = (ROOT / launch.ENVIRONMENT).read_text(encoding="utf-8")
    assert written == launch.environment(), "make lock"
    assert "://" not in written
    found = yaml.safe_load(written)
    *conda, by_pip = found["dependencies"]
    assert conda == [f"python={lock.HERE['python_version']}", f"pytorch-cpu={PINS['torch'][2:]}", "pip"]
    needed = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]} | {"myst-nb"}
    assert {name: PINS[name] for name in needed - {"torch"}} == {
        canonicalize_name(pin.name): str(pin.specifier) for pin in map(Requirement, by_pip["pip"])
    }


def test_binder_installs_the_package_last() -> None:
    script = ROOT / ".binder" / "postBuild"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", script]).returncode == 0
    assert "pip install" in script.read_text(encoding="utf-8")


def test_a_chapter_elsewhere_gets_the_versions_that_decided_its_proofs() -> None:
    assert {canonicalize_name(pin.name): str(pin.specifier) for pin in EXTRA} == {
        name: PINS[name] for name in ("mpmath", "myst-nb", "sympy", "z3-solver")
    }


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_a_chapter_imports_comes_with_the_package(path: Path) -> None:
    given = {Requirement(text).name for text in PROJECT["dependencies"]} | {pin.name for pin in EXTRA}
    with_a_kernel = {"IPython"}
    known = {name.replace("-", "_") for name in given} | {"icalign"} | with_a_kernel | sys.stdlib_module_names
    trees = [ast.parse("".join(cell["source"])) for cell in code_of(path)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= known
