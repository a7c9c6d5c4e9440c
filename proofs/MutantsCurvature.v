(* Statements that are not theorems, of chapter 2: the largest curvature. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness Curvature Mutants MutantsStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Mutant of pl_smooth_norm: without D *)
Lemma not_norm_without_distance : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  (forall (V : mat m n) i j, Rabs ⟨V *v x, y i - y j⟩ <= ‖V‖ * ‖x‖) /\
  forall W : mat m n,
    let q V := second_derivative W V x y τ in
    let units c := exists V, ‖V‖² = 1 /\ c = q V in
    (forall λ, is_lub units λ <->
       (forall V, q V <= λ * ‖V‖²) /\ (forall λ', (forall V, q V <= λ' * ‖V‖²) -> λ <= λ')) /\
    ((0 < m)%N -> (0 < n)%N -> exists λ, is_lub units λ /\ λ <= INR N.-1 * D ^ 2 * ‖x‖²)).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) ends 1%g 2 ends_spread) => [/(_ (M1 1) ord0 ord_max) + _].
rewrite mulmv_1; have -> : (ends ord0 - ends ord_max)%V = V1 (1 - - 1) by [].
rewrite dot_1 vnorm_1 {1}/vnorm /sqnorm dot_M1 !Rmult_1_l sqrt_1 Rabs_R1 Rabs_right; lra.
Qed.

(* Mutant of pl_smooth_supremum: curvatures above Λ *)
Lemma not_supremum_exceeded : ~ (forall (m n N : nat) (x : vec 'I_n) (D ε : R),
  (2 <= m)%N -> (2 <= N)%N -> x <> vzero -> 0 < D -> 0 < ε ->
  exists (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
    (forall i j, ‖y i - y j‖ <= D) /\ (exists i j, ‖y i - y j‖ = D) /\ ‖V‖² = 1 /\
    (1 + ε) * (INR N.-1 * D ^ 2 * ‖x‖²) <= second_derivative W V x y τ).
Proof.
have x0 : V1 1 <> vzero by move=> /(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
move/(_ 2%N 1%N 2%N (V1 1) 1 1 isT isT x0 Rlt_0_1 Rlt_0_1) => [y [τ [W [V [yD [_ [V1' le]]]]]]].
have := second_derivative_le W V (V1 1) τ yD.
by rewrite V1' /curvature_bound; move: le; rewrite !sqnorm_1 /=; lra.
Qed.
