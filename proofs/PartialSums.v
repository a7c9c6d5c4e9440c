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

(* Claim partial-sums, part one-more: of N = n + 1 responses the last alone is in play before block
   N, and none after it; block N adds 0, up to its part of the bound; each of the m blocks that
   follow adds what the first one did. *)
Theorem partial_sums_one_more : forall (dx dy n m : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_n.+1 -> vec 'I_dy) (r : 'I_n.+1 -> R) (τ : {perm 'I_n.+1})
    (i j : 'I_n.+1),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let after K := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) in
  let u K := after K i El.u in
  let last := τ ord_max in
  after n j El.flag ord0 = (if j == last then 0 else 1)
  /\ after n.+1 j El.flag ord0 = 1
  /\ (y last - tail_mean W x y τ ord_max = vzero)%V
  /\ ‖u n.+1 - u n‖ <= 2 * η * D * (share (winner_crowd γ Δ spread n.+1 n)
                                    + share (field_crowd C spread_Z n.+1 n))
  /\ u (n.+1 + m)%N = (u n.+1 + INR m *: u 1%N)%V.
Proof.
move=> dx dy n m W η γ Δ spread spread_Z D B C η0 Δ0 hot B0 x y r τ i j cls ranked after u last.
have [st add] := theorem_3_3_induction C η0 Δ0 hot B0 i cls ranked.
have zero : (y last - tail_mean W x y τ ord_max = vzero)%V.
  by rewrite tail_mean_last // /last; apply: vec_eq => c; rewrite /vsub /vzero; ring.
split; [|split; [|split; [|split]]] => //.
- rewrite /after st /= /flags -(permKV τ j) permK /last (inj_eq perm_inj) -val_eqE /=.
  by case: ltngtP (leq_ord (τ^-1%g j)).
- by rewrite /after st /= flags_all.
- suff -> : (u n.+1 - u n
      = u n.+1 - u n - (2 * η) *: (y last - tail_mean W x y τ ord_max))%V by exact: add ord_max.
  by rewrite zero; apply: vec_eq => c; rewrite /vsub /vscal /vzero; ring.
case: cls => x1 gaps [low range] [low_Z range_Z] dist; have γ0 := hot_γ Δ0 hot.
have near (k : 'I_n.+1) := top_near k γ0 Δ0 gaps ranked range hot.
pose A K := winner_weights γ Δ spread r (flags τ K); pose F K := field_weights W C x y (flags τ K).
have uE K : u K.+1 = (u K + (2 * η) *: (comb (A K) y - comb (F K) y))%V.
  by rewrite /u /after !(state_after W η C x y Δ0 B0 gaps ranked range near).
elim: m => [|m IH]; first by rewrite addn0; apply: vec_eq => c; rewrite /vadd /vscal /=; ring.
have u0 : u 0%N = vzero by [].
rewrite addnS INR_S uE IH (uE 0%N) u0 /A /F (flags_all τ (leq_addr m n.+1)) flags_none.
have -> : comb (winner_weights γ Δ spread r (fun _ => 1)) y
    = comb (winner_weights γ Δ spread r (fun _ => 0)) y.
  apply: comb_ext => l.
  rewrite /winner_weights -(softmax_shift _ (2 * γ * (spread + Δ))).
  by apply: eq_softmax => k; ring.
have -> : comb (field_weights W C x y (fun _ => 1)) y
    = comb (field_weights W C x y (fun _ => 0)) y.
  apply: comb_ext => l; rewrite /field_weights -(softmax_shift _ C).
  by apply: eq_softmax => k; ring.
by apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero; ring.
Qed.
