(* Chapter 8, Multiple queries II: the block of two filtered heads, among the tokens of M queries
   and a sink. Blocks and places count from 0. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 OwnTerms.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The block ──────────────────────────────────────────────────────────────────────────────── *)

(* The rows of chapter 5; b marks the sink, joint is for the sum over the queries. *)
Module Mt.
Inductive name := x | y | sq | r | one | flag | top | u | b | joint.
End Mt.

Section Block.
Variables dx dy : nat.

Definition mt_width (a : Mt.name) : nat :=
  match a with Mt.x => dx | Mt.y | Mt.u | Mt.joint => dy | _ => 1 end.

Definition mt_stream : stream.
Proof.
refine {| row := Mt.name; width := mt_width;
  rows := [:: Mt.x; Mt.y; Mt.sq; Mt.r; Mt.one; Mt.flag; Mt.top; Mt.u; Mt.b; Mt.joint] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Variables (W : mat dy dx) (η γ1 γ2 γβ Δ low spread B C : R).

(* Logit γ₁⟨x_i, x_j⟩ + γ₂·1·(r_j − 2(spread+Δ) flag_j + low b_j); writes 2η y_j to u, and
   r_j + low b_j to top. *)
Definition mt_winner : head mt_stream :=
  @Head mt_stream (ow_winner_keys dx) (el_winner_values dy)
  (* query *)  (fun k b => match k, b with
    | Ow.query, Mt.x => identity γ1 | Ow.reward, Mt.one => identity γ2 | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Ow.query, Mt.x => identity 1 | Ow.reward, Mt.r => identity 1
    | Ow.reward, Mt.flag => identity (- (2 * (spread + Δ))) | Ow.reward, Mt.b => identity low
    | _, _ => zero end)
  (* value *)  (fun v b => match v, b with
    | El.response, Mt.y => identity 1 | El.reward, Mt.r => identity 1
    | El.reward, Mt.b => identity low | _, _ => zero end)
  (* output *) (fun a v => match a, v with
    | Mt.u, El.response => identity (2 * η) | Mt.top, El.reward => identity 1 | _, _ => zero end).

(* Logit γ_β⟨x_i, x_j⟩ + 2⟨W x_i, y_j⟩ − 1·(sq_j + C flag_j); writes −2η y_j to u. *)
Definition mt_field : head mt_stream := @Head mt_stream (ow_field_keys dx dy) (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Ow.asker, Mt.x => identity γβ | Ow.shaped, Mt.x => (fun c d => 2 * W (c, d))
    | Ow.squared, Mt.one => identity (- 1) | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Ow.asker, Mt.x => identity 1 | Ow.shaped, Mt.y => identity 1
    | Ow.squared, Mt.sq => identity 1 | Ow.squared, Mt.flag => identity C | _, _ => zero end)
  (* value *)  (fun _ b => match b with Mt.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Mt.u => identity (- (2 * η)) | _ => zero end).

(* The layer of chapter 5: flag += relu(z) − relu(z−1) with z = 3/2 − (top − r)/(Δ/2) − B flag;
   top −= top. *)
Definition mt_eliminate : feed_forward mt_stream := @FeedForward mt_stream el_units
  (* W_1 *) (fun k b => match k, b with
    | (El.rise | El.fall), Mt.top => identity (- (2 / Δ))
    | (El.rise | El.fall), Mt.r => identity (2 / Δ)
    | (El.rise | El.fall), Mt.flag => identity (- B)
    | El.minus_top, Mt.top => identity (- 1) | El.plus_top, Mt.top => identity 1
    | _, _ => zero end)
  (* b_1 *) (fun k _ => match k with El.rise => 3 / 2 | El.fall => 1 / 2 | _ => 0 end)
  (* W_2 *) (fun a k => match a, k with
    | Mt.flag, El.rise => identity 1 | Mt.flag, El.fall => identity (- 1)
    | Mt.top, El.minus_top => identity 1 | Mt.top, El.plus_top => identity (- 1)
    | _, _ => zero end)
  (* b_2 *) (fun _ _ => 0).

Definition mt_block : block mt_stream := Block [:: mt_winner; mt_field] (Some mt_eliminate).
End Block.

Arguments mt_winner dx dy η γ1 γ2 Δ low spread : clear implicits.
Arguments mt_field {dx dy} W η γβ C.
Arguments mt_block {dx dy} W η γ1 γ2 γβ Δ low spread B C.

(* ── Tokens: M queries with N responses each, and the sink, of which only b is not zero ──────── *)

Section State.
Variables (dx dy M N : nat) (W : mat dy dx) (η γ1 γ2 γβ Δ low spread B C : R).
Variables (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R).
Notation T := (option ('I_M * 'I_N)).

Definition at_x (t : T) : vec 'I_dx := if t is Some p then x p.1 else vzero.
Definition at_y (t : T) : vec 'I_dy := if t is Some p then y p.1 p.2 else vzero.
Definition at_r (t : T) : R := if t is Some p then r p.1 p.2 else 0.
Definition at_one (t : T) : R := if t is Some _ then 1 else 0.
Definition at_b (t : T) : R := if t is Some _ then 0 else 1.

Definition mt_state (f : T -> R) (u j : T -> vec 'I_dy) (t : T) : token (mt_stream dx dy) :=
  fun a => match a with
  | Mt.x => at_x t | Mt.y => at_y t | Mt.sq => fun _ => ‖at_y t‖² | Mt.r => fun _ => at_r t
  | Mt.one => fun _ => at_one t | Mt.flag => fun _ => f t | Mt.top => fun _ => 0
  | Mt.u => u t | Mt.b => fun _ => at_b t | Mt.joint => j t end.

Definition mt_prompt := mt_state (fun _ => 0) (fun _ => vzero) (fun _ => vzero).

Section Step.
Variables (f : T -> R) (u j : T -> vec 'I_dy).
Let X := mt_state f u j.
Let zw (t s : T) := γ1 * ⟨at_x t, at_x s⟩
  + γ2 * at_one t * (at_r s - 2 * (spread + Δ) * f s + low * at_b s).
Let zf (t s : T) := γβ * ⟨at_x t, at_x s⟩ + 2 * ⟨W *v at_x t, at_y s⟩
  - at_one t * (‖at_y s‖² + C * f s).
Let A t := softmax (zw t).
Let F t := softmax (zf t).
Let best t := ∑_s (A t s * (at_r s + low * at_b s)).

Lemma mt_winner_logit t s : logit (mt_winner dx dy η γ1 γ2 Δ low spread) X t s = zw t s.
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => γ1 * (at_x t c * at_x s c))) => [|c _]; last by blocks; ring.
by rewrite sum_scal -[X in γ1 * X + _]/(⟨at_x t, at_x s⟩) /zw; set p := dot _ _; ring.
Qed.

Lemma mt_winner_attention t s :
  attention full (mt_winner dx dy η γ1 γ2 Δ low spread) X t s = A t s.
Proof. by apply: eq_softmax => l; exact: mt_winner_logit. Qed.

Lemma mt_field_logit t s : logit (mt_field W η γβ C) X t s = zf t s.
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => γβ * (at_x t c * at_x s c))) => [|c _]; last by blocks; ring.
rewrite [X in _ + (X + _)](eq_bigr (fun c => 2 * ((W *v at_x t)%V c * at_y s c)));
  last first => [c _|].
  blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * at_x t d))) => [|d _]; last exact: Rmult_assoc.
  by rewrite sum_scal -/((W *v at_x t)%V c); set w := mulmv _ _ _; ring.
rewrite !sum_scal -[X in γβ * X + _]/(⟨at_x t, at_x s⟩).
rewrite -[X in _ + (2 * X + _)]/(⟨W *v at_x t, at_y s⟩).
by rewrite /zf; set p := dot _ _; set q := dot _ _; set v := sqnorm _; ring.
Qed.

Lemma mt_field_attention t s : attention full (mt_field W η γβ C) X t s = F t s.
Proof. by apply: eq_softmax => l; exact: mt_field_logit. Qed.

Let found t : token (el_winner_values dy) := fun v =>
  match v with El.response => comb (A t) at_y | El.reward => fun _ => best t end.
Let weighed t : token (one_row dy) := fun _ => comb (F t) at_y.

Lemma mt_winner_output t a c : head_output full (mt_winner dx dy η γ1 γ2 Δ low spread) X t a c
  = apply (W_O (mt_winner dx dy η γ1 γ2 Δ low spread)) (found t) a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => s _; rewrite mt_winner_attention; blocks.
  by congr (_ * _); ring.
by congr (_ * _); ring.
Qed.

Lemma mt_field_output t a c :
  head_output full (mt_field W η γβ C) X t a c = apply (W_O (mt_field W η γβ C)) (weighed t) a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => s _; rewrite mt_field_attention; blocks.
by congr (_ * _); ring.
Qed.

Let after t : token (mt_stream dx dy) := fun a => match a with
  | Mt.top => fun _ => best t
  | Mt.u => (u t + (2 * η) *: (comb (A t) at_y - comb (F t) at_y))%V
  | a => X t a end.

Lemma mt_attend t a c :
  attend full (heads (mt_block W η γ1 γ2 γβ Δ low spread B C)) X t a c = after t a c.
Proof.
rewrite /attend /= !big_cons big_nil mt_winner_output mt_field_output.
by case: a c => c; blocks; rewrite /weighed /vadd /vscal /vsub; ring.
Qed.

Let units t : token el_units := fun k _ => match k with
  | El.rise => relu (clip_at Δ B (best t) (at_r t) (f t))
  | El.fall => relu (clip_at Δ B (best t) (at_r t) (f t) - 1)
  | El.minus_top => relu (- best t)
  | El.plus_top => relu (best t) end.

Lemma mt_step : Δ <> 0 -> transform full (mt_block W η γ1 γ2 γβ Δ low spread B C) X
  = mt_state (fun t => f t + clip (clip_at Δ B (best t) (at_r t) (f t)))
      (fun t => u t + (2 * η) *: (comb (A t) at_y - comb (F t) at_y))%V j.
Proof.
move=> Δ0; apply: functional_extensionality => t; apply: functional_extensionality_dep => a.
apply: functional_extensionality => c; rewrite /transform /= /feed mt_attend.
rewrite (eq_apply (units t)); last first.
  move=> k d; rewrite (eq_apply (after t)) => [|b e]; last exact: mt_attend.
  by case: k d => d; blocks; congr relu; rewrite /clip_at; field.
have := relu_minus (best t) => topE.
by case: a c => c; blocks; rewrite /clip /=; try ring; lra.
Qed.

(* Where the sink asks, the two heads look at all tokens alike. *)
Lemma mt_sink_level : comb (A None) at_y = comb (F None) at_y.
Proof.
apply: vec_eq => c; apply: eq_bigr => s _; congr (_ * _); apply: eq_softmax => l.
rewrite /zw /zf /= (_ : (W *v vzero)%V = vzero) ?dot_zerol; first by ring.
by apply: vec_eq => d; apply: sum_eq0 => e _; rewrite /vzero; ring.
Qed.
End Step.
End State.

(* ── Own tokens, and the rest ───────────────────────────────────────────────────────────────── *)

Unset Strict Implicit.

Section Parts.
Variables (M N : nat) (a : 'I_M) (i0 : 'I_N).
Notation T := (option ('I_M * 'I_N)).
Definition own_part (s : T) : bool := if s is Some p then p.1 == a else false.

Lemma part_sum (F : T -> R) : ∑_(s | own_part s) F s = ∑_j F (Some (a, j)).
Proof.
rewrite (reindex_onto (fun j => Some (a, j)) (fun s => if s is Some p then p.2 else i0)) /=.
  by apply: eq_bigl => j; rewrite !eqxx.
by case=> [[b j]|] //= /eqP ->.
Qed.

Lemma all_sum (F : T -> R) : ∑_s F s = F None + ∑_b ∑_j F (Some (b, j)).
Proof.
rewrite (sum_pick None) sum_pair; congr (_ + _).
rewrite (reindex_onto Some (fun s => odflt (a, i0) s)) /=; last by case.
by apply: eq_big => [p|[b j] _] //; rewrite eqxx.
Qed.

Lemma rest_sum (F : T -> R) :
  ∑_(s | ~~ own_part s) F s = F None + ∑_(b | b != a) ∑_j F (Some (b, j)).
Proof.
have := all_sum F; rewrite (sum_ID own_part predT) /= part_sum (sum_pick a) => E.
have same u v w p : u + v = w + (u + p) -> v = w + p by lra.
exact: same E.
Qed.

Lemma part_mean z (ζ : 'I_N -> R) c d (Y : T -> vec 'I_d) :
  (forall j, z (Some (a, j)) = ζ j + c) ->
  comb (softmax_on own_part z) Y = comb (softmax ζ) (fun j => Y (Some (a, j))).
Proof.
move=> zE; apply: vec_eq => e; rewrite /comb /softmax_on part_sum.
rewrite (eq_bigr (fun t => if own_part t then
    exp (z t) / ∑_j exp (z (Some (a, j))) * Y t e else 0)) => [|t _]; last first.
  by case: (own_part t); rewrite // /Rdiv !Rmult_0_l.
rewrite sum_if part_sum; apply: eq_bigr => j _; congr (_ * _).
by rewrite -(softmax_shift ζ c) /softmax zE; congr (_ / _); apply: eq_bigr => l _; rewrite zE.
Qed.
End Parts.
