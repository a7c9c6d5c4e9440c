(* Chapter 2, continued: when the loss has no minimiser. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Smoothness.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* v ranks the responses strictly rightly by ⟨v, y⟩. *)
Definition ranks_strictly {m N : nat} (v : vec 'I_m) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) :=
  forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ < ⟨v, y (τ k)⟩.

Lemma sqnorm_le_sum m N (y : 'I_N -> vec 'I_m) j : ‖y j‖² <= ∑_i ‖y i‖².
Proof. by apply: (@sum_ge_term _ predT (fun i => ‖y i‖²)) => // i _; exact: sqnorm_ge0. Qed.

(* ── The loss by pairs of places ────────────────────────────────────────────────────────────── *)

Lemma ln_1p_ge0 u : 0 <= u -> 0 <= ln (1 + u).
Proof. by move=> u0; rewrite -ln_1; apply: ln_le; lra. Qed.

Lemma ln_1p_gt0 u : 0 < u -> 0 < ln (1 + u).
Proof. by move=> u0; rewrite -ln_1; apply: ln_increasing; lra. Qed.

Lemma ln_1p_le u : 0 <= u -> ln (1 + u) <= u.
Proof.
by move=> u0; rewrite -{2}(ln_exp u); apply: ln_le; [lra | exact: exp_ineq1_le].
Qed.

Section Pairs.
Variables m n N : nat.
Variables (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).
Implicit Type W : mat m n.

(* What the places behind k weigh, relative to k. *)
Definition behind W (k : 'I_N) : R :=
  ∑_(j < N | (k < j)%N) exp (score W x (y (τ j)) - score W x (y (τ k))).

Lemma behind_ge0 W k : 0 <= behind W k.
Proof. by apply: sum_ge0 => j _; apply: Rlt_le; exact: exp_pos. Qed.

Lemma loss_pairs W : loss W x y τ = ∑_k ln (1 + behind W k).
Proof.
rewrite /loss -[P_PL _ _]/(placed (fun k => score W x (y (τ k)))) placed_lse.
apply: eq_bigr => k _; set s := fun k => score W x (y (τ k)).
have -> : lse (tail k) s = ln (exp (s k) * (1 + behind W k)).
  congr ln; rewrite (@sum_D1 _ k) ?tail_self // Rmult_plus_distr_l Rmult_1_r; congr (_ + _).
  rewrite -sum_scal; apply: eq_big => [j|j _]; first by rewrite /tail ltn_neqAle eq_sym andbC.
  by rewrite -exp_plus; congr exp; rewrite /s; ring.
by rewrite ln_mult ?ln_exp; [rewrite /s /=; ring | exact: exp_pos | have := behind_ge0 W k; lra].
Qed.

(* One pair is at most the whole. *)
Lemma loss_pair W (k l : 'I_N) : (k < l)%N ->
  ln (1 + exp (score W x (y (τ l)) - score W x (y (τ k)))) <= loss W x y τ.
Proof.
move=> kl; have e0 := exp_pos (score W x (y (τ l)) - score W x (y (τ k))).
rewrite loss_pairs; apply: (Rle_trans _ (ln (1 + behind W k))).
  apply: ln_le; first by lra.
  apply: Rplus_le_compat_l.
  exact: (@sum_ge_term _ (fun j : 'I_N => (k < j)%N)
    (fun j => exp (score W x (y (τ j)) - score W x (y (τ k)))) l kl
    (fun j _ => Rlt_le _ _ (exp_pos _))).
apply: (@sum_ge_term _ predT (fun i => ln (1 + behind W i))) => // i _.
exact: ln_1p_ge0 (behind_ge0 _ _).
Qed.

End Pairs.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-no-minimiser, part positive; the value 0 is not attained. *)
Theorem pl_no_minimiser_positive : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n),
  (2 <= N)%N -> 0 < loss W x y τ.
Proof.
move=> m n [|[|N]] // x y τ W _.
apply: Rlt_le_trans (loss_pair x y τ W (k := ord0) (l := ord_max) isT).
exact: ln_1p_gt0 (exp_pos _).
Qed.

(* Claim pl-no-minimiser, part only-if; a small loss makes every pair of scores differ rightly. *)
Theorem pl_no_minimiser_only_if : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n) (c : R),
  loss W x y τ < ln (1 + exp (- c)) ->
  forall k l : 'I_N, (k < l)%N -> c < score W x (y (τ k)) - score W x (y (τ l)).
Proof.
move=> m n N x y τ W c small k l kl.
have lt := Rle_lt_trans _ _ _ (loss_pair x y τ W kl) small.
have e0 := exp_pos (score W x (y (τ l)) - score W x (y (τ k))).
have c0 := exp_pos (- c).
have {}lt : exp (score W x (y (τ l)) - score W x (y (τ k))) < exp (- c).
  by apply: (Rplus_lt_reg_l 1); apply: ln_lt_inv lt; lra.
by have := exp_lt_inv _ _ lt; lra.
Qed.

(* Claim pl-no-minimiser, part ranks; so some v = Wx ranks strictly rightly. *)
Theorem pl_no_minimiser_ranks : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  (forall ε, 0 < ε -> exists W : mat m n, loss W x y τ < ε) ->
  exists v, ranks_strictly v y τ.
Proof.
move=> m n N x y τ small; pose c := ∑_j ‖y j‖².
have [W lt] := small (ln (1 + exp (- c))) (ln_1p_gt0 (exp_pos _)).
exists (W *v x)%V => k l kl; have := pl_no_minimiser_only_if lt kl.
rewrite !pl_shift_reduced /reduced.
have : ‖y (τ l)‖² <= c := sqnorm_le_sum y (τ l).
by have := sqnorm_ge0 (y (τ k)); lra.
Qed.

(* Claim pl-no-minimiser, part ranked; L → 0 along Wx = tv, if v ranks strictly rightly. *)
Theorem pl_no_minimiser_ranked : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (v : vec 'I_m),
  ranks_strictly v y τ ->
  forall ε, 0 < ε -> exists T, forall t (W : mat m n),
    T <= t -> (W *v x = t *: v)%V -> loss W x y τ < ε.
Proof.
move=> m n N x y τ v vτ ε ε0.
have [δ [δ0 δle]] : exists δ, 0 < δ /\
    forall k l : 'I_N, (k < l)%N -> δ <= ⟨v, y (τ k)⟩ - ⟨v, y (τ l)⟩.
  pose c (p : 'I_N * 'I_N) := if (p.1 < p.2)%N then ⟨v, y (τ p.1)⟩ - ⟨v, y (τ p.2)⟩ else 1.
  case: (posnP N) => [N0|N0].
    exists 1; split; first by lra.
    by move=> k; have := ltn_ord k; rewrite {2}N0.
  have [p le] := least c (Ordinal N0, Ordinal N0); exists (c p); split.
    by rewrite /c; case: ifP => [/vτ|_]; lra.
  by move=> k l kl; have := le (k, l); rewrite {2}/c /= kl.
pose B := ∑_j ‖y j‖²; pose K := INR N * INR N + 1.
have K0 : 0 < K by have := INR_ge0 N; rewrite /K; nra.
have εK : 0 < ε / K by exact: Rdiv_lt_0_compat.
exists (Rmax 0 ((B - ln (ε / K)) / (2 * δ))) => t W Tt Wx.
have t0 : 0 <= t := Rle_trans _ _ _ (Rmax_l _ _) Tt.
have tδ : B - ln (ε / K) <= 2 * t * δ.
  have := Rmult_le_compat_r (2 * δ) _ _ _ (Rle_trans _ _ _ (Rmax_r _ _) Tt).
  by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
have small (k l : 'I_N) : (k < l)%N -> exp (score W x (y (τ l)) - score W x (y (τ k))) <= ε / K.
  move=> kl; rewrite -[X in _ <= X]exp_ln //.
  have le : score W x (y (τ l)) - score W x (y (τ k)) <= ln (ε / K).
    rewrite !pl_shift_reduced /reduced Wx !dot_scall.
    have sq : ‖y (τ k)‖² <= B := sqnorm_le_sum y (τ k).
    have := Rmult_le_compat_l _ _ _ t0 (δle k l kl); have := sqnorm_ge0 (y (τ l)).
    by lra.
  case: le => [lt|->]; last by lra.
  by apply: Rlt_le; exact: exp_increasing.
rewrite loss_pairs; apply: (Rle_lt_trans _ (INR N * (INR N * (ε / K)))); last first.
  rewrite -Rmult_assoc; apply: (Rlt_le_trans _ (K * (ε / K))); last by right; field; lra.
  by apply: Rmult_lt_compat_r; rewrite // /K; lra.
rewrite -sum_const_ord; apply: sum_le => k _.
apply: Rle_trans (ln_1p_le (behind_ge0 _ _ _ _ _)) _.
rewrite -sum_const_ord /behind big_mkcond; apply: sum_le => j _.
by case: ifP => [/small //|_]; lra.
Qed.

(* Claim pl-no-minimiser, parts ranked, ranks; inf L = 0 iff some v ranks strictly rightly. *)
Theorem pl_no_minimiser : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  x <> vzero ->
  (forall ε, 0 < ε -> exists W : mat m n, loss W x y τ < ε) <->
  (exists v, ranks_strictly v y τ).
Proof.
move=> m n N x y τ /sqnorm_gt0 x0; split; first exact: pl_no_minimiser_ranks.
case=> v vτ ε ε0; have [T small] := pl_no_minimiser_ranked x vτ ε0.
exists ((T / ‖x‖²) *: outer v x)%V; apply: (small T); first by lra.
rewrite mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²); apply: vec_eq => a; rewrite /vscal.
by field; lra.
Qed.

(* Claim pl-no-minimiser, part decreases: so no W is a minimiser, unless the query is zero. *)
Theorem pl_no_minimiser_decreases : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (v : vec 'I_m),
  (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
  (exists k l : 'I_N, (k < l)%N /\ ⟨v, y (τ l)⟩ < ⟨v, y (τ k)⟩) ->
  (forall (W W' : mat m n) (t : R),
    0 < t -> (W' *v x = W *v x + t *: v)%V -> loss W' x y τ < loss W x y τ)
  /\ (x <> vzero -> forall W : mat m n, exists W', loss W' x y τ < loss W x y τ).
Proof.
move=> m n N x y τ v weak [k [l [kl strict]]].
suff down (W W' : mat m n) t : 0 < t -> (W' *v x = W *v x + t *: v)%V ->
    loss W' x y τ < loss W x y τ.
  split=> // /sqnorm_gt0 x0 W; exists (W + outer v x)%V.
  by apply: (down W _ (‖x‖²)) => //; rewrite mulmv_add mulmv_outer.
move=> t0 W'x.
have gap i j : score W' x (y (τ j)) - score W' x (y (τ i))
    = score W x (y (τ j)) - score W x (y (τ i)) - 2 * t * (⟨v, y (τ i)⟩ - ⟨v, y (τ j)⟩).
  by rewrite !pl_shift_reduced /reduced W'x !dot_addl !dot_scall; ring.
have le (i j : 'I_N) : (i < j)%N -> exp (score W' x (y (τ j)) - score W' x (y (τ i)))
    <= exp (score W x (y (τ j)) - score W x (y (τ i))).
  move=> ij; apply: Rnot_lt_le => /exp_lt_inv; rewrite gap; have h := weak i j ij.
  by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ t0) h; lra.
rewrite !loss_pairs; apply: (@sum_lt _ predT _ _ k) => // [|i _].
  apply: ln_increasing; first by have := behind_ge0 x y τ W' k; lra.
  apply: Rplus_lt_compat_l; apply: (@sum_lt _ (fun j : 'I_N => (k < j)%N) _ _ l) => // [|j kj].
    by apply: exp_increasing; rewrite gap; have := Rmult_lt_compat_l _ _ _ t0 strict; lra.
  exact: le.
apply: ln_le; first by have := behind_ge0 x y τ W' i; lra.
by apply: Rplus_le_compat_l; apply: sum_le => j ij; exact: le.
Qed.

(* Claim pl-no-minimiser, part between; y = (1, 0, 0), d_y = 1: the infimum is log 2, and not
   attained. *)
Theorem pl_no_minimiser_between : forall (n : nat) (x : vec 'I_n),
  x <> vzero ->
  let y (j : 'I_3) : vec 'I_1 := fun _ => if j == ord0 then 1 else 0 in
  (forall W : mat 1 n, ln 2 < loss W x y 1%g) /\
  (forall ε, 0 < ε -> exists W : mat 1 n, loss W x y 1%g < ln 2 + ε).
Proof.
move=> n x /sqnorm_gt0 x0 y.
have E W : loss W x y 1%g = ln (1 + 2 * exp (1 - 2 * (W *v x)%V ord0)) + ln 2.
  have s j : score W x (y j) = - ((W *v x)%V ord0 - y j ord0) ^ 2.
    by rewrite /score /sqnorm /dot big_ord_recl big_ord0 /vsub; ring.
  rewrite loss_pairs /behind; under eq_bigr => k _ do under eq_bigr => j _ do rewrite !perm1 !s.
  move: ((W *v x)%V ord0) => w; rewrite big_ord_recl big_ord_recl big_ord_recl big_ord0.
  have expand (P : pred 'I_3) (F : 'I_3 -> R) : ∑_(j | P j) F j
      = (if P ord0 then F ord0 else 0) + ((if P (lift ord0 ord0) then F (lift ord0 ord0) else 0)
        + ((if P ord_max then F ord_max else 0) + 0)).
    rewrite big_mkcond !big_ord_recl big_ord0; congr (_ + (_ + (_ + _))).
    by have -> : lift ord0 (lift ord0 ord0) = ord_max :> 'I_3 by apply/val_inj.
  rewrite !expand /y /= !Rplus_0_l !Rplus_0_r.
  have -> : - ((w - 0) * ((w - 0) * 1)) - - ((w - 1) * ((w - 1) * 1)) = 1 - 2 * w by ring.
  have -> : - ((w - 0) * ((w - 0) * 1)) - - ((w - 0) * ((w - 0) * 1)) = 0 by ring.
  rewrite exp_0 ln_1 Rplus_0_r; congr (ln _ + ln _); lra.
split=> [W|ε ε0].
  rewrite E; have e0 := exp_pos (1 - 2 * (W *v x)%V ord0).
  by have := ln_1p_gt0 (u := 2 * exp (1 - 2 * (W *v x)%V ord0)); lra.
pose w := (1 - ln (ε / 4)) / 2; exists ((w / ‖x‖²) *: outer (fun _ => 1) x)%V.
rewrite E mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²) /vscal.
have -> : 1 - 2 * (w / ‖x‖² * (‖x‖² * 1)) = ln (ε / 4) by rewrite /w; field; lra.
rewrite exp_ln; last by lra.
by have := ln_1p_le (u := 2 * (ε / 4)); lra.
Qed.
