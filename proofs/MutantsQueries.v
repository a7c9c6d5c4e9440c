(* Statements that are not theorems, of chapter 7: which tokens of a prompt of several queries have
   the largest logits, and identifiers of queries. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.
From Icalign Require Import QuerySelection QueryBound QueryIds Smoothness Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Two queries in one dimension; the responses have none. *)
Definition empty {M N : nat} : 'I_M -> 'I_N -> vec 'I_0 := fun _ _ => vzero.
Definition level {M N : nat} (c : R) : 'I_M -> 'I_N -> R := fun _ _ => c.

Lemma dot_two a b (i j : 'I_2) : ⟨two a b i, two a b j⟩ = pair a b i * pair a b j.
Proof. exact: dot_1. Qed.

Lemma sqnorm_two a b (i : 'I_2) : ‖two a b i‖² = pair a b i * pair a b i.
Proof. exact: sqnorm_1. Qed.

Lemma norm_two a b (i : 'I_2) : ‖two a b i‖ = Rabs (pair a b i).
Proof. exact: vnorm_1. Qed.

Lemma unit_poles (i : 'I_2) : ‖two 1 (- 1) i‖ = 1.
Proof. by rewrite norm_two /pair; case: ifP => _; split_Rabs; lra. Qed.

Lemma two_apart a b : a <> b -> forall i j : 'I_2, i != j -> two a b i <> two a b j.
Proof.
move=> ab [[|[|i]] pi] [[|[|j]] pj] //= _ /(f_equal (fun v => v ord0)).
  by rewrite /two /V1 /pair /=.
by rewrite /two /V1 /pair /= => E; apply: ab.
Qed.

Lemma one_response (i j : 'I_1) : i != j -> False.
Proof. by rewrite !ord1 eqxx. Qed.

(* The rewards 1 and 0. *)
Lemma pair_top (i : 'I_2) : i != ord0 -> pair 1 0 i < pair 1 0 ord0.
Proof. by move=> i0; rewrite /pair (negbTE i0) /=; lra. Qed.

Lemma pair_bottom (i : 'I_2) : pair 1 0 ord_max <= pair 1 0 i.
Proof. by rewrite /pair /=; case: ifP; lra. Qed.

(* Mutant of mq_logits_prompt: the reward of the token that asks *)
Lemma not_reward_of_the_asker : ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (i j : 'I_N),
  mq_logit γ1 γ2 x y r (a, i) (b, j) = γ1 * ⟨x a, x b⟩ + γ2 * r a i).
Proof.
move/(_ _ _ _ 1%N 0 1 (two 1 (- 1)) empty (fun a _ => pair 1 0 a) ord0 ord_max ord0 ord0).
by rewrite mq_logits_prompt pair_0 pair_1; lra.
Qed.

(* Mutant of mq_chain_first_link: γ₂ may be zero *)
Lemma not_first_link_without_rewards :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a : 'I_M) (best s : 'I_N),
  0 <= γ2 -> (forall i : 'I_N, i != best -> r a i < r a best) ->
  forall i : 'I_N, i != best ->
  mq_logit γ1 γ2 x y r (a, s) (a, i) < mq_logit γ1 γ2 x y r (a, s) (a, best)).
Proof.
move/(_ _ _ 1%N _ 1 0 (fun _ => V1 1) empty (fun _ => pair 1 0) ord0 ord0 ord0 (Rle_refl 0)
  pair_top ord_max isT).
by rewrite !mq_logits_prompt; lra.
Qed.

(* Mutant of mq_chain_pair: a query of any length *)
Lemma not_pair_at_any_length : ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (s i j : 'I_N),
  0 < γ2 -> ⟨x a, x b⟩ < 1 ->
  mq_logit γ1 γ2 x y r (a, s) (b, j) < mq_logit γ1 γ2 x y r (a, s) (a, i)
  <-> (r b j - r a i) / (1 - ⟨x a, x b⟩) < γ1 / γ2).
Proof.
have lt : ⟨two (/ 2) 1 ord0, two (/ 2) 1 ord_max⟩ < 1 by rewrite dot_two pair_0 pair_1; lra.
move/(_ _ _ _ 1%N 1 1 (two (/ 2) 1) empty (level 0) ord0 ord_max ord0 ord0 ord0 Rlt_0_1 lt).
rewrite !mq_logits_prompt !dot_two pair_0 pair_1 /level => -[_ H].
by have : / 2 < / 2 * / 2; [have := H ltac:(lra) | ]; lra.
Qed.

(* Mutant of mq_chain: the best response in place of the worst, as in the critical ratio *)
Lemma not_chain_at_the_critical_ratio : ~ (forall (dx dy M N : nat) (γ1 γ2 : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (best worst : 'I_M -> 'I_N) (s : 'I_N),
  (2 <= N)%N -> 0 < γ2 -> (forall a, ‖x a‖ = 1) -> (forall a b : 'I_M, a != b -> x a <> x b) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i < r a (best a)) ->
  (forall a i, r a (worst a) <= r a i) ->
  let at_a a b j := mq_logit γ1 γ2 x y r (a, s) (b, j) in
  (forall (a : 'I_M) (i : 'I_N), i != best a -> at_a a a i < at_a a a (best a)
     /\ forall (b : 'I_M) j, b != a -> at_a a b j < at_a a a i)
  <-> (forall a b : 'I_M, a != b -> (r b (best b) - r a (best a)) / (1 - ⟨x a, x b⟩) < γ1 / γ2)).
Proof.
have apart : forall a b : 'I_2, a != b -> two 1 (- 1) a <> two 1 (- 1) b.
  by apply: two_apart; lra.
(* γ₁/γ₂ = 1/4, between the ratios 0 and 1/2: the loser has the logit 1/4, the other winner 3/4. *)
move/(_ _ 0%N _ _ (/ 4) 1 (two 1 (- 1)) empty (fun _ => pair 1 0) (fun=> ord0) (fun=> ord_max)
  ord0 isT Rlt_0_1 unit_poles apart (fun=> pair_top) (fun=> pair_bottom)); cbv zeta => -[_ H].
have /H /(_ ord0 ord_max isT) [_ /(_ ord_max ord0 isT)] : forall a b : 'I_2, a != b ->
    (pair 1 0 ord0 - pair 1 0 ord0) / (1 - ⟨two 1 (- 1) a, two 1 (- 1) b⟩) < / 4 / 1.
  by move=> a b _; rewrite /Rdiv Rminus_eq_0 Rmult_0_l; lra.
by rewrite !mq_logits_prompt !dot_two !pair_0 !pair_1; lra.
Qed.

(* Mutant of mq_critical_ratio_pair: the critical ratio itself is enough *)
Lemma not_enough_at_the_critical_ratio :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (best s j : 'I_N),
  0 < γ2 -> ⟨x a, x b⟩ < ‖x a‖² ->
  mq_logit γ1 γ2 x y r (a, s) (b, j) < mq_logit γ1 γ2 x y r (a, s) (a, best)
  <-> (r b j - r a best) / (‖x a‖² - ⟨x a, x b⟩) <= γ1 / γ2).
Proof.
have lt : ⟨two 1 (- 1) ord0, two 1 (- 1) ord_max⟩ < ‖two 1 (- 1) ord0‖².
  by rewrite dot_two sqnorm_two pair_0 pair_1; lra.
(* the reward 2 of the other query makes up for the inner product −1: both logits are 1 *)
move/(_ _ _ _ 1%N 1 1 (two 1 (- 1)) empty (fun a _ => pair 0 2 a) ord0 ord_max ord0 ord0 ord0
  Rlt_0_1 lt).
by rewrite !mq_logits_prompt !dot_two sqnorm_two !pair_0 !pair_1; lra.
Qed.

(* Mutant of mq_critical_ratio: the best response to a query may be tied *)
Lemma not_ahead_of_its_equal :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N),
  0 < γ2 -> (forall a b : 'I_M, a != b -> ⟨x a, x b⟩ < ‖x a‖²) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i <= r a (best a)) ->
  winners_ahead γ1 γ2 x y r best
  <-> (forall a b : 'I_M, a != b -> critical_ratio x r best a b < γ1 / γ2)).
Proof.
(* queries 1 and −1, all rewards 0: the critical ratios are 0, and γ₁/γ₂ = 1 *)
have lt (a b : 'I_2) : a != b -> ⟨two 1 (- 1) a, two 1 (- 1) b⟩ < ‖two 1 (- 1) a‖².
  by case: a b => [[|[|a]] pa] [[|[|b]] pb] // _; rewrite dot_two sqnorm_two /pair /=; lra.
move/(_ _ _ _ 2%N 1 1 (two 1 (- 1)) empty (level 0) (fun=> ord0) Rlt_0_1 lt
  (fun _ _ _ => Rle_refl _)) => [_ H].
have /H /(_ ord0 ord0 (ord0, ord_max) isT) : forall a b : 'I_2, a != b ->
    critical_ratio (two 1 (- 1)) (level 0 : 'I_2 -> 'I_2 -> R) (fun=> ord0) a b < 1 / 1.
  by move=> a b _; rewrite /critical_ratio /level /Rdiv Rminus_eq_0 Rmult_0_l; lra.
by rewrite !mq_logits_prompt /level; lra.
Qed.

(* Mutant of mq_critical_ratio_unit: queries of any length *)
Lemma not_unit_ratio_at_any_length :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (a' b' : 'I_M),
  0 < γ2 -> (forall a b : 'I_M, a != b -> x a <> x b) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i < r a (best a)) ->
  let ratio a b := (r b (best b) - r a (best a)) / (1 - ⟨x a, x b⟩) in
  a' != b' -> (forall a b : 'I_M, a != b -> ratio a b <= ratio a' b') ->
  winners_ahead γ1 γ2 x y r best <-> ratio a' b' < γ1 / γ2).
Proof.
have apart : forall a b : 'I_2, a != b -> two (/ 2) (/ 4) a <> two (/ 2) (/ 4) b.
  by apply: two_apart; lra.
move/(_ _ 0%N _ 1%N 1 1 (two (/ 2) (/ 4)) empty (level 0) (fun=> ord0) ord0 ord_max Rlt_0_1 apart
  (fun _ _ ne => False_ind _ (one_response ne))); rewrite /level; cbv zeta => H.
case: (H isT) => [a b _|_ ahead]; first by rewrite /Rdiv Rminus_eq_0 !Rmult_0_l; lra.
have := ahead ltac:(lra) ord_max ord0 (ord0, ord0) isT.
by rewrite !mq_logits_prompt !dot_two pair_0 pair_1; lra.
Qed.

(* Mutant of mq_critical_ratio_weaker: an inner product above 1; here 2 *)
Lemma not_weaker_at_any_inner_product : ~ (forall (dx M N : nat) (x : 'I_M -> vec 'I_dx)
    (r : 'I_M -> 'I_N -> R) (best worst : 'I_M -> 'I_N) (a b : 'I_M),
  (2 <= N)%N ->
  (forall i : 'I_N, i != best a -> r a i < r a (best a)) -> (forall i, r a (worst a) <= r a i) ->
  (r b (best b) - r a (best a)) / (1 - ⟨x a, x b⟩)
  < (r b (best b) - r a (worst a)) / (1 - ⟨x a, x b⟩)).
Proof.
move/(_ _ _ _ (two 1 2) (fun _ => pair 1 0) (fun=> ord0) (fun=> ord_max) ord0 ord_max isT
  pair_top pair_bottom).
rewrite dot_two !pair_0 !pair_1 (_ : 1 - 1 * 2 = - 1); last by ring.
by rewrite /Rdiv Rinv_opp Rinv_1; lra.
Qed.

(* ── What unit norm is for ──────────────────────────────────────────────────────────────────── *)

(* Mutant of mq_unit_norm: ⟨x^a, x^b⟩ may equal ‖x^a‖² *)
Lemma not_enough_to_be_as_long : ~ (forall (dx dy M n : nat) (Δ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_n.+1 -> vec 'I_dy),
  0 < Δ -> INR n * Δ <= spread ->
  (exists γ1 γ2, 0 <= γ1 /\ 0 < γ2 /\ forall (r : 'I_M -> 'I_n.+1 -> R) (best : 'I_M -> 'I_n.+1),
    (forall a, spaced Δ (r a)) -> (forall a i, low <= r a i <= low + spread) ->
    (forall a i, r a i <= r a (best a)) -> winners_ahead γ1 γ2 x y r best)
  <-> (forall a b : 'I_M, a != b -> ⟨x a, x b⟩ <= ‖x a‖²)).
Proof.
(* two responses to each of two queries that are the same *)
have room : INR 1 * 1 <= 1 by rewrite /=; lra.
move/(_ _ 0%N _ _ 1 0 1 (two 1 1) empty Rlt_0_1 room) => [_ H].
have []: exists γ1 γ2, 0 <= γ1 /\ 0 < γ2
    /\ forall (r : 'I_2 -> 'I_2 -> R) (best : 'I_2 -> 'I_2),
    (forall a, spaced 1 (r a)) -> (forall a i, 0 <= r a i <= 0 + 1) ->
    (forall a i, r a i <= r a (best a)) -> winners_ahead γ1 γ2 (two 1 1) empty r best.
  by apply: H => a b _; rewrite dot_two sqnorm_two /pair; case: ifP; case: ifP; lra.
move=> γ1 [γ2 works].
have := (@mq_unit_norm _ 0%N _ _ 1 0 1 (two 1 1) empty Rlt_0_1 room).1 (ex_intro _ γ1
  (ex_intro _ γ2 works)) ord0 ord_max isT.
by rewrite dot_two sqnorm_two pair_0 pair_1; lra.
Qed.

(* Mutant of mq_unit_norm_unit: vectors of different lengths *)
Lemma not_less_than_the_shorter : ~ (forall (dx : nat) (x x' : vec 'I_dx),
  x <> x' -> ⟨x, x'⟩ < ‖x‖²).
Proof.
move/(_ _ (V1 1) (V1 2)); rewrite dot_1 sqnorm_1 => H.
suff : V1 1 <> V1 2 by move/H; lra.
by move/(f_equal (fun v => v ord0)); rewrite /V1; lra.
Qed.

(* Mutant of mq_unit_norm_orthogonal: the zero vector *)
Lemma not_for_the_zero_vector : ~ (forall (dx : nat) (x x' : vec 'I_dx),
  ⟨x, x'⟩ = 0 -> ⟨x, x'⟩ < ‖x‖²).
Proof. by move/(_ _ (V1 0) (V1 1)); rewrite dot_1 sqnorm_1; lra. Qed.

(* Mutant of mq_duplicates_inseparable: queries of the same length, not equal *)
Lemma not_inseparable_at_the_same_length :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (a b : 'I_M)
    (s : 'I_N),
  a != b -> ‖x a‖ = ‖x b‖ ->
  (forall t, mq_logit γ1 γ2 x y r (a, s) t = mq_logit γ1 γ2 x y r (b, s) t)
  /\ ~ winners_ahead γ1 γ2 x y r best).
Proof.
have same : ‖two 1 (- 1) ord0‖ = ‖two 1 (- 1) ord_max‖ by rewrite !unit_poles.
move/(_ _ _ _ 1%N 1 1 (two 1 (- 1)) empty (level 0) (fun=> ord0) ord0 ord_max ord0 isT same).
case=> /(_ (ord0, ord0)); rewrite !mq_logits_prompt !dot_two pair_0 pair_1; lra.
Qed.

(* ── Identifiers ────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of mq_query_ids_logits: without the temperature γ₁ *)
Lemma not_identified_without_temperature :
  ~ (forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (i j : 'I_N),
  logit (qi_head dx dy M γ1 γ2) (qi_prompt x y r) (a, i) (b, j)
  = (if a == b then 1 else 0) + γ2 * r b j).
Proof.
move/(_ _ _ _ 1%N 2 1 (two 1 (- 1)) empty (level 0) ord0 ord0 ord0 ord0).
by rewrite mq_query_ids_logits eqxx; lra.
Qed.

(* Two queries with a response each, of the rewards 0 and 1; γ₁ = 2, γ₂ = 1. *)
Definition rising : 'I_2 -> 'I_1 -> R := fun a _ => pair 0 1 a.

Lemma rising_range b j : 0 <= rising b j <= 0 + 1.
Proof. by rewrite /rising /pair; case: ifP; lra. Qed.

Lemma missed_query (t : 'I_2 * 'I_1 -> R) : (forall a i, t (a, i) = pair 2 1 a) ->
  1 - softmax t (ord0, ord0) = share (exp (- 1)).
Proof.
move=> tE; rewrite softmax_miss /crowd (big_pred1 (ord_max, ord0)); last first.
  by case=> [[[|[|a]] pa] i] //; rewrite (ord1 i).
by rewrite !tE pair_0 pair_1; congr (share (exp _)); ring.
Qed.

Lemma rising_logits (a : 'I_2) (i : 'I_1) :
  2 * (if ord0 == a then 1 else 0) + 1 * rising a i = pair 2 1 a.
Proof. by rewrite /rising /pair eq_sym; case: ifP; lra. Qed.

Lemma two_ge0 : 0 <= 2. Proof. lra. Qed.

Lemma sum_queries_of_one (F : 'I_2 * 'I_1 -> R) : ∑_t F t = F (ord0, ord0) + F (ord_max, ord0).
Proof.
rewrite (sum_pick (ord0, ord0)); congr (_ + _); apply: big_pred1.
by case=> [[[|[|a]] pa] i] //; rewrite (ord1 i).
Qed.

Lemma gap_of_one (r : 'I_1 -> R) (j : 'I_1) : j != ord0 -> r j + 1 <= r ord0.
Proof. by move/one_response. Qed.

(* Mutant of mq_query_ids_bound: the spread of the rewards left out *)
Lemma not_bound_without_the_spread : ~ (forall (dx dy M N : nat) (γ1 γ2 Δ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - qi_attention γ1 γ2 x y r (a, s) (a, best)
  <= (INR N - 1) * exp (- γ2 * Δ) + (INR M - 1) * INR N * exp (- (γ1 * 1))).
Proof.
move/(_ _ 0%N _ 1%N 2 1 1 0 1 (two 1 (- 1)) empty rising ord0 ord0 ord0 two_ge0 Rle_0_1
  (@gap_of_one _) rising_range).
rewrite qi_softmax missed_query => [|a i]; last exact: rising_logits.
rewrite [INR 1]/= [INR 2]/= (_ : - (2 * 1) = - 1 + - 1); last by ring.
rewrite exp_plus; have e0 := exp_pos (- 1); have : exp (- 1) < / 2.
  have -> : exp (- 1) = / exp 1 by rewrite -exp_Ropp; congr exp; lra.
  apply: Rinv_lt_contravar; first by have := exp_pos 1; lra.
  by have := exp_ineq1 1 ltac:(lra); lra.
move: (exp (- 1)) e0 => e e0 e2; rewrite /share Rminus_eq_0 Rmult_0_l => le.
have : e / (1 + e) * (1 + e) <= e * e * (1 + e) by apply: Rmult_le_compat_r; nra.
by rewrite (_ : e / (1 + e) * (1 + e) = e); [nra | field; lra].
Qed.

(* Mutant of mq_query_ids_outcome: D for D₀, as if all responses were to one query *)
Lemma not_outcome_within_a_query : ~ (forall (dx dy M N : nat) (γ1 γ2 Δ low spread D : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) ->
  ‖qi_selected γ1 γ2 x y r (a, s) - y a best‖
  <= D * ((INR N - 1) * exp (- γ2 * Δ))
     + D * ((INR M - 1) * INR N * exp (- (γ1 * 1 - γ2 * spread)))).
Proof.
pose y (a : 'I_2) (_ : 'I_1) := two 1 (- 1) a.
have near (i j : 'I_1) : ‖y ord0 i - y ord0 j‖ <= 0.
  by rewrite -[(_ - _)%V]/(V1 (1 - 1)) vnorm_1 Rminus_eq_0 Rabs_R0; lra.
move/(_ _ _ _ _ 2 1 1 0 1 0 (two 1 (- 1)) y rising ord0 ord0 ord0 two_ge0 Rle_0_1
  (@gap_of_one _) rising_range near); rewrite !Rmult_0_l Rplus_0_r.
pose t (s : 'I_2 * 'I_1) := 2 * (if ord0 == s.1 then 1 else 0) + 1 * rising s.1 s.2.
have -> : qi_selected 2 1 (two 1 (- 1)) y rising (ord0, ord0)
    = comb (softmax t) (fun s => y s.1 s.2).
  apply: vec_eq => c; rewrite /qi_selected /run /= /transform /= /attend /= big_cons big_nil /=.
  rewrite /head_output; blocks; rewrite /comb Rplus_0_l Rmult_1_l !Rplus_0_r.
  apply: eq_bigr => s _; rewrite -/(qi_attention 2 1 (two 1 (- 1)) y rising (ord0, ord0) s).
  by rewrite qi_softmax -[softmax _ s]/(softmax t s); blocks; ring.
have miss : 1 - softmax t (ord0, ord0) = share (exp (- 1)).
  by apply: missed_query => a i; exact: rising_logits.
have : softmax t (ord0, ord0) + softmax t (ord_max, ord0) = 1.
  by rewrite -sum_queries_of_one (softmax_sum t (ord0, ord0)).
set p := softmax t _ in miss *; set q := softmax t _ => pq.
have -> : (comb (softmax t) (fun s => y s.1 s.2) - y ord0 ord0 = V1 (p * 1 + q * - 1 - 1))%V.
  by apply: vec_eq => c; rewrite /vsub /comb sum_queries_of_one /y /two /V1 pair_0 pair_1.
have s0 : 0 < share (exp (- 1)).
  by rewrite /share; apply: Rdiv_lt_0_compat; have := exp_pos (- 1); lra.
by rewrite vnorm_1; split_Rabs; lra.
Qed.
