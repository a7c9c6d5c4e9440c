(* Chapter 14, What else this says: given the places before, each term has expectation zero. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Elsewhere.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* σ has the same responses as τ in the first K places. *)
Definition begins_as {N} (K : nat) (τ σ : {perm 'I_N}) : bool :=
  [forall k : 'I_N, (k < K)%N ==> (σ k == τ k)].

Lemma begins_asP N K (τ σ : {perm 'I_N}) :
  reflect (forall k : 'I_N, (k < K)%N -> σ k = τ k) (begins_as K τ σ).
Proof.
apply: (iffP forallP) => [H k kK|H k]; first by apply/eqP; exact: implyP (H k) kK.
by apply/implyP => kK; rewrite H.
Qed.

Section Places.
Variables (N : nat) (s : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N).
Let T (l : 'I_N) := ∑_(j < N | (l <= j)%N) exp (s (τ j)).
Let Q := ∏_(l < N | (l < k)%N) (exp (s (τ l)) / T l).

(* τ with another response in the place k, one that is not among the first. *)
Lemma next_place (l : 'I_N) : (k <= l)%N ->
  ∑_(σ | begins_as k τ σ && (σ k == τ l)) P_PL s σ = Q * (exp (s (τ l)) / T k).
Proof.
move=> kl; pose ρ := swapped k l τ.
have ρE (j : 'I_N) : (j < k)%N -> ρ j = τ j.
  move=> jk; rewrite permM tpermD // -val_eqE gtn_eqF //; exact: leq_trans jk kl.
have ρk : ρ k = τ l by rewrite permM tpermL.
have -> : ∑_(σ | begins_as k τ σ && (σ k == τ l)) P_PL s σ
    = ∑_(σ | begins_as k.+1 ρ σ) P_PL s σ.
  apply: eq_bigl => σ; apply/andP/begins_asP => [[/begins_asP H /eqP E] j|H].
    by rewrite ltnS leq_eqVlt => /orP [/eqP/val_inj ->|jk]; [rewrite ρk | rewrite ρE // H].
  split; last by rewrite H // ρk.
  by apply/begins_asP => j jk; rewrite H ?ρE // ltnW.
rewrite [LHS](pl_top_k k.+1 s ρ).
have tails (j : 'I_N) : (j <= k)%N -> ∑_(i < N | (j <= i)%N) exp (s (ρ i)) = T j.
  move=> jk; rewrite /T [RHS](sum_reindex _ _ (@perm_inj _ (tperm k l))).
  apply: eq_big => [i|i _]; last by rewrite permM.
  by case: tpermP => [->|->|//]; rewrite jk ?(leq_trans jk kl).
rewrite (bigD1 k) //= ρk tails // Rmult_comm; congr (_ * _).
apply: eq_big => [j|j /andP [jk nk]]; first by rewrite ltnS [RHS]ltn_neqAle andbC.
have {}jk : (j < k)%N by rewrite ltn_neqAle nk -ltnS.
by rewrite ρE // tails // ltnW.
Qed.

(* The response in place k, given those before it, is drawn by β^k. *)
Lemma mean_in_place (v : 'I_N -> R) :
  ∑_(σ | begins_as k τ σ) (P_PL s σ * v (σ k)) = Q * ∑_j (beta s τ k j * v (τ j)).
Proof.
rewrite (partition_big (fun σ : {perm 'I_N} => σ k) predT) //=.
rewrite (sum_reindex predT _ (@perm_inj _ τ)).
rewrite -sum_scal; apply: eq_bigr => j _; rewrite /beta.
rewrite (eq_bigr (fun σ => P_PL s σ * v (τ j))) => [|σ /andP [_ /eqP ->]] //.
rewrite sum_scalr; case: ifP => [kj|/negbT]; first by rewrite next_place // /T Rmult_assoc.
rewrite -ltnNge => jk; rewrite Rmult_0_l Rmult_0_r big_pred0 ?Rmult_0_l // => σ.
apply/negP => /andP [/begins_asP H /eqP E]; move: E; rewrite -(H j jk) => /perm_inj kj.
by move: jk; rewrite kj ltnn.
Qed.

Lemma weight_of_places : ∑_(σ | begins_as k τ σ) P_PL s σ = Q.
Proof. exact: (pl_top_k k s τ). Qed.

End Places.

(* Claim noise-kendall, parts first-place, places: given the first k places, the next term has mean
   zero. *)
Theorem noise_kendall_places : forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k : 'I_N) (c : 'I_m),
  ∑_(σ | begins_as k τ σ) (P_PL (fun j => score W x (y j)) σ
                           * (y (σ k) c - tail_mean W x y σ k c)) = 0.
Proof.
move=> m n N W x y τ k c; set s := fun j => score W x (y j).
have same σ : begins_as k τ σ -> tail_mean W x y σ k = tail_mean W x y τ k.
  move=> /begins_asP H; apply: eq_tail_mean => j; rewrite [LHS]leqNgt [RHS]leqNgt; congr (~~ _).
  apply/idP/idP => lt.
    by rewrite -{1}(permKV σ j) (H _ lt) permK.
  by rewrite -{1}(permKV τ j) -(H _ lt) permK.
rewrite (eq_bigr (fun σ => P_PL s σ * y (σ k) c - P_PL s σ * tail_mean W x y τ k c)).
  rewrite sum_sub sum_scalr (mean_in_place s τ k (fun j => y j c)) weight_of_places.
  by rewrite /tail_mean /comb; exact: Rminus_diag_eq.
by move=> σ bσ; rewrite same //; ring.
Qed.
