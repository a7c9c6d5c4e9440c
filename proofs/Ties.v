(* Chapter 3, continued: as γ grows, tied winners share the attention, and the output tends to their
   average. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection Temperature.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* e^{−γΔ} → 0. *)
Lemma lim_exp (Δ : R) : 0 < Δ -> is_lim (fun γ => exp (- γ * Δ)) p_infty 0.
Proof.
move=> Δ0; apply/is_lim_spec => ε; exists (/ (Δ * ε)) => γ γM.
have ε0 := cond_pos ε; have de := Rmult_lt_0_compat _ _ Δ0 ε0.
have i0 := Rinv_0_lt_compat _ de; have γ0 : 0 < γ by lra.
have g0 := Rmult_lt_0_compat _ _ γ0 Δ0.
rewrite Rminus_0_r Rabs_pos_eq; last by left; exact: exp_pos.
rewrite (_ : - γ * Δ = - (γ * Δ)); last by ring.
rewrite exp_Ropp; apply: (Rlt_trans _ (/ (γ * Δ))).
  apply: Rinv_lt_contravar; first by apply: Rmult_lt_0_compat => //; exact: exp_pos.
  by have := exp_ineq1 (γ * Δ) (Rgt_not_eq _ _ g0); lra.
rewrite -(Rinv_inv ε).
apply: Rinv_lt_contravar; first by apply: Rmult_lt_0_compat => //; exact: Rinv_0_lt_compat.
have := Rmult_lt_compat_r Δ _ _ Δ0 γM.
by have -> : / (Δ * ε) * Δ = / ε by field; lra.
Qed.

Lemma is_lim_sum (I : Type) (s : seq I) (P : pred I) (f : I -> R -> R) (l : I -> R) :
  (forall i, P i -> is_lim (f i) p_infty (l i)) ->
  is_lim (fun γ => ∑_(i <- s | P i) f i γ) p_infty (∑_(i <- s | P i) l i).
Proof.
move=> lim; elim: s => [|i s IH].
  by rewrite big_nil; apply: (is_lim_ext (fun _ => 0)) (is_lim_const _ _) => γ; rewrite big_nil.
rewrite big_cons; case Pi : (P i).
  apply: (is_lim_ext (fun γ => f i γ + ∑_(i <- s | P i) f i γ)).
    by move=> γ; rewrite big_cons Pi.
  by apply: is_lim_plus' => //; exact: lim.
by apply: is_lim_ext IH => γ; rewrite big_cons Pi.
Qed.

(* Claim selection-ties, part limit: the least weight a winner has tends to 1/w. *)
Theorem selection_ties_limit : forall (w n Δ : R),
  0 < w -> 0 < Δ -> is_lim (fun γ : R => 1 / (w + n * exp (- γ * Δ))) p_infty (1 / w).
Proof.
move=> w n Δ W0 Δ0; apply: (is_lim_ext (fun γ => / (w + n * exp (- γ * Δ)))).
  by move=> γ; rewrite /Rdiv Rmult_1_l.
rewrite /Rdiv Rmult_1_l; apply: (is_lim_inv _ _ w) => [|[E]]; last by lra.
have -> : Finite w = Finite (w + n * 0) by congr Finite; ring.
apply: is_lim_plus'; first exact: is_lim_const.
by apply: (is_lim_scal_l _ n _ 0); exact: lim_exp.
Qed.

Section Ties.
Variables (dx dy N : nat) (Δ m : R) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R).
Variables (winner : pred 'I_N) (i : 'I_N).
Hypotheses (Δ0 : 0 < Δ) (w0 : (0 < #|winner|)%N) (top : forall j, winner j -> r j = m).
Hypothesis gap : forall j, ~~ winner j -> r j + Δ <= m.
Let w := INR #|winner|.

Lemma winner_limit j : winner j -> is_lim (fun γ => sel_attention γ x y r i j) p_infty (1 / w).
Proof.
have least := selection_ties_limit (INR N - w) (INR_gt0 w0) Δ0.
move=> wj; apply: (is_lim_le_le_loc _ _ _ _ (1 / w) _ least (is_lim_const _ _)).
by exists 0 => γ γ0; apply: (selection_ties_least x y i (Rlt_le _ _ γ0) wj top gap).
Qed.

Lemma loser_limit j : ~~ winner j -> is_lim (fun γ => sel_attention γ x y r i j) p_infty 0.
Proof.
move=> lj; have W0 : 0 < w := INR_gt0 w0.
have lim0 : is_lim (fun γ => (INR N - w) / w * exp (- γ * Δ)) p_infty 0.
  rewrite -(Rmult_0_r ((INR N - w) / w)); apply: (is_lim_scal_l _ _ _ 0); exact: lim_exp.
apply: (is_lim_le_le_loc (fun _ => 0) _ _ _ 0 _ (is_lim_const _ _) lim0).
exists 0 => γ γ0.
have le := selection_ties_outside x y i (Rlt_le _ _ γ0) w0 top gap.
have pos l : 0 <= sel_attention γ x y r i l by rewrite sel_softmax; left; exact: softmax_gt0.
split; first exact: pos.
have term := sum_ge_term (P := fun l => ~~ winner l) (F := sel_attention γ x y r i) lj
  (fun l _ => pos l).
apply: Rle_trans term _; apply: Rle_trans le _.
apply: share_le_self; rewrite -/w.
have Nw : w <= INR N by apply: INR_le; have := max_card winner; rewrite card_ord.
apply: Rmult_le_pos; last by left; exact: exp_pos.
by apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
Qed.

End Ties.

(* Claim selection-ties, part squeeze: the weights tend to 1/w on the winners and to 0 elsewhere. *)
Theorem selection_ties_weights : forall (dx dy N : nat) (Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i j : 'I_N),
  0 < Δ -> (0 < #|winner|)%N -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  is_lim (fun γ : R => sel_attention γ x y r i j) p_infty
    (if winner j then 1 / INR #|winner| else 0).
Proof.
move=> dx dy N Δ m x y r winner i j Δ0 w0 top gap; case wj : (winner j).
  exact: (winner_limit x y i Δ0 w0 top gap).
by apply: (loser_limit x y i Δ0 w0 top gap); rewrite wj.
Qed.

(* Claim selection-ties, part squeeze: the output tends to the average of the winners. *)
Theorem selection_ties_average : forall (dx dy N : nat) (Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i : 'I_N) (c : 'I_dy),
  0 < Δ -> (0 < #|winner|)%N -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  is_lim (fun γ : R => selected γ x y r i c) p_infty (∑_(j | winner j) y j c / INR #|winner|).
Proof.
move=> dx dy N Δ m x y r winner i c Δ0 w0 top gap.
have W0 := INR_gt0 w0.
apply: (is_lim_ext (fun γ => ∑_j (sel_attention γ x y r i j * y j c))).
  by move=> γ; rewrite sel_output; apply: eq_bigr => j _; rewrite sel_softmax.
have -> : ∑_(j | winner j) y j c / INR #|winner|
    = ∑_j ((if winner j then 1 / INR #|winner| else 0) * y j c).
  rewrite -sum_div -sum_if; apply: eq_bigr => j _; case: ifP => _; [field; lra | ring].
apply: is_lim_sum => j _.
apply: (is_lim_scal_r _ (y j c) _ (if winner j then 1 / INR #|winner| else 0)).
exact: selection_ties_weights Δ0 w0 top gap.
Qed.
