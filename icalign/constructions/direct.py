"""Direct preference optimisation (DPO) in context: the field is weighed by implicit rewards, with no row of squares.

A Gaussian policy N(Wx, I/2) and a reference N(W_ref x, I/2) make the implicit reward β log(π/π_ref) bilinear in x and
y, so the head needs neither the row sq nor a layer that computes squares. The block is otherwise that of
``elimination``, with the step size ηβ; ``pair`` has two heads and no feed-forward layer, for two responses.

Claim ``dpo-needs-no-square``.

Rows: x, y, r, 1, flag, top and u.
"""

from __future__ import annotations

import sympy as sp

from ..spec import Block, Head
from ..stream import Stream
from ..symbols import W, d_x, d_y, eta
from . import elimination
from .elimination import C

beta = sp.Symbol("beta", positive=True)
W_ref = sp.MatrixSymbol("W_ref", d_y, d_x)

stream = Stream(x=d_x, y=d_y, r=1, one=1, flag=1, top=1, u=d_y)
i, j = stream.tokens

winner = Head(
    logit=elimination.winner.logit,
    write={"u": 2 * eta * beta * j.y, "top": j.r},
)

field = Head(
    logit=2 * beta * (W - W_ref) @ i.x @ j.y - C * i.one * j.flag,
    write={"u": -2 * eta * beta * j.y},
)

block = Block(heads=(winner, field), feed_forward=elimination.eliminate)

pair = Block(heads=(winner, field))
