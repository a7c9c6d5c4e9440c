(* Chapter 6, Fewer blocks, fewer terms. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Weights.
From Icalign Require Import Spacing Transformer Block Elimination BlockErrors Turns Theorem33.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* −log P(first K places), the factors of which are those of pl_top_k. *)
Definition loss_top {m n N} (K : nat) (W : mat m n) x (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) :=
  - ln (∏_(k < N | (k < K)%N) (exp (score W x (y (τ k)))
        / ∑_(j < N | (k <= j)%N) exp (score W x (y (τ j))))).

Definition gradient_top {m n N} (K : nat) (W : mat m n) x (y : 'I_N -> vec 'I_m) τ : mat m n :=
  (2 *: outer (∑_(k < N | (k < K)%N) (tail_mean W x y τ k - y (τ k))) x)%V.

Section TopK.
Variables (m n N K : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).
Implicit Types W V : mat m n.

Lemma loss_top_lse W : loss_top K W x y τ = ∑_(k < N | (k < K)%N)
  (lse (tail k) (placed_scores W x y τ) - placed_scores W x y τ k).
Proof.
pose a k := score W x (y (τ k)).
rewrite /loss_top prod_ln => [|k _]; last exact: (factor_gt0 a).
rewrite -sum_opp; apply: eq_bigr => k _.
rewrite ln_div; [|exact: exp_pos|exact: (tail_gt0 a)].
rewrite ln_exp (pl_shift_reduced W x (y (τ k))) -/(placed_scores W x y τ k).
have -> : ∑_(j < N | (k <= j)%N) exp (score W x (y (τ j)))
  = ∑_(j | tail k j) exp (placed_scores W x y τ j) * exp (- ‖W *v x‖²).
  by rewrite -sum_scalr; apply: eq_bigr => j _; rewrite pl_shift_reduced exp_plus.
rewrite ln_mult; [|exact: (sum_exp_gt0 _ (tail_self k))|exact: exp_pos].
by rewrite ln_exp /lse; ring.
Qed.

Lemma gradient_top_dot W V : ⟨gradient_top K W x y τ, V⟩ = ∑_(k < N | (k < K)%N)
  (wmean (gibbs (tail k) (placed_scores W x y τ)) (slopes V x y τ) - slopes V x y τ k).
Proof.
rewrite /gradient_top dot_scall dot_outer dotC dot_vsumr -sum_scal; apply: eq_bigr => k _.
by rewrite dot_subr Rmult_minus_distr_l tail_mean_dot.
Qed.

End TopK.

(* Claim partial-sums, part top-k-step: the gradient of −log P(first K places), and its step. *)
Theorem partial_sums_top_k_gradient : forall (m n N K : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
  is_derive (fun t : R => loss_top K (W + t *: V) x y τ) 0 ⟨gradient_top K W x y τ, V⟩.
Proof.
move=> m n N K x y τ W V; pose z := placed_scores W x y τ; pose c := slopes V x y τ.
have line u : placed_scores (W + u *: V) x y τ = fun k => z k + u * c k.
  apply: functional_extensionality => k.
  by rewrite placed_scores_add /c /slopes mulmv_scal dot_scall -/(z k); ring.
apply: (is_derive_ext (fun u => ∑_(k < N | (k < K)%N)
    (lse (tail k) (fun j => z j + u * c j) - (z k + u * c k)))).
  by move=> u; rewrite loss_top_lse line.
have z0 : placed_scores W x y τ = fun k => z k + 0 * c k.
  by apply: functional_extensionality => k; rewrite Rmult_0_l Rplus_0_r.
rewrite gradient_top_dot z0; apply: is_derive_sum => k _.
apply: (is_derive_minus (fun u => lse (tail k) (fun j => z j + u * c j))).
  exact: (is_derive_lse _ _ (tail_self k)).
by auto_derive => //; rewrite Rmult_1_l.
Qed.

(* Claim partial-sums, part top-k-step. *)
Theorem partial_sums_top_k_step : forall (dx dy N K : nat) (W : mat dy dx) (η : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (τ : {perm 'I_N}),
  ‖x‖ = 1 -> ((- η) *: gradient_top K W x y τ *v x)%V = first_terms η W x y τ K.
Proof.
move=> dx dy N K W η x y τ x1; apply: vec_eq => c.
rewrite /gradient_top !mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²) -vnorm_sqr x1.
rewrite /first_terms /vscal /vsum.
rewrite [RHS](eq_bigr (fun k => - (2 * η) * (tail_mean W x y τ k - y (τ k))%V c)).
  have M a : - η * (2 * (1 * 1 * a)) = - (2 * η) * a by ring.
  by rewrite M sum_scal.
by move=> k _; rewrite /vsub; ring.
Qed.

(* Claim partial-sums, part any-block: whichever of the equal blocks goes, the last term is lost. *)
Theorem partial_sums_any_block : forall (s : stream) (T : finType) (sees : rel T) (b : block s)
    (X : T -> token s) (N m : nat),
  (m < N - 1)%N ->
  let bs := nseq (N - 1) b in
  run sees (take m bs ++ drop m.+1 bs) X = run sees (nseq (N - 2) b) X.
Proof.
move=> s T sees b X N m mN /=; congr run.
rewrite take_nseq ?drop_nseq; last exact: ltnW.
rewrite -nseqD; congr nseq; have := subnKC mN.
by move: (N - 1 - m.+1)%N => d; rewrite addSn => E; rewrite -[(N - 2)%N]/(N - 1.+1)%N subnS -E.
Qed.

(* All flags up: the common shift of the logits changes nothing, as with none. *)
Lemma flags_all N (τ : {perm 'I_N}) K : (N <= K)%N -> flags τ K = fun _ => 1.
Proof.
move=> NK; apply: functional_extensionality => j; rewrite /flags.
by rewrite (leq_trans (ltn_ord _) NK).
Qed.

Lemma flags_none N (τ : {perm 'I_N}) : flags τ 0 = fun _ => 0.
Proof. exact: functional_extensionality. Qed.

Lemma comb_ext (I : finType) d (a b : I -> R) (y : I -> vec 'I_d) :
  (forall j, a j = b j) -> comb a y = comb b y.
Proof. by move=> ab; apply: vec_eq => c; apply: eq_bigr => j _; rewrite ab. Qed.

(* Toward claim partial-sums, part one-more: that the last response is in play before block N, and
   what that block adds to u, is not stated. From block N+1 on every block adds what the first
   one did. *)
Theorem partial_sums_one_more : forall (dx dy N m : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  (0 < N)%N -> 0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let after K := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) i in
  first_terms η W x y τ N = first_terms η W x y τ (N - 1)
  /\ after N El.flag ord0 = 1
  /\ after (N + m)%N El.u = (after N El.u + INR m *: after 1%N El.u)%V.
Proof.
move=> dx dy N m W η γ Δ spread spread_Z D B C N0 η0 Δ0 hot B0 x y r τ i cls ranked.
case: cls => x1 gaps [low range] [low_Z range_Z] dist; have γ0 := hot_γ Δ0 hot.
have near (k : 'I_N) := top_near k γ0 Δ0 gaps ranked range hot.
have st := state_after W η C x y Δ0 B0 gaps ranked range near.
split; [|split].
- have N1 : (N - 1 < N)%N by rewrite subn1 ltn_predL.
  have -> : first_terms η W x y τ N = first_terms η W x y τ (N - 1).+1.
    by rewrite -[(N - 1).+1]addn1 subnK.
  rewrite /first_terms (vsum_succ _ N1).
  rewrite tail_mean_last; last by rewrite /= subn1 prednK.
  by apply: vec_eq => c; rewrite /vadd /vscal /vsub; ring.
- by rewrite st /= flags_all.
rewrite !st /=; elim: m => [|m IH].
  by rewrite addn0; apply: vec_eq => c; rewrite /vadd /vscal /=; ring.
rewrite addnS INR_S /= IH (flags_all τ (leq_addr m N)) flags_none.
have -> : comb (winner_weights γ Δ spread r (fun _ => 1)) y
    = comb (winner_weights γ Δ spread r (fun _ => 0)) y.
  apply: comb_ext => j.
  rewrite /winner_weights -(softmax_shift _ (2 * γ * (spread + Δ))).
  by apply: eq_softmax => l; ring.
have -> : comb (field_weights W C x y (fun _ => 1)) y
    = comb (field_weights W C x y (fun _ => 0)) y.
  apply: comb_ext => j; rewrite /field_weights -(softmax_shift _ C).
  by apply: eq_softmax => l; ring.
by apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero; ring.
Qed.
