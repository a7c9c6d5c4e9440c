(* Statements that are not theorems, of chapter 14: what noise in a ranking costs. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.
From Icalign Require Import Elsewhere NoisePlaces Smoothness Mutants MutantsStep MutantsReadout.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Two responses ──────────────────────────────────────────────────────────────────────────── *)

Notation swap2 := (swapped ord0 ord_max id2).

Lemma x1 : ‖V1 1‖ = 1. Proof. by rewrite vnorm_1 Rabs_R1. Qed.

Lemma swap2E : swap2 = tperm ord0 ord_max. Proof. by rewrite /swapped mulg1. Qed.

Lemma sum_perm2 (F : {perm 'I_2} -> R) : ∑_τ F τ = F id2 + F swap2.
Proof.
rewrite (bigD1 id2) //= (bigD1 swap2) /=; last first.
  by apply/eqP => /permP /(_ ord0); rewrite swap2E tpermL perm1 => /(congr1 val).
rewrite big_pred0 ?Rplus_0_r // => τ; apply/negP => /andP [/eqP n1 /eqP n2].
have ne : τ ord0 != τ ord_max by rewrite (inj_eq perm_inj).
have two_of (i : 'I_2) : i = ord0 \/ i = ord_max.
  by case: i => [[|[|i]] p] //; [left | right]; exact/val_inj.
case: (two_of (τ ord0)) (two_of (τ ord_max)) => a [] b; rewrite a b ?eqxx // in ne.
  by case: n1; apply/permP => i; rewrite perm1; case: (two_of i) => ->.
by case: n2; apply/permP => i; rewrite swap2E; case: (two_of i) => ->; rewrite ?tpermL ?tpermR.
Qed.

(* The first weight all on one response, the second all on the other. *)
Lemma weights_pair (a : R) : 0 <= a <= 1 -> weights (pair a (1 - a)).
Proof.
by move=> a01; split=> [j|]; rewrite ?sum_two ?pair_0 ?pair_1 /pair; [case: ifP => _|]; lra.
Qed.

(* Mutant of noise_kendall_means: D the radius, not the diameter *)
Lemma not_means_in_the_radius : ~ (forall (m N : nat) (y : 'I_N -> vec 'I_m)
    (a b : 'I_N -> R) (D : R),
  weights a -> weights b -> (forall i, ‖y i‖ <= D) -> ‖comb a y - comb b y‖ <= D).
Proof.
move/(_ _ _ ends _ _ 1 (@weights_pair 1 ltac:(lra)) (@weights_pair 0 ltac:(lra))) => H.
have {H} : ‖comb (pair 1 (1 - 1)) ends - comb (pair 0 (1 - 0)) ends‖ <= 1.
  by apply: H => i; rewrite vnorm_1 /pair; case: ifP => _; split_Rabs; lra.
have -> : (comb (pair 1 (1 - 1)) ends - comb (pair 0 (1 - 0)) ends)%V = V1 2.
  by apply: vec_eq => c; rewrite /vsub /comb !sum_two /ends /two /V1 !pair_0 !pair_1; lra.
by rewrite vnorm_1; split_Rabs; lra.
Qed.

(* Mutant of noise_kendall_swap: the tail mean at k changes, not that at l (the means alone) *)
Lemma not_the_first_of_two_tails : ~ (forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> l = k.+1 :> nat ->
  let τ' := swapped k l τ in
  let μ := tail_mean W x y τ in
  let μ' := tail_mean W x y τ' in
  forall p : 'I_N, p != k -> μ' p = μ p).
Proof.
move/(_ _ _ _ (M1 0) (V1 1) ends id2 ord0 ord_max x1 erefl ord_max isT).
rewrite !tail_mean_last // swap2E tpermR perm1 => /(f_equal (fun v => v ord0)).
by rewrite /ends /two /V1 pair_0 pair_1; lra.
Qed.

(* Two responses, of which the better has the score −1 and the other 0. *)
Lemma scores_differ : softmax (fun j => score (M1 0) (V1 1) (two 1 0 j)) ord0
  <> softmax (fun j => score (M1 0) (V1 1) (two 1 0 j)) ord_max.
Proof.
have E j : score (M1 0) (V1 1) (two 1 0 j) = - (0 * 1 - pair 1 0 j) ^ 2 := score_1 _ _ _.
rewrite /softmax sum_two !E pair_0 pair_1; set S := _ + _.
have S0 : 0 < S by apply: Rplus_lt_0_compat; exact: exp_pos.
by move/(Rmult_eq_reg_r _ _ _)/(_ (Rinv_neq_0_compat _ (Rgt_not_eq _ _ S0)))/exp_inv; lra.
Qed.

(* Mutant of noise_kendall_first_place: the last place, not the first (the probability alone) *)
Lemma not_softmax_in_the_last_place : ~ (forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N.+1 -> vec 'I_m),
  let s j := score W x (y j) in
  forall j, ∑_(τ : {perm 'I_N.+1} | τ ord_max == j) P_PL s τ = softmax s j).
Proof.
move/(_ _ _ 1%N (M1 0) (V1 1) (two 1 0) ord0) => E; apply: scores_differ.
have [F _] := noise_kendall_first_place (M1 0) (V1 1) (two 1 0); rewrite -(F ord_max) -E.
by rewrite big_mkcond [RHS]big_mkcond !sum_perm2 swap2E !perm1 tpermL tpermR.
Qed.

Lemma gradient_swapped : gradient (M1 0) (V1 1) ends swap2 = M1 2.
Proof.
apply: vec_eq => p; rewrite /gradient /vscal /outer /vsum big_mkcond sum_two /= /vsub.
rewrite (@tail_mean_first _ _ _ _ _ _ swap2 id2) // tail_mean_two; last by ring.
by rewrite swap2E tpermL /ends /two /V1 pair_1 /M1; field.
Qed.

(* Mutant of noise_kendall_mean_gradient: the rankings drawn at other weights V *)
Lemma not_zero_under_another_law : ~ (forall (m n N : nat) (W V : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m),
  comb (fun τ => P_PL (fun j => score V x (y j)) τ) (fun τ => gradient W x y τ) = vzero).
Proof.
(* at V = 1 the scores are 0 and −4 *)
move/(_ _ _ _ (M1 0) (M1 1) (V1 1) ends) => /(f_equal (fun G => G (ord0, ord0))).
set s := fun j => score (M1 1) _ _; rewrite /comb sum_perm2 slope_0 gradient_swapped.
have := pl_normalised s; rewrite sum_perm2 P_two /s !score_two pair_0 pair_1 /sigmoid /M1 /vzero.
move: (P_PL _ _) => q; set e := exp _ => sum E.
have e1 : e < 1 by rewrite /e -[X in _ < X]exp_0; apply: exp_increasing; lra.
have e0 : 0 < e := exp_pos _; have : / 2 < 1 / (1 + e); last by lra.
by rewrite /Rdiv Rmult_1_l; apply: Rinv_lt_contravar; lra.
Qed.

(* Mutant of noise_kendall_mean: every ranking equally likely *)
Lemma not_zero_when_equally_likely : ~ (forall (m n N : nat) (η : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m),
  comb (fun _ : {perm 'I_N} => / INR (fact N)) (fun τ => ranked_step η W x y τ) = vzero).
Proof.
(* the same scores, at W = 1: a first mean that is not 0 *)
move/(_ _ _ _ 1 (M1 1) (V1 1) ends) => /(f_equal (fun v => v ord0)).
rewrite /comb sum_perm2 !ranked_step_all ?x1 // !sum_two.
rewrite !(@tail_mean_last _ _ _ _ _ _ _ ord_max) // swap2E tpermR perm1 -swap2E.
rewrite (@tail_mean_first _ _ _ _ _ _ swap2 id2) // /tail_mean /comb sum_two !perm1 /beta /= !perm1.
rewrite big_mkcond sum_two /= !perm1 !score_two /ends /two /V1 !pair_0 !pair_1 /vzero.
have -> : - (1 * 1 - 1) ^ 2 = 0 by ring.
have -> : - (1 * 1 - - (1)) ^ 2 = - 4 by ring.
have e1 : exp (- 4) < 1 by rewrite -[X in _ < X]exp_0; apply: exp_increasing; lra.
rewrite exp_0; move: (exp _) (exp_pos (- 4)) e1 => e e0 e1.
have := Rinv_0_lt_compat (1 + e) ltac:(lra).
have -> : 1 / (1 + e) = 1 - e * / (1 + e) by field; lra.
rewrite /Rdiv; have : (1 + e) * / (1 + e) = 1 by field; lra.
by move: (/ (1 + e)) => q; nra.
Qed.

(* Mutant of noise_kendall_places: the response in place k given as well *)
Lemma not_zero_when_the_place_is_given : ~ (forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k : 'I_N) (c : 'I_m),
  ∑_(σ | begins_as k.+1 τ σ) (P_PL (fun j => score W x (y j)) σ
                              * (y (σ k) c - tail_mean W x y σ k c)) = 0).
Proof.
move/(_ _ _ _ (M1 0) (V1 1) ends id2 ord0 ord0).
have first τ : begins_as 1 id2 τ = (τ ord0 == ord0).
  apply/begins_asP/eqP => [-> //|t0 [[|i] p] // _]; first by rewrite perm1.
  by rewrite perm1 (_ : Ordinal p = ord0) //; exact/val_inj.
rewrite big_mkcond sum_perm2 !first swap2E perm1 tpermL /= Rplus_0_r tail_mean_two; last by ring.
set s := fun j => score _ _ _; have := P_PL_gt0 s id2; move: (P_PL _ _) => p p0.
by rewrite /ends /two /V1 pair_0; lra.
Qed.

(* ── Three responses ────────────────────────────────────────────────────────────────────────── *)

(* a, b, c of length one, so that all scores are equal at W = 0. *)
Definition trio (a b c : R) (j : 'I_3) : vec 'I_1 := V1 (nth 0 [:: a; b; c] j).
Definition id3 : {perm 'I_3} := 1%g.
Definition mid : 'I_3 := lift ord0 ord0.

Lemma sum_trio (F : 'I_3 -> R) : ∑_j F j = F ord0 + F mid + F ord_max.
Proof.
rewrite big_ord_recl sum_two -Rplus_assoc.
by congr (_ + _ + F _); exact/val_inj.
Qed.

Lemma mean_mid y (τ : {perm 'I_3}) : (forall j, ‖y j‖² = 1) ->
  tail_mean (M1 0) (V1 1) y τ mid = V1 ((y (τ mid) ord0 + y (τ ord_max) ord0) / 2).
Proof.
move=> y1; have E j : score (M1 0) (V1 1) (y j) = - (1).
  by rewrite pl_shift_reduced /reduced !mulmv_1 Rmult_0_l y1 dot_zerol sqnorm_1; ring.
apply: vec_eq => c; rewrite ord1 /tail_mean /comb sum_trio /beta /= !E.
by rewrite big_mkcond sum_trio /= !E /V1; have := exp_pos (- (1)) => e0; field; lra.
Qed.

Lemma unit_trio a b c : a ^ 2 = 1 -> b ^ 2 = 1 -> c ^ 2 = 1 ->
  forall j, ‖trio a b c j‖² = 1.
Proof. by move=> ? ? ? [[|[|[|j]]] p] //; rewrite sqnorm_1 /=; lra. Qed.

Lemma spread_trio a b c : a ^ 2 = 1 -> b ^ 2 = 1 -> c ^ 2 = 1 ->
  forall i j, ‖trio a b c i - trio a b c j‖ <= 2.
Proof.
move=> a1 b1 c1 i j; have := unit_trio a1 b1 c1; set y := trio a b c => y1.
have len k : Rabs (y k ord0) <= 1.
  have := y1 k; rewrite -[y k]/(V1 (y k ord0)) sqnorm_1 /V1 => e; split_Rabs; nra.
rewrite -[(_ - _)%V]/(V1 (y i ord0 - y j ord0)) vnorm_1.
by have := len i; have := len j; split_Rabs; lra.
Qed.

(* Two steps, by the tails in the middle and at the end. *)
Lemma steps_trio (y : 'I_3 -> vec 'I_1) (τ σ : {perm 'I_3}) : (forall j, ‖y j‖² = 1) ->
  let z (τ : {perm 'I_3}) := (y (τ mid) ord0 + y (τ ord_max) ord0) / 2 + y (τ ord_max) ord0 in
  ‖ranked_step 1 (M1 0) (V1 1) y τ - ranked_step 1 (M1 0) (V1 1) y σ‖ = Rabs (2 * (z σ - z τ)).
Proof.
move=> y1 z; rewrite -vnorm_1; congr (‖_‖); apply: vec_eq => c.
rewrite ord1 /vsub !ranked_step_all ?x1 // !sum_trio !mean_mid //.
rewrite !(@tail_mean_last _ _ _ _ _ _ _ ord_max) //.
by rewrite (@tail_mean_first _ _ _ _ _ _ τ σ) // /V1 /z; ring.
Qed.

(* Mutant of noise_kendall: at most N − 2 steps, not N − 1 (the bound alone) *)
Lemma not_with_one_tail_less : ~ (forall (m n N : nat) (η D : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ τ' : {perm 'I_N}),
  ‖x‖ = 1 -> 0 <= η -> (forall i j, ‖y i - y j‖ <= D) ->
  ‖ranked_step η W x y τ - ranked_step η W x y τ'‖
  <= 2 * η * D * INR (minn (kendall τ τ') (N - 2))).
Proof.
(* the first and the last of 1, 1, −1 exchanged: 6 > 4 *)
have := @unit_trio 1 1 (- (1)) ltac:(ring) ltac:(ring) ltac:(ring).
have := @spread_trio 1 1 (- (1)) ltac:(ring) ltac:(ring) ltac:(ring).
set y := trio _ _ _ => yD y1.
move/(_ _ _ _ 1 2 (M1 0) (V1 1) y id3 (tperm ord0 ord_max) x1 Rle_0_1 yD); rewrite steps_trio //.
rewrite !perm1 tpermR tpermD // /y /trio /V1 /=.
have : INR (minn (kendall id3 (tperm ord0 ord_max)) (3 - 2)) <= 1.
  by rewrite -[1]/(INR 1); apply: le_INR; apply/leP; exact: geq_minr.
by move: (INR _) => k k1; split_Rabs; lra.
Qed.

(* Mutant of noise_kendall_one_swap: any two places, not only neighbours *)
Lemma not_one_swap_of_any_places : ~ (forall (m n N : nat) (η D : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> 0 <= η -> (forall i j, ‖y i - y j‖ <= D) ->
  ‖ranked_step η W x y (swapped k l τ) - ranked_step η W x y τ‖ <= 2 * η * D).
Proof.
(* the first and the last of 1, 1, −1: 6 > 4 *)
have := @unit_trio 1 1 (- (1)) ltac:(ring) ltac:(ring) ltac:(ring).
have := @spread_trio 1 1 (- (1)) ltac:(ring) ltac:(ring) ltac:(ring).
set y := trio _ _ _ => yD y1.
move/(_ _ _ _ 1 2 (M1 0) (V1 1) y id3 ord0 ord_max x1 Rle_0_1 yD); rewrite steps_trio //.
by rewrite /swapped mulg1 !perm1 tpermR tpermD // /y /trio /V1 /=; split_Rabs; lra.
Qed.

(* Mutant of noise_kendall_attained: any two neighbours, not only the last two *)
Lemma not_attained_by_any_neighbours : ~ (forall (m n N : nat) (η D : R) (W : mat m n)
    (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> 0 <= η -> l = k.+1 :> nat -> ‖y (τ k) - y (τ l)‖ = D ->
  kendall τ (swapped k l τ) = 1%N
  /\ ‖ranked_step η W x y τ - ranked_step η W x y (swapped k l τ)‖ = 2 * η * D).
Proof.
(* the first two of 1, −1, 1: 2 < 4 *)
have := @unit_trio 1 (- (1)) 1 ltac:(ring) ltac:(ring) ltac:(ring).
set y := trio _ _ _ => y1; have far : ‖y (id3 ord0) - y (id3 mid)‖ = 2.
  by rewrite !perm1 -[(_ - _)%V]/(V1 (1 - - (1))) vnorm_1; split_Rabs; lra.
move/(_ _ _ _ 1 2 (M1 0) (V1 1) y id3 ord0 mid x1 Rle_0_1 erefl far) => [_].
rewrite steps_trio // /swapped mulg1 !perm1 tpermR tpermD // /y /trio /V1 /=.
by split_Rabs; lra.
Qed.

(* Mutant of noise_kendall_chain: at most N − 1 swaps, not as many as the distance *)
Lemma not_by_fewer_swaps : ~ (forall (N : nat) (τ τ' : {perm 'I_N}),
  exists swaps : seq ('I_N * 'I_N),
    (size swaps <= N - 1)%N
    /\ all (fun p : 'I_N * 'I_N => p.2 == p.1.+1 :> nat) swaps
    /\ foldl (fun ρ p => swapped p.1 p.2 ρ) τ swaps = τ').
Proof.
(* the first and the last of three exchanged: an odd number of swaps, and not one *)
move/(_ 3%N id3 (tperm ord0 ord_max)) => [ps [size_ps [nbs last]]].
have odd_after τ : odd_perm (foldl (fun ρ p => swapped p.1 p.2 ρ) τ ps)
    = odd (size ps) (+) odd_perm τ.
  elim: ps nbs τ {size_ps last} => [|[k l] ps IH] //= /andP [/eqP lk nbs] τ.
  rewrite IH // /swapped odd_permM odd_tperm (_ : k != l) ?addbA ?addbT //.
  by rewrite -val_eqE /= lk ltn_eqF.
have {odd_after} := odd_after id3; rewrite last odd_tperm odd_perm1 addbF.
move: size_ps nbs last; case: ps => [|[k l] [|p [|q ps]]] //= _ /andP [/eqP lk _] E _.
move/permP: E => /(_ ord0); rewrite /swapped mulg1 tpermL.
by case: tpermP => [k0 E|E _|//]; move: lk; [rewrite -k0 E | rewrite -E].
Qed.
