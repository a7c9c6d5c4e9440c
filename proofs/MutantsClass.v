(* Statements that are not theorems, of chapter 8: the sink as a key, and one list of blocks for a
   class of inputs. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination Turns Smoothness QueryGradient.
From Icalign Require Import QueryBlocks QueryTurn QueryRounds QueryStep QueryClass.
From Icalign Require Import Mutants MutantsStep MutantsReadout MutantsBlocks MutantsTheorem33.
From Icalign Require Import MutantsRounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* Mutant of mq_theorem_sink_key: with any flag at the sink; here −1, which draws attention to it *)
Lemma not_a_stranger_with_any_flag : ~ (forall (dx dy M N : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 : R),
  (2 <= N)%N -> 0 < Δ -> 0 <= g -> 0 <= h -> 0 <= ρ < 1 ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (f : option ('I_M * 'I_N) -> R) (u j : option ('I_M * 'I_N) -> vec 'I_dy)
    (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r ->
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
  /\ (head_output full winner X None Mt.u + head_output full field X None Mt.u)%V = vzero).
Proof.
move/(_ 1%N 1%N 1%N 2%N (M1 0) 0 1 0 1 0 0 1 (- 1) 1 2 isT Rlt_0_1 Rle_0_1 (Rle_refl 0)
  ltac:(lra) _ _ _ (fun _ => - 1) (fun _ => vzero) (fun _ => vzero) ord0 ord0
  (lone_in_class (or_introl erefl))) => -[+ _].
by rewrite mt_winner_logit /= dotC dot_zerol; lra.
Qed.

(* Two queries, 1 and −1, both with the responses 1 and −1. *)
Lemma poles_step (τ : 'I_2 -> {perm 'I_2}) : τ ord_max = id2 ->
  ((- 1) *: joint_gradient (M1 0) (two 1 (- 1)) (fun _ => ends) τ *v two 1 (- 1) ord_max
  = V1 (gradient (M1 0) (V1 1) ends (τ ord0) (ord0, ord0) + 2))%V.
Proof.
move=> τ1; rewrite /joint_gradient; set J := comb _ _.
have -> : J = M1 (gradient (M1 0) (V1 1) ends (τ ord0) (ord0, ord0) + 2).
  apply: vec_eq => -[p q]; rewrite !ord1 /J /comb sum_two τ1.
  rewrite ![two 1 (- 1) _]/(V1 _) pair_0 pair_1 (@gradient_two 0 (- 1) 1 (- 1)); last by ring.
  by rewrite /M1; set g := gradient _ _ _ _ _; ring.
by rewrite M1_scal [two _ _ _]/(V1 _) pair_1 mulmv_1; congr V1; ring.
Qed.

(* Mutant of mq_theorem_class: the other queries' responses in any order, not by their rewards *)
Lemma not_for_any_ranking_of_the_others : ~ (forall (dx dy M N P : nat) (W : mat dy dx)
    (η Δ ρ low high radius ω tol : R),
  (0 < P)%N -> 0 <= η -> 0 < Δ -> ρ < 1 -> 0 < tol ->
  (forall v : vec 'I_dx, ‖W *v v‖ <= ω * ‖v‖) ->
  exists b c : block (mt_stream dx dy), size (heads c) = (2 * P)%N /\
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  (forall q, ‖x q‖ = 1) -> (forall p q : 'I_M, p != q -> ⟨x p, x q⟩ <= ρ) ->
  (forall q j, ‖y q j‖ <= radius) -> (forall q j, low <= r q j <= high) ->
  (forall q, spaced Δ (r q)) -> ranks (r a) (τ a) ->
  let joint := run full (nseq (N - 1) b ++ [:: c]) (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  ‖joint - ΔW *v x a‖ <= tol).
Proof.
have W0 (v : vec 'I_1) : ‖M1 0 *v v‖ <= 0 * ‖v‖.
  have -> : (M1 0 *v v)%V = V1 0.
    by apply: vec_eq => c; rewrite /mulmv big_ord_recl big_ord0 /V1 /M1; ring.
  by rewrite vnorm_1 Rabs_R0; lra.
move/(_ 1%N 1%N 2%N 2%N 1%N (M1 0) 1 1 0 0 1 1 0 1 isT Rle_0_1 Rlt_0_1 Rlt_0_1 Rlt_0_1 W0).
move=> [b [c [_ H]]].
have unit q : ‖two 1 (- 1) q‖ = 1.
  by rewrite [two _ _ _]/(V1 _) vnorm_1 /pair; case: ifP => _; split_Rabs; lra.
have apart (p q : 'I_2) : p != q -> ⟨two 1 (- 1) p, two 1 (- 1) q⟩ <= 0.
  by case: p q => [[|[|p]] pp] [[|[|q]] pq] // _; rewrite dot_1 /pair /=; lra.
have short (q j : 'I_2) : ‖ends j‖ <= 1 by have := unit j; rewrite -/(ends j); lra.
have range (q j : 'I_2) : 0 <= pair 1 0 j <= 1 by rewrite /pair; case: ifP; lra.
have near τ := H (two 1 (- 1)) (fun _ => ends) (fun _ => pair 1 0) τ ord_max ord0 unit apart
  short range (fun _ => gaps ends_in_class).
pose swapped (q : 'I_2) : {perm 'I_2} := if q == ord0 then tperm ord0 ord_max else id2.
have := near (fun _ => id2) ranks_ends; have := near swapped ranks_ends; cbv zeta.
set j := run _ _ _ _ _; have -> : j = V1 (j ord0) by apply: vec_eq => d; rewrite ord1.
rewrite !poles_step // slope_0 !dist_1 /swapped /=.
have := step_swapped 1 => /(f_equal (fun v => v ord0)).
rewrite /mulmv sum_ord1 /vscal /V1 /M1; move: (gradient _ _ _ _ _) => s.
by split_Rabs; lra.
Qed.
