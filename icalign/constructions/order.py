"""The order of a prompt: which query each of its tokens belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

Order: TypeAlias = Sequence[int] | Tensor


def standing(order: Order | None, queries: int, responses: int, batch: tuple[int, ...]) -> Int[Tensor, "*batch tokens"]:
    """Where in the prompt each response stands, query by query; the responses of a query keep the order of their index.

    Args:
        order: the query, 0, …, M − 1, of every token, (M·N,) or one row for each task of the batch; blocked, query by
            query, if None.
        queries: M.
        responses: N.
        batch: leading dimensions of the task.

    Raises:
        ValueError: no integers, another shape, or a query that does not come N times.
    """
    tokens = queries * responses
    if order is None:
        return torch.arange(tokens).expand(*batch, tokens)
    wanted = f"the query, 0 to {queries - 1}, of each of the {tokens} tokens"
    try:
        rows = torch.as_tensor(order)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"order: {order!r}, expected {wanted}") from None
    if rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
        raise ValueError(f"order: {rows.dtype}, expected integers, {wanted}")
    if tuple(rows.shape) not in {(tokens,), (*batch, tokens)}:
        raise ValueError(f"order: shape {tuple(rows.shape)}, expected {_shapes(tokens, batch)}: {wanted}")
    _refuse_unequal(rows, queries, responses)
    return rows.argsort(dim=-1, stable=True).expand(*batch, tokens)


def _refuse_unequal(rows: Tensor, queries: int, responses: int) -> None:
    """Raises ValueError unless every query comes N times in every row."""
    if int(rows.min()) < 0 or int(rows.max()) >= queries:
        outside = rows[(rows < 0) | (rows >= queries)][0].item()
        raise ValueError(f"order: query {outside}, expected 0 to {queries - 1}")
    for query in range(queries):
        times = (rows == query).sum(-1)
        if not bool((times == responses).all()):
            found = times[times != responses][0].item()
            raise ValueError(f"order: query {query} comes {found} times, expected {responses}, once for each response")


def _shapes(tokens: int, batch: tuple[int, ...]) -> str:
    return f"({tokens},)" + (f" or {(*batch, tokens)}" if batch else "")


def interleaved(queries: int, responses: int) -> list[int]:
    """0, 1, …, M − 1, 0, 1, …: one response to each query in turn."""
    return list(range(queries)) * responses
