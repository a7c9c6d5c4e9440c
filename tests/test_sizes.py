"""Counts read off formulas: right for a known block, the same in the weights, and no polynomial where there is none."""

import pytest
import sympy as sp

import icalign
from icalign.constructions import Causal, ConstantDepth, PlackettLuce, elimination
from icalign.sizes import Sizes, polynomial
from icalign.symbolic import SymbolicTransformer
from icalign.symbols import N, d_x, d_y
from icalign.transformer import Transformer

W = icalign.sample_task(seed=3).W


def test_a_block_is_counted_as_it_stands() -> None:
    block = SymbolicTransformer(elimination.stream, (elimination.block,) * 3, {})
    assert Sizes.of(block) == Sizes(3, 6, 2, 12, d_x + 2 * d_y + 5)
    assert Sizes.of(block, {d_x: 4, d_y: 1}).width == 11


def test_sizes_with_symbols_are_counted_as_symbols() -> None:
    found = Sizes.of(ConstantDepth(W=W, temperatures={"C": 60.0}).symbolic())
    assert found == Sizes(3, 3, 1, 3 * N, 4 * N + d_x + 3 * d_y + 3)


def test_blocks_of_several_steps_are_all_counted() -> None:
    made = PlackettLuce(W=W, steps=3, eta=1e-4, responses=4, temperatures={"gamma": 60.0, "C": 60.0})
    found = Sizes.of_construction(made)
    assert (found.attention_layers, found.heads) == (9, 18)
    assert found.relus == 3 * (2 * 4 + 2 + 2 + 4 * d_y)


def test_a_polynomial_in_the_number_of_responses() -> None:
    heat = {"gamma_1": 90.0, "c": 200.0, "c_field": 60.0}

    def derived(responses: int) -> Sizes:
        return Sizes.of_construction(Causal(W=W, responses=responses, temperatures=heat, positions="derived"))

    found = polynomial(derived, N, (2, 3, 5))
    assert found == Sizes(N, 2 * N - 1, 2, 7 * N + 1, 2 * N + d_x + 2 * d_y + 5)


def test_what_is_no_polynomial_of_the_degree_is_refused() -> None:
    with pytest.raises(ValueError, match="at N = 4, the size is 16"):
        polynomial(lambda n: Sizes(2**n, 0, 0, 0, 0), N, (1, 2, 4))
    assert polynomial(lambda n: Sizes(n**2, 0, 0, 0, 0), N, (1, 2, 3, 5)).attention_layers == N**2


def test_weights_that_differ_from_the_formulas_are_refused() -> None:
    made = ConstantDepth(W=W, responses=4, temperatures={"C": 60.0})
    first, *others = made.symbolic().blocks
    made.transformer = Transformer((first, first, *others[:2]), made.symbolic().stream, made.values)
    with pytest.raises(ValueError, match=r"the formulas have .*the weights"):
        Sizes.of_construction(made)


def test_a_construction_keeps_the_symbols_that_are_not_asked_for() -> None:
    made = ConstantDepth(W=W, responses=4, temperatures={"C": 60.0})
    assert Sizes.of_construction(made).width == 16 + d_x + 3 * d_y + 3
    assert Sizes.of_construction(made, ()).relus == 3 * N
    assert sp.sympify(Sizes.of_construction(made, (d_x, d_y, N)).width) == 16 + 4 + 9 + 3
