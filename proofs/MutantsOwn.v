(* Statements that are not theorems, of chapter 8: own terms, and the weight of strangers. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Smoothness OwnTerms.
From Icalign Require Import Mutants MutantsStep MutantsReadout.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Two queries, with the responses 1 and −1. *)
Definition sides N (b : 'I_2) (_ : 'I_N) : vec 'I_1 := two 1 (- 1) b.
Arguments sides : clear implicits.

Lemma sides_apart N b c i j : ‖sides N b i - sides N c j‖ <= 2.
Proof. exact: ends_spread. Qed.

Lemma sum_sides N (F : 'I_2 * 'I_N -> R) : ∑_t F t = ∑_j F (ord0, j) + ∑_j F (ord_max, j).
Proof. by rewrite -(sum_two (fun b => ∑_j F (b, j))) sum_pair; apply: eq_bigr => [[b j]]. Qed.

(* Their mean, with the weights of logits z, is off the first by twice the share of the second. *)
Lemma mean_sides n (z : 'I_2 * 'I_n.+1 -> R) (A : 'I_2 * 'I_n.+1 -> R) (own : 'I_n.+1 -> R) :
  (forall t, A t = softmax z t) -> ∑_j own j = 1 ->
  ‖comb A (fun t => sides _ t.1 t.2) - comb own (sides _ ord0)‖
  = 2 * share (∑_j exp (z (ord_max, j)) / ∑_j exp (z (ord0, j))).
Proof.
move=> AE own1; rewrite -[(_ - _)%V]/(V1 (∑_t (A t * pair 1 (- 1) t.1) - ∑_j (own j * 1))).
rewrite vnorm_1 sum_sides (_ : ∑_j (own j * 1) = 1); last by rewrite sum_scalr own1; ring.
have e0 b : 0 < ∑_j exp (z (b, j)) := sum_exp_all_gt0 (fun j => z (b, j)) ord0.
have W b : ∑_j (A (b, j) * pair 1 (- 1) b)
    = ∑_j exp (z (b, j)) / (∑_j exp (z (ord0, j)) + ∑_j exp (z (ord_max, j))) * pair 1 (- 1) b.
  by rewrite sum_scalr -sum_div -(sum_sides (fun t => exp (z t))); congr (_ * _);
     apply: eq_bigr => j _; exact: AE.
rewrite !W share_div; [|left; exact: e0|exact: e0]; have := e0 ord0; have := e0 ord_max.
rewrite pair_0 pair_1; move: (∑_j _) (∑_j _) => a b a0 b0.
have -> : a / (a + b) * 1 + b / (a + b) * - 1 - 1 = - (2 * (b / (a + b))) by field; lra.
by rewrite Rabs_Ropp Rabs_pos_eq //; have := Rdiv_lt_0_compat b (a + b); lra.
Qed.

(* Mutant of mq_own_term_winner: an asker of any length; here 1/2, beside a query 1 *)
Lemma not_own_for_a_short_query : ~ (forall (dx dy M N : nat) (η γ1 γ2 Δ ρ low spread D0 : R),
  0 <= γ1 -> 0 < γ2 -> 0 < Δ ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r f : 'I_M -> 'I_N -> R)
    (u : 'I_M -> vec 'I_dy) (τ : {perm 'I_N}) (a : 'I_M) (i k : 'I_N),
  (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b, spaced Δ (r b)) -> ranks (r a) τ ->
  (forall b j, low <= r b j <= low + spread) -> (forall b c i j, ‖y b i - y c j‖ <= D0) ->
  f a = flags τ k -> (forall b j, 0 <= f b j) ->
  let A := attention full (ow_winner dx dy η γ1 γ2 Δ spread) (ow_state x y r f u) (a, i) in
  let own := attention full (winner_head dx dy η γ2 Δ spread)
               (el_state (x a) (y a) (r a) (f a) (u a)) i in
  ‖comb A (fun t => y t.1 t.2) - comb own (y a)‖
  <= D0 * share (strangers γ1 γ2 Δ spread ρ M N k)).
Proof.
pose x := two (/ 2) 1; pose r (_ : 'I_2) (_ : 'I_1) := 0.
pose τ := 1%g : {perm 'I_1}.
have apart b : b != ord0 -> ⟨x ord0, x b⟩ <= / 2.
  by case: b => [[|[|b]] pb] // _; rewrite dot_1 /pair /=; lra.
have single b : spaced 1 (r b) by move=> k l; rewrite !ord1.
have ranked : ranks (r ord0) τ by move=> k l; rewrite !ord1.
have r0 b j : 0 <= r b j <= 0 + 0 by rewrite /r; lra.
have f0 : r ord0 = flags τ 0 by [].
have rpos b j : 0 <= r b j by rewrite /r; lra.
move/(_ 1%N 1%N 2%N 1%N 0 1 1 1 (/ 2) 0 0 2 Rle_0_1 Rlt_0_1 Rlt_0_1 x (sides 1) r r
  (fun _ => vzero) τ ord0 ord0 ord0 apart single ranked r0 (@sides_apart 1) f0 rpos); cbv zeta.
rewrite (@mean_sides 0 (fun t => 1 * ⟨x ord0, x t.1⟩ + (1 * r t.1 t.2
  - 2 * 1 * (0 + 1) * r t.1 t.2))); [|case=> b j|exact: (softmax_sum _ ord0)]; last first.
  by apply: eq_softmax => [[c l]]; exact: ow_winner_logit.
rewrite !sum_ord1 !dot_1 /r /strangers /= pair_0 pair_1 => le.
have ratio u v : exp u / exp v = exp (u - v).
  by rewrite /Rdiv -exp_Ropp -exp_plus.
have ξ1 : exp (- (1) * 1) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
have : share (exp (- / 2)) < share (exp (/ 4)).
  by apply: share_lt; [left; exact: exp_pos | apply: exp_increasing; lra].
move: le; rewrite ratio (_ : (1 + 1 - 1) * _ * _ = exp (- / 2)); last first.
  by rewrite [X in _ * exp X](_ : _ = - / 2); field; lra.
rewrite (_ : 1 * (/ 2 * 1) + _ - _ = / 4); [lra | field].
Qed.

(* Mutant of mq_own_term_field: as many strangers in block k as in block 0 *)
Lemma not_strangers_of_the_first_block : ~ (forall (dx dy M N : nat) (W : mat dy dx)
    (η γβ ρ spread_Z low_Z C D0 : R),
  0 <= γβ -> 0 <= C ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r f : 'I_M -> 'I_N -> R)
    (u : 'I_M -> vec 'I_dy) (τ : {perm 'I_N}) (a : 'I_M) (i k : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b j, low_Z <= reduced W (x a) (y b j) <= low_Z + spread_Z) ->
  (forall b c i j, ‖y b i - y c j‖ <= D0) ->
  f a = flags τ k -> (forall b j, 0 <= f b j) ->
  let A := attention full (ow_field W η γβ C) (ow_state x y r f u) (a, i) in
  let own := attention full (field_head W η C) (el_state (x a) (y a) (r a) (f a) (u a)) i in
  ‖comb A (fun t => y t.1 t.2) - comb own (y a)‖
  <= D0 * share (field_strangers γβ spread_Z ρ M N 0)).
Proof.
pose x (_ : 'I_2) := V1 1; pose f (b : 'I_2) (j : 'I_2) := if b == ord0 then flags id2 1 j else 0.
have x1 : ‖x ord0‖ = 1 by rewrite vnorm_1 Rabs_R1.
have apart (b : 'I_2) : b != ord0 -> ⟨x ord0, x b⟩ <= 1 by move=> _; rewrite dot_1; lra.
have level b (j : 'I_2) : reduced (M1 0) (x ord0) (sides 2 b j) = - 1.
  by rewrite /reduced mulmv_1 dot_1 sqnorm_1 /pair; case: ifP => _; ring.
have range b (j : 'I_2) : - 1 <= reduced (M1 0) (x ord0) (sides 2 b j) <= - 1 + 0.
  by rewrite level; lra.
have fpos b j : 0 <= f b j by rewrite /f /flags; case: ifP => _; [case: ifP|]; lra.
move/(_ 1%N 1%N 2%N 2%N (M1 0) 0 1 1 0 (- 1) 1 2 Rle_0_1 Rle_0_1 x (sides 2) (fun _ _ => 0) f
  (fun _ => vzero) id2 ord0 ord0 ord_max x1 apart range (@sides_apart 2) erefl fpos); cbv zeta.
rewrite (@mean_sides 1 (fun t => 1 * ⟨x ord0, x t.1⟩ + (reduced (M1 0) (x ord0) (sides 2 t.1 t.2)
  - 1 * f t.1 t.2))); [|case=> b j|exact: (softmax_sum _ ord0)]; last first.
  by apply: eq_softmax => [[c l]]; exact: ow_field_logit.
rewrite !sum_two !level !dot_1 /f /flags /= !invg1 !perm1 /=.
rewrite (_ : field_strangers _ _ _ _ _ _ = 1); last first.
  by rewrite /field_strangers [INR _]/= (_ : _ - 1 * _ = 0) ?exp_0; field.
rewrite (_ : 1 * (1 * 1) + (- 1 - 1 * 0) = 0); last by ring.
have : exp (1 * (1 * 1) + (- 1 - 1 * 1)) < exp 0 by apply: exp_increasing; lra.
rewrite exp_0; have := exp_pos (1 * (1 * 1) + (- 1 - 1 * 1)); move: (exp _) => e e0 e1 le.
have : share 1 < share ((1 + 1) / (e + 1)); last by lra.
apply: share_lt; first by lra.
by apply: (Rmult_lt_reg_r (e + 1)); rewrite /Rdiv ?Rmult_assoc ?Rinv_l; lra.
Qed.
