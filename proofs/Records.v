(* Chapter 9, continued: running maxima (records) of rewards that arrive in random order. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Rankings.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Definitions ────────────────────────────────────────────────────────────────────────────── *)

(* In the order of arrival, the i-th value exceeds all before it. *)
Definition record {N : nat} (r : 'I_N -> R) (i : 'I_N) : bool :=
  [forall j : 'I_N, (j < i)%N ==> Rlt_dec (r j) (r i)].

(* How many of them there are. *)
Definition records {N : nat} (r : 'I_N -> R) : nat := (\sum_(i < N) record r i)%N.

(* The unsigned Stirling numbers of the first kind. *)
Fixpoint stirling (n k : nat) : nat :=
  match n, k with
  | 0, 0 => 1
  | 0, _.+1 => 0
  | n'.+1, 0 => n' * stirling n' 0
  | n'.+1, k'.+1 => stirling n' k' + n' * stirling n' k
  end%N.

(* The mean of F over all orders of N things. *)
Definition mean_over_orders {N : nat} (F : {perm 'I_N} -> R) : R :=
  (∑_(σ : {perm 'I_N}) F σ) / INR N`!.

(* ── The last arrival ───────────────────────────────────────────────────────────────────────── *)

Section Last.
Variable n : nat.
Implicit Types (r : 'I_n.+1 -> R) (σ : {perm 'I_n}).

(* i is the best of all. *)
Definition best r (i : 'I_n.+1) : bool := [forall j : 'I_n, Rlt_dec (r (lift i j)) (r i)].

(* If the response i comes last, it is a record exactly if it is the best of all. *)
Lemma last_record r i σ : record (fun p => r (lift_perm ord_max i σ p)) ord_max = best r i.
Proof.
apply/forallP/forallP => H q.
  have := H (lift ord_max ((σ^-1)%g q)); rewrite lift_perm_lift permKV lift_perm_id lift_max.
  by rewrite ltn_ord.
case: (unliftP ord_max q) => [j ->|->]; last by rewrite ltnn.
by rewrite lift_perm_lift lift_perm_id lift_max ltn_ord; exact: H.
Qed.

Lemma records_last r i σ :
  records (fun p => r (lift_perm ord_max i σ p))
  = (records (fun p => r (lift i (σ p))) + best r i)%N.
Proof.
rewrite /records big_ord_recr /= last_record; congr (_ + _)%N.
apply: eq_bigr => p _; congr nat_of_bool.
have -> : widen_ord (leqnSn n) p = lift ord_max p by apply/val_inj/esym; exact: lift_max.
apply/forallP/forallP => H q.
  by have := H (lift ord_max q); rewrite !lift_perm_lift ltn_lift.
case: (unliftP ord_max q) => [j ->|->]; first by rewrite !lift_perm_lift ltn_lift; exact: H.
by rewrite lift_max ltnNge ltnW.
Qed.

(* There is one best, if no two rewards are equal. *)
Lemma exists_best r : injective r -> exists i, forall j, best r j = (j == i).
Proof.
move=> inj; have [i le] := least (fun j => - r j) ord0; exists i => j.
apply/forallP/eqP => [bj|-> k].
  case: (unliftP j i) => [k E|//]; have := bj k; rewrite -E.
  by case: Rlt_dec => // lt _; have := le j; lra.
case: Rlt_dec => // nlt; have ge := le (lift i k).
have : r (lift i k) = r i by lra.
by move/inj/eqP; rewrite eq_sym (negbTE (neq_lift i k)).
Qed.

Lemma inj_lift r i : injective r -> injective (fun j => r (lift i j)).
Proof. by move=> inj j k /inj /lift_inj. Qed.

End Last.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim records, part generating-function; z(z+1)…(z+N−1) / N!, for all rewards
   without ties. *)
Theorem records_generating_function : forall (N : nat) (r : 'I_N -> R),
  injective r ->
  forall z, mean_over_orders (fun σ => z ^ records (fun i => r (σ i)))
            = ∏_(i < N) (z + INR i) / INR N`!.
Proof.
move=> N r inj z; rewrite /mean_over_orders; congr (_ / _).
elim: N r inj => [|n IH] r inj.
  rewrite (big_pred1 1%g) => [|σ]; first by rewrite /records !big_ord0.
  by apply/esym/eqP/permP; case.
have [b bE] := exists_best inj.
rewrite (sum_choose ord_max) [RHS]big_ord_recr [LHS](eq_bigr (fun i => 
    (∏_(j < n) (z + INR j)) * (if i == b then z else 1))).
  have rest : ∑_(i < n) (if lift b i == b then z else 1) = INR n.
    rewrite -[RHS]Rmult_1_r -sum_const_ord; apply: eq_bigr => i _.
    by rewrite eq_sym (negbTE (neq_lift b i)).
  by rewrite sum_scal (sum_at b) eqxx rest.
move=> i _; rewrite -(IH _ (inj_lift (i := i) inj)) -sum_scalr; apply: eq_bigr => σ _.
rewrite records_last bE addnC; case: (i == b); rewrite ?add1n ?add0n /=; ring.
Qed.

(* Claim records, part exhaustive; N! times the probability of k records is a Stirling number of
   the first kind. *)
Theorem records_law : forall (N k : nat) (r : 'I_N -> R),
  injective r ->
  #|[pred σ : {perm 'I_N} | records (fun i => r (σ i)) == k]| = stirling N k.
Proof.
move=> N k r inj; apply: INR_eq; rewrite -[LHS]Rmult_1_r -sum_const_card.
elim: N k r inj => [|n IH] k r inj.
  rewrite big_mkcond (big_pred1 1%g) => [|σ]; last by apply/esym/eqP/permP; case.
  by rewrite /= /records big_ord0; case: k.
have [b bE] := exists_best inj.
rewrite (sum_choose ord_max) (sum_at b).
have others i : ∑_(σ : {perm 'I_n} | records (fun p => r (lift_perm ord_max (lift b i) σ p)) == k) 1
    = INR (stirling n k).
  rewrite -(IH _ _ (inj_lift (i := lift b i) inj)); apply: eq_bigl => σ.
  by rewrite /= records_last bE (eq_sym _ b) (negbTE (neq_lift b i)) addn0.
rewrite (eq_bigr _ (fun i _ => others i)) sum_const_ord.
case: k others => [|k] others /=.
  rewrite big_pred0 => [|σ]; last by rewrite /= records_last bE eqxx addn1.
  by rewrite mult_INR Rplus_0_l.
rewrite plus_INR mult_INR; congr (_ + _); rewrite -(IH _ _ (inj_lift (i := b) inj)).
by apply: eq_bigl => σ; rewrite /= records_last bE eqxx addn1.
Qed.

(* Claim records, part induction; the newcomer i, one of the N = n + 1, comes last, after any order
   σ of the others: a record for one i of the N, whatever σ is. These are all orders of the N. *)
Theorem records_newcomer : forall (n : nat) (r : 'I_n.+1 -> R),
  injective r ->
  bijective (fun p : 'I_n.+1 * {perm 'I_n} => lift_perm ord_max p.1 p.2)
  /\ exists b, forall i σ,
    let order := lift_perm ord_max i σ in
    order ord_max = i
    /\ record (fun p => r (order p)) ord_max = (i == b)
    /\ records (fun p => r (order p)) = (records (fun p => r (lift i (σ p))) + (i == b))%N.
Proof.
move=> n r inj; split; first exact: bij_choose.
have [b bE] := exists_best inj; exists b => i σ order; split; first exact: lift_perm_id.
by split; rewrite ?last_record ?records_last bE.
Qed.

(* Claim records, part mean; the mean number of records is H_N. *)
Theorem records_mean : forall (N : nat) (r : 'I_N -> R),
  injective r ->
  mean_over_orders (fun σ => INR (records (fun i => r (σ i)))) = ∑_(k < N) (1 / INR k.+1).
Proof.
move=> N r inj; rewrite /mean_over_orders.
elim: N r inj => [|n IH] r inj.
  rewrite big_ord0 (big_pred1 1%g) => [|σ]; first by rewrite /records big_ord0 /=; lra.
  by apply/esym/eqP/permP; case.
have [b bE] := exists_best inj.
have f0 : 0 < INR n`! by apply: INR_gt0; exact: fact_gt0.
have n0 : 0 < INR n.+1 by exact: INR_gt0.
set H := ∑_(k < n) (1 / INR k.+1).
have E i : ∑_(σ : {perm 'I_n}) INR (records (fun p => r (lift_perm ord_max i σ p)))
    = INR n`! * (H + (if i == b then 1 else 0)).
  rewrite (eq_bigr (fun σ : {perm 'I_n} =>
    INR (records (fun p => r (lift i (σ p)))) + (if i == b then 1 else 0))).
    rewrite sum_add sum_const card_Sn Rmult_plus_distr_l; congr (_ + _).
    rewrite /H -(IH _ (inj_lift (i := i) inj)).
    have cancel a : a = INR n`! * (a / INR n`!) by field; lra.
    exact: cancel.
  by move=> σ _; rewrite records_last bE plus_INR; case: (i == b).
rewrite (sum_choose ord_max) (eq_bigr _ (fun i _ => E i)) sum_scal sum_add sum_delta sum_const_ord.
rewrite sum_last -/H factS mult_INR; set u := 1 / _.
have -> : u = 1 / INR n.+1 by [].
by field; lra.
Qed.

(* Claim records, part only-last; a record is the best of all iff no later one exists. *)
Theorem records_only_last : forall (N : nat) (r : 'I_N -> R) (i : 'I_N),
  injective r -> record r i ->
  (forall j, j <> i -> r j < r i) <-> (forall j : 'I_N, (i < j)%N -> ~ record r j).
Proof.
move=> N r i inj ri.
have recP (j : 'I_N) : reflect (forall k : 'I_N, (k < j)%N -> r k < r j) (record r j).
  apply: (iffP forallP) => H k; first by move=> kj; have := H k; rewrite kj; case: Rlt_dec.
  by apply/implyP => kj; case: Rlt_dec => // ne; case: ne; exact: H.
split=> [top j ij rec|later j ji].
  have rj := elimT (recP j) rec; have ne : j <> i by move=> E; move: ij; rewrite E ltnn.
  by have := rj i ij; have := top j ne; lra.
have [b le] := least (fun j => - r j) i.
have top k : k <> b -> r k < r b.
  by move=> kb; have := le k; case: (Req_dec (r k) (r b)) => [/inj //|ne]; lra.
have rb : record r b by apply/recP => k kb; apply: top => E; move: kb; rewrite E ltnn.
have bi : b = i.
  case: (ltngtP i b) => [ib|bi|E]; [by case: (later b ib) | | exact/val_inj/esym].
  by have := elimT (recP i) ri b bi; have := le i; lra.
by rewrite -bi; apply: top; rewrite bi.
Qed.
