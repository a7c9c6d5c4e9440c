"""What a notebook records about a claim. Making a record runs its check; a check that fails raises.

A record shows as a box in the page and stores JSON in the cell's output. What is equal on every machine is *data*
(nbval compares it); what may differ in the last digits is *metadata* (stored, never compared).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import sympy as sp
import torch
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.matrices.expressions.matexpr import MatrixElement
from torch import Tensor

from .calculus import Chain, Limit, NotShown, Point, ShownFalse, implied
from .calculus.chain import SAMPLES

MIME = "application/vnd.icalign.evidence+json"
_CHECKED = object()  # what only this module has: a record is made by the methods that run its check

Statement = Chain | Limit  # what sympy decides


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A record: the claim, the part of it that is covered, and the statement computed from what was checked.

    Raises:
        TypeError: it is made by another call than a method that runs its check, such as :meth:`Proof.of`.
    """

    made: InitVar[object] = None
    claim: str
    part: str
    statement: str
    volatile: Mapping[str, float] = field(default_factory=dict, compare=False)
    kind: ClassVar[str]

    def __post_init__(self, made: object) -> None:
        if made is not _CHECKED:
            raise TypeError(f"a {self.kind} is not stated but made by a method that runs its check")

    def details(self) -> dict[str, Any]:
        """The fields of the kind, as JSON data."""
        return {}

    def facts(self) -> str:
        """The details in one line for a reader."""
        return ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        record = {"kind": self.kind, "claim": self.claim, "part": self.part, "statement": self.statement}
        plain = f"{self.kind} of {self.claim} ({self.part}): {self.facts()}"
        data = {"text/plain": plain, "text/html": self._box(), MIME: record | self.details()}
        return data, {MIME: dict(self.volatile)}

    def _box(self) -> str:
        statement = ""
        if self.statement:
            statement = (
                '<div class="evidence-statement math notranslate nohighlight">'
                f"\\[{html.escape(self.statement)}\\]</div>"
            )
        facts = f'<p class="evidence-facts">{_typeset(self.facts())}</p>'
        return (
            f'<div class="evidence {self.kind}"><p class="evidence-head"><b>{self.kind.capitalize()}</b> '
            f'<a href="#{self.claim}"><code>{self.claim}</code></a> '
            f'<span class="part">{html.escape(self.part)}</span></p>'
            f"{self._body(statement, facts)}</div>"
        )

    def _body(self, statement: str, facts: str) -> str:
        return statement + facts


def _typeset(text: str) -> str:
    r"""Text as HTML, with \(…\) set by MathJax."""
    return re.sub(
        r"\\\(.*?\\\)", lambda m: f'<span class="math notranslate nohighlight">{m[0]}</span>', html.escape(text)
    )


def sizes_of(expressions: Iterable[Any]) -> str:
    """ "all N, d_x" from the size symbols in what was proved; "no size enters" when there is none.

    Sizes are the free integer symbols ≥ 0 in shapes, in bounds of sums or in arithmetic; an index alone is none.
    """
    names = sorted([size.name for size in _sizes(expressions)])
    return f"all {', '.join(names)}" if names else "no size enters"


def _sizes(expressions: Iterable[Any]) -> set[Any]:
    found: set[Any] = set().union(*[_outside(sp.sympify(expression)) for expression in expressions])
    return {symbol for symbol in found if symbol.is_integer and symbol.is_nonnegative}


def _outside(expr: Any) -> set[Any]:
    """The free symbols of an expression that occur outside of indices, those in shapes included."""
    if isinstance(expr, sp.Symbol):
        return {expr}
    if isinstance(expr, sp.Indexed | sp.KroneckerDelta):
        return set()
    if isinstance(expr, MatrixElement):
        return _outside(expr.parent)
    if not isinstance(expr, ExprWithLimits):
        return set().union(*[_outside(argument) for argument in expr.args])
    found = _outside(expr.function)
    for index, *ends in expr.limits:  # the last is the outermost
        found = (found - {index}).union(*[_outside(end) for end in ends])
    return found


def _free(expressions: Iterable[Any]) -> set[Any]:
    """Free symbols, those in shapes of matrices included."""
    found: set[Any] = set()
    for expression in map(sp.sympify, expressions):
        shapes = [size for m in expression.atoms(sp.MatrixSymbol) for size in m.shape]
        found |= expression.free_symbols.union(*[size.free_symbols for size in shapes])
    return found


def hypotheses_of(expressions: Iterable[Any], at_least: Mapping[sp.Symbol, Any]) -> list[str]:
    """The assumptions on the symbols of what was proved, typeset: every Proof holds under these alone."""
    stated = [sp.sympify(expression) for expression in expressions]
    expressions = [*stated, *at_least, *map(sp.sympify, at_least.values())]
    families = {family for expression in expressions for family in expression.atoms(sp.IndexedBase)}
    labels = {family.label for family in families}
    sizes = _sizes(stated)
    free = {s for s in _free(expressions) if s.is_Symbol and s not in labels}
    found = {str(s): _assumption(s, sp.latex(s), size=s in sizes) for s in free}
    found |= {str(family.label): _assumption(family, f"{sp.latex(family.label)}_j") for family in families}
    bounds = [rf"{sp.latex(symbol)} \ge {sp.latex(sp.sympify(least))}" for symbol, least in at_least.items()]
    return bounds + [found[name] for name in sorted(found) if found[name]]


_SIGNS = {"positive": "> 0", "negative": "< 0", "zero": "= 0", "nonnegative": r"\ge 0", "nonpositive": r"\le 0"}
_KINDS = ("even", "odd", "prime", "composite", "irrational")  # assumptions that no sign tells


def _assumption(symbol: Any, name: str, *, size: bool = False) -> str:
    """What sympy takes a symbol to be, typeset; nothing for sizes and for real numbers of any sign."""
    nonzero = r"\ne 0" if symbol.is_zero is False else ""
    sign = next((shown for sign, shown in _SIGNS.items() if getattr(symbol, f"is_{sign}")), nonzero)
    parts = [f"{name} {sign}"] if sign and not size else []
    kinds = [kind for kind in _KINDS if getattr(symbol, f"is_{kind}")]
    parts += [rf"{name}\text{{ {kind}}}" for kind in kinds]
    if not (size or kinds):
        field_ = r"\in \mathbb{Z}" if symbol.is_integer else r"\in \mathbb{Q}" if symbol.is_rational else ""
        parts += [f"{name} {kept}" for kept in (field_, r"\notin \mathbb{Z}" * (symbol.is_integer is False)) if kept]
    return r",\ ".join(parts)


def _refuse_other(statement: object) -> None:
    """Raise a TypeError for an object that would check itself."""
    if type(statement) not in (Chain, Limit):
        raise TypeError(f"a Chain or a Limit is expected, got {type(statement).__name__}")


@dataclass(frozen=True, kw_only=True)
class Proof(Evidence):
    """A statement decided by machine: rewriting in sympy, or z3 over the reals."""

    sizes: str
    all_sizes: bool
    hypotheses: Sequence[str]
    method: str
    samples: int
    kind: ClassVar[str] = "proof"

    def details(self) -> dict[str, Any]:
        """sizes, all_sizes, hypotheses, method, samples."""
        return {
            "sizes": self.sizes,
            "all_sizes": self.all_sizes,
            "hypotheses": list(self.hypotheses),
            "method": self.method,
            "samples": self.samples,
        }

    def facts(self) -> str:
        """Sizes, hypotheses and how it was decided."""
        under = f" · under \\({', '.join(self.hypotheses)}\\)" if self.hypotheses else ""
        tried = f" · {self.samples} random points do not refute it" if self.samples else ""
        return f"{self.sizes}{under} · decided by {self.method}{tried}"

    @classmethod
    def of(
        cls, claim: str, statement: Statement, *, part: str, at_least: Mapping[sp.Symbol, Any] | None = None
    ) -> Proof:
        """Prove a calculation or a limit.

        Raises:
            ShownFalse: numbers refute it.
            NotShown: it could not be decided.
            TypeError: it is neither a Chain nor a Limit.
        """
        _refuse_other(statement)
        statement.check(at_least)
        sizes = sizes_of(statement.expressions)
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement=statement.latex,
            sizes=sizes,
            all_sizes=sizes.startswith("all "),
            hypotheses=hypotheses_of(statement.expressions, at_least or {}),
            method="sympy",
            samples=SAMPLES,
        )

    @classmethod
    def each(
        cls,
        claim: str,
        size: sp.Symbol,
        values: range,
        statement: Callable[[int], Chain],
        *,
        part: str,
        shown: int | None = None,
    ) -> Proof:
        """Prove a family of statements, one for each value of a size; the record says which sizes.

        What it shows is the statement for one value, ``shown`` or the first; the hypotheses are those of all.

        Raises:
            ShownFalse, NotShown: as :meth:`of`, for the first value that fails.
            ValueError: no value, or sympy has computed one side of the shown statement into the other.
        """
        chains = [statement(value) for value in values]
        for chain in chains:
            _refuse_other(chain)
        if not chains:
            raise ValueError(f"{claim}: no size to prove")
        if values.step != 1:
            raise ValueError(f"{claim}: {values}, expected consecutive sizes")
        if len({str(chain.expressions) for chain in chains}) < len(chains):
            raise ValueError(f"{claim}: the statement is the same for several sizes, so it is not about {size}")
        if all([chain.trivial for chain in chains]):
            raise ValueError(f"{claim}: both sides are written alike at every size: this states nothing")
        for chain in chains:
            if not chain.trivial:  # at the smallest size sympy may have computed one side into the other
                chain.check()
        shown = values[0] if shown is None else shown
        chain = chains[values.index(shown)]
        if chain.trivial:
            raise ValueError(f"{claim}: at {size} = {shown} both sides are written alike; show another size")
        span = f"{values[0]}" if len(values) == 1 else f"{values[0]}, …, {values[-1]}"
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement=chain.latex if len(values) == 1 else rf"{sp.latex(size)} = {shown}:\quad {chain.latex}",
            sizes=f"{size.name} = {span}",
            all_sizes=False,
            hypotheses=hypotheses_of([expression for chain in chains for expression in chain.expressions], {}),
            method="sympy",
            samples=SAMPLES * len(chains),
        )

    @classmethod
    def over_reals(cls, claim: str, hypotheses: Sequence[Any], conclusion: Any, *, part: str) -> Proof:
        """Prove that polynomial or piecewise linear hypotheses imply a conclusion, for all real numbers, by z3.

        Raises:
            ShownFalse: with z3's counterexample.
            NotShown: z3 does not know, or the hypotheses are not known to be satisfiable.
        """
        implied(hypotheses, conclusion)
        formulas = [*hypotheses, conclusion]
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement=str(sp.latex(conclusion)),
            sizes=sizes_of(formulas),
            all_sizes=sizes_of(formulas).startswith("all "),
            hypotheses=[str(sp.latex(h)) for h in hypotheses] + hypotheses_of(formulas, {}),
            method="z3",
            samples=0,
        )


@dataclass(frozen=True, kw_only=True)
class Certificate(Evidence):
    """Finitely many cases, each decided in exact or interval arithmetic."""

    method: str
    cases: int
    sizes: str
    kind: ClassVar[str] = "certificate"

    def details(self) -> dict[str, Any]:
        """method, cases, sizes."""
        return {"method": self.method, "cases": self.cases, "sizes": self.sizes, "all_sizes": False}

    def facts(self) -> str:
        """How many cases, and how they were decided."""
        return f"{self.sizes} · {self.cases} cases · by {self.method}"

    @classmethod
    def by_intervals(cls, claim: str, chain: Chain, points: Sequence[Mapping[Any, Any]], *, part: str) -> Certificate:
        """Decide the inequalities of a chain at exact points in interval arithmetic; an equality cannot be.

        Raises:
            ShownFalse: the intervals exclude an inequality at a point.
            NotShown: they overlap, or the chain has an equality.
            ValueError: no point.
        """
        if not points:
            raise ValueError(f"{claim}: no point to check")
        for values in points:
            chain.certify(Point(values))
        entering = {symbol for symbol in _free(chain.expressions) if symbol.is_integer}
        whole = [value for values in points for key, value in values.items() if key in entering]
        sizes = [str(value) for value in sorted(set(map(int, whole)))]
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement=chain.latex,
            method="interval arithmetic",
            cases=len(points),
            sizes=f"sizes {', '.join(sizes)}" if sizes else "no size enters",
        )

    @classmethod
    def by_exhaustion(
        cls, claim: str, cases: Iterable[tuple[Mapping[str, str], bool]], *, part: str, sizes: str, statement: str
    ) -> Certificate:
        """Finitely many cases, each (its name, whether the statement holds there), decided by the caller exactly.

        Raises:
            ShownFalse: a case fails; the case is the instance.
            TypeError: a case is neither True nor False.
            ValueError: no case.
        """
        count = 0
        for instance, holds in cases:
            if not isinstance(holds, bool):
                raise TypeError(f"{claim}: {holds!r} at {instance}, expected True or False")
            if not holds:
                raise ShownFalse(f"{claim}: a case fails", instance)
            count += 1
        if count == 0:
            raise ValueError(f"{claim}: no case to check")
        return cls(
            made=_CHECKED, claim=claim, part=part, statement=statement, method="exhaustion", cases=count, sizes=sizes
        )


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")


@dataclass(frozen=True, kw_only=True)
class Measurement(Evidence):
    """torch on seeded random instances: every error within its bound."""

    instances: int
    dtype: str
    largest_bound: str
    kind: ClassVar[str] = "measurement"

    def details(self) -> dict[str, Any]:
        """instances, dtype, largest_bound."""
        return {"instances": self.instances, "dtype": self.dtype, "largest_bound": self.largest_bound}

    def facts(self) -> str:
        """How many instances, and the bound they keep."""
        kept = f"every error within its bound; largest bound {self.largest_bound}"
        return f"{self.instances} instances in {self.dtype}, {kept}"

    @classmethod
    def within(
        cls, claim: str, errors: Tensor, bounds: Tensor | float, *, part: str, dtype: torch.dtype | str | None = None
    ) -> Measurement:
        """Check errors ≤ bounds, entry by entry.

        Args:
            claim: the claim's id.
            errors: one error for each instance, ≥ 0.
            bounds: the bound of each, or one for all.
            part: the part of the claim.
            dtype: of the computation (or their names), when the errors are kept in another.

        Raises:
            ShownFalse: an error above its bound or NaN, with its place.
            ValueError: no error at all, a negative one, or a bound that is not finite.
        """
        bounds = torch.as_tensor(bounds, dtype=torch.float64).expand(errors.shape)
        if errors.numel() == 0:
            raise ValueError(f"{claim}: no instance was measured")
        if not bool(bounds.isfinite().all()):
            raise ValueError(f"{claim}: a bound is not finite, so no error could exceed it")
        if bool((errors < 0).any()):
            raise ValueError(f"{claim}: an error is negative ({errors.min().item():.1e}); take absolute values")
        bad = ~(errors.double() <= bounds)  # NaN is bad too
        if bool(bad.any()):
            place = tuple(bad.nonzero()[0].tolist())
            instance = {"instance": str(place), "error": f"{errors[place]:.1e}", "bound": f"{bounds[place]:.1e}"}
            raise ShownFalse(f"{claim}: an error exceeds its bound", instance)
        ratio = (errors.double() / bounds.clamp(min=torch.finfo(torch.float64).tiny)).max().item()
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement="",
            instances=errors.numel(),
            dtype=str(dtype or errors.dtype).removeprefix("torch."),
            largest_bound=f"{bounds.max().item():.1e}",
            volatile={"worst_error": _two_digits(errors.max().item()), "worst_ratio": _two_digits(ratio)},
        )


_SHOWN = 8  # numbers of an instance that the box shows; the record holds all


def _readable(instance: Mapping[str, str]) -> str:
    """An instance in a line, its symbols as mathematics; of a large one the first numbers."""
    numbers = [_number(name, value) for name, value in instance.items()]
    left = len(numbers) - _SHOWN
    return ", ".join(numbers[:_SHOWN]) + (f" and {left} more number{'s' * (left > 1)}" if left > 0 else "")


def _number(name: str, value: str) -> str:
    """``gamma`` and ``x[0,1]`` as mathematics, a word such as ``error`` as it is."""
    symbol, _, indices = name.partition("[")
    latex = symbol if "\\" in symbol else str(sp.latex(sp.Symbol(symbol)))
    if latex == symbol and symbol.isalpha() and len(symbol) > 1:
        return f"{name} = {value}"
    return rf"\({{{latex}}}_{{{indices.rstrip(']')}}} = {value}\)" if indices else rf"\({latex} = {value}\)"


@dataclass(frozen=True, kw_only=True)
class Exhibit(Evidence):
    """One instance that settles an existence statement, or refutes a universal one."""

    refutes: str
    instance: Mapping[str, str]
    kind: ClassVar[str] = "exhibit"

    def details(self) -> dict[str, Any]:
        """refutes, instance."""
        return {"refutes": self.refutes, "instance": dict(self.instance)}

    def facts(self) -> str:
        """The instance, and what it refutes."""
        return f"at {_readable(self.instance)}" + (f" · refutes: {self.refutes}" if self.refutes else "")

    @classmethod
    def at(cls, claim: str, chain: Chain, values: Mapping[Any, Any], *, part: str, refutes: str = "") -> Exhibit:
        """An instance at which a chain holds, evaluated at exact numbers in 120 digits.

        Raises:
            ShownFalse: it does not hold there.
        """
        point = Point(values)
        chain.evaluate(point)
        return cls(
            made=_CHECKED, claim=claim, part=part, statement=chain.latex, instance=point.instance, refutes=refutes
        )

    @classmethod
    def of_failure(cls, claim: str, check: Callable[[], object], *, part: str, refutes: str) -> Exhibit:
        """The instance with which a check refutes the statement that the record names.

        Raises:
            AssertionError: the check passes, or only fails to decide.
        """
        return cls(
            made=_CHECKED,
            claim=claim,
            part=part,
            statement="",
            instance=_refutation(claim, check, refutes),
            refutes=refutes,
        )


def _refutation(claim: str, check: Callable[[], object], what: str) -> Mapping[str, str]:
    """The instance by which the check refutes; anything else than ShownFalse is not a refutation."""
    try:
        check()
    except ShownFalse as refuted:
        return refuted.instance
    except NotShown as undecided:
        raise AssertionError(f"{claim}: the check does not refute this, it only fails to decide: {what}") from undecided
    raise AssertionError(f"{claim}: the check accepts this: {what}")


_LONG = 180  # characters of LaTeX that fit on a line of the page


def _implication(hypotheses: Sequence[str], conclusion: str) -> str:
    """Hypotheses ⟹ conclusion, on one line or, if that is long, each formula on a line of its own."""
    one_line = rf"{', '.join(hypotheses)} \implies {conclusion}" if hypotheses else conclusion
    if not hypotheses or len(one_line) <= _LONG:
        return one_line
    rows = ", \\\\ ".join(hypotheses)
    return rf"\begin{{gathered}} {rows} \\ \implies {conclusion} \end{{gathered}}"


@dataclass(frozen=True, kw_only=True)
class Control(Evidence):
    """A deliberately broken twin that the same check rejects, with the instance that refutes it."""

    twin: str
    instance: Mapping[str, str]
    kind: ClassVar[str] = "control"

    def details(self) -> dict[str, Any]:
        """twin, instance."""
        return {"twin": self.twin, "instance": dict(self.instance)}

    def facts(self) -> str:
        """The twin and what refutes it."""
        return f"rejected: {self.twin} · refuted at {_readable(self.instance)}"

    def _body(self, statement: str, facts: str) -> str:
        return facts + statement  # under the word that it is rejected

    @classmethod
    def rejects(cls, claim: str, check: Callable[[], object], *, twin: str, part: str) -> Control:
        """Run the check on the twin; it must raise ShownFalse.

        Raises:
            AssertionError: the check accepts the twin, or could not decide it ("not shown" is no rejection).
        """
        return cls._of(claim, "", check, twin, part)

    @classmethod
    def _of(cls, claim: str, statement: str, check: Callable[[], object], twin: str, part: str) -> Control:
        instance = _refutation(claim, check, twin)
        return cls(made=_CHECKED, claim=claim, part=part, statement=statement, twin=twin, instance=instance)

    @classmethod
    def of(
        cls,
        claim: str,
        statement: Statement,
        *,
        part: str,
        twin: str,
        at_least: Mapping[sp.Symbol, Any] | None = None,
    ) -> Control:
        """Give a broken statement, which the record keeps, to :meth:`Proof.of`; raises as :meth:`rejects`."""
        _refuse_other(statement)
        shown = statement.latex
        return cls._of(claim, shown, lambda: Proof.of(claim, statement, part=part, at_least=at_least), twin, part)

    @classmethod
    def over_reals(cls, claim: str, hypotheses: Sequence[Any], conclusion: Any, *, part: str, twin: str) -> Control:
        """Give broken hypotheses or a broken conclusion to :meth:`Proof.over_reals`; raises as :meth:`rejects`."""
        shown = _implication([str(sp.latex(h)) for h in hypotheses], str(sp.latex(conclusion)))
        return cls._of(claim, shown, lambda: Proof.over_reals(claim, hypotheses, conclusion, part=part), twin, part)

    @classmethod
    def within(cls, claim: str, errors: Tensor, bounds: Tensor | float, *, part: str, twin: str) -> Control:
        """Give the errors of a broken twin to :meth:`Measurement.within`; raises as :meth:`rejects`."""
        return cls.rejects(claim, lambda: Measurement.within(claim, errors, bounds, part=part), twin=twin, part=part)
