"""The book beside the paper: places, symbols and the claims that docstrings name, each held to what it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
import torch

import icalign
from icalign import bounds, paper, symbols
from icalign.constructions import (
    MultiQuery,
    PlackettLuce,
    causal,
    direct,
    elimination,
    parallel,
    parallel_causal,
    parallel_grid,
    plackett_luce,
    query_selection,
)
from icalign.ledger import HOLDS, NEW, Claim, LedgerError, read_claims

ROOT = Path(__file__).parents[1]
BOOK, PACKAGE = ROOT / "book", ROOT / "icalign"
CLAIMS = read_claims(BOOK / "claims.yml")
IDS = [claim.id for claim in CLAIMS]
PLACES = paper.read_places(BOOK)
NOTATION = paper.read_notation(BOOK)

# ─── docstrings ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("docstring", "claims"),
    [
        ("The bound (claim ``a-b``).", ("a-b",)),
        ("Claims ``a`` and, for T > 1, ``b-c``; ``not-this``.", ("a", "b-c")),
        ("Claims ``a`` to ``d``; the paper's §2.", (("a", "d"),)),
        ("Source: `a`, `b`; Prop. 3.1.", ("a", "b")),
        ("Source: claim ``a``.", ("a",)),
        ("Claim ``a``,\n    part of a sentence with ``b``. Then ``c``.", ("a", "b")),
        ("Claim ``a``, as :func:`b` says.", ("a",)),
        ("It reads ``a-b``.", ()),
    ],
)
def test_the_claims_of_a_docstring_follow_the_word(docstring: str, claims: tuple[str, ...]) -> None:
    assert paper.claims_in(docstring) == claims


def test_a_range_follows_the_order_of_the_registry() -> None:
    assert paper.Mention("f", (("a", "c"), "b")).covers(["a", "b", "c", "d"]) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="f: names the unknown claim 'x'"):
        paper.Mention("f", ("x",)).covers(["a"])
    with pytest.raises(ValueError, match="f: the range b to a runs backwards"):
        paper.Mention("f", (("b", "a"),)).covers(["a", "b"])


def test_names_are_found_where_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "some"
    package.mkdir()
    (package / "__init__.py").write_text('"""Claim ``a``."""\n')
    (package / "part.py").write_text(
        'class C:\n    """Claim ``b``."""\n    def m(self):\n        """Claim ``a``."""\n'
        'def _hidden():\n    """Claim ``b``."""\n'
    )
    assert paper.functions(package, ["a", "b"]) == {"a": ["some", "some.part.C.m"], "b": ["some.part.C"]}


@pytest.mark.parametrize("mention", paper.mentions(PACKAGE), ids=lambda mention: mention.name)
def test_a_docstring_names_claims_of_the_registry(mention: paper.Mention) -> None:
    assert mention.covers(IDS)


def test_what_looks_like_an_id_in_a_docstring_is_one() -> None:
    quoted = {
        (name, word)
        for name, text in paper.docstrings(PACKAGE)
        for word in re.findall(r"(?<!:)`{1,2}([a-z0-9]+(?:-[a-z0-9]+)+)`{1,2}", text)
    }
    assert {(name, word) for name, word in quoted if word not in {*IDS, "by-hand"}} == set()


@pytest.mark.parametrize("path", sorted((PACKAGE / "constructions").glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_construction_names_its_claims(path: Path) -> None:
    named = {mention.name.split(".")[2] for mention in paper.mentions(PACKAGE) if ".constructions." in mention.name}
    assert path.stem in named or " = Head(" not in path.read_text(encoding="utf-8")


# ─── places and findings ───────────────────────────────────────────────────────────────────────────


def test_every_place_of_a_claim_has_both_numbers_and_none_is_idle() -> None:
    places = [place.place for place in PLACES]
    assert len(set(places)) == len(places)
    assert set(places) == {claim.place for claim in CLAIMS if claim.place}


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_a_judgement_says_what_is_true(claim: Claim) -> None:
    judged = claim.says and (claim.verdict != HOLDS or claim.qualified)
    assert bool(claim.finding) == bool(judged)
    assert claim.says or claim.verdict in (HOLDS, NEW)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.finding], ids=lambda claim: claim.id)
def test_a_finding_is_one_or_a_few_sentences(claim: Claim) -> None:
    assert claim.finding[0].isupper() or claim.finding[0] in "γτ"
    assert claim.finding.endswith(".")
    assert len(claim.finding) < 300


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[", "book/places.yml: cannot be read"),
        ("{}", "book/places.yml: a list was expected"),
        ("- {place: a}", "book/places.yml, entry 1: a mapping of camera_ready, content, place, v2 was expected"),
        ("- {place: a, v2: b, camera_ready: c, content: 3.1}", "entry 1: content should be text"),
    ],
)
def test_a_malformed_file_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "places.yml").write_text(text)
    with pytest.raises(LedgerError, match=re.escape(fault)):
        paper.read_places(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"book/notation\.yml: cannot be read"):
        paper.read_notation(tmp_path)


# ─── notation ──────────────────────────────────────────────────────────────────────────────────────

BATCH, RESPONSES, DIM_X, DIM_Y = (2,), 3, 5, 4


def names(construction: type[PlackettLuce] | type[MultiQuery]) -> dict[str, Any]:
    """What the expressions of the table start from, for a batch of tasks with sizes that all differ."""
    queries = 2 if construction is MultiQuery else 1
    task = icalign.sample_task(
        batch=BATCH, queries=queries, responses=RESPONSES, dim_x=DIM_X, dim_y=DIM_Y, orthonormal=True
    )
    several = {"queries": queries, "overlap": 0.1} if construction is MultiQuery else {}
    modules = {"bounds": bounds, "symbols": symbols, "elimination": elimination, "plackett_luce": plackett_luce}
    return {
        **{name: getattr(icalign, name) for name in icalign.__all__},
        **modules,
        "query_selection": query_selection,
        "causal": causal,
        "direct": direct,
        "parallel": parallel,
        "parallel_grid": parallel_grid,
        "parallel_causal": parallel_causal,
        "task": task,
        "c": construction(W=task.W, responses=RESPONSES, tolerance=1e-3, **several),
        **{name: getattr(symbols, name) for name in ("gamma", "Delta", "N")},
        "R": elimination.R,
        "k": sp.Symbol("k", integer=True, positive=True),
    }


NAMES = {kind.__name__: names(kind) for kind in (PlackettLuce, MultiQuery)}


def shape_of(value: Any, row: bool) -> tuple[Any, ...]:
    """The shape of a tensor or a matrix, () for a number; the size of a row is the shape of its entries."""
    if row:
        return (value,)
    return tuple(value.shape) if isinstance(value, torch.Tensor | sp.MatrixExpr) else ()


def said(shape: str, sizes: Mapping[str, Any], batch: tuple[int, ...]) -> tuple[Any, ...]:
    """What the table says, its letters replaced by sizes."""
    entries = [entry.strip() for entry in shape.strip("()").split(",") if entry.strip()]
    return tuple(size for entry in entries for size in (batch if entry == "…" else (sizes.get(entry, entry),)))


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("symbol", NOTATION, ids=lambda symbol: symbol.code)
def test_a_symbol_exists_in_the_code_with_the_shape_that_is_said(symbol: paper.Symbol, names: dict[str, Any]) -> None:
    value = eval(symbol.code, names)
    row = ".rows[" in symbol.code
    if row or isinstance(value, sp.Basic):
        sizes: dict[str, Any] = {name: getattr(symbols, name) for name in ("N", "M", "d_x", "d_y")}
        sizes |= {"1": 1, "K": parallel_grid.K}
    else:
        task, rows = names["task"], names["c"].transformer.rows
        tokens = task.queries * RESPONSES + (task.queries > 1)  # a sink
        sizes = {"N": RESPONSES, "M": task.queries, "d_x": DIM_X, "d_y": DIM_Y, "tokens": tokens}
        sizes["width"] = max(place.stop for place in rows.values())
    assert shape_of(value, row) == said(symbol.shape, sizes, BATCH)
    assert isinstance(value, torch.Tensor | sp.Basic | int | float)


def test_the_table_has_each_expression_once() -> None:
    codes = [symbol.code for symbol in NOTATION]
    assert len(set(codes)) == len(codes)


def test_every_row_of_a_token_is_in_the_table() -> None:
    listed = {code for symbol in NOTATION for code in re.findall(r'rows\["(\w+)"\]', symbol.code)}
    streams = (elimination.stream, plackett_luce.stream, causal.stream)
    assert {row for stream in streams for row in stream.rows} <= listed
