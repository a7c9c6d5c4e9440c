"""A fresh install gives the versions everything was checked with: requirements, lock and environment agree."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import lock

PINS = [Requirement("jinja2==3.1.6")]
LOCK = [Requirement("jinja2==3.1.6"), Requirement("markupsafe==3.0.3")]
PRESENT = {"jinja2": "3.1.6", "markupsafe": "3.0.3"}
README = "Jinja2 fills in templates."


def test_requirements_lock_and_environment_agree(root: Path) -> None:
    pins, locked = lock.read(root / "requirements.txt"), lock.read(root / "constraints.txt")
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert lock.faults(pins, locked, lock.installed(pins), readme) == []


def test_the_lock_installs_on_the_oldest_python(root: Path) -> None:
    assert lock.too_new(lock.installed(lock.read(root / "requirements.txt"))) == []


def test_a_package_for_newer_pythons_only_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lock.HERE, "python_full_version", "2.7.0")
    (fault,) = lock.too_new(["pytest"])
    assert fault.startswith("pytest needs Python >=")


def test_what_the_package_needs_is_pinned(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {canonicalize_name(pin.name) for pin in lock.read(root / "requirements.txt")}
    assert {canonicalize_name(Requirement(text).name) for text in project["dependencies"]} <= pinned


def test_a_sound_lock_has_no_faults() -> None:
    assert lock.faults(PINS, LOCK, PRESENT, README) == []


@pytest.mark.parametrize(
    ("pins", "locked", "present", "readme", "fault"),
    [
        (["jinja2>=3"], LOCK, PRESENT, README, "jinja2>=3 is not an exact public version"),
        (["jinja2==3.*"], LOCK, PRESENT, README, "jinja2==3.* is not an exact public version"),
        (PINS, [*LOCK, "torch==2.13.0+cpu"], PRESENT, README, "torch==2.13.0+cpu is not an exact public version"),
        (
            ["jinja2==3.1.5"],
            LOCK,
            PRESENT,
            README,
            "requirements.txt has jinja2==3.1.5, constraints.txt has jinja2==3.1.6",
        ),
        (PINS, LOCK[1:], {}, README, "requirements.txt has jinja2==3.1.6, constraints.txt has nothing"),
        (PINS, LOCK[:1], PRESENT, README, "markupsafe 3.0.3 is installed, constraints.txt has nothing"),
        (
            PINS,
            LOCK,
            {"markupsafe": "3.0.2"},
            README,
            "markupsafe 3.0.2 is installed, constraints.txt has markupsafe==3.0.3",
        ),
        (PINS, LOCK, PRESENT, "jinja2-time", "README.md gives no reason for jinja2"),
    ],
)
def test_a_fault_is_named(
    pins: list[object], locked: list[object], present: dict[str, str], readme: str, fault: str
) -> None:
    assert fault in lock.faults(_parsed(pins), _parsed(locked), present, readme)


def _parsed(lines: list[object]) -> list[Requirement]:
    return [Requirement(str(line)) for line in lines]


def test_dependencies_of_dependencies_are_found() -> None:
    assert "markupsafe" in lock.installed([Requirement("sphinx")])


def test_what_only_torch_pulls_in_is_left_out() -> None:
    assert lock.installed([Requirement("torch")]).keys() == {"torch"}


def test_a_local_version_becomes_public() -> None:
    assert "+" not in lock.installed([Requirement("torch")])["torch"]
