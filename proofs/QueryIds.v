(* Chapter 7, Multiple queries I: one-hot identifiers of the queries in place of their inner
   products, and the bounds without a hypothesis on the queries. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.
From Icalign Require Import QuerySelection QueryBound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Query identifiers ──────────────────────────────────────────────────────────────────────── *)

Module Qi.
Inductive name := x | y | r | one | id | best.
Inductive key := identifier | reward.
End Qi.

Section Identified.
Variables dx dy M : nat.

Definition qi_width (a : Qi.name) : nat :=
  match a with Qi.x => dx | Qi.y | Qi.best => dy | Qi.id => M | _ => 1 end.

Definition qi_stream : stream.
Proof.
refine {| row := Qi.name; width := qi_width;
  rows := [:: Qi.x; Qi.y; Qi.r; Qi.one; Qi.id; Qi.best] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition qi_keys : stream.
Proof.
refine {| row := Qi.key; width := fun k => if k is Qi.identifier then M else 1%N;
  rows := [:: Qi.identifier; Qi.reward] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Query [γ₁ id; γ₂·1], key [id; r], value y, written to best. *)
Definition qi_head (γ1 γ2 : R) : head qi_stream := @Head qi_stream qi_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Qi.identifier, Qi.id => identity γ1 | Qi.reward, Qi.one => identity γ2 | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Qi.identifier, Qi.id => identity 1 | Qi.reward, Qi.r => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Qi.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Qi.best => identity 1 | _ => zero end).

(* Token (a, i) is [x^a; y_i^a; r_i^a; 1; e_a; 0]. *)
Definition qi_prompt {N} (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r : 'I_M -> 'I_N -> R) : 'I_M * 'I_N -> token qi_stream :=
  fun t a => match a with
  | Qi.x => x t.1 | Qi.y => y t.1 t.2 | Qi.r => fun _ => r t.1 t.2 | Qi.one => fun _ => 1
  | Qi.id => fun c => if t.1 == c then 1 else 0 | Qi.best => fun _ => 0 end.

End Identified.

Lemma qi_logit dx dy M γ1 γ2 (T : finType) (X : T -> token (qi_stream dx dy M)) (i j : T) :
  X i Qi.one ord0 = 1 ->
  logit (qi_head dx dy M γ1 γ2) X i j
  = γ1 * ∑_(c < M) (X i Qi.id c * X j Qi.id c) + γ2 * X j Qi.r ord0.
Proof.
move=> one; rewrite /logit; blocks; rewrite one.
rewrite (eq_bigr (fun c => γ1 * (X i Qi.id c * X j Qi.id c))) => [|c _].
  rewrite sum_scal.
  rewrite -[X in γ1 * X + _]/(∑_(c < M) (X i Qi.id c * X j Qi.id c)); set s := ∑_(_ < _) _; ring.
by blocks; ring.
Qed.

Definition qi_attention {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
  (r : 'I_M -> 'I_N -> R) (s t : 'I_M * 'I_N) : R :=
  attention full (qi_head dx dy M γ1 γ2) (qi_prompt x y r) s t.
Definition qi_selected {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
  (r : 'I_M -> 'I_N -> R) (s : 'I_M * 'I_N) : vec 'I_dy :=
  run full [:: Block [:: qi_head dx dy M γ1 γ2] None] (qi_prompt x y r) s Qi.best.

(* Claim mq-query-ids, part logits. *)
Theorem mq_query_ids_logits : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (i j : 'I_N),
  logit (qi_head dx dy M γ1 γ2) (qi_prompt x y r) (a, i) (b, j)
  = γ1 * (if a == b then 1 else 0) + γ2 * r b j.
Proof.
move=> dx dy M N γ1 γ2 x y r a b i j; rewrite qi_logit //=; congr (γ1 * _ + _).
rewrite (sum_pick a) eqxx big1 => [|c ca]; first by rewrite eq_sym; case: (a == b); ring.
by rewrite (eq_sym a) (negbTE ca); ring.
Qed.

Lemma qi_softmax dx dy M N γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) r a s t :
  qi_attention γ1 γ2 x y r (a, s) t
  = softmax (fun t => γ1 * (if a == t.1 then 1 else 0) + γ2 * r t.1 t.2) t.
Proof. by apply: eq_softmax => [[b j]]; exact: mq_query_ids_logits. Qed.

(* Claim mq-query-ids, part bound: whatever the queries are. *)
Theorem mq_query_ids_bound : forall (dx dy M N : nat) (γ1 γ2 Δ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - qi_attention γ1 γ2 x y r (a, s) (a, best)
  <= (INR N - 1) * exp (- γ2 * Δ) + (INR M - 1) * INR N * exp (- (γ1 * 1 - γ2 * spread)).
Proof.
move=> dx dy M N γ1 γ2 Δ low spread x y r a best s γ1_0 γ2_0 gap range.
rewrite qi_softmax.
apply: (query_miss_le (low := low) (g := fun b => if a == b then 1 else 0)) => // b ba.
by rewrite eqxx eq_sym (negbTE ba); lra.
Qed.

(* Claim mq-query-ids, part bound: and what the token receives. *)
Theorem mq_query_ids_outcome : forall (dx dy M N : nat) (γ1 γ2 Δ low spread D D0 : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) -> (forall b i j, ‖y b i - y a j‖ <= D0) ->
  ‖qi_selected γ1 γ2 x y r (a, s) - y a best‖
  <= D * ((INR N - 1) * exp (- γ2 * Δ))
     + D0 * ((INR M - 1) * INR N * exp (- (γ1 * 1 - γ2 * spread))).
Proof.
move=> dx dy M N γ1 γ2 Δ low spread D D0 x y r a best s γ1_0 γ2_0 gap range yD yD0.
have -> : qi_selected γ1 γ2 x y r (a, s) = comb (softmax (fun t =>
    γ1 * (if a == t.1 then 1 else 0) + γ2 * r t.1 t.2)) (fun t => y t.1 t.2).
  apply: vec_eq => c; rewrite /qi_selected /run /= /transform /= /attend /= big_cons big_nil /=.
  rewrite /head_output; blocks; rewrite /comb.
  rewrite Rplus_0_l Rmult_1_l !Rplus_0_r; apply: eq_bigr => t _.
  by rewrite -/(qi_attention γ1 γ2 x y r (a, s) t) qi_softmax; blocks; ring.
apply: (query_mean_le (low := low) (g := fun b => if a == b then 1 else 0)) => // b ba.
by rewrite eqxx eq_sym (negbTE ba); lra.
Qed.
