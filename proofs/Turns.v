(* Chapter 6: the induction over the blocks. The flags are exact after each block, so the errors add
   up and do not compound. Blocks and places count from 0. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The class of inputs: a unit query, rewards Δ apart in an interval of length spread, reduced
   scores in one of length spread_Z, responses no further than D from each other. *)
Record in_class {dx dy N} (W : mat dy dx) (Δ spread spread_Z D : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) : Prop := InClass {
  unit_query : ‖x‖ = 1;
  gaps : spaced Δ r;
  rewards : exists low, forall j, low <= r j <= low + spread;
  scores : exists low, forall j, low <= reduced W x (y j) <= low + spread_Z;
  distances : forall i j, ‖y i - y j‖ <= D }.

(* 2ηD times the shares of the first K blocks. *)
Definition error_bound (η γ Δ C spread spread_Z D : R) (N K : nat) : R :=
  2 * η * D * ∑_(k < K) (share (winner_crowd γ Δ spread N k)
                         + share (field_crowd C spread_Z N k)).

(* The first K terms of the step. *)
Definition first_terms {dx dy N} (η : R) (W : mat dy dx) x (y : 'I_N -> vec 'I_dy)
    (τ : {perm 'I_N}) (K : nat) : vec 'I_dy :=
  (∑_(k < N | (k < K)%N) ((2 * η) *: (y (τ k) - tail_mean W x y τ k)))%V.

Lemma vsum_succ N d (v : 'I_N -> vec 'I_d) K (KN : (K < N)%N) :
  vsum (fun k : 'I_N => (k < K.+1)%N) v
  = (vsum (fun k : 'I_N => (k < K)%N) v + v (Ordinal KN))%V.
Proof.
apply: vec_eq => c; rewrite /vsum /vadd (bigD1 (Ordinal KN)) //= Rplus_comm; congr (_ + _).
apply: eq_bigl => k; rewrite -val_eqE /= ltnS andbC.
by rewrite [in RHS]ltn_neqAle.
Qed.

Section Turns.
Variables (dx dy N : nat) (W : mat dy dx) (η γ Δ spread spread_Z D B C low low_Z : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}).
Hypotheses (γ0 : 0 < γ) (Δ0 : 0 < Δ) (η0 : 0 <= η) (B_large : 3 / 2 + 2 * spread / Δ <= B).
Hypotheses (gaps : spaced Δ r) (ranked : ranks r τ).
Hypothesis range : forall j, low <= r j <= low + spread.
Hypothesis range_Z : forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z.
Hypothesis distances : forall i j, ‖y i - y j‖ <= D.

Let A k := winner_weights γ Δ spread r (flags τ k).
Let F k := field_weights W C x y (flags τ k).
Let best k := ∑_j (A k j * r j).

Hypothesis near : forall k : 'I_N, Rabs (best k - r (τ k)) <= Δ / 4.

Lemma best_range k j : r j - best k <= spread.
Proof.
apply: mean_reward range => [l|]; first by apply: Rlt_le; exact: softmax_gt0.
exact: softmax_sum j.
Qed.

(* The layer moves the flags on by one place. *)
Lemma flags_step k j : (k < N)%N ->
  flags τ k j + clip (clip_at Δ B (best k) (r j) (flags τ k j)) = flags τ k.+1 j.
Proof.
move=> kN; have nr := near (Ordinal kN); rewrite /= in nr.
rewrite -(permKV τ j); set l : 'I_N := τ^-1%g j; rewrite !flags_place ltnS.
case: (ltngtP l k) => [lk|kl|lk].
- by rewrite (clip_flagged _ (best_range k (τ l)) B_large) //; lra.
- rewrite clip_other //; first by lra.
  have ge : r (τ l) + Δ <= r (τ (Ordinal kN)).
    have := @ranks_gap _ r Δ τ ranked gaps (Ordinal kN) l (ltnW kl).
    have : 1 <= INR (l - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
    by rewrite /=; nra.
  by move: nr; rewrite /Rabs; case: Rcase_abs; lra.
- have -> : l = Ordinal kN by apply/val_inj.
  by rewrite clip_winner //; lra.
Qed.

(* With all flags up nothing changes. *)
Lemma flags_stay k j : (N <= k)%N ->
  flags τ k j + clip (clip_at Δ B (best k) (r j) (flags τ k j)) = flags τ k.+1 j.
Proof.
move=> Nk; rewrite -(permKV τ j); set l : 'I_N := τ^-1%g j; rewrite !flags_place.
have lk : (l < k)%N by apply: leq_trans Nk.
by rewrite lk ltnS (ltnW lk) (clip_flagged _ (best_range k (τ l)) B_large) //; lra.
Qed.

(* What has been accumulated after K blocks. *)
Fixpoint accumulated K : vec 'I_dy := match K with
  | 0 => vzero
  | K.+1 => accumulated K + (2 * η) *: (comb (A K) y - comb (F K) y) end%V.

Lemma state_after K : run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r)
  = el_state x y r (flags τ K) (accumulated K).
Proof.
elim: K => [|K IH]; first by congr el_state; apply: functional_extensionality.
rewrite run_nseq IH el_step; last by lra.
congr el_state; apply: functional_extensionality => j.
by case: (ltnP K N) => KN; [exact: flags_step | exact: flags_stay].
Qed.

Lemma D0 : (0 < N)%N -> 0 <= D.
Proof. by move=> N0; apply: Rle_trans (distances (Ordinal N0) (Ordinal N0)); exact: vnorm_ge0. Qed.

Lemma accumulated_error K : (K <= N)%N ->
  ‖accumulated K - first_terms η W x y τ K‖ <= error_bound η γ Δ C spread spread_Z D N K.
Proof.
rewrite /error_bound; elim: K => [_|K IH KN].
  rewrite big_ord0 /first_terms (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0; first by lra.
  by apply: vec_eq => a; rewrite /vsub /vscal /vsum big_pred0 //= /vzero; ring.
rewrite sum_last /= /first_terms vsum_succ.
set a := accumulated K; set s := vsum _ _; set k := Ordinal KN.
set v := comb (A K) y; set m := comb (F K) y.
have -> : (a + 2 * η *: (v - m) - (s + 2 * η *: (y (τ k) - tail_mean W x y τ k))
  = (a - s) + (2 * η *: (v - y (τ k)) + (- (2 * η)) *: (m - tail_mean W x y τ k)))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub /vscal; ring.
apply: Rle_trans (vnorm_triangle _ _) _.
have le1 : ‖2 * η *: (v - y (τ k)) + (- (2 * η)) *: (m - tail_mean W x y τ k)‖
    <= 2 * η * D * (share (winner_crowd γ Δ spread N K) + share (field_crowd C spread_Z N K)).
  apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
  have e1 : ‖v - y (τ k)‖ <= D * share (winner_crowd γ Δ spread N K).
    exact: (winner_error k distances γ0 Δ0 gaps ranked range).
  have e2 : ‖m - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N K).
    exact: (field_error τ k distances C range_Z).
  by nra.
by rewrite Rmult_plus_distr_l; apply: Rplus_le_compat; [exact: IH (ltnW KN) | exact: le1].
Qed.

End Turns.
