(* Chapter 9: the block of Theorem 3.3 under a causal mask. Every running maximum is taken for the
   maximum, at its own position. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors OnlineLoss Records Weights Spacing Transformer Selection.
From Icalign Require Import Block MaskedBlock.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Claim records, part falsely-maximal; in the first block, at position t = i+1, which sees i
   others, whose rewards are Δ from its own or more. Its attention to itself lacks q/(1+q),
   q = (t−1)e^{−γΔ}, at most. *)
Theorem records_falsely_maximal : forall (dx dy N : nat) (η γ Δ spread : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N),
  0 <= γ -> (forall j : 'I_N, (j < i)%N -> Δ <= Rabs (r i - r j)) -> record r i ->
  1 - attention causal (winner_head dx dy η γ Δ spread) (el_prompt x y r) i i
  <= share (INR i * exp (- γ * Δ)).
Proof.
move=> dx dy N η γ Δ spread x y r i γ0 gaps rec; pose tN := ltn_ord i.
have -> : attention causal (winner_head dx dy η γ Δ spread) (el_prompt x y r) i i
    = softmax_on (causal i) (fun j => γ * r j) i.
  by apply: eq_softmax_on => l _; rewrite elimination_step_winner_logit //=; ring.
have iE : widen_ord (ltn_ord i) ord_max = i by exact/val_inj.
rewrite -[X in softmax_on _ _ X]iE seen_softmax softmax_miss.
apply: share_le; first exact: crowd_ge0.
have := @crowd_le i.+1 γ Δ (prefix (ltn_ord i) r) ord_max γ0.
rewrite INR_S (_ : INR i + 1 - 1 = INR i); last by ring.
apply => j jm; rewrite /prefix iE.
have ji : (j < i)%N.
  by move: jm; rewrite -val_eqE /= => jm; rewrite ltn_neqAle jm -ltnS ltn_ord.
have lt : r (widen_ord (ltn_ord i) j) < r i.
  have /forallP/(_ (widen_ord (ltn_ord i) j)) := rec; rewrite /= ji /=.
  by case: Rlt_dec.
by have := gaps (widen_ord (ltn_ord i) j) ji; rewrite Rabs_pos_eq; lra.
Qed.
