(* Chapter 6: temperatures from a tolerance; one set of weights for a class of inputs; the weaker,
   simpler form of the bound. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The bound in terms of ξ and e^{−(C−R_Z)} ───────────────────────────────────────────────── *)

Lemma winner_share_le γ Δ spread N k : 0 < γ -> 0 < Δ -> 0 <= spread -> (k < N)%N ->
  share (winner_crowd γ Δ spread N k) <= exp (- γ * Δ).
Proof.
move=> γ0 Δ0 s0 kN; have [x0 x1] := ξ01 γ0 Δ0; rewrite /winner_crowd /=.
set ξ := exp (- γ * Δ) in x0 x1 *; set e := exp _.
have e0 : 0 < e by exact: exp_pos.
have eξ : e <= ξ ^ (N - k).
  rewrite ξ_pow; apply: exp_mono; rewrite addn1 INR_S.
  by have := INR_ge0 (N - k); have := Rmult_lt_0_compat _ _ γ0 Δ0; nra.
have [p0 p1] := pow_unit k x0 (Rlt_le _ _ x1); have [q0 q1] := pow_unit (N - k) x0 (Rlt_le _ _ x1).
have i0 : 0 < / (1 - ξ) by apply: Rinv_0_lt_compat; lra.
have qξ : ξ ^ (N - k) <= ξ.
  have [n ->] : exists n, (N - k)%N = n.+1 by exists (N - k).-1; rewrite prednK ?subn_gt0.
  by rewrite -tech_pow_Rmult; have := pow_unit n x0 (Rlt_le _ _ x1); nra.
rewrite [X in _ <= X](_ : ξ = share (ξ / (1 - ξ))); last by rewrite /share; field; lra.
apply: share_le; rewrite /Rdiv.
  apply: Rplus_le_le_0_compat; apply: Rmult_le_pos; try lra.
  by apply: Rmult_le_pos; lra.
rewrite -Rmult_assoc -Rmult_plus_distr_r; apply: Rmult_le_compat_r; first by lra.
by nra.
Qed.

Lemma field_share_le C spread_Z N k : (k.+1 < N)%N ->
  share (field_crowd C spread_Z N k) <= (INR N - 2) / 2 * exp (- (C - spread_Z)).
Proof.
move=> kN; have e0 := exp_pos (- (C - spread_Z)).
have n2 : 2 <= INR (N - k) by rewrite -[2]/(INR 2); apply: INR_le; rewrite ltn_subRL addn1.
have kE : INR k <= INR N - 2.
  by move: (INR_le kN); rewrite !INR_S; lra.
have k0 := INR_ge0 k; have i0 : 0 < / INR (N - k) by apply: Rinv_0_lt_compat; lra.
have i2 : / INR (N - k) <= / 2 by apply: Rinv_le_contravar; lra.
apply: Rle_trans (share_le_self _) _; rewrite /field_crowd.
  by apply: Rmult_le_pos; [apply: Rmult_le_pos | ]; lra.
by apply: Rmult_le_compat_r; [lra | apply: Rmult_le_compat; lra].
Qed.

(* The temperatures of a tolerance, with U = 2η(N−1)D. *)
Definition reach (η D : R) (N : nat) : R := 2 * η * (INR N - 1) * D.
Definition γ_for (η Δ D tol : R) (N : nat) : R :=
  Rmax (ln 5) (ln (13 / 5 * reach η D N / tol)) / Δ.
Definition C_for (η spread_Z D tol : R) (N : nat) : R :=
  spread_Z + Rmax 0 (ln (reach η D N * Rmax 1 (INR N - 2) / tol)).

Lemma exp_max_ln a t : 0 < t -> exp (- Rmax a (ln t)) <= / t.
Proof.
move=> t0; have -> : / t = exp (- ln t) by rewrite exp_Ropp exp_ln.
by apply: exp_mono; have := Rmax_r a (ln t); lra.
Qed.

(* Claim theorem-3-3, part temperatures: with them the bound is at most the tolerance. *)
Theorem theorem_3_3_temperatures : forall (N : nat) (η Δ spread spread_Z D tol : R),
  (2 <= N)%N -> 0 < η -> 0 < Δ -> 0 <= spread -> 0 < D -> 0 < tol ->
  let γ := γ_for η Δ D tol N in
  let C := C_for η spread_Z D tol N in
  ln 5 <= γ * Δ /\ error_bound η γ Δ C spread spread_Z D N (N - 1) <= tol.
Proof.
move=> N η Δ spread spread_Z D tol N2 η0 Δ0 s0 D0 t0 /=.
set γ := γ_for _ _ _ _ _; set C := C_for _ _ _ _ _.
have n2 : 2 <= INR N by rewrite -[2]/(INR 2); apply: INR_le.
have γΔ : γ * Δ = Rmax (ln 5) (ln (13 / 5 * reach η D N / tol)) by rewrite /γ /γ_for; field; lra.
have hot : ln 5 <= γ * Δ by rewrite γΔ; exact: Rmax_l.
split=> //; have γ0 := hot_γ Δ0 hot.
have U0 : 0 < reach η D N by rewrite /reach; repeat apply: Rmult_lt_0_compat; lra.
set U := reach _ _ _ in U0 γΔ.
have m1 : 1 <= Rmax 1 (INR N - 2) by exact: Rmax_l.
have m2 : INR N - 2 <= Rmax 1 (INR N - 2) by exact: Rmax_r.
set m := Rmax _ _ in m1 m2.
have ξU : U * exp (- γ * Δ) <= 5 / 13 * tol.
  have -> : - γ * Δ = - (γ * Δ) by ring.
  rewrite γΔ; have q0 : 0 < 13 / 5 * U / tol by apply: Rdiv_lt_0_compat; lra.
  apply: Rle_trans (Rmult_le_compat_l U _ _ (Rlt_le _ _ U0) (exp_max_ln _ q0)) _.
  by right; field; lra.
have eU : U * ((INR N - 2) / 2 * exp (- (C - spread_Z))) <= / 2 * tol.
  have -> : C - spread_Z = Rmax 0 (ln (U * m / tol)) by rewrite /C /C_for -/U -/m; ring.
  have q0 : 0 < U * m / tol by apply: Rdiv_lt_0_compat => //; apply: Rmult_lt_0_compat; lra.
  have e0 := exp_pos (- Rmax 0 (ln (U * m / tol))); have e1 := exp_max_ln 0 q0.
  apply: (Rle_trans _ (U * (m / 2 * / (U * m / tol)))); last by right; field; lra.
  by apply: Rmult_le_compat_l; [lra | apply: Rmult_le_compat; lra].
rewrite /error_bound.
have le : ∑_(k < N - 1) (share (winner_crowd γ Δ spread N k) + share (field_crowd C spread_Z N k))
  <= INR (N - 1) *
    (exp (- γ * Δ) + (INR N - 2) / 2 * exp (- (C - spread_Z))).
  rewrite -sum_const_ord; apply: sum_le => k _.
  have kN : (k.+1 < N)%N by have := ltn_ord k; rewrite ltn_subRL add1n.
  by apply: Rplus_le_compat; [exact: winner_share_le (ltnW kN) | exact: field_share_le].
have p0 : 0 < 2 * η * D by repeat apply: Rmult_lt_0_compat; lra.
apply: Rle_trans (Rmult_le_compat_l _ _ _ (Rlt_le _ _ p0) le) _.
rewrite minus_INR; last by apply/leP; apply: leq_trans N2.
have -> : 2 * η * D * ((INR N - INR 1) * (exp (- γ * Δ)
    + (INR N - 2) / 2 * exp (- (C - spread_Z))))
  = U * exp (- γ * Δ) + U * ((INR N - 2) / 2 * exp (- (C - spread_Z))).
  by rewrite /U /reach /=; ring.
by lra.
Qed.

(* Claim theorem-3-3, parts bound, temperatures: one block for the class and the tolerance, before
   any input; applied N−1 times it makes the step for every input of the class, at every token. *)
Theorem theorem_3_3_uniform : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ spread spread_Z D tol : R),
  0 <= η -> 0 < Δ -> 0 < tol ->
  exists b : block (el_stream dx dy),
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  ‖run full (nseq (N - 1) b) (el_prompt x y r) i El.u - ((- η) *: gradient W x y τ) *v x‖ <= tol.
Proof.
move=> dx dy N W η Δ spread spread_Z D tol η0 Δ0 t0.
case: (Rle_lt_dec (η * D) 0) => [none|ηD0].
  have hot : ln 5 <= ln 5 / Δ * Δ by right; field; lra.
  exists (el_block W η (ln 5 / Δ) Δ spread (3 / 2 + 2 * spread / Δ) 0) => x y r τ i cls ranked.
  apply: Rle_trans (theorem_3_3 0 η0 Δ0 hot (Rle_refl _) i cls ranked) _.
  case: cls => _ _ _ _ dist; have D0 := Rle_trans _ _ _ (vnorm_ge0 _) (dist i i).
  have -> : 2 * η * D = 0 by have := Rmult_le_pos _ _ η0 D0; lra.
  by rewrite Rmult_0_l; lra.
case: (leqP 2 N) => N2; last first.
  exists (el_block W η (ln 5 / Δ) Δ spread (3 / 2 + 2 * spread / Δ) 0) => x y r τ i cls ranked.
  have hot : ln 5 <= ln 5 / Δ * Δ by right; field; lra.
  apply: Rle_trans (theorem_3_3 0 η0 Δ0 hot (Rle_refl _) i cls ranked) _.
  rewrite big1 => [|k _]; first by rewrite Rmult_0_r; lra.
  by have := leq_trans (ltn_ord k) (leq_sub2r 1 (N2 : (N <= 1)%N)); rewrite subnn ltn0.
case: (Rle_lt_dec 0 spread) => s0; last first.
  exists (el_block W η 0 Δ spread 0 0) => x y r τ i [_ _ [low range]].
  by have := range i; lra.
have {}η0 : 0 < η by case: η0 => // E; rewrite -E Rmult_0_l in ηD0; lra.
have D0 : 0 < D by apply: (Rmult_lt_reg_l η) => //; lra.
have [hot le] := theorem_3_3_temperatures spread_Z N2 η0 Δ0 s0 D0 t0.
exists (el_block W η (γ_for η Δ D tol N) Δ spread (3 / 2 + 2 * spread / Δ)
  (C_for η spread_Z D tol N)).
move=> x y r τ i cls ranked; apply: Rle_trans le.
exact: (theorem_3_3 _ (Rlt_le _ _ η0) Δ0 hot (Rle_refl _) i cls ranked).
Qed.

(* ── The class by radius and spectral norm ──────────────────────────────────────────────────── *)

(* R_Z: the spread of the reduced scores for ‖Wx‖ ≤ ω and ‖y‖ ≤ radius. *)
Definition score_spread (ω radius : R) : R :=
  if Rle_dec ω radius then (ω + radius) ^ 2 else 4 * ω * radius.

Lemma ball_distance d (u v : vec 'I_d) radius :
  ‖u‖ <= radius -> ‖v‖ <= radius -> ‖u - v‖ <= 2 * radius.
Proof.
move=> u1 v1; have -> : (u - v = u + (- 1) *: v)%V.
  by apply: vec_eq => c; rewrite /vsub /vadd /vscal; ring.
by apply: Rle_trans (vnorm_triangle _ _) _; rewrite vnorm_scal Rabs_Ropp Rabs_R1; lra.
Qed.

Lemma reduced_range m n (W : mat m n) x (y : vec 'I_m) ω radius :
  ‖W *v x‖ <= ω -> ‖y‖ <= radius ->
  let low := - 2 * ω * radius - radius ^ 2 in
  low <= reduced W x y <= low + score_spread ω radius.
Proof.
move=> Wω yr /=; have w0 := vnorm_ge0 (W *v x)%V; have y0 := vnorm_ge0 y.
have hi := dot_le (W *v x)%V y; have := dot_abs_le (W *v x)%V y.
rewrite /reduced -(vnorm_sqr y) => ab; have lo : - (‖W *v x‖ * ‖y‖) <= ⟨W *v x, y⟩.
  by move: ab; rewrite /Rabs; case: Rcase_abs; lra.
have p : ‖W *v x‖ * ‖y‖ <= ω * ‖y‖ by apply: Rmult_le_compat_r.
have q : ω * ‖y‖ <= ω * radius by apply: Rmult_le_compat_l; lra.
split; first by nra.
move: (‖y‖) (⟨W *v x, y⟩) yr y0 hi p => t d yr y0 hi p.
rewrite /score_spread; case: Rle_dec => H /=.
  by have := Rle_0_sqr (ω - t); rewrite /Rsqr; lra.
have : 0 <= (radius - t) * (2 * ω - t - radius) by apply: Rmult_le_pos; lra.
by nra.
Qed.

(* Claim theorem-3-3, parts bound, temperatures: the same with the class given as the book gives it:
   ω, a bound on the norm of W, and a radius, a bound on ‖y‖; D = 2·radius. *)
Theorem theorem_3_3_class : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high radius ω tol : R),
  0 <= η -> 0 < Δ -> 0 < tol ->
  (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b : block (el_stream dx dy),
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> spaced Δ r ->
  ranks r τ ->
  ‖run full (nseq (N - 1) b) (el_prompt x y r) i El.u - ((- η) *: gradient W x y τ) *v x‖ <= tol.
Proof.
move=> dx dy N W η Δ low high radius ω tol η0 Δ0 t0 Wω.
have [b H] := @theorem_3_3_uniform dx dy N W η Δ (high - low) (score_spread ω radius) (2 * radius)
  tol η0 Δ0 t0.
exists b => x y r τ i x1 yr range gaps ranked; apply: H => //; split=> //.
- by exists low => j; have := range j; lra.
- exists (- 2 * ω * radius - radius ^ 2) => j; apply: reduced_range => //.
  by have := Wω x; rewrite x1; lra.
by move=> j l; exact: ball_distance.
Qed.
