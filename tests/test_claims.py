"""What the registry of claims must be, whatever the chapters say."""

from __future__ import annotations

import json
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from icalign.ledger import SECTIONS, STATEMENTS, Claim, read_claims
from tools.pin import PINNED, evidence

CLAIMS = read_claims(Path(__file__).parents[1] / "book" / "claims.yml")
BY_ID = {claim.id: claim for claim in CLAIMS}


def parametrised(claims: list[Claim]) -> pytest.MarkDecorator:
    """One test a claim."""
    return pytest.mark.parametrize("claim", claims, ids=[claim.id for claim in claims])


def test_every_chapter_has_claims() -> None:
    assert {claim.section for claim in CLAIMS} == set(SECTIONS)


def test_no_claim_is_lost_from_the_registry() -> None:
    # A claim that is added is added here too; one that vanishes is noticed.
    per_section = Counter(claim.section for claim in CLAIMS)
    assert [per_section[n] for n in SECTIONS] == [5, 7, 8, 4, 5, 5, 8, 4, 6, 4, 3, 4, 3, 3, 2, 1]


def test_no_argument_rests_on_itself() -> None:
    order = list(TopologicalSorter({claim.id: claim.uses for claim in CLAIMS}).static_order())
    assert sorted(order) == sorted(BY_ID)


def test_an_argument_uses_each_claim_once() -> None:
    assert [claim.id for claim in CLAIMS if len(set(claim.uses)) != len(claim.uses)] == []


def test_nothing_is_used_that_is_only_stated_in_a_later_chapter() -> None:
    early = [(c.id, used) for c in CLAIMS for used in c.uses if BY_ID[used].section > c.section]
    assert early == []


def test_titles_are_short_and_differ() -> None:
    assert max(len(claim.title) for claim in CLAIMS) <= 60
    assert len({claim.title for claim in CLAIMS}) == len(CLAIMS)


@parametrised(CLAIMS)
def test_no_part_says_what_another_says(claim: Claim) -> None:
    assert len({part.says for part in claim.parts}) == len(claim.parts)


@parametrised(CLAIMS)
def test_a_claim_is_not_by_hand_alone(claim: Claim) -> None:
    assert any(part.by != "hand" for part in claim.parts)


@parametrised([claim for claim in CLAIMS if claim.verdict == "fails as stated"])
def test_what_fails_as_stated_asks_for_a_counterexample(claim: Claim) -> None:
    assert any(part.by == "exhibit" for part in claim.parts)


@parametrised([claim for claim in CLAIMS if claim.verdict == "new"])
def test_a_new_statement_says_so(claim: Claim) -> None:
    assert claim.new


@parametrised([claim for claim in CLAIMS if claim.repaired_by])
def test_a_repair_is_stated_no_earlier_than_the_chapter_that_needs_it(claim: Claim) -> None:
    assert all(BY_ID[repair].section >= claim.section for repair in claim.repaired_by)


@parametrised(CLAIMS)
def test_what_is_quoted_in_a_part_is_a_claim(claim: Claim) -> None:
    quoted = {name for part in claim.parts for name in re.findall(r"`([^`]+)`", part.says)}
    assert quoted <= BY_ID.keys()
    assert quoted <= {*claim.uses, claim.id}, "a part that leans on a claim uses it"


def test_every_kind_is_a_directive_of_the_book() -> None:
    assert {claim.kind for claim in CLAIMS} <= set(STATEMENTS)


def test_no_part_and_no_record_went_missing_since_the_last_review() -> None:
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    assert evidence() == pinned, "after a review of what changed: python -m tools.pin"
