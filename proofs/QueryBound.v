(* Chapter 7, Multiple queries I: how much attention stays with the right winner, and what a token
   receives; with identifiers of queries in place of their inner products as well. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.
From Icalign Require Import QuerySelection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── How much attention stays with the right winner ─────────────────────────────────────────── *)

(* All tokens but (a, w): the others of query a, and those of the other queries. *)
Lemma sum_own_others M N (F : 'I_M * 'I_N -> R) (a : 'I_M) (w : 'I_N) :
  ∑_(t | t != (a, w)) F t = ∑_(j | j != w) F (a, j) + ∑_(b | b != a) ∑_j F (b, j).
Proof.
have := sum_pick (a, w) F; rewrite (eq_bigr (fun t => F (t.1, t.2))) => [|[b j] _] //.
rewrite -(sum_pair (fun b j => F (b, j))) (sum_pick a) (sum_pick w) => E.
by apply: (Rplus_eq_reg_l (F (a, w))); rewrite -E Rplus_assoc.
Qed.

(* Logits of all tokens as a token of query a sees them, g b how much query b looks like a. *)
Section Crowd.
Variables (M N : nat) (γ1 γ2 Δ sep low spread : R) (g : 'I_M -> R) (r : 'I_M -> 'I_N -> R).
Variables (a : 'I_M) (w : 'I_N).
Hypotheses (γ1_0 : 0 <= γ1) (γ2_0 : 0 <= γ2).
Hypothesis gap : forall j : 'I_N, j != w -> r a j + Δ <= r a w.
Hypothesis apart : forall b : 'I_M, b != a -> g b <= g a - sep.
Hypothesis range : forall b j, low <= r b j <= low + spread.

Let z (t : 'I_M * 'I_N) := γ1 * g t.1 + γ2 * r t.1 t.2.
Let own := (INR N - 1) * exp (- γ2 * Δ).
Let leak := (INR M - 1) * INR N * exp (- (γ1 * sep - γ2 * spread)).

Lemma own_crowd_le : ∑_(j | j != w) exp (z (a, j) - z (a, w)) <= own.
Proof.
rewrite /own -(sum_others w); apply: sum_le => j jw; apply: exp_mono.
by rewrite /z /=; have := gap jw; nra.
Qed.

Lemma leak_crowd_le : ∑_(b | b != a) ∑_j exp (z (b, j) - z (a, w)) <= leak.
Proof.
rewrite /leak Rmult_assoc -(sum_others a) -sum_const_ord.
apply: sum_le => b ba; apply: sum_le => j _; apply: exp_mono.
rewrite /z /=; have := range b j; have := range a w; have := apart ba.
by move=> H1 H2 H3; have := Rmult_le_compat_l _ _ _ γ1_0 H1; nra.
Qed.

Lemma query_crowd_le : crowd z (a, w) <= own + leak.
Proof.
rewrite /crowd sum_own_others; apply: Rplus_le_compat; first exact: own_crowd_le.
exact: leak_crowd_le.
Qed.

Lemma query_miss_le : 1 - softmax z (a, w) <= own + leak.
Proof.
rewrite softmax_miss; apply: Rle_trans (share_le_self _) query_crowd_le.
exact: crowd_ge0.
Qed.

(* The mean of the values, D from the winner within the query and D₀ anywhere. *)
Lemma query_mean_le d (y : 'I_M -> 'I_N -> vec 'I_d) D D0 :
  (forall j, ‖y a j - y a w‖ <= D) -> (forall b j, ‖y b j - y a w‖ <= D0) ->
  ‖comb (softmax z) (fun t => y t.1 t.2) - y a w‖ <= D * own + D0 * leak.
Proof.
move=> yD yD0; have D_0 : 0 <= D by apply: Rle_trans (yD w); exact: vnorm_ge0.
have D0_0 : 0 <= D0 by apply: Rle_trans (yD0 a w); exact: vnorm_ge0.
have -> : (comb (softmax z) (fun t => y t.1 t.2) - y a w
    = comb (softmax z) (fun t => y t.1 t.2 - y a w))%V.
  apply: vec_eq => c; rewrite /comb /vsub.
  rewrite [RHS](eq_bigr (fun t => softmax z t * y t.1 t.2 c - softmax z t * y a w c)).
    by rewrite sum_sub sum_scalr (softmax_sum z (a, w)); ring.
  by move=> t _; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite (sum_pick (a, w)) /=.
have -> : ‖y a w - y a w‖ = 0.
  have -> : (y a w - y a w = 0 *: y a w)%V by apply: vec_eq => c; rewrite /vsub /vscal; ring.
  by rewrite vnorm_scal Rabs_R0; ring.
have weight t : Rabs (softmax z t) <= exp (z t - z (a, w)).
  rewrite Rabs_pos_eq; last by left; exact: softmax_gt0.
  have S0 := sum_exp_all_gt0 z t; rewrite /softmax /Rminus exp_plus exp_Ropp.
  apply: Rmult_le_compat_l; first by left; exact: exp_pos.
  apply: Rinv_le_contravar; first exact: exp_pos.
  by apply: sum_ge_term => // s _; left; exact: exp_pos.
rewrite Rmult_0_r Rplus_0_l sum_own_others; apply: Rplus_le_compat.
  apply: Rle_trans (Rmult_le_compat_l _ _ _ D_0 own_crowd_le); rewrite -sum_scal.
  apply: sum_le => j _; rewrite Rmult_comm; apply: Rmult_le_compat => //=.
  - exact: vnorm_ge0.
  - exact: Rabs_pos.
apply: Rle_trans (Rmult_le_compat_l _ _ _ D0_0 leak_crowd_le); rewrite -sum_scal.
apply: sum_le => b _; rewrite -sum_scal.
apply: sum_le => j _; rewrite Rmult_comm; apply: Rmult_le_compat => //=.
- exact: vnorm_ge0.
- exact: Rabs_pos.
Qed.

End Crowd.

Lemma mq_softmax dx dy M N γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) r a s t :
  mq_attention γ1 γ2 x y r (a, s) t = softmax (fun t => γ1 * ⟨x a, x t.1⟩ + γ2 * r t.1 t.2) t.
Proof. by apply: eq_softmax => [[b j]]; exact: mq_logits_prompt. Qed.

(* Claim mq-bound, part bound; paper: F.1. *)
Theorem mq_bound : forall (dx dy M N : nat) (γ1 γ2 Δ ρ low spread : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - mq_attention γ1 γ2 x y r (a, s) (a, best)
  <= (INR N - 1) * exp (- γ2 * Δ)
     + (INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ2 * spread)).
Proof.
move=> dx dy M N γ1 γ2 Δ ρ low spread x y r a best s γ1_0 γ2_0 x1 overlap gap range.
rewrite mq_softmax.
apply: (query_miss_le (low := low) (g := fun b => ⟨x a, x b⟩)) => // b ba.
by have := overlap b ba; rewrite -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1; lra.
Qed.

(* Claim mq-bound, part not-enough: whatever γ₁ is, the losers of query a keep p times what its
   winner has. *)
Theorem mq_bound_not_enough : forall (dx dy M N : nat) (γ2 low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  (2 <= N)%N -> 0 <= γ2 -> (forall b j, low <= r b j <= low + spread) ->
  let p := (INR N - 1) * exp (- γ2 * spread) in
  0 < p / (1 + p) /\ forall γ1,
  let A := mq_attention γ1 γ2 x y r (a, s) in
  p * A (a, best) <= ∑_(j | j != best) A (a, j) /\ p / (1 + p) <= 1 - A (a, best).
Proof.
move=> dx dy M N γ2 low spread x y r a best s N2 γ0 range p.
have p0 : 0 < p.
  by apply: Rmult_lt_0_compat (exp_pos _); have := INR_le N2; rewrite INR_S /=; lra.
split=> [|γ1 A]; first by apply: Rdiv_lt_0_compat; lra.
have At t : A t = softmax (fun t => γ1 * ⟨x a, x t.1⟩ + γ2 * r t.1 t.2) t by exact: mq_softmax.
set z := fun t => _ in At.
have lose j : exp (- γ2 * spread) <= exp (z (a, j) - z (a, best)).
  by apply: exp_mono; rewrite /z /=; have := range a j; have := range a best; nra.
split.
  rewrite /p Rmult_assoc -(sum_others best); apply: sum_le => j _; rewrite !At /softmax /Rdiv.
  have S0 := sum_exp_all_gt0 z (a, best); rewrite -Rmult_assoc; apply: Rmult_le_compat_r.
    by left; exact: Rinv_0_lt_compat.
  have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ (exp_pos (z (a, best)))) (lose j).
  suff -> : exp (z (a, j)) = exp (z (a, j) - z (a, best)) * exp (z (a, best)) by [].
  by rewrite -exp_plus; congr exp; ring.
rewrite At softmax_miss; apply: share_le; first by lra.
rewrite /crowd sum_own_others; apply: (Rle_trans _ (p + 0)); first by lra.
apply: Rplus_le_compat; first by rewrite /p -(sum_others best); apply: sum_le => j _; exact: lose.
by apply: sum_ge0 => b _; apply: sum_ge0 => j _; left; exact: exp_pos.
Qed.

(* Claim mq-bound, part not-enough: as γ₁ grows, ρ < 1, what the losers of query a have together
   stays above a number that tends to p/(1+p). *)
Theorem mq_bound_losers : forall (dx dy M N : nat) (γ1 γ2 ρ low spread : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  (2 <= N)%N -> 0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b j, low <= r b j <= low + spread) ->
  let p := (INR N - 1) * exp (- γ2 * spread) in
  let leak := (INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ2 * spread)) in
  p / (1 + p + leak) <= ∑_(j | j != best) mq_attention γ1 γ2 x y r (a, s) (a, j).
Proof.
move=> dx dy M N γ1 γ2 ρ low spread x y r a best s N2 γ1_0 γ2_0 x1 overlap range p leak.
have [_ /(_ γ1) [lose _]] := mq_bound_not_enough x y a best s N2 γ2_0 range.
rewrite -/p in lose; set L := ∑_(j | _) _ in lose *.
pose z t := γ1 * ⟨x a, x t.1⟩ + γ2 * r t.1 t.2; set A := mq_attention _ _ _ _ _ _ _ in lose.
have AE : A = softmax z (a, best) by exact: mq_softmax.
have A0 : 0 < A by rewrite AE; exact: softmax_gt0.
have apart b : b != a -> ⟨x a, x b⟩ <= ⟨x a, x a⟩ - (1 - ρ).
  by move=> ba; have := overlap b ba; rewrite -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1; lra.
have := @leak_crowd_le M N γ1 γ2 (1 - ρ) low spread (fun b => ⟨x a, x b⟩) r a best γ1_0 γ2_0
  apart range; rewrite -/leak => few.
have p0 : 0 < p.
  by apply: Rmult_lt_0_compat (exp_pos _); have := INR_le N2; rewrite INR_S /=; lra.
have leak0 : 0 <= leak.
  by apply: Rle_trans few; apply: sum_ge0 => b _; apply: sum_ge0 => j _; left; exact: exp_pos.
have rest : 1 - A - L <= leak * A.
  have := softmax_rest z (a, best); rewrite sum_own_others -AE.
  have -> : ∑_(j | j != best) softmax z (a, j) = L.
    by apply: eq_bigr => j _; rewrite mq_softmax.
  move=> <-; set S := ∑_(b | b != a) _; suff : S <= leak * A by lra.
  have -> : S = ∑_(b | b != a) ∑_j exp (z (b, j) - z (a, best)) * A.
    rewrite -sum_scalr; apply: eq_bigr => b _; rewrite -sum_scalr; apply: eq_bigr => j _.
    by rewrite AE /softmax /Rdiv -Rmult_assoc -exp_plus; congr (exp _ * _); ring.
  by apply: Rmult_le_compat_r few; lra.
apply: (Rmult_le_reg_r (1 + p + leak)); first by lra.
have -> : p / (1 + p + leak) * (1 + p + leak) = p by field; lra.
by have := Rmult_le_compat_l (1 + leak) _ _ ltac:(lra) lose; nra.
Qed.

(* The two temperatures make each part of the crowd ε/2. *)
Lemma query_temperatures M N Δ ρ spread ε : (2 <= M)%N -> (2 <= N)%N -> 0 < Δ -> 0 <= spread ->
  ρ < 1 -> 0 < ε < 2 ->
  let γ2 := ln (2 * (INR N - 1) / ε) / Δ in
  let γ1 := (γ2 * spread + ln (2 * (INR M - 1) * INR N / ε)) / (1 - ρ) in
  [/\ 0 < γ1, 0 < γ2, (INR N - 1) * exp (- γ2 * Δ) = ε / 2
    & (INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ2 * spread)) = ε / 2].
Proof.
move=> M2 N2 Δ0 s0 ρ1 ε0 γ2 γ1.
have M1 := INR_le M2; have N1 := INR_le N2; rewrite !INR_S /= in M1 N1.
have half c : 1 <= c -> 0 < ln (2 * c / ε) /\ c * exp (- ln (2 * c / ε)) = ε / 2.
  move=> c1; have q1 : 1 < 2 * c / ε.
    apply: (Rmult_lt_reg_r ε); first by lra.
    by have -> : 2 * c / ε * ε = 2 * c by [field; lra]; lra.
  split; first by rewrite -ln_1; apply: ln_increasing; lra.
  by rewrite exp_Ropp exp_ln; [field; lra | lra].
have [L0 LE] := half (INR N - 1) ltac:(lra).
have [K0 KE] := half ((INR M - 1) * INR N) ltac:(nra).
have γ20 : 0 < γ2 by apply: Rdiv_lt_0_compat.
have E : 2 * ((INR M - 1) * INR N) = 2 * (INR M - 1) * INR N by ring.
split=> //.
- rewrite E in K0; apply: Rdiv_lt_0_compat; last by lra.
  by have := Rmult_le_pos _ _ (Rlt_le _ _ γ20) s0; lra.
- by rewrite -LE; congr (_ * exp _); rewrite /γ2; field; lra.
- by rewrite -KE E; congr (_ * exp _); rewrite /γ1; field; lra.
Qed.

(* Claim mq-bound, part temperatures. *)
Theorem mq_bound_temperatures : forall (dx dy M N : nat) (Δ ρ low spread ε : R),
  (2 <= M)%N -> (2 <= N)%N -> 0 < Δ -> ρ < 1 -> 0 < ε ->
  let γ2 := ln (2 * (INR N - 1) / ε) / Δ in
  let γ1 := (γ2 * spread + ln (2 * (INR M - 1) * INR N / ε)) / (1 - ρ) in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  1 - mq_attention γ1 γ2 x y r (a, s) (a, best) <= ε.
Proof.
move=> dx dy M N Δ ρ low spread ε M2 N2 Δ0 ρ1 ε0 γ2 γ1 x y r a best s x1 overlap gap range.
case: (Rlt_le_dec ε 2) => ε2; last first.
  by rewrite mq_softmax; set z := fun t => _; have := softmax_gt0 z (a, best); lra.
have s0 : 0 <= spread by have := range a s; lra.
have [γ10 γ20 EN EM] := query_temperatures M2 N2 Δ0 s0 ρ1 (conj ε0 ε2).
apply: Rle_trans (mq_bound y s (Rlt_le _ _ γ10) (Rlt_le _ _ γ20) x1 overlap gap range) _.
by rewrite EN EM; lra.
Qed.

(* ── What every column receives ─────────────────────────────────────────────────────────────── *)

(* What the token s finds in the row best after the block. *)
Definition mq_selected {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
  (r : 'I_M -> 'I_N -> R) (s : 'I_M * 'I_N) : vec 'I_dy :=
  run full [:: Block [:: mq_head dx dy γ1 γ2] None] (mq_prompt x y r) s Sel.best.

Lemma mq_output dx dy M N γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) r a s :
  mq_selected γ1 γ2 x y r (a, s)
  = comb (softmax (fun t => γ1 * ⟨x a, x t.1⟩ + γ2 * r t.1 t.2)) (fun t => y t.1 t.2).
Proof.
apply: vec_eq => c; rewrite /mq_selected /run /= /transform /= /attend /= big_cons big_nil /=.
rewrite /head_output; blocks; rewrite /comb.
rewrite Rplus_0_l Rmult_1_l !Rplus_0_r; apply: eq_bigr => t _.
by rewrite -/(mq_attention γ1 γ2 x y r (a, s) t) mq_softmax; blocks; ring.
Qed.

(* Claim mq-outcome, part error; paper: F.1. *)
Theorem mq_outcome : forall (dx dy M N : nat) (γ1 γ2 Δ ρ low spread D D0 : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  0 <= γ1 -> 0 <= γ2 -> ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) -> (forall b i j, ‖y b i - y a j‖ <= D0) ->
  ‖mq_selected γ1 γ2 x y r (a, s) - y a best‖
  <= D * ((INR N - 1) * exp (- γ2 * Δ))
     + D0 * ((INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ2 * spread))).
Proof.
move=> dx dy M N γ1 γ2 Δ ρ low spread D D0 x y r a best s γ1_0 γ2_0 x1 overlap gap range yD yD0.
rewrite mq_output.
apply: (query_mean_le (low := low) (g := fun b => ⟨x a, x b⟩)) => // b ba.
by have := overlap b ba; rewrite -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1; lra.
Qed.

(* Claim mq-outcome, part norm: ‖z‖ is an upper bound, attained by a unit v if there is any. *)
Theorem mq_outcome_norm : forall (d : nat) (z : vec 'I_d),
  (forall v, ‖v‖ = 1 -> ⟨v, z⟩ <= ‖z‖) /\ ((0 < d)%N -> exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖).
Proof.
move=> d z; split=> [v v1|d0]; first by apply: Rle_trans (dot_le _ _) _; rewrite v1; lra.
case: (Req_dec (‖z‖) 0) => [z0|z0].
  pose e : vec 'I_d := fun c => if c == Ordinal d0 then 1 else 0; exists e.
  have e1 : ‖e‖² = 1.
    rewrite /sqnorm /dot (sum_pick (Ordinal d0)) /e eqxx big1 => [|c /negbTE ->]; ring.
  split; first by rewrite /vnorm e1 sqrt_1.
  have -> : z = vzero by apply: sqnorm_eq0; rewrite -vnorm_sqr z0; ring.
  by rewrite dotC dot_zerol /vnorm (_ : ‖_‖² = 0) ?sqrt_0 //; exact: dot_zerol.
have z1 : 0 < ‖z‖ by have := vnorm_ge0 z; lra.
exists (/ ‖z‖ *: z)%V; rewrite vnorm_scal dot_scall -[⟨z, z⟩]/(‖z‖²) -vnorm_sqr.
rewrite Rabs_pos_eq; last by left; exact: Rinv_0_lt_compat.
by split; field.
Qed.

(* Claim mq-outcome, part limit: as ε falls, at the temperatures of the claim mq-bound. *)
Theorem mq_outcome_limit : forall (dx dy M N : nat) (Δ ρ low spread D D0 ε : R),
  (2 <= M)%N -> (2 <= N)%N -> 0 < Δ -> ρ < 1 -> 0 < ε ->
  let γ2 := ln (2 * (INR N - 1) / ε) / Δ in
  let γ1 := (γ2 * spread + ln (2 * (INR M - 1) * INR N / ε)) / (1 - ρ) in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (a : 'I_M) (best s : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall j : 'I_N, j != best -> r a j + Δ <= r a best) ->
  (forall b j, low <= r b j <= low + spread) ->
  (forall i j, ‖y a i - y a j‖ <= D) -> (forall b i j, ‖y b i - y a j‖ <= D0) ->
  ‖mq_selected γ1 γ2 x y r (a, s) - y a best‖ <= (D + D0) * ε / 2.
Proof.
move=> dx dy M N Δ ρ low spread D D0 ε M2 N2 Δ0 ρ1 ε0 γ2 γ1 x y r a best s.
move=> x1 overlap gap range yD yD0.
case: (Rlt_le_dec ε 2) => ε2; last first.
  have D_0 := Rle_trans _ _ _ (vnorm_ge0 _) (yD s s).
  have D0_0 := Rle_trans _ _ _ (vnorm_ge0 _) (yD0 a s s).
  rewrite mq_output; set z := fun t : 'I_M * 'I_N => _.
  have far t : ‖y t.1 t.2 - y a best‖ <= D + D0 by have := yD0 t.1 t.2 best; lra.
  apply: Rle_trans (@mean_to_point _ _ (fun t => y t.1 t.2) z (a, best) _ far) _.
  have A0 := softmax_gt0 z (a, best); have D2 : 0 <= D + D0 by lra.
  have := Rmult_le_compat_l _ _ _ D2 ε2; have := Rmult_le_pos _ _ D2 (Rlt_le _ _ A0); lra.
have s0 : 0 <= spread by have := range a s; lra.
have [γ10 γ20 EN EM] := query_temperatures M2 N2 Δ0 s0 ρ1 (conj ε0 ε2).
have := mq_outcome s (Rlt_le _ _ γ10) (Rlt_le _ _ γ20) x1 overlap gap range yD yD0.
by rewrite EN EM => le; apply: Rle_trans le _; lra.
Qed.

(* ── Similar queries ────────────────────────────────────────────────────────────────────────── *)

(* What γ₁ has to be, whatever γ₂ is, where each of two queries has a token that keeps 1 − ε. *)
Lemma keeps_apart dx dy M N γ1 γ2 ε (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (i j s : 'I_N) :
  0 < ε < 1 / 2 -> a != b -> ‖x a‖ = 1 -> ⟨x a, x b⟩ < 1 -> γ2 * r a i <= γ2 * r b j ->
  1 - ε <= mq_attention γ1 γ2 x y r (a, s) (a, i) ->
  ln (1 / ε - 1) / (1 - ⟨x a, x b⟩) <= γ1.
Proof.
move=> ε0 ab x1 ρ1 tie; rewrite mq_softmax; set z := fun t => _ => kept.
set ρ := ⟨x a, x b⟩ in ρ1 *.
have zE : - (γ1 * (1 - ρ)) <= z (b, j) - z (a, i).
  by rewrite /z /= -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1 -/ρ; lra.
have le : exp (- (γ1 * (1 - ρ))) <= crowd z (a, i).
  apply: Rle_trans (exp_mono zE) _; rewrite /crowd.
  apply: (sum_ge_term (P := fun t => t != (a, i)) (F := fun t => exp (z t - z (a, i)))).
    by rewrite xpair_eqE eq_sym (negbTE ab).
  by move=> t _; left; exact: exp_pos.
have e0 := exp_pos (- (γ1 * (1 - ρ))); have miss := softmax_miss z (a, i).
have sh := share_le (Rlt_le _ _ e0) le; rewrite -miss /share in sh.
have less : exp (- (γ1 * (1 - ρ))) * (1 / ε - 1) <= 1.
  set e := exp _ in e0 sh *; have E : e / (1 + e) * (1 + e) = e by field; lra.
  have S : e / (1 + e) * (1 + e) <= ε * (1 + e) by apply: Rmult_le_compat_r; lra.
  by apply: (Rmult_le_reg_r ε); [lra | field_simplify; lra].
have v1 : 1 < 1 / ε - 1.
  by apply: (Rmult_lt_reg_r ε); [lra | field_simplify; lra].
apply: (Rmult_le_reg_r (1 - ρ)); first by lra.
have -> : ln (1 / ε - 1) / (1 - ρ) * (1 - ρ) = ln (1 / ε - 1) by field; lra.
apply: Rnot_lt_le => /exp_increasing; rewrite exp_ln; last by lra.
have pos := exp_pos (γ1 * (1 - ρ)).
have inv : exp (γ1 * (1 - ρ)) * exp (- (γ1 * (1 - ρ))) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ pos) less; rewrite -Rmult_assoc inv; lra.
Qed.

(* Every winner keeps 1 − ε of the attention, at every token of its query. *)
Definition winners_keep {dx dy M N} (ε γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) : Prop :=
  forall a s, 1 - ε <= mq_attention γ1 γ2 x y r (a, s) (a, best a).

(* Claim mq-duplicates, part growth: with ρ the largest inner product, that of a and b, enough/(1−ρ)
   is enough, and nothing below least/(1−ρ) is, whatever γ₂; enough and least know nothing of the
   queries. *)
Theorem mq_duplicates_growth : forall (dx dy M N : nat) (Δ low spread ε : R),
  (2 <= N)%N -> 0 < Δ -> 0 < ε < 1 / 2 ->
  let γ := ln (2 * (INR N - 1) / ε) / Δ in
  let enough := γ * spread + ln (2 * (INR M - 1) * INR N / ε) in
  let least := ln (1 / ε - 1) in
  0 < least /\ forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (ρ : R) (a b : 'I_M),
  (forall c, ‖x c‖ = 1) -> (forall c d : 'I_M, c != d -> ⟨x c, x d⟩ <= ρ) -> ρ < 1 ->
  (forall (c : 'I_M) (j : 'I_N), j != best c -> r c j + Δ <= r c (best c)) ->
  (forall c j, low <= r c j <= low + spread) ->
  a != b -> ⟨x a, x b⟩ = ρ ->
  (forall γ1, enough / (1 - ρ) <= γ1 -> winners_keep ε γ1 γ x y r best)
  /\ (forall γ1 γ2, winners_keep ε γ1 γ2 x y r best -> least / (1 - ρ) <= γ1).
Proof.
move=> dx dy M N Δ low spread ε N2 Δ0 ε0 γ enough least.
have least0 : 0 < least.
  rewrite /least -ln_1; apply: ln_increasing; first by lra.
  by apply: (Rmult_lt_reg_r ε); [lra | field_simplify; lra].
split=> // x y r best ρ a b x1 overlap ρ1 gap range ab abρ; split=> [γ1 ge c s|γ1 γ2 keep].
  have M2 : (2 <= M)%N.
    case: M x y r best a b x1 overlap gap range ab abρ c {enough ge} => [|[|M]] //.
      by move=> ? ? ? ? [].
    by move=> ? ? ? ? a b; rewrite (ord1 a) (ord1 b) eqxx.
  have s0 : 0 <= spread by have := range a s; lra.
  have ε2 : 0 < ε < 2 by lra.
  have := query_temperatures M2 N2 Δ0 s0 ρ1 ε2; rewrite -/γ.
  rewrite -/enough => -[γ10 γ20 EN EM]; set γ' := enough / (1 - ρ) in ge γ10 EM.
  have bc d : d != c -> ⟨x c, x d⟩ <= ρ by move=> dc; apply: overlap; rewrite eq_sym.
  have γ10' : 0 <= γ1 by lra.
  have := mq_bound y s γ10' (Rlt_le _ _ γ20) (x1 c) bc (gap c) range; rewrite EN => le.
  suff : (INR M - 1) * INR N * exp (- (γ1 * (1 - ρ) - γ * spread)) <= ε / 2 by lra.
  rewrite -EM; apply: Rmult_le_compat_l.
    have := INR_le M2; have := INR_ge0 N; rewrite INR_S [INR 1]/=; nra.
  by apply: exp_mono; have := Rmult_le_compat_r (1 - ρ) _ _ ltac:(lra) ge; lra.
have s := best a; have ba : ⟨x b, x a⟩ = ρ by rewrite dotC.
case: (Rle_dec (γ2 * r a (best a)) (γ2 * r b (best b))) => le.
  by have := keeps_apart ε0 ab (x1 a) _ le (keep a s); rewrite abρ; exact.
have le' : γ2 * r b (best b) <= γ2 * r a (best a) by lra.
by rewrite eq_sym in ab; have := keeps_apart ε0 ab (x1 b) _ le' (keep b s); rewrite ba; exact.
Qed.
