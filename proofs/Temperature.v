(* Chapter 3, continued: how far the selected response is from the best, the temperature for a
   tolerance, and what ties do. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The output ─────────────────────────────────────────────────────────────────────────────── *)

Lemma sel_miss dx dy N γ (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) r i j :
  1 - sel_attention γ x y r i j = share (crowd (fun l => γ * r l) j).
Proof. by rewrite sel_softmax softmax_miss. Qed.

(* Some unit vector points along z, whatever z is. *)
Lemma unit_along d (z : vec 'I_d) : (0 < d)%N -> exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖.
Proof.
move=> d0; case: (vnorm_ge0 z) => [z0|z0].
  exists (/ ‖z‖ *: z)%V; rewrite vnorm_scal dot_scall -[⟨z, z⟩]/(‖z‖²) -vnorm_sqr Rabs_pos_eq.
    by split; field; lra.
  by left; exact: Rinv_0_lt_compat.
have {}z0 : z = vzero by apply: sqnorm_eq0; rewrite -vnorm_sqr -z0; ring.
pose e : vec 'I_d := fun a => if a == Ordinal d0 then 1 else 0; exists e; split.
  rewrite /vnorm /sqnorm /dot (sum_pick (Ordinal d0)) /e eqxx big1 => [|a /negbTE ->]; last by ring.
  by rewrite (_ : 1 * 1 + 0 = 1) ?sqrt_1 //; ring.
by rewrite z0 dotC !dot_zerol /vnorm /sqnorm dot_zerol sqrt_0.
Qed.

(* Claim selection-output, part projected; paper: Lemma C.2. *)
Theorem selection_output_projected : forall (dx dy N : nat) (γ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (v : vec 'I_dy) (best i : 'I_N),
  ‖v‖ = 1 -> (forall j, ‖y j - y best‖ <= D) ->
  ⟨v, selected γ x y r i - y best⟩ <= D * (1 - sel_attention γ x y r i best).
Proof.
move=> dx dy N γ D x y r v b i v1 yD; apply: Rle_trans (dot_le _ _) _.
by rewrite v1 Rmult_1_l sel_output sel_softmax; exact: mean_to_point.
Qed.

Lemma selection_distance dx dy N γ D (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) r (best i : 'I_N) :
  (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ <= D * (1 - sel_attention γ x y r i best).
Proof. by move=> yD; rewrite sel_output sel_softmax; exact: mean_to_point. Qed.

(* Claim selection-output, part norm: the error in every direction, and its length, the largest. *)
Theorem selection_output_norm : forall (dx dy N : nat) (γ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  (forall j, ‖y j - y best‖ <= D) ->
  let z := (selected γ x y r i - y best)%V in
  (forall v, ‖v‖ = 1 -> ⟨v, z⟩ <= ‖z‖ /\ (forall j, Rabs ⟨v, y j - y best⟩ <= D))
  /\ ((0 < dy)%N -> exists v, ‖v‖ = 1 /\ ⟨v, z⟩ = ‖z‖)
  /\ ‖z‖ <= D * (1 - sel_attention γ x y r i best).
Proof.
move=> dx dy N γ D x y r b i yD z; split; [|split] => [v v1|d0|]; last exact: selection_distance.
  have le w : Rabs ⟨v, w⟩ <= ‖w‖ by have := dot_abs_le v w; rewrite v1 Rmult_1_l.
  by split=> [|j]; [exact: Rle_trans (Rle_abs _) (le z) | exact: Rle_trans (le _) (yD j)].
exact: unit_along.
Qed.

(* Claim selection-output, part bound. *)
Theorem selection_output : forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 <= γ -> (forall j : 'I_N, j != best -> r j + Δ <= r best) ->
  (forall j, ‖y j - y best‖ <= D) ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  ‖selected γ x y r i - y best‖ <= D * (1 - sel_attention γ x y r i best) <= D * (q / (1 + q)).
Proof.
move=> dx dy N γ Δ D x y r b i γ0 gap yD /=; split; first exact: selection_distance.
apply: Rmult_le_compat_l; last exact: selection_bound.
exact: Rle_trans (vnorm_ge0 _) (yD b).
Qed.

(* Claim selection-output, part spaced. *)
Theorem selection_output_spaced : forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < Δ -> 0 < D -> spaced Δ r -> (forall j, r j <= r best) ->
  (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ < D * exp (- γ * Δ).
Proof.
move=> dx dy N γ Δ D x y r b i Δ0 D0 gaps top yD.
apply: Rle_lt_trans (selection_distance γ x r i yD) _; apply: Rmult_lt_compat_l => //.
case: (Rlt_le_dec 0 γ) => γ0; last first.
  have le : 1 <= exp (- γ * Δ) by rewrite -exp_0; apply: exp_mono; nra.
  by rewrite sel_softmax; have := softmax_gt0 (fun l => γ * r l) b; lra.
apply: Rle_lt_trans (selection_bound_spaced x y i γ0 Δ0 gaps top) _.
by apply: selection_bound_free_of_n => //; exact: leq_ltn_trans (ltn_ord b).
Qed.

(* Claim selection-output, part sharp. *)
Theorem selection_output_sharp : forall (dx dy N : nat) (γ Δ D : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (p : vec 'I_dy) (best i : 'I_N),
  (forall j : 'I_N, j != best -> r j = r best - Δ) -> (forall j : 'I_N, j != best -> y j = p) ->
  ‖p - y best‖ = D ->
  let q := (INR N - 1) * exp (- γ * Δ) in
  ‖selected γ x y r i - y best‖ = D * (q / (1 + q)).
Proof.
move=> dx dy N γ Δ D x y r p b i gap yp <- /=.
rewrite sel_output (mean_to_point_sharp _ yp) -(sel_softmax γ x y r i).
by rewrite (selection_bound_tied_losers γ x y i gap).
Qed.

(* ── The temperature ────────────────────────────────────────────────────────────────────────── *)

(* D·q/(1+q) ≤ ε iff γ ≥ log((N−1)(D/ε−1))/Δ₁. *)
Lemma tolerance_iff (n γ Δ D ε : R) : 0 < n -> 0 < Δ -> 0 < ε < D ->
  D * share (n * exp (- γ * Δ)) <= ε <-> ln (n * (D / ε - 1)) / Δ <= γ.
Proof.
move=> n0 Δ0 [ε0 εD]; have e0 := exp_pos (- γ * Δ).
have k0 : 0 < D / ε - 1.
  have -> : D / ε - 1 = (D - ε) / ε by field; lra.
  by apply: Rdiv_lt_0_compat; lra.
have t0 : 0 < n * (D / ε - 1) by exact: Rmult_lt_0_compat.
have E : D = ε * (1 + (D / ε - 1)) by field; lra.
set q := n * _; have q0 : 0 < q by exact: Rmult_lt_0_compat.
have shE : D * share q * (1 + q) = D * q by rewrite /share; field; lra.
have step1 : D * share q <= ε <-> (D / ε - 1) * q <= 1.
  by split=> H; [apply: (Rmult_le_reg_l ε) | apply: (Rmult_le_reg_r (1 + q))] => //; nra.
have step2 : (D / ε - 1) * q <= 1 <-> n * (D / ε - 1) <= exp (γ * Δ).
  have Ei : exp (γ * Δ) * exp (- γ * Δ) = 1.
    by rewrite -exp_plus (_ : γ * Δ + - γ * Δ = 0) ?exp_0 //; ring.
  have -> : (D / ε - 1) * q = n * (D / ε - 1) * exp (- γ * Δ) by rewrite /q; ring.
  by split=> H; [apply: (Rmult_le_reg_r (exp (- γ * Δ))) | ]; nra.
rewrite step1 step2; split=> H.
  apply: (Rmult_le_reg_r Δ) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; last by lra.
  apply: Rnot_lt_le => /exp_increasing; rewrite exp_ln //; lra.
rewrite -(exp_ln (n * (D / ε - 1))) //; apply: exp_mono.
have := Rmult_le_compat_r Δ _ _ (Rlt_le _ _ Δ0) H.
by rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
Qed.

(* The best response has others beside it, or is alone. *)
Lemma others_or_alone N (b : 'I_N) : 0 < INR N - 1 \/ INR N - 1 = 0.
Proof.
have := INR_le (leq_ltn_trans (leq0n b) (ltn_ord b)); rewrite [INR 1]/=; lra.
Qed.

(* A logarithm of 0 is 0 here: Rmax makes it a 0 in any case. *)
Lemma ln_0 : ln 0 = 0.
Proof. by rewrite /ln; case: Rlt_dec => // H; case: (Rlt_irrefl 0 H). Qed.

(* Claim selection-temperature, parts meets, decreasing: γ ≥ max(0, that logarithm/Δ₁). *)
Theorem selection_temperature : forall (dx dy N : nat) (γ Δ D ε : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (best i : 'I_N),
  0 < Δ -> 0 < ε < D ->
  Rmax 0 (ln ((INR N - 1) * (D / ε - 1)) / Δ) <= γ ->
  (forall j : 'I_N, j != best -> r j + Δ <= r best) -> (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ <= ε.
Proof.
move=> dx dy N γ Δ D ε x y r b i Δ0 εD γle gap yD.
have γ0 := Rle_trans _ _ _ (Rmax_l _ _) γle; have γ1 := Rle_trans _ _ _ (Rmax_r _ _) γle.
have [le1 le2] := selection_output x i γ0 gap yD; apply: Rle_trans le1 (Rle_trans _ _ _ le2 _).
case: (others_or_alone b) => n1; first by apply/tolerance_iff.
by rewrite n1 Rmult_0_l /Rdiv Rmult_0_l Rmult_0_r; lra.
Qed.

(* Claim selection-temperature, parts meets, zero: there the bound is ε, for every N. *)
Theorem selection_temperature_meets : forall (n Δ D ε : R),
  0 < n -> 0 < Δ -> 0 < ε < D ->
  let γ := ln (n * (D / ε - 1)) / Δ in
  let q := n * exp (- γ * Δ) in
  D * (q / (1 + q)) = ε.
Proof.
move=> n Δ D ε n0 Δ0 [ε0 εD] /=.
have k0 : 0 < D / ε - 1.
  have -> : D / ε - 1 = (D - ε) / ε by field; lra.
  by apply: Rdiv_lt_0_compat; lra.
have -> : - (ln (n * (D / ε - 1)) / Δ) * Δ = - ln (n * (D / ε - 1)) by field; lra.
rewrite exp_Ropp exp_ln; last exact: Rmult_lt_0_compat.
have -> : n * / (n * (D / ε - 1)) = / (D / ε - 1) by field; repeat split; lra.
have -> : D / ε - 1 = (D - ε) / ε by field; lra.
by field; repeat split; lra.
Qed.

(* Claim selection-temperature, parts decreasing, zero: from a negative γ, where it is ε, to 0. *)
Theorem selection_temperature_decreasing : forall (n Δ D γ γ' : R),
  0 < n -> 0 < Δ -> 0 < D -> γ < γ' ->
  let q := n * exp (- γ * Δ) in
  let q' := n * exp (- γ' * Δ) in
  D * (q' / (1 + q')) < D * (q / (1 + q)).
Proof.
move=> n Δ D γ γ' n0 Δ0 D0 lt /=; apply: Rmult_lt_compat_l => //.
have e0 := exp_pos (- γ' * Δ); apply: share_lt; first by nra.
by apply: Rmult_lt_compat_l => //; apply: exp_increasing; nra.
Qed.

(* Claim selection-temperature, part smallest: for losers tied at one point at distance D
   a temperature γ ≥ 0 meets ε exactly from max(0, log((N−1)(D/ε−1))/Δ₁) on. *)
Theorem selection_temperature_smallest : forall (dx dy N : nat) (γ Δ D ε : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (p : vec 'I_dy) (best i : 'I_N),
  0 < Δ -> 0 < ε < D -> 0 <= γ ->
  (forall j : 'I_N, j != best -> r j = r best - Δ) -> (forall j : 'I_N, j != best -> y j = p) ->
  ‖p - y best‖ = D ->
  ‖selected γ x y r i - y best‖ <= ε
  <-> Rmax 0 (ln ((INR N - 1) * (D / ε - 1)) / Δ) <= γ.
Proof.
move=> dx dy N γ Δ D ε x y r p b i Δ0 εD γ0 gap yp pD.
rewrite (selection_output_sharp γ x i gap yp pD) /=.
case: (others_or_alone b) => n1; last first.
  rewrite n1 !Rmult_0_l ln_0 /Rdiv !Rmult_0_l Rmult_0_r Rmax_left; last by lra.
  by split=> _; lra.
have T := @tolerance_iff (INR N - 1) γ Δ D ε n1 Δ0 εD; split=> [/T le|].
  by apply: Rmax_lub.
by move=> H; apply/T; exact: Rle_trans (Rmax_r _ _) H.
Qed.

(* Claim selection-temperature, part free-of-n. *)
Theorem selection_temperature_free_of_n : forall (γ Δ D ε : R),
  0 < Δ -> 0 < ε -> ln (D / ε) / Δ <= γ ->
  D * exp (- γ * Δ) <= ε /\
  forall (dx dy N : nat) (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (best i : 'I_N),
  spaced Δ r -> (forall j, r j <= r best) -> (forall j, ‖y j - y best‖ <= D) ->
  ‖selected γ x y r i - y best‖ < ε.
Proof.
move=> γ Δ D ε Δ0 ε0 γle.
case: (Rlt_le_dec 0 D) => D0; last first.
  split=> [|dx dy N x y r b i _ _ yD]; first by have := exp_pos (- γ * Δ); nra.
  have {}D0 : D = 0 by have := Rle_trans _ _ _ (vnorm_ge0 _) (yD b); lra.
  by apply: Rle_lt_trans (selection_distance γ x r i yD) _; rewrite D0 Rmult_0_l.
have le : ln (D / ε) <= γ * Δ.
  have := Rmult_le_compat_r Δ _ _ (Rlt_le _ _ Δ0) γle.
  by rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
have d0 : 0 < D / ε by exact: Rdiv_lt_0_compat.
have ξε : D * exp (- γ * Δ) <= ε.
  have : exp (- γ * Δ) <= / (D / ε).
    rewrite -{1}(exp_ln (D / ε)) // -exp_Ropp; apply: exp_mono; lra.
  move=> H; apply: Rle_trans (Rmult_le_compat_l D _ _ (Rlt_le _ _ D0) H) _.
  by right; field; lra.
split=> // dx dy N x y r b i gaps top yD.
exact: Rlt_le_trans (selection_output_spaced γ x i Δ0 D0 gaps top yD) ξε.
Qed.

(* ── Never exact, and ties ──────────────────────────────────────────────────────────────────── *)

(* Claim selection-never-exact, part positive. *)
Theorem selection_never_exact_positive : forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  0 < sel_attention γ x y r i j.
Proof. by move=> dx dy N γ x y r i j; rewrite sel_softmax; exact: softmax_gt0. Qed.

(* Claim selection-never-exact, part never; positive as well, for N ≥ 2. *)
Theorem selection_never_exact : forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j : 'I_N),
  (2 <= N)%N -> 0 < sel_attention γ x y r i j < 1.
Proof.
move=> dx dy N γ x y r i j N2; rewrite sel_softmax; split; first exact: softmax_gt0.
have [l lj] : exists l : 'I_N, l != j.
  case: N N2 x y r i j => // [[//|n]] _ x y r i j; case: (j =P ord0) => [->|/eqP j0].
    by exists ord_max.
  by exists ord0; rewrite eq_sym.
have := softmax_rest (fun l => γ * r l) j.
have : 0 < ∑_(l | l != j) softmax (fun l => γ * r l) l.
  by apply: (sum_gt0 (k := l)) => [//|k _]; exact: softmax_gt0.
by lra.
Qed.

(* Claim selection-ties, part share: tied winners have equal weights. *)
Theorem selection_ties_share : forall (dx dy N : nat) (γ : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i j l : 'I_N),
  r j = r l -> sel_attention γ x y r i j = sel_attention γ x y r i l.
Proof. by move=> dx dy N γ x y r i j l e; rewrite !sel_softmax /softmax e. Qed.

(* Claim selection-ties, part outside: w winners, the others Δ or more behind. *)
Theorem selection_ties_outside : forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i : 'I_N),
  0 <= γ -> (0 < #|winner|)%N -> (forall j, winner j -> r j = m) ->
  (forall j, ~~ winner j -> r j + Δ <= m) ->
  let w := INR #|winner| in
  let q := (INR N - w) / w * exp (- γ * Δ) in
  ∑_(j | ~~ winner j) sel_attention γ x y r i j <= q / (1 + q).
Proof.
move=> dx dy N γ Δ m x y r winner i γ0 w0 top gap /=.
have W0 := INR_gt0 w0; set w := INR _ in W0 *.
have em := exp_pos (γ * m); have ed := exp_pos (- γ * Δ).
have count : ∑_(j | ~~ winner j) 1 = INR N - w.
  have := sum_const_ord N 1; rewrite (sum_ID winner predT) /= sum_const_card /w.
  have -> : #|[pred j | winner j]| = #|winner| by apply: eq_card.
  by lra.
have Nw : 0 <= INR N - w by rewrite -count; apply: sum_ge0 => j _; lra.
have L : ∑_(j | winner j) exp (γ * r j) = w * exp (γ * m).
  rewrite (eq_bigr (fun _ => exp (γ * m))) => [|j wj]; last by rewrite top.
  by rewrite sum_const_card.
set F := ∑_(j | ~~ winner j) exp (γ * r j).
have F0 : 0 <= F by apply: sum_ge0 => j _; left; exact: exp_pos.
have FE : F <= (INR N - w) * (exp (- γ * Δ) * exp (γ * m)).
  rewrite -count; set c := exp (- γ * Δ) * _.
  apply: (Rle_trans _ (∑_(j | ~~ winner j) (1 * c))); last by rewrite sum_scalr; right.
  apply: sum_le => j wj; rewrite Rmult_1_l /c -exp_plus.
  by apply: exp_mono; have := gap j wj; nra.
under eq_bigr => j _ do rewrite sel_softmax.
rewrite sum_div -/F (sum_ID winner predT) /= L -/F -share_div //; last by nra.
apply: share_le; first by apply: Rmult_le_pos => //; left; apply: Rinv_0_lt_compat; nra.
apply: (Rmult_le_reg_r (w * exp (γ * m))); first by nra.
rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; last by nra.
apply: Rle_trans FE _; right; field; lra.
Qed.

(* Claim selection-ties, part limit: a winner's weight is at least 1/(w + n e^{−γΔ}). *)
Theorem selection_ties_least : forall (dx dy N : nat) (γ Δ m : R) (x : vec 'I_dx)
    (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (winner : pred 'I_N) (i j : 'I_N),
  0 <= γ -> winner j -> (forall l, winner l -> r l = m) ->
  (forall l, ~~ winner l -> r l + Δ <= m) ->
  let w := INR #|winner| in
  1 / (w + (INR N - w) * exp (- γ * Δ)) <= sel_attention γ x y r i j <= 1 / w.
Proof.
move=> dx dy N γ Δ m x y r winner i j γ0 wj top gap /=.
have w0 : (0 < #|winner|)%N by apply/card_gt0P; exists j.
have W0 := INR_gt0 w0.
have out := selection_ties_outside x y i γ0 w0 top gap.
have in_ : ∑_(l | winner l) sel_attention γ x y r i l
    = INR #|winner| * sel_attention γ x y r i j.
  rewrite -sum_const_card; apply: eq_bigr => l wl.
  by apply: selection_ties_share; rewrite !top.
have all : ∑_l sel_attention γ x y r i l = 1.
  by under eq_bigr => l _ do rewrite sel_softmax; exact: softmax_sum j.
move: all; rewrite (sum_ID winner predT) /= in_ => all.
move: out; rewrite /=; set w := INR #|winner| in W0 all *.
set o := ∑_(l | _) _ in all *; set a := sel_attention _ _ _ _ _ _ in all *.
have o0 : 0 <= o by apply: sum_ge0 => l _; rewrite sel_softmax; left; exact: softmax_gt0.
have n0 : 0 <= INR N - w.
  by have : w <= INR N by [apply: INR_le; have := max_card winner; rewrite card_ord]; lra.
set e := exp (- γ * Δ); have e0 : 0 < e by exact: exp_pos.
set n := INR N - w in n0 *; have ne : 0 <= n * e by nra.
have wne : 0 < w + n * e by lra.
have -> : n / w * e / (1 + n / w * e) = n * e / (w + n * e).
  by field; repeat split; lra.
move=> le; split.
  apply: (Rmult_le_reg_r (w + n * e)) => //.
  have -> : 1 / (w + n * e) * (w + n * e) = 1 by field; lra.
  have : o * (w + n * e) <= n * e.
    have E : n * e / (w + n * e) * (w + n * e) = n * e by field; lra.
    by rewrite -{2}E; apply: Rmult_le_compat_r; lra.
  by nra.
apply: (Rmult_le_reg_r w) => //; have -> : 1 / w * w = 1 by field; lra.
by nra.
Qed.
