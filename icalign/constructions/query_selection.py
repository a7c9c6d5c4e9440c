"""Lemma C.2 for several queries (F.1 in the camera-ready): every token copies the best response to its own query.

``winner`` tells the queries apart by their inner products, as the paper prints it; ``winner_by_id`` by one-hot
identifiers, whatever the queries are.

Claims ``mq-logits`` to ``mq-outcome``.

Rows: x, y, r, 1, in ``identified`` the identifier, and best, which the head fills.
"""

from __future__ import annotations

import sympy as sp

from ..spec import Block, Head
from ..stream import Stream
from ..symbols import M, d_x, d_y

gamma_1, gamma_2 = sp.symbols("gamma_1 gamma_2", nonnegative=True)

stream = Stream(x=d_x, y=d_y, r=1, one=1, best=d_y)
i, j = stream.tokens

winner = Head(
    logit=gamma_1 * i.x @ j.x + gamma_2 * i.one * j.r,
    write={"best": j.y},
)

block = Block(heads=(winner,))

identified = Stream(x=d_x, y=d_y, r=1, one=1, id=M, best=d_y)
i, j = identified.tokens

winner_by_id = Head(
    logit=gamma_1 * i.id @ j.id + gamma_2 * i.one * j.r,
    write={"best": j.y},
)

block_by_id = Block(heads=(winner_by_id,))
