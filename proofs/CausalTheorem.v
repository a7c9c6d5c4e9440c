(* Chapter 12: with a start token, N − 1 blocks make the online step at every position. The weights,
   stop_block W η g Δ h low spread low_Z spread_Z, are fixed before the input: they know its class
   only. Rounds and places count from 0. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer BlockErrors Turns Theorem33.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField CausalRounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── What the block does, from the matrices ─────────────────────────────────────────────────── *)

Lemma stop_state dx dy N (W : mat dy dx) η g Δ h low spread low_Z spread_Z
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) K :
  run causal (nseq K (stop_block N W η g Δ h low spread low_Z spread_Z)) (started_prompt x y r)
  = let γ := mask_γ g Δ in let c := mask_c g Δ spread in let C := spread_Z + 2 * h in
    let σ := stop_logit (γ * low) (γ * (low + spread)) c in
    let σ_Z := stop_logit low_Z (low_Z + spread_Z) C in
    let rs := with_start 0 r in let bs := with_start 1 (fun _ => 0) in
    let ps := with_start vzero one_hot in
    started_state x y r (ca_record γ c σ causal rs bs ps K)
      (ca_sum W η γ c C σ σ_Z causal (with_start vzero (fun _ => x)) (with_start vzero y)
        (with_start 0 (fun j => ‖y j‖²)) rs bs ps K).
Proof. by rewrite started_promptE /started_state -ca_run. Qed.

Section Means.
Variables (dx dy N : nat) (W : mat dy dx) (η g Δ h low spread low_Z spread_Z : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N).
Variables (m : 'I_N.+1 -> vec 'I_N) (u : 'I_N.+1 -> vec 'I_dy).
Notation tN := (ltn_ord i).
Notation X := (started_state x y r m u).

Lemma stop_winner_mean :
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  comb (attention causal (stop_winner dx dy N η g Δ low spread) X (lift ord0 i))
    (fun j => X j Ca.y)
  = comb (softmax (with_start (stop_logit (γ * low) (γ * (low + spread)) c)
      (fun j => γ * prefix tN r j - c * prefix tN (m (lift ord0 i)) j)))
      (with_start vzero (prefix tN y)).
Proof.
rewrite /= -(started_comb i _ (fun j => mask_γ g Δ * r j - mask_c g Δ spread * m (lift ord0 i) j)).
by apply: vec_eq => a; apply: eq_bigr => j _; rewrite ca_winner_attention started_winner.
Qed.

Lemma stop_field_mean :
  let C := spread_Z + 2 * h in
  comb (attention causal (stop_field N W η h low_Z spread_Z) X (lift ord0 i)) (fun j => X j Ca.y)
  = comb (softmax (with_start (stop_logit low_Z (low_Z + spread_Z) C)
      (fun j => reduced W x (prefix tN y j) - C * prefix tN (m (lift ord0 i)) j)))
      (with_start vzero (prefix tN y)).
Proof.
rewrite /= -(started_comb i _ (fun j => reduced W x (y j)
  - (spread_Z + 2 * h) * m (lift ord0 i) j)).
by apply: vec_eq => a; apply: eq_bigr => j _; rewrite ca_field_attention started_field.
Qed.
End Means.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim causal-theorem, part live-rounds; the means over all that response i sees, round k from 0:
   the next best response, and the tail mean. *)
Theorem causal_theorem_live_rounds : forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1})
    (k : 'I_i.+1),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (k.+1 < N)%N ->
  let X := run causal (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) in
  let mean hd := comb (attention causal hd X (lift ord0 i)) (fun j => X j Ca.y) in
  let y_i := prefix (ltn_ord i) y in
  ‖mean (stop_winner dx dy N η g Δ low spread) - y_i (τ k)‖ <= D * (5 / 2 * exp (- g))
  /\ ‖mean (stop_field N W η h low_Z spread_Z) - tail_mean W x y_i τ k‖
     <= D * ((spread_Z + 2 * h) * (INR k * (5 / 2 * exp (- g))) / 4
             + (INR N - 1) * exp (1 - h)).
Proof.
move=> dx dy N W η g Δ h low spread low_Z spread_Z D g0 Δ0 h1 fit x y r i τ k cls ranked kN.
rewrite stop_state /=; have KN := ltnW kN.
have near := @stop_near dx dy N W g Δ h low spread low_Z spread_Z D x y r i τ g0 Δ0 h1 fit cls
  ranked k KN.
split; [rewrite stop_winner_mean | rewrite stop_field_mean].
  exact: (stop_live_winner g0 Δ0 h1 fit cls ranked KN near).
exact: (stop_live_field g0 Δ0 h1 fit cls KN near).
Qed.

(* Claim causal-theorem, part surplus-rounds; round k, from 0, when i+1 ≤ k: next to nothing. *)
Theorem causal_theorem_surplus_rounds : forall (dx dy N k : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (i < k)%N -> (k.+1 < N)%N ->
  let X := run causal (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) in
  let mean hd := comb (attention causal hd X (lift ord0 i)) (fun j => X j Ca.y) in
  ‖mean (stop_winner dx dy N η g Δ low spread)‖ <= D * (5 / 2 * exp (- g))
  /\ ‖mean (stop_field N W η h low_Z spread_Z)‖ <= D * ((INR N - 1) * exp (1 - h)).
Proof.
move=> dx dy N k W η g Δ h low spread low_Z spread_Z D g0 Δ0 h1 fit x y r i τ cls ranked ik kN.
rewrite stop_state /=; have KN := ltnW kN.
have near := @stop_near dx dy N W g Δ h low spread low_Z spread_Z D x y r i τ g0 Δ0 h1 fit cls
  ranked k KN.
split; [rewrite stop_winner_mean | rewrite stop_field_mean].
  exact: (stop_surplus_winner g0 Δ0 h1 fit cls ranked KN near ik).
exact: (stop_surplus_field g0 Δ0 h1 fit cls KN near ik).
Qed.

(* Claim causal-theorem, part induction; before every round k < N, from 0, the record of response i
   is within k misses of the mask of the k best that i sees (of all, once k > i). *)
Theorem causal_theorem_induction : forall (dx dy N k : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (k < N)%N ->
  let m := run causal (nseq k (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) (lift ord0 i) Ca.m in
  forall j, Rabs (prefix (ltn_ord i) m j - flags τ k j) <= INR k * (5 / 2 * exp (- g)).
Proof.
move=> dx dy N k W η g Δ h low spread low_Z spread_Z D g0 Δ0 h1 fit x y r i τ cls ranked kN.
rewrite stop_state /=.
exact: (@stop_near dx dy N W g Δ h low spread low_Z spread_Z D x y r i τ g0 Δ0 h1 fit cls ranked).
Qed.

(* Claim causal-theorem, parts bound, norm, induction; N − 1 blocks make the online step at response
   i, ΔW = −η∇ of the loss of the first i+1 responses, whichever i is. *)
Theorem causal_theorem : forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h low spread low_Z spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_online_class W Δ low spread low_Z spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  let u := run causal (nseq (N - 1) (stop_block N W η g Δ h low spread low_Z spread_Z))
             (started_prompt x y r) (lift ord0 i) Ca.u in
  let ΔW := ((- η) *: gradient W x (prefix (ltn_ord i) y) τ)%V in
  ‖u - ΔW *v x‖ <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
    + 5 / 16 * (INR N - 2) * (spread_Z + 2 * h) * exp (- g) + (INR N - 1) * exp (1 - h)).
Proof.
move=> dx dy N W η g Δ h low spread low_Z spread_Z D η0 g0 Δ0 h1 fit x y r i τ cls ranked.
rewrite stop_state /=.
have N0 : (0 < N)%N by apply: leq_ltn_trans (ltn_ord i).
have KN : (N - 1 < N)%N by rewrite subn1 ltn_predL.
have NE : INR (N - 1) = INR N - 1 by rewrite minus_INR //; apply/leP.
have := @stop_total dx dy N W η g Δ h low spread low_Z spread_Z D x y r i τ η0 g0 Δ0 h1 fit cls
  ranked (N - 1)%N KN.
rewrite first_terms_all; last by apply: leq_sub2r; exact: (ltn_ord i).
rewrite -(gradient_step_terms W η _ τ (online_query cls)) NE => le.
apply: Rle_trans le _; right; rewrite /miss; field.
Qed.

(* The mean over Q is as far from the mean over a part of Q as D times the share of the others. *)
Lemma mean_to_less (T : finType) d (Q P : pred T) (z : T -> R) (w : T) (y : T -> vec 'I_d) D :
  (forall j, P j -> Q j) -> P w -> (forall j l, Q j -> Q l -> ‖y j - y l‖ <= D) ->
  ‖comb (softmax_on Q z) y - comb (softmax_on P z) y‖ <= D * ∑_(j | ~~ P j) softmax_on Q z j.
Proof.
move=> PQ Pw dist; have Qw := PQ w Pw; set A := softmax_on Q z; set m := comb (softmax_on P z) y.
pose L := ∑_(j | P j) exp (z j); pose S := ∑_(j | Q j) exp (z j).
have L0 : 0 < L := sum_exp_gt0 z Pw; have S0 : 0 < S := sum_exp_gt0 z Qw.
pose E j := if P j then 0 else A j.
have AE j : A j = E j + L / S * softmax_on P z j.
  rewrite /E /A /softmax_on -/L -/S; case Pj : (P j); last by rewrite /Rdiv Rmult_0_l; ring.
  by rewrite (PQ j Pj); field; lra.
have A1 := softmax_on_sum z Qw; have P1 := softmax_on_sum z Pw.
have -> : (comb A y - m = comb E (fun j => y j - m))%V.
  apply: vec_eq => a; rewrite /vsub.
  have mE : ∑_j (softmax_on P z j * (y j a - m a)) = 0.
    rewrite (eq_bigr (fun j => softmax_on P z j * y j a - softmax_on P z j * m a)).
      by rewrite sum_sub sum_scalr P1 -/(comb (softmax_on P z) y a) -/m; ring.
    by move=> j _; ring.
  have -> : comb A y a - m a = ∑_j (A j * (y j a - m a)).
    rewrite [RHS](eq_bigr (fun j => A j * y j a - A j * m a)) => [|j _]; last by ring.
    by rewrite sum_sub sum_scalr A1 /comb; ring.
  rewrite (eq_bigr (fun j => E j * (y j a - m a) + L / S * (softmax_on P z j * (y j a - m a)))).
    by rewrite sum_add sum_scal mE /comb; ring.
  by move=> j _; rewrite AE; ring.
have D0 : 0 <= D by apply: Rle_trans (dist w w Qw Qw); exact: vnorm_ge0.
have -> : ∑_(j | ~~ P j) A j = ∑_j E j.
  rewrite [RHS](sum_ID P predT) /= [X in _ = X + _]big1 => [|j Pj]; last by rewrite /E Pj.
  by rewrite Rplus_0_l; apply: eq_bigr => j /negbTE Pj; rewrite /E Pj.
rewrite -sum_scal; apply: Rle_trans (vnorm_comb _ _) _; apply: sum_le => j _.
rewrite /E; case: (P j); first by rewrite Rabs_R0; lra.
have a0 : 0 <= A j := softmax_on_ge0 Q z j.
rewrite Rabs_pos_eq // Rmult_comm.
case Qj : (Q j); last by rewrite /A /softmax_on Qj /Rdiv !Rmult_0_l; lra.
apply: Rmult_le_compat_r => //.
exact: point_to_mean Pw (fun l Pl => dist j l Qj (PQ l Pl)).
Qed.

(* Claim causal-theorem, part norm; a share of misplaced attention, on seen tokens that are not in
   the part, moves what a head writes to u by at most 2ηD times as much. Heads and rounds add up in
   causal_theorem. *)
Theorem causal_theorem_norm : forall (dx dy N : nat) (W : mat dy dx) (η γ c σ C σ_Z : R),
  0 <= η ->
  forall (T : finType) (sees part : rel T) (X : T -> token (ca_stream dx dy N)) (i w : T) (D : R),
  (forall j, part i j -> sees i j) -> part i w ->
  (forall j l, sees i j -> sees i l -> ‖X j Ca.y - X l Ca.y‖ <= D) ->
  let winner := ca_winner dx dy N η γ c σ in
  let field := ca_field N W η C σ_Z in
  let moved h := ‖head_output sees h X i Ca.u - head_output part h X i Ca.u‖ in
  let misplaced h := ∑_(j | ~~ part i j) attention sees h X i j in
  moved winner <= 2 * η * D * misplaced winner /\ moved field <= 2 * η * D * misplaced field.
Proof.
move=> dx dy N W η γ c σ C σ_Z η0 T sees part X i w D less pw dist winner field moved misplaced.
have wrote mask a : head_output mask winner X i Ca.u a
    = 2 * η * comb (attention mask winner X i) (fun j => X j Ca.y) a.
  rewrite /head_output; blocks; rewrite /comb ?Rplus_0_r; congr (_ * _).
  by apply: eq_bigr => j _; blocks; ring.
have wrote_Z mask a : head_output mask field X i Ca.u a
    = - (2 * η) * comb (attention mask field X i) (fun j => X j Ca.y) a.
  rewrite /head_output; blocks; rewrite /comb ?Rplus_0_r; congr (_ * _).
  by apply: eq_bigr => j _; blocks; ring.
have near h := @mean_to_less T _ (sees i) (part i) (logit h X i) w _ D less pw dist.
have scaled k h : Rabs k = 2 * η ->
    ‖k *: comb (attention sees h X i) (fun j => X j Ca.y)
     - k *: comb (attention part h X i) (fun j => X j Ca.y)‖ <= 2 * η * D * misplaced h.
  move=> kE; have -> (u v : vec 'I_dy) : (k *: u - k *: v = k *: (u - v))%V.
    by apply: vec_eq => a; rewrite /vsub /vscal; ring.
  by rewrite vnorm_scal kE (Rmult_assoc (2 * η)); apply: Rmult_le_compat_l; [lra | exact: near].
split.
  have -> : moved winner = ‖(2 * η) *: comb (attention sees winner X i) (fun j => X j Ca.y)
     - (2 * η) *: comb (attention part winner X i) (fun j => X j Ca.y)‖.
    by congr vnorm; apply: vec_eq => a; rewrite /vsub !wrote.
  by apply: scaled; rewrite Rabs_pos_eq; lra.
have -> : moved field = ‖(- (2 * η)) *: comb (attention sees field X i) (fun j => X j Ca.y)
   - (- (2 * η)) *: comb (attention part field X i) (fun j => X j Ca.y)‖.
  by congr vnorm; apply: vec_eq => a; rewrite /vsub !wrote_Z.
by apply: scaled; rewrite Rabs_Ropp Rabs_pos_eq; lra.
Qed.

(* ── From a tolerance to margins ────────────────────────────────────────────────────────────── *)

Lemma exp_neg_le a t : 0 < a -> ln a <= t -> a * exp (- t) <= 1.
Proof.
move=> a0 le; rewrite -{1}(exp_ln a a0) -exp_plus -exp_0; apply: exp_mono; lra.
Qed.

Lemma ln_mono a b : 0 < a -> a <= b -> ln a <= ln b.
Proof. by move=> a0 [/(ln_increasing _ _ a0) /Rlt_le|->] //; exact: Rle_refl. Qed.

Lemma ln_half t : 0 < t -> ln t <= t / 2.
Proof.
move=> t0; rewrite -(ln_exp (t / 2)); apply: ln_mono => //.
have -> : t / 2 = t / 4 + t / 4 by field.
have e1 := exp_ineq1_le (t / 4); rewrite exp_plus.
have := Rmult_le_compat _ _ _ _ (ltac:(lra) : 0 <= 1 + t / 4) (ltac:(lra) : 0 <= 1 + t / 4) e1 e1.
by have := Rle_0_sqr (1 - t / 4); rewrite /Rsqr; lra.
Qed.

(* (g + 1) e^ℓ ≤ e^g from g = ℓ + log(2ℓ + 4) on. *)
Lemma margin_log l g : 0 <= l -> l + ln (2 * l + 4) <= g -> (g + 1) * exp (l - g) <= 1.
Proof.
move=> l0 le; have t0 : 0 < 2 * l + 4 by lra.
have := @ln_half _ t0; set L := ln _ in le * => L1.
pose s := g - (l + L); have s0 : 0 <= s by rewrite /s; lra.
have -> : l - g = - (L + s) by rewrite /s; ring.
have e0 := exp_pos (- (L + s)).
have eE : exp (- (L + s)) * ((2 * l + 4) * exp s) = 1.
  by rewrite -(exp_ln (2 * l + 4) t0) -/L -exp_plus -exp_plus -exp_0; congr exp; ring.
have es := exp_ineq1_le s.
have : g + 1 <= (2 * l + 4) * exp s.
  apply: (Rle_trans _ ((2 * l + 4) * (1 + s))); last by apply: Rmult_le_compat_l; lra.
  by have := Rmult_le_pos _ _ l0 s0; rewrite /s in s0 *; lra.
by move=> le1; have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ e0) le1; rewrite eE; lra.
Qed.

(* Claim causal-theorem, part temperatures; with U = 2η(N−1)D. *)
Theorem causal_theorem_temperatures : forall (N : nat) (η Δ spread spread_Z D tol : R),
  (1 < N)%N -> 0 < η -> 0 < Δ -> 0 <= spread -> 0 <= spread_Z -> 0 < D -> 0 < tol ->
  let U := 2 * η * (INR N - 1) * D in
  let h := Rmax 1 (1 + ln (2 * (INR N - 1) * U / tol)) in
  let C := spread_Z + 2 * h in
  let l := ln (5 / 2 * (INR N - 1) * (2 + spread / Δ)) in
  let g := Rmax (ln (2 * U / tol * (5 / 2 + 5 / 16 * (INR N - 2) * C)))
             (Rmax (ln (5 / 2 * (INR N - 1) * C)) (l + ln (2 * l + 4))) in
  0 < g /\ 1 <= h /\ margins_fit N g Δ h spread spread_Z
  /\ U * (5 / 2 * exp (- g) + 5 / 16 * (INR N - 2) * C * exp (- g)
          + (INR N - 1) * exp (1 - h)) <= tol.
Proof.
move=> N η Δ spread spread_Z D tol N1 η0 Δ0 R0 RZ0 D0 tol0 U h C l g.
have N2 : 0 <= INR N - 2 by have := INR_le N1; have -> : INR 2 = 2 by []; lra.
have U0 : 0 < U by rewrite /U; repeat (apply: Rmult_lt_0_compat; try lra).
have h1 : 1 <= h by exact: Rmax_l.
have C0 : 0 < C by rewrite /C; lra.
have ratio : 0 <= spread / Δ by apply: Rmult_le_pos => //; left; exact: Rinv_0_lt_compat.
have B5 : 5 <= 5 / 2 * (INR N - 1) * (2 + spread / Δ).
  have : 0 <= (INR N - 2) * (spread / Δ) by exact: Rmult_le_pos.
  lra.
have l1 : 1 <= l.
  have l5 := ln5_ge; apply: (Rle_trans _ (ln 5)); first by lra.
  by apply: ln_mono => //; lra.
have gL : l + ln (2 * l + 4) <= g by apply: Rle_trans (Rmax_r _ _); exact: Rmax_r.
have gC : ln (5 / 2 * (INR N - 1) * C) <= g by apply: Rle_trans (Rmax_r _ _); exact: Rmax_l.
have gT : ln (2 * U / tol * (5 / 2 + 5 / 16 * (INR N - 2) * C)) <= g by exact: Rmax_l.
have ln0 : 0 < ln (2 * l + 4) by rewrite -ln_1; apply: ln_increasing; lra.
have g0 : 0 < g by lra.
split=> //; split=> //; split.
  have e0 := exp_pos (- g); rewrite /margins_fit -/C {1}/Rmax.
  case: Rle_dec => _; last first.
    rewrite /mask_c; apply: Rle_trans (margin_log (ltac:(lra) : 0 <= l) gL).
    have -> : l - g = l + - g by ring.
    by rewrite exp_plus /l exp_ln; [right; ring | lra].
  have a0 : 0 < 5 / 2 * (INR N - 1) by lra.
  exact: (exp_neg_le (Rmult_lt_0_compat _ _ a0 C0) gC).
have T0 : 0 < 5 / 2 + 5 / 16 * (INR N - 2) * C.
  by have := Rmult_le_pos _ _ N2 (Rlt_le _ _ C0); lra.
have UT : 0 < U / tol by exact: Rdiv_lt_0_compat.
have tE : U / tol * tol = U by field; lra.
have first : U / tol * ((5 / 2 + 5 / 16 * (INR N - 2) * C) * exp (- g)) <= 1 / 2.
  have := @exp_neg_le (2 * U / tol * (5 / 2 + 5 / 16 * (INR N - 2) * C)) g _ gT.
  have -> : 2 * U / tol = 2 * (U / tol) by field; lra.
  by move=> H; have := H ltac:(by apply: Rmult_lt_0_compat => //; lra); lra.
have second : U / tol * ((INR N - 1) * exp (1 - h)) <= 1 / 2.
  have hT : ln (2 * (INR N - 1) * U / tol) <= h - 1.
    by have := Rmax_r 1 (1 + ln (2 * (INR N - 1) * U / tol)); rewrite -/h; lra.
  have := @exp_neg_le (2 * (INR N - 1) * U / tol) (h - 1) _ hT.
  have -> : - (h - 1) = 1 - h by ring.
  have -> : 2 * (INR N - 1) * U / tol = 2 * (INR N - 1) * (U / tol) by field; lra.
  by move=> H; have := H ltac:(by apply: Rmult_lt_0_compat => //; lra); lra.
apply: (Rmult_le_reg_l (/ tol)); first exact: Rinv_0_lt_compat.
have -> : / tol * tol = 1 by field; lra.
move: first second; set a := (5 / 2 + _) * _; set b := (INR N - 1) * _.
have -> : / tol * (U * (5 / 2 * exp (- g) + 5 / 16 * (INR N - 2) * C * exp (- g) + b))
  = U / tol * a + U / tol * b by rewrite /a; field; lra.
lra.
Qed.
