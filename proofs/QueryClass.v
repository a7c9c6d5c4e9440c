(* Chapter 8, Multiple queries II: one list of blocks for a class of inputs, given as the book gives
   it, and a tolerance. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33 Choices QueryGradient.
From Icalign Require Import QueryBlocks QueryTurn QueryRounds QueryStep.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* P pairs are 2P heads. *)
Lemma size_alike (T : Type) (f : nat -> seq T) c s :
  (forall k, size (f k) = c) -> size (flatten [seq f k | k <- s]) = (c * size s)%N.
Proof. by move=> fc; elim: s => [|k s IH] /=; rewrite ?muln0 // size_cat fc IH mulnS. Qed.

Lemma joint_block_heads dx dy N P ε λ : size (heads (joint_block dx dy N P ε λ)) = (2 * P)%N.
Proof. by rewrite /= (@size_alike _ _ 2%N) // size_iota. Qed.

(* What the numbers of the book say of the inputs, in those of the construction. *)
Lemma radius_in_class dx dy M N (W : mat dy dx) (Δ ρ low high radius ω : R)
    (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a : 'I_M) :
  (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) -> (0 < N)%N ->
  (forall b, ‖x b‖ = 1) -> (forall b c : 'I_M, b != c -> ⟨x b, x c⟩ <= ρ) ->
  (forall b j, ‖y b j‖ <= radius) -> (forall b j, low <= r b j <= high) ->
  (forall b, spaced Δ (r b)) ->
  in_queries_class W Δ (Rmax 0 ρ) low (high - low) (- 2 * ω * radius - radius ^ 2)
    (score_spread ω radius) (2 * radius) x y r.
Proof.
move=> Wω N0 x1 apart yr range gaps.
have r0 : 0 <= radius := Rle_trans _ _ _ (vnorm_ge0 _) (yr a (Ordinal N0)).
have Wx b : ‖W *v x b‖ <= ω by have := Wω (x b); rewrite x1; lra.
have ω0 : 0 <= ω := Rle_trans _ _ _ (vnorm_ge0 _) (Wx a).
split=> //.
- by move=> b c bc; apply: Rle_trans (apart b c bc) (Rmax_r _ _).
- by move=> b j; have := range b j; lra.
- by move=> b d j; apply: reduced_range.
- by rewrite /score_spread; case: Rle_dec => H /=; nra.
- by move=> b d j l; exact: ball_distance.
- by move=> b j; have := yr b j; lra.
Qed.

Arguments radius_in_class {dx dy M N W Δ ρ low high radius ω x y r} a.

(* Claim mq-theorem, parts bound, choice: for every number P ≥ 1 of pairs and every tolerance, one
   block b and one layer c of P pairs, before any input of the class: M unit queries with products
   of at most ρ, responses no longer than the radius, rewards Δ apart in [low, high]. With b applied
   N − 1 times and c once, every token has the step ΔW x^a on the summed loss of all queries. *)
Theorem mq_theorem_class : forall (dx dy M N P : nat) (W : mat dy dx)
    (η Δ ρ low high radius ω tol : R),
  (0 < P)%N -> 0 <= η -> 0 < Δ -> ρ < 1 -> 0 < tol ->
  (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b c : block (mt_stream dx dy), size (heads c) = (2 * P)%N /\
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  (forall q, ‖x q‖ = 1) -> (forall p q : 'I_M, p != q -> ⟨x p, x q⟩ <= ρ) ->
  (forall q j, ‖y q j‖ <= radius) -> (forall q j, low <= r q j <= high) ->
  (forall q, spaced Δ (r q)) -> (forall q, ranks (r q) (τ q)) ->
  let joint := run full (nseq (N - 1) b ++ [:: c]) (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  ‖joint - ΔW *v x a‖ <= tol.
Proof.
move=> dx dy M N P W η Δ ρ low high radius ω tol P0 η0 Δ0 ρ1 t0 Wω.
pose U := 2 * η * (INR N - 1) * (2 * radius); pose m := INR M * U.
pose block_at g h := queries_block W η g h Δ (Rmax 0 ρ) low (high - low) (score_spread ω radius)
  (3 / 2 + 2 * (high - low) / Δ) M.
have ρ01 : 0 <= Rmax 0 ρ < 1 by split; [exact: Rmax_l | apply: Rmax_lub_lt; lra].
case: (Rle_lt_dec m 0) => [none|some].
  exists (block_at (ln 9) 0), (joint_block dx dy N P 1 0); split; first exact: joint_block_heads.
  move=> x y r τ a i x1 apart yr range gaps ranked joint ΔW.
  have N1 : (0 < N)%N := leq_ltn_trans (leq0n i) (ltn_ord i).
  have M1 : 1 <= INR M by apply: (INR_le (leq_ltn_trans (leq0n a) (ltn_ord a))).
  have n0 : 0 <= INR N - 1 by have := INR_le N1; rewrite [INR 1]/=; lra.
  have r0 : 0 <= radius := Rle_trans _ _ _ (vnorm_ge0 _) (yr a i).
  have U0 : 0 <= U by apply: Rmult_le_pos; [apply: Rmult_le_pos => //; lra | lra].
  have UE : U = 0 by apply: Rle_antisym U0; move: none; rewrite /m; nra.
  have cls := radius_in_class a Wω N1 x1 apart yr range gaps.
  have bound := @mq_theorem dx dy M N P W η (ln 9) 0 Δ (Rmax 0 ρ) low (high - low)
    (- 2 * ω * radius - radius ^ 2) (score_spread ω radius) (2 * radius) _ 1 0 η0 Δ0 (Rle_refl _)
    (Rle_refl _) ρ01 (Rle_refl _) Rlt_0_1 x y r τ a i cls ranked.
  apply: Rle_trans bound _; rewrite -/U UE !(Rmult_0_l, Rmult_0_r, Rplus_0_r); lra.
pose t := Rmin tol m.
have tm : 0 < t <= m by split; [exact: Rmin_glb_lt | exact: Rmin_r].
have bound := @mq_theorem_choice dx dy M N P W η Δ (Rmax 0 ρ) low (high - low)
  (- 2 * ω * radius - radius ^ 2) (score_spread ω radius) (2 * radius)
  (3 / 2 + 2 * (high - low) / Δ) t P0 Δ0 ρ01 (Rle_refl _) tm.
pose ε := Rmin 1 (sink_spacing P (5 * t / (36 * m))).
exists (block_at (Rmax (ln 9) (ln (15 * m / t))) (Rmax 1 (ln (6 * (INR N - 1) * m / t)))),
  (joint_block dx dy N P ε (ln (INR (M * N) * sink_total P ε / (t / (6 * m))))).
split; first exact: joint_block_heads.
move=> x y r τ a i x1 apart yr range gaps ranked joint ΔW.
have N1 : (0 < N)%N := leq_ltn_trans (leq0n i) (ltn_ord i).
apply: Rle_trans (Rmin_l tol m).
exact: bound (radius_in_class a Wω N1 x1 apart yr range gaps) ranked.
Qed.
