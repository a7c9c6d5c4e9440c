"""The ledger on small synthetic books: every status, every broken rule, every refusal, and the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from icalign import kernel
from icalign.__main__ import main
from icalign.ledger import MIME, Cover, Ledger, LedgerError, Status, read, read_markdown, stamp

Json = dict[str, Any]


def claim(id: str = "tail-mean", **fields: Any) -> Json:
    """A valid entry of claims.yml; keyword arguments replace or add keys."""
    entry = {
        "id": id,
        "title": "The mean of a tail",
        "kind": "lemma",
        "section": 2,
        "place": "",
        "new": True,
        "uses": [],
        "verdict": "new",
        "parts": {"formula": "it is a weighted mean"},
    }
    return entry | fields


def record(kind: str, part: str = "formula", claim: str = "tail-mean", **fields: Any) -> Json:
    """A valid evidence record, for all sizes where it has sizes."""
    sized = {"sizes": "all N", "all_sizes": True} if kind == "proof" else {}
    exact = {"sizes": "N = 1, …, 4", "all_sizes": False} if kind == "certificate" else {}
    return {"kind": kind, "claim": claim, "part": part, "statement": "a = b"} | sized | exact | fields


def code(*records: Json, source: str = "check()", execution_count: int | None = 1) -> Json:
    """A code cell whose outputs hold these records."""
    outputs = [
        {"output_type": "display_data", "data": {MIME: data}, "metadata": {MIME: {"worst_error": "1e-16"}}}
        for data in records
    ]
    return {"cell_type": "code", "source": source, "execution_count": execution_count, "outputs": outputs}


def markdown(text: str) -> Json:
    """A markdown cell."""
    return {"cell_type": "markdown", "source": text.splitlines(keepends=True)}


def statement(id: str = "tail-mean", kind: str = "lemma") -> Json:
    """A markdown cell that states a claim."""
    return markdown(f"```{{prf:{kind}}} A title\n:label: {id}\n\nThe statement.\n```\n")


BY_HAND = markdown("::::{prf:proof}\nBy induction {by-hand}`tail-mean/formula`.\n::::\n")

Book = Callable[..., Path]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Writes a book of these claims (default: one) and these cells in one chapter, as run; returns its root."""

    def write(*cells: Json, claims: list[Json] | None = None, **pages: str) -> Path:
        (tmp_path / "book").mkdir(exist_ok=True)
        registry = yaml.safe_dump(claims if claims is not None else [claim()], allow_unicode=True, sort_keys=False)
        (tmp_path / "book" / "claims.yml").write_text(registry, encoding="utf-8")
        notebook: Json = {"cells": list(cells)}
        notebook["metadata"] = {"icalign": stamp(notebook)}
        (tmp_path / "book" / "02-chapter.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        for name, text in pages.items():
            (tmp_path / "book" / f"{name}.md").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def edit(root: Path, old: str, new: str) -> None:
    """Changes the text of the chapter in place, as an editor does: nothing is run."""
    path = root / "book" / "02-chapter.ipynb"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


HAND = {"formula": {"says": "by induction", "by": "hand"}}


# ─── statuses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("records", "status", "label"),
    [
        ([record("proof"), record("control")], Status.PROVED, "proved for all sizes"),
        ([record("certificate"), record("control")], Status.SIZED, "proved for N = 1, …, 4"),
        ([record("measurement"), record("control")], Status.MEASURED, "measured"),
        ([record("control")], Status.PARTIAL, "part proved"),
        ([record("exhibit"), record("control")], Status.PARTIAL, "part proved"),
        ([record("proof")], Status.UNCONTROLLED, "no control"),
        ([], Status.OPEN, "open"),
    ],
)
def test_status_says_what_the_records_amount_to(book: Book, records: list[Json], status: Status, label: str) -> None:
    entry = read(book(statement(), code(*records)))["tail-mean"]
    assert (entry.status, entry.label) == (status, label)


def test_a_claim_no_page_states_is_planned_and_owes_nothing(book: Book) -> None:
    ledger = read(book())
    assert ledger["tail-mean"].status is Status.PLANNED
    assert ledger.violations == []


def test_a_step_by_hand_is_counted_in_the_status(book: Book) -> None:
    parts = HAND | {"other": "proved", "third": "proved"}
    records = [record(kind, part) for kind in ("proof", "control") for part in ("other", "third")]
    ledger = read(book(statement(), BY_HAND, code(*records), claims=[claim(parts=parts)]))
    assert ledger["tail-mean"].status is Status.HAND
    assert ledger["tail-mean"].label == "proved, 1 step by hand"
    assert ledger.violations == []


def test_the_weakest_part_decides(book: Book) -> None:
    parts = {"formula": "a", "floats": {"says": "b", "by": "measurement"}}
    records = [record("proof"), record("control"), record("measurement", "floats"), record("control", "floats")]
    entry = read(book(statement(), code(*records), claims=[claim(parts=parts)]))["tail-mean"]
    assert (entry.label, entry.remark) == ("measured", "1 of 2 parts proved")


def test_one_proved_part_does_not_prove_the_claim(book: Book) -> None:
    root = book(
        statement(), code(record("proof"), record("control")), claims=[claim(parts={"formula": "a", "sharp": "b"})]
    )
    entry = read(root)["tail-mean"]
    assert entry.status is Status.PARTIAL
    assert entry.remark == "1 of 2 parts"


def test_an_exhibit_settles_only_a_part_that_asks_for_one(book: Book) -> None:
    parts = {"formula": {"says": "there is one", "by": "exhibit"}}
    records = record("exhibit"), record("control")
    entry = read(book(statement(), code(*records), claims=[claim(parts=parts)]))["tail-mean"]
    assert (entry.status, entry.label, entry.remark) == (Status.SIZED, "proved for an instance", "")
    assert read(book(statement(), code(*records)))["tail-mean"].covers == {"formula": Cover.NONE}


def test_an_instance_beside_a_proof_does_not_weaken_it(book: Book) -> None:
    parts = {"formula": "a", "example": {"says": "there is one", "by": "exhibit"}}
    records = record("proof"), record("control"), record("exhibit", "example")
    assert read(book(statement(), code(*records), claims=[claim(parts=parts)]))["tail-mean"].status is Status.PROVED


def test_a_proof_for_some_sizes_is_not_a_proof_for_all(book: Book) -> None:
    small = record("proof", sizes="N = 2", all_sizes=False)
    entry = read(book(statement(), code(small, record("control"))))["tail-mean"]
    assert entry.label == "proved for N = 2"


@pytest.mark.parametrize("kind", ["proof", "certificate"])
def test_a_part_about_some_sizes_is_covered_by_exactly_those(book: Book, kind: str) -> None:
    parts = {"formula": {"says": "two responses", "sizes": "N = 2"}}

    def status(sizes: str) -> Status:
        records = record(kind, sizes=sizes, all_sizes=False), record("control")
        return read(book(statement(), code(*records), claims=[claim(parts=parts)]))["tail-mean"].status

    assert status("N = 2") is Status.PROVED
    assert status("N = 3") is Status.SIZED


def kernel_checked(
    root: Path, *parts: str, comment: str = "Claim tail-mean, part {}", axiom: str = kernel.AXIOMS[0]
) -> None:
    """Proofs of these parts below root, and what the kernel would say of them."""
    proofs = root / "proofs"
    proofs.mkdir()
    (proofs / "_CoqProject").write_text("-Q . Icalign\nTail.v\n")
    theorems = [f"(* {comment.format(part)}; by hand *)\nTheorem {part}_ : True.\n" for part in parts]
    (proofs / "Tail.v").write_text("\n".join(theorems))
    said = [{"name": f"{part}_", "statement": "True", "axioms": [axiom]} for part in parts]
    (proofs / "checked.json").write_text(json.dumps({"files": kernel.stamp(proofs), "theorems": said}))


def test_the_kernel_must_check_every_part(book: Book) -> None:
    parts = HAND | {"other": "proved"}
    root = book(statement(), BY_HAND, code(record("control", "other")), claims=[claim(parts=parts)])
    kernel_checked(root, "other")
    entry = read(root)["tail-mean"]
    assert entry.status is Status.HAND and entry.remark == "1 of 2 parts kernel-checked"
    assert [r.place for r in entry.records if r.kind == "kernel"] == ["proofs/Tail.v, line 2"]
    shutil.rmtree(root / "proofs")
    kernel_checked(root, *parts)
    entry = read(root)["tail-mean"]
    assert entry.status is Status.KERNEL and entry.label == "kernel-checked for all sizes"


def test_a_theorem_that_shows_less_covers_nothing(book: Book) -> None:
    root = book(statement(), code(record("control")))
    kernel_checked(root, "formula", comment="Toward claim tail-mean, part {}")
    assert read(root)["tail-mean"].status is Status.PARTIAL
    assert not kernel.checked(root)[0].covers


def test_proofs_that_changed_since_are_refused(book: Book) -> None:
    root = book(statement(), code(record("control")))
    kernel_checked(root, "formula")
    (root / "proofs" / "Tail.v").write_text("(* Claim tail-mean, part formula *)\nTheorem formula_ : False.\n")
    with pytest.raises(LedgerError, match="changed since"):
        read(root)


@pytest.mark.parametrize(
    ("theorem", "said"),
    [
        ("Theorem formula_ : True.", "belongs to a claim"),
        ("(* Claim tail-mean, part formula *)\nLemma formula_ : True.", "no Theorem follows"),
        ("(* Claim tail-mean, part formula *)\nTheorem other_ : True.", "nothing about other_"),
    ],
)
def test_a_theorem_and_its_claim_go_together(theorem: str, said: str, book: Book) -> None:
    root = book(statement(), code(record("control")))
    kernel_checked(root, "formula")
    proofs, stored = root / "proofs", root / "proofs" / "checked.json"
    (proofs / "Tail.v").write_text(theorem)
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"files": kernel.stamp(proofs)}))
    with pytest.raises(LedgerError, match=said):
        read(root)


def test_a_theorem_rests_on_no_other_axiom(book: Book) -> None:
    root = book(statement(), code(record("control")))
    kernel_checked(root, "formula", axiom="Wishful.thinking")
    with pytest.raises(LedgerError, match=r"rests on Wishful\.thinking"):
        read(root)


def test_a_theorem_of_an_unknown_part_is_a_stray(book: Book) -> None:
    root = book(statement(), code(record("proof"), record("control")))
    kernel_checked(root, "gone")
    assert read(root).violations == ["proofs/Tail.v, line 2: evidence of an unknown part 'gone' of tail-mean."]


def test_a_cell_cannot_speak_for_the_kernel(book: Book) -> None:
    with pytest.raises(LedgerError, match=r"stands in proofs/checked\.json"):
        read(book(statement(), code(record("kernel", sizes="all N", all_sizes=True))))


def test_counts_evidence_and_graph_add_up(book: Book) -> None:
    claims = [claim(), claim("second", uses=["tail-mean"]), claim("third", uses=["tail-mean", "second"])]
    ledger = read(book(statement(), code(record("proof"), record("control")), claims=claims))
    assert ledger.counts == {Status.PROVED: 1, Status.PLANNED: 2}
    assert ledger.evidence == {"proof": 1, "control": 1}
    assert ledger.graph == [("tail-mean", "second"), ("tail-mean", "third"), ("second", "third")]
    assert ledger.used_by("tail-mean") == ["second", "third"]


# ─── rules ───────────────────────────────────────────────────────────────────────────────────────

PROVED = code(record("proof"), record("control"))
APPENDIX = claim(kind="theorem", section=7)
FAILS = claim(verdict="fails as stated", says="it is the largest")


@pytest.mark.parametrize(
    ("cells", "claims", "sentence"),
    [
        (
            [statement(kind="theorem"), PROVED],
            None,
            "tail-mean: is a lemma, but book/02-chapter.ipynb states it as theorem.",
        ),
        ([statement(), statement(), PROVED], None, "tail-mean: stated 2 times"),
        ([PROVED], None, "tail-mean: has evidence (book/02-chapter.ipynb, cell 1), but no page states it."),
        ([statement()], None, "tail-mean: is stated, but has no evidence."),
        (
            [statement(), code(record("control"))],
            None,
            "tail-mean: part 'formula' has no evidence (proof is expected).",
        ),
        ([statement(), code(record("proof"))], None, "tail-mean: part 'formula' has no control."),
        ([statement(), BY_HAND], [claim(parts=HAND)], "tail-mean: has no control."),
        (
            [statement(), code(record("proof", sizes="no size enters", all_sizes=False), record("control"))],
            None,
            "tail-mean: part 'formula' speaks of all sizes, but no size enters its proof.",
        ),
        ([statement(), PROVED], [FAILS], "tail-mean: said to fail as stated, without an exhibit."),
        (
            [statement(kind="theorem"), PROVED],
            [APPENDIX],
            "tail-mean: a theorem on the appendix needs a measurement.",
        ),
        (
            [statement(kind="theorem"), code(record("measurement"), record("control"))],
            [APPENDIX],
            "tail-mean: a theorem on the appendix needs a proof or a certificate.",
        ),
        ([statement("unheard-of")], None, "book/02-chapter.ipynb: the label 'unheard-of' has no entry in claims.yml."),
        ([markdown("```{prf:lemma}\nNameless.\n```")], None, "book/02-chapter.ipynb: a lemma has no label."),
        (
            [code(record("proof", claim="unheard-of"))],
            None,
            "book/02-chapter.ipynb, cell 1: evidence of an unknown claim 'unheard-of'.",
        ),
        (
            [statement(), PROVED, code(record("proof", "unheard-of"))],
            None,
            "book/02-chapter.ipynb, cell 3: evidence of an unknown part 'unheard-of' of tail-mean.",
        ),
        (
            [statement(), PROVED, BY_HAND],
            None,
            "book/02-chapter.ipynb: tail-mean/formula is marked as by hand, which claims.yml does not say.",
        ),
        (
            [statement(), markdown("By induction {by-hand}`tail-mean/formula`.")],
            [claim(parts=HAND)],
            "book/02-chapter.ipynb: the step by hand tail-mean/formula stands outside a proof.",
        ),
        ([statement()], [claim(parts=HAND)], "tail-mean: is stated, but has no evidence."),
        (
            [],
            [claim(uses=["second"]), claim("second", uses=["tail-mean"])],
            "rests on itself: ",
        ),
    ],
)
def test_each_broken_rule_is_said(book: Book, cells: list[Json], claims: list[Json] | None, sentence: str) -> None:
    violations = read(book(*cells, claims=claims)).violations
    assert any(sentence in violation for violation in violations), violations


@pytest.mark.parametrize(
    ("cells", "claims"),
    [
        ([statement(), PROVED], None),
        ([statement(), PROVED, code(record("exhibit"))], [FAILS]),
        ([statement(kind="theorem"), PROVED, code(record("measurement"))], [APPENDIX]),
        ([statement(), BY_HAND, code(record("control"))], [claim(parts=HAND)]),
        ([markdown("```{prf:definition} Tail\n:label: tail\n\nThe rest.\n```")], None),
    ],
)
def test_a_sound_book_breaks_no_rule(book: Book, cells: list[Json], claims: list[Json] | None) -> None:
    assert read(book(*cells, claims=claims)).violations == []


def test_evidence_may_stand_in_another_chapter_but_a_step_by_hand_may_not(book: Book) -> None:
    stated = "```{prf:lemma} Elsewhere\n:label: tail-mean\n\nThe statement.\n```\n"
    assert read(book(PROVED, chapter=stated)).violations == []
    violations = read(book(BY_HAND, code(record("control")), claims=[claim(parts=HAND)], chapter=stated)).violations
    expected = (
        "book/02-chapter.ipynb: the step by hand tail-mean/formula stands outside the chapter that states the claim."
    )
    assert expected in violations


def test_what_a_page_shows_as_code_states_nothing(book: Book) -> None:
    shown = "````md\n```{prf:lemma} Shown\n:label: tail-mean\n```\n{by-hand}`a/b`\n````\nWrite `` {by-hand}`a/b` ``.\n"
    ledger = read(book(template=shown))
    assert ledger["tail-mean"].status is Status.PLANNED
    assert ledger.violations == []


def test_nested_fences_close_in_order(book: Book) -> None:
    nested = (
        "::::{prf:proof}\nFirst code:\n```python\nx = 1\n```\nthen {by-hand}`tail-mean/formula`.\n::::\n\n"
        ":::{prf:lemma} A title\n:class: dropdown\n:label: tail-mean\nThe statement.\n:::\n"
    )
    ledger = read(book(code(record("control")), claims=[claim(parts=HAND)], chapter=nested))
    assert ledger["tail-mean"].status is Status.HAND


# ─── refusals ────────────────────────────────────────────────────────────────────────────────────


def without(*keys: str) -> Json:
    """A valid entry that lacks these keys."""
    return {name: value for name, value in claim().items() if name not in keys}


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], "book/claims.yml: a list of claims was expected"),
        (["tail-mean"], "entry 1: a mapping was expected, not 'tail-mean'"),
        ([claim(), claim()], "entry 2 (tail-mean): the id 'tail-mean' is taken by an earlier entry"),
        ([without("verdict")], "entry 1 (tail-mean): missing 'verdict'"),
        ([without("id")], "entry 1: missing 'id'"),
        ([without("kind", "uses")], "entry 1 (tail-mean): missing 'kind', 'uses'"),
        ([claim(colour="red")], "entry 1 (tail-mean): unknown 'colour'"),
        ([without("uses") | {"use": [], 3: 4}], "entry 1 (tail-mean): missing 'uses'; unknown 'use', 3"),
        ([claim("Tail Mean")], "an id is lower-case words joined by hyphens, not 'Tail Mean'"),
        ([claim(section="2")], "section should be of type int, not '2'"),
        ([claim(section=True)], "section should be of type int, not True"),
        ([claim(section=17)], "unknown section 17"),
        ([claim(kind="remark")], "unknown kind 'remark'"),
        ([claim(verdict="plausible")], "unknown verdict 'plausible'"),
        ([claim(uses=[3])], "uses should be a list of claim ids, not [3]"),
        ([claim(), claim("b", uses=["a"])], "entry 2 (b): uses names an unknown claim 'a'"),
        ([claim(verdict="holds", repaired_by=["a"])], "repaired_by names an unknown claim 'a'"),
        ([claim(verdict="fails as stated")], "the verdict 'fails as stated' needs the paper's statement (says)"),
        ([claim(says="it holds")], "a new claim judges no statement of the paper"),
        ([claim(parts={})], "parts is empty"),
        ([claim(parts={"Sharp": "a"})], "a part's name is lower-case words joined by hyphens, not 'Sharp'"),
        ([claim(parts={"sharp": 3})], "part sharp: text or a mapping with says was expected, not 3"),
        ([claim(parts={"sharp": {"says": "a", "by": "magic"}})], "part sharp: unknown by 'magic'"),
        ([claim(parts={"sharp": {"says": "a", "why": "b"}})], "part sharp: unknown 'why'"),
        ([claim(parts={"sharp": {"says": "a", "sizes": 2}})], "part sharp: sizes should be text, not 2"),
        ([claim(section=3), claim("b", section=2)], "entry 2 (b): section 2 after section 3"),
    ],
)
def test_a_malformed_registry_is_refused_with_its_entry(book: Book, claims: list[Any], message: str) -> None:
    with pytest.raises(LedgerError) as refusal:
        read(book(claims=claims))
    assert str(refusal.value).startswith("book/claims.yml")
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- id: [", "book/claims.yml: not YAML: "),
        ("- id: a\n  id: b\n", "repeated key 'id'"),
        ("- parts:\n    sharp: one\n    sharp: two\n", "repeated key 'sharp'"),
    ],
)
def test_bad_yaml_is_refused_in_one_line(book: Book, text: str, message: str) -> None:
    root = book()
    (root / "book" / "claims.yml").write_text(text, encoding="utf-8")
    with pytest.raises(LedgerError) as refusal:
        read(root)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_bytes_that_are_no_text_are_refused(book: Book) -> None:
    root = book()
    (root / "book" / "claims.yml").write_bytes(b"- id: \xff\n")
    with pytest.raises(LedgerError, match="not UTF-8"):
        read(root)


def test_a_missing_registry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"book/claims\.yml: cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([statement(), code(execution_count=None)], "book/02-chapter.ipynb, cell 2: not executed"),
        ([code({"kind": "proof", "part": 3})], "cell 1: an evidence record without claim, part, statement"),
        ([code(record("rumour"))], "cell 1: unknown kind of evidence 'rumour'"),
        ([code(record("proof", sizes=""))], "cell 1: a proof record must say for which sizes"),
        ([code(record("proof", all_sizes="yes"))], "cell 1: a proof record must say for which sizes"),
    ],
)
def test_a_notebook_that_cannot_be_trusted_is_refused_with_its_cell(
    book: Book, cells: list[Json], message: str
) -> None:
    with pytest.raises(LedgerError) as refusal:
        read(book(*cells))
    assert message in str(refusal.value)


STALE = "book/02-chapter.ipynb: its code changed since it was run (make run)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"check()"', '"check( )"'),  # a single character of the code
        ('"source": "x = 1"', '"source": ""'),  # in a cell that stores nothing, too
        ('{"icalign": ', '{"other": '),
        ('"metadata": {"icalign"', '"metadata": {"icalign": "yes", "other"'),
    ],
)
def test_outputs_of_other_code_are_refused(book: Book, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = book(statement(), code(source="x = 1"), PROVED)
    assert main(["ledger", "--root", str(root)]) == 0
    edit(root, old, new)
    with pytest.raises(LedgerError) as refusal:
        read(root)
    assert str(refusal.value) == STALE
    capsys.readouterr()
    assert main(["ledger", "--root", str(root)]) == 2
    assert capsys.readouterr() == ("", f"error: {STALE}\n")


def test_a_run_is_known_by_its_code_in_order_and_by_nothing_else() -> None:
    def stamped(*cells: Json) -> Json:
        return stamp({"cells": cells})

    one, two = code(source="a = 1\nb = 2"), code(source="c = 3")
    assert stamped(one, two) == stamped(markdown("Text."), code(source=["a = 1\n", "b = 2"]), markdown("More."), two)
    others = [stamped(two, one), stamped(one), stamped(code(source="a = 1\nb = 2c = 3")), stamped(one, two, two)]
    assert stamped(one, two) not in others


def test_the_prose_may_change_without_a_run(book: Book) -> None:
    root = book(statement(), PROVED)
    edit(root, "The statement.", "The statement in other words.")
    assert read(root)["tail-mean"].status is Status.PROVED


def test_a_file_that_is_no_notebook_is_refused(book: Book) -> None:
    root = book()
    (root / "book" / "02-chapter.ipynb").write_text("{", encoding="utf-8")
    with pytest.raises(LedgerError, match=r"book/02-chapter\.ipynb: not a notebook"):
        read(root)


def test_an_empty_cell_need_not_be_executed(book: Book) -> None:
    assert len(read(book(code(source="  ", execution_count=None)))) == 1


# ─── the command line ────────────────────────────────────────────────────────────────────────────


def test_a_sound_book_exits_with_zero_and_planned_claims_do_not_fail(
    book: Book, capsys: pytest.CaptureFixture[str]
) -> None:
    root = book(statement(), PROVED, claims=[claim(), claim("second")])
    assert main(["ledger", "--root", str(root)]) == 0
    shown = capsys.readouterr().out
    assert "● tail-mean" in shown
    assert "proved for all sizes" in shown
    assert "2 claims" in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("records", [[], [record("proof")], [record("control")]])
def test_a_claim_that_does_not_hold_exits_with_one(
    book: Book, records: list[Json], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "--root", str(book(statement(), code(*records)))]) == 1
    assert "broken rule" in capsys.readouterr().out


def test_bad_input_exits_with_two_and_one_line(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--root", str(book(claims=[claim(colour="red")]))]) == 2
    error = capsys.readouterr().err
    assert error == "error: book/claims.yml, entry 1 (tail-mean): unknown 'colour'\n"


def test_outside_a_clone_the_error_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--root", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} has no book/claims.yml; say where the clone is with --root\n"


def test_a_reader_that_goes_away_is_no_error(book: Book) -> None:
    parts = {"formula": "a" * 10**6}  # more than a pipe holds
    root = book(statement(), PROVED, claims=[claim(parts=parts)])
    command = [sys.executable, "-m", "icalign", "ledger", "--json", "--root", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout and run.stderr
        run.stdout.read(1)
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 0


def test_json_holds_what_the_ledger_holds(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    root = book(statement(), PROVED)
    assert main(["ledger", "--json", "--root", str(root)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads(json.dumps(read(root).to_json()))
    (entry,) = data["claims"]
    assert entry["status"] == "proved for all sizes"
    assert entry["parts"][0]["cover"] == "proved"
    assert entry["records"][0]["figures"] == {"worst_error": "1e-16"}
    assert data["counts"] == {"proved for all sizes": 1}


def test_one_claim_is_shown_in_full(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    root = book(statement(), PROVED, claims=[claim(), claim("second", uses=["tail-mean"])])
    assert main(["ledger", "--root", str(root), "--claim", "tail-mean"]) == 0
    shown = capsys.readouterr().out
    for text in ("The mean of a tail", "used by      second", "book/02-chapter.ipynb, cell 2  (all N)"):
        assert text in shown
    assert main(["ledger", "--json", "--root", str(root), "--claim", "second"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "planned"
    assert main(["ledger", "--root", str(root), "--claim", "third"]) == 2
    assert capsys.readouterr().err == "error: no claim 'third' in book/claims.yml\n"


def test_one_claim_answers_for_itself_only(book: Book) -> None:
    root = book(statement(), PROVED, statement("second"), claims=[claim(), claim("second")])
    assert main(["ledger", "--root", str(root)]) == 1
    assert main(["ledger", "--root", str(root), "--claim", "tail-mean"]) == 0
    assert main(["ledger", "--root", str(root), "--claim", "second"]) == 1


# ─── the site ────────────────────────────────────────────────────────────────────────────────────

EXTENSION = Path(__file__).parents[1] / "book" / "_ext"
CONF = f"""
import sys
sys.path.insert(0, {str(EXTENSION)!r})
extensions = ["myst_nb", "sphinx_proof", "icalign_book", "icalign_reference"]
suppress_warnings = ["mystnb.unknown_mime_type"]
nb_execution_mode = "off"
"""
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}
LEDGER_PAGE = "# The ledger\n\n```{ledger-counts}\n```\n\n```{ledger}\n```\n\n```{claim-graph}\n```\n"


def build(root: Path) -> tuple[int, str]:
    """Builds the book below root with Sphinx in two processes; exit code and messages."""
    (root / "conf.py").write_text(CONF)
    (root / "index.md").write_text("# Book\n\n```{toctree}\n:glob:\n\nbook/*\n```\n")
    path = root / "book" / "02-chapter.ipynb"
    notebook = json.loads(path.read_text()) | {"nbformat": 4, "nbformat_minor": 5}
    notebook["metadata"] |= METADATA
    for number, cell in enumerate(notebook["cells"]):
        cell |= {"id": f"cell-{number}", "metadata": {}}
    path.write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-j2", str(root), str(root / "html")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.slow
def test_the_site_shows_badge_table_and_graph(book: Book) -> None:
    claims = [claim(parts=HAND), claim("second", uses=["tail-mean"])]
    root = book(markdown("# Chapter"), statement(), BY_HAND, code(record("control")), claims=claims, ledger=LEDGER_PAGE)
    assert build(root) == (0, "")
    chapter = (root / "html/book/02-chapter.html").read_text()
    assert 'href="ledger.html#ledger-tail-mean"' in chapter
    assert "◐ proved, 1 step by hand" in chapter
    assert '<span class="by-hand">by hand: formula</span>' in chapter
    ledger = (root / "html/book/ledger.html").read_text()
    assert '<tr id="ledger-tail-mean"><th scope="row"><a href="02-chapter.html#tail-mean">' in ledger
    assert '<a id="node-tail-mean" class="node status-hand" href="02-chapter.html#tail-mean"' in ledger
    assert '<g id="node-second" class="node status-planned"' in ledger
    assert "<title>second uses tail-mean</title>" in ledger


FINDINGS_PAGE = "# Findings\n" + "".join(
    f"\n```{{{name}}}\n```\n"
    for name in ("findings-summary", "findings", "findings-planned", "findings-as-stated", "findings-new")
)


@pytest.mark.slow
def test_a_finding_appears_once_its_claim_is_supported(book: Book) -> None:
    judged = {"verdict": "fails as stated", "place": "Lemma 1", "repaired_by": ["mended"]}
    claims = [
        claim(**judged, says="it is the largest", finding="It is the x^a_j.", qualified="for two"),
        claim("second", **judged, says="it is free", finding="It costs."),
        claim("mended"),
        claim("third", verdict="holds", place="Lemma 2"),
    ]
    refuted = code(record("exhibit", refutes="it is the largest"))
    cells = markdown("# Chapter"), statement(), PROVED, refuted
    root = book(*cells, claims=claims, ledger=LEDGER_PAGE, findings=FINDINGS_PAGE)
    assert build(root) == (0, "")
    page = (root / "html/book/findings.html").read_text()
    found, planned = page.split("</table>")
    assert "examined 1 statement of the paper: 0 hold as they stand, 1 with a change or an addition. 2 more" in found
    assert "<p>It is the x<sup>a</sup><sub>j</sub>.</p>" in found
    assert "<b>fails as stated</b>: for two" in found
    assert '<a href="02-chapter.html#tail-mean"><code>tail-mean</code></a>' in found
    assert '<a href="02-chapter.html#cell-4">an instance against “it is the largest”</a>' in found
    assert 'id="cell-4"' in (root / "html/book/02-chapter.html").read_text()
    assert 'Repaired by: <code>mended</code> <span class="claim-badge status-planned">' in found
    assert "it is free" not in found
    assert "<em>it is free</em>: chapter 2" in planned
    assert "It costs" not in page and page.count("fails as stated") == 1


@pytest.mark.slow
def test_the_index_has_every_claim(book: Book) -> None:
    root = book(markdown("# Chapter"), statement(), PROVED, claims=[claim(), claim("second")], ledger=LEDGER_PAGE)
    assert build(root) == (0, "")
    index = (root / "html/genindex.html").read_text()
    assert '<a href="book/02-chapter.html#tail-mean"><strong>tail-mean</strong></a>' in index
    assert '<a href="book/ledger.html#ledger-tail-mean">[1]</a>' in index
    assert '<a href="book/ledger.html#ledger-second">second</a>' in index


@pytest.mark.slow
def test_the_site_is_not_built_on_broken_rules(book: Book) -> None:
    unread = markdown("```{prf:lemma} A title\n---\nlabel: second\n---\nThe statement.\n```")
    cells = markdown("# Chapter"), statement(), code(record("proof")), statement("unheard-of"), unread
    exit_code, messages = build(book(*cells, claims=[claim(), claim("second")], ledger=LEDGER_PAGE))
    assert exit_code == 1
    assert "ledger: tail-mean: part 'formula' has no control." in messages
    assert "the label 'unheard-of' has no entry in claims.yml" in messages
    assert "ledger: second has a label that the ledger cannot read" in messages


@pytest.mark.slow
def test_the_site_is_not_built_from_an_unexecuted_notebook(book: Book) -> None:
    exit_code, messages = build(book(code(execution_count=None), ledger=LEDGER_PAGE))
    assert exit_code == 2
    assert "book/02-chapter.ipynb, cell 1: not executed" in messages


@pytest.mark.slow
def test_the_site_is_not_built_from_the_outputs_of_other_code(book: Book) -> None:
    root = book(markdown("# Chapter"), statement(), PROVED, ledger=LEDGER_PAGE)
    edit(root, '"check()"', '"check( )"')
    exit_code, messages = build(root)
    assert exit_code == 2
    assert STALE in messages


def test_reading_the_ledger_loads_neither_torch_nor_sympy() -> None:
    check = "import sys, icalign.__main__, icalign.ledger; sys.exit(bool({'torch', 'sympy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_every_status_has_a_sign_of_its_own() -> None:
    assert len({status.glyph for status in Status}) == len(Status)


def test_the_ledger_of_no_chapters_is_empty_of_evidence(book: Book) -> None:
    ledger: Ledger = read(book())
    assert ledger.evidence == {}
    assert [entry.claim.id for entry in ledger] == ["tail-mean"]


@pytest.mark.parametrize("hidden", ["<!--\n{}\n-->", "% {}"])
def test_what_stands_in_a_comment_is_not_on_the_page(hidden: str) -> None:
    role = "```{prf:proof}\nWe argue.\n" + hidden.format("{by-hand}`a/step`") + "\n```"
    assert list(read_markdown(role, "page")) == []
    if "<!--" in hidden:
        assert list(read_markdown(hidden.format("```{prf:lemma} T\n:label: a\n```"), "page")) == []
