"""``make test``: every check that needs no browser, each to its end, and then what held and how long it took."""

import subprocess
import sys
import time

from .nbval import WORKERS

STAGES = {
    "style": ["ruff check --quiet --output-format=concise", "ruff format --check --quiet"],
    "ledger": ["icalign ledger"],
    "types": ["mypy"],
    "notebooks": ["tools.nbval"],
    "tests": [f"pytest -q -rs -n{WORKERS} --dist=loadfile"],
}
PROOFS = [sys.executable, "-m", "tools.proofs", "--if-present"]  # beside the others, which leave a core idle at times


def holds(modules: list[str]) -> bool:
    """Whether every command ends well; all are run, so that one run shows all there is to mend."""
    return all([subprocess.run([sys.executable, "-m", *module.split()]).returncode == 0 for module in modules])


def main() -> int:
    """Run the stages, then say in one line each how they ended."""
    ended = []
    proofs, begun = subprocess.Popen(PROOFS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT), time.perf_counter()
    for name, modules in STAGES.items():
        print(f"\n── {name} ──", flush=True)
        start = time.perf_counter()
        ended.append((name, holds(modules), time.perf_counter() - start))
    print("\n── proofs ──", flush=True)
    told, _ = proofs.communicate()
    print(told.decode(), end="")
    ended.append(("proofs", proofs.returncode == 0, time.perf_counter() - begun))
    print("\n── summary ──")
    for name, held, seconds in ended:
        print(f"{name:<10} {'holds' if held else 'FAILS'} {seconds:6.1f} s")
    return int(not all([held for _, held, _ in ended]))


if __name__ == "__main__":
    sys.exit(main())
