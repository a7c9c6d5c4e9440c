(* Statements that are not theorems, of the book's chapter 2, on minimisers of the loss. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness NoMinimiser Minimiser Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Mutant of pl_no_minimiser_attained: no v that ranks strictly rightly *)
Lemma not_attained_without_strict : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  (forall v : vec 'I_m, ~ ranks_strictly v y τ) ->
  exists W₀ : mat m n, forall W, loss W₀ x y τ <= loss W x y τ).
Proof.
have x0 : V1 1 <> vzero by move/(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
have [above near] := pl_no_minimiser_between x0.
pose y (j : 'I_3) : vec 'I_1 := fun _ => if j == ord0 then 1 else 0.
move/(_ 1%N 1%N 3%N (V1 1) y 1%g) => [v vτ|W₀ least].
  have := vτ (lift ord0 ord0) ord_max isT; rewrite !perm1; exact: Rlt_irrefl.
have [|W lt] := near (loss W₀ (V1 1) y 1%g - ln 2); first by have := above W₀; rewrite -/y; lra.
by have := least W; rewrite -/y in lt; lra.
Qed.

(* Mutant of pl_no_minimiser_attained: no condition *)
Lemma not_attained_always : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  exists W₀ : mat m n, forall W, loss W₀ x y τ <= loss W x y τ).
Proof.
by move=> H; case: not_attained_without_strict => m n N x y τ _; exact: (H m n N x y τ).
Qed.

(* Mutant of pl_no_minimiser_sublevel: bounded, with no directions in which L is constant *)
Lemma not_sublevel_bounded : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  (forall v : vec 'I_m, (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
    forall k l : 'I_N, ⟨v, y (τ k)⟩ = ⟨v, y (τ l)⟩) ->
  forall c : R, exists B : R, forall W : mat m n, loss W x y τ <= c -> ‖W‖ <= B).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) (two 0 0) 1%g) => H.
have [v _ k l|B le] := H _ (ln (1 + 1)).
  by rewrite /two /pair; do 2 case: ifP.
have := le (M1 (Rabs B + 1)); rewrite loss_two Rminus_eq_0 exp_0 => /(_ (Rle_refl _)).
by rewrite /vnorm sqnorm_M1 -[_ * _]/(Rsqr _) sqrt_Rsqr_abs; split_Rabs; lra.
Qed.
