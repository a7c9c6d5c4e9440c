(* Chapter 2, One gradient step is a change of targets: the loss and its gradient. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Definitions ────────────────────────────────────────────────────────────────────────────── *)

Section Definitions.
Context {m n N : nat}.
Implicit Types (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

(* L(W) = −log P_PL. *)
Definition loss W x y τ : R := - ln (P_PL (fun j => score W x (y j)) τ).

(* β_j^k, the weights of the responses in place k or worse. *)
Definition beta (s : 'I_N -> R) τ (k j : 'I_N) : R :=
  if (k <= j)%N then exp (s (τ j)) / ∑_(l < N | (k <= l)%N) exp (s (τ l)) else 0.

(* μ_k, the mean of the responses in place k or worse. *)
Definition tail_mean W x y τ (k : 'I_N) : vec 'I_m :=
  comb (beta (fun j => score W x (y j)) τ k) (fun j => y (τ j)).

(* The gradient of Eq. 9. *)
Definition gradient W x y τ : mat m n :=
  2 *: outer (∑_(k < N | (k.+1 < N)%N) (tail_mean W x y τ k - y (τ k))) x.

End Definitions.

(* ── The loss is a sum of log-sum-exps of reduced scores ────────────────────────────────────── *)

(* Indices of the k-th tail. *)
Definition tail {N : nat} (k : 'I_N) : pred 'I_N := fun j => (k <= j)%N.

Lemma tail_self N (k : 'I_N) : tail k k. Proof. exact: leqnn. Qed.

Lemma beta_gibbs N (s : 'I_N -> R) τ k j : beta s τ k j = gibbs (tail k) (fun i => s (τ i)) j.
Proof. by []. Qed.

Lemma placed_lse N (a : 'I_N -> R) : - ln (placed a) = ∑_k (lse (tail k) a - a k).
Proof.
rewrite prod_ln => [|k _]; last exact: factor_gt0.
rewrite -sum_opp; apply: eq_bigr => k _.
by rewrite ln_div ?ln_exp ?Ropp_minus_distr //; [exact: exp_pos | exact: tail_gt0].
Qed.

(* Weights do not see a common shift. *)
Lemma gibbs_shift (I : finType) (P : pred I) (z : I -> R) c j k : P k ->
  gibbs P (fun i => z i + c) j = gibbs P z j.
Proof.
move=> Pk; rewrite /gibbs; case: ifP => // _; have S0 := sum_exp_gt0 z Pk.
under [in LHS]eq_bigr => i _ do rewrite exp_plus.
by rewrite sum_scalr exp_plus; field; have := exp_pos c; lra.
Qed.

Section Loss.
Variables m n N : nat.
Implicit Types (W V : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

(* Reduced scores by place. *)
Definition placed_scores W x y τ (k : 'I_N) : R := reduced W x (y (τ k)).

Lemma loss_lse W x y τ :
  loss W x y τ = ∑_k (lse (tail k) (placed_scores W x y τ) - placed_scores W x y τ k).
Proof. by rewrite /loss pl_shift_serves -placed_lse. Qed.

(* They move linearly with W. *)
Definition slopes V x y τ (k : 'I_N) : R := 2 * ⟨V *v x, y (τ k)⟩.

Lemma placed_scores_add W V x y τ k :
  placed_scores (W + V) x y τ k = placed_scores W x y τ k + slopes V x y τ k.
Proof. by rewrite /placed_scores /slopes /reduced mulmv_add dot_addl; ring. Qed.

Lemma beta_reduced W x y τ k j :
  beta (fun i => score W x (y i)) τ k j = gibbs (tail k) (placed_scores W x y τ) j.
Proof.
rewrite -(gibbs_shift (placed_scores W x y τ) (- ‖W *v x‖²) j (tail_self k)) beta_gibbs.
have E i : score W x (y (τ i)) = placed_scores W x y τ i + - ‖W *v x‖² := pl_shift_reduced _ _ _.
rewrite /gibbs E; case: ifP => // _; congr (_ / _).
by apply: eq_bigr => i _; rewrite E.
Qed.

(* The mean of the slopes in a tail. *)
Lemma tail_mean_dot W V x y τ k :
  2 * ⟨V *v x, tail_mean W x y τ k⟩
  = wmean (gibbs (tail k) (placed_scores W x y τ)) (slopes V x y τ).
Proof.
rewrite /tail_mean dot_combr -sum_scal; apply: eq_bigr => j _.
by rewrite beta_reduced /slopes; ring.
Qed.

End Loss.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-last-term, part factor; the last factor is one. *)
Theorem pl_last_term_factor : forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N),
  k.+1 = N -> exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j)) = 1.
Proof.
move=> N s τ k kN; rewrite (big_pred1 k) => [|j]; first by field; have := exp_pos (s (τ k)); lra.
apply/idP/eqP => [kj|->] //.
by apply/val_inj/eqP; rewrite eqn_leq kj andbT -ltnS kN ltn_ord.
Qed.

(* Claim pl-last-term, part factor; so the law, and the loss, have N − 1 factors. *)
Theorem pl_last_term_factors : forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}),
  P_PL s τ = ∏_(k < N | (k.+1 < N)%N) (exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j))).
Proof.
move=> N s τ; rewrite [RHS]big_mkcond; apply: eq_bigr => k _; case: ifP => // /negbT.
rewrite -leqNgt => Nk; apply: pl_last_term_factor.
by apply/eqP; rewrite eqn_leq Nk ltn_ord.
Qed.

Lemma tail_mean_last : forall (m n N : nat) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (k : 'I_N),
  k.+1 = N -> tail_mean W x y τ k = y (τ k).
Proof.
move=> m n N W x y τ k kN; apply: vec_eq => a; rewrite /tail_mean /comb (bigD1 k) //= big1.
  by rewrite /beta leqnn (pl_last_term_factor (fun i => score W x (y i))) //; ring.
move=> j jk; rewrite /beta; case: ifP => [kj|_]; last by ring.
move: jk; rewrite -val_eqE /= eqn_leq kj andbT -ltnS kN.
by rewrite ltn_ord.
Qed.

(* Claim pl-last-term, part term; μ_N = y_τ(N), so g^N = 0 and the step has N − 1 terms. *)
Theorem pl_last_term : forall (m n N : nat) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (k : 'I_N) (η : R),
  k.+1 = N ->
  tail_mean W x y τ k = y (τ k) /\
  ((- 2 * η) *: y (τ k) + (2 * η) *: tail_mean W x y τ k = vzero)%V.
Proof.
move=> m n N W x y τ k η kN; rewrite (tail_mean_last W x y τ kN); split=> //.
by apply: vec_eq => a; rewrite /vadd /vscal /vzero; ring.
Qed.

Section Gradient.
Variables m n N : nat.
Implicit Types (W V : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

(* The gradient in a direction, with all N terms. *)
Lemma gradient_dot W V x y τ :
  ⟨gradient W x y τ, V⟩
  = ∑_k (wmean (gibbs (tail k) (placed_scores W x y τ)) (slopes V x y τ) - slopes V x y τ k).
Proof.
rewrite /gradient dot_scall dot_outer dotC dot_vsumr -sum_scal big_mkcond; apply: eq_bigr => k _.
rewrite dot_subr Rmult_minus_distr_l tail_mean_dot; case: ifP => // /negbT.
rewrite -leqNgt => Nk; rewrite -tail_mean_dot tail_mean_last /slopes; first by ring.
by apply/eqP; rewrite eqn_leq Nk ltn_ord.
Qed.

(* Along the line W + uV, at every point of it. *)
Lemma is_derive_loss W V x y τ t :
  is_derive (fun u => loss (W + u *: V) x y τ) t ⟨gradient (W + t *: V) x y τ, V⟩.
Proof.
pose z := placed_scores W x y τ; pose c := slopes V x y τ.
have line u : placed_scores (W + u *: V) x y τ = fun k => z k + u * c k.
  apply: FunctionalExtensionality.functional_extensionality => k.
  by rewrite placed_scores_add /c /slopes mulmv_scal dot_scall -/(z k); ring.
apply: (is_derive_ext (fun u => ∑_k (lse (tail k) (fun j => z j + u * c j) - (z k + u * c k)))).
  by move=> u; rewrite loss_lse line.
rewrite gradient_dot line; apply: is_derive_sum => k _.
apply: (is_derive_minus (fun u => lse (tail k) (fun j => z j + u * c j))).
  exact: (is_derive_lse _ _ (tail_self k)).
by auto_derive => //; rewrite Rmult_1_l.
Qed.

End Gradient.

(* Claim pl-gradient, part slope; the derivative of one score in the direction V. *)
Theorem pl_gradient_slope : forall (m n : nat) (W V : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  is_derive (fun t : R => score (W + t *: V) x y) 0 ⟨2 *: outer (y - W *v x) x, V⟩.
Proof.
move=> m n W V x y; rewrite dot_scall dot_outer.
apply: (is_derive_ext (fun t =>
  - (‖W *v x - y‖² + 2 * ⟨W *v x - y, V *v x⟩ * t + ‖V *v x‖² * t ^ 2))) => [t|].
  rewrite /score mulmv_add mulmv_scal; congr (- _).
  have -> : (W *v x + t *: (V *v x) - y = (W *v x - y) + t *: (V *v x))%V.
    by apply: vec_eq => a; rewrite /vsub /vadd; ring.
  by rewrite sqnorm_add sqnorm_scal dot_scalr; ring.
by auto_derive => //; rewrite !dot_subl; ring.
Qed.

(* Claim pl-gradient, part gradient; paper: Prop. 3.1, Eq. 9; in every direction, at every point. *)
Theorem pl_gradient : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N})
    (W V : mat m n),
  is_derive (fun t : R => loss (W + t *: V) x y τ) 0 ⟨gradient W x y τ, V⟩.
Proof.
move=> m n N x y τ W V; have := is_derive_loss W V x y τ 0.
have -> : (W + 0 *: V = W)%V by apply: vec_eq => p; rewrite /vadd /vscal; ring.
by [].
Qed.

(* Claim pl-gradient, part targets; paper: Prop. 3.1; one step moves the targets by ‖x‖² ∑_k g^k. *)
Theorem pl_gradient_targets : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n) (η : R),
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let g (k : 'I_N) := ((- 2 * η) *: y (τ k) + (2 * η) *: tail_mean W x y τ k)%V in
  ((- 1) *: (ΔW *v x) = ‖x‖² *: ∑_(k < N | (k.+1 < N)%N) g k)%V.
Proof.
move=> m n N x y τ W η /=; rewrite /gradient !mulmv_scal mulmv_outer.
apply: vec_eq => a; rewrite /vscal /vsum.
rewrite -[⟨x, x⟩]/(‖x‖²).
rewrite [in RHS](eq_bigr (fun k => 2 * η * (tail_mean W x y τ k a - y (τ k) a))).
  by rewrite sum_scal /vsub /=; ring.
by move=> k _; rewrite /vadd; ring.
Qed.

(* Claim target-shift, part scores. *)
Theorem target_shift_scores : forall (m n : nat) (W ΔW : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  score (W + ΔW) x y = score W x (y - ΔW *v x).
Proof.
move=> m n W ΔW x y; rewrite /score mulmv_add; congr (- sqnorm _).
by apply: vec_eq => a; rewrite /vsub /vadd; ring.
Qed.

(* Claim target-shift, part loss; a step of the weights is a shift of the targets. *)
Theorem target_shift : forall (m n N : nat) (W ΔW : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  loss (W + ΔW) x y τ = loss W x (fun j => y j - ΔW *v x)%V τ.
Proof.
move=> m n N W ΔW x y τ; rewrite /loss; congr (- ln _).
by apply: (@eq_placed _ (fun k => _ (τ k))) => k; exact: target_shift_scores.
Qed.
