(* Chapter 2, continued: the largest curvature over unit directions, and how near to Λ it comes. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Section Largest.
Variables (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).
Implicit Types (W V : mat m n).

Lemma second_derivative_scal W V c :
  second_derivative W (c *: V)%V x y τ = c ^ 2 * second_derivative W V x y τ.
Proof.
rewrite /second_derivative.
have swap a : c ^ 2 * (4 * a) = 4 * (c ^ 2 * a) by ring.
rewrite swap.
rewrite -[in RHS]sum_scal; congr (4 * _); apply: eq_bigr => k _.
rewrite -variance_scal; congr variance.
by apply: vec_eq => j; rewrite mulmv_scal dot_scall.
Qed.

Lemma bounded_on_units W λ :
  (forall V, second_derivative W V x y τ <= λ * ‖V‖²) <->
  (forall V, ‖V‖² = 1 -> second_derivative W V x y τ <= λ).
Proof.
split=> [b V V1|b V]; first by have := b V; rewrite V1; lra.
case: (Rle_lt_or_eq_dec _ _ (sqnorm_ge0 V)) => [v0|v0]; last first.
  have -> : V = (0 *: V)%V.
    by rewrite (sqnorm_eq0 (esym v0)); apply: vec_eq => p; rewrite /vscal /vzero; ring.
  by rewrite second_derivative_scal sqnorm_scal; lra.
have v := vnorm_sqr V; have n0 : ‖V‖ <> 0 by move=> E; rewrite E in v; lra.
have V1 : ‖/ ‖V‖ *: V‖² = 1 by rewrite sqnorm_scal -v; field.
have {b} := b _ V1; rewrite second_derivative_scal => b.
have := Rmult_le_compat_r _ _ _ (sqnorm_ge0 V) b; rewrite -{1}v.
have -> : (/ ‖V‖) ^ 2 * second_derivative W V x y τ * (‖V‖ * ‖V‖)
    = second_derivative W V x y τ by field.
by [].
Qed.

End Largest.

(* Toward claim pl-smooth, part norm: that the supremum over unit directions is reached, at an
   eigenvector of the Hessian; here: Cauchy and Schwarz, and the supremum is the least λ with
   d²L(V) ≤ λ‖V‖² in all directions, and exists. *)
Theorem pl_smooth_norm : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  (forall (V : mat m n) i j, Rabs ⟨V *v x, y i - y j⟩ <= ‖V‖ * ‖x‖ * D) /\
  forall W : mat m n,
    let q V := second_derivative W V x y τ in
    let units c := exists V, ‖V‖² = 1 /\ c = q V in
    (forall λ, is_lub units λ <->
       (forall V, q V <= λ * ‖V‖²) /\ (forall λ', (forall V, q V <= λ' * ‖V‖²) -> λ <= λ')) /\
    ((0 < m)%N -> (0 < n)%N -> exists λ, is_lub units λ /\ λ <= INR N.-1 * D ^ 2 * ‖x‖²).
Proof.
move=> m n N x y τ D yD; split.
  move=> V i j; apply: Rle_trans (dot_abs_le _ _) _.
  apply: Rmult_le_compat (vnorm_ge0 _) (vnorm_ge0 _) _ (yD i j).
  rewrite /vnorm -sqrt_mult; [|exact: sqnorm_ge0|exact: sqnorm_ge0].
  exact: sqrt_le_1_alt (sqnorm_mulmv V x).
move=> W q units; have ub λ : is_upper_bound units λ <-> (forall V, q V <= λ * ‖V‖²).
  rewrite bounded_on_units; split=> [u V V1|b _ [V [V1 ->]]]; last exact: b.
  by apply: u; exists V.
split=> [λ|m0 n0].
  split=> [] [u l]; split; try exact/ub.
    by move=> λ' /ub; exact: l.
  by move=> λ' /ub; exact: l.
have uΛ : is_upper_bound units (curvature_bound N D x).
  by apply/ub => V; exact: second_derivative_le.
have one : exists c, units c.
  pose p0 : 'I_m * 'I_n := (Ordinal m0, Ordinal n0).
  pose V : mat m n := fun p => if p == p0 then 1 else 0.
  exists (q V), V; split=> //; rewrite /sqnorm /dot -[RHS](sum_delta p0 (fun _ => 1)).
  by apply: eq_bigr => p _; rewrite /V; case: ifP => _; ring.
have [λ l] := completeness units (ex_intro _ _ uΛ) one.
by exists λ; split=> //; case: l => _; exact.
Qed.

(* ── A family of tasks ──────────────────────────────────────────────────────────────────────── *)

(* The vector (a, b, 0, …, 0). *)
Definition planar {m : nat} (a b : R) : vec 'I_m :=
  fun c => if val c == 0%N then a else if val c == 1%N then b else 0.

Lemma planar_sub m a b c d : (planar a b - planar c d)%V = planar (a - c) (b - d) :> vec 'I_m.
Proof. by apply: vec_eq => i; rewrite /vsub /planar; do 2 case: ifP => _ //; ring. Qed.

Lemma dot_planar m a b c d : ⟨planar a b : vec 'I_m.+2, planar c d⟩ = a * c + b * d.
Proof.
rewrite /dot !big_ord_recl sum_eq0 => [|i _]; first by rewrite /planar /=; ring.
by rewrite /planar /=; ring.
Qed.

(* Two of the values, with their weights, bound the variance from below. *)
Lemma variance_two_values (I : finType) (w c : I -> R) (a b : I) : weights w -> a <> b ->
  w a * w b * (c a - c b) ^ 2 <= variance w c.
Proof.
move=> ww /eqP ab; have [w0 _] := ww.
have pos i j : 0 <= w i * w j * (c i - c j) ^ 2.
  by apply: Rmult_le_pos (pow2_ge_0 _); apply: Rmult_le_pos.
have row i j : w i * w j * (c i - c j) ^ 2 <= ∑_j (w i * w j * (c i - c j) ^ 2).
  exact: (@sum_ge_term I predT (fun j => w i * w j * (c i - c j) ^ 2) j isT (fun k _ => pos i k)).
rewrite variance_pairs // (sum_pick a).
have := @sum_ge_term I (fun i => i != a) (fun i => ∑_j (w i * w j * (c i - c j) ^ 2)) b.
rewrite eq_sym ab => more.
have {}more := more isT (fun i _ => @sum_ge0 _ _ predT _ (fun j _ => pos i j)).
by have := row a b; have := row b a; lra.
Qed.

Section Family.
Variables (m n p : nat) (x : vec 'I_n) (D t : R).
Let N := p.+2.

(* The pair (±D/2, 0) in the last two places, all others at (0, D/2), and Wx = (0, −t). *)
Definition family (j : 'I_N) : vec 'I_m.+2 :=
  if (j < p)%N then planar 0 (D / 2)
  else if val j == p then planar (D / 2) 0 else planar (- (D / 2)) 0.

Definition family_W : mat m.+2 n := outer (planar 0 (- t)) (/ ‖x‖² *: x).
Definition family_V : mat m.+2 n := outer (planar 1 0) (/ ‖x‖ *: x).

Hypotheses (x0 : x <> vzero) (D0 : 0 < D).

Let last1 : 'I_N := ord_max.
Let last2 : 'I_N := widen_ord (leqnSn _) (ord_max : 'I_p.+1).

Lemma family_last1 : family last1 = planar (- (D / 2)) 0.
Proof. by rewrite /family /= ltnNge leqnSn /= eqn_leq ltnn. Qed.

Lemma family_last2 : family last2 = planar (D / 2) 0.
Proof. by rewrite /family /= ltnn eqxx. Qed.

Lemma family_spread i j : ‖family i - family j‖ <= D.
Proof.
rewrite -[X in _ <= X](sqrt_Rsqr D); last by lra.
apply: sqrt_le_1_alt; rewrite /Rsqr.
have := Rmult_lt_0_compat _ _ D0 D0.
by rewrite /family; do ![case: ifP => _]; rewrite planar_sub /sqnorm dot_planar; lra.
Qed.

Lemma family_far : ‖family last2 - family last1‖ = D.
Proof.
rewrite family_last1 family_last2 planar_sub /vnorm /sqnorm dot_planar -[RHS]sqrt_Rsqr; last by lra.
by congr sqrt; rewrite /Rsqr; field.
Qed.

Lemma family_Wx : (family_W *v x)%V = planar 0 (- t).
Proof.
rewrite /family_W mulmv_outer dot_scall -[⟨x, x⟩]/(‖x‖²).
apply: vec_eq => a; rewrite /vscal; field; have := sqnorm_gt0 x0; lra.
Qed.

Lemma norm_gt0 : 0 < ‖x‖.
Proof. by apply: sqrt_lt_R0; exact: sqnorm_gt0. Qed.

Lemma family_Vx : (family_V *v x)%V = planar (‖x‖) 0.
Proof.
rewrite /family_V mulmv_outer dot_scall -[⟨x, x⟩]/(‖x‖²) -vnorm_sqr.
have v0 := norm_gt0; apply: vec_eq => a; rewrite /vscal /planar.
by case: ifP => _; [|case: ifP => _]; field; lra.
Qed.

Lemma family_V1 : ‖family_V‖² = 1.
Proof.
rewrite /family_V sqnorm_outer sqnorm_scal {1}/sqnorm dot_planar -vnorm_sqr.
by field; have := norm_gt0; lra.
Qed.

Let s j := score family_W x (family j).
Let e := exp (- (D / 2) ^ 2 - t ^ 2).

Lemma family_e1 : exp (s last1) = e.
Proof.
by rewrite /s /score family_Wx family_last1 planar_sub /sqnorm dot_planar; congr exp; field.
Qed.

Lemma family_e2 : exp (s last2) = e.
Proof.
by rewrite /s /score family_Wx family_last2 planar_sub /sqnorm dot_planar; congr exp; field.
Qed.

Lemma family_sum : ∑_j exp (s j) = e * (2 + INR p * exp (- (D * t))).
Proof.
rewrite !sum_last family_e1.
have -> : exp (s (widen_ord (leqnSn p.+1) ord_max)) = e by exact: family_e2.
rewrite (eq_bigr (fun _ => e * exp (- (D * t)))) => [|i _].
  by rewrite sum_const_ord; ring.
rewrite /s /score family_Wx /family /= ltn_ord planar_sub /sqnorm dot_planar /e -exp_plus.
by congr exp; field.
Qed.

(* The weight of one of the pair. *)
Let w := / (2 + INR p * exp (- (D * t))).

Lemma crowd_gt0 : 0 < 2 + INR p * exp (- (D * t)).
Proof. by have := Rmult_le_pos _ _ (INR_ge0 p) (Rlt_le _ _ (exp_pos (- (D * t)))); lra. Qed.

Lemma family_weight k j : (k <= p)%N -> exp (s j) = e -> (k <= j)%N ->
  forall kN : (k < N)%N, w <= beta s 1%g (Ordinal kN) j.
Proof.
move=> kp E kj kN; rewrite /beta /= kj perm1 E.
have c0 := crowd_gt0; have e0 : 0 < e := exp_pos _.
have -> : w = e * / (∑_j exp (s j)).
  by rewrite family_sum /w; field; split; lra.
apply: Rmult_le_compat_l; first lra; apply: Rinv_le_contravar.
  by apply: (@sum_exp_gt0 _ _ _ (Ordinal kN)); rewrite /=.
have -> : ∑_j exp (s j) = ∑_(j : 'I_N | (k <= j)%N) exp (s ((1%g : {perm 'I_N}) j))
    + ∑_(j : 'I_N | ~~ (k <= j)%N) exp (s j).
  rewrite (sum_ID (fun j : 'I_N => (k <= j)%N)).
  by congr (_ + _); apply: eq_bigr => i _; rewrite perm1.
rewrite -[X in X <= _]Rplus_0_r; apply: Rplus_le_compat_l.
by apply: sum_ge0 => i _; exact: Rlt_le (exp_pos _).
Qed.

Lemma family_curvature :
  INR p.+1 * (D ^ 2 * ‖x‖²) * (4 * w ^ 2) <= second_derivative family_W family_V x family 1%g.
Proof.
have c0 := crowd_gt0; have w0 : 0 < w by exact: Rinv_0_lt_compat.
rewrite /second_derivative sum_last.
set last := variance _ _.
have l0 : 0 <= last by apply: variance_ge0; exact: beta_weights.
have : INR p.+1 * (w * w * (D * ‖x‖) ^ 2) <= ∑_(i < p.+1) variance
    (beta (fun j => score family_W x (family j)) 1%g (widen_ord (leqnSn p.+1) i))
    (fun j : 'I_N => ⟨family_V *v x, family ((1%g : {perm 'I_N}) j)⟩).
  rewrite -sum_const_ord; apply: sum_le => k _.
  apply: Rle_trans (variance_two_values _ _ (a := last1) (b := last2) _); last first.
  - by move=> /(f_equal val) /= E; have := ltnn p; rewrite -{2}E ltnSn.
  - exact: beta_weights.
  rewrite !perm1 family_last1 family_last2 family_Vx !dot_planar.
  have -> : (‖x‖ * - (D / 2) + 0 * 0 - (‖x‖ * (D / 2) + 0 * 0)) ^ 2 = (D * ‖x‖) ^ 2 by field.
  apply: Rmult_le_compat_r; first exact: pow2_ge_0.
  have kp : (k <= p)%N by rewrite -ltnS.
  have W1 := family_weight kp family_e1 (leq_trans kp (leqnSn p))
    (ltn_ord (widen_ord (leqnSn p.+1) k)).
  have W2 := family_weight kp family_e2 kp (ltn_ord (widen_ord (leqnSn p.+1) k)).
  have -> : widen_ord (leqnSn p.+1) k = Ordinal (ltn_ord (widen_ord (leqnSn p.+1) k)).
    exact: val_inj.
  by apply: Rmult_le_compat; [lra|lra|exact: W1|exact: W2].
by rewrite -vnorm_sqr; move: last l0 (∑_(i < _) _) (‖x‖) => l l0 S v; lra.
Qed.

End Family.

(* Claim pl-smooth, part supremum; D is the largest distance, and pl_smooth is the upper bound. *)
Theorem pl_smooth_supremum : forall (m n N : nat) (x : vec 'I_n) (D ε : R),
  (2 <= m)%N -> (2 <= N)%N -> x <> vzero -> 0 < D -> 0 < ε ->
  exists (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
    (forall i j, ‖y i - y j‖ <= D) /\ (exists i j, ‖y i - y j‖ = D) /\ ‖V‖² = 1 /\
    (1 - ε) * (INR N.-1 * D ^ 2 * ‖x‖²) <= second_derivative W V x y τ.
Proof.
move=> [|[|m]] // n [|[|p]] // x D ε _ _ x0 D0 ε0.
have N0 : 0 < INR p.+2 by exact: INR_gt0.
pose t := - ln (ε / INR p.+2) / D.
have te : exp (- (D * t)) = ε / INR p.+2.
  rewrite -[RHS]exp_ln; last by apply: Rdiv_lt_0_compat.
  by congr exp; rewrite /t; field; lra.
exists (@family m p D), 1%g, (@family_W m n x t), (@family_V m n x).
split; first exact: family_spread.
split; first by do 2 eexists; exact: family_far.
split; first exact: family_V1.
have curved := @family_curvature m n p x D t x0; apply: Rle_trans curved.
rewrite te -[p.+2.-1]/(p.+1).
have -> : (1 - ε) * (INR p.+1 * D ^ 2 * ‖x‖²) = INR p.+1 * (D ^ 2 * ‖x‖²) * (1 - ε) by ring.
apply: Rmult_le_compat_l.
  apply: Rmult_le_pos (INR_ge0 _) _; apply: Rmult_le_pos (pow2_ge_0 _) (sqnorm_ge0 _).
set c := INR p * (ε / INR p.+2).
have c0 : 0 <= c by apply: Rmult_le_pos (INR_ge0 _) _; apply: Rlt_le; exact: Rdiv_lt_0_compat.
have cε : c <= ε.
  have -> : c = ε * (INR p / INR p.+2) by rewrite /c; field; lra.
  rewrite -[X in _ <= X]Rmult_1_r; apply: Rmult_le_compat_l; first lra.
  apply: (Rmult_le_reg_r (INR p.+2)) => //.
  rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_l ?Rmult_1_r; last lra.
  by apply: INR_le; rewrite leqW.
have -> : 4 * (/ (2 + c)) ^ 2 = 1 - c + c ^ 2 * (3 + c) / (2 + c) ^ 2 by field; lra.
have : 0 <= c ^ 2 * (3 + c) / (2 + c) ^ 2.
  apply: Rdiv_le_0_compat; last by apply: pow_lt; lra.
  by apply: Rmult_le_pos (pow2_ge_0 _) _; lra.
lra.
Qed.
