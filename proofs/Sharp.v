(* Chapter 6: log 5 is sharp, and so is the bound for N = 2. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Rcomplements.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* n ξⁿ is as small as one likes. *)
Lemma geometric_small c ε : 0 < c -> 0 < ε ->
  exists n : nat, (INR n.+1 + 1) * exp (- c) ^ n.+1 < ε.
Proof.
move=> c0 ε0; have cc := Rmult_lt_0_compat _ _ c0 c0; have ce := Rmult_lt_0_compat _ _ cc ε0.
have [|n [_ nE]] := Rcomplements.nfloor_ex (8 / (c * c * ε)).
  by apply: Rlt_le; apply: Rdiv_lt_0_compat; lra.
exists n; rewrite -exp_INR INR_S; have n0 := INR_ge0 n.
have M1 : 1 <= INR n + 1 by lra.
move: (INR n + 1) M1 nE => M M1 ME.
have E0 := exp_pos (M * c / 2); have E1 := exp_ineq1_le (M * c / 2).
have mc := Rmult_lt_0_compat M c ltac:(lra) c0.
have sq : M * c * (M * c) / 4 <= exp (M * c).
  have -> : M * c = M * c / 2 + M * c / 2 by field.
  by rewrite exp_plus; nra.
have big : 8 < M * (c * c * ε).
  have -> : 8 = 8 / (c * c * ε) * (c * c * ε) by field; repeat split; lra.
  exact: Rmult_lt_compat_r.
apply: (Rmult_lt_reg_r (exp (M * c))); first exact: exp_pos.
rewrite Rmult_assoc -exp_plus Rplus_opp_l exp_0 Rmult_1_r.
apply: (Rlt_le_trans _ (ε * (M * c * (M * c) / 4))); last by apply: Rmult_le_compat_l; lra.
by nra.
Qed.

(* Claim theorem-3-3, part threshold-sharp: below log 5 there are equally spaced rewards for which
   r⁺ is further than Δ/4 from the best reward, in the first block already. *)
Theorem theorem_3_3_threshold_sharp : forall (γ Δ : R),
  0 < γ -> 0 < Δ -> γ * Δ < ln 5 ->
  exists (n : nat) (r : 'I_n.+1 -> R),
  spaced Δ r /\ (forall j, r j <= r ord0) /\
  forall (dx dy : nat) (η spread : R) (x : vec 'I_dx) (y : 'I_n.+1 -> vec 'I_dy) (i : 'I_n.+1),
  let A := attention full (winner_head dx dy η γ Δ spread) (el_prompt x y r) i in
  Δ / 4 < Rabs (∑_j (A j * r j) - r ord0).
Proof.
move=> γ Δ γ0 Δ0 cold; set c := γ * Δ; have c0 : 0 < c by exact: Rmult_lt_0_compat.
have ξ5 : / 5 < exp (- c).
  rewrite -(exp_ln (/ 5)); last by lra.
  by apply: exp_increasing; rewrite ln_Rinv /c; lra.
have ξ1 : exp (- c) < 1 by rewrite -exp_0; apply: exp_increasing; lra.
have [|n small] := @geometric_small c ((5 * exp (- c) - 1) / 4) c0; first by lra.
pose r : 'I_n.+1 -> R := fun l => - (INR l * Δ).
exists n, r; split; [|split].
- move=> j l; rewrite /r -val_eqE /= neq_ltn => /orP [] jl; have := INR_le jl; rewrite INR_S => le.
    by rewrite Rabs_pos_eq; nra.
  by rewrite Rabs_minus_sym Rabs_pos_eq; nra.
- by move=> j; rewrite /r /= Rmult_0_l; have := INR_ge0 j; nra.
move=> dx dy η spread x y i A.
set ξ := exp (- c) in ξ5 ξ1 small.
pose z (j : 'I_n.+1) := γ * r j - 2 * γ * (spread + Δ) * flags 1%g 0 j.
have -> : ∑_j (A j * r j) - r ord0 = ∑_j (softmax z j * r j) - r ((1%g : {perm 'I_n.+1}) ord0).
  rewrite perm1; congr (_ - _); apply: eq_bigr => j _; congr (_ * _).
  rewrite /A /el_prompt el_winner_attention; apply: eq_softmax => l.
  by rewrite /z /flags.
rewrite (top_deviation γ Δ spread r 1%g ord0) -/z.
have term (l : 'I_n.+1) : exp (z ((1%g : {perm 'I_n.+1}) l) - z ((1%g : {perm 'I_n.+1}) ord0))
    = ξ ^ l.
  rewrite !perm1 /z /flags /r /ξ -exp_INR /=; congr exp; rewrite /c; ring.
rewrite big1 ?Rplus_0_l; last by move=> l; rewrite ltn0.
have -> : crowd z ((1%g : {perm 'I_n.+1}) ord0) = ∑_(l < n.+1 | (0 < l)%N) ξ ^ l.
  rewrite crowd_places big1 ?Rplus_0_l => [|l]; last by rewrite ltn0.
  by apply: eq_bigr => l _; exact: term.
have -> : ∑_(l < n.+1 | (0 < l)%N) pull γ Δ spread r 1%g ord0 l
    = - (Δ * (∑_(l < n.+1 | (0 < l)%N) ((INR l - / 4) * ξ ^ l)
              + / 4 * ∑_(l < n.+1 | (0 < l)%N) ξ ^ l)).
  rewrite -sum_scal -sum_add -sum_scal -sum_opp; apply: eq_bigr => l _.
  by rewrite /pull term !perm1 /r /=; field.
pose o : 'I_n.+1 := ord0; have M := moments_after o ξ.
have ME : ∑_(l < n.+1 | (o < l)%N) ((INR (l - o) - / 4) * ξ ^ (l - o))
    = ∑_(l < n.+1 | (0 < l)%N) ((INR l - / 4) * ξ ^ l).
  by apply: eq_bigr => l _; rewrite subn0.
rewrite ME subn0 in M; move: M small; have := INR_ge0 n.+1.
have p0 : 0 < ξ ^ n.+1 by apply: pow_lt; lra.
have S0 : 0 <= ∑_(l < n.+1 | (0 < l)%N) ξ ^ l.
  by apply: sum_ge0 => l _; apply: Rlt_le; apply: pow_lt; lra.
move: (∑_(l < n.+1 | _) _) (∑_(l < n.+1 | _) _) (ξ ^ n.+1) (INR n.+1) S0 p0
  => m S p N S0 p0 N0 M small.
have m4 : / 4 < m.
  apply: (Rmult_lt_reg_l ((1 - ξ) ^ 2)); first by apply: pow_lt; lra.
  have le : (N - / 4) * (1 - ξ) + ξ <= N + 1 by nra.
  by have := Rmult_le_compat_l p _ _ (Rlt_le _ _ p0) le; rewrite M /=; lra.
rewrite Rabs_left.
  apply: (Rmult_lt_reg_r (1 + S)); first by lra.
  have -> : - (- (Δ * (m + / 4 * S)) / (1 + S)) * (1 + S) = Δ * (m + / 4 * S) by field; lra.
  by nra.
apply: (Rmult_lt_reg_r (1 + S)); first by lra.
have -> : - (Δ * (m + / 4 * S)) / (1 + S) * (1 + S) = - (Δ * (m + / 4 * S)) by field; lra.
by nra.
Qed.

(* Toward claim theorem-3-3, part sharp: for N = 2 the error is the bound, if the rewards are Δ
   apart and D is the distance of the responses. *)
Theorem theorem_3_3_sharp : forall (dx dy : nat) (W : mat dy dx) (η γ Δ spread spread_Z B C : R),
  0 <= η -> 0 < γ -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_2 -> vec 'I_dy) (r : 'I_2 -> R) (τ : {perm 'I_2}) (i : 'I_2),
  ‖x‖ = 1 -> r (τ ord0) = r (τ ord_max) + Δ ->
  let u := run full (nseq (2 - 1) (el_block W η γ Δ spread B C)) (el_prompt x y r) i El.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  let D := ‖y (τ ord_max) - y (τ ord0)‖ in
  ‖u - ΔW *v x‖ = error_bound η γ Δ C spread spread_Z D 2 (2 - 1).
Proof.
move=> dx dy W η γ Δ spread spread_Z B C η0 γ0 Δ0 x y r τ i x1 rΔ u ΔW D.
rewrite /ΔW gradient_step_terms // {}/u run_nseq /el_prompt el_step; last by lra.
set b := τ ord0 in rΔ D *; set o := τ ord_max in rΔ D *.
have other j : j != b -> j = o.
  rewrite -(permKV τ j) /b /o !(inj_eq perm_inj) => j0; congr (τ _); apply/val_inj => /=.
  by case: (τ^-1%g j) j0 => [[|[|k]]].
have -> : first_terms η W x y τ (2 - 1) = ((2 * η) *: (y b - tail_mean W x y τ ord0))%V.
  by apply: vec_eq => c; rewrite /first_terms /vsum (big_pred1 ord0) //; case=> [[|[|k]]].
have -> : comb (field_weights W C x y (fun _ => 0)) y = tail_mean W x y τ ord0.
  rewrite -live_mean; apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _).
  rewrite -[RHS]/(softmax (fun j => reduced W x (y j)) j).
  by apply: eq_softmax => l; ring.
set m := tail_mean _ _ _ _ _; rewrite /el_state /winner_weights; set z := fun j => _ - _.
have -> : (vzero + (2 * η) *: (comb (softmax z) y - m) - (2 * η) *: (y b - m)
    = (2 * η) *: (comb (softmax z) y - y b))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub /vscal /vzero; ring.
rewrite vnorm_scal Rabs_pos_eq; last by lra.
rewrite (mean_to_point_sharp (p := y o) _ (w := b)) => [|j jb]; last by rewrite (other j).
have [x0 ξ1] := ξ01 γ0 Δ0; set ξ := exp (- γ * Δ) in x0 ξ1 *.
have -> : 1 - softmax z b = share ξ.
  rewrite softmax_miss; congr share; have ob : o != b by rewrite /o /b (inj_eq perm_inj).
  rewrite /crowd (big_pred1 o) => [|j]; last by apply/idP/eqP => [/other //|->].
  by rewrite /z /ξ; congr exp; rewrite rΔ; ring.
rewrite /error_bound big_ord_recl big_ord0 /winner_crowd /field_crowd -/ξ /=.
have -> : (ξ - ξ * (ξ * 1)) / (1 - ξ)
    + exp (- γ * (spread + (1 + 1 + 1) * Δ)) * ((1 - 1) / (1 - ξ)) = ξ by field; lra.
by rewrite /Rdiv !Rmult_0_l share_0 -/D; ring.
Qed.
