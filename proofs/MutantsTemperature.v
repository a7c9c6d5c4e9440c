(* Statements that are not theorems, of chapter 3: how near the head comes, and how cold it must
   be. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection Temperature.
From Icalign Require Import Smoothness Mutants MutantsSelection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Definition x0 : vec 'I_0 := vzero.

(* Two responses a and b with the rewards 1 and 0. *)
Lemma selected_two γ a b i : (selected γ x0 (two a b) (pair 1 0) i - two a b ord0)%V
  = V1 ((b - a) * share (exp (γ * 0 - γ * 1))).
Proof.
apply: vec_eq => c; rewrite sel_output /vsub /comb sum_two /two /V1 pair_0 pair_1.
have m := missed γ 1 0 i; rewrite sel_softmax in m.
have s := softmax_sum (fun l => γ * pair 1 0 l) ord0; rewrite sum_two in s.
by rewrite -m; move: s; move: (softmax _ ord0) (softmax _ ord_max) => u v s; nra.
Qed.

Lemma missed_two γ i : 1 - sel_attention γ x0 (two 1 (- 1)) (pair 1 0) i ord0
  = share (exp (γ * 0 - γ * 1)).
Proof.
by have m := missed γ 1 0 i; rewrite sel_softmax in m; rewrite sel_softmax.
Qed.

Lemma share_gt0 u : 0 < share (exp u).
Proof. by have e := exp_pos u; rewrite /share; apply: Rdiv_lt_0_compat; lra. Qed.

Lemma far j : ‖two 1 (- 1) j - two 1 (- 1) ord0‖ <= 2.
Proof. by apply: spread_two; split_Rabs; lra. Qed.

Lemma distance_two γ i :
  ‖selected γ x0 (two 1 (- 1)) (pair 1 0) i - two 1 (- 1) ord0‖ = 2 * share (exp (γ * 0 - γ * 1)).
Proof.
by rewrite selected_two vnorm_1; have := share_gt0 (γ * 0 - γ * 1); split_Rabs; lra.
Qed.

(* Mutant of selection_output_projected: v of any length *)
Lemma not_projected_on_any_vector : ~ (forall (dx dy N : nat) (γ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (v : vec 'I_dy) (best i : 'I_N),
  (forall j, ‖y j - y best‖ <= D) ->
  ⟨v, selected γ x y r i - y best⟩ <= D * (1 - sel_attention γ x y r i best)).
Proof.
move/(_ _ _ _ 1 2 x0 (two 1 (- 1)) (pair 1 0) (V1 (- 2)) ord0 ord0 far).
by rewrite selected_two missed_two dot_1; have := share_gt0 (1 * 0 - 1 * 1); lra.
Qed.

(* Mutant of selection_output_norm: half of it *)
Lemma not_norm_halved : ~ (forall (dx dy N : nat) (γ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  (forall j, ‖y j - y best‖ <= D) ->
  let z := (selected γ x y r i - y best)%V in
  (forall v, ‖v‖ = 1 -> ⟨v, z⟩ <= ‖z‖ /\ (forall j, Rabs ⟨v, y j - y best⟩ <= D))
  /\ ((0 < dy)%N -> exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖)
  /\ ‖z‖ <= D / 2 * (1 - sel_attention γ x y r i best)).
Proof.
move/(_ _ _ _ 1 2 x0 (two 1 (- 1)) (pair 1 0) ord0 ord0 far) => [_ [_]].
by rewrite distance_two missed_two; have := share_gt0 (1 * 0 - 1 * 1); lra.
Qed.

(* Mutant of selection_output_norm: no unit vector where there is no dimension *)
Lemma not_along_in_no_dimension : ~ (forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  let z := (selected γ x y r i - y best)%V in
  exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖).
Proof.
move/(_ 0%N 0%N 1%N 1 vzero (fun _ => vzero) (fun _ => 0) ord0 ord0) => [v [v1 _]].
by move: v1; rewrite /vnorm /sqnorm /dot big_ord0 sqrt_0; lra.
Qed.

Lemma bound_two : (INR 2 - 1) * exp (- (1) * 1) = exp (1 * 0 - 1 * 1).
Proof. by rewrite /= (_ : 1 + 1 - 1 = 1) ?Rmult_1_l; [congr exp | ]; lra. Qed.

(* Mutant of selection_output: D the radius, not the diameter *)
Lemma not_output_in_the_radius : ~ (forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  (forall j, ‖y j‖ <= D) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  ‖selected γ x y r i - y best‖ <= D * (1 - sel_attention γ x y r i best) <= D * (q / (1 + q))).
Proof.
have short j : ‖two 1 (- 1) j‖ <= 1.
  by rewrite vnorm_1 /pair; case: ifP => _; split_Rabs; lra.
move/(_ _ _ _ 1 1 1 x0 (two 1 (- 1)) (pair 1 0) ord0 ord0 Rle_0_1 gap_1 short) => [+ _].
rewrite distance_two missed_two; have := share_gt0 (1 * 0 - 1 * 1); lra.
Qed.

(* Mutant of selection_output_sharp: losers at most D away *)
Lemma not_sharp_below_the_distance : ~ (forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (p : vec 'I_dy) (best i : 'I_N),
  (forall j : 'I_N, j != best -> r j = r best - Δ) -> (forall j : 'I_N, j != best -> y j = p) ->
  ‖p - y best‖ <= D ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  ‖selected γ x y r i - y best‖ = D * (q / (1 + q))).
Proof.
have tied (j : 'I_2) : j != ord0 -> pair 1 0 j = pair 1 0 ord0 - 1.
  by move=> j0; rewrite /pair (negbTE j0) /=; lra.
have lost (j : 'I_2) : j != ord0 -> two 1 (- 1) j = V1 (- 1).
  by move=> j0; rewrite /two /pair (negbTE j0).
have wide : ‖V1 (- 1) - two 1 (- 1) ord0‖ <= 3 by have := far ord_max; rewrite /two pair_1; lra.
move/(_ _ _ _ 1 1 3 x0 (two 1 (- 1)) (pair 1 0) _ ord0 ord0 tied lost wide); cbv zeta.
rewrite bound_two distance_two -/(share _); have := share_gt0 (1 * 0 - 1 * 1); lra.
Qed.

(* Mutant of selection_output_spaced: twice the gap *)
Lemma not_spaced_with_twice_the_gap : ~ (forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> 0 < Δ -> 0 < D -> spaced Δ r -> (forall j, r j <= r best) ->
  (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ < D * exp (- γ * (2 * Δ))).
Proof.
move/(_ _ _ _ 1 1 2 x0 (two 1 (- 1)) (pair 1 0) ord0 ord0 Rlt_0_1 Rlt_0_1 Rlt_0_2) => H.
have s : spaced 1 (pair 1 0).
  by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
have top j : pair 1 0 j <= pair 1 0 ord0 by rewrite /pair /=; case: ifP; lra.
have := H s top far; rewrite distance_two; have -> : 1 * 0 - 1 * 1 = - 1 by ring.
have -> : - (1) * (2 * 1) = - 1 + - 1 by ring.
have := exp_pos (- 1); have : exp (- 1) * exp 1 = 1.
  by rewrite -exp_plus (_ : - 1 + 1 = 0) ?exp_0 //; ring.
rewrite exp_plus; have := exp_ineq1_le 1; move: (exp 1) (exp (- 1)) => f e f2 ef e0.
have e1 : e * (1 + e) < 1 by nra.
have -> : share e = e * e + e * (1 - e * (1 + e)) / (1 + e) by rewrite /share; field; lra.
by have := Rdiv_lt_0_compat (e * (1 - e * (1 + e))) (1 + e) ltac:(nra) ltac:(lra); lra.
Qed.

(* Mutant of selection_temperature: the tolerance doubled *)
Lemma not_temperature_for_half_the_tolerance : ~ (forall (dx dy N : nat) (γ Δ D ε : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < Δ -> 0 < ε < D ->
  Rmax 0 (ln ((INR N - 1) * (D / (2 * ε) - 1)) / Δ) <= γ ->
  (forall j : 'I_N, j != best -> r j + Δ <= r best) -> (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ <= ε).
Proof.
move/(_ _ _ _ 0 1 2 (/ 2) x0 (two 1 (- 1)) (pair 1 0) ord0 ord0 Rlt_0_1) => H.
have := H ltac:(lra) _ gap_1 far; rewrite distance_two (_ : 0 * 0 - 0 * 1 = 0); last by ring.
rewrite exp_0 /share /= => {}H; suff : 2 * (1 / (1 + 1)) <= / 2 by lra.
apply: H; rewrite (_ : (1 + 1 - 1) * (2 / (2 * / 2) - 1) = 1); last by field.
by rewrite ln_1 /Rdiv Rmult_0_l Rmax_left; lra.
Qed.

(* Mutant of selection_temperature_meets: without the −1 *)
Lemma not_met_without_one : ~ (forall (n Δ D ε : R),
  0 < n -> 0 < Δ -> 0 < ε < D ->
  let γ := ln (n * (D / ε)) / Δ in
  let q := n * exp (- γ * Δ) in
  D * (q / (1 + q)) = ε).
Proof.
move/(_ 1 1 2 1 Rlt_0_1 Rlt_0_1 ltac:(lra)); cbv zeta.
rewrite (_ : - (ln (1 * (2 / 1)) / 1) * 1 = - ln 2); last first.
  by rewrite (_ : 1 * (2 / 1) = 2); field.
by rewrite exp_Ropp exp_ln; lra.
Qed.

(* Mutant of selection_temperature_decreasing: increasing *)
Lemma not_increasing_in_temperature : ~ (forall (n Δ D γ γ' : R),
  0 < n -> 0 < Δ -> 0 < D -> γ' < γ ->
  let q := n * exp (- γ * Δ) in
  let q' := n * exp (- γ' * Δ) in
  D * (q' / (1 + q')) < D * (q / (1 + q))).
Proof.
move/(_ 1 1 1 1 0 Rlt_0_1 Rlt_0_1 Rlt_0_1 Rlt_0_1); cbv zeta => lt.
by have := selection_temperature_decreasing Rlt_0_1 Rlt_0_1 Rlt_0_1 Rlt_0_1; cbv zeta; lra.
Qed.

(* Mutant of selection_temperature_free_of_n: twice the gap *)
Lemma not_free_of_n_at_twice_the_gap : ~ (forall (γ Δ D ε : R),
  0 < Δ -> 0 < ε -> ln (D / ε) / (2 * Δ) <= γ -> D * exp (- γ * Δ) <= ε).
Proof.
have l4 : ln (4 / 1) / (2 * 1) = ln 2.
  by rewrite (_ : 4 / 1 = 2 * 2) ?ln_mult; lra.
move/(_ (ln 2) 1 4 1 Rlt_0_1 Rlt_0_1); rewrite l4 => /(_ (Rle_refl _)).
by rewrite Rmult_1_r exp_Ropp exp_ln; lra.
Qed.

(* Mutant of selection_never_exact_positive: at least 1/N *)
Lemma not_the_mean_weight : ~ (forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  / INR N <= sel_attention γ x y r i j).
Proof.
move/(_ _ _ _ 1 x0 (two 1 (- 1)) (pair 1 0) ord0 ord_max).
have := missed_two 1 ord0; rewrite !sel_softmax => m.
have s := softmax_sum (fun l => 1 * pair 1 0 l) ord0; rewrite sum_two in s.
have lt : share (exp (1 * 0 - 1 * 1)) < share 1.
  apply: share_lt; first exact: Rlt_le (exp_pos _).
  by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
move: s m lt; rewrite /share /=; move: (softmax _ ord0) (softmax _ ord_max) => u v; lra.
Qed.
