(* Lemma C.2: a softmax head copies the response with the largest reward into every token. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The head ───────────────────────────────────────────────────────────────────────────────── *)

Module Sel.
Inductive name := x | y | r | one | best.
End Sel.

Section Head.
Variables dx dy : nat.

(* Rows x, y, r, 1 and best, which the head fills. *)
Definition sel_width (a : Sel.name) : nat :=
  match a with Sel.x => dx | Sel.y | Sel.best => dy | _ => 1 end.

Definition sel_stream : stream.
Proof.
refine {| row := Sel.name;
  width := sel_width;
  rows := [:: Sel.x; Sel.y; Sel.r; Sel.one; Sel.best] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Query γ·1, key r, value y, written to best. *)
Definition sel_head (gamma : R) : head sel_stream := @Head sel_stream (one_row 1) (one_row dy)
  (* query *)  (fun _ b => match b with Sel.one => identity gamma | _ => zero end)
  (* key *)    (fun _ b => match b with Sel.r => identity 1 | _ => zero end)
  (* value *)  (fun _ b => match b with Sel.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Sel.best => identity 1 | _ => zero end).

Definition sel_block (gamma : R) : block sel_stream := Block [:: sel_head gamma] None.

(* The tokens [x; y_j; r_j; 1; 0]. *)
Definition sel_prompt N (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :
    'I_N -> token sel_stream :=
  fun j a => match a with
  | Sel.x => x | Sel.y => y j | Sel.r => fun _ => r j | Sel.one => fun _ => 1
  | Sel.best => fun _ => 0 end.

End Head.

Arguments sel_prompt {dx dy N} x y r.

(* What a token attends to, and what it finds in the row best after the block. *)
Definition sel_attention {dx dy N} γ (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
  (i j : 'I_N) : R := attention full (sel_head dx dy γ) (sel_prompt x y r) i j.
Definition selected {dx dy N} γ (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
  (i : 'I_N) : vec 'I_dy := run full [:: sel_block dx dy γ] (sel_prompt x y r) i Sel.best.

(* ── From the matrices ──────────────────────────────────────────────────────────────────────── *)

(* Claim selection-logits, part logits; paper: Lemma C.2. For any number and content of tokens. *)
Theorem selection_logits : forall (dx dy : nat) (γ : R) (T : finType)
    (X : T -> token (sel_stream dx dy)) (i j : T),
  X i Sel.one ord0 = 1 -> logit (sel_head dx dy γ) X i j = γ * X j Sel.r ord0.
Proof. by move=> dx dy γ T X i j one; rewrite /logit; blocks; rewrite one; ring. Qed.

(* Claim selection-logits, part logits: on the tokens of a prompt, KᵀQ_ji = γ r_j. *)
Theorem selection_logits_prompt : forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  logit (sel_head dx dy γ) (sel_prompt x y r) i j = γ * r j.
Proof. by move=> dx dy N γ x y r i j; rewrite selection_logits. Qed.

Lemma sel_softmax dx dy N γ (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) r i j :
  sel_attention γ x y r i j = softmax (fun l => γ * r l) j.
Proof. by apply: eq_softmax => l; exact: selection_logits_prompt. Qed.

Lemma sel_output dx dy N γ (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) r i :
  selected γ x y r i = comb (softmax (fun l => γ * r l)) y.
Proof.
apply: vec_eq => c; rewrite /selected /run /= /transform /= /attend /= big_cons big_nil /=.
rewrite /head_output; blocks; rewrite /comb.
rewrite Rplus_0_l Rmult_1_l !Rplus_0_r; apply: eq_bigr => j _.
by rewrite -/(sel_attention γ x y r i j) sel_softmax; blocks; ring.
Qed.

(* ── How much attention the winner gets ─────────────────────────────────────────────────────── *)

Lemma sum_others N (w : 'I_N) (c : R) : ∑_(j | j != w) c = (INR N - 1) * c.
Proof. by have := sum_pick w (fun _ => c); rewrite sum_const_ord; lra. Qed.

Lemma crowd_le N γ Δ (r : 'I_N -> R) (w : 'I_N) :
  0 <= γ -> (forall j : 'I_N, j != w -> r j + Δ <= r w) ->
  crowd (fun j => γ * r j) w <= (INR N - 1) * exp (- γ * Δ).
Proof.
move=> γ0 gap; rewrite -(sum_others w); apply: sum_le => j jw.
by apply: exp_mono; have := gap j jw; nra.
Qed.

Lemma crowd_tied N γ Δ (r : 'I_N -> R) (w : 'I_N) : (forall j : 'I_N, j != w -> r j = r w - Δ) ->
  crowd (fun j => γ * r j) w = (INR N - 1) * exp (- γ * Δ).
Proof.
by move=> gap; rewrite -(sum_others w); apply: eq_bigr => j jw; rewrite gap //; congr exp; ring.
Qed.

(* Claim selection-bound, part bound; paper: Lemma C.2. Δ: from the best reward to the next. *)
Theorem selection_bound : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy)
    (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= q / (1 + q).
Proof.
move=> dx dy N γ Δ x y r w i γ0 gap /=; rewrite sel_softmax softmax_miss.
by apply: share_le; [exact: crowd_ge0 | exact: crowd_le].
Qed.

(* Claim selection-bound, part tied-losers. *)
Theorem selection_bound_tied_losers : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  (forall j : 'I_N, j != best -> r j = r best - Δ) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best = q / (1 + q).
Proof.
by move=> dx dy N γ Δ x y r w i gap /=; rewrite sel_softmax softmax_miss (crowd_tied γ gap).
Qed.

(* Claim selection-bound, part strict. *)
Theorem selection_bound_strict : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best behind i : 'I_N),
  0 < γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  behind != best -> r behind + Δ < r best ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best < q / (1 + q).
Proof.
move=> dx dy N γ Δ x y r w l i γ0 gap lw lt /=; rewrite sel_softmax softmax_miss.
apply: share_lt; first exact: crowd_ge0.
rewrite -(sum_others w); apply: (sum_lt (k := l)) => // [|j jw].
  by apply: exp_increasing; nra.
by apply: exp_mono; have := gap j jw; nra.
Qed.

(* Claim selection-bound, parts tied-losers, strict: equality iff all losers tie. *)
Theorem selection_bound_equality : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  1 - sel_attention γ x y r i best = q / (1 + q)
  <-> (forall j : 'I_N, j != best -> r j = r best - Δ).
Proof.
move=> dx dy N γ Δ x y r w i γ0 gap /=; split=> [e j jw|]; last exact: selection_bound_tied_losers.
case: (Rle_lt_or_eq_dec _ _ (gap j jw)) => [lt|]; last by lra.
by have := @selection_bound_strict _ _ _ γ Δ x y r w j i γ0 gap jw lt; rewrite e /=; lra.
Qed.

Section Spaced.
Variables (N : nat) (γ Δ : R) (r : 'I_N -> R) (τ : {perm 'I_N}) (best : 'I_N).
Hypotheses (γ0 : 0 < γ) (Δ0 : 0 < Δ) (gaps : spaced Δ r) (ranked : ranks r τ).
Hypothesis top : forall j, r j <= r best.
Let ξ := exp (- γ * Δ).

Lemma ξ_bounds : 0 < ξ < 1.
Proof. by split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; nra]. Qed.

Lemma best_place (o : 'I_N) : o = 0%N :> nat -> τ o = best.
Proof.
move=> o0; rewrite -(permKV τ best); congr (τ _); apply/val_inj/eqP; rewrite /= o0 eq_sym.
rewrite -leqn0 leqNgt; apply/negP => lt; have := @ranked o (τ^-1%g best).
by rewrite permKV o0 => /(_ lt); have := top (τ o); lra.
Qed.

Lemma step_le (k l : 'I_N) : (k <= l)%N -> exp (γ * r (τ l) - γ * r (τ k)) <= ξ ^ (l - k).
Proof.
move=> kl; have -> : ξ ^ (l - k) = exp (- (INR (l - k) * (γ * Δ))).
  by rewrite exp_INR; congr (exp _ ^ _); ring.
by apply: exp_mono; have := ranks_gap ranked gaps kl; nra.
Qed.

Lemma share_geometric : (0 < N)%N ->
  share ((ξ - ξ ^ N) / (1 - ξ)) = ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N).
Proof.
move=> N0; have [x0 x1] := ξ_bounds.
have E : ξ ^ N = ξ * ξ ^ (N - 1) by rewrite tech_pow_Rmult subn1 prednK.
have [P0 P1] := pow_unit (N - 1) x0 (Rlt_le _ _ x1).
by rewrite /share E; field; split; nra.
Qed.

(* The crowd beside the best, in steps of ξ. *)
Lemma crowd_spaced :
  crowd (fun j => γ * r j) best <= (ξ - ξ ^ N) / (1 - ξ)
  /\ ((exists k l : 'I_N, l = k.+1 :> nat /\ r (τ l) + Δ < r (τ k)) ->
      crowd (fun j => γ * r j) best < (ξ - ξ ^ N) / (1 - ξ))
  /\ ((forall l : 'I_N, r (τ l) = r best - INR l * Δ) ->
      crowd (fun j => γ * r j) best = (ξ - ξ ^ N) / (1 - ξ)).
Proof.
have N0 : (0 < N)%N by apply: leq_ltn_trans (ltn_ord best).
have [x0 x1] := ξ_bounds; pose o := Ordinal N0; have bE := @best_place o erefl.
have -> : (ξ - ξ ^ N) / (1 - ξ) = ∑_(l < N | (o < l)%N) ξ ^ (l - o).
  apply: (Rmult_eq_reg_l (1 - ξ)); last by lra.
  by rewrite sum_after subn0; field; lra.
have -> : crowd (fun j => γ * r j) best =
          ∑_(l < N | (o < l)%N) exp (γ * r (τ l) - γ * r (τ o)).
  by rewrite -bE crowd_places big1 ?Rplus_0_l // => l; rewrite ltn0.
split; first by apply: sum_le => l ol; exact: step_le (ltnW ol).
split=> [[k [l [lk lt]]]|tied].
  have ol : (o < l)%N by rewrite lk.
  apply: (sum_lt (k := l)) => // [|i oi]; last exact: step_le (ltnW oi).
  have kl : (k <= l)%N by rewrite lk.
  have := ranks_gap ranked gaps (leq0n k : (o <= k)%N); rewrite subn0 => le.
  have -> : ξ ^ (l - o) = exp (- (INR l * (γ * Δ))).
    by rewrite subn0 exp_INR; congr (exp _ ^ _); ring.
  by apply: exp_increasing; rewrite lk INR_S; nra.
apply: eq_bigr => l _; have -> : ξ ^ (l - o) = exp (- (INR l * (γ * Δ))).
  by rewrite subn0 exp_INR; congr (exp _ ^ _); ring.
by congr exp; rewrite !tied /=; ring.
Qed.

End Spaced.

(* Claim selection-bound, part spaced; paper: Lemma C.2. *)
Theorem selection_bound_spaced : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < γ -> 0 < Δ -> spaced Δ r -> (forall j, r j <= r best) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best <= ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N).
Proof.
move=> dx dy N γ Δ x y r best i γ0 Δ0 gaps top /=.
have [τ ranked] := ranking_exists (spaced_distinct Δ0 gaps).
rewrite sel_softmax softmax_miss -share_geometric //; last exact: leq_ltn_trans (ltn_ord best).
apply: share_le; first exact: crowd_ge0.
by have [] := crowd_spaced γ0 Δ0 gaps ranked top.
Qed.

(* Claim selection-bound, part free-of-n. *)
Theorem selection_bound_free_of_n : forall (N : nat) (γ Δ : R),
  (0 < N)%N -> 0 < γ -> 0 < Δ ->
  let ξ := exp (- γ * Δ) in
  ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N) < ξ.
Proof.
move=> N γ Δ N0 γ0 Δ0 /=; have [x0 x1] := ξ_bounds γ0 Δ0; set ξ := exp _ in x0 x1 *.
have E : ξ ^ N = ξ * ξ ^ (N - 1) by rewrite tech_pow_Rmult subn1 prednK.
have [P0 P1] := pow_unit (N - 1) x0 (Rlt_le _ _ x1); rewrite E.
apply: (Rmult_lt_reg_r (1 - ξ * ξ ^ (N - 1))); first by nra.
set p := ξ ^ _ in P0 P1 *.
have -> : ξ * (1 - p) / (1 - ξ * p) * (1 - ξ * p) = ξ * (1 - p) by field; nra.
have : 0 < ξ * p * (1 - ξ) by apply: Rmult_lt_0_compat; nra.
by nra.
Qed.

(* Claim selection-bound, part equal-spacing. *)
Theorem selection_bound_equal_spacing : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (best i : 'I_N),
  0 < γ -> 0 < Δ -> (forall k : 'I_N, r (τ k) = r best - INR k * Δ) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best = ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N).
Proof.
move=> dx dy N γ Δ x y r τ best i γ0 Δ0 tied /=.
have ranked : ranks r τ by move=> k l kl; rewrite !tied; have := lt_INR _ _ (ltP kl); nra.
have top j : r j <= r best.
  by rewrite -(permKV τ j) tied; have := INR_ge0 (τ^-1%g j); nra.
have gaps : spaced Δ r.
  move=> j l; rewrite -(permKV τ j) -(permKV τ l) (inj_eq perm_inj) !tied.
  set a := τ^-1%g j; set b := τ^-1%g l; rewrite -val_eqE /= neq_ltn => /orP [] ab.
    have := INR_le ab; rewrite INR_S => ?; rewrite Rabs_pos_eq; nra.
  have := INR_le ab; rewrite INR_S => ?; rewrite Rabs_minus_sym Rabs_pos_eq; nra.
rewrite sel_softmax softmax_miss -share_geometric //; last exact: leq_ltn_trans (ltn_ord best).
by have [_ [_ ->]] := crowd_spaced γ0 Δ0 gaps ranked top.
Qed.

(* Claim selection-bound, part unequal-spacing. *)
Theorem selection_bound_unequal_spacing : forall (dx dy N : nat) (γ Δ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (best i k l : 'I_N),
  0 < γ -> 0 < Δ -> spaced Δ r -> ranks r τ -> (forall j, r j <= r best) ->
  l = k.+1 :> nat -> r (τ l) + Δ < r (τ k) ->
  let ξ := exp (- γ * Δ) in
  1 - sel_attention γ x y r i best < ξ * (1 - ξ ^ (N - 1)) / (1 - ξ ^ N).
Proof.
move=> dx dy N γ Δ x y r τ best i k l γ0 Δ0 gaps ranked top lk wide /=.
rewrite sel_softmax softmax_miss -share_geometric //; last exact: leq_ltn_trans (ltn_ord best).
apply: share_lt; first exact: crowd_ge0.
have [_ [lt _]] := crowd_spaced γ0 Δ0 gaps ranked top.
by apply: lt; exists k, l.
Qed.
