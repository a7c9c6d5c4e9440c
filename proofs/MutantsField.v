(* Statements that are not theorems, of chapters 2 to 4: many queries, the least temperature,
   rewards that tie, and the head that weighs the field. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Convexity Weights.
From Icalign Require Import Transformer Selection Temperature Ties Field Smoothness.
From Icalign Require Import Mutants MutantsStep MutantsSelection MutantsTemperature.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Many queries ───────────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_convex_queries: the second derivative at most zero *)
Lemma not_concave_over_queries : ~ (forall (Q : finType) (m n : nat) (N : Q -> nat)
    (x : Q -> vec 'I_n) (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)})
    (W V : mat m n),
  exists h : R, h <= 0 /\ is_derive_n (fun t => total_loss (W + t *: V) x y τ) 2 0 h).
Proof.
move/(_ _ _ _ (fun _ : 'I_1 => 2%N) (fun _ => V1 1) (fun _ => ends) (fun _ => 1%g) (M1 0) (M1 1)).
move=> [h [h0 /(is_derive_n_unique _ _ _ _) E]]; move: h0; rewrite -{}E.
rewrite (Derive_n_ext _ (fun t => loss (M1 0 + t *: M1 1)%V (V1 1) ends 1%g)) => [|t].
  rewrite (is_derive_n_unique _ _ _ _ (pl_convex_second_derivative _ _ _ _ _)) variances_0; lra.
by rewrite /total_loss big_ord_recl big_ord0 Rplus_0_r.
Qed.

(* Two equal responses: the loss is ln 2 at all W. *)
(* Mutant of pl_convex_queries: the second derivative above zero *)
Lemma not_strictly_convex_over_queries : ~ (forall (Q : finType) (m n : nat) (N : Q -> nat)
    (x : Q -> vec 'I_n) (y : forall q, 'I_(N q) -> vec 'I_m) (τ : forall q, {perm 'I_(N q)})
    (W V : mat m n),
  exists h : R, 0 < h /\ is_derive_n (fun t => total_loss (W + t *: V) x y τ) 2 0 h).
Proof.
move/(_ _ _ _ (fun _ : 'I_1 => 2%N) (fun _ => V1 1) (fun _ => two 1 1) (fun _ => 1%g) (M1 0)
  (M1 1)).
move=> [h [h0 /(is_derive_n_unique _ _ _ _) E]]; move: h0; rewrite -{}E.
rewrite (Derive_n_ext _ (fun _ => ln (1 + exp 0))) => [|t].
  by rewrite Derive_n_const; exact: Rlt_irrefl.
rewrite /total_loss big_ord_recl big_ord0 Rplus_0_r M1_scal M1_add loss_two.
by congr (ln (1 + exp _)); ring.
Qed.

(* ── The least temperature ──────────────────────────────────────────────────────────────────── *)

Lemma behind_1 (j : 'I_2) : j != ord0 -> pair 1 0 j = pair 1 0 ord0 - 1.
Proof. by move=> j0; rewrite /pair (negbTE j0) /=; lra. Qed.

Lemma at_minus_1 (j : 'I_2) : j != ord0 -> two 1 (- 1) j = V1 (- 1).
Proof. by move=> j0; rewrite /two /pair (negbTE j0). Qed.

Lemma apart : ‖V1 (- 1) - two 1 (- 1) ord0‖ = 2.
Proof.
rewrite -[(_ - _)%V]/(V1 (- 1 - 1)) vnorm_1 (_ : - 1 - 1 = - (2)); last by lra.
by rewrite Rabs_Ropp Rabs_pos_eq; lra.
Qed.

(* Mutant of selection_temperature_smallest: D/ε for D/ε − 1 *)
Lemma not_smallest_without_one : ~ (forall (dx dy N : nat) (γ Δ D ε : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (p : vec 'I_dy) (best i : 'I_N),
  0 < Δ -> 0 < ε < D -> 0 <= γ ->
  (forall j : 'I_N, j != best -> r j = r best - Δ) -> (forall j : 'I_N, j != best -> y j = p) ->
  ‖p - y best‖ = D ->
  ‖selected γ x y r i - y best‖ <= ε
  <-> Rmax 0 (ln ((INR N - 1) * (D / ε)) / Δ) <= γ).
Proof.
move/(_ _ _ _ 0 1 2 1 x0 (two 1 (- 1)) (pair 1 0) (V1 (- 1)) ord0 ord0 Rlt_0_1 ltac:(lra)
  (Rle_refl _) behind_1 at_minus_1 apart) => [H _]; move: H.
rewrite distance_two (_ : 0 * 0 - 0 * 1 = 0) ?exp_0 /share /=; last by ring.
move/(_ ltac:(lra)) => /(Rle_trans _ _ _ (Rmax_r _ _)).
rewrite (_ : (1 + 1 - 1) * (2 / 1) = 2); last by field.
by rewrite /Rdiv Rinv_1 Rmult_1_r -ln_1 => /(Rle_not_lt _ _); apply; apply: ln_increasing; lra.
Qed.

(* ε is 3/2: met at γ = −1/4 already, where 2/(1 + e^(−1/4)) < 3/2. *)
(* Mutant of selection_temperature_smallest: γ may be negative *)
Lemma not_smallest_below_zero : ~ (forall (dx dy N : nat) (γ Δ D ε : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (p : vec 'I_dy) (best i : 'I_N),
  0 < Δ -> 0 < ε < D ->
  (forall j : 'I_N, j != best -> r j = r best - Δ) -> (forall j : 'I_N, j != best -> y j = p) ->
  ‖p - y best‖ = D ->
  ‖selected γ x y r i - y best‖ <= ε
  <-> Rmax 0 (ln ((INR N - 1) * (D / ε - 1)) / Δ) <= γ).
Proof.
move/(_ _ _ _ (- / 4) 1 2 (3 / 2) x0 (two 1 (- 1)) (pair 1 0) (V1 (- 1)) ord0 ord0 Rlt_0_1
  ltac:(lra) behind_1 at_minus_1 apart) => [H _]; move: H; rewrite distance_two.
rewrite (_ : - / 4 * 0 - - / 4 * 1 = / 4) /share; last by field.
have e3 : exp (/ 4) < 3.
  have := exp_ineq1 (- / 4) ltac:(lra); rewrite exp_Ropp; have := exp_pos (/ 4).
  by move: (exp (/ 4)) => e e0; have : e * / e = 1; [field; lra | nra].
have e0 := exp_pos (/ 4); move: (exp _) e0 e3 => e e0 e3.
have le : 2 * (e / (1 + e)) <= 3 / 2.
  apply: (Rmult_le_reg_r (1 + e)); first by lra.
  by have -> : 2 * (e / (1 + e)) * (1 + e) = 2 * e; [field | ]; lra.
by move/(_ le) => /(Rle_trans _ _ _ (Rmax_l _ _)); lra.
Qed.

(* ── Rewards that tie ───────────────────────────────────────────────────────────────────────── *)

(* Two responses without dimension with the rewards a and b; only the first counts as a winner. *)
Definition none : 'I_2 -> vec 'I_0 := fun _ => vzero.
Definition first : pred 'I_2 := pred1 ord0.

Lemma card_first : #|first| = 1%N. Proof. exact: card1. Qed.

Lemma first_wins a b (j : 'I_2) : first j -> pair a b j = a.
Proof. by move=> /eqP ->. Qed.

Lemma second_behind (j : 'I_2) : ~~ first j -> pair 1 0 j + 1 <= 1.
Proof. by rewrite /pair /first /= => /negbTE ->; lra. Qed.

Lemma weight_0 γ a b i : sel_attention γ x0 none (pair a b) i ord0
  = 1 - share (exp (γ * b - γ * a)).
Proof.
by have : 1 - sel_attention γ x0 none (pair a b) i ord0 = _ := missed γ a b i; lra.
Qed.

Lemma weight_1 γ a b i : sel_attention γ x0 none (pair a b) i ord_max
  = share (exp (γ * b - γ * a)).
Proof.
have := softmax_sum (fun l => γ * pair a b l) ord0; rewrite sum_two.
by have := weight_0 γ a b i; rewrite !sel_softmax; lra.
Qed.

Lemma sum_second (F : 'I_2 -> R) : ∑_(j | ~~ first j) F j = F ord_max.
Proof. by rewrite big_mkcond sum_two /first /= Rplus_0_l. Qed.

Lemma share_1 : share 1 = / 2. Proof. by rewrite /share; field. Qed.

(* Mutant of selection_ties_outside: the fraction of the losers, not their odds *)
Lemma not_outside_by_the_fraction : ~ (forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i : 'I_N),
  0 <= γ -> (0 < #|winner|)%N -> (forall j, winner j -> r j = m) ->
  (forall j, ~~ winner j -> r j + Δ <= m) ->
  let w := INR #|winner| in
  let q := (INR N - w) / INR N * exp (- γ * Δ) in
  ∑_(j | ~~ winner j) sel_attention γ x y r i j <= q / (1 + q)).
Proof.
move/(_ _ _ _ 1 1 1 x0 none (pair 1 0) first ord0 Rle_0_1 ltac:(by rewrite card_first)
  (@first_wins _ _) second_behind); cbv zeta.
rewrite sum_second weight_1 card_first -/(share _); apply: Rlt_not_le; apply: share_lt.
  by have := exp_pos (- (1) * 1); rewrite /=; lra.
by rewrite (_ : 1 * 0 - 1 * 1 = - (1) * 1) /=; [have := exp_pos (- (1) * 1); lra | ring].
Qed.

(* Mutant of selection_ties_outside: winners of any reward *)
Lemma not_outside_of_any_set : ~ (forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i : 'I_N),
  0 <= γ -> (0 < #|winner|)%N -> (forall j, ~~ winner j -> r j + Δ <= m) ->
  let w := INR #|winner| in
  let q := (INR N - w) / w * exp (- γ * Δ) in
  ∑_(j | ~~ winner j) sel_attention γ x y r i j <= q / (1 + q)).
Proof.
have behind j : ~~ first j -> pair 0 1 j + 0 <= 1 by rewrite /pair; case: ifP => _ _; lra.
move/(_ _ _ _ 1 0 1 x0 none (pair 0 1) first ord0 Rle_0_1 ltac:(by rewrite card_first)
  behind); cbv zeta.
rewrite sum_second weight_1 card_first -/(share _) (_ : _ / _ * exp (- (1) * 0) = 1); last first.
  by rewrite Rmult_0_r exp_0 /=; field.
apply: Rlt_not_le; apply: share_lt; first by lra.
by have := exp_ineq1 (1 * 1 - 1 * 0) ltac:(lra); lra.
Qed.

(* Mutant of selection_ties_least: one response less *)
Lemma not_least_with_one_less : ~ (forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i j : 'I_N),
  0 <= γ -> winner j -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  let w := INR #|winner| in
  1 / (w + (INR N - 1 - w) * exp (- γ * Δ)) <= sel_attention γ x y r i j <= 1 / w).
Proof.
move/(_ _ _ _ 1 1 1 x0 none (pair 1 0) first ord0 ord0 Rle_0_1 isT (@first_wins _ _)
  second_behind); cbv zeta.
rewrite weight_0 card_first (_ : INR 2 - 1 - INR 1 = 0) /=; last by lra.
rewrite Rmult_0_l Rplus_0_r (_ : 1 / 1 = 1); last by field.
by have := share_gt0 (1 * 0 - 1 * 1); lra.
Qed.

(* Mutant of selection_ties_least: at most 1/N *)
Lemma not_most_of_all_responses : ~ (forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i j : 'I_N),
  0 <= γ -> winner j -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  let w := INR #|winner| in
  1 / (w + (INR N - w) * exp (- γ * Δ)) <= sel_attention γ x y r i j <= 1 / INR N).
Proof.
move/(_ _ _ _ 1 1 1 x0 none (pair 1 0) first ord0 ord0 Rle_0_1 isT (@first_wins _ _)
  second_behind) => [_]; rewrite weight_0.
have : share (exp (1 * 0 - 1 * 1)) < share 1.
  apply: share_lt; first exact: Rlt_le (exp_pos _).
  by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
by rewrite share_1 /=; lra.
Qed.

(* Limits: what tends to l does not tend to another number. *)
Lemma limit_once f (l k : R) : is_lim f p_infty l -> is_lim f p_infty k -> l = k.
Proof. by move=> /is_lim_unique El /is_lim_unique; rewrite El => -[]. Qed.

(* Mutant of selection_ties_limit: the gap may be zero *)
Lemma not_limit_without_gap : ~ (forall (w n Δ : R),
  0 < w -> 0 <= Δ -> is_lim (fun γ : R => 1 / (w + n * exp (- γ * Δ))) p_infty (1 / w)).
Proof.
move/(_ 1 1 0 Rlt_0_1 (Rle_refl _)) => /(limit_once (l := 1 / (1 + 1))).
suff lim : is_lim (fun γ => 1 / (1 + 1 * exp (- γ * 0))) p_infty (1 / (1 + 1)).
  by move/(_ lim); lra.
apply: (is_lim_ext (fun _ => 1 / (1 + 1))) (is_lim_const _ _) => γ.
by rewrite Rmult_0_r exp_0 Rmult_1_l.
Qed.

(* Mutant of selection_ties_limit: 1/(w + n), the value at γ = 0 *)
Lemma not_limit_at_zero : ~ (forall (w n Δ : R),
  0 < w -> 0 < Δ -> is_lim (fun γ : R => 1 / (w + n * exp (- γ * Δ))) p_infty (1 / (w + n))).
Proof.
move/(_ 1 1 1 Rlt_0_1 Rlt_0_1) => lim.
by have := limit_once (selection_ties_limit 1 Rlt_0_1 Rlt_0_1) lim; lra.
Qed.

(* Both responses have the reward 0, but only the first counts as a winner: its weight is 1/2. *)
(* Mutant of selection_ties_weights: the gap may be zero *)
Lemma not_weights_without_gap : ~ (forall (dx dy N : nat) (Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i j : 'I_N),
  0 <= Δ -> (0 < #|winner|)%N -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  is_lim (fun γ : R => sel_attention γ x y r i j) p_infty
    (if winner j then 1 / INR #|winner| else 0)).
Proof.
have tied (j : 'I_2) : ~~ first j -> pair 0 0 j + 0 <= 0 by rewrite /pair; case: ifP; lra.
move/(_ _ _ _ 0 0 x0 none (pair 0 0) first ord0 ord0 (Rle_refl _) ltac:(by rewrite card_first)
  (@first_wins _ _) tied); rewrite card_first => lim.
suff lim' : is_lim (fun γ => sel_attention γ x0 none (pair 0 0) ord0 ord0) p_infty (/ 2).
  by have := limit_once lim' lim; rewrite /=; lra.
apply: (is_lim_ext (fun _ => / 2)) (is_lim_const _ _) => γ.
by rewrite weight_0 Rminus_eq_0 exp_0 share_1; lra.
Qed.

(* Mutant of selection_ties_average: the average of all responses, not of the winners *)
Lemma not_average_of_all : ~ (forall (dx dy N : nat) (Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i : 'I_N) (c : 'I_dy),
  0 < Δ -> (0 < #|winner|)%N -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  is_lim (fun γ : R => selected γ x y r i c) p_infty (∑_j y j c / INR N)).
Proof.
have w0 : (0 < #|first|)%N by rewrite card_first.
move/(_ _ _ _ 1 1 x0 ends (pair 1 0) first ord0 ord0 Rlt_0_1 w0 (@first_wins _ _) second_behind).
move=> lim.
have := limit_once lim (@selection_ties_average _ _ _ 1 1 x0 ends (pair 1 0) first ord0 ord0
  Rlt_0_1 w0 (@first_wins _ _) second_behind).
rewrite card_first sum_two big_mkcond sum_two /= /ends /two /V1 pair_0 pair_1; lra.
Qed.

(* ── The head that weighs the field ─────────────────────────────────────────────────────────── *)

(* Tokens without dimension that hold 1 and the squares a and b. *)
Definition squares one a b (j : 'I_2) : token (fi_stream 0 0) :=
  fun k _ => match k with Fi.sq => pair a b j | Fi.one => one | _ => 0 end.

(* Mutant of beta_head_logits: the square of the query token *)
Lemma not_logits_with_own_square : ~ (forall (dx dy : nat) (W : mat dy dx) (T : finType)
    (X : T -> token (fi_stream dx dy)) (i j : T),
  X i Fi.one ord0 = 1 ->
  logit (beta_head W) X i j = 2 * ⟨W *v X i Fi.x, X j Fi.y⟩ - X i Fi.sq ord0).
Proof.
move/(_ 0%N 0%N vzero _ (squares 1 0 1) ord0 ord_max erefl).
by rewrite beta_head_logits // /squares pair_0 pair_1; lra.
Qed.

(* Mutant of beta_head_logits: a row of ones that does not hold one *)
Lemma not_field_logits_without_one : ~ (forall (dx dy : nat) (W : mat dy dx) (T : finType)
    (X : T -> token (fi_stream dx dy)) (i j : T),
  logit (beta_head W) X i j = 2 * ⟨W *v X i Fi.x, X j Fi.y⟩ - X j Fi.sq ord0).
Proof.
move/(_ 0%N 0%N vzero _ (squares 0 1 1) ord0 ord0).
by rewrite /logit /dot; blocks; rewrite !big_ord0 /squares pair_0; lra.
Qed.

(* The responses 0 and 1 at W = 0. *)
Lemma beta_zero_one i j : beta_attention (M1 0) (V1 1) (two 0 1) i j
  = exp (pair 0 (- 1) j) / (1 + exp (- 1)).
Proof.
rewrite beta_head_weights sum_two !score_two pair_0 pair_1.
have -> : - (0 * 1 - 0) ^ 2 = 0 by ring.
have -> : - (0 * 1 - 1) ^ 2 = - 1 by ring.
by rewrite exp_0; congr (exp _ / _); rewrite /pair; case: ifP => _; ring.
Qed.

Lemma exp_m1 : 0 < exp (- 1) < 1.
Proof. by split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; lra]. Qed.

(* Mutant of beta_head_weights: without the squares of the responses *)
Lemma not_weights_of_products : ~ (forall (dx dy N : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (i j : 'I_N),
  beta_attention W x y i j = exp (2 * ⟨W *v x, y j⟩) / ∑_l exp (2 * ⟨W *v x, y l⟩)).
Proof.
move/(_ _ _ _ (M1 0) (V1 1) (two 0 1) ord0 ord0); rewrite beta_zero_one sum_two !mulmv_1 !dot_1.
rewrite !Rmult_0_l Rmult_0_r !exp_0; have := exp_m1; move: (exp _) => e e01.
have : 1 / (1 + e) * (1 + e) = 1 by field; lra.
by move=> + E; rewrite E; lra.
Qed.

(* Mutant of beta_head_first_place: any place, not only the first *)
Lemma not_weights_of_every_place : ~ (forall (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_n.+1 -> vec 'I_dy) (τ : {perm 'I_n.+1}) (i j k : 'I_n.+1),
  beta_attention W x y i (τ j) = beta (fun l => score W x (y l)) τ k j).
Proof.
(* the response in the last place: with the other it gets less than all, alone it gets all *)
move/(_ _ _ _ (M1 0) (V1 1) (two 0 1) 1%g ord0 ord_max ord_max).
rewrite perm1 beta_zero_one pair_1 {1}/beta /= big_mkcond sum_two /= perm1 Rplus_0_l.
set s := exp (score _ _ _); have s0 : 0 < s by exact: exp_pos.
have -> : s / s = 1 by field; lra.
have := exp_m1; move: (exp _) => e e01.
have : e / (1 + e) * (1 + e) = e by field; lra.
by move=> + E; rewrite E; lra.
Qed.

(* Mutant of beta_head_first_place: by response, not by place *)
Lemma not_weights_by_response : ~ (forall (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_n.+1 -> vec 'I_dy) (τ : {perm 'I_n.+1}) (i j : 'I_n.+1),
  beta_attention W x y i j = beta (fun l => score W x (y l)) τ ord0 j).
Proof.
move/(_ _ _ _ (M1 0) (V1 1) (two 0 1) (tperm ord0 ord_max) ord0 ord0).
rewrite -(beta_head_first_place _ _ _ _ ord0) tpermL !beta_zero_one pair_0 pair_1 exp_0.
have := exp_m1; move: (exp _) => e e01 E.
have : 1 / (1 + e) * (1 + e) = e / (1 + e) * (1 + e) by rewrite E.
have -> : e / (1 + e) * (1 + e) = e by field; lra.
by have -> : 1 / (1 + e) * (1 + e) = 1; [field | ]; lra.
Qed.

(* Under the causal mask the first token sees only itself. *)
(* Mutant of beta_head_mean: the weights without the mask *)
Lemma not_mean_of_the_unseen : ~ (forall (dx dy : nat) (W : mat dy dx) (T : finType)
    (sees : rel T) (X : T -> token (fi_stream dx dy)) (i : T) (c : 'I_dy),
  head_output sees (beta_head W) X i Fi.mean c
  = ∑_j (attention full (beta_head W) X i j * X j Fi.y c)).
Proof.
move/(_ _ _ (M1 0) _ (@causal 2) (fi_prompt (V1 1) (two 0 1)) ord0 ord0).
rewrite beta_head_mean !sum_two -![attention full _ _ _ _]/(beta_attention _ _ _ _ _).
rewrite [attention _ _ _ _ ord_max]/attention /= !beta_zero_one /two /V1 pair_0 !pair_1.
have [e0 e1] := exp_m1; have := Rdiv_lt_0_compat _ (1 + exp (- 1)) e0 ltac:(lra).
by rewrite [0 / _]Rmult_0_l; lra.
Qed.

(* Mutant of beta_head_tail_mean: any place, not only the first *)
Lemma not_mean_of_every_tail : ~ (forall (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_n.+1 -> vec 'I_dy) (τ : {perm 'I_n.+1}) (i k : 'I_n.+1),
  run full [:: Block [:: beta_head W] None] (fi_prompt x y) i Fi.mean = tail_mean W x y τ k).
Proof.
move/(_ _ _ _ (M1 0) (V1 1) ends 1%g ord0 ord_max); rewrite (beta_head_tail_mean _ _ _ 1%g).
rewrite tail_mean_two; last by ring.
have [-> _] := @pl_last_term _ _ _ (M1 0) (V1 1) ends 1%g ord_max 0 erefl.
by rewrite perm1 => /(f_equal (fun v => v ord0)); rewrite /ends /two /V1 pair_1; lra.
Qed.

(* Mutant of beta_head_width: the rows of W_Q, not of W_K *)
Lemma not_orthonormal_queries : ~ (forall (dx dy : nat) (W : mat dy dx),
  let K := W_Q (beta_head W) in
  let times (k l : Fi.key) (c : 'I_(@width (fi_keys dy) k)) (d : 'I_(@width (fi_keys dy) l)) :=
    ∑_(b <- rows (fi_stream dx dy)) ∑_e (K k b c e * K l b d e) in
  (\sum_(k <- rows (fi_keys dy)) width k = dy + 1)%N
  /\ (forall c d, times Fi.shaped Fi.shaped c d = identity 1 c d)
  /\ (forall c d, times Fi.squared Fi.squared c d = identity 1 c d)
  /\ (forall c d, times Fi.shaped Fi.squared c d = 0)).
Proof.
move/(_ _ _ (M1 1)) => /= [_ [/(_ ord0 ord0) + _]]; rewrite /= /identity eqxx.
by rewrite !big_cons big_nil !sum_ord1 /zero /M1; lra.
Qed.

(* Mutant of beta_head_width: keys as wide as the responses, d_y (the width alone) *)
Lemma not_as_wide_as_the_responses : ~ (forall (dx dy : nat) (W : mat dy dx),
  (\sum_(k <- rows (fi_keys dy)) width k = dy)%N).
Proof. by move/(_ _ _ (M1 1)); rewrite !big_cons big_nil. Qed.
