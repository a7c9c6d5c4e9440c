"""``make run``: execute notebooks in place in fresh kernels, set-up cell first, then write them in one normal form.

The normal form holds nothing that changes from one run, editor or machine to the next: a diff shows what changed.
"""

import argparse
import base64
import copy
import hashlib
import json
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from icalign.ledger import stamp

from . import launch, nbval

Notebook = dict[str, Any]

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = ("mystnb", "tags")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_TEXT = (b"tEXt", b"iTXt", b"zTXt", b"tIME")


def normalise(notebook: Notebook) -> Notebook:
    """The notebook without timestamps, editor settings and versions; outputs and the stamp of their run stay."""
    notebook = copy.deepcopy(notebook)
    taken: set[str] = set()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        cell["id"] = _cell_id(cell.get("id", ""), source, taken)
        cell["metadata"] = {key: cell["metadata"][key] for key in CELL_METADATA if cell["metadata"].get(key)}
        cell["source"] = source.splitlines(keepends=True)
        for output in cell.get("outputs", []):
            _normalise_output(output)
    stamped = {key: value for key, value in notebook.get("metadata", {}).items() if key == "icalign"}
    return {"cells": notebook["cells"], "metadata": METADATA | stamped, "nbformat": 4, "nbformat_minor": 5}


def serialise(notebook: Notebook) -> str:
    """The text of the file, laid out as Jupyter does it."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def without_text(png: bytes) -> bytes:
    """The image without its text and time chunks: the same pixels, but no software version and no date."""
    kept, at = PNG_SIGNATURE, len(PNG_SIGNATURE)
    while at < len(png):
        end = at + 12 + int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] not in PNG_TEXT:
            kept += png[at:end]
        at = end
    return kept


def _cell_id(name: str, source: str, taken: set[str]) -> str:
    """The cell's id; a cell without one, or with that of an earlier cell, gets one that follows from its text."""
    stem, repeat = hashlib.sha256(source.encode()).hexdigest()[:8], 0
    while not name or name in taken:
        name, repeat = f"{stem}-{repeat}" if repeat else stem, repeat + 1
    taken.add(name)
    return name


def _normalise_output(output: dict[str, Any]) -> None:
    if "text" in output:
        output["text"] = "".join(output["text"]).splitlines(keepends=True)
    for kind, content in output.get("data", {}).items():
        if kind == "image/png":
            png = without_text(base64.b64decode("".join(content)))
            output["data"][kind] = base64.b64encode(png).decode() + "\n"
        elif not re.fullmatch(r"application/(.+\+)?json", kind):
            output["data"][kind] = "".join(content).splitlines(keepends=True)


def execute(path: Path) -> str:
    """Run the notebook in a fresh kernel and write it back; return what went wrong, "" if nothing did.

    What went wrong begins with a line that says all: the file, the cell, the error.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # no such file, no JSON, no notebook: nbformat has an exception for each
        return f"{path}: {_in_one_line(error)}"
    launch.place(notebook)
    notebook = nbformat.from_dict(notebook)
    begun = [0]
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        timeout=600,
        coalesce_streams=True,  # else one stdout is stored in as many pieces as it happened to arrive in
        record_timing=False,
        extra_arguments=["--log-level=CRITICAL"],  # the kernel's messages about itself; a cell's errors are outputs
        on_cell_execute=lambda cell, cell_index: begun.append(cell_index + 1),
    )
    try:
        client.execute()
    except CellExecutionError as error:
        first = f"{path}, cell {begun[-1]}: {error.ename}: {error.evalue}".splitlines()[0]
        return COLOURS.sub("", f"{first}\n{error}")
    except Exception as error:  # it took too long, or its kernel died
        return f"{path}, cell {begun[-1]}: {_in_one_line(error)}"
    notebook.metadata["icalign"] = stamp(notebook)
    path.write_text(serialise(normalise(json.loads(nbformat.writes(notebook)))), encoding="utf-8")
    return ""


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _timed(path: Path) -> tuple[str, float]:
    start = time.perf_counter()
    return execute(path), time.perf_counter() - start


def main() -> int:
    """Execute the notebooks named on the command line; one that fails keeps its file as it was."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    paths = parser.parse_args().notebooks
    os.environ.update(nbval.ENVIRONMENT)
    failed = False
    with ProcessPoolExecutor(nbval.WORKERS) as pool:
        for path, (error, seconds) in zip(paths, pool.map(_timed, paths), strict=True):
            print(error or f"{path}  {seconds:.1f} s", flush=True)
            failed |= bool(error)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
