(* Statements that are not theorems, of chapters 5 and 6: the block, and Theorem 3.3. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 BradleyTerry.
From Icalign Require Import Sharp PartialSums ReadOut Smoothness Mutants MutantsStep.
From Icalign Require Import MutantsReadout.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* A token without dimension that holds a flag f and r⁺. *)
Definition bare (f top : R) : token (el_stream 0 0) :=
  fun a _ => match a with El.flag => f | El.top => top | _ => 0 end.

(* Mutant of elimination_step_mean: a row top that is not empty *)
Lemma not_mean_on_top_of_another : ~ (forall (dx dy : nat) (W : mat dy dx)
    (η γ Δ spread B C low : R) (T : finType) (X : T -> token (el_stream dx dy)) (i j : T),
  (forall l, low <= X l El.r ord0 <= low + spread) ->
  let A := attention full (winner_head dx dy η γ Δ spread) X i in
  let top := attend full (heads (el_block W η γ Δ spread B C)) X i El.top ord0 in
  (forall l, 0 <= A l) /\ ∑_l A l = 1 /\ top = ∑_l (A l * X l El.r ord0)
  /\ X j El.r ord0 - top <= spread).
Proof.
move/(_ 0%N 0%N vzero 0 0 1 0 0 0 0 _ (fun _ : 'I_1 => bare 0 1) ord0 ord0) => [l|_ [_ [+ _]]].
  by rewrite /=; lra.
by rewrite attend_top; move: (∑_l _) => s; rewrite /bare; lra.
Qed.

(* Mutant of elimination_step_flagged: 1 for 3/2 *)
Lemma not_flagged_with_a_smaller_mask : ~ (forall (dx dy : nat) (W : mat dy dx)
    (η γ Δ spread B C low : R) (T : finType) (X : T -> token (el_stream dx dy)) (i : T),
  0 < Δ -> 1 + 2 * spread / Δ <= B -> (forall l, low <= X l El.r ord0 <= low + spread) ->
  X i El.top ord0 = 0 -> X i El.flag ord0 = 1 ->
  transform full (el_block W η γ Δ spread B C) X i El.flag ord0 = 1).
Proof.
have r0 (l : 'I_1) : 0 <= bare 1 0 El.r ord0 <= 0 + 0 by rewrite /bare; lra.
move/(_ 0%N 0%N vzero 0 0 1 0 1 0 0 _ (fun _ : 'I_1 => bare 1 0) ord0 Rlt_0_1 ltac:(lra) r0
  erefl erefl).
rewrite transform_flag; last by lra.
rewrite attend_top sum_eq0 => [|l _]; last by rewrite /bare; ring.
rewrite /bare clip_between /clip_at Rmin_right ?Rmax_right; lra.
Qed.

(* Two responses with the rewards 1 and 0, as far as the theorems need to know. *)
Lemma ends_in_class : in_class (M1 0) 1 1 0 2 (V1 1) ends (pair 1 0).
Proof.
split.
- by rewrite vnorm_1 Rabs_R1.
- by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
- by exists 0 => j; rewrite /pair; case: ifP; lra.
- by exists (- 1) => j; rewrite /reduced mulmv_1 dot_1 sqnorm_1 /pair; case: ifP; lra.
- exact: ends_spread.
Qed.

Lemma ranks_ends : ranks (pair 1 0) id2.
Proof. by move=> k l /lt_two [-> ->]; rewrite !perm1 pair_0 pair_1; lra. Qed.

(* Mutant of theorem_3_3_induction: the flags one place ahead *)
Lemma not_a_place_ahead : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let after K := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) in
  let u K := after K i El.u in
  forall K, after K = el_state x y r (flags τ K.+1) (u K)).
Proof.
have B1 : 3 / 2 + 2 * 1 / 1 <= 7 / 2 by lra.
move/(_ _ _ _ (M1 0) 0 (ln 5) 1 1 0 2 (7 / 2) 0 (Rle_refl 0) Rlt_0_1 ltac:(lra) B1
  _ _ _ _ ord0 ends_in_class ranks_ends 1%N).
have [-> _] := @theorem_3_3_induction _ _ _ (M1 0) 0 (ln 5) 1 1 0 2 (7 / 2) 0 (Rle_refl 0) Rlt_0_1
  ltac:(lra) B1 _ _ _ _ ord0 ends_in_class ranks_ends.
move/(f_equal (fun X : 'I_2 -> token (el_stream 1 1) => X ord_max El.flag ord0)).
by rewrite /el_state /flags invg1 perm1 /=; lra.
Qed.

(* Mutant of partial_sums_one_more: the last response gone before block N *)
Lemma not_all_before_the_last_block : ~ (forall (dx dy n : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_n.+1 -> vec 'I_dy) (r : 'I_n.+1 -> R) (τ : {perm 'I_n.+1})
    (j : 'I_n.+1),
  in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  let after K := run full (nseq K (el_block W η γ Δ spread B C)) (el_prompt x y r) in
  after n j El.flag ord0 = 1).
Proof.
have B1 : 3 / 2 + 2 * 1 / 1 <= 7 / 2 by lra.
move/(_ _ _ 1%N (M1 0) 0 (ln 5) 1 1 0 2 (7 / 2) 0 (Rle_refl 0) Rlt_0_1 ltac:(lra) B1
  _ _ _ _ ord_max ends_in_class ranks_ends); cbv zeta.
have [-> _] := @partial_sums_one_more _ _ 1 0 (M1 0) 0 (ln 5) 1 1 0 2 (7 / 2) 0 (Rle_refl 0) Rlt_0_1
  ltac:(lra) B1 _ _ _ _ ord0 ord_max ends_in_class ranks_ends.
by rewrite perm1 eqxx; lra.
Qed.

Lemma exp_ln5 : exp (- ln 5) = / 5.
Proof. by rewrite exp_Ropp exp_ln; lra. Qed.

(* Mutant of theorem_3_3_threshold: half of it *)
Lemma not_threshold_halved : ~ (forall (dx dy N : nat) (W : mat dy dx) (η γ Δ spread B C : R),
  0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (low : R)
    (k i : 'I_N),
  spaced Δ r -> ranks r τ -> (forall j, low <= r j <= low + spread) ->
  let b := el_block W η γ Δ spread B C in
  let X := run full (nseq k b) (el_prompt x y r) in
  let top := attend full (heads b) X i El.top ord0 in
  Rabs (top - r (τ k)) <= Δ / 8).
Proof.
have r01 (j : 'I_2) : 0 <= pair 1 0 j <= 0 + 1 by rewrite /pair; case: ifP; lra.
move/(_ _ _ _ (M1 0) 0 (ln 5) 1 1 (7 / 2) 0 Rlt_0_1 ltac:(lra) ltac:(lra)
  (V1 1) ends (pair 1 0) id2 0 ord0 ord0 (gaps ends_in_class) ranks_ends r01).
cbv zeta; rewrite [run _ _ _]/= /el_prompt el_attend /after_heads sum_two perm1 pair_0 pair_1.
set z := fun j : 'I_2 => ln 5 * pair 1 0 j - 2 * ln 5 * (1 + 1) * 0.
have c : crowd z ord0 = / 5.
  rewrite /crowd big_mkcond sum_two /= Rplus_0_l -exp_ln5; congr exp.
  by rewrite /z pair_0 pair_1; ring.
have := softmax_miss z ord0; rewrite c /share -[softmax z _]/(winner_weights _ _ _ _ _ _).
rewrite -/z; move: (winner_weights _ _ _ _ _ _) (winner_weights _ _ _ _ _ _) => v w.
by split_Rabs; lra.
Qed.

(* Mutant of bt_two_heads_update: the step in the other direction *)
Lemma not_updated_backwards : ~ (forall (dx dy : nat) (W : mat dy dx) (η γ : R) (x : vec 'I_dx)
    (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 ->
  let X := bt_prompt x y r in
  let out := run full [:: bt_block W η γ] X i in
  let found := comb (attention full (bt_winner dx dy η γ) X i) y in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  (out Bt.y = y i + ΔW *v x - (2 * η) *: (found - y (τ ord0)))%V
  /\ (forall a, a <> Bt.y -> out a = X i a)).
Proof.
have x1 : ‖V1 1‖ = 1 by rewrite vnorm_1 Rabs_R1.
move/(_ _ _ (M1 0) 1 1 (V1 1) ends (pair 1 0) id2 ord0 x1); cbv zeta; case=> E _.
have [+ _] := @bt_two_heads_update _ _ (M1 0) 1 1 (V1 1) ends (pair 1 0) id2 ord0 x1; cbv zeta.
rewrite {}E slope_0 M1_scal mulmv_1 => /(f_equal (fun v => v ord0)).
by rewrite /vadd /vsub /V1; lra.
Qed.

(* Mutant of readout_sign_test_token: the printed read-out a step down *)
Lemma not_printed_down : ~ (forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N})
    (test : token (el_stream dx dy)),
  (0 < N)%N -> in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  test El.x = x -> test El.one ord0 = 1 -> test El.u = vzero ->
  let X := with_test (el_prompt x y r) test in
  let out := run sees_some (nseq (N - 1) (el_block W η γ Δ spread B C)) X None in
  let G := gradient W x y τ in
  let ε := error_bound η γ Δ C spread spread_Z D N (N - 1) in
  (test El.y = W *v x)%V -> ‖out El.y - out El.u - (W - η *: G) *v x‖ <= ε).
Proof.
pose test : token (el_stream 1 1) := fun a => match a with
  | El.x | El.one => fun _ => 1 | _ => fun _ => 0 end.
have y0 : (test El.y = M1 0 *v V1 1)%V by rewrite mulmv_1 Rmult_0_l.
move/(_ _ _ _ (M1 0) 1 (ln 5) 1 1 0 2 (7 / 2) 0 Rle_0_1 Rlt_0_1 ltac:(lra) ltac:(lra)
  (V1 1) ends (pair 1 0) id2 test isT ends_in_class ranks_ends erefl erefl erefl y0).
have [[//|+ _] _] := @readout_sign_test_token _ _ _ (M1 0) 1 (ln 5) 1 1 0 2 (7 / 2) 0 Rle_0_1
  Rlt_0_1 ltac:(lra) ltac:(lra) (V1 1) ends (pair 1 0) id2 test isT ends_in_class ranks_ends
  erefl erefl erefl.
set ε := error_bound _ _ _ _ _ _ _ _ _.
have εE : ε = 2 / 3.
  have ξE : exp (- ln 5 * 1) = / 5 by rewrite Rmult_1_r exp_ln5.
  rewrite /ε /error_bound big_ord_recl big_ord0 /winner_crowd /field_crowd /= ξE.
  by rewrite /Rdiv !Rmult_0_l share_0 /share; field.
cbv zeta; rewrite slope_0 !M1_scal M1_add M1_sub !mulmv_1 εE; set o := run _ _ _ _.
have -> : (o El.y - o El.u)%V = V1 (o El.y ord0 - o El.u ord0).
  by apply: vec_eq => a; rewrite ord1.
have d a b : ‖V1 a - V1 b‖ = Rabs (a - b) by rewrite -[(_ - _)%V]/(V1 (a - b)) vnorm_1.
rewrite !d; move: (o El.y ord0 - _) => v; split_Rabs; lra.
Qed.

(* Mutant of theorem_3_3_sharp_limit: beyond the bound, 1 + ε for 1 − ε *)
Lemma not_beyond_the_bound : ~ (forall (n : nat) (η Δ ε : R),
  0 < η -> 0 < Δ -> 0 < ε < 1 ->
  exists ρ0 γ0 : R, forall ρ : R, ρ0 <= ρ ->
  let W := pole_matrix ρ in let x := pole_query in let y := @pole ρ n.+2 in
  let r := @equal_steps Δ n.+3 in let τ := 1%g : {perm 'I_n.+3} in
  let spread := INR n.+2 * Δ in
  let spread_Z := 4 * ρ ^ 2 in
  let D := 2 * ρ in
  0 < ρ /\ in_class W Δ spread spread_Z D x y r /\ ranks r τ /\
  forall γ B : R, γ0 <= γ -> 3 / 2 + 2 * spread / Δ <= B ->
  ln 5 <= γ * Δ /\
  forall i : 'I_n.+3,
  let u := run full (nseq n.+2 (el_block W η γ Δ spread B 0)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let bound := error_bound η γ Δ 0 spread spread_Z D n.+3 n.+2 in
  0 < bound /\ (1 + ε) * bound <= ‖u - ΔW *v x‖).
Proof.
move/(_ 0%N 1 1 (/ 2) Rlt_0_1 Rlt_0_1 ltac:(lra)) => [ρ [γ /(_ _ (Rle_refl _))]]; cbv zeta.
move=> [ρ0 [cls [ranked /(_ γ _ (Rle_refl _) (Rle_refl _)) [hot /(_ ord0) [b0 far]]]]].
have near := theorem_3_3 0 Rle_0_1 Rlt_0_1 hot (Rle_refl _) ord0 cls ranked.
have {far near} : (1 + / 2) * error_bound 1 γ 1 0 (INR 2 * 1) (4 * ρ ^ 2) (2 * ρ) 3 2
    <= error_bound 1 γ 1 0 (INR 2 * 1) (4 * ρ ^ 2) (2 * ρ) 3 2 := Rle_trans _ _ _ far near.
by move: b0; move: (error_bound _ _ _ _ _ _ _ _ _) => b; lra.
Qed.
