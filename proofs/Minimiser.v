(* Chapter 2, continued: when the loss has a minimiser. *)

From Coq Require Import Reals Lra Classical.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Smoothness NoMinimiser.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Compactness, without choice ────────────────────────────────────────────────────────────── *)

(* Numbers that are at least 0 have an infimum, which some of them come near to. *)
Lemma infimum (E : R -> Prop) : (exists e, E e) -> (forall e, E e -> 0 <= e) ->
  exists ι, (forall e, E e -> ι <= e) /\ forall ε, 0 < ε -> exists e, E e /\ e <= ι + ε.
Proof.
move=> [e0 E0] ge0; have [||s [up least]] := @completeness (fun t => E (- t)).
- by exists 0 => t /ge0; lra.
- by exists (- e0); rewrite Ropp_involutive.
exists (- s); split=> [e Ee|ε ε0].
  by have := up (- e); rewrite Ropp_involutive => /(_ Ee); lra.
apply: NNPP => no; suff : s <= s - ε by lra.
apply: least => t Et; apply: Rnot_lt_le => lt; apply: no; exists (- t); split=> //; lra.
Qed.

Lemma fine_enough ε : 0 < ε -> exists k, / INR k.+1 <= ε.
Proof.
move=> ε0; have [k [lt /ltP k0]] := archimed_cor1 ε ε0; exists k.
apply: Rle_trans (Rlt_le _ _ lt); apply: Rinv_le_contravar; first exact: INR_gt0.
exact: INR_le.
Qed.

Lemma far_out a : exists k, a <= INR k.
Proof.
case: (Rle_lt_dec a 0) => a0; first by exists 0%N.
have [k le] := fine_enough (Rinv_0_lt_compat _ a0); exists k.+1; move: le (INR_gt0 (ltn0Sn k)).
move: (INR k.+1) => K le K0; have := Rmult_le_compat_l (a * K) _ _ _ le.
have -> : a * K * / K = a by field; lra.
by have -> : a * K * / a = K; [field; lra | apply; nra].
Qed.

Section Cluster.
Variable I : finType.
Implicit Types (S : nat -> vec I -> Prop) (u v : vec I).

Definition decreasing S := forall j k v, (j <= k)%N -> S k v -> S j v.

(* Non-empty bounded sets that decrease have points near each other in one coordinate … *)
Lemma cluster_one S a B : (forall k, exists v, S k v) -> decreasing S ->
  (forall k v, S k v -> Rabs (v a) <= B) ->
  exists t, forall k ε, 0 < ε -> exists v, S k v /\ Rabs (v a - t) <= ε.
Proof.
move=> some dec le; pose E t := forall k, exists v, S k v /\ t <= v a.
have [||t [up least]] := @completeness E.
- by exists B => t /(_ 0%N) [v [/le + tv]]; split_Rabs; lra.
- exists (- B) => k; have [v Sv] := some k; exists v; split=> //.
  by have := le k v Sv; split_Rabs; lra.
exists t => k ε ε0.
have [K lt] : exists K, forall v, S K v -> v a < t + ε.
  apply: NNPP => no; suff : t + ε <= t by lra.
  apply: up => K; apply: NNPP => no'; apply: no; exists K => v Sv.
  by apply: Rnot_le_lt => ge; apply: no'; exists v.
have [s [Es ts]] : exists s, E s /\ t - ε < s.
  apply: NNPP => no; suff : t <= t - ε by lra.
  apply: least => s Es; apply: Rnot_lt_le => lt'; apply: no; exists s; split=> //.
have [v [Sv sv]] := Es (maxn k K); exists v; split; first exact: dec (leq_maxl _ _) Sv.
by have := lt v (dec _ _ _ (leq_maxr k K) Sv); split_Rabs; lra.
Qed.

(* … in several … *)
Lemma cluster_some (s : seq I) B : forall S, (forall k, exists v, S k v) -> decreasing S ->
  (forall k v a, S k v -> Rabs (v a) <= B) ->
  exists u, forall k ε, 0 < ε ->
    exists v, S k v /\ forall a, a \in s -> Rabs (v a - u a) <= ε.
Proof.
elim: s => [|a s IH] S some dec le.
  by exists vzero => k ε _; have [v Sv] := some k; exists v.
have [t near] := cluster_one some dec (fun k v => le k v a).
have [|j k v jk [Sv vt]|k v b [Sv _]|u nearu] :=
    IH (fun k v => S k v /\ Rabs (v a - t) <= / INR k.+1).
- by move=> k; apply: near; apply: Rinv_0_lt_compat; exact: INR_gt0.
- split; first exact: dec jk Sv.
  by apply: Rle_trans vt _; apply: Rinv_le_contravar; [exact: INR_gt0 | exact: INR_le].
- exact: le Sv.
exists (fun b => if b == a then t else u b) => k ε ε0.
have [K fine] := fine_enough ε0.
have [v [[Sv vt] vu]] := nearu (maxn k K) ε ε0; exists v.
split; first exact: dec (leq_maxl _ _) Sv.
move=> b; rewrite inE; case: (b =P a) => [->|_] /=; last exact: vu.
move=> _; apply: Rle_trans vt _; apply: Rle_trans fine.
apply: Rinv_le_contravar; [exact: INR_gt0 | apply: INR_le]; exact: leq_maxr.
Qed.

Lemma coordinate_le v a : Rabs (v a) <= ‖v‖.
Proof.
rewrite -(Rabs_right (‖v‖)); last exact: Rle_ge (vnorm_ge0 v).
apply: Rsqr_le_abs_0; rewrite /Rsqr vnorm_sqr.
exact: (@sum_ge_term I predT (fun a => v a * v a) a isT (fun a _ => Rle_0_sqr (v a))).
Qed.

(* … and in all: there is a point that each of them comes near to. *)
Lemma cluster S B : (forall k, exists v, S k v) -> decreasing S ->
  (forall k v, S k v -> ‖v‖ <= B) ->
  exists u, forall k ε, 0 < ε -> exists v, S k v /\ ‖v - u‖ <= ε.
Proof.
move=> some dec le.
have [k v a Sv|u near] := cluster_some (enum I) (B := B) some dec.
  exact: Rle_trans (coordinate_le v a) (le k v Sv).
exists u => k ε ε0; pose c := INR #|I| + 1.
have c1 : 1 <= c by have := INR_ge0 #|I|; rewrite /c; lra.
have [v [Sv vu]] := near k (ε / c) (Rdiv_lt_0_compat _ _ ε0 (Rlt_le_trans _ _ _ Rlt_0_1 c1)).
exists v; split=> //; apply: Rsqr_incr_0_var; last by lra.
rewrite /Rsqr vnorm_sqr; apply: (Rle_trans _ (∑_(a : I) (ε / c * (ε / c)))).
  apply: sum_le => a _; apply: Rsqr_le_abs_1.
  rewrite (Rabs_right (ε / c)); first by apply: vu; rewrite mem_enum.
  by apply: Rle_ge; apply: Rlt_le; apply: Rdiv_lt_0_compat; lra.
rewrite sum_const; have ic : / c <= 1 by rewrite -Rinv_1; apply: Rinv_le_contravar; lra.
have i0 : 0 < / c by apply: Rinv_0_lt_compat; lra.
have -> : INR #|I| * (ε / c * (ε / c)) = ε * ε * (/ c * (c - 1) * / c).
  by rewrite /c; field; rewrite /c in c1; lra.
rewrite -[X in _ <= X]Rmult_1_r; apply: Rmult_le_compat_l; first by nra.
have -> : / c * (c - 1) = 1 - / c by field; lra.
by nra.
Qed.

End Cluster.

(* ── A convex function that is steep along each ray, or constant along its line ─────────────── *)

Section Attained.
Variable I : finType.
Variables (F : vec I -> R) (D : vec I -> Prop).
Implicit Types (u v z w : vec I).

(* Orthogonal to all of D: the directions in which F does not change. *)
Definition flat z := forall d, D d -> ⟨z, d⟩ = 0.

Hypothesis F_ge0 : forall v, 0 <= F v.
Hypothesis F_flat : forall v z, flat z -> F (v + z)%V = F v.
Hypothesis F_steep : forall d, D d -> exists b, forall v, b - 2 * ⟨v, d⟩ <= F v.
Hypothesis F_tangent : forall u, exists g, forall v, F u + ⟨g, v - u⟩ <= F v.
Hypothesis D_flat : forall v, (forall d, D d -> 0 <= ⟨v, d⟩) -> flat v.

Lemma flat_scal c z : flat z -> flat (c *: z)%V.
Proof. by move=> z0 d /z0; rewrite dot_scall => ->; ring. Qed.

(* Sublevel sets are bounded up to flat directions. *)
Lemma level_bounded c : exists B, forall v, F v <= c -> exists z, flat z /\ ‖v + z‖ <= B.
Proof.
apply: NNPP => no.
pose S (j : nat) w := exists r, INR j.+2 <= r /\ F (r *: w)%V <= c /\ ‖w‖ = 1 /\
  forall z, flat z -> r * r - 1 <= ‖r *: w + z‖².
have some j : exists w, S j w.
  have [v [vc far]] : exists v, F v <= c /\ forall z, flat z -> INR j.+2 < ‖v + z‖.
    apply: NNPP => no'; apply: no; exists (INR j.+2) => v vc.
    apply: NNPP => no''; apply: no'; exists v; split=> // z z0.
    by apply: Rnot_le_lt => le; apply: no''; exists z.
  have [||ι [low near]] := @infimum (fun e => exists z, flat z /\ e = ‖v + z‖²).
  - by exists (‖v + vzero‖²), vzero; split=> // d _; exact: dot_zerol.
  - by move=> e [z [_ ->]]; exact: sqnorm_ge0.
  have [_ [[z [z0 ->]] le]] := near 1 Rlt_0_1.
  have r0 : 0 < ‖v + z‖ by apply: Rle_lt_trans (far z z0); exact: INR_ge0.
  have E : (‖v + z‖ *: (/ ‖v + z‖ *: (v + z)) = v + z)%V.
    by apply: vec_eq => a; rewrite /vscal; field; lra.
  exists (/ ‖v + z‖ *: (v + z))%V, (‖v + z‖); rewrite E.
  split; first exact: Rlt_le (far z z0).
  split; first by rewrite F_flat.
  split.
    rewrite vnorm_scal Rabs_right; first by field; lra.
    by apply: Rle_ge; apply: Rlt_le; exact: Rinv_0_lt_compat.
  move=> z' z'0; rewrite vnorm_sqr; suff : ι <= ‖v + z + z'‖² by lra.
  apply: low; exists (z + z')%V; split.
    by move=> d Dd; rewrite dot_addl (z0 d Dd) (z'0 d Dd); ring.
  by congr sqnorm; apply: vec_eq => a; rewrite /vadd; ring.
have [|k w [_ [_ [_ [-> _]]]]|u near] := cluster (B := 1) some; [|by lra|].
  move=> j k w jk [r [kr rest]]; exists r; split=> //; apply: Rle_trans kr; exact: INR_le.
have u0 : flat u.
  apply: D_flat => d Dd; apply: Rnot_lt_le => neg; have [b steep] := F_steep Dd.
  pose δ := - ⟨u, d⟩; have δ0 : 0 < δ by rewrite /δ; lra.
  have n0 := vnorm_ge0 d.
  have [k far] := far_out ((c - b) / δ).
  have ε0 : 0 < δ / (2 * (‖d‖ + 1)) by apply: Rdiv_lt_0_compat; lra.
  have [w [[r [kr [rc _]]] wu]] := near k _ ε0.
  have : ⟨w, d⟩ <= - δ / 2.
    have -> : ⟨w, d⟩ = ⟨w - u, d⟩ - δ by rewrite dot_subl /δ; ring.
    have := Rmult_le_compat_r _ _ _ n0 wu.
    have : δ / (2 * (‖d‖ + 1)) * ‖d‖ <= δ / 2.
      have -> : δ / (2 * (‖d‖ + 1)) * ‖d‖ = δ / 2 - δ / (2 * (‖d‖ + 1)) by field; lra.
      by lra.
    by have := dot_le (w - u)%V d; lra.
  have := steep (r *: w)%V; rewrite dot_scall => low wd.
  have r1 : (c - b) / δ + 1 <= r by move: kr; rewrite !INR_S; lra.
  have r2 : 2 <= r by move: kr; rewrite !INR_S; have := INR_ge0 k; lra.
  have : c - b < r * δ.
    have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ δ0) r1.
    have -> : ((c - b) / δ + 1) * δ = c - b + δ by field; lra.
    by lra.
  by have := Rmult_le_compat_l r _ _ ltac:(lra) wd; lra.
have [w [[r [r2 [_ [_ far]]]] wu]] := near 0%N (/ 2) ltac:(lra).
have {}r2 : 2 <= r by move: r2; rewrite !INR_S /=; lra.
have := far _ (flat_scal (- r) u0).
have -> : (r *: w + (- r) *: u = r *: (w - u))%V.
  by apply: vec_eq => a; rewrite /vadd /vscal /vsub; ring.
rewrite sqnorm_scal -vnorm_sqr; have n0 := vnorm_ge0 (w - u)%V.
have : ‖w - u‖ * ‖w - u‖ <= / 4 by nra.
by nra.
Qed.

(* Sublevel sets are closed. *)
Lemma level_closed c u :
  (forall ε, 0 < ε -> exists v, ‖v - u‖ <= ε /\ F v <= c + ε) -> F u <= c.
Proof.
move=> near; apply: Rnot_lt_le => lt; have [g tangent] := F_tangent u.
have n0 := vnorm_ge0 g; pose ε := (F u - c) / (2 * (‖g‖ + 1)).
have ε0 : 0 < ε by apply: Rdiv_lt_0_compat; lra.
have E : ε * ‖g‖ + ε = (F u - c) / 2 by rewrite /ε; field; lra.
have [v [vu Fv]] := near ε ε0; have := tangent v; have := Rmult_le_compat_l _ _ _ n0 vu.
by have := dot_abs_le g (v - u)%V; split_Rabs; lra.
Qed.

Lemma attained : exists u, forall v, F u <= F v.
Proof.
have [||ι [low inf]] := @infimum (fun e => exists v, e = F v).
- by exists (F vzero), vzero.
- by move=> e [v ->]; exact: F_ge0.
have [B bounded] := level_bounded (ι + 1).
have [k|j k v jk [vB Fv]|k v [vB _]|u near] :=
    @cluster _ (fun k v => ‖v‖ <= B /\ F v <= ι + / INR k.+1) B; last 1 first.
- exists u => v; apply: (Rle_trans _ ι); last by apply: low; exists v.
  apply: level_closed => ε ε0; have [k fine] := fine_enough ε0.
  by have [w [[_ Fw] wu]] := near k ε ε0; exists w; split=> //; lra.
- have k0 := INR_gt0 (ltn0Sn k); have [_ [[v ->] le]] := inf _ (Rinv_0_lt_compat _ k0).
  have [|z [z0 vz]] := bounded v; last by exists (v + z)%V; rewrite F_flat.
  apply: Rle_trans le _; apply: Rplus_le_compat_l; rewrite -[X in _ <= X]Rinv_1.
  by apply: Rinv_le_contravar; [lra | exact: (@INR_le 1)].
- split=> //; apply: Rle_trans Fv _; apply: Rplus_le_compat_l.
  by apply: Rinv_le_contravar; [exact: INR_gt0 | exact: INR_le].
exact: vB.
Qed.

End Attained.

(* ── The loss ───────────────────────────────────────────────────────────────────────────────── *)

Section Loss.
Variables m n N : nat.
Variables (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}).
Implicit Types W V : mat m n.

Hypothesis ties : forall v : vec 'I_m,
  (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
  forall k l : 'I_N, ⟨v, y (τ k)⟩ = ⟨v, y (τ l)⟩.

(* What the loss is steep along: W changes ⟨Wx, y_τ(k) − y_τ(l)⟩. *)
Definition gaps (d : mat m n) : Prop :=
  exists k l : 'I_N, (k < l)%N /\ d = outer (y (τ k) - y (τ l))%V x.

Lemma gap_dot W k l :
  ⟨W, outer (y (τ k) - y (τ l)) x⟩ = ⟨W *v x, y (τ k)⟩ - ⟨W *v x, y (τ l)⟩.
Proof. by rewrite dotC dot_outer dotC dot_subr. Qed.

Lemma loss_ge0 W : 0 <= loss W x y τ.
Proof. by rewrite loss_pairs; apply: sum_ge0 => k _; exact: ln_1p_ge0 (behind_ge0 _ _ _ _ _). Qed.

Lemma flat_gap V : flat gaps V -> forall k l : 'I_N, ⟨V *v x, y (τ k)⟩ = ⟨V *v x, y (τ l)⟩.
Proof.
move=> V0 k l; case: (ltngtP k l) => [lt|lt|/val_inj ->] //.
  by have := V0 _ (ex_intro _ k (ex_intro _ l (conj lt erefl))); rewrite gap_dot; lra.
by have := V0 _ (ex_intro _ l (ex_intro _ k (conj lt erefl))); rewrite gap_dot; lra.
Qed.

Lemma loss_flat W V : flat gaps V -> loss (W + V) x y τ = loss W x y τ.
Proof.
move=> /flat_gap V0; rewrite !loss_pairs; apply: eq_bigr => k _; congr (ln (1 + _)).
apply: eq_bigr => l _; congr exp; rewrite !pl_shift_reduced /reduced mulmv_add !dot_addl (V0 l k).
by ring.
Qed.

Lemma loss_steep d : gaps d -> exists b, forall W, b - 2 * ⟨W, d⟩ <= loss W x y τ.
Proof.
case=> k [l [kl ->]]; exists (‖y (τ k)‖² - ‖y (τ l)‖²) => W.
apply: Rle_trans (loss_pair x y τ W kl); rewrite gap_dot !pl_shift_reduced /reduced.
set t := _ - ‖W *v x‖² - _; have e0 := exp_pos t.
apply: (Rle_trans _ t); first by rewrite /t; lra.
by rewrite -{1}(ln_exp t); apply: Rlt_le; apply: ln_increasing; lra.
Qed.

Lemma loss_tangent_at U : exists G, forall W, loss U x y τ + ⟨G, W - U⟩ <= loss W x y τ.
Proof.
exists (gradient U x y τ) => W; have := loss_tangent U (W - U)%V x y τ.
by have -> : (U + (W - U) = W)%V by apply: vec_eq => p; rewrite /vadd /vsub; ring.
Qed.

Lemma gaps_flat V : (forall d, gaps d -> 0 <= ⟨V, d⟩) -> flat gaps V.
Proof.
move=> ge0 d [k [l [kl ->]]]; rewrite gap_dot (ties (v := (V *v x)%V) _ k l); first by ring.
move=> i j ij; have := ge0 _ (ex_intro _ i (ex_intro _ j (conj ij erefl))).
by rewrite gap_dot; lra.
Qed.

End Loss.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim pl-no-minimiser, part attained; for every x. *)
Theorem pl_no_minimiser_attained : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  (forall v : vec 'I_m, (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
    forall k l : 'I_N, ⟨v, y (τ k)⟩ = ⟨v, y (τ l)⟩) ->
  exists W₀ : mat m n, forall W, loss W₀ x y τ <= loss W x y τ.
Proof.
move=> m n N x y τ ties; apply: (attained (D := gaps x y τ)).
- exact: loss_ge0.
- exact: loss_flat.
- exact: loss_steep.
- exact: loss_tangent_at.
exact: gaps_flat.
Qed.

(* Claim pl-no-minimiser, part attained: sublevel sets are closed, and bounded up to directions in
   which L is constant. *)
Theorem pl_no_minimiser_sublevel : forall (m n N : nat) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}),
  (forall v : vec 'I_m, (forall k l : 'I_N, (k < l)%N -> ⟨v, y (τ l)⟩ <= ⟨v, y (τ k)⟩) ->
    forall k l : 'I_N, ⟨v, y (τ k)⟩ = ⟨v, y (τ l)⟩) ->
  forall c : R,
  (forall W : mat m n,
    (forall ε, 0 < ε -> exists V : mat m n, ‖V - W‖ <= ε /\ loss V x y τ <= c) ->
    loss W x y τ <= c) /\
  (exists B : R, forall W : mat m n, loss W x y τ <= c -> exists V : mat m n, ‖W + V‖ <= B /\
    forall (U : mat m n) (t : R), loss (U + t *: V) x y τ = loss U x y τ).
Proof.
move=> m n N x y τ ties c; split=> [W near|].
  apply: (level_closed (F := fun W => loss W x y τ)); first exact: loss_tangent_at.
  by move=> ε ε0; have [V [VW Vc]] := near ε ε0; exists V; split=> //; lra.
have [|||B bounded] :=
  level_bounded (F := fun W : mat m n => loss W x y τ) (D := gaps x y τ) _ _ _ c.
- exact: loss_flat.
- exact: loss_steep.
- exact: gaps_flat.
exists B => W /bounded [V [V0 WV]]; exists V; split=> // U t.
by apply: loss_flat; exact: flat_scal.
Qed.
