(* Statements that are not theorems, of chapter 9: the online loss and records. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep.
From Icalign Require Import OnlineLoss Records Smoothness Mutants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma sum_one_ord (F : 'I_1 -> R) : ∑_i F i = F ord0.
Proof. by rewrite big_ord_recl big_ord0 Rplus_0_r. Qed.

Lemma sum_one_if (P : pred 'I_1) (F : 'I_1 -> R) :
  ∑_(i | P i) F i = if P ord0 then F ord0 else 0.
Proof. by rewrite big_mkcond sum_one_ord. Qed.

Lemma prod_one_if (P : pred 'I_1) (F : 'I_1 -> R) :
  ∏_(i | P i) F i = if P ord0 then F ord0 else 1.
Proof. by rewrite big_mkcond big_ord_recl big_ord0 Monoid.mulm1. Qed.

(* ── The online loss ────────────────────────────────────────────────────────────────────────── *)

Lemma placed_1 (a : 'I_1 -> R) : placed a = 1.
Proof.
rewrite placed_first /placed big_ord0 /softmax sum_one_ord.
by field; have := exp_pos (a ord0); lra.
Qed.

(* A newcomer of score 0 before a response of score 0. *)
Lemma newcomer : P_PL (fun _ : 'I_2 => 0) (lift_perm ord0 ord_max (1%g : {perm 'I_1})) = / 2.
Proof. by rewrite pl_bradley_terry Rminus_0_r sigmoid_0. Qed.

(* Mutant of online_marginal_one_place: the first place only *)
Lemma not_marginal_of_first_place : ~ (forall (n : nat) (s : 'I_n.+1 -> R) (i : 'I_n.+1)
    (σ : {perm 'I_n}),
  P_PL s (lift_perm ord0 i σ) = P_PL (fun j : 'I_n => s (lift i j)) σ).
Proof.
by move/(_ 1%N (fun _ => 0) ord_max 1%g); rewrite newcomer -[RHS]/(placed _) placed_1; lra.
Qed.

(* Mutant of online_marginal: all rankings *)
Lemma not_marginal_of_all : ~ (forall (t N : nat) (tN : (t <= N)%N) (s : 'I_N -> R)
    (ρ : {perm 'I_t}),
  ∑_(σ : {perm 'I_N}) P_PL s σ = P_PL (prefix tN s) ρ).
Proof.
move/(_ 2%N 2%N (leqnn 2) (fun _ => 0) 1%g); rewrite pl_normalised P_two Rminus_0_r sigmoid_0.
by lra.
Qed.

(* Mutant of online_incremental: the newcomer's own place among those before it *)
Lemma not_incremental_one_place_more : ~ (forall (t : nat) (s : 'I_t.+1 -> R) (ρ : {perm 'I_t})
    (k : 'I_t.+1),
  let before := prefix (leqnSn t) s in
  let w := exp (s ord_max) in
  - ln (P_PL s (lift_perm k ord_max ρ)) - - ln (P_PL before ρ)
  = ∑_(j < t | (j <= k)%N) ln (1 + w / ∑_(l < t | (j <= l)%N) exp (before (ρ l)))
    + ln (1 + ∑_(l < t | (k <= l)%N) exp (before (ρ l)) / w)).
Proof.
move/(_ 1%N (fun _ => 0) 1%g ord0); cbv zeta; rewrite newcomer -[P_PL _ 1%g]/(placed _) placed_1.
rewrite exp_0 ln_1 !sum_one_if /= ln_Rinv; last by lra.
have -> : 1 + 1 / 1 = 2 by lra.
have : 0 < ln 2 by rewrite -ln_1; apply: ln_increasing; lra.
by lra.
Qed.

(* Mutant of online_incremental: the newcomer against those behind place k.+1 *)
Lemma not_incremental_without_place : ~ (forall (t : nat) (s : 'I_t.+1 -> R) (ρ : {perm 'I_t})
    (k : 'I_t.+1),
  let before := prefix (leqnSn t) s in
  let w := exp (s ord_max) in
  - ln (P_PL s (lift_perm k ord_max ρ)) - - ln (P_PL before ρ)
  = ∑_(j < t | (j < k)%N) ln (1 + w / ∑_(l < t | (j <= l)%N) exp (before (ρ l)))
    + ln (1 + ∑_(l < t | (k < l)%N) exp (before (ρ l)) / w)).
Proof.
move/(_ 1%N (fun _ => 0) 1%g ord0); cbv zeta; rewrite newcomer -[P_PL _ 1%g]/(placed _) placed_1.
rewrite ln_1 !big_pred0 //; try by move=> j; rewrite ord1.
rewrite /Rdiv Rmult_0_l Rplus_0_r ln_1 ln_Rinv; last by lra.
have : 0 < ln 2 by rewrite -ln_1; apply: ln_increasing; lra.
by lra.
Qed.

(* Mutant of online_marginal_factor: the newcomer's own place among those before it *)
Lemma not_factor_one_place_more : ~ (forall (t : nat) (s : 'I_t.+1 -> R) (ρ : {perm 'I_t})
    (k : 'I_t.+1),
  let before := prefix (leqnSn t) s in
  let w := exp (s ord_max) in
  let S (j : nat) := ∑_(l < t | (j <= l)%N) exp (before (ρ l)) in
  P_PL s (lift_perm k ord_max ρ)
  = P_PL before ρ * (∏_(j < t | (j <= k)%N) (S j / (S j + w)) * (w / (S k + w)))).
Proof.
move/(_ 1%N (fun _ => 0) 1%g ord0); cbv zeta; rewrite newcomer -[P_PL _ 1%g]/(placed _) placed_1.
by rewrite prod_one_if !sum_one_if /= exp_0; lra.
Qed.

(* Mutant of online_gradient: a query of any norm *)
Lemma not_online_gradient_of_any_query : ~ (forall (m n t N : nat) (tN : (t <= N)%N)
    (x : vec 'I_n) (y : 'I_N -> vec 'I_m) (ρ : {perm 'I_t}) (W : mat m n) (η : R),
  let y_t := prefix tN y in
  let G := gradient W x y_t ρ in
  let ΔW := ((- η) *: G)%V in
  (ΔW *v x = (2 * η) *: ∑_(k < t | (k.+1 < t)%N) (y_t (ρ k) - tail_mean W x y_t ρ k))%V).
Proof.
move/(_ 1%N 1%N 2%N 2%N (leqnn 2) (V1 2) (two 1 (- 1)) 1%g (M1 0) 1); cbv zeta.
have -> : prefix (leqnn 2) (two 1 (- 1)) = two 1 (- 1).
  apply: FunctionalExtensionality.functional_extensionality => j.
  by rewrite /prefix; congr two; apply/val_inj.
rewrite gradient_two; last by ring.
rewrite M1_scal mulmv_1 => /(f_equal (fun v => v ord0)).
rewrite /vscal /vsum big_mkcond sum_two /= /vsub tail_mean_two; last by ring.
by rewrite !perm1 /two /V1 pair_0; lra.
Qed.

(* Mutant of online_gradient_first: the second position *)
Lemma not_gradient_of_second_zero : ~ (forall (m n : nat) (x : vec 'I_n) (y : 'I_2 -> vec 'I_m)
    (ρ : {perm 'I_2}) (W : mat m n),
  gradient W x y ρ = vzero).
Proof.
move/(_ 1%N 1%N (V1 1) (two 1 (- 1)) 1%g (M1 0)); rewrite gradient_two; last by ring.
by move/(f_equal (fun v => v (ord0, ord0))); rewrite /M1 /vzero; lra.
Qed.

(* ── Records ────────────────────────────────────────────────────────────────────────────────── *)

Lemma records_constant N (c : R) : records (fun _ : 'I_N.+1 => c) = 1%N.
Proof.
rewrite /records big_ord_recl big1 => [|i _].
  by rewrite (_ : record _ _ = true) //; apply/forallP.
rewrite (_ : record _ _ = false) //; apply/negbTE/forallPn; exists ord0; rewrite /=.
by case: Rlt_dec => // lt; case: (Rlt_irrefl _ lt).
Qed.

(* Mutant of records_generating_function: rewards that tie *)
Lemma not_generating_function_of_ties : ~ (forall (N : nat) (r : 'I_N -> R),
  forall z, mean_over_orders (fun σ => z ^ records (fun i => r (σ i)))
            = ∏_(i < N) (z + INR i) / INR N`!).
Proof.
move/(_ 2%N (fun _ => 0) 2); rewrite /mean_over_orders !big_ord_recl big_ord0 /=.
under eq_bigr => σ _ do rewrite records_constant.
by rewrite sum_const card_Sn /=; lra.
Qed.

(* Mutant of records_law: rewards that tie *)
Lemma not_law_of_ties : ~ (forall (N k : nat) (r : 'I_N -> R),
  #|[pred σ : {perm 'I_N} | records (fun i => r (σ i)) == k]| = stirling N k).
Proof.
move/(_ 2%N 2%N (fun _ => 0)); rewrite eq_card0 // => σ.
by rewrite inE /= records_constant.
Qed.

(* Mutant of records_mean: rewards that tie *)
Lemma not_mean_of_ties : ~ (forall (N : nat) (r : 'I_N -> R),
  mean_over_orders (fun σ => INR (records (fun i => r (σ i)))) = ∑_(k < N) (1 / INR k.+1)).
Proof.
move/(_ 2%N (fun _ => 0)); rewrite /mean_over_orders sum_two /=.
under eq_bigr => σ _ do rewrite records_constant.
by rewrite sum_const card_Sn /=; lra.
Qed.

(* Mutant of records_mean: the harmonic number of N − 1 (less one) *)
Lemma not_mean_from_a_half : ~ (forall (N : nat) (r : 'I_N -> R), injective r ->
  mean_over_orders (fun σ => INR (records (fun i => r (σ i)))) = ∑_(k < N) (1 / INR k.+2)).
Proof.
have inj : injective (fun _ : 'I_1 => 0) by move=> i j _; rewrite !ord1.
by move/(_ _ _ inj); rewrite (records_mean inj) !sum_one_ord /=; lra.
Qed.

(* Mutant of records_only_last: rewards that tie *)
Lemma not_only_last_of_ties : ~ (forall (N : nat) (r : 'I_N -> R) (i : 'I_N),
  record r i ->
  (forall j, j <> i -> r j < r i) <-> (forall j : 'I_N, (i < j)%N -> ~ record r j)).
Proof.
move/(_ 2%N (fun _ => 0) ord0) => H; have r0 : record (fun _ : 'I_2 => 0) ord0 by apply/forallP.
have [_ top] := H r0; apply: (Rlt_irrefl 0); apply: (top _ ord_max) => // j j0.
move/forallP/(_ ord0); rewrite j0 /=.
by case: Rlt_dec => // lt _; exact: Rlt_irrefl lt.
Qed.

(* Mutant of records_only_last: a reward that is no record *)
Lemma not_only_last_of_others : ~ (forall (N : nat) (r : 'I_N -> R) (i : 'I_N),
  injective r ->
  (forall j, j <> i -> r j < r i) <-> (forall j : 'I_N, (i < j)%N -> ~ record r j)).
Proof.
move/(_ 2%N (pair 1 0) ord_max) => H.
have inj : injective (pair 1 0).
  by case=> [[|[|i]] pi] [[|[|j]] pj] //; rewrite /pair /= => E; try apply/val_inj => //; lra.
have [_ top] := H inj; have : pair 1 0 ord0 < pair 1 0 ord_max; last by rewrite pair_0 pair_1; lra.
by apply: top => // j; rewrite ltnNge -ltnS ltn_ord.
Qed.

(* Mutant of records_newcomer: rewards that tie *)
Lemma not_newcomer_of_ties : ~ (forall (n : nat) (r : 'I_n.+1 -> R),
  bijective (fun p : 'I_n.+1 * {perm 'I_n} => lift_perm ord_max p.1 p.2)
  /\ exists b, forall i σ,
    let order := lift_perm ord_max i σ in
    order ord_max = i
    /\ record (fun p => r (order p)) ord_max = (i == b)
    /\ records (fun p => r (order p)) = (records (fun p => r (lift i (σ p))) + (i == b))%N).
Proof.
case/(_ 1%N (fun _ => 0)) => _ [b H]; have [_ [E _]] := H b 1%g; move: E.
rewrite eqxx => /forallP /(_ ord0) /=.
by case: Rlt_dec => // lt _; exact: Rlt_irrefl lt.
Qed.
