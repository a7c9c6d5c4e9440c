(* Statements that are not theorems, of chapters 9 to 12: the causal mask, positions from it, the
   record of the positions taken, and the start token. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask OnlineLoss Records Weights Spacing.
From Icalign Require Import Transformer Block Turns Smoothness MaskedBlock Mask.
From Icalign Require Import MaskExample StopSink Positions Mutants MutantsBlocks.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── What the last token attends to ─────────────────────────────────────────────────────────── *)

Lemma last_weights n z (l : 'I_n.+1) : softmax_on (causal ord_max) z l = softmax z l.
Proof.
have all j : causal (ord_max : 'I_n.+1) j by exact: leq_ord.
by rewrite /softmax_on all /softmax; congr (_ / _); apply: eq_bigl.
Qed.

Lemma softmax_lt (I : finType) (z : I -> R) a b : z a < z b -> softmax z a < softmax z b.
Proof.
move=> lt; apply: Rmult_lt_compat_r; last exact: exp_increasing.
exact: Rinv_0_lt_compat (sum_exp_all_gt0 z a).
Qed.

(* Of two, the one with the smaller logit gets at most half. *)
Lemma softmax_half (I : finType) (z : I -> R) a b : b != a -> z a <= z b -> softmax z a <= / 2.
Proof.
move=> ba le; have := softmax_rest z a.
have := sum_ge_term (P := fun j => j != a) (F := softmax z) ba.
move=> /(_ (fun j _ => Rlt_le _ _ (softmax_gt0 z j))).
suff : softmax z a <= softmax z b by lra.
apply: Rmult_le_compat_r; last exact: exp_mono.
exact: Rlt_le (Rinv_0_lt_compat _ (sum_exp_all_gt0 z a)).
Qed.

(* ── Chapter 9 ──────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of records_falsely_maximal: a response that is no record *)
Lemma not_maximal_without_a_record : ~ (forall (dx dy N : nat) (η γ Δ spread : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N),
  0 <= γ -> (forall j : 'I_N, (j < i)%N -> Δ <= Rabs (r i - r j)) ->
  1 - attention causal (winner_head dx dy η γ Δ spread) (el_prompt x y r) i i
  <= share (INR i * exp (- γ * Δ))).
Proof.
have gap (j : 'I_2) : (j < (ord_max : 'I_2))%N -> 1 <= Rabs (pair 1 0 ord_max - pair 1 0 j).
  by case: j => [[|[|j]] pj] // _; rewrite /pair /=; split_Rabs; lra.
move/(_ 0%N 0%N _ 0 1 1 1 vzero (fun _ => vzero) (pair 1 0) ord_max Rle_0_1 gap).
rewrite -[attention _ _ _ _]/(softmax_on _ _) last_weights softmax_miss /crowd.
rewrite big_mkcond sum_two /= !elimination_step_winner_logit //= pair_0 pair_1.
apply: Rlt_not_le; apply: share_lt; first by have := exp_pos (- (1) * 1); lra.
by rewrite Rmult_1_l Rplus_0_r; apply: exp_increasing; lra.
Qed.

(* ── Chapter 10 ─────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of nope_needs_a_start_one_layer: weights that sum to at most one *)
Lemma not_alike_under_partial_weights : ~ (forall (T : finType) (S : stream) (A : weighting T S)
    (b : block S) (X : T -> token S),
  (forall h i, ∑_j A h X i j <= 1) -> (forall i j, X i = X j) ->
  forall i j, transform_by A b X i = transform_by A b X j).
Proof.
(* Two tokens that are the same, and weights of 1/2 at the first, of 0 at the second. *)
pose X (i : 'I_2) : token (po_stream 0) := fun a _ => if a is Po.b then 1 else 0.
have le (i : 'I_2) : ∑_(j : 'I_2) pair (/ 2) 0 i <= 1.
  by rewrite sum_two /pair; case: ifP; lra.
move/(_ _ _ (fun _ _ i _ => pair (/ 2) 0 i) (Block [:: count_head 0] None) X (fun _ => le)
  (fun _ _ => erefl) ord0 ord_max).
move/(f_equal (fun e : token (po_stream 0) => e Po.z ord0)).
rewrite /transform_by /attend_by /= !big_cons !big_nil; blocks.
rewrite !sum_two pair_0 pair_1; blocks; rewrite /X; lra.
Qed.

(* Mutant of nope_needs_a_start_depth: one token, the start, may differ from the others *)
Lemma not_alike_behind_a_start : ~ (forall (T : finType) (S : stream)
    (bs : list (weighting T S * block S)) (X : T -> token S) (start : T),
  (forall b, List.In b bs -> forall h X i, ∑_j b.1 h X i j = 1) ->
  (forall i j, i != start -> j != start -> X i = X j) ->
  forall i j, i != start -> j != start -> run_by bs X i = run_by bs X j).
Proof.
move/(_ _ _ [:: (@attention _ causal (po_stream 2), Block [:: count_head 2] None)]
  marked_prompt ord0) => H.
have E : run causal [:: Block [:: count_head 2] None] marked_prompt (inord 1)
    = run causal [:: Block [:: count_head 2] None] marked_prompt ord_max.
  apply: H => // [b [<-|[]] h X i|i j i0 j0|].
  - by apply: (softmax_weights _ causal h X i i); exact: leqnn.
  - by rewrite /marked_prompt (negbTE i0) (negbTE j0).
  - by rewrite -val_eqE /= inordK.
move: E => /(f_equal (fun e : token (po_stream 2) => e Po.z ord0)).
by rewrite !nope_reciprocal inordK //=; lra.
Qed.

(* Mutant of nope_reciprocal: every token sees all *)
Lemma not_reciprocal_without_the_mask : ~ (forall (N : nat) (j : 'I_N.+1),
  run full [:: Block [:: count_head N] None] marked_prompt j Po.z ord0 = 1 / INR j.+1).
Proof.
move/(_ 1%N ord0); have half l : attention full (count_head 1) marked_prompt ord0 l = / 2.
  rewrite /attention /logit /= sum_two; blocks.
  by rewrite !(Rplus_0_l, Rmult_0_l) exp_0; lra.
rewrite /run /= /transform /= /attend /= big_cons big_nil /head_output; blocks.
by rewrite sum_two !half; blocks; lra.
Qed.

(* Mutant of hat_one_hot: positions shifted by one *)
Lemma not_one_hot_a_position_early : ~ (forall (N s : nat) (e : token (po_stream N)) (c : 'I_N),
  (0 < s)%N -> e Po.z ord0 = 1 / INR s -> e Po.m c = 0 ->
  feed (hat_layer N) e Po.m c = if c.+1 == s then 1 else 0).
Proof.
pose e : token (po_stream 1) := fun a _ => if a is Po.z then 1 / INR 2 else 0.
by move/(_ _ 2%N e ord0 isT erefl erefl); rewrite (@hat_one_hot _ 2) //=; lra.
Qed.

(* Mutant of hat_one_hot_partition: one position beyond the last hat *)
Lemma not_a_partition_beyond_the_last : ~ (forall (n : nat) (z : R),
  (0 < n)%N -> 1 / INR n.+1 <= z -> (forall t, 0 <= hat t z) /\ ∑_(t < n) hat t.+1 z = 1).
Proof.
by move/(_ 1%N _ isT (Rle_refl _)) => [_]; rewrite sum_ord1 hat_peaks //=; lra.
Qed.

(* ── Chapter 11 ─────────────────────────────────────────────────────────────────────────────── *)

(* A token whose rows x and y hold w, with the record 1 and the position 1. *)
Definition recorded (w : R) : token (ca_stream 1 1 1) :=
  ca_token (V1 w) (V1 w) 0 0 0 (V1 1) (V1 1) vzero.

(* Mutant of mask_logits_winner: the record added *)
Lemma not_record_added : ~ (forall (dx dy N : nat) (η γ c : R) (T : finType)
    (X : T -> token (ca_stream dx dy N)) (i j : T),
  X i Ca.one ord0 = 1 ->
  logit (ca_winner dx dy N η γ c 0) X i j = γ * X j Ca.r ord0 + c * ⟨X i Ca.m, X j Ca.p⟩).
Proof.
move/(_ _ _ _ 0 0 1 _ (fun _ : 'I_1 => recorded 0) ord0 ord0 erefl).
by rewrite mask_logits_winner //= dot_1; lra.
Qed.

(* Mutant of mask_logits_field: without the factor 2 *)
Lemma not_field_logit_halved : ~ (forall (dx dy N : nat) (W : mat dy dx) (η C : R) (T : finType)
    (X : T -> token (ca_stream dx dy N)) (i j : T),
  X i Ca.one ord0 = 1 ->
  logit (ca_field N W η C 0) X i j
  = ⟨W *v X i Ca.x, X j Ca.y⟩ - X j Ca.sq ord0 - C * ⟨X i Ca.m, X j Ca.p⟩).
Proof.
move/(_ _ _ _ (M1 1) 0 0 _ (fun _ : 'I_1 => recorded 1) ord0 ord0 erefl).
by rewrite mask_logits_field //= mulmv_1 !dot_1; lra.
Qed.

Lemma masked_logit dx dy N (W : mat dy dx) η γ c C x y r K (i j : 'I_N) :
  logit (ca_winner dx dy N η γ c 0)
    (run causal (nseq K (printed_block N W η γ c C)) (masked_prompt x y r)) i j
  = γ * r j - c * ca_record γ c 0 causal r (fun _ => 0) one_hot K i j.
Proof.
rewrite -[masked_prompt x y r]/(ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
  (fun _ => vzero) (fun _ => vzero)) ca_run.
by rewrite ca_winner_logit //= dot_one_hot; ring.
Qed.

Lemma first_record γ c n (r : 'I_n.+1 -> R) l :
  ca_record γ c 0 causal r (fun _ => 0) one_hot 1 ord_max l = softmax (fun j => γ * r j) l.
Proof.
rewrite /= /vadd comb_one_hot /vzero Rplus_0_l /ca_winner_weights last_weights.
by apply: eq_softmax => j; rewrite dot_one_hot /vzero; ring.
Qed.

(* Three responses, with the rewards 2, 1 and 0; g = 10. *)
Definition down (j : 'I_3) : R := INR (2 - j).
Definition mid : 'I_3 := Ordinal (erefl : (1 < 3)%N).

Lemma down_spaced : spaced 1 down.
Proof. by case=> [[|[|[|i]]] pi] [[|[|[|j]]] pj] //; rewrite /down /= => _; split_Rabs; lra. Qed.

Lemma down_range spread : 2 <= spread -> forall j, 0 <= down j <= 0 + spread.
Proof. by move=> s [[|[|[|j]]] pj] //; rewrite /down /=; lra. Qed.

Lemma down_ranked : ranks (prefix (ltn_ord (ord_max : 'I_3)) down) 1%g.
Proof.
by case=> [[|[|[|i]]] pi] [[|[|[|j]]] pj] //; rewrite /prefix /down !perm1 /= => _; lra.
Qed.

Lemma exp_10 : exp (- (10)) <= / 1024.
Proof.
have e2 : 2 <= exp 1 by have := exp_ineq1 1; lra.
have -> : - (10) = - (INR 10 * 1) by rewrite /=; ring.
rewrite exp_INR exp_Ropp; have -> : / 1024 = (/ 2) ^ 10 by field.
apply: pow_incr; split; first by left; apply: Rinv_0_lt_compat; lra.
by apply: Rinv_le_contravar; lra.
Qed.

Lemma seen_last n (j : 'I_n.+1) : widen_ord (ltn_ord (ord_max : 'I_n.+1)) j = j.
Proof. exact/val_inj. Qed.

(* Mutant of mask_selection_margins: the whole of γΔ = g + 1 *)
Lemma not_the_whole_margin :
  ~ (forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (INR N - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k l : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X := run causal (nseq k (printed_block N W η γ c C)) (masked_prompt x y r) in
  let z j := logit (ca_winner dx dy N η γ c 0) X i (widen_ord (ltn_ord i) j) in
  l != k -> z (τ l) + (g + 1) <= z (τ k)).
Proof.
(* In the second round the record takes more off the second response than off the third. *)
move/(_ 0%N 0%N 3%N vzero 0 10 1 2 0 ltac:(lra) Rlt_0_1) => H.
have small : 5 / 2 * (INR 3 - 1) * mask_c 10 1 2 * exp (- (10)) <= 1.
  by rewrite /mask_c /=; have := exp_10; lra.
have := H small vzero (fun _ => vzero) _ _ ord_max 1%g mid ord_max down_spaced
  (down_range (Rle_refl 2)) down_ranked isT.
rewrite !perm1 !seen_last !masked_logit !first_record.
pose z j := mask_γ 10 1 * down j; have : softmax z ord_max < softmax z mid.
  by apply: softmax_lt; rewrite /z /down /mask_γ /=; lra.
move: (softmax _ _) (softmax _ _) => u v; rewrite /mask_c /mask_γ /down /=; lra.
Qed.

(* Mutant of mask_selection: no requirement on g (the first part alone) *)
Lemma not_selected_for_every_g :
  ~ (forall (dx dy N : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (low : R)
    (i : 'I_N) (τ : {perm 'I_i.+1}) (k : 'I_i.+1),
  spaced Δ r -> (forall j, low <= r j <= low + spread) -> ranks (prefix (ltn_ord i) r) τ ->
  let X K := run causal (nseq K (printed_block N W η γ c C)) (masked_prompt x y r) in
  let seen := widen_ord (ltn_ord i) in
  1 - 5 / 2 * exp (- g) <= attention causal (ca_winner dx dy N η γ c 0) (X k) i (seen (τ k))).
Proof.
(* g = 10, and a spread so large that the record of the first round hides the second response. *)
pose z j := mask_γ 10 1 * down j; pose δ := softmax z mid - softmax z ord_max.
have δ0 : 0 < δ.
  suff : softmax z ord_max < softmax z mid by rewrite /δ; lra.
  by apply: softmax_lt; rewrite /z /down /mask_γ /=; lra.
have s2 : 2 <= 2 + / δ by have := Rinv_0_lt_compat _ δ0; lra.
move/(_ 0%N 0%N 3%N vzero 0 10 1 (2 + / δ) 0 ltac:(lra) Rlt_0_1 vzero (fun _ => vzero) _ _
  ord_max 1%g mid down_spaced (down_range s2) down_ranked).
cbv zeta; rewrite perm1 seen_last -[attention _ _ _ _]/(softmax_on _ _) last_weights.
have := exp_10; suff : forall X, X mid <= X ord_max -> softmax X mid <= / 2.
  move=> half e; apply: Rlt_not_le; apply: Rle_lt_trans (half _ _) _; last by lra.
  rewrite !masked_logit !first_record -/z.
  have : δ * / δ = 1 by apply: Rinv_r; lra.
  by move: δ0; rewrite {1 2}/δ /mask_c /mask_γ /down /=; move: (/ δ) => s; lra.
by move=> X; exact: softmax_half.
Qed.

(* Four responses with the rewards 3, 1, 2 and 0. *)
Definition four (j : 'I_4) : R := nth 0 [:: 3; 1; 2; 0] j.

(* Mutant of mask_example: the first two positions, not the two best *)
Lemma not_the_first_positions : ~ (forall (dx dy : nat) (W : mat dy dx) (η g Δ spread C : R),
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  0 < g -> 0 < Δ -> 5 / 2 * (4 - 1) * c * exp (- g) <= 1 ->
  forall (x : vec 'I_dx) (y : 'I_4 -> vec 'I_dy) (r : 'I_4 -> R) (low : R),
  spaced Δ r -> (forall j, low <= r j <= low + spread) ->
  r (inord 3) < r (inord 1) < r (inord 2) -> r (inord 2) < r (inord 0) ->
  let m := run causal (nseq 2 (printed_block 4 W η γ c C)) (masked_prompt x y r) ord_max Ca.m in
  forall j : 'I_4, Rabs (m j - (if (j == 0%N :> nat) || (j == 1%N :> nat) then 1 else 0))
                   <= 5 * exp (- g)).
Proof.
have gaps : spaced 1 four.
  by case=> [[|[|[|[|i]]]] pi] [[|[|[|[|j]]]] pj] //; rewrite /four /= => _; split_Rabs; lra.
have range j : 0 <= four j <= 0 + 3 by case: j => [[|[|[|[|j]]]] pj] //; rewrite /four /=; lra.
have small : 5 / 2 * (4 - 1) * mask_c 10 1 3 * exp (- (10)) <= 1.
  by rewrite /mask_c; have := exp_10; lra.
have order : four (inord 3) < four (inord 1) < four (inord 2) by rewrite /four !inordK //=; lra.
have top : four (inord 2) < four (inord 0) by rewrite /four !inordK //=; lra.
have g0 : 0 < 10 by lra.
move/(_ 0%N 0%N vzero 0 10 1 3 0 g0 Rlt_0_1 small vzero (fun _ => vzero) _ _ gaps range order top
  (inord 1)).
have := @mask_example 0 0 vzero 0 10 1 3 0 g0 Rlt_0_1 small vzero (fun _ => vzero) _ _ gaps range
  order top (inord 1).
cbv zeta; move: (run _ _ _ _ _ _) => m; rewrite inordK //=.
by have := exp_10; split_Rabs; lra.
Qed.

(* ── Chapter 12 ─────────────────────────────────────────────────────────────────────────────── *)

(* The start token, and a live response of reward r, both rows x and y zero. *)
Definition started (r : R) (j : 'I_2) : token (ca_stream 1 1 1) :=
  if j == ord0 then start_token
  else ca_token (V1 0) (V1 0) 0 r 0 (V1 1) (V1 0) vzero.

(* Mutant of stop_sink_winner_margins: γ may be negative *)
Lemma not_margins_below_zero : ~ (forall (dx dy N : nat) (η γ c low high : R),
  let σ := stop_logit (γ * low) (γ * high) c in
  forall (T : finType) (X : T -> token (ca_stream dx dy N)) (start i j : T),
  X start = start_token -> X i Ca.one ord0 = 1 -> X j Ca.b ord0 = 0 ->
  low <= X j Ca.r ord0 <= high ->
  let z := logit (ca_winner dx dy N η γ c σ) X i in
  (⟨X i Ca.m, X j Ca.p⟩ = 0 -> z start + (c - γ * (high - low)) / 2 <= z j)
  /\ (⟨X i Ca.m, X j Ca.p⟩ = 1 -> z j + (c - γ * (high - low)) / 2 <= z start)).
Proof.
(* Rewards 0 to 1, γ = −1 and c = 2. *)
have r1 : 0 <= started 1 ord_max Ca.r ord0 <= 1 by rewrite /started /=; lra.
move/(_ _ _ _ 0 (- 1) 2 0 1 _ _ ord0 ord_max ord_max erefl erefl erefl r1) => [+ _].
rewrite !ca_winner_logit //= !dot_1 => /(_ ltac:(lra)).
by rewrite /started /stop_logit /=; lra.
Qed.

(* Mutant of stop_sink_field_margins: strictly more (of a response that is not recorded) *)
Lemma not_margins_strictly :
  ~ (forall (dx dy N : nat) (W : mat dy dx) (η C low high : R),
  let σ := stop_logit low high C in
  forall (T : finType) (X : T -> token (ca_stream dx dy N)) (start i j : T),
  X start = start_token -> X i Ca.one ord0 = 1 -> X j Ca.b ord0 = 0 ->
  X j Ca.sq ord0 = ‖X j Ca.y‖² -> low <= reduced W (X i Ca.x) (X j Ca.y) <= high ->
  let z := logit (ca_field N W η C σ) X i in
  (⟨X i Ca.m, X j Ca.p⟩ = 0 -> z start + (C - (high - low)) / 2 < z j)).
Proof.
(* At the lower end of the range, 0 to 1, with C = 3. *)
have sq : started 0 ord_max Ca.sq ord0 = ‖started 0 ord_max Ca.y‖².
  by rewrite /started /= sqnorm_1; ring.
have r01 : 0 <= reduced (M1 1) (started 0 ord_max Ca.x) (started 0 ord_max Ca.y) <= 1.
  by rewrite /started /reduced /= mulmv_1 dot_1 sqnorm_1; lra.
move/(_ _ _ _ _ 0 3 _ _ _ _ ord0 ord_max ord_max erefl erefl erefl sq r01).
cbv zeta; rewrite !ca_field_logit //= mulmv_1 !dot_1 => /(_ ltac:(lra)).
by rewrite /started /stop_logit /=; lra.
Qed.

(* One response of reward 0 behind the start token; c = 2, so the start token's logit is −1. *)
Lemma start_misses m :
  1 - attention causal (ca_winner 1 1 1 0 0 2 (stop_logit (0 * 0) (0 * 0) 2))
        (started_state (V1 0) (fun _ => V1 0) (fun _ => 0) m (fun _ => vzero)) (lift ord0 ord0) ord0
  = share (exp (1 - 2 * m ord_max ord0)).
Proof.
rewrite ca_winner_attention started_winner lift_max2 last_weights softmax_miss start_crowd sum_ord1.
by rewrite /stop_logit; congr (share (exp _)); lra.
Qed.

Lemma short (j : 'I_1) : ‖V1 0‖ <= 0.
Proof. by rewrite vnorm_1 Rabs_R0; lra. Qed.

Lemma low_reduced (j : 'I_1) : reduced (M1 0) (V1 0) (V1 0) <= 0.
Proof. by rewrite /reduced mulmv_1 dot_1 sqnorm_1; lra. Qed.

(* Mutant of stop_sink_absorbs: the response itself not yet taken (the winner's weight alone) *)
Lemma not_absorbed_before_the_last : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ c C low high low_Z high_Z D : R),
  0 <= η -> 0 <= γ ->
  let winner := ca_winner dx dy N η γ c (stop_logit (γ * low) (γ * high) c) in
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (m : 'I_N.+1 -> vec 'I_N) (u : 'I_N.+1 -> vec 'I_dy) (i : 'I_N),
  (forall j : 'I_N, (j <= i)%N -> r j <= high /\ reduced W x (y j) <= high_Z /\ ‖y j‖ <= D) ->
  (forall j : 'I_N, (j < i)%N -> m (lift ord0 i) j = 1) ->
  let X := started_state x y r m u in
  let q := INR i.+1 * exp (- ((c - γ * (high - low)) / 2)) in
  1 - attention causal winner X (lift ord0 i) ord0 <= share q).
Proof.
move/(_ _ _ _ _ 0 0 2 0 0 0 0 0 0 (Rle_refl 0) (Rle_refl 0) _ _ (fun _ => 0) (fun _ => V1 0)
  (fun _ => vzero) ord0 (fun j _ => conj (Rle_refl 0) (conj (low_reduced j) (short j)))
  (fun _ => ltac:(by []))).
cbv zeta; rewrite start_misses; apply: Rlt_not_le; apply: share_lt.
  by have := exp_pos (- ((2 - 0 * (0 - 0)) / 2)); rewrite /=; lra.
by rewrite Rmult_1_l; apply: exp_increasing; rewrite /V1; lra.
Qed.

(* Mutant of stop_sink_absorbs: the whole margin, not half of it (the winner's weight alone) *)
Lemma not_absorbed_by_the_whole_margin : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ c C low high low_Z high_Z D : R),
  0 <= η -> 0 <= γ ->
  let winner := ca_winner dx dy N η γ c (stop_logit (γ * low) (γ * high) c) in
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (m : 'I_N.+1 -> vec 'I_N) (u : 'I_N.+1 -> vec 'I_dy) (i : 'I_N),
  (forall j : 'I_N, (j <= i)%N -> r j <= high /\ reduced W x (y j) <= high_Z /\ ‖y j‖ <= D) ->
  (forall j : 'I_N, (j <= i)%N -> m (lift ord0 i) j = 1) ->
  let X := started_state x y r m u in
  let q := INR i.+1 * exp (- (c - γ * (high - low))) in
  1 - attention causal winner X (lift ord0 i) ord0 <= share q).
Proof.
move/(_ _ _ _ _ 0 0 2 0 0 0 0 0 0 (Rle_refl 0) (Rle_refl 0) _ _ (fun _ => 0) (fun _ => V1 1)
  (fun _ => vzero) ord0 (fun j _ => conj (Rle_refl 0) (conj (low_reduced j) (short j)))
  (fun _ _ => erefl)).
cbv zeta; rewrite start_misses; apply: Rlt_not_le; apply: share_lt.
  by have := exp_pos (- (2 - 0 * (0 - 0))); rewrite /=; lra.
by rewrite Rmult_1_l; apply: exp_increasing; rewrite /V1; lra.
Qed.
