(* Statements that are not theorems, of chapter 12: a short prefix is counted again. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer Turns Theorem33 MaskedBlock Mask CausalRounds.
From Icalign Require Import SinkPairs ShortPrefix Recount RecountLimit Smoothness Mutants.
From Icalign Require Import MutantsStep MutantsReadout MutantsBlocks.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── One round, two responses ───────────────────────────────────────────────────────────────── *)

Notation last2 := (ord_max : 'I_2).
Notation no_W := (vzero : mat 0 0).

(* The second of two responses sees both. *)
Lemma seen_two (z : 'I_2 -> R) :
  softmax_on (causal last2) z ord0 = exp (z ord0) / (exp (z ord0) + exp (z ord_max)).
Proof. by rewrite /softmax_on big_mkcond sum_two. Qed.

Lemma half z : exp z / (exp z + exp z) = / 2.
Proof. by field; have := exp_pos z; lra. Qed.

Lemma over_half z0 z1 : z1 < z0 -> / 2 < exp z0 / (exp z0 + exp z1).
Proof.
move/exp_increasing; move: (exp z0) (exp z1) (exp_pos z0) (exp_pos z1) => u v u0 v0 lt.
by apply: (Rmult_lt_reg_r (u + v)); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
Qed.

Lemma exp_small n : exp (- INR n) <= / 2 ^ n.
Proof.
rewrite exp_Ropp -(Rmult_1_r (INR n)) -exp_pow; apply: Rinv_le_contravar.
  by apply: pow_lt; lra.
by apply: pow_incr; have := exp_ineq1 1 ltac:(lra); lra.
Qed.

(* Mutant of short_prefix_recount_common_shift: a record that is not level *)
Lemma not_shifted_by_any_record : ~ (forall (dx dy N : nat) (W : mat dy dx) (η γ c C : R)
    (T : finType) (sees : rel T) (X Y : T -> token (ca_stream dx dy N)) (i : T),
  (forall j e, X j e = Y j e \/ (j = i /\ e = Ca.m)) ->
  X i Ca.one ord0 = 1 -> Y i Ca.m = vzero ->
  forall j,
  let winner := ca_winner dx dy N η γ c 0 in let field := ca_field N W η C 0 in
  attention sees winner X i j = attention sees winner Y i j
  /\ attention sees field X i j = attention sees field Y i j).
Proof.
(* the second position recorded, the first not *)
pose X (m : 'I_2 -> vec 'I_2) (j : 'I_2) : token (ca_stream 0 0 2) :=
  ca_token vzero vzero 0 0 0 (one_hot j) (m j) vzero.
pose m (j : 'I_2) : vec 'I_2 := if j == ord_max then one_hot ord_max else vzero.
have same j e : X m j e = X (fun _ => vzero) j e \/ (j = ord_max /\ e = Ca.m).
  by case: e; try (by left); rewrite /X /m /=; case: eqP => [->|]; [right | left].
move/(_ _ _ _ no_W 0 0 1 0 _ causal _ _ ord_max same erefl erefl ord0) => [+ _].
rewrite !printed_winner_attention // !seen_two !dot_one_hot /vzero /m /= /one_hot /=.
have -> : 0 * 0 - 1 * 0 = 0 by ring.
by have := @over_half 0 (0 * 0 - 1 * 1) ltac:(lra); rewrite half; lra.
Qed.

(* Mutant of short_prefix_recount_greedy: the best response may be tied, δ = 0 *)
Lemma not_greedy_when_tied : ~ (forall (N K : nat) (γ2 δ ε : R),
  0 <= δ -> 0 < ε -> exists hot, forall (dx dy : nat) (W : mat dy dx) (η γ1 C : R), hot <= γ1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (w : nat -> 'I_N),
  let n := taken w in
  (forall k, (k < K)%N -> causal i (w k)) ->
  (forall k, (k < K)%N -> forall j, causal i j -> j != w k ->
     r j - γ2 * n k j + δ <= r (w k) - γ2 * n k (w k)) ->
  let X k := run causal (nseq k (printed_block N W η γ1 (γ1 * γ2) C)) (masked_prompt x y r) in
  (forall k, (k < K)%N ->
     1 - ε <= attention causal (ca_winner dx dy N η γ1 (γ1 * γ2) 0) (X k) i (w k) <= 1)
  /\ (forall k, (k <= K)%N -> forall j, causal i j -> Rabs (X k i Ca.m j - n k j) <= ε)).
Proof.
move/(_ 2%N 1%N 0 0 (/ 4) (Rle_refl 0) ltac:(lra)) => [hot H].
have := H 0%N 0%N no_W 0 hot 0 (Rle_refl _) vzero (fun _ => vzero) (fun _ => 0) ord_max
  (fun _ => ord0) (fun _ _ => isT) (fun _ _ _ _ _ => ltac:(lra)).
move=> [/(_ 0%N isT) + _]; rewrite printed_winner_attention // seen_two /= !dot_one_hot half; lra.
Qed.

(* Mutant of short_prefix_recount_cyclic: γ₂ at the spread of the rewards *)
Lemma not_cyclic_at_the_spread : ~ (forall (n q : nat) (r : 'I_n.+2 -> R) (τ : {perm 'I_n.+2})
    (γ2 : R),
  ranks r τ ->
  let value (a l : 'I_n.+2) := r (τ l) - γ2 * INR (q + (l < a)) in
  (forall a l, l != a -> value a l < value a a) <-> r (τ ord0) - r (τ ord_max) <= γ2).
Proof.
move/(_ 0%N 0%N (pair 1 0) id2 1 ranks_ends) => [_].
rewrite !perm1 pair_0 pair_1 => /(_ ltac:(lra) ord_max ord0 isT).
by rewrite !perm1 pair_0 pair_1 /=; lra.
Qed.

(* Mutant of short_prefix_recount_ratio: a row of squares that is not filled *)
Lemma not_ratio_without_squares : ~ (forall (dx dy N : nat) (W : mat dy dx) (η C : R)
    (T : finType) (sees : rel T) (X : T -> token (ca_stream dx dy N)) (i j l : T),
  X i Ca.one ord0 = 1 -> sees i j -> sees i l ->
  let Z j := reduced W (X i Ca.x) (X j Ca.y) in
  let n j := ⟨X i Ca.m, X j Ca.p⟩ in
  attention sees (ca_field N W η C 0) X i j / attention sees (ca_field N W η C 0) X i l
  = exp (Z j - Z l - C * (n j - n l))).
Proof.
pose X (j : 'I_2) : token (ca_stream 1 1 2) :=
  ca_token (V1 1) (two 1 0 j) 0 0 0 (one_hot j) vzero vzero.
move/(_ _ _ _ (M1 0) 0 0 _ full X ord0 ord0 ord_max erefl isT isT); cbv zeta.
rewrite !printed_field_attention // softmax_ratio // /reduced /X /= mulmv_1 !dot_1 !sqnorm_1.
rewrite pair_0 pair_1 => /exp_inv.
move: (dot _ _) (dot _ _) => p q; lra.
Qed.

(* Mutant of short_prefix_recount_cycles: any number s of rounds more *)
Lemma not_cycles_and_more_than_one : ~ (forall (n Q s : nat) (t : nat -> R),
  ∑_(k < Q * n + s) t (k %% n)%N = INR Q * ∑_(k < n) t k + ∑_(k < s) t k).
Proof.
by move/(_ 1%N 1%N 2%N INR); rewrite !big_ord_recl !big_ord0 /=; lra.
Qed.

(* ── The second of four: twice the step ─────────────────────────────────────────────────────── *)

(* The rewards 3, 2, 1, 0, the responses 1, −1, 1, −1; margins 10 and 9. *)
Definition second : 'I_4 := @Ordinal 4 1 isT.
Definition r4 (j : 'I_4) : R := 3 - INR j.
Definition y4 (j : 'I_4) : vec 'I_1 := V1 (if odd j then - (1) else 1).

Lemma in_class_4 : in_class (M1 0) 1 3 0 2 (V1 1) y4 r4.
Proof.
split.
- by rewrite vnorm_1 Rabs_R1.
- by case=> [[|[|[|[|i]]]] pi] [[|[|[|[|j]]]] pj] //; rewrite /r4 /= => _; split_Rabs; lra.
- by exists 0; case=> [[|[|[|[|i]]]] pi] //; rewrite /r4 /=; lra.
- by exists (- (1)) => j; rewrite /reduced mulmv_1 dot_1 sqnorm_1; case: ifP => _; lra.
- move=> i j; rewrite -[(_ - _)%V]/(V1 (y4 i ord0 - y4 j ord0)) vnorm_1 /y4 /V1.
  by case: ifP; case: ifP => _ _; split_Rabs; lra.
Qed.

Lemma prefix_y4 : prefix (ltn_ord second) y4 = ends.
Proof. by apply: functional_extensionality; case=> [[|[|i]] pi]. Qed.

Lemma ranks_4 : ranks (prefix (ltn_ord second) r4) (1%g : {perm 'I_second.+1}).
Proof. by move=> [[|[|k]] pk] [[|[|l]] pl] //; rewrite !perm1 /prefix /r4 /=; lra. Qed.

Lemma cold_4 : exp (- (10)) <= / 1024 /\ exp (1 - 9) <= / 256.
Proof.
have := exp_small 10; have := exp_small 8.
have -> : 2 ^ 8 = 256 by ring.
have -> : 2 ^ 10 = 1024 by ring.
have -> : INR 10 = 10 by rewrite /=; ring.
by have -> : - INR 8 = 1 - 9 by rewrite /=; ring.
Qed.

Lemma fit_4 : margins_fit 4 10 1 9 3 0.
Proof.
have [e1 _] := cold_4; have e0 := exp_pos (- (10)).
by rewrite /margins_fit /mask_c Rmax_left /=; lra.
Qed.

(* What the block accumulates, and how near it comes to 4: the step is 2. *)
Definition u4 : vec 'I_1 :=
  run causal (nseq 3 (printed_block 4 (M1 0) 1 (mask_γ 10 1) (mask_c 10 1 3) (0 + 2 * 9)))
    (masked_prompt (V1 1) y4 r4) second Ca.u.

Lemma step_4 : ((- (1)) *: gradient (M1 0) (V1 1) (prefix (ltn_ord second) y4)
    (1%g : {perm 'I_second.+1}) *v V1 1)%V = V1 2.
Proof. by rewrite prefix_y4 slope_0 M1_scal mulmv_1; congr V1; ring. Qed.

(* All the terms that are not zero: the first. *)
Lemma terms_4 K : (0 < K)%N -> first_terms 1 (M1 0) (V1 1) (prefix (ltn_ord second) y4)
    (1%g : {perm 'I_second.+1}) K = V1 2.
Proof.
by move=> K0; rewrite first_terms_all // -gradient_step_terms ?step_4 // vnorm_1 Rabs_R1.
Qed.

Lemma near_4 a : ‖u4 - V1 a‖ <= 1 -> 2 < a.
Proof.
have := short_prefix_recount_twice Rle_0_1 (ltac:(lra) : 0 < 10) Rlt_0_1 (ltac:(lra) : 1 <= 9)
  fit_4 in_class_4 ranks_4; cbv zeta; rewrite -/u4 step_4 -[(2 *: V1 2)%V]/(V1 (2 * 2)).
have [e1 e2] := cold_4; have d b : ‖u4 - V1 b‖ = Rabs (u4 ord0 - b).
  by rewrite -vnorm_1; congr (‖_‖); apply: vec_eq => c; rewrite ord1.
by rewrite !d; move: (u4 ord0) => u; split_Rabs; lra.
Qed.

(* The bound of the theorem, where N = 4. *)
Lemma small_4 : 2 * 1 * (INR 4 - 1) * 2 * (5 / 2 * exp (- (10))
  + 5 / 16 * (INR 4 - 2) * (0 + 2 * 9) * exp (- (10)) + (INR 4 - 1) * exp (1 - 9)) <= 1.
Proof. by have [e1 e2] := cold_4; rewrite /=; lra. Qed.

(* Mutant of short_prefix_recount: a term less, N − 2 of them *)
Lemma not_recount_of_one_term_less : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_class W Δ spread spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq (N - 1) (printed_block N W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) i Ca.u in
  ‖u - cyclic_terms η W x (prefix (ltn_ord i) y) τ (N - 2)‖
  <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
       + 5 / 16 * (INR N - 2) * C * exp (- g) + (INR N - 1) * exp (1 - h))).
Proof.
move/(_ _ _ _ _ 1 10 1 9 3 0 2 Rle_0_1 ltac:(lra) Rlt_0_1 ltac:(lra) fit_4 _ _ _ second _
  in_class_4 ranks_4); cbv zeta; rewrite -/u4 -[(4 - 2)%N]/(1 * second.+1 + 0)%N cyclic_cycles //.
set t := vadd _ _; have -> : t = V1 2.
  apply: vec_eq => c; rewrite /t /vadd terms_4 // /first_terms /vsum big_pred0 //.
  by rewrite /vscal /V1 /=; ring.
by move/Rle_trans/(_ small_4)/near_4; lra.
Qed.

(* Mutant of short_prefix_recount_surplus: the cycles alone, without the s terms *)
Lemma not_surplus_of_whole_cycles : ~ (forall (dx dy N Q s : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_class W Δ spread spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (N - 1 = Q * i.+1 + s)%N -> (s < i.+1)%N ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq (N - 1) (printed_block N W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) i Ca.u in
  let y_i := prefix (ltn_ord i) y in
  let ΔW := ((- η) *: gradient W x y_i τ)%V in
  ‖u - INR Q *: (ΔW *v x)‖
  <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
       + 5 / 16 * (INR N - 2) * C * exp (- g) + (INR N - 1) * exp (1 - h))).
Proof.
move/(_ _ _ _ 1%N 1%N _ 1 10 1 9 3 0 2 Rle_0_1 ltac:(lra) Rlt_0_1 ltac:(lra) fit_4 _ _ _ second _
  in_class_4 ranks_4 erefl isT); cbv zeta; rewrite -/u4 step_4 -[(_ *: V1 2)%V]/(V1 (1 * 2)).
by move/Rle_trans/(_ small_4)/near_4; lra.
Qed.

(* Mutant of short_prefix_recount_twice: the step once *)
Lemma not_recounted_once : ~ (forall (dx dy : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit 4 g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_4 -> vec 'I_dy) (r : 'I_4 -> R),
  in_class W Δ spread spread_Z D x y r ->
  let second : 'I_4 := @Ordinal 4 1 isT in
  forall τ : {perm 'I_second.+1}, ranks (prefix (ltn_ord second) r) τ ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq 3 (printed_block 4 W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) second Ca.u in
  let ΔW := ((- η) *: gradient W x (prefix (ltn_ord second) y) τ)%V in
  ‖u - ΔW *v x‖
  <= 6 * η * D * (5 / 2 * exp (- g) + 5 / 8 * C * exp (- g) + 3 * exp (1 - h))).
Proof.
move/(_ _ _ _ 1 10 1 9 3 0 2 Rle_0_1 ltac:(lra) Rlt_0_1 ltac:(lra) fit_4 _ _ _ in_class_4 _
  ranks_4); cbv zeta; rewrite -/u4 step_4 => le.
suff /near_4 : ‖u4 - V1 2‖ <= 1 by lra.
by apply: Rle_trans le _; have [e1 e2] := cold_4; lra.
Qed.

(* ── In the limit ───────────────────────────────────────────────────────────────────────────── *)

(* Mutant of short_prefix_recount_limit: γ₂ at the spread of the rewards *)
Lemma not_limit_at_the_spread : ~ (forall (dx dy N K : nat) (W : mat dy dx) (η γ2 : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  let r_i := prefix (ltn_ord i) r in
  ranks r_i τ -> r_i (τ ord0) - r_i (τ ord_max) <= γ2 ->
  forall ε, 0 < ε -> exists strong, forall C, strong <= C -> exists hot, forall γ1, hot <= γ1 ->
  let X := run causal (nseq K (printed_block N W η γ1 (γ1 * γ2) C)) (masked_prompt x y r) in
  ‖X i Ca.u - cyclic_terms η W x (prefix (ltn_ord i) y) τ K‖ <= ε
  /\ forall j, Rabs (prefix (ltn_ord i) (X i Ca.m) j - counts τ K j) <= ε).
Proof.
(* two rounds, in the second of which the two are tied, but for what the first has missed *)
have ranked : ranks (prefix (ltn_ord last2) (pair 1 0)) (1%g : {perm 'I_last2.+1}).
  by move=> k l /lt_two [-> ->]; rewrite !perm1 /prefix /pair /=; lra.
move/(_ _ _ _ 2%N no_W 0 1 vzero (fun _ => vzero) _ _ _ ranked) => H.
have wide : prefix (ltn_ord last2) (pair 1 0) ((1%g : {perm 'I_last2.+1}) ord0)
    - prefix (ltn_ord last2) (pair 1 0) ((1%g : {perm 'I_last2.+1}) ord_max) <= 1.
  by rewrite !perm1 /prefix /pair /=; lra.
have [strong {}H] := H wide (/ 4) ltac:(lra).
have [hot {}H] := H strong (Rle_refl _); have [_ /(_ ord0)] := H (Rmax hot 2) (Rmax_l _ _).
set γ := Rmax hot 2; have γ2 : 2 <= γ := Rmax_r _ _.
rewrite (counts_level (1%g : {perm 'I_last2.+1}) 1 ord0 : counts _ 2 _ = INR 1) [INR 1]/=.
rewrite -[masked_prompt _ _ _]/(ca_state (fun _ => vzero) (fun _ => vzero) (fun _ => ‖vzero‖²)
  (pair 1 0) (fun _ => 0) one_hot (fun _ => vzero) (fun _ => vzero)) ca_run /prefix /= /vadd.
rewrite !comb_one_hot /ca_winner_weights.
rewrite (_ : widen_ord _ ord0 = ord0 :> 'I_2); last exact/val_inj.
set A := softmax_on _ (fun j => _ - γ * 1 * ⟨vzero, _⟩).
have A1 : A ord0 + A ord_max = 1.
  by rewrite -sum_two; exact: (softmax_on_sum _ (isT : causal last2 ord0)).
have [A0 A0'] : 4 / 5 <= A ord0 < 1.
  rewrite /A seen_two !dot_one_hot /vzero pair_0 pair_1.
  have -> : γ * 1 + 0 * 0 - γ * 1 * 0 = γ by ring.
  have -> : γ * 0 + 0 * 0 - γ * 1 * 0 = 0 by ring.
  have := exp_mono γ2; have -> : 2 = 1 + 1 by ring.
  rewrite exp_0 exp_plus; have := exp_ineq1 1 ltac:(lra); move: (exp 1) (exp γ) => e f e1 f1.
  have -> : f / (f + 1) = 1 - / (f + 1) by field; nra.
  have := Rinv_0_lt_compat (f + 1) ltac:(nra); have : / (f + 1) <= / 5; last by lra.
  by apply: Rinv_le_contravar; nra.
rewrite seen_two !dot_one_hot !comb_one_hot pair_0 pair_1 /vzero.
set z0 := _ - γ * 1 * (0 + A ord0); set z1 := _ - γ * 1 * (0 + A ord_max).
have := @over_half z0 z1 ltac:(rewrite /z0 /z1; nra); move: (_ / _) => B.
by split_Rabs; lra.
Qed.

(* Mutant of short_prefix_recount_too_many: Q cycles too many, not Q − 1 *)
Lemma not_one_cycle_more : ~ (forall (dx dy N Q s : nat) (W : mat dy dx) (η γ2 : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  let r_i := prefix (ltn_ord i) r in let y_i := prefix (ltn_ord i) y in
  ‖x‖ = 1 -> ranks r_i τ -> r_i (τ ord0) - r_i (τ ord_max) < γ2 ->
  (N - 1 = Q * i.+1 + s)%N -> (s < i.+1)%N ->
  let step := (((- η) *: gradient W x y_i τ) *v x)%V in
  let surplus := (INR Q *: step + first_terms η W x y_i τ s)%V in
  forall ε, 0 < ε -> exists strong, forall C, strong <= C -> exists hot, forall γ1, hot <= γ1 ->
  let u := run causal (nseq (N - 1) (printed_block N W η γ1 (γ1 * γ2) C))
             (masked_prompt x y r) i Ca.u in
  ‖u - step - surplus‖ <= ε).
Proof.
(* the second of four again: the surplus is one step, not two *)
have wide : prefix (ltn_ord second) r4 ((1%g : {perm 'I_second.+1}) ord0)
    - prefix (ltn_ord second) r4 ((1%g : {perm 'I_second.+1}) ord_max) < 2.
  by rewrite !perm1 /prefix /r4 /=; lra.
have x1 := unit_query in_class_4; have h0 : 0 < / 2 by lra.
move/(_ _ _ _ 1%N 1%N (M1 0) 1 2 (V1 1) y4 r4 second _ x1 ranks_4 wide erefl isT (/ 2) h0).
have := @short_prefix_recount_too_many _ _ _ 1 1 (M1 0) 1 2 (V1 1) y4 r4 second _ x1 ranks_4 wide
  erefl isT (/ 2) h0.
cbv zeta; rewrite step_4 terms_4 // => [[s1 H1] [s2 H2]].
have [h1 {}H1] := H1 _ (Rmax_l s1 s2); have [h2 {}H2] := H2 _ (Rmax_r s1 s2).
have := H1 _ (Rmax_l h1 h2); have := H2 _ (Rmax_r h1 h2); set u := run _ _ _ _ _.
have d (v w : vec 'I_1) : ‖u - v - w‖ = Rabs (u ord0 - v ord0 - w ord0).
  by rewrite -vnorm_1; congr (‖_‖); apply: vec_eq => c; rewrite ord1.
by rewrite !d /vadd /vscal /V1 /=; move: (u ord0) => q; split_Rabs; lra.
Qed.
