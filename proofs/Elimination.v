(* Chapter 5, One block: the layer eliminates exactly the winner, and two heads suffice. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask Weights Spacing Transformer Block.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The clipped step ───────────────────────────────────────────────────────────────────────── *)

Lemma clip_0 z : z <= 0 -> clip z = 0.
Proof. by move=> z0; rewrite /clip /relu !Rmax_left; lra. Qed.

Lemma clip_1 z : 1 <= z -> clip z = 1.
Proof. by move=> z1; rewrite /clip /relu !Rmax_right; lra. Qed.

Lemma clip_between z : clip z = Rmax 0 (Rmin 1 z).
Proof.
case: (Rle_lt_dec z 0) => z0; first by rewrite clip_0 // Rmin_right ?Rmax_left; lra.
case: (Rle_lt_dec 1 z) => z1; first by rewrite clip_1 // Rmin_left ?Rmax_right; lra.
by rewrite /clip /relu (Rmax_right 0 z) ?(Rmax_left 0 (z - 1)) ?Rmin_right ?Rmax_right; lra.
Qed.

Lemma Rmin_spec_pos z : 0 < z -> 0 < Rmin 1 z.
Proof. by move=> z0; apply: Rmin_glb_lt; lra. Qed.

Lemma clip_gt0 z : 0 < clip z <-> 0 < z.
Proof.
case: (Rle_lt_dec z 0) => z0; first by rewrite clip_0 //; lra.
by rewrite clip_between Rmax_right; have := Rmin_spec_pos z0; lra.
Qed.

(* The layer on any token, from its matrices. *)
Lemma feed_flag dx dy Δ B (e : token (el_stream dx dy)) : Δ <> 0 ->
  feed (eliminate dx dy Δ B) e El.flag ord0
  = e El.flag ord0 + clip (clip_at Δ B (e El.top ord0) (e El.r ord0) (e El.flag ord0)).
Proof.
move=> Δ0; rewrite /feed; blocks; rewrite /clip.
set z := clip_at _ _ _ _ _; set a := (X in relu X); set b := (X in _ + (_ * relu X + _)).
have -> : a = z by rewrite /a /z /clip_at; field.
have -> : b = z - 1 by rewrite /b /z /clip_at; field.
ring.
Qed.

(* z = 3/2 − 2(top − r)/Δ − B flag. *)
Lemma clip_atE Δ B top r f : Δ <> 0 -> clip_at Δ B top r f = 3 / 2 - 2 * ((top - r) / Δ) - B * f.
Proof. by move=> Δ0; rewrite /clip_at; field. Qed.

Lemma clip_winner Δ B top r : 0 < Δ -> Rabs (top - r) <= Δ / 4 ->
  clip (clip_at Δ B top r 0) = 1.
Proof.
move=> Δ0 near; apply: clip_1; rewrite clip_atE; last by lra.
have : (top - r) / Δ <= / 4; last by lra.
apply: (Rmult_le_reg_r Δ) => //; have -> : (top - r) / Δ * Δ = top - r by field; lra.
by have := Rle_abs (top - r); lra.
Qed.

Lemma clip_other Δ B top r : 0 < Δ -> r + 3 / 4 * Δ <= top -> clip (clip_at Δ B top r 0) = 0.
Proof.
move=> Δ0 far; apply: clip_0; rewrite clip_atE; last by lra.
have : 3 / 4 <= (top - r) / Δ; last by lra.
apply: (Rmult_le_reg_r Δ) => //; have -> : (top - r) / Δ * Δ = top - r by field; lra.
by lra.
Qed.

Lemma clip_flagged Δ spread B top r : 0 < Δ -> r - top <= spread -> 3 / 2 + 2 * spread / Δ <= B ->
  clip (clip_at Δ B top r 1) = 0.
Proof.
move=> Δ0 far BR; apply: clip_0; rewrite clip_atE; last by lra.
have : - (spread / Δ) <= (top - r) / Δ; last by lra.
apply: (Rmult_le_reg_r Δ) => //; have -> : (top - r) / Δ * Δ = top - r by field; lra.
have -> : - (spread / Δ) * Δ = - spread by field; lra.
by lra.
Qed.

(* Claim elimination-step, part winner; paper: E.7. The flag of the winner becomes 1. *)
Theorem elimination_step_winner : forall (dx dy : nat) (Δ B : R) (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> Rabs (e El.top ord0 - e El.r ord0) <= Δ / 4 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 1.
Proof.
move=> dx dy Δ B e Δ0 f0 near; rewrite feed_flag; last by lra.
by rewrite f0 clip_winner //; lra.
Qed.

(* Claim elimination-step, part others. m: the reward of the winner. *)
Theorem elimination_step_others : forall (dx dy : nat) (Δ B m : R) (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> Rabs (e El.top ord0 - m) <= Δ / 4 -> e El.r ord0 + Δ <= m ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = 0.
Proof.
move=> dx dy Δ B m e Δ0 f0 near gap; rewrite feed_flag; last by lra.
rewrite f0 clip_other //; first by lra.
by move: near; rewrite /Rabs; case: Rcase_abs; lra.
Qed.

Lemma mean_reward (T : finType) (A r : T -> R) low spread (j : T) :
  (forall l, 0 <= A l) -> ∑_l A l = 1 -> (forall l, low <= r l <= low + spread) ->
  r j - ∑_l (A l * r l) <= spread.
Proof.
move=> A0 A1 lr; have : low <= ∑_l (A l * r l); last by have := lr j; lra.
have -> : low = ∑_l (A l * low) by rewrite sum_scalr A1; ring.
by apply: sum_le => l _; have := lr l; have := A0 l; nra.
Qed.

(* What the heads put into the row top: the mean of the rewards under the winner head's weights. *)
Lemma attend_top dx dy (W : mat dy dx) (η γ Δ spread B C : R) (T : finType) (sees : rel T)
    (X : T -> token (el_stream dx dy)) (i : T) :
  attend sees (heads (el_block W η γ Δ spread B C)) X i El.top ord0
  = X i El.top ord0
    + ∑_l (attention sees (winner_head dx dy η γ Δ spread) X i l * X l El.r ord0).
Proof.
pose A j := attention sees (winner_head dx dy η γ Δ spread) X i j.
pose found : token (el_winner_values dy) := fun v =>
  match v with El.response => fun c => ∑_j (A j * X j El.y c)
  | El.reward => fun c => ∑_j (A j * X j El.r c) end.
rewrite /attend /= !big_cons big_nil /head_output (eq_apply found).
  by blocks; rewrite /found /A; ring.
by case=> d; apply: eq_bigr => j _; rewrite -/(A j); congr (_ * _); blocks; ring.
Qed.

(* Claim elimination-step, part mean: what the block puts into the row top, on any tokens. *)
Theorem elimination_step_mean : forall (dx dy : nat) (W : mat dy dx) (η γ Δ spread B C low : R)
    (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  (forall l, low <= X l El.r ord0 <= low + spread) -> X i El.top ord0 = 0 ->
  let A := attention full (winner_head dx dy η γ Δ spread) X i in
  let top := attend full (heads (el_block W η γ Δ spread B C)) X i El.top ord0 in
  (forall l, 0 <= A l) /\ ∑_l A l = 1 /\ top = ∑_l (A l * X l El.r ord0)
  /\ X j El.r ord0 - top <= spread.
Proof.
move=> dx dy W η γ Δ spread B C low T X i j lr t0 A top.
have A0 l : 0 <= A l by apply: Rlt_le; exact: softmax_gt0.
have A1 : ∑_l A l = 1 by exact: softmax_sum i.
have tE : top = ∑_l (A l * X l El.r ord0) by rewrite /top attend_top t0 Rplus_0_l.
by do 3 split=> //; rewrite tE; exact: (@mean_reward _ _ _ low).
Qed.

Lemma transform_flag dx dy (W : mat dy dx) (η γ Δ spread B C : R) (T : finType) (sees : rel T)
    (X : T -> token (el_stream dx dy)) (i : T) : Δ <> 0 ->
  let top := attend sees (heads (el_block W η γ Δ spread B C)) X i El.top ord0 in
  transform sees (el_block W η γ Δ spread B C) X i El.flag ord0
  = X i El.flag ord0 + clip (clip_at Δ B top (X i El.r ord0) (X i El.flag ord0)).
Proof.
move=> Δ0; pose e := attend sees (heads (el_block W η γ Δ spread B C)) X i.
rewrite -[transform _ _ _ _]/(feed (eliminate dx dy Δ B) e) feed_flag //.
have [-> ->] : e El.r ord0 = X i El.r ord0 /\ e El.flag ord0 = X i El.flag ord0; last by [].
by rewrite /e /attend /= !big_cons big_nil /head_output; split; blocks; ring.
Qed.

(* Claim elimination-step, part flagged: on any tokens whose rewards lie in an interval of length
   spread. *)
Theorem elimination_step_flagged : forall (dx dy : nat) (W : mat dy dx)
    (η γ Δ spread B C low : R) (T : finType) (X : T -> token (el_stream dx dy)) (i : T),
  0 < Δ -> 3 / 2 + 2 * spread / Δ <= B -> (forall l, low <= X l El.r ord0 <= low + spread) ->
  X i El.top ord0 = 0 -> X i El.flag ord0 = 1 ->
  transform full (el_block W η γ Δ spread B C) X i El.flag ord0 = 1.
Proof.
move=> dx dy W η γ Δ spread B C low T X i Δ0 BR lr t0 f1.
have far := proj2 (proj2 (proj2 (@elimination_step_mean _ _ W η γ Δ _ B C _ _ X i i lr t0))).
by rewrite transform_flag ?f1 ?(clip_flagged Δ0 far BR) //; lra.
Qed.

(* Claim elimination-step, part mean-needed: without it a flag that is 1 may move, to 3/2. *)
Theorem elimination_step_mean_needed : forall (dx dy : nat) (Δ spread m : R),
  0 < Δ ->
  exists e : token (el_stream dx dy),
  e El.flag ord0 = 1 /\ Rabs (e El.top ord0 - m) <= Δ / 4 /\ e El.r ord0 <= m + spread
  /\ feed (eliminate dx dy Δ (3 / 2 + 2 * spread / Δ)) e El.flag ord0 = 3 / 2.
Proof.
move=> dx dy Δ spread m Δ0.
pose e : token (el_stream dx dy) := fun a _ => match a with
  | El.flag => 1 | El.top => m - Δ / 4 | El.r => m + spread | _ => 0 end.
exists e; split; [|split; [|split]] => //; rewrite /e /=.
- have -> : m - Δ / 4 - m = - (Δ / 4) by ring.
  by rewrite Rabs_Ropp Rabs_pos_eq; lra.
- by lra.
rewrite feed_flag /=; last by lra.
have -> : clip_at Δ (3 / 2 + 2 * spread / Δ) (m - Δ / 4) (m + spread) 1 = / 2.
  by rewrite /clip_at; field; lra.
by rewrite clip_between Rmin_right ?Rmax_right; lra.
Qed.

(* Claim elimination-step, part reset. *)
Theorem elimination_step_reset : forall (dx dy : nat) (Δ B : R) (e : token (el_stream dx dy)),
  feed (eliminate dx dy Δ B) e El.top ord0 = 0.
Proof.
move=> dx dy Δ B e; rewrite /feed; blocks; have := relu_minus (e El.top ord0).
set a := relu (_ + _); set b := relu (_ + _).
have -> : a = relu (- e El.top ord0) by congr relu; ring.
have -> : b = relu (e El.top ord0) by congr relu; ring.
by lra.
Qed.

(* Claim elimination-step, part behind. *)
Theorem elimination_step_behind : forall (dx dy : nat) (η γ Δ spread : R) (T : finType)
    (X : T -> token (el_stream dx dy)) (i live out : T),
  0 <= γ -> X i El.one ord0 = 1 -> X live El.flag ord0 = 0 -> X out El.flag ord0 = 1 ->
  X out El.r ord0 - X live El.r ord0 <= spread ->
  logit (winner_head dx dy η γ Δ spread) X i out + γ * (spread + 2 * Δ)
  <= logit (winner_head dx dy η γ Δ spread) X i live.
Proof.
move=> dx dy η γ Δ spread T X i l o γ0 one f0 f1 le.
by rewrite !elimination_step_winner_logit // f0 f1; nra.
Qed.

(* ── Where the clipped step breaks ──────────────────────────────────────────────────────────── *)

(* Claim elimination-needs-gap, part runner-up: with r⁺ = m, at the gap Δ₁. *)
Theorem elimination_needs_gap_runner_up : forall (dx dy : nat) (Δ B Δ1 : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 -> e El.r ord0 = e El.top ord0 - Δ1 ->
  feed (eliminate dx dy Δ B) e El.flag ord0 = Rmax 0 (Rmin 1 (3 / 2 - 2 * Δ1 / Δ)).
Proof.
move=> dx dy Δ B Δ1 e Δ0 f0 rE; rewrite feed_flag; last by lra.
rewrite f0 rE -clip_between Rplus_0_l; congr clip; rewrite /clip_at; field; lra.
Qed.

(* Claim elimination-needs-gap, parts breaks, either: for any r⁺ the flag of a live token is
   positive exactly for gaps to the winner's reward m below ¾Δ + (m − r⁺). *)
Theorem elimination_needs_gap_either : forall (dx dy : nat) (Δ B m : R)
    (e : token (el_stream dx dy)),
  0 < Δ -> e El.flag ord0 = 0 ->
  0 < feed (eliminate dx dy Δ B) e El.flag ord0
  <-> m - e El.r ord0 < 3 / 4 * Δ + (m - e El.top ord0).
Proof.
move=> dx dy Δ B m e Δ0 f0; rewrite feed_flag; last by lra.
rewrite f0 Rplus_0_l clip_gt0 clip_atE; last by lra.
set t := _ - e El.r ord0; have E : t / Δ * Δ = t by field; lra.
split=> H.
  have : t / Δ * Δ < 3 / 4 * Δ by apply: Rmult_lt_compat_r; lra.
  by rewrite E /t; lra.
have : t / Δ < 3 / 4; last by lra.
by apply: (Rmult_lt_reg_r Δ) => //; rewrite E /t; lra.
Qed.

(* ── Two heads suffice ──────────────────────────────────────────────────────────────────────── *)

(* The paper's three heads: one selects the winner, one fetches its reward, one weighs the field. *)
Definition select_head dx dy (η γ Δ spread : R) : head (el_stream dx dy) :=
  @Head (el_stream dx dy) (one_row 1) (one_row dy)
  (winner_query γ) (winner_key Δ spread)
  (* value *)  (fun _ b => match b with El.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with El.u => identity (2 * η) | _ => zero end).

Definition fetch_head dx dy (γ Δ spread : R) : head (el_stream dx dy) :=
  @Head (el_stream dx dy) (one_row 1) (one_row 1)
  (winner_query γ) (winner_key Δ spread)
  (* value *)  (fun _ b => match b with El.r => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with El.top => identity 1 | _ => zero end).

Definition three_head_block dx dy W (η γ Δ spread B C : R) : block (el_stream dx dy) :=
  Block [:: select_head dx dy η γ Δ spread; fetch_head dx dy γ Δ spread; field_head W η C]
    (Some (eliminate dx dy Δ B)).

(* Claim two-heads-suffice, part same-weights. *)
Theorem two_heads_suffice_same_weights : forall (dx dy : nat) (η γ Δ spread : R) (T : finType)
    (sees : rel T) (X : T -> token (el_stream dx dy)) (i j : T),
  attention sees (select_head dx dy η γ Δ spread) X i j
  = attention sees (fetch_head dx dy γ Δ spread) X i j
  /\ attention sees (winner_head dx dy η γ Δ spread) X i j
  = attention sees (fetch_head dx dy γ Δ spread) X i j.
Proof. by []. Qed.

(* Claim two-heads-suffice, part field. *)
Theorem two_heads_suffice_field : forall (dx dy : nat) (W : mat dy dx) (η C : R) (T : finType)
    (sees : rel T) (X : T -> token (el_stream dx dy)) (i : T) (c : 'I_dy),
  head_output sees (field_head W η C) X i El.u c
  = -2 * η * ∑_j (attention sees (field_head W η C) X i j * X j El.y c).
Proof.
move=> dx dy W η C T sees X i c; rewrite /head_output.
pose found : token (one_row dy) :=
  fun _ c => ∑_j (attention sees (field_head W η C) X i j * X j El.y c).
rewrite (eq_apply found); first by blocks; rewrite /found; ring.
by case=> d; apply: eq_bigr => j _; congr (_ * _); blocks; ring.
Qed.

Lemma merged_output dx dy (η γ Δ spread : R) (T : finType) (sees : rel T)
    (X : T -> token (el_stream dx dy)) (i : T) a c :
  head_output sees (winner_head dx dy η γ Δ spread) X i a c
  = head_output sees (select_head dx dy η γ Δ spread) X i a c
  + head_output sees (fetch_head dx dy γ Δ spread) X i a c.
Proof.
pose A j := attention sees (winner_head dx dy η γ Δ spread) X i j.
pose found_y : vec 'I_dy := fun c => ∑_j (A j * X j El.y c).
pose found_r : vec 'I_1 := fun c => ∑_j (A j * X j El.r c).
pose both : token (el_winner_values dy) := fun v =>
  match v with El.response => found_y | El.reward => found_r end.
pose one_y : token (one_row dy) := fun _ => found_y.
pose one_r : token (one_row 1) := fun _ => found_r.
rewrite /head_output (eq_apply both) ?(eq_apply one_y) ?(eq_apply one_r).
- by case: a c => c; blocks; rewrite /one_y /one_r; ring.
- by case=> d; apply: eq_bigr => j _; rewrite -/(A j); congr (_ * _); blocks; ring.
- by case=> d; apply: eq_bigr => j _; rewrite -/(A j); congr (_ * _); blocks; ring.
- by case=> d; apply: eq_bigr => j _; rewrite -/(A j); congr (_ * _); blocks; ring.
Qed.

(* Claim two-heads-suffice, part merged: the block with two heads is the block with three, on all
   tokens and under any mask. *)
Theorem two_heads_suffice_merged : forall (dx dy : nat) (W : mat dy dx) (η γ Δ spread B C : R)
    (T : finType) (sees : rel T) (X : T -> token (el_stream dx dy)),
  transform sees (el_block W η γ Δ spread B C) X
  = transform sees (three_head_block W η γ Δ spread B C) X.
Proof.
move=> dx dy W η γ Δ spread B C T sees X; apply: functional_extensionality => i.
rewrite /transform /=; congr feed.
apply: functional_extensionality_dep => a; apply: functional_extensionality => c.
by rewrite /attend !big_cons big_nil merged_output; ring.
Qed.
