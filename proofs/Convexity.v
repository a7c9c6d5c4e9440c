(* Chapter 2, continued: the loss is convex, how curved it can be, and what follows for the step. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Cov_{β^k}(y), the covariance of the responses in place k or worse. *)
Definition covariance {m n N : nat} (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (k : 'I_N) : mat m m :=
  let β := beta (fun j => score W x (y j)) τ k in
  let μ := tail_mean W x y τ k in
  fun p => ∑_j (β j * ((y (τ j) p.1 - μ p.1) * (y (τ j) p.2 - μ p.2))).

(* The sum of the losses of several queries; each ranking compares responses of one query. *)
Definition total_loss {Q : finType} {m n : nat} (N : Q -> nat) (W : mat m n) (x : Q -> vec 'I_n)
    (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)}) : R :=
  ∑_q loss W (x q) (y q) (τ q).

Section Curvature.
Variables m n N : nat.
Implicit Types (W V : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

(* The second derivative of the loss at W along V. *)
Definition second_derivative W V x y τ : R :=
  4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩).

Lemma beta_weights (s : 'I_N -> R) τ k : weights (beta s τ k).
Proof. exact: gibbs_weights (tail_self k). Qed.

Lemma placed_scores_line W V x y τ u :
  placed_scores (W + u *: V) x y τ
  = fun k => placed_scores W x y τ k + u * slopes V x y τ k.
Proof.
apply: FunctionalExtensionality.functional_extensionality => k.
by rewrite placed_scores_add /slopes mulmv_scal dot_scall; ring.
Qed.

Lemma second_derivative_slopes W V x y τ :
  second_derivative W V x y τ
  = ∑_k variance (gibbs (tail k) (placed_scores W x y τ)) (slopes V x y τ).
Proof.
rewrite /second_derivative -sum_scal; apply: eq_bigr => k _.
rewrite /slopes variance_scal; have -> : 2 ^ 2 = 4 by ring.
by congr (_ * variance _ _); apply: vec_eq => j; rewrite beta_reduced.
Qed.

(* The derivative of the slope, at every point of a line. *)
Lemma is_derive_slope W V x y τ t :
  is_derive (fun u => ⟨gradient (W + u *: V) x y τ, V⟩) t
    (second_derivative (W + t *: V) V x y τ).
Proof.
apply: (is_derive_ext (fun u => ∑_k (wmean (gibbs (tail k)
   (fun j => placed_scores W x y τ j + u * slopes V x y τ j)) (slopes V x y τ)
   - slopes V x y τ k))) => [u|]; first by rewrite gradient_dot placed_scores_line.
rewrite second_derivative_slopes placed_scores_line; apply: is_derive_sum => k _.
rewrite -[variance _ _]Rminus_0_r; apply: is_derive_minus; last exact: is_derive_const.
exact: (is_derive_wmean _ _ (tail_self k)).
Qed.

(* The loss lies above its tangents. *)
Lemma loss_tangent W V x y τ : loss W x y τ + ⟨gradient W x y τ, V⟩ <= loss (W + V) x y τ.
Proof.
rewrite !loss_lse gradient_dot -sum_add; apply: sum_le => k _.
have := lse_tangent (placed_scores W x y τ) (slopes V x y τ) (tail_self k).
rewrite (_ : (fun j => _) = placed_scores (W + V) x y τ); first by rewrite placed_scores_add; lra.
by apply: vec_eq => j; rewrite placed_scores_add.
Qed.

End Curvature.

(* ── Convexity ──────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-convex, part second-derivative; 4 ∑_k Var_{β^k}⟨Vx, y⟩, in every direction,
   everywhere. *)
Theorem pl_convex_second_derivative : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  is_derive_n (fun t => loss (W + t *: V) x y τ) 2 0
    (4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)).
Proof.
move=> m n N x y τ W V; rewrite /is_derive_n.
have := is_derive_slope W V x y τ 0.
have -> : (W + 0 *: V = W)%V by apply: vec_eq => p; rewrite /vadd /vscal; ring.
apply: is_derive_ext => u; apply/esym; exact: is_derive_unique (is_derive_loss W V x y τ u).
Qed.

(* Claim pl-convex, part variance. *)
Theorem pl_convex_variance : forall (I : finType) (β v : I -> R),
  (forall i, 0 <= β i) -> ∑_i β i = 1 ->
  variance β v = / 2 * ∑_i ∑_j (β i * β j * (v i - v j) ^ 2) /\ 0 <= variance β v.
Proof.
move=> I β v β0 β1; have w : weights β by [].
by split; [exact: variance_pairs | exact: variance_ge0].
Qed.

(* Claim pl-convex, part kronecker; the quadratic form of 4 (∑_k Cov) ⊗ xxᵀ at the entries of V. *)
Theorem pl_convex_kronecker : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
  = ∑_(p : 'I_m * 'I_n) ∑_(q : 'I_m * 'I_n)
      (V p * (4 * ∑_k covariance W x y τ k (p.1, q.1) * (x p.2 * x q.2)) * V q).
Proof.
move=> m n N x y τ W V; pose β := beta (fun j => score W x (y j)) τ.
pose d k j := (y (τ j) - tail_mean W x y τ k)%V.
have var k : variance (β k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
    = ∑_p ∑_q (V p * (covariance W x y τ k (p.1, q.1) * (x p.2 * x q.2)) * V q).
  have -> : variance (β k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
      = ∑_j (β k j * ⟨V, outer (d k j) x⟩ ^ 2).
    apply: eq_bigr => j _; rewrite (dotC V) dot_outer (dotC _ (V *v x)) dot_subr.
    by rewrite /tail_mean dot_combr.
  have square j : β k j * ⟨V, outer (d k j) x⟩ ^ 2
      = ∑_p ∑_q (β k j * (V p * outer (d k j) x p * (V q * outer (d k j) x q))).
    rewrite /= Rmult_1_r /dot sum_mul -sum_scal; apply: eq_bigr => p _.
    by rewrite [RHS]sum_scal.
  rewrite (eq_bigr _ (fun j _ => square j)) exchange_big; apply: eq_bigr => p _.
  rewrite exchange_big; apply: eq_bigr => q _.
  rewrite /covariance -!(sum_scalr, sum_scal); apply: eq_bigr => j _.
  by rewrite /outer /d /vsub /β /=; ring.
rewrite (eq_bigr _ (fun k _ => var k)) exchange_big -sum_scal; apply: eq_bigr => p _.
rewrite exchange_big -sum_scal; apply: eq_bigr => q _.
rewrite -!(sum_scalr, sum_scal); apply: eq_bigr => k _.
have ring4 a b c e : 4 * (a * (b * c) * e) = a * (4 * b * c) * e by ring.
exact: ring4.
Qed.

(* Claim pl-convex, part second-derivative; it is non-negative. *)
Theorem pl_convex_hessian : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  0 <= 4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩).
Proof.
move=> m n N x y τ W V; apply: Rmult_le_pos; first by lra.
by apply: sum_ge0 => k _; apply: variance_ge0; exact: beta_weights.
Qed.

(* Claim pl-convex, part queries; Jensen's inequality; one query is a sum of one. *)
Theorem pl_convex_jensen : forall (Q : finType) (m n : nat) (N : Q -> nat) (x : Q -> vec 'I_n)
    (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)}) (W W' : mat m n) (λ : R),
  0 <= λ <= 1 ->
  total_loss ((1 - λ) *: W + λ *: W') x y τ
  <= (1 - λ) * total_loss W x y τ + λ * total_loss W' x y τ.
Proof.
move=> Q m n N x y τ W W' λ λ01; rewrite /total_loss -!sum_scal -sum_add.
apply: sum_le => q _; set M := ((1 - λ) *: W + λ *: W')%V.
have := loss_tangent M (W - M)%V (x q) (@y q) (τ q).
have := loss_tangent M (W' - M)%V (x q) (@y q) (τ q).
have E (U : mat m n) : (M + (U - M) = U)%V by apply: vec_eq => p; rewrite /vadd /vsub; ring.
rewrite !E !dot_subr; set G := gradient M _ _ _.
have -> : ⟨G, M⟩ = (1 - λ) * ⟨G, W⟩ + λ * ⟨G, W'⟩ by rewrite /M dot_addr !dot_scalr.
move: (loss M _ _ _) (loss W _ _ _) (loss W' _ _ _) ⟨G, W⟩ ⟨G, W'⟩ => l a b g h H1 H2.
nra.
Qed.

(* Claim pl-convex, part queries; the sum has second derivative ≥ 0. *)
Theorem pl_convex_queries : forall (Q : finType) (m n : nat) (N : Q -> nat) (x : Q -> vec 'I_n)
    (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)}) (W V : mat m n),
  exists h : R, 0 <= h /\ is_derive_n (fun t => total_loss (W + t *: V) x y τ) 2 0 h.
Proof.
move=> Q m n N x y τ W V; exists (∑_q second_derivative W V (x q) (@y q) (τ q)).
split; first by apply: sum_ge0 => q _; exact: pl_convex_hessian.
apply: (is_derive_ext (fun u => ∑_q ⟨gradient (W + u *: V) (x q) (@y q) (τ q), V⟩)) => [u|].
  apply/esym/is_derive_unique; apply: is_derive_sum => q _; exact: is_derive_loss.
apply: is_derive_sum => q _; have := is_derive_slope W V (x q) (@y q) (τ q) 0.
by have -> : (W + 0 *: V = W)%V by apply: vec_eq => p; rewrite /vadd /vscal; ring.
Qed.

(* Claim pl-convex, part across-queries; one response at zero for each of the queries 0 and 1, the
   first ranked before the second: lower on both sides of 0, the loss is not convex. *)
Theorem pl_convex_across_queries :
  let W (w : R) : mat 1 1 := fun _ => w in
  let x (j : 'I_2) : vec 'I_1 := fun _ => INR j in
  let L (w : R) := - ln (P_PL (fun j => score (W w) (x j) vzero) 1%g) in
  L 1 < L 0 /\ L (- 1) < L 0
  /\ ~ (forall w w' λ : R, 0 <= λ <= 1 ->
        L ((1 - λ) * w + λ * w') <= (1 - λ) * L w + λ * L w').
Proof.
move=> W x L; suff [l1 l2] : L 1 < L 0 /\ L (- 1) < L 0.
  split=> //; split=> // /(_ 1 (- 1) (/ 2) ltac:(lra)).
  by rewrite (_ : (1 - / 2) * 1 + / 2 * - 1 = 0); lra.
have s w (j : 'I_2) : score (W w) (x j) vzero = - (w * INR j) ^ 2.
  rewrite /score /sqnorm /dot /mulmv /vsub /vzero !big_ord_recl !big_ord0.
  by rewrite /W /x; move: (INR j) => i; ring.
have E w : L w = ln (1 + exp (- w ^ 2)).
  rewrite /L pl_bradley_terry !perm1 /sigmoid !s ln_div ?ln_1; [|lra|]; last first.
    by apply: Rplus_lt_0_compat (exp_pos _); lra.
  by rewrite Rminus_0_l Ropp_involutive /= /bump /=; congr (ln (1 + exp _)); ring.
have e1 : exp (- 1) < 1 by rewrite -exp_0; apply: exp_increasing; lra.
have e0 := exp_pos (- 1).
rewrite !E; have -> : - 1 ^ 2 = - 1 by ring.
have -> : - (- 1) ^ 2 = - 1 by ring.
have -> : - 0 ^ 2 = 0 by ring.
by rewrite exp_0; split; apply: ln_increasing; lra.
Qed.
