"""What the book's pages keep to beyond being right. Every rule is first seen to refuse a page that breaks it."""

import ast
import base64
import copy
import json
import os
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from icalign.ledger import MIME, stamp
from tools import hygiene, launch, notebooks, prose

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "book").rglob("*") if path.suffix in {".ipynb", ".md"})
SOURCES = sorted(
    path for folder in ("icalign", "book", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)
PROVING = [path for path in SOURCES if path.is_relative_to(ROOT / "icalign") or path.is_relative_to(ROOT / "book")]
ELSEWHERE = [path for path in PROVING if not path.is_relative_to(ROOT / "icalign" / "calculus")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_of_the_book_has_no_faults(path: Path) -> None:
    assert hygiene.faults(path) == []


def test_every_chapter_of_the_table_of_contents_was_looked_at() -> None:
    chapters = [
        line.split()[-1] for line in (ROOT / "_toc.yml").read_text(encoding="utf-8").splitlines() if "book/" in line
    ]
    assert set(chapters) == {path.relative_to(ROOT).with_suffix("").as_posix() for path in PAGES}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_exception_can_pass_for_the_end_of_a_list(path: Path) -> None:
    assert list(hygiene.maps_in_all(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_simplify_is_called_only_where_its_failures_are_caught(path: Path) -> None:
    assert list(hygiene.simplify_calls(ast.parse(path.read_text(encoding="utf-8")))) == []


# ------------------------------------------------------------------------------------------------- a good notebook


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


HEADER = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
PIXEL = chunk(b"IDAT", zlib.compress(b"\0\0"))
END = chunk(b"IEND", b"")
PNG = notebooks.PNG_SIGNATURE + HEADER + PIXEL + END
RECORD = {"kind": "measurement", "claim": "selection-bound"}
VOLATILE = {MIME: {"worst_error": 1.2e-9}}

PROSE = """\
# Selecting the winner

With $\\eta = 0.1$ and version 2.13.0, Theorem 3.3 (§3.2, Lemma C.2) leaves {glue:text}`error:.2e`; see `1e-9` and
[the paper](https://arxiv.org/abs/2405.18634), Theorems 3.3 and 3.4, Equation (4.2), CC BY 4.0, Python 3.11.

$$
x = 0.5 \\cdot 10^{-3}
$$

````{prf:proof}
:class: dropdown

Divide by the winner's weight.
```{math}
0.5 < 1
```
````

```python
print(0.37)
```
"""


def code(number: int, source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": number,
        "id": f"c{number}",
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source,
    }


def output(metadata: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data["data"], "metadata": metadata or {}}


def stream(name: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": "shown"}


SET_UP = launch.set_up(*launch.repository())
GOOD = {
    "cells": [
        {"cell_type": "markdown", "id": "text", "metadata": {}, "source": PROSE},
        code(1, SET_UP, tags=launch.CELL_TAGS),
        code(2, "import math"),
        code(3, "print(math.pi)", stream("stdout")),
        code(4, "# NBVAL_IGNORE_OUTPUT\nprint(math.e)", stream("stdout")),
        code(5, "record()", output(VOLATILE, data={MIME: RECORD})),
        code(
            6,
            "draw()",
            output(data={"image/png": base64.b64encode(PNG).decode()}),
            mystnb={"image": {"alt": "The error falls with the temperature."}},
        ),
    ],
    "metadata": {},
}


def stored(folder: Path, notebook: dict[str, Any]) -> Path:
    """The notebook in a file, as if it had just been run."""
    path = folder / "page.ipynb"
    notebook = notebook | {"metadata": {"icalign": stamp(notebook)}}
    path.write_text(notebooks.serialise(notebooks.normalise(notebook)), encoding="utf-8")
    return path


def changed(cell: int, **entries: Any) -> dict[str, Any]:
    notebook = copy.deepcopy(GOOD)
    notebook["cells"][cell] |= entries
    return notebook


def without(cell: int) -> dict[str, Any]:
    """Without this cell, as if it had never been there."""
    notebook = copy.deepcopy(GOOD)
    del notebook["cells"][cell]
    code_cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    for number, each in enumerate(code_cells, 1):
        each["execution_count"] = number
    return notebook


def test_a_good_notebook_has_no_faults(tmp_path: Path) -> None:
    assert hygiene.faults(stored(tmp_path, GOOD)) == []


EVIDENCE = output(data={MIME: RECORD})
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}
BROKEN = {
    "a cell that was never run": (changed(3, execution_count=None), "not executed (make run): 1 of 6"),
    "cells run out of order": (changed(3, execution_count=2), "not executed in order"),
    "a kernel that went on from an earlier run": (changed(2, execution_count=7), "not executed in order"),
    "an error in the output": (changed(3, outputs=[ERROR]), "cell 4: ended in ValueError"),
    "something on stderr": (changed(3, outputs=[stream("stderr")]), "cell 4: wrote to stderr"),
    "a marker after code": (changed(3, source="print()  # NBVAL_IGNORE_OUTPUT"), "alone"),
    "a marker with other spaces": (changed(3, source="#NBVAL_IGNORE_OUTPUT\nprint()"), "alone"),
    "a marker with a reason": (changed(3, source="# NBVAL_IGNORE_OUTPUT: random\nprint()"), "alone"),
    "another marker": (changed(3, source="# NBVAL_SKIP\nprint()"), "alone"),
    "an old marker": (changed(3, source="# PYTEST_VALIDATE_IGNORE_OUTPUT\nprint()"), "alone"),
    "evidence that is not compared": (changed(4, outputs=[EVIDENCE]), "cell 5: records evidence"),
    "a tag that skips": (changed(3, metadata={"tags": ["nbval-skip"]}), "the tag nbval-skip hides it"),
    "a tag for errors": (changed(3, metadata={"tags": ["raises-exception"]}), "the tag raises-exception hides it"),
    "an empty cell": (changed(3, source=""), "cell 4: empty"),
    "a long cell": (changed(3, source="x = 1\n" * 21), "cell 4: 21 lines"),
    "a long line": (changed(3, source="x = " + "1" * 85), "cell 4: 89 columns"),
    "no set-up cell": (without(1), "cell 2: the first code cell is not the set-up cell"),
    "a set-up cell that does more": (changed(1, source=f"{SET_UP}\nx = 1"), "is not the set-up cell (make run)"),
    "a set-up cell on the page": (changed(1, metadata={}), "cell 2: the first code cell is not the set-up cell"),
    "two set-up cells": (changed(3, source=SET_UP), "cell 4: a second set-up cell"),
    "a cell kept off the page": (changed(3, metadata={"tags": ["remove-output"]}), "remove-output hides it from"),
    "a text kept off the page": (changed(0, metadata={"tags": ["remove-cell"]}), "cell 1: the tag remove-cell hides"),
    "a first cell without imports": (changed(2, source="x = 1"), "the first code cell imports"),
    "a first cell that configures": (changed(2, source="import math\nx = 1"), "the first code cell imports"),
    "a figure without a text": (changed(6, metadata={}), "cell 7: a figure without alternative text"),
    "a figure with an empty text": (changed(6, metadata={"mystnb": {"image": {"alt": " "}}}), "cell 7: a figure"),
    "simplify in a chapter": (changed(3, source="sp.simplify(x)"), "simplify is for icalign/calculus"),
    "all over a map": (changed(3, source="all(map(zero, M))"), "write all([… for …])"),
    "a record without a check": (changed(3, source='Proof(claim="a", statement="1 = 2")'), "by its class methods"),
    "a raw output": (changed(3, source="display(record, raw=True)"), "a raw output"),
    "a record written out": (changed(3, source=f"x = {{{MIME!r}: 1}}"), "a record is not written out"),
    "a check that is changed": (changed(3, source="evidence.implied = print"), "a chapter sets no attribute"),
    "a number typed by hand": (changed(0, source="The error is 0.37."), "0.37 is typed by hand"),
}  # fmt: skip


@pytest.mark.parametrize(("notebook", "fault"), BROKEN.values(), ids=BROKEN.keys())
def test_a_fault_is_named(notebook: dict[str, Any], fault: str, tmp_path: Path) -> None:
    (found,) = hygiene.faults(stored(tmp_path, notebook))
    assert fault in found


def test_outputs_of_other_code_are_refused_and_normalising_does_not_hide_it(tmp_path: Path) -> None:
    ran = json.loads(stored(tmp_path, GOOD).read_text(encoding="utf-8"))
    for stamped in (ran["metadata"], {}):
        path = tmp_path / "edited.ipynb"
        edited = changed(3, source="print(math.pi )") | {"metadata": stamped}
        path.write_text(notebooks.serialise(notebooks.normalise(edited)), encoding="utf-8")
        assert hygiene.faults(path) == [f"{path} its code changed since it was run (make run)"]


@pytest.mark.parametrize(("name", "text"), [("typo.ipynb", None), ("page.ipynb", "{"), ("page.ipynb", "[]")])
def test_what_is_no_page_is_said_in_one_line(name: str, text: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    (fault,) = hygiene.faults(path)
    assert fault.startswith(f"{path} cannot be read: ")
    error = notebooks.execute(path)
    assert error.startswith(f"{path}: ")
    assert "\n" not in error


# --------------------------------------------------------------------------------------------- the text of a page


@pytest.mark.parametrize(
    "body",
    [
        "$$\nx = 1\n$$",
        "- a list",
        "1. a list",
        "```{math}\nx\n```",
        "```python\nx\n```",
        "{by-hand}`a/b`",
        "",
        "> quoted",
    ],
)
def test_a_proof_that_begins_without_a_sentence_is_refused(body: str, tmp_path: Path) -> None:
    for fence in ("````", "::::"):
        page = tmp_path / "page.md"
        page.write_text(f"{fence}{{prf:proof}}\n:class: dropdown\n\n{body}\n{fence}\n", encoding="utf-8")
        (fault,) = hygiene.faults(page)
        assert "a proof begins with a sentence" in fault


@pytest.mark.parametrize(
    "number",
    ["0.37", ".5", "12.5", "1e-9", "2.5E+3", "1e−9", "5·10⁻¹⁰", "10⁹", "10^-9", "0.37.", "(0.37)", "0.5-fold", "3.5×"],
)  # fmt: skip
def test_a_typed_number_is_found(number: str) -> None:
    assert [line for line, _ in prose.typed_numbers(f"Theorem 3.3 says\nthat it is {number} here.")] == [2]


@pytest.mark.parametrize(
    "page", ["::::{prf:lemma} Title\n:label: a\n\nX\n::::", "```{note} X\n```", "| X |", "# X", "- X", ":::\nX\n:::"]
)  # fmt: skip
def test_a_typed_number_is_found_in(page: str) -> None:
    assert [number for _, number in prose.typed_numbers(page.replace("X", "it is 0.37"))] == ["0.37"]


@pytest.mark.parametrize(
    "text",
    [
        "$0.37$", "$$\n0.37\n$$", "\\begin{align}\n0.37\n\\end{align}", "`0.37`", "``a ` 0.37``", "{math}`0.37`",
        "```\n0.37\n```", "~~~text\n0.37\n~~~", "```{math}\n0.37\n```", "[0.37](a)", "![0.37](a)", "<https://a.b/0.37>",
        "<img width='0.37'>", "<!-- 0.37 -->", "https://a.b/0.37", "Theorem 3.3", "theorems 3.3, 3.4 and 3.5", "§3.2",
        "Lemma C.2 (E.2)", "sections 2.1–2.4", "Equation (4.2)", "version 2.13", "Python 3.11", "1.2.3", "30.11.2026",
        "2026-11-30", "arXiv 2405.18634", "CC BY 4.0", "N = 12 responses", "1/2",
        "```{figure} a/0.37.png\n:width: 0.5\n```",
    ],
)  # fmt: skip
def test_what_is_no_result_is_let_through(text: str) -> None:
    assert list(prose.typed_numbers(f"It is here:\n\n{text}\n\nand not there.")) == []


# ------------------------------------------------------------------------------------------------- the normal form


def test_the_normal_form_has_no_trace_of_editor_clock_and_version(tmp_path: Path) -> None:
    notebook = changed(
        3, metadata={"execution": {"iopub.execute_input": "now"}, "collapsed": True, "tags": ["hide-input"]}
    )
    notebook["metadata"] = {"kernelspec": {"name": "my-env"}, "language_info": {"version": "3.13.1"}, "widgets": {}}
    normal = notebooks.normalise(notebook)
    assert normal["metadata"] == notebooks.METADATA
    assert normal["cells"][3]["metadata"] == {"tags": ["hide-input"]}


def test_a_notebook_out_of_normal_form_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, GOOD)
    path.write_text(path.read_text(encoding="utf-8").replace('"name": "python3"', '"name": "my-env"'), encoding="utf-8")
    (fault,) = hygiene.faults(path)
    assert "not in normal form" in fault


def test_normalising_twice_changes_nothing() -> None:
    once = notebooks.normalise(GOOD)
    assert notebooks.serialise(notebooks.normalise(once)) == notebooks.serialise(once)


def test_volatile_figures_of_an_evidence_record_survive() -> None:
    (kept,) = notebooks.normalise(GOOD)["cells"][5]["outputs"]
    assert kept["metadata"] == VOLATILE
    assert kept["data"] == {MIME: RECORD}


def test_cells_keep_their_ids_and_copies_get_their_own() -> None:
    notebook = copy.deepcopy(GOOD)
    notebook["cells"][2]["id"] = "c1"
    del notebook["cells"][3]["id"]
    names = [cell["id"] for cell in notebooks.normalise(notebook)["cells"]]
    assert names[:2] == ["text", "c1"]
    assert len(set(names)) == len(names)
    assert names == [cell["id"] for cell in notebooks.normalise(notebook)["cells"]]


def test_a_picture_keeps_its_pixels_and_loses_its_text() -> None:
    written = notebooks.PNG_SIGNATURE + HEADER + chunk(b"tEXt", b"Software\0Matplotlib") + PIXEL + END
    assert notebooks.without_text(written) == PNG


# ------------------------------------------------------------------------------------------------- executing in place

FRESH = {
    "cells": [
        code(9, "import sys"),
        code(9, "print(6 * 7)\nsys.stdout.flush()\nprint('again')"),
    ],
    "metadata": {},
}


def test_executing_twice_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = stored(tmp_path, FRESH)
    path.write_text(notebooks.serialise(notebooks.normalise(FRESH)), encoding="utf-8")
    assert [fault for fault in hygiene.faults(path) if "its code changed" in fault]
    assert notebooks.execute(path) == ""
    first = path.read_bytes()
    assert notebooks.execute(path) == ""
    assert path.read_bytes() == first
    assert hygiene.faults(path) == []
    assert "again" in first.decode()


def test_a_notebook_that_fails_is_left_as_it_was(tmp_path: Path) -> None:
    path = stored(tmp_path, changed(3, source="raise ValueError('on purpose\\nand more')"))
    before = path.read_bytes()
    error = notebooks.execute(path)
    assert error.splitlines()[0] == f"{path}, cell 4: ValueError: on purpose"
    assert "and more" in error
    assert "\x1b" not in error
    assert path.read_bytes() == before


def test_a_kernel_that_dies_is_said_in_one_line(tmp_path: Path) -> None:
    error = notebooks.execute(stored(tmp_path, changed(3, source="import os\nos._exit(1)")))
    assert error.startswith(f"{tmp_path / 'page.ipynb'}, cell 4: DeadKernelError: ")
    assert "\n" not in error


# ------------------------------------------------------------------------------------------------- a fresh clone


@pytest.mark.parametrize("stub", ["exit 0", "exit 1", "echo no Python is installed", "echo 3.10; exit 1"])
def test_what_is_no_python_of_use_makes_no_environment(stub: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{stub}\n", encoding="utf-8")
    python.chmod(0o755)
    environment = os.environ | {"PYTHON": str(python)}
    run = subprocess.run([ROOT / "tools" / "bootstrap"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"icalign needs Python 3.11 or newer. Tried: {python}")
    assert not (tmp_path / ".venv").exists()
