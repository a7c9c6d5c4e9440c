(* Chapter 12: the rounds of the block with a start token, at one position: what each costs, and the
   record that it leaves. Rounds and places count from 0. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer BlockErrors Turns Theorem33.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The two heads at the temperatures of the theorem: margins g and h; rewards in
   [low, low + spread], reduced scores in [low_Z, low_Z + spread_Z]. *)
Section Block.
Variables (dx dy N : nat) (W : mat dy dx) (η g Δ h low spread low_Z spread_Z : R).

Definition stop_winner : head (ca_stream dx dy N) :=
  let γ := mask_γ g Δ in let c := mask_c g Δ spread in
  ca_winner dx dy N η γ c (stop_logit (γ * low) (γ * (low + spread)) c).

Definition stop_field : head (ca_stream dx dy N) :=
  let C := spread_Z + 2 * h in ca_field N W η C (stop_logit low_Z (low_Z + spread_Z) C).

Definition stop_block : block (ca_stream dx dy N) := Block [:: stop_winner; stop_field] None.
End Block.

(* The class: a unit query, rewards Δ apart in [low, low + spread], reduced scores in [low_Z,
   low_Z + spread_Z], responses no further than D from one another and from zero. *)
Record in_online_class {dx dy N} (W : mat dy dx) (Δ low spread low_Z spread_Z D : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) : Prop := InOnlineClass {
  online_query : ‖x‖ = 1;
  online_gaps : spaced Δ r;
  online_rewards : forall j, low <= r j <= low + spread;
  online_scores : forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z;
  online_distances : forall i j, ‖y i - y j‖ <= D;
  online_lengths : forall j, ‖y j‖ <= D }.

(* Margins and sizes fit: (5/2)(N−1) max(c, c′) e^{−g} ≤ 1. *)
Definition margins_fit (N : nat) (g Δ h spread spread_Z : R) : Prop :=
  5 / 2 * (INR N - 1) * Rmax (mask_c g Δ spread) (spread_Z + 2 * h) * exp (- g) <= 1.

Lemma margins_small N g Δ h spread spread_Z :
  let c := mask_c g Δ spread in let C := spread_Z + 2 * h in
  margins_fit N g Δ h spread spread_Z -> 0 <= c -> 0 <= C ->
  forall K, (K < N)%N -> c * (INR K * miss g) <= 1 /\ C * (INR K * miss g) <= 1.
Proof.
move=> c C fit c0 C0 K KN.
have KN' : INR K <= INR N - 1 by have := INR_le KN; rewrite INR_S; lra.
have e0 := exp_pos (- g); have K0 := INR_ge0 K; move: fit; rewrite /margins_fit /miss.
set e := exp _ in e0 *; set X := Rmax _ _ => le.
have both a : 0 <= a -> a <= X -> a * (INR K * (5 / 2 * e)) <= 1.
  move=> a0 aX; apply: Rle_trans le.
  have -> : a * (INR K * (5 / 2 * e)) = INR K * a * (5 / 2 * e) by ring.
  have -> : 5 / 2 * (INR N - 1) * X * e = (INR N - 1) * X * (5 / 2 * e) by ring.
  by apply: Rmult_le_compat_r; [lra | apply: Rmult_le_compat].
by split; apply: both => //; [exact: Rmax_l | exact: Rmax_r].
Qed.

Lemma comb_started_one_hot N (A : 'I_N.+1 -> R) l :
  comb A (with_start vzero one_hot) l = A (lift ord0 l).
Proof.
rewrite /comb (sum_lift ord0) /= with_start0 /vzero Rmult_0_r Rplus_0_l.
rewrite -[RHS](comb_one_hot (fun j => A (lift ord0 j))) /comb.
by apply: eq_bigr => j _; rewrite with_startS.
Qed.

(* From the last place on, the terms are complete. *)
Lemma first_terms_all dx dy n (W : mat dy dx) η x (y : 'I_n -> vec 'I_dy) τ K : (n - 1 <= K)%N ->
  first_terms η W x y τ K = first_terms η W x y τ (n - 1).
Proof.
move=> nK; apply: vec_eq => a; rewrite /first_terms /vsum big_mkcond [RHS]big_mkcond.
apply: eq_bigr => k _; case: (ltnP k (n - 1)) => kn; first by rewrite (leq_trans kn nK).
case: ifP => // _; rewrite (tail_mean_last W x y τ (k := k)); first by rewrite /vscal /vsub; ring.
apply/eqP; rewrite eqn_leq ltn_ord /=; move: kn.
by rewrite leq_subLR add1n.
Qed.

(* ── The rounds at one position ─────────────────────────────────────────────────────────────── *)

Section Position.
Variables (dx dy N : nat) (W : mat dy dx) (η g Δ h low spread low_Z spread_Z D : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N).
Variable τ : {perm 'I_i.+1}.
Notation tN := (ltn_ord i).
Notation v := (prefix tN y).
Let γ := mask_γ g Δ.
Let c := mask_c g Δ spread.
Let C := spread_Z + 2 * h.
Let σ := stop_logit (γ * low) (γ * (low + spread)) c.
Let σ_Z := stop_logit low_Z (low_Z + spread_Z) C.
Hypotheses (η0 : 0 <= η) (g0 : 0 < g) (Δ0 : 0 < Δ) (h1 : 1 <= h).
Hypothesis fit : margins_fit N g Δ h spread spread_Z.
Hypothesis cls : in_online_class W Δ low spread low_Z spread_Z D x y r.
Hypothesis ranked : ranks (prefix tN r) τ.

Let m K := ca_record γ c σ causal (with_start 0 r) (with_start 1 (fun _ => 0))
  (with_start vzero one_hot) K (lift ord0 i).
Let u K := ca_sum W η γ c C σ σ_Z causal (with_start vzero (fun _ => x)) (with_start vzero y)
  (with_start 0 (fun j => ‖y j‖²)) (with_start 0 r) (with_start 1 (fun _ => 0))
  (with_start vzero one_hot) K (lift ord0 i).

(* The logits of the prefix, and the weights with the start token in front. *)
Let z K (j : 'I_i.+1) := γ * prefix tN r j - c * prefix tN (m K) j.
Let ζ K (j : 'I_i.+1) := reduced W x (v j) - C * prefix tN (m K) j.
Let A K := softmax (with_start σ (z K)).
Let F K := softmax (with_start σ_Z (ζ K)).
Let V K := comb (A K) (with_start vzero v).
Let M K := comb (F K) (with_start vzero v).

Lemma stop_D0 : 0 <= D.
Proof. by apply: Rle_trans (online_lengths cls i); exact: vnorm_ge0. Qed.

Lemma stop_C0 : 0 <= C.
Proof. by have := online_scores cls i; rewrite /C; lra. Qed.

Lemma stop_small K : (K < N)%N -> c * (INR K * miss g) <= 1 /\ C * (INR K * miss g) <= 1.
Proof.
exact: (margins_small fit (mask_c0 g0 Δ0 (online_rewards cls) i) stop_C0).
Qed.

Lemma stop_record K l : m K.+1 l
  = m K l + softmax_on (causal (lift ord0 i)) (with_start σ (fun j => γ * r j - c * m K j))
      (lift ord0 l).
Proof. by rewrite /m /= /vadd comb_started_one_hot started_winner. Qed.

Lemma stop_record_prefix K l : prefix tN (m K.+1) l = prefix tN (m K) l + A K (lift ord0 l).
Proof. by rewrite {1}/prefix stop_record started_at. Qed.

Lemma stop_record0 K l : 0 <= m K l.
Proof.
elim: K => [|K IH]; first by rewrite /m /= /vzero; lra.
rewrite stop_record; set a := softmax_on _ _ _.
have a0 : 0 <= a by exact: softmax_on_ge0.
by move: IH; lra.
Qed.

Lemma stop_sum K : u K.+1 = (u K + (2 * η) *: (V K - M K))%V.
Proof. by rewrite /u /= -/(m K) started_winner started_field !started_comb. Qed.

Section Round.
Variable K : nat.
Hypothesis KN : (K < N)%N.
Hypothesis near : forall j, Rabs (prefix tN (m K) j - flags τ K j) <= INR K * miss g.

Lemma stop_live_miss (w : 'I_i.+1) : w = K :> nat -> 1 - A K (lift ord0 (τ w)) <= miss g.
Proof.
move=> wK; rewrite /A softmax_miss started_crowd.
apply: Rle_trans (miss_crowd g0); apply: share_le.
  by have := crowd_ge0 (z K) (τ w); have := exp_pos (σ - z K (τ w)); lra.
exact: (@live_crowd _ g Δ spread low (INR K * miss g) (prefix tN r) (prefix tN (m K)) τ K g0 Δ0
  (spaced_prefix tN (online_gaps cls)) ranked (fun j => online_rewards cls _)
  (fun j => stop_record0 K _) near (proj1 (stop_small KN)) w wK).
Qed.

Lemma stop_surplus_miss : (i < K)%N -> share (∑_j exp (z K j - σ)) <= miss g.
Proof.
move=> iK; apply: Rle_trans (miss_surplus g0); apply: share_le.
  by apply: sum_ge0 => j _; left; exact: exp_pos.
exact: (@surplus_crowd _ g Δ spread low (INR K * miss g) (prefix tN r) (prefix tN (m K)) τ K g0 Δ0
  (spaced_prefix tN (online_gaps cls)) ranked (fun j => online_rewards cls _)
  near (proj1 (stop_small KN)) iK).
Qed.

(* One more round, and the record is as near as the theorem says. *)
Lemma stop_near_next j : Rabs (prefix tN (m K.+1) j - flags τ K.+1 j) <= INR K.+1 * miss g.
Proof.
rewrite stop_record_prefix INR_S Rmult_plus_distr_r Rmult_1_l.
have A0 o : 0 <= A K o by left; exact: softmax_gt0.
case: (ltnP K i.+1) => Ki; last first.
  apply: (@record_surplus _ K τ _ (fun l => A K (lift ord0 l)) _ _ near _ Ki) => l; first exact: A0.
  apply: Rle_trans (stop_surplus_miss Ki).
  rewrite -start_crowd -softmax_miss -softmax_rest.
  by apply: (@sum_ge_term _ (fun o => o != ord0) (A K) (lift ord0 l)) => // o _; exact: A0.
pose w := Ordinal Ki; have le := @stop_live_miss w erefl.
apply: (record_live (A := fun l => A K (lift ord0 l)) near _ (w := w)) => // [|l lw].
  exact: softmax_le1.
apply: Rle_trans le; rewrite -softmax_rest.
apply: (@sum_ge_term _ (fun o => o != lift ord0 (τ w)) (A K) (lift ord0 l)) => [|o _].
  by rewrite (inj_eq lift_inj).
exact: A0.
Qed.

Lemma stop_live_winner (w : 'I_i.+1) : w = K :> nat -> ‖V K - v (τ w)‖ <= D * miss g.
Proof.
move=> wK; apply: (Rle_trans _ (D * (1 - A K (lift ord0 (τ w))))); last first.
  by apply: Rmult_le_compat_l; [exact: stop_D0 | exact: stop_live_miss].
have E : v (τ w) = with_start vzero v (lift ord0 (τ w)) by rewrite with_startS.
rewrite E; apply: mean_to_point => j; apply: started_dist => // [a b|a].
  exact: online_distances cls _ _.
exact: online_lengths cls _.
Qed.

Lemma stop_live_field (w : 'I_i.+1) : w = K :> nat -> (K.+1 < N)%N ->
  ‖M K - tail_mean W x v τ w‖
  <= D * (C * (INR K * miss g) / 4 + (INR N - 1) * exp (1 - h)).
Proof.
move=> wK K1N; have e0 := exp_pos (1 - h).
have near' j : Rabs (prefix tN (m K) j - flags τ w j) <= INR K * miss g by rewrite wK.
have := @field_live dx dy i.+1 W x v (prefix tN (m K)) τ h low_Z spread_Z D (INR K * miss g) h1
  (fun j => online_scores cls _) (fun j => stop_record0 K _) stop_C0 (proj2 (stop_small KN))
  (fun a b => online_distances cls _ _) (fun a => online_lengths cls _) w near'.
rewrite -/C => le; apply: (Rle_trans _ _ _ le); rewrite wK.
have KN' : INR K.+1 <= INR N - 1 by have := INR_le K1N; rewrite (INR_S K.+1); lra.
have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ e0) KN' => le'.
by have := Rmult_le_compat_l _ _ _ stop_D0 le'; lra.
Qed.

Lemma stop_surplus_winner : (i < K)%N -> ‖V K‖ <= D * miss g.
Proof.
move=> iK; apply: (Rle_trans _ (D * share (∑_j exp (z K j - σ)))).
  by apply: start_mean; [move=> j; exact: online_lengths cls _ | exact: stop_D0].
by apply: Rmult_le_compat_l; [exact: stop_D0 | exact: stop_surplus_miss].
Qed.

Lemma stop_surplus_field : (i < K)%N -> ‖M K‖ <= D * ((INR N - 1) * exp (1 - h)).
Proof.
move=> iK; have e0 := exp_pos (1 - h).
have le := @field_surplus dx dy i.+1 W x v (prefix tN (m K)) τ h low_Z spread_Z D (INR K * miss g)
  h1 (fun j => online_scores cls _) stop_C0 (proj2 (stop_small KN))
  (fun a => online_lengths cls _) K iK stop_D0 near.
apply: (Rle_trans _ _ _ le); apply: Rmult_le_compat_l; first exact: stop_D0.
apply: Rmult_le_compat_r; first by lra.
by have := INR_le (leq_ltn_trans iK KN); rewrite INR_S; lra.
Qed.
End Round.

Lemma stop_near K : (K < N)%N ->
  forall j, Rabs (prefix tN (m K) j - flags τ K j) <= INR K * miss g.
Proof.
elim: K => [|K IH] KN j; last exact: stop_near_next (ltnW KN) (IH (ltnW KN)) j.
by rewrite /prefix /m /= /vzero /flags ltn0 Rminus_0_r Rabs_R0; lra.
Qed.

(* What a round costs, live or surplus. *)
Lemma stop_round K : (K.+1 < N)%N ->
  ‖u K.+1 - first_terms η W x v τ K.+1‖ <= ‖u K - first_terms η W x v τ K‖
    + 2 * η * D * (miss g + C * (INR K * miss g) / 4 + (INR N - 1) * exp (1 - h)).
Proof.
move=> K1N; have KN := ltnW K1N; have near := stop_near KN.
have C0 := stop_C0; have D0 := stop_D0; have K0 := INR_ge0 K.
have e0 : 0 <= miss g by rewrite /miss; have := exp_pos (- g); lra.
have t0 : 0 <= C * (INR K * miss g) / 4.
  by have := Rmult_le_pos _ _ C0 (Rmult_le_pos _ _ K0 e0); lra.
have split (a b s t : vec 'I_dy) : ((a + 2 * η *: b) - (s + 2 * η *: t)
    = (a - s) + 2 * η *: (b - t))%V by apply: vec_eq => e; rewrite /vadd /vsub /vscal; ring.
have total (a b : vec 'I_dy) p q : ‖a‖ <= D * p -> ‖b‖ <= D * q ->
    ‖2 * η *: (a - b)‖ <= 2 * η * D * (p + q).
  move=> ap bq; rewrite vnorm_scal Rabs_pos_eq; last by lra.
  have -> : 2 * η * D * (p + q) = 2 * η * (D * p + D * q) by ring.
  apply: Rmult_le_compat_l; first by lra.
  have -> : (a - b = a + (-1) *: b)%V by apply: vec_eq => e; rewrite /vsub /vadd /vscal; ring.
  apply: Rle_trans (vnorm_triangle _ _) _; rewrite vnorm_scal Rabs_Ropp Rabs_R1; lra.
rewrite stop_sum Rplus_assoc; case: (ltnP K i.+1) => Ki.
  rewrite /first_terms (vsum_succ _ Ki) split; set w := Ordinal Ki.
  apply: Rle_trans (vnorm_triangle _ _) _; apply: Rplus_le_compat_l.
  have -> : (V K - M K - (v (τ w) - tail_mean W x v τ w)
    = (V K - v (τ w)) - (M K - tail_mean W x v τ w))%V.
    by apply: vec_eq => e; rewrite /vsub; ring.
  by apply: total; [exact: stop_live_winner | exact: stop_live_field].
have -> : first_terms η W x v τ K.+1 = first_terms η W x v τ K.
  rewrite !first_terms_all //; apply: leq_trans (leq_subr 1 i.+1) _ => //.
  exact: ltnW.
have -> : (u K + 2 * η *: (V K - M K) - first_terms η W x v τ K
  = (u K - first_terms η W x v τ K) + 2 * η *: (V K - M K))%V.
  by apply: vec_eq => e; rewrite /vadd /vsub /vscal; ring.
apply: Rle_trans (vnorm_triangle _ _) _; apply: Rplus_le_compat_l; apply: total.
  exact: stop_surplus_winner.
apply: Rle_trans (stop_surplus_field KN near Ki) _; apply: Rmult_le_compat_l => //; lra.
Qed.

Lemma stop_total K : (K < N)%N -> ‖u K - first_terms η W x v τ K‖
  <= 2 * η * D * (INR K * (miss g + (INR N - 1) * exp (1 - h))
                  + C * miss g / 8 * (INR K * (INR K - 1))).
Proof.
elim: K => [_|K IH K1N].
  rewrite /first_terms (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 /=; first by lra.
  by apply: vec_eq => a; rewrite /vsub /vscal /vsum big_pred0 // /u /= /vzero; ring.
apply: Rle_trans (stop_round K1N) _; have := IH (ltnW K1N); rewrite INR_S.
move: (‖_‖) (INR K) (INR N) (miss g) (exp _) (2 * η * D) => a k n e t d le.
by lra.
Qed.
End Position.
