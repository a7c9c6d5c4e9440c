"""Chapters that open elsewhere: the set-up cell that each begins with, and what Binder installs.

Both follow from files that exist anyway: the cell from the repository's address in ``_config.yml`` (``make run`` puts
it into a notebook), ``.binder/environment.yml`` from the pins (``make lock`` writes it).
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import lock

ROOT = Path(__file__).parents[1]
ENVIRONMENT = Path(".binder/environment.yml")

CELL_ID, CELL_TAGS = "set-up", ["remove-cell"]  # in the notebook, but not on the page
FIRST_LINE = "# Everything below runs on the package icalign: is it here?"
INSTALL = f"""{FIRST_LINE}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("icalign") is None:
    book = "ADDRESS"
    wanted = f"icalign[chapters] @ git+{{book}}@BRANCH"
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, wanted], check=True)"""
EXPLAIN = f"""{FIRST_LINE}
import importlib.util

if importlib.util.find_spec("icalign") is None:
    raise ModuleNotFoundError(
        "icalign is missing. Run `make book` in a copy of the whole book, "
        "then open this notebook with the Python of its folder .venv."
    )"""


def repository(root: Path = ROOT) -> tuple[str, str]:
    """The address of the repository ("" if none is known) and its branch, as ``_config.yml`` has them.

    Raises:
        ValueError: an address that is none, or one that a cell cannot hold.
    """
    found = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    address, branch = found["url"] or "", found["branch"]
    if address and not re.fullmatch(r"https://[\w.-]+(/[\w.-]+){2,}", address):
        raise ValueError(f"_config.yml, repository: url: {address!r}, expected https://host/owner/name")
    if not re.fullmatch(r"[\w./-]+", branch):
        raise ValueError(f"_config.yml, repository: branch: {branch!r}, expected the name of a branch")
    return address, branch


def set_up(address: str, branch: str) -> str:
    """The text of the cell: it installs icalign where it is missing or, without an address, says what to do."""
    return INSTALL.replace("ADDRESS", address).replace("BRANCH", branch) if address else EXPLAIN


def is_set_up(source: str) -> bool:
    """Whether a code cell's text is a set-up cell, of whatever address."""
    return source.startswith(FIRST_LINE)


def place(notebook: Any) -> None:
    """Put the cell before all other code of a notebook, in place of one that is there."""
    cells = notebook["cells"]
    cells[:] = [cell for cell in cells if cell["cell_type"] != "code" or not is_set_up("".join(cell["source"]))]
    first = next((number for number, cell in enumerate(cells) if cell["cell_type"] == "code"), None)
    if first is not None:
        cell = {"cell_type": "code", "id": CELL_ID, "metadata": {"tags": CELL_TAGS}, "execution_count": None}
        cells.insert(first, cell | {"outputs": [], "source": set_up(*repository())})


def environment(root: Path = ROOT) -> str:
    """What Binder installs: what the chapters need, in the versions of ``requirements.txt``.

    torch comes from conda-forge, which has it without CUDA; ``postBuild`` then installs icalign itself.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["chapters"]]
    names = {canonicalize_name(Requirement(text).name) for text in needed}
    pins: dict[str, Requirement] = {canonicalize_name(pin.name): pin for pin in lock.read(root / "requirements.txt")}
    (torch,) = pins["torch"].specifier
    lines = [
        "# What Binder installs; `make lock` writes this from requirements.txt.",
        "channels: [conda-forge]",
        "dependencies:",
        f"  - python={lock.HERE['python_version']}",
        f"  - pytorch-cpu={torch.version}",
        "  - pip",
        "  - pip:",
        *[f"      - {pins[name]}" for name in sorted(names - {"torch"})],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / ENVIRONMENT).write_text(environment(), encoding="utf-8")
