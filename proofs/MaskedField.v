(* Chapter 12: the second head. A record that is nearly exact tilts the mean over the live responses
   a little; taken responses and the start token have little weight. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors LogSumExp AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer BlockErrors MaskedBlock Mask StopSink.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Softmax with logits that are lowered by at most δ ──────────────────────────────────────── *)

(* tanh(v/2) ≤ v/2. *)
Lemma tanh_half v : 0 <= v -> exp v - 1 <= v / 2 * (exp v + 1).
Proof.
case=> [v0|<-]; last by rewrite exp_0; lra.
pose f t := t / 2 * (exp t + 1) - exp t; pose f' t := (1 + (t - 1) * exp t) / 2.
have [t [E [t0 tv]]] : exists t, f v - f 0 = f' t * (v - 0) /\ 0 < t < v.
  apply: MVT_cor2 => // t _; rewrite -is_derive_Reals /f; auto_derive => //.
  by rewrite /f'; field.
have : 0 <= f' t.
  have := exp_ineq1_le (- t); have e0 := exp_pos t => le.
  have ee : exp t * exp (- t) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
  by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ e0) le; rewrite ee /f'; lra.
move=> d0; have := Rmult_le_pos _ _ d0 (Rlt_le _ _ v0).
by move: E; rewrite /f exp_0; lra.
Qed.

(* The largest shift of weight that likelihood ratios up to s² allow. *)
Lemma shift_ratio α β s : 1 <= s -> 0 <= α <= 1 -> β <= 1 ->
  β * (1 - α) <= s * s * (α * (1 - β)) -> (β - α) * (s + 1) <= s - 1.
Proof.
move=> s1 [a0 a1] b1 le; pose X := 1 + α * (s * s - 1).
have ss : 0 <= s * s - 1 by have := Rmult_le_compat _ _ _ _ Rle_0_1 Rle_0_1 s1 s1; lra.
have X0 : 0 < X by have := Rmult_le_pos _ _ a0 ss; rewrite /X; lra.
apply: (Rmult_le_reg_r X) => //.
have le1 : (β - α) * X <= α * (1 - α) * (s * s - 1) by rewrite /X; lra.
have le2 : α * (1 - α) * (s * s - 1) * (s + 1) <= (s - 1) * X.
  have : 0 <= (s - 1) * ((1 - α * (s + 1)) * (1 - α * (s + 1))).
    by apply: Rmult_le_pos; [lra | exact: Rle_0_sqr].
  by rewrite /X; lra.
have := Rmult_le_compat_r (s + 1) _ _ (ltac:(lra) : 0 <= s + 1) le1.
by lra.
Qed.

Section Tilt.
Variables (I : finType) (P : pred I) (Z e : I -> R) (w : I) (δ : R).
Hypotheses (Pw : P w) (tilt : forall j, P j -> 0 <= e j <= δ).
Let p := softmax_on P (fun j => Z j - e j).
Let q := softmax_on P Z.
Let up (j : I) : bool := Rlt_dec (q j) (p j).

Lemma tilt_weight : ∑_(j | up j) (p j - q j) <= δ / 4.
Proof.
have δ0 : 0 <= δ by have := tilt Pw; lra.
have S0 := sum_exp_gt0 Z Pw; have T0 := sum_exp_gt0 (fun j => Z j - e j) Pw.
pose k := ∑_(j | P j) exp (Z j) / ∑_(j | P j) exp (Z j - e j).
have k0 : 0 < k by exact: Rdiv_lt_0_compat.
have ratio j : k * exp (- δ) * q j <= p j <= k * q j.
  rewrite /p /q /softmax_on; case Pj : (P j); last by rewrite /Rdiv !Rmult_0_l; lra.
  have [e0 e1] := tilt Pj.
  have -> : k * (exp (Z j) / ∑_(l | P l) exp (Z l)) = exp (Z j) / ∑_(l | P l) exp (Z l - e l).
    by rewrite /k; field; split; lra.
  have -> : k * exp (- δ) * (exp (Z j) / ∑_(l | P l) exp (Z l))
    = exp (Z j - δ) / ∑_(l | P l) exp (Z l - e l).
    have -> : Z j - δ = - δ + Z j by ring.
    by rewrite exp_plus /k; field; split; lra.
  have i0 := Rinv_0_lt_compat _ T0.
  split; apply: Rmult_le_compat_r; try lra; apply: exp_mono; lra.
have p1 : ∑_j p j = 1 by exact: softmax_on_sum Pw.
have q1 : ∑_j q j = 1 by exact: softmax_on_sum Pw.
have q0 j : 0 <= q j by exact: softmax_on_ge0.
rewrite sum_sub; move: p1 q1; rewrite (sum_ID up) [X in _ -> X = _ -> _](sum_ID up) /=.
set β := ∑_(j | up j) p j; set α := ∑_(j | up j) q j.
set β' := ∑_(j | ~~ up j) p j; set α' := ∑_(j | ~~ up j) q j => p1 q1.
have α0 : 0 <= α by apply: sum_ge0.
have α'0 : 0 <= α' by apply: sum_ge0.
have le1 : β <= k * α by rewrite /α -sum_scal; apply: sum_le => j _; have := ratio j; lra.
have le2 : k * exp (- δ) * α' <= β'.
  by rewrite /α' -sum_scal; apply: sum_le => j _; have := ratio j; lra.
have ed := exp_pos (- δ).
have β'0 : 0 <= β' by apply: Rle_trans le2; apply: Rmult_le_pos => //; nra.
pose s := exp (δ / 2).
have s1 : 1 <= s by rewrite /s -exp_0; apply: exp_mono; lra.
have ss : s * s * exp (- δ) = 1.
  by rewrite /s -!exp_plus -exp_0; congr exp; field.
have := @shift_ratio α β s s1.
have le3 : β * (1 - α) <= s * s * (α * (1 - β)).
  have -> : 1 - α = α' by lra.
  have -> : 1 - β = β' by lra.
  apply: (Rle_trans _ (k * α * α')); first by apply: Rmult_le_compat_r.
  have -> : k * α * α' = s * s * exp (- δ) * (k * α * α') by rewrite ss; ring.
  have -> : s * s * exp (- δ) * (k * α * α') = s * s * (α * (k * exp (- δ) * α')) by ring.
  by apply: Rmult_le_compat_l; [nra | apply: Rmult_le_compat_l].
move=> H; have {H} le4 := H (conj α0 (ltac:(lra) : α <= 1)) (ltac:(lra) : β <= 1) le3.
have := @tanh_half (δ / 2) ltac:(lra); rewrite -/s => le5.
by apply: (Rmult_le_reg_r (s + 1)); lra.
Qed.

(* So no mean moves by more than δ/4 of its reach. *)
Lemma tilt_mean d (y : I -> vec 'I_d) D : (forall i j, ‖y i - y j‖ <= D) ->
  ‖comb p y - comb q y‖ <= D * (δ / 4).
Proof.
move=> yD; set v := (comb p y - comb q y)%V.
have D0 : 0 <= D by apply: Rle_trans (yD w w); exact: vnorm_ge0.
have δ0 : 0 <= δ by have := tilt Pw; lra.
case: (vnorm_ge0 v) => [v0|<-]; last by nra.
have [l least] := least (fun j => ⟨v, y j⟩) w.
apply: (Rmult_le_reg_l (‖v‖)) => //; rewrite vnorm_sqr.
have -> : ‖v‖² = ∑_j ((p j - q j) * ⟨v, y j - y l⟩).
  rewrite /sqnorm {2}/v dot_subr !dot_combr -sum_sub.
  rewrite [RHS](eq_bigr (fun j => p j * ⟨v, y j⟩ - q j * ⟨v, y j⟩ - (p j - q j) * ⟨v, y l⟩)).
    rewrite [RHS]sum_sub [X in _ = _ - X]sum_scalr [X in _ = _ - X * _]sum_sub.
    by rewrite (softmax_on_sum _ Pw) (softmax_on_sum _ Pw); ring.
  by move=> j _; rewrite dot_subr; ring.
apply: (Rle_trans _ (∑_(j | up j) ((p j - q j) * (‖v‖ * D)))).
  rewrite -[X in _ <= X]sum_if; apply: sum_le => j _; have := least j.
  have : ⟨v, y j - y l⟩ <= ‖v‖ * D.
    by apply: Rle_trans (dot_le _ _) _; apply: Rmult_le_compat_l; [lra | exact: yD].
  by rewrite dot_subr /up; case: Rlt_dec => /=; nra.
have a0 : 0 <= ‖v‖ * D by nra.
have -> : ‖v‖ * (D * (δ / 4)) = δ / 4 * (‖v‖ * D) by ring.
by rewrite sum_scalr; apply: Rmult_le_compat_r => //; exact: tilt_weight.
Qed.
End Tilt.

(* ── The mean that the second head finds ────────────────────────────────────────────────────── *)

Section Field.
Variables (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx) (v : 'I_n -> vec 'I_dy).
Variables (m : 'I_n -> R) (τ : {perm 'I_n}) (h low spread D E : R).
Let C := spread + 2 * h.
Let s := stop_logit low (low + spread) C.
Let ζ j := reduced W x (v j) - C * m j.
Hypotheses (h1 : 1 <= h) (range : forall j, low <= reduced W x (v j) <= low + spread).
Hypotheses (m0 : forall j, 0 <= m j) (C0 : 0 <= C) (small : C * E <= 1).
Hypotheses (dist : forall i j, ‖v i - v j‖ <= D) (long : forall j, ‖v j‖ <= D).

Lemma field_start : s = (1 - h) + (low - 1).
Proof. by rewrite /s /stop_logit /C; field. Qed.

Lemma field_taken k j : (forall j, Rabs (m j - flags τ k j) <= E) -> ((τ^-1%g j : 'I_n) < k)%N ->
  ζ j <= (1 - h) + (low - 1) /\ ζ j - s <= 1 - h.
Proof.
move=> near jk; have := near j; rewrite /flags jk => le.
have : C - 1 <= C * m j.
  have := Rle_abs (- (m j - 1)); rewrite Rabs_Ropp => le'.
  have := Rmult_le_compat_l _ _ _ C0 (Rle_trans _ _ _ le' le); lra.
have := range j; rewrite field_start /ζ; have CE : C = spread + 2 * h by [].
by lra.
Qed.

Section Live.
Variable w : 'I_n.
Hypothesis near : forall j, Rabs (m j - flags τ w j) <= E.
Let live (j : 'I_n) : bool := (w <= (τ^-1%g j : 'I_n))%N.

Lemma field_live_record j : live j -> 0 <= C * m j <= C * E.
Proof.
rewrite /live => lj; have := near j; rewrite /flags ltnNge lj /= Rminus_0_r Rabs_pos_eq // => le.
by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l].
Qed.

Lemma field_on_live :
  comb (softmax_on (with_start false live) (with_start s ζ)) (with_start vzero v)
  = comb (softmax_on live ζ) v.
Proof.
apply: vec_eq => a; rewrite /comb sum_first /softmax_on (sum_lift ord0) with_start0.
rewrite with_start0 /Rdiv !Rmult_0_l !Rplus_0_l; apply: eq_bigr => j _.
rewrite !with_startS; congr (_ * / _ * _).
by apply: eq_big => l; rewrite ?with_startS // => _; rewrite with_startS.
Qed.

Lemma started_dist (i j : 'I_n.+1) : ‖with_start vzero v i - with_start vzero v j‖ <= D.
Proof.
have D0 : 0 <= D by apply: Rle_trans (long w); exact: vnorm_ge0.
have z0 (u : vec 'I_dy) : ‖u - u‖ <= D.
  rewrite (_ : (u - u = 0 *: u)%V); last by apply: vec_eq => a; rewrite /vsub /vscal; ring.
  by rewrite vnorm_scal Rabs_R0 Rmult_0_l.
have sub0 (u : vec 'I_dy) : ‖u‖ <= D -> ‖u - vzero‖ <= D.
  by rewrite (_ : (u - vzero = u)%V) //; apply: vec_eq => a; rewrite /vsub /vzero; ring.
have opp0 (u : vec 'I_dy) : ‖u‖ <= D -> ‖vzero - u‖ <= D.
  rewrite (_ : (vzero - u = (-1) *: u)%V); last first.
    by apply: vec_eq => a; rewrite /vsub /vscal /vzero; ring.
  by rewrite vnorm_scal Rabs_Ropp Rabs_R1 Rmult_1_l.
case: (unliftP ord0 i) => [a ->|->]; case: (unliftP ord0 j) => [b ->|->].
all: rewrite ?with_startS ?with_start0 //.
  exact: sub0.
exact: opp0.
Qed.

Lemma field_live :
  ‖comb (softmax (with_start s ζ)) (with_start vzero v) - tail_mean W x v τ w‖
  <= D * (INR w.+1 * exp (1 - h)) + D * (C * E / 4).
Proof.
have D0 : 0 <= D by apply: Rle_trans (long w); exact: vnorm_ge0.
set a := comb _ _; set b := comb (softmax_on live ζ) v; set c := tail_mean _ _ _ _ _.
have -> : (a - c = (a - b) + (b - c))%V by apply: vec_eq => e; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _; apply: Rplus_le_compat; last first.
  rewrite /c -live_mean; apply: (@tilt_mean _ live _ _ (τ w)) => //.
    by rewrite /live permK.
  exact: field_live_record.
have e0 := exp_pos (1 - h).
apply: (Rle_trans _ (D * share (INR w.+1 * exp (1 - h)))); last first.
  apply: Rmult_le_compat_l => //; apply: share_le_self; apply: Rmult_le_pos; last by lra.
  exact: INR_ge0.
rewrite /b -field_on_live; apply: (mean_to_part (w := lift ord0 (τ w))).
- by rewrite with_startS /live permK.
- exact: started_dist.
apply: (Rle_trans _ (INR w.+1 * exp ((1 - h) + (low - 1)))).
  rewrite INR_S Rmult_plus_distr_r Rmult_1_l (sum_lift ord0) !with_start0 /= field_start.
  rewrite Rplus_comm; apply: Rplus_le_compat_r.
  rewrite -(sum_out τ w) (eq_bigl (fun j => ~~ live j)) => [|j]; last by rewrite with_startS.
  apply: sum_le => j; rewrite with_startS /live -ltnNge => jw; apply: exp_mono.
  by have [] := field_taken near jw.
rewrite exp_plus -Rmult_assoc; apply: Rmult_le_compat_l.
  by apply: Rmult_le_pos; [exact: INR_ge0 | lra].
apply: (Rle_trans _ (exp (with_start s ζ (lift ord0 (τ w))))).
  have lw : live (τ w) by rewrite /live permK.
  rewrite with_startS; apply: exp_mono; have := field_live_record lw; have := range (τ w).
  by rewrite /ζ; lra.
apply: (sum_ge_term (P := with_start false live) (F := fun o => exp (with_start s ζ o))).
  by rewrite with_startS /live permK.
by move=> o _; left; exact: exp_pos.
Qed.
End Live.

(* In a surplus round: next to nothing. *)
Lemma field_surplus k : (n <= k)%N -> 0 <= D -> (forall j, Rabs (m j - flags τ k j) <= E) ->
  ‖comb (softmax (with_start s ζ)) (with_start vzero v)‖ <= D * (INR n * exp (1 - h)).
Proof.
move=> nk D0 near; have e0 := exp_pos (1 - h).
apply: Rle_trans (start_mean _ _ long D0) _; apply: Rmult_le_compat_l => //.
have le : ∑_j exp (ζ j - s) <= INR n * exp (1 - h).
  rewrite -sum_const_ord; apply: sum_le => j _; apply: exp_mono.
  have jk : ((τ^-1%g j : 'I_n) < k)%N by apply: leq_trans (ltn_ord _) nk.
  by have [] := field_taken near jk.
apply: Rle_trans le; apply: share_le_self; apply: sum_ge0 => j _; left; exact: exp_pos.
Qed.
End Field.
