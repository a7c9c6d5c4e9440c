(* Statements that are not theorems, of chapter 12: the block with a start token. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer BlockErrors Turns Theorem33 Smoothness.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField CausalRounds CausalTheorem.
From Icalign Require Import Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The case ───────────────────────────────────────────────────────────────────────────────── *)

(* Two responses, 1 and 0, with the rewards 0 and 1, and W = 0; the first sees itself alone, and the
   start token. Margins g = 8 and h of at most 3. *)

Lemma first_in_class :
  in_online_class (M1 0) 1 0 1 (- 1) 1 1 (V1 1) (two 1 0) (pair 0 1).
Proof.
split.
- by rewrite vnorm_1 Rabs_R1.
- by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
- by move=> j; rewrite /pair; case: ifP; lra.
- by move=> j; rewrite /reduced mulmv_1 dot_1 sqnorm_1 /pair; case: ifP; lra.
- by apply: spread_two; split_Rabs; lra.
- by move=> j; rewrite vnorm_1 /pair; case: ifP; split_Rabs; lra.
Qed.

Local Notation one := (1%g : {perm 'I_(ord0 : 'I_2).+1}).

Lemma first_ranks : ranks (prefix (ltn_ord (ord0 : 'I_2)) (pair 0 1)) one.
Proof. by move=> k l; rewrite !ord1. Qed.

(* Powers of e, from 9/4 ≤ e ≤ 3. *)
Local Notation q := (exp (- 1)).

Lemma q_range : / 3 <= q <= 4 / 9.
Proof.
have h := exp_ineq1_le (1 / 2); have e3 := exp_le_3; have e0 := exp_pos 1.
have E : exp 1 = exp (1 / 2) * exp (1 / 2) by rewrite -exp_plus; congr exp; field.
have e9 : 9 / 4 <= exp 1 by rewrite E; move: (exp (1 / 2)) h => a h; nra.
rewrite (exp_Ropp 1); split; first exact: Rinv_le_contravar.
have -> : 4 / 9 = / (9 / 4) by field.
by apply: Rinv_le_contravar; lra.
Qed.

Lemma exp_q n t : t = - INR n -> exp t = q ^ n.
Proof. by move=> ->; rewrite -exp_INR Rmult_1_r. Qed.

Lemma q8 : exp (- 8) = q ^ 8. Proof. by apply: exp_q; rewrite /=; ring. Qed.
Lemma q9 : exp (- (8 + 1) - 0) = q ^ 9. Proof. by apply: exp_q; rewrite /=; ring. Qed.

Lemma q_low n : (/ 3) ^ n <= q ^ n.
Proof. by have := q_range; move=> ?; apply: pow_incr; lra. Qed.

Lemma q_high n : q ^ n <= (4 / 9) ^ n.
Proof. by have := q_range; move=> ?; apply: pow_incr; lra. Qed.

(* ── The margins ────────────────────────────────────────────────────────────────────────────── *)

Lemma first_fits h : 1 <= h <= 3 -> margins_fit 2 8 1 h 1 1.
Proof.
move=> h13; rewrite /margins_fit /mask_c Rmax_left; last by lra.
by have := q_high 8; rewrite q8 [INR 2]/=; lra.
Qed.

Lemma first_fits1 : margins_fit 2 8 1 1 1 1. Proof. by apply: first_fits; lra. Qed.
Lemma pos8 : 0 < 8. Proof. lra. Qed.

(* With one response and a start token of logit s, the response gets all but share (e^(s − z)). *)
Lemma beside_start s (z : 'I_1 -> R) :
  softmax (with_start s z) (lift ord0 ord0) = 1 - share (exp (s - z ord0)).
Proof.
have c0 : crowd z ord0 = 0 by rewrite /crowd big_pred0 // => j; rewrite ord1.
have := softmax_miss (with_start s z) (lift ord0 ord0); rewrite started_crowd c0 Rplus_0_l; lra.
Qed.

Lemma mean_beside_start s (z : 'I_1 -> R) (v : 'I_1 -> vec 'I_1) :
  comb (softmax (with_start s z)) (with_start vzero v) = V1 ((1 - share (exp (s - z ord0)))
    * v ord0 ord0).
Proof.
apply: vec_eq => a; rewrite /comb sum_two (_ : ord_max = lift ord0 ord0); last exact/val_inj.
by rewrite with_start0 with_startS beside_start /vzero /V1 ord1; ring.
Qed.

Lemma first_start c : stop_logit (mask_γ 8 1 * 0) (mask_γ 8 1 * (0 + 1)) (mask_c 8 1 1)
  - (mask_γ 8 1 * prefix (ltn_ord (ord0 : 'I_2)) (pair 0 1) ord0 - c * 0) = - (8 + 1) - 0.
Proof.
by rewrite /stop_logit /mask_γ /mask_c (_ : prefix _ _ _ = 0) //; field.
Qed.

Lemma first_winner :
  let X := started_state (V1 1) (two 1 0) (pair 0 1) (fun _ => vzero) (fun _ => vzero) in
  comb (attention causal (stop_winner 1 1 2 1 8 1 0 1) X (lift ord0 ord0)) (fun j => X j Ca.y)
  = V1 (1 - share (q ^ 9)).
Proof.
cbv zeta; rewrite stop_winner_mean mean_beside_start {1}/prefix /vzero first_start q9.
by congr V1; rewrite /prefix /two /V1 /pair /=; ring.
Qed.

(* ── The mutants ────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of causal_theorem_live_rounds: no causal mask *)
Lemma not_live_without_a_mask : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1})
    (k : 'I_i.+1),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (k.+1 < N)%N ->
  let X := run full (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) in
  let mean hd := comb (attention full hd X (lift ord0 i)) (fun j => X j Ca.y) in
  let y_i := prefix (ltn_ord i) y in
  ‖mean (stop_winner dx dy N η g Δ low spread) - y_i (τ k)‖ <= D * (5 / 2 * exp (- g))
  /\ ‖mean (stop_field N W η h low_Z spread_Z) - tail_mean W x y_i τ k‖
     <= D * ((spread_Z + 2 * h) * (INR k * (5 / 2 * exp (- g))) / 4
             + (INR N - 1) * exp (1 - h))).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) 1 8 1 1 0 1 (- 1) 1 1 pos8 Rlt_0_1 (Rle_refl 1)
  first_fits1 (V1 1) (two 1 0) (pair 0 1) ord0 one ord0 first_in_class first_ranks isT).
cbv zeta; rewrite [run _ _ _]/= started_promptE q8 => -[+ _].
set z := fun j : 'I_3 => mask_γ 8 1 * with_start 0 (pair 0 1) j
  + stop_logit (mask_γ 8 1 * 0) (mask_γ 8 1 * (0 + 1)) (mask_c 8 1 1)
    * with_start 1 (fun _ => 0) j
  - mask_c 8 1 1 * ⟨(vzero : vec 'I_2), with_start vzero one_hot j⟩.
have weights j : attention full (stop_winner 1 1 2 1 8 1 0 1)
    (started_state (V1 1) (two 1 0) (pair 0 1) (fun _ => vzero) (fun _ => vzero))
    (lift ord0 ord0) j = softmax z j by exact: ca_winner_attention.
have s := softmax_sum z ord0; rewrite (sum_lift ord0) sum_two in s.
have s0 := softmax_gt0 z ord0.
have less : softmax z (lift ord0 ord0) <= softmax z (lift ord0 ord_max).
  rewrite /softmax; apply: Rmult_le_compat_r.
    by left; apply: Rinv_0_lt_compat; exact: (sum_exp_all_gt0 z ord0).
  apply: exp_mono; rewrite /z !with_startS !dot_zerol pair_0 pair_1 /mask_γ; lra.
set u := comb _ _; have -> : u = V1 (softmax z (lift ord0 ord0)).
  apply: vec_eq => a; rewrite /u /comb (sum_lift ord0) sum_two !weights.
  rewrite /started_state /ca_state /ca_token with_start0 !with_startS /two /V1 pair_0 pair_1.
  by rewrite /vzero; ring.
rewrite perm1 -[(V1 _ - _)%V]/(V1 (softmax z (lift ord0 ord0) - 1)) vnorm_1.
have := q_high 8; move: (q ^ 8) (softmax z _) (softmax z _) s s0 less => b c d s s0 less.
by move: (softmax z _) s s0 less => e; split_Rabs; lra.
Qed.

(* Mutant of causal_theorem_surplus_rounds: i ≤ k for i < k, as if the last live round were over *)
Lemma not_surplus_a_round_early : ~ (forall (dx dy N k : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (i <= k)%N -> (k.+1 < N)%N ->
  let X := run causal (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) in
  let mean hd := comb (attention causal hd X (lift ord0 i)) (fun j => X j Ca.y) in
  ‖mean (stop_winner dx dy N η g Δ low spread)‖ <= D * (5 / 2 * exp (- g))
  /\ ‖mean (stop_field N W η h low_Z spread_Z)‖ <= D * ((INR N - 1) * exp (1 - h))).
Proof.
move/(_ 1%N 1%N 2%N 0%N (M1 0) 1 8 1 1 0 1 (- 1) 1 1 pos8 Rlt_0_1 (Rle_refl 1)
  first_fits1 (V1 1) (two 1 0) (pair 0 1) ord0 one first_in_class first_ranks isT isT).
cbv zeta; rewrite [run _ _ _]/= started_promptE first_winner vnorm_1 q8 => -[+ _].
have := share_le_self (pow_le q 9 (Rlt_le _ _ (exp_pos _))); have := q_high 8; have := q_high 9.
by move: (q ^ 9) (q ^ 8) (share _) => a b s; split_Rabs; lra.
Qed.

Lemma first_record : ca_record (mask_γ 8 1) (mask_c 8 1 1)
    (stop_logit (mask_γ 8 1 * 0) (mask_γ 8 1 * (0 + 1)) (mask_c 8 1 1)) causal
    (with_start 0 (pair 0 1)) (with_start 1 (fun _ => 0)) (with_start vzero one_hot) 1
    (lift ord0 ord0) ord0
  = 1 - share (q ^ 9).
Proof.
rewrite /= /vadd {1}/vzero Rplus_0_l started_winner comb_started_one_hot.
rewrite (_ : ord0 = widen_ord (ltn_ord (ord0 : 'I_2)) ord0); last exact/val_inj.
rewrite (@started_at 2 ord0) beside_start.
by rewrite {1}/prefix /vzero first_start q9.
Qed.

(* Mutant of causal_theorem_induction: a margin of 2g *)
Lemma not_recorded_at_twice_the_margin : ~ (forall (dx dy N k : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (k < N)%N ->
  let m := run causal (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) (lift ord0 i) Ca.m in
  forall j, Rabs (prefix (ltn_ord i) m j - flags τ k j) <= INR k * (5 / 2 * exp (- (2 * g)))).
Proof.
move/(_ 1%N 1%N 2%N 1%N (M1 0) 1 8 1 1 0 1 (- 1) 1 1 pos8 Rlt_0_1 (Rle_refl 1)
  first_fits1 (V1 1) (two 1 0) (pair 0 1) ord0 one first_in_class first_ranks isT ord0).
rewrite stop_state; cbv zeta; rewrite (_ : prefix _ _ ord0 = 1 - share (q ^ 9)); last first.
  by rewrite -first_record /prefix (_ : widen_ord _ _ = ord0) //; exact/val_inj.
rewrite /flags ltn_ord (@exp_q 16 (- (2 * 8))); last by rewrite /=; ring.
have E : q ^ 16 = q ^ 9 * q ^ 7 by ring.
have [q0 q1] := q_range; have a0 : 0 < q ^ 9 by apply: pow_lt; lra.
have q7 := q_high 7; have q9 := q_high 9; rewrite {}E [INR 1]/=.
rewrite /share; move: (q ^ 9) (q ^ 7) a0 q7 q9 => a b a0 b1 a1.
have -> : 1 - a / (1 + a) - 1 = - (a * / (1 + a)) by field; lra.
have : / 2 < / (1 + a) by apply: Rinv_lt_contravar; lra.
by move: (/ (1 + a)) => d d1; rewrite Rabs_Ropp Rabs_pos_eq; nra.
Qed.

(* Mutant of causal_theorem: a margin of 2h *)
Lemma not_bound_at_twice_the_margin : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  let u := run causal (nseq (N - 1) (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) (lift ord0 i) Ca.u in
  let ΔW := ((- η) *: gradient W x (prefix (ltn_ord i) y) τ)%V in
  ‖u - ΔW *v x‖ <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
    + 5 / 16 * (INR N - 2) * (spread_Z + 2 * h) * exp (- g) + (INR N - 1) * exp (1 - 2 * h))).
Proof.
have fit3 : margins_fit 2 8 1 3 1 1 by apply: first_fits; lra.
move/(_ 1%N 1%N 2%N (M1 0) (/ 2) 8 1 3 0 1 (- 1) 1 1 ltac:(lra) pos8 Rlt_0_1 ltac:(lra)
  fit3 (V1 1) (two 1 0) (pair 0 1) ord0 one first_in_class first_ranks).
rewrite stop_state subSS subn0; cbv zeta.
rewrite (gradient_step_terms (M1 0) (/ 2) _ _ (online_query first_in_class)).
have -> : first_terms (/ 2) (M1 0) (V1 1) (prefix (ltn_ord (ord0 : 'I_2)) (two 1 0)) one (1 - 1)
    = vzero by rewrite /first_terms; apply: vec_eq => a; rewrite /vsum big_pred0.
rewrite /= {1}/vadd started_winner started_field !started_comb !mean_beside_start.
rewrite first_start q9; set u := vnorm _.
have -> : u = Rabs (share (q ^ 3) - share (q ^ 9)).
  rewrite -vnorm_1 /u; congr vnorm; apply: vec_eq => a; rewrite -(@exp_q 3 (- 3)); last first.
    by rewrite /=; ring.
  have at0 : prefix (ltn_ord (ord0 : 'I_2)) (two 1 0) ord0 ord0 = 1 by [].
  rewrite at0 /prefix /reduced mulmv_1 dot_1 sqnorm_1 (_ : pair 1 0 _ = 1) // /vadd /vsub /vscal.
  rewrite /vzero /V1 (_ : stop_logit _ _ _ - _ = - 3); first by field.
  by rewrite /stop_logit; field.
have [q0 q1] := q_range; have q3 := q_low 3; have q5 := q_high 5.
have := q_high 8; have := share_le_self (pow_le q 9 (Rlt_le _ _ (exp_pos _))); have := q_high 9.
have := @share_le ((/ 3) ^ 3) (q ^ 3) ltac:(lra) q3.
rewrite q8 (@exp_q 5 (1 - 2 * 3)); last by rewrite /=; ring.
rewrite {1}/share; move: (q ^ 8) (q ^ 5) (share (q ^ 3)) q5 => a b s q5.
move: (q ^ 9) (share _) => c t.
by split_Rabs; lra.
Qed.

(* Mutant of causal_theorem_norm: D the radius, not the diameter *)
Lemma not_misplaced_within_the_radius : ~ (
  forall (dx dy N : nat) (W : mat dy dx) (η γ c σ C σ_Z : R),
  0 <= η ->
  forall (T : finType) (sees part : rel T) (X : T -> token (ca_stream dx dy N)) (i w : T) (D : R),
  (forall j, part i j -> sees i j) -> part i w ->
  (forall j, sees i j -> ‖X j Ca.y‖ <= D) ->
  let winner := ca_winner dx dy N η γ c σ in
  let field := ca_field N W η C σ_Z in
  let moved h := ‖head_output sees h X i Ca.u - head_output part h X i Ca.u‖ in
  let misplaced h := ∑_(j | ~~ part i j) attention sees h X i j in
  moved winner <= 2 * η * D * misplaced winner /\ moved field <= 2 * η * D * misplaced field).
Proof.
(* Half of the attention at 1, half at −1: the mean is at the distance 1 from either. *)
pose first : rel 'I_2 := fun _ j => j == ord0.
pose X := ca_state (fun _ => vzero : vec 'I_0) (two 1 (- 1)) (fun _ => 0) (fun _ => 0)
  (fun _ => 0) (fun _ => vzero : vec 'I_0) (fun _ => vzero) (fun _ => vzero).
have y1 j : full ord0 j -> ‖X j Ca.y‖ <= 1.
  by move=> _; rewrite vnorm_1 /pair; case: ifP; split_Rabs; lra.
move/(_ _ _ _ vzero (/ 2) 0 0 0 0 0 ltac:(lra) _ full first X ord0 ord0 1 (fun _ _ => isT) erefl
  y1); cbv zeta; set h := ca_winner _ _ _ _ _ _ _ => -[+ _].
have flat mask j : attention mask h X ord0 j = softmax_on (mask ord0) (fun _ => 0) j.
  by rewrite ca_winner_attention; apply: eq_softmax_on => l _; rewrite (dot_zerol (X l Ca.p)); ring.
have wrote mask a : head_output mask h X ord0 Ca.u a
    = comb (softmax_on (mask ord0) (fun _ => 0)) (two 1 (- 1)) a.
  rewrite ca_winner_output; blocks; rewrite (_ : 2 * / 2 = 1); last by field.
  rewrite Rmult_1_l ?Rplus_0_r; apply: eq_bigr => j _; congr (_ * _).
  by apply: eq_softmax_on => l _; rewrite (dot_zerol (X l Ca.p)); ring.
have -> : (head_output full h X ord0 Ca.u - head_output first h X ord0 Ca.u)%V = V1 (- 1).
  apply: vec_eq => a; rewrite /vsub !wrote /comb !sum_two /softmax_on big_mkcond sum_two.
  by rewrite big_mkcond sum_two /first /two /V1 pair_0 pair_1 /= exp_0; field.
rewrite vnorm_1 big_mkcond sum_two /first /= flat /softmax_on big_mkcond sum_two /= exp_0.
by split_Rabs; lra.
Qed.

(* Mutant of causal_theorem_temperatures: h without 1 + *)
Lemma not_tolerance_without_one : ~ (forall (N : nat) (η Δ spread spread_Z D tol : R),
  (1 < N)%N -> 0 < η -> 0 < Δ -> 0 <= spread -> 0 <= spread_Z -> 0 < D -> 0 < tol ->
  let U := 2 * η * (INR N - 1) * D in
  let h := Rmax 1 (ln (2 * (INR N - 1) * U / tol)) in
  let C := spread_Z + 2 * h in
  let l := ln (5 / 2 * (INR N - 1) * (2 + spread / Δ)) in
  let g := Rmax (ln (2 * U / tol * (5 / 2 + 5 / 16 * (INR N - 2) * C)))
             (Rmax (ln (5 / 2 * (INR N - 1) * C)) (l + ln (2 * l + 4))) in
  0 < g /\ 1 <= h /\ margins_fit N g Δ h spread spread_Z
  /\ U * (5 / 2 * exp (- g) + 5 / 16 * (INR N - 2) * C * exp (- g)
          + (INR N - 1) * exp (1 - h)) <= tol).
Proof.
have e0 := exp_pos (- (1)).
move/(_ 2%N (/ 2) 1 1 0 1 (2 * exp (- (1))) isT ltac:(lra) Rlt_0_1 Rle_0_1 (Rle_refl 0) Rlt_0_1
  ltac:(lra)); cbv zeta.
rewrite (_ : INR 2 = 2) //; set h := Rmax 1 _; set g := Rmax _ _ => -[_ [_ [_ +]]].
have hE : h = 1.
  rewrite /h (_ : 2 * _ * _ / _ = exp 1); first by rewrite ln_exp Rmax_left; lra.
  rewrite exp_Ropp; field; have := exp_pos 1; lra.
have := exp_ineq1 1 ltac:(lra); have := exp_pos (- g); have := exp_pos 1.
rewrite hE (Rminus_eq_0 1) exp_0 (exp_Ropp 1); move: (exp (- g)) (exp 1) => a e e0' a0 e2.
have : 2 * / e < 1 by apply: (Rmult_lt_reg_r e); rewrite // Rmult_assoc Rinv_l; lra.
lra.
Qed.
