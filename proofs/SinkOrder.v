(* What P pairs of heads beside a sink are off by because exponentials bend is of order ε^{2P}. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums Weights LogSumExp SinkPairs.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma cosh_mono a b : 0 <= a <= b -> exp a + exp (- a) <= exp b + exp (- b).
Proof.
move=> ab; have := exp_mono (proj2 ab); have a0 := exp_pos a; have b0 := exp_pos b.
have ia : exp a * exp (- a) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
have ib : exp b * exp (- b) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
have a1 : 1 <= exp a by rewrite -exp_0; apply: exp_mono; lra.
have b1 : 1 <= exp b by rewrite -exp_0; apply: exp_mono; lra.
move: (exp a) (exp b) (exp (- a)) (exp (- b)) a0 b0 ia ib a1 b1 => u v u' v' u0 v0 iu iv u1 v1 le.
have uv : 0 <= (v - u) * (u * v - 1) by apply: Rmult_le_pos; nra.
apply: (Rmult_le_reg_r (u * v)); first by nra.
have -> : (u + u') * (u * v) = u * u * v + u * u' * v by ring.
have -> : (v + v') * (u * v) = u * v * v + v * v' * u by ring.
by rewrite iu iv; lra.
Qed.

(* e^{tz} − e^{−tz} lies below its chord on [0, 1]. *)
Lemma chord t z : 0 < t -> 0 <= z <= 1 ->
  exp (t * z) - exp (- (t * z)) <= z * (exp t - exp (- t)).
Proof.
move=> t0 [z0 z1]; pose f u := exp (t * u) - exp (- (t * u)).
pose f' u := t * (exp (t * u) + exp (- (t * u))).
have D c : derivable_pt_lim f c (f' c).
  by apply/is_derive_Reals; rewrite /f /f'; auto_derive => //; ring.
have f0 : f 0 = 0 by rewrite /f Rmult_0_r Ropp_0; ring.
have f1 : f 1 = exp t - exp (- t) by rewrite /f Rmult_1_r.
rewrite -f1 -/(f z); case: z0 => [z0|<-]; last by rewrite f0; lra.
case: z1 => [z1|->]; last by lra.
have [c [E1 c01]] := MVT_cor2 f f' 0 z z0 (fun c _ => D c).
have [d [E2 d01]] := MVT_cor2 f f' z 1 z1 (fun c _ => D c).
have mono : f' c <= f' d.
  by apply: Rmult_le_compat_l; [lra | apply: cosh_mono; split; nra].
have : 0 <= z * (1 - z) * (f' d - f' c) by apply: Rmult_le_pos; nra.
have -> : z * (1 - z) * (f' d - f' c) = z * (f' d * (1 - z)) - (1 - z) * (f' c * (z - 0)) by ring.
by rewrite -E1 -E2 f0; lra.
Qed.

(* Claim sink-linear-attention, part order: E_P ≤ (P!)²/(2P+1)! (2 sinh(ε/2))^{2P}, for every P. *)
Theorem sink_order : forall (P : nat) (ε : R),
  0 < ε ->
  let a := sink_coefficient P in
  Rabs (∑_(k < P) (a k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) - 1)
  <= INR (fact P) * INR (fact P) / INR (fact (2 * P + 1)) * (2 * sinh (ε / 2)) ^ (2 * P).
Proof.
move=> P ε ε0 a.
have -> : ∑_(k < P) (a k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) = sink_curve P ε 1.
  by apply: eq_bigr => k _; rewrite Rmult_1_r.
have -> : (2 * P)%N = (P + P)%N by rewrite mul2n addnn.
pose σ := - (- 1) ^ P; pose n := (P + P)%N.
have c0 := middle_gt0 P; set c := Binomial.C (P + P) P in c0.
pose d t := exp (t / 2) - exp (- (t / 2)).
pose slope z := d (ε * z) ^ n / c.
pose K := d ε ^ n / c.
pose h z := K / INR n.+1 * z ^ n.+1 - σ * (sink_curve P ε z - z).
have ss : σ * σ = 1 by rewrite /σ; have := sign_square P; lra.
have n0 := INR_gt0 (ltn0Sn n).
have D z : derivable_pt_lim h z (K * z ^ n - slope z).
  apply/is_derive_Reals; apply: (is_derive_minus (fun z => K / INR n.+1 * z ^ n.+1)).
    apply: (is_derive_eq (l := K / INR n.+1 * (INR n.+1 * 1 * z ^ n))); last by field; lra.
    apply: (is_derive_scal (fun z => z ^ n.+1)).
    exact: (is_derive_pow id n.+1 z 1 (is_derive_id z)).
  apply: (is_derive_eq (l := σ * (σ * slope z))); last by rewrite -Rmult_assoc ss; ring.
  apply: (is_derive_scal (fun z => sink_curve P ε z - z)); exact: is_derive_bend.
have pos z : 0 <= z <= 1 -> 0 <= K * z ^ n - slope z.
  move=> z01; have z0 : 0 <= d (ε * z).
    by rewrite /d; have := @exp_mono (- (ε * z / 2)) (ε * z / 2) ltac:(nra); lra.
  have le : d (ε * z) <= z * d ε.
    have := @chord (ε / 2) z ltac:(lra) z01; rewrite /d.
    by have -> : ε * z / 2 = ε / 2 * z by field.
  have := pow_incr _ _ n (conj z0 le); rewrite Rpow_mult_distr => p.
  have i0 := Rinv_0_lt_compat _ c0; rewrite /K /slope /Rdiv.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ i0) p; lra.
have [z [E z01]] := MVT_cor2 h _ 0 1 Rlt_0_1 (fun z _ => D z).
have p := pos z ltac:(lra).
have h0 : h 0 = 0.
  have := bend_0 P ε; rewrite /h /= => ->; ring.
have small : σ * (sink_curve P ε 1 - 1) <= K / INR n.+1.
  by move: E; rewrite h0 /h pow1; lra.
have up := bend_mono P ε0 (Rlt_le _ _ Rlt_0_1); rewrite bend_0 Rmult_0_r -/σ in up.
have s1 : Rabs σ = 1 by have := Rsqr_abs σ; rewrite /Rsqr ss; have := Rabs_pos σ; nra.
have -> : Rabs (sink_curve P ε 1 - 1) = σ * (sink_curve P ε 1 - 1).
  by rewrite -(Rabs_pos_eq _ up) Rabs_mult s1; ring.
apply: Rle_trans small _; right.
have -> : 2 * sinh (ε / 2) = d ε by rewrite /sinh /d; field.
rewrite /K -/n addn1 (_ : INR (fact n.+1) = INR n.+1 * INR (fact n)); last first.
  by rewrite -mult_INR.
have -> : c = INR (fact n) / (INR (fact P) * INR (fact P)).
  by rewrite /c /Binomial.C (_ : (P + P - P)%coq_nat = P) // [LHS]addnK.
by have := fact_gt0 P; have := fact_gt0 n => f0 f1; field; lra.
Qed.
