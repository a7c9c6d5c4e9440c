"""Theorem 3.2: on two responses, two heads and no feed-forward layer make one gradient step on the Bradley–Terry loss.

Rows: x, y, sq = ‖y‖², r and 1. Both heads write into y: e becomes e + (0, −ΔW x, 0).

Claim ``bt-two-heads``.
"""

from __future__ import annotations

from ..spec import Block, Head
from ..stream import Stream
from ..symbols import W, d_x, d_y, eta, gamma

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1)
i, j = stream.tokens

winner = Head(logit=gamma * i.one * j.r, write={"y": -2 * eta * j.y})  # −2η y_τ(1)

field = Head(logit=2 * W @ i.x @ j.y - i.one * j.sq, write={"y": 2 * eta * j.y})  # +2η μ₁

block = Block(heads=(winner, field))
