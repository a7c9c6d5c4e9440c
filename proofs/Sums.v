(* Finite sums and products of reals, and softmax.

   Sums are mathcomp's big operators over Coq's reals, so the lemmas of bigop (big_ord_recl, bigD1,
   exchange_big, reindex, ...) apply. The notations bind tighter than a product: write
   ∑_i (a i * b i), and 2 * ∑_i a i - c is what it looks like. (They name 0 and 1 as IZR does, else
   they would not be used for printing.) *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Sums and products ──────────────────────────────────────────────────────────────────────── *)

Lemma RplusA : associative Rplus. Proof. by move=> x y z; rewrite Rplus_assoc. Qed.
Lemma RmultA : associative Rmult. Proof. by move=> x y z; rewrite Rmult_assoc. Qed.

Canonical Rplus_monoid := Monoid.Law RplusA Rplus_0_l Rplus_0_r.
Canonical Rplus_comoid := Monoid.ComLaw Rplus_comm.
Canonical Rmult_monoid := Monoid.Law RmultA Rmult_1_l Rmult_1_r.
Canonical Rmult_comoid := Monoid.ComLaw Rmult_comm.
Canonical Rmult_muloid := Monoid.MulLaw Rmult_0_l Rmult_0_r.
Canonical Rplus_addoid := Monoid.AddLaw Rmult_plus_distr_r Rmult_plus_distr_l.

Reserved Notation "∑_ i F" (at level 36, F at level 36, i at level 0, format "∑_ i  F").
Reserved Notation "∑_ ( i : t ) F"
  (at level 36, F at level 36, i at level 50, format "∑_ ( i  :  t )  F").
Reserved Notation "∑_ ( i : t | P ) F"
  (at level 36, F at level 36, i at level 50, format "∑_ ( i  :  t  |  P )  F").
Reserved Notation "∑_ ( i | P ) F"
  (at level 36, F at level 36, i at level 50, format "∑_ ( i  |  P )  F").
Reserved Notation "∑_ ( i < n ) F"
  (at level 36, F at level 36, i, n at level 50, format "∑_ ( i  <  n )  F").
Reserved Notation "∑_ ( i < n | P ) F"
  (at level 36, F at level 36, i, n at level 50, format "∑_ ( i  <  n  |  P )  F").
Reserved Notation "∑_ ( i <- r | P ) F"
  (at level 36, F at level 36, i, r at level 50, format "∑_ ( i  <-  r  |  P )  F").
Reserved Notation "∏_ i F" (at level 36, F at level 36, i at level 0, format "∏_ i  F").
Reserved Notation "∏_ ( i : t ) F"
  (at level 36, F at level 36, i at level 50, format "∏_ ( i  :  t )  F").
Reserved Notation "∏_ ( i : t | P ) F"
  (at level 36, F at level 36, i at level 50, format "∏_ ( i  :  t  |  P )  F").
Reserved Notation "∏_ ( i | P ) F"
  (at level 36, F at level 36, i at level 50, format "∏_ ( i  |  P )  F").
Reserved Notation "∏_ ( i < n ) F"
  (at level 36, F at level 36, i, n at level 50, format "∏_ ( i  <  n )  F").
Reserved Notation "∏_ ( i < n | P ) F"
  (at level 36, F at level 36, i, n at level 50, format "∏_ ( i  <  n  |  P )  F").
Reserved Notation "∏_ ( i <- r | P ) F"
  (at level 36, F at level 36, i, r at level 50, format "∏_ ( i  <-  r  |  P )  F").

Notation "∑_ ( i <- r | P ) F" := (\big[Rplus/IZR Z0]_(i <- r | P%B) F) : R_scope.
Notation "∑_ ( i : t ) F" := (\big[Rplus/IZR Z0]_(i : t) F) (only parsing) : R_scope.
Notation "∑_ ( i : t | P ) F" := (\big[Rplus/IZR Z0]_(i : t | P%B) F) (only parsing) : R_scope.
Notation "∑_ ( i | P ) F" := (\big[Rplus/IZR Z0]_(i | P%B) F) : R_scope.
Notation "∑_ ( i < n | P ) F" := (\big[Rplus/IZR Z0]_(i < n | P%B) F) : R_scope.
Notation "∑_ ( i < n ) F" := (\big[Rplus/IZR Z0]_(i < n) F) : R_scope.
Notation "∑_ i F" := (\big[Rplus/IZR Z0]_i F) : R_scope.
Notation "∏_ ( i <- r | P ) F" := (\big[Rmult/IZR (Zpos xH)]_(i <- r | P%B) F) : R_scope.
Notation "∏_ ( i : t ) F" := (\big[Rmult/IZR (Zpos xH)]_(i : t) F) (only parsing) : R_scope.
Notation "∏_ ( i : t | P ) F" := (\big[Rmult/IZR (Zpos xH)]_(i : t | P%B) F) (only parsing)
  : R_scope.
Notation "∏_ ( i | P ) F" := (\big[Rmult/IZR (Zpos xH)]_(i | P%B) F) : R_scope.
Notation "∏_ ( i < n | P ) F" := (\big[Rmult/IZR (Zpos xH)]_(i < n | P%B) F) : R_scope.
Notation "∏_ ( i < n ) F" := (\big[Rmult/IZR (Zpos xH)]_(i < n) F) : R_scope.
Notation "∏_ i F" := (\big[Rmult/IZR (Zpos xH)]_i F) : R_scope.

Section Sums.
Variables (I : Type) (r : seq I) (P : pred I).
Implicit Types F G : I -> R.

(* The sum of a sum, a difference, an opposite. *)
Lemma sum_add F G : ∑_(i <- r | P i) (F i + G i) = ∑_(i <- r | P i) F i + ∑_(i <- r | P i) G i.
Proof. exact: big_split. Qed.

Lemma sum_opp F : ∑_(i <- r | P i) (- F i) = - ∑_(i <- r | P i) F i.
Proof. by elim/big_rec2: _ => [|i x y _ ->]; lra. Qed.

Lemma sum_sub F G : ∑_(i <- r | P i) (F i - G i) = ∑_(i <- r | P i) F i - ∑_(i <- r | P i) G i.
Proof. by rewrite sum_add sum_opp. Qed.

(* A common factor comes out, on either side, or as a divisor. *)
Lemma sum_scal c F : ∑_(i <- r | P i) (c * F i) = c * ∑_(i <- r | P i) F i.
Proof. by rewrite big_distrr. Qed.

Lemma sum_scalr c F : ∑_(i <- r | P i) (F i * c) = ∑_(i <- r | P i) F i * c.
Proof. by rewrite big_distrl. Qed.

Lemma sum_div c F : ∑_(i <- r | P i) (F i / c) = ∑_(i <- r | P i) F i / c.
Proof. exact: sum_scalr. Qed.

(* A sum of zeros. *)
Lemma sum_eq0 F : (forall i, P i -> F i = 0) -> ∑_(i <- r | P i) F i = 0.
Proof. by move=> F0; rewrite big1. Qed.

(* Sums keep ≤ and signs. *)
Lemma sum_le F G :
  (forall i, P i -> F i <= G i) -> ∑_(i <- r | P i) F i <= ∑_(i <- r | P i) G i.
Proof. by move=> le; elim/big_rec2: _ => [|i x y Pi]; [lra | move: (le i Pi); lra]. Qed.

Lemma sum_ge0 F : (forall i, P i -> 0 <= F i) -> 0 <= ∑_(i <- r | P i) F i.
Proof. by move=> F0; elim/big_rec: _ => [|i x Pi]; [lra | move: (F0 i Pi); lra]. Qed.

(* The absolute value of a sum. *)
Lemma sum_abs F : Rabs (∑_(i <- r | P i) F i) <= ∑_(i <- r | P i) Rabs (F i).
Proof.
elim/big_rec2: _ => [|i x y _ le]; first by rewrite Rabs_R0; lra.
by apply: Rle_trans (Rabs_triang _ _) _; lra.
Qed.

(* Products: positive factors, quotients, logarithms. *)
Lemma prod_gt0 F : (forall i, P i -> 0 < F i) -> 0 < ∏_(i <- r | P i) F i.
Proof. by move=> F0; apply: big_ind F0; [lra | exact: Rmult_lt_0_compat]. Qed.

Lemma prod_mul F G : ∏_(i <- r | P i) (F i * G i) = ∏_(i <- r | P i) F i * ∏_(i <- r | P i) G i.
Proof. exact: big_split. Qed.

Lemma prod_ln F :
  (forall i, P i -> 0 < F i) -> ln (∏_(i <- r | P i) F i) = ∑_(i <- r | P i) ln (F i).
Proof.
move=> F0; elim: r => [|i r' IH]; first by rewrite !big_nil ln_1.
rewrite !big_cons; case: ifP => // Pi.
by rewrite ln_mult ?IH //; [exact: F0 | exact: (big_ind _ Rlt_0_1 Rmult_lt_0_compat F0)].
Qed.

Lemma prod_exp F : ∏_(i <- r | P i) exp (F i) = exp (∑_(i <- r | P i) F i).
Proof. by elim/big_rec2: _ => [|i x y _ ->]; rewrite ?exp_0 // exp_plus. Qed.

End Sums.

Section FiniteSums.
Variable I : finType.
Implicit Types (P : pred I) (F G : I -> R).

(* One term apart. *)
Lemma sum_D1 (k : I) P F : P k -> ∑_(i | P i) F i = F k + ∑_(i | P i && (i != k)) F i.
Proof. exact: bigD1. Qed.

Lemma sum_pick (k : I) F : ∑_i F i = F k + ∑_(i | i != k) F i.
Proof. exact: bigD1. Qed.

(* A sum over one index. *)
Lemma sum_one (k : I) F : ∑_(i | i == k) F i = F k.
Proof. exact: big_pred1_eq. Qed.

Lemma sum_delta (k : I) F : ∑_i (if i == k then F i else 0) = F k.
Proof. by rewrite -big_mkcond big_pred1_eq. Qed.

(* A sum split by a condition. *)
Lemma sum_ID (Q : pred I) P F :
  ∑_(i | P i) F i = ∑_(i | P i && Q i) F i + ∑_(i | P i && ~~ Q i) F i.
Proof. exact: bigID. Qed.

(* A term is at most the sum, if all are non-negative. *)
Lemma sum_ge_term P F k : P k -> (forall i, P i -> 0 <= F i) -> F k <= ∑_(i | P i) F i.
Proof.
move=> Pk F0; rewrite (sum_D1 _ Pk).
have := @sum_ge0 _ (index_enum I) (fun i => P i && (i != k)) F.
by move=> H; have := H (fun i Hi => F0 i (proj1 (andP Hi))); lra.
Qed.

(* A sum is positive if its terms are and there is one. *)
Lemma sum_gt0 P F k : P k -> (forall i, P i -> 0 < F i) -> 0 < ∑_(i | P i) F i.
Proof.
move=> Pk F0; apply: Rlt_le_trans (F0 k Pk) (sum_ge_term Pk _) => i Pi.
by apply: Rlt_le; exact: F0.
Qed.

(* Sums keep <, if one term is strictly less. *)
Lemma sum_lt P F G k : P k -> F k < G k -> (forall i, P i -> F i <= G i) ->
  ∑_(i | P i) F i < ∑_(i | P i) G i.
Proof.
move=> Pk lt le; rewrite !(sum_D1 _ Pk); apply: Rplus_lt_le_compat => //.
by apply: sum_le => i /andP [Pi _]; exact: le.
Qed.

(* Equal terms: a number times the term. *)
Lemma sum_const_card P c : ∑_(i | P i) c = INR #|P| * c.
Proof.
rewrite big_const; elim: #|P| => [|n IH]; first by rewrite Rmult_0_l.
by rewrite iterS IH S_INR; lra.
Qed.

Lemma sum_const c : ∑_(i : I) c = INR #|I| * c.
Proof. exact: sum_const_card. Qed.

(* Two sums in the other order. *)
Lemma sum_exchange (J : finType) (F : I -> J -> R) : ∑_i ∑_j F i j = ∑_j ∑_i F i j.
Proof. exact: exchange_big. Qed.

(* A product of sums is a double sum. *)
Lemma sum_mul (J : finType) F (G : J -> R) : ∑_i F i * ∑_j G j = ∑_i ∑_j (F i * G j).
Proof. by rewrite -sum_scalr; apply: eq_bigr => i _; rewrite sum_scal. Qed.

(* A double sum as a sum over pairs. *)
Lemma sum_pair (J : finType) (F : I -> J -> R) : ∑_i ∑_j F i j = ∑_(p : I * J) F p.1 p.2.
Proof. exact: pair_bigA. Qed.

(* Renaming the index. *)
Lemma sum_reindex (h : I -> I) P F :
  injective h -> ∑_(i | P i) F i = ∑_(i | P (h i)) F (h i).
Proof. by move=> inj; rewrite (reindex_inj inj). Qed.

End FiniteSums.

(* Finitely many values have a least one. *)
Lemma least (I : finType) (c : I -> R) (i0 : I) : exists k, forall j, c k <= c j.
Proof.
suff [k le] : exists k, forall j, j \in enum I -> c k <= c j.
  by exists k => j; apply: le; rewrite mem_enum.
elim: (enum I) => [|i r [k IH]]; first by exists i0.
case: (Rle_dec (c i) (c k)) => le; [exists i | exists k] => j; rewrite inE => /orP [/eqP ->|jr].
- by lra.
- by have := IH j jr; lra.
- by lra.
- exact: IH.
Qed.

(* n equal terms. *)
Lemma sum_const_ord n c : ∑_(i < n) c = INR n * c.
Proof. by rewrite sum_const card_ord. Qed.

(* The first and the last term apart. *)
Lemma sum_first n (F : 'I_n.+1 -> R) : ∑_(i < n.+1) F i = F ord0 + ∑_(i < n) F (lift ord0 i).
Proof. exact: big_ord_recl. Qed.

Lemma sum_last n (F : 'I_n.+1 -> R) :
  ∑_(i < n.+1) F i = ∑_(i < n) F (widen_ord (leqnSn n) i) + F ord_max.
Proof. exact: big_ord_recr. Qed.

(* Any term apart, the others renumbered. *)
Lemma sum_lift n (k : 'I_n.+1) P (F : 'I_n.+1 -> R) :
  ∑_(i < n.+1 | P i) F i = (if P k then F k else 0) + ∑_(i < n | P (lift k i)) F (lift k i).
Proof.
rewrite big_mkcond (bigD1_ord k) //=; congr (_ + _).
by rewrite [RHS]big_mkcond.
Qed.

Lemma sum_at n (k : 'I_n.+1) (F : 'I_n.+1 -> R) : ∑_i F i = F k + ∑_(i < n) F (lift k i).
Proof. exact: (sum_lift k predT). Qed.

(* The geometric sum. *)
Lemma sum_geometric n q : (1 - q) * ∑_(i < n) q ^ i = 1 - q ^ n.
Proof.
elim: n => [|n IH]; first by rewrite big_ord0 /=; lra.
by rewrite sum_last Rmult_plus_distr_l IH /=; lra.
Qed.

(* INR without its unfolding. *)
Lemma INR_S n : INR n.+1 = INR n + 1. Proof. exact: S_INR. Qed.
Lemma INR_ge0 n : 0 <= INR n. Proof. exact: pos_INR. Qed.
Lemma INR_gt0 n : (0 < n)%N -> 0 < INR n. Proof. by move=> /ltP /lt_0_INR. Qed.
Lemma INR_le m n : (m <= n)%N -> INR m <= INR n. Proof. by move=> /leP /le_INR. Qed.

(* The logarithm of a quotient. *)
Lemma ln_div a b : 0 < a -> 0 < b -> ln (a / b) = ln a - ln b.
Proof.
by move=> a0 b0; rewrite ln_mult ?ln_Rinv //; exact: Rinv_0_lt_compat.
Qed.

(* ── Weights that sum to one, and softmax ───────────────────────────────────────────────────── *)

Section Softmax.
Variable I : finType.
Implicit Types z : I -> R.

(* Softmax over all i. *)
Definition softmax z (i : I) : R := exp (z i) / ∑_j exp (z j).

Lemma sum_exp_gt0 (P : pred I) z k : P k -> 0 < ∑_(j | P j) exp (z j).
Proof. by move=> Pk; apply: (@sum_gt0 _ _ _ k) => // i _; exact: exp_pos. Qed.

Lemma sum_exp_all_gt0 z (k : I) : 0 < ∑_j exp (z j).
Proof. exact: (@sum_exp_gt0 predT z k). Qed.

Lemma softmax_gt0 z i : 0 < softmax z i.
Proof. by apply: Rdiv_lt_0_compat (exp_pos _) _; exact: sum_exp_all_gt0. Qed.

(* The weights of softmax sum to one. *)
Lemma softmax_sum z (k : I) : ∑_i softmax z i = 1.
Proof.
by rewrite sum_div; apply: Rinv_r; apply: Rgt_not_eq; exact: sum_exp_all_gt0.
Qed.

Lemma softmax_le1 z i : softmax z i <= 1.
Proof.
rewrite -(softmax_sum z i); apply: sum_ge_term => // j _.
by apply: Rlt_le; exact: softmax_gt0.
Qed.

(* What is not on k: 1 − A_k. *)
Lemma softmax_rest z k : ∑_(i | i != k) softmax z i = 1 - softmax z k.
Proof. by rewrite -(softmax_sum z k) (sum_pick k); lra. Qed.

(* A common shift changes nothing. *)
Lemma softmax_shift z c i : softmax (fun j => z j + c) i = softmax z i.
Proof.
have Z0 := sum_exp_all_gt0 z i.
rewrite /softmax (eq_bigr (fun j => exp (z j) * exp c)); last by move=> j _; rewrite exp_plus.
by rewrite sum_scalr exp_plus; field; have := exp_pos c; lra.
Qed.

(* 1/A_k = 1 + the other exponentials, relative to that of k. *)
Lemma softmax_inv z k : softmax z k = 1 / (1 + ∑_(i | i != k) exp (z i - z k)).
Proof.
have e0 := exp_pos (z k).
rewrite (eq_bigr (fun i => exp (z i) / exp (z k))); last first.
  by move=> i _; rewrite /Rminus exp_plus exp_Ropp.
rewrite sum_div /softmax (sum_pick k).
have : 0 <= ∑_(i | i != k) exp (z i) by apply: sum_ge0 => i _; apply: Rlt_le; exact: exp_pos.
by move=> S0; field; split; lra.
Qed.

End Softmax.
