(* Chapter 5, One block: the winner head, the field head, and a feed-forward layer that eliminates
   the winner. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask Weights Spacing Transformer.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The block ──────────────────────────────────────────────────────────────────────────────── *)

(* The rows; the keys of the field head; the values of the winner head; the hidden units. *)
Module El.
Inductive name := x | y | sq | r | one | flag | top | u.
Inductive field_key := shaped | squared.
Inductive winner_value := response | reward.
Inductive unit := rise | fall | minus_top | plus_top.
End El.

Section Block.
Variables dx dy : nat.

Definition el_width (a : El.name) : nat :=
  match a with El.x => dx | El.y | El.u => dy | _ => 1 end.

Definition el_stream : stream.
Proof.
refine {| row := El.name; width := el_width;
  rows := [:: El.x; El.y; El.sq; El.r; El.one; El.flag; El.top; El.u] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition el_field_keys : stream.
Proof.
refine {| row := El.field_key; width := fun k => if k is El.shaped then dy else 1%N;
  rows := [:: El.shaped; El.squared] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition el_winner_values : stream.
Proof.
refine {| row := El.winner_value; width := fun k => if k is El.response then dy else 1%N;
  rows := [:: El.response; El.reward] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition el_units : stream.
Proof.
refine {| row := El.unit; width := fun _ => 1%N;
  rows := [:: El.rise; El.fall; El.minus_top; El.plus_top] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* What a class of inputs decides: W, the step size η, the temperature γ, the gap Δ, the spread of
   the rewards, and the masks B (of the layer) and C (of the field head). *)
Variables (W : mat dy dx) (η γ Δ spread B C : R).

(* Logit γ·1·(r_j − 2(spread+Δ) flag_j); writes 2η y_j to u and r_j to top. *)
Definition winner_query : matrix (one_row 1) el_stream := fun _ b =>
  match b with El.one => identity γ | _ => zero end.
Definition winner_key : matrix (one_row 1) el_stream := fun _ b =>
  match b with El.r => identity 1 | El.flag => identity (- (2 * (spread + Δ))) | _ => zero end.

Definition winner_head : head el_stream := @Head el_stream (one_row 1) el_winner_values
  winner_query winner_key
  (* value *)  (fun v b => match v, b with
    | El.response, El.y => identity 1 | El.reward, El.r => identity 1 | _, _ => zero end)
  (* output *) (fun a v => match a, v with
    | El.u, El.response => identity (2 * η) | El.top, El.reward => identity 1 | _, _ => zero end).

(* Logit 2⟨W x, y_j⟩ − 1·(sq_j + C flag_j); writes −2η y_j to u. *)
Definition field_head : head el_stream := @Head el_stream el_field_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | El.shaped, El.x => (fun c d => 2 * W (c, d)) | El.squared, El.one => identity (- 1)
    | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | El.shaped, El.y => identity 1 | El.squared, El.sq => identity 1
    | El.squared, El.flag => identity C | _, _ => zero end)
  (* value *)  (fun _ b => match b with El.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with El.u => identity (- (2 * η)) | _ => zero end).

(* flag += relu(z) − relu(z−1) with z = 3/2 − (top − r)/(Δ/2) − B flag; top −= top. *)
Definition eliminate : feed_forward el_stream := @FeedForward el_stream el_units
  (* W_1 *) (fun k b => match k, b with
    | (El.rise | El.fall), El.top => identity (- (2 / Δ))
    | (El.rise | El.fall), El.r => identity (2 / Δ)
    | (El.rise | El.fall), El.flag => identity (- B)
    | El.minus_top, El.top => identity (- 1) | El.plus_top, El.top => identity 1
    | _, _ => zero end)
  (* b_1 *) (fun k _ => match k with El.rise => 3 / 2 | El.fall => 1 / 2 | _ => 0 end)
  (* W_2 *) (fun a k => match a, k with
    | El.flag, El.rise => identity 1 | El.flag, El.fall => identity (- 1)
    | El.top, El.minus_top => identity 1 | El.top, El.plus_top => identity (- 1)
    | _, _ => zero end)
  (* b_2 *) (fun _ _ => 0).

Definition el_block : block el_stream := Block [:: winner_head; field_head] (Some eliminate).
End Block.

Arguments el_block {dx dy} W η γ Δ spread B C.

(* Tokens of the query x with responses y and rewards r, flags f and a common accumulator u. *)
Definition el_state {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r f : 'I_N -> R)
    (u : vec 'I_dy) : 'I_N -> token (el_stream dx dy) := fun j a =>
  match a with
  | El.x => x | El.y => y j | El.sq => fun _ => ‖y j‖² | El.r => fun _ => r j
  | El.one => fun _ => 1 | El.flag => fun _ => f j | El.top => fun _ => 0 | El.u => u
  end.

(* The prompt: no flags, nothing accumulated. *)
Definition el_prompt {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :=
  el_state x y r (fun _ => 0) vzero.

(* The clipped step, and its argument for a token of reward r and flag f. *)
Definition clip (z : R) : R := relu z - relu (z - 1).
Definition clip_at (Δ B top r f : R) : R := 3 / 2 - (top - r) / (Δ / 2) - B * f.

Lemma relu_minus z : relu z - relu (- z) = z.
Proof. by rewrite /relu /Rmax; do 2 case: Rle_dec; lra. Qed.

(* ── What the block does, from the matrices ─────────────────────────────────────────────────── *)

(* Claim elimination-step, part heads: the logit of the winner head. *)
Theorem elimination_step_winner_logit : forall (dx dy : nat) (η γ Δ spread : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  X i El.one ord0 = 1 ->
  logit (winner_head dx dy η γ Δ spread) X i j
  = γ * X j El.r ord0 - 2 * γ * (spread + Δ) * X j El.flag ord0.
Proof. by move=> dx dy η γ Δ spread T X i j one; rewrite /logit; blocks; rewrite one; ring. Qed.

(* Claim elimination-step, part heads: the logit of the field head. *)
Theorem elimination_step_field_logit : forall (dx dy : nat) (W : mat dy dx) (η C : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  X i El.one ord0 = 1 ->
  logit (field_head W η C) X i j
  = 2 * ⟨W *v X i El.x, X j El.y⟩ - X j El.sq ord0 - C * X j El.flag ord0.
Proof.
move=> dx dy W η C T X i j one; rewrite /logit; blocks; rewrite one.
rewrite (eq_bigr (fun c => 2 * ((W *v X i El.x)%V c * X j El.y c))) => [|c _].
  by rewrite sum_scal /dot; ring.
blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * X i El.x d))) => [|d _].
  by rewrite sum_scal -/((W *v X i El.x)%V c); ring.
exact: Rmult_assoc.
Qed.

(* The weights of the two heads, and what one block makes of a state. *)
Definition winner_weights {N} (γ Δ spread : R) (r f : 'I_N -> R) :=
  softmax (fun j => γ * r j - 2 * γ * (spread + Δ) * f j).
Definition field_weights {dx dy N} (W : mat dy dx) (C : R) x (y : 'I_N -> vec 'I_dy)
    (f : 'I_N -> R) := softmax (fun j => reduced W x (y j) - C * f j).

Section Step.
Variables (dx dy N : nat) (W : mat dy dx) (η γ Δ spread B C : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r f : 'I_N -> R) (u : vec 'I_dy).
Let X := el_state x y r f u.
Let A := winner_weights γ Δ spread r f.
Let F := field_weights W C x y f.
Let best := ∑_j (A j * r j).

Lemma el_winner_attention i j : attention full (winner_head dx dy η γ Δ spread) X i j = A j.
Proof. by apply: eq_softmax => l; rewrite elimination_step_winner_logit. Qed.

Lemma el_field_attention i j : attention full (field_head W η C) X i j = F j.
Proof. by apply: eq_softmax => l; rewrite elimination_step_field_logit. Qed.

(* What the heads write, through W_O. *)
Definition winner_found : token (el_winner_values dy) := fun v =>
  match v with El.response => comb A y | El.reward => fun _ => best end.
Definition field_found : token (one_row dy) := fun _ => comb F y.

Lemma el_winner_output i a c : head_output full (winner_head dx dy η γ Δ spread) X i a c
  = apply (W_O (winner_head dx dy η γ Δ spread)) winner_found a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite el_winner_attention; blocks.
  by congr (_ * _); ring.
by congr (_ * _); ring.
Qed.

Lemma el_field_output i a c :
  head_output full (field_head W η C) X i a c = apply (W_O (field_head W η C)) field_found a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite el_field_attention; blocks.
by congr (_ * _); ring.
Qed.

Definition after_heads : 'I_N -> token (el_stream dx dy) := fun i a => match a with
  | El.top => fun _ => best
  | El.u => (u + (2 * η) *: (comb A y - comb F y))%V
  | a => X i a end.

Lemma el_attend i a c :
  attend full (heads (el_block W η γ Δ spread B C)) X i a c = after_heads i a c.
Proof.
rewrite /attend /= !big_cons big_nil el_winner_output el_field_output.
by case: a c => c; blocks; rewrite /field_found /vadd /vscal /vsub; ring.
Qed.

Definition hidden_units (i : 'I_N) : token el_units := fun k _ => match k with
  | El.rise => relu (clip_at Δ B best (r i) (f i))
  | El.fall => relu (clip_at Δ B best (r i) (f i) - 1)
  | El.minus_top => relu (- best)
  | El.plus_top => relu best end.

(* One block makes a state of a state. *)
Lemma el_step : Δ <> 0 -> transform full (el_block W η γ Δ spread B C) X
  = el_state x y r (fun j => f j + clip (clip_at Δ B best (r j) (f j)))
      (u + (2 * η) *: (comb A y - comb F y)).
Proof.
move=> Δ0; apply: functional_extensionality => i; apply: functional_extensionality_dep => a.
apply: functional_extensionality => c; rewrite /transform /= /feed el_attend.
rewrite (eq_apply (hidden_units i)); last first.
  move=> k d; rewrite (eq_apply (after_heads i)) => [|b e]; last exact: el_attend.
  by case: k d => d; blocks; congr relu; rewrite /clip_at; field.
have := relu_minus best => topE.
by case: a c => c; blocks; rewrite /clip /=; try ring; lra.
Qed.
End Step.
