(* Chapter 8, Multiple queries II: the gradient step on the losses of M queries that share one W. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* G = Σ_{k<N} (y_τ(k) − μ_k): the step of one query on its own loss is 2η‖x‖² G. *)
Definition pull {m n N : nat} (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) : vec 'I_m :=
  (∑_(k < N | (k.+1 < N)%N) (y (τ k) - tail_mean W x y τ k))%V.

(* ∇ Σ_b L_b. *)
Definition joint_gradient {m n M N : nat} (W : mat m n) (x : 'I_M -> vec 'I_n)
    (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) : mat m n :=
  comb (fun=> 1) (fun b => gradient W (x b) (y b) (τ b)).

(* Claim mq-gradient, part step: this is the gradient, in every direction, at every point. *)
Theorem mq_gradient_slope : forall (m n M N : nat) (x : 'I_M -> vec 'I_n)
    (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (W V : mat m n),
  is_derive (fun t => ∑_b loss (W + t *: V) (x b) (y b) (τ b)) 0 ⟨joint_gradient W x y τ, V⟩.
Proof.
move=> m n M N x y τ W V; rewrite dotC dot_combr.
rewrite (eq_bigr (fun b => ⟨gradient W (x b) (y b) (τ b), V⟩)) => [|b _].
  by apply: is_derive_sum => b _; exact: pl_gradient.
by rewrite Rmult_1_l dotC.
Qed.

Lemma gradient_apply m n N (W : mat m n) (x z : vec 'I_n) (y : 'I_N -> vec 'I_m) τ :
  (gradient W x y τ *v z = (- 2 * ⟨x, z⟩) *: pull W x y τ)%V.
Proof.
rewrite /gradient mulmv_scal mulmv_outer; apply: vec_eq => c; rewrite /pull /vscal /vsum.
set S := ∑_(k < N | _) _; set G := ∑_(k < N | _) _.
suff -> : S = - 1 * G by ring.
by rewrite /S /G -sum_scal; apply: eq_bigr => k _; rewrite /vsub; ring.
Qed.

(* Claim mq-gradient, part step: ΔW x^a = 2η Σ_b ⟨x^b, x^a⟩ G_b. *)
Theorem mq_gradient : forall (m n M N : nat) (η : R) (W : mat m n) (x : 'I_M -> vec 'I_n)
    (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (a : 'I_M),
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let G b := pull W (x b) (y b) (τ b) in
  (ΔW *v x a = (2 * η) *: comb (fun b => ⟨x b, x a⟩) G)%V.
Proof.
move=> m n M N η W x y τ a; cbv zeta; rewrite mulmv_scal; apply: vec_eq => c.
rewrite /vscal /mulmv /joint_gradient /comb.
rewrite (eq_bigr (fun d => ∑_b (gradient W (x b) (y b) (τ b) (c, d) * x a d))) => [|d _].
  rewrite sum_exchange -[LHS]sum_scal -[RHS]sum_scal; apply: eq_bigr => b _.
  rewrite -[∑_d _]/((gradient W (x b) (y b) (τ b) *v x a)%V c) gradient_apply /vscal.
  ring.
by rewrite -[LHS]sum_scalr; apply: eq_bigr => b _; rewrite Rmult_1_l.
Qed.

(* Claim mq-own-term, part iff: the own term is the step for all queries if and only if the others
   cancel for each. *)
Theorem mq_own_term_iff : forall (m n M N : nat) (η : R) (W : mat m n) (x : 'I_M -> vec 'I_n)
    (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}),
  η <> 0 -> (forall a, ‖x a‖ = 1) ->
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let G b := pull W (x b) (y b) (τ b) in
  (forall a, (ΔW *v x a = (2 * η) *: G a)%V)
  <-> (forall a c, ∑_(b | b != a) (⟨x b, x a⟩ * G b c) = 0).
Proof.
move=> m n M N η W x y τ η0 x1 ΔW G.
have E a c : (ΔW *v x a)%V c
    = 2 * η * G a c + 2 * η * ∑_(b | b != a) (⟨x b, x a⟩ * G b c).
  rewrite /ΔW mq_gradient /vscal /comb (sum_pick a) -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1 /G.
  by ring.
split=> H a.
  move=> c; have := E a c; rewrite H /vscal => e.
  by apply: (Rmult_eq_reg_l (2 * η)); lra.
by apply: vec_eq => c; rewrite E H /vscal; ring.
Qed.

(* Claim mq-own-term, part orthonormal. *)
Theorem mq_own_term_orthonormal : forall (m n M N : nat) (η : R) (W : mat m n)
    (x : 'I_M -> vec 'I_n) (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (a : 'I_M),
  (forall b, ‖x b‖ = 1) -> (forall b c : 'I_M, b != c -> ⟨x b, x c⟩ = 0) ->
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  (ΔW *v x a = (2 * η) *: pull W (x a) (y a) (τ a))%V.
Proof.
move=> m n M N η W x y τ a x1 x0; cbv zeta; rewrite mq_gradient; apply: vec_eq => c.
rewrite /vscal /comb (sum_pick a) -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1 big1 => [|b ba].
  by rewrite /=; ring.
by rewrite x0 //; ring.
Qed.
