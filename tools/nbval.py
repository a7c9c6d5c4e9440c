"""The one command that re-executes notebooks and compares outputs: ``make test`` and the canaries both use it.

It notes how long each notebook of the book took in ``_build/notebooks.json``, which the page on the build shows.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

# pytest's -W error does not reach a kernel, the variable does. One thread: sums must not depend on the cores.
# A backend inherited from the shell, such as Agg, would leave the figures out.
ENVIRONMENT = {
    "PYTHONWARNINGS": "error",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}
WORKERS = min(os.cpu_count() or 1, 4)
TIMES = Path("_build/notebooks.json")
OPTIONS = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "-q", f"-n{WORKERS}", "--dist=loadfile")


class Stopwatch:
    """A pytest plugin: adds up what the cells of each notebook took, the start of its kernel included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for each phase of each cell; with several workers, where they are gathered."""
        notebook = report.nodeid.partition("::")[0]
        self.seconds[notebook] += report.duration
        if report.failed:
            self.failed.add(notebook)

    def pytest_sessionfinish(self) -> None:
        """Writes the times of the notebooks of the book that passed; those of other notebooks stay as they were."""
        passed = [name for name in self.seconds if Path(name).parent == Path("book") and name not in self.failed]
        if "PYTEST_XDIST_WORKER" not in os.environ and passed:
            times = read_times() | {name: self._entry(name) for name in passed}
            TIMES.parent.mkdir(exist_ok=True)
            TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def _entry(self, name: str) -> dict[str, float | str]:
        """Seconds, and the hash of the code that took them."""
        from icalign.ledger import stamp  # not earlier: jaxtyping has to come first

        return {"seconds": round(self.seconds[name], 1)} | stamp(json.loads(Path(name).read_text(encoding="utf-8")))


def read_times() -> dict[str, dict[str, float | str]]:
    """What earlier runs noted; nothing if the file is missing or broken."""
    try:
        times = json.loads(TIMES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return times if isinstance(times, dict) else {}


def main() -> int:
    """Compare stored outputs with those of fresh kernels, one notebook a worker; further options go to pytest."""
    parser = argparse.ArgumentParser(prog="python -m tools.nbval", description=__doc__)
    parser.add_argument("notebooks", nargs="*", help="default: all of book/, and the template of a chapter")
    given, options = parser.parse_known_args()
    notebooks = given.notebooks or [*map(str, sorted(Path("book").glob("*.ipynb"))), "tools/template/chapter.ipynb"]
    os.environ.update(ENVIRONMENT)
    return pytest.main([*OPTIONS, *options, *notebooks], plugins=[Stopwatch()])


if __name__ == "__main__":
    sys.exit(main())
