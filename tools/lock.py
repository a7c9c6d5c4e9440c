"""``make lock``: constraints.txt, the complete lock, from what is installed; and what a test holds against it.

The lock installs on any platform: it has public versions only, and leaves out what only torch pulls in, which differs
from one to the next. Packages that only other platforms need (colorama, appnope, …) are absent; there they float.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

HEADER = "# Every package that requirements.txt leads to, as `make lock` found it on Linux with CPython 3.11.\n"
# Where the lock was made. Elsewhere it must hold what is needed both there and here.
HERE = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "python_version": "3.11",
    "python_full_version": "3.11.0",
}


def read(path: Path) -> list[Requirement]:
    """The requirements of a file, one a line, with comments."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line]


def installed(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Name → public version of everything the requirements lead to in this environment."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    queue = list(requirements)
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        package = distribution(name)
        versions[name] = Version(package.version).public
        if name == "torch":
            continue
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                queue += [each for each in map(Requirement, package.requires or ()) if _needed(each, extra)]
    return versions


def _needed(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    return marker is None or (marker.evaluate({"extra": extra}) and marker.evaluate({**HERE, "extra": extra}))


def faults(pins: list[Requirement], lock: list[Requirement], present: Mapping[str, str], readme: str) -> list[str]:
    """What is wrong with the pins, one line each; nothing when a fresh install gives just this environment."""
    locked: dict[str, Requirement] = {canonicalize_name(pin.name): pin for pin in lock}
    found = [f"{pin} is not an exact public version" for pin in (*pins, *lock) if not _exact(pin)]
    for pin in pins:
        name = canonicalize_name(pin.name)
        if name not in locked or locked[name].specifier != pin.specifier:
            found.append(f"requirements.txt has {pin}, constraints.txt has {locked.get(name, 'nothing')}")
        if not re.search(rf"(?<![\w-]){re.escape(pin.name)}(?![\w-])", readme, re.IGNORECASE):
            found.append(f"README.md gives no reason for {pin.name}")
    for package, version in present.items():
        if package not in locked or not locked[package].specifier.contains(version, prereleases=True):
            found.append(f"{package} {version} is installed, constraints.txt has {locked.get(package, 'nothing')}")
    return found


def too_new(versions: Iterable[str]) -> list[str]:
    """The installed packages that refuse the oldest Python the lock is for (a later patch release may accept them)."""
    oldest = HERE["python_full_version"]
    needs = {name: distribution(name).metadata["Requires-Python"] or "" for name in versions}
    return [
        f"{name} needs Python {spec}, not {oldest}" for name, spec in needs.items() if oldest not in SpecifierSet(spec)
    ]


def _exact(pin: Requirement) -> bool:
    return re.fullmatch(r"==[^*+,]+", str(pin.specifier)) is not None


def main() -> int:
    """Write constraints.txt, unless something installed would not install on the oldest Python."""
    versions = installed(read(Path("requirements.txt")))
    if refused := too_new(versions):
        sys.exit("\n".join([*refused, "install older versions of these first"]))
    lines = [f"{name}=={version}\n" for name, version in sorted(versions.items())]
    Path("constraints.txt").write_text(HEADER + "".join(lines), encoding="utf-8")
    print(f"constraints.txt holds {len(lines)} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
