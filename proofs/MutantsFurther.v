(* Statements that are not theorems, of chapter 12: how often the rounds have taken a response. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Spacing Transformer Turns Recount RecountLimit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Mutant of short_prefix_recount_counts: a round more *)
Lemma not_counted_with_the_next : ~ (forall (n K Q : nat) (τ : {perm 'I_n.+1}) (j : 'I_n.+1),
  counts τ K j = ∑_(k < K.+1) (if τ (place k) == j then 1 else 0)
  /\ counts τ (Q * n.+1) j = INR Q).
Proof.
move/(_ 0%N 0%N 0%N 1%g ord0) => [E _]; move: E.
by rewrite (counts_level 1%g 0) big_ord_recl big_ord0 !ord1 eqxx /=; lra.
Qed.

(* Mutant of short_prefix_recount_counts: cycles of one round less *)
Lemma not_level_a_round_early : ~ (forall (n K Q : nat) (τ : {perm 'I_n.+1}) (j : 'I_n.+1),
  counts τ K j = ∑_(k < K) (if τ (place k) == j then 1 else 0)
  /\ counts τ (Q * n) j = INR Q).
Proof.
move/(_ 0%N 0%N 1%N 1%g ord0) => [_ E]; move: E.
by rewrite muln0 (counts_level 1%g 0) /=; lra.
Qed.
