"""A book of one chapter, the template, in a folder of its own: it builds in seconds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "tools" / "template"
CHAPTER = "book/16-first-claim"

TOC = f"""format: jb-book
root: book/ledger
chapters:
  - file: {CHAPTER}
"""


def small_book(folder: Path, address: str = "") -> Path:
    """The sources: the template and its registry, the ledger, and the book's configuration with this address."""
    pages = shutil.ignore_patterns("*.ipynb", "*.md", "api", "claims.yml")
    shutil.copytree(ROOT / "book", folder / "book", ignore=pages)
    shutil.copytree(ROOT / "icalign", folder / "icalign", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "book" / "ledger.md", folder / "book")
    shutil.copy(TEMPLATE / "claims.yml", folder / "book")
    shutil.copy(TEMPLATE / "chapter.ipynb", folder / f"{CHAPTER}.ipynb")
    (folder / "_toc.yml").write_text(TOC, encoding="utf-8")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config, found = re.subn(r'(?m)^repository: \{url: "[^"]*"', f'repository: {{url: "{address}"', config)
    assert found == 1
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    return folder


def build(folder: Path) -> Path:
    """The site, built as ``make book`` does it, every warning an error."""
    command = Path(sys.executable).with_name("jupyter-book")
    options = ["-q", "--all", "-n", "-W", "--keep-going"]
    run = subprocess.run([command, "build", *options, "."], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "_build" / "html"
