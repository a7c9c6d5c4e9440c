(* Chapter 12: the block as printed, without a start token, N − 1 times at position i: it goes round
   and round the terms of the prefix. Rounds and places count from 0; c = γ₁γ₂, γ₂ = 2Δ + spread. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer Block BlockErrors Turns Theorem33.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField CausalRounds ShortPrefix.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The terms of the step, round and round: K of them. *)
Definition place {n} (k : nat) : 'I_n.+1 := Ordinal (ltn_pmod k (ltn0Sn n)).
Definition cyclic_terms {dx dy n} (η : R) (W : mat dy dx) x (y : 'I_n.+1 -> vec 'I_dy)
    (τ : {perm 'I_n.+1}) (K : nat) : vec 'I_dy :=
  fun e => ∑_(k < K) ((2 * η) *: (y (τ (place k)) - tail_mean W x y τ (place k)))%V e.

Section Position.
Variables (dx dy N : nat) (W : mat dy dx) (η g Δ h low spread low_Z spread_Z D : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N).
Variable τ : {perm 'I_i.+1}.
Notation tN := (ltn_ord i).
Notation v := (prefix tN y).
Let γ := mask_γ g Δ.
Let c := mask_c g Δ spread.
Let C := spread_Z + 2 * h.
Let e := miss g.
Hypotheses (η0 : 0 <= η) (g0 : 0 < g) (Δ0 : 0 < Δ) (h1 : 1 <= h).
Hypothesis fit : margins_fit N g Δ h spread spread_Z.
Hypotheses (apart : spaced Δ r) (rewards : forall j, low <= r j <= low + spread).
Hypothesis scores : forall j, low_Z <= reduced W x (y j) <= low_Z + spread_Z.
Hypothesis dist : forall i j, ‖y i - y j‖ <= D.
Hypothesis ranked : ranks (prefix tN r) τ.

Let m K := ca_record γ c 0 causal r (fun _ => 0) one_hot K i.
Let u K := ca_sum W η γ c C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot K i.

(* How often a response has been taken before round K. *)
Let count (K : nat) (j : 'I_i.+1) : R := INR (K %/ i.+1) + flags τ (K %% i.+1) j.

Lemma count_next K j :
  count K.+1 j = INR (K %/ i.+1) + flags τ (K %% i.+1).+1 j.
Proof.
have a1 : (K %% i.+1 < i.+1)%N by rewrite ltn_pmod.
have KE : K.+1 = (K %/ i.+1 * i.+1 + (K %% i.+1).+1)%N by rewrite addnS -divn_eq.
rewrite /count [in (K.+1 %/ _)%N]KE [in (K.+1 %% _)%N]KE divnMDl // modnMDl.
case: (ltnP (K %% i.+1).+1 i.+1) => an.
  by rewrite (divn_small an) (modn_small an) addn0.
have -> : (K %% i.+1).+1 = i.+1 by apply/eqP; rewrite eqn_leq a1.
rewrite divnn modnn addn1 INR_S /flags ltn0.
by rewrite (ltn_ord (τ^-1%g j)); ring.
Qed.

(* The record, without what all have in common. *)
Let rest K (j : 'I_i.+1) := prefix tN (m K) j - INR (K %/ i.+1) * (1 - e).

Lemma cyclic_winner K l : ca_winner_weights γ c 0 causal r (fun _ => 0) one_hot i (m K)
    (widen_ord tN l) = softmax (fun j => γ * prefix tN r j - c * rest K j) l.
Proof.
rewrite /ca_winner_weights seen_softmax.
rewrite -(softmax_shift (fun j => γ * prefix tN r j - c * rest K j)
  (- (c * (INR (K %/ i.+1) * (1 - e))))).
by apply: eq_softmax => j; rewrite /rest /prefix /= dot_one_hot; ring.
Qed.

Lemma cyclic_field K l : ca_field_weights W C 0 causal (fun _ => x) y (fun j => ‖y j‖²)
    (fun _ => 0) one_hot i (m K) (widen_ord tN l)
  = softmax (fun j => reduced W x (v j) - C * rest K j) l.
Proof.
rewrite /ca_field_weights seen_softmax.
rewrite -(softmax_shift (fun j => reduced W x (v j) - C * rest K j)
  (- (C * (INR (K %/ i.+1) * (1 - e))))).
by apply: eq_softmax => j; rewrite /rest /prefix /reduced /= dot_one_hot; ring.
Qed.

Let A K := softmax (fun j => γ * prefix tN r j - c * rest K j).
Let F K := softmax (fun j => reduced W x (v j) - C * rest K j).

Lemma cyclic_record K l : prefix tN (m K.+1) l = prefix tN (m K) l + A K l.
Proof. by rewrite /prefix {1}/m /= /vadd comb_one_hot cyclic_winner. Qed.

Lemma cyclic_sum K : u K.+1 = (u K + (2 * η) *: (comb (A K) v - comb (F K) v))%V.
Proof.
rewrite /u /= -/(m K).
have -> : comb (ca_winner_weights γ c 0 causal r (fun _ => 0) one_hot i (m K)) y = comb (A K) v.
  rewrite /ca_winner_weights seen_comb; apply: vec_eq => b; apply: eq_bigr => j _.
  by rewrite -seen_softmax -/(ca_winner_weights _ _ _ _ _ _ _ _ _ _) cyclic_winner.
have -> : comb (ca_field_weights W C 0 causal (fun _ => x) y (fun j => ‖y j‖²)
    (fun _ => 0) one_hot i (m K)) y = comb (F K) v => //.
rewrite /ca_field_weights seen_comb; apply: vec_eq => b; apply: eq_bigr => j _.
by rewrite -seen_softmax -/(ca_field_weights _ _ _ _ _ _ _ _ _ _ _ _) cyclic_field.
Qed.

Lemma cyclic_D0 : 0 <= D.
Proof. exact: Rle_trans (vnorm_ge0 _) (dist i i). Qed.

Lemma cyclic_C0 : 0 <= C.
Proof. by have := scores i; rewrite /C; lra. Qed.

Lemma cyclic_small K : (K < N)%N -> c * (INR K * e) <= 1 /\ C * (INR K * e) <= 1.
Proof. exact: (margins_small fit (mask_c0 g0 Δ0 rewards i) cyclic_C0). Qed.

Lemma cyclic_e : (1 < N)%N -> 0 <= e <= 1.
Proof.
move=> N1; have e0 : 0 <= e by rewrite /e /miss; have := exp_pos (- g); lra.
have := proj1 (cyclic_small N1); rewrite [INR 1]/= Rmult_1_l.
have c2 : 2 <= c.
  rewrite /c (mask_cE g spread Δ0); have := mask_γ0 g0 Δ0; have := rewards i => rng γp.
  by have := Rmult_le_pos (mask_γ g Δ) spread ltac:(lra) ltac:(lra); lra.
by move=> ce; split => //; have := Rmult_le_compat_r _ _ _ e0 c2; lra.
Qed.

Definition counted K := forall j, count K j * (1 - e) <= prefix tN (m K) j
  <= count K j + (INR K - count K j) * e.

Section Round.
Variable K : nat.
Hypotheses (KN : (K.+1 < N)%N) (inv : counted K).
Let w : 'I_i.+1 := place K.

Lemma rest_near j : 0 <= rest K j /\ Rabs (rest K j - flags τ w j) <= INR K * e.
Proof.
have [e0 e1] : 0 <= e <= 1 by apply: cyclic_e; apply: leq_ltn_trans KN.
have [lo hi] := inv j; have K0 := INR_ge0 K.
rewrite /rest; move: lo hi; rewrite /count -[(K %% i.+1)%N]/(nat_of_ord w).
set q := INR _; set p := prefix _ _ j; rewrite /flags; case: ifP => jw lo hi.
  have K1 : 1 <= INR K.
    rewrite -[1]/(INR 1); apply: INR_le; apply: leq_ltn_trans (leq0n _) _.
    exact: leq_trans jw (leq_mod K i.+1).
  have Ke := Rmult_le_compat_r _ _ _ e0 K1.
  by split; [lra | apply: Rabs_le; lra].
have Ke := Rmult_le_pos _ _ K0 e0.
by split; [lra | apply: Rabs_le; lra].
Qed.

Lemma cyclic_miss : 1 - A K (τ w) <= e.
Proof.
rewrite /A softmax_miss; apply: Rle_trans (miss_crowd g0); apply: share_le.
  exact: crowd_ge0.
have := @live_crowd _ g Δ spread low (INR K * miss g) (prefix tN r) (rest K) τ w g0 Δ0
  (spaced_prefix tN apart) ranked (fun j => rewards _)
  (fun j => proj1 (rest_near j)) (fun j => proj2 (rest_near j))
  (proj1 (cyclic_small (ltnW KN))) w erefl.
rewrite /= -/γ -/c; set t := exp (stop_logit _ _ _ - _).
have t0 : 0 < t by exact: exp_pos.
by lra.
Qed.

Lemma cyclic_next : counted K.+1.
Proof.
move=> j; rewrite cyclic_record count_next INR_S; have [lo hi] := inv j.
have A0 l : 0 <= A K l by left; exact: softmax_gt0.
have a0 := A0 j; have a1 := softmax_le1 (fun j => γ * prefix tN r j - c * rest K j) j.
have missed := cyclic_miss; rewrite -/(A K j) in a1.
have [jw|jw] := altP (j =P τ w).
  have f0 : flags τ (K %% i.+1) j = 0 by rewrite jw flags_place ltnn.
  have f1 : flags τ (K %% i.+1).+1 j = 1 by rewrite jw flags_place /= ltnS leqnn.
  by rewrite -jw in missed; move: lo hi; rewrite f1 /count f0; lra.
have fE : flags τ (K %% i.+1).+1 j = flags τ (K %% i.+1) j.
  rewrite /flags ltnS leq_eqVlt (_ : (_ == _) = false) //; apply/negbTE.
  by apply: contra jw => /eqP E; rewrite -(permKV τ j); apply/eqP; congr (τ _); exact/val_inj.
have ae : A K j <= e.
  apply: Rle_trans missed; rewrite -softmax_rest.
  apply: (@sum_ge_term _ (fun l => l != τ w) (A K) j) => // l _; exact: A0.
by rewrite fE -/(count K j); lra.
Qed.

Lemma cyclic_winner_error : ‖comb (A K) v - v (τ w)‖ <= D * e.
Proof.
apply: (Rle_trans _ (D * (1 - A K (τ w)))).
  by apply: mean_to_point => j; exact: dist _ _.
by apply: Rmult_le_compat_l; [exact: cyclic_D0 | exact: cyclic_miss].
Qed.

Lemma cyclic_field_error : ‖comb (F K) v - tail_mean W x v τ w‖
  <= D * (C * (INR K * e) / 4 + (INR N - 1) * exp (1 - h)).
Proof.
have D0 := cyclic_D0; have C0 := cyclic_C0; have e0 := exp_pos (1 - h).
have small : C * (INR K * e) <= 1 := proj2 (cyclic_small (ltnW KN)).
pose live (j : 'I_i.+1) := (w <= (τ^-1%g j : 'I_i.+1))%N.
pose ζ j := reduced W x (v j) - C * rest K j.
have range j : low_Z <= reduced W x (v j) <= low_Z + spread_Z by exact: scores _.
have lrec j : live j -> 0 <= C * rest K j <= C * (INR K * e).
  move=> lj; have [m0 near] := rest_near j; move: near.
  rewrite /flags ltnNge (lj : (w <= (τ^-1%g j : 'I_i.+1))%N) /= Rminus_0_r Rabs_pos_eq // => le.
  by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l].
have lw : live (τ w) by rewrite /live permK.
set a := comb _ _; set b := comb (softmax_on live ζ) v; set d := tail_mean _ _ _ _ _.
have -> : (a - d = (a - b) + (b - d))%V by apply: vec_eq => o; rewrite /vadd /vsub; ring.
have le2 : ‖b - d‖ <= D * (C * (INR K * e) / 4).
  rewrite /d -live_mean; apply: (@tilt_mean _ live _ _ (τ w)) => //.
  by move=> j l; exact: dist _ _.
have le1 : ‖a - b‖ <= D * share (INR w * exp (1 - h)).
  apply: (mean_to_part (w := τ w)) => // [j l|]; first exact: dist _ _.
  apply: (Rle_trans _ (INR w * exp ((1 - h) + (low_Z - 1)))).
    rewrite -(sum_out τ w); apply: sum_le => j; rewrite /live -ltnNge => jw; apply: exp_mono.
    have [le _] := @field_taken dx dy i.+1 W x v (rest K) τ h low_Z spread_Z (INR K * e) h1 range
      C0 small w j (fun l => proj2 (rest_near l)) jw.
    exact: le.
  rewrite exp_plus -Rmult_assoc; apply: Rmult_le_compat_l.
    by apply: Rmult_le_pos; [exact: INR_ge0 | lra].
  apply: (Rle_trans _ (exp (ζ (τ w)))).
    by apply: exp_mono; have := lrec _ lw; have := range (τ w); rewrite /ζ; lra.
  by apply: (@sum_ge_term _ live (fun j => exp (ζ j))) => // j _; left; exact: exp_pos.
apply: Rle_trans (vnorm_triangle _ _) _.
have wN : INR w <= INR N - 1.
  have : INR w <= INR K by apply: INR_le; exact: leq_mod.
  by have := INR_le KN; rewrite !INR_S; lra.
have w0 := INR_ge0 w; have we := Rmult_le_pos _ _ w0 (Rlt_le _ _ e0).
have := share_le_self we; have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ e0) wN => s1 s2.
have := Rmult_le_compat_l _ _ _ D0 (Rle_trans _ _ _ s2 s1); lra.
Qed.
End Round.

Lemma cyclic_counted K : (K < N)%N -> counted K.
Proof.
elim: K => [|K IH] KN; last exact: cyclic_next KN (IH (ltnW KN)).
move=> j; rewrite /count div0n mod0n /prefix /m /= /vzero /flags ltn0; lra.
Qed.

Lemma cyclic_total K : (K < N)%N -> ‖u K - cyclic_terms η W x v τ K‖
  <= 2 * η * D * (INR K * (e + (INR N - 1) * exp (1 - h))
                  + C * e / 8 * (INR K * (INR K - 1))).
Proof.
elim: K => [_|K IH K1N].
  rewrite /cyclic_terms (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 /=; first by lra.
  by apply: vec_eq => a; rewrite /vsub /vscal big_ord0 /u /= /vzero; ring.
have inv := cyclic_counted (ltnW K1N); set w : 'I_i.+1 := place K.
have -> : (u K.+1 - cyclic_terms η W x v τ K.+1 = (u K - cyclic_terms η W x v τ K)
    + ((2 * η) *: (comb (A K) v - v (τ w))
       + (- (2 * η)) *: (comb (F K) v - tail_mean W x v τ w)))%V.
  apply: vec_eq => a; rewrite cyclic_sum /cyclic_terms /vsub /vadd /vscal sum_last /= -/w; ring.
have wE := cyclic_winner_error K1N inv; have fE := cyclic_field_error K1N inv.
rewrite -/w in wE fE.
apply: Rle_trans (vnorm_triangle _ _) _.
have le : ‖(2 * η) *: (comb (A K) v - v (τ w)) + (- (2 * η)) *: (comb (F K) v
    - tail_mean W x v τ w)‖
  <= 2 * η * (D * e + D * (C * (INR K * e) / 4 + (INR N - 1) * exp (1 - h))).
  apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_pos_eq; last by lra.
  by rewrite -Rmult_plus_distr_l; apply: Rmult_le_compat_l; lra.
have := IH (ltnW K1N); rewrite INR_S => le'.
by lra.
Qed.
End Position.

(* Q cycles and s rounds more are Q times the step and s terms. *)
Lemma cyclic_cycles dx dy n η (W : mat dy dx) x (y : 'I_n.+1 -> vec 'I_dy) τ Q s : (s < n.+1)%N ->
  cyclic_terms η W x y τ (Q * n.+1 + s)
  = (INR Q *: first_terms η W x y τ n.+1 + first_terms η W x y τ s)%V.
Proof.
move=> sn; apply: vec_eq => a.
pose t k := ((2 * η) *: (y (τ (place k)) - tail_mean W x y τ (place k)))%V a.
have firsts K : (K <= n.+1)%N -> first_terms η W x y τ K a = ∑_(k < K) t k.
  move=> Kn; rewrite (big_ord_widen _ t Kn) /first_terms /vsum; apply: eq_bigr => k _.
  by rewrite /t (_ : place k = k) //; apply/val_inj; rewrite /= modn_small.
rewrite /vadd /vscal !firsts ?(ltnW sn) // -short_prefix_recount_cycles //.
apply: eq_bigr => k _; rewrite /t (_ : place (k %% n.+1) = place k) //.
by apply/val_inj; rewrite /= modn_mod.
Qed.

(* Claim short-prefix-recount, parts surplus, induction: and how near, at the finite temperatures of
   causal-theorem, where γ₂ = 2Δ + spread. Response i sees i+1 responses. *)
Theorem short_prefix_recount : forall (dx dy N : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_class W Δ spread spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq (N - 1) (printed_block N W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) i Ca.u in
  ‖u - cyclic_terms η W x (prefix (ltn_ord i) y) τ (N - 1)‖
  <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
       + 5 / 16 * (INR N - 2) * C * exp (- g) + (INR N - 1) * exp (1 - h)).
Proof.
move=> dx dy N W η g Δ h spread spread_Z D η0 g0 Δ0 h1 fit x y r i τ cls ranked C u.
case: cls => _ apart [low rewards] [low_Z scores] dist.
have N0 : (0 < N)%N by apply: leq_ltn_trans (ltn_ord i).
have KN : (N - 1 < N)%N by rewrite subn1 ltn_predL.
have NE : INR (N - 1) = INR N - 1 by rewrite minus_INR //; apply/leP.
have := @cyclic_total dx dy N W η g Δ h low spread low_Z spread_Z D x y r i τ η0 g0 Δ0 h1 fit
  apart rewards scores dist ranked (N - 1)%N KN.
rewrite NE => le; have -> : u = ca_sum W η (mask_γ g Δ) (mask_c g Δ spread) C 0 0 causal
    (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot (N - 1) i.
  rewrite /u -[masked_prompt x y r]/(ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0)
    one_hot (fun _ => vzero) (fun _ => vzero)).
  by rewrite ca_run.
by apply: Rle_trans le _; right; rewrite /miss /C; field.
Qed.

(* Claim short-prefix-recount, parts surplus, induction: as before; N − 1 rounds are Q cycles
   of the i+1 responses and s rounds more, which is Q − 1 cycles and s terms too many. *)
Theorem short_prefix_recount_surplus : forall (dx dy N Q s : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit N g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  in_class W Δ spread spread_Z D x y r -> ranks (prefix (ltn_ord i) r) τ ->
  (N - 1 = Q * i.+1 + s)%N -> (s < i.+1)%N ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq (N - 1) (printed_block N W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) i Ca.u in
  let y_i := prefix (ltn_ord i) y in
  let ΔW := ((- η) *: gradient W x y_i τ)%V in
  ‖u - (INR Q *: (ΔW *v x) + first_terms η W x y_i τ s)‖
  <= 2 * η * (INR N - 1) * D * (5 / 2 * exp (- g)
       + 5 / 16 * (INR N - 2) * C * exp (- g) + (INR N - 1) * exp (1 - h)).
Proof.
move=> dx dy N Q s W η g Δ h spread spread_Z D η0 g0 Δ0 h1 fit x y r i τ cls ranked.
move=> NE sn C u y_i ΔW; rewrite /ΔW (gradient_step_terms W η _ τ (unit_query cls)).
have <- : first_terms η W x y_i τ i.+1 = first_terms η W x y_i τ (i.+1 - 1).
  by apply: first_terms_all; exact: leq_subr.
rewrite -cyclic_cycles // -NE.
exact: (short_prefix_recount η0 g0 Δ0 h1 fit cls ranked).
Qed.

(* Claim short-prefix-recount, part twice; four responses, the second of them: twice the step. *)
Theorem short_prefix_recount_twice : forall (dx dy : nat) (W : mat dy dx)
    (η g Δ h spread spread_Z D : R),
  0 <= η -> 0 < g -> 0 < Δ -> 1 <= h -> margins_fit 4 g Δ h spread spread_Z ->
  forall (x : vec 'I_dx) (y : 'I_4 -> vec 'I_dy) (r : 'I_4 -> R),
  in_class W Δ spread spread_Z D x y r ->
  let second : 'I_4 := @Ordinal 4 1 isT in
  forall τ : {perm 'I_second.+1}, ranks (prefix (ltn_ord second) r) τ ->
  let C := spread_Z + 2 * h in
  let u := run causal (nseq 3 (printed_block 4 W η (mask_γ g Δ) (mask_c g Δ spread) C))
             (masked_prompt x y r) second Ca.u in
  let ΔW := ((- η) *: gradient W x (prefix (ltn_ord second) y) τ)%V in
  ‖u - 2 *: (ΔW *v x)‖
  <= 6 * η * D * (5 / 2 * exp (- g) + 5 / 8 * C * exp (- g) + 3 * exp (1 - h)).
Proof.
move=> dx dy W η g Δ h spread spread_Z D η0 g0 Δ0 h1 fit x y r cls second τ ranked.
move=> C u ΔW.
have le := @short_prefix_recount_surplus dx dy 4 1 1 W η g Δ h spread spread_Z D η0 g0
  Δ0 h1 fit x y r second τ cls ranked erefl isT.
have step := gradient_step_terms W η (prefix (ltn_ord second) y) τ (unit_query cls).
rewrite -[(second.+1 - 1)%N]/1%N in step; cbv zeta in le; rewrite -step in le.
have two : (INR 1 *: (ΔW *v x) + ΔW *v x = 2 *: (ΔW *v x))%V.
  by apply: vec_eq => a; rewrite /vadd /vscal /=; ring.
rewrite -two; apply: (Rle_trans _ _ _ le); right.
have -> : INR 4 = 4 by rewrite /=; ring.
by rewrite /C; field.
Qed.
