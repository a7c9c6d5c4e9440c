(* Chapter 11: with records that are nearly exact, every live round selects the next best response.
   Rounds and places count from 0: in round k the exact mask is 1 on the places before k. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings OnlineLoss Weights Spacing Transformer.
From Icalign Require Import BlockErrors MaskedBlock.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* γ₁, c, and the start token's σ, for a margin g. *)
Definition mask_γ (g Δ : R) : R := (g + 1) / Δ.
Definition mask_c (g Δ spread : R) : R := (g + 1) * (2 + spread / Δ).
Definition stop_logit (low high mask : R) : R := (low + high - mask) / 2.

(* What a round misses. *)
Definition miss (g : R) : R := 5 / 2 * exp (- g).

(* ── Margins ────────────────────────────────────────────────────────────────────────────────── *)

Section Margins.
Variables (n : nat) (g Δ spread low E : R) (r m : 'I_n -> R) (τ : {perm 'I_n}) (k : nat).
Hypotheses (g0 : 0 < g) (Δ0 : 0 < Δ) (gaps : spaced Δ r) (ranked : ranks r τ).
Hypothesis range : forall j, low <= r j <= low + spread.
Hypotheses (m0 : forall j, 0 <= m j) (near : forall j, Rabs (m j - flags τ k j) <= E).
Let γ := mask_γ g Δ.
Let c := mask_c g Δ spread.
Let σ := stop_logit (γ * low) (γ * (low + spread)) c.
Hypothesis small : c * E <= 1.
Let z j := γ * r j - c * m j.

Lemma mask_γΔ : γ * Δ = g + 1. Proof. by rewrite /γ /mask_γ; field; lra. Qed.

Lemma mask_cE : c = 2 * (g + 1) + γ * spread.
Proof. by rewrite /c /mask_c /γ /mask_γ; field; lra. Qed.

Lemma mask_γ0 : 0 < γ. Proof. by rewrite /γ /mask_γ; apply: Rdiv_lt_0_compat; lra. Qed.

Lemma spread0 (j : 'I_n) : 0 <= spread. Proof. by have := range j; lra. Qed.

Lemma mask_c0 (j : 'I_n) : 0 <= c.
Proof. by rewrite mask_cE; have := mask_γ0; have := spread0 j; nra. Qed.

(* What the record takes off a response in play, and off one that is taken. *)
Lemma live_record (l : 'I_n) : (k <= l)%N -> 0 <= c * m (τ l) <= 1.
Proof.
move=> kl; have := near (τ l); rewrite flags_place ltnNge kl /= Rminus_0_r Rabs_pos_eq //.
by have := mask_c0 l; have := m0 (τ l); nra.
Qed.

Lemma taken_record (l : 'I_n) : (l < k)%N -> c - 1 <= c * m (τ l).
Proof.
move=> lk; have := near (τ l); rewrite flags_place lk.
by have := mask_c0 l; have := Rle_abs (- (m (τ l) - 1)); rewrite Rabs_Ropp; nra.
Qed.

(* A gap in the rewards, times γ. *)
Lemma γ_gap a b d : a + d * Δ <= b -> γ * a + d * g + d <= γ * b.
Proof.
move=> ab; have := Rmult_le_compat_l γ _ _ (Rlt_le _ _ mask_γ0) ab.
by have : d * (γ * Δ) = d * (g + 1); [rewrite mask_γΔ | lra].
Qed.

Lemma place_gap (i l : 'I_n) : (i <= l)%N ->
  γ * r (τ l) + INR (l - i) * g + INR (l - i) <= γ * r (τ i).
Proof. by move=> il; apply: γ_gap; exact: (ranks_gap ranked gaps il). Qed.

Lemma place_high (l : 'I_n) : γ * r (τ l) + INR l * g + INR l <= γ * (low + spread).
Proof.
apply: γ_gap.
by have := ranks_high ranked gaps l (fun i => proj2 (range i)); lra.
Qed.

Lemma place_low (i : 'I_n) : γ * low + INR (n - i.+1) * g + INR (n - i.+1) <= γ * r (τ i).
Proof.
apply: γ_gap; exact: (ranks_low ranked gaps i (fun j => proj1 (range j))).
Qed.

(* Live responses behind the best of them, w in place k; the taken ones; the start token. *)
Lemma live_margin (w l : 'I_n) : w = k :> nat -> (k < l)%N ->
  z (τ l) - z (τ w) <= - (INR (l - k) * g).
Proof.
move=> wk kl; have wl : (w <= l)%N by rewrite wk ltnW.
have := place_gap wl; have := live_record (ltnW kl).
have wk' : (k <= w)%N by rewrite wk.
have := live_record wk'; rewrite wk /z.
have : 1 <= INR (l - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
by lra.
Qed.

Lemma taken_margin (w l : 'I_n) : w = k :> nat -> (l < k)%N ->
  z (τ l) - z (τ w) <= - (INR (l + 2) * g).
Proof.
move=> wk lk; have wk' : (k <= w)%N by rewrite wk.
have := live_record wk'; have := taken_record lk; have := place_high l; have := place_low w.
have := INR_ge0 (n - w.+1); have := INR_ge0 l; rewrite plus_INR /z.
have := mask_cE; have -> : INR 2 = 2 by []; have : 0 <= INR (n - w.+1) * g.
  by apply: Rmult_le_pos; [exact: INR_ge0 | lra].
by lra.
Qed.

Lemma start_margin (w : 'I_n) : w = k :> nat -> σ - z (τ w) <= - (INR (n - k) * g).
Proof.
move=> wk; have wk' : (k <= w)%N by rewrite wk.
have := live_record wk'; have := place_low w; have := INR_ge0 (n - w.+1).
have -> : INR (n - k) = INR (n - w.+1) + 1.
  by rewrite -INR_S -wk subnSK.
by have := mask_cE; rewrite /σ /stop_logit /z; lra.
Qed.

(* In a surplus round all are taken, and lie below the start token. *)
Lemma surplus_margin (l : 'I_n) : (n <= k)%N -> z (τ l) - σ <= - (INR l.+1 * g).
Proof.
move=> nk; have lk : (l < k)%N by apply: leq_trans (ltn_ord l) nk.
have := taken_record lk; have := place_high l; have := INR_ge0 l; rewrite INR_S.
by have := mask_cE; rewrite /σ /stop_logit /z; lra.
Qed.

(* ── The crowd, in steps of ξ = e^{−g} ──────────────────────────────────────────────────────── *)

Let ξ := exp (- g).

Lemma mask_ξ01 : 0 < ξ < 1.
Proof. by split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; lra]. Qed.

(* All others beside the next best, with the start token among them. *)
Lemma live_crowd (w : 'I_n) : w = k :> nat ->
  crowd z (τ w) + exp (σ - z (τ w)) <= ξ * (1 + ξ) / (1 - ξ).
Proof.
move=> wk; have [x0 x1] := mask_ξ01.
have after : ∑_(l < n | (w < l)%N) exp (z (τ l) - z (τ w)) <= (ξ - ξ ^ (n - w)) / (1 - ξ).
  apply: crowd_after mask_ξ01 _ => l wl; rewrite /ξ -exp_INR wk; apply: exp_mono.
  by apply: live_margin => //; rewrite -wk.
have before : ∑_(l < n | (l < w)%N) exp (z (τ l) - z (τ w)) <= ξ ^ 2 * ((1 - ξ ^ w) / (1 - ξ)).
  apply: crowd_before mask_ξ01 _ => l lw.
  rewrite -pow_add plusE addnC /ξ -exp_INR; apply: exp_mono.
  by apply: taken_margin => //; rewrite -wk.
have start : exp (σ - z (τ w)) <= ξ ^ (n - w).
  by rewrite /ξ -exp_INR wk; apply: exp_mono; exact: start_margin.
rewrite crowd_places; apply: (Rle_trans _ (ξ ^ 2 * ((1 - ξ ^ w) / (1 - ξ))
    + (ξ - ξ ^ (n - w)) / (1 - ξ) + ξ ^ (n - w))); first by lra.
have [a0 a1] := pow_unit (n - w) x0 (Rlt_le _ _ x1).
have [b0 b1] := pow_unit w x0 (Rlt_le _ _ x1).
apply: (Rmult_le_reg_r (1 - ξ)); first by lra.
move: (ξ ^ (n - w)) (ξ ^ w) a0 a1 b0 b1 => a b a0 a1 b0 b1.
have -> : ξ * (1 + ξ) / (1 - ξ) * (1 - ξ) = ξ * (1 + ξ) by field; lra.
have -> : (ξ ^ 2 * ((1 - b) / (1 - ξ)) + (ξ - a) / (1 - ξ) + a) * (1 - ξ)
  = ξ ^ 2 * (1 - b) + (ξ - a) + a * (1 - ξ) by field; lra.
by rewrite /=; nra.
Qed.

(* All beside the start token, in a surplus round. *)
Lemma surplus_crowd : (n <= k)%N -> ∑_j exp (z j - σ) <= ξ / (1 - ξ).
Proof.
move=> nk; have [x0 x1] := mask_ξ01.
rewrite (reindex_inj (@perm_inj _ τ)) /=.
apply: (Rle_trans _ (ξ * ∑_(l < n) ξ ^ l)).
  rewrite -sum_scal; apply: sum_le => l _; rewrite tech_pow_Rmult /ξ -exp_INR.
  by apply: exp_mono; exact: surplus_margin.
have := sum_geometric n ξ; have [a0 a1] := pow_unit n x0 (Rlt_le _ _ x1).
move: (∑_(_ < n) _) => s sE; apply: (Rmult_le_reg_r (1 - ξ)); first by lra.
have -> : ξ / (1 - ξ) * (1 - ξ) = ξ by field; lra.
by nra.
Qed.

End Margins.

(* Its share is at most (5/2) e^{−g}. *)
Lemma miss_crowd g : 0 < g -> let ξ := exp (- g) in
  share (ξ * (1 + ξ) / (1 - ξ)) <= miss g.
Proof.
move=> g0 ξ; have [x0 x1] := mask_ξ01 g0; rewrite -/ξ in x0 x1.
have -> : share (ξ * (1 + ξ) / (1 - ξ)) = ξ * (1 + ξ) / (1 + ξ * ξ).
  by rewrite /share; field; split; nra.
apply: (Rmult_le_reg_r (1 + ξ * ξ)); first by nra.
have -> : ξ * (1 + ξ) / (1 + ξ * ξ) * (1 + ξ * ξ) = ξ * (1 + ξ) by field; nra.
by rewrite /miss -/ξ; nra.
Qed.

Lemma miss_surplus g : 0 < g -> let ξ := exp (- g) in share (ξ / (1 - ξ)) <= miss g.
Proof.
move=> g0 ξ; have [x0 x1] := mask_ξ01 g0; rewrite -/ξ in x0 x1.
have -> : share (ξ / (1 - ξ)) = ξ by rewrite /share; field; split; lra.
by rewrite /miss -/ξ; lra.
Qed.

(* ── The record after one more round ────────────────────────────────────────────────────────── *)

Section Record.
Variables (n k : nat) (τ : {perm 'I_n}) (m A : 'I_n -> R) (E e : R).
Hypotheses (near : forall j, Rabs (m j - flags τ k j) <= E) (A0 : forall j, 0 <= A j).

Lemma record_live (w : 'I_n) : w = k :> nat -> A (τ w) <= 1 -> 1 - A (τ w) <= e ->
  (forall j, j != τ w -> A j <= e) -> forall j, Rabs (m j + A j - flags τ k.+1 j) <= E + e.
Proof.
move=> wk A1 missed others j; have le := near j.
rewrite -(permKV τ j) in le *; move: (τ^-1%g j) le => {j} l; rewrite !flags_place ltnS => le.
have a0 := A0 (τ l); have [lw|lw] := altP (l =P w).
  by move: le; rewrite lw wk ltnn leqnn; split_Rabs; lra.
have ak : A (τ l) <= e by apply: others; rewrite (inj_eq perm_inj).
have ne : l != k :> nat by rewrite -wk; apply: contra lw => /eqP /val_inj ->.
by move: le; rewrite (leq_eqVlt l) (negbTE ne) /=; split_Rabs; lra.
Qed.

Lemma record_surplus : (n <= k)%N -> (forall j, A j <= e) ->
  forall j, Rabs (m j + A j - flags τ k.+1 j) <= E + e.
Proof.
move=> nk others j; have le := near j; rewrite -(permKV τ j) in le *.
move: (τ^-1%g j) le => {j} l; rewrite !flags_place.
have lk : (l < k)%N by apply: leq_trans (ltn_ord l) nk.
have a0 := A0 (τ l); have ak := others (τ l).
by rewrite lk (ltnW lk : (l < k.+1)%N) => le; move: le; split_Rabs; lra.
Qed.
End Record.

(* ── The induction over the rounds ──────────────────────────────────────────────────────────── *)

Section Induction.
Variables (N : nat) (g Δ spread low : R) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}).
Notation tN := (ltn_ord i).
Let γ := mask_γ g Δ.
Let c := mask_c g Δ spread.
Hypotheses (g0 : 0 < g) (Δ0 : 0 < Δ) (small : 5 / 2 * (INR N - 1) * c * exp (- g) <= 1).
Hypotheses (gaps : spaced Δ r) (ranked : ranks (prefix tN r) τ).
Hypothesis range : forall j, low <= r j <= low + spread.
Let m K := ca_record γ c 0 causal r (fun _ => 0) one_hot K i.
Let A K := ca_winner_weights γ c 0 causal r (fun _ => 0) one_hot i (m K).

Lemma small_record K : (K < N)%N -> c * (INR K * miss g) <= 1.
Proof.
move=> KN; have c0 : 0 <= c by rewrite /c; exact: (mask_c0 g0 Δ0 range i).
have KN' : INR K <= INR N - 1 by have := INR_le KN; rewrite INR_S; lra.
have e0 := exp_pos (- g); move: small; rewrite /miss; set e := exp _ in e0 *.
have ce : 0 <= c * e by apply: Rmult_le_pos; lra.
by have := Rmult_le_compat_r _ _ _ ce KN'; lra.
Qed.

Lemma printed_weights K l : A K (widen_ord tN l)
  = softmax (fun j => γ * prefix tN r j - c * prefix tN (m K) j) l.
Proof.
rewrite /A /ca_winner_weights seen_softmax; apply: eq_softmax => j.
by rewrite /prefix /= dot_one_hot; ring.
Qed.

Lemma printed_record K l : m K.+1 l = m K l + A K l.
Proof. by rewrite /m /= /vadd comb_one_hot. Qed.

Lemma record_ge0 K l : 0 <= m K l.
Proof.
elim: K => [|K IH]; first by rewrite /m /= /vzero; lra.
rewrite printed_record; have : 0 <= A K l by exact: softmax_on_ge0.
by move: IH; lra.
Qed.

Lemma printed_miss K (w : 'I_i.+1) : w = K :> nat -> (K < N)%N ->
  (forall j, Rabs (prefix tN (m K) j - flags τ K j) <= INR K * miss g) ->
  1 - A K (widen_ord tN (τ w)) <= miss g.
Proof.
move=> wK KN near; rewrite printed_weights softmax_miss.
apply: Rle_trans (miss_crowd g0); apply: share_le; first exact: crowd_ge0.
have := @live_crowd _ g Δ spread low (INR K * miss g) (prefix tN r) (prefix tN (m K)) τ K g0 Δ0
  (spaced_prefix tN gaps) ranked (fun j => range _) (fun j => record_ge0 K _) near
  (small_record KN) w wK.
rewrite /= -/γ -/c; set q := exp (stop_logit _ _ _ - _).
have q0 : 0 < q by exact: exp_pos.
by lra.
Qed.

Lemma printed_near K : (K <= i.+1)%N ->
  forall j, Rabs (prefix tN (m K) j - flags τ K j) <= INR K * miss g.
Proof.
elim: K => [|K IH] Ki j.
  by rewrite /prefix /m /= /vzero /flags ltn0 Rminus_0_r Rabs_R0; lra.
have near := IH (ltnW Ki); pose w := Ordinal Ki.
have le := @printed_miss K w erefl (leq_trans Ki (ltn_ord i)) near; rewrite printed_weights in le.
rewrite /prefix printed_record printed_weights INR_S Rmult_plus_distr_r Rmult_1_l.
apply: (record_live near _ (w := w)) => // [l||l lw].
- by left; exact: softmax_gt0.
- exact: softmax_le1.
apply: Rle_trans le; rewrite -softmax_rest.
apply: (sum_ge_term (P := fun j => j != τ w)) => // a _.
by left; exact: softmax_gt0.
Qed.

Lemma unseen_record K (l : 'I_N) : (i < l)%N -> m K l = 0.
Proof.
move=> il; elim: K => [|K IH] //.
by rewrite printed_record IH /A /ca_winner_weights unseen //; ring.
Qed.
End Induction.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* For any record of token i that is nearly exact: no entry is negative, or further from the mask of
   the first k places than N − 1 misses. *)
Lemma near_margins (dx dy N : nat) (η g Δ spread : R) :
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (m : 'I_N -> vec 'I_N) (u : 'I_N -> vec 'I_dy) (i : 'I_N) (τ : {perm 'I_i.+1}) (k l : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  (forall j, 0 <= m i j) ->
  (forall j, Rabs (prefix (ltn_ord i) (m i) j - flags τ k j)
             <= (INR N - 1) * (5 / 2 * exp (- g))) ->
  let X j := ca_token x (y j) (‖y j‖²) (r j) 0 (one_hot j) (m j) (u j) in
  let z j := logit (ca_winner dx dy N η γ c 0) X i (widen_ord (ltn_ord i) j) in
  l != k -> z (τ l) + g <= z (τ k).
Proof.
move=> γ c g0 Δ0 small x y r low m u i τ k l gaps range ranked m0 near X z lk.
have zE j : z j = γ * prefix (ltn_ord i) r j - c * prefix (ltn_ord i) (m i) j.
  by rewrite /z ca_winner_logit //= dot_one_hot /prefix; ring.
have sm : c * ((INR N - 1) * (5 / 2 * exp (- g))) <= 1 by move: small; lra.
have gaps' := spaced_prefix (ltn_ord i) gaps.
have range' j : low <= prefix (ltn_ord i) r j <= low + spread by exact: range.
have m0' j : 0 <= prefix (ltn_ord i) (m i) j by exact: m0.
have far : 1 <= INR (if (k < l)%N then (l - k)%N else (l + 2)%N).
  by rewrite -[1]/(INR 1); apply: INR_le; case: ifP => [?|_]; rewrite ?subn_gt0 ?addn2.
have : z (τ l) - z (τ k) <= - (INR (if (k < l)%N then (l - k)%N else (l + 2)%N) * g).
  rewrite !zE; case: (ltngtP k l) => [kl|kl|/val_inj E]; last by rewrite E eqxx in lk.
    exact: (live_margin g0 Δ0 gaps' ranked range' m0' near sm).
  exact: (taken_margin g0 Δ0 gaps' ranked range' m0' near sm).
by nra.
Qed.

(* Claim mask-selection, part margins: round k, from 0, at response i; the blocks before it have
   written the records. *)
Theorem mask_selection_margins : forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k l : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X := run causal (nseq k (printed_block N W η γ c C)) (masked_prompt x y r) in
  let z j := logit (ca_winner dx dy N η γ c 0) X i (widen_ord (ltn_ord i) j) in
  l != k -> z (τ l) + g <= z (τ k).
Proof.
move=> dx dy N W η g Δ spread C γ c g0 Δ0 small x y r low i τ k l gaps range ranked X z.
have XE : X = ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
    (ca_record γ c 0 causal r (fun _ => 0) one_hot k)
    (ca_sum W η γ c C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot k).
  by rewrite -ca_run.
have kN : (k < N)%N by apply: leq_trans (ltn_ord k) (ltn_ord i).
rewrite /z XE.
apply: (@near_margins _ _ _ _ _ _ _ g0 Δ0 small x y _ low _ _ _ _ _ _ gaps range ranked) => j.
  exact: (record_ge0 _ _ _ _ i).
have := printed_near g0 Δ0 small gaps ranked range (ltnW (ltn_ord k)) j.
rewrite -/γ -/c => le; apply: Rle_trans le _; apply: Rmult_le_compat_r.
  by have := exp_pos (- g); rewrite /miss; lra.
by have := INR_le kN; rewrite INR_S; lra.
Qed.

(* Claim mask-selection, parts step, induction; paper: Lemma F.1 of the camera-ready.
   Round k, from 0, selects the response of place k among those that i sees. *)
Theorem mask_selection : forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X K := run causal (nseq K (printed_block N W η γ c C)) (masked_prompt x y r) in
  let seen := widen_ord (ltn_ord i) in
  1 - 5 / 2 * exp (- g) <= attention causal (ca_winner dx dy N η γ c 0) (X k) i (seen (τ k))
  /\ (forall j, Rabs (X k.+1 i Ca.m (seen j) - flags τ k.+1 j) <= INR k.+1 * (5 / 2 * exp (- g)))
  /\ (forall j : 'I_N, (i < j)%N -> X k.+1 i Ca.m j = 0).
Proof.
move=> dx dy N W η g Δ spread C γ c g0 Δ0 small x y r low i τ k gaps range ranked X seen.
have kN : (k < N)%N by apply: leq_trans (ltn_ord k) (ltn_ord i).
have XE K : X K = ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
    (ca_record γ c 0 causal r (fun _ => 0) one_hot K)
    (ca_sum W η γ c C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot K).
  by rewrite -ca_run.
have near K := @printed_near N g Δ spread low r i τ g0 Δ0 small gaps ranked range K.
split; last split; rewrite !XE.
- rewrite ca_winner_attention.
  have := @printed_miss N g Δ spread low r i τ g0 Δ0 small gaps ranked range k k erefl kN
    (near k (ltnW (ltn_ord k))).
  by rewrite /miss -/γ -/c /seen; lra.
- exact: (near k.+1 (ltn_ord k)).
by move=> j ij; exact: (unseen_record _ _ _ _ k.+1 ij).
Qed.

(* Claim mask-selection, part mask-error: one round, at each response that i sees. *)
Theorem mask_selection_mask_error : forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k j : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X K := run causal (nseq K (printed_block N W η γ c C)) (masked_prompt x y r) in
  let off K := X K i Ca.m (widen_ord (ltn_ord i) j) - flags τ K j in
  Rabs (off k.+1) <= Rabs (off k) + 5 / 2 * exp (- g).
Proof.
move=> dx dy N W η g Δ spread C γ c g0 Δ0 small x y r low i τ k j gaps range ranked X off.
have kN : (k < N)%N by apply: leq_trans (ltn_ord k) (ltn_ord i).
have XE K : X K = ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
    (ca_record γ c 0 causal r (fun _ => 0) one_hot K)
    (ca_sum W η γ c C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot K).
  by rewrite -ca_run.
have missed := @printed_miss N g Δ spread low r i τ g0 Δ0 small gaps ranked range k k erefl kN
  (@printed_near N g Δ spread low r i τ g0 Δ0 small gaps ranked range k (ltnW (ltn_ord k))).
have record K : X K i Ca.m = ca_record γ c 0 causal r (fun _ => 0) one_hot K i by rewrite XE.
rewrite /off !record printed_record; rewrite printed_weights -/γ -/c in missed.
rewrite (@printed_weights _ g Δ spread r i k j) -/γ -/c.
set a := fun l : 'I_i.+1 => γ * _ - _ in missed *.
have a1 := softmax_le1 a j; have a0 := softmax_gt0 a j; rewrite /miss in missed.
have e0 := exp_pos (- g).
have [jk|jk] := altP (j =P τ k).
  have f0 : flags τ k j = 0 by rewrite jk flags_place ltnn.
  have f1 : flags τ k.+1 j = 1 by rewrite jk flags_place ltnS leqnn.
  rewrite f0 f1; rewrite -jk in missed; split_Rabs; lra.
have -> : flags τ k.+1 j = flags τ k j.
  rewrite /flags ltnS leq_eqVlt (_ : (_ == _) = false) //; apply/negbTE.
  by apply: contra jk => /eqP E; rewrite -(permKV τ j); apply/eqP; congr (τ _); exact/val_inj.
have : softmax a j <= 1 - softmax a (τ k).
  rewrite -softmax_rest; apply: (@sum_ge_term _ (fun l => l != τ k) (softmax a) j) => // l _.
  by left; exact: softmax_gt0.
by split_Rabs; lra.
Qed.
