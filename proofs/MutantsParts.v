(* Statements that are not theorems, of chapters 8, 10, 11, 13 and 14: parts of the proofs. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep OnlineLoss.
From Icalign Require Import Weights Spacing Transformer BlockErrors Mutants.
From Icalign Require Import SinkPairs SinkAttention Elsewhere NoiseLone MaskedBlock Mask.
From Icalign Require Import DepthBlocks Depth OwnTerms StartMarks Turns.
From Icalign Require Import MutantsStep MutantsReadout MutantsBlocks.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma weights_one : weights (fun _ : 'I_1 => 1).
Proof. by split=> [_|]; [lra | rewrite big_ord_recl big_ord0 Rplus_0_r]. Qed.

Lemma comb_one (w a : R) : comb (fun _ : 'I_1 => w) (fun _ => V1 a) = V1 (w * a).
Proof. by apply: vec_eq => c; rewrite /comb big_ord_recl big_ord0 Rplus_0_r. Qed.

(* Mutant of mq_own_term_norm: half of D₀ *)
Lemma not_half_apart : ~ (forall (d : nat) (I J : finType) (y : I -> vec 'I_d)
    (z : J -> vec 'I_d) (A : I -> R) (B : J -> R) (D0 : R),
  weights A -> weights B -> (forall i j, ‖y i - z j‖ <= D0) -> ‖comb A y - comb B z‖ <= D0 / 2).
Proof.
move/(_ _ _ _ (fun _ : 'I_1 => V1 1) (fun _ : 'I_1 => V1 0) _ _ 1 weights_one weights_one).
rewrite !comb_one -[(V1 (1 * 1) - V1 (1 * 0))%V]/(V1 (1 * 1 - 1 * 0)) !vnorm_1 => H.
have one (i j : 'I_1) : ‖V1 1 - V1 0‖ <= 1.
  by rewrite -[(V1 1 - V1 0)%V]/(V1 (1 - 0)) vnorm_1; clear H; split_Rabs; lra.
have {}H := H one; clear one; move: H; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention_norm: half of E *)
Lemma not_half_off : ~ (forall (d : nat) (I : finType) (w z : I -> R) (v : I -> vec 'I_d) (E : R),
  (forall j, Rabs (w j - z j) <= E) -> ‖comb w v - comb z v‖ <= E / 2 * ∑_j ‖v j‖).
Proof.
move/(_ _ _ (fun _ : 'I_1 => 1) (fun _ => 0) (fun _ => V1 1) 1).
rewrite !comb_one -[(V1 (1 * 1) - V1 (0 * 1))%V]/(V1 (1 * 1 - 0 * 1)).
rewrite big_ord_recl big_ord0 !vnorm_1 => H.
have one (j : 'I_1) : Rabs (1 - 0) <= 1 by clear H; split_Rabs; lra.
have {}H := H one; clear one; move: H; split_Rabs; lra.
Qed.

(* Mutant of sink_linear_attention_sharp_in_lambda: for a sink of any strength *)
Lemma not_sharp_for_a_weak_sink : ~ (forall ε δ : R, 0 < ε -> 0 < δ ->
  forall (dx dv n : nat) (λ : R) (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (p : vec 'I_dv)
    (i : 'I_n),
  (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) -> p <> vzero ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let lost := ‖(sinh ε / ε) *: comb (fun j => ⟨x i, x j⟩) v - sum‖ in
  let second := INR n * exp (- λ) * (sinh (2 * ε) / ε) * ∑_j ‖v j‖ in
  Rabs (lost / second - 1) <= δ).
Proof.
move/(_ 1 (/ 4) Rlt_0_1 ltac:(lra) 1%N 1%N 1%N 0 (fun _ => V1 1) (fun _ => V1 1) (V1 1) ord0) => H.
have z1 (j : 'I_1) : ⟨V1 1, V1 1⟩ = 1 by rewrite dot_1; ring.
have p0 : V1 1 <> vzero by move/(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
have := H z1 (fun _ => erefl) p0; cbv zeta.
rewrite (@sink_ratio 1 1 1 1 0 (fun _ => V1 1) (fun _ => V1 1) (V1 1) ord0 Rlt_0_1 z1) //.
rewrite Ropp_0 exp_0 [INR 1]/= !Rmult_1_r; have v0 := exp_pos (- (1)).
have := exp_ineq1_le 1; set a := exp 1 + exp (- (1)) => e2; have a2 : 2 <= a by rewrite /a; lra.
have i0 : 0 < / a <= / 2 by split; [apply: Rinv_0_lt_compat; lra | apply: Rinv_le_contravar; lra].
have : (1 + 1 / a) / (1 + a + 1 ^ 2) <= 3 / 8.
  apply: (Rmult_le_reg_r (1 + a + 1 ^ 2)); first by lra.
  by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
by split_Rabs; lra.
Qed.

(* Mutant of mask_selection_mask_error: a round adds no error *)
Lemma not_a_perfect_round : ~ (forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k j : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X K := run causal (nseq K (printed_block N W η γ c C)) (masked_prompt x y r) in
  let off K := X K i Ca.m (widen_ord (ltn_ord i) j) - flags τ K j in
  Rabs (off k.+1) <= Rabs (off k)).
Proof.
move/(_ 1%N 1%N 2%N (M1 0) 0 6 1 1 0) => H.
have small : 5 / 2 * (INR 2 - 1) * mask_c 6 1 1 * exp (- (6)) <= 1.
  have e2 := exp_ineq1_le 1; have e6 : 64 <= exp 6.
    have -> : 6 = INR 6 * 1 by rewrite /=; ring.
    rewrite -exp_pow (_ : 64 = 2 ^ 6); last by ring.
    by apply: pow_incr; lra.
  have -> : mask_c 6 1 1 = 21 by rewrite /mask_c; field.
  rewrite exp_Ropp [INR 2]/=; have : / exp 6 <= / 64 by apply: Rinv_le_contravar; lra.
  by lra.
have {}H := H ltac:(lra) Rlt_0_1 small vzero (fun _ => vzero) (pair 1 0) 0 ord_max 1%g ord0 ord_max.
have apart : spaced 1 (pair 1 0).
  by move=> a b; rewrite /pair; case: (unliftP ord0 a) => [a' ->|->];
     case: (unliftP ord0 b) => [b' ->|->]; rewrite ?(ord1 a') ?(ord1 b') //= => _; split_Rabs; lra.
have range j : 0 <= pair 1 0 j <= 0 + 1 by rewrite /pair; case: ifP => _; lra.
have ranked : ranks (prefix (ltn_ord (ord_max : 'I_2)) (pair 1 0)) (1%g : {perm 'I_2}).
  by move=> k l kl; rewrite !perm1 /prefix /pair -!val_eqE /=;
     case: k l kl => [[|[|?]] ?] [[|[|?]] ?] //= _; lra.
have := H apart range ranked; cbv zeta.
set b := printed_block _ _ _ _ _ _; have XE K : run causal (nseq K b) (masked_prompt vzero
    (fun _ => vzero) (pair 1 0)) ord_max Ca.m
  = ca_record (mask_γ 6 1) (mask_c 6 1 1) 0 causal (pair 1 0) (fun _ => 0) one_hot K ord_max.
  by rewrite -[masked_prompt _ _ _]/(ca_state (fun _ => vzero) (fun _ => vzero)
    (fun j => ‖vzero‖²) (pair 1 0) (fun _ => 0) one_hot (fun _ => vzero) (fun _ => vzero)) ca_run.
rewrite !XE printed_record [ca_record _ _ _ _ _ _ _ 0 _]/= /flags ltn0 /vzero.
rewrite invg1 perm1 /=.
rewrite (@printed_weights _ 6 1 1 (pair 1 0) ord_max 0%N ord_max).
set z := fun j : 'I_2 => _; have := softmax_gt0 z ord_max.
rewrite Rplus_0_l !Rminus_0_r Rabs_R0; move: (softmax z ord_max) => a a0.
by rewrite Rabs_pos_eq; lra.
Qed.

(* Mutant of constant_depth_norm: responses without dimension too (the first part alone) *)
Lemma not_without_directions : ~ (forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R),
  0 <= η -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) ->
  let X := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) in
  let z := (X i Cd.u - ((- η) *: gradient W x y τ) *v x)%V in
  forall E, (forall v, ‖v‖ = 1 -> ⟨v, z⟩ <= E) -> ‖z‖ <= E).
Proof.
move/(_ 1%N 0%N 1%N vzero 0 1 0 0 0 (Rle_refl _) Rlt_0_1 (V1 1) (fun _ => vzero) (fun _ => 0)).
move/(_ 1%g ord0) => H; have x1 : ‖V1 1‖ = 1 by rewrite vnorm_1 Rabs_R1.
have apart : spaced (3 / 4 * 1) (fun _ : 'I_1 => 0) by move=> j l; rewrite !ord1 eqxx.
have := H x1 apart (fun _ => conj (Rle_refl _) (Rle_refl _)) (- (1)); cbv zeta; set z := vsub _ _.
have flat (v : vec 'I_0) : ‖v‖ = 0 by rewrite /vnorm /sqnorm /dot big_ord0 sqrt_0.
by move/(_ (fun v v1 => False_ind _ ltac:(by rewrite flat in v1; lra))); rewrite flat; lra.
Qed.

(* Mutant of noise_kendall_lone: the distance n from every place (the distance alone) *)
Lemma not_equally_far : ~ (forall (m n d : nat) (W : mat m d) (x : vec 'I_d)
    (y : 'I_n.+1 -> vec 'I_m) (ρ : {perm 'I_n}) (lone a : 'I_n.+1) (p : vec 'I_m),
  (forall j, j != lone -> y j = p) ->
  kendall (lift_perm ord_max lone ρ) (lift_perm a lone ρ) = n).
Proof.
move/(_ 0%N 2%N 0%N vzero vzero (fun _ => vzero) 1%g ord0 (inord 1) vzero (fun _ _ => erefl)).
by rewrite lone_kendall inordK.
Qed.

(* Mutant of noise_kendall_nearly: place a counted with those after it (the first part alone) *)
Lemma not_one_tail_more : ~ (forall (m n d : nat) (x : vec 'I_d) (y : 'I_n.+1 -> vec 'I_m)
    (ρ : {perm 'I_n}) (lone a : 'I_n.+1) (p : vec 'I_m) (η D : R),
  (forall j, j != lone -> y j = p) -> ‖y lone - p‖ = D -> 0 < D -> ‖x‖ = 1 -> 0 < η -> (a < n)%N ->
  let τ := lift_perm ord_max lone ρ in
  let τ' := lift_perm a lone ρ in
  let moved W := ‖ranked_step η W x y τ - ranked_step η W x y τ'‖ in
  let s W := score W x (y lone) - score W x p in
  forall W, moved W
    = 2 * η * ∑_(k < n.+1 | (a <= k)%N) (D * exp (s W) / (exp (s W) + INR (n - k)))).
Proof.
have x1 : ‖V1 1‖ = 1 by rewrite vnorm_1 Rabs_R1.
have others (j : 'I_2) : j != ord0 -> two 1 0 j = V1 0 by rewrite /two /pair => /negbTE ->.
have far : ‖two 1 0 ord0 - V1 0‖ = 1.
  by rewrite /two pair_0 -[(V1 1 - V1 0)%V]/(V1 (1 - 0)) vnorm_1 Rminus_0_r Rabs_R1.
move/(_ 1%N 1%N 1%N (V1 1) (two 1 0) 1%g ord0 ord0 (V1 0) 1 1 others far Rlt_0_1 x1 Rlt_0_1 isT).
move/(_ (M1 0)).
have [E _] := @noise_kendall_nearly 1 1 1 (V1 1) (two 1 0) 1%g ord0 ord0 (V1 0) 1 1 others far
  Rlt_0_1 x1 Rlt_0_1 isT.
have {}E := E (M1 0); cbv zeta in E; cbv zeta; rewrite E; set s := score _ _ _ - _.
rewrite 2!big_mkcond !Smoothness.sum_two /= => {}E.
have : 0 < 1 * exp s / (exp s + 1).
  by apply: Rdiv_lt_0_compat; have := exp_pos s; lra.
by lra.
Qed.

(* Mutant of nope_needs_a_start_rewards: numbers within Δ/2, not Δ/4 (the second part alone) *)
Lemma not_marked_within_half : ~ (forall (Δ : R) (e : token sm_stream),
  0 < Δ -> e Sm.one ord0 = 1 -> e Sm.b ord0 = 0 ->
  forall best worst high low,
      worst + Δ <= best -> Rabs (high - best) <= Δ / 2 -> Rabs (low - worst) <= Δ / 2 ->
      e Sm.a ord0 = high - low -> feed (mark_layer Δ) e Sm.b ord0 = 0).
Proof.
pose e : token sm_stream := @unmarked_prompt 1 (fun _ => 0) ord0.
move/(_ 1 e Rlt_0_1 erefl erefl 1 0 (/ 2) (/ 2)) => H.
have h1 : 0 + 1 <= 1 by clear H; lra.
have h2 : Rabs (/ 2 - 1) <= 1 / 2 by clear H; split_Rabs; lra.
have h3 : Rabs (/ 2 - 0) <= 1 / 2 by clear H; split_Rabs; lra.
have h4 : e Sm.a ord0 = / 2 - / 2 by rewrite Rminus_eq_0.
have [one _] := @nope_needs_a_start_rewards 1 e Rlt_0_1 erefl erefl.
by have := H h1 h2 h3 h4; rewrite one //; lra.
Qed.

(* Mutant of nope_needs_a_start_marks: all tokens marked but the first (the marks alone) *)
Lemma not_all_but_the_first : ~ (forall (N : nat) (γ Δ spread : R),
  0 < Δ -> ln (4 * (INR N - 1) * spread / Δ) / Δ <= γ ->
  forall (r : 'I_N -> R) (low : R) (i : 'I_N),
  spaced Δ r -> (forall j, low <= r j <= low + spread) ->
  run causal [:: mark_block γ Δ] (unmarked_prompt r) i Sm.b ord0
  = if i == 0%N :> nat then 0 else 1).
Proof.
have range j : 0 <= pair 1 0 j <= 0 + 1 by rewrite /pair; case: ifP; lra.
set γ := ln (4 * (INR 2 - 1) * 1 / 1) / 1.
move/(_ 2%N γ 1 1 Rlt_0_1 (Rle_refl _) _ 0 ord0 (gaps ends_in_class) range) => E.
have [_] := @nope_needs_a_start_marks 2 γ 1 1 Rlt_0_1 (Rle_refl _) _ 0 ord0 (gaps ends_in_class)
  range.
by rewrite E /=; lra.
Qed.
