(* Chapter 6: the weaker, simpler form of Theorem 3.3's bound. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33.
From Icalign Require Import Selection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Definition winner_crowd_simple (γ Δ spread : R) (N k : nat) : R :=
  INR (N - k - 1) * exp (- γ * Δ) + INR k * exp (- γ * (spread + 2 * Δ)).
Definition field_crowd_simple (C spread_Z : R) (k : nat) : R := INR k * exp (- (C - spread_Z)).

Lemma sum_pow_le n ξ : 0 < ξ < 1 -> 0 <= (1 - ξ ^ n) / (1 - ξ) <= INR n.
Proof.
move=> [x0 x1]; rewrite -(sum_geometric n ξ) -(Rmult_1_r (INR n)) -(sum_const_ord n 1).
have E (s : R) : (1 - ξ) * s / (1 - ξ) = s by field; lra.
rewrite E; have pw i := pow_unit i x0 (Rlt_le _ _ x1).
by split; [apply: sum_ge0 => i _; left | apply: sum_le => i _]; case: (pw i).
Qed.

Lemma winner_crowd_simple_ge γ Δ spread N k : 0 < γ -> 0 < Δ -> (k < N)%N ->
  0 <= winner_crowd γ Δ spread N k <= winner_crowd_simple γ Δ spread N k.
Proof.
move=> γ0 Δ0 kN; have x01 := ξ01 γ0 Δ0; rewrite /winner_crowd /winner_crowd_simple /=.
set ξ := exp (- γ * Δ) in x01 *.
have [a0 a1] := sum_pow_le (N - k - 1) x01; have [b0 b1] := sum_pow_le k x01.
have E : (ξ - ξ ^ (N - k)) / (1 - ξ) = ξ * ((1 - ξ ^ (N - k - 1)) / (1 - ξ)).
  have -> : ξ ^ (N - k) = ξ * ξ ^ (N - k - 1) by rewrite tech_pow_Rmult subn1 prednK // subn_gt0.
  by field; lra.
set e := exp (- γ * (spread + INR _ * Δ)); set f := exp (- γ * (spread + 2 * Δ)).
have e0 : 0 < e by exact: exp_pos.
have ef : e <= f.
  apply: exp_mono; have n2 : 2 <= INR (N - k + 1).
    by rewrite -[2]/(INR 2); apply: INR_le; rewrite addn1 ltnS subn_gt0.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ (Rmult_lt_0_compat _ _ γ0 Δ0)) n2; nra.
rewrite E; move: (_ / _) (_ / _) a0 a1 b0 b1 => a b a0 a1 b0 b1.
split; first by nra.
apply: Rplus_le_compat; first by rewrite Rmult_comm; apply: Rmult_le_compat_r; lra.
by rewrite Rmult_comm; apply: Rmult_le_compat; lra.
Qed.

Lemma field_crowd_simple_ge C spread_Z N k : (k < N)%N ->
  0 <= field_crowd C spread_Z N k <= field_crowd_simple C spread_Z k.
Proof.
move=> kN; have e0 := exp_pos (- (C - spread_Z)); have k0 := INR_ge0 k.
have n1 : 1 <= INR (N - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
have i0 : 0 < / INR (N - k) by apply: Rinv_0_lt_compat; lra.
have i1 : / INR (N - k) <= 1 by rewrite -Rinv_1; apply: Rinv_le_contravar; lra.
rewrite /field_crowd /field_crowd_simple /Rdiv; split.
  by repeat apply: Rmult_le_pos; lra.
by apply: Rmult_le_compat_r; nra.
Qed.

(* r⁺ is near the best live reward, for another reason. *)
Lemma top_near_simple N γ Δ spread low (r : 'I_N -> R) τ (k : 'I_N) :
  0 < γ -> 0 < Δ -> spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  (INR N - 1) * exp (- γ * Δ) * spread <= Δ / 4 ->
  Rabs (∑_j (winner_weights γ Δ spread r (flags τ k) j * r j) - r (τ k)) <= Δ / 4.
Proof.
move=> γ0 Δ0 gaps ranked range small.
set z := fun j => γ * r j - 2 * γ * (spread + Δ) * flags τ k j.
have le l : l != k -> exp (z (τ l) - z (τ k)) <= exp (- γ * Δ).
  rewrite -val_eqE neq_ltn => /orP [] lk; apply: exp_mono.
    apply: Rle_trans (out_logit γ0 gaps ranked range lk) _.
    have s0 : 0 <= spread by have := range k; lra.
    have n1 : 1 <= INR (N - k + 1) by rewrite -[1]/(INR 1); apply: INR_le; rewrite addn1.
    have gd := Rmult_lt_0_compat _ _ γ0 Δ0; have := INR_ge0 l.
    by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ gd) n1; nra.
  rewrite [z _ - _](live_logit γ Δ spread r τ lk); have := ranks_gap ranked gaps (ltnW lk).
  have : 1 <= INR (l - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
  move: (INR _) => d d1 gap; have g1 : Δ <= r (τ k) - r (τ l) by nra.
  by have := Rmult_le_compat_l γ _ _ (Rlt_le _ _ γ0) g1; lra.
have cl : crowd z (τ k) <= (INR N - 1) * exp (- γ * Δ).
  rewrite -(sum_others k) /crowd (reindex_inj (@perm_inj _ τ)) /=.
  rewrite (eq_bigl (fun l => l != k)) => [|l]; last by rewrite (inj_eq perm_inj).
  exact: sum_le.
have -> : ∑_j (winner_weights γ Δ spread r (flags τ k) j * r j) - r (τ k)
    = ∑_(j | j != τ k) (softmax z j * (r j - r (τ k))).
  have := softmax_rest z (τ k); have := sum_pick (τ k) (fun j => softmax z j * r j).
  rewrite -/z => -> rest.
  rewrite [RHS](eq_bigr (fun j => softmax z j * r j - softmax z j * r (τ k))).
    by rewrite sum_sub sum_scalr rest; ring.
  by move=> j _; ring.
apply: Rle_trans (sum_abs _ _ _) _.
apply: (Rle_trans _ (∑_(j | j != τ k) (softmax z j * spread))).
  apply: sum_le => j _; rewrite Rabs_mult Rabs_pos_eq; last by left; exact: softmax_gt0.
  apply: Rmult_le_compat_l; first by left; exact: softmax_gt0.
  by apply: Rabs_le; have := range j; have := range (τ k); lra.
rewrite sum_scalr softmax_rest softmax_miss; apply: Rle_trans small.
apply: Rmult_le_compat_r; first by have := range k; lra.
exact: Rle_trans (share_le_self (crowd_ge0 _ _)) cl.
Qed.

(* Claim theorem-3-3, part weaker. *)
Theorem theorem_3_3_weaker : forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < γ -> 0 < Δ -> (INR N - 1) * exp (- γ * Δ) * spread <= Δ / 4 ->
  3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq (N - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= 2 * η * D * ∑_(k < N - 1) (share (winner_crowd_simple γ Δ spread N k)
                                              + share (field_crowd_simple C spread_Z k)).
Proof.
move=> dx dy N W η γ Δ spread spread_Z D B C η0 γ0 Δ0 small B0 x y r τ i cls ranked /=.
rewrite gradient_step_terms; last exact: unit_query cls.
case: cls => x1 gaps [low range] [low_Z range_Z] dist.
have near (k : 'I_N) := top_near_simple k γ0 Δ0 gaps ranked range small.
rewrite (state_after W η C x y Δ0 B0 gaps ranked range near).
apply: Rle_trans (accumulated_error C γ0 Δ0 η0 gaps ranked range range_Z dist (leq_subr 1 N)) _.
apply: Rmult_le_compat_l.
  by apply: Rmult_le_pos; [lra | exact: Rle_trans (vnorm_ge0 _) (dist i i)].
apply: sum_le => k _; have kN : (k < N)%N by apply: leq_trans (ltn_ord k) (leq_subr 1 N).
have [w0 w1] := winner_crowd_simple_ge spread γ0 Δ0 kN.
have [f0 f1] := field_crowd_simple_ge C spread_Z kN.
by apply: Rplus_le_compat; exact: share_le.
Qed.
