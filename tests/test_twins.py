"""Every theorem that the kernel checked has a twin in torch that holds, and that fails when it is broken."""

from importlib import import_module
from pathlib import Path

import pytest
import twins
from twins.twin import ALL, Draw, Twin, at_most, below, equal, given, holds, rounding, twin

from icalign import kernel

ROOT = Path(__file__).parents[1]
INSTANCES = 12

for path in sorted(Path(twins.__file__).parent.glob("[a-z]*.py")):
    import_module(f"twins.{path.stem}")


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_the_theorem_says_holds_in_torch(name: str) -> None:
    assert not list(ALL[name].fails(INSTANCES))


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_broken_twin_is_noticed(name: str) -> None:
    assert any(ALL[name].fails(INSTANCES, broken=True))


def test_every_theorem_has_a_twin_and_every_twin_a_theorem() -> None:
    assert {theorem.name for theorem in kernel.checked(ROOT)} == ALL.keys()


def test_twins_stand_in_the_module_of_their_file() -> None:
    place = {theorem.name: theorem.file.removesuffix(".v").lower() for theorem in kernel.checked(ROOT)}
    assert not [name for name, it in ALL.items() if place.get(name) != it.module.replace("_", "")]


def test_an_instance_that_misses_a_hypothesis_is_no_evidence() -> None:
    with pytest.raises(AssertionError, match="hypothesis 2 is not met"):
        given(True, False)


def test_a_twin_that_says_nothing_is_no_evidence() -> None:
    with pytest.raises(AssertionError, match="says nothing"):
        list(Twin("silent", "here", lambda draw, broken: iter(())).fails(1))


def test_what_is_not_finite_is_no_evidence() -> None:
    with pytest.raises(AssertionError, match="not finite"):
        at_most(float("nan"), 1.0)


def test_a_theorem_has_one_twin() -> None:
    with pytest.raises(ValueError, match="has two twins"):
        twin(ALL[min(ALL)].says)


def test_conclusions_are_told_apart() -> None:
    assert equal(1.0, 1.0 + 2.0**-52, rounding(1, 1.0)).held
    assert not equal(1.0, 1.0 + 2.0**-50, rounding(1, 1.0)).held
    assert at_most(1.0, 1.0).held
    assert not at_most(1.0 + 2.0**-50, 1.0).held
    assert not below(1.0, 1.0).held
    assert not holds(False).held


def test_the_same_number_draws_the_same_instance() -> None:
    assert Draw(3).normal(4).equal(Draw(3).normal(4))
    assert not Draw(3).normal(4).equal(Draw(4).normal(4))
