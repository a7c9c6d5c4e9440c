(* Attention weights: softmax over part of the tokens, the crowd beside one token, and how far a
   weighted mean is from one of its points, or from the mean of a part. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma exp_mono a b : a <= b -> exp a <= exp b.
Proof. by case=> [/exp_increasing /Rlt_le | ->]; [|exact: Rle_refl]. Qed.

(* q/(1+q): the share of a crowd of weight q beside one of weight 1. *)
Definition share (q : R) : R := q / (1 + q).

Lemma share_0 : share 0 = 0. Proof. by rewrite /share; field. Qed.

Lemma share_le p q : 0 <= p -> p <= q -> share p <= share q.
Proof.
move=> p0 pq; rewrite /share; apply: (Rmult_le_reg_r ((1 + p) * (1 + q))); first by nra.
have -> : p / (1 + p) * ((1 + p) * (1 + q)) = p * (1 + q) by field; lra.
have -> : q / (1 + q) * ((1 + p) * (1 + q)) = q * (1 + p) by field; lra.
by nra.
Qed.

Lemma share_lt p q : 0 <= p -> p < q -> share p < share q.
Proof.
move=> p0 pq; rewrite /share; apply: (Rmult_lt_reg_r ((1 + p) * (1 + q))); first by nra.
have -> : p / (1 + p) * ((1 + p) * (1 + q)) = p * (1 + q) by field; lra.
have -> : q / (1 + q) * ((1 + p) * (1 + q)) = q * (1 + p) by field; lra.
by nra.
Qed.

Lemma share_ge0 q : 0 <= q -> 0 <= share q.
Proof. by move=> q0; rewrite -share_0; apply: share_le; lra. Qed.

Lemma share_le_self q : 0 <= q -> share q <= q.
Proof.
move=> q0; rewrite /share; apply: (Rmult_le_reg_r (1 + q)); first by lra.
by have -> : q / (1 + q) * (1 + q) = q; [field; lra | nra].
Qed.

(* The share of a part of weight p beside a rest of weight q > 0. *)
Lemma share_div p q : 0 <= p -> 0 < q -> share (p / q) = p / (q + p).
Proof. by move=> p0 q0; rewrite /share; field; split; lra. Qed.

Lemma sum_if (I : finType) (P : pred I) (F : I -> R) :
  ∑_i (if P i then F i else 0) = ∑_(i | P i) F i.
Proof. by rewrite -big_mkcond. Qed.

Section Weights.
Variable I : finType.
Implicit Types (z : I -> R) (P : pred I) (w : I).

(* The others beside w, relative to its weight. *)
Definition crowd z w : R := ∑_(j | j != w) exp (z j - z w).

Lemma crowd_ge0 z w : 0 <= crowd z w.
Proof. by apply: sum_ge0 => j _; apply: Rlt_le; exact: exp_pos. Qed.

(* What w does not get. *)
Lemma softmax_miss z w : 1 - softmax z w = share (crowd z w).
Proof.
by rewrite softmax_inv -/(crowd z w) /share; field; have := crowd_ge0 z w; lra.
Qed.

Lemma eq_softmax z z' w : (forall j, z j = z' j) -> softmax z w = softmax z' w.
Proof.
by move=> e; rewrite /softmax e; congr (_ / _); apply: eq_bigr => j _; rewrite e.
Qed.

(* Softmax over the tokens of P only, and over all of them. *)
Definition softmax_on P z (j : I) : R :=
  (if P j then exp (z j) else 0) / ∑_(l | P l) exp (z l).

Lemma softmax_on_all z j : softmax_on predT z j = softmax z j. Proof. by []. Qed.

Lemma softmax_on_ge0 P z j : 0 <= softmax_on P z j.
Proof.
rewrite /softmax_on; case Pj : (P j); last by rewrite /Rdiv Rmult_0_l; lra.
have := exp_pos (z j); have := sum_exp_gt0 z Pj => S0 e0.
by apply: Rlt_le; exact: Rdiv_lt_0_compat.
Qed.

Lemma softmax_on_sum P z w : P w -> ∑_j softmax_on P z j = 1.
Proof.
move=> Pw; rewrite sum_div sum_if.
by have := sum_exp_gt0 z Pw => S0; field; lra.
Qed.

Lemma eq_softmax_on P z z' j :
  (forall l, P l -> z l = z' l) -> softmax_on P z j = softmax_on P z' j.
Proof.
move=> e; rewrite /softmax_on; congr (_ / _); last by apply: eq_bigr => l Pl; rewrite e.
by case Pj : (P j); rewrite ?e.
Qed.

(* A common shift changes nothing. *)
Lemma softmax_on_shift P z c j : softmax_on P (fun l => z l + c) j = softmax_on P z j.
Proof.
rewrite /softmax_on; under eq_bigr do rewrite exp_plus.
rewrite sum_scalr exp_plus; case Pj : (P j); last by rewrite /Rdiv !Rmult_0_l.
by have := sum_exp_gt0 z Pj; have := exp_pos c => c0 S0; field; lra.
Qed.

Section Means.
Variables (d : nat) (y : I -> vec 'I_d).

(* The weighted mean is as far from the point w as D times what w does not get. *)
Lemma mean_to_point z w D : (forall j, ‖y j - y w‖ <= D) ->
  ‖comb (softmax z) y - y w‖ <= D * (1 - softmax z w).
Proof.
move=> yD.
have -> : (comb (softmax z) y - y w = comb (softmax z) (fun j => y j - y w))%V.
  apply: vec_eq => a; rewrite /comb /vsub.
  rewrite [RHS](eq_bigr (fun j => softmax z j * y j a - softmax z j * y w a)).
    by rewrite sum_sub sum_scalr (softmax_sum z w); ring.
  by move=> j _; ring.
apply: Rle_trans (vnorm_comb _ _) _.
rewrite (sum_pick w) -softmax_rest -sum_scal.
have -> : ‖y w - y w‖ = 0.
  rewrite (_ : (y w - y w = 0 *: y w)%V); last by apply: vec_eq => a; rewrite /vsub /vscal; ring.
  by rewrite vnorm_scal Rabs_R0; ring.
rewrite Rmult_0_r Rplus_0_l; apply: sum_le => j _.
rewrite Rabs_pos_eq; last by apply: Rlt_le; exact: softmax_gt0.
by rewrite Rmult_comm; apply: Rmult_le_compat_r => //; apply: Rlt_le; exact: softmax_gt0.
Qed.

(* Sharp when the others are all at one point. *)
Lemma mean_to_point_sharp z w p : (forall j, j != w -> y j = p) ->
  ‖comb (softmax z) y - y w‖ = ‖p - y w‖ * (1 - softmax z w).
Proof.
move=> yp.
have -> : (comb (softmax z) y - y w = (1 - softmax z w) *: (p - y w))%V.
  apply: vec_eq => a; rewrite /comb /vsub /vscal (sum_pick w).
  rewrite (eq_bigr (fun j => softmax z j * p a)) => [|j jw]; last by rewrite yp.
  by rewrite sum_scalr softmax_rest; ring.
rewrite vnorm_scal Rabs_pos_eq; first exact: Rmult_comm.
by have := softmax_le1 z w; lra.
Qed.

(* A point is as far from a mean as from the points it is made of. *)
Lemma point_to_mean P z w D v : P w -> (forall j, P j -> ‖v - y j‖ <= D) ->
  ‖v - comb (softmax_on P z) y‖ <= D.
Proof.
move=> Pw vD.
have -> : (v - comb (softmax_on P z) y = comb (softmax_on P z) (fun j => v - y j))%V.
  apply: vec_eq => a; rewrite /comb /vsub.
  rewrite [in RHS](eq_bigr (fun j => softmax_on P z j * v a - softmax_on P z j * y j a)).
    by rewrite sum_sub sum_scalr (softmax_on_sum z Pw); ring.
  by move=> j _; ring.
apply: Rle_trans (vnorm_comb _ _) _.
apply: Rle_trans (_ : _ <= ∑_j (softmax_on P z j * D)) _; last first.
  by rewrite sum_scalr (softmax_on_sum z Pw); lra.
apply: sum_le => j _; rewrite Rabs_pos_eq; last exact: softmax_on_ge0.
have := softmax_on_ge0 P z j; rewrite /softmax_on; case Pj : (P j) => A0.
  by apply: Rmult_le_compat_l => //; exact: vD.
by rewrite /Rdiv !Rmult_0_l; lra.
Qed.

(* The mean over all is as far from the mean over P as D times the share of the others. *)
Lemma mean_to_part P z w D p : P w -> (forall i j, ‖y i - y j‖ <= D) ->
  ∑_(j | ~~ P j) exp (z j) <= p * ∑_(j | P j) exp (z j) ->
  ‖comb (softmax z) y - comb (softmax_on P z) y‖ <= D * share p.
Proof.
move=> Pw yD le; set m := comb (softmax_on P z) y.
have L0 := sum_exp_gt0 z Pw; set L := ∑_(j | P j) _ in le L0.
have F0 : 0 <= ∑_(j | ~~ P j) exp (z j) by apply: sum_ge0 => j _; apply: Rlt_le; exact: exp_pos.
set F := ∑_(j | ~~ P j) _ in le F0.
have ZE : ∑_j exp (z j) = L + F by rewrite (sum_ID P) /=.
have D0 : 0 <= D by apply: Rle_trans (yD w w); exact: vnorm_ge0.
pose A j := if P j then 0 else softmax z j.
have A0 j : 0 <= A j by rewrite /A; case: (P j); [lra | apply: Rlt_le; exact: softmax_gt0].
have -> : (comb (softmax z) y - m = comb A (fun j => y j - m))%V.
  apply: vec_eq => a; rewrite /vsub.
  have mE : ∑_(j | P j) (exp (z j) * (y j a - m a)) = 0.
    rewrite (eq_bigr (fun j => exp (z j) * y j a - exp (z j) * m a)); last by move=> j _; ring.
    rewrite sum_sub sum_scalr -/L /m /comb /softmax_on.
    rewrite [X in L * X](eq_bigr (fun j => (if P j then exp (z j) * y j a else 0) / L)).
      by rewrite sum_div sum_if; field; lra.
    by move=> j _; case: (P j); rewrite /Rdiv -/L; ring.
  have -> : comb (softmax z) y a - m a = ∑_j (softmax z j * (y j a - m a)).
    rewrite [RHS](eq_bigr (fun j => softmax z j * y j a - softmax z j * m a)).
      by rewrite sum_sub sum_scalr (softmax_sum z w) /comb; ring.
    by move=> j _; ring.
  rewrite (sum_ID P) /= (eq_bigr (fun j => exp (z j) * (y j a - m a) / ∑_l exp (z l))).
    rewrite sum_div mE /comb /A [RHS](sum_ID P) /= [X in _ = X + _]big1 => [|j ->]; last by ring.
    rewrite [X in _ = _ + X](eq_bigr (fun j => softmax z j * (y j a - m a))) => [|j /negbTE ->] //.
    by rewrite /Rdiv; ring.
  by move=> j _; rewrite /softmax; field; lra.
apply: Rle_trans (vnorm_comb _ _) _.
apply: Rle_trans (_ : _ <= ∑_j (A j * D)) _.
  apply: sum_le => j _; rewrite Rabs_pos_eq //; apply: Rmult_le_compat_l => //.
  exact: point_to_mean Pw (fun i _ => yD j i).
rewrite sum_scalr Rmult_comm; apply: Rmult_le_compat_l => //.
rewrite /A (sum_ID P) /= big1 => [|j ->] //.
rewrite (eq_bigr (fun j => exp (z j) / (L + F))) => [|j /negbTE ->]; last by rewrite /softmax ZE.
rewrite sum_div -/F Rplus_0_l -share_div //; apply: share_le.
  by apply: Rmult_le_pos => //; apply: Rlt_le; exact: Rinv_0_lt_compat.
apply: (Rmult_le_reg_r L) => //.
by have -> : F / L * L = F by field; lra.
Qed.
End Means.
End Weights.
