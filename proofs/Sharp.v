(* Chapter 6: log 5 is sharp, and so is the bound: attained for N = 2, and with C = 0 approached for
   every N. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Rcomplements.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33 Selection LogSumExp.
From Icalign Require Import Convexity.

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

(* Claim theorem-3-3, part sharp: for N = 2 the error is the bound, if the rewards are Δ apart and D
   is the distance of the responses. *)
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

(* ── The best response at one pole, all others at the other ─────────────────────────────────── *)

Definition pole (ρ : R) {n} (j : 'I_n.+1) : vec 'I_1 := fun _ => if j == ord0 then ρ else - ρ.
Definition equal_steps (Δ : R) {n} (j : 'I_n) : R := - (INR j * Δ).
Definition pole_query : vec 'I_1 := fun _ => 1.
Definition pole_matrix (ρ : R) : mat 1 1 := fun _ => ρ.

Lemma vnorm_ord1 (v : vec 'I_1) : ‖v‖ = Rabs (v ord0).
Proof. by rewrite /vnorm /sqnorm /dot sum_ord1 -[_ * _]/(Rsqr _) sqrt_Rsqr_abs. Qed.

Lemma pole_mean n (w : 'I_n.+1 -> R) ρ c : ∑_j w j = 1 ->
  comb w (pole ρ) c = - ρ + 2 * ρ * w ord0.
Proof.
move=> w1; rewrite /comb (sum_pick ord0) /pole eqxx.
rewrite (eq_bigr (fun j => w j * - ρ)) => [|j /negbTE -> //].
by rewrite sum_scalr; move: w1; rewrite (sum_pick ord0); move: (∑_(_ | _) _) => s; nra.
Qed.

Lemma pole_score n ρ (j : 'I_n.+1) :
  reduced (pole_matrix ρ) pole_query (pole ρ j) = if j == ord0 then ρ ^ 2 else - 3 * ρ ^ 2.
Proof.
rewrite /reduced /sqnorm /dot /mulmv !sum_ord1 /pole /pole_query /pole_matrix.
by case: ifP => _; ring.
Qed.

Lemma pole_class n ρ Δ : 0 <= ρ -> 0 <= Δ ->
  in_class (pole_matrix ρ) Δ (INR n * Δ) (4 * ρ ^ 2) (2 * ρ) pole_query (@pole ρ n) (equal_steps Δ).
Proof.
move=> ρ0 Δ0; have sq := pow2_ge_0 ρ; split.
- by rewrite vnorm_ord1 Rabs_R1.
- move=> j l; rewrite /equal_steps -val_eqE /= neq_ltn => /orP [] jl; have := INR_le jl;
    rewrite INR_S => le.
    by rewrite Rabs_pos_eq; nra.
  by rewrite Rabs_minus_sym Rabs_pos_eq; nra.
- exists (- (INR n * Δ)) => j; rewrite /equal_steps; have j0 := INR_ge0 j.
  have jn : INR j <= INR n by apply: INR_le; exact: leq_ord.
  by nra.
- by exists (- 3 * ρ ^ 2) => j; rewrite pole_score; case: ifP; lra.
- move=> i j; rewrite vnorm_ord1 /vsub /pole.
  by case: ifP => _; case: ifP => _; split_Rabs; lra.
Qed.

Lemma pole_ranks n Δ : 0 < Δ -> ranks (@equal_steps Δ n) 1%g.
Proof.
move=> Δ0 k l kl; rewrite !perm1 /equal_steps; have := INR_le kl; rewrite INR_S => le.
by nra.
Qed.

Section Error.
Variables (n : nat) (ρ η γ Δ : R).
Hypotheses (ρ0 : 0 < ρ) (η0 : 0 <= η) (γ0 : 0 < γ) (Δ0 : 0 < Δ).
Notation N := n.+1.
Let spread := INR n * Δ.
Let W := pole_matrix ρ.
Let y := @pole ρ n.
Let r := @equal_steps Δ N.
Let τ : {perm 'I_N} := 1%g.
Let A k := winner_weights γ Δ spread r (flags τ k).
Let F := softmax (fun j => reduced W pole_query (y j)).
Let q k := share (winner_crowd γ Δ spread N k).

Lemma pole_gaps : spaced Δ r.
Proof. exact: gaps (pole_class n (Rlt_le _ _ ρ0) (Rlt_le _ _ Δ0)). Qed.

Lemma pole_range : forall j, - spread <= r j <= - spread + spread.
Proof.
move=> j; rewrite /r /equal_steps /spread; have j0 := INR_ge0 j.
have jn : INR j <= INR n by apply: INR_le; exact: leq_ord.
by nra.
Qed.

Lemma pole_ranked : ranks r τ. Proof. exact: pole_ranks. Qed.

(* What a later block gives the best response. *)
Lemma pole_kept (k : 'I_N) : k != ord0 -> A k ord0 <= q k.
Proof.
move=> k0; have le : 1 - A k (τ k) <= q k.
  rewrite softmax_miss; apply: share_le; first exact: crowd_ge0.
  exact: winner_crowd_le γ0 Δ0 pole_gaps pole_ranked pole_range.
have R : ∑_(j | j != τ k) A k j = 1 - A k (τ k) := softmax_rest _ _.
have k1 : ord0 != τ k by rewrite perm1 eq_sym.
have T : A k ord0 <= ∑_(j | j != τ k) A k j.
  by apply: sum_ge_term => // j _; left; exact: softmax_gt0.
exact: Rle_trans T (Rle_trans _ _ _ (Req_le _ _ R) le).
Qed.

(* The error of block k, along the line of the poles. *)
Lemma pole_term (k : 'I_N) c :
  ((comb (A k) y - y (τ k)) - (comb F y - tail_mean W pole_query y τ k))%V c
  <= - (2 * ρ) * ((if k == ord0 then 0 else F ord0) - q k).
Proof.
have A1 : ∑_j A k j = 1 := softmax_sum _ ord0.
have F1 : ∑_j F j = 1 := softmax_sum _ ord0.
have q0 : 0 <= q k.
  have le := winner_crowd_le k γ0 Δ0 pole_gaps pole_ranked pole_range.
  exact: share_ge0 (Rle_trans _ _ _ (crowd_ge0 _ _) le).
rewrite /vsub !pole_mean // {1}/y /pole perm1; case: eqP => [k0|/eqP k0].
  have -> : tail_mean W pole_query y τ k c = - ρ + 2 * ρ * F ord0.
    rewrite -(live_mean W pole_query y τ k) pole_mean.
      by congr (_ + _ * _); rewrite k0 /F -softmax_on_all; congr (_ / _).
    by apply: (softmax_on_sum _ (w := ord_max)); rewrite k0.
  have A01 : A k ord0 <= 1 := softmax_le1 _ _.
  by nra.
have -> : tail_mean W pole_query y τ k c = - ρ.
  pose s j := score W pole_query (y j); have [b0 b1] := beta_weights s τ k.
  rewrite /tail_mean /comb (eq_bigr (fun j => beta s τ k j * - ρ)).
    by rewrite sum_scalr b1; ring.
  move=> j _; rewrite /y /pole perm1; case: eqP => // j0; rewrite /beta j0.
  have -> : (k <= (ord0 : 'I_N))%N = false by rewrite leqn0; exact/negbTE.
  by rewrite /Rdiv; ring.
by have := pole_kept k0; nra.
Qed.

Notation after := (accumulated W η γ Δ spread 0 pole_query y r τ).

Lemma field_unmasked f c : comb (field_weights W 0 pole_query y f) y c = comb F y c.
Proof. by apply: eq_bigr => j _; congr (_ * _); apply: eq_softmax => l; ring. Qed.

(* All of them, along that line. *)
Lemma pole_error K c : (K <= N)%N ->
  (after K - first_terms η W pole_query y τ K)%V c
  <= - (2 * η * (2 * ρ)) * (INR K.-1 * F ord0 - ∑_(k < K) q k).
Proof.
elim: K => [|K IH] KN.
  rewrite big_ord0 /vsub /first_terms /vsum big_pred0 //= /vzero; lra.
rewrite sum_last /first_terms (vsum_succ _ KN).
have := pole_term (Ordinal KN) c; have := IH (ltnW KN).
rewrite -[after K.+1]/(after K + (2 * η) *: (comb (A K) y
  - comb (field_weights W 0 pole_query y (flags τ K)) y))%V -[K.+1.-1]/K.
rewrite /first_terms /vsub /vadd /vscal field_unmasked.
have -> : (Ordinal KN == ord0) = (K == 0%N) by [].
have -> : INR K * F ord0 = INR K.-1 * F ord0 + (if K == 0%N then 0 else F ord0).
  by case: (K) => [|K']; rewrite ?INR_S /=; ring.
move: (if _ then _ else _) => g; move: (∑_(_ < _) _) => Q.
rewrite -[nat_of_ord (Ordinal KN)]/K -[nat_of_ord ord_max]/K.
move: (comb (A K) y c) (comb F y c) (after K c) (vsum _ _ c) (y _ c) (tail_mean _ _ _ _ _ c) (q K).
move=> v m a s yk t qK IHK T; have := Rmult_le_compat_l (2 * η) _ _ ltac:(lra) T.
by lra.
Qed.

End Error.

Lemma share_le1 q : 0 <= q -> share q <= 1.
Proof.
move=> q0; rewrite /share; apply: (Rmult_le_reg_r (1 + q)); first by lra.
by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
Qed.

(* What one block's winner misses is small when it is cold. *)
Lemma crowd_small γ Δ spread N (k : 'I_N) : 0 < γ -> 0 < Δ -> 0 <= spread -> exp (- γ * Δ) <= / 2 ->
  share (winner_crowd γ Δ spread N k) <= 4 * exp (- γ * Δ).
Proof.
move=> γ0 Δ0 s0; rewrite /winner_crowd; set ξ := exp (- γ * Δ) => x2; have x0 : 0 < ξ := exp_pos _.
have [p0 p1] := pow_unit (N - k) x0 ltac:(lra); have [r0 r1] := pow_unit k x0 ltac:(lra).
have e : exp (- γ * (spread + INR (N - k + 1) * Δ)) <= ξ.
  apply: exp_mono; rewrite addn1 INR_S; have g := Rmult_lt_0_compat _ _ γ0 Δ0.
  have := Rmult_le_pos _ _ (INR_ge0 (N - k)) (Rlt_le _ _ g).
  have := Rmult_le_pos _ _ (Rlt_le _ _ γ0) s0.
  by lra.
have e0 := exp_pos (- γ * (spread + INR (N - k + 1) * Δ)).
have i2 : / (1 - ξ) <= 2 by apply: (Rmult_le_reg_r (1 - ξ)); [lra | rewrite Rinv_l; lra].
have i0 : 0 < / (1 - ξ) by apply: Rinv_0_lt_compat; lra.
have xN : ξ ^ (N - k) <= ξ.
  have : (0 < N - k)%N by rewrite subn_gt0.
  case: (N - k)%N => // m _; rewrite -tech_pow_Rmult.
  by have [_ m1] := pow_unit m x0 ltac:(lra); nra.
have a : 0 <= (ξ - ξ ^ (N - k)) / (1 - ξ) <= 2 * ξ by rewrite /Rdiv; split; nra.
have b : 0 <= (1 - ξ ^ k) / (1 - ξ) <= 2 by rewrite /Rdiv; split; nra.
move: (exp (- γ * (_ + _))) e e0 => f f1 f0.
apply: Rle_trans (share_le_self _) _; nra.
Qed.

Lemma sharp_bound_gt0 n ρ η γ Δ : 0 < η -> 0 < ρ -> 0 < γ -> 0 < Δ ->
  0 < error_bound η γ Δ 0 (INR n.+2 * Δ) (4 * ρ ^ 2) (2 * ρ) n.+3 n.+2.
Proof.
move=> η0 ρ0 γ0 Δ0; rewrite /error_bound sum_add; apply: Rmult_lt_0_compat.
  by repeat apply: Rmult_lt_0_compat; lra.
have w0 (k : 'I_n.+2) : 0 <= share (winner_crowd γ Δ (INR n.+2 * Δ) n.+3 k).
  apply: share_ge0; apply: Rle_trans (crowd_ge0 _ _) _.
  exact: (winner_crowd_le (widen_ord (leqnSn _) k) γ0 Δ0 (gaps (@pole_class n.+2 ρ Δ
    (Rlt_le _ _ ρ0) (Rlt_le _ _ Δ0)))
    (pole_ranks (n := n.+3) Δ0) (@pole_range n.+2 Δ Δ0)).
have e0 := exp_pos (- (0 - 4 * ρ ^ 2)).
have f0 (k : 'I_n.+2) : 0 <= share (field_crowd 0 (4 * ρ ^ 2) n.+3 k).
  apply: share_ge0; apply: Rmult_le_pos (Rlt_le _ _ e0).
  apply: Rmult_le_pos (INR_ge0 _) (Rlt_le _ _ (Rinv_0_lt_compat _ _)).
  by apply: INR_gt0; rewrite subn_gt0 ltnS ltnW.
apply: Rplus_le_lt_0_compat; first by apply: sum_ge0 => k _; exact: w0.
pose k : 'I_n.+2 := lift ord0 ord0.
apply: Rlt_le_trans (_ : 0 < share (field_crowd 0 (4 * ρ ^ 2) n.+3 k)) _; last first.
  exact: (@sum_ge_term _ predT (fun k : 'I_n.+2 => share (field_crowd 0 (4 * ρ ^ 2) n.+3 k)) k isT
    (fun k _ => f0 k)).
have c0 : 0 < field_crowd 0 (4 * ρ ^ 2) n.+3 k.
  apply: Rmult_lt_0_compat e0; apply: Rdiv_lt_0_compat; first by apply: INR_gt0.
  by apply: INR_gt0; rewrite subn_gt0.
by apply: Rdiv_lt_0_compat; lra.
Qed.

(* Claim theorem-3-3, part sharp: with C = 0 and N = n + 3 responses, one at a pole ρ and the others
   at −ρ, the quotient of error and bound tends to 1 as the temperature γ and the spread 4ρ² of the
   scores grow. *)
Theorem theorem_3_3_sharp_limit : forall (n : nat) (η Δ ε : R),
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
  0 < bound /\ (1 - ε) * bound <= ‖u - ΔW *v x‖.
Proof.
move=> n η Δ ε η0' Δ0 [ε0 ε1]; set m := INR n.+2.
have m0 : 1 <= INR n.+1 by rewrite INR_S; have := INR_ge0 n; lra.
have η0 : 0 <= η := Rlt_le _ _ η0'.
have m1 : m = INR n.+1 + 1 by rewrite /m INR_S.
pose t := ln (2 * m / ε).
pose s := Rmax (ln 5) (ln (16 * m / ε)).
exists (1 + Rabs t), (s / Δ) => ρ ρbig.
have ρ1 : 1 <= ρ by have := Rabs_pos t; lra.
have big : m * exp (- (4 * ρ ^ 2)) <= ε / 2.
  have le : - (4 * ρ ^ 2) <= - t by have := Rle_abs t; have := Rabs_pos t; nra.
  apply: Rle_trans (Rmult_le_compat_l m _ _ ltac:(lra) (exp_mono le)) _.
  rewrite /t exp_Ropp exp_ln; first by right; field; lra.
  by apply: Rdiv_lt_0_compat; lra.
move=> W x y r τ spread spread_Z D.
have cls := @pole_class n.+2 ρ Δ ltac:(lra) ltac:(lra).
have s0 : 0 <= spread by rewrite /spread -/m; nra.
have ρ0 : 0 < ρ by lra.
split=> //; split=> //; split=> [|γ B γle B0]; first exact: pole_ranks.
have sγ : s <= γ * Δ.
  have := Rmult_le_compat_r Δ _ _ (Rlt_le _ _ Δ0) γle.
  by rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
have hot : ln 5 <= γ * Δ := Rle_trans _ _ _ (Rmax_l _ _) sγ.
have cold : ln (16 * m / ε) <= γ * Δ := Rle_trans _ _ _ (Rmax_r _ _) sγ.
have γ0 := hot_γ Δ0 hot.
have x2 : exp (- γ * Δ) <= / 2.
  have : exp (- γ * Δ) <= / 5; last by lra.
  by rewrite -(exp_ln (/ 5)); [apply: exp_mono; rewrite ln_Rinv | ]; lra.
have xε : 16 * m * exp (- γ * Δ) <= ε.
  have le : - γ * Δ <= - ln (16 * m / ε) by lra.
  apply: Rle_trans (Rmult_le_compat_l (16 * m) _ _ ltac:(lra) (exp_mono le)) _.
  rewrite exp_Ropp exp_ln; first by right; field; lra.
  by apply: Rdiv_lt_0_compat; lra.
split=> // i u ΔW bound.
have range := @pole_range n.+2 Δ Δ0.
have near (k : 'I_n.+3) := top_near k γ0 Δ0 (gaps cls) (pole_ranks (n := n.+3) Δ0) range hot.
have st := state_after (pole_matrix ρ) η 0 pole_query (pole ρ) Δ0 B0 (gaps cls)
    (pole_ranks (n := n.+3) Δ0) range near n.+2.
have le := @pole_error n.+2 ρ η γ Δ ρ0 η0 γ0 Δ0 n.+2 ord0 (leqnSn _).
move: le; set a := accumulated _ _ _ _ _ _ _ _ _ _ _; set F := softmax _ ord0 => le.
have uE : u = a by rewrite /u st.
pose id : {perm 'I_n.+3} := 1%g.
rewrite /ΔW (gradient_step_terms (pole_matrix ρ) η (pole ρ) id (unit_query cls)) uE.
set f := first_terms _ _ _ _ _ _ in le *.
split; first exact: (@sharp_bound_gt0 n ρ η γ Δ η0' ρ0 γ0 Δ0).
apply: Rle_trans (_ : _ <= - (a - f)%V ord0) _; last first.
  by rewrite vnorm_ord1; apply: Rle_trans (Rle_abs _) _; rewrite Rabs_Ropp; right.
have F1 : 1 - F <= ε / 2.
  rewrite /F softmax_miss; apply: Rle_trans (share_le_self (crowd_ge0 _ _)) _.
  apply: Rle_trans big; right; rewrite /crowd.
  rewrite (eq_bigr (fun _ => exp (- (4 * ρ ^ 2)))) => [|j /negbTE j0].
    by rewrite sum_others INR_S; congr (_ * _); rewrite -/m; ring.
  by rewrite !pole_score j0 eqxx; congr exp; ring.
move: le; rewrite /bound /error_bound sum_add -/D -/spread -/spread_Z [n.+2.-1]/=.
set Q := ∑_(k < n.+2) share (winner_crowd _ _ _ _ _).
set P := ∑_(k < n.+2) share (field_crowd _ _ _ _).
have Q1 : Q <= ε / 4.
  apply: Rle_trans (_ : _ <= m * (4 * exp (- γ * Δ))) _; last by lra.
  rewrite -sum_const_ord; apply: sum_le => k _.
  exact: (@crowd_small γ Δ spread n.+3 (widen_ord (leqnSn _) k)).
have P1 : P <= INR n.+1.
  rewrite /P big_ord_recl /field_crowd [nat_of_ord ord0]/= /Rdiv !Rmult_0_l share_0 Rplus_0_l.
  rewrite -(Rmult_1_r (INR n.+1)) -sum_const_ord; apply: sum_le => k _.
  apply: share_le1; apply: Rmult_le_pos (Rlt_le _ _ (exp_pos _)).
  apply: Rmult_le_pos (INR_ge0 _) (Rlt_le _ _ (Rinv_0_lt_compat _ _)).
  by apply: INR_gt0; rewrite subn_gt0 lift0 !ltnS ltnW // ltnS.
have k0 : 0 <= 2 * η * D by rewrite /D; apply: Rmult_le_pos; lra.
move=> le; apply: Rle_trans (_ : _ <= 2 * η * D * (INR n.+1 * F - Q)) _; last by lra.
have -> : (1 - ε) * (2 * η * D * (Q + P)) = 2 * η * D * ((1 - ε) * (Q + P)) by ring.
apply: Rmult_le_compat_l => //; move: (INR n.+1) m0 P1 => M M1 PM.
have a1 : (1 - ε) * P <= (1 - ε) * M by apply: Rmult_le_compat_l; lra.
have a2 : (1 - ε) * Q <= (1 - ε) * (ε / 4) by apply: Rmult_le_compat_l; lra.
have a4 : ε * 1 <= ε * M by apply: Rmult_le_compat_l; lra.
have a3 : M * (1 - F) <= M * (ε / 2) by apply: Rmult_le_compat_l; lra.
by nra.
Qed.
