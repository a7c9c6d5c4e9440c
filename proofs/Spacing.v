(* Rewards that are at least a gap apart: their ranking, and the geometric sums it leads to. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* All gaps between two rewards are at least Δ. *)
Definition spaced {N : nat} (Δ : R) (r : 'I_N -> R) : Prop :=
  forall i j : 'I_N, i != j -> Δ <= Rabs (r i - r j).

Section Ranking.
Variables (N : nat) (r : 'I_N -> R).

Let above (i j : 'I_N) : bool := if Rle_dec (r j) (r i) then true else false.

Lemma aboveP i j : reflect (r j <= r i) (above i j).
Proof. by rewrite /above; case: Rle_dec => H; constructor. Qed.

(* Distinct rewards have a ranking. *)
Lemma ranking_exists : (forall i j, i != j -> r i <> r j) -> exists τ, ranks r τ.
Proof.
move=> dist; pose s := sort above (enum 'I_N).
have size_s : size s = N by rewrite size_sort size_enum_ord.
have uniq_s : uniq s by rewrite sort_uniq enum_uniq.
have trans : transitive above.
  by move=> j i k /aboveP ij /aboveP jk; apply/aboveP; lra.
have total : total above.
  by move=> i j; case: (Rle_dec (r j) (r i)) => [/aboveP -> //|H];
     apply/orP; right; apply/aboveP; lra.
have sorted_s : sorted above s by exact: sort_sorted.
pose f (k : 'I_N) := nth k s k.
have inj_f : injective f.
  move=> k l; rewrite /f (set_nth_default l k) ?size_s // => /eqP.
  by rewrite nth_uniq ?size_s // => /eqP /val_inj.
exists (perm inj_f) => k l kl; rewrite !permE /f.
have ab : above (nth k s k) (nth k s l).
  by apply: (sorted_ltn_nth trans k sorted_s) => //; rewrite inE size_s.
rewrite (set_nth_default k l) ?size_s //; move/aboveP: ab => ab.
have ne : nth k s l != nth k s k by rewrite nth_uniq ?size_s // gtn_eqF.
by have := dist _ _ ne; lra.
Qed.

Variables (Δ : R) (τ : {perm 'I_N}).
Hypotheses (ranked : ranks r τ) (gaps : spaced Δ r) (Δ0 : 0 <= Δ).

(* A place better is a gap better. *)
Lemma ranks_gap (k l : 'I_N) : (k <= l)%N -> r (τ l) + INR (l - k) * Δ <= r (τ k).
Proof.
move=> kl; have [d dE] : exists d, d = (l - k)%N by exists (l - k)%N.
rewrite -dE; elim: d l kl dE => [|d IH] l kl dE.
  have -> : l = k by apply/val_inj/eqP; rewrite eqn_leq kl andbT -subn_eq0 -dE.
  by rewrite /=; lra.
have dk : (k + d < N)%N by apply: leq_ltn_trans (ltn_ord l); rewrite -(subnKC kl) -dE leq_add2l.
have le : r (τ (Ordinal dk)) + INR d * Δ <= r (τ k) by apply: IH; rewrite /= ?leq_addr ?addKn.
have lt : (Ordinal dk < l)%N by rewrite /= -(subnKC kl) -dE addnS ltnS.
have ne : τ l != τ (Ordinal dk) by rewrite (inj_eq perm_inj) eq_sym neq_ltn lt.
have rl := ranked lt; have := gaps ne; rewrite INR_S Rabs_left; lra.
Qed.

(* The rewards in an interval: their distances from its ends. *)
Lemma ranks_high high (l : 'I_N) : (forall i, r i <= high) -> r (τ l) <= high - INR l * Δ.
Proof.
move=> le; have N0 : (0 < N)%N by apply: leq_ltn_trans (ltn_ord l).
by have := @ranks_gap (Ordinal N0) l (leq0n _); rewrite /= subn0; have := le (τ (Ordinal N0)); lra.
Qed.

Lemma ranks_low low (k : 'I_N) : (forall i, low <= r i) ->
  low + INR (N - k.+1) * Δ <= r (τ k).
Proof.
move=> le; have N1 : (N.-1 < N)%N by rewrite ltn_predL; apply: leq_ltn_trans (ltn_ord k).
have kN : (k <= N.-1)%N by rewrite -ltnS prednK //; apply: leq_ltn_trans (ltn_ord k).
rewrite (_ : (N - k.+1 = N.-1 - k)%N); last by rewrite -subn1 -subnDA add1n.
by have := @ranks_gap k (Ordinal N1) kN; rewrite /=; have := le (τ (Ordinal N1)); lra.
Qed.

End Ranking.

Lemma spaced_distinct N Δ (r : 'I_N -> R) : 0 < Δ -> spaced Δ r -> forall i j, i != j -> r i <> r j.
Proof.
by move=> Δ0 gaps i j ij e; have := gaps i j ij; rewrite e Rminus_eq_0 Rabs_R0; lra.
Qed.

(* ── Geometric sums over the places after and before one ────────────────────────────────────── *)

Lemma Rmult_div_back c a b : b <> 0 -> c * a = c * (b * a / b).
Proof. by move=> b0; field. Qed.

Lemma pow_unit x n : 0 < x -> x <= 1 -> 0 < x ^ n <= 1.
Proof.
move=> x0 x1; elim: n => [|n [p0 p1]]; first by rewrite /=; lra.
by rewrite -tech_pow_Rmult; nra.
Qed.

Lemma exp_INR n a : exp (- (INR n * a)) = exp (- a) ^ n.
Proof.
elim: n => [|n IH]; first by rewrite /= Rmult_0_l Ropp_0 exp_0.
by rewrite INR_S -tech_pow_Rmult -IH -exp_plus; congr exp; ring.
Qed.

Lemma sum_after N (k : 'I_N) ξ : (1 - ξ) * ∑_(l < N | (k < l)%N) ξ ^ (l - k) = ξ - ξ ^ (N - k).
Proof.
case: k => k /= kN; elim: N kN => // N IH; rewrite ltnS big_mkcond sum_last -big_mkcond /=.
rewrite leq_eqVlt => /orP [/eqP ->|kN].
  rewrite ltnn big_pred0 => [|l]; last by apply/negbTE; rewrite -leqNgt ltnW.
  by rewrite subSnn /=; ring.
by rewrite kN Rmult_plus_distr_l IH // subSn ?(ltnW kN) //=; ring.
Qed.

Lemma sum_before N k ξ : (k <= N)%N -> (1 - ξ) * ∑_(l < N | (l < k)%N) ξ ^ l = 1 - ξ ^ k.
Proof.
by move=> kN; rewrite -(big_ord_widen N (fun l => ξ ^ l)) // sum_geometric.
Qed.

(* ── The crowd beside a place ───────────────────────────────────────────────────────────────── *)

Section Crowd.
Variables (N : nat) (z : 'I_N -> R) (τ : {perm 'I_N}).

(* Those in better places and those in worse. *)
Lemma crowd_places (k : 'I_N) :
  crowd z (τ k) = ∑_(l < N | (l < k)%N) exp (z (τ l) - z (τ k))
                + ∑_(l < N | (k < l)%N) exp (z (τ l) - z (τ k)).
Proof.
rewrite /crowd (reindex_inj (@perm_inj _ τ)) /= (bigID (fun l : 'I_N => (l < k)%N)) /=.
congr (_ + _); apply: eq_bigl => l; rewrite (inj_eq perm_inj) -val_eqE /=.
  by rewrite andbC; case: ltngtP.
by rewrite -leqNgt; case: ltngtP.
Qed.

(* The ones after k, each a step ξ behind the next, and those before. *)
Lemma crowd_after (k : 'I_N) ξ : 0 < ξ < 1 ->
  (forall l : 'I_N, (k < l)%N -> exp (z (τ l) - z (τ k)) <= ξ ^ (l - k)) ->
  ∑_(l < N | (k < l)%N) exp (z (τ l) - z (τ k)) <= (ξ - ξ ^ (N - k)) / (1 - ξ).
Proof.
move=> [ξ0 ξ1] le; apply: (Rle_trans _ (∑_(l < N | (k < l)%N) ξ ^ (l - k))); first exact: sum_le.
by rewrite -sum_after; right; field; lra.
Qed.

Lemma crowd_before (k : 'I_N) c ξ : 0 < ξ < 1 ->
  (forall l : 'I_N, (l < k)%N -> exp (z (τ l) - z (τ k)) <= c * ξ ^ l) ->
  ∑_(l < N | (l < k)%N) exp (z (τ l) - z (τ k)) <= c * ((1 - ξ ^ k) / (1 - ξ)).
Proof.
move=> [ξ0 ξ1] le; rewrite -(sum_before ξ (ltnW (ltn_ord k))).
apply: (Rle_trans _ (∑_(l < N | (l < k)%N) (c * ξ ^ l))); first exact: sum_le.
by rewrite sum_scal; right; apply: Rmult_div_back; lra.
Qed.

End Crowd.

(* The sum of the moments: (1−ξ)² Σ_{d=1}^{m−1} (d − ¼) ξ^d in closed form. *)
Lemma moments_after N (k : 'I_N) ξ :
  (1 - ξ) ^ 2 * ∑_(l < N | (k < l)%N) ((INR (l - k) - / 4) * ξ ^ (l - k))
  = ξ - ξ * (1 - ξ) / 4 - ξ ^ (N - k) * ((INR (N - k) - / 4) * (1 - ξ) + ξ).
Proof.
case: k => k /= kN; elim: N kN => // N IH; rewrite ltnS big_mkcond sum_last -big_mkcond /=.
rewrite leq_eqVlt => /orP [/eqP ->|kN].
  rewrite ltnn big_pred0 => [|l]; last by apply/negbTE; rewrite -leqNgt ltnW.
  by rewrite subSnn /=; field.
rewrite kN Rmult_plus_distr_l IH // subSn ?(ltnW kN) // INR_S -tech_pow_Rmult.
by field.
Qed.

(* At most a quarter if ξ ≤ 1/5: this is where log 5 comes from. *)
Lemma moments_quarter N (k : 'I_N) ξ : 0 < ξ -> ξ <= / 5 ->
  ∑_(l < N | (k < l)%N) ((INR (l - k) - / 4) * ξ ^ (l - k)) <= / 4.
Proof.
move=> x0 x5; apply: (Rmult_le_reg_l ((1 - ξ) ^ 2)); first by apply: pow_lt; lra.
rewrite moments_after.
have [p0 p1] := @pow_unit ξ (N - k) x0 ltac:(lra).
have : 1 <= INR (N - k) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
move: (INR _) => m m1.
have : 0 <= ξ ^ (N - k) * ((m - / 4) * (1 - ξ) + ξ) by apply: Rmult_le_pos; [lra | nra].
by move: (ξ ^ _ * _) => t t0; rewrite /=; nra.
Qed.

Lemma ln5_ge : 4 / 3 <= ln 5.
Proof.
have e3 := exp_le_3; have e0 := exp_pos 1; have t0 := exp_pos (4 / 3).
have E : exp (4 / 3) * exp (4 / 3) * exp (4 / 3) = exp 1 * exp 1 * exp 1 * exp 1.
  by rewrite -!exp_plus; congr exp; field.
apply: Rnot_lt_le => /exp_increasing; rewrite exp_ln; last by lra.
move=> lt; have e2 : exp 1 * exp 1 <= 9 by nra.
have e4 : exp 1 * exp 1 * exp 1 * exp 1 <= 81 by nra.
by have : 125 < exp (4 / 3) * exp (4 / 3) * exp (4 / 3); nra.
Qed.
