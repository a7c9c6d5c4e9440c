(* Chapter 6: block k of Theorem 3.3, with the flags on the first k places: how well it selects, how
   well it weighs the field, and how near r⁺ comes to the best live reward. Blocks count from 0. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask Weights Spacing Transformer Block.
From Icalign Require Import GradientStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* q_k: in block k, the weight of all others beside the best live response. *)
Definition winner_crowd (γ Δ spread : R) (N k : nat) : R :=
  let ξ := exp (- γ * Δ) in
  (ξ - ξ ^ (N - k)) / (1 - ξ)
  + exp (- γ * (spread + INR (N - k + 1) * Δ)) * ((1 - ξ ^ k) / (1 - ξ)).

(* p_k: in block k, the weight of the eliminated beside the live responses. *)
Definition field_crowd (C spread_Z : R) (N k : nat) : R :=
  INR k / INR (N - k) * exp (- (C - spread_Z)).

(* The flags before block k: 1 on the first k places. *)
Definition flags {N} (τ : {perm 'I_N}) (k : nat) (j : 'I_N) : R :=
  if ((τ^-1%g j : 'I_N) < k)%N then 1 else 0.

Lemma flags_place N (τ : {perm 'I_N}) k (l : 'I_N) :
  flags τ k (τ l) = if (l < k)%N then 1 else 0.
Proof. by rewrite /flags permK. Qed.

Section Rewards.
Variables (N : nat) (γ Δ spread low : R) (r : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N).
Hypotheses (γ0 : 0 < γ) (Δ0 : 0 < Δ) (gaps : spaced Δ r) (ranked : ranks r τ).
Hypothesis range : forall j, low <= r j <= low + spread.
Let ξ := exp (- γ * Δ).
Let z j := γ * r j - 2 * γ * (spread + Δ) * flags τ k j.

Lemma ξ01 : 0 < ξ < 1.
Proof. by split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; nra]. Qed.

Lemma ξ_pow n : ξ ^ n = exp (- (INR n * (γ * Δ))).
Proof. by rewrite exp_INR; congr (exp _ ^ _); ring. Qed.

(* Tokens in play, behind the best of them. *)
Lemma live_logit (l : 'I_N) : (k < l)%N -> z (τ l) - z (τ k) = - γ * (r (τ k) - r (τ l)).
Proof. by move=> kl; rewrite /z !flags_place ltnn ltnNge (ltnW kl) /=; ring. Qed.

(* Tokens out of play, held back. *)
Lemma out_logit (l : 'I_N) : (l < k)%N ->
  z (τ l) - z (τ k) <= - γ * (spread + INR (N - k + 1) * Δ) - INR l * (γ * Δ).
Proof.
move=> lk; rewrite /z !flags_place ltnn lk.
have hi := ranks_high ranked gaps l (fun i => proj2 (range i)).
have lo := ranks_low ranked gaps k (fun i => proj1 (range i)).
have -> : INR (N - k + 1) = INR (N - k.+1) + 2.
  by rewrite subnS addn1 -{1}(@prednK (N - k)) ?subn_gt0 // !INR_S; ring.
by nra.
Qed.

Lemma winner_crowd_le : crowd z (τ k) <= winner_crowd γ Δ spread N k.
Proof.
rewrite crowd_places /winner_crowd Rplus_comm; apply: Rplus_le_compat.
  apply: crowd_after ξ01 _ => l kl; rewrite live_logit // -/ξ ξ_pow; apply: exp_mono.
  by have := ranks_gap ranked gaps (ltnW kl); nra.
apply: crowd_before ξ01 _ => l lk; rewrite -/ξ ξ_pow -exp_plus; apply: exp_mono.
by have := out_logit lk; lra.
Qed.

(* r⁺ − m is a quotient: what each place pulls, over all weights relative to the best live one. *)
Definition pull (l : 'I_N) : R := exp (z (τ l) - z (τ k)) * (r (τ l) - r (τ k)).

Lemma top_deviation : ∑_j (softmax z j * r j) - r (τ k)
  = (∑_(l < N | (l < k)%N) pull l + ∑_(l < N | (k < l)%N) pull l) / (1 + crowd z (τ k)).
Proof.
have E : ∑_j exp (z j) = exp (z (τ k)) * (1 + crowd z (τ k)).
  rewrite (sum_pick (τ k)) Rmult_plus_distr_l Rmult_1_r; congr (_ + _); rewrite /crowd -sum_scal.
  by apply: eq_bigr => j _; rewrite -exp_plus; congr exp; ring.
have c0 := crowd_ge0 z (τ k); have e0 := exp_pos (z (τ k)).
apply: (Rmult_eq_reg_r (1 + crowd z (τ k))); last by lra.
rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; last by lra.
have -> : ∑_j (softmax z j * r j) - r (τ k) = ∑_j (softmax z j * (r j - r (τ k))).
  rewrite [RHS](eq_bigr (fun j => softmax z j * r j - softmax z j * r (τ k))).
    by rewrite sum_sub sum_scalr (softmax_sum z (τ k)); ring.
  by move=> j _; ring.
rewrite -sum_scalr (reindex_inj (@perm_inj _ τ)) /= (bigID (fun l : 'I_N => (l < k)%N)) /=.
have term l : softmax z (τ l) * (r (τ l) - r (τ k)) * (1 + crowd z (τ k)) = pull l.
  rewrite /softmax E /pull; have -> : z (τ l) = z (τ l) - z (τ k) + z (τ k) by ring.
  rewrite exp_plus; set t := z (τ l) - z (τ k); have -> : t + z (τ k) - z (τ k) = t by ring.
  by field; lra.
congr (_ + _); first by apply: eq_bigr => l _; exact: term.
have p0 : pull k = 0 by rewrite /pull; ring.
rewrite (sum_D1 (k := k)) ?ltnn //= term p0 Rplus_0_l.
under eq_bigr => l _ do rewrite term.
by apply: eq_bigl => l; rewrite -leqNgt -val_eqE /=; case: ltngtP.
Qed.

Hypothesis hot : ln 5 <= γ * Δ.

Lemma ξ_fifth : ξ <= / 5.
Proof.
rewrite /ξ -(exp_ln (/ 5)); last by lra.
by apply: exp_mono; rewrite ln_Rinv; lra.
Qed.

(* x e^{−x} ≤ 1, so the rewards' spread times e^{−γ·spread} is at most 1/γ ≤ Δ. *)
Lemma spread_exp : spread * exp (- γ * spread) <= Δ.
Proof.
have e0 := exp_pos (γ * spread); have e1 := exp_ineq1_le (γ * spread); have l5 := ln5_ge.
apply: (Rmult_le_reg_r (exp (γ * spread))) => //.
rewrite Rmult_assoc -exp_plus (_ : - γ * spread + γ * spread = 0); last by ring.
rewrite exp_0 Rmult_1_r; apply: (Rmult_le_reg_l γ) => //.
have : exp (γ * spread) <= γ * Δ * exp (γ * spread) by nra.
by lra.
Qed.

(* The tokens out of play pull r⁺ up by at most Δ/4. *)
Lemma pull_up : 0 <= ∑_(l < N | (l < k)%N) pull l <= Δ / 4.
Proof.
have [x0 x1] := ξ01; have x5 := ξ_fifth.
have high (l : 'I_N) : (l < k)%N -> 0 <= r (τ l) - r (τ k) <= spread.
  by move=> lk; have := ranked lk; have := range (τ l); have := range (τ k); lra.
split.
  by apply: sum_ge0 => l lk; apply: Rmult_le_pos (proj1 (high l lk)); left; exact: exp_pos.
apply: (Rle_trans _ (∑_(l < N | (l < k)%N) (Δ * ξ ^ 2 * ξ ^ l))).
  apply: sum_le => l lk; rewrite /pull; have [h0 hR] := high l lk.
  have e0 := exp_pos (- γ * spread); have se := spread_exp.
  have le : exp (z (τ l) - z (τ k)) <= exp (- γ * spread) * (ξ ^ 2 * ξ ^ l).
    rewrite -pow_add ξ_pow -exp_plus; apply: exp_mono; apply: Rle_trans (out_logit lk) _.
    have m2 : 2 <= INR (N - k + 1).
      by rewrite -[2]/(INR 2); apply: INR_le; rewrite addn1 ltnS subn_gt0.
    rewrite (_ : INR (2 + l)%coq_nat = 2 + INR l); last by rewrite plus_INR /=; ring.
    have gd : 0 < γ * Δ by exact: Rmult_lt_0_compat.
    by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ gd) m2; lra.
  have p0 : 0 < ξ ^ 2 * ξ ^ l by apply: Rmult_lt_0_compat; exact: pow_lt.
  have ez := exp_pos (z (τ l) - z (τ k)).
  rewrite (Rmult_assoc Δ); move: (ξ ^ 2 * ξ ^ l) le p0 => p le p0.
  apply: (Rle_trans _ (exp (- γ * spread) * p * spread)); last by nra.
  by apply: Rmult_le_compat; lra.
rewrite sum_scal; have S := sum_before ξ (ltnW (ltn_ord k)).
have := pow_unit k x0 (Rlt_le _ _ x1); move: (∑_(l < N | _) _) S => S SE [p0 p1].
have le : S <= 5 / 4 by nra.
have S0 : 0 <= S by nra.
have : ξ ^ 2 * S <= / 20 by rewrite /= ; nra.
by nra.
Qed.

(* The live ones pull it down by at most Δ/4 of all weights. *)
Lemma pull_down : - (Δ / 4 * (1 + crowd z (τ k))) <= ∑_(l < N | (k < l)%N) pull l <= 0.
Proof.
have [x0 x1] := ξ01; have x5 := ξ_fifth; have l5 := ln5_ge; split; last first.
  apply: Ropp_le_cancel; rewrite Ropp_0 -sum_opp; apply: sum_ge0 => l kl; rewrite /pull.
  by have := exp_pos (z (τ l) - z (τ k)); have := ranked kl; nra.
set E := ∑_(l < N | (k < l)%N) exp (z (τ l) - z (τ k)).
have EC : E <= crowd z (τ k).
  rewrite crowd_places -/E; have : 0 <= ∑_(l < N | (l < k)%N) exp (z (τ l) - z (τ k)); last by lra.
  by apply: sum_ge0 => l _; left; exact: exp_pos.
suff : - (Δ / 4) <= ∑_(l < N | (k < l)%N) (pull l + Δ / 4 * exp (z (τ l) - z (τ k))).
  rewrite (_ : ∑_(l < N | (k < l)%N) _ = ∑_(l < N | (k < l)%N) pull l + Δ / 4 * E); first by nra.
  by rewrite sum_add sum_scal.
apply: (Rle_trans _ (∑_(l < N | (k < l)%N) (- Δ * ((INR (l - k) - / 4) * ξ ^ (l - k))))).
  have M (t : R) : t <= / 4 -> - (Δ / 4) <= - Δ * t by nra.
  by rewrite sum_scal; apply: M; exact: moments_quarter.
apply: sum_le => l kl; rewrite /pull live_logit // ξ_pow.
have gap := ranks_gap ranked gaps (ltnW kl); have d1 : 1 <= INR (l - k).
  by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
move: (INR (l - k)) gap d1 => d gap d1; set h := r (τ k) - r (τ l) - d * Δ.
have -> : - γ * (r (τ k) - r (τ l)) = - (d * (γ * Δ)) + - (γ * h) by rewrite /h; ring.
rewrite exp_plus; have e0 := exp_pos (- (d * (γ * Δ))).
have -> : r (τ l) - r (τ k) = - (d * Δ + h) by rewrite /h; ring.
have h0 : 0 <= h by rewrite /h; lra.
have t0 := exp_pos (- (γ * h)).
have t1 : exp (- (γ * h)) * (1 + γ * h) <= 1.
  have := exp_ineq1_le (γ * h); have : exp (- (γ * h)) * exp (γ * h) = 1.
    by rewrite -exp_plus Rplus_opp_l exp_0.
  by nra.
move: (exp (- (d * _))) (exp (- (γ * h))) e0 t0 t1 => e t e0 t0 t1.
set a := (d - / 4) * Δ; have a0 : 0 < a by apply: Rmult_lt_0_compat; lra.
have a1 : 1 <= a * γ by have -> : a * γ = (d - / 4) * (γ * Δ); [rewrite /a; ring | nra].
have h1 : h <= a * (γ * h) by nra.
have : t * (a + h) <= a.
  apply: (Rle_trans _ (a * (t * (1 + γ * h)))); last by nra.
  by have := Rmult_le_compat_l t _ _ (Rlt_le _ _ t0) h1; nra.
move=> le; have := Rmult_le_compat_l e _ _ (Rlt_le _ _ e0) le.
have -> : - Δ * ((d - / 4) * e) = - (e * a) by rewrite /a; ring.
have -> : e * t * - (d * Δ + h) + Δ / 4 * (e * t) = - (e * (t * (a + h))) by rewrite /a; field.
by lra.
Qed.

(* So r⁺ is within Δ/4 of the best live reward. *)
Lemma top_near : Rabs (∑_j (softmax z j * r j) - r (τ k)) <= Δ / 4.
Proof.
have [u0 u1] := pull_up; have [d0 d1] := pull_down; have c0 := crowd_ge0 z (τ k).
rewrite top_deviation; set U := ∑_(l < N | _) _ in u0 u1 *; set D := ∑_(l < N | _) _ in d0 d1 *.
set c := 1 + _ in d0 *; have c1 : 1 <= c by rewrite /c; lra.
have E : (U + D) / c * c = U + D by field; lra.
by apply: Rabs_le; split; apply: (Rmult_le_reg_r c); try lra; rewrite E; nra.
Qed.

End Rewards.
(* ── What the two heads find ────────────────────────────────────────────────────────────────── *)

Section Responses.
Variables (dx dy N : nat) (W : mat dy dx) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy).
Variables (τ : {perm 'I_N}) (k : 'I_N) (D : R).
Hypothesis distances : forall i j, ‖y i - y j‖ <= D.

Lemma D_ge0 : 0 <= D.
Proof. by apply: Rle_trans (distances k k); exact: vnorm_ge0. Qed.

Lemma winner_error (γ Δ spread low : R) (r : 'I_N -> R) :
  0 < γ -> 0 < Δ -> spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  ‖comb (winner_weights γ Δ spread r (flags τ k)) y - y (τ k)‖
  <= D * share (winner_crowd γ Δ spread N k).
Proof.
move=> γ0 Δ0 gaps ranked range; apply: Rle_trans (mean_to_point _ (fun j => distances j (τ k))) _.
apply: Rmult_le_compat_l; first exact: D_ge0.
rewrite softmax_miss; apply: share_le; first exact: crowd_ge0.
exact: winner_crowd_le γ0 Δ0 gaps ranked range.
Qed.

Let live (j : 'I_N) : bool := (k <= (τ^-1%g j : 'I_N))%N.

Lemma sum_live c : ∑_(j | live j) c = INR (N - k) * c.
Proof.
have all := sum_const_ord N c; move: all; rewrite (sum_ID live predT) /=.
suff -> : ∑_(j | ~~ live j) c = INR k * c.
  by rewrite minus_INR; [lra | apply/leP/ltnW/ltn_ord].
rewrite (reindex_inj (@perm_inj _ τ)) /= -(sum_const_ord k c).
rewrite (big_ord_widen N (fun _ => c)) ?(ltnW (ltn_ord k)) //.
by apply: eq_bigl => l; rewrite /live permK -ltnNge.
Qed.

Lemma sum_out c : ∑_(j | ~~ live j) c = INR k * c.
Proof.
have := sum_const_ord N c; rewrite (sum_ID live predT) /= sum_live minus_INR; first by lra.
by apply/leP/ltnW/ltn_ord.
Qed.

(* The mean over the live responses is μ_k. *)
Lemma live_mean : comb (softmax_on live (fun j => reduced W x (y j))) y = tail_mean W x y τ k.
Proof.
apply: vec_eq => a; rewrite /comb /tail_mean (reindex_inj (@perm_inj _ τ)) /=.
rewrite /comb; apply: eq_bigr => l _; congr (_ * _).
rewrite /beta -(softmax_on_shift live _ (- ‖W *v x‖²)) /softmax_on {1}/live permK.
rewrite (reindex_inj (@perm_inj _ τ)) /=; case: ifP => kl; last by rewrite /Rdiv Rmult_0_l.
rewrite -[_ + _]/(reduced W x (y (τ l)) - ‖W *v x‖²) -pl_shift_reduced; congr (_ / _).
by apply: eq_big => [j|j _]; [rewrite /live permK | rewrite pl_shift_reduced].
Qed.

Lemma field_error (C spread_Z low : R) :
  (forall j, low <= reduced W x (y j) <= low + spread_Z) ->
  ‖comb (field_weights W C x y (flags τ k)) y - tail_mean W x y τ k‖
  <= D * share (field_crowd C spread_Z N k).
Proof.
move=> range; rewrite -live_mean.
pose z j := reduced W x (y j) - C * flags τ k j.
have flag j : flags τ k j = if live j then 0 else 1.
  by rewrite /flags /live ltnNge; case: (k <= _)%N.
have -> : comb (softmax_on live (fun j => reduced W x (y j))) y = comb (softmax_on live z) y.
  apply: vec_eq => a; apply: eq_bigr => j _; congr (_ * _).
  by apply: eq_softmax_on => l ll; rewrite /z flag ll; ring.
apply: (mean_to_part (w := τ k)) => //; first by rewrite /live permK.
have Nk : 0 < INR (N - k) by apply: INR_gt0; rewrite subn_gt0.
apply: (Rle_trans _ (INR k * exp (low + spread_Z - C))).
  rewrite -sum_out; apply: sum_le => j /negbTE lj; apply: exp_mono.
  by rewrite /z flag lj; have := range j; lra.
apply: (Rle_trans _ (field_crowd C spread_Z N k * (INR (N - k) * exp low))).
  right; rewrite /field_crowd (_ : low + spread_Z - C = - (C - spread_Z) + low); last by ring.
  by rewrite exp_plus; field; lra.
apply: Rmult_le_compat_l.
  apply: Rmult_le_pos; last by left; exact: exp_pos.
  by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: Rinv_0_lt_compat].
rewrite -sum_live; apply: sum_le => j lj; apply: exp_mono.
by rewrite /z flag lj; have := range j; lra.
Qed.

End Responses.
