(* Statements that are not theorems, of chapter 7: one prompt for several queries, and one step on
   the losses of several. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp Weights Transformer AlignmentTask.
From Icalign Require Import GradientStep Convexity QuerySelection QueryBound QueryGradient.
From Icalign Require Import Smoothness Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Two queries, two responses to each ─────────────────────────────────────────────────────── *)

(* The rewards p and q of the first query, s and t of the second. *)
Definition grid (p q s t : R) (a j : 'I_2) : R := pair (pair p q j) (pair s t j) a.

(* What the first query, 1, looks like to itself and to the second, 0. *)
Lemma first_unit : ‖two 1 0 ord0‖ = 1. Proof. by rewrite vnorm_1 pair_0 Rabs_R1. Qed.

Lemma first_apart b : b != ord0 -> ⟨two 1 0 ord0, two 1 0 b⟩ <= 0.
Proof. by move=> b0; rewrite dot_1 pair_0 /pair (negbTE b0); lra. Qed.

Lemma grid_gap s t (j : 'I_2) : j != ord0 -> grid 1 0 s t ord0 j + 1 <= grid 1 0 s t ord0 ord0.
Proof. by move=> j0; rewrite /grid /pair eqxx (negbTE j0); lra. Qed.

Lemma grid_range low high p q s t (b j : 'I_2) : low <= p <= high -> low <= q <= high ->
  low <= s <= high -> low <= t <= high -> low <= grid p q s t b j <= high.
Proof. by rewrite /grid /pair; case: (b == _); case: (j == _). Qed.

(* The weights that a token of the first query gives, as multiples of what it gives its winner. *)
Section Four.
Variables (dy : nat) (γ1 γ2 p q s t : R) (y : 'I_2 -> 'I_2 -> vec 'I_dy) (i : 'I_2).
Let A := mq_attention γ1 γ2 (two 1 0) y (grid p q s t) (ord0, i).

Lemma missed_four : 1 - A (ord0, ord0)
  = share (exp (γ2 * (q - p)) + (exp (γ2 * (s - p) - γ1) + exp (γ2 * (t - p) - γ1))).
Proof.
rewrite /A mq_softmax softmax_miss /crowd sum_own_others; congr share.
rewrite !(big_mkcond (fun b => b != ord0)) !sum_two /= !Rplus_0_l !dot_1 /grid !pair_0 !pair_1.
by congr (exp _ + (exp _ + exp _)); rewrite ?pair_0 ?pair_1; ring.
Qed.

Lemma loser_four : A (ord0, ord_max) = exp (γ2 * (q - p)) * A (ord0, ord0).
Proof.
rewrite /A !mq_softmax /softmax /Rdiv -Rmult_assoc -exp_plus; congr (exp _ * _).
by rewrite /= /grid !pair_0 !pair_1; ring.
Qed.

Lemma winner_four : 0 < A (ord0, ord0).
Proof. by rewrite /A mq_softmax; exact: softmax_gt0. Qed.
End Four.

(* Rewards 1 and 0, and 3 and 3. At γ₁ = ln 8 and γ₂ = ln 4 the first query's loser weighs a quarter
   of its winner, and either response to the second twice as much: the winner keeps 4/21. *)
Definition loud := grid 1 0 3 3.

Lemma exp_own : exp (ln 4 * (0 - 1)) = / 4.
Proof. by rewrite (_ : _ * _ = - ln 4) ?exp_Ropp ?exp_ln; lra. Qed.

Lemma exp_loud : exp (ln 4 * (3 - 1) - ln 8) = 2.
Proof.
rewrite (_ : _ - _ = ln 4 + ln 4 + - ln 8); last by ring.
by rewrite !exp_plus exp_Ropp !exp_ln; lra.
Qed.

Lemma missed_loud dy (y : 'I_2 -> 'I_2 -> vec 'I_dy) i :
  1 - mq_attention (ln 8) (ln 4) (two 1 0) y loud (ord0, i) (ord0, ord0) = 17 / 21.
Proof. by rewrite missed_four exp_own exp_loud /share; field. Qed.

Lemma ln_gt0 v : 1 < v -> 0 < ln v.
Proof. by move=> v1; rewrite -ln_1; apply: ln_increasing; lra. Qed.

Lemma ln8_ge0 : 0 <= ln 8. Proof. by left; apply: ln_gt0; lra. Qed.
Lemma ln4_ge0 : 0 <= ln 4. Proof. by left; apply: ln_gt0; lra. Qed.

Lemma loud_range b j : 0 <= loud b j <= 0 + 3.
Proof. by apply: grid_range; lra. Qed.

(* The responses: to the first query 0, to the second 1. What a token of the first query finds. *)
Definition apart (a _ : 'I_2) : vec 'I_1 := two 0 1 a.

Lemma selected_apart γ1 γ2 p q s t i :
  let A := mq_attention γ1 γ2 (two 1 0) apart (grid p q s t) (ord0, i) in
  (mq_selected γ1 γ2 (two 1 0) apart (grid p q s t) (ord0, i) - apart ord0 ord0)%V
  = V1 (1 - A (ord0, ord0) - A (ord0, ord_max)).
Proof.
move=> A; apply: vec_eq => c; rewrite mq_output /vsub /comb.
pose z (u : 'I_2 * 'I_2) := γ1 * ⟨two 1 0 ord0, two 1 0 u.1⟩ + γ2 * grid p q s t u.1 u.2.
rewrite -(sum_pair (fun a j => softmax z (a, j) * apart a j c)) !sum_two /apart /two /V1.
have := softmax_sum z (ord0, ord0); rewrite (eq_bigr (fun u => softmax z (u.1, u.2))); last by case.
rewrite -(sum_pair (fun a j => softmax z (a, j))) !sum_two /A !mq_softmax -/z pair_0 pair_1.
by move: (softmax _ _) (softmax _ _) (softmax _ _) (softmax _ _) => u v u' v'; lra.
Qed.

(* What the other query has of it is not zero. *)
Lemma selected_apart_far γ1 γ2 p q s t i :
  0 < ‖mq_selected γ1 γ2 (two 1 0) apart (grid p q s t) (ord0, i) - apart ord0 ord0‖.
Proof.
rewrite selected_apart vnorm_1 loser_four; apply: Rabs_pos_lt.
have := missed_four γ1 γ2 p q s t apart i; have := winner_four γ1 γ2 p q s t apart i.
move: (mq_attention _ _ _ _ _ _ _) (exp_pos (γ2 * (q - p))) => w.
move: (exp_pos (γ2 * (s - p) - γ1)) (exp_pos (γ2 * (t - p) - γ1)).
move: (exp _) (exp _) (exp _) => f g e f0 g0 e0 w0; rewrite /share => m.
have {}m : w * (1 + (e + (f + g))) = 1.
  by have -> : w = 1 - (1 - w) by [ring]; rewrite m; field; lra.
by nra.
Qed.

Lemma apart_0 i j : ‖apart ord0 i - apart ord0 j‖ <= 0.
Proof. by rewrite -[(_ - _)%V]/(V1 (pair 0 1 ord0 - pair 0 1 ord0)) vnorm_1; split_Rabs; lra. Qed.

Lemma apart_1 b i j : ‖apart b i - apart ord0 j‖ <= 1.
Proof. by apply: spread_two; split_Rabs; lra. Qed.

(* ── How much attention stays with the right winner ─────────────────────────────────────────── *)

(* Mutant of mq_bound: the spread of the rewards left out; here a miss of 17/21, not 1/4 + 2/8 *)
Lemma not_query_bound_without_the_spread : ~ (forall (dx dy M N : nat) (γ1 γ2 Δ ρ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a : 'I_M)
    (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - mq_attention γ1 γ2 x y r (a, s) (a, best)
  <= (INR N - 1) * exp (- γ2 * Δ) + (INR M - 1) * INR N * exp (- (γ1 * (1 - ρ)))).
Proof.
move/(_ _ _ _ _ (ln 8) (ln 4) 1 0 0 3 (two 1 0) apart loud ord0 ord0 ord0) => H.
have := H ln8_ge0 ln4_ge0 first_unit first_apart (@grid_gap 3 3) loud_range.
rewrite missed_loud Rminus_0_r !Rmult_1_r !exp_Ropp !exp_ln /=; lra.
Qed.

(* Rewards 1 and 0, and 1 and 1. *)
Lemma quiet_range b j : 0 <= grid 1 0 1 1 b j <= 0 + 1.
Proof. by apply: grid_range; lra. Qed.

(* Mutant of mq_bound_not_enough: N losers, not N − 1 *)
Lemma not_as_many_losers_as_responses : ~ (forall (dx dy M N : nat) (γ2 low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  (2 <= N)%N -> 0 <= γ2 -> (forall b j, low <= r b j <= low + spread) ->
  let p := INR N * exp (- γ2 * spread) in
  0 < p / (1 + p) /\ forall γ1,
  let A := mq_attention γ1 γ2 x y r (a, s) in
  p * A (a, best) <= ∑_(j | j != best) A (a, j) /\ p / (1 + p) <= 1 - A (a, best)).
Proof.
move/(_ _ _ _ 2%N 1 0 1 (two 1 0) apart (grid 1 0 1 1) ord0 ord0 ord0 isT Rle_0_1) => H.
have [_ /(_ 0) [+ _]] := H quiet_range.
rewrite big_mkcond sum_two Rplus_0_l loser_four.
have -> : - (1) * 1 = 1 * (0 - 1) by ring.
have := winner_four 0 1 1 0 1 1 apart ord0; have := exp_pos (1 * (0 - 1)).
by move: (exp _) (mq_attention _ _ _ _ _ _ _) => e w e0 w0 /=; nra.
Qed.

(* Mutant of mq_bound_losers: at every γ₁ what holds as it grows, without the leak *)
Lemma not_the_limit_at_every_temperature : ~ (forall (dx dy M N : nat) (γ1 γ2 ρ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  (2 <= N)%N -> 0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 ->
  (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b j, low <= r b j <= low + spread) ->
  let p := (INR N - 1) * exp (- γ2 * spread) in
  p / (1 + p) <= ∑_(j | j != best) mq_attention γ1 γ2 x y r (a, s) (a, j)).
Proof.
move/(_ _ _ _ 2%N 1 1 0 0 1 (two 1 0) apart (grid 1 0 1 1) ord0 ord0 ord0 isT) => H.
have {H} := H Rle_0_1 Rle_0_1 first_unit first_apart quiet_range.
rewrite big_mkcond sum_two Rplus_0_l loser_four /=.
have -> : - (1) * 1 = 1 * (0 - 1) by ring.
have := missed_four 1 1 1 0 1 1 apart ord0; rewrite /share.
move: (mq_attention _ _ _ _ _ _ _) (exp_pos (1 * (0 - 1))) (exp_pos (1 * (1 - 1) - 1)) => w.
move: (exp _) (exp _) => f e e0 f0 m; have -> : w = / (1 + e + (f + f)).
  have -> : w = 1 - (1 - w) by ring.
  by rewrite m; field; lra.
rewrite (_ : 1 + 1 - 1 = 1) /Rdiv ?Rmult_1_l; last by ring.
have : / (1 + e + (f + f)) < / (1 + e) by apply: Rinv_lt_contravar; nra.
by nra.
Qed.

(* Mutant of mq_bound_temperatures: γ₁ without the spread; here ε = 1/2, and a miss of 17/21 *)
Lemma not_cold_without_the_spread : ~ (forall (dx dy M N : nat) (Δ ρ low spread ε : R),
  (2 <= M)%N -> (2 <= N)%N -> 0 < Δ -> ρ < 1 -> 0 < ε ->
  let γ2 := ln (2 * (INR N - 1) / ε) / Δ in
  let γ1 := ln (2 * (INR M - 1) * INR N / ε) / (1 - ρ) in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - mq_attention γ1 γ2 x y r (a, s) (a, best) <= ε).
Proof.
move/(_ 1%N 1%N 2%N 2%N 1 0 0 3 (/ 2) isT isT Rlt_0_1 Rlt_0_1 ltac:(lra)); cbv zeta.
have -> : ln (2 * (INR 2 - 1) / / 2) / 1 = ln 4.
  by rewrite /Rdiv Rinv_1 Rmult_1_r /=; congr ln; field.
have -> : ln (2 * (INR 2 - 1) * INR 2 / / 2) / (1 - 0) = ln 8.
  by rewrite /Rdiv Rminus_0_r Rinv_1 Rmult_1_r /=; congr ln; field.
move/(_ (two 1 0) apart loud ord0 ord0 ord0 first_unit first_apart (@grid_gap 3 3) loud_range).
by rewrite missed_loud; lra.
Qed.

(* ── What every column receives ─────────────────────────────────────────────────────────────── *)

(* Mutant of mq_outcome: D and D₀ exchanged; here D = 0 and D₀ = 1, and 16/21 away, not 1/4 *)
Lemma not_outcome_exchanged : ~ (forall (dx dy M N : nat) (γ1 γ2 Δ ρ low spread D D0 : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) -> (forall b i j, ‖y b i - y a j‖ <= D0) ->
  ‖mq_selected γ1 γ2 x y r (a, s) - y a best‖
  <= D0 * ((INR N - 1) * exp (- γ2 * Δ))
     + D * ((INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ2 * spread)))).
Proof.
move/(_ _ _ _ _ (ln 8) (ln 4) 1 0 0 3 0 1 (two 1 0) apart loud ord0 ord0 ord0) => H.
have := H ln8_ge0 ln4_ge0 first_unit first_apart (@grid_gap 3 3) loud_range apart_0 apart_1.
rewrite selected_apart vnorm_1 loser_four exp_own; have := missed_loud apart ord0.
rewrite /loud; move: (mq_attention _ _ _ _ _ _ _) => w m.
have -> : 1 - w - / 4 * w = 16 / 21 by lra.
rewrite Rabs_pos_eq; last by lra.
by rewrite Rmult_0_l Rmult_1_r exp_Ropp exp_ln /=; lra.
Qed.

(* Mutant of mq_outcome_limit: D for D₀; here D = 0 < D₀, and the other query leaks *)
Lemma not_outcome_within_the_query : ~ (forall (dx dy M N : nat) (Δ ρ low spread D D0 ε : R),
  (2 <= M)%N -> (2 <= N)%N -> 0 < Δ -> ρ < 1 -> 0 < ε ->
  let γ2 := ln (2 * (INR N - 1) / ε) / Δ in
  let γ1 := (γ2 * spread + ln (2 * (INR M - 1) * INR N / ε)) / (1 - ρ) in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) -> (forall b i j, ‖y b i - y a j‖ <= D0) ->
  ‖mq_selected γ1 γ2 x y r (a, s) - y a best‖ <= (D + D) * ε / 2).
Proof.
move/(_ 1%N 1%N 2%N 2%N 1 0 0 3 0 1 1 isT isT Rlt_0_1 Rlt_0_1 Rlt_0_1); cbv zeta; set γ2 := _ / 1.
set γ1 := _ / (1 - 0) => /(_ (two 1 0) apart loud ord0 ord0 ord0 first_unit first_apart).
move/(_ (@grid_gap 3 3) loud_range apart_0 apart_1).
by have := selected_apart_far γ1 γ2 1 0 3 3 ord0; rewrite -/loud; lra.
Qed.

(* ── Similar queries ────────────────────────────────────────────────────────────────────────── *)

Definition opposite := two 1 (- 1).

Lemma opposite_unit c : ‖opposite c‖ = 1.
Proof. by rewrite vnorm_1 /pair; case: ifP => _; split_Rabs; lra. Qed.

Lemma opposite_apart (c d : 'I_2) : c != d -> ⟨opposite c, opposite d⟩ = - 1.
Proof.
by case: c d => [[|[|c]] pc] [[|[|d]] pd] // _; rewrite dot_1 /pair /=; lra.
Qed.

Lemma both_gap (c j : 'I_2) : j != ord0 -> grid 1 0 1 0 c j + 1 <= grid 1 0 1 0 c ord0.
Proof. by move=> j0; rewrite /grid /pair eqxx (negbTE j0); case: ifP; lra. Qed.

(* Mutant of mq_duplicates_growth: ρ a bound that no two queries attain; here −1, and 0.77 for ρ *)
Lemma not_growing_with_an_upper_bound : ~ (forall (dx dy M N : nat) (Δ low spread ε : R),
  (2 <= N)%N -> 0 < Δ -> 0 < ε < 1 / 2 ->
  let γ := ln (2 * (INR N - 1) / ε) / Δ in
  let enough := γ * spread + ln (2 * (INR M - 1) * INR N / ε) in
  let least := ln (1 / ε - 1) in
  0 < least /\ forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (ρ : R) (a b : 'I_M),
  (forall c, ‖x c‖ = 1) -> (forall c d : 'I_M, c != d -> ⟨x c, x d⟩ <= ρ) -> ρ < 1 ->
  (forall (c : 'I_M) (j : 'I_N), j != best c -> r c j + Δ <= r c (best c)) ->
  (forall c j, low <= r c j <= low + spread) ->
  a != b ->
  (forall γ1, enough / (1 - ρ) <= γ1 -> winners_keep ε γ1 γ x y r best)
  /\ (forall γ1 γ2, winners_keep ε γ1 γ2 x y r best -> least / (1 - ρ) <= γ1)).
Proof.
have range b j : 0 <= grid 1 0 1 0 b j <= 0 + 1 by apply: grid_range; lra.
have ε4 : 0 < / 4 < 1 / 2 by lra.
move/(_ 1%N 1%N 2%N 2%N 1 0 1 (/ 4) isT Rlt_0_1 ε4); cbv zeta => -[_].
have := @mq_duplicates_growth 1 1 2 2 1 0 1 (/ 4) isT Rlt_0_1 ε4; cbv zeta => -[].
set γ := ln _ / 1; set enough := γ * 1 + _; set least := ln _ => least0 true false.
have le : least <= enough.
  have γ0 : 0 < γ by rewrite /γ /Rdiv Rinv_1 Rmult_1_r; apply: ln_gt0; rewrite /=; lra.
  suff : least < ln (2 * (INR 2 - 1) * INR 2 / / 4) by rewrite /enough; lra.
  by apply: ln_increasing; rewrite /=; lra.
have q0 : 0 < least / enough by apply: Rdiv_lt_0_compat; lra.
have q1 : least / enough <= 1.
  by apply: (Rmult_le_reg_r enough); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
have apart_opp c d : c != d -> ⟨opposite c, opposite d⟩ <= - 1 by move/opposite_apart->; lra.
have [keep _] := true opposite apart _ (fun=> ord0) (- 1) ord0 ord_max opposite_unit apart_opp
  ltac:(lra) both_gap range isT (@opposite_apart ord0 ord_max isT).
have below c d : c != d -> ⟨opposite c, opposite d⟩ <= 1 - least / enough.
  by move/opposite_apart->; lra.
have [_ /(_ (enough / 2) γ)] := false opposite apart _ (fun=> ord0) _ ord0 ord_max opposite_unit
  below ltac:(lra) both_gap range isT.
have -> : least / (1 - (1 - least / enough)) = enough by field; lra.
suff kept : winners_keep (/ 4) (enough / 2) γ opposite apart (grid 1 0 1 0) (fun=> ord0).
  by move/(_ kept); lra.
by apply: keep; lra.
Qed.

(* ── The gradient step on the losses of several queries ─────────────────────────────────────── *)

(* The responses a and −a to each of two queries u and v, at the weights 0. *)
Definition same (a : R) (_ : 'I_2) : 'I_2 -> vec 'I_1 := two a (- a).
Definition orders (_ : 'I_2) : {perm 'I_2} := 1%g.

Lemma pull_zero x a : pull (M1 0) (V1 x) (two a (- a)) 1%g = V1 a.
Proof.
apply: vec_eq => c; rewrite /pull /vsum big_mkcond sum_two /= /vsub tail_mean_two; last by ring.
by rewrite perm1 /two /V1 pair_0; field.
Qed.

Lemma joint_two u v a : joint_gradient (M1 0) (two u v) (same a) orders = M1 (- 2 * a * (u + v)).
Proof.
apply: vec_eq => c; rewrite /joint_gradient /comb sum_two /two pair_0 pair_1 /same /orders.
by rewrite !gradient_two; try ring; rewrite /M1; ring.
Qed.

Lemma step_two u v a x : ((- (1)) *: joint_gradient (M1 0) (two u v) (same a) orders *v V1 x)%V
  = V1 (2 * a * (u + v) * x).
Proof. by rewrite joint_two M1_scal mulmv_1; congr V1; ring. Qed.

(* Mutant of mq_gradient_slope: the mean of the losses, not their sum *)
Lemma not_slope_of_the_mean : ~ (forall (m n M N : nat) (x : 'I_M -> vec 'I_n)
    (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (W V : mat m n),
  is_derive (fun t => (∑_b loss (W + t *: V) (x b) (y b) (τ b)) / INR M) 0
    ⟨joint_gradient W x y τ, V⟩).
Proof.
move/(_ _ _ _ _ (two 1 1) (same 1) orders (M1 0) (M1 1)) => /is_derive_unique.
have D := mq_gradient_slope (two 1 1) (same 1) orders (M1 0) (M1 1).
rewrite (is_derive_unique _ _ _ (is_derive_scal_l _ 0 _ (/ INR 2) D)) joint_two dot_M1.
rewrite /scal /= /mult /=; lra.
Qed.

(* Mutant of mq_gradient: every query pulls in full, whatever its inner product with x^a; here 0 *)
Lemma not_gradient_without_inner_products : ~ (forall (m n M N : nat) (η : R) (W : mat m n)
    (x : 'I_M -> vec 'I_n) (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (a : 'I_M),
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let G b := pull W (x b) (y b) (τ b) in
  (ΔW *v x a = (2 * η) *: comb (fun _ => 1) G)%V).
Proof.
move/(_ _ _ _ _ 1 (M1 0) (two 1 0) (same 1) orders ord0); cbv zeta.
rewrite step_two => /(f_equal (fun v => v ord0)).
by rewrite /vscal /comb sum_two !pull_zero /V1 pair_0; lra.
Qed.

(* Mutant of mq_own_term_iff: queries of any length; here 2 and 0 *)
Lemma not_own_term_of_any_length : ~ (forall (m n M N : nat) (η : R) (W : mat m n)
    (x : 'I_M -> vec 'I_n) (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}),
  η <> 0 ->
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let G b := pull W (x b) (y b) (τ b) in
  (forall a, (ΔW *v x a = (2 * η) *: G a)%V)
  <-> (forall a c, ∑_(b | b != a) (⟨x b, x a⟩ * G b c) = 0)).
Proof.
move/(_ _ _ _ _ 1 (M1 0) (two 2 0) (same 1) orders R1_neq_R0) => [_ H].
have /H /(_ ord0) : forall a c : 'I__, ∑_(b | b != a)
    (⟨two 2 0 b, two 2 0 a⟩ * pull (M1 0) (two 2 0 b) (same 1 b) (orders b) c) = 0.
  by case=> [[|[|a]] pa] // c; rewrite big_mkcond sum_two /= !dot_1 /pair /=; ring.
by rewrite step_two pull_zero => /(f_equal (fun v => v ord0)); rewrite /vscal /V1 pair_0; lra.
Qed.

(* Three queries in two dimensions, the third 3/5 along the first and 4/5 along the second; what
   they pull, 4, −3 and 0, is such that the strangers of the third cancel. *)
Definition slanted (b : 'I_3) : vec 'I_2 :=
  pair (nth 0 [:: 1; 0; 3 / 5] b) (nth 0 [:: 0; 1; 4 / 5] b).
Definition pulls (b : 'I_3) : R := nth 0 [:: 4; - 3; 0] b.
Definition flat : mat 1 2 := fun _ => 0.

Lemma slanted_dot b c : ⟨slanted b, slanted c⟩ = slanted b ord0 * slanted c ord0
  + slanted b ord_max * slanted c ord_max.
Proof. exact: sum_two. Qed.

Lemma pull_flat x a : pull flat x (two a (- a)) 1%g = V1 a.
Proof.
have s j : score flat x (two a (- a) j) = - a ^ 2.
  have W0 : (flat *v x = vzero)%V by apply: vec_eq => c; rewrite /mulmv sum_two /flat /vzero; ring.
  rewrite pl_shift_reduced /reduced W0 !dot_zerol.
  rewrite -[‖vzero‖²]/(⟨vzero, vzero⟩) dot_zerol -[two _ _ _]/(V1 _).
  by rewrite !sqnorm_1 /pair; case: ifP => _; ring.
apply: vec_eq => c; rewrite /pull /vsum big_mkcond sum_two /= /vsub /tail_mean /comb sum_two.
rewrite /beta /= sum_two !s !perm1 /two /V1 pair_0 pair_1.
by field; have := exp_pos (- a ^ 2); lra.
Qed.

(* Mutant of mq_own_term_iff: orthogonal queries, not a sum of 0; here two strangers cancel *)
Lemma not_own_term_of_orthogonal_only : ~ (forall (m n M N : nat) (η : R) (W : mat m n)
    (x : 'I_M -> vec 'I_n) (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}),
  η <> 0 -> (forall a, ‖x a‖ = 1) ->
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let G b := pull W (x b) (y b) (τ b) in
  (forall a, (ΔW *v x a = (2 * η) *: G a)%V)
  <-> (forall a b : 'I_M, b != a -> ⟨x b, x a⟩ = 0)).
Proof.
pose y (b : 'I_3) := two (pulls b) (- pulls b).
have unit b : ‖slanted b‖ = 1.
  rewrite /vnorm /sqnorm slanted_dot -[X in _ = X]sqrt_1; congr sqrt.
  by case: b => [[|[|[|b]]] pb] //; rewrite /slanted /pair /=; field.
have cancel a c : ∑_(b | b != a) (⟨slanted b, slanted a⟩
    * pull flat (slanted b) (y b) (1%g : {perm 'I_2}) c) = 0.
  rewrite big_mkcond !big_ord_recl big_ord0 !pull_flat !slanted_dot /V1 /pulls.
  by case: a => [[|[|[|a]]] pa] //; rewrite /slanted /pair /=; field.
have [_ own] := mq_own_term_iff flat y (fun _ => 1%g : {perm 'I_2}) R1_neq_R0 unit.
move/(_ _ _ _ _ 1 flat slanted y (fun _ => 1%g) R1_neq_R0 unit) => [/(_ (own cancel)) H _].
by have := H ord0 ord_max isT; rewrite slanted_dot /slanted /pair /=; lra.
Qed.

(* Mutant of mq_own_term_orthonormal: unit queries that only differ; here 1 and −1 *)
Lemma not_own_term_of_distinct : ~ (forall (m n M N : nat) (η : R) (W : mat m n)
    (x : 'I_M -> vec 'I_n) (y : 'I_M -> 'I_N -> vec 'I_m) (τ : 'I_M -> {perm 'I_N}) (a : 'I_M),
  (forall b, ‖x b‖ = 1) -> (forall b c : 'I_M, b != c -> x b <> x c) ->
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  (ΔW *v x a = (2 * η) *: pull W (x a) (y a) (τ a))%V).
Proof.
have differ (b c : 'I_2) : b != c -> opposite b <> opposite c.
  by move/opposite_apart => + E; rewrite E dot_1; nra.
move/(_ _ _ _ _ 1 (M1 0) opposite (same 1) orders ord0 opposite_unit differ); cbv zeta.
by rewrite step_two pull_zero => /(f_equal (fun v => v ord0)); rewrite /vscal /V1; lra.
Qed.
