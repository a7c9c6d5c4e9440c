(* Statements that are not theorems, of the book's chapters 1 and 2: each is a theorem with one
   thing changed (a sign, a constant, a hypothesis dropped), and the kernel checks its negation.

   The comment before a lemma names the theorem and the change. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── One dimension, two responses ───────────────────────────────────────────────────────────── *)

Definition V1 (a : R) : vec 'I_1 := fun _ => a.
Definition M1 (w : R) : mat 1 1 := fun _ => w.
Definition pair (a b : R) (j : 'I_2) : R := if j == ord0 then a else b.
Definition two (a b : R) (j : 'I_2) : vec 'I_1 := V1 (pair a b j).

Lemma M1_add v w : (M1 v + M1 w)%V = M1 (v + w). Proof. by []. Qed.
Lemma M1_sub v w : (M1 v - M1 w)%V = M1 (v - w). Proof. by []. Qed.
Lemma M1_scal c w : (c *: M1 w)%V = M1 (c * w). Proof. by []. Qed.

Lemma mulmv_1 w x : (M1 w *v V1 x)%V = V1 (w * x).
Proof. by apply: vec_eq => a; rewrite /mulmv big_ord_recl big_ord0 Rplus_0_r. Qed.

Lemma dot_1 a b : ⟨V1 a, V1 b⟩ = a * b.
Proof. by rewrite /dot big_ord_recl big_ord0 Rplus_0_r. Qed.

Lemma sqnorm_1 a : ‖V1 a‖² = a * a. Proof. exact: dot_1. Qed.

Lemma vnorm_1 a : ‖V1 a‖ = Rabs a.
Proof. by rewrite /vnorm sqnorm_1 -[a * a]/(Rsqr a) sqrt_Rsqr_abs. Qed.

Lemma dot_M1 v w : ⟨M1 v, M1 w⟩ = v * w.
Proof.
by rewrite /dot -(pair_bigA _ (fun _ _ : 'I_1 => v * w)) /= !big_ord_recl !big_ord0 !Rplus_0_r.
Qed.

Lemma sqnorm_M1 w : ‖M1 w‖² = w * w. Proof. exact: dot_M1. Qed.

Lemma score_1 w x b : score (M1 w) (V1 x) (V1 b) = - (w * x - b) ^ 2.
Proof. by rewrite /score mulmv_1 -[(V1 _ - V1 _)%V]/(V1 (w * x - b)) sqnorm_1; ring. Qed.

Lemma score_two w x a b j :
  score (M1 w) (V1 x) (two a b j) = - (w * x - pair a b j) ^ 2.
Proof. exact: score_1. Qed.

Lemma pair_0 a b : pair a b ord0 = a. Proof. by []. Qed.
Lemma pair_1 a b : pair a b ord_max = b. Proof. by []. Qed.
Lemma lift_max2 : lift ord0 ord0 = ord_max :> 'I_2. Proof. exact/val_inj. Qed.

Lemma P_two s : P_PL s (1%g : {perm 'I_2}) = sigmoid (s ord0 - s ord_max).
Proof. by rewrite pl_bradley_terry lift_max2 !perm1. Qed.

Lemma sigmoid_0 : sigmoid 0 = / 2. Proof. by rewrite /sigmoid Ropp_0 exp_0; field. Qed.

Lemma P_equal : P_PL (pair 0 0) (1%g : {perm 'I_2}) = / 2.
Proof. by rewrite P_two pair_0 pair_1 Rminus_0_r sigmoid_0. Qed.

Lemma loss_two w x a b : loss (M1 w) (V1 x) (two a b) 1%g
  = ln (1 + exp ((w * x - a) ^ 2 - (w * x - b) ^ 2)).
Proof.
rewrite /loss P_two !score_two pair_0 pair_1 /sigmoid.
set e := exp _; have e0 : 0 < e := exp_pos _; rewrite ln_div; [|lra|lra].
by rewrite ln_1 Rminus_0_l Ropp_involutive /e; congr (ln (1 + exp _)); ring.
Qed.

(* At weights whose scores are equal, the gradient is x (b − a). *)
Lemma tail_mean_two w x a b : (w * x - a) ^ 2 = (w * x - b) ^ 2 ->
  tail_mean (M1 w) (V1 x) (two a b) 1%g ord0 = V1 ((a + b) / 2).
Proof.
move=> E; apply: vec_eq => c; rewrite /tail_mean /comb sum_two !perm1 /beta /= !perm1.
rewrite sum_two !perm1 !score_two !pair_0 !pair_1 E /two /V1 pair_0 pair_1.
by field; have := exp_pos (- (w * x - b) ^ 2); lra.
Qed.

Lemma gradient_two w x a b : (w * x - a) ^ 2 = (w * x - b) ^ 2 ->
  gradient (M1 w) (V1 x) (two a b) 1%g = M1 (x * (b - a)).
Proof.
move=> E; apply: vec_eq => p; rewrite /gradient /vscal /outer /vsum big_mkcond sum_two /=.
by rewrite /vsub tail_mean_two // !perm1 /two /V1 pair_0 /M1; field.
Qed.

Lemma spread_two a b D : Rabs (a - b) <= D -> forall i j, ‖two a b i - two a b j‖ <= D.
Proof.
move=> ab i j; rewrite -[(two _ _ _ - two _ _ _)%V]/(V1 (pair a b i - pair a b j)) vnorm_1 /pair.
by case: ifP; case: ifP => _ _; move: ab; split_Rabs; lra.
Qed.

(* ── Chapter 1 ──────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_normalised: every factor against all responses, not only those left *)
Lemma not_normalised_without_tails : ~ (forall (N : nat) (s : 'I_N -> R),
  ∑_(τ : {perm 'I_N}) ∏_(k < N) (exp (s (τ k)) / ∑_(j < N) exp (s (τ j))) = 1).
Proof.
move/(_ 2%N (fun _ => 0)); rewrite sum_const card_Sn exp_0.
rewrite !big_ord_recl !big_ord0 /=; lra.
Qed.

(* Mutant of pl_normalised_induction: the response in the last place, not the first *)
Lemma not_induction_from_the_last : ~ (forall (n : nat) (s : 'I_n.+1 -> R) (i : 'I_n.+1)
    (σ : {perm 'I_n}),
  P_PL s (lift_perm ord_max i σ)
  = exp (s i) / ∑_j exp (s j) * P_PL (fun j => s (lift i j)) σ).
Proof.
move/(_ 1%N (pair 1 0) ord0 1%g).
have E := lift_perm_lift ord_max ord0 (1%g : {perm 'I_1}) ord0.
have l : lift ord_max (ord0 : 'I_1) = ord0 :> 'I_2 by exact/val_inj.
rewrite perm1 l lift_max2 in E; rewrite pl_bradley_terry lift_max2 lift_perm_id E pair_0 pair_1.
have -> (s : 'I_1 -> R) : P_PL s 1%g = 1.
  by rewrite -[LHS]/(placed _) placed_first /placed big_ord0 /softmax big_ord_recl big_ord0;
     have := exp_pos (s ((1%g : {perm 'I_1}) ord0)) => e0; field; lra.
rewrite big_ord_recl big_ord_recl big_ord0 lift_max2 pair_0 pair_1 exp_0 /sigmoid.
rewrite (_ : - (0 - 1) = 1); last by ring.
have e1 := exp_ineq1 1 ltac:(lra); move: (exp 1) e1 => e e1.
have -> : e / (e + (1 + 0)) * 1 = 1 - 1 / (1 + e) by field; lra.
have : 1 / (1 + e) < / 2; last by lra.
by rewrite /Rdiv Rmult_1_l; apply: Rinv_lt_contravar; lra.
Qed.

(* Mutant of pl_normalised_first_place: over the others alone *)
Lemma not_first_place_over_the_others : ~ (forall (n : nat) (s : 'I_n.+1 -> R),
  ∑_(k < n.+1) (exp (s k) / ∑_(j < n.+1 | j != k) exp (s j)) = 1).
Proof.
move/(_ 1%N (fun _ => 0)).
rewrite sum_two big_mkcond [X in _ + _ / X]big_mkcond !sum_two /= exp_0; lra.
Qed.

(* Mutant of pl_shift: scores times a constant, not plus one *)
Lemma not_invariant_under_scaling :
  ~ (forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}) (c : R),
  P_PL (fun j => s j * c) τ = P_PL s τ).
Proof.
move/(_ 2%N (pair 1 0) 1%g 0); rewrite !P_two pair_0 pair_1 !Rmult_0_r /sigmoid.
rewrite Rminus_0_r Ropp_0 exp_0 Rminus_0_r; have := exp_increasing (- 1) 0.
rewrite exp_0; have e0 := exp_pos (- 1); move: (exp (- 1)) e0 => e e0 /(_ ltac:(lra)) e1 E.
have : (1 + e) * (1 / (1 + 1)) = 1 by rewrite E; field; lra.
by lra.
Qed.

(* Mutant of pl_shift_reduced: the constant added, not subtracted *)
Lemma not_reduced_plus :
  ~ (forall (m n : nat) (W : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  score W x y = reduced W x y + ‖W *v x‖²).
Proof.
move/(_ 1%N 1%N (M1 1) (V1 1) (V1 0)).
by rewrite score_1 /reduced mulmv_1 dot_1 !sqnorm_1; lra.
Qed.

(* Mutant of pl_shift_serves: scores without the norms of the responses *)
Lemma not_served_by_products :
  ~ (forall (m n N : nat) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  P_PL (fun j => score W x (y j)) τ = P_PL (fun j => 2 * ⟨W *v x, y j⟩) τ).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) (V1 1) (two 0 1) 1%g); rewrite !P_two !score_two !mulmv_1 !dot_1.
rewrite pair_0 pair_1 /sigmoid => E; have := exp_increasing (- 1) 0; rewrite exp_0.
have := exp_pos (- 1); move: E.
have -> : - (- (0 * 1 - 0) ^ 2 - - (0 * 1 - 1) ^ 2) = - 1 by ring.
have -> : - (2 * (0 * 1 * pair 0 1 ord0) - 2 * (0 * 1 * pair 0 1 ord_max)) = 0 by ring.
rewrite exp_0; move: (exp (- 1)) => e E e0 /(_ ltac:(lra)) e1.
have : (1 + e) * (1 / (1 + 1)) = 1 by rewrite -E; field; lra.
by lra.
Qed.

(* Mutant of pl_bradley_terry: the difference the other way round *)
Lemma not_bradley_terry_backwards : ~ (forall (s : 'I_2 -> R) (τ : {perm 'I_2}),
  P_PL s τ = sigmoid (s (τ (lift ord0 ord0)) - s (τ ord0))).
Proof.
move/(_ (pair 1 0) 1%g); rewrite P_two !perm1 lift_max2 pair_0 pair_1 /sigmoid.
rewrite Rminus_0_r Rminus_0_l Ropp_involutive; have := exp_increasing (- 1) 1 ltac:(lra).
have := exp_pos (- 1); have := exp_pos 1; move: (exp 1) (exp (- 1)) => f e f0 e0 lt E.
have : (1 + f) * (1 / (1 + e)) = 1 by rewrite E; field; lra.
have -> : (1 + f) * (1 / (1 + e)) = 1 + (f - e) / (1 + e) by field; lra.
by have := Rdiv_lt_0_compat (f - e) (1 + e); lra.
Qed.

(* Mutant of pl_infonce: the sign of the score flipped *)
Lemma not_infonce_plus : ~ (forall (n : nat) (s : 'I_n.+1 -> R) (τ : {perm 'I_n.+1}),
  - ln (exp (s (τ ord0)) / ∑_(j < n.+1 | (0 <= j)%N) exp (s (τ j)))
  = s (τ ord0) + ln (∑_j exp (s j))).
Proof.
move/(_ 0%N (fun _ => 1) 1%g); rewrite [LHS](pl_infonce (fun _ => 1) 1%g).
rewrite !big_ord_recl big_ord0 Rplus_0_r ln_exp.
by lra.
Qed.

(* Mutant of pl_top_k: one factor more *)
Lemma not_top_k_and_one : ~ (forall (N K : nat) (s : 'I_N -> R) (τ : {perm 'I_N}),
  ∑_(σ : {perm 'I_N} | [forall k : 'I_N, (k < K)%N ==> (σ k == τ k)]) P_PL s σ
  = ∏_(k < N | (k < K.+1)%N) (exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j)))).
Proof.
move/(_ 2%N 0%N (fun _ => 0) 1%g); rewrite pl_top_k [LHS]big_pred0 //.
by rewrite (firsts_first 0 (fun _ => 0)) big_pred0 // /softmax sum_two exp_0; lra.
Qed.

(* Mutant of pl_top_k_split: without the law of the rest *)
Lemma not_split_without_rest :
  ~ (forall (K n : nat) (s : 'I_(K + n) -> R) (τ : {perm 'I_(K + n)}),
  P_PL s τ
  = ∏_(k < K) (exp (s (τ (lshift n k)))
      / ∑_(j < K + n | (lshift n k <= j)%N) exp (s (τ j)))).
Proof. by move/(_ 0%N 2%N (pair 0 0) 1%g); rewrite P_equal big_ord0; lra. Qed.

(* ── Chapter 2: one step ────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_last_term_factor: any place, not only the last *)
Lemma not_every_factor_one : ~ (forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N),
  exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j)) = 1).
Proof.
move/(_ 2%N (fun _ => 0) 1%g ord0); rewrite exp_0 big_mkcond /= !big_ord_recl big_ord0 /=; lra.
Qed.

(* Mutant of pl_last_term_factors: one factor less *)
Lemma not_fewer_factors : ~ (forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}),
  P_PL s τ = ∏_(k < N | (k.+2 < N)%N) (exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j)))).
Proof. by move/(_ 2%N (pair 0 0) 1%g); rewrite P_equal big_pred0 //; lra. Qed.

(* Mutant of pl_last_term: any place, not only the last *)
Lemma not_every_term_zero : ~ (forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k : 'I_N) (η : R),
  tail_mean W x y τ k = y (τ k) /\
  ((- 2 * η) *: y (τ k) + (2 * η) *: tail_mean W x y τ k = vzero)%V).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) (V1 1) (two 1 (- 1)) 1%g ord0 1) => [+ _].
rewrite tail_mean_two; last by ring.
by rewrite perm1 => /(f_equal (fun v => v ord0)); rewrite /two /V1 pair_0; lra.
Qed.

(* Mutant of pl_gradient_slope: the residual with the other sign *)
Lemma not_slope_backwards : ~ (forall (m n : nat) (W V : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  is_derive (fun t : R => score (W + t *: V) x y) 0 ⟨2 *: outer (W *v x - y) x, V⟩).
Proof.
move/(_ 1%N 1%N (M1 0) (M1 1) (V1 1) (V1 1)) => /is_derive_unique.
rewrite (is_derive_unique _ _ _ (pl_gradient_slope _ _ _ _)) !dot_scall !dot_outer.
by rewrite !mulmv_1 -![(V1 _ - V1 _)%V]/(V1 (_ - _)) !dot_1; lra.
Qed.

(* Mutant of pl_gradient: the sign flipped *)
Lemma not_gradient_backwards : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  is_derive (fun t : R => loss (W + t *: V) x y τ) 0 (- ⟨gradient W x y τ, V⟩)).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) (two 1 (- 1)) 1%g (M1 0) (M1 1)) => /is_derive_unique.
rewrite (is_derive_unique _ _ _ (pl_gradient _ _ _ _ _)) gradient_two; last by ring.
by rewrite dot_M1; lra.
Qed.

(* Mutant of pl_gradient: half of it (the factor 2 of Eq. 9 left out) *)
Lemma not_gradient_halved : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  is_derive (fun t : R => loss (W + t *: V) x y τ) 0 ⟨/ 2 *: gradient W x y τ, V⟩).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) (two 1 (- 1)) 1%g (M1 0) (M1 1)) => /is_derive_unique.
rewrite (is_derive_unique _ _ _ (pl_gradient _ _ _ _ _)) gradient_two; last by ring.
by rewrite M1_scal !dot_M1; lra.
Qed.

(* Mutant of pl_gradient_targets: a query of any norm, without ‖x‖² *)
Lemma not_targets_without_norm : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n) (η : R),
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let g (k : 'I_N) := ((- 2 * η) *: y (τ k) + (2 * η) *: tail_mean W x y τ k)%V in
  ((- 1) *: (ΔW *v x) = ∑_(k < N | (k.+1 < N)%N) g k)%V).
Proof.
move/(_ 1%N 1%N 2%N (V1 2) (two 1 (- 1)) 1%g (M1 0) 1) => /= /(f_equal (fun v => v ord0)).
rewrite gradient_two; last by ring.
rewrite M1_scal mulmv_1 /vsum big_mkcond sum_two /= /vadd /vscal tail_mean_two; last by ring.
by rewrite !perm1 /two /V1 pair_0; lra.
Qed.

(* Mutant of target_shift_scores: the targets shifted the other way *)
Lemma not_scores_shifted_backwards :
  ~ (forall (m n : nat) (W ΔW : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  score (W + ΔW) x y = score W x (y + ΔW *v x)).
Proof.
move/(_ 1%N 1%N (M1 0) (M1 1) (V1 1) (V1 1)); rewrite mulmv_1 M1_add.
by rewrite -[(V1 _ + V1 _)%V]/(V1 (1 + 1 * 1)) !score_1; lra.
Qed.

(* Mutant of target_shift: the targets shifted the other way *)
Lemma not_loss_shifted_backwards : ~ (forall (m n N : nat) (W ΔW : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  loss (W + ΔW) x y τ = loss W x (fun j => y j + ΔW *v x)%V τ).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) (M1 1) (V1 1) (two 1 0) 1%g).
have -> : (fun j => two 1 0 j + M1 1 *v V1 1)%V = two (1 + 1 * 1) (0 + 1 * 1).
  apply: FunctionalExtensionality.functional_extensionality => j.
  by rewrite mulmv_1 /two /pair; case: ifP.
rewrite M1_add !loss_two => E.
have := exp_pos ((0 * 1 - (1 + 1 * 1)) ^ 2 - (0 * 1 - (0 + 1 * 1)) ^ 2); move: E.
set e := exp _; set f := exp _ => E f0; have e0 : 0 < e := exp_pos _.
have : 1 + e = 1 + f by apply: ln_inv => //; lra.
move=> ef; have : e = f by lra.
by move/exp_inv; lra.
Qed.
