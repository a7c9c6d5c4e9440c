(* Rankings of N responses: permutations τ, with τ k the response in place k (places count from 0).
   Sums over all of them, one place or one response at a time. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* τ is the ranking by reward: a better place has the larger reward. *)
Definition ranks {N : nat} (r : 'I_N -> R) (τ : {perm 'I_N}) : Prop :=
  forall k l : 'I_N, (k < l)%N -> r (τ l) < r (τ k).

Section OneMore.
Variable n : nat.
Implicit Types (i j : 'I_n.+1) (σ : {perm 'I_n}).

Lemma card_one_more : #|{: 'I_n.+1 * {perm 'I_n}}| = #|{: {perm 'I_n.+1}}|.
Proof. by rewrite card_prod card_ord !card_Sn factS. Qed.

Lemma lift_perm_inj_image i j σ σ' : lift_perm i j σ = lift_perm i j σ' -> σ = σ'.
Proof.
move=> eq; apply/permP => k; apply: (@lift_inj _ j).
by rewrite -(lift_perm_lift i) eq lift_perm_lift.
Qed.

(* Choose the response i in place k, and then an order σ of the others. *)
Lemma bij_choose k : bijective (fun p : 'I_n.+1 * {perm 'I_n} => lift_perm k p.1 p.2).
Proof.
apply: inj_card_bij; last by rewrite card_one_more.
move=> [i σ] [i' σ'] /= eq; have ii' : i = i' by rewrite -(lift_perm_id k i σ) eq lift_perm_id.
by subst i'; rewrite (lift_perm_inj_image eq).
Qed.

Lemma sum_choose k (P : pred {perm 'I_n.+1}) (F : {perm 'I_n.+1} -> R) :
  ∑_(τ | P τ) F τ = ∑_i ∑_(σ | P (lift_perm k i σ)) F (lift_perm k i σ).
Proof.
rewrite (reindex _ (onW_bij _ (bij_choose k))) /=.
by rewrite [RHS](pair_big_dep predT (fun i σ => P (lift_perm k i σ))).
Qed.

(* Choose the place k of the response i, and then an order σ of the others. *)
Lemma bij_insert i : bijective (fun p : 'I_n.+1 * {perm 'I_n} => lift_perm p.1 i p.2).
Proof.
apply: inj_card_bij; last by rewrite card_one_more.
move=> [k σ] [k' σ'] /= eq.
have kk' : k = k' by apply: (@perm_inj _ (lift_perm k i σ)); rewrite {2}eq !lift_perm_id.
by subst k'; rewrite (lift_perm_inj_image eq).
Qed.

Lemma sum_insert i (P : pred {perm 'I_n.+1}) (F : {perm 'I_n.+1} -> R) :
  ∑_(τ | P τ) F τ = ∑_k ∑_(σ | P (lift_perm k i σ)) F (lift_perm k i σ).
Proof.
rewrite (reindex _ (onW_bij _ (bij_insert i))) /=.
by rewrite [RHS](pair_big_dep predT (fun k σ => P (lift_perm k i σ))).
Qed.

(* Every ranking arises so. *)
Lemma perm_choose k (τ : {perm 'I_n.+1}) : exists i σ, τ = lift_perm k i σ.
Proof. by case: (bij_choose k) => g _ gK; exists (g τ).1, (g τ).2; rewrite gK. Qed.

Lemma perm_insert i (τ : {perm 'I_n.+1}) : exists k σ, τ = lift_perm k i σ.
Proof. by case: (bij_insert i) => g _ gK; exists (g τ).1, (g τ).2; rewrite gK. Qed.

(* Renumbering around a gap keeps the order. *)
Lemma ltn_lift (k : 'I_n.+1) (i j : 'I_n) : (lift k i < lift k j)%N = (i < j)%N.
Proof. by rewrite !ltnNge /= leq_bump2. Qed.

Lemma leq_lift (k : 'I_n.+1) (i j : 'I_n) : (lift k i <= lift k j)%N = (i <= j)%N.
Proof. by rewrite /= leq_bump2. Qed.

End OneMore.
