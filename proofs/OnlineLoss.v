(* Chapter 9, The online loss: Plackett–Luce on every prefix of the responses. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Definitions ────────────────────────────────────────────────────────────────────────────── *)

(* What position t sees: the first t of N responses, or scores. *)
Definition prefix {A : Type} {t N : nat} (tN : (t <= N)%N) (y : 'I_N -> A) : 'I_t -> A :=
  fun i => y (widen_ord tN i).

(* The ranking σ of N responses puts the first t of them in the order ρ. *)
Definition restricts {t N : nat} (tN : (t <= N)%N) (ρ : {perm 'I_t}) (σ : {perm 'I_N}) : bool :=
  [forall i : 'I_t, forall j : 'I_t,
    ((σ^-1)%g (widen_ord tN i) < (σ^-1)%g (widen_ord tN j))%N == ((ρ^-1)%g i < (ρ^-1)%g j)%N].

(* ── One more response ──────────────────────────────────────────────────────────────────────── *)

(* The scores a by place, with one more, w, put in place k. *)
Definition insert {n : nat} (k : 'I_n.+1) (w : R) (a : 'I_n -> R) (p : 'I_n.+1) : R :=
  if unlift k p is Some j then a j else w.

Lemma insert_at n (k : 'I_n.+1) w a : insert k w a k = w.
Proof. by rewrite /insert unlift_none. Qed.

Lemma insert_lift n (k : 'I_n.+1) w a j : insert k w a (lift k j) = a j.
Proof. by rewrite /insert liftK. Qed.

(* A place is behind the newcomer's when it was in k or behind. *)
Lemma leq_lift_self n (k : 'I_n.+1) (j : 'I_n) : (k <= lift k j)%N = (k <= j)%N.
Proof.
rewrite /= /bump; case: (leqP k j) => kj; first by rewrite add1n ltnW.
by rewrite add0n leqNgt kj.
Qed.

Lemma lift_leq_self n (k : 'I_n.+1) (j : 'I_n) : (lift k j <= k)%N = (j < k)%N.
Proof.
rewrite /= /bump; case: (leqP k j) => kj; last by rewrite add0n ltnW.
by rewrite add1n leqNgt ltnS kj.
Qed.

(* A ranking with the response i inserted in place k. *)
Lemma P_PL_insert n (s : 'I_n.+1 -> R) k i σ :
  P_PL s (lift_perm k i σ) = placed (insert k (s i) (fun p => s (lift i (σ p)))).
Proof.
apply: (@eq_placed _ (fun p => s (lift_perm k i σ p))) => p.
by case: (unliftP k p) => [j ->|->]; rewrite ?lift_perm_lift ?lift_perm_id ?insert_lift ?insert_at.
Qed.

Lemma sum_insert_exp n (k : 'I_n.+1) w a : ∑_p exp (insert k w a p) = exp w + ∑_j exp (a j).
Proof.
rewrite (sum_at k) insert_at; congr (_ + _).
by apply: eq_bigr => j _; rewrite insert_lift.
Qed.

(* Summed over its places, a newcomer leaves the law of the others. *)
Lemma placed_insert n : forall (a : 'I_n -> R) w, ∑_k placed (insert k w a) = placed a.
Proof.
elim: n => [|n IH] a w; have w0 := exp_pos w.
  rewrite sum_first big_ord0 Rplus_0_r placed_first /softmax sum_insert_exp insert_at.
  by rewrite /placed !big_ord0; field; lra.
have S0 := sum_exp_all_gt0 a ord0; set S := ∑_j _ in S0.
rewrite sum_first placed_first /softmax sum_insert_exp insert_at -/S.
have -> : placed (fun k => insert ord0 w a (lift ord0 k)) = placed a.
  by apply: eq_placed => k; rewrite insert_lift.
have later k : placed (insert (lift ord0 k) w a)
    = exp (a ord0) / (exp w + S) * placed (insert k w (fun p => a (lift ord0 p))).
  rewrite placed_first /softmax sum_insert_exp -/S.
  have -> : insert (lift ord0 k) w a ord0 = a ord0.
    have E : ord0 = lift (lift ord0 k) ord0 by apply/val_inj.
    by rewrite [X in insert _ _ _ X]E insert_lift.
  congr (_ * _); apply: eq_placed => p.
  case: (unliftP k p) => [j ->|->]; last by rewrite !insert_at.
  have -> : lift ord0 (lift k j) = lift (lift ord0 k) (lift ord0 j).
    by apply/val_inj; rewrite /= /bump !add1n ltnS addnS.
  by rewrite !insert_lift.
rewrite (eq_bigr _ (fun k _ => later k)) sum_scal IH (placed_first a) /softmax -/S.
have add e d q : 0 < e -> e / (e + S) * (d / S * q) + d / (e + S) * q = d / S * q.
  by move=> e0; field; lra.
exact: add.
Qed.

(* A place is the number of places before it, so the order of all pairs determines a ranking. *)
Lemma count_below N (π : {perm 'I_N}) i : (\sum_(j < N | π j < π i) 1)%N = π i.
Proof.
rewrite -(reindex_inj (@perm_inj _ π) (P := fun k : 'I_N => (k < π i)%N) (F := fun=> 1%N)) /=.
by rewrite -(big_ord_widen _ (fun=> 1%N) (ltnW (ltn_ord (π i)))) sum1_card card_ord.
Qed.

Lemma restricts_self N (NN : (N <= N)%N) (ρ σ : {perm 'I_N}) : restricts NN ρ σ = (σ == ρ).
Proof.
have wid i : widen_ord NN i = i by apply/val_inj.
apply/idP/eqP => [/forallP same|->]; last first.
  by apply/forallP => i; apply/forallP => j; rewrite !wid.
apply: invg_inj; apply/permP => i; apply/val_inj.
rewrite -[LHS](count_below (σ^-1)%g) -[RHS](count_below (ρ^-1)%g).
by apply: eq_bigl => j; have /forallP/(_ i)/eqP := same j; rewrite !wid.
Qed.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim online-marginal, part one-place; summed over the places of one response, the law of the
   others is left. *)
Theorem online_marginal_one_place : forall (n : nat) (s : 'I_n.+1 -> R) (i : 'I_n.+1)
    (σ : {perm 'I_n}),
  ∑_k P_PL s (lift_perm k i σ) = P_PL (fun j : 'I_n => s (lift i j)) σ.
Proof.
move=> n s i σ; rewrite (eq_bigr _ (fun k _ => P_PL_insert s k i σ)).
exact: placed_insert.
Qed.

(* Claim online-marginal, parts exhaustive, numbers, induction; the rankings that restrict to ρ
   have the probability onlinePL(t) of ρ. *)
Theorem online_marginal : forall (t N : nat) (tN : (t <= N)%N) (s : 'I_N -> R) (ρ : {perm 'I_t}),
  ∑_(σ : {perm 'I_N} | restricts tN ρ σ) P_PL s σ = P_PL (prefix tN s) ρ.
Proof.
move=> t N; elim: N => [|N IH] tN s ρ.
- have t0 : t = 0%N by apply/eqP; rewrite -leqn0.
  subst t; rewrite /P_PL big_ord0 (big_pred1 1%g) => [|σ]; first by rewrite big_ord0.
  rewrite (_ : restricts _ _ _ = true); last by apply/forallP; case.
  by apply/esym/eqP/permP; case.
have [tN'|Nt] := leqP t N; last first.
  have E : t = N.+1 by apply/eqP; rewrite eqn_leq tN Nt.
  subst t; have wid i : widen_ord tN i = i by apply/val_inj.
  rewrite (big_pred1 ρ) => [|σ].
    by apply: (@eq_placed _ (fun p => s (ρ p))) => p; rewrite /prefix wid.
  exact: restricts_self.
have wid i : widen_ord tN i = lift ord_max (widen_ord tN' i).
  by apply/val_inj; rewrite /= /bump leqNgt (leq_trans (ltn_ord i)).
have fits k σ : restricts tN ρ (lift_perm k ord_max σ) = restricts tN' ρ σ.
  apply: eq_forallb => i; apply: eq_forallb => j.
  by rewrite lift_permV !wid !lift_perm_lift ltn_lift.
rewrite (sum_insert ord_max).
under eq_bigr => k _ do under eq_bigl => σ do rewrite fits.
rewrite exchange_big (eq_bigr _ (fun σ _ => online_marginal_one_place s ord_max σ)).
rewrite (IH tN' (fun j => s (lift ord_max j)) ρ).
by apply: (@eq_placed _ (fun p => _ (ρ p))) => p; rewrite /prefix wid.
Qed.

(* Claim online-incremental, part increment; what a newcomer, of score s(t) in place k, adds to the
   loss. *)
Theorem online_incremental : forall (t : nat) (s : 'I_t.+1 -> R) (ρ : {perm 'I_t}) (k : 'I_t.+1),
  let before := prefix (leqnSn t) s in
  let w := exp (s ord_max) in
  - ln (P_PL s (lift_perm k ord_max ρ)) - - ln (P_PL before ρ)
  = ∑_(j < t | (j < k)%N) ln (1 + w / ∑_(l < t | (j <= l)%N) exp (before (ρ l)))
    + ln (1 + ∑_(l < t | (k <= l)%N) exp (before (ρ l)) / w).
Proof.
move=> t s ρ k before w; pose a p := before (ρ p).
pose S (j : 'I_t) := ∑_(l < t | (j <= l)%N) exp (a l).
have wid i : lift ord_max i = widen_ord (leqnSn t) i by apply/val_inj; exact: lift_max.
have w0 : 0 < w := exp_pos _.
have -> : P_PL s (lift_perm k ord_max ρ) = placed (insert k (s ord_max) a).
  by rewrite P_PL_insert; apply: eq_placed => p; rewrite /insert; case: unlift => // j; rewrite wid.
rewrite -[P_PL before ρ]/(placed a) !placed_lse (sum_at k) insert_at.
have tails p : ∑_(q < t.+1 | (p <= q)%N) exp (insert k (s ord_max) a q)
    = (if (p <= k)%N then w else 0) + ∑_(l < t | (p <= lift k l)%N) exp (a l).
  rewrite (sum_lift k) insert_at; congr (_ + _).
  by apply: eq_bigr => l _; rewrite insert_lift.
have at_k : lse (tail k) (insert k (s ord_max) a) - s ord_max
    = ln (1 + ∑_(l < t | (k <= l)%N) exp (a l) / w).
  rewrite /lse tails leqnn -[X in _ - X](ln_exp (s ord_max)) -/w -ln_div //; last first.
    by apply: Rplus_lt_le_0_compat => //; apply: sum_ge0 => l _; exact: Rlt_le (exp_pos _).
  congr ln; under eq_bigl => l do rewrite leq_lift_self.
  have frac z : (w + z) / w = 1 + z / w by field; lra.
  exact: frac.
have S0 j : 0 < S j := tail_gt0 a j.
have other j : lse (tail (lift k j)) (insert k (s ord_max) a) - insert k (s ord_max) a (lift k j)
    - (lse (tail j) a - a j) = if (j < k)%N then ln (1 + w / S j) else 0.
  rewrite /lse tails lift_leq_self insert_lift.
  have -> : ∑_(l < t | (lift k j <= lift k l)%N) exp (a l) = S j.
    by apply: eq_bigl => l; exact: leq_lift.
  rewrite -[∑_(l | tail j l) _]/(S j).
  case: ifP => _; last by rewrite Rplus_0_l; ring.
  have -> : 1 + w / S j = (w + S j) / S j by field; have := S0 j; lra.
  by rewrite ln_div //; [ring | have := S0 j; lra].
have -> : ∑_(j < t | (j < k)%N) ln (1 + w / S j)
    = ∑_j (lse (tail (lift k j)) (insert k (s ord_max) a) - insert k (s ord_max) a (lift k j))
      - ∑_j (lse (tail j) a - a j).
  by rewrite -sum_sub big_mkcond; apply: eq_bigr => j _; rewrite -other.
rewrite at_k; have swap u v z : z + u - v = u - v + z by ring.
exact: swap.
Qed.

(* Claim online-gradient, part step; the first t responses. *)
Theorem online_gradient : forall (m n t N : nat) (tN : (t <= N)%N) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (ρ : {perm 'I_t}) (W : mat m n) (η : R),
  let y_t := prefix tN y in
  let G := gradient W x y_t ρ in
  let ΔW := ((- η) *: G)%V in
  (forall V : mat m n, is_derive (fun u : R => loss (W + u *: V) x y_t ρ) 0 ⟨G, V⟩) /\
  (‖x‖² = 1 ->
   (ΔW *v x = (2 * η) *: ∑_(k < t | (k.+1 < t)%N) (y_t (ρ k) - tail_mean W x y_t ρ k))%V).
Proof.
move=> m n t N tN x y ρ W η y_t G ΔW; split=> [V|x1]; first exact: pl_gradient.
rewrite /ΔW /G /gradient !mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²) x1.
apply: vec_eq => a; rewrite /vscal /vsum Rmult_1_l -!sum_scal.
apply: eq_bigr => k _; have signs b c : - η * (2 * (b - c)) = 2 * η * (c - b) by ring.
exact: signs.
Qed.

(* Claim online-gradient, part first; position 1 gets zero. *)
Theorem online_gradient_first : forall (m n : nat) (x : vec 'I_n) (y : 'I_1 -> vec 'I_m)
    (ρ : {perm 'I_1}) (W : mat m n),
  gradient W x y ρ = vzero.
Proof.
move=> m n x y ρ W; apply: vec_eq => p; rewrite /gradient /outer /vscal /vsum big_pred0.
  by rewrite /vzero; ring.
by case=> [[]].
Qed.

(* Claim online-marginal, part one-place; what the newcomer in place k multiplies the
   probability by. *)
Theorem online_marginal_factor : forall (t : nat) (s : 'I_t.+1 -> R) (ρ : {perm 'I_t})
    (k : 'I_t.+1),
  let before := prefix (leqnSn t) s in
  let w := exp (s ord_max) in
  let S (j : nat) := ∑_(l < t | (j <= l)%N) exp (before (ρ l)) in
  P_PL s (lift_perm k ord_max ρ)
  = P_PL before ρ * (∏_(j < t | (j < k)%N) (S j / (S j + w)) * (w / (S k + w))).
Proof.
move=> t s ρ k before w S; have w0 : 0 < w := exp_pos _.
have S0 (j : 'I_t) : 0 < S j := tail_gt0 (fun l => before (ρ l)) j.
have Sk : 0 <= S k by apply: sum_ge0 => l _; exact: Rlt_le (exp_pos _).
apply: ln_inv; first exact: P_PL_gt0.
  apply: Rmult_lt_0_compat; first exact: P_PL_gt0.
  apply: Rmult_lt_0_compat; last by apply: Rdiv_lt_0_compat; lra.
  by apply: prod_gt0 => j _; apply: Rdiv_lt_0_compat; have := S0 j; lra.
have pos (j : 'I_t) : 0 < S j / (S j + w) by apply: Rdiv_lt_0_compat; have := S0 j; lra.
have prod0 : 0 < ∏_(j < t | (j < k)%N) (S j / (S j + w)) by apply: prod_gt0 => j _; exact: pos.
have last0 : 0 < w / (S k + w) by apply: Rdiv_lt_0_compat; lra.
rewrite ln_mult; [|exact: P_PL_gt0 | exact: Rmult_lt_0_compat].
rewrite (ln_mult _ _ prod0 last0).
rewrite [ln (∏_(j < t | _) _)]prod_ln => [|j _]; last exact: pos.
rewrite -[ln (P_PL s _)]Ropp_involutive.
have := online_incremental s ρ k; cbv zeta; rewrite -/before -/w.
have -> : ∑_(j < t | (j < k)%N) ln (1 + w / ∑_(l < t | (j <= l)%N) exp (before (ρ l)))
    = - ∑_(j < t | (j < k)%N) ln (S j / (S j + w)).
  rewrite -sum_opp; apply: eq_bigr => j _; have := S0 j => Sj; rewrite -ln_Rinv //.
  by congr ln; rewrite -/(S j); field; lra.
have -> : ln (w / (S k + w)) = - ln (1 + S k / w).
  have Skw := Rmult_le_pos _ _ Sk (Rlt_le _ _ (Rinv_0_lt_compat _ w0)).
  by rewrite -ln_Rinv; [congr ln; field; lra | rewrite /Rdiv; lra].
have move_over a b c d : - a - - b = - c + d -> - - a = b + (c + - d) by lra.
exact: move_over.
Qed.
