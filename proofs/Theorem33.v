(* Chapter 6, Theorem 3.3: N−1 blocks are one gradient step on the Plackett–Luce loss. The weights,
   el_block W η γ Δ spread B C, are fixed before the input: they know its class only. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The first N−1 terms are the gradient step. *)
Lemma gradient_step_terms dx dy N (W : mat dy dx) (η : R) x (y : 'I_N -> vec 'I_dy) τ :
  ‖x‖ = 1 -> ((- η) *: gradient W x y τ *v x)%V = first_terms η W x y τ (N - 1).
Proof.
move=> x1; have := pl_gradient_targets x y τ W η; rewrite /= -(vnorm_sqr x) x1 => E.
apply: vec_eq => c; have := f_equal (fun v => v c) E; rewrite /vscal /first_terms /vsum.
set g := mulmv _ _ _; set s := ∑_(_ < N | _) _; set t := ∑_(_ < N | _) _.
suff -> : t = - s by lra.
rewrite /s /t -sum_opp; apply: eq_big => [k|k _]; first by rewrite ltn_subRL add1n.
by rewrite /vscal /vsub /vadd; ring.
Qed.

Lemma hot_γ γ Δ : 0 < Δ -> ln 5 <= γ * Δ -> 0 < γ.
Proof. by have := ln5_ge; nra. Qed.

(* ── In block k ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim theorem-3-3, part threshold: r⁺, what the heads of block k put into the row top, is near
   the best live reward; that those in play are the places from k on is theorem_3_3_induction. *)
Theorem theorem_3_3_threshold : forall (dx dy N : nat) (W : mat dy dx) (η γ Δ spread B C : R),
  0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (low : R)
    (k i : 'I_N),
  spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  let b := el_block W η γ Δ spread B C in
  let X := run full (nseq k b) (el_prompt x y r) in
  let top := attend full (heads b) X i El.top ord0 in
  Rabs (top - r (τ k)) <= Δ / 4.
Proof.
move=> dx dy N W η γ Δ spread B C Δ0 hot B0 x y r τ low k i gaps ranked range b X top.
have near (l : 'I_N) := top_near l (hot_γ Δ0 hot) Δ0 gaps ranked range hot.
rewrite /top /X (state_after W η C x y Δ0 B0 gaps ranked range near) el_attend.
exact: near.
Qed.

(* Claim theorem-3-3, part winner-term. *)
Theorem theorem_3_3_winner_term : forall (dx dy N : nat) (η γ Δ spread low D : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (u : vec 'I_dy)
    (k i : 'I_N),
  0 < γ -> 0 < Δ -> spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  (forall j l, ‖y j - y l‖ <= D) ->
  let X := el_state x y r (flags τ k) u in
  let found := comb (attention full (winner_head dx dy η γ Δ spread) X i) y in
  ‖found - y (τ k)‖ <= D * share (winner_crowd γ Δ spread N k).
Proof.
move=> dx dy N η γ Δ spread low D x y r τ u k i γ0 Δ0 gaps ranked range dist /=.
have -> : comb (attention full (winner_head dx dy η γ Δ spread)
    (el_state x y r (flags τ k) u) i) y = comb (winner_weights γ Δ spread r (flags τ k)) y.
  by apply: vec_eq => c; apply: eq_bigr => j _; rewrite el_winner_attention.
exact: (winner_error k dist γ0 Δ0 gaps ranked range).
Qed.

(* Claim theorem-3-3, part field-term. *)
Theorem theorem_3_3_field_term : forall (dx dy N : nat) (W : mat dy dx) (η C spread_Z low D : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (u : vec 'I_dy)
    (k i : 'I_N),
  (forall j, low <= reduced W x (y j) <= low + spread_Z) ->
  (forall j l, ‖y j - y l‖ <= D) ->
  let X := el_state x y r (flags τ k) u in
  let found := comb (attention full (field_head W η C) X i) y in
  ‖found - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N k).
Proof.
move=> dx dy N W η C spread_Z low D x y r τ u k i range dist /=.
have -> : comb (attention full (field_head W η C) (el_state x y r (flags τ k) u) i) y
    = comb (field_weights W C x y (flags τ k)) y.
  by apply: vec_eq => c; apply: eq_bigr => j _; rewrite el_field_attention.
exact: (field_error τ k dist C range).
Qed.

(* ── All blocks ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim theorem-3-3, part induction: after K blocks, on all tokens, the flags are exactly those of
   the first K places, r⁺ is gone and the other rows are as before, but for one sum u; so each
   block errs by what it would err without the others. The sum of these errors is theorem_3_3. *)
Theorem theorem_3_3_induction : forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let after K := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) in
  let u K := after K i El.u in
  (forall K, after K = el_state x y r (flags τ K) (u K))
  /\ (forall k : 'I_N,
     ‖u k.+1 - u k - (2 * η) *: (y (τ k) - tail_mean W x y τ k)‖
     <= 2 * η * D * (share (winner_crowd γ Δ spread N k) + share (field_crowd C spread_Z N k))).
Proof.
move=> dx dy N W η γ Δ spread spread_Z D B C η0 Δ0 hot B0 x y r τ i cls ranked after u.
case: cls => x1 gaps [low range] [low_Z range_Z] dist; have γ0 := hot_γ Δ0 hot.
have near (k : 'I_N) := top_near k γ0 Δ0 gaps ranked range hot.
have st := state_after W η C x y Δ0 B0 gaps ranked range near.
split=> [K|k]; first by rewrite /u /after st.
rewrite /u /after !st [el_state _ _ _ _ _ _ _]/= [X in (_ - X - _)%V]/=.
have e1 := winner_error k dist γ0 Δ0 gaps ranked range.
have e2 := field_error τ k dist C range_Z.
move: e1 e2; set v := comb _ y; set m := comb (field_weights _ _ _ _ _) y.
set a := accumulated _ _ _ _ _ _ _ _ _ _ _; set t := tail_mean _ _ _ _ _ => e1 e2.
have -> : (a + (2 * η) *: (v - m) - a - (2 * η) *: (y (τ k) - t)
  = (2 * η) *: (v - y (τ k)) + (- (2 * η)) *: (m - t))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub /vscal; ring.
apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
have η2 : 0 <= 2 * η by lra.
rewrite Rmult_plus_distr_l !(Rmult_assoc (2 * η)).
by apply: Rplus_le_compat; exact: Rmult_le_compat_l.
Qed.

(* Claim partial-sums, part first-terms: after K blocks every token holds the first K terms. *)
Theorem partial_sums : forall (dx dy N K : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  (K <= N)%N -> 0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  ‖u - first_terms η W x y τ K‖ <= error_bound η γ Δ C spread spread_Z D N K.
Proof.
move=> dx dy N K W η γ Δ spread spread_Z D B C KN η0 Δ0 hot B0 x y r τ i cls ranked /=.
case: cls => x1 gaps [low range] [low_Z range_Z] dist; have γ0 := hot_γ Δ0 hot.
have near (k : 'I_N) := top_near k γ0 Δ0 gaps ranked range hot.
rewrite (state_after W η C x y Δ0 B0 gaps ranked range near).
exact: (accumulated_error C γ0 Δ0 η0 gaps ranked range range_Z dist KN).
Qed.

(* Claim theorem-3-3, part bound: N−1 blocks make the step ΔW = −η∇L, at every token. The exact
   flags between the blocks are theorem_3_3_induction. *)
Theorem theorem_3_3 : forall (dx dy N : nat) (W : mat dy dx) (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq (N - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= 2 * η * D * ∑_(k < N - 1) (share (winner_crowd γ Δ spread N k)
                                              + share (field_crowd C spread_Z N k)).
Proof.
move=> dx dy N W η γ Δ spread spread_Z D B C η0 Δ0 hot B0 x y r τ i cls ranked /=.
rewrite gradient_step_terms; last exact: unit_query cls.
exact: (partial_sums _ (leq_subr 1 N) η0 Δ0 hot B0 _ cls ranked).
Qed.
