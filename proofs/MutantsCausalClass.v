(* A statement that is not a theorem, of chapter 12: what a block may know of its class. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer MaskedBlock StopSink CausalClass Mutants.
From Icalign Require Import MutantsStep MutantsReadout MutantsBlocks MutantsTheorem33 MutantsDepth.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The last of two responses sees both. *)
Lemma prefix_two A (f : 'I_2 -> A) : prefix (ltn_ord (ord_max : 'I_2)) f = f.
Proof. by apply: functional_extensionality => j; congr f; exact/val_inj. Qed.

(* Mutant of causal_theorem_class: one block for all step sizes *)
Lemma not_causal_for_every_step_size : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (Δ low high radius ω tol : R),
  0 < Δ -> 0 < tol -> (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b : block (ca_stream dx dy N),
  forall (η : R) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N)
    (τ : {perm 'I_i.+1}),
  0 <= η ->
  ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> spaced Δ r ->
  ranks (prefix (ltn_ord i) r) τ ->
  let u := run causal (nseq (N - 1) b) (started_prompt x y r) (lift ord0 i) Ca.u in
  ‖u - ((- η) *: gradient W x (prefix (ltn_ord i) y) τ) *v x‖ <= tol).
Proof.
have W0 (v : vec 'I_1) : ‖M1 0 *v v‖ <= 0 * ‖v‖.
  have -> : (M1 0 *v v)%V = V1 0.
    by apply: vec_eq => c; rewrite /mulmv big_ord_recl big_ord0 /V1 /M1; ring.
  by rewrite vnorm_1 Rabs_R0; lra.
move/(_ 1%N 1%N 2%N (M1 0) 1 0 1 1 0 1 Rlt_0_1 Rlt_0_1 W0) => [b H].
have range j : 0 <= pair 1 0 j <= 1 by rewrite /pair; case: ifP; lra.
have ranked : ranks (prefix (ltn_ord (ord_max : 'I_2)) (pair 1 0)) id2.
  by rewrite prefix_two; exact: ranks_ends.
have {H} near η η0 := H η (V1 1) ends (pair 1 0) ord_max id2 η0 unit_1 ends_bounded range
  (Turns.gaps ends_in_class) ranked.
have := near 0 (Rle_refl 0); have := near 2 ltac:(lra); cbv zeta; rewrite prefix_two.
set u := run _ _ _ _ _; have -> : u = V1 (u ord0) by apply: vec_eq => c; rewrite ord1.
by rewrite !step_ends !dist_1; split_Rabs; lra.
Qed.
