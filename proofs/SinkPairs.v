(* Pairs of softmax heads beside a sink, as numbers: what sinh bends, and what the tokens weigh. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums Weights LogSumExp.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* a_k = 2(−1)^{k−1} (P!)²/((P−k)! (P+k)!), for k = 1, …, P. *)
Definition sink_coefficient (P k : nat) : R :=
  2 * (- 1) ^ (k - 1) * (INR (fact P) * INR (fact P)) / (INR (fact (P - k)) * INR (fact (P + k))).

(* Σ_k a_k sinh(kεz)/(kε), nearly z. *)
Definition sink_curve (P : nat) (ε z : R) : R :=
  ∑_(k < P) (sink_coefficient P k.+1 * sinh (INR k.+1 * ε * z) / (INR k.+1 * ε)).

(* ── Bending ────────────────────────────────────────────────────────────────────────────────── *)

Lemma sum_f_R0_ord (f : nat -> R) n : sum_f_R0 f n = ∑_(i < n.+1) f i.
Proof. by elim: n => [|n IH]; rewrite sum_last /= ?IH ?big_ord0 //; ring. Qed.

Lemma fact_gt0 n : 0 < INR (fact n). Proof. exact: INR_fact_lt_0. Qed.

Lemma exp_pow t n : exp t ^ n = exp (INR n * t).
Proof.
elim: n => [|n IH]; first by rewrite /= Rmult_0_l exp_0.
by rewrite /= IH -exp_plus -/(INR n.+1) INR_S; congr exp; ring.
Qed.

Lemma sum_symmetric P (F : nat -> R) :
  ∑_(i < (P + P).+1) F i = F P + ∑_(k < P) (F (P - k.+1)%N + F (P + k.+1)%N).
Proof.
rewrite -addnS big_split_ord /= sum_first /= addn0 sum_add.
by rewrite (reindex_inj rev_ord_inj) /= -!Rplus_assoc (Rplus_comm (F P)).
Qed.

(* (e^{t/2} − e^{−t/2})^{2P}, by the binomial theorem, from its middle term outwards. *)
Lemma sinh_power P t :
  (exp (t / 2) - exp (- (t / 2))) ^ (P + P)
  = (- 1) ^ P * Binomial.C (P + P) P
    * (1 - ∑_(k < P) (sink_coefficient P k.+1 * cosh (INR k.+1 * t))).
Proof.
have C0 : 0 < Binomial.C (P + P) P.
  by apply: Rdiv_lt_0_compat; [exact: fact_gt0 | apply: Rmult_lt_0_compat; exact: fact_gt0].
rewrite /Rminus Rplus_comm Binomial.binomial sum_f_R0_ord.
rewrite (sum_symmetric P (fun i =>
  Binomial.C (P + P) i * (- exp (- (t / 2))) ^ i * exp (t / 2) ^ (P + P - i))).
have term i : (i <= P + P)%N -> forall u : R, u = INR P - INR i ->
  Binomial.C (P + P) i * (- exp (- (t / 2))) ^ i * exp (t / 2) ^ (P + P - i)
  = (- 1) ^ i * Binomial.C (P + P) i * exp (u * t).
  move=> le u ->; have -> : - exp (- (t / 2)) = - 1 * exp (- (t / 2)) by ring.
  rewrite Rpow_mult_distr !exp_pow minus_INR; last exact/leP.
  set p := INR i * _; set q := (_ - _) * (t / 2).
  have -> : (INR P - INR i) * t = p + q by rewrite /p /q plus_INR; field.
  by rewrite exp_plus; ring.
have -> : (- 1) ^ P * Binomial.C (P + P) P
      * (1 - ∑_(k < P) (sink_coefficient P k.+1 * cosh (INR k.+1 * t)))
    = (- 1) ^ P * Binomial.C (P + P) P * exp (0 * t)
    + ∑_(k < P) (- ((- 1) ^ P * Binomial.C (P + P) P) *
        (sink_coefficient P k.+1 * cosh (INR k.+1 * t))).
  by rewrite sum_scal Rmult_0_l exp_0; move: (_ * Binomial.C _ _) (∑_(k < P) _) => u v; ring.
congr (_ + _); first by apply: term; [exact: leq_addr | ring].
apply: eq_bigr => k _; have kP := ltn_ord k.
rewrite (term _ _ (INR k.+1)); first last.
- by rewrite minus_INR; [ring | exact/leP].
- by rewrite (leq_trans (leq_subr _ _)) // leq_addr.
rewrite (term _ _ (- INR k.+1)); first last.
- by rewrite plus_INR; ring.
- by rewrite leq_add2l.
have E1 : (P + P - (P - k.+1))%coq_nat = (P + k.+1)%N.
  by rewrite -[RHS](addKn (P - k.+1)) addnCA subnK.
have E2 : (P + P - (P + k.+1))%coq_nat = (P - k.+1)%N by rewrite [LHS]subnDl.
have E3 : (P + P - P)%coq_nat = P by rewrite [LHS]addnK.
rewrite /Binomial.C E1 E2 E3 /sink_coefficient subn1 [k.+1.-1]/=.
have f0 := fact_gt0 P; have f1 := fact_gt0 (P + k.+1); have f2 := fact_gt0 (P - k.+1).
have sP : (- 1) ^ P = (- 1) ^ (P - k.+1) * - (- 1) ^ k.
  by rewrite -{1}(subnK kP) pow_add -[(- 1) ^ k.+1]/(- 1 * (- 1) ^ k); ring.
have ee : (- 1) ^ k * (- 1) ^ k = 1 by rewrite -Rpow_mult_distr (_ : - 1 * - 1 = 1) ?pow1; lra.
have -> : (- 1) ^ (P + k.+1) = (- 1) ^ (P - k.+1).
  rewrite pow_add sP -[(- 1) ^ k.+1]/(- 1 * (- 1) ^ k); move: ((- 1) ^ k) ee => e ee.
  by transitivity ((- 1) ^ (P - k.+1) * (e * e)); [ring | rewrite ee; ring].
rewrite sP /cosh (_ : - (INR k.+1 * t) = - INR k.+1 * t); last by ring.
move: (exp _) (exp _) ((- 1) ^ _) ((- 1) ^ k) (INR (fact (P + P))) ee => u v s e F ee.
move: (INR (fact P)) (INR (fact (P + k.+1))) (INR (fact (P - k.+1))) f0 f1 f2 => p q r p0 q0 r0.
have -> : s * (F / (r * q)) * v + s * (F / (q * r)) * u = s * (e * e) * F / (r * q) * (v + u).
  by rewrite ee; field; lra.
by field; lra.
Qed.

Section Bending.
Variables (P : nat) (ε : R).
Hypothesis ε0 : 0 < ε.

Let bend (z : R) := sink_curve P ε z - z.
Let σ := - (- 1) ^ P.
Let slope (z : R) := (exp (ε * z / 2) - exp (- (ε * z / 2))) ^ (P + P) / Binomial.C (P + P) P.

Lemma middle_gt0 : 0 < Binomial.C (P + P) P.
Proof. by apply: Rdiv_lt_0_compat; [|apply: Rmult_lt_0_compat]; exact: fact_gt0. Qed.

Lemma sign_square : (- 1) ^ P * (- 1) ^ P = 1.
Proof. by rewrite -Rpow_mult_distr (_ : - 1 * - 1 = 1) ?pow1; lra. Qed.

Lemma slope_ge0 z : 0 <= slope z.
Proof.
apply: Rmult_le_pos; last by left; apply: Rinv_0_lt_compat; exact: middle_gt0.
by rewrite pow_add; exact: Rle_0_sqr.
Qed.

Lemma is_derive_bend z : is_derive bend z (σ * slope z).
Proof.
apply: (is_derive_eq (l := ∑_(k < P) (sink_coefficient P k.+1 * cosh (INR k.+1 * (ε * z))) - 1)).
  apply: (is_derive_minus (sink_curve P ε)); last by auto_derive.
  apply: is_derive_sum => k _; have := INR_gt0 (ltn0Sn k); rewrite /sinh /cosh.
  move: (INR _) (sink_coefficient _ _) => i a i0.
  by auto_derive => //; rewrite (Rmult_assoc i ε z); field; lra.
rewrite /slope sinh_power /σ; have := middle_gt0; have := sign_square.
set s := (- 1) ^ P; set c := Binomial.C _ _; set S := ∑_(k < P) _ => ss c0.
transitivity (- (s * s) * (1 - S)); first by rewrite ss; ring.
by field; lra.
Qed.

Lemma bend_0 : bend 0 = 0.
Proof.
rewrite /bend /sink_curve big1 => [|k _]; first by ring.
by rewrite Rmult_0_r sinh_0 Rmult_0_r /Rdiv Rmult_0_l.
Qed.

Lemma bend_odd z : bend (- z) = - bend z.
Proof.
have E : sink_curve P ε (- z) = - sink_curve P ε z.
  rewrite /sink_curve -sum_opp; apply: eq_bigr => k _.
  by rewrite /sinh !Ropp_mult_distr_r_reverse Ropp_involutive /Rdiv; ring.
by rewrite /bend E; ring.
Qed.

(* σ·bend is increasing, so that bend is largest at 1. *)
Lemma bend_mono u v : u <= v -> σ * bend u <= σ * bend v.
Proof.
case=> [uv|->]; last by exact: Rle_refl.
have D c : u <= c <= v -> derivable_pt_lim bend c (σ * slope c).
  by move=> _; apply/is_derive_Reals; exact: is_derive_bend.
have [c [E _]] := MVT_cor2 _ _ _ _ uv D.
have ss : σ * σ = 1 by rewrite /σ; have := sign_square; lra.
have := Rmult_le_pos _ _ (slope_ge0 c) (Rlt_le _ _ (Rlt_Rminus _ _ uv)) => p.
have : σ * (bend v - bend u) = slope c * (v - u).
  rewrite E; transitivity (σ * σ * (slope c * (v - u))); first by ring.
  by rewrite ss; ring.
by lra.
Qed.

Lemma bend_le z : Rabs z <= 1 -> Rabs (sink_curve P ε z - z) <= Rabs (sink_curve P ε 1 - 1).
Proof.
rewrite -!/(bend _) => z1.
have signed u : 0 <= u -> Rabs (bend u) = σ * bend u.
  move=> u0; have := bend_mono u0; rewrite bend_0 Rmult_0_r => pos.
  have ss : σ * σ = 1 by rewrite /σ; have := sign_square; lra.
  have s1 : Rabs σ = 1 by have := Rsqr_abs σ; rewrite /Rsqr ss; have := Rabs_pos σ; nra.
  by rewrite -(Rabs_pos_eq _ pos) Rabs_mult s1; ring.
have half u : 0 <= u <= 1 -> Rabs (bend u) <= Rabs (bend 1).
  by move=> u01; rewrite !signed; try lra; apply: bend_mono; lra.
case: (Rle_dec 0 z) => z0; first by apply: half; split_Rabs; lra.
by rewrite -(Ropp_involutive z) bend_odd Rabs_Ropp; apply: half; split_Rabs; lra.
Qed.

End Bending.

(* ── What the tokens weigh beside the sink ──────────────────────────────────────────────────── *)

Section Leak.
Variables (n : nat) (λ : R).
Implicit Types (z : 'I_n -> R) (ε : R).

(* The weight of token j beside a sink of logit λ. *)
Definition beside_sink ε z (j : 'I_n) : R := exp (ε * z j) / (exp λ + ∑_l exp (ε * z l)).

Let s ε z := exp (- λ) * ∑_l exp (ε * z l).
Let c := INR n * exp (- λ).

Lemma s_le ε z : (forall l, Rabs (z l) <= 1) -> 0 <= ε ->
  c * exp (- ε) <= s ε z <= c * exp ε.
Proof.
move=> z1 ε0; have b l : exp (- ε) <= exp (ε * z l) <= exp ε.
  by have := z1 l => z1l; split; apply: exp_mono; split_Rabs; nra.
have e0 := exp_pos (- λ); rewrite /s /c; set S := ∑_l _.
have lo : INR n * exp (- ε) <= S by rewrite -sum_const_ord; apply: sum_le => l _; case: (b l).
have hi : S <= INR n * exp ε by rewrite -sum_const_ord; apply: sum_le => l _; case: (b l).
by split; nra.
Qed.

Lemma beside_sinkE ε z j :
  exp λ * beside_sink ε z j = exp (ε * z j) - exp (ε * z j) * share (s ε z).
Proof.
have S0 : 0 <= ∑_l exp (ε * z l) by apply: sum_ge0 => l _; left; exact: exp_pos.
have L := exp_pos λ; have L' : exp (- λ) = / exp λ by exact: exp_Ropp.
rewrite /beside_sink /share /s L'; set S := ∑_l _ in S0 *.
by field; split; lra.
Qed.

Lemma leak_one_sided ε z j : 0 < ε -> (forall l, Rabs (z l) <= 1) ->
  exp (ε * z j) * share (s ε z) - exp (- ε * z j) * share (s (- ε) z)
  <= c * (2 * sinh (2 * ε)).
Proof.
move=> ε0 z1; have c0 : 0 <= c by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: exp_pos].
have [_ up] := s_le z1 (Rlt_le _ _ ε0).
have z1' l : Rabs (- z l) <= 1 by rewrite Rabs_Ropp.
have E : s (- ε) z = s ε (fun l => - z l).
  by congr (_ * _); apply: eq_bigr => l _; congr exp; ring.
have [low _] := s_le z1' (Rlt_le _ _ ε0); rewrite -E in low.
have u1 : 1 <= exp ε by rewrite -exp_0; apply: exp_mono; lra.
have uv : exp ε * exp (- ε) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
have v0 := exp_pos (- ε).
set q := c * exp ε in up *; set p := c * exp (- ε) in low *.
have p0 : 0 <= p by apply: Rmult_le_pos; lra.
have pq : p <= q by apply: Rmult_le_compat_l => //; nra.
have zj : - 1 <= z j <= 1 by have := z1 j; split_Rabs; lra.
have s0 : 0 <= s ε z.
  apply: Rmult_le_pos; first by left; exact: exp_pos.
  by apply: sum_ge0 => l _; left; exact: exp_pos.
have first_ : exp (ε * z j) * share (s ε z) <= exp ε * share q.
  apply: Rmult_le_compat; [by left; exact: exp_pos | exact: share_ge0 | | exact: share_le].
  by apply: exp_mono; nra.
have second : exp (- ε) * share p <= exp (- ε * z j) * share (s (- ε) z).
  apply: Rmult_le_compat; [lra | exact: share_ge0 | | exact: share_le].
  by apply: exp_mono; nra.
have rest r : 0 <= r -> r - share r = r * share r by move=> r0; rewrite /share; field; lra.
have third : exp (- ε) * (p - share p) <= exp ε * (q - share q).
  have sp := share_ge0 p0; have sq := share_le p0 pq.
  rewrite !rest //; last by lra.
  by apply: Rmult_le_compat; [lra | nra | nra | nra].
have -> : c * (2 * sinh (2 * ε)) = exp ε * q - exp (- ε) * p.
  rewrite /sinh /q /p (_ : - (2 * ε) = - ε + - ε); last by ring.
  by rewrite (_ : 2 * ε = ε + ε) ?exp_plus; [field | ring].
by lra.
Qed.

(* One pair adds sinh(εz_j)/ε, nearly. *)
Lemma pair_leak ε z j : 0 < ε -> (forall l, Rabs (z l) <= 1) ->
  Rabs (exp λ / (2 * ε) * (beside_sink ε z j - beside_sink (- ε) z j) - sinh (ε * z j) / ε)
  <= c * (sinh (2 * ε) / ε).
Proof.
move=> ε0 z1; set a := exp (ε * z j) * share (s ε z).
set b := exp (- ε * z j) * share (s (- ε) z).
have -> : exp λ / (2 * ε) * (beside_sink ε z j - beside_sink (- ε) z j) - sinh (ε * z j) / ε
    = - (a - b) / (2 * ε).
  transitivity ((exp λ * beside_sink ε z j - exp λ * beside_sink (- ε) z j) / (2 * ε)
    - sinh (ε * z j) / ε); first by field; lra.
  rewrite !beside_sinkE -/a -/b /sinh (_ : - (ε * z j) = - ε * z j); last by ring.
  by field; lra.
have up : a - b <= c * (2 * sinh (2 * ε)) by exact: leak_one_sided.
have down : b - a <= c * (2 * sinh (2 * ε)).
  have z1' l : Rabs (- z l) <= 1 by rewrite Rabs_Ropp.
  have := leak_one_sided j ε0 z1'; rewrite /a /b /s.
  rewrite (_ : ε * - z j = - ε * z j); last by ring.
  rewrite (_ : - ε * - z j = ε * z j); last by ring.
  rewrite (eq_bigr (fun l => exp (- ε * z l))) => [|l _]; last by congr exp; ring.
  by rewrite [X in _ - _ * share (_ * X)](eq_bigr (fun l => exp (ε * z l))) => [|l _];
     last by congr exp; ring.
have -> : c * (sinh (2 * ε) / ε) = c * (2 * sinh (2 * ε)) / (2 * ε) by field; lra.
have i0 : 0 < / (2 * ε) by apply: Rinv_0_lt_compat; lra.
rewrite /Rdiv Rabs_mult (Rabs_pos_eq (/ _)); last by lra.
by apply: Rmult_le_compat_r; [lra | split_Rabs; lra].
Qed.

(* P pairs at ε, 2ε, …, combined: the weight that token j gets in all. *)
Definition sink_weight (P : nat) ε z (j : 'I_n) : R := ∑_(k < P) (sink_coefficient P k.+1 *
  (exp λ / (2 * (INR k.+1 * ε))
   * (beside_sink (INR k.+1 * ε) z j - beside_sink (- (INR k.+1 * ε)) z j))).

Lemma sink_weight_le P ε z j : 0 < ε -> (forall l, Rabs (z l) <= 1) ->
  Rabs (sink_weight P ε z j - z j)
  <= Rabs (sink_curve P ε 1 - 1)
     + c * ∑_(k < P) (Rabs (sink_coefficient P k.+1)
                      * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε))).
Proof.
move=> ε0 z1; have b := @bend_le P ε ε0 (z j) (z1 j).
have -> : sink_weight P ε z j - z j
    = (sink_curve P ε (z j) - z j) + (sink_weight P ε z j - sink_curve P ε (z j)) by ring.
apply: Rle_trans (Rabs_triang _ _) (Rplus_le_compat _ _ _ _ b _).
rewrite /sink_weight /sink_curve -sum_sub -sum_scal.
apply: Rle_trans (sum_abs _ _ _) _; apply: sum_le => k _.
have kε : 0 < INR k.+1 * ε by apply: Rmult_lt_0_compat ε0; exact: INR_gt0.
have := pair_leak j kε z1; move: (INR k.+1 * ε) (sink_coefficient _ _) => e a le.
set d := _ - beside_sink (- e) z j in le *.
have -> : a * (exp λ / (2 * e) * d) - a * sinh (e * z j) / e
    = a * (exp λ / (2 * e) * d - sinh (e * z j) / e) by rewrite /Rdiv; ring.
rewrite Rabs_mult -(Rmult_assoc c) (Rmult_comm c) Rmult_assoc.
by apply: Rmult_le_compat_l le; exact: Rabs_pos.
Qed.
End Leak.
