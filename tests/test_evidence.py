"""A record exists only of what its check has accepted, and it says no more than that."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
import torch
from jaxtyping import TypeCheckError

from icalign.calculus import Chain, Limit, NotShown, ShownFalse
from icalign.evidence import (
    MIME,
    Certificate,
    Control,
    Evidence,
    Exhibit,
    Measurement,
    Proof,
    hypotheses_of,
    sizes_of,
)

N, K = sp.symbols("N K", integer=True, positive=True)
n = sp.Symbol("n", integer=True, nonnegative=True)
k = sp.Symbol("k", integer=True)
d = sp.Symbol("d", integer=True, positive=True)
a, g = sp.symbols("a gamma", positive=True)
t = sp.Symbol("t", nonnegative=True)
x, y = sp.symbols("x y", real=True)
h = sp.IndexedBase("h", nonnegative=True)
w = sp.IndexedBase("w", positive=True)

GOOD = Chain(sp.Sum(sp.exp(-g * h[k]), (k, 1, N))).at_most(sp.Sum(sp.Integer(1), (k, 1, N))).equals(N)
FALSE = Chain(sp.Sum(sp.exp(-g * h[k]), (k, 1, N))).at_most(N / 2)
OPEN = Chain((x**2 - 1) / (x - 1)).equals(x + 1)


def record_of(evidence: Evidence) -> dict[str, Any]:
    data, _ = evidence._repr_mimebundle_()
    found: dict[str, Any] = data[MIME]
    return found


# --- proofs -------------------------------------------------------------------------------------------------------


def test_a_proof_records_what_was_checked() -> None:
    record = record_of(Proof.of("claim", GOOD, part="bound"))
    assert record == {
        "kind": "proof",
        "claim": "claim",
        "part": "bound",
        "statement": GOOD.latex,
        "sizes": "all N",
        "all_sizes": True,
        "hypotheses": [r"\gamma > 0", r"h_j \ge 0"],
        "method": "sympy",
        "samples": record["samples"],
    }
    assert record["samples"] > 0


@pytest.mark.parametrize(("chain", "error"), [(FALSE, ShownFalse), (OPEN, NotShown), (Chain(x), ValueError)])
def test_there_is_no_proof_of_what_fails(chain: Chain, error: type[Exception]) -> None:
    with pytest.raises(error):
        Proof.of("claim", chain, part="bound")


def test_lower_bounds_are_hypotheses() -> None:
    chain = Chain(sp.Integer(0)).below(sp.Sum(w[k], (k, 1, N - 1)))
    with pytest.raises(ShownFalse):
        Proof.of("claim", chain, part="p")
    assert record_of(Proof.of("claim", chain, part="p", at_least={N: 2}))["hypotheses"] == [r"N \ge 2", "w_j > 0"]
    chain = Chain(K + 1).at_most(N + 1)
    assert record_of(Proof.of("claim", chain, part="p", at_least={N: K}))["hypotheses"] == [r"N \ge K"]


def test_what_is_assumed_of_a_lower_bound_is_a_hypothesis() -> None:
    """N ≥ K + 20 alone does not make N ≥ 20."""
    record = record_of(Proof.of("claim", Chain(sp.Integer(20)).at_most(N), part="p", at_least={N: K + 20}))
    assert record["hypotheses"] == [r"N \ge K + 20", r"K > 0,\ K \in \mathbb{Z}"]
    assert record["sizes"] == "all N"


def test_sizes_are_found_in_shapes_and_bounds_of_sums() -> None:
    W = sp.MatrixSymbol("W", d, N + K)
    assert sizes_of([W]) == "all K, N, d"
    assert sizes_of([sp.Sum(h[k], (k, 1, N))]) == "all N"
    assert sizes_of([x + a]) == "no size enters"
    assert sizes_of([sp.Sum(h[k], (k, 1, 4))]) == "no size enters"  # k is bound
    for fixed in (h[k], h[n] + h[2], sp.MatrixSymbol("A", 2, 3)[0, n], sp.KroneckerDelta(n, k)):  # an index is no size
        assert sizes_of([fixed]) == "no size enters", fixed
    assert sizes_of([sp.IndexedBase("h", integer=True, positive=True)[1]]) == "no size enters"  # nor is a family
    assert sizes_of([sp.MatrixSymbol("A", N, 3)[n, 0]]) == "all N"
    assert sizes_of([sp.Sum(h[k], (k, n, N))]) == "all N, n"
    assert sizes_of([sp.Sum(n, (n, 1, n)) + n * h[n]]) == "all n"  # bound in the sum, free in its range
    assert sizes_of([sp.Sum(n * h[n], (n, 1, 4))]) == "no size enters"
    u, v = sp.MatrixSymbol("u", N + K, 1), sp.MatrixSymbol("v", N + K, 1)
    chain = Chain(W * (u + v)).equals(W * u + W * v)
    assert record_of(Proof.of("claim", chain, part="p"))["sizes"] == "all K, N, d"


def test_a_statement_without_a_size_is_not_for_all_sizes() -> None:
    record = record_of(Proof.of("claim", Chain(t / (1 + t)).below(sp.Integer(1)), part="p"))
    assert (record["sizes"], record["all_sizes"]) == ("no size enters", False)


def test_a_size_that_sympy_cancels_is_no_size() -> None:
    record = record_of(Proof.of("claim", Chain(t + N - N).below(t + 1 + 0 * K), part="p"))
    assert record["sizes"] == "no size enters"


def test_the_variable_of_a_limit_is_no_size() -> None:
    record = record_of(Proof.of("claim", Limit(1 / N, N, sp.oo, sp.Integer(0)), part="p"))
    assert (record["sizes"], record["hypotheses"]) == ("no size enters", [r"N \in \mathbb{Z}"])
    record = record_of(Proof.of("claim", Limit(N * sp.exp(-g), g, sp.oo, sp.Integer(0)), part="p"))
    assert (record["sizes"], record["hypotheses"]) == ("all N", [])


def test_every_assumption_shows() -> None:
    symbols = [
        sp.Symbol("e", even=True, positive=True),
        sp.Symbol("o", odd=True),
        sp.Symbol("p", prime=True),
        sp.Symbol("v", negative=True),
        sp.Symbol("q", nonpositive=True),
        sp.Symbol("z", nonzero=True),
        sp.Symbol("i", integer=True, negative=True),
        sp.Symbol("j", rational=True),
        sp.Symbol("l", real=True, integer=False),
        sp.Symbol("m", zero=False),  # complex
        sp.Symbol("r", integer=True),
    ]
    shown = hypotheses_of([sp.Add(*symbols) + x + N + w[k] + sp.IndexedBase("u", integer=True)[n]], {})
    assert shown == [
        r"e\text{ even}",
        r"i < 0,\ i \in \mathbb{Z}",
        r"j \in \mathbb{Q}",
        r"k \in \mathbb{Z}",
        r"l \ne 0,\ l \notin \mathbb{Z}",
        r"m \ne 0",
        r"n \ge 0,\ n \in \mathbb{Z}",
        r"o \ne 0,\ o\text{ odd}",
        r"p\text{ prime}",
        r"q \le 0",
        r"r \in \mathbb{Z}",
        r"u_j \in \mathbb{Z}",
        "v < 0",
        "w_j > 0",
        r"z \ne 0",
    ]


def test_nothing_is_proved_by_writing_it_twice() -> None:
    for chain in (Chain(N * x).equals(N * x), Chain(GOOD.start).at_most(GOOD.start)):
        with pytest.raises(ValueError, match="states nothing"):
            Proof.of("claim", chain, part="p")
        with pytest.raises(ValueError, match="states nothing"):
            Exhibit.at("claim", chain, {N: 1, x: 1, g: 1}, part="p")
        with pytest.raises(ValueError, match="states nothing"):
            Certificate.by_intervals("claim", chain, [{N: 1, x: 1, g: 1}], part="p")


def test_a_proof_for_each_size_says_which() -> None:
    def law(size: int) -> Chain:
        return Chain(sp.Add(*[w[j] / sp.Add(*[w[i] for i in range(size)]) for j in range(size)])).equals(sp.Integer(1))

    record = record_of(Proof.each("claim", N, range(1, 5), law, part="p", shown=3))
    assert (record["sizes"], record["all_sizes"]) == ("N = 1, …, 4", False)
    assert "N = 3" in record["statement"]
    assert record["hypotheses"] == ["w_j > 0"]
    assert record_of(Proof.each("claim", N, range(2, 3), law, part="p"))["sizes"] == "N = 2"


def test_a_proof_for_each_size_fails_at_the_first_false_size() -> None:
    def false_at_three(size: int) -> Chain:
        return Chain(sp.Add(*[w[j] for j in range(size)])).at_most(w[0] + w[1])

    with pytest.raises(ShownFalse):
        Proof.each("claim", N, range(1, 5), false_at_three, part="p")


@pytest.mark.parametrize(
    ("values", "statement", "words"),
    [
        (range(1, 1), lambda size: Chain(t).below(t + size), "no size to prove"),
        (range(1, 8, 3), lambda size: Chain(t).below(t + size), "expected consecutive sizes"),
        (range(1, 4), lambda size: Chain(t).below(t + 1), "not about N"),
        (range(1, 4), lambda size: Chain(size * t).equals(size * t), "states nothing"),
    ],
)
def test_a_family_of_statements_must_be_one(values: range, statement: Callable[[int], Chain], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Proof.each("claim", N, values, statement, part="p")


def test_a_family_has_the_hypotheses_of_all_its_statements() -> None:
    def law(size: int) -> Chain:
        return Chain(x).below(x + size) if size == 1 else Chain(a).below(a + size)

    assert record_of(Proof.each("claim", N, range(1, 3), law, part="p"))["hypotheses"] == ["a > 0"]


def test_a_family_is_not_shown_by_a_statement_that_is_trivial() -> None:
    def law(size: int) -> Chain:
        total = sp.Add(*[w[j] for j in range(size)]) ** 2
        return Chain(total).equals(sp.expand(total))

    with pytest.raises(ValueError, match="show another size"):
        Proof.each("claim", N, range(1, 3), law, part="p")
    assert "N = 2" in record_of(Proof.each("claim", N, range(1, 3), law, part="p", shown=2))["statement"]


def test_what_checks_itself_is_no_statement() -> None:
    class Own:
        latex, expressions, links, trivial = "1 = 2", (N,), (), False

        def check(self, at_least: Any = None) -> None: ...

    own: Any = Own()
    for make in (
        lambda: Proof.of("claim", own, part="p"),
        lambda: Proof.each("claim", N, range(1, 3), lambda size: own, part="p"),
        lambda: Control.of("claim", own, part="p", twin="t"),
    ):
        with pytest.raises((TypeError, TypeCheckError)):
            make()


@pytest.mark.parametrize("made", [{}, {"made": None}, {"made": object()}], ids=["no token", "None", "another token"])
def test_a_record_cannot_be_stated(made: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="made by a method"):
        Certificate(claim="claim", part="p", statement="P = NP", method="oracle", cases=1, sizes="all", **made)
    with pytest.raises((TypeError, ValueError)):
        replace(Proof.of("claim", GOOD, part="p"), statement="P = NP")


def test_over_the_reals_the_hypotheses_show() -> None:
    record = record_of(Proof.over_reals("claim", [x > t], x + a > 0, part="p"))
    assert record["method"] == "z3"
    assert record["hypotheses"] == ["x > t", "a > 0", r"t \ge 0"]
    assert (record["sizes"], record["samples"]) == ("no size enters", 0)
    with pytest.raises(ShownFalse):
        Proof.over_reals("claim", [x > 0], x > a, part="p")
    with pytest.raises(NotShown):
        Proof.over_reals("claim", [x > 0, x < 0], x > a, part="p")
    with pytest.raises(ValueError, match="states nothing"):
        Proof.over_reals("claim", [], a > 0, part="p")


# --- certificates -------------------------------------------------------------------------------------------------


def test_intervals_prove_inequalities_only() -> None:
    good = Chain(sp.exp(-a)).below(1 / (1 + a))
    record = record_of(Certificate.by_intervals("claim", good, [{a: 1}, {a: "1/3"}], part="p"))
    assert (record["cases"], record["all_sizes"], record["method"]) == (2, False, "interval arithmetic")
    with pytest.raises(ShownFalse):
        Certificate.by_intervals("claim", Chain(1 / (1 + a)).below(sp.exp(-a)), [{a: 1}], part="p")
    for undecided in (
        Chain(sp.log(a)).equals(sp.Integer(0)),
        Chain(sp.Mul(sp.exp(a), sp.exp(-a), evaluate=False)).at_most(a),  # 1 ≤ 1: the intervals overlap
        Chain(1 / (a - 1)).below(sp.Integer(3)),
    ):
        with pytest.raises(NotShown):
            Certificate.by_intervals("claim", undecided, [{a: 1}], part="p")
    with pytest.raises(ValueError, match="no point"):
        Certificate.by_intervals("claim", good, [], part="p")
    with pytest.raises(ValueError, match="no value is given"):
        Certificate.by_intervals("claim", good, [{x: 1}], part="p")
    with pytest.raises(ValueError, match="against the assumptions"):
        Certificate.by_intervals("claim", good, [{a: 0}], part="p")


def test_intervals_say_at_which_sizes() -> None:
    chain = Chain(sp.Sum(1 / k**2, (k, 1, N))).below(sp.Integer(2))
    assert (
        record_of(Certificate.by_intervals("claim", chain, [{N: 3}, {N: 20}, {N: 3}], part="p"))["sizes"]
        == "sizes 3, 20"
    )
    idle = Certificate.by_intervals("claim", Chain(x).below(x + 1), [{x: 1, N: 100}], part="p")
    assert record_of(idle)["sizes"] == "no size enters"


def test_exhaustion_needs_every_case() -> None:
    def cases(outcomes: list[Any]) -> list[tuple[dict[str, str], Any]]:
        return [({"case": str(number)}, outcome) for number, outcome in enumerate(outcomes)]

    record = record_of(Certificate.by_exhaustion("claim", cases([True] * 6), part="p", sizes="N ≤ 3", statement="s"))
    assert (record["cases"], record["method"], record["sizes"]) == (6, "exhaustion", "N ≤ 3")
    with pytest.raises(ShownFalse) as refuted:
        Certificate.by_exhaustion("claim", cases([True, False, True]), part="p", sizes="N ≤ 3", statement="s")
    assert refuted.value.instance == {"case": "1"}
    for no_answer in (None, 1, torch.tensor(True), "yes"):
        with pytest.raises((TypeError, TypeCheckError)):
            Certificate.by_exhaustion("claim", cases([no_answer]), part="p", sizes="", statement="s")
    with pytest.raises(ValueError, match="no case"):
        Certificate.by_exhaustion("claim", [], part="p", sizes="", statement="s")


# --- measurements -------------------------------------------------------------------------------------------------


def test_a_measurement_keeps_its_bound() -> None:
    errors = torch.tensor([[0.0, 1e-3], [2e-3, 1.2345e-3]])
    evidence = Measurement.within("claim", errors, torch.tensor([2e-3, 4e-3]), part="p")
    data, metadata = evidence._repr_mimebundle_()
    assert data[MIME]["instances"] == 4
    assert data[MIME]["dtype"] == "float32"
    assert data[MIME]["largest_bound"] == "4.0e-03"
    assert metadata[MIME] == {"worst_error": 2.0e-3, "worst_ratio": 1.0}
    assert "worst_error" not in json.dumps(data)  # what may differ in the last digit is no data


@pytest.mark.parametrize(
    ("errors", "bounds", "error", "words"),
    [
        ([1.0, 3.0], 2.0, ShownFalse, "exceeds"),
        ([1.0, math.nan], 2.0, ShownFalse, "exceeds"),
        ([1.0, math.inf], 2.0, ShownFalse, "exceeds"),
        ([1e-30], 0.0, ShownFalse, "exceeds"),
        ([1.0], math.inf, ValueError, "not finite"),
        ([1.0], math.nan, ValueError, "not finite"),
        ([], 1.0, ValueError, "no instance"),
        ([-5.0], 1.0, ValueError, "negative"),
    ],
)
def test_a_measurement_that_shows_nothing_is_refused(
    errors: list[float], bounds: float, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Measurement.within("claim", torch.tensor(errors, dtype=torch.float64), bounds, part="p")


def test_errors_below_their_own_bounds_only() -> None:
    Measurement.within("claim", torch.tensor([1.0, 10.0]), torch.tensor([1.0, 10.0]), part="p")
    with pytest.raises(ShownFalse) as refuted:
        Measurement.within("claim", torch.tensor([1.0, 9.0]), torch.tensor([10.0, 1.0]), part="p")
    assert refuted.value.instance["instance"] == "(1,)"


def test_volatile_figures_have_two_digits() -> None:
    evidence = Measurement.within("claim", torch.tensor([math.pi * 1e-7]), 1e-6, part="p")
    assert dict(evidence.volatile) == {"worst_error": 3.1e-7, "worst_ratio": 0.31}


# --- exhibits and controls ----------------------------------------------------------------------------------------


def test_an_exhibit_holds_where_it_says() -> None:
    chain = Chain(x).below(x**2)
    record = record_of(Exhibit.at("claim", chain, {x: 2}, part="p", refutes="x² ≤ x"))
    assert record["instance"] == {"x": "2"}
    assert record["refutes"] == "x² ≤ x"
    with pytest.raises(ShownFalse):
        Exhibit.at("claim", chain, {x: "1/2"}, part="p")
    with pytest.raises(ShownFalse):
        Exhibit.at("claim", chain, {x: 1}, part="p")  # 1 < 1
    with pytest.raises(NotShown):
        Exhibit.at("claim", Chain(1 / x).below(x + 5), {x: 0}, part="p")  # no value
    with pytest.raises(ValueError, match="no value is given for x"):
        Exhibit.at("claim", chain, {}, part="p")
    with pytest.raises(ValueError, match="against the assumptions"):
        Exhibit.at("claim", Chain(t).below(t + N), {t: -1, N: 1}, part="p")
    with pytest.raises(ValueError, match="finite"):
        Exhibit.at("claim", chain, {x: math.nan}, part="p")


def test_a_failure_is_exhibited_with_its_numbers() -> None:
    evidence = Exhibit.of_failure("claim", lambda: FALSE.check(), part="p", refutes="half of N")
    assert record_of(evidence)["instance"]
    for check in (lambda: GOOD.check(), lambda: OPEN.check()):
        with pytest.raises(AssertionError):
            Exhibit.of_failure("claim", check, part="p", refutes="…")


def test_a_control_needs_a_refutation() -> None:
    record = record_of(Control.rejects("claim", lambda: Proof.of("claim", FALSE, part="p"), twin="half", part="p"))
    assert record["twin"] == "half"
    assert set(record["instance"]) >= {"N", "gamma"}
    with pytest.raises(AssertionError, match="accepts"):
        Control.rejects("claim", lambda: Proof.of("claim", GOOD, part="p"), twin="none", part="p")
    with pytest.raises(AssertionError, match="only fails to decide"):
        Control.rejects("claim", lambda: Proof.of("claim", OPEN, part="p"), twin="none", part="p")


def test_a_control_keeps_the_broken_statement() -> None:
    control = Control.of("claim", FALSE, part="p", twin="half")
    assert record_of(control)["statement"] == FALSE.latex
    box = control._repr_mimebundle_()[0]["text/html"]
    assert box.index("rejected: half") < box.index("evidence-statement")
    control = Control.over_reals("claim", [x > t, y < t], x > a, part="p", twin="a")
    assert record_of(control)["statement"] == r"x > t, y < t \implies x > a"
    assert record_of(Control.over_reals("claim", [], x**2 >= x, part="p", twin="a"))["statement"] == r"x^{2} \geq x"


def test_a_long_implication_has_each_formula_on_a_line_of_its_own() -> None:
    hypotheses = [x > t, y < sum([sp.Symbol(f"long_{n}", positive=True) for n in range(20)])]
    shown = record_of(Control.over_reals("claim", hypotheses, x > a, part="p", twin="a"))["statement"]
    first, second, third = shown.removeprefix(r"\begin{gathered} ").removesuffix(r" \end{gathered}").split(r" \\ ")
    assert (first, third) == ("x > t,", r"\implies x > a")
    assert second.startswith("y < ")


@pytest.mark.parametrize("error", [ValueError, TypeError, ZeroDivisionError, AssertionError, KeyError])
def test_a_broken_check_is_no_refutation(error: type[Exception]) -> None:
    def broken() -> None:
        raise error("broken")

    with pytest.raises(error, match="broken"):
        Control.rejects("claim", broken, twin="none", part="p")
    with pytest.raises(error, match="broken"):
        Exhibit.of_failure("claim", broken, part="p", refutes="…")


# --- the output of a cell -----------------------------------------------------------------------------------------


def every_kind() -> list[Evidence]:
    return [
        Proof.of("claim", GOOD, part="p"),
        Proof.over_reals("claim", [x > t, x * y < a], x + a > 0, part="p"),
        Certificate.by_intervals("claim", Chain(sp.exp(-a)).below(1 / (1 + a)), [{a: 1}], part="p"),
        Measurement.within("claim", torch.tensor([1e-3]), 1.0, part="p"),
        Exhibit.at("claim", Chain(x * y).below(x + y), {x: 1, y: "1/3"}, part="p"),
        Control.rejects("claim", lambda: FALSE.check(), twin="<b>half</b>", part="p"),
        Control.rejects("claim", lambda: Proof.over_reals("c", [x > t], x * y > a + t, part="p"), twin="z3", part="p"),
    ]


def test_the_output_is_what_the_ledger_reads() -> None:
    for evidence in every_kind():
        data, metadata = evidence._repr_mimebundle_()
        assert set(data) == {"text/plain", "text/html", MIME}
        assert json.loads(json.dumps(data[MIME])) == data[MIME]
        assert data[MIME]["kind"] == type(evidence).__name__.lower() == evidence.kind
        assert {"claim", "part", "statement"} <= set(data[MIME])
        assert json.loads(json.dumps(metadata)) == metadata
        assert f'class="evidence {evidence.kind}"' in data["text/html"]
        assert "<b>half</b>" not in data["text/html"]  # text is escaped
        assert data["text/plain"]


SCRIPT = "import json, test_evidence as t; print(json.dumps([e._repr_mimebundle_()[0] for e in t.every_kind()]))"


def test_the_data_is_the_same_in_every_process() -> None:
    """Hash seeds change the order of sets, which must not reach a witness, a model of z3 or a statement."""
    outputs = []
    for seed in ("0", "42"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            cwd=Path(__file__).parent,
        )
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
