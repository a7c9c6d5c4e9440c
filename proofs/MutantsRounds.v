(* Statements that are not theorems, of chapter 8: the rounds among the tokens of many queries, and
   the sum over the queries. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block Elimination BlockErrors Turns Theorem33 Smoothness.
From Icalign Require Import OwnTerms QueryGradient SinkPairs SinkOrder SinkAttention.
From Icalign Require Import QueryBlocks QueryTurn QueryRounds QueryStep.
From Icalign Require Import Mutants MutantsStep MutantsReadout MutantsBlocks.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Rounds: queries ±1 with two responses each, 1 or −1, of the rewards 1 and 0 ────────────── *)

Local Notation rewards M := (fun _ : 'I_M => pair 1 0).

Lemma signs_in_class M (s : 'I_M -> R) (v : 'I_M -> 'I_2 -> R) :
  (forall b, Rabs (s b) = 1) -> (forall a b, a != b -> s a * s b <= 0) ->
  (forall b j, v b j = 1 \/ v b j = - 1) ->
  in_queries_class (M1 0) 1 0 0 1 (- 1) 1 2 (fun b => V1 (s b)) (fun b j => V1 (v b j)) (rewards M).
Proof.
move=> s1 s0 v1; split.
- by move=> b; rewrite vnorm_1.
- by move=> a b; rewrite dot_1; exact: s0.
- by move=> _ [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => _; split_Rabs; lra.
- by move=> b j; rewrite /pair; case: ifP; lra.
- by move=> a b j; rewrite /reduced mulmv_1 dot_1 sqnorm_1; case: (v1 b j) => ->; lra.
- by lra.
- move=> a b i j; rewrite -[(_ - _)%V]/(V1 (v a i - v b j)) vnorm_1.
  by case: (v1 a i) => ->; case: (v1 b j) => ->; split_Rabs; lra.
- by move=> b j; rewrite vnorm_1; case: (v1 b j) => ->; split_Rabs; lra.
Qed.

Lemma ranks_rewards M (b : 'I_M) : ranks (rewards M b) id2. Proof. exact: ranks_ends. Qed.

(* One query, 1. *)
Lemma lone_in_class c : c = 1 \/ c = - 1 -> in_queries_class (M1 0) 1 0 0 1 (- 1) 1 2
  (fun _ : 'I_1 => V1 1) (fun _ => two 1 c) (rewards 1).
Proof.
move=> c1; apply: (@signs_in_class 1 (fun _ => 1) (fun _ => pair 1 c)).
- by move=> _; rewrite Rabs_R1.
- by move=> a b; rewrite !ord1.
- by move=> _ j; rewrite /pair; case: ifP; [left | ].
Qed.

Lemma sum_lone (F : option ('I_1 * 'I_2) -> R) :
  ∑_s F s = F None + (F (Some (ord0, ord0)) + F (Some (ord0, ord_max))).
Proof. by rewrite (@all_sum 1 2 ord0 ord0) sum_ord1 sum_two. Qed.

(* Who looks at all three tokens alike sees the reward 1/3. *)
Lemma level_reward z : (forall s, z s = 0) ->
  ∑_s (softmax z s * (at_r (rewards 1) s + 0 * at_b (M := 1) (N := 2) s)) = / 3.
Proof.
by move=> z0; rewrite sum_lone /softmax !sum_lone !z0 exp_0 /= pair_0 pair_1; field.
Qed.

Lemma flag_of_level : clip (clip_at 1 (7 / 2) (/ 3) 0 0) = 5 / 6.
Proof.
by rewrite /clip /clip_at /relu Rmax_right ?Rmax_left; lra.
Qed.

(* Mutant of mq_theorem_induction: 0 ≤ g for ln 9 ≤ g; at g = 0 the flag of the loser is 5/6 *)
Lemma not_flagged_at_any_temperature : ~ (forall (dx dy M N K : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B : R),
  (K <= N - 1)%N -> 0 <= η -> 0 < Δ -> 0 <= g -> 0 <= h -> 0 <= ρ < 1 ->
  3 / 2 + 2 * spread / Δ <= B ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> ranks (r a) τ ->
  let blocks := nseq K (queries_block W η g h Δ ρ low spread spread_Z B M) in
  let X := run full blocks (mt_prompt x y r) in
  X (Some (a, i)) Mt.flag ord0 = flags τ K i
  /\ ‖X (Some (a, i)) Mt.u - first_terms η W (x a) (y a) τ K‖
     <= 2 * η * INR K * D0 * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h))).
Proof.
move/(_ 1%N 1%N 1%N 2%N 1%N (M1 0) 0 0 0 1 0 0 1 (- 1) 1 2 (7 / 2) isT (Rle_refl 0) Rlt_0_1
  (Rle_refl 0) (Rle_refl 0) ltac:(lra) ltac:(lra) _ _ _ id2 ord0 ord_max
  (lone_in_class (or_introl erefl)) (@ranks_rewards 1 ord0)) => -[+ _].
rewrite /= /mt_prompt mt_step; last by lra.
rewrite /= level_reward => [|s].
  by rewrite pair_1 flag_of_level /flags invg1 perm1 /=; lra.
by rewrite /queries_γ1 [INR 1]/= (_ : 1 * 1 / 1 = 1) ?ln_1; field.
Qed.

(* Mutant of mq_theorem_sink: its flag stays 0; after one block it is 5/6 *)
Lemma not_a_sink_without_flag : ~ (forall (dx dy M N K : nat) (W : mat dy dx)
    (η γ1 γ2 γβ Δ low spread B C : R),
  Δ <> 0 ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R),
  let blocks := nseq K (mt_block W η γ1 γ2 γβ Δ low spread B C) in
  let X := run full blocks (mt_prompt x y r) in
  X None Mt.u = vzero /\ X None Mt.joint = vzero /\ X None Mt.flag ord0 = 0).
Proof.
move/(_ 1%N 1%N 1%N 2%N 1%N (M1 0) 0 0 0 0 1 0 1 (7 / 2) 0 R1_neq_R0 (fun _ => V1 1)
  (fun _ => ends) (rewards 1)) => -[_ [_]].
rewrite /= /mt_prompt mt_step; last by lra.
rewrite /= level_reward => [|s]; first by rewrite flag_of_level; lra.
by rewrite dot_zerol; ring.
Qed.

(* Mutant of mq_theorem_own_terms: a margin of 2h; here with all responses 1, where the step is 0 *)
Lemma not_own_terms_at_twice_the_margin : ~ (forall (dx dy M N : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B : R),
  0 <= η -> 0 < Δ -> ln 9 <= g -> 0 <= h -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> ranks (r a) τ ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M) in
  let u := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.u in
  let U := 2 * η * (INR N - 1) * D0 in
  ‖u - ((- η) *: gradient W (x a) (y a) τ) *v x a‖
  <= U * (5 / 2 * exp (- g) + (INR N - 1) * exp (- (2 * h)))).
Proof.
have cls := lone_in_class (or_introl (erefl 1)).
have g9 : ln 9 <= ln 900 by left; apply: ln_increasing; lra.
have h0 : 0 <= ln 8 by left; rewrite -ln_1; apply: ln_increasing; lra.
move/(_ 1%N 1%N 1%N 2%N (M1 0) (/ 2) (ln 900) (ln 8) 1 0 0 1 (- 1) 1 2 (7 / 2) ltac:(lra) Rlt_0_1
  g9 h0 ltac:(lra) ltac:(lra) _ _ _ id2 ord0 ord0 cls (@ranks_rewards 1 ord0)); cbv zeta.
rewrite gradient_two; last by ring.
rewrite subSS subn0 /= /mt_prompt mt_step; last by lra.
rewrite /= M1_scal !mulmv_1; set A := comb _ _; set F := comb _ _.
have near := @turn_winner 1 1 1 2 (M1 0) (ln 900) 1 0 0 1 (- 1) 1 2 0 (fun _ => V1 1)
  (fun _ => two 1 1) (rewards 1) (fun _ => id2) ord0 ord0 Rlt_0_1 g9 ltac:(lra) (Rle_refl 0) cls
  (@ranks_rewards 1) isT.
have {near} : ‖A - V1 1‖ <= 2 * (5 / 2 * exp (- ln 900)).
  move: near; rewrite perm1; set A' := comb _ _; have -> // : A' = A.
  apply: vec_eq => c; apply: eq_bigr => s _; congr (_ * _); apply: eq_softmax => l.
  by rewrite (_ : mt_flags _ _ _ _ = 0) //; case: l.
have FE : F = V1 (16 / 17).
  apply: vec_eq => c; rewrite /F /comb sum_lone /softmax !sum_lone /=.
  have -> : ‖(vzero : vec 'I_1)‖² = 0 by exact: dot_zerol.
  rewrite !(dotC _ vzero) !dot_zerol !dot_1 !sqnorm_1 pair_0 /two /V1 pair_0 pair_1.
  have -> : queries_γβ (ln 8) 0 1 1 = 1 + ln 8.
    by rewrite /queries_γβ [INR 1]/= ln_1; field.
  have -> : (1 + ln 8) * 0 + 2 * 0 - 1 * (0 + (1 + ln 8) * 0) = 0 by ring.
  have -> : (1 + ln 8) * (1 * 1) + 2 * (0 * 1 * 1) - 1 * (1 * 1 + (1 + ln 8) * 0) = ln 8 by ring.
  by rewrite exp_0 exp_ln /vzero; [field | lra].
have AE : A = V1 (A ord0) by apply: vec_eq => c; rewrite ord1.
rewrite FE AE; move: (A ord0) => a near.
set v := vnorm _; have -> : v = Rabs (a - 16 / 17).
  by rewrite -vnorm_1 /v; congr vnorm; apply: vec_eq => c; rewrite /vadd /vsub /vscal /vzero /V1;
     field.
move: near; rewrite -[(V1 a - V1 1)%V]/(V1 (a - 1)) vnorm_1.
rewrite (_ : - (2 * ln 8) = - ln 8 + - ln 8); last by ring.
by rewrite exp_plus !exp_Ropp !exp_ln; try lra; split_Rabs; lra.
Qed.

(* ── The layer of sink pairs: one pair ──────────────────────────────────────────────────────── *)

Lemma one_coefficient : sink_coefficient 1 1 = 1.
Proof. by rewrite /sink_coefficient /=; field. Qed.

(* A sink whose logit is 0 leaves at most half of what a query holds. *)
Lemma half_weight n ε (j : 'I_n) : 0 < ε ->
  0 <= sink_weight 0 1 ε (fun _ => 1) j <= / 2.
Proof.
move=> ε0; rewrite /sink_weight /beside_sink big_ord_recl big_ord0 !sum_const_ord one_coefficient.
have n1 : 1 <= INR n by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (ltn_ord j).
rewrite [INR _]/= !Rmult_1_l !Rmult_1_r exp_0 Rplus_0_r.
have d1 := exp_ineq1_le (- ε); have E1 := exp_ineq1_le ε; have d0 := exp_pos (- ε).
have : exp ε * exp (- ε) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
move: (exp ε) (exp (- ε)) (INR n) d1 E1 d0 n1 => E d m d1 E1 d0 m1 Ed.
have -> : 1 / (2 * ε) * (E / (1 + m * E) - d / (1 + m * d))
    = (E - d) / (2 * ε * ((1 + m * E) * (1 + m * d))) by field; nra.
have big : 2 + E + d <= (1 + m * E) * (1 + m * d) by nra.
have less : E - d <= ε * (2 + E + d) by nra.
have den : 0 < 2 * ε * ((1 + m * E) * (1 + m * d)) by nra.
split; first by apply: Rmult_le_pos; [nra | left; exact: Rinv_0_lt_compat].
apply: (Rmult_le_reg_r (2 * ε * ((1 + m * E) * (1 + m * d)))) => //.
by rewrite /Rdiv Rmult_assoc Rinv_l; nra.
Qed.

(* With one query, the layer writes at most half of its accumulator, in its direction. *)
Lemma lone_joint N ε y r f acc (i : 'I_N) : 0 < ε ->
  exists w, 0 <= w <= / 2
  /\ transform full (joint_block 1 1 N 1 ε 0)
       (mt_state (fun _ : 'I_1 => V1 1) y r f (own_u acc) (fun _ => vzero)) (Some (ord0, i))
       Mt.joint = (w *: acc ord0)%V.
Proof.
move=> ε0; pose j0 := enum_rank (ord0 : 'I_1, i).
exists (sink_weight 0 1 ε (fun _ => 1) j0); split; first exact: half_weight.
rewrite joint_row; apply: vec_eq => c; rewrite /comb /vscal.
pose w := sink_weight 0 1 ε (fun _ => 1) j0.
have N0 : 0 < INR N by apply: INR_gt0; apply: leq_ltn_trans (leq0n i) (ltn_ord i).
transitivity (∑_(l < #|{: 'I_1 * 'I_N}|) (w * (/ INR N * acc (enum_val l).1 c))).
  have one : ⟨V1 1, V1 1⟩ = 1 by rewrite dot_1; ring.
  by apply: eq_bigr => l _; congr (_ * _); rewrite /w /sink_weight /beside_sink one.
etransitivity; first exact: (@sum_queries 1 N (fun b => w * (/ INR N * acc b c))).
by rewrite sum_ord1 -/w; field; lra.
Qed.

(* Powers of e^(1/10). *)
Lemma tenth : 11 / 10 <= exp (/ 10) <= 10 / 9 /\ 9 / 10 <= exp (- / 10) <= 10 / 11.
Proof.
have E1 := exp_ineq1_le (/ 10); have d1 := exp_ineq1_le (- / 10).
have : exp (/ 10) * exp (- / 10) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
by move: (exp _) (exp _) E1 d1 => E d E1 d1 Ed; split; nra.
Qed.

Lemma pair_loss : sink_loss 1 (/ 10) <= / 18.
Proof.
rewrite /sink_loss big_ord_recl big_ord0 one_coefficient [INR _]/= /sinh !Rmult_1_l.
have [] := tenth; move: (exp _) (exp _) => d E E1 d1.
rewrite (_ : (E - d) / 2 / / 10 = 5 * (E - d)); [split_Rabs; lra | field].
Qed.

Lemma pair_leak_900 n : sink_leak 1 n (/ 10) (ln 900) <= INR n * (7 / 900).
Proof.
rewrite /sink_leak big_ord_recl big_ord0 one_coefficient [INR _]/= /sinh !Rmult_1_l Rabs_R1.
rewrite exp_Ropp exp_ln; last by lra.
rewrite (_ : 2 * / 10 = / 10 + / 10); last by field.
have [E1 _] := tenth; rewrite exp_plus; have := exp_pos (- (/ 10 + / 10)).
have n0 := INR_ge0 n; move: (exp (- _)) (exp _) E1 => d E E1 d0.
rewrite Rplus_0_r Rmult_1_l Rmult_assoc; apply: Rmult_le_compat_l => //.
rewrite (_ : (E * E - d) / 2 / / 10 = 5 * (E * E - d)); [nra | field].
Qed.

(* Mutant of mq_theorem_coupling: without what the sink lets through; here a logit of 0 *)
Lemma not_coupled_at_any_sink : ~ (forall (dx dy M N P : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (f : option ('I_M * 'I_N) -> R) (acc : 'I_M -> vec 'I_dy) (a : 'I_M) (i : 'I_N),
  (forall b, ‖x b‖ = 1) ->
  let X := mt_state x y r f (own_u acc) (fun _ => vzero) in
  let joint := transform full (joint_block dx dy N P ε λ) X (Some (a, i)) Mt.joint in
  ‖joint - comb (fun b => ⟨x b, x a⟩) acc‖ <= sink_loss P ε * ∑_b ‖acc b‖).
Proof.
pose acc (_ : 'I_1) := V1 1; pose y (_ : 'I_1) (_ : 'I_1) := V1 1.
have x1 (_ : 'I_1) : ‖V1 1‖ = 1 by rewrite vnorm_1 Rabs_R1.
move/(_ 1%N 1%N 1%N 1%N 1%N (/ 10) 0 ltac:(lra) _ y (fun _ _ => 0) (fun _ => 0) acc ord0 ord0 x1).
cbv zeta; have [|w [w1 ->]] := @lone_joint 1 (/ 10) y (fun _ _ => 0) (fun _ => 0) acc ord0.
  by lra.
rewrite sum_ord1 (_ : ‖acc ord0‖ = 1); last exact: (x1 ord0).
have := pair_loss.
have -> : (w *: acc ord0 - comb (fun b : 'I_1 => ⟨V1 1, V1 1⟩) acc)%V = V1 (w - 1).
  by apply: vec_eq => c; rewrite /vsub /comb sum_ord1 dot_1 /vscal /acc /V1; ring.
by rewrite vnorm_1; split_Rabs; lra.
Qed.

(* Two queries, 1 and −1, with the responses 1 and −1, the other way round for the second: either
   loss alone moves the first response by 1, their sum by 2. *)
Definition turned (b : 'I_2) : 'I_2 -> R := if b == ord0 then pair 1 (- 1) else pair (- 1) 1.

Lemma turned_in_class : in_queries_class (M1 0) 1 0 0 1 (- 1) 1 2 (two 1 (- 1))
  (fun b j => V1 (turned b j)) (rewards 2).
Proof.
apply: (@signs_in_class 2 (pair 1 (- 1)) turned).
- by move=> b; rewrite /pair; case: ifP; split_Rabs; lra.
- by case=> [[|[|a]] pa] [[|[|b]] pb] // _; rewrite /pair /=; lra.
- by move=> b j; rewrite /turned /pair; case: ifP; case: ifP; [left|right|right|left].
Qed.

(* Mutant of mq_theorem: the query's own loss, not the sum *)
Lemma not_the_own_loss_alone : ~ (forall (dx dy M N P : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B ε λ : R),
  0 <= η -> 0 < Δ -> ln 9 <= g -> 0 <= h -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B -> 0 < ε ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> (forall b, ranks (r b) (τ b)) ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M)
                ++ [:: joint_block dx dy N P ε λ] in
  let joint := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: gradient W (x a) (y a) (τ a))%V in
  let U := 2 * η * (INR N - 1) * D0 in
  let E_own := U * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h)) in
  let E_sink := sink_loss P ε + sink_leak P (M * N) ε λ in
  ‖joint - ΔW *v x a‖ <= INR M * E_own + INR M * (U + E_own) * E_sink).
Proof.
have g9 : ln 9 <= ln 900 by left; apply: ln_increasing; lra.
have h0 : 0 <= ln 900 by left; rewrite -ln_1; apply: ln_increasing; lra.
move/(_ 1%N 1%N 2%N 2%N 1%N (M1 0) (/ 2) (ln 900) (ln 900) 1 0 0 1 (- 1) 1 2 (7 / 2) (/ 10) (ln 900)
  ltac:(lra) Rlt_0_1 g9 h0 ltac:(lra) ltac:(lra) ltac:(lra) _ _ _ (fun _ => id2) ord0 ord0
  turned_in_class (@ranks_rewards 2)).
have := @mq_theorem 1 1 2 2 1 (M1 0) (/ 2) (ln 900) (ln 900) 1 0 0 1 (- 1) 1 2 (7 / 2) (/ 10)
  (ln 900) ltac:(lra) Rlt_0_1 g9 h0 ltac:(lra) ltac:(lra) ltac:(lra) _ _ _ (fun _ => id2) ord0 ord0
  turned_in_class (@ranks_rewards 2).
cbv zeta; set joint := run _ _ _ _ _.
have -> : joint = V1 (joint ord0) by apply: vec_eq => c; rewrite ord1.
have both : joint_gradient (M1 0) (two 1 (- 1)) (fun b j => V1 (turned b j)) (fun _ => id2)
    = M1 (- 4).
  apply: vec_eq => p; rewrite /joint_gradient /comb sum_two.
  rewrite (@gradient_two 0 1 1 (- 1)); last by ring.
  rewrite (@gradient_two 0 (- 1) (- 1) 1); last by ring.
  by rewrite /M1; ring.
rewrite {}both slope_0 !M1_scal !mulmv_1 -![(V1 _ - V1 _)%V]/(V1 (joint ord0 - _)) !vnorm_1.
have l := pair_loss; have l0 : 0 <= sink_loss 1 (/ 10) by exact: Rabs_pos.
have := pair_leak_900 (2 * 2); have s := @sink_ge0 1 (2 * 2) (/ 10) (ln 900) ltac:(lra).
rewrite [X in X * (7 / 900)]/= [INR 2]/= exp_Ropp exp_ln; last by lra.
rewrite pair_0; move: (sink_loss _ _) (sink_leak _ _ _ _) (joint ord0) l l0 s => a b j l l0 s k.
by split_Rabs; lra.
Qed.

(* Mutant of mq_theorem_choice: the sink's logit 0, whatever the tolerance *)
Lemma not_chosen_with_a_weak_sink : ~ (forall (dx dy M N P : nat) (W : mat dy dx)
    (η Δ ρ low spread low_Z spread_Z D0 B tol : R),
  (0 < P)%N -> 0 < Δ -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B ->
  let U := 2 * η * (INR N - 1) * D0 in
  0 < tol <= INR M * U ->
  let g := Rmax (ln 9) (ln (15 * (INR M * U) / tol)) in
  let h := Rmax 1 (ln (6 * (INR N - 1) * (INR M * U) / tol)) in
  let ε := Rmin 1 (sink_spacing P (5 * tol / (36 * (INR M * U)))) in
  let λ := 0 in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> (forall b, ranks (r b) (τ b)) ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M)
                ++ [:: joint_block dx dy N P ε λ] in
  let joint := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  ‖joint - ΔW *v x a‖ <= tol).
Proof.
have cls := lone_in_class (or_intror (erefl (- 1))).
have U2 : 0 < / 10 <= INR 1 * (2 * / 2 * (INR 2 - 1) * 2) by rewrite /=; lra.
move/(_ 1%N 1%N 1%N 2%N 1%N (M1 0) (/ 2) 1 0 0 1 (- 1) 1 2 (7 / 2) (/ 10) isT Rlt_0_1
  ltac:(lra) ltac:(lra) U2 _ _ _ (fun _ => id2) ord0 ord0 cls (@ranks_rewards 1)); cbv zeta.
rewrite (_ : INR 1 * _ = 2); last by rewrite /=; field.
set g := Rmax (ln 9) _; set h := Rmax 1 _; set ε := Rmin 1 _.
have h0 : 0 <= h by have := Rmax_l 1 (ln (6 * (INR 2 - 1) * 2 / / 10)); rewrite -/h; lra.
have [fs [acc [_ [XE le]]]] := mt_rounds (η := / 2) ltac:(lra) Rlt_0_1 (Rmax_l _ _ : ln 9 <= g) h0
  (ltac:(lra) : 0 <= 0 < 1) (ltac:(lra) : 3 / 2 + 2 * 1 / 1 <= 7 / 2) cls (@ranks_rewards 1)
  (leqnn (2 - 1)).
rewrite run_cat XE [run _ _ _]/=.
have [w [w2 ->]] := @lone_joint 2 ε (fun _ => ends) (rewards 1) (mt_flags (fun _ => id2) (2 - 1) fs)
  acc ord0 (Rmin_glb_lt _ _ _ Rlt_0_1 (sink_spacing_gt0 _ _)).
have one : joint_gradient (M1 0) (fun _ : 'I_1 => V1 1) (fun _ => ends) (fun _ => id2) = M1 (- 2).
  by apply: vec_eq => p; rewrite /joint_gradient /comb sum_ord1 slope_0 /M1; ring.
have := le ord0; rewrite -(gradient_step_terms (M1 0) (/ 2) _ _ (queries_unit cls ord0)).
rewrite {}one slope_0 !M1_scal !mulmv_1.
have -> : acc ord0 = V1 (acc ord0 ord0) by apply: vec_eq => c; rewrite ord1.
rewrite -[(w *: V1 _)%V]/(V1 (w * acc ord0 ord0)) -![(V1 _ - V1 _)%V]/(V1 (_ - _)) !vnorm_1.
have cold c z : 0 < c -> ln c <= z -> exp (- z) <= / c.
  by move=> c0 cz; rewrite -[X in _ <= / X](exp_ln c) // -exp_Ropp; apply: exp_mono; lra.
have eg := cold _ _ (ltac:(lra) : 0 < 15 * 2 / / 10) (Rmax_r _ _ : _ <= g).
have eh := cold _ _ (ltac:(lra) : 0 < 6 * (2 - 1) * 2 / / 10) (Rmax_r _ _ : _ <= h).
move: eg eh; rewrite [INR (2 - 1)]/= [INR 2]/=; move: (exp _) (exp _) (acc _ _) => p q v.
rewrite (_ : / (15 * 2 / / 10) = / 300); last by field.
rewrite (_ : / (6 * (2 - 1) * 2 / / 10) = / 120); last by field.
move=> p1 q1 near far; have : 9 / 10 <= v <= 11 / 10 by move: near; split_Rabs; lra.
by move: far => /Rabs_le_between far v1; nra.
Qed.
