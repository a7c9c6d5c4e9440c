(* Chapter 12: one block for a class as the book gives it, before any input. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer Block BlockErrors Turns Theorem33 Choices.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField CausalRounds CausalTheorem.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Section Class.
Variables (dx dy N : nat) (W : mat dy dx) (η Δ low high radius ω : R).
Hypothesis Wω : forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖.

(* The inputs of the class are those of causal_theorem. *)
Lemma class_online (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :
  ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> spaced Δ r ->
  in_online_class W Δ low (high - low) (- 2 * ω * radius - radius ^ 2) (score_spread ω radius)
    (2 * radius) x y r.
Proof.
move=> x1 yr range gaps; split=> //.
- by move=> j; have := range j; lra.
- by move=> j; apply: reduced_range => //; have := Wω x; rewrite x1; lra.
- by move=> j l; exact: ball_distance.
- by move=> j; have := yr j; have := vnorm_ge0 (y j); lra.
Qed.

(* Margins that fit exist, with an error as small as one likes. *)
Lemma margins_exist tol : (1 < N)%N -> 0 <= η -> 0 < Δ -> low <= high -> 0 <= radius -> 0 <= ω ->
  0 < tol -> exists g h, 0 < g /\ 1 <= h
    /\ margins_fit N g Δ h (high - low) (score_spread ω radius)
    /\ 2 * η * (INR N - 1) * (2 * radius) * (5 / 2 * exp (- g)
       + 5 / 16 * (INR N - 2) * (score_spread ω radius + 2 * h) * exp (- g)
       + (INR N - 1) * exp (1 - h)) <= tol.
Proof.
move=> N1 η0 Δ0 lh r0 ω0 t0.
have S0 : 0 <= score_spread ω radius.
  rewrite /score_spread; case: Rle_dec => ? /=; first by have := pow2_ge_0 (ω + radius); lra.
  by apply: Rmult_le_pos; lra.
have lh0 : 0 <= high - low by lra.
case: (Req_dec (η * radius) 0) => [none|some].
  have [g0 [h1 [fit _]]] := @causal_theorem_temperatures N 1 Δ (high - low) (score_spread ω radius)
    1 1 N1 Rlt_0_1 Δ0 lh0 S0 Rlt_0_1 Rlt_0_1.
  do 2 eexists; split; first exact: g0.
  split; first exact: h1.
  split=> //; have -> : 2 * η * (INR N - 1) * (2 * radius) = 4 * (INR N - 1) * (η * radius) by ring.
  by rewrite none Rmult_0_r Rmult_0_l; lra.
have η1 : 0 < η by case: η0 => // E; case: some; rewrite -E; ring.
have r1 : 0 < radius by case: r0 => // E; case: some; rewrite -E; ring.
have D0 : 0 < 2 * radius by lra.
have H := @causal_theorem_temperatures N η Δ (high - low) (score_spread ω radius) (2 * radius) tol
  N1 η1 Δ0 lh0 S0 D0 t0.
by do 2 eexists; exact: H.
Qed.
End Class.

(* Claim causal-theorem, parts bound, temperatures: for a class of inputs and a tolerance one block,
   before any input: N − 1 of it, behind a start token, make every prefix's step at its response.
   The class is ‖W‖ ≤ ω, unit queries, ‖y‖ ≤ radius, and rewards Δ apart in [low, high]. *)
Theorem causal_theorem_class : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high radius ω tol : R),
  0 <= η -> 0 < Δ -> 0 < tol -> (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b : block (ca_stream dx dy N),
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> spaced Δ r ->
  ranks (prefix (ltn_ord i) r) τ ->
  let u := run causal (nseq (N - 1) b) (started_prompt x y r) (lift ord0 i) Ca.u in
  ‖u - ((- η) *: gradient W x (prefix (ltn_ord i) y) τ) *v x‖ <= tol.
Proof.
move=> dx dy N W η Δ low high radius ω tol η0 Δ0 t0 Wω.
case: (leqP 2 N) => N2; last first.
  exists (Block [::] None) => x y r i τ x1 _ _ _ _ u.
  have i0 : i = 0%N :> nat by have := ltn_ord i; case: (N) N2 (i : nat) => [|[|]] // _ [|].
  have N0 : (N - 1 = 0)%N by case: (N) N2 => [|[|]].
  rewrite gradient_step_terms // {}/u N0 /first_terms /vsum.
  rewrite [X in ‖X‖](_ : _ = (0 *: vzero)%V); first by rewrite vnorm_scal Rabs_R0 Rmult_0_l; lra.
  apply: vec_eq => c; rewrite /vsub big_pred0 => [|k]; last first.
    by apply/negbTE; rewrite -leqNgt; apply: leq_trans (leq0n k); rewrite subn1 /= i0.
  by rewrite /= /started_prompt with_startS /masked_prompt /= /vscal /vzero; lra.
have none : high < low \/ radius < 0 \/ ω < 0 ->
    forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N),
    ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> False.
  move=> out x y r i x1 yr range; have := range i; have := yr i; have := vnorm_ge0 (y i).
  by have := Wω x; have := vnorm_ge0 (W *v x)%V; rewrite x1; lra.
have [lh|lh] := Rle_lt_dec low high; last first.
  by exists (Block [::] None) => x y r i τ x1 yr range; case: (none _ x y r i); auto.
have [r0|r0] := Rle_lt_dec 0 radius; last first.
  by exists (Block [::] None) => x y r i τ x1 yr range; case: (none _ x y r i); auto.
have [ω0|ω0] := Rle_lt_dec 0 ω; last first.
  by exists (Block [::] None) => x y r i τ x1 yr range; case: (none _ x y r i); auto.
have [g [h [g0 [h1 [fit le]]]]] :=
  @margins_exist N η Δ low high radius ω tol N2 η0 Δ0 lh r0 ω0 t0.
exists (stop_block N W η g Δ h low (high - low) (- 2 * ω * radius - radius ^ 2)
  (score_spread ω radius)) => x y r i τ x1 yr range gaps ranked u.
have cls := @class_online dx dy N W Δ low high radius ω Wω x y r x1 yr range gaps.
have H := @causal_theorem dx dy N W η g Δ h low (high - low) (- 2 * ω * radius - radius ^ 2)
  (score_spread ω radius) (2 * radius) η0 g0 Δ0 h1 fit x y r i τ cls ranked.
exact: Rle_trans H le.
Qed.
