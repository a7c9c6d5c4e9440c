"""What the page on the build shows: times that belong to the notebook as it is, a date that can be fixed, versions."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from icalign.ledger import stamp
from tools import nbval

EXTENSIONS = Path(__file__).parents[1] / "book" / "_ext"
NOTEBOOK: dict[str, Any] = {"cells": [{"cell_type": "code", "source": "check()", "outputs": [], "execution_count": 1}]}
OTHER = {"cells": [NOTEBOOK["cells"][0] | {"source": "check(2)"}]}


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    """The Sphinx extension as a module."""
    sys.path.insert(0, str(EXTENSIONS))
    spec = importlib.util.spec_from_file_location("icalign_reference", EXTENSIONS / "icalign_reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(EXTENSIONS))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one notebook, as the working directory."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "02-chapter.ipynb").write_text(json.dumps(NOTEBOOK))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return tmp_path


def run(*cells: tuple[str, float, bool]) -> None:
    """A run of the stopwatch: notebook, seconds and whether it failed, a report a cell."""
    watch = nbval.Stopwatch()
    for notebook, seconds, failed in cells:
        report = SimpleNamespace(nodeid=f"{notebook}::Cell 0", duration=seconds, failed=failed)
        watch.pytest_runtest_logreport(report)  # type: ignore[arg-type]
    watch.pytest_sessionfinish()


CHAPTER = "book/02-chapter.ipynb"


def test_a_run_adds_up_what_the_cells_took(clone: Path) -> None:
    run((CHAPTER, 1.5, False), (CHAPTER, 2.04, False))
    assert nbval.read_times() == {CHAPTER: {"seconds": 3.5} | stamp(NOTEBOOK)}


def test_a_notebook_that_failed_or_is_not_of_the_book_is_not_noted(clone: Path) -> None:
    run((CHAPTER, 1.0, False), (CHAPTER, 1.0, True), ("tests/canaries/healthy.ipynb", 1.0, False))
    assert not nbval.TIMES.exists()


def test_times_of_other_notebooks_stay(clone: Path) -> None:
    nbval.TIMES.parent.mkdir()
    nbval.TIMES.write_text(json.dumps({"book/01-other.ipynb": {"seconds": 9.0}}))
    run((CHAPTER, 1.0, False))
    assert nbval.read_times().keys() == {CHAPTER, "book/01-other.ipynb"}
    nbval.TIMES.write_text("{")
    assert nbval.read_times() == {}


@pytest.mark.parametrize(
    ("noted", "shown"),
    [
        ({"seconds": 12.4} | stamp(NOTEBOOK), "12 s"),
        ({"seconds": 12.4} | stamp(OTHER), "not measured in this build"),
        ({"seconds": "long"} | stamp(NOTEBOOK), "not measured in this build"),
        ({}, "not measured in this build"),
    ],
)
def test_a_time_belongs_to_the_code_that_took_it(
    noted: dict[str, Any], shown: str, clone: Path, reference: ModuleType
) -> None:
    (clone / "_build").mkdir()
    (clone / "_build" / "notebooks.json").write_text(json.dumps({CHAPTER: noted}))
    assert reference.time_html(clone, CHAPTER, reference.run_times(clone)) == shown


def test_without_a_run_nothing_is_measured(clone: Path, reference: ModuleType) -> None:
    assert reference.run_times(clone) == {}


def test_the_date_can_be_fixed(reference: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert reference.built() == datetime(1970, 1, 2, tzinfo=UTC)
    page = SimpleNamespace()
    assert '<time datetime="1970-01-02">2 January 1970</time>' in reference.date_html(page)


def test_every_requirement_is_listed(reference: ModuleType, root: Path) -> None:
    names = [name for name, _ in reference.required(root)]
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert len(names) == sum("==" in line for line in lines)
    assert reference.installed("no-such-package") == "not installed"
