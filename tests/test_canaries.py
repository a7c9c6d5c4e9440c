"""Notebooks with one fault each, run by the very command of ``make test``: a check that cannot fail checks nothing."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.check import STAGES
from tools.hygiene import faults

CANARIES = sorted((Path(__file__).parent / "canaries").glob("*.ipynb"))


@dataclass
class Run:
    """How the command ended, and for each notebook the report on each of its cells ("" when it passed)."""

    exit_code: int
    cells: dict[str, list[str]]


@pytest.fixture(scope="module")
def run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run over all canaries and their healthy twin."""
    report = tmp_path_factory.mktemp("canaries") / "report.xml"
    (module,) = STAGES["notebooks"]
    command = [sys.executable, "-m", module, *map(str, CANARIES), f"--junitxml={report}"]
    ended = subprocess.run(command, cwd=root, env=_own_environment(), capture_output=True, text=True)
    assert report.exists(), ended.stdout + ended.stderr
    cells: dict[str, list[str]] = {path.stem: [] for path in CANARIES}
    for case in ElementTree.parse(report).iter("testcase"):
        (stem,) = [stem for stem in cells if f"{stem}.ipynb" in f"{case.get('classname')} {case.get('name')}"]
        failure = case.find("failure")
        cells[stem].append("" if failure is None else re.sub(r"#x1B\[[\d;]*m", "", failure.text or ""))
    return Run(ended.returncode, cells)


def _own_environment() -> dict[str, str]:
    """The environment of a shell: without what this test's own pytest has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def test_the_healthy_twin_passes(run: Run) -> None:
    assert run.cells["healthy"] == [""] * 6


def test_the_command_fails(run: Run) -> None:
    assert run.exit_code == pytest.ExitCode.TESTS_FAILED


def test_an_error_is_caught(run: Run) -> None:
    imports, cell = run.cells["error"]
    assert not imports
    assert "\nAssertionError" in cell


def test_a_warning_is_caught(run: Run) -> None:
    imports, cell = run.cells["warning"]
    assert not imports
    assert "\nUserWarning: an approximation was used" in cell


def test_changed_outputs_are_caught(run: Run) -> None:
    imports, text, formula, record = run.cells["changed_output"]
    assert not imports
    assert "the sum is 5" in text
    assert "text/latex" in formula
    assert "application/vnd.icalign.evidence+json" in record


def test_a_control_that_passes_or_cannot_tell_is_caught(run: Run) -> None:
    imports, accepts, undecided = run.cells["passing_control"]
    assert not imports
    assert "\nAssertionError: " in accepts
    assert "\nAssertionError: " in undecided


def test_an_unexecuted_notebook_is_caught_by_the_hygiene_where_nbval_sees_nothing(run: Run) -> None:
    assert run.cells["unexecuted"] == ["", ""]
    (path,) = [path for path in CANARIES if path.stem == "unexecuted"]
    assert [fault for fault in faults(path) if "not executed" in fault]


def test_the_hygiene_finds_nothing_in_the_healthy_twin() -> None:
    (path,) = [path for path in CANARIES if path.stem == "healthy"]
    assert faults(path) == []
