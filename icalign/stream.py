"""The residual stream: named rows, stacked in the order they are given."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from .forms import Form, Size, Token, same_size


class Stream:
    r"""Named rows of a token, e.g. ``Stream(x=d_x, y=d_y, r=1, one=1)`` for the column [x; y; r; 1].

    Args:
        rows: the size of each row, a positive integer or a sympy expression; the order is the order
            in the stream.

    Raises:
        ValueError: no row, a name that starts with an underscore, or a size that is not positive.
    """

    def __init__(self, **rows: Size) -> None:
        if not rows:
            raise ValueError("a stream needs at least one row")
        for name, size in rows.items():
            if name.startswith("_"):
                raise ValueError(f"row {name!r}: a name must not start with an underscore")
            if sp.sympify(size).is_positive is False or sp.sympify(size).is_integer is False:
                raise ValueError(f"row {name!r}: size {size}, expected a positive integer")
        self.rows: dict[str, sp.Expr] = {name: sp.sympify(size) for name, size in rows.items()}

    @property
    def tokens(self) -> tuple[Token, Token]:
        """The token i that asks and the token j that answers."""
        return Token(self.rows, "i"), Token(self.rows, "j")

    @property
    def width(self) -> sp.Expr:
        """Sum of the sizes of the rows."""
        return sp.Add(*self.rows.values())

    def at(self, sizes: Mapping[sp.Basic, object]) -> Stream:
        """The stream with symbols in its sizes replaced by numbers."""
        return Stream(**{name: size.subs(sizes) for name, size in self.rows.items()})

    @property
    def slices(self) -> dict[str, slice]:
        """Where each row lies in a token; sizes must be numbers.

        Raises:
            ValueError: a size is still symbolic.
        """
        start, found = 0, {}
        for name, size in self.rows.items():
            if not size.is_Integer:
                raise ValueError(f"row {name!r} has the symbolic size {size}; substitute numbers with Stream.at")
            found[name] = slice(start, start + int(size))
            start += int(size)
        return found

    def check(self, row: str, size: sp.Expr, where: str) -> None:
        """Raise unless the stream has the row with that size.

        Raises:
            ValueError: naming the row, both sizes and ``where``.
        """
        if row not in self.rows:
            raise ValueError(f"{where}: no row {row!r} in the stream ({', '.join(self.rows)})")
        if not same_size(self.rows[row], size):
            raise ValueError(f"{where}: row {row!r} has size {self.rows[row]}, got size {size}")

    def check_form(self, form: Form, where: str) -> None:
        """Raise unless every row that the form reads is a row of this stream.

        Raises:
            ValueError: as :meth:`check`.
        """
        for term in form.terms:
            self.check(term.row, term.matrix.shape[1], where)

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{name}={size}' for name, size in self.rows.items())})"
