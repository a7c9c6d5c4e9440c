(* Chapter 1, The alignment task: the Plackett–Luce law on rankings. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Definitions ────────────────────────────────────────────────────────────────────────────── *)

(* The Plackett–Luce probability of the ranking τ at the scores s: in each place the response there
   against all in that place or worse. *)
Definition P_PL {N : nat} (s : 'I_N -> R) (τ : {perm 'I_N}) : R :=
  ∏_(k < N) (exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j))).

(* The same for scores a that are numbered by place already. *)
Definition placed {N : nat} (a : 'I_N -> R) : R :=
  ∏_(k < N) (exp (a k) / ∑_(j < N | (k <= j)%N) exp (a j)).

Definition sigmoid (t : R) : R := 1 / (1 + exp (- t)).

(* The score of the response y at the query x, and its reduced score. *)
Definition score {m n : nat} (W : mat m n) (x : vec 'I_n) (y : vec 'I_m) : R := - ‖W *v x - y‖².
Definition reduced {m n : nat} (W : mat m n) (x : vec 'I_n) (y : vec 'I_m) : R :=
  2 * ⟨W *v x, y⟩ - ‖y‖².

(* ── The law, place by place ────────────────────────────────────────────────────────────────── *)

Lemma tail_gt0 N (a : 'I_N -> R) (k : 'I_N) : 0 < ∑_(j < N | (k <= j)%N) exp (a j).
Proof. exact: (@sum_exp_gt0 _ (fun j : 'I_N => (k <= j)%N) a k (leqnn k)). Qed.

Lemma factor_gt0 N (a : 'I_N -> R) (k : 'I_N) :
  0 < exp (a k) / ∑_(j < N | (k <= j)%N) exp (a j).
Proof. exact: Rdiv_lt_0_compat (exp_pos _) (tail_gt0 _ _). Qed.

Lemma placed_gt0 N (a : 'I_N -> R) : 0 < placed a.
Proof. by apply: prod_gt0 => k _; exact: factor_gt0. Qed.

Lemma P_PL_gt0 N (s : 'I_N -> R) τ : 0 < P_PL s τ.
Proof. exact: placed_gt0 (fun k => s (τ k)). Qed.

Lemma eq_placed N (a b : 'I_N -> R) : (forall k, a k = b k) -> placed a = placed b.
Proof.
move=> ab; apply: eq_bigr => k _; rewrite ab; congr (_ / _).
by apply: eq_bigr => j _; rewrite ab.
Qed.

(* The first of the first K.+1 factors has the sum of all below it; the others are the first K of
   the rest. *)
Lemma firsts_first n K (a : 'I_n.+1 -> R) :
  ∏_(k < n.+1 | (k < K.+1)%N) (exp (a k) / ∑_(j < n.+1 | (k <= j)%N) exp (a j))
  = softmax a ord0 * ∏_(k < n | (k < K)%N)
      (exp (a (lift ord0 k)) / ∑_(j < n | (k <= j)%N) exp (a (lift ord0 j))).
Proof.
rewrite big_mkcond big_ord_recl [in RHS]big_mkcond; congr (_ / _ * _).
apply: eq_bigr => k _; have -> : (lift ord0 k < K.+1)%N = (k < K)%N by rewrite lift0.
case: ifP => // _; congr (_ / _).
by rewrite (sum_lift ord0) Rplus_0_l; apply: eq_bigl => j; rewrite leq_lift.
Qed.

Lemma placed_firsts N (a : 'I_N -> R) :
  placed a = ∏_(k < N | (k < N)%N) (exp (a k) / ∑_(j < N | (k <= j)%N) exp (a j)).
Proof. by apply: eq_bigl => k; rewrite ltn_ord. Qed.

Lemma placed_first n (a : 'I_n.+1 -> R) :
  placed a = softmax a ord0 * placed (fun k => a (lift ord0 k)).
Proof. by rewrite !placed_firsts firsts_first. Qed.

(* A ranking that begins with the response i. *)
Lemma P_PL_choose n (s : 'I_n.+1 -> R) i σ :
  P_PL s (lift_perm ord0 i σ) = softmax s i * P_PL (fun j => s (lift i j)) σ.
Proof.
rewrite -[LHS]/(placed _) placed_first /softmax lift_perm_id.
rewrite [in RHS](sum_reindex predT (fun j => exp (s j)) (@perm_inj _ (lift_perm ord0 i σ))).
by congr (_ * _); apply: eq_placed => k; rewrite lift_perm_lift.
Qed.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-normalised, part first-place. *)
Theorem pl_normalised_first_place : forall (n : nat) (s : 'I_n.+1 -> R),
  ∑_(k < n.+1) (exp (s k) / ∑_(j < n.+1) exp (s j)) = 1.
Proof. by move=> n s; exact: (softmax_sum s ord0). Qed.

(* Claim pl-normalised, part induction: lift_perm ord0 i σ ranks i first, and the others, numbered
   around i, as σ does. *)
Theorem pl_normalised_induction : forall (n : nat) (s : 'I_n.+1 -> R),
  (forall (i : 'I_n.+1) (σ : {perm 'I_n}),
     P_PL s (lift_perm ord0 i σ)
     = exp (s i) / ∑_j exp (s j) * P_PL (fun j => s (lift i j)) σ)
  /\ ((forall s' : 'I_n -> R, ∑_(σ : {perm 'I_n}) P_PL s' σ = 1) ->
      ∑_(τ : {perm 'I_n.+1}) P_PL s τ = 1).
Proof.
move=> n s; split=> [i σ|IH]; first exact: P_PL_choose.
rewrite (sum_choose ord0 predT) -(softmax_sum s ord0); apply: eq_bigr => i _.
under eq_bigr => σ _ do rewrite P_PL_choose.
by rewrite sum_scal IH Rmult_1_r.
Qed.

(* Claim pl-normalised, part exhaustive; the probabilities of all rankings sum to one. *)
Theorem pl_normalised : forall (N : nat) (s : 'I_N -> R), ∑_(τ : {perm 'I_N}) P_PL s τ = 1.
Proof.
elim=> [|n IH] s; last by have [_] := pl_normalised_induction s; exact.
rewrite (big_pred1 1%g); first by rewrite /P_PL big_ord0.
by move=> τ; apply/esym/eqP/permP; case.
Qed.

(* Claim pl-shift, part shift; a common shift of all scores changes nothing. *)
Theorem pl_shift : forall (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}) (c : R),
  P_PL (fun j => s j + c) τ = P_PL s τ.
Proof.
move=> N s τ c; apply: eq_bigr => k _.
under eq_bigr => j _ do rewrite exp_plus.
rewrite sum_scalr exp_plus; set S := ∑_(j < N | _) _.
have S0 : 0 < S := tail_gt0 (fun j => s (τ j)) k.
by have c0 := exp_pos c; field; lra.
Qed.

(* Claim pl-shift, part reduced; a score is the reduced score less a constant. *)
Theorem pl_shift_reduced : forall (m n : nat) (W : mat m n) (x : vec 'I_n) (y : vec 'I_m),
  score W x y = reduced W x y - ‖W *v x‖².
Proof. by move=> m n W x y; rewrite /score /reduced sqnorm_sub; lra. Qed.

(* Claim pl-shift, part reduced; so the reduced scores serve in place of the scores. *)
Theorem pl_shift_serves : forall (m n N : nat) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  P_PL (fun j => score W x (y j)) τ = P_PL (fun j => reduced W x (y j)) τ.
Proof.
move=> m n N W x y τ; rewrite -(pl_shift (fun j => reduced W x (y j)) τ (- ‖W *v x‖²)).
by apply: (@eq_placed _ (fun k => _ (τ k))) => k; exact: pl_shift_reduced.
Qed.

(* Claim pl-bradley-terry, part sigmoid. *)
Theorem pl_bradley_terry : forall (s : 'I_2 -> R) (τ : {perm 'I_2}),
  P_PL s τ = sigmoid (s (τ ord0) - s (τ (lift ord0 ord0))).
Proof.
move=> s τ; rewrite -[LHS]/(placed _) !placed_first /softmax /sigmoid.
rewrite /placed big_ord0 !big_ord_recl !big_ord0 !Rplus_0_r !Rmult_1_r.
rewrite Ropp_minus_distr /Rminus exp_plus exp_Ropp.
have a0 := exp_pos (s (τ ord0)); have b0 := exp_pos (s (τ (lift ord0 ord0))).
by field; lra.
Qed.

(* Claim pl-infonce, part first-factor. *)
Theorem pl_infonce : forall (n : nat) (s : 'I_n.+1 -> R) (τ : {perm 'I_n.+1}),
  - ln (exp (s (τ ord0)) / ∑_(j < n.+1 | (0 <= j)%N) exp (s (τ j)))
  = - s (τ ord0) + ln (∑_j exp (s j)).
Proof.
move=> n s τ; rewrite [in RHS](sum_reindex predT (fun j => exp (s j)) (@perm_inj _ τ)).
rewrite ln_div; [|exact: exp_pos | exact: (tail_gt0 (fun j => s (τ j)) ord0)].
by rewrite ln_exp Ropp_minus_distr Rplus_comm.
Qed.

(* Claim pl-top-k, part split; the first K factors times the law of the n responses that are
   left. *)
Theorem pl_top_k_split : forall (K n : nat) (s : 'I_(K + n) -> R) (τ : {perm 'I_(K + n)}),
  P_PL s τ
  = ∏_(k < K) (exp (s (τ (lshift n k)))
      / ∑_(j < K + n | (lshift n k <= j)%N) exp (s (τ j)))
    * placed (fun k : 'I_n => s (τ (rshift K k))).
Proof.
move=> K n s τ; rewrite /P_PL big_split_ord; congr (_ * _).
apply: eq_bigr => k _; congr (_ / _); rewrite big_split_ord big_pred0 ?Monoid.mul1m.
  by apply: eq_bigl => j; rewrite /= leq_add2l.
by move=> j; apply/negbTE; rewrite -ltnNge /= ltn_addr.
Qed.

(* Claim pl-top-k, parts exhaustive, marginal; summed over the orders of the rest, the first K
   factors remain. *)
Theorem pl_top_k : forall (N K : nat) (s : 'I_N -> R) (τ : {perm 'I_N}),
  ∑_(σ : {perm 'I_N} | [forall k : 'I_N, (k < K)%N ==> (σ k == τ k)]) P_PL s σ
  = ∏_(k < N | (k < K)%N) (exp (s (τ k)) / ∑_(j < N | (k <= j)%N) exp (s (τ j))).
Proof.
have none N (s : 'I_N -> R) : ∑_(σ | true) P_PL s σ = 1 := pl_normalised s.
elim=> [|n IH] [|K] s τ.
- by rewrite big_ord0 -(none _ s); apply: eq_bigl => σ; apply/forallP.
- by rewrite big_ord0 -(none _ s); apply: eq_bigl => σ; apply/forallP; case.
- by rewrite big_pred0_eq -(none _ s); apply: eq_bigl => σ; apply/forallP.
case: (perm_choose ord0 τ) => i [ρ ->].
rewrite (sum_choose ord0) (bigD1 i) //= [X in _ + X]big1 ?Rplus_0_r.
- under eq_bigr => σ _ do rewrite P_PL_choose.
  rewrite sum_scal.
  rewrite firsts_first; congr (_ * _).
    by rewrite /softmax lift_perm_id -(sum_reindex predT (fun j => exp (s j)) (@perm_inj _ _)).
  under [in RHS]eq_bigr => k _.
    rewrite lift_perm_lift; under eq_bigr => j _ do rewrite lift_perm_lift.
    over.
  rewrite -(IH K (fun j => s (lift i j)) ρ); apply: eq_bigl => σ.
  apply/forallP/forallP => H k.
    by have := H (lift ord0 k); rewrite !lift_perm_lift (inj_eq lift_inj).
  case: (unliftP ord0 k) => [j ->|->]; last by rewrite !lift_perm_id eqxx implybT.
  by rewrite !lift_perm_lift (inj_eq lift_inj); exact: H.
- move=> i' ne; apply: big_pred0 => σ; apply/negbTE/forallPn; exists ord0.
  by rewrite !lift_perm_id ne.
Qed.
