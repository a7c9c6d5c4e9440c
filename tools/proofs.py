"""Compile ``proofs/`` with Rocq, and compare what its kernel says with ``proofs/checked.json``.

``python -m tools.proofs`` is ``make proofs``; ``--write`` stores what the kernel says, for a reviewer to read as a
diff. The files are compiled in ``_build/proofs``; ``coqchk`` then checks the compiled files once more, by itself
(``--quick`` leaves that out). With ``--if-present`` a machine without Rocq is told so, and nothing fails, unless
``ICALIGN_REQUIRE_ROCQ=1``.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from icalign import kernel

ROOT = Path(__file__).parents[1]
PROOFS, BUILD, STORED = ROOT / "proofs", ROOT / "_build" / "proofs", ROOT / "proofs" / "checked.json"
PROGRAMS = ("coqc", "coq_makefile", "coqchk", "make")
PACKAGES = "coq libcoq-coquelicot libcoq-mathcomp-ssreflect libcoq-mathcomp-fingroup libcoq-interval"
WIDTH = 90
MARK = "────"
PREAMBLE = re.compile(r"^(?:From|Require|Import|Open Scope|Local Open Scope)\b[^.]*(?:\.[^.\s][^.]*)*\.$", re.MULTILINE)
FORBIDDEN = re.compile(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Unset Guard Checking|bypass_check)\b")
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)


def missing() -> str:
    """What is missing to compile the proofs; empty if nothing."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(lacking)} not found; on Debian, install {PACKAGES}" if lacking else ""


def run(*command: str) -> str:
    """The output of a command in the build folder.

    Raises:
        SystemExit: it failed; with what it said.
    """
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def compile_all(*targets: str) -> None:
    """Bring the build folder up to date with the sources, and compile what changed: all, or what the targets need."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:  # the test of the extraction compiles here too
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in BUILD.glob("*.v"):
            if not (PROOFS / old.name).is_file():
                old.unlink()
        for path in [*kernel.sources(PROOFS), PROOFS / "_CoqProject"]:
            copy = BUILD / path.name
            if not copy.is_file() or copy.read_bytes() != path.read_bytes():
                shutil.copyfile(path, copy)
        run("coq_makefile", "-f", "_CoqProject", "-o", "Makefile")
        run("make", "-j2", *targets)


def admitted() -> list[str]:
    """The places where a file leaves something unproved, or asks Rocq to look away."""
    found = []
    for path in kernel.sources(PROOFS):
        text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), path.read_text(encoding="utf-8"))
        found += [f"proofs/{path.name}: {match[1]}" for match in FORBIDDEN.finditer(text)]
    return found


def told(name: str, lines: list[str]) -> str:
    """What Rocq prints for these lines, which stand apart from the files that are compiled."""
    query = BUILD / "queries" / f"{name}.v"
    query.parent.mkdir(exist_ok=True)
    query.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run("coqc", "-Q", ".", "Icalign", f"queries/{query.name}")


def ask(path: Path, commands: list[str]) -> list[str]:
    """What Rocq prints for each of these commands, in a file's own notation."""
    preamble = PREAMBLE.findall(path.read_text(encoding="utf-8"))
    lines = [*preamble, f"From Icalign Require Import {path.stem}.", f"Set Printing Width {WIDTH}."]
    for command in commands:
        lines += [f'Goal True. idtac "{MARK}". Abort.', command]
    _, *answers = told(f"ask_{path.stem}", lines).split(f"{MARK}\n")
    return answers


def asked(path: Path, theorems: list[kernel.Theorem]) -> list[dict[str, Any]]:
    """The statement and the axioms of each theorem of a file."""
    names = [f"{path.stem}.{theorem.name}" for theorem in theorems]
    answers = ask(path, [*(f"Check {name}." for name in names), *(f"Print Assumptions {name}." for name in names)])
    return [
        {"name": theorem.name, "statement": statement_of(theorem.name, checked), "axioms": axioms_of(assumed)}
        for theorem, checked, assumed in zip(theorems, answers[: len(names)], answers[len(names) :], strict=True)
    ]


def changed(path: Path, theorems: list[kernel.Theorem], stored: dict[str, Any]) -> list[str]:
    """Where the kernel states a theorem otherwise than is stored."""
    answers = ask(path, [f"Check {path.stem}.{theorem.name}." for theorem in theorems])
    known = [stored.get(theorem.name, {"statement": ""}) for theorem in theorems]
    return [
        f"proofs/{path.name}: the kernel states {theorem.name} otherwise"
        for theorem, answer, entry in zip(theorems, answers, known, strict=True)
        if statement_of(theorem.name, answer) != entry["statement"]
    ]


def statement_of(name: str, answer: str) -> str:
    """What ``Check`` printed, without the name and the indentation before it.

    Raises:
        ValueError: it printed something else.
    """
    match = re.fullmatch(rf"(?:\w+\.)*{re.escape(name)}\s+:\s(.*)", answer.rstrip(), re.DOTALL)
    if match is None:
        raise ValueError(f"Check {name} printed {answer!r}")
    return textwrap.dedent(" " * 7 + match[1])


def axioms_of(answer: str) -> list[str]:
    """The names that ``Print Assumptions`` lists, sorted; in full, also where a file's imports shorten them.

    Raises:
        ValueError: it printed something else.
    """
    head, *lines = answer.rstrip().split("\n")
    if head == "Closed under the global context" and not lines:
        return []
    if head != "Axioms:":
        raise ValueError(f"Print Assumptions printed {answer!r}")
    full = {axiom.rpartition(".")[2]: axiom for axiom in kernel.AXIOMS}
    return sorted([full.get(name := line.split()[0], name) for line in lines if not line.startswith(" ")])


def axioms_under(names: dict[str, list[str]]) -> set[str]:
    """The axioms that these lemmas, by file, rest on together; to list those of each takes a hundred times as long."""
    modules = [Path(file).stem for file in names]
    lemmas = [f"{Path(file).stem}.{name}" for file, group in names.items() for name in group]
    lines = [
        f"From Icalign Require {' '.join(modules)}.",
        *(["Definition together :=", *(f"let _ := @{lemma} in" for lemma in lemmas), "I."]),
        "Print Assumptions together.",
    ]
    return set(axioms_of(told(f"under_{modules[0]}", lines)))


def names_by_file(lemmas: Iterable[kernel.Theorem | kernel.Mutant]) -> dict[str, list[str]]:
    """The names of lemmas, by file."""
    found: dict[str, list[str]] = {}
    for lemma in lemmas:
        found.setdefault(lemma.file, []).append(lemma.name)
    return found


def beyond(stored: dict[str, Any]) -> list[str]:
    """Where theorems rest on other axioms than is stored, mutants or pins on others than they may."""
    theorems = axioms_under(names_by_file(kernel.all_tagged(PROOFS)))
    mutants = axioms_under(names_by_file(kernel.mutants(PROOFS)))
    known = {axiom for entry in stored.values() for axiom in entry["axioms"]}
    found = [f"the theorems of proofs/ rest on {', '.join(sorted(theorems)) or 'no axiom'}"] * (theorems != known)
    found += [f"a mutant of proofs/ rests on {axiom}" for axiom in sorted(mutants - set(kernel.AXIOMS))]
    for file, names in kernel.pins(PROOFS).items():
        used, allowed = axioms_under({file: names}), {*kernel.AXIOMS, *kernel.PRIMITIVES}
        found += [f"proofs/{file}: rests on {axiom}" for axiom in sorted(used - allowed)]
        found += [f"proofs/{file}: rests no more on {axiom} (kernel.PRIMITIVES)" for axiom in sorted(allowed - used)]
    return found


def by_file(question: Callable[[Path, list[kernel.Theorem]], list[Any]]) -> list[Any]:
    """The answers about the theorems of each file, two files at a time."""
    theorems = kernel.all_tagged(PROOFS)
    files = [path for path in kernel.sources(PROOFS) if any(theorem.file == path.name for theorem in theorems)]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda path: question(path, [t for t in theorems if t.file == path.name]), files)
        return [entry for answers in found for entry in answers]


def recheck() -> None:
    """Let ``coqchk`` check the compiled files again, without the tactics and the parser that made them.

    What they build on, the libraries, it takes as given. Not the pins: coq-interval, which they need, takes minutes.
    """
    files = [path for path in kernel.sources(PROOFS) if path.name not in kernel.pins(PROOFS)]
    modules = [word for path in files for word in ("-norec", f"Icalign.{path.stem}")]
    run("coqchk", "-silent", "-Q", ".", "Icalign", *modules)


def main(arguments: list[str]) -> int:
    """Compile, ask, compare or write; 0 if all agrees."""
    if reason := missing():
        must = "--if-present" not in arguments or os.environ.get("ICALIGN_REQUIRE_ROCQ") == "1"
        print(f"Rocq: {reason}" + ("" if must else "; skipped"), file=sys.stderr)
        return 2 * must
    if found := admitted():
        print("\n".join(found), file=sys.stderr)
        return 1
    compile_all()
    files = kernel.stamp(PROOFS)
    if "--write" in arguments:
        now = {"files": files, "theorems": by_file(asked)}
        STORED.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    known = {entry["name"]: entry for entry in stored["theorems"]}
    found = [] if "--write" in arguments else by_file(lambda path, theorems: changed(path, theorems, known))
    with ThreadPoolExecutor(1) as pool:
        rechecked = None if "--quick" in arguments else pool.submit(recheck)
        found += beyond(known)
    if rechecked:
        rechecked.result()
    if files != stored["files"]:
        found.append("proofs/checked.json is about other files than these")
    if found:
        print("\n".join([*found, "(python -m tools.proofs --write stores what the kernel says)"]), file=sys.stderr)
        return 1
    print(f"Rocq: {len(known)} theorems in {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
