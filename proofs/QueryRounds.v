(* Chapter 8, Multiple queries II: N−1 filtered blocks among the tokens of M queries and a sink
   deliver the own term of every query. Blocks and places count from 0. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 OwnTerms.
From Icalign Require Import QueryBlocks QueryTurn.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── All blocks ─────────────────────────────────────────────────────────────────────────────── *)

(* The block at the margins g and h. *)
Definition queries_block {dx dy} (W : mat dy dx) (η g h Δ ρ low spread spread_Z B : R) (M : nat) :
    block (mt_stream dx dy) :=
  mt_block W η (queries_γ1 g Δ ρ spread M) (g / Δ) (queries_γβ h ρ spread_Z M) Δ low spread B
    (spread_Z + h).

Section Rounds.
Variables (dx dy M N : nat) (W : mat dy dx) (η g h Δ ρ low spread low_Z spread_Z D0 B : R).
Variables (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R).
Variable τ : 'I_M -> {perm 'I_N}.
Notation T := (option ('I_M * 'I_N)).
Hypotheses (η0 : 0 <= η) (Δ0 : 0 < Δ) (g9 : ln 9 <= g) (h0 : 0 <= h) (ρ0 : 0 <= ρ < 1).
Hypothesis B_large : 3 / 2 + 2 * spread / Δ <= B.
Hypothesis cls : in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r.
Hypothesis ranked : forall b, ranks (r b) (τ b).
Let e := 2 * η * (D0 * (5 / 2 * exp (- g)) + D0 * ((INR N - 1) * exp (- h))).

Lemma clip_ge0 c : 0 <= clip c. Proof. by rewrite clip_between; exact: Rmax_l. Qed.

Definition own_u (acc : 'I_M -> vec 'I_dy) (t : T) : vec 'I_dy :=
  if t is Some p then acc p.1 else vzero.

Lemma mt_rounds K : (K <= N - 1)%N -> exists fs acc,
  0 <= fs
  /\ run full (nseq K (queries_block W η g h Δ ρ low spread spread_Z B M)) (mt_prompt x y r)
     = mt_state x y r (mt_flags τ K fs) (own_u acc) (fun _ => vzero)
  /\ forall a, ‖acc a - first_terms η W (x a) (y a) (τ a) K‖ <= INR K * e.
Proof.
elim: K => [_|K IH KN].
  exists 0, (fun _ => vzero); split; first by lra.
  split; first by rewrite /= /mt_prompt; congr mt_state; apply: functional_extensionality => [[]].
  move=> a; rewrite (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 /=; first by lra.
  by apply: vec_eq => c; rewrite /vsub /vscal /first_terms /vsum big_pred0 //= /vzero; ring.
have [fs [acc [fs0 [XE le]]]] := IH (ltnW KN).
have K1N : (K.+1 < N)%N by move: KN; rewrite ltn_subRL add1n.
pose k : 'I_N := Ordinal (ltnW K1N).
rewrite run_nseq XE /queries_block mt_step; last by lra.
set F := fun t => mt_flags τ K fs t + _; set U := fun t => (own_u acc t + _)%V.
exists (F None), (fun a => U (Some (a, k))); split.
  by rewrite /F /=; set c := clip _; have : 0 <= c := clip_ge0 _; lra.
split.
  congr mt_state.
    apply: functional_extensionality => [[[a j]|]] //.
    exact: (@turn_flags dx dy M N W g Δ ρ low spread low_Z spread_Z D0 fs x y r τ a k Δ0 g9 ρ0 fs0
      cls ranked K1N B j B_large).
  apply: functional_extensionality => [[[a j]|]] //.
  have E := mt_sink_level W (queries_γ1 g Δ ρ spread M) (g / Δ) (queries_γβ h ρ spread_Z M) Δ low
    spread (spread_Z + h) x y r (mt_flags τ K fs).
  have none (p q : vec 'I_dy) : p = q -> (vzero + (2 * η) *: (p - q))%V = vzero.
    by move=> ->; apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero; ring.
  exact: none E.
move=> a; rewrite /first_terms (vsum_succ _ (ltnW K1N)) -/k -/(first_terms η W (x a) (y a) (τ a) K).
rewrite INR_S Rmult_plus_distr_r Rmult_1_l /U /own_u /=.
have w := @turn_winner dx dy M N W g Δ ρ low spread low_Z spread_Z D0 fs x y r τ a k Δ0 g9 ρ0 fs0
  cls ranked K1N.
have v := @turn_field dx dy M N W h Δ ρ low spread low_Z spread_Z D0 fs x y r τ a k h0 ρ0 fs0
  cls K1N.
set A := comb _ _ in w *; set G := comb _ _ in v *.
set s := first_terms _ _ _ _ _ _ in le *.
rewrite -/A -/G.
have -> : (acc a + 2 * η *: (A - G) - (first_terms η W (x a) (y a) (τ a) K
    + 2 * η *: (y a (τ a k) - tail_mean W (x a) (y a) (τ a) k))
  = (acc a - first_terms η W (x a) (y a) (τ a) K)
    + (2 * η *: (A - y a (τ a k)) + (- (2 * η)) *: (G - tail_mean W (x a) (y a) (τ a) k)))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub /vscal; ring.
apply: Rle_trans (vnorm_triangle _ _) _; apply: Rplus_le_compat; first exact: le.
apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
by rewrite /e -Rmult_plus_distr_l; apply: Rmult_le_compat_l; lra.
Qed.
End Rounds.

(* Rewards that are apart have rankings; that of one query may be given. *)
Lemma rankings_exist M N Δ (r : 'I_M -> 'I_N -> R) (a : 'I_M) (τ : {perm 'I_N}) :
  0 < Δ -> (forall b, spaced Δ (r b)) -> ranks (r a) τ ->
  exists σ : 'I_M -> {perm 'I_N}, σ a = τ /\ forall b, ranks (r b) (σ b).
Proof.
move=> Δ0 gaps ranked.
have some b : exists τb, ranks (r b) τb := ranking_exists (spaced_distinct Δ0 (gaps b)).
have [σ σr] := fin_all_exists some.
exists (fun b => if b == a then τ else σ b); rewrite eqxx; split=> // b.
by case: eqP => [->|].
Qed.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim mq-theorem, parts own-terms, induction: after K ≤ N − 1 blocks the flags are exact, and
   every token holds the first K terms of its own query; the errors add up. *)
Theorem mq_theorem_induction : forall (dx dy M N K : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B : R),
  (K <= N - 1)%N -> 0 <= η -> 0 < Δ -> ln 9 <= g -> 0 <= h -> 0 <= ρ < 1 ->
  3 / 2 + 2 * spread / Δ <= B ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> ranks (r a) τ ->
  let blocks := nseq K (queries_block W η g h Δ ρ low spread spread_Z B M) in
  let X := run full blocks (mt_prompt x y r) in
  X (Some (a, i)) Mt.flag ord0 = flags τ K i
  /\ ‖X (Some (a, i)) Mt.u - first_terms η W (x a) (y a) τ K‖
     <= 2 * η * INR K * D0 * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h)).
Proof.
move=> dx dy M N K W η g h Δ ρ low spread low_Z spread_Z D0 B KN η0 Δ0 g9 h0 ρ0 BR x y r τ a i.
move=> cls ranked blocks X.
have [σ [<- all]] := rankings_exist Δ0 (queries_gaps cls) ranked.
have [fs [acc [_ [XE le]]]] := mt_rounds η0 Δ0 g9 h0 ρ0 BR cls all KN.
rewrite /X /blocks XE; split=> //; apply: Rle_trans (le a) _; right; ring.
Qed.

(* Claim mq-theorem, part own-terms: N − 1 blocks make the step of every query on its own loss. *)
Theorem mq_theorem_own_terms : forall (dx dy M N : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B : R),
  0 <= η -> 0 < Δ -> ln 9 <= g -> 0 <= h -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> ranks (r a) τ ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M) in
  let u := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.u in
  let U := 2 * η * (INR N - 1) * D0 in
  ‖u - ((- η) *: gradient W (x a) (y a) τ) *v x a‖
  <= U * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h)).
Proof.
move=> dx dy M N W η g h Δ ρ low spread low_Z spread_Z D0 B η0 Δ0 g9 h0 ρ0 BR x y r τ a i.
move=> cls ranked blocks u U; rewrite (gradient_step_terms W η _ _ (queries_unit cls a)).
have [_] := mq_theorem_induction (leqnn (N - 1)) η0 Δ0 g9 h0 ρ0 BR i cls ranked.
rewrite -/blocks -/u minus_INR; last by apply/leP; apply: leq_ltn_trans (leq0n i) (ltn_ord i).
by rewrite [INR 1]/= /U.
Qed.

(* Claim mq-theorem, part sink: after any number of blocks, at any temperatures and on any inputs,
   its accumulator and its row joint are zero and its flag is no less than 0. *)
Theorem mq_theorem_sink : forall (dx dy M N K : nat) (W : mat dy dx)
    (η γ1 γ2 γβ Δ low spread B C : R),
  Δ <> 0 ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R),
  let blocks := nseq K (mt_block W η γ1 γ2 γβ Δ low spread B C) in
  let X := run full blocks (mt_prompt x y r) in
  X None Mt.u = vzero /\ X None Mt.joint = vzero /\ 0 <= X None Mt.flag ord0.
Proof.
move=> dx dy M N K W η γ1 γ2 γβ Δ low spread B C Δ0 x y r blocks X.
suff [f [u [XE [u0 f0]]]] : exists f u,
    X = mt_state x y r f u (fun _ => vzero) /\ u None = vzero /\ 0 <= f None by rewrite XE.
rewrite /X /blocks; elim: K {blocks X} => [|K [f [u [XE [u0 f0]]]]].
  by exists (fun _ => 0), (fun _ => vzero); split=> //; split=> //; exact: Rle_refl.
rewrite run_nseq XE mt_step //; do 2 eexists; split; first reflexivity.
split; last by set c := clip _; have : 0 <= c := clip_ge0 _; lra.
rewrite u0; set p := comb _ _; set q := comb _ _; have -> : p = q by exact: mt_sink_level.
by apply: vec_eq => c; rewrite /vadd /vscal /vsub /vzero; ring.
Qed.

(* Claim mq-theorem, part sink: in any state of the rows that blocks write, with a flag ≥ 0 at the
   sink. As a key it weighs no more than a response of reward low (in the head that selects), or of
   the highest reduced score (in the other), to a query whose product with the asker's is ρ; it
   counts as the reward low, the response zero. Where it asks, what the heads write cancels. *)
Theorem mq_theorem_sink_key : forall (dx dy M N : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 : R),
  (2 <= N)%N -> 0 < Δ -> 0 <= g -> 0 <= h -> 0 <= ρ < 1 ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (f : option ('I_M * 'I_N) -> R) (u j : option ('I_M * 'I_N) -> vec 'I_dy)
    (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> 0 <= f None ->
  let γ1 := queries_γ1 g Δ ρ spread M in
  let γ2 := g / Δ in
  let γβ := queries_γβ h ρ spread_Z M in
  let winner := mt_winner dx dy η γ1 γ2 Δ low spread in
  let field := mt_field W η γβ (spread_Z + h) in
  let X := mt_state x y r f u j in
  logit winner X (Some (a, i)) None <= γ1 * ρ + γ2 * low
  /\ logit field X (Some (a, i)) None <= γβ * ρ + (low_Z + spread_Z)
  /\ apply (W_V winner) (X None) El.reward ord0 = low
  /\ apply (W_V winner) (X None) El.response = vzero
  /\ apply (W_V field) (X None) tt = vzero
  /\ (head_output full winner X None Mt.u + head_output full field X None Mt.u)%V = vzero.
Proof.
move=> dx dy M N W η g h Δ ρ low spread low_Z spread_Z D0 N2 Δ0 g0 h0 ρ0 x y r f u j a i cls f0.
move=> γ1 γ2 γβ winner field X.
have M1 : 1 <= INR M.
  by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (leq0n a) (ltn_ord a).
have s0 : Δ <= spread.
  have := queries_gaps cls a (_ : Ordinal (ltnW N2) != Ordinal N2) => /(_ isT).
  have := queries_rewards cls a (Ordinal (ltnW N2)); have := queries_rewards cls a (Ordinal N2).
  by split_Rabs; lra.
have z0 : 0 <= spread_Z by have := queries_scores cls a a i; lra.
have log c : 1 <= c -> 0 <= ln c.
  by case=> [lt|<-]; [left; rewrite -ln_1; apply: ln_increasing; lra | rewrite ln_1; lra].
have ρ1 : 0 <= / (1 - ρ) by left; apply: Rinv_0_lt_compat; lra.
have γ20 : 0 <= γ2 by apply: Rmult_le_pos => //; left; exact: Rinv_0_lt_compat.
have γ10 : 0 <= γ1.
  apply: Rmult_le_pos ρ1; rewrite -/γ2; have : 0 <= γ2 * spread by apply: Rmult_le_pos; lra.
  suff : 0 <= ln (INR M * spread / Δ) by lra.
  apply: log; apply: (Rmult_le_reg_r Δ) => //.
  by rewrite (_ : _ / Δ * Δ = INR M * spread); [nra | field; lra].
have γβ0 : 0 <= γβ by apply: Rmult_le_pos ρ1; have := log _ M1; lra.
have W0 : (W *v vzero)%V = vzero.
  by apply: vec_eq => c; apply: sum_eq0 => e _; rewrite /vzero; ring.
split.
  rewrite mt_winner_logit /= dotC dot_zerol.
  have := Rmult_le_pos _ _ γ10 (proj1 ρ0).
  have : 0 <= (spread + Δ) * f None by apply: Rmult_le_pos; lra.
  by move=> sf; have := Rmult_le_pos _ _ γ20 sf; lra.
split.
  rewrite mt_field_logit /= /sqnorm !(dotC _ vzero) !dot_zerol.
  have := Rmult_le_pos _ _ γβ0 (proj1 ρ0); have := queries_zero cls.
  by have : 0 <= (spread_Z + h) * f None by [apply: Rmult_le_pos; lra]; lra.
split; first by blocks; ring.
split; first by apply: vec_eq => c; blocks; rewrite /vzero; ring.
split; first by apply: vec_eq => c; blocks; rewrite /vzero; ring.
apply: vec_eq => c; rewrite /vadd mt_winner_output mt_field_output; blocks.
rewrite (mt_sink_level W γ1 γ2 γβ Δ low spread (spread_Z + h) x y r f) /vzero.
by set p := comb _ _ _; ring.
Qed.
