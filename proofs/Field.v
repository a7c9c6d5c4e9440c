(* Chapter 4, Weighing the field: with a row of squares the weights of a softmax head are β. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Transformer.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Rows x, y, sq = ‖y‖², 1 and mean, which the head fills; the keys of the head. *)
Module Fi.
Inductive name := x | y | sq | one | mean.
Inductive key := shaped | squared.
End Fi.

Section Head.
Variables dx dy : nat.

Definition fi_width (a : Fi.name) : nat :=
  match a with Fi.x => dx | Fi.y | Fi.mean => dy | _ => 1 end.

Definition fi_stream : stream.
Proof.
refine {| row := Fi.name; width := fi_width; rows := [:: Fi.x; Fi.y; Fi.sq; Fi.one; Fi.mean] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition fi_keys : stream.
Proof.
refine {| row := Fi.key; width := fun k => if k is Fi.shaped then dy else 1%N;
  rows := [:: Fi.shaped; Fi.squared] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Logit 2⟨W x, y_j⟩ − 1·sq_j; writes y_j to mean. *)
Definition beta_head (W : mat dy dx) : head fi_stream := @Head fi_stream fi_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Fi.shaped, Fi.x => (fun c d => 2 * W (c, d)) | Fi.squared, Fi.one => identity (- 1)
    | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Fi.shaped, Fi.y => identity 1 | Fi.squared, Fi.sq => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Fi.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Fi.mean => identity 1 | _ => zero end).

(* The tokens [x; y_j; ‖y_j‖²; 1; 0]. *)
Definition fi_prompt N (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) : 'I_N -> token fi_stream :=
  fun j a => match a with
  | Fi.x => x | Fi.y => y j | Fi.sq => fun _ => ‖y j‖² | Fi.one => fun _ => 1
  | Fi.mean => vzero end.
End Head.

Arguments fi_prompt {dx dy N} x y.

Definition beta_attention {dx dy N} (W : mat dy dx) x (y : 'I_N -> vec 'I_dy) (i j : 'I_N) : R :=
  attention full (beta_head W) (fi_prompt x y) i j.

(* Claim beta-head, part logits: for any number and content of tokens. *)
Theorem beta_head_logits : forall (dx dy : nat) (W : mat dy dx) (T : finType)
    (X : T -> token (fi_stream dx dy)) (i j : T),
  X i Fi.one ord0 = 1 ->
  logit (beta_head W) X i j = 2 * ⟨W *v X i Fi.x, X j Fi.y⟩ - X j Fi.sq ord0.
Proof.
move=> dx dy W T X i j one; rewrite /logit; blocks; rewrite one.
rewrite (eq_bigr (fun c => 2 * ((W *v X i Fi.x)%V c * X j Fi.y c))) => [|c _].
  by rewrite sum_scal /dot; ring.
blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * X i Fi.x d))) => [|d _].
  by rewrite sum_scal -/((W *v X i Fi.x)%V c); ring.
exact: Rmult_assoc.
Qed.

(* Claim beta-head, part logits: with sq = ‖y‖² they are the scores, up to a constant. *)
Theorem beta_head_scores : forall (dx dy N : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (i j : 'I_N),
  logit (beta_head W) (fi_prompt x y) i j = score W x (y j) + ‖W *v x‖².
Proof.
by move=> dx dy N W x y i j; rewrite beta_head_logits // pl_shift_reduced /reduced /=; ring.
Qed.

(* Claim beta-head, part weights: β_j = e^{s_j} / ∑_l e^{s_l}, at every token. *)
Theorem beta_head_weights : forall (dx dy N : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (i j : 'I_N),
  beta_attention W x y i j = exp (score W x (y j)) / ∑_l exp (score W x (y l)).
Proof.
move=> dx dy N W x y i j.
rewrite -[RHS]/(softmax (fun l => score W x (y l)) j).
rewrite -(softmax_shift (fun l => score W x (y l)) (‖W *v x‖²)).
by apply: eq_softmax => l; exact: beta_head_scores.
Qed.

(* Claim beta-head, part weights: the first of the weights β^k of Plackett and Luce. *)
Theorem beta_head_first_place : forall (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_n.+1 -> vec 'I_dy) (τ : {perm 'I_n.+1}) (i j : 'I_n.+1),
  beta_attention W x y i (τ j) = beta (fun l => score W x (y l)) τ ord0 j.
Proof.
move=> dx dy n W x y τ i j; rewrite beta_head_weights /beta /=; congr (_ / _).
by rewrite (reindex_inj (@perm_inj _ τ)).
Qed.

(* Claim beta-head, part mean: what the head writes, on any tokens and under any mask. *)
Theorem beta_head_mean : forall (dx dy : nat) (W : mat dy dx) (T : finType) (sees : rel T)
    (X : T -> token (fi_stream dx dy)) (i : T) (c : 'I_dy),
  head_output sees (beta_head W) X i Fi.mean c
  = ∑_j (attention sees (beta_head W) X i j * X j Fi.y c).
Proof.
move=> dx dy W T sees X i c.
pose found : token (one_row dy) :=
  fun _ c => ∑_j (attention sees (beta_head W) X i j * X j Fi.y c).
rewrite /head_output (eq_apply found); first by blocks; rewrite /found; ring.
by case=> d; apply: eq_bigr => j _; congr (_ * _); blocks; ring.
Qed.

(* Claim beta-head, part mean: the row mean of every token holds μ, the mean of all responses. *)
Theorem beta_head_tail_mean : forall (dx dy n : nat) (W : mat dy dx) (x : vec 'I_dx)
    (y : 'I_n.+1 -> vec 'I_dy) (τ : {perm 'I_n.+1}) (i : 'I_n.+1),
  run full [:: Block [:: beta_head W] None] (fi_prompt x y) i Fi.mean
  = tail_mean W x y τ ord0.
Proof.
move=> dx dy n W x y τ i; apply: vec_eq => c.
rewrite /run /= /transform /attend /= big_cons big_nil beta_head_mean /tail_mean /comb /=.
rewrite Rplus_0_r [X in X + _]/vzero Rplus_0_l (reindex_inj (@perm_inj _ τ)) /=.
by apply: eq_bigr => j _; rewrite -(beta_head_first_place W x y τ i).
Qed.

(* Claim beta-head, part width: the keys have d_y + 1 coordinates, and the rows of W_K are
   orthonormal. *)
Theorem beta_head_width : forall (dx dy : nat) (W : mat dy dx),
  let K := W_K (beta_head W) in
  let times (k l : Fi.key) (c : 'I_(@width (fi_keys dy) k)) (d : 'I_(@width (fi_keys dy) l)) :=
    ∑_(b <- rows (fi_stream dx dy)) ∑_e (K k b c e * K l b d e) in
  (\sum_(k <- rows (fi_keys dy)) width k = dy + 1)%N
  /\ (forall c d, times Fi.shaped Fi.shaped c d = identity 1 c d)
  /\ (forall c d, times Fi.squared Fi.squared c d = identity 1 c d)
  /\ (forall c d, times Fi.shaped Fi.squared c d = 0).
Proof.
move=> dx dy W /=; split; first by rewrite !big_cons big_nil /= addn0.
split=> [c d|]; first by blocks; rewrite /identity [d == c]eq_sym; case: (c == d); ring.
split=> c d; blocks; rewrite /zero /identity; last by ring.
by rewrite [d == c]eq_sym; case: (c == d); ring.
Qed.
