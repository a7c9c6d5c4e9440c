(* Statements that are not theorems, of chapters 3, 4 and 7: what the heads attend to. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing AlignmentTask Transformer.
From Icalign Require Import Selection Temperature Field QuerySelection Mutants.
From Icalign Require Import MutantsSelection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Mutant of selection_never_exact: one response *)
Lemma not_inexact_for_one_response : ~ (forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  (1 <= N)%N -> 0 < sel_attention γ x y r i j < 1).
Proof.
move/(_ 0%N 0%N 1%N 1 vzero (fun _ => vzero) (fun _ => 0) ord0 ord0 isT) => [_].
rewrite sel_softmax /softmax big_ord_recl big_ord0 Rplus_0_r Rmult_0_r exp_0; lra.
Qed.

(* Mutant of selection_ties_share: rewards that differ *)
Lemma not_shared_by_all : ~ (forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j l : 'I_N),
  sel_attention γ x y r i j = sel_attention γ x y r i l).
Proof.
move/(_ 0%N 0%N 2%N 1 vzero (fun _ => vzero) (pair 1 0) ord0 ord0 ord_max) => E.
have := missed 1 1 0 ord0; rewrite E sel_softmax.
have s := softmax_sum (fun l => 1 * pair 1 0 l) ord0; rewrite Smoothness.sum_two in s.
have := missed 1 1 0 ord0; rewrite sel_softmax => m E'.
have e1 : exp (1 * 0 - 1 * 1) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
have := exp_pos (1 * 0 - 1 * 1); move: E' m; rewrite /share; set e := exp _ in e1 *.
have -> : e / (1 + e) = 1 - / (1 + e) by field; have := exp_pos (1 * 0 - 1 * 1); rewrite -/e; lra.
move=> E' m e0; have : / 2 < / (1 + e) by apply: Rinv_lt_contravar; lra.
by move: s E' m; move: (softmax _ ord0) (softmax _ ord_max) => u v; lra.
Qed.

(* Mutant of beta_head_scores: the constant subtracted *)
Lemma not_head_scores_minus : ~ (forall (dx dy N : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (i j : 'I_N),
  logit (beta_head W) (fi_prompt x y) i j = score W x (y j) - ‖W *v x‖²).
Proof.
move/(_ _ _ 1%N (M1 1) (V1 1) (fun _ => V1 0) ord0 ord0).
by rewrite beta_head_scores mulmv_1 sqnorm_1; lra.
Qed.

(* Mutant of mq_logits: the two temperatures exchanged *)
Lemma not_logits_exchanged : ~ (forall (dx dy : nat) (γ1 γ2 : R) (T : finType)
    (X : T -> token (sel_stream dx dy)) (i j : T),
  X i Sel.one ord0 = 1 ->
  logit (mq_head dx dy γ1 γ2) X i j = γ2 * ⟨X i Sel.x, X j Sel.x⟩ + γ1 * X j Sel.r ord0).
Proof.
pose X := @sel_prompt 1 0 1 (V1 1) (fun _ => vzero) (fun _ => 0).
move/(_ _ _ 1 2 _ X ord0 ord0 erefl); rewrite mq_logits //.
by rewrite -[X ord0 Sel.x]/(V1 1) -[X ord0 Sel.r]/(fun _ => 0) dot_1; lra.
Qed.

(* Mutant of mq_outcome_norm: v of any length *)
Lemma not_norm_of_any_length : ~ (forall (d : nat) (z : vec 'I_d),
  (forall v, ⟨v, z⟩ <= ‖z‖) /\ ((0 < d)%N -> exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖)).
Proof.
move/(_ _ (V1 1)) => [/(_ (V1 2)) + _]; rewrite dot_1 vnorm_1 Rabs_R1; lra.
Qed.
