(* Chapter 14, What else this says: N − 1 blocks with the head of DPO make its gradient step. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 Dpo.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The block of chapter 5 without the row of squares ──────────────────────────────────────── *)

Section Block.
Variables dx dy : nat.
Variables (W W_ref : mat dy dx) (β η γ Δ spread B C : R).

(* Logit γ·1·(r_j − 2(spread+Δ) flag_j); writes 2ηβ y_j to u and r_j to top. *)
Definition dp_winner : head (dp_stream dx dy) :=
  @Head (dp_stream dx dy) (one_row 1) (el_winner_values dy)
  (* query *)  (fun _ b => match b with Dp.one => identity γ | _ => zero end)
  (* key *)    (fun _ b => match b with
    | Dp.r => identity 1 | Dp.flag => identity (- (2 * (spread + Δ))) | _ => zero end)
  (* value *)  (fun v b => match v, b with
    | El.response, Dp.y => identity 1 | El.reward, Dp.r => identity 1 | _, _ => zero end)
  (* output *) (fun a v => match a, v with
    | Dp.u, El.response => identity (2 * η * β) | Dp.top, El.reward => identity 1
    | _, _ => zero end).

(* flag += relu(z) − relu(z−1) with z = 3/2 − (top − r)/(Δ/2) − B flag; top −= top. *)
Definition dp_eliminate : feed_forward (dp_stream dx dy) := @FeedForward (dp_stream dx dy) el_units
  (* W_1 *) (fun k b => match k, b with
    | (El.rise | El.fall), Dp.top => identity (- (2 / Δ))
    | (El.rise | El.fall), Dp.r => identity (2 / Δ)
    | (El.rise | El.fall), Dp.flag => identity (- B)
    | El.minus_top, Dp.top => identity (- 1) | El.plus_top, Dp.top => identity 1
    | _, _ => zero end)
  (* b_1 *) (fun k _ => match k with El.rise => 3 / 2 | El.fall => 1 / 2 | _ => 0 end)
  (* W_2 *) (fun a k => match a, k with
    | Dp.flag, El.rise => identity 1 | Dp.flag, El.fall => identity (- 1)
    | Dp.top, El.minus_top => identity 1 | Dp.top, El.plus_top => identity (- 1)
    | _, _ => zero end)
  (* b_2 *) (fun _ _ => 0).

Definition dp_block : block (dp_stream dx dy) :=
  Block [:: dp_winner; dp_head W W_ref β η C] (Some dp_eliminate).
End Block.

Arguments dp_block {dx dy} W W_ref β η γ Δ spread B C.

(* Tokens of the query x with responses y and rewards r, flags f and a common accumulator u. *)
Definition dp_state {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r f : 'I_N -> R)
    (u : vec 'I_dy) : 'I_N -> token (dp_stream dx dy) := fun j a =>
  match a with
  | Dp.x => x | Dp.y => y j | Dp.r => fun _ => r j | Dp.one => fun _ => 1
  | Dp.flag => fun _ => f j | Dp.top => fun _ => 0 | Dp.u => u end.
Definition dp_prompt {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :=
  dp_state x y r (fun _ => 0) vzero.

Section Step.
Variables (dx dy N : nat) (W W_ref : mat dy dx) (β η γ Δ spread B C : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r f : 'I_N -> R) (u : vec 'I_dy).
Let X := dp_state x y r f u.
Let A := winner_weights γ Δ spread r f.
Let F := softmax (fun j => 2 * β * ⟨(W - W_ref) *v x, y j⟩ - C * f j).
Let best := ∑_j (A j * r j).

Lemma dp_winner_attention i j : attention full (dp_winner dx dy β η γ Δ spread) X i j = A j.
Proof. by apply: eq_softmax => l; rewrite /logit; blocks; ring. Qed.

Lemma dp_field_attention i j : attention full (dp_head W W_ref β η C) X i j = F j.
Proof. by apply: eq_softmax => l; rewrite dpo_head. Qed.

Definition dp_winner_found : token (el_winner_values dy) := fun v =>
  match v with El.response => comb A y | El.reward => fun _ => best end.
Definition dp_field_found : token (one_row dy) := fun _ => comb F y.

Lemma dp_winner_output i a c : head_output full (dp_winner dx dy β η γ Δ spread) X i a c
  = apply (W_O (dp_winner dx dy β η γ Δ spread)) dp_winner_found a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite dp_winner_attention; blocks.
  by congr (_ * _); ring.
by congr (_ * _); ring.
Qed.

Lemma dp_field_output i a c : head_output full (dp_head W W_ref β η C) X i a c
  = apply (W_O (dp_head W W_ref β η C)) dp_field_found a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite dp_field_attention; blocks.
by congr (_ * _); ring.
Qed.

Definition dp_after_heads : 'I_N -> token (dp_stream dx dy) := fun i a => match a with
  | Dp.top => fun _ => best
  | Dp.u => (u + (2 * (η * β)) *: (comb A y - comb F y))%V
  | a => X i a end.

Lemma dp_attend i a c :
  attend full (heads (dp_block W W_ref β η γ Δ spread B C)) X i a c = dp_after_heads i a c.
Proof.
rewrite /attend /= !big_cons big_nil dp_winner_output dp_field_output.
by case: a c => c; blocks; rewrite /dp_field_found /vadd /vscal /vsub; ring.
Qed.

Definition dp_hidden (i : 'I_N) : token el_units := fun k _ => match k with
  | El.rise => relu (clip_at Δ B best (r i) (f i))
  | El.fall => relu (clip_at Δ B best (r i) (f i) - 1)
  | El.minus_top => relu (- best)
  | El.plus_top => relu best end.

Lemma dp_step : Δ <> 0 -> transform full (dp_block W W_ref β η γ Δ spread B C) X
  = dp_state x y r (fun j => f j + clip (clip_at Δ B best (r j) (f j)))
      (u + (2 * (η * β)) *: (comb A y - comb F y)).
Proof.
move=> Δ0; apply: functional_extensionality => i; apply: functional_extensionality_dep => a.
apply: functional_extensionality => c; rewrite /transform /= /feed dp_attend.
rewrite (eq_apply (dp_hidden i)); last first.
  move=> k d; rewrite (eq_apply (dp_after_heads i)) => [|b e]; last exact: dp_attend.
  by case: k d => d; blocks; congr relu; rewrite /clip_at; field.
have := relu_minus best => topE.
by case: a c => c; blocks; rewrite /clip /=; try ring; lra.
Qed.
End Step.

(* ── The blocks ─────────────────────────────────────────────────────────────────────────────── *)

Section Turns.
Variables (dx dy N : nat) (W W_ref : mat dy dx) (β η γ Δ spread spread_Z D B C low low_Z : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}).
Hypotheses (Δ0 : 0 < Δ) (ηβ0 : 0 <= η * β) (B_large : 3 / 2 + 2 * spread / Δ <= B).
Hypothesis hot : ln 5 <= γ * Δ.
Hypotheses (apart : spaced Δ r) (ranked : ranks r τ).
Hypothesis range : forall j, low <= r j <= low + spread.
Let Z j := 2 * β * ⟨(W - W_ref) *v x, y j⟩.
Hypothesis range_Z : forall j, low_Z <= Z j <= low_Z + spread_Z.
Hypothesis dist : forall i j, ‖y i - y j‖ <= D.

Let A k := winner_weights γ Δ spread r (flags τ k).
Let F k := softmax (fun j => Z j - C * flags τ k j).
Let γ0 : 0 < γ := hot_γ Δ0 hot.
Let near (k : 'I_N) := top_near k γ0 Δ0 apart ranked range hot.

Fixpoint dp_accumulated K : vec 'I_dy := match K with
  | 0 => vzero
  | K.+1 => dp_accumulated K + (2 * (η * β)) *: (comb (A K) y - comb (F K) y) end%V.

Lemma dp_state_after K : run full (nseq K (dp_block W W_ref β η γ Δ spread B C)) (dp_prompt x y r)
  = dp_state x y r (flags τ K) (dp_accumulated K).
Proof.
elim: K => [|K IH]; first by congr dp_state; apply: functional_extensionality.
rewrite run_nseq IH dp_step; last by lra.
congr dp_state; apply: functional_extensionality => j.
case: (ltnP K N) => KN.
  exact: (flags_step Δ0 B_large apart ranked range near).
exact: (flags_stay γ τ Δ0 B_large range).
Qed.

(* The mean over the live responses is μ_k, and the eliminated are not far from nothing. *)
Lemma dp_field_error (k : 'I_N) : ‖comb (F k) y - dpo_tail_mean β W W_ref x y τ k‖
  <= D * share (field_crowd C spread_Z N k).
Proof.
pose live (j : 'I_N) : bool := (k <= (τ^-1%g j : 'I_N))%N.
have [c E] := dpo_needs_no_square β W W_ref x.
have flag j : flags τ k j = if live j then 0 else 1.
  by rewrite /flags /live ltnNge; case: (k <= _)%N.
have -> : dpo_tail_mean β W W_ref x y τ k
    = comb (softmax_on live (fun j => Z j - C * flags τ k j)) y.
  apply: vec_eq => a; rewrite /dpo_tail_mean /comb [RHS](reindex_inj (@perm_inj _ τ)) /=.
  apply: eq_bigr => l _; congr (_ * _).
  rewrite -[RHS](softmax_on_shift live _ c) /softmax_on {1}/live permK /beta.
  rewrite [in RHS](reindex_inj (@perm_inj _ τ)) /=.
  case: ifP => kl; last by rewrite /Rdiv Rmult_0_l.
  rewrite E flag /live permK kl; congr (exp _ / _); first by rewrite /Z; ring.
  apply: eq_big => [j|j kj]; first by rewrite /live permK.
  by rewrite E flag /live permK kj; congr exp; rewrite /Z; ring.
apply: (mean_to_part (w := τ k)) => //; first by rewrite /live permK.
have Nk : 0 < INR (N - k) by apply: INR_gt0; rewrite subn_gt0.
apply: (Rle_trans _ (INR k * exp (low_Z + spread_Z - C))).
  rewrite -(sum_out τ k); apply: sum_le => j /negbTE lj; apply: exp_mono.
  by rewrite flag lj; have := range_Z j; lra.
apply: (Rle_trans _ (field_crowd C spread_Z N k * (INR (N - k) * exp low_Z))).
  right; rewrite /field_crowd (_ : low_Z + spread_Z - C = - (C - spread_Z) + low_Z); last by ring.
  by rewrite exp_plus; field; lra.
apply: Rmult_le_compat_l.
  apply: Rmult_le_pos; last by left; exact: exp_pos.
  by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: Rinv_0_lt_compat].
rewrite -(sum_live τ k); apply: sum_le => j lj; apply: exp_mono.
by rewrite flag /live lj; have := range_Z j; lra.
Qed.

Let term (k : 'I_N) : vec 'I_dy :=
  ((2 * (η * β)) *: (y (τ k) - dpo_tail_mean β W W_ref x y τ k))%V.

Lemma dp_accumulated_error K : (K <= N)%N ->
  ‖dp_accumulated K - ∑_(k < N | (k < K)%N) term k‖
  <= error_bound (η * β) γ Δ C spread spread_Z D N K.
Proof.
rewrite /error_bound; elim: K => [_|K IH KN].
  rewrite big_ord0 (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0; first by lra.
  by apply: vec_eq => a; rewrite /vsub /vscal /vsum big_pred0 //= /vzero; ring.
rewrite sum_last /= vsum_succ; set a := dp_accumulated K; set s := vsum _ _; set k := Ordinal KN.
set v := comb (A K) y; set m := comb (F K) y; set μ := dpo_tail_mean β W W_ref x y τ k.
have -> : (a + 2 * (η * β) *: (v - m) - (s + term k)
  = (a - s) + (2 * (η * β) *: (v - y (τ k)) + (- (2 * (η * β))) *: (m - μ)))%V.
  by apply: vec_eq => c; rewrite /term -/μ /vadd /vsub /vscal; ring.
apply: Rle_trans (vnorm_triangle _ _) _; rewrite Rmult_plus_distr_l.
apply: Rplus_le_compat; first exact: IH (ltnW KN).
apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
have e1 : ‖v - y (τ k)‖ <= D * share (winner_crowd γ Δ spread N K).
  exact: (winner_error k dist γ0 Δ0 apart ranked range).
have e2 : ‖m - μ‖ <= D * share (field_crowd C spread_Z N K) by exact: dp_field_error k.
have t0 : 0 <= 2 * (η * β) by lra.
by have := Rmult_le_compat_l _ _ _ t0 (Rplus_le_compat _ _ _ _ e1 e2); lra.
Qed.
End Turns.

(* Claim dpo-needs-no-square, part blocks: the weights, and what they know of the class, before any
   input; spread_Z is the spread of the logits, and ∇L that of dpo_gradient. *)
Theorem dpo_blocks : forall (dx dy N : nat) (W W_ref : mat dy dx)
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
  ‖u - ((- η) *: gradient) *v x‖ <= error_bound (η * β) γ Δ C spread spread_Z D N (N - 1).
Proof.
move=> dx dy N W V β η γ Δ spread spread_Z D B C ηβ0 Δ0 hot B0 x y r τ i low low_Z x1 apart ranked.
move=> range range_Z dist; cbv zeta.
rewrite (@dp_state_after _ _ _ W V β η γ Δ spread B C low x y r τ Δ0 B0 hot apart ranked range).
rewrite [dp_state _ _ _ _ _ i Dp.u]/=.
have := @dp_accumulated_error _ _ _ W V β η γ Δ spread spread_Z D C low low_Z x y r τ Δ0 ηβ0 hot
  apart ranked range range_Z dist (N - 1)%N (leq_subr 1 N).
set s := vsum _ _.
suff -> : s = (((- η) *: ((2 * β) *: outer (∑_(k < N | (k.+1 < N)%N)
    (dpo_tail_mean β W V x y τ k - y (τ k))) x)) *v x)%V by [].
rewrite !mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²) -vnorm_sqr x1.
apply: vec_eq => c; rewrite /s /vscal /vsum !Rmult_1_l -!sum_scal.
apply: eq_big => [k|k _]; first by rewrite ltn_subRL add1n.
by rewrite /vscal /vsub; ring.
Qed.
