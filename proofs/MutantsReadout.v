(* Statements that are not theorems, of chapter 2: the read-out, and minimisers. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness NoMinimiser Mutants MutantsStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Definition id2 : {perm 'I_2} := 1%g.

Lemma lt_two (k l : 'I_2) : (k < l)%N -> k = ord0 /\ l = ord_max.
Proof. by case: k l => [[|[|k]] ?] [[|[|l]] ?] // _; split; apply/val_inj. Qed.

(* Mutant of pl_smooth_direction: no direction is less curved *)
Lemma not_least_curved : ~ (forall (m n : nat) (x : vec 'I_n) (y : 'I_2 -> vec 'I_m)
    (τ : {perm 'I_2}) (W U : mat m n),
  let V := outer (y (τ ord0) - y (τ ord_max))%V x in
  let curvature V := 4 * ∑_k variance (beta (fun j => score W x (y j)) τ k)
                           (fun j : 'I_2 => ⟨V *v x, y (τ j)⟩) in
  curvature V * ‖U‖² <= curvature U * ‖V‖²).
Proof.
pose W0 : mat 1 2 := vzero; pose U : mat 1 2 := fun p => pair 0 1 p.2.
move/(_ 1%N 2%N (pair 1 0) ends 1%g W0 U); cbv beta zeta; set V := outer _ _.
rewrite -[4 * _]/(second_derivative W0 V (pair 1 0) ends 1%g).
rewrite -[X in _ <= X * _]/(second_derivative W0 U (pair 1 0) ends 1%g) /V !perm1 sqnorm_outer.
have -> : (ends ord0 - ends ord_max)%V = V1 (1 - - 1) by [].
have x1 : ‖(pair 1 0 : vec 'I_2)‖² = 1 by rewrite /sqnorm /dot sum_two pair_0 pair_1; lra.
have Ux : (U *v pair 1 0)%V = V1 0.
  by apply: vec_eq => a; rewrite /mulmv sum_two /U /= pair_0 !pair_1 pair_0 /V1; ring.
have U1 : ‖U‖² = 1.
  rewrite /sqnorm /dot -(pair_bigA _ (fun (_ : 'I_1) b => pair 0 1 b * pair 0 1 b)) /=.
  by rewrite big_ord_recl big_ord0 sum_two pair_0 pair_1; lra.
rewrite !second_derivative_two !perm1 mulmv_outer Ux U1.
have -> : (ends ord0 - ends ord_max)%V = V1 (1 - - 1) by [].
rewrite dot_scall -[⟨pair 1 0, pair 1 0⟩]/(‖(pair 1 0 : vec 'I_2)‖²) x1 !dot_1.
set β := softmax _; have p := Rmult_lt_0_compat _ _ (softmax_gt0 _ ord0) (softmax_gt0 _ ord_max).
by have : 0 < β ord0 * β ord_max := p _ _ _ _; lra.
Qed.

(* ── Which way to read out ──────────────────────────────────────────────────────────────────── *)

(* Mutant of readout_sign_printed: a step down the gradient *)
Lemma not_printed_downhill : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n) (η : R),
  let G := gradient W x y τ in
  let ΔW := ((- η) *: G)%V in
  (W *v x - ΔW *v x = (W - η *: G) *v x)%V).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g (M1 0) 1) => /= /(f_equal (fun v => v ord0)).
by rewrite slope_0 !M1_scal M1_sub !mulmv_1 /vsub /V1; lra.
Qed.

(* Mutant of readout_sign_negated: not negated at the end *)
Lemma not_negated_once : ~ (forall (m n : nat) (x : vec 'I_n) (W ΔW : mat m n),
  ((- 1) *: (W *v x) - ΔW *v x = (W + ΔW) *v x)%V).
Proof.
move/(_ _ _ (V1 1) (M1 1) (M1 0)) => /(f_equal (fun v => v ord0)).
by rewrite M1_add !mulmv_1 /vsub /vscal /V1; lra.
Qed.

(* Mutant of readout_sign_tangent: the loss below its tangents *)
Lemma not_below_tangents : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W V : mat m n),
  loss (W + V) x y τ <= loss W x y τ + ⟨gradient W x y τ, V⟩).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g (M1 0) (M1 1)); rewrite slope_0 dot_M1 M1_add -!/(L _) L_0.
by have := L_gt0 (0 + 1); have := ln2_lt1; lra.
Qed.

(* Mutant of readout_sign_uphill: W − ηG for W + ηG *)
Lemma not_uphill_against_the_gradient : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W : mat m n) (η : R),
  let G := gradient W x y τ in
  loss W x y τ + η * ‖G‖² <= loss (W - η *: G) x y τ).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g (M1 0) 1) => /=.
rewrite slope_0 sqnorm_M1 M1_scal M1_sub -!/(L _) L_0 LE.
have : ln (1 + exp (- (4 * (0 - 1 * - 2)))) <= exp (- (4 * (0 - 1 * - 2))).
  exact: ln_1p_le (Rlt_le _ _ (exp_pos _)).
have : exp (- (4 * (0 - 1 * - 2))) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
have : 0 < ln 2; last by lra.
by rewrite -ln_1; apply: ln_increasing; lra.
Qed.

(* Mutant of readout_sign_distance: the sign of the product *)
Lemma not_distance_minus : ~ (forall (m : nat) (d g : vec 'I_m) (η : R),
  ‖d + η *: g‖² = ‖d‖² - 2 * η * ⟨d, g⟩ + η ^ 2 * ‖g‖² /\
  ‖d - η *: g‖² = ‖d‖² + 2 * η * ⟨d, g⟩ + η ^ 2 * ‖g‖²).
Proof.
move/(_ _ (V1 1) (V1 1) 1) => [+ _].
by rewrite -[(V1 1 + _)%V]/(V1 (1 + 1 * 1)) !sqnorm_1 dot_1; lra.
Qed.

(* Mutant of readout_sign_progress: a query of any norm *)
Lemma not_progress_of_any_query : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W W' : mat m n),
    let G := gradient W x y τ in
    ⟨W *v x - W' *v x, G *v x⟩ = ⟨G, W - W'⟩ /\
    loss W x y τ - loss W' x y τ <= ⟨G, W - W'⟩).
Proof.
move/(_ _ _ _ (V1 2) (two 1 (- 1)) 1%g (M1 0) (M1 1)) => [+ _].
rewrite gradient_two; last by ring.
by rewrite M1_sub !mulmv_1 -[(V1 _ - V1 _)%V]/(V1 (0 * 2 - 1 * 2)) dot_1 dot_M1; lra.
Qed.

(* Mutant of readout_sign_away: a point with a larger loss *)
Lemma not_away_from_every_point : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W W' : mat m n) (η : R),
    let G := gradient W x y τ in
    0 < η -> (G *v x)%V <> vzero ->
    ‖W *v x - W' *v x‖² < ‖(W + η *: G) *v x - W' *v x‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g) => H.
have := H (M1 0) (M1 (- 2)) 1 Rlt_0_1; rewrite slope_0 M1_scal M1_add !mulmv_1.
rewrite -![(V1 _ - V1 _)%V]/(V1 (_ - _)) !sqnorm_1 => {}H.
have ne : V1 (- 2 * 1) <> vzero by move/(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
by have := H ne; lra.
Qed.

(* Mutant of readout_sign_closer: twice the step *)
Lemma not_closer_with_twice_the_step : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W W' : mat m n) (η : R),
  let G := gradient W x y τ in
  0 < η -> η * ‖G *v x‖² < 4 * ⟨W *v x - W' *v x, G *v x⟩ ->
  ‖(W - η *: G) *v x - W' *v x‖² < ‖W *v x - W' *v x‖²).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g (M1 0) (M1 1) (3 / 2)); cbv zeta.
rewrite slope_0 M1_scal M1_sub !mulmv_1 -![(V1 _ - V1 _)%V]/(V1 (_ - _)) dot_1 !sqnorm_1.
by move=> H; have := H ltac:(lra) ltac:(lra); lra.
Qed.

(* The responses 0, 1, −1: at 0 the slope is −2, and far from it the loss is large. *)
Definition three (j : 'I_3) : vec 'I_1 :=
  V1 (if j == ord0 then 0 else if j == ord_max then - 1 else 1).

Lemma sum_three (P : pred 'I_3) (F : 'I_3 -> R) : ∑_(j | P j) F j
  = (if P ord0 then F ord0 else 0) + (if P (inord 1) then F (inord 1) else 0)
    + (if P ord_max then F ord_max else 0).
Proof.
rewrite big_mkcond !sum_first big_ord0 Rplus_0_r -Rplus_assoc.
have -> : lift ord0 ord0 = inord 1 :> 'I_3 by apply/val_inj; rewrite /= inordK.
by have -> : lift ord0 (lift ord0 ord0) = ord_max :> 'I_3 by apply/val_inj.
Qed.

Lemma three_middle : three (inord 1) = V1 1.
Proof. by rewrite /three -!val_eqE /= inordK. Qed.

Lemma gradient_three : gradient (M1 0) (V1 1) three 1%g = M1 (- 2).
Proof.
have s j : score (M1 0) (V1 1) (three j) = if j == ord0 then 0 else - 1.
  by rewrite score_1; case: ifP => _; [ring | case: ifP => _; ring].
apply: vec_eq => p; rewrite /gradient /vscal /outer /vsum sum_three /= inordK //= /vsub.
rewrite /tail_mean /comb !sum_three /beta !perm1 !s /= !inordK //= !sum_three /= !inordK //=.
rewrite !perm1 !s three_middle /three /V1 /M1 -!val_eqE /= inordK //= exp_0.
by field; have := exp_pos (- 1); lra.
Qed.

(* Mutant of readout_sign_downhill: steps of any size *)
Lemma not_downhill_for_every_step : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall η, 0 < η -> forall W : mat m n,
    let G := gradient W x y τ in
    G <> vzero -> loss (W - η *: G) x y τ < loss W x y τ).
Proof.
move/(_ _ _ _ (V1 1) three 1%g 2) => H.
have yD i j : ‖three i - three j‖ <= 2.
  rewrite -[(three i - three j)%V]/(V1 (_ - _)) vnorm_1.
  by case: ifP => _; case: ifP => _; try case: ifP => _; try case: ifP => _; split_Rabs; lra.
have := H yD 1 Rlt_0_1 (M1 0); cbv zeta; rewrite gradient_three M1_scal M1_sub => {}H.
have ne : M1 (- 2) <> vzero by move/(f_equal (fun v => v (ord0, ord0))); rewrite /M1 /vzero; lra.
have lt := H ne; have lo := @loss_pair _ _ _ (V1 1) three 1%g (M1 (0 - 1 * - 2)) ord0 (inord 1).
move: lo; rewrite inordK // !perm1 three_middle !score_1 /= => /(_ isT) lo.
have hi : loss (M1 0) (V1 1) three 1%g <= ln 4.
  rewrite loss_pairs /behind sum_three /= !sum_three /= !inordK //= !perm1 three_middle !score_1.
  have -> : - (0 * 1 - 1) ^ 2 - - (0 * 1 - 0) ^ 2 = - 1 by ring.
  have -> : - (0 * 1 - - 1) ^ 2 - - (0 * 1 - 0) ^ 2 = - 1 by ring.
  have -> : - (0 * 1 - - 1) ^ 2 - - (0 * 1 - 1) ^ 2 = 0 by ring.
  have e0 := exp_pos (- 1); have : exp (- 1) <= / 2.
    have : exp (- 1) * exp 1 = 1 by rewrite -exp_plus (_ : - 1 + 1 = 0) ?exp_0 //; ring.
    by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ e0) (exp_ineq1_le 1); lra.
  move=> e1; rewrite exp_0 !Rplus_0_l !Rplus_0_r ln_1 Rplus_0_r -ln_mult; [|lra|lra].
  by apply: ln_le; lra.
move: (Rle_lt_trans _ _ _ lo (Rlt_le_trans _ _ _ lt hi)).
set e := exp _; have e0 : 0 < e := exp_pos _ => lt4.
have := ln_lt_inv (1 + e) 4 ltac:(lra) ltac:(lra) lt4; rewrite /e.
by have := exp_ineq1 3; rewrite (_ : - _ - - _ = 3); [lra | ring].
Qed.

(* ── Minimisers ─────────────────────────────────────────────────────────────────────────────── *)

(* Mutant of pl_no_minimiser_positive: one response *)
Lemma not_positive_for_one_response : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W : mat m n),
  (1 <= N)%N -> 0 < loss W x y τ).
Proof.
move/(_ 1%N 1%N 1%N (V1 1) (fun _ => V1 0) 1%g (M1 0) isT).
rewrite loss_pairs big_ord_recl big_ord0 /behind big_pred0 => [|j]; last by case: j => [[]].
by rewrite !Rplus_0_r ln_1; lra.
Qed.

(* Mutant of pl_no_minimiser_only_if: e^c for e^(−c) *)
Lemma not_only_if_the_other_way : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (W : mat m n) (c : R),
  loss W x y τ < ln (1 + exp c) ->
  forall k l : 'I_N, (k < l)%N -> c < score W x (y (τ k)) - score W x (y (τ l))).
Proof.
move/(_ _ _ _ (V1 1) ends 1%g (M1 0) 1) => H.
have := H _ ord0 ord_max isT; rewrite !perm1 !score_two pair_0 pair_1 -/(L 0) L_0 => {}H.
suff : ln 2 < ln (1 + exp 1) by move/H; lra.
by apply: ln_increasing; have := exp_ineq1 1; lra.
Qed.

(* Mutant of pl_no_minimiser: the query zero *)
Lemma not_no_minimiser_at_zero : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  (forall ε, 0 < ε -> exists W : mat m n, loss W x y τ < ε) <->
  (exists v, ranks_strictly v y τ)).
Proof.
move/(_ 1%N 1%N 2%N (V1 0) ends 1%g) => [_ H].
have [|W] := H _ (ln 2) (ln_1p_gt0 Rlt_0_1).
  by exists (V1 1) => k l /lt_two [-> ->]; rewrite !perm1 !dot_1 pair_0 pair_1; lra.
have -> : W = M1 (W (ord0, ord0)) by apply: vec_eq => [[a b]]; rewrite !ord1.
rewrite loss_two; move: (W _) => w; have -> : (w * 0 - 1) ^ 2 - (w * 0 - - 1) ^ 2 = 0 by ring.
by rewrite exp_0; exact: Rlt_irrefl.
Qed.

(* Mutant of pl_no_minimiser_ranks: one loss below 1 *)
Lemma not_ranks_for_a_loss_below_1 : ~ (forall (m n N : nat) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}),
  (exists W : mat m n, loss W x y τ < 1) -> exists v, ranks_strictly v y τ).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) (two 0 0) 1%g) => [|v /(_ ord0 ord_max isT)].
  exists (M1 0); rewrite loss_two (_ : (0 * 1 - 0) ^ 2 - (0 * 1 - 0) ^ 2 = 0); last by ring.
  by rewrite exp_0; exact: ln2_lt1.
by rewrite !perm1; exact: Rlt_irrefl.
Qed.

(* Mutant of pl_no_minimiser_ranked: rightly, with equalities *)
Lemma not_ranked_weakly : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (v : vec 'I_m),
  (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
  forall ε, 0 < ε -> exists T, forall t (W : mat m n),
    T <= t -> (W *v x = t *: v)%V -> loss W x y τ < ε).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) ends 1%g (V1 0)) => H.
have weak (k l : 'I_2) : (k < l)%N -> ⟨V1 0, ends (id2 l)⟩ <= ⟨V1 0, ends (id2 k)⟩.
  by rewrite !dot_1; lra.
have [T /(_ T (M1 0) (Rle_refl T))] := H weak (ln 2) (ln_1p_gt0 Rlt_0_1).
rewrite mulmv_1 -/(L 0) L_0 => {}H; suff : ln 2 < ln 2 by lra.
by apply: H; apply: vec_eq => a; rewrite /vscal /V1; ring.
Qed.

(* Mutant of pl_no_minimiser_decreases: equalities throughout *)
Lemma not_decreasing_along_ties : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (v : vec 'I_m),
  (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
  (forall (W W' : mat m n) (t : R),
    0 < t -> (W' *v x = W *v x + t *: v)%V -> loss W' x y τ < loss W x y τ)
  /\ (x <> vzero -> forall W : mat m n, exists W', loss W' x y τ < loss W x y τ)).
Proof.
move/(_ 1%N 1%N 2%N (V1 1) ends 1%g (V1 0)) => H.
have weak (k l : 'I_2) : (k < l)%N -> ⟨V1 0, ends (id2 l)⟩ <= ⟨V1 0, ends (id2 k)⟩.
  by rewrite !dot_1; lra.
suff : L 0 < L 0 by lra.
apply: (proj1 (H weak) (M1 0) (M1 0) 1 Rlt_0_1); apply: vec_eq => a.
by rewrite mulmv_1 /vadd /vscal /V1; ring.
Qed.

(* Mutant of pl_no_minimiser_decreases: the query zero *)
Lemma not_decreasing_at_zero : ~ (forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (v : vec 'I_m),
  (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
  (exists k l : 'I_N, (k < l)%N /\ ⟨v, y (τ l)⟩ < ⟨v, y (τ k)⟩) ->
  forall W : mat m n, exists W', loss W' x y τ < loss W x y τ).
Proof.
move/(_ 1%N 1%N 2%N (V1 0) ends 1%g (V1 1)) => H.
have right (k l : 'I_2) : (k < l)%N -> ⟨V1 1, ends (id2 l)⟩ < ⟨V1 1, ends (id2 k)⟩.
  by case/lt_two => -> ->; rewrite !perm1 !dot_1 pair_0 pair_1; lra.
have [|W] := H (fun k l kl => Rlt_le _ _ (right k l kl)) _ (M1 0).
  by exists ord0, ord_max; split=> //; exact: right.
have -> : W = M1 (W (ord0, ord0)) by apply: vec_eq => [[a b]]; rewrite !ord1.
rewrite !loss_two; move: (W _) => w.
have -> : (w * 0 - 1) ^ 2 - (w * 0 - - 1) ^ 2 = (0 * 0 - 1) ^ 2 - (0 * 0 - - 1) ^ 2 by ring.
exact: Rlt_irrefl.
Qed.

(* Mutant of pl_no_minimiser_between: the infimum is 0 *)
Lemma not_between_at_zero : ~ (forall (n : nat) (x : vec 'I_n),
  x <> vzero ->
  let y (j : 'I_3) : vec 'I_1 := fun _ => if j == ord0 then 1 else 0 in
  forall ε, 0 < ε -> exists W : mat 1 n, loss W x y 1%g < ε).
Proof.
have x0 : V1 1 <> vzero by move/(f_equal (fun v => v ord0)); rewrite /V1 /vzero; lra.
move/(_ _ (V1 1) x0 (ln 2) (ln_1p_gt0 Rlt_0_1)) => [W lt].
by have [/(_ W) + _] := pl_no_minimiser_between x0; lra.
Qed.
