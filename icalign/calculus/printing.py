"""LaTeX for readers: block matrices with dots for zero, identities and matrices of ones with their sizes."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter


class _Printer(LatexPrinter):  # type: ignore[misc]  # sympy comes without types
    def _print_Identity(self, expr: Any) -> str:
        return "1" if expr.shape[0] == 1 else f"I_{{{self._print(expr.shape[0])}}}"

    def _print_OneMatrix(self, expr: Any) -> str:
        rows, columns = expr.shape
        if rows == columns == 1:
            return "1"
        if columns == 1:
            return rf"\mathbf{{1}}_{{{self._print(rows)}}}"
        if rows == 1:
            return rf"\mathbf{{1}}_{{{self._print(columns)}}}^{{\top}}"
        return rf"\mathbf{{1}}_{{{self._print(rows)} \times {self._print(columns)}}}"

    def _print_ZeroMatrix(self, expr: Any) -> str:
        return "0"

    def _print_FunctionMatrix(self, expr: Any) -> str:
        """The formula of the entries, e.g. [k + 1] for k = 0, …, N − 1 in a column."""
        (row, column), formula = expr.lamda.variables, expr.lamda.expr
        ranges = [(row, expr.rows)] if expr.cols == 1 else [(row, expr.rows), (column, expr.cols)]
        under = ", ".join([f"{self._print(index)} < {self._print(size)}" for index, size in ranges])
        return rf"\left[{self._print(formula)}\right]_{{{under}}}"

    def _print_DiagMatrix(self, expr: Any) -> str:
        return rf"\operatorname{{diag}}{self._print(expr.args[0])}"

    def _print_BlockMatrix(self, expr: Any) -> str:
        height, width = expr.blockshape
        rows = [" & ".join([self.cell(expr.blocks[a, b]) for b in range(width)]) for a in range(height)]
        return r"\begin{bmatrix} " + r" \\ ".join(rows) + r" \end{bmatrix}"

    def _print_Transpose(self, expr: Any) -> str:
        inner = self._print(expr.arg)
        simple = isinstance(expr.arg, sp.MatrixSymbol | sp.BlockMatrix)
        return rf"{inner}^{{\top}}" if simple else rf"\left({inner}\right)^{{\top}}"

    def cell(self, block: Any) -> str:
        """A block inside a matrix: a dot for zero, the coefficient alone for a multiple of a 1×1 identity."""
        if isinstance(block, sp.ZeroMatrix):
            return r"\cdot"
        factor, rest = block.as_coeff_mmul()
        if rest.doit() == sp.Identity(1) and factor != 1:
            return str(self._print(factor))
        return str(self._print(block))


def typeset(expr: Any) -> str:
    """LaTeX of a scalar or matrix expression; variables bound by :func:`~icalign.calculus.pull` show as k, l, …"""
    expr = sp.sympify(expr)
    bound = sorted({s for s in expr.atoms(sp.Symbol) if s.name.startswith("kappa_")}, key=lambda s: s.name)
    taken = {s.name for s in expr.atoms(sp.Symbol)}
    names = [name for name in ("k", "l", "m", "n", "k'", "l'", "m'", "n'", "k''", "l''") if name not in taken]
    readable = expr.xreplace({old: sp.Symbol(new, integer=True) for old, new in zip(bound, names, strict=False)})
    return str(_Printer().doprint(readable))


class Shown:
    """LaTeX that shows itself as the output of a cell."""

    def __init__(self, latex: str) -> None:
        self.latex = latex

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex} $$"

    def __repr__(self) -> str:
        return self.latex


def show(**named: Any) -> Shown:
    """Named expressions as equations name = expression, for the output of a cell: ``show(W_Q=…, W_K=…)``."""
    equations = [rf"{name} &= {typeset(expr)}" for name, expr in named.items()]
    return Shown(rf"\begin{{aligned}} {(chr(92) * 2).join(equations)} \end{{aligned}}")


def show_blocks(
    matrix: sp.BlockMatrix, name: str = "", *, rows: list[str] | None = None, columns: list[str] | None = None
) -> Shown:
    """A block matrix with the names of its block rows and columns around it (``bordermatrix`` is not in MathJax)."""

    def names(texts: list[str]) -> list[str]:
        return [rf"{{\scriptstyle\mathtt{{{text.replace('_', '-')}}}}}" for text in texts]

    height, width = matrix.blockshape
    cells = [[_Printer().cell(matrix.blocks[a, b]) for b in range(width)] for a in range(height)]
    if rows:
        cells = [[name, *line] for name, line in zip(names(rows), cells, strict=True)]
    body = r" \\ ".join([" & ".join(line) for line in cells])
    if columns:
        head = " & ".join(([""] if rows else []) + names(columns))
        body = rf"{head} \\ \hline {body}"
    shape = ("r|" if rows else "") + "c" * width
    equals = f"{name} = " if name else ""
    return Shown(rf"{equals}\begin{{array}}{{{shape}}} {body} \end{{array}}")
