(* Chapter 5, Theorem 3.2: on two responses two heads and no feed-forward layer make one gradient
   step, with an error that is known exactly. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Rows x, y, sq = ‖y‖², r, 1; the keys of the field head. *)
Module Bt.
Inductive name := x | y | sq | r | one.
Inductive key := shaped | squared.
End Bt.

Section Block.
Variables dx dy : nat.

Definition bt_width (a : Bt.name) : nat :=
  match a with Bt.x => dx | Bt.y => dy | _ => 1 end.

Definition bt_stream : stream.
Proof.
refine {| row := Bt.name; width := bt_width; rows := [:: Bt.x; Bt.y; Bt.sq; Bt.r; Bt.one] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition bt_keys : stream.
Proof.
refine {| row := Bt.key; width := fun k => if k is Bt.shaped then dy else 1%N;
  rows := [:: Bt.shaped; Bt.squared] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Variables (W : mat dy dx) (η γ : R).

(* Logit γ·1·r_j; writes −2η y_j to y. *)
Definition bt_winner : head bt_stream := @Head bt_stream (one_row 1) (one_row dy)
  (* query *)  (fun _ b => match b with Bt.one => identity γ | _ => zero end)
  (* key *)    (fun _ b => match b with Bt.r => identity 1 | _ => zero end)
  (* value *)  (fun _ b => match b with Bt.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Bt.y => identity (- (2 * η)) | _ => zero end).

(* Logit 2⟨W x, y_j⟩ − 1·sq_j; writes 2η y_j to y. *)
Definition bt_field : head bt_stream := @Head bt_stream bt_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Bt.shaped, Bt.x => (fun c d => 2 * W (c, d)) | Bt.squared, Bt.one => identity (- 1)
    | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Bt.shaped, Bt.y => identity 1 | Bt.squared, Bt.sq => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Bt.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Bt.y => identity (2 * η) | _ => zero end).

Definition bt_block : block bt_stream := Block [:: bt_winner; bt_field] None.

Definition bt_prompt N (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :
    'I_N -> token bt_stream :=
  fun j a => match a with
  | Bt.x => x | Bt.y => y j | Bt.sq => fun _ => ‖y j‖² | Bt.r => fun _ => r j
  | Bt.one => fun _ => 1 end.
End Block.

Arguments bt_prompt {dx dy N} x y r.

(* Claim bt-two-heads, part rewards. *)
Theorem bt_two_heads_rewards : forall (dx dy N : nat) (η γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (bt_winner dx dy η γ) (bt_prompt x y r) i j = γ * r j.
Proof. by move=> dx dy N η γ x y r i j; rewrite /logit; blocks; ring. Qed.

(* Claim bt-two-heads, part scores; for any number of responses. *)
Theorem bt_two_heads_scores : forall (dx dy N : nat) (W : mat dy dx) (η : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (bt_field W η) (bt_prompt x y r) i j = score W x (y j) + ‖W *v x‖².
Proof.
move=> dx dy N W η x y r i j; rewrite pl_shift_reduced /reduced /logit; blocks.
rewrite (eq_bigr (fun c => 2 * ((W *v x)%V c * y j c))) => [|c _].
  by rewrite sum_scal /dot; ring.
blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * x d))) => [|d _].
  by rewrite sum_scal -/((W *v x)%V c); ring.
exact: Rmult_assoc.
Qed.

Lemma bt_output dx dy N (W : mat dy dx) (η γ : R) x (y : 'I_N -> vec 'I_dy) r (i : 'I_N) :
  run full [:: bt_block W η γ] (bt_prompt x y r) i Bt.y
  = (y i + (2 * η) *: (comb (softmax (fun j => score W x (y j))) y
                       - comb (softmax (fun j => γ * r j)) y))%V.
Proof.
apply: vec_eq => c; rewrite /run /= /transform /= /attend !big_cons big_nil /head_output.
set cm := comb _ y; set cw := comb _ y.
pose won : token (one_row dy) := fun _ => cw; pose met : token (one_row dy) := fun _ => cm.
rewrite (@eq_apply _ _ (W_O (bt_winner dx dy η γ)) _ won).
  rewrite (@eq_apply _ _ (W_O (bt_field W η)) _ met).
    by blocks; rewrite /won /met /vadd /vsub /vscal; ring.
  case=> d; apply: eq_bigr => j _; congr (_ * _); last by blocks; ring.
  rewrite -(softmax_shift (fun l => score W x (y l)) (‖W *v x‖²)).
  by apply: eq_softmax => l; exact: bt_two_heads_scores.
case=> d; apply: eq_bigr => j _; congr (_ * _); last by blocks; ring.
by apply: eq_softmax => l; exact: bt_two_heads_rewards.
Qed.

(* Claim bt-two-heads, part update; paper: Theorem 3.2. The tokens move by −ΔW x in the row y, up to
   the error of what the winner head finds, and not in the other rows. *)
Theorem bt_two_heads_update : forall (dx dy : nat) (W : mat dy dx) (η γ : R) (x : vec 'I_dx)
    (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 ->
  let X := bt_prompt x y r in
  let out := run full [:: bt_block W η γ] X i in
  let found := comb (attention full (bt_winner dx dy η γ) X i) y in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  (out Bt.y = y i - ΔW *v x - (2 * η) *: (found - y (τ ord0)))%V
  /\ (forall a, a <> Bt.y -> out a = X i a).
Proof.
move=> dx dy W η γ x y r τ i x1 X out found ΔW; split; last first.
  move=> a ay; apply: functional_extensionality => c.
  rewrite /out /run /= /transform /= /attend !big_cons big_nil /head_output.
  by case: a ay c => // _ c; blocks; ring.
have -> : found = comb (softmax (fun j => γ * r j)) y.
  apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _).
  by apply: eq_softmax => l; exact: bt_two_heads_rewards.
have mean : comb (softmax (fun j => score W x (y j))) y = tail_mean W x y τ ord0.
  rewrite -live_mean; apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _).
  rewrite -(softmax_on_shift _ _ (- ‖W *v x‖²)) -softmax_on_all /softmax_on /=.
  by congr (_ / _); [|apply: eq_bigr => l _]; rewrite pl_shift_reduced.
rewrite /out /ΔW bt_output gradient_step_terms // mean.
have -> : first_terms η W x y τ (2 - 1) = ((2 * η) *: (y (τ ord0) - tail_mean W x y τ ord0))%V.
  by apply: vec_eq => c; rewrite /first_terms /vsum (big_pred1 ord0) //; case=> [[|[|k]]].
by apply: vec_eq => c; rewrite /vadd /vsub /vscal; ring.
Qed.

(* Claim bt-two-heads, part error; paper: Theorem 3.2. The response at every token becomes
   y_i − ΔW x, up to an error of exactly this length. *)
Theorem bt_two_heads : forall (dx dy : nat) (W : mat dy dx) (η γ : R),
  0 <= η ->
  forall (x : vec 'I_dx) (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 ->
  let out := run full [:: bt_block W η γ] (bt_prompt x y r) i Bt.y in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let best := τ ord0 in
  let other := τ ord_max in
  ‖out - (y i - ΔW *v x)‖
  = 2 * η * ‖y other - y best‖ / (1 + exp (γ * (r best - r other))).
Proof.
move=> dx dy W η γ η0 x y r τ i x1 out ΔW b o.
have other j : j != b -> j = o.
  rewrite -(permKV τ j) /b /o !(inj_eq perm_inj) => j0; congr (τ _); apply/val_inj => /=.
  by case: (τ^-1%g j) j0 => [[|[|k]]].
have [E _] := @bt_two_heads_update _ _ W η γ x y r τ i x1; rewrite /out E -/ΔW -/b.
set v := comb _ y.
have -> : (y i - ΔW *v x - (2 * η) *: (v - y b) - (y i - ΔW *v x) = (- (2 * η)) *: (v - y b))%V.
  by apply: vec_eq => c; rewrite /vsub /vscal; ring.
rewrite vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
have -> : v = comb (softmax (fun j => γ * r j)) y.
  apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _).
  by apply: eq_softmax => l; exact: bt_two_heads_rewards.
rewrite (mean_to_point_sharp (p := y o) _ (w := b)) => [|j jb]; last by rewrite (other j).
rewrite softmax_miss /share; have -> : crowd (fun j => γ * r j) b = / exp (γ * (r b - r o)).
  have ob : o != b by rewrite /o /b (inj_eq perm_inj).
  rewrite /crowd (big_pred1 o) => [|j]; last first.
    by apply/idP/eqP => [/other //|->].
  by rewrite -exp_Ropp; congr exp; ring.
by have e0 := exp_pos (γ * (r b - r o)); field; lra.
Qed.
