"""One block of Theorem 3.3: select the winner, weigh the field, eliminate the winner (E.6 and E.7 in the camera-ready).

``block`` eliminates with a clipped step on a row of flags: one set of weights for a whole class of inputs.
``printed_block`` does it as the paper prints it, with a weight ε that is read off the input.

Claims ``elimination-printed``, ``elimination-step``, ``elimination-needs-gap``, ``two-heads-suffice``,
``partial-sums``, ``each-part-needed``.

Rows: x, y, sq = ‖y‖², r, 1, flag (eliminated?), top (filled with r⁺ and emptied again) and u (what has been added up).
"""

from __future__ import annotations

import sympy as sp
from sympy.matrices.expressions.special import OneMatrix

from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbols import Delta, W, d_x, d_y, eta, gamma

R, B, C = sp.symbols("R B C", nonnegative=True)
epsilon = sp.Symbol("epsilon", positive=True)

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1, flag=1, top=1, u=d_y)
i, j = stream.tokens

winner = Head(
    logit=gamma * i.one * (j.r - 2 * (R + Delta) * j.flag),
    write={"u": 2 * eta * j.y, "top": j.r},
)

field = Head(
    logit=2 * W @ i.x @ j.y - i.one * (j.sq + C * j.flag),
    write={"u": -2 * eta * j.y},
)

z = sp.Rational(3, 2) - (i.top - i.r) / (Delta / 2) - B * i.flag
eliminate = FeedForward(
    write={
        "flag": relu(z) - relu(z - 1),
        "top": relu(-i.top) - relu(i.top),
    }
)

block = Block(heads=(winner, field), feed_forward=eliminate)


# As printed: the rows [x; y; r; copy of y] of E.6, with a row of ones; the β head, which writes 2ημ into y, left out
printed_stream = Stream(x=d_x, y=d_y, r=1, one=1, copy=d_y)
_i, _j = printed_stream.tokens

printed_winner = Head(logit=gamma * _i.one * _j.r, write={"y": -2 * eta * _j.copy})

printed_fetch = Head(logit=gamma * _i.one * _j.r, write={"r": -_j.r})  # r becomes r − r⁺

printed_eliminate = FeedForward(
    write={
        "r": -gamma / epsilon * relu(_i.r),
        "copy": -gamma / epsilon * OneMatrix(d_y, 1) @ relu(_i.r),
    }
)

printed_block = Block(heads=(printed_winner, printed_fetch), feed_forward=printed_eliminate)
