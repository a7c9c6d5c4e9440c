(* Chapter 2, continued: how curved the loss can be, a safe step size, and the read-out. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Λ = (N−1) D² ‖x‖². *)
Definition curvature_bound {n : nat} (N : nat) (D : R) (x : vec 'I_n) : R :=
  INR N.-1 * D ^ 2 * ‖x‖².

(* Weights on one tail of values that are pairwise at most l apart. *)
Lemma variance_spread (I : finType) (w c : I -> R) l : weights w ->
  (forall i j, c i - c j <= l) -> variance w c <= l ^ 2 / 4.
Proof.
move=> ww ll; case: (pickP (fun _ : I => true)) => [i0 _|none]; last first.
  by have [_] := ww; rewrite big_pred0 //; lra.
have [k le] := least c i0; apply: (variance_le (a := c k)) ww _ => i _.
by have := le i; have := ll i k; lra.
Qed.

(* The last tail has one response, and no variance. *)
Lemma variance_last N (s c : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N) :
  k.+1 = N -> variance (beta s τ k) c = 0.
Proof.
move=> kN; apply: Rle_antisym; last exact: variance_ge0 (beta_weights _ _ _).
have := @variance_le _ (beta s τ k) c (c k) 0 (beta_weights _ _ _).
rewrite (_ : 0 ^ 2 / 4 = 0); last by lra.
apply=> j; rewrite /beta; case: ifP => // kj _; suff -> : j = k by lra.
by apply/val_inj/eqP; rewrite eqn_leq kj andbT -ltnS kN ltn_ord.
Qed.

Section Bound.
Variables m n N : nat.
Implicit Types (W V : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

Lemma second_derivative_le W V x y τ D : (forall i j, ‖y i - y j‖ <= D) ->
  second_derivative W V x y τ <= curvature_bound N D x * ‖V‖².
Proof.
case: N y τ => [|N'] y τ yD.
  by rewrite /second_derivative /curvature_bound big_ord0 /=; lra.
pose v (j : 'I_N'.+1) := ⟨V *v x, y (τ j)⟩.
have var k : variance (beta (fun j => score W x (y j)) τ k) v
    <= (‖V *v x‖ * D) ^ 2 / 4.
  apply: variance_spread (beta_weights _ _ _) _ => i j; rewrite /v -dot_subr.
  by apply: Rle_trans (dot_le _ _) _; apply: Rmult_le_compat_l (vnorm_ge0 _) (yD _ _).
have sum_le4 : ∑_k variance (beta (fun j => score W x (y j)) τ k) v
    <= INR N' * ((‖V *v x‖ * D) ^ 2 / 4).
  rewrite sum_last variance_last // Rplus_0_r -sum_const_ord; exact: sum_le.
apply: (Rle_trans _ (INR N' * (‖V *v x‖ * D) ^ 2)); first by rewrite /second_derivative -/v; lra.
have -> : (‖V *v x‖ * D) ^ 2 = D ^ 2 * ‖V *v x‖² by rewrite -vnorm_sqr; ring.
have ND := Rmult_le_pos _ _ (INR_ge0 N') (pow2_ge_0 D).
have := Rmult_le_compat_l _ _ _ ND (sqnorm_mulmv V x).
by rewrite /curvature_bound -[N'.+1.-1]/N'; lra.
Qed.

(* Taylor: the loss lies below a parabola. *)
Lemma loss_parabola W V x y τ D : (forall i j, ‖y i - y j‖ <= D) ->
  loss (W + V) x y τ
  <= loss W x y τ + ⟨gradient W x y τ, V⟩ + curvature_bound N D x * ‖V‖² / 2.
Proof.
move=> yD; set M := curvature_bound N D x * ‖V‖².
pose f t := loss (W + t *: V) x y τ; pose g t := ⟨gradient (W + t *: V) x y τ, V⟩.
have at0 : (W + 0 *: V = W)%V by apply: vec_eq => p; rewrite /vadd /vscal; ring.
have at1 : (W + 1 *: V = W + V)%V by apply: vec_eq => p; rewrite /vadd /vscal; ring.
have slope t : 0 <= t -> g t - g 0 <= M * t.
  move=> t0; have [ξ [_ E]] := MVT_gen g 0 t (fun u => second_derivative (W + u *: V) V x y τ)
    (fun u _ => is_derive_slope W V x y τ u)
    (fun u _ => derivable_continuous_pt _ _ (ex_derive_Reals_0 _ _
       (ex_intro _ _ (is_derive_slope W V x y τ u)))).
  rewrite E Rminus_0_r; apply: Rmult_le_compat_r => //; exact: second_derivative_le.
pose φ t := f t - (g 0 * t + M * t ^ 2 / 2).
have dφ t : is_derive φ t (g t - (g 0 + M * t)).
  apply: is_derive_minus; first exact: is_derive_loss.
  by auto_derive => //; field.
have [ξ [ξ01 E]] := MVT_gen φ 0 1 (fun t => g t - (g 0 + M * t)) (fun u _ => dφ u)
    (fun u _ => derivable_continuous_pt _ _ (ex_derive_Reals_0 _ _ (ex_intro _ _ (dφ u)))).
rewrite Rmin_left ?Rmax_right in ξ01; [|lra|lra].
by move: E; rewrite /φ /f at0 at1 /=; have := slope ξ (proj1 ξ01); rewrite {2 4}/g at0; lra.
Qed.

End Bound.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-smooth, part popoviciu. *)
Theorem pl_smooth_popoviciu : forall (I : finType) (β v : I -> R) (a l : R),
  (forall i, 0 <= β i) -> ∑_i β i = 1 -> (forall i, a <= v i <= a + l) ->
  variance β v <= l ^ 2 / 4.
Proof. by move=> I β v a l β0 β1 vl; apply: (variance_le (a := a)) => // i _. Qed.

(* Claim pl-smooth, part total; the second derivative along V is at most Λ‖V‖². *)
Theorem pl_smooth : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N})
    (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall W V : mat m n,
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_N => ⟨V *v x, y (τ j)⟩)
    <= INR N.-1 * D ^ 2 * ‖x‖² * ‖V‖².
Proof. by move=> m n N x y τ D yD W V; exact: second_derivative_le. Qed.

(* Claim pl-smooth, part taylor. *)
Theorem pl_smooth_taylor : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall (η : R) (W : mat m n),
    let G := gradient W x y τ in
    let Λ := INR N.-1 * D ^ 2 * ‖x‖² in
    loss (W - η *: G) x y τ <= loss W x y τ - (η - Λ * η ^ 2 / 2) * ‖G‖².
Proof.
move=> m n N x y τ D yD η W G Λ.
have := loss_parabola W ((- η) *: G) x τ yD; rewrite dot_scalr sqnorm_scal -[⟨G, G⟩]/(‖G‖²).
have -> : (W + (- η) *: G = W - η *: G)%V by apply: vec_eq => p; rewrite /vadd /vsub /vscal; ring.
by rewrite -[curvature_bound N D x]/Λ; lra.
Qed.

(* Claim pl-smooth, part descent; η ≤ 1/Λ lowers the loss by (η/2)‖∇L‖² or more. *)
Theorem pl_smooth_descent : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall η, 0 <= η -> η * (INR N.-1 * D ^ 2 * ‖x‖²) <= 1 ->
  forall W : mat m n,
    let G := gradient W x y τ in
    loss (W - η *: G) x y τ <= loss W x y τ - η / 2 * ‖G‖².
Proof.
move=> m n N x y τ D yD η η0 ηΛ W G.
have := pl_smooth_taylor x τ yD η W; cbv zeta; rewrite -/G; set Λ := INR _ * _ * _ in ηΛ *.
have := sqnorm_ge0 G; move: (‖G‖²) => q q0; have ηq := Rmult_le_pos _ _ η0 q0.
by have := Rmult_le_compat_l _ _ _ ηq ηΛ; lra.
Qed.

(* ── Two responses ──────────────────────────────────────────────────────────────────────────── *)

Lemma sum_two (F : 'I_2 -> R) : ∑_i F i = F ord0 + F ord_max.
Proof.
rewrite sum_last sum_first big_ord0 Rplus_0_r; congr (F _ + _); exact/val_inj.
Qed.

Lemma variance_two (w c : 'I_2 -> R) : weights w ->
  variance w c = w ord0 * w ord_max * (c ord0 - c ord_max) ^ 2.
Proof.
case=> _; rewrite /variance /wmean !sum_two => w1; have -> : w ord_max = 1 - w ord0 by lra.
by ring.
Qed.

(* The curvature along V: the tail of both responses is a softmax, and the last has no variance. *)
Lemma second_derivative_two (m n : nat) (W V : mat m n) (x : vec 'I_n) (y : 'I_2 -> vec 'I_m)
    (τ : {perm 'I_2}) :
  let β := softmax (fun j => score W x (y (τ j))) in
  second_derivative W V x y τ
  = 4 * (β ord0 * β ord_max) * ⟨V *v x, y (τ ord0) - y (τ ord_max)⟩ ^ 2.
Proof.
move=> β; rewrite /second_derivative sum_two.
rewrite [variance (beta _ _ ord_max) _]variance_last // variance_two; last exact: beta_weights.
by rewrite dot_subr -[beta _ _ _ ord0]/(β ord0) -[beta _ _ _ ord_max]/(β ord_max); ring.
Qed.

(* Two weights of softmax: a quarter at most, and only for equal scores. *)
Lemma softmax_two (s : 'I_2 -> R) :
  4 * (softmax s ord0 * softmax s ord_max) <= 1 /\
  (4 * (softmax s ord0 * softmax s ord_max) = 1 <-> s ord0 = s ord_max).
Proof.
rewrite /softmax sum_two; have a0 := exp_pos (s ord0); have b0 := exp_pos (s ord_max).
set a := exp (s ord0) in a0 *; set b := exp (s ord_max) in b0 *.
have -> : 4 * (a / (a + b) * (b / (a + b))) = 1 - ((a - b) / (a + b)) ^ 2 by field; lra.
split; first by have := pow2_ge_0 ((a - b) / (a + b)); lra.
split=> [E|E]; last by have -> : a = b; [rewrite /a E | field; lra].
apply: exp_inv; rewrite -/a -/b; have {}E : (a - b) / (a + b) = 0.
  by move: E; move: ((a - b) / (a + b)) => q E; apply: Rsqr_0_uniq; rewrite /Rsqr; lra.
have : (a - b) / (a + b) * (a + b) = a - b by field; lra.
by rewrite E; lra.
Qed.

Section Two.
Variables (m n : nat) (x : vec 'I_n) (y : 'I_2 -> vec 'I_m) (τ : {perm 'I_2}).
Let δ : vec 'I_m := (y (τ ord0) - y (τ ord_max))%V.

(* Claim pl-smooth, part attained; Λ = D²‖x‖², and V = (y₁ − y₂)xᵀ. *)
Theorem pl_smooth_attained : x <> vzero ->
  forall W : mat m n,
    let V := outer δ x in
    let Λ := INR 2.-1 * ‖δ‖ ^ 2 * ‖x‖² in
    4 * ∑_k variance (beta (fun j => score W x (y j)) τ k) (fun j : 'I_2 => ⟨V *v x, y (τ j)⟩)
    = Λ * ‖V‖² <->
    ‖W *v x - y (τ ord0)‖ = ‖W *v x - y (τ ord_max)‖.
Proof.
move=> /sqnorm_gt0 x0 W V Λ; rewrite -[4 * _]/(second_derivative W V x y τ).
case: (Rle_lt_or_eq_dec _ _ (sqnorm_ge0 δ)) => [d0|none]; last first.
  have d0 := sqnorm_eq0 (esym none).
  split=> _; last first.
    rewrite second_derivative_two -/δ /V d0; have -> : outer vzero x = vzero :> mat m n.
      by apply: vec_eq => p; rewrite /outer /vzero Rmult_0_l.
    by rewrite /sqnorm !dot_zerol [⟨_, vzero⟩]dotC dot_zerol /=; ring.
  congr (‖_ - _‖); apply: vec_eq => a.
  by have := f_equal (fun v => v a) d0; rewrite /δ /vsub /vzero; lra.
have [_ half] := softmax_two (fun j => score W x (y (τ j))).
rewrite second_derivative_two -/δ; set q := 4 * _ in half *.
have -> : (V *v x = ‖x‖² *: δ)%V by rewrite mulmv_outer.
have -> : ‖V‖² = ‖δ‖² * ‖x‖² by exact: sqnorm_outer.
have -> : Λ = ‖δ‖² * ‖x‖² by rewrite /Λ -(vnorm_sqr δ) /=; ring.
rewrite dot_scall -[⟨δ, δ⟩]/(‖δ‖²).
transitivity (q = 1); last rewrite half.
  move: (Rmult_lt_0_compat _ _ x0 d0); move: (‖x‖²) (‖δ‖²) => a b ab0.
  have ab : a * b * (a * b) <> 0 by apply: Rgt_not_eq; exact: Rmult_lt_0_compat.
  split=> [E|->]; last by ring.
  by apply: (Rmult_eq_reg_r (a * b * (a * b))) => //; lra.
rewrite /score; split=> [E|E].
  by rewrite /vnorm; congr sqrt; lra.
by rewrite -!vnorm_sqr E.
Qed.

(* Claim pl-smooth, part direction; no direction is more curved than that one. *)
Theorem pl_smooth_direction : forall W U : mat m n,
  let V := outer δ x in
  let curvature V := 4 * ∑_k variance (beta (fun j => score W x (y j)) τ k)
                           (fun j : 'I_2 => ⟨V *v x, y (τ j)⟩) in
  curvature U * ‖V‖² <= curvature V * ‖U‖².
Proof.
move=> W U V curvature; rewrite -[curvature U]/(second_derivative W U x y τ).
rewrite -[curvature V]/(second_derivative W V x y τ) !second_derivative_two -/δ; set q := 4 * _.
have q0 : 0 <= q.
  have p := softmax_gt0 (fun j => score W x (y (τ j))).
  by rewrite /q; have := Rmult_lt_0_compat _ _ (p ord0) (p ord_max); lra.
have -> : (V *v x = ‖x‖² *: δ)%V by rewrite mulmv_outer.
have -> : ‖V‖² = ‖δ‖² * ‖x‖² by exact: sqnorm_outer.
rewrite dot_scall -[⟨δ, δ⟩]/(‖δ‖²).
have c1 := dot_sqr_le (U *v x)%V δ; have c2 := sqnorm_mulmv U x.
have d0 := sqnorm_ge0 δ; have x0 := sqnorm_ge0 x.
have dx : 0 <= q * (‖δ‖² * ‖x‖²) by apply: Rmult_le_pos => //; exact: Rmult_le_pos.
have c3 := Rmult_le_compat_r _ _ _ d0 c2.
have := Rmult_le_compat_l _ _ _ dx (Rle_trans _ _ _ c1 c3).
by move: ⟨U *v x, δ⟩ (‖δ‖²) (‖x‖²) (‖U‖²) => *; lra.
Qed.

End Two.

(* ── Which way to read out ──────────────────────────────────────────────────────────────────── *)

Section Readout.
Variables m n N : nat.
Variables (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).

(* Claim readout-sign, part printed: W₀x − ΔW x is a step up the gradient; that a test token reads
   it is readout_sign_test_token. *)
Theorem readout_sign_printed : forall (W : mat m n) (η : R),
  let G := gradient W x y τ in
  let ΔW := ((- η) *: G)%V in
  (W *v x - ΔW *v x = (W + η *: G) *v x)%V.
Proof.
move=> W η /=; rewrite mulmv_add !mulmv_scal.
by apply: vec_eq => a; rewrite /vadd /vsub /vscal; ring.
Qed.

(* Claim readout-sign, part negated: the y row starts at −W₀x, the pass adds −ΔW x, and it is
   negated; that a test token does so, while the heads ask with x, is readout_sign_test_token. *)
Theorem readout_sign_negated : forall (W ΔW : mat m n),
  ((- 1) *: ((- 1) *: (W *v x) - ΔW *v x) = (W + ΔW) *v x)%V.
Proof.
by move=> W ΔW; rewrite mulmv_add; apply: vec_eq => a; rewrite /vadd /vsub /vscal; ring.
Qed.

(* Claim readout-sign, part tangent. *)
Theorem readout_sign_tangent : forall W V : mat m n,
  loss W x y τ + ⟨gradient W x y τ, V⟩ <= loss (W + V) x y τ.
Proof. by move=> W V; exact: loss_tangent. Qed.

(* Claim readout-sign, part uphill; for every task and every η. *)
Theorem readout_sign_uphill : forall (W : mat m n) (η : R),
  let G := gradient W x y τ in
  loss W x y τ + η * ‖G‖² <= loss (W + η *: G) x y τ.
Proof.
move=> W η /=; set G := gradient W x y τ.
by have := loss_tangent W (η *: G) x y τ; rewrite dot_scalr.
Qed.

(* Claim readout-sign, part downhill; for every step size below 2/Λ. *)
Theorem readout_sign_downhill : forall (D : R),
  (forall i j, ‖y i - y j‖ <= D) ->
  forall η, 0 < η -> η * (INR N.-1 * D ^ 2 * ‖x‖²) < 2 ->
  forall W : mat m n,
    let G := gradient W x y τ in
    G <> vzero -> loss (W - η *: G) x y τ < loss W x y τ.
Proof.
move=> D yD η η0 ηΛ W G /sqnorm_gt0 G0.
have := pl_smooth_taylor x τ yD η W; cbv zeta; rewrite -/G; set Λ := INR _ * _ * _ in ηΛ *.
have := Rmult_lt_compat_l _ _ _ (Rmult_lt_0_compat _ _ η0 G0) ηΛ.
by move: (‖G‖²) => q; lra.
Qed.

(* Claim readout-sign, part distance. *)
Theorem readout_sign_distance : forall (d g : vec 'I_m) (η : R),
  ‖d + η *: g‖² = ‖d‖² + 2 * η * ⟨d, g⟩ + η ^ 2 * ‖g‖² /\
  ‖d - η *: g‖² = ‖d‖² - 2 * η * ⟨d, g⟩ + η ^ 2 * ‖g‖².
Proof. by move=> d g η; rewrite sqnorm_add sqnorm_sub sqnorm_scal dot_scalr; split; ring. Qed.

(* ⟨W₀x − W′x, ∇L x⟩ is ⟨∇L, W₀ − W′⟩, ‖x‖² times. *)
Lemma progress_inner (W W' : mat m n) : let G := gradient W x y τ in
  ⟨W *v x - W' *v x, G *v x⟩ = ‖x‖² * ⟨G, W - W'⟩.
Proof.
move=> G; rewrite -mulmv_sub {1}/G /gradient mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²).
by rewrite /G /gradient dot_scall dot_outer !dot_scalr (dotC ((W - W') *v x)); ring.
Qed.

(* Claim readout-sign, part progress; the second for any query. *)
Theorem readout_sign_progress : forall W W' : mat m n,
    let G := gradient W x y τ in
    (‖x‖² = 1 -> ⟨W *v x - W' *v x, G *v x⟩ = ⟨G, W - W'⟩) /\
    loss W x y τ - loss W' x y τ <= ⟨G, W - W'⟩.
Proof.
move=> W W' G; split; first by move=> x1; rewrite progress_inner x1 Rmult_1_l.
have := loss_tangent W (W' - W)%V x y τ; rewrite -/G !dot_subr.
have -> : (W + (W' - W) = W')%V by apply: vec_eq => p; rewrite /vadd /vsub; ring.
by lra.
Qed.

(* Claim readout-sign, part away; for any query. *)
Theorem readout_sign_away : forall (W W' : mat m n) (η : R),
    let G := gradient W x y τ in
    loss W' x y τ <= loss W x y τ -> 0 < η -> (G *v x)%V <> vzero ->
    ‖W *v x - W' *v x‖² < ‖(W + η *: G) *v x - W' *v x‖².
Proof.
move=> W W' η G le η0 /sqnorm_gt0 Gx0.
have [_ P] := readout_sign_progress W W'; have E := progress_inner W W'; rewrite -/G in E P.
have -> : ((W + η *: G) *v x - W' *v x = (W *v x - W' *v x) + η *: (G *v x))%V.
  by rewrite mulmv_add mulmv_scal; apply: vec_eq => a; rewrite /vadd /vsub; ring.
have [-> _] := readout_sign_distance (W *v x - W' *v x) (G *v x) η; rewrite E.
have H1 : 0 <= η * (‖x‖² * ⟨G, W - W'⟩).
  by apply: Rmult_le_pos; [lra | apply: Rmult_le_pos; [exact: sqnorm_ge0 | lra]].
by have H2 := Rmult_lt_0_compat _ _ (pow_lt η 2 η0) Gx0; lra.
Qed.

(* Claim readout-sign, part closer. *)
Theorem readout_sign_closer : forall (W W' : mat m n) (η : R),
  let G := gradient W x y τ in
  0 < η -> η * ‖G *v x‖² < 2 * ⟨W *v x - W' *v x, G *v x⟩ ->
  ‖(W - η *: G) *v x - W' *v x‖² < ‖W *v x - W' *v x‖².
Proof.
move=> W W' η G η0 lt.
have -> : ((W - η *: G) *v x - W' *v x = (W *v x - W' *v x) - η *: (G *v x))%V.
  by rewrite mulmv_sub mulmv_scal; apply: vec_eq => a; rewrite /vsub; ring.
have [_ ->] := readout_sign_distance (W *v x - W' *v x) (G *v x) η.
by have := Rmult_lt_compat_l _ _ _ η0 lt; lra.
Qed.

End Readout.
