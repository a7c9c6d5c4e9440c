"""The list of references holds what the pages cite, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

BOOK = Path(__file__).parents[1] / "book"


def prose() -> str:
    """All text of the book: its pages, and the text cells of its notebooks."""
    pages = [path.read_text(encoding="utf-8") for path in BOOK.rglob("*.md")]
    for path in BOOK.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        pages += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n".join(pages)


def test_every_reference_is_cited_and_every_citation_has_one() -> None:
    entries = re.findall(r"(?m)^@\w+\{([^,]+),$", (BOOK / "references.bib").read_text(encoding="utf-8"))
    cited = {key for keys in re.findall(r"\{cite[:a-z]*\}`([^`]+)`", prose()) for key in keys.split(",")}
    assert len(set(entries)) == len(entries)
    assert set(entries) == cited
