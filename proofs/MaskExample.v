(* Chapter 11: the paper's example of a mask, r₁ > r₃ > r₂ > r₄. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings OnlineLoss Weights Spacing Transformer.
From Icalign Require Import BlockErrors MaskedBlock Mask.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Claim mask-example, parts third-round, general; responses count from 0. After two rounds the
   record of the fourth is within 5e^{−g} of (1, 0, 1, 0). *)
Theorem mask_example : forall (dx dy : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (4 - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_4 -> vec 'I_dy) (r : 'I_4 -> R) (low : R),
  spaced Δ r -> (forall j, low <= r j <= low + spread) ->
  r (inord 3) < r (inord 1) < r (inord 2) -> r (inord 2) < r (inord 0) ->
  let m := run causal (nseq 2 (printed_block 4 W η γ c C)) (masked_prompt x y r) ord_max Ca.m in
  forall j : 'I_4, Rabs (m j - (if (j == 0%N :> nat) || (j == 2%N :> nat) then 1 else 0))
                   <= 5 * exp (- g).
Proof.
move=> dx dy W η g Δ spread C γ c g0 Δ0 small x y r low gaps range [r31 r12] r20 m j.
pose i : 'I_4 := ord_max; pose τ : {perm 'I_i.+1} := tperm (inord 1) (inord 2).
have τE (k : 'I_i.+1) : τ k = nth 0%N [:: 0; 2; 1; 3]%N k :> nat.
  by case: k => [[|[|[|[|//]]]] lt]; rewrite permE /= -!val_eqE /= !inordK //= ?inordK.
have rE (k : 'I_i.+1) : prefix (ltn_ord i) r k = r (inord k).
  by rewrite /prefix; congr r; apply/val_inj; rewrite /= inordK // ltn_ord.
have ranked : ranks (prefix (ltn_ord i) r) τ.
  move=> k l kl; rewrite !rE !τE; move: kl.
  by case: k => [[|[|[|[|//]]]] ?]; case: l => [[|[|[|[|//]]]] ?] //= _; lra.
have four : 5 / 2 * (INR 4 - 1) * c * exp (- g) <= 1.
  by have -> : INR 4 = 4 by [rewrite /=; ring]; exact: small.
have [_ [near _]] := @mask_selection dx dy 4 W η g Δ spread C g0 Δ0 four x y r low i τ (inord 1)
  gaps range ranked.
have := near j; rewrite !inordK // (_ : widen_ord _ j = j); last exact/val_inj.
have -> : flags τ 2 j = if (j == 0%N :> nat) || (j == 2%N :> nat) then 1 else 0.
  rewrite -(permKV τ j); move: (τ^-1%g j) => k; rewrite flags_place τE.
  by case: k => [[|[|[|[|//]]]] ?].
have -> : INR 2 * (5 / 2 * exp (- g)) = 5 * exp (- g) by rewrite /=; field.
by [].
Qed.
