(* Statements that are not theorems, of chapter 3: the head that selects the best response. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.
From Icalign Require Import Smoothness Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Selection ──────────────────────────────────────────────────────────────────────────────── *)

(* The missed attention of two responses without dimension, 0 the better. *)
Lemma missed (γ a b : R) (i : 'I_2) :
  1 - sel_attention (dx := 0) (dy := 0) γ vzero (fun _ => vzero) (pair a b) i ord0
  = share (exp (γ * b - γ * a)).
Proof.
rewrite sel_softmax softmax_miss /crowd big_mkcond sum_two /= pair_0 pair_1 Rplus_0_l.
by [].
Qed.

Lemma gap_0 (j : 'I_2) : j != ord0 -> pair 1 0 j + 0 <= pair 1 0 ord0.
Proof. by move=> j0; rewrite /pair (negbTE j0) /=; lra. Qed.

Lemma gap_1 (j : 'I_2) : j != ord0 -> pair 1 0 j + 1 <= pair 1 0 ord0.
Proof. by move=> j0; rewrite /pair (negbTE j0) /=; lra. Qed.

(* Mutant of selection_logits: a row of ones that does not hold one *)
Lemma not_logits_without_one : ~ (forall (dx dy : nat) (γ : R) (T : finType)
    (X : T -> token (sel_stream dx dy)) (i j : T),
  logit (sel_head dx dy γ) X i j = γ * X j Sel.r ord0).
Proof.
pose X (i : 'I_1) : token (sel_stream 0 0) := fun a _ => if a is Sel.r then 1 else 0.
move/(_ 0%N 0%N 1 _ X ord0 ord0); rewrite /logit; blocks.
by rewrite /X; lra.
Qed.

(* Mutant of selection_logits_prompt: the temperature inverted *)
Lemma not_logits_over_temperature : ~ (forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (sel_head dx dy γ) (sel_prompt x y r) i j = r j / γ).
Proof.
move/(_ 0%N 0%N 1%N 2 vzero (fun _ => vzero) (fun _ => 1) ord0 ord0).
by rewrite selection_logits_prompt; lra.
Qed.

(* Mutant of selection_bound: a negative γ *)
Lemma not_bound_below_zero : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= q / (1 + q)).
Proof.
move/(_ 0%N 0%N 2%N (- 1) 0 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have := H gap_0; rewrite missed /share /=.
rewrite (_ : - - 1 * 0 = 0); last by ring.
rewrite exp_0 (_ : - 1 * 0 - - 1 * 1 = 1); last by ring.
have e1 := exp_ineq1 1 ltac:(lra); move: (exp 1) e1 => e e1.
have -> : e / (1 + e) = 1 - / (1 + e) by field; lra.
have : / (1 + e) < / 3 by apply: Rinv_lt_contravar; lra.
by lra.
Qed.

(* Mutant of selection_bound: N − 2 competitors *)
Lemma not_bound_with_one_less : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 2) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= q / (1 + q)).
Proof.
move/(_ 0%N 0%N 2%N 0 0 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have := H (Rle_refl 0) gap_0; rewrite missed /share /= !Rmult_0_l.
by rewrite Rminus_0_r exp_0 (_ : 1 + 1 - 2 = 0) /Rdiv ?Rmult_0_l; lra.
Qed.

(* Mutant of selection_bound: twice the gap *)
Lemma not_bound_with_twice_the_gap : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * (2 * Δ)) in
  1 - sel_attention γ x y r i best <= q / (1 + q)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have := H Rle_0_1 gap_1; rewrite missed /=; apply: Rlt_not_le.
rewrite -/(share _); apply: share_lt.
  by apply: Rmult_le_pos (Rlt_le _ _ (exp_pos _)); lra.
rewrite (_ : 1 + 1 - 1 = 1) ?Rmult_1_l; [apply: exp_increasing|]; lra.
Qed.

(* Mutant of selection_bound_tied_losers: a temperature of one *)
Lemma not_tied_without_temperature : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  (forall j : 'I_N, j != best -> r j = r best - Δ) ->
  let q := (INR N - 1) * exp (- Δ) in
  1 - sel_attention γ x y r i best = q / (1 + q)).
Proof.
move/(_ 0%N 0%N 2%N 2 1 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have tied (j : 'I_2) : j != ord0 -> pair 1 0 j = pair 1 0 ord0 - 1.
  by move=> j0; rewrite /pair (negbTE j0) /=; lra.
have := H tied; rewrite missed /=; apply: Rlt_not_eq; rewrite -/(share _); apply: share_lt.
  exact: Rlt_le (exp_pos _).
rewrite (_ : 1 + 1 - 1 = 1) ?Rmult_1_l; [apply: exp_increasing|]; lra.
Qed.

(* Mutant of selection_bound_strict: no response further behind *)
Lemma not_strict_in_general : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best < q / (1 + q)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have := H Rlt_0_1 gap_1; rewrite missed /=; apply: Rge_not_lt; right.
rewrite -/(share _); congr share; rewrite (_ : 1 + 1 - 1 = 1) ?Rmult_1_l; last by lra.
by congr exp; ring.
Qed.

(* Mutant of selection_bound_equality: γ zero *)
Lemma not_equality_at_zero : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best = q / (1 + q)
  <-> (forall j : 'I_N, j != best -> r j = r best - Δ)).
Proof.
move/(_ 0%N 0%N 2%N 0 0 vzero (fun _ => vzero) (pair 1 0) ord0 ord0) => H.
have [{}H _] := H (Rle_refl 0) gap_0; move: H; rewrite missed /= => H.
suff /H /(_ ord_max isT) : share (exp (0 * 0 - 0 * 1))
    = (1 + 1 - 1) * exp (- 0 * 0) / (1 + (1 + 1 - 1) * exp (- 0 * 0)) by rewrite pair_0 pair_1; lra.
rewrite -/(share _); congr share; rewrite (_ : 1 + 1 - 1 = 1) ?Rmult_1_l; last by lra.
by congr exp; ring.
Qed.

(* Mutant of selection_bound_unequal_spacing: all gaps equal *)
Lemma not_strict_for_equal_gaps : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (best i : 'I_N),
  0 < γ -> 0 < Δ -> spaced Δ r -> ranks r τ -> (forall j, r j <= r best) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best < ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 1 0) 1%g ord0 ord0 Rlt_0_1 Rlt_0_1) => H.
have s : spaced 1 (pair 1 0).
  by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
have ranked : ranks (pair 1 0) (1%g : {perm 'I_2}).
  by case=> [[|[|k]] pk] [[|[|l]] pl] //; rewrite !perm1 /pair /=; lra.
have top j : pair 1 0 j <= pair 1 0 ord0 by rewrite /pair /=; case: ifP; lra.
have := H s ranked top; cbv zeta; rewrite missed -share_geometric; [|lra|lra|by []].
rewrite (_ : 1 * 0 - 1 * 1 = - (1) * 1); last by ring.
set ξ := exp _; have x0 : 0 < ξ := exp_pos _.
have x1 : ξ < 1 by rewrite -exp_0; apply: exp_increasing; lra.
by rewrite (_ : (ξ - ξ ^ 2) / (1 - ξ) = ξ); [exact: Rlt_irrefl | field; lra].
Qed.

(* Mutant of selection_bound_spaced: one response less *)
Lemma not_spaced_with_one_less : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> 0 < Δ -> spaced Δ r -> (forall j, r j <= r best) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= ξ * (1 - ξ ^ (N - 2)) / (1 - ξ ^ N)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 1 0) ord0 ord0 Rlt_0_1 Rlt_0_1) => H.
have s : spaced 1 (pair 1 0).
  by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
have top j : pair 1 0 j <= pair 1 0 ord0 by rewrite /pair /=; case: ifP; lra.
have := H s top; cbv zeta; rewrite missed subnn; set ξ := exp (- (1) * 1).
rewrite (_ : ξ * (1 - ξ ^ 0) = 0) ?/Rdiv ?Rmult_0_l /share; last by rewrite /=; ring.
set q := exp _.
by have q0 : 0 < q := exp_pos _; have := Rdiv_lt_0_compat q (1 + q); lra.
Qed.

(* Mutant of selection_bound_spaced: rewards that may tie *)
Lemma not_spaced_with_ties : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> 0 < Δ -> (forall j, r j <= r best) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 0 0) ord0 ord0 Rlt_0_1 Rlt_0_1) => H.
have top j : pair 0 0 j <= pair 0 0 ord0 by rewrite /pair /=; case: ifP; lra.
have := H top; cbv zeta; rewrite missed -share_geometric; [|lra|lra|by []]; apply: Rlt_not_le.
rewrite Rminus_eq_0 exp_0; set ξ := exp (- (1) * 1); have x0 : 0 < ξ := exp_pos _.
have x1 : ξ < 1 by rewrite -exp_0; apply: exp_increasing; lra.
have -> : (ξ - ξ ^ 2) / (1 - ξ) = ξ by field; lra.
by apply: share_lt; lra.
Qed.

(* Mutant of selection_bound_equal_spacing: one response more *)
Lemma not_equal_spacing_with_one_more : ~ (forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (best i : 'I_N),
  0 < γ -> 0 < Δ -> (forall k : 'I_N, r (τ k) = r best - INR k * Δ) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best = ξ * (1 - ξ ^ N) / (1 - ξ ^ N)).
Proof.
move/(_ 0%N 0%N 2%N 1 1 vzero (fun _ => vzero) (pair 1 0) 1%g ord0 ord0 Rlt_0_1 Rlt_0_1) => H.
have falls (k : 'I_2) : pair 1 0 ((1%g : {perm 'I_2}) k) = pair 1 0 ord0 - INR k * 1.
  by case: k => [[|[|k]] pk] //; rewrite perm1 /pair /=; lra.
have := H falls; cbv zeta; rewrite missed (_ : 1 * 0 - 1 * 1 = - (1) * 1); last by ring.
set ξ := exp _; have x0 : 0 < ξ := exp_pos _.
have x1 : ξ < 1 by rewrite -exp_0; apply: exp_increasing; lra.
rewrite (_ : ξ * (1 - ξ ^ 2) / (1 - ξ ^ 2) = ξ); last by field; nra.
have -> : share ξ = ξ - ξ * share ξ by rewrite /share; field; lra.
have : 0 < share ξ by apply: Rdiv_lt_0_compat; lra.
by nra.
Qed.

(* Mutant of selection_bound_free_of_n: half of it *)
Lemma not_free_of_n_halved : ~ (forall (N : nat) (γ Δ : R),
  (0 < N)%N -> 0 < γ -> 0 < Δ ->
  let ξ := exp (- γ * Δ) in
  ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N) < ξ / 2).
Proof.
move/(_ 2%N 1 1 isT Rlt_0_1 Rlt_0_1) => /=; set ξ := exp _; have x0 : 0 < ξ := exp_pos _.
have x1 : ξ < 1 by rewrite -exp_0; apply: exp_increasing; lra.
rewrite (_ : ξ * _ / _ = ξ * / (1 + ξ)); last by field; nra.
have : / 2 < / (1 + ξ) by apply: Rinv_lt_contravar; lra.
by nra.
Qed.
