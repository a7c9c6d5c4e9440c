(* Chapter 10, Positions from the mask alone: without a mark, rewards tell the first token. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings OnlineLoss Weights Spacing Transformer.
From Icalign Require Import MaskedBlock Mask.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Two heads and a layer ──────────────────────────────────────────────────────────────────── *)

Module Sm.
Inductive name := r | one | a | b.
End Sm.

Definition sm_stream : stream.
Proof.
refine {| row := Sm.name; width := fun _ => 1%N; rows := [:: Sm.r; Sm.one; Sm.a; Sm.b] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Logit c·1·r_j, writes s r_j to a. *)
Definition end_head (c s : R) : head sm_stream := @Head sm_stream (one_row 1) (one_row 1)
  (* query *)  (fun _ e => match e with Sm.one => identity c | _ => zero end)
  (* key *)    (fun _ e => match e with Sm.r => identity 1 | _ => zero end)
  (* value *)  (fun _ e => match e with Sm.r => identity 1 | _ => zero end)
  (* output *) (fun e _ => match e with Sm.a => identity s | _ => zero end).
Definition best_head (γ : R) := end_head γ 1.
Definition worst_head (γ : R) := end_head (- γ) (- 1).

(* b += relu(1 − 2a/Δ). *)
Definition mark_layer (Δ : R) : feed_forward sm_stream := @FeedForward sm_stream (one_row 1)
  (* W_1 *) (fun _ e => match e with
    | Sm.one => identity 1 | Sm.a => identity (- (2 / Δ)) | _ => zero end)
  (* b_1 *) (fun _ _ => 0)
  (* W_2 *) (fun e _ => match e with Sm.b => identity 1 | _ => zero end)
  (* b_2 *) (fun _ _ => 0).

Definition mark_block (γ Δ : R) : block sm_stream :=
  Block [:: best_head γ; worst_head γ] (Some (mark_layer Δ)).

(* The tokens [r_j; 1; 0; 0]: no mark. *)
Definition unmarked_prompt {N} (r : 'I_N -> R) : 'I_N -> token sm_stream := fun j e => match e with
  | Sm.r => fun _ => r j | Sm.one => fun _ => 1 | _ => fun _ => 0 end.

(* What the layer writes. *)
Lemma mark_layer_writes Δ (e : token sm_stream) : e Sm.one ord0 = 1 ->
  feed (mark_layer Δ) e Sm.b ord0 = e Sm.b ord0 + relu (1 - 2 / Δ * e Sm.a ord0).
Proof.
move=> one; rewrite /feed; blocks; rewrite one ?Rplus_0_r ?Rplus_0_l ?Rmult_1_l.
by congr (_ + relu _); ring.
Qed.

(* Claim nope-needs-a-start, part rewards: where the row a holds 0; and where it holds the
   difference of two numbers within Δ/4 of numbers that are Δ apart. *)
Theorem nope_needs_a_start_rewards : forall (Δ : R) (e : token sm_stream),
  0 < Δ -> e Sm.one ord0 = 1 -> e Sm.b ord0 = 0 ->
  (e Sm.a ord0 = 0 -> feed (mark_layer Δ) e Sm.b ord0 = 1)
  /\ (forall best worst high low,
      worst + Δ <= best -> Rabs (high - best) <= Δ / 4 -> Rabs (low - worst) <= Δ / 4 ->
      e Sm.a ord0 = high - low -> feed (mark_layer Δ) e Sm.b ord0 = 0).
Proof.
move=> Δ e Δ0 one b0; rewrite mark_layer_writes // b0 Rplus_0_l; have i0 := Rinv_0_lt_compat _ Δ0.
split=> [->|best worst high low apart near1 near2 ->].
  by rewrite Rmult_0_r Rminus_0_r /relu Rmax_right; lra.
have half : Δ / 2 <= high - low by split_Rabs; lra.
rewrite /relu Rmax_left //; have -> : 1 = 2 / Δ * (Δ / 2) by field; lra.
have : 0 <= 2 / Δ * (high - low - Δ / 2); last by lra.
by apply: Rmult_le_pos; rewrite /Rdiv; lra.
Qed.

(* ── Near the best and the worst reward ─────────────────────────────────────────────────────── *)

Lemma near_best n c Δ spread low (r : 'I_n.+1 -> R) : 0 < Δ -> 0 <= c ->
  INR n * (spread * exp (- (c * Δ))) <= Δ / 4 ->
  spaced Δ r -> (forall j, low <= r j <= low + spread) ->
  exists top, (forall j, r j <= r top)
    /\ Rabs (∑_j (softmax (fun j => c * r j) j * r j) - r top) <= Δ / 4.
Proof.
move=> Δ0 c0 small gaps range; have [top le] := least (fun j => - r j) ord0.
have {}le j : r j <= r top by have := le j; lra.
exists top; split=> //; set A := softmax _.
have S1 : ∑_j A j = 1 by exact: (softmax_sum _ ord0).
have E : ∑_j (A j * r j) - r top = - ∑_j (A j * (r top - r j)).
  rewrite [in RHS](eq_bigr (fun j => A j * r top - A j * r j)) => [|j _]; last by ring.
  by rewrite sum_sub sum_scalr S1; ring.
have A0 j : 0 < A j := softmax_gt0 _ j.
have term0 j : 0 <= A j * (r top - r j).
  by apply: Rmult_le_pos; [left; exact: A0 | have := le j; lra].
have s0 : 0 <= spread by have := range top; lra.
have each j : j != top -> A j * (r top - r j) <= exp (- (c * Δ)) * spread.
  move=> jt; apply: Rmult_le_compat.
  - by left; exact: A0.
  - by have := le j; lra.
  - have gap : r j + Δ <= r top.
      by have := gaps _ _ jt; have := le j; split_Rabs; lra.
    apply: (Rle_trans _ (exp (c * r j - c * r top))).
      rewrite /A /softmax; set S := ∑_l _.
      have topS : exp (c * r top) <= S.
        by apply: (sum_ge_term (P := predT) (F := fun j => exp (c * r j))) => // l _; left;
           exact: exp_pos.
      have t0 := exp_pos (c * r top); apply: (Rmult_le_reg_r S); first by lra.
      have -> : exp (c * r j) / S * S = exp (c * r j) by field; lra.
      have e : exp (c * r j) = exp (c * r j - c * r top) * exp (c * r top).
        by rewrite -exp_plus; congr exp; ring.
      by rewrite {1}e; apply: Rmult_le_compat_l => //; left; exact: exp_pos.
    by apply: exp_mono; have := Rmult_le_compat_l _ _ _ c0 gap; lra.
  - by have := range j; have := range top; lra.
rewrite E Rabs_Ropp Rabs_pos_eq; last by apply: sum_ge0 => j _.
apply: Rle_trans small; rewrite (sum_pick top) Rminus_eq_0 Rmult_0_r Rplus_0_l.
apply: (Rle_trans _ (∑_(j | j != top) (exp (- (c * Δ)) * spread))).
  by apply: sum_le => j jt; exact: each.
have := sum_pick top (fun=> exp (- (c * Δ)) * spread); rewrite sum_const_ord INR_S => e.
by right; lra.
Qed.

Section Found.
Variables (N : nat) (r : 'I_N -> R) (i : 'I_N).
Notation seen := (prefix (ltn_ord i) r).

(* What such a head writes at token i. *)
Lemma end_output c s : head_output causal (end_head c s) (unmarked_prompt r) i Sm.a ord0
  = s * ∑_j (softmax (fun j => c * seen j) j * seen j).
Proof.
have A j : attention causal (end_head c s) (unmarked_prompt r) i j
    = softmax_on (causal i) (fun j => c * r j) j.
  by apply: eq_softmax_on => l _; rewrite /logit; blocks; ring.
have E := f_equal (fun v => v ord0) (@seen_comb N i (fun j => c * r j) 1 (fun j _ => r j)).
rewrite /head_output; blocks; rewrite Rplus_0_r; congr (_ * _); rewrite -[RHS]E.
by apply: eq_bigr => j _; rewrite A; blocks; ring.
Qed.
End Found.

Lemma spaced_opp n Δ (r : 'I_n -> R) : spaced Δ r -> spaced Δ (fun j => - r j).
Proof. by move=> gaps j l jl; have := gaps j l jl; split_Rabs; lra. Qed.

(* Claim nope-needs-a-start, part marks; token i sees the tokens up to itself. For N = 1 the bound
   on γ is 0, as ln 0 = 0 here, which is harmless: the one token holds both rewards at any γ. *)
Theorem nope_needs_a_start_marks : forall (N : nat) (γ Δ spread : R),
  0 < Δ -> ln (4 * (INR N - 1) * spread / Δ) / Δ <= γ ->
  forall (r : 'I_N -> R) (low : R) (i : 'I_N),
  spaced Δ r -> (forall j, low <= r j <= low + spread) ->
  let X := unmarked_prompt r in
  (exists best worst : 'I_N, (best <= i)%N /\ (worst <= i)%N
     /\ (forall j : 'I_N, (j <= i)%N -> r worst <= r j <= r best)
     /\ Rabs (head_output causal (best_head γ) X i Sm.a ord0 - r best) <= Δ / 4
     /\ Rabs (head_output causal (worst_head γ) X i Sm.a ord0 - - r worst) <= Δ / 4)
  /\ run causal [:: mark_block γ Δ] X i Sm.b ord0 = if i == 0%N :> nat then 1 else 0.
Proof.
move=> N γ Δ spread Δ0 warm r low i gaps range X.
pose seen := prefix (ltn_ord i) r; pose A c := ∑_j (softmax (fun j => c * seen j) j * seen j).
have hi : head_output causal (best_head γ) X i Sm.a ord0 = A γ by rewrite end_output Rmult_1_l.
have lo : head_output causal (worst_head γ) X i Sm.a ord0 = - A (- γ).
  by rewrite end_output -[∑_j _]/(A (- γ)); ring.
have runE : run causal [:: mark_block γ Δ] X i Sm.b ord0 = relu (1 - 2 / Δ * (A γ - A (- γ))).
  rewrite /run /= /transform /= mark_layer_writes; last first.
    by rewrite /attend !big_cons big_nil /head_output; blocks; ring.
  have aE : attend causal [:: best_head γ; worst_head γ] X i Sm.a ord0 = A γ - A (- γ).
    by rewrite /attend !big_cons big_nil hi lo /=; ring.
  rewrite aE; have -> : attend causal [:: best_head γ; worst_head γ] X i Sm.b ord0 = 0.
    by rewrite /attend !big_cons big_nil /head_output; blocks; ring.
  by rewrite Rplus_0_l.
have within (l : 'I_i.+1) : (widen_ord (ltn_ord i) l <= i)%N by rewrite /= -ltnS.
have back (j : 'I_N) : (j <= i)%N -> exists l : 'I_i.+1, r j = seen l.
  move=> ji; have lt : (j < i.+1)%N by rewrite ltnS.
  by exists (Ordinal lt); rewrite /seen /prefix; congr r; exact/val_inj.
rewrite hi lo runE; case: eqP => [i0|ipos].
  have one (l : 'I_i.+1) : l = ord0.
    by apply/val_inj/eqP; rewrite /= -leqn0 -ltnS; have := ltn_ord l; rewrite {2}i0.
  have AE c : A c = seen ord0.
    rewrite /A (sum_pick ord0) big1 => [|l]; last by rewrite (one l) eqxx.
    have := softmax_sum (fun j => c * seen j) ord0; rewrite (sum_pick ord0) big1 => [|l].
      by rewrite !Rplus_0_r => ->; ring.
    by rewrite (one l) eqxx.
  split; last by rewrite !AE Rminus_eq_0 Rmult_0_r Rminus_0_r /relu Rmax_right; lra.
  have iE : r i = seen ord0.
    by have [l ->] := back i (leqnn i); rewrite (one l).
  exists i, i; rewrite !AE iE; do 2 split=> //; split; last by split_Rabs; lra.
  by move=> j /back [l ->]; rewrite (one l); lra.
have N1 : 1 <= INR N - 1.
  have : (i.+1 < N.+1)%N by rewrite ltnS; exact: ltn_ord.
  have i1 : (0 < i)%N by rewrite lt0n; apply/eqP.
  by move=> _; have := INR_le (leq_ltn_trans i1 (ltn_ord i)); rewrite INR_S [INR 1]/=; lra.
pose first := widen_ord (ltn_ord i) ord0.
have ne : first != i by rewrite -val_eqE /= eq_sym; apply/eqP.
have big : Δ <= spread.
  by have := gaps _ _ ne; have := range first; have := range i; split_Rabs; lra.
pose q := 4 * (INR N - 1) * spread / Δ; have iΔ := Rinv_0_lt_compat _ Δ0.
have q1 : 1 < q.
  apply: (Rmult_lt_reg_r Δ) => //.
  have -> : q * Δ = 4 * (INR N - 1) * spread by rewrite /q; field; lra.
  have sp0 : 0 <= spread by lra.
  by have := Rmult_le_compat_r _ _ _ sp0 N1; lra.
have lnq : ln q <= γ * Δ.
  have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ Δ0) warm; rewrite -/q.
  by have -> : ln q / Δ * Δ = ln q by field; lra.
have γ0 : 0 <= γ.
  have l0 : 0 < ln q by rewrite -ln_1; apply: ln_increasing; lra.
  by apply: Rnot_lt_le => neg; have := Rmult_lt_compat_r _ _ _ Δ0 neg; lra.
have small : INR i * (spread * exp (- (γ * Δ))) <= Δ / 4.
  have e : exp (- (γ * Δ)) <= / q.
    by rewrite -[q]exp_ln -?exp_Ropp; [apply: exp_mono; lra | lra].
  have iN : INR i <= INR N - 1 by have := INR_le (ltn_ord i); rewrite INR_S; lra.
  have s0 : 0 <= spread by lra.
  have e0 := exp_pos (- (γ * Δ)); have k0 := INR_ge0 i.
  apply: (Rle_trans _ ((INR N - 1) * (spread * / q))).
    by apply: Rmult_le_compat => //; [apply: Rmult_le_pos; lra | apply: Rmult_le_compat_l].
  by right; rewrite /q; field; repeat split; lra.
have gaps' := spaced_prefix (ltn_ord i) gaps.
have range' j : low <= seen j <= low + spread by exact: range.
have [top [le near]] := near_best Δ0 γ0 small gaps' range'.
have opp j : - (low + spread) <= - seen j <= - (low + spread) + spread by have := range' j; lra.
have [bottom [ge near']] := near_best Δ0 γ0 small (spaced_opp gaps') opp.
have AE : ∑_j (softmax (fun j => γ * - seen j) j * - seen j) = - A (- γ).
  rewrite /A -sum_opp; apply: eq_bigr => j _.
  have -> : softmax (fun j => γ * - seen j) j = softmax (fun j => - γ * seen j) j.
    by apply: eq_softmax => l; ring.
  by ring.
have {}ge l : seen bottom <= seen l by have := ge l; rewrite /seen; lra.
rewrite AE in near'; have {}le l : seen l <= seen top by exact: le.
have near1 : Rabs (A γ - seen top) <= Δ / 4 by exact: near.
split.
  exists (widen_ord (ltn_ord i) top), (widen_ord (ltn_ord i) bottom).
  split; first exact: within.
  split; first exact: within.
  split; first by move=> j /back [l ->]; exact: conj (ge l) (le l).
  by split; [exact: near1 | exact: near'].
have ab : seen bottom + Δ <= seen top.
  have [l fl] := back i (leqnn i); have [o fo] := back first (leq0n _).
  have := gaps _ _ ne; have := le l; have := le o; have := ge l; have := ge o.
  rewrite fl fo; split_Rabs; lra.
rewrite /relu Rmax_left //; have half : Δ / 2 <= A γ - A (- γ).
  have near2 : Rabs (- A (- γ) - - seen bottom) <= Δ / 4 by exact: near'.
  by move: near1 near2; split_Rabs; lra.
have E : 1 = 2 / Δ * (Δ / 2) by field; lra.
have : 0 <= 2 / Δ * (A γ - A (- γ) - Δ / 2); last by lra.
by apply: Rmult_le_pos; rewrite /Rdiv; lra.
Qed.
