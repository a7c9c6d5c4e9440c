(* Statements that are not theorems, of chapter 13: three attention layers for every N. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Elsewhere DepthBlocks Depth.
From Icalign Require Import Smoothness Mutants MutantsStep MutantsReadout MutantsBlocks.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Numbers ────────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of constant_depth_slots: an entry of the position between 0 and 1 *)
Lemma not_slots_for_every_position : ~ (forall low high r p : R,
  low <= r <= high -> 0 <= p <= 1 ->
  relu (r + (high - low) * p - high) = if Req_EM_T p 1 then r - low else 0).
Proof.
move/(_ 0 1 1 (/ 2) ltac:(lra) ltac:(lra)); case: Req_EM_T => [e|_ /=]; first by lra.
by rewrite /relu Rmax_right; lra.
Qed.

(* Mutant of constant_depth_comparison: 2/3 for 3/4 *)
Lemma not_compared_at_two_thirds : ~ (forall Δ r_i r_j : R,
  0 < Δ -> r_i = r_j \/ 2 / 3 * Δ <= Rabs (r_j - r_i) ->
  clip (2 * (r_j - r_i) / Δ - 1 / 2) = if Rlt_dec r_i r_j then 1 else 0).
Proof.
have gap : 2 / 3 * 1 <= Rabs (2 / 3 - 0) by rewrite Rabs_pos_eq; lra.
move/(_ 1 0 (2 / 3) Rlt_0_1 (or_intror gap)).
case: Rlt_dec => [lt|no]; last by lra.
by rewrite /clip /relu /= Rmax_right ?Rmax_left; lra.
Qed.

(* ── Two responses ──────────────────────────────────────────────────────────────────────────── *)

(* Mutant of constant_depth_broadcast: rewards that may be above the range *)
Lemma not_broadcast_above_the_range : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high C : R),
  0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j) ->
  let X := run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r) in
  X i Cd.board j = r j - low /\ X i Cd.m j = if Rlt_dec (r i) (r j) then 1 else 0).
Proof.
(* The range is 0 to 1, the rewards 2 and 0. *)
have gaps : spaced (3 / 4 * 1) (pair 2 0).
  by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
have r0 j : 0 <= pair 2 0 j by rewrite /pair; case: ifP; lra.
move/(_ 0%N 0%N _ vzero 0 1 0 1 0 Rlt_0_1 vzero (fun _ => vzero) _ ord0 ord_max gaps r0) => [+ _].
rewrite /run /= cd_spread_step cd_rank_step //= sum_two pair_0 pair_1 /=.
by rewrite /relu Rmax_right ?Rmax_right; lra.
Qed.

Lemma ends_gaps : spaced (3 / 4 * 1) (pair 1 0).
Proof. by move=> i j /(gaps ends_in_class); lra. Qed.

Lemma r01 j : 0 <= pair 1 0 j <= 1.
Proof. by rewrite /pair; case: ifP; lra. Qed.

(* Both have the reduced score −1. *)
Lemma ends_scores : exists low_Z, forall j,
  low_Z <= reduced (M1 0) (V1 1) (ends j) <= low_Z + 0.
Proof. by have [low_Z H] := scores ends_in_class; exists low_Z. Qed.

(* What the mask C leaves of the better response when the other one takes its mean. *)
Definition left_over (C : R) : R := share (exp (- C)).

Lemma means_ends C i : comb (field_weights (M1 0) C (V1 1) ends (better (pair 1 0) i)) ends
  = V1 (if i == ord0 then 0 else 2 * left_over C - 1).
Proof.
pose z j := reduced (M1 0) (V1 1) (ends j) - C * better (pair 1 0) i j.
have E : z ord0 - z ord_max = if i == ord0 then 0 else - C.
  rewrite /z /reduced !mulmv_1 !dot_1 !sqnorm_1 /better /pair /=.
  by case: (i == ord0); do 2 case: (Rlt_dec _ _) => ? /=; lra.
apply: vec_eq => c; rewrite /comb sum_two -[field_weights _ _ _ _ _]/(softmax z) /ends /two /V1.
have := softmax_miss z ord_max; rewrite {1}/crowd big_mkcond sum_two /= E Rplus_0_r.
have := softmax_sum z ord0; rewrite sum_two pair_0 pair_1 /left_over.
move: (softmax _ _) (softmax _ _) => v w; case: ifP => _; last by lra.
by rewrite exp_0 /share; lra.
Qed.

Lemma mean_ends C :
  run full (cd_blocks 2 (M1 0) 1 1 0 1 C) (cd_prompt (V1 1) ends (pair 1 0)) ord_max Cd.mean
  = V1 (2 * left_over C - 1).
Proof.
rewrite cd_run //; [|exact: Rlt_0_1|exact: ends_gaps|exact: r01].
by rewrite /cd_state means_ends.
Qed.

(* The step is 2, and what is written 2 − 4 · left_over C. *)
Lemma error_ends C :
  let u := run full (cd_blocks 2 (M1 0) 1 1 0 1 C) (cd_prompt (V1 1) ends (pair 1 0)) ord0 Cd.u in
  let ΔW := ((- 1) *: gradient (M1 0) (V1 1) ends id2)%V in
  ‖u - ΔW *v V1 1‖ = 4 * left_over C.
Proof.
cbv zeta; rewrite cd_run //; [|exact: Rlt_0_1|exact: ends_gaps|exact: r01].
have e0 := exp_pos (- C); have l0 : 0 <= left_over C by apply: share_ge0; lra.
rewrite slope_0 M1_scal mulmv_1 /cd_state; set v := (_ - _)%V.
have -> : v = V1 (- (4 * left_over C)).
  apply: vec_eq => c; rewrite /v /vsub /vscal [comb _ _ _]sum_two !means_ends /ends /two /V1.
  by rewrite pair_0 pair_1 /=; ring.
by rewrite vnorm_1 Rabs_Ropp Rabs_pos_eq; lra.
Qed.

Lemma ends_bounded j : ‖ends j‖ <= 1.
Proof. by rewrite vnorm_1 /pair; case: ifP; split_Rabs; lra. Qed.

Lemma left_over_0 : left_over 0 = / 2.
Proof. by rewrite /left_over Ropp_0 exp_0 /share; lra. Qed.

Lemma crowd_ends k : (k < 2)%N -> share (field_crowd 0 0 2 k) = if k == 0%N then 0 else / 2.
Proof.
case: k => [|[|//]] _; rewrite /field_crowd Rminus_0_r Ropp_0 exp_0 /share /=; lra.
Qed.

(* Mutant of constant_depth_ranks: a token marks itself too (the marks alone) *)
Lemma not_its_own_mark : ~ (forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R), 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (σ τ : {perm 'I_N}),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  let two y r := run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r) in
  forall k l : 'I_N, two y r (τ k) Cd.m (τ l) = if (l <= k)%N then 1 else 0).
Proof.
move/(_ _ _ _ (M1 0) 1 1 0 1 0 Rlt_0_1 (V1 1) ends _ id2 id2 ends_gaps r01 ranks_ends) => H.
have [_ [_ [mark _]]] := @constant_depth_ranks _ _ _ (M1 0) 1 1 0 1 0 Rlt_0_1 (V1 1) ends _ id2 id2
  ends_gaps r01 ranks_ends.
by have := mark ord0 ord0; rewrite (H ord0 ord0) /=; lra.
Qed.

(* Mutant of constant_depth_own_rank: D the radius, not the diameter *)
Lemma not_own_rank_in_the_radius : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D C : R),
  0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall j, ‖y j‖ <= D) ->
  let mean := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) (τ k) Cd.mean in
  ‖mean - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N k)).
Proof.
(* Without a mask the mean of both is taken for that of the last: 0 for −1. *)
move/(_ _ _ _ (M1 0) 1 1 0 1 0 1 0 Rlt_0_1 (V1 1) _ _ id2 ord_max ends_gaps r01 ranks_ends
  ends_scores ends_bounded); cbv zeta.
have [-> _] := @pl_last_term _ _ _ (M1 0) (V1 1) ends id2 ord_max 0 erefl.
rewrite perm1 mean_ends left_over_0 crowd_ends //.
rewrite -[(_ - _)%V]/(V1 (2 * / 2 - 1 - pair 1 (- 1) ord_max)) vnorm_1 pair_1 /=.
by rewrite Rabs_pos_eq; lra.
Qed.

(* Mutant of constant_depth: half the bound, η for 2η *)
Lemma not_constant_depth_halved : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D C : R),
  0 <= η -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall i j, ‖y i - y j‖ <= D) ->
  let u := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) i Cd.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= η * D * ∑_(k < N) share (field_crowd C spread_Z N k)).
Proof.
(* Without a mask, C = 0, the error is 2. *)
move/(_ _ _ _ (M1 0) 1 1 0 1 0 2 0 Rle_0_1 Rlt_0_1 (V1 1) _ _ id2 ord0 (unit_query ends_in_class)
  ends_gaps r01 ranks_ends ends_scores ends_spread).
cbv zeta; rewrite error_ends left_over_0 sum_two !crowd_ends //=; lra.
Qed.

(* Mutant of constant_depth_norm: half the bound, η for 2η (the last part alone) *)
Lemma not_half_the_means : ~ (forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R),
  0 <= η -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) ->
  let X := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) in
  let z := (X i Cd.u - ((- η) *: gradient W x y τ) *v x)%V in
  ‖z‖ <= η * ∑_k ‖X (τ k) Cd.mean - tail_mean W x y τ k‖).
Proof.
(* Without a mask, C = 0, the error is 2, and the last mean 0 for −1. *)
move/(_ _ _ _ (M1 0) 1 1 0 1 0 Rle_0_1 Rlt_0_1 (V1 1) ends _ id2 ord0 (unit_query ends_in_class)
  ends_gaps r01); cbv zeta.
rewrite error_ends sum_two !perm1 mean_ends left_over_0.
have -> : run full (cd_blocks 2 (M1 0) 1 1 0 1 0) (cd_prompt (V1 1) ends (pair 1 0)) ord0 Cd.mean
    = V1 0.
  by rewrite cd_run ?/cd_state ?means_ends //; [exact: Rlt_0_1|exact: ends_gaps|exact: r01].
have [-> _] := @pl_last_term _ _ _ (M1 0) (V1 1) ends id2 ord_max 0 erefl.
rewrite /id2 /ends tail_mean_two; last by ring.
rewrite perm1 -[(V1 0 - V1 _)%V]/(V1 (0 - (1 + - 1) / 2)).
rewrite -[(V1 _ - two _ _ _)%V]/(V1 (2 * / 2 - 1 - pair 1 (- 1) ord_max)) !vnorm_1 pair_1.
by split_Rabs; lra.
Qed.

(* Mutant of constant_depth_mask: C for twice the tolerance *)
Lemma not_masked_for_twice_the_tolerance : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D tol : R),
  0 <= η -> 0 < Δ -> 0 < tol ->
  let S := ∑_(k < N) (INR k / INR (N - k)) in
  let C := spread_Z + Rmax 0 (ln (η * D * S / tol)) in
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall i j, ‖y i - y j‖ <= D) ->
  let u := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) i Cd.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= tol).
Proof.
(* At the tolerance 1, C = ln 2, and the error is 4/3. *)
move/(_ _ _ _ (M1 0) 1 1 0 1 0 2 1 Rle_0_1 Rlt_0_1 Rlt_0_1 (V1 1) _ _ id2 ord0
  (unit_query ends_in_class) ends_gaps r01 ranks_ends ends_scores ends_spread).
cbv zeta; rewrite error_ends sum_two /=.
rewrite (_ : 1 * 2 * (0 / (1 + 1) + 1 / 1) / 1 = 2); last by field.
have l2 := ln_lt_2; rewrite Rmax_right ?Rplus_0_l; last by lra.
by rewrite /left_over exp_Ropp exp_ln /share; lra.
Qed.
