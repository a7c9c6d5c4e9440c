(* Statements that are not theorems, of chapter 2: curvature, step sizes, read-out, minimisers. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness NoMinimiser Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The responses 1 and −1, the query 1: the loss ln (1 + e^(−4w)), its slope at 0, its curvature. *)
Definition ends : 'I_2 -> vec 'I_1 := two 1 (- 1).
Definition L (w : R) : R := loss (M1 w) (V1 1) ends 1%g.

Lemma LE w : L w = ln (1 + exp (- (4 * w))).
Proof. by rewrite /L loss_two; congr (ln (1 + exp _)); ring. Qed.

Lemma L_gt0 w : 0 < L w.
Proof. by rewrite LE; exact: ln_1p_gt0 (exp_pos _). Qed.

Lemma L_0 : L 0 = ln 2.
Proof. by rewrite LE Rmult_0_r Ropp_0 exp_0; congr ln; lra. Qed.

Lemma slope_0 : gradient (M1 0) (V1 1) ends 1%g = M1 (- 2).
Proof. by rewrite gradient_two; [congr M1; ring | ring]. Qed.

(* exp 1 > 2, so ln 2 < 1. *)
Lemma ln2_lt1 : ln 2 < 1.
Proof.
by rewrite -[X in _ < X]ln_exp; apply: ln_increasing; have := exp_ineq1 1; lra.
Qed.

Lemma curvature_0 v : second_derivative (M1 0) (M1 v) (V1 1) ends 1%g = 4 * v ^ 2.
Proof.
rewrite second_derivative_two /softmax sum_two !perm1 !score_two mulmv_1 !pair_0 !pair_1.
have -> : (ends ord0 - ends ord_max)%V = V1 (1 - - 1) by [].
rewrite dot_1; have -> : (0 * 1 - - 1) ^ 2 = (0 * 1 - 1) ^ 2 by ring.
by field; have := exp_pos (- (0 * 1 - 1) ^ 2); lra.
Qed.

Lemma variances_0 v : ∑_k variance (beta (fun j => score (M1 0) (V1 1) (ends j)) 1%g k)
    (fun j : 'I_2 => ⟨M1 v *v V1 1, ends ((1%g : {perm 'I_2}) j)⟩) = v ^ 2.
Proof. by apply: (Rmult_eq_reg_l 4); [exact: curvature_0 v | lra]. Qed.

Lemma ends_spread i j : ‖ends i - ends j‖ <= 2.
Proof. by apply: spread_two; split_Rabs; lra. Qed.

(* ── Convexity ──────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_convex_second_derivative: 2 for 4 *)
Lemma not_second_derivative_halved : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
  is_derive_n (fun t => loss (W + t *: V) x y τ) 2 0
    (2 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩))).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) ends 1%g (M1 0) (M1 1)) => /is_derive_n_unique.
rewrite (is_derive_n_unique _ _ _ _ (pl_convex_second_derivative _ _ _ _ _)).
by rewrite variances_0; lra.
Qed.

(* Mutant of pl_convex_variance: every pair counted once, not half *)
Lemma not_variance_of_all_pairs : ~ (forall (I : finType) (β v : I -> R),
  (forall i, 0 <= β i) -> ∑_i β i = 1 ->
  variance β v = ∑_i ∑_j (β i * β j * (v i - v j) ^ 2) /\ 0 <= variance β v).
Proof.
have w0 i : 0 <= pair (/ 2) (/ 2) i by rewrite /pair; case: ifP; lra.
have w1 : ∑_i pair (/ 2) (/ 2) i = 1 by rewrite sum_two pair_0 pair_1; lra.
move/(_ _ _ (pair 0 1) w0 w1) => [E _]; have [E' _] := pl_convex_variance (pair 0 1) w0 w1.
by move: E; rewrite E' !sum_two !pair_0 !pair_1; lra.
Qed.

(* Mutant of pl_convex_variance: numbers that do not sum to one *)
Lemma not_variance_of_any_sum : ~ (forall (I : finType) (β v : I -> R),
  (forall i, 0 <= β i) ->
  variance β v = / 2 * ∑_i ∑_j (β i * β j * (v i - v j) ^ 2) /\ 0 <= variance β v).
Proof.
move/(_ _ (fun _ : 'I_1 => 2) (fun _ => 1)) => [i|]; first by lra.
by rewrite /variance /wmean !big_ord_recl !big_ord0; lra.
Qed.

(* Mutant of pl_convex_variance: negative weights *)
Lemma not_variance_of_signed : ~ (forall (I : finType) (β v : I -> R), ∑_i β i = 1 ->
  variance β v = / 2 * ∑_i ∑_j (β i * β j * (v i - v j) ^ 2) /\ 0 <= variance β v).
Proof.
have w1 : ∑_i pair 2 (- 1) i = 1 by rewrite sum_two pair_0 pair_1; lra.
move/(_ _ _ (pair 0 1) w1) => [_].
by rewrite /variance /wmean !sum_two !pair_0 !pair_1; lra.
Qed.

(* Two equal responses: the loss is ln 2 at all W. *)
(* Mutant of pl_convex_hessian: strictly positive, in every direction *)
Lemma not_strictly_convex : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  0 < 4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) (two 1 1) 1%g (M1 0) (M1 1)).
rewrite -(is_derive_n_unique _ _ _ _ (pl_convex_second_derivative _ _ _ _ _)).
rewrite (Derive_n_ext _ (fun _ => ln (1 + exp 0))) => [|t].
  by rewrite Derive_n_const; exact: Rlt_irrefl.
by rewrite M1_scal M1_add loss_two; congr (ln (1 + exp _)); ring.
Qed.

(* Mutant of pl_convex_kronecker: the covariance without its factor 4 *)
Lemma not_kronecker_without_4 : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
  = ∑_(p : 'I_m * 'I_n) ∑_(q : 'I_m * 'I_n)
      (V p * (∑_k covariance W x y τ k (p.1, q.1) * (x p.2 * x q.2)) * V q)).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) ends 1%g (M1 0) (M1 1)).
have := curvature_0 1; rewrite /second_derivative => C.
have := pl_convex_kronecker (V1 1) ends 1%g (M1 0) (M1 1); rewrite C => K E.
have : 4 * (4 * 1 ^ 2) = 4 * 1 ^ 2; last by lra.
rewrite [in LHS]E K -sum_scal; apply: eq_bigr => p _; rewrite -sum_scal; apply: eq_bigr => q _.
by move: (∑_k _) => c; ring.
Qed.

(* Mutant of pl_convex_jensen: beyond the segment *)
Lemma not_jensen_outside : ~ (forall (Q : finType) (m n : nat) (N : Q -> nat) (x : Q -> vec 'I_n)
    (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)}) (W W' : mat m n) (λ : R),
  total_loss ((1 - λ) *: W + λ *: W') x y τ
  <= (1 - λ) * total_loss W x y τ + λ * total_loss W' x y τ).
Proof.
move/(_ _ 1%N 1%N (fun _ : 'I_1 => 2%N) (fun _ => V1 1) (fun _ => ends) (fun _ => 1%g) (M1 0) (M1 1)
  (- 1)).
rewrite /total_loss !big_ord_recl !big_ord0 !M1_scal M1_add -!/(L _).
have -> : (1 - - 1) * 0 + - 1 * 1 = - 1 by ring.
have := L_gt0 1; rewrite L_0; have : 4 < L (- 1); last by have := ln2_lt1; lra.
rewrite LE -[X in X < _]ln_exp; apply: ln_increasing; first exact: exp_pos.
by have -> : - (4 * - 1) = 4; [ring | lra].
Qed.

(* Mutant of pl_convex_across_queries: lower at 0 than on both sides; its inequalities *)
Lemma not_across_queries_lower_at_0 : ~ (
  let W (w : R) : mat 1 1 := fun _ => w in
  let x (j : 'I_2) : vec 'I_1 := fun _ => INR j in
  let L (w : R) := - ln (P_PL (fun j => score (W w) (x j) vzero) 1%g) in
  L 0 < L 1 /\ L 0 < L (- 1)).
Proof.
by move=> /= [lt _]; have [lt' _] := pl_convex_across_queries; exact: Rlt_asym lt lt'.
Qed.

(* ── Curvature and steps ────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_smooth_popoviciu: l²/8 *)
Lemma not_popoviciu_halved : ~ (forall (I : finType) (β v : I -> R) (a l : R),
  (forall i, 0 <= β i) -> ∑_i β i = 1 -> (forall i, a <= v i <= a + l) ->
  variance β v <= l ^ 2 / 8).
Proof.
have w0 i : 0 <= pair (/ 2) (/ 2) i by rewrite /pair; case: ifP; lra.
have w1 : ∑_i pair (/ 2) (/ 2) i = 1 by rewrite sum_two pair_0 pair_1; lra.
have v01 i : 0 <= pair 0 1 i <= 0 + 1 by rewrite /pair; case: ifP; lra.
move/(_ _ _ _ _ _ w0 w1 v01); rewrite /variance /wmean !sum_two !pair_0 !pair_1; lra.
Qed.

(* Mutant of pl_smooth: Λ halved *)
Lemma not_smooth_halved : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall W V : mat m n,
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
    <= INR N.-1 * D ^ 2 * ‖x‖² / 2 * ‖V‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g 2 ends_spread (M1 0) (M1 1)).
by rewrite variances_0 sqnorm_1 sqnorm_M1 /=; lra.
Qed.

(* Mutant of pl_smooth: D the radius, not the diameter *)
Lemma not_smooth_in_the_radius : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i, ‖y i‖ <= D) ->
  forall W V : mat m n,
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
    <= INR N.-1 * D ^ 2 * ‖x‖² * ‖V‖²).
Proof.
move=> H; have short i : ‖ends i‖ <= 1.
  by rewrite vnorm_1 /pair; case: ifP => _; split_Rabs; lra.
have := H _ _ _ (V1 1) ends 1%g 1 short (M1 0) (M1 1).
by rewrite variances_0 sqnorm_1 sqnorm_M1 /=; lra.
Qed.

(* Mutant of pl_smooth: N − 2 for N − 1 *)
Lemma not_smooth_one_response_less : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall W V : mat m n,
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
    <= INR N.-2 * D ^ 2 * ‖x‖² * ‖V‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g 2 ends_spread (M1 0) (M1 1)).
by rewrite variances_0 sqnorm_1 sqnorm_M1 /=; lra.
Qed.

(* Mutant of pl_smooth_taylor: Λ halved *)
Lemma not_taylor_halved : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall (η : R) (W : mat m n),
    let G := gradient W x y τ in
    let Λ := INR N.-1 * D ^ 2 * ‖x‖² / 2 in
    loss (W - η *: G) x y τ <= loss W x y τ - (η - Λ * η ^ 2 / 2) * ‖G‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g 2 ends_spread (/ 2) (M1 0)) => /=.
rewrite slope_0 M1_scal M1_sub -!/(L _) L_0 sqnorm_1 sqnorm_M1.
by have := L_gt0 (0 - / 2 * - 2); have := ln2_lt1; lra.
Qed.

(* Mutant of pl_smooth_descent: steps up to 2/Λ *)
Lemma not_descent_for_twice_the_step : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall η, 0 <= η -> η * (INR N.-1 * D ^ 2 * ‖x‖²) <= 2 ->
  forall W : mat m n,
    let G := gradient W x y τ in
    loss (W - η *: G) x y τ <= loss W x y τ - η / 2 * ‖G‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g 2 ends_spread (/ 2)) => H.
have : L (0 - / 2 * - 2) <= L 0 - / 2 / 2 * (- 2 * - 2).
  rewrite -sqnorm_M1 /L -M1_sub -M1_scal -slope_0; apply: H; first by lra.
  by rewrite sqnorm_1 /=; lra.
by rewrite L_0; have := L_gt0 (0 - / 2 * - 2); have := ln2_lt1; lra.
Qed.

(* Mutant of pl_smooth_descent: twice the descent *)
Lemma not_twice_the_descent : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall η, 0 <= η -> η * (INR N.-1 * D ^ 2 * ‖x‖²) <= 1 ->
  forall W : mat m n,
    let G := gradient W x y τ in
    loss (W - η *: G) x y τ <= loss W x y τ - η * ‖G‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g 2 ends_spread (/ 4)) => H.
have : L (0 - / 4 * - 2) <= L 0 - / 4 * (- 2 * - 2).
  rewrite -sqnorm_M1 /L -M1_sub -M1_scal -slope_0; apply: H; first by lra.
  by rewrite sqnorm_1 /=; lra.
by rewrite L_0; have := L_gt0 (0 - / 4 * - 2); have := ln2_lt1; lra.
Qed.

(* Mutant of pl_smooth_attained: at the query zero too *)
Lemma not_attained_at_zero : ~ (forall (m n : nat) (x : vec 'I_n) (y : 'I_2 -> vec 'I_m)
    (τ : {perm 'I_2}) (W : mat m n),
    let V := outer (y (τ ord0) - y (τ ord_max))%V x in
    let Λ := INR 2.-1 * ‖y (τ ord0) - y (τ ord_max)‖ ^ 2 * ‖x‖² in
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_2 => ⟨V *v x, y (τ j)⟩)
    = Λ * ‖V‖² <->
    ‖W *v x - y (τ ord0)‖ = ‖W *v x - y (τ ord_max)‖).
Proof.
move/(_ 1%N 1%N (V1 0) (two 1 0) 1%g (M1 0)); set V := outer _ _; rewrite /V.
rewrite -[4 * _]/(second_derivative (M1 0) V (V1 0) (two 1 0) 1%g) /V !perm1 => -[H _].
move: H; rewrite sqnorm_1 second_derivative_two mulmv_outer dot_1 dot_scall !mulmv_1.
rewrite -![(V1 _ - two _ _ _)%V]/(V1 (_ - _)) !vnorm_1 !pair_0 !pair_1 => H.
have : Rabs (0 * 0 - 1) = Rabs (0 * 0 - 0); last by split_Rabs; lra.
by apply: H; ring.
Qed.
