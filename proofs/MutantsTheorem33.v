(* Statements that are not theorems, of chapters 5 and 6: Theorems 3.2 and 3.3, partial sums. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 BradleyTerry.
From Icalign Require Import Sharp Choices Weaker PartialSums Smoothness Mutants MutantsStep.
From Icalign Require Import MutantsReadout.
From Icalign Require Import MutantsBlocks.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The responses 1 and −1 at W = 0, where all scores are equal ────────────────────────────── *)

Lemma half_half (z : 'I_2 -> R) j : z ord0 = z ord_max -> softmax z j = / 2.
Proof.
move=> E; have zE l : z l = z ord0.
    by case: l => [[|[|l]] pl] //; [congr z | rewrite E; congr z]; exact/val_inj.
by rewrite /softmax sum_two !zE; field; have := exp_pos (z ord0); lra.
Qed.

Lemma comb_ends w : comb w ends = V1 (w ord0 - w ord_max).
Proof. by apply: vec_eq => c; rewrite /comb sum_two /ends /two /V1 pair_0 pair_1; ring. Qed.

Lemma ends_0 : ends ord0 = V1 1. Proof. by []. Qed.
Lemma ends_1 : ends ord_max = V1 (- 1). Proof. by []. Qed.

Lemma reduced_0 x j : reduced (M1 0) (V1 x) (ends j) = - 1.
Proof. by rewrite /reduced mulmv_1 dot_1 sqnorm_1 /pair; case: ifP => _; ring. Qed.

Lemma field_ends C x f j : f ord0 = f ord_max -> field_weights (M1 0) C (V1 x) ends f j = / 2.
Proof. by move=> E; apply: half_half; rewrite !reduced_0 E. Qed.

(* The first block writes twice what the winner's weight exceeds the other's by. *)
Lemma first_block η γ Δ spread B C x r i : Δ <> 0 ->
  run full (nseq 1 (el_block (M1 0) η γ Δ spread B C)) (el_prompt (V1 x) ends r) i El.u
  = V1 (2 * η * (1 - 2 * share (exp (- (γ * (r ord0 - r ord_max)))))).
Proof.
move=> Δ0; rewrite run_nseq [run _ _ _]/= /el_prompt el_step //.
set w := winner_weights _ _ _ _ _; rewrite [el_state _ _ _ _ _ _ _]/=.
have w0 : w ord0 = 1 - share (exp (- (γ * (r ord0 - r ord_max)))).
  rewrite -[w ord0](Rplus_minus (share (exp (- (γ * (r ord0 - r ord_max)))))) /w /winner_weights.
  set z := fun j : 'I_2 => _; have := softmax_miss z ord0.
  have -> : crowd z ord0 = exp (- (γ * (r ord0 - r ord_max))).
    by rewrite /crowd big_mkcond sum_two /= Rplus_0_l /z; congr exp; ring.
  by move: (softmax z ord0) (share _) => a b; lra.
have w1 : w ord_max = 1 - w ord0.
  have : ∑_j w j = 1 by exact: softmax_sum.
  by rewrite sum_two => <-; ring.
rewrite !comb_ends !field_ends // w1 w0.
by apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero /V1; ring.
Qed.

Lemma step_ends η : ((- η) *: gradient (M1 0) (V1 1) ends id2 *v V1 1 = V1 (2 * η))%V.
Proof. by rewrite slope_0 M1_scal mulmv_1; congr V1; ring. Qed.

(* The other way round the step is the opposite. *)
Lemma step_swapped η :
  ((- η) *: gradient (M1 0) (V1 1) ends (tperm ord0 ord_max : {perm 'I_2}) *v V1 1
  = V1 (- (2 * η)))%V.
Proof.
rewrite gradient_step_terms; last by rewrite vnorm_1 Rabs_R1.
rewrite /first_terms /vsum; apply: vec_eq => c.
rewrite (big_pred1 ord0) => [|[[|[|k]] pk]] //.
have s j : score (M1 0) (V1 1) (ends j) = - 1.
  by rewrite /ends score_two /pair; case: ifP => _; lra.
have -> : tail_mean (M1 0) (V1 1) ends (tperm ord0 ord_max : {perm 'I_2}) ord0 = V1 0.
  apply: vec_eq => a; rewrite /tail_mean /comb sum_two /beta /= sum_two !s tpermL tpermR.
  by rewrite ends_0 ends_1 /V1; field; have := exp_pos (- 1); lra.
by rewrite tpermL ends_1 /vscal /vsub /V1; ring.
Qed.

Lemma unit_1 : ‖V1 1‖ = 1. Proof. by rewrite vnorm_1 Rabs_R1. Qed.

Lemma dist_1 a b : ‖V1 a - V1 b‖ = Rabs (a - b).
Proof. by rewrite -[(_ - _)%V]/(V1 (a - b)) vnorm_1. Qed.

(* Rewards 1 and 0, γ = log 5. *)
Lemma bound_ends : share (exp (- (ln 5 * (1 - 0)))) = / 6.
Proof. by rewrite Rminus_0_r Rmult_1_r exp_ln5 /share; field. Qed.

Lemma crowd_first spread : winner_crowd (ln 5) 1 spread 2 0 = / 5.
Proof. by rewrite /winner_crowd /= Rmult_1_r exp_ln5 /Rdiv Rminus_eq_0; field. Qed.

Lemma field_first C spread_Z : field_crowd C spread_Z 2 0 = 0.
Proof. by rewrite /field_crowd /=; field. Qed.

Lemma terms_ends spread C spread_Z :
  ∑_(k < 2 - 1) (share (winner_crowd (ln 5) 1 spread 2 k) + share (field_crowd C spread_Z 2 k))
  = / 6.
Proof. by rewrite big_ord_recl big_ord0 crowd_first field_first share_0 /share; field. Qed.

(* ── Theorem 3.3 ────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of theorem_3_3_winner_term: rewards that may be closer than Δ *)
Lemma not_winner_term_of_close_rewards : ~ (forall (dx dy N : nat) (η γ Δ spread low D : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (u : vec 'I_dy)
    (k i : 'I_N),
  0 < γ -> 0 < Δ -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  (forall j l, ‖y j - y l‖ <= D) ->
  let X := el_state x y r (flags τ k) u in
  let found := comb (attention full (winner_head dx dy η γ Δ spread) X i) y in
  ‖found - y (τ k)‖ <= D * share (winner_crowd γ Δ spread N k)).
Proof.
(* the rewards 1 and 0, and Δ = 2: the loser keeps 1/6, not 1/26 *)
have range (j : 'I_2) : 0 <= pair 1 0 j <= 0 + 1 by rewrite /pair; case: ifP; lra.
have hot : 0 < ln 5 by have := ln5_ge; lra.
move/(_ _ _ _ 1 (ln 5) 2 1 0 2 (V1 1) ends (pair 1 0) id2 vzero ord0 ord0 hot ltac:(lra) ranks_ends
  range ends_spread); cbv zeta.
set A := attention _ _ _ _; set w := winner_weights (ln 5) 2 1 (pair 1 0) (flags id2 0).
have AE j : A j = w j by rewrite /A el_winner_attention.
have w0 : w ord0 = 1 - / 6.
  rewrite /w /winner_weights; set z := fun j : 'I_2 => _; have := softmax_miss z ord0.
  have -> : crowd z ord0 = / 5.
    rewrite /crowd big_mkcond sum_two /= Rplus_0_l /z pair_0 pair_1 -exp_ln5.
    by congr exp; rewrite /flags !ltn0; ring.
  by rewrite /share; lra.
have w1 : ∑_j w j = 1 by exact: (softmax_sum _ ord0).
rewrite sum_two in w1; rewrite comb_ends !AE perm1 ends_0 dist_1 /winner_crowd /= !Rmult_1_r.
have -> : exp (- ln 5 * 2) = / 25.
  by rewrite (_ : _ * 2 = - ln 5 + - ln 5); [rewrite exp_plus exp_ln5; lra | ring].
rewrite /Rdiv (Rminus_eq_0 1) Rmult_0_l Rmult_0_r Rplus_0_r.
rewrite (_ : (/ 25 - / 25 * / 25) * / (1 - / 25) = / 25) /share; last by field.
by rewrite (_ : w ord_max = / 6); [split_Rabs; lra | lra].
Qed.

(* Mutant of theorem_3_3_field_term: as if one response fewer were out of play *)
Lemma not_field_term_of_fewer : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η C spread_Z low D : R) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (τ : {perm 'I_N}) (u : vec 'I_dy) (k i : 'I_N),
  (forall j, low <= reduced W x (y j) <= low + spread_Z) ->
  (forall j l, ‖y j - y l‖ <= D) ->
  let X := el_state x y r (flags τ k) u in
  let found := comb (attention full (field_head W η C) X i) y in
  ‖found - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N k.-1)).
Proof.
have range j : - 1 <= reduced (M1 0) (V1 1) (ends j) <= - 1 + 0 by rewrite reduced_0; lra.
move/(_ _ _ _ (M1 0) 1 0 0 (- 1) 2 _ _ (pair 1 0) id2 vzero ord_max ord0 range ends_spread).
cbv zeta; rewrite comb_ends !el_field_attention /field_weights !half_half ?reduced_0 ?Rmult_0_l //.
rewrite tail_mean_last // perm1 ends_1 dist_1 field_first share_0; split_Rabs; lra.
Qed.

(* Three responses, 1, 1 and −1, with the rewards 2, 1 and 0. *)
Definition three (j : 'I_3) : vec 'I_1 := V1 (if (j < 2)%N then 1 else - (1)).
Definition falling (j : 'I_3) : R := 2 - INR j.
Definition id3 : {perm 'I_3} := 1%g.
Definition middle : 'I_3 := Ordinal (erefl : (1 < 3)%N).

Lemma three_in_class : in_class (M1 0) 1 2 0 2 (V1 1) three falling.
Proof.
split.
- exact: unit_1.
- by case=> [[|[|[|i]]] pi] [[|[|[|j]]] pj] //; rewrite /falling /= => _; split_Rabs; lra.
- by exists 0; case=> [[|[|[|j]]] pj] //; rewrite /falling /=; lra.
- by exists (- (1)) => j; rewrite /reduced mulmv_1 dot_1 sqnorm_1; case: ifP => _; lra.
- by move=> i j; rewrite dist_1; case: ifP; case: ifP => _ _; split_Rabs; lra.
Qed.

Lemma ranks_three : ranks falling id3.
Proof. by case=> [[|[|[|k]]] pk] [[|[|[|l]]] pl] //; rewrite !perm1 /falling /=; lra. Qed.

(* Without the best one their mean is 0. *)
Lemma mean_middle : tail_mean (M1 0) (V1 1) three id3 middle = V1 0.
Proof.
have s j : score (M1 0) (V1 1) (three j) = - 1.
  by rewrite /three score_1; case: ifP => _; lra.
apply: vec_eq => c; rewrite /tail_mean /comb !big_ord_recl big_ord0 /beta /= !s.
rewrite big_mkcond !big_ord_recl big_ord0 /= !s !perm1 /three /V1 /=.
by have := exp_pos (- 1) => e0; field; lra.
Qed.

(* Mutant of partial_sums: the first K + 1 terms *)
Lemma not_one_term_ahead : ~ (forall (dx dy N K : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  (K <= N)%N -> 0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  ‖u - first_terms η W x y τ K.+1‖ <= error_bound η γ Δ C spread spread_Z D N K).
Proof.
(* One block is within 24/31 of the first term, and the second term is 2. *)
move/(_ _ _ 3%N 1%N (M1 0) 1 (ln 5) 1 2 0 2 (11 / 2) 0 isT Rle_0_1 Rlt_0_1 ltac:(lra) ltac:(lra)
  _ _ _ _ ord0 three_in_class ranks_three); cbv zeta.
have := @partial_sums _ _ 3 1 (M1 0) 1 (ln 5) 1 2 0 2 (11 / 2) 0 isT Rle_0_1 Rlt_0_1 ltac:(lra)
  ltac:(lra) _ _ _ _ ord0 three_in_class ranks_three; cbv zeta.
set u := run _ _ _ _ _; rewrite [first_terms _ _ _ _ _ 2](@vsum_succ 3 _ _ 1%N isT).
rewrite -/(first_terms 1 (M1 0) (V1 1) three id3 1); set t := first_terms _ _ _ _ _ _.
rewrite (_ : Ordinal _ = middle); last exact/val_inj.
rewrite mean_middle perm1 /error_bound big_ord_recl big_ord0 /winner_crowd /field_crowd.
rewrite [nat_of_ord _]/= [INR 0]/= !Rmult_1_r exp_ln5 /Rdiv !Rmult_0_l share_0.
have d (v w : vec 'I_1) : ‖v - w‖ = Rabs (v ord0 - w ord0).
  by rewrite -vnorm_1; congr (‖_‖); apply: vec_eq => c; rewrite ord1.
rewrite !d /vadd /vscal /vsub /three /V1 /= /share; move: (u ord0) (t ord0) => a b.
rewrite (_ : _ / (1 + _) = 6 / 31); last by field.
by split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3: half the bound, η for 2η *)
Lemma not_half_the_bound : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq (N - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= η * D * ∑_(k < N - 1) (share (winner_crowd γ Δ spread N k)
                                          + share (field_crowd C spread_Z N k))).
Proof.
move/(_ _ _ _ (M1 0) 1 (ln 5) 1 1 0 2 (7 / 2) 0 Rle_0_1 Rlt_0_1 ltac:(lra) ltac:(lra)
  _ _ _ _ ord0 ends_in_class ranks_ends); cbv zeta.
rewrite first_block; last by lra.
by rewrite step_ends dist_1 terms_ends pair_0 pair_1 bound_ends; split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3_weaker: half the bound, η for 2η *)
Lemma not_half_the_weaker_bound : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < γ -> 0 < Δ -> (INR N - 1) * exp (- γ * Δ) * spread <= Δ / 4 ->
  3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let u := run full (nseq (N - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= η * D * ∑_(k < N - 1) (share (winner_crowd_simple γ Δ spread N k)
                                          + share (field_crowd_simple C spread_Z k))).
Proof.
have hot : 0 < ln 5 by have := ln5_ge; lra.
have small : (INR 2 - 1) * exp (- ln 5 * 1) * 1 <= 1 / 4.
  by rewrite !Rmult_1_r exp_ln5 [INR 2]/=; lra.
move/(_ _ _ _ (M1 0) 1 (ln 5) 1 1 0 2 (7 / 2) 0 Rle_0_1 hot Rlt_0_1 small ltac:(lra)
  _ _ _ _ ord0 ends_in_class ranks_ends); cbv zeta.
rewrite first_block; last by lra.
rewrite step_ends dist_1 pair_0 pair_1 bound_ends big_ord_recl big_ord0.
rewrite /winner_crowd_simple /field_crowd_simple /= !Rmult_1_r exp_ln5 !Rmult_0_l share_0 /share.
by split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3_sharp: rewards at least Δ apart, not exactly *)
Lemma not_sharp_at_wider_gaps : ~ (forall (dx dy : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z B C : R),
  0 <= η -> 0 < γ -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 -> r (τ ord0) >= r (τ ord_max) + Δ ->
  let u := run full (nseq (2 - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let D := ‖y (τ ord_max) - y (τ ord0)‖ in
  ‖u - ΔW *v x‖ = error_bound η γ Δ C spread spread_Z D 2 (2 - 1)).
Proof.
have hot : 0 < ln 5 by have := ln5_ge; lra.
have gap : pair 2 0 (id2 ord0) >= pair 2 0 (id2 ord_max) + 1 by rewrite !perm1 pair_0 pair_1; lra.
move/(_ _ _ (M1 0) 1 (ln 5) 1 2 0 0 0 Rle_0_1 hot Rlt_0_1 _ ends (pair 2 0) id2 ord0 unit_1 gap).
cbv zeta; rewrite first_block; last by lra.
rewrite step_ends dist_1 /error_bound terms_ends pair_0 pair_1 !perm1 ends_0 ends_1 dist_1.
have -> : exp (- (ln 5 * (2 - 0))) = / 25.
  by rewrite (_ : - _ = - ln 5 + - ln 5); [rewrite exp_plus exp_ln5; lra | ring].
have -> : share (/ 25) = / 26 by rewrite /share; field.
by split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3_threshold_sharp: at γΔ = log 5 as well *)
Lemma not_beyond_the_threshold_at_log_5 : ~ (forall (γ Δ : R),
  0 < γ -> 0 < Δ -> γ * Δ <= ln 5 ->
  exists (n : nat) (r : 'I_n.+1 -> R),
  spaced Δ r /\ (forall j, r j <= r ord0) /\
  forall (dx dy : nat) (η spread : R) (x : vec 'I_dx) (y : 'I_n.+1 -> vec 'I_dy) (i : 'I_n.+1),
  let A := attention full (winner_head dx dy η γ Δ spread) (el_prompt x y r) i in
  Δ / 4 < Rabs (∑_j (A j * r j) - r ord0)).
Proof.
have hot : 0 < ln 5 by have := ln5_ge; lra.
move/(_ (ln 5) 1 hot Rlt_0_1 ltac:(lra)) => [n [r [gaps [best far]]]].
have [l least] := least r ord0; have [τ ranked] := ranking_exists (spaced_distinct Rlt_0_1 gaps).
have range j : r l <= r j <= r l + (r ord0 - r l) by have := best j; have := least j; lra.
have first : τ ord0 = ord0.
  apply: (perm_inj (s := τ^-1%g)); rewrite permK; apply/val_inj => /=.
  case: (posnP (τ^-1%g ord0)) => // later.
  by have := ranked ord0 (τ^-1%g ord0) later; rewrite permKV; have := best (τ ord0); lra.
have near := @theorem_3_3_threshold 0 0 n.+1 vzero 0 (ln 5) 1 (r ord0 - r l) _ 0 Rlt_0_1
  ltac:(lra) (Rle_refl _) (fun _ => 0) (fun _ _ => 0) r τ (r l) ord0 ord0 gaps ranked range.
cbv zeta in near; rewrite [run _ _ _]/= attend_top first in near.
have := far 0%N 0%N 0 (r ord0 - r l) (fun _ => 0) (fun _ _ => 0) ord0; cbv zeta.
move: near; rewrite -[el_prompt _ _ _ _ El.top ord0]/0 Rplus_0_l => near lt.
by have := Rlt_le_trans _ _ _ lt near; lra.
Qed.

(* ── The choice of temperatures ─────────────────────────────────────────────────────────────── *)

(* Mutant of theorem_3_3_temperatures: γΔ strictly above log 5 *)
Lemma not_strictly_hot : ~ (forall (N : nat) (η Δ spread spread_Z D tol : R),
  (2 <= N)%N -> 0 < η -> 0 < Δ -> 0 <= spread -> 0 < D -> 0 < tol ->
  let γ := γ_for η Δ D tol N in
  let C := C_for η spread_Z D tol N in
  ln 5 < γ * Δ /\ error_bound η γ Δ C spread spread_Z D N (N - 1) <= tol).
Proof.
move/(_ 2%N 1 1 1 0 1 2 isT Rlt_0_1 Rlt_0_1 Rle_0_1 Rlt_0_1 ltac:(lra)); cbv zeta => -[+ _].
rewrite /γ_for Rmax_left; first by lra.
by apply: ln_le; rewrite /reach [INR 2]/=; lra.
Qed.

(* Mutant of theorem_3_3_uniform: for every ranking, not that of the rewards *)
Lemma not_for_every_ranking : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η Δ spread spread_Z D tol : R),
  0 <= η -> 0 < Δ -> 0 < tol ->
  exists b : block (el_stream dx dy),
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r ->
  ‖run full (nseq (N - 1) b) (el_prompt x y r) i El.u - ((- η) *: gradient W x y τ) *v x‖ <= tol).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) 1 1 1 0 2 1 Rle_0_1 Rlt_0_1 Rlt_0_1) => [b H].
have {H} near τ := H (V1 1) ends (pair 1 0) τ ord0 ends_in_class.
have := near id2; have := near (tperm ord0 ord_max : {perm 'I_2}).
set u := run _ _ _ _ _; have -> : u = V1 (u ord0) by apply: vec_eq => c; rewrite ord1.
by rewrite step_ends step_swapped !dist_1; split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3_class: one block for all step sizes *)
Lemma not_for_every_step_size : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (Δ low high radius ω tol : R),
  0 < Δ -> 0 < tol ->
  (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b : block (el_stream dx dy),
  forall (η : R) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N})
    (i : 'I_N),
  0 <= η ->
  ‖x‖ = 1 -> (forall j, ‖y j‖ <= radius) -> (forall j, low <= r j <= high) -> spaced Δ r ->
  ranks r τ ->
  ‖run full (nseq (N - 1) b) (el_prompt x y r) i El.u - ((- η) *: gradient W x y τ) *v x‖ <= tol).
Proof.
have W0 (v : vec 'I_1) : ‖M1 0 *v v‖ <= 0 * ‖v‖.
  have -> : (M1 0 *v v)%V = V1 0.
    by apply: vec_eq => c; rewrite /mulmv big_ord_recl big_ord0 /V1 /M1; ring.
  by rewrite vnorm_1 Rabs_R0; lra.
move/(_ 1%N 1%N 2%N (M1 0) 1 0 1 1 0 1 Rlt_0_1 Rlt_0_1 W0) => [b H].
have short j : ‖ends j‖ <= 1.
  by rewrite -[ends j]/(V1 _) vnorm_1 /pair; case: ifP => _; split_Rabs; lra.
have range j : 0 <= pair 1 0 j <= 1 by rewrite /pair; case: ifP; lra.
have {H} near η η0 := H η (V1 1) ends (pair 1 0) id2 ord0 η0 unit_1 short range
  (gaps ends_in_class) ranks_ends.
have := near 0 (Rle_refl 0); have := near 2 ltac:(lra).
set u := run _ _ _ _ _; have -> : u = V1 (u ord0) by apply: vec_eq => c; rewrite ord1.
by rewrite !step_ends !dist_1; split_Rabs; lra.
Qed.

(* ── Theorem 3.2 ────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of bt_two_heads_rewards: without the temperature *)
Lemma not_rewards_alone : ~ (forall (dx dy N : nat) (η γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (bt_winner dx dy η γ) (bt_prompt x y r) i j = r j).
Proof.
move/(_ _ _ _ 1 2 (V1 1) ends (pair 1 0) ord0 ord0).
by rewrite bt_two_heads_rewards pair_0; lra.
Qed.

(* Mutant of bt_two_heads_scores: the scores themselves, without a constant *)
Lemma not_scores_alone : ~ (forall (dx dy N : nat) (W : mat dy dx) (η : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (bt_field W η) (bt_prompt x y r) i j = score W x (y j)).
Proof.
move/(_ _ _ _ (M1 1) 1 (V1 1) ends (pair 1 0) ord0 ord0).
by rewrite bt_two_heads_scores mulmv_1 sqnorm_1; lra.
Qed.

(* Mutant of bt_two_heads: half the error, η for 2η *)
Lemma not_half_the_error : ~ (forall (dx dy : nat) (W : mat dy dx) (η γ : R),
  0 <= η ->
  forall (x : vec 'I_dx) (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 ->
  let out := run full [:: bt_block W η γ] (bt_prompt x y r) i Bt.y in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let best := τ ord0 in
  let other := τ ord_max in
  ‖out - (y i - ΔW *v x)‖
  = η * ‖y other - y best‖ / (1 + exp (γ * (r best - r other)))).
Proof.
move/(_ _ _ (M1 0) 1 (ln 5) Rle_0_1 _ ends (pair 1 0) id2 ord0 unit_1).
have := @bt_two_heads _ _ (M1 0) 1 (ln 5) Rle_0_1 _ ends (pair 1 0) id2 ord0 unit_1; cbv zeta => ->.
rewrite !perm1 ends_0 ends_1 dist_1 pair_0 pair_1 Rminus_0_r !Rmult_1_r exp_ln; last by lra.
by split_Rabs; lra.
Qed.

(* ── Partial sums ───────────────────────────────────────────────────────────────────────────── *)

(* Mutant of partial_sums_top_k_gradient: the gradient of one place fewer *)
Lemma not_gradient_of_fewer_places : ~ (forall (m n N K : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
  is_derive (fun t : R => loss_top K (W + t *: V) x y τ) 0 ⟨gradient_top K.-1 W x y τ, V⟩).
Proof.
move/(_ _ _ _ 1%N (V1 1) ends id2 (M1 0) (M1 1)) => /is_derive_unique.
rewrite (is_derive_unique _ _ _ (@partial_sums_top_k_gradient 1 1 2 1 _ _ _ _ _)).
rewrite -[gradient_top 1 _ _ _ _]/(gradient (M1 0) (V1 1) ends id2) slope_0 dot_M1.
by rewrite gradient_top_dot big_pred0 //; lra.
Qed.

(* Mutant of partial_sums_top_k_step: a query of any length *)
Lemma not_step_at_any_length : ~ (forall (dx dy N K : nat) (W : mat dy dx) (η : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (τ : {perm 'I_N}),
  ((- η) *: gradient_top K W x y τ *v x)%V = first_terms η W x y τ K).
Proof.
move/(_ _ _ _ 1%N (M1 0) 1 (V1 0) ends id2).
set G := gradient_top _ _ _ _ _.
have -> : G = M1 (G (ord0, ord0)) by apply: vec_eq => [[a b]]; rewrite !ord1.
rewrite M1_scal mulmv_1 Rmult_0_r /first_terms /vsum => /(f_equal (fun v => v ord0)).
rewrite (big_pred1 ord0) => [|[[|[|k]] pk]] //.
have s j : score (M1 0) (V1 0) (ends j) = - 1.
  by rewrite /ends score_two /pair; case: ifP => _; lra.
have -> : tail_mean (M1 0) (V1 0) ends id2 ord0 = V1 0.
  by rewrite /id2 /ends tail_mean_two; [congr V1; lra | ring].
by rewrite perm1 ends_0 /vscal /vsub /V1; lra.
Qed.

(* Mutant of partial_sums_any_block: a block left out and none lost *)
Lemma not_without_a_loss : ~ (forall (s : stream) (T : finType) (sees : rel T) (b : block s)
    (X : T -> token s) (N m : nat),
  (m < N - 1)%N ->
  let bs := nseq (N - 1) b in
  run sees (take m bs ++ drop m.+1 bs) X = run sees (nseq (N - 1) b) X).
Proof.
move/(_ _ _ full (el_block (M1 0) 1 (ln 5) 1 1 (7 / 2) 0) (el_prompt (V1 1) ends (pair 1 0)) 2%N
  0%N isT); cbv zeta.
rewrite [take _ _]/= [drop _ _]/= cats0 => E.
have := @first_block 1 (ln 5) 1 1 (7 / 2) 0 1 (pair 1 0) ord0 ltac:(lra).
rewrite -[nseq 1 _]/(nseq (2 - 1) _) -E pair_0 pair_1 bound_ends => /(f_equal (fun v => v ord0)).
by rewrite /= /el_prompt /= /vzero /V1; lra.
Qed.
