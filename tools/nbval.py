"""The one command that re-executes notebooks and compares outputs: ``make test`` and the canaries both use it."""

import argparse
import os
import sys
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
OPTIONS = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "-q", f"-n{WORKERS}", "--dist=loadfile")


def main() -> int:
    """Compare stored outputs with those of fresh kernels, one notebook a worker; further options go to pytest."""
    parser = argparse.ArgumentParser(prog="python -m tools.nbval", description=__doc__)
    parser.add_argument("notebooks", nargs="*", help="default: all of book/")
    given, options = parser.parse_known_args()
    notebooks = given.notebooks or [str(path) for path in sorted(Path("book").glob("*.ipynb"))]
    if not notebooks:
        sys.exit("book/ has no notebooks")
    os.environ.update(ENVIRONMENT)
    return pytest.main([*OPTIONS, *options, *notebooks])


if __name__ == "__main__":
    sys.exit(main())
