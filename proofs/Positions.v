(* Chapter 10: positions from the causal mask alone. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Weights Transformer.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Local Arguments INR n : simpl never.

(* ── Something must tell the first token from the others ────────────────────────────────────── *)

(* A transformer whose heads have any weights, softmax or not, masked or not: what head h gives the
   token j at the token i, when the tokens are X. *)
Definition weighting (T : finType) (S : stream) := head S -> (T -> token S) -> T -> T -> R.

Section Weighted.
Variables (T : finType) (S : stream).
Implicit Types (A : weighting T S) (X : T -> token S).

(* The residual, and what each head finds, through its W_O. *)
Definition attend_by A (hs : list (head S)) X (i : T) : token S := fun a c => X i a c
  + ∑_(h <- hs) apply (W_O h) (fun v d => ∑_j (A h X i j * apply (W_V h) (X j) v d)) a c.

Definition transform_by A (b : block S) X (i : T) : token S :=
  match layer b with
  | Some f => feed f (attend_by A (heads b) X i)
  | None => attend_by A (heads b) X i
  end.

(* The weights may differ from layer to layer. *)
Definition run_by (bs : list (weighting T S * block S)) X : T -> token S :=
  foldl (fun X b => transform_by b.1 b.2 X) X bs.
End Weighted.

(* The transformer of the book has such weights, and they sum to one where tokens see some. *)
Remark transform_softmax (T : finType) (sees : rel T) (S : stream) (b : block S) X :
  transform_by (attention sees) b X = transform sees b X.
Proof. by []. Qed.

Remark softmax_weights (T : finType) (sees : rel T) (S : stream) (h : head S) X (i j : T) :
  sees i j -> ∑_l attention sees h X i l = 1.
Proof. exact: softmax_on_sum. Qed.

(* Claim nope-needs-a-start, part one-layer: any heads with any weights that sum to one, with or
   without a feed-forward layer. *)
Theorem nope_needs_a_start_one_layer : forall (T : finType) (S : stream) (A : weighting T S)
    (b : block S) (X : T -> token S),
  (forall h i, ∑_j A h X i j = 1) -> (forall i j, X i = X j) ->
  forall i j, transform_by A b X i = transform_by A b X j.
Proof.
move=> T S A b X one same i j.
have found h k v d : ∑_l (A h X k l * apply (W_V h) (X l) v d) = apply (W_V h) (X i) v d.
  rewrite (eq_bigr (fun l => A h X k l * apply (W_V h) (X i) v d)) => [|l _].
    by rewrite sum_scalr one; ring.
  by rewrite (same l i).
have E : attend_by A (heads b) X i = attend_by A (heads b) X j.
  apply: functional_extensionality_dep => a; apply: functional_extensionality => c.
  rewrite /attend_by (same j i); congr (_ + _); apply: eq_bigr => h _; apply: eq_apply => v d.
  by rewrite !found.
by rewrite /transform_by; case: (layer b) => [f|]; rewrite E.
Qed.

(* Claim nope-needs-a-start, part depth: any number of layers. *)
Theorem nope_needs_a_start_depth : forall (T : finType) (S : stream)
    (bs : list (weighting T S * block S)) (X : T -> token S),
  (forall b, List.In b bs -> forall h X i, ∑_j b.1 h X i j = 1) -> (forall i j, X i = X j) ->
  forall i j, run_by bs X i = run_by bs X j.
Proof.
move=> T S; elim=> [|b bs IH] X one same i j; first exact: same.
apply: IH => [c cs|k l]; first by apply: one; right.
by apply: nope_needs_a_start_one_layer => // h m; apply: one; left.
Qed.

(* ── A uniform head and the hats ────────────────────────────────────────────────────────────── *)

(* The rows: m of size N, the mark b of the start token, z; three hidden units for each hat. *)
Module Po.
Inductive name := m | b | z.
Inductive unit := before | peak | after.
End Po.

Section Block.
Variable N : nat.

Definition po_stream : stream.
Proof.
refine {| row := Po.name; width := fun a => if a is Po.m then N else 1%N;
  rows := [:: Po.m; Po.b; Po.z] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition po_units : stream.
Proof.
refine {| row := Po.unit; width := fun _ => N; rows := [:: Po.before; Po.peak; Po.after] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* All logits are 0; writes b_j to z. *)
Definition count_head : head po_stream := @Head po_stream (one_row 1) (one_row 1)
  (* query *)  (fun _ _ => zero)
  (* key *)    (fun _ _ => zero)
  (* value *)  (fun _ a => match a with Po.b => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Po.z => identity 1 | _ => zero end).

(* m_c += t (relu(1 − (t−1)z) − 2 relu(1 − tz) + relu(1 − (t+1)z)), t = c + 2. *)
Definition hat_layer : feed_forward po_stream := @FeedForward po_stream po_units
  (* W_1 *) (fun k a => match k, a with
    | Po.before, Po.z => (fun c _ => - INR c.+1)
    | Po.peak, Po.z => (fun c _ => - INR c.+2)
    | Po.after, Po.z => (fun c _ => - INR c.+3)
    | _, _ => zero end)
  (* b_1 *) (fun _ _ => 1)
  (* W_2 *) (fun a k => match a, k with
    | Po.m, Po.peak => (fun c d => if c == d then - (2 * INR c.+2) else 0)
    | Po.m, _ => (fun c d => if c == d then INR c.+2 else 0)
    | _, _ => zero end)
  (* b_2 *) (fun _ _ => 0).

(* The start token is the first; all else is zero. *)
Definition marked_prompt (j : 'I_N.+1) : token po_stream := fun a => match a with
  | Po.b => fun _ => if j == ord0 then 1 else 0 | _ => fun _ => 0 end.
End Block.

Arguments marked_prompt {N} j a.

(* The hat with its peak at 1/t. *)
Definition hat (t : nat) (z : R) : R :=
  INR t * (relu (1 - INR t.-1 * z) - 2 * relu (1 - INR t * z) + relu (1 - INR t.+1 * z)).

(* Claim nope-reciprocal, part reciprocal; token j, from 0, sees j+1 tokens: 1/(j+1). *)
Theorem nope_reciprocal : forall (N : nat) (j : 'I_N.+1),
  run causal [:: Block [:: count_head N] None] marked_prompt j Po.z ord0 = 1 / INR j.+1.
Proof.
move=> N j; set q := 1 / INR j.+1.
have logit0 k : logit (count_head N) marked_prompt j k = 0 by rewrite /logit; blocks; ring.
have j0 : 0 < INR j.+1 by exact: INR_gt0.
have uniform l : attention causal (count_head N) marked_prompt j l = if causal j l then q else 0.
  rewrite /attention (eq_bigr (fun _ => 1)) => [|k _]; last by rewrite logit0 exp_0.
  have -> : ∑_(k | causal j k) 1 = INR j.+1.
    rewrite -[RHS]Rmult_1_r -sum_const_ord (big_ord_widen _ (fun _ => 1) (ltn_ord j)).
    by apply: eq_bigl => k; rewrite ltnS.
  by rewrite logit0 exp_0 /q; case: (causal j l) => //; rewrite /Rdiv Rmult_0_l.
have found : ∑_l (attention causal (count_head N) marked_prompt j l
    * apply (W_V (count_head N)) (marked_prompt l) tt ord0) = q.
  rewrite (eq_bigr (fun l => if l == ord0 then q else 0)) => [|l _]; first exact: sum_delta.
  rewrite uniform; blocks; case: eqP => [->|_]; last by ring.
  by rewrite /causal leq0n; ring.
rewrite /run /= /transform /= /attend /= big_cons big_nil /head_output; blocks.
by rewrite found; ring.
Qed.

Lemma sum_diag n (i : 'I_n) (a : 'I_n -> R) (f : 'I_n -> R) :
  ∑_j ((if i == j then a i else 0) * f j) = a i * f i.
Proof.
rewrite (sum_pick i) eqxx big1 => [|j /negbTE ji]; first by ring.
by rewrite eq_sym ji; ring.
Qed.

(* The layer writes the hats. *)
Lemma hat_layer_writes N (e : token (po_stream N)) (c : 'I_N) :
  feed (hat_layer N) e Po.m c = e Po.m c + hat c.+2 (e Po.z ord0).
Proof.
rewrite /feed {1}/apply /= !big_cons big_nil /= !(sum_diag c (fun c => INR c.+2)).
rewrite (sum_diag c (fun c => - (2 * INR c.+2))); blocks.
rewrite /hat -[c.+2.-1]/(c.+1); set z := e Po.z ord0; rewrite ?Rplus_0_l ?Rplus_0_r.
have E k : - INR k * z + 1 = 1 - INR k * z by ring.
by rewrite !E; ring.
Qed.

Lemma relu_pos z : 0 <= z -> relu z = z. Proof. exact: Rmax_right. Qed.
Lemma relu_neg z : z <= 0 -> relu z = 0. Proof. exact: Rmax_left. Qed.

Lemma hat_peaks t s : (0 < t)%N -> (0 < s)%N -> hat t (1 / INR s) = if t == s then 1 else 0.
Proof.
case: t => // t _ s0; have s1 := INR_gt0 s0; rewrite /hat -[t.+1.-1]/t.
have ge k : (k <= s)%N -> relu (1 - INR k * (1 / INR s)) = (INR s - INR k) / INR s.
  move=> ks; have := INR_le ks => le; have -> : 1 - INR k * (1 / INR s) = (INR s - INR k) / INR s.
    by field; lra.
  by apply: relu_pos; apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
have lt k : (s <= k)%N -> relu (1 - INR k * (1 / INR s)) = 0.
  move=> ks; have le := INR_le ks; apply: relu_neg.
  have -> : 1 - INR k * (1 / INR s) = - ((INR k - INR s) / INR s) by field; lra.
  have : 0 <= (INR k - INR s) / INR s; last by lra.
  by apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
case: (ltngtP t.+1 s) => [ts|ts|E].
- by rewrite !ge ?(ltnW ts) ?(ltnW (ltnW ts)) // !INR_S; field; lra.
- by rewrite !lt ?(ltnW ts) ?(leqW (ltnW ts)) //; ring.
have sE : INR s = INR t + 1 by rewrite -E INR_S.
rewrite (ge t) ?(lt t.+1) ?(lt t.+2) -?E //; rewrite E sE in s1 *.
by field; lra.
Qed.

(* Claim hat-one-hot, part one-hot; the layer makes the row m of a token with z = 1/s one-hot. *)
Theorem hat_one_hot : forall (N s : nat) (e : token (po_stream N)) (c : 'I_N),
  (0 < s)%N -> e Po.z ord0 = 1 / INR s -> e Po.m c = 0 ->
  feed (hat_layer N) e Po.m c = if c.+2 == s then 1 else 0.
Proof.
by move=> N s e c s0 ez em; rewrite hat_layer_writes em ez hat_peaks //; ring.
Qed.

(* A hat is t times a second difference of a convex function. *)
Lemma hat_ge0 t z : 0 <= hat t z.
Proof.
case: t => [|t]; first by rewrite /hat Rmult_0_l; lra.
rewrite /hat; apply: Rmult_le_pos; first exact: INR_ge0.
by rewrite -[t.+1.-1]/t !INR_S /relu /Rmax; do 3 case: Rle_dec; lra.
Qed.

(* Claim hat-one-hot, part partition: no hat is negative, and those of n positions sum to one; at
   any z from 1/n on, beyond 1 as well. *)
Theorem hat_one_hot_partition : forall (n : nat) (z : R),
  (0 < n)%N -> 1 / INR n <= z -> (forall t, 0 <= hat t z) /\ ∑_(t < n) hat t.+1 z = 1.
Proof.
move=> n z n0 nz; split=> [t|]; first exact: hat_ge0.
pose G k := relu (1 - INR k * z).
have I0 : INR 0 = 0 by [].
have sumE m : ∑_(t < m) hat t.+1 z = INR m * (G m.+1 - G m) - G m + G 0%N.
  elim: m => [|m IH]; first by rewrite big_ord0 I0; ring.
  rewrite sum_last IH.
  have -> : hat (ord_max : 'I_m.+1).+1 z = INR m.+1 * (G m - 2 * G m.+1 + G m.+2) by [].
  by rewrite INR_S; ring.
have n1 := INR_gt0 n0; have zn : 1 <= INR n * z.
  have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ n1) nz.
  by have -> : INR n * (1 / INR n) = 1 by field; lra.
have z0 : 0 <= z by apply: Rle_trans nz; apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
have Gn : G n = 0 by apply: relu_neg; lra.
have Gn1 : G n.+1 = 0 by apply: relu_neg; rewrite INR_S; lra.
have G0 : G 0%N = 1 by rewrite /G I0 Rmult_0_l Rminus_0_r relu_pos; lra.
by rewrite sumE Gn Gn1 G0; ring.
Qed.
