(* Chapter 13, Depth is not the price of ranking: three attention layers of one head each make the
   gradient step for every N, if tokens carry one-hot positions. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Temperature Block BlockErrors Turns Elsewhere DepthBlocks.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* 1 where r_j > r_i: the better responses. *)
Definition better {N} (r : 'I_N -> R) (i j : 'I_N) : R := if Rlt_dec (r i) (r j) then 1 else 0.

Section Run.
Variables (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R).
Hypotheses (N0 : (0 < N)%N) (Δ0 : 0 < Δ).
Hypothesis gaps : spaced (3 / 4 * Δ) r.
Hypothesis range : forall j, low <= r j <= high.

Let slots (i a : 'I_N) : R := if a == i then r i - low else 0.
Let means (i : 'I_N) := comb (field_weights W C x y (better r i)) y.

Lemma slot_value i a :
  0 + relu (r i + (high - low) * (if a == i then 1 else 0) - high) = slots i a.
Proof.
have := range i; rewrite /slots /relu => ri; case: (a == i).
  by rewrite Rmax_right; lra.
by rewrite Rmax_left; lra.
Qed.

Lemma board_value a : ∑_j slots j a = r a - low.
Proof.
rewrite (eq_bigr (fun j => if j == a then r a - low else 0)) ?sum_delta // => j _.
by rewrite /slots eq_sym; case: eqP => [->|].
Qed.

Lemma mask_value i a : 0 + clip (2 * (0 + ∑_j slots j a - (r i - low)) / Δ - 1 / 2) = better r i a.
Proof.
rewrite board_value Rplus_0_l (_ : 0 + (r a - low) - (r i - low) = r a - r i); last by ring.
apply: constant_depth_comparison => //; case: (eqVneq a i) => [->|ai]; first by left.
by right; exact: gaps.
Qed.

(* After two blocks, and after all four. *)
Lemma cd_run_two :
  run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r)
  = cd_state x y r slots (fun _ a => r a - low) (better r) (fun _ => vzero) (fun _ => vzero).
Proof.
rewrite /run /= cd_spread_step cd_rank_step //; congr cd_state.
- by do 2 apply: functional_extensionality => ?; exact: slot_value.
- apply: functional_extensionality => i; apply: functional_extensionality => a.
  by rewrite -(board_value a) Rplus_0_l; apply: eq_bigr => j _; exact: slot_value.
- apply: functional_extensionality => i; apply: functional_extensionality => a.
  rewrite -mask_value; congr (_ + clip (2 * (_ + _ - _) / _ - _)).
  by apply: eq_bigr => j _; exact: slot_value.
Qed.

Lemma cd_run :
  run full (cd_blocks N W η Δ low high C) (cd_prompt x y r)
  = cd_state x y r slots (fun _ a => r a - low) (better r) means
      (fun _ => (2 * η) *: comb (fun _ => 1%R) (fun j => y j - means j))%V.
Proof.
have -> : run full (cd_blocks N W η Δ low high C) (cd_prompt x y r)
    = run full (drop 2 (cd_blocks N W η Δ low high C))
        (run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r)) by [].
rewrite cd_run_two /run /= cd_weigh_step cd_add_step //.
have E : (fun i => vzero + comb (field_weights W C x y (better r i)) y)%V = means.
  by apply: functional_extensionality => i; apply: vec_eq => c; rewrite /vadd /vzero Rplus_0_l.
rewrite E; congr cd_state; apply: functional_extensionality => i; apply: vec_eq => c.
rewrite /vadd /vzero Rplus_0_l /vscal /comb; congr (_ * _); apply: eq_bigr => j _.
by rewrite /vsub Rplus_0_l.
Qed.

(* The mask of the response in place k are the flags of chapter 6. *)
Lemma better_flags τ k : ranks r τ -> better r (τ k) = flags τ k.
Proof.
move=> ranked; apply: functional_extensionality => j; rewrite -(permKV τ j) flags_place.
move: (τ^-1%g j) => l; rewrite /better; case: (ltngtP l k) => [lk|kl|/val_inj ->].
- by case: Rlt_dec => // le; have := ranked _ _ lk; lra.
- by case: Rlt_dec => // le; have := ranked _ _ kl; lra.
- by case: Rlt_dec => // le; lra.
Qed.

Section Errors.
Variables (spread_Z low_Z D : R) (τ : {perm 'I_N}).
Hypotheses (ranked : ranks r τ) (x1 : ‖x‖ = 1) (η0 : 0 <= η).
Hypothesis range_Z : forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z.
Hypothesis distances : forall i j, ‖y i - y j‖ <= D.

Lemma cd_mean_error k :
  ‖means (τ k) - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N k).
Proof. by rewrite /means better_flags //; exact: field_error range_Z. Qed.

Lemma cd_total_error :
  ‖((2 * η) *: comb (fun _ => 1%R) (fun j => y j - means j)) - ranked_step η W x y τ‖
  <= 2 * η * D * ∑_(k < N) share (field_crowd C spread_Z N k).
Proof.
pose t (k : 'I_N) := (means (τ k) - tail_mean W x y τ k)%V.
have -> : ((2 * η) *: comb (fun _ => 1%R) (fun j => y j - means j) - ranked_step η W x y τ
    = comb (fun _ => (- (2 * η))%R) t)%V.
  apply: vec_eq => c; rewrite /vsub ranked_step_all // /vscal /comb !sum_scal /t /vsub !sum_sub.
  have -> : ∑_j means j c = ∑_k means (τ k) c.
    exact: (sum_reindex predT (fun j => means j c) (@perm_inj _ τ)).
  by move: (∑_j y j c) (∑_k means (τ k) c) (∑_k tail_mean W x y τ k c) => u v w; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite Rmult_assoc -!sum_scal; apply: sum_le => k _.
rewrite Rabs_Ropp Rabs_pos_eq; last by lra.
by apply: Rmult_le_compat_l; [lra | exact: cd_mean_error].
Qed.

End Errors.
End Run.

(* Claim constant-depth, part broadcast: after two blocks every token has all rewards, less low. *)
Theorem constant_depth_broadcast : forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R),
  0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) ->
  let X := run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r) in
  X i Cd.board j = r j - low /\ X i Cd.m j = if Rlt_dec (r i) (r j) then 1 else 0.
Proof.
move=> dx dy N W η Δ low high C Δ0 x y r i j gaps range; cbv zeta.
by rewrite cd_run_two // (leq_ltn_trans (leq0n i)).
Qed.

(* Claim constant-depth, part own-rank: the token of the response in place k, from the matrices. *)
Theorem constant_depth_own_rank : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D C : R),
  0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (k : 'I_N),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall i j, ‖y i - y j‖ <= D) ->
  let mean := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) (τ k) Cd.mean in
  ‖mean - tail_mean W x y τ k‖ <= D * share (field_crowd C spread_Z N k).
Proof.
move=> dx dy N W η Δ low high spread_Z D C Δ0 x y r τ k gaps range ranked [low_Z range_Z] dist.
cbv zeta; rewrite cd_run //; last by rewrite (leq_ltn_trans (leq0n k)).
by apply: cd_mean_error range_Z dist _.
Qed.

(* Claim constant-depth, part total: three attention layers make the step, at every token. *)
Theorem constant_depth : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D C : R),
  0 <= η -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall i j, ‖y i - y j‖ <= D) ->
  let u := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) i Cd.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= 2 * η * D * ∑_(k < N) share (field_crowd C spread_Z N k).
Proof.
move=> dx dy N W η Δ low high spread_Z D C η0 Δ0 x y r τ i x1 gaps range ranked [low_Z range_Z].
move=> dist; cbv zeta; rewrite cd_run //; last by rewrite (leq_ltn_trans (leq0n i)).
by apply: cd_total_error range_Z dist.
Qed.

(* Claim constant-depth, part mask: a C that meets a tolerance. *)
Theorem constant_depth_mask : forall (dx dy N : nat) (W : mat dy dx)
    (η Δ low high spread_Z D tol : R),
  0 <= η -> 0 < Δ -> 0 < tol ->
  let S := ∑_(k < N) (INR k / INR (N - k)) in
  let C := spread_Z + Rmax 0 (ln (2 * η * D * S / tol)) in
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  (exists low_Z, forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z) ->
  (forall i j, ‖y i - y j‖ <= D) ->
  let u := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) i Cd.u in
  let ΔW := ((- η) *: gradient W x y τ)%V in
  ‖u - ΔW *v x‖ <= tol.
Proof.
move=> dx dy N W η Δ low high spread_Z D tol η0 Δ0 tol0 S C x y r τ i.
move=> x1 gaps range ranked range_Z dist; cbv zeta.
have D0 : 0 <= D by apply: Rle_trans (dist i i); exact: vnorm_ge0.
apply: Rle_trans (constant_depth C η0 Δ0 y i x1 gaps range ranked range_Z dist) _.
have p0 (k : 'I_N) : 0 <= INR k / INR (N - k).
  apply: Rmult_le_pos; first exact: INR_ge0.
  by left; apply: Rinv_0_lt_compat; apply: INR_gt0; rewrite subn_gt0.
have S0 : 0 <= S by apply: sum_ge0 => k _; exact: p0.
pose K := 2 * η * D * S; pose e := Rmax 0 (ln (K / tol)); have e0 := exp_pos (- e).
have le : ∑_(k < N) share (field_crowd C spread_Z N k) <= S * exp (- e).
  rewrite /S -sum_scalr; apply: sum_le => k _.
  have -> : INR k / INR (N - k) * exp (- e) = field_crowd C spread_Z N k.
    by rewrite /field_crowd /C -/K -/e; congr (_ * exp _); ring.
  apply: share_le_self; apply: Rmult_le_pos; first exact: p0.
  by left; exact: exp_pos.
have K0 : 0 <= 2 * η * D by apply: Rmult_le_pos; lra.
apply: Rle_trans (Rmult_le_compat_l _ _ _ K0 le) _; rewrite -Rmult_assoc -/K.
have KS : 0 <= K by apply: Rmult_le_pos.
case: (Rle_dec K tol) => Kt.
  have e1 : exp (- e) <= 1.
    by rewrite -exp_0; apply: exp_mono; have := Rmax_l 0 (ln (K / tol)); rewrite -/e; lra.
  by apply: Rle_trans Kt; rewrite -[X in _ <= X]Rmult_1_r; exact: Rmult_le_compat_l.
have Kpos : 0 < K by lra.
have q0 : 0 < K / tol by exact: Rdiv_lt_0_compat.
have e1 : exp (- e) <= tol / K.
  have -> : tol / K = exp (- ln (K / tol)) by rewrite exp_Ropp exp_ln //; field; lra.
  by apply: exp_mono; have := Rmax_r 0 (ln (K / tol)); rewrite -/e; lra.
apply: Rle_trans (Rmult_le_compat_l _ _ _ KS e1) _.
by have -> : K * (tol / K) = tol by [field; lra]; exact: Rle_refl.
Qed.

(* Claim constant-depth, part norm: a bound on the error in every direction is one on its length,
   and what the tokens' means are off by adds up. *)
Theorem constant_depth_norm : forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R),
  0 <= η -> 0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N}) (i : 'I_N),
  ‖x‖ = 1 -> spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) ->
  let X := run full (cd_blocks N W η Δ low high C) (cd_prompt x y r) in
  let z := (X i Cd.u - ((- η) *: gradient W x y τ) *v x)%V in
  (forall E, (0 < dy)%N -> (forall v, ‖v‖ = 1 -> ⟨v, z⟩ <= E) -> ‖z‖ <= E)
  /\ ‖z‖ <= 2 * η * ∑_k ‖X (τ k) Cd.mean - tail_mean W x y τ k‖.
Proof.
move=> dx dy N W η Δ low high C η0 Δ0 x y r τ i x1 gaps range X z; split=> [E d0 all|].
  by have [v [v1 <-]] := unit_along z d0; exact: all.
have N0 : (0 < N)%N by exact: leq_ltn_trans (ltn_ord i).
rewrite /z /X cd_run // -/(ranked_step η W x y τ) [cd_state _ _ _ _ _ _ _ _ i Cd.u]/=.
set means := fun i => comb (field_weights W C x y (better r i)) y.
pose t (k : 'I_N) := (means (τ k) - tail_mean W x y τ k)%V.
have -> : ((2 * η) *: comb (fun _ => 1%R) (fun j => y j - means j) - ranked_step η W x y τ
    = comb (fun _ => (- (2 * η))%R) t)%V.
  apply: vec_eq => c; rewrite /vsub ranked_step_all // /vscal /comb !sum_scal /t /vsub !sum_sub.
  have -> : ∑_j means j c = ∑_k means (τ k) c.
    exact: (sum_reindex predT (fun j => means j c) (@perm_inj _ τ)).
  by move: (∑_j y j c) (∑_k means (τ k) c) (∑_k tail_mean W x y τ k c) => u v w; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite -sum_scal; apply: sum_le => k _.
by rewrite Rabs_Ropp Rabs_pos_eq; [right | lra].
Qed.

(* Claim constant-depth, part ranks: with the responses in another order, σ, the logits of the head
   that weighs are the same, and those of the others are always 0; the row m of the token in place
   k, from 0, marks the k better ones; and a sum over tokens is one over places. *)
Theorem constant_depth_ranks : forall (dx dy N : nat) (W : mat dy dx) (η Δ low high C : R),
  0 < Δ ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (σ τ : {perm 'I_N}),
  spaced (3 / 4 * Δ) r -> (forall j, low <= r j <= high) -> ranks r τ ->
  let two y r := run full (take 2 (cd_blocks N W η Δ low high C)) (cd_prompt x y r) in
  (forall i j, logit (cd_field N W C) (two (fun l => y (σ l)) (fun l => r (σ l))) i j
               = logit (cd_field N W C) (two y r) (σ i) (σ j))
  /\ (forall (X : 'I_N -> token (cd_stream dx dy N)) i j,
      logit (cd_broadcast dx dy N) X i j = 0 /\ logit (cd_total dx dy N η) X i j = 0)
  /\ (forall k l : 'I_N, two y r (τ k) Cd.m (τ l) = if (l < k)%N then 1 else 0)
  /\ (forall F : 'I_N -> R, ∑_j F j = ∑_k F (τ k)).
Proof.
move=> dx dy N W η Δ low high C Δ0 x y r σ τ gaps range ranked two.
have N0 (i : 'I_N) : (0 < N)%N by exact: leq_ltn_trans (ltn_ord i).
have gaps' : spaced (3 / 4 * Δ) (fun l => r (σ l)).
  by move=> j l jl; apply: gaps; rewrite (inj_eq perm_inj).
split; [move=> i j | split; [move=> X i j | split=> [k l|F]]].
- by rewrite /two !cd_run_two ?(N0 i) // !cd_field_logit.
- by split; rewrite /logit; blocks; ring.
- by rewrite /two cd_run_two ?(N0 k) // [LHS]/= better_flags // flags_place.
- exact: (sum_reindex predT F (@perm_inj _ τ)).
Qed.
