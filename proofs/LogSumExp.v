(* Log-sum-exp along a line, and the mean and variance of values under weights.

   These are the calculus of the Plackett–Luce loss: each of its terms is a log-sum-exp of scores
   less a score. P says which indices take part; weights are zero on the others. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma is_derive_eq (f : R -> R) (t l l' : R) : is_derive f t l -> l = l' -> is_derive f t l'.
Proof. by move=> D <-. Qed.

(* A sum is differentiated term by term. *)
Lemma is_derive_sum (I : Type) (r : seq I) (P : pred I) (f : I -> R -> R) (df : I -> R) (t : R) :
  (forall i, P i -> is_derive (f i) t (df i)) ->
  is_derive (fun u => ∑_(i <- r | P i) f i u) t (∑_(i <- r | P i) df i).
Proof.
move=> D; elim: r => [|i r IH].
  apply: (is_derive_ext (fun _ => 0)) => [u|]; rewrite big_nil //; exact: is_derive_const.
rewrite big_cons; case: ifP => Pi.
  apply: (is_derive_ext (fun u => f i u + ∑_(j <- r | P j) f j u)).
    by move=> u; rewrite big_cons Pi.
  exact: (is_derive_plus (f i)) (D i Pi) IH.
by apply: is_derive_ext IH => u; rewrite big_cons Pi.
Qed.

Section Weights.
Variable I : finType.
Implicit Types (P : pred I) (w c z d : I -> R).

(* The mean and the variance of the values c under the weights w. *)
Definition wmean w c : R := ∑_i (w i * c i).
Definition variance w c : R := ∑_i (w i * (c i - wmean w c) ^ 2).

(* Weights: non-negative, and one in all. *)
Definition weights w : Prop := (forall i, 0 <= w i) /\ ∑_i w i = 1.

Lemma eq_wmean w c d : (forall i, c i = d i) -> wmean w c = wmean w d.
Proof. by move=> cd; apply: eq_bigr => i _; rewrite cd. Qed.

Lemma wmean_add w c d : wmean w (fun i => c i + d i) = wmean w c + wmean w d.
Proof. by rewrite /wmean -sum_add; apply: eq_bigr => i _; ring. Qed.

Lemma wmean_scal w a c : wmean w (fun i => a * c i) = a * wmean w c.
Proof. by rewrite /wmean -sum_scal; apply: eq_bigr => i _; ring. Qed.

Lemma wmean_const w a : weights w -> wmean w (fun _ => a) = a.
Proof. by case=> _ w1; rewrite /wmean sum_scalr w1; ring. Qed.

(* The mean of squared distances to b, and the variance. *)
Lemma variance_about w c b : weights w ->
  wmean w (fun i => (c i - b) ^ 2) = variance w c + (wmean w c - b) ^ 2.
Proof.
move=> ww; set m := wmean w c.
have -> : variance w c = wmean w (fun i => (c i - m) ^ 2) by [].
have E a : wmean w (fun i => (c i - a) ^ 2) = wmean w (fun i => c i ^ 2) + -2 * a * m + a ^ 2.
  rewrite /m -wmean_scal -(wmean_const (a ^ 2) ww) -!wmean_add.
  by apply: eq_bigr => i _; ring.
by rewrite !E; ring.
Qed.

Lemma variance_squares w c : weights w ->
  variance w c = wmean w (fun i => c i ^ 2) - wmean w c ^ 2.
Proof.
move=> ww; have := variance_about c 0 ww.
by rewrite (eq_wmean w (d := fun i => c i ^ 2)) => [|i]; rewrite Rminus_0_r //; lra.
Qed.

Lemma variance_ge0 w c : weights w -> 0 <= variance w c.
Proof.
by case=> w0 _; apply: sum_ge0 => i _; apply: Rmult_le_pos (w0 i) (pow2_ge_0 _).
Qed.

Lemma variance_scal w a c : variance w (fun i => a * c i) = a ^ 2 * variance w c.
Proof.
by rewrite /variance wmean_scal -sum_scal; apply: eq_bigr => i _; ring.
Qed.

(* Half the mean squared difference of pairs. *)
Lemma variance_pairs w c : weights w ->
  variance w c = / 2 * ∑_i ∑_j (w i * w j * (c i - c j) ^ 2).
Proof.
move=> ww; rewrite (eq_bigr (fun i => w i * (variance w c + (wmean w c - c i) ^ 2))); last first.
  move=> i _; rewrite -variance_about // /wmean -sum_scal; apply: eq_bigr => j _; ring.
rewrite -/(wmean w (fun i => _ + _)) wmean_add wmean_const //.
have -> : wmean w (fun i => (wmean w c - c i) ^ 2) = variance w c.
  by apply: eq_bigr => i _; ring.
by lra.
Qed.

(* Popoviciu: values in an interval of length l. *)
Lemma variance_le w c a l : weights w -> (forall i, w i <> 0 -> a <= c i <= a + l) ->
  variance w c <= l ^ 2 / 4.
Proof.
move=> ww lu; have := variance_about c (a + l / 2) ww; have [w0 w1] := ww.
have le : wmean w (fun i => (c i - (a + l / 2)) ^ 2) <= wmean w (fun _ => l ^ 2 / 4).
  apply: sum_le => i _; case: (Req_dec (w i) 0) => [->|wi]; first by lra.
  by apply: Rmult_le_compat_l => //; have := lu i wi; nra.
rewrite (wmean_const _ ww) in le; have := pow2_ge_0 (wmean w c - (a + l / 2)).
by lra.
Qed.

(* ── Log-sum-exp and its weights ────────────────────────────────────────────────────────────── *)

Definition lse P z : R := ln (∑_(j | P j) exp (z j)).
Definition gibbs P z (j : I) : R := if P j then exp (z j) / ∑_(l | P l) exp (z l) else 0.

Lemma gibbs_weights P z k : P k -> weights (gibbs P z).
Proof.
move=> Pk; have S0 := sum_exp_gt0 z Pk; split=> [j|].
  rewrite /gibbs; case: ifP => _; last by lra.
  by apply: Rlt_le; apply: Rdiv_lt_0_compat S0; exact: exp_pos.
by rewrite /gibbs -big_mkcond sum_div; field; lra.
Qed.

Lemma gibbs_mean P z c :
  wmean (gibbs P z) c = ∑_(j | P j) (c j * exp (z j)) / ∑_(j | P j) exp (z j).
Proof.
rewrite -sum_div big_mkcond; apply: eq_bigr => j _; rewrite /gibbs.
by case: ifP => _; rewrite /Rdiv; ring.
Qed.

(* Log-sum-exp lies above its tangents. *)
Lemma lse_tangent P z d k : P k ->
  lse P z + wmean (gibbs P z) d <= lse P (fun j => z j + d j).
Proof.
move=> Pk; set m := wmean _ d; rewrite /lse; set S := ∑_(j | P j) exp (z j).
have S0 : 0 < S := sum_exp_gt0 z Pk; have [w0 w1] := gibbs_weights z Pk.
rewrite -[m]ln_exp -ln_mult //; last by exact: exp_pos.
apply: ln_le; first by apply: Rmult_lt_0_compat S0 (exp_pos _).
have -> : ∑_(j | P j) exp (z j + d j) = S * ∑_j (gibbs P z j * exp (d j)).
  rewrite big_mkcond -sum_scal; apply: eq_bigr => j _; rewrite /gibbs -/S.
  by case: ifP => _; rewrite ?exp_plus; field; lra.
apply: Rmult_le_compat_l; first by lra.
apply: (Rle_trans _ (∑_j (gibbs P z j * (exp m * (1 + (d j - m)))))).
  rewrite (eq_bigr (fun j => exp m * (gibbs P z j * d j) + exp m * (1 - m) * gibbs P z j)).
    by rewrite sum_add !sum_scal w1 -/(wmean _ d) -/m; lra.
  by move=> j _; ring.
apply: sum_le => j _; apply: Rmult_le_compat_l => //.
have -> : d j = m + (d j - m) by ring.
rewrite exp_plus; apply: Rmult_le_compat_l; first exact: Rlt_le (exp_pos _).
have -> : m + (d j - m) - m = d j - m by ring.
exact: exp_ineq1_le.
Qed.

Section Line.
Variables (P : pred I) (z c : I -> R) (k : I).
Hypothesis Pk : P k.

Let at_ (t : R) (j : I) := z j + t * c j.

Lemma is_derive_expsum (a : I -> R) t :
  is_derive (fun u => ∑_(j | P j) (a j * exp (at_ u j))) t
    (∑_(j | P j) (a j * c j * exp (at_ t j))).
Proof. by apply: is_derive_sum => j _; rewrite /at_; auto_derive => //; ring. Qed.

Lemma is_derive_sum_exp t :
  is_derive (fun u => ∑_(j | P j) exp (at_ u j)) t (∑_(j | P j) (c j * exp (at_ t j))).
Proof. by apply: is_derive_sum => j _; rewrite /at_; auto_derive => //; ring. Qed.

(* The derivative of log-sum-exp is a mean, and that of the mean is the variance. *)
Lemma is_derive_lse t :
  is_derive (fun u => lse P (at_ u)) t (wmean (gibbs P (at_ t)) c).
Proof.
rewrite gibbs_mean; have S0 := sum_exp_gt0 (at_ t) Pk.
apply: (is_derive_comp ln (fun u => ∑_(j | P j) exp (at_ u j))); last exact: is_derive_sum_exp.
by apply/is_derive_Reals; exact: derivable_pt_lim_ln.
Qed.

Lemma is_derive_wmean t :
  is_derive (fun u => wmean (gibbs P (at_ u)) c) t (variance (gibbs P (at_ t)) c).
Proof.
rewrite (variance_squares _ (gibbs_weights _ Pk)) !gibbs_mean.
have S0 := sum_exp_gt0 (at_ t) Pk.
apply: (is_derive_ext
  (fun u => ∑_(j | P j) (c j * exp (at_ u j)) / ∑_(j | P j) exp (at_ u j))) => [u|].
  by rewrite gibbs_mean.
have := is_derive_div _ _ t _ _ (is_derive_expsum c t) (is_derive_sum_exp t).
move=> D; apply: (is_derive_eq (D _)); first by lra.
rewrite [in RHS](eq_bigr (fun j => c j * c j * exp (at_ t j))) => [|j _]; last by ring.
by field; lra.
Qed.

End Line.
End Weights.
