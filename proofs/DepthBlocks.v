(* Chapter 13, Depth is not the price of ranking: the transformer with one-hot positions, and what
   each of its blocks makes of a state. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Numbers ────────────────────────────────────────────────────────────────────────────────── *)

(* Claim constant-depth, part slots. *)
Theorem constant_depth_slots : forall low high r p : R,
  low <= r <= high -> p = 0 \/ p = 1 ->
  relu (r + (high - low) * p - high) = if Req_EM_T p 1 then r - low else 0.
Proof.
move=> low high r p range [->|->]; rewrite /relu; case: Req_EM_T => e; try lra.
- by apply: Rmax_left; lra.
- by rewrite /= Rmax_right; lra.
Qed.

(* Claim constant-depth, part comparison. *)
Theorem constant_depth_comparison : forall Δ r_i r_j : R,
  0 < Δ -> r_i = r_j \/ 3 / 4 * Δ <= Rabs (r_j - r_i) ->
  clip (2 * (r_j - r_i) / Δ - 1 / 2) = if Rlt_dec r_i r_j then 1 else 0.
Proof.
move=> Δ a b Δ0 gap; have i0 := Rinv_0_lt_compat _ Δ0.
have i1 : Δ * / Δ = 1 by apply: Rinv_r; lra.
have E : 2 * (b - a) / Δ = 2 * ((b - a) * / Δ) by rewrite /Rdiv; ring.
rewrite E /clip /relu; case: Rlt_dec => lt.
  have : 3 / 4 * Δ <= b - a by case: gap; [lra | rewrite Rabs_pos_eq; lra].
  move=> le; have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ i0) le; rewrite Rmult_assoc i1 => q.
  by rewrite /= !Rmax_right; lra.
have : (b - a) * / Δ <= 0 by have := Rmult_le_compat_r _ (b - a) 0 (Rlt_le _ _ i0); lra.
by move=> q; rewrite /= !Rmax_left; lra.
Qed.

(* ── The transformer ────────────────────────────────────────────────────────────────────────── *)

Module Cd.
Inductive name := x | y | sq | r | one | p | slot | board | m | mean | u.
Inductive key := shaped | squared | masked.
Inductive unit := rise | fall.
End Cd.

Section Blocks.
Variables dx dy N : nat.

Definition cd_width (a : Cd.name) : nat := match a with
  | Cd.x => dx | Cd.y | Cd.mean | Cd.u => dy | Cd.p | Cd.slot | Cd.board | Cd.m => N | _ => 1 end.

Definition cd_stream : stream.
Proof.
refine {| row := Cd.name; width := cd_width;
  rows := [:: Cd.x; Cd.y; Cd.sq; Cd.r; Cd.one; Cd.p; Cd.slot; Cd.board; Cd.m; Cd.mean; Cd.u] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition cd_keys : stream.
Proof.
refine {| row := Cd.key;
  width := fun k => match k with Cd.shaped => dy | Cd.squared => 1%N | Cd.masked => N end;
  rows := [:: Cd.shaped; Cd.squared; Cd.masked] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition cd_units : stream.
Proof.
refine {| row := Cd.unit; width := fun _ => N; rows := [:: Cd.rise; Cd.fall] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* What a class of inputs decides. *)
Variables (W : mat dy dx) (η Δ low high C : R).

Definition everywhere n (c : R) : 'I_n -> 'I_1 -> R := fun _ _ => c.

(* slot += relu(r + (high − low) p − high). *)
Definition cd_spread : feed_forward cd_stream := @FeedForward cd_stream (one_row N)
  (* W_1 *) (fun _ b => match b with
    | Cd.r => everywhere 1 | Cd.p => identity (high - low) | _ => zero end)
  (* b_1 *) (fun _ _ => - high)
  (* W_2 *) (fun a _ => match a with Cd.slot => identity 1 | _ => zero end)
  (* b_2 *) (fun _ _ => 0).

(* A uniform head: logit 0, value N·slot, written to board. *)
Definition cd_broadcast : head cd_stream := @Head cd_stream (one_row 1) (one_row N)
  (* query *)  (fun _ b => match b with Cd.one => identity 0 | _ => zero end)
  (* key *)    (fun _ b => match b with Cd.one => identity 1 | _ => zero end)
  (* value *)  (fun _ b => match b with Cd.slot => identity (INR N) | _ => zero end)
  (* output *) (fun a _ => match a with Cd.board => identity 1 | _ => zero end).

(* m += relu(z) − relu(z−1), z = (board − r + low)/(Δ/2) − 1/2. *)
Definition cd_compare : feed_forward cd_stream := @FeedForward cd_stream cd_units
  (* W_1 *) (fun _ b => match b with
    | Cd.board => identity (2 / Δ) | Cd.r => everywhere (- (2 / Δ)) | _ => zero end)
  (* b_1 *) (fun k _ => match k with
    | Cd.rise => 2 * low / Δ - 1 / 2 | Cd.fall => 2 * low / Δ - 3 / 2 end)
  (* W_2 *) (fun a k => match a, k with
    | Cd.m, Cd.rise => identity 1 | Cd.m, Cd.fall => identity (- 1) | _, _ => zero end)
  (* b_2 *) (fun _ _ => 0).

(* Logit 2⟨W x, y_j⟩ − 1·sq_j − C⟨m, p_j⟩, value y, written to mean. *)
Definition cd_field : head cd_stream := @Head cd_stream cd_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Cd.shaped, Cd.x => (fun c d => 2 * W (c, d)) | Cd.squared, Cd.one => identity (- 1)
    | Cd.masked, Cd.m => identity (- C) | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Cd.shaped, Cd.y => identity 1 | Cd.squared, Cd.sq => identity 1
    | Cd.masked, Cd.p => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Cd.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Cd.mean => identity 1 | _ => zero end).

(* A uniform head: logit 0, value 2ηN(y − mean), written to u. *)
Definition cd_total : head cd_stream := @Head cd_stream (one_row 1) (one_row dy)
  (* query *)  (fun _ b => match b with Cd.one => identity 0 | _ => zero end)
  (* key *)    (fun _ b => match b with Cd.one => identity 1 | _ => zero end)
  (* value *)  (fun _ b => match b with
    | Cd.y => identity 1 | Cd.mean => identity (- 1) | _ => zero end)
  (* output *) (fun a _ => match a with Cd.u => identity (2 * η * INR N) | _ => zero end).

Definition cd_blocks : list (block cd_stream) :=
  [:: Block [::] (Some cd_spread); Block [:: cd_broadcast] (Some cd_compare);
      Block [:: cd_field] None; Block [:: cd_total] None].

End Blocks.

(* Tokens with anything in the rows slot, board, m, mean and u; the rows p hold the positions. *)
Definition cd_state {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (slot board m : 'I_N -> 'I_N -> R) (mean u : 'I_N -> vec 'I_dy) :
    'I_N -> token (cd_stream dx dy N) := fun i a => match a with
  | Cd.x => x | Cd.y => y i | Cd.sq => fun _ => ‖y i‖² | Cd.r => fun _ => r i
  | Cd.one => fun _ => 1 | Cd.p => fun j => if j == i then 1 else 0
  | Cd.slot => slot i | Cd.board => board i | Cd.m => m i | Cd.mean => mean i | Cd.u => u i end.

Arguments cd_state {dx dy N} x y r slot board m mean u.

(* The prompt. *)
Definition cd_prompt {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :=
  cd_state x y r (fun _ _ => 0) (fun _ _ => 0) (fun _ _ => 0) (fun _ => vzero) (fun _ => vzero).

Section Steps.
Variables (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R).
Variables (slot board m : 'I_N -> 'I_N -> R) (mean u : 'I_N -> vec 'I_dy).
Let X := cd_state x y r slot board m mean u.

Ltac coordinates := apply: functional_extensionality => i;
  apply: functional_extensionality_dep => a; apply: functional_extensionality => c.

Lemma cd_spread_step : transform full (Block [::] (Some (cd_spread dx dy N low high))) X
  = cd_state x y r
      (fun i a => slot i a + relu (r i + (high - low) * (if a == i then 1 else 0) - high))
      board m mean u.
Proof.
coordinates; rewrite /transform /= /feed /attend.
have E b d : X i b d + ∑_(h <- [::]) head_output full h X i b d = X i b d.
  by rewrite big_nil Rplus_0_r.
pose h : token (one_row N) := fun _ d =>
  relu (r i + (high - low) * (if d == i then 1 else 0) - high).
rewrite E (eq_apply h).
  by case: a c => c; blocks; rewrite ?Rplus_0_r ?Rplus_0_l ?Rmult_1_l.
move=> k d; rewrite (eq_apply (X i)) => [|b e]; last exact: E.
by blocks; congr relu; rewrite /everywhere !(Rplus_0_l, Rplus_0_r) Rmult_1_l.
Qed.

(* A uniform head. *)
Lemma uniform (I : finType) (s : I -> R) j : (forall l, s l = 0) -> softmax s j = / INR #|I|.
Proof.
move=> s0; rewrite /softmax s0 exp_0 (eq_bigr (fun=> 1)) => [|l _]; last by rewrite s0 exp_0.
by rewrite sum_const_card Rmult_1_r /Rdiv Rmult_1_l.
Qed.

Hypothesis N0 : (0 < N)%N.

Lemma cd_broadcast_output i a c : head_output full (cd_broadcast dx dy N) X i a c
  = apply (W_O (cd_broadcast dx dy N)) (fun _ c => ∑_j slot j c) a c.
Proof.
have n0 := INR_gt0 N0; apply: eq_apply => -[] d; apply: eq_bigr => j _.
have -> : attention full (cd_broadcast dx dy N) X i j = / INR N.
  rewrite -[N in INR N]card_ord; apply: uniform => l; rewrite /logit; blocks; ring.
by blocks; field; lra.
Qed.

Lemma cd_total_output i a c : head_output full (cd_total dx dy N η) X i a c
  = apply (W_O (cd_total dx dy N η)) (fun _ c => ∑_j ((y j c - mean j c) / INR N)) a c.
Proof.
have n0 := INR_gt0 N0; apply: eq_apply => -[] d; apply: eq_bigr => j _.
have -> : attention full (cd_total dx dy N η) X i j = / INR N.
  rewrite -[N in INR N]card_ord; apply: uniform => l; rewrite /logit; blocks; ring.
by blocks; rewrite /Rdiv; ring.
Qed.

Lemma cd_field_logit i j : logit (cd_field N W C) X i j
  = reduced W x (y j) - C * m i j.
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => 2 * ((W *v x)%V c * y j c))) => [|c _]; last first.
  blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * x d))) => [|d _]; last exact: Rmult_assoc.
  by rewrite sum_scal -/((W *v x)%V c); set w := mulmv _ _ _; ring.
rewrite sum_scal -[X in 2 * X + _]/(⟨W *v x, y j⟩).
rewrite [X in _ + (_ + (X + _))](eq_bigr (fun c => if c == j then - C * m i c else 0)).
  by rewrite sum_delta /reduced; set s := dot _ _; ring.
move=> c _; blocks; rewrite !(Rplus_0_l, Rplus_0_r) Rmult_1_l.
by case: (@eqP _ c j) => _; ring.
Qed.

Lemma cd_field_output i a c : head_output full (cd_field N W C) X i a c
  = apply (W_O (cd_field N W C)) (fun _ => comb (field_weights W C x y (m i)) y) a c.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _.
have -> : attention full (cd_field N W C) X i j = field_weights W C x y (m i) j.
  by apply: eq_softmax => l; exact: cd_field_logit.
by blocks; congr (_ * _); ring.
Qed.

Lemma cd_rank_step :
  transform full (Block [:: cd_broadcast dx dy N] (Some (cd_compare dx dy N Δ low))) X
  = cd_state x y r slot (fun i a => board i a + ∑_j slot j a)
      (fun i a => m i a + clip (2 * (board i a + ∑_j slot j a - (r i - low)) / Δ - 1 / 2)) mean u.
Proof.
coordinates; rewrite /transform /= /feed /attend.
pose Y := cd_state x y r slot (fun i a => board i a + ∑_j slot j a) m mean u.
have E b d : X i b d + ∑_(h <- [:: cd_broadcast dx dy N]) head_output full h X i b d = Y i b d.
  rewrite big_cons big_nil Rplus_0_r cd_broadcast_output.
  by case: b d => d; blocks; rewrite ?Rplus_0_r ?Rmult_1_l.
pose z d := 2 * (board i d + ∑_j slot j d - (r i - low)) / Δ - 1 / 2.
pose h : token (cd_units N) := fun k d =>
  match k with Cd.rise => relu (z d) | Cd.fall => relu (z d - 1) end.
rewrite E (eq_apply h); last first.
  move=> k d; rewrite (eq_apply (Y i)) => [|b e]; last exact: E.
  case: k d => d; blocks; congr relu; rewrite /z /everywhere /Rdiv;
    move: (∑_j slot j d) (board i d) (/ Δ) => v w e; field.
case: a c => c; blocks; rewrite ?Rplus_0_r ?Rplus_0_l ?Rmult_1_l //.
by rewrite /clip -/(z c); move: (relu _) (relu _) => v w; ring.
Qed.

Lemma cd_weigh_step : transform full (Block [:: cd_field N W C] None) X
  = cd_state x y r slot board m
      (fun i => mean i + comb (field_weights W C x y (m i)) y)%V u.
Proof.
coordinates; rewrite /transform /= /attend big_cons big_nil cd_field_output.
by case: a c => c; blocks; rewrite ?Rplus_0_r ?Rplus_0_l ?Rmult_1_l.
Qed.

Lemma cd_add_step : transform full (Block [:: cd_total dx dy N η] None) X
  = cd_state x y r slot board m mean
      (fun i => u i + (2 * η) *: comb (fun _ => 1%R) (fun j => y j - mean j))%V.
Proof.
have n0 := INR_gt0 N0; coordinates; rewrite /transform /= /attend big_cons big_nil cd_total_output.
case: a c => c; blocks; rewrite ?Rplus_0_r ?Rplus_0_l ?Rmult_1_l //.
rewrite /vadd /vscal /comb sum_div; congr (_ + _).
have -> : ∑_j (1 * (y j - mean j)%V c) = ∑_j (y j c - mean j c).
  by apply: eq_bigr => j _; rewrite /vsub Rmult_1_l.
by move: (∑_j _) => v; field; lra.
Qed.

End Steps.
