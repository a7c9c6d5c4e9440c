"""What is read off the proofs and off what the Rocq kernel prints; ``tools.proofs`` itself is a stage of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from icalign import kernel
from icalign.ledger import read, read_claims
from tools import proofs

ROOT = Path(__file__).parents[1]
SOURCES = kernel.sources(ROOT / "proofs")
THEOREMS = kernel.all_tagged(ROOT / "proofs")


def project(folder: Path, **files: str) -> Path:
    """A folder with these files and a list of them."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.v").write_text(text, encoding="utf-8")
    (folder / "_CoqProject").write_text("-Q . Icalign\n" + "".join(f"{name}.v\n" for name in files), encoding="utf-8")
    return folder


def test_every_theorem_is_about_parts_that_the_registry_has() -> None:
    parts = {(claim.id, part.name) for claim in read_claims(ROOT / "book" / "claims.yml") for part in claim.parts}
    assert [t.name for t in THEOREMS if not {(t.claim, part) for part in t.parts} <= parts] == []
    assert THEOREMS


def test_a_theorem_that_covers_less_says_what_is_missing() -> None:
    assert [theorem.name for theorem in THEOREMS if not theorem.covers and not theorem.remark] == []


def test_what_is_left_of_a_claim_has_a_reason_and_nothing_else_has() -> None:
    assert kernel.blocked(ROOT / "proofs").keys() == {entry.claim.id for entry in read(ROOT) if entry.left}


def test_what_the_kernel_said_is_about_these_files() -> None:
    assert [theorem.name for theorem in kernel.checked(ROOT)] == [theorem.name for theorem in THEOREMS]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_file_is_short_and_says_what_it_is_about(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("(* ") and len(lines) <= 450
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "word", ["Admitted.", "admit.", "Axiom choice : True.", "Parameter x : nat.", "Unset Guard Checking."]
)
def test_nothing_is_left_unproved(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, A=f"(* Admitted: not here *)\nLemma a : True.\nProof. exact I. Qed.\n{word}\n")
    monkeypatch.setattr(proofs, "PROOFS", folder)
    (found,) = proofs.admitted()
    assert found.startswith("proofs/A.v: ")


def test_a_comment_may_speak_of_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "PROOFS", project(tmp_path, A="(* no Axiom, nothing\nAdmitted *)\n"))
    assert proofs.admitted() == []


def test_the_files_and_their_list_agree(tmp_path: Path) -> None:
    folder = project(tmp_path, A="", B="")
    assert [path.name for path in kernel.sources(folder)] == ["A.v", "B.v"]
    (folder / "C.v").write_text("")
    with pytest.raises(kernel.KernelError, match=r"C\.v"):
        kernel.sources(folder)


def test_the_comment_before_a_theorem_is_read(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        A="(* Claim a-b, parts one,\n   two-x; paper: Lemma C.2 (E.2).\n   More. *)\nTheorem t1 : True.\n"
        "(* Toward claim a-b, part three: half of it *)\nTheorem t2' (n : nat) : True.\n",
    )
    first, second = kernel.all_tagged(folder)
    assert (first.claim, first.parts, first.covers, first.line) == ("a-b", ("one", "two-x"), True, 4)
    assert first.remark == "paper: Lemma C.2 (E.2). More."
    assert (second.name, second.parts, second.covers, second.remark) == ("t2'", ("three",), False, "half of it")


def test_a_name_is_given_once(tmp_path: Path) -> None:
    one = "(* Claim a, part b *)\nTheorem t : True.\n"
    with pytest.raises(kernel.KernelError, match="two theorems of one name"):
        kernel.all_tagged(project(tmp_path, A=one, B=one))


def test_what_the_kernel_prints_is_read() -> None:
    assert proofs.statement_of("t", "t\n     : forall n : nat,\n       n = n\n") == "forall n : nat,\nn = n"
    assert proofs.statement_of("t", "t : 1 = 1\n") == "1 = 1"
    with pytest.raises(ValueError, match="printed"):
        proofs.statement_of("t", "Error: t not found")
    assert proofs.axioms_of("Closed under the global context\n") == []
    assert proofs.axioms_of("Axioms:\nB.b : True\nA.a\n  : forall P,\n    P\n") == ["A.a", "B.b"]
    assert proofs.axioms_of("Axioms:\nclassic : forall P : Prop, P \\/ ~ P\n") == ["Classical_Prop.classic"]
    with pytest.raises(ValueError, match="printed"):
        proofs.axioms_of("Fetching opaque proofs from disk")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_file_opens_with_what_it_needs(path: Path) -> None:
    found = proofs.PREAMBLE.findall(path.read_text(encoding="utf-8"))
    assert found and all([line.count(".") >= 1 and line.endswith(".") for line in found])


def test_a_machine_without_rocq_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(proofs.shutil, "which", lambda program: None)
    monkeypatch.delenv("ICALIGN_REQUIRE_ROCQ", raising=False)
    assert proofs.main(["--if-present"]) == 0 and "skipped" in capsys.readouterr().err
    monkeypatch.setenv("ICALIGN_REQUIRE_ROCQ", "1")
    assert proofs.main(["--if-present"]) == 2 and "libcoq-coquelicot" in capsys.readouterr().err
    monkeypatch.delenv("ICALIGN_REQUIRE_ROCQ")
    assert proofs.main([]) == 2


MUTANT = "(* Claim a, part b *)\nTheorem t : True.\n(* Mutant of t: the\n   other way *)\nLemma not_t : ~ (True).\n"


def test_a_mutant_is_read(tmp_path: Path) -> None:
    folder = project(tmp_path, A=MUTANT, B="(* Claim a, part c *)\nTheorem u : True.\n")
    assert kernel.mutants(folder) == [kernel.Mutant("not_t", "t", "the other way", "A.v", 5)]
    assert kernel.without_mutant(folder) == ["u"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Mutant of t", "Mutant of s", "s is no theorem"),
        ("~ (True)", "True", "no lemma not_"),
        ("Lemma not_t", "Lemma t'", "no lemma not_"),
        ("(* Mutant of t: the\n   other way *)\n", "", "a comment says"),
    ],
)
def test_a_mutant_belongs_to_a_theorem(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(kernel.KernelError, match=words):
        kernel.mutants(project(tmp_path, A=MUTANT.replace(old, new)))


def test_every_theorem_has_a_mutant() -> None:
    assert kernel.without_mutant(ROOT / "proofs") == []
    names = [mutant.name for mutant in kernel.mutants(ROOT / "proofs")]
    assert len(names) == len(set(names))
    assert {mutant.file for mutant in kernel.mutants(ROOT / "proofs")} == {
        path.name for path in SOURCES if path.name.startswith("Mutants")
    }


def test_only_one_file_pins_values() -> None:
    assert list(kernel.pins(ROOT / "proofs")) == ["Pins.v"]
    users = [path.name for path in SOURCES if "Interval" in path.read_text(encoding="utf-8")]
    assert users == ["Pins.v"]


def test_axioms_beyond_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = "Lemma pin_a : True.\n"
    monkeypatch.setattr(proofs, "PROOFS", project(tmp_path, A=MUTANT, B=pin))
    used = {"t": {*kernel.AXIOMS}, "not_t": {*kernel.AXIOMS}, "pin_a": {*kernel.AXIOMS, *kernel.PRIMITIVES}}
    monkeypatch.setattr(proofs, "axioms_under", lambda names: used[next(iter(names.values()))[0]])
    known = {"t": {"axioms": [*kernel.AXIOMS]}}
    assert proofs.beyond(known) == []
    used["not_t"].add("PrimFloat.add")
    used["pin_a"] = used["pin_a"] - {"PrimFloat.add"} | {"Z.z"}
    known["t"]["axioms"].pop()
    assert proofs.beyond(known) == [
        f"the theorems of proofs/ rest on {', '.join(sorted(kernel.AXIOMS))}",
        "a mutant of proofs/ rests on PrimFloat.add",
        "proofs/B.v: rests on Z.z",
        "proofs/B.v: rests no more on PrimFloat.add (kernel.PRIMITIVES)",
    ]
