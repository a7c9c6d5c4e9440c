(* Statements that are not theorems, of chapter 5: the heads of one block, the layer that
   eliminates the winner, and where it breaks. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Transformer Block Elimination.
From Icalign Require Import Smoothness Mutants.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* A token without dimension that holds 1, a reward r, a flag f and r⁺. *)
Definition holds (r f top : R) : token (el_stream 0 0) := fun a _ =>
  match a with
  | El.r => r | El.one => 1 | El.flag => f | El.top => top | _ => 0 end.

(* ── The heads ──────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of elimination_step_winner_logit: the mask halved *)
Lemma not_winner_logit_with_half_the_mask : ~ (forall (dx dy : nat) (η γ Δ spread : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  X i El.one ord0 = 1 ->
  logit (winner_head dx dy η γ Δ spread) X i j
  = γ * X j El.r ord0 - γ * (spread + Δ) * X j El.flag ord0).
Proof.
move/(_ 0%N 0%N 0 1 1 0 _ (fun _ : 'I_1 => holds 0 1 0) ord0 ord0 erefl).
by rewrite elimination_step_winner_logit // /holds; lra.
Qed.

(* Mutant of elimination_step_winner_logit: a row of ones that does not hold one *)
Lemma not_winner_logit_without_one : ~ (forall (dx dy : nat) (η γ Δ spread : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  logit (winner_head dx dy η γ Δ spread) X i j
  = γ * X j El.r ord0 - 2 * γ * (spread + Δ) * X j El.flag ord0).
Proof.
pose X (_ : 'I_1) : token (el_stream 0 0) := fun a _ => if a is El.r then 1 else 0.
move/(_ 0%N 0%N 0 1 1 0 _ X ord0 ord0); rewrite /logit; blocks.
by rewrite /X; lra.
Qed.

(* Mutant of elimination_step_field_logit: the flag of the query token *)
Lemma not_field_logit_by_own_flag : ~ (forall (dx dy : nat) (W : mat dy dx) (η C : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  X i El.one ord0 = 1 ->
  logit (field_head W η C) X i j
  = 2 * ⟨W *v X i El.x, X j El.y⟩ - X j El.sq ord0 - C * X i El.flag ord0).
Proof.
move/(_ 0%N 0%N vzero 0 1 _ (fun j : 'I_2 => holds 0 (pair 0 1 j) 0) ord0 ord_max erefl).
by rewrite elimination_step_field_logit // /holds pair_0 pair_1; lra.
Qed.

(* Mutant of elimination_step_field_logit: the mask added *)
Lemma not_field_logit_with_mask_added : ~ (forall (dx dy : nat) (W : mat dy dx) (η C : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  X i El.one ord0 = 1 ->
  logit (field_head W η C) X i j
  = 2 * ⟨W *v X i El.x, X j El.y⟩ - X j El.sq ord0 + C * X j El.flag ord0).
Proof.
move/(_ 0%N 0%N vzero 0 1 _ (fun _ : 'I_1 => holds 0 1 0) ord0 ord0 erefl).
by rewrite elimination_step_field_logit // /holds; lra.
Qed.

(* Mutant of elimination_step_behind: further behind, by 3Δ for 2Δ *)
Lemma not_behind_by_three_gaps : ~ (forall (dx dy : nat) (η γ Δ spread : R) (T : finType)
    (X : T -> token (el_stream dx dy)) (i live out : T),
  0 <= γ -> X i El.one ord0 = 1 -> X live El.flag ord0 = 0 -> X out El.flag ord0 = 1 ->
  X out El.r ord0 - X live El.r ord0 <= spread ->
  logit (winner_head dx dy η γ Δ spread) X i out + γ * (spread + 3 * Δ)
  <= logit (winner_head dx dy η γ Δ spread) X i live).
Proof.
pose X j := holds 0 (pair 0 1 j) 0; have le : X ord_max El.r ord0 - X ord0 El.r ord0 <= 0.
  by rewrite /X /holds; lra.
move/(_ 0%N 0%N 0 1 1 0 _ X ord0 ord0 ord_max Rle_0_1 erefl erefl erefl le).
by rewrite !elimination_step_winner_logit // /X /holds pair_0 pair_1; lra.
Qed.

(* Mutant of elimination_step_behind: γ may be negative *)
Lemma not_behind_below_zero : ~ (forall (dx dy : nat) (η γ Δ spread : R) (T : finType)
    (X : T -> token (el_stream dx dy)) (i live out : T),
  X i El.one ord0 = 1 -> X live El.flag ord0 = 0 -> X out El.flag ord0 = 1 ->
  X out El.r ord0 - X live El.r ord0 <= spread ->
  logit (winner_head dx dy η γ Δ spread) X i out + γ * (spread + 2 * Δ)
  <= logit (winner_head dx dy η γ Δ spread) X i live).
Proof.
pose X j := holds 0 (pair 0 1 j) 0; have le : X ord_max El.r ord0 - X ord0 El.r ord0 <= 1.
  by rewrite /X /holds; lra.
move/(_ 0%N 0%N 0 (- 1) 1 1 _ X ord0 ord0 ord_max erefl erefl erefl le).
by rewrite !elimination_step_winner_logit // /X /holds pair_0 pair_1; lra.
Qed.

(* ── The layer ──────────────────────────────────────────────────────────────────────────────── *)

(* The new flag of a token, Δ = 1. *)
Lemma flag_1 B r f top : feed (eliminate 0 0 1 B) (holds r f top) El.flag ord0
  = f + Rmax 0 (Rmin 1 (3 / 2 - 2 * (top - r) - B * f)).
Proof.
rewrite feed_flag; last exact: R1_neq_R0.
by rewrite /holds -clip_between /clip_at; congr (_ + clip _); field.
Qed.

(* Rmax and Rmin of numbers. *)
Ltac cut := rewrite /Rmax /Rmin; repeat case: Rle_dec; lra.

Lemma Rabs_le_both a b : - b <= a <= b -> Rabs a <= b.
Proof. by split_Rabs; lra. Qed.

(* r⁺ = r + 1/3: the flag 5/6. *)
(* Mutant of elimination_step_winner: an error of a third of the gap, not a quarter *)
Lemma not_winner_within_a_third : ~ (forall (dx dy : nat) (Δ B : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> Rabs (e El.top ord0 - e El.r ord0) <= Δ / 3 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 1).
Proof.
have near : Rabs (/ 3 - 0) <= 1 / 3 by apply: Rabs_le_both; lra.
by move/(_ _ _ _ 0 (holds 0 0 (/ 3)) Rlt_0_1 erefl near); rewrite flag_1; cut.
Qed.

(* A flag of 1/2, B = 1: it remains 1/2 + 1. *)
(* Mutant of elimination_step_winner: any flag *)
Lemma not_winner_of_any_flag : ~ (forall (dx dy : nat) (Δ B : R) (e : token (el_stream dx dy)),
  0 < Δ -> Rabs (e El.top ord0 - e El.r ord0) <= Δ / 4 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 1).
Proof.
have near : Rabs (0 - 0) <= 1 / 4 by apply: Rabs_le_both; lra.
by move/(_ _ _ _ 1 (holds 0 (/ 2) 0) Rlt_0_1 near); rewrite flag_1; cut.
Qed.

(* m = 0, r⁺ = −1/3, r = −1: the flag 1/6. *)
(* Mutant of elimination_step_others: an error of a third of the gap, not a quarter *)
Lemma not_others_within_a_third : ~ (forall (dx dy : nat) (Δ B m : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> Rabs (e El.top ord0 - m) <= Δ / 3 -> e El.r ord0 + Δ <= m ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 0).
Proof.
have near : Rabs (- / 3 - 0) <= 1 / 3 by apply: Rabs_le_both; lra.
move/(_ _ _ _ 0 0 (holds (- 1) 0 (- / 3)) Rlt_0_1 erefl near) => H.
by have := H ltac:(rewrite /holds; lra); rewrite flag_1; cut.
Qed.

(* Mutant of elimination_step_others: a gap of ¾Δ, not Δ *)
Lemma not_others_at_a_smaller_gap : ~ (forall (dx dy : nat) (Δ B m : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> Rabs (e El.top ord0 - m) <= Δ / 4 ->
  e El.r ord0 + 3 / 4 * Δ <= m ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 0).
Proof.
have near : Rabs (- / 4 - 0) <= 1 / 4 by apply: Rabs_le_both; lra.
move/(_ _ _ _ 0 0 (holds (- (3 / 4)) 0 (- / 4)) Rlt_0_1 erefl near) => H.
by have := H ltac:(rewrite /holds; lra); rewrite flag_1; cut.
Qed.

(* Mutant of elimination_step_mean_needed: r at most the spread above r⁺, not above m *)
Lemma not_moved_above_a_mean : ~ (forall (dx dy : nat) (Δ spread m : R),
  0 < Δ ->
  exists e : token (el_stream dx dy),
  e El.flag ord0 = 1 /\ Rabs (e El.top ord0 - m) <= Δ / 4 /\ e El.r ord0 - e El.top ord0 <= spread
  /\ feed (eliminate dx dy Δ (3 / 2 + 2 * spread / Δ)) e El.flag ord0 = 3 / 2).
Proof.
move/(_ 0%N 0%N 1 1 0 Rlt_0_1) => [e [f1 [_ [le]]]]; rewrite feed_flag; last exact: R1_neq_R0.
by rewrite f1 (clip_flagged Rlt_0_1 le (Rle_refl _)); lra.
Qed.

(* Mutant of elimination_step_mean_needed: an error of an eighth of the gap, not a quarter *)
Lemma not_moved_by_half_the_error : ~ (forall (dx dy : nat) (Δ spread m : R),
  0 < Δ ->
  exists e : token (el_stream dx dy),
  e El.flag ord0 = 1 /\ Rabs (e El.top ord0 - m) <= Δ / 8 /\ e El.r ord0 <= m + spread
  /\ feed (eliminate dx dy Δ (3 / 2 + 2 * spread / Δ)) e El.flag ord0 = 3 / 2).
Proof.
move/(_ 0%N 0%N 1 1 0 Rlt_0_1) => [e [f1 [near [le]]]]; rewrite feed_flag; last exact: R1_neq_R0.
rewrite f1 clip_between clip_atE; last exact: R1_neq_R0.
move: near le; move: (e El.top ord0) (e El.r ord0) => t r near le.
have {}near : - (1 / 8) <= t by move: near; split_Rabs; lra.
by rewrite /Rdiv Rinv_1 !Rmult_1_r; cut.
Qed.

(* Mutant of elimination_step_reset: the flags are reset *)
Lemma not_reset_flags : ~ (forall (dx dy : nat) (Δ B : R) (e : token (el_stream dx dy)),
  feed (eliminate dx dy Δ B) e El.flag ord0 = 0).
Proof. by move/(_ _ _ 1 0 (holds 0 1 0)); rewrite flag_1; cut. Qed.

(* ── Where the clipped step breaks ──────────────────────────────────────────────────────────── *)

(* Mutant of elimination_needs_gap_runner_up: the slope 1/Δ, not 2/Δ *)
Lemma not_runner_up_at_half_the_slope : ~ (forall (dx dy : nat) (Δ B Δ1 : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> e El.r ord0 = e El.top ord0 - Δ1 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = Rmax 0 (Rmin 1 (3 / 2 - Δ1 / Δ))).
Proof.
move/(_ _ _ _ 0 1 (holds (0 - 1) 0 0) Rlt_0_1 erefl erefl); rewrite flag_1.
by rewrite /Rdiv Rinv_1; cut.
Qed.

(* Mutant of elimination_needs_gap_runner_up: not cut off at 0 and 1 *)
Lemma not_runner_up_uncut : ~ (forall (dx dy : nat) (Δ B Δ1 : R) (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> e El.r ord0 = e El.top ord0 - Δ1 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 3 / 2 - 2 * Δ1 / Δ).
Proof.
move/(_ _ _ _ 0 1 (holds (0 - 1) 0 0) Rlt_0_1 erefl erefl); rewrite flag_1.
by rewrite /Rdiv Rinv_1; cut.
Qed.

(* Mutant of elimination_needs_gap_either: the gap ¾Δ breaks too *)
Lemma not_broken_at_three_quarters : ~ (forall (dx dy : nat) (Δ B m : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 ->
  0 < feed (eliminate dx dy Δ B) e El.flag ord0
  <-> m - e El.r ord0 <= 3 / 4 * Δ + (m - e El.top ord0)).
Proof.
move/(_ _ _ _ 0 0 (holds (- (3 / 4)) 0 0) Rlt_0_1 erefl); rewrite flag_1 => -[_ H].
by have := H ltac:(rewrite /holds; lra); cut.
Qed.

(* r⁺ = 1/4 above m = 0, r = −3/4: the flag 0. *)
(* Mutant of elimination_needs_gap_either: the error of r⁺ with the other sign *)
Lemma not_broken_by_the_other_error : ~ (forall (dx dy : nat) (Δ B m : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 ->
  0 < feed (eliminate dx dy Δ B) e El.flag ord0
  <-> m - e El.r ord0 < 3 / 4 * Δ + (e El.top ord0 - m)).
Proof.
move/(_ _ _ _ 0 0 (holds (- (3 / 4)) 0 (/ 4)) Rlt_0_1 erefl); rewrite flag_1 => -[_ H].
by have := H ltac:(rewrite /holds; lra); cut.
Qed.

(* ── Two heads ──────────────────────────────────────────────────────────────────────────────── *)

(* The rewards 1 and 0 of two responses without dimension: the field head weighs them equally. *)
(* Mutant of two_heads_suffice_same_weights: the field head, not the head that fetches r⁺ *)
Lemma not_the_weights_of_the_field : ~ (forall (dx dy : nat) (W : mat dy dx)
    (η γ Δ spread C : R) (T : finType) (sees : rel T) (X : T -> token (el_stream dx dy)) (i j : T),
  attention sees (select_head dx dy η γ Δ spread) X i j
  = attention sees (field_head W η C) X i j
  /\ attention sees (winner_head dx dy η γ Δ spread) X i j
  = attention sees (field_head W η C) X i j).
Proof.
pose X j := holds (pair 1 0 j) 0 0.
move/(_ 0%N 0%N vzero 0 1 1 0 0 _ full X ord0 ord0) => [_].
rewrite /attention /= !sum_two !elimination_step_winner_logit // !elimination_step_field_logit //.
rewrite /dot !big_ord0 /X /holds pair_0 pair_1.
have -> : 1 * 1 - 2 * 1 * (0 + 1) * 0 = 1 by ring.
have -> : 1 * 0 - 2 * 1 * (0 + 1) * 0 = 0 by ring.
have -> : 2 * 0 - 0 - 0 * 0 = 0 by ring.
rewrite exp_0; have := exp_ineq1 1 ltac:(lra); move: (exp 1) => e e2 E.
have : e / (e + 1) * (e + 1) = e by field; lra.
by rewrite E; lra.
Qed.

(* Mutant of two_heads_suffice_field: the sign flipped *)
Lemma not_field_added : ~ (forall (dx dy : nat) (W : mat dy dx) (η C : R) (T : finType)
    (sees : rel T) (X : T -> token (el_stream dx dy)) (i : T) (c : 'I_dy),
  head_output sees (field_head W η C) X i El.u c
  = 2 * η * ∑_j (attention sees (field_head W η C) X i j * X j El.y c)).
Proof.
pose X := @el_prompt 1 1 1 (V1 1) (fun _ => V1 1) (fun _ => 0).
move/(_ _ _ (M1 0) 1 0 _ full X ord0 ord0); rewrite two_heads_suffice_field.
have -> : ∑_j (attention full (field_head (M1 0) 1 0) X ord0 j * X j El.y ord0) = 1.
  have s := softmax_sum (logit (field_head (M1 0) 1 0) X ord0) ord0.
  by rewrite -[RHS]s; apply: eq_bigr => j _; rewrite Rmult_1_r.
by lra.
Qed.

(* One response of reward −1: with r⁺ = −1 its flag becomes 1, with r⁺ = 0 it stays 0. *)
(* Mutant of two_heads_suffice_merged: without the head that fetches r⁺ *)
Lemma not_without_fetching : ~ (forall (dx dy : nat) (W : mat dy dx) (η γ Δ spread B C : R)
    (T : finType) (sees : rel T) (X : T -> token (el_stream dx dy)),
  transform sees (el_block W η γ Δ spread B C) X
  = transform sees (Block [:: select_head dx dy η γ Δ spread; field_head W η C]
      (Some (eliminate dx dy Δ B))) X).
Proof.
pose X (_ : 'I_1) := holds (- 1) 0 0.
move/(_ 0%N 0%N vzero 0 1 1 0 0 0 _ full X).
move/(f_equal (fun Z : 'I_1 -> token (el_stream 0 0) => Z ord0 El.flag ord0)).
rewrite transform_flag; last exact: R1_neq_R0.
have A1 : attention full (winner_head 0 0 0 1 1 0) X ord0 ord0 = 1.
  have := softmax_sum (logit (winner_head 0 0 0 1 1 0) X ord0) ord0.
  by rewrite big_ord_recl big_ord0 Rplus_0_r.
rewrite attend_top big_ord_recl big_ord0 A1.
set e := attend full [:: select_head 0 0 0 1 1 0; field_head vzero 0 0] X ord0.
rewrite -[RHS]/(feed (eliminate 0 0 1 0) e El.flag ord0) feed_flag; last exact: R1_neq_R0.
have [-> [-> ->]] : e El.flag ord0 = 0 /\ e El.top ord0 = 0 /\ e El.r ord0 = - 1.
  by rewrite /e /attend !big_cons big_nil /head_output; repeat split; blocks; rewrite /X /=; ring.
by rewrite !clip_between !clip_atE /X /holds; [cut | lra | lra].
Qed.
