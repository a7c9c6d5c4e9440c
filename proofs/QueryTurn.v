(* Chapter 8, Multiple queries II: one filtered block, with the flags of k places, at temperatures
   in closed form: what each query gets, and what of the others leaks in. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 OwnTerms.
From Icalign Require Import QueryBlocks.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── One block, with the flags of k places ──────────────────────────────────────────────────── *)

(* What is known of the inputs: unit queries, whose products are at most ρ; rewards Δ apart in
   [low, low + spread]; reduced scores in an interval of length spread_Z that does not end below 0;
   responses no further than D₀ from one another and from 0. *)
Record in_queries_class {dx dy M N} (W : mat dy dx) (Δ ρ low spread low_Z spread_Z D0 : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) : Prop :=
  InQueriesClass {
  queries_unit : forall a, ‖x a‖ = 1;
  queries_apart : forall a b : 'I_M, a != b -> ⟨x a, x b⟩ <= ρ;
  queries_gaps : forall a, spaced Δ (r a);
  queries_rewards : forall a j, low <= r a j <= low + spread;
  queries_scores : forall a b j, low_Z <= reduced W (x a) (y b j) <= low_Z + spread_Z;
  queries_zero : 0 <= low_Z + spread_Z;
  queries_distances : forall a b i j, ‖y a i - y b j‖ <= D0;
  queries_lengths : forall a j, ‖y a j‖ <= D0 }.

(* The temperatures for margins g and h. *)
Definition queries_γ1 (g Δ ρ spread : R) (M : nat) : R :=
  (g / Δ * spread + g + ln (INR M * spread / Δ)) / (1 - ρ).
Definition queries_γβ (h ρ spread_Z : R) (M : nat) : R := (spread_Z + h + ln (INR M)) / (1 - ρ).

Definition mt_flags {M N} (τ : 'I_M -> {perm 'I_N}) (k : nat) (fs : R)
  (t : option ('I_M * 'I_N)) : R := if t is Some p then flags (τ p.1) k p.2 else fs.

Section Turn.
Variables (dx dy M N : nat) (W : mat dy dx) (g h Δ ρ low spread low_Z spread_Z D0 fs : R).
Variables (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R).
Variables (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (k : 'I_N).
Notation T := (option ('I_M * 'I_N)).
Hypotheses (Δ0 : 0 < Δ) (g9 : ln 9 <= g) (h0 : 0 <= h) (ρ0 : 0 <= ρ < 1) (fs0 : 0 <= fs).
Hypothesis cls : in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r.
Hypothesis ranked : forall b, ranks (r b) (τ b).
Hypothesis kN : (k.+1 < N)%N.
Let γ1 := queries_γ1 g Δ ρ spread M.
Let γ2 := g / Δ.
Let γβ := queries_γβ h ρ spread_Z M.
Let C := spread_Z + h.
Let ξ := exp (- g).
Let χ := Δ / spread * (ξ * ξ / (1 - ξ)).
Let f := mt_flags τ k fs.
Let P := own_part a (N := N).
Let Y := at_y y.
Let z (s : T) := γ1 * ⟨x a, at_x x s⟩
  + γ2 * 1 * (at_r r s - 2 * (spread + Δ) * f s + low * at_b s).
Let q (s : T) := γβ * ⟨x a, at_x x s⟩ + 2 * ⟨W *v x a, Y s⟩ - 1 * (‖Y s‖² + C * f s).

Lemma turn_N0 : 1 <= INR N.
Proof.
by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (leq0n k) (ltn_ord k).
Qed.

Lemma turn_M0 : 1 <= INR M.
Proof.
by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (leq0n a) (ltn_ord a).
Qed.


Lemma turn_ξ : 0 < ξ <= / 9.
Proof.
split; first exact: exp_pos.
have := exp_mono (ltac:(lra) : - g <= - ln 9); rewrite -/ξ exp_Ropp exp_ln; lra.
Qed.

Lemma turn_g : 0 < g.
Proof. by have : 0 < ln 9 by [rewrite -ln_1; apply: ln_increasing; lra]; lra. Qed.

Lemma turn_γ2 : 0 < γ2. Proof. by apply: Rdiv_lt_0_compat => //; exact: turn_g. Qed.
Lemma turn_γ2Δ : γ2 * Δ = g. Proof. by rewrite /γ2; field; lra. Qed.

Lemma turn_spread : Δ <= spread.
Proof.
pose l := Ordinal kN; have kl : (k <= l)%N by exact: leqnSn.
have := ranks_gap (ranked a) (queries_gaps cls a) kl; rewrite /= subSnn [INR 1]/=.
by have := queries_rewards cls a (τ a k); have := queries_rewards cls a (τ a l); lra.
Qed.

Lemma turn_γ1 : exp (γ1 * ρ + γ2 * (low + spread))
  = ξ * (Δ / (INR M * spread)) * exp (γ1 + γ2 * low).
Proof.
have s0 := turn_spread; have M1 := turn_M0.
have p0 : 0 < INR M * spread / Δ by apply: Rdiv_lt_0_compat => //; nra.
have -> : Δ / (INR M * spread) = exp (- ln (INR M * spread / Δ)).
  by rewrite exp_Ropp exp_ln //; field; nra.
rewrite /ξ -!exp_plus; congr exp; rewrite /γ1 /queries_γ1 -/γ2.
by field; lra.
Qed.

Lemma turn_γ10 : 0 <= γ1.
Proof.
have s0 := turn_spread; have M1 := turn_M0; have g0 := turn_g; have γ20 := turn_γ2.
have l0 : 0 <= ln (INR M * spread / Δ).
  have : 1 <= INR M * spread / Δ.
    apply: (Rmult_le_reg_r Δ) => //.
    by rewrite (_ : _ / Δ * Δ = INR M * spread); [nra | field; lra].
  by case=> [lt|<-]; [left; rewrite -ln_1; apply: ln_increasing; lra | rewrite ln_1; lra].
apply: Rmult_le_pos; last by left; apply: Rinv_0_lt_compat; lra.
by have := Rmult_le_pos _ _ (Rlt_le _ _ γ20) (ltac:(lra) : 0 <= spread); rewrite -/γ2; lra.
Qed.

Lemma turn_x : ⟨x a, x a⟩ = 1.
Proof. by rewrite -[LHS]/(‖x a‖²) -vnorm_sqr (queries_unit cls); ring. Qed.

Lemma turn_overlap b : b != a -> ⟨x a, x b⟩ <= ρ.
Proof. by move=> ba; apply: (queries_apart cls); rewrite eq_sym. Qed.

(* The crowd of the others beside the own responses, in the head that selects. *)
Lemma turn_rest : ∑_(s | ~~ P s) exp (z s) <= χ * ∑_(s | P s) exp (z s).
Proof.
have [x0 x1] := turn_ξ; have s0 := turn_spread; have M1 := turn_M0; have γ20 := turn_γ2.
have γ10 := turn_γ10; set base := exp (γ1 + γ2 * low); have b0 : 0 < base := exp_pos _.
set top := exp (γ1 * ρ + γ2 * (low + spread)); have t0 : 0 < top := exp_pos _.
have own : base / ξ <= ∑_(s | P s) exp (z s).
  apply: (Rle_trans _ (exp (z (Some (a, τ a k))))); last first.
    apply: (@sum_ge_term _ P (fun s => exp (z s))) => [|s _]; first exact: eqxx.
    by left; exact: exp_pos.
  have -> : base / ξ = exp (γ1 + γ2 * (low + Δ)).
    by rewrite /base /ξ /Rdiv -exp_Ropp -exp_plus -turn_γ2Δ; congr exp; ring.
  apply: exp_mono; rewrite /z /f /= flags_place ltnn turn_x.
  have := ranks_low (ranked a) (queries_gaps cls a) k (fun j => proj1 (queries_rewards cls a j)).
  have : 1 <= INR (N - k.+1) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
  move=> d1 le; have le' : low + Δ <= r a (τ a k) by nra.
  by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ γ20) le'; lra.
have sink : exp (z None) <= top / (1 - ξ).
  have e1 : exp (z None) <= top.
    apply: exp_mono; rewrite /z /f /= dotC dot_zerol.
    have := Rmult_le_pos _ _ γ10 (proj1 ρ0); have sp : 0 <= spread by lra.
    have := Rmult_le_pos _ _ (Rlt_le _ _ γ20) sp.
    have : 0 <= (spread + Δ) * fs by apply: Rmult_le_pos; lra.
    by move=> h1; have := Rmult_le_pos _ _ (Rlt_le _ _ γ20) h1; lra.
  apply: Rle_trans e1 _; apply: (Rmult_le_reg_r (1 - ξ)); first by lra.
  by have -> : top / (1 - ξ) * (1 - ξ) = top; [field; lra | nra].
have few b : b != a -> ∑_j exp (z (Some (b, j))) <= top / (1 - ξ).
  move=> ba; rewrite (sum_reindex predT _ (@perm_inj _ (τ b))).
  apply: (Rle_trans _ (top * ∑_(l < N) ξ ^ l)); last first.
    apply: Rmult_le_compat_l; first by lra.
    have := sum_geometric N ξ; have [p0 p1] := pow_unit N x0 (ltac:(lra) : ξ <= 1).
    move: (∑_(_ < N) _) => s sE; apply: (Rmult_le_reg_r (1 - ξ)); first by lra.
    by rewrite Rinv_l; lra.
  rewrite -sum_scal; apply: sum_le => l _.
  have -> : ξ ^ l = exp (- (INR l * (γ2 * Δ))) by rewrite turn_γ2Δ /ξ -exp_INR; congr exp; ring.
  rewrite -exp_plus; apply: exp_mono; rewrite /z /f /=.
  have := ranks_high (ranked b) (queries_gaps cls b) l (fun j => proj2 (queries_rewards cls b j)).
  move=> place; have p1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ γ20) place.
  have p2 := Rmult_le_compat_l _ _ _ γ10 (turn_overlap ba).
  have f0 : 0 <= flags (τ b) k (τ b l) by rewrite /flags; case: ifP; lra.
  have p3 : 0 <= 2 * γ2 * (spread + Δ) * flags (τ b) k (τ b l) by apply: Rmult_le_pos f0; nra.
  by lra.
rewrite (rest_sum a k) ; apply: (Rle_trans _ (INR M * (top / (1 - ξ)))).
  have -> : INR M * (top / (1 - ξ)) = top / (1 - ξ) + ∑_(b | b != a) (top / (1 - ξ)).
    by rewrite sum_but; ring.
  by apply: Rplus_le_compat sink _; apply: sum_le => b; exact: few.
have χ0 : 0 <= χ.
  apply: Rmult_le_pos; first by apply: Rmult_le_pos; [lra | left; apply: Rinv_0_lt_compat; lra].
  by apply: Rmult_le_pos; [nra | left; apply: Rinv_0_lt_compat; lra].
apply: Rle_trans (Rmult_le_compat_l _ _ _ χ0 own); right.
by rewrite /top turn_γ1 -/base /χ; field; repeat split; lra.
Qed.

Lemma turn_χ : 0 <= χ /\ χ * spread <= Δ / 72 /\ χ <= ξ / 8.
Proof.
have [x0 x1] := turn_ξ; have s0 := turn_spread.
have w0 : 0 <= ξ * ξ / (1 - ξ).
  by apply: Rmult_le_pos; [nra | left; apply: Rinv_0_lt_compat; lra].
have w1 : ξ * ξ / (1 - ξ) <= ξ / 8.
  apply: (Rmult_le_reg_r (1 - ξ)); first by lra.
  by rewrite (_ : _ / (1 - ξ) * (1 - ξ) = ξ * ξ); [nra | field; lra].
have d0 : 0 <= Δ / spread by apply: Rmult_le_pos; [lra | left; apply: Rinv_0_lt_compat; lra].
have d1 : Δ / spread <= 1.
  apply: (Rmult_le_reg_r spread); first by lra.
  by rewrite (_ : Δ / spread * spread = Δ); [lra | field; lra].
split; first exact: Rmult_le_pos.
split; last by rewrite /χ; have := Rmult_le_compat_r _ _ _ w0 d1; lra.
have -> : χ * spread = Δ * (ξ * ξ / (1 - ξ)) by rewrite /χ; field; lra.
by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ Δ0) w1; nra.
Qed.

Lemma turn_D0 : 0 <= D0.
Proof. by apply: Rle_trans (queries_lengths cls a k); exact: vnorm_ge0. Qed.

Lemma turn_distances (s t : T) : ‖Y s - Y t‖ <= D0.
Proof.
have zero (v : vec 'I_dy) : ‖vzero - v‖ = ‖v‖ /\ ‖v - vzero‖ = ‖v‖.
  split; last by congr vnorm; apply: vec_eq => c; rewrite /vsub /vzero; ring.
  rewrite (_ : (vzero - v = - 1 *: v)%V) ?vnorm_scal ?Rabs_Ropp ?Rabs_R1 ?Rmult_1_l //.
  by apply: vec_eq => c; rewrite /vsub /vscal /vzero; ring.
case: s t => [[b j]|] [[c l]|] /=.
- exact: queries_distances cls _ _ _ _.
- by rewrite (zero _).2; exact: queries_lengths cls _ _.
- by rewrite (zero _).1; exact: queries_lengths cls _ _.
rewrite (zero _).1 (_ : vzero = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 ?Rmult_0_l; first exact: turn_D0.
by apply: vec_eq => c; rewrite /vscal /vzero; ring.
Qed.

Let own := winner_weights γ2 Δ spread (r a) (flags (τ a) k).

Lemma turn_own d (V : T -> vec 'I_d) :
  comb (softmax_on P z) V = comb own (fun j => V (Some (a, j))).
Proof.
apply: (part_mean k (c := γ1)) => j; rewrite /z /f /= turn_x; ring.
Qed.

Lemma turn_crowd : share (winner_crowd γ2 Δ spread N k) <= ξ.
Proof.
have [x0 x1] := turn_ξ; have s0 := turn_spread; have γ20 := turn_γ2.
have xE : exp (- γ2 * Δ) = ξ by rewrite /ξ -turn_γ2Δ; congr exp; ring.
have -> : ξ = share (ξ / (1 - ξ)) by rewrite /share; field; split; lra.
rewrite /winner_crowd xE; set m := (N - k)%N.
have [p0 p1] := pow_unit m x0 (ltac:(lra) : ξ <= 1).
have [q0 q1] := pow_unit k x0 (ltac:(lra) : ξ <= 1).
have e1 : exp (- γ2 * (spread + INR (m + 1) * Δ)) <= ξ ^ m.
  rewrite -exp_INR; apply: exp_mono; rewrite plus_INR -turn_γ2Δ [INR 1]/=.
  have := INR_ge0 m; have sp : 0 <= spread by lra.
  by have := Rmult_le_pos _ _ (Rlt_le _ _ γ20) sp; have := Rmult_lt_0_compat _ _ γ20 Δ0; lra.
have e0 := exp_pos (- γ2 * (spread + INR (m + 1) * Δ)); set e := exp _ in e0 e1 *.
have i0 : 0 < / (1 - ξ) by apply: Rinv_0_lt_compat; lra.
have pm : ξ ^ m <= ξ.
  have : (0 < m)%N by rewrite subn_gt0.
  case: m {p0 p1 e1 e e0} => // n _; rewrite -tech_pow_Rmult.
  by have [_ n1] := pow_unit n x0 (ltac:(lra) : ξ <= 1); nra.
apply: share_le.
  apply: Rplus_le_le_0_compat; first by apply: Rmult_le_pos; lra.
  by apply: Rmult_le_pos; [lra | apply: Rmult_le_pos; lra].
have -> : ξ / (1 - ξ) = (ξ - ξ ^ m) / (1 - ξ) + ξ ^ m * (1 / (1 - ξ)) by field; lra.
apply: Rplus_le_compat_l; apply: Rmult_le_compat => //; first by lra.
- by apply: Rmult_le_pos; lra.
by apply: Rmult_le_compat_r; lra.
Qed.

Lemma turn_winner : ‖comb (softmax z) Y - y a (τ a k)‖ <= D0 * (5 / 2 * ξ).
Proof.
have [x0 x1] := turn_ξ; have D00 := turn_D0; have [c0 [_ c8]] := turn_χ.
have far : ‖comb (softmax z) Y - comb (softmax_on P z) Y‖ <= D0 * share χ.
  apply: (mean_to_part (w := Some (a, k))) => [|s t|]; first exact: eqxx.
    exact: turn_distances.
  exact: turn_rest.
have near := winner_error k (fun j l => queries_distances cls a a j l) turn_γ2 Δ0
  (queries_gaps cls a) (ranked a) (queries_rewards cls a).
rewrite turn_own in far; set m := comb (softmax z) Y in far *.
set o := comb own _ in far; rewrite -/own -/o in near.
have -> : (m - y a (τ a k) = (m - o) + (o - y a (τ a k)))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _.
have := Rmult_le_compat_l _ _ _ D00 turn_crowd.
have := Rmult_le_compat_l _ _ _ D00 (share_le_self c0).
by have := Rmult_le_compat_l _ _ _ D00 c8; have := Rmult_le_pos _ _ D00 (Rlt_le _ _ x0); lra.
Qed.

Let reward (s : T) : R := at_r r s + low * at_b s.

Lemma turn_reward s : low <= reward s <= low + spread.
Proof.
have s0 := turn_spread; rewrite /reward; case: s => [[b j]|] /=; last by lra.
by have := queries_rewards cls b j; lra.
Qed.

Lemma turn_best : Rabs (∑_s (softmax z s * reward s) - r a (τ a k)) <= Δ / 4.
Proof.
have [x0 x1] := turn_ξ; have s0 := turn_spread; have [c0 [c72 _]] := turn_χ.
pose V (s : T) : vec 'I_1 := fun _ => reward s.
have norm1 (v : vec 'I_1) : ‖v‖ = Rabs (v ord0).
  by rewrite /vnorm /sqnorm /dot sum_ord1 -[_ * _]/(Rsqr (v ord0)) sqrt_Rsqr_abs.
have far : ‖comb (softmax z) V - comb (softmax_on P z) V‖ <= spread * share χ.
  apply: (mean_to_part (w := Some (a, k))) => [|s t|]; first exact: eqxx.
    rewrite norm1 /vsub /V; have := turn_reward s; have := turn_reward t.
    by move=> ? ?; apply: Rabs_le; lra.
  exact: turn_rest.
rewrite turn_own norm1 /vsub /comb /V in far.
have hot : ln 5 <= γ2 * (3 / 4 * Δ).
  have -> : γ2 * (3 / 4 * Δ) = 3 / 4 * g by rewrite -turn_γ2Δ; ring.
  have l9 : INR 3 * ln 9 = ln 729 by rewrite -ln_pow; [congr ln; ring | lra].
  have l5 : INR 4 * ln 5 = ln 625 by rewrite -ln_pow; [congr ln; ring | lra].
  have : ln 625 < ln 729 by apply: ln_increasing; lra.
  by move: l9 l5; rewrite /=; lra.
have gaps' : spaced (3 / 4 * Δ) (r a).
  by move=> j l jl; have := queries_gaps cls a jl; lra.
have range' j : low <= r a j <= low + (spread + Δ / 4) by have := queries_rewards cls a j; lra.
have := top_near k turn_γ2 (ltac:(lra) : 0 < 3 / 4 * Δ) gaps' (ranked a) range' hot.
have sE : spread + Δ / 4 + 3 / 4 * Δ = spread + Δ by field.
rewrite (eq_bigr (fun j => own j * r a j)) => [|j _]; last by rewrite /own /winner_weights sE.
set m := ∑_s _ in far *; set o := ∑_j _ in far *; rewrite -/o => near.
have oE : ∑_j (own j * reward (Some (a, j))) = ∑_j (own j * r a j).
  by apply: eq_bigr => j _; rewrite /reward /=; ring.
have := Rmult_le_compat_l _ _ _ (ltac:(lra) : 0 <= spread) (share_le_self c0).
by move: far near; rewrite /o oE; split_Rabs; lra.
Qed.

Lemma turn_spread_Z : 0 <= spread_Z.
Proof. by have := queries_scores cls a a k; lra. Qed.

Lemma turn_γβ : exp (γβ * ρ + (low_Z + spread_Z)) = exp (- h) / INR M * exp (γβ + low_Z).
Proof.
have M1 := turn_M0; rewrite /Rdiv -[/ INR M](exp_ln (/ INR M)); last first.
  by apply: Rinv_0_lt_compat; lra.
rewrite ln_Rinv -?exp_plus; last by lra.
by congr exp; rewrite /γβ /queries_γβ; field; lra.
Qed.

Lemma turn_γβ0 : 0 <= γβ.
Proof.
have M1 := turn_M0; have s0 := turn_spread_Z.
have l0 : 0 <= ln (INR M).
  case: M1 => [lt|<-]; last by rewrite ln_1; lra.
  by left; rewrite -ln_1; apply: ln_increasing; lra.
by apply: Rmult_le_pos; [lra | left; apply: Rinv_0_lt_compat; lra].
Qed.

Lemma turn_sink_field : q None <= γβ * ρ + (low_Z + spread_Z).
Proof.
have C0 : 0 <= C * fs by apply: Rmult_le_pos => //; rewrite /C; have := turn_spread_Z; lra.
have zz : ‖(vzero : vec 'I_dy)‖² = 0 by rewrite /sqnorm dot_zerol.
rewrite /q /f /Y /= zz !(dotC _ vzero) !dot_zerol.
by have := Rmult_le_pos _ _ turn_γβ0 (proj1 ρ0); have := queries_zero cls; lra.
Qed.

(* The crowd of the others beside the live responses, in the head that weighs. *)
Lemma turn_rest_field : ∑_(s | ~~ P s) exp (q s)
  <= INR N / INR (N - k) * exp (- h) * ∑_(s | P s) exp (q s).
Proof.
have M1 := turn_M0; have N1 := turn_N0; have s0 := turn_spread_Z; have γ0 := turn_γβ0.
have C0 : 0 <= C by rewrite /C; lra.
set t := exp (γβ * ρ + (low_Z + spread_Z)); have t0 : 0 < t := exp_pos _.
have Nk : 0 < INR (N - k) by apply: INR_gt0; rewrite subn_gt0.
have live : INR (N - k) * exp (γβ + low_Z) <= ∑_(s | P s) exp (q s).
  rewrite (part_sum a k) -(sum_live (τ a) k).
  pose L : pred 'I_N := fun j => (k <= ((τ a)^-1%g j : 'I_N))%N.
  rewrite -[X in X <= _]/(∑_(j | L j) exp (γβ + low_Z)).
  rewrite [X in _ <= X](sum_ID L predT) /=; set rest := ∑_(j | ~~ _) _.
  have rest0 : 0 <= rest by apply: sum_ge0 => j _; left; exact: exp_pos.
  rewrite -[X in X <= _]Rplus_0_r; apply: Rplus_le_compat => //.
  apply: sum_le => j lj; apply: exp_mono; rewrite /q /f /= turn_x /flags.
  have -> : (((τ a)^-1%g j : 'I_N) < k)%N = false by rewrite ltnNge; apply/negbF; exact: lj.
  by have := queries_scores cls a a j; rewrite /reduced; lra.
have few b : b != a -> ∑_j exp (q (Some (b, j))) <= INR N * t.
  move=> ba; rewrite -sum_const_ord; apply: sum_le => j _; apply: exp_mono; rewrite /q /f /=.
  have := Rmult_le_compat_l _ _ _ γ0 (turn_overlap ba).
  have f0 : 0 <= C * flags (τ b) k j by apply: Rmult_le_pos => //; rewrite /flags; case: ifP; lra.
  by have := queries_scores cls a b j; rewrite /reduced; lra.
rewrite (rest_sum a k); apply: (Rle_trans _ (INR M * (INR N * t))).
  apply: (Rle_trans _ (INR N * t + ∑_(b | b != a) (INR N * t))).
    apply: Rplus_le_compat; last by apply: sum_le => b; exact: few.
    by apply: Rle_trans (exp_mono turn_sink_field) _; rewrite -/t; nra.
  by rewrite sum_but; lra.
have c0 : 0 <= INR N / INR (N - k) * exp (- h).
  apply: Rmult_le_pos; last by left; exact: exp_pos.
  by apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
apply: Rle_trans (Rmult_le_compat_l _ _ _ c0 live); right.
by rewrite /t turn_γβ; field; lra.
Qed.

Lemma turn_field : ‖comb (softmax q) Y - tail_mean W (x a) (y a) (τ a) k‖
  <= D0 * ((INR N - 1) * exp (- h)).
Proof.
have D00 := turn_D0; have N1 := turn_N0; have e0 := exp_pos (- h).
have Nk : 2 <= INR (N - k) by rewrite -[2]/(INR 2); apply: INR_le; rewrite ltn_subRL addn1.
set p := INR N / INR (N - k) * exp (- h).
have i0 : 0 < / INR (N - k) by apply: Rinv_0_lt_compat; lra.
have p0 : 0 <= p by apply: Rmult_le_pos; [apply: Rmult_le_pos; lra | lra].
have far : ‖comb (softmax q) Y - comb (softmax_on P q) Y‖ <= D0 * share p.
  apply: (mean_to_part (w := Some (a, k))) => [|s t|]; first exact: eqxx.
    exact: turn_distances.
  exact: turn_rest_field.
have near := field_error (τ a) k (fun j l => queries_distances cls a a j l) C
  (queries_scores cls a a).
have E : comb (softmax_on P q) Y = comb (field_weights W C (x a) (y a) (flags (τ a) k)) (y a).
  apply: (part_mean k (c := γβ)) => j; rewrite /q /f /Y /= turn_x /reduced.
  by set w := dot _ _; set v := sqnorm _; ring.
rewrite E in far; set m := comb (softmax q) Y in far *.
set o := comb _ (y a) in far near; set c := tail_mean _ _ _ _ _ in near *.
have -> : (m - c = (m - o) + (o - c))%V by apply: vec_eq => l; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _.
have cE : field_crowd C spread_Z N k = INR k / INR (N - k) * exp (- h).
  by rewrite /field_crowd /C; congr (_ * exp _); ring.
have c0 : 0 <= field_crowd C spread_Z N k.
  by rewrite cE; apply: Rmult_le_pos; [apply: Rmult_le_pos; [exact: INR_ge0 | lra] | lra].
have sum : p + field_crowd C spread_Z N k <= (INR N - 1) * exp (- h).
  rewrite cE /p -Rmult_plus_distr_r; apply: Rmult_le_compat_r; first by lra.
  apply: (Rmult_le_reg_r (INR (N - k))); first by lra.
  have -> : (INR N / INR (N - k) + INR k / INR (N - k)) * INR (N - k) = INR N + INR k.
    by field; lra.
  have kE : INR k = INR N - INR (N - k).
    by rewrite minus_INR; [ring | apply/leP; exact: ltnW].
  by rewrite kE; nra.
have := Rmult_le_compat_l _ _ _ D00 (share_le_self p0).
have := Rmult_le_compat_l _ _ _ D00 (share_le_self c0).
by have := Rmult_le_compat_l _ _ _ D00 sum; lra.
Qed.

(* The layer moves the flags on by one place. *)
Lemma turn_flags B j : 3 / 2 + 2 * spread / Δ <= B ->
  flags (τ a) k j
  + clip (clip_at Δ B (∑_s (softmax z s * reward s)) (r a j) (flags (τ a) k j))
  = flags (τ a) k.+1 j.
Proof.
move=> BR; have near := turn_best; set best := ∑_s _ in near *.
have range l : r a l - best <= spread.
  have := @mean_reward _ (softmax z) reward low spread (Some (a, l)) (fun s => Rlt_le _ _
    (softmax_gt0 _ _)) (softmax_sum _ None) turn_reward.
  by rewrite -/best /reward /=; lra.
rewrite -(permKV (τ a) j); set l : 'I_N := (τ a)^-1%g j; rewrite !flags_place ltnS.
case: (ltngtP l k) => [lk|kl|/val_inj ->].
- by rewrite (clip_flagged Δ0 (range (τ a l)) BR); lra.
- rewrite clip_other //; first by lra.
  have := ranks_gap (ranked a) (queries_gaps cls a) (ltnW kl).
  have : 1 <= INR (l - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
  by move: near; split_Rabs; nra.
by rewrite clip_winner //; lra.
Qed.
End Turn.
