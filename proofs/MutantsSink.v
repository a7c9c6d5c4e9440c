(* Statements that are not theorems, of chapters 8 and 14: heads beside a sink, and preference
   optimisation by implicit rewards. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Transformer.
From Icalign Require Import Spacing Block BlockErrors Turns SinkPairs SinkAttention Dpo DpoBlocks.
From Icalign Require Import Smoothness Mutants MutantsStep MutantsReadout MutantsBlocks.
From Icalign Require Import MutantsTheorem33.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Beside a sink ──────────────────────────────────────────────────────────────────────────── *)

(* exp 10 > 2¹⁰. *)
Lemma sinh_10 : 511 < sinh 10.
Proof.
have e1 := exp_ineq1 1 ltac:(lra); have := exp_pow 1 10.
rewrite (_ : INR 10 * 1 = 10) => [E|]; last by rewrite /=; ring.
have : 2 ^ 10 <= exp 1 ^ 10 by apply: pow_incr; lra.
have : exp (- (10)) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
by rewrite E /sinh (_ : 2 ^ 10 = 1024); [lra | ring].
Qed.

Lemma a_1 : sink_coefficient 1 1 = 1.
Proof. by rewrite /sink_coefficient /=; field. Qed.

(* Mutant of sink_order: ε for 2 sinh(ε/2) *)
Lemma not_order_in_epsilon : ~ (forall (P : nat) (ε : R),
  0 < ε ->
  let a := sink_coefficient P in
  Rabs (∑_(k < P) (a k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) - 1)
  <= INR (fact P) * INR (fact P) / INR (fact (2 * P + 1)) * ε ^ (2 * P)).
Proof.
move/(_ 1%N 10 ltac:(lra)); rewrite /= sum_ord1 a_1 !Rmult_1_l !Rmult_1_r.
by have := sinh_10; split_Rabs; lra.
Qed.

(* One token beside the sink, with the product 1 and the value 1: one pair, and its error. *)
Definition ones (j : 'I_1) : vec 'I_1 := V1 1.

Lemma product_1 (i j : 'I_1) : Rabs ⟨ones i, ones j⟩ <= 1.
Proof. by rewrite dot_1 Rmult_1_l Rabs_R1; exact: Rle_refl. Qed.

Lemma values_1 : ∑_j ‖ones j‖ = 1.
Proof. by rewrite sum_ord1 vnorm_1 Rabs_R1. Qed.

Lemma one_token ε λ :
  ‖run full [:: sk_block 1 1 1 ε λ] (sk_prompt ones ones) (lift ord0 ord0) Sk.sum
   - comb (fun j => ⟨ones ord0, ones j⟩) ones‖
  = Rabs (exp λ / (2 * ε)
          * (exp ε / (exp λ + exp ε) - exp (- ε) / (exp λ + exp (- ε))) - 1).
Proof.
rewrite sk_output; set w := sink_weight _ _ _ _.
have -> : (comb w ones - comb (fun j => ⟨ones ord0, ones j⟩) ones)%V = V1 (w ord0 - 1).
  apply: vec_eq => c; rewrite /vsub /comb !sum_ord1 dot_1 /ones /V1; ring.
rewrite vnorm_1 /w /sink_weight sum_ord1 a_1 /beside_sink !sum_ord1 dot_1 [INR _]/=.
by rewrite !Rmult_1_l !Rmult_1_r.
Qed.

(* Mutant of sink_linear_attention_pairs: without what the sink leaks *)
Lemma not_pairs_without_leak : ~ (forall (dx dv n P : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (i : 'I_n),
  (forall j, Rabs ⟨x i, x j⟩ <= 1) ->
  let a := sink_coefficient P in
  let sum := run full [:: sk_block dx dv P ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let bent := Rabs (∑_(k < P) (a k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) - 1) in
  ‖sum - comb (fun j => ⟨x i, x j⟩) v‖ <= bent * ∑_j ‖v j‖).
Proof.
move/(_ _ _ _ 1%N 1 0 Rlt_0_1 ones ones ord0 (product_1 ord0)); cbv zeta.
rewrite one_token values_1 sum_ord1 a_1 [INR _]/= !Rmult_1_l !Rmult_1_r exp_0 /sinh.
have e1 := exp_ineq1 1 ltac:(lra); have e3 := exp_le_3.
have ef : exp 1 * exp (- 1) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
have f0 := exp_pos (- 1); move: (exp 1) (exp (- 1)) e1 e3 ef f0 => e f e2 e3 ef f0.
have -> : e / (1 + e) - f / (1 + f) = 1 - / (1 + e) - f / (1 + f) by field; lra.
have i0 := Rinv_0_lt_compat (1 + e) ltac:(lra).
have j0 := Rdiv_lt_0_compat f (1 + f) f0 ltac:(lra).
have f3 : / 3 <= f by nra.
have f2 : f < / 2 by nra.
by move: i0 j0; rewrite /Rdiv; move: (/ (1 + e)) (f * _) => p q; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention: the leak with sinh ε for sinh 2ε *)
Lemma not_half_the_leak : ~ (forall (dx dv n : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (i : 'I_n),
  (forall j, Rabs ⟨x i, x j⟩ <= 1) ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  ‖sum - comb (fun j => ⟨x i, x j⟩) v‖
  <= (sinh ε / ε - 1 + INR n * exp (- λ) * (sinh ε / ε)) * ∑_j ‖v j‖).
Proof.
(* e^λ = 4, ε small *)
move/(_ _ _ _ (/ 100) (ln 4) ltac:(lra) ones ones ord0 (product_1 ord0)); cbv zeta.
rewrite one_token values_1 (exp_Ropp (ln 4)) exp_ln; last by lra.
rewrite [INR _]/= /sinh.
have u1 := exp_ineq1_le (/ 100); have v1 := exp_ineq1_le (- / 100).
have uv : exp (/ 100) * exp (- / 100) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
move: (exp (/ 100)) (exp (- / 100)) u1 v1 uv => u v u1 v1 uv.
have -> : 4 / (2 * / 100) * (u / (4 + u) - v / (4 + v)) = 800 * (u - v) / (17 + 4 * (u + v)).
  transitivity (800 * (u - v) / (16 + u * v + 4 * (u + v))); first by field; nra.
  by rewrite uv; congr (_ / _); ring.
have -> : 800 * (u - v) / (17 + 4 * (u + v))
    = 32 * (u - v) - 32 * (u - v) * (4 * (u + v) - 8) / (17 + 4 * (u + v)) by field; lra.
have : 0 <= 32 * (u - v) * (4 * (u + v) - 8) / (17 + 4 * (u + v)).
  apply: Rmult_le_pos; last by left; apply: Rinv_0_lt_compat; lra.
  by apply: Rmult_le_pos; nra.
have u2 : u <= 100 / 99 by nra.
by move: (_ / (17 + _)) => q; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention_sharp: values that differ *)
Lemma not_sharp_for_all_values : ~ (forall (dx dv n : nat) (ε : R) (x : 'I_n -> vec 'I_dx)
    (v : 'I_n -> vec 'I_dv) (i : 'I_n),
  0 < ε -> (forall j, ⟨x i, x j⟩ = 1) ->
  let sum λ := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  forall δ, 0 < δ -> exists Λ, forall λ, Λ <= λ ->
  Rabs (‖sum λ - comb (fun j => ⟨x i, x j⟩) v‖ - (sinh ε / ε - 1) * ∑_j ‖v j‖) <= δ).
Proof.
(* the values 1 and −1: both sums are zero *)
pose x (j : 'I_2) : vec 'I_1 := V1 1.
have z1 j : ⟨x ord0, x j⟩ = 1 by rewrite dot_1; ring.
move/(_ _ _ _ 10 x (two 1 (- 1)) ord0 ltac:(lra) z1 1 Rlt_0_1) => [Λ /(_ Λ (Rle_refl _))].
rewrite sk_output; set w := sink_weight _ _ _ _; have same : w ord0 = w ord_max by [].
have -> : (comb w (two 1 (- 1)) - comb (fun j => ⟨x ord0, x j⟩) (two 1 (- 1)))%V = V1 0.
  apply: vec_eq => c; rewrite /vsub /comb !sum_two !z1 same /two /V1 pair_0 pair_1; ring.
rewrite sum_two !vnorm_1 pair_0 pair_1 => le.
by have := sinh_10; move: le; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention_norm: weights that are too large by at most E *)
Lemma not_norm_of_one_sided_errors : ~ (forall (d : nat) (I : finType) (w z : I -> R)
    (v : I -> vec 'I_d) (E : R),
  (forall j, w j - z j <= E) -> ‖comb w v - comb z v‖ <= E * ∑_j ‖v j‖).
Proof.
(* the weight −1 for 0 *)
move/(_ _ _ (fun _ => - (1)) (fun _ => 0) ones 0 (fun _ => ltac:(lra))).
have -> : (comb (fun _ => - (1)) ones - comb (fun _ => 0) ones)%V = V1 (- (1)).
  by apply: vec_eq => c; rewrite /vsub /comb !sum_ord1 /ones /V1; ring.
by rewrite vnorm_1; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention_sharp_in_lambda: one bound on n e^−λ for every ε *)
Lemma not_sharp_in_lambda_for_every_epsilon : ~ (forall δ : R,
  0 < δ -> exists small, 0 < small /\
  forall (ε : R) (dx dv n : nat) (λ : R) (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv)
    (p : vec 'I_dv) (i : 'I_n),
  0 < ε -> (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) -> p <> vzero ->
  INR n * exp (- λ) <= small ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let lost := ‖(sinh ε / ε) *: comb (fun j => ⟨x i, x j⟩) v - sum‖ in
  let second := INR n * exp (- λ) * (sinh (2 * ε) / ε) * ∑_j ‖v j‖ in
  Rabs (lost / second - 1) <= δ).
Proof.
(* one token, e^−λ = t as small as it must be, and ε large: less than half is lost *)
move/(_ (/ 2) ltac:(lra)) => [t [t0 H]]; have i0 := Rinv_0_lt_compat t t0.
have z1 j : ⟨ones ord0, ones j⟩ = 1 by rewrite dot_1; ring.
have p0 : V1 1 <> vzero by move/(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
have tE : INR 1 * exp (- - ln t) = t by rewrite Ropp_involutive exp_ln // Rmult_1_l.
have ε0 : 0 < / t + 2 by lra.
have := H (/ t + 2) _ _ _ (- ln t) ones ones (V1 1) ord0 ε0 z1 (fun _ => erefl) p0.
rewrite tE => /(_ (Rle_refl t)); have := sink_ratio (- ln t) ε0 z1 (fun _ => erefl) p0; cbv zeta.
rewrite tE => ->; have := exp_ineq1_le (/ t + 2); have := exp_pos (- (/ t + 2)).
set a := exp _ + exp _ => f0 e1; have a0 : / t + 3 <= a by rewrite /a; lra.
have at0 : 1 + 3 * t <= a * t.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ t0) a0; rewrite Rmult_plus_distr_r Rinv_l; lra.
have a1 : / a <= 1 by rewrite -Rinv_1; apply: Rinv_le_contravar; lra.
have ta := Rmult_le_compat_l _ _ _ (Rlt_le _ _ t0) a1.
suff : (1 + t / a) / (1 + a * t + t ^ 2) < / 2 by move: (_ / (1 + _ + _)) => q; split_Rabs; lra.
apply: (Rmult_lt_reg_r (1 + a * t + t ^ 2)); first by nra.
by rewrite /Rdiv Rmult_assoc Rinv_l; nra.
Qed.

(* ── Direct preference optimisation ─────────────────────────────────────────────────────────── *)

Lemma implicit_reward_1 β w v x y : implicit_reward β (M1 w) (M1 v) (V1 x) (V1 y)
  = β * ((v * x - y) ^ 2 - (w * x - y) ^ 2).
Proof.
have [c E] := dpo_needs_no_square β (M1 w) (M1 v) (V1 x).
have sq u : ‖V1 y - M1 u *v V1 x‖² = (u * x - y) ^ 2.
  by rewrite mulmv_1 -[(V1 _ - V1 _)%V]/(V1 (y - u * x)) sqnorm_1; ring.
have p0 : 0 < sqrt PI ^ 1 by apply: pow_lt; apply: sqrt_lt_R0; exact: PI_RGT_0.
rewrite /implicit_reward /gaussian !sq; congr (_ * _).
have e0 := exp_pos (- (v * x - y) ^ 2); have -> (a b p : R) : 0 < p -> 0 < b ->
    a / p / (b / p) = a / b by move=> *; field; lra.
- by rewrite ln_div ?ln_exp; [ring | exact: exp_pos |].
- exact: p0.
- exact: e0.
Qed.

(* Mutant of dpo_needs_no_square: one constant for all queries *)
Lemma not_one_constant_for_all_queries : ~ (forall (m n : nat) (β : R) (W W_ref : mat m n),
  exists c, forall (x : vec 'I_n) (y : vec 'I_m),
  implicit_reward β W W_ref x y = 2 * β * ⟨(W - W_ref) *v x, y⟩ + c).
Proof.
move/(_ _ _ 1 (M1 1) (M1 0)) => [c E].
have := E (V1 1) (V1 0); have := E (V1 0) (V1 0).
by rewrite !implicit_reward_1 M1_sub !mulmv_1 !dot_1; lra.
Qed.

(* A token without dimension that holds a one and a flag. *)
Definition flagged (one flag : R) : token (dp_stream 0 0) :=
  fun a _ => match a with Dp.one => one | Dp.flag => flag | _ => 0 end.

(* Mutant of dpo_head: a row of ones that does not hold one *)
Lemma not_dpo_head_without_one : ~ (forall (dx dy : nat) (W W_ref : mat dy dx) (β η C : R)
    (T : finType) (X : T -> token (dp_stream dx dy)) (i j : T),
  logit (dp_head W W_ref β η C) X i j
  = 2 * β * ⟨(W - W_ref) *v X i Dp.x, X j Dp.y⟩ - C * X j Dp.flag ord0).
Proof.
move/(_ 0%N 0%N vzero vzero 1 1 1 _ (fun _ : 'I_1 => flagged 0 1) ord0 ord0).
by rewrite /logit; blocks; rewrite /dot !big_ord0 /flagged; lra.
Qed.

(* Mutant of dpo_head_weights: while something is flagged *)
Lemma not_dpo_weights_when_flagged : ~ (forall (dx dy : nat) (W W_ref : mat dy dx) (β η C : R)
    (T : finType) (X : T -> token (dp_stream dx dy)) (i j : T),
  X i Dp.one ord0 = 1 ->
  attention full (dp_head W W_ref β η C) X i j
  = softmax (fun l => implicit_reward β W W_ref (X i Dp.x) (X l Dp.y)) j).
Proof.
(* equal rewards, the second response flagged *)
pose X (j : 'I_2) := flagged 1 (pair 0 1 j).
move/(_ 0%N 0%N vzero vzero 1 1 1 _ X ord0 ord0 erefl); rewrite /softmax /attention /full /=.
rewrite !sum_two !dpo_head // /dot !big_ord0 /X /flagged pair_0 pair_1.
have -> : 2 * 1 * 0 - 1 * 0 = 0 by ring.
have -> : 2 * 1 * 0 - 1 * 1 = - (1) by ring.
move: (implicit_reward _ _ _ _ _) => r; have r0 := exp_pos r; have e0 := exp_pos (- (1)).
have e1 : exp (- (1)) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
rewrite exp_0 (_ : exp r / (exp r + exp r) = / 2); last by field; lra.
have : / 2 < / (1 + exp (- (1))) by apply: Rinv_lt_contravar; lra.
by rewrite /Rdiv Rmult_1_l; lra.
Qed.

(* Mutant of dpo_gradient: the tail means of the scores, not of the implicit rewards *)
Lemma not_dpo_gradient_by_scores : ~ (forall (m n N : nat) (β : R) (W_ref : mat m n)
    (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
  let μ := tail_mean W x y τ in
  let gradient := ((2 * β) *: outer (∑_(k < N | (k.+1 < N)%N) (μ k - y (τ k))) x)%V in
  is_derive (fun t => dpo_loss β (W + t *: V) W_ref x y τ) 0 ⟨gradient, V⟩).
Proof.
(* W = W_ref, so all implicit rewards are equal; the scores are −1 and 0 *)
have first (μ : 'I_2 -> vec 'I_1) :
    (∑_(k < 2 | (k.+1 < 2)%N) (μ k - two 1 0 ((1%g : {perm 'I_2}) k)))%V = V1 (μ ord0 ord0 - 1).
  by apply: vec_eq => a; rewrite /vsum big_mkcond sum_two /= perm1 ord1 Rplus_0_r.
move/(_ _ _ _ 1 (M1 0) (V1 1) (two 1 0) 1%g (M1 0) (M1 1)) => /is_derive_unique.
rewrite (is_derive_unique _ _ _ (dpo_gradient _ _ _ _ _ _ _)) !dot_scall !dot_outer mulmv_1.
rewrite !first !dot_1 /dpo_tail_mean /tail_mean /comb !sum_two /beta /= !perm1.
rewrite ![∑_(_ < 2 | _) _]big_mkcond !sum_two /= !perm1 /two !score_1 !implicit_reward_1 /V1.
rewrite !pair_0 !pair_1.
have -> : - (0 * 1 - 1) ^ 2 = - (1) by ring.
have -> : - (0 * 1 - 0) ^ 2 = 0 by ring.
have -> : 1 * ((0 * 1 - 1) ^ 2 - (0 * 1 - 1) ^ 2) = 0 by ring.
have -> : 1 * ((0 * 1 - 0) ^ 2 - (0 * 1 - 0) ^ 2) = 0 by ring.
rewrite exp_0; have e0 := exp_pos (- (1)); have : exp (- (1)) < 1.
  by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
move: (exp _) e0 => e e0 e1.
have -> : e / (e + 1) = 1 - / (1 + e) by field; lra.
have : / 2 < / (1 + e) by apply: Rinv_lt_contravar; lra.
by move: (_ / (e + 1)) => q; lra.
Qed.

(* One block of two responses at W = W_ref, β = 2: the winner keeps 5/6, and both make up half of
   the field. *)
Lemma dpo_block_ends i :
  run full (nseq 1 (dp_block (M1 0) (M1 0) 2 1 (ln 5) 1 1 (7 / 2) 0))
    (dp_prompt (V1 1) ends (pair 1 0)) i Dp.u = V1 (8 / 3).
Proof.
rewrite [run _ _ _]/= /dp_prompt dp_step; last by lra.
rewrite [dp_state _ _ _ _ _ _ _]/= !comb_ends; set w := winner_weights _ _ _ _ _.
have w0 : w ord0 = 1 - / 6.
  rewrite /w /winner_weights; set z := fun j : 'I_2 => _; have := softmax_miss z ord0.
  have -> : crowd z ord0 = / 5.
    rewrite /crowd big_mkcond sum_two /= Rplus_0_l /z pair_0 pair_1 -exp_ln5.
    by congr exp; ring.
  by rewrite /share; lra.
have w1 : ∑_j w j = 1 by exact: (softmax_sum _ ord0).
rewrite sum_two in w1; rewrite !half_half; try by rewrite M1_sub mulmv_1 !dot_1; ring.
by apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero /V1; lra.
Qed.

(* The step is 4. *)
Lemma dpo_step_ends : let μ := dpo_tail_mean 2 (M1 0) (M1 0) (V1 1) ends id2 in
  ((- (1)) *: ((2 * 2) *: outer (∑_(k < 2 | (k.+1 < 2)%N) (μ k - ends (id2 k))) (V1 1)) *v V1 1
  = V1 4)%V.
Proof.
cbv zeta; rewrite !mulmv_scal mulmv_outer dot_1; apply: vec_eq => c.
rewrite /vscal /vsum big_mkcond sum_two /= /vsub perm1 ends_0 /dpo_tail_mean /comb.
rewrite sum_two /beta /= sum_two !perm1 ends_0 ends_1 /V1.
have [k E] := dpo_needs_no_square 2 (M1 0) (M1 0) (V1 1).
rewrite !E M1_sub mulmv_1 !dot_1.
have k0 a : 2 * 2 * ((0 - 0) * 1 * a) + k = k by ring.
by rewrite !k0; field; have := exp_pos k; lra.
Qed.

(* Mutant of dpo_blocks: the bound of η, not of ηβ *)
Lemma not_dpo_blocks_without_beta : ~ (forall (dx dy N : nat) (W W_ref : mat dy dx)
    (β η γ Δ spread spread_Z D B C : R),
  0 <= η * β -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N)
    (low low_Z : R),
  ‖x‖ = 1 -> spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  (forall j, low_Z <= 2 * β * ⟨(W - W_ref) *v x, y j⟩ <= low_Z + spread_Z) ->
  (forall j l, ‖y j - y l‖ <= D) ->
  let b := dp_block W W_ref β η γ Δ spread B C in
  let u := run full (nseq (N - 1) b) (dp_prompt x y r) i Dp.u in
  let μ := dpo_tail_mean β W W_ref x y τ in
  let gradient := ((2 * β) *: outer (∑_(k < N | (k.+1 < N)%N) (μ k - y (τ k))) x)%V in
  ‖u - ((- η) *: gradient) *v x‖ <= error_bound η γ Δ C spread spread_Z D N (N - 1)).
Proof.
have range j : 0 <= pair 1 0 j <= 0 + 1 by rewrite /pair; case: ifP; lra.
have range_Z j : 0 <= 2 * 2 * ⟨(M1 0 - M1 0) *v V1 1, ends j⟩ <= 0 + 0.
  by rewrite M1_sub mulmv_1 dot_1; lra.
move/(_ _ _ _ (M1 0) (M1 0) 2 1 (ln 5) 1 1 0 2 (7 / 2) 0 ltac:(lra) Rlt_0_1 ltac:(lra) ltac:(lra)
  (V1 1) ends (pair 1 0) id2 ord0 0 0 unit_1 (gaps ends_in_class) ranks_ends range range_Z
  ends_spread); cbv zeta.
by rewrite dpo_block_ends dpo_step_ends dist_1 /error_bound terms_ends; split_Rabs; lra.
Qed.
