(* Chapter 12: the block as printed, without a start token, in the limits of cold attention: the
   rounds go round and round the prefix, for every γ₂ above its spread. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep OnlineLoss Weights.
From Icalign Require Import Spacing Transformer Block BlockErrors Turns Theorem33.
From Icalign Require Import MaskedBlock Mask StopSink MaskedField CausalRounds ShortPrefix.
From Icalign Require Import Recount.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The limits γ₁ → ∞, and then c′ → ∞, for every γ₂ above the prefix's spread ─────────────── *)

(* How often a response has been taken before round k, when the rounds go round and round. *)
Definition counts {n} (τ : {perm 'I_n.+1}) (k : nat) (j : 'I_n.+1) : R :=
  INR (k %/ n.+1) + flags τ (k %% n.+1) j.

Lemma counts_next n (τ : {perm 'I_n.+1}) k j :
  counts τ k.+1 j = counts τ k j + if τ (place k) == j then 1 else 0.
Proof.
have step : flags τ (k %% n.+1).+1 j = flags τ (k %% n.+1) j + if τ (place k) == j then 1 else 0.
  rewrite -(permKV τ j); move: (τ^-1%g j) => l; rewrite !flags_place (inj_eq perm_inj) -val_eqE /=.
  rewrite ltnS leq_eqVlt (eq_sym (k %% n.+1)%N); case: eqP => [->|_] /=; first by rewrite ltnn; lra.
  by case: (l < _)%N; lra.
have a1 : (k %% n.+1 < n.+1)%N by rewrite ltn_pmod.
have kE : k.+1 = (k %/ n.+1 * n.+1 + (k %% n.+1).+1)%N by rewrite addnS -divn_eq.
rewrite {1}/counts [in (k.+1 %/ _)%N]kE [in (k.+1 %% _)%N]kE divnMDl // modnMDl.
have -> : counts τ k j + (if τ (place k) == j then 1 else 0)
  = INR (k %/ n.+1) + flags τ (k %% n.+1).+1 j by rewrite step /counts; ring.
case: (ltnP (k %% n.+1).+1 n.+1) => an; first by rewrite (divn_small an) (modn_small an) addn0.
have -> : (k %% n.+1).+1 = n.+1 by apply/eqP; rewrite eqn_leq a1.
rewrite divnn modnn addn1 INR_S /flags ltn0.
by rewrite (ltn_ord (τ^-1%g j)); ring.
Qed.

(* After each cycle all have been taken equally often. *)
Lemma counts_level n (τ : {perm 'I_n.+1}) Q j : counts τ (Q * n.+1) j = INR Q.
Proof. by rewrite /counts mulnK // modnMl /flags ltn0; ring. Qed.

(* Claim short-prefix-recount, parts surplus, induction: the counts that the record tends to, in the
   theorem below, are how many of the rounds k < K take response j if they go round and round the
   ranking; whole cycles take all equally often. *)
Theorem short_prefix_recount_counts : forall (n K Q : nat) (τ : {perm 'I_n.+1}) (j : 'I_n.+1),
  counts τ K j = ∑_(k < K) (if τ (place k) == j then 1 else 0)
  /\ counts τ (Q * n.+1) j = INR Q.
Proof.
move=> n K Q τ j; split; last exact: counts_level.
by elim: K => [|K IH]; rewrite ?big_ord0 ?(counts_level τ 0) // counts_next IH sum_last.
Qed.

(* The best response left leads: over those left by a gap of rewards, over the others by what γ₂
   exceeds the spread. *)
Lemma cyclic_ahead n (r : 'I_n.+1 -> R) (τ : {perm 'I_n.+1}) γ2 :
  ranks r τ -> r (τ ord0) - r (τ ord_max) < γ2 ->
  exists δ, 0 < δ /\ forall k j, j != τ (place k) ->
    r j - γ2 * counts τ k j + δ <= r (τ (place k)) - γ2 * counts τ k (τ (place k)).
Proof.
move=> ranked wide.
have top k : r (τ k) <= r (τ ord0).
  case: (posnP k) => [k0|k0]; last by left; exact: ranked.
  by rewrite (_ : k = ord0); [lra | exact/val_inj].
have low k : r (τ ord_max) <= r (τ k).
  case: (ltnP k n) => kn; first by left; apply: ranked.
  rewrite (_ : k = ord_max); first by lra.
  by apply/val_inj/eqP; rewrite eqn_leq kn -ltnS ltn_ord.
pose gap (p : 'I_n.+1 * 'I_n.+1) := if (p.1 < p.2)%N then r (τ p.1) - r (τ p.2) else 1.
have gap0 p : 0 < gap p by rewrite /gap; case: ifP => [/ranked|]; lra.
have [p le] := least gap (ord0, ord0).
exists (Rmin (gap p) (γ2 - (r (τ ord0) - r (τ ord_max)))); split.
  by apply: Rmin_glb_lt; [exact: gap0 | lra].
move=> k j; rewrite -(permKV τ j); move: (τ^-1%g j) => l; rewrite (inj_eq perm_inj) => lk.
have m1 := Rmin_l (gap p) (γ2 - (r (τ ord0) - r (τ ord_max))).
have m2 := Rmin_r (gap p) (γ2 - (r (τ ord0) - r (τ ord_max))).
rewrite /counts -[(k %% n.+1)%N]/(nat_of_ord (place k)) !flags_place ltnn.
move: (place k) (INR _) lk => a q lk.
case: (ltngtP l a) => [lt|gt|/val_inj E]; last by rewrite E eqxx in lk.
  by have := top l; have := low a; lra.
by have := le (a, l); rewrite {2}/gap /= gt; lra.
Qed.

Section Hot.
Variables (dx dy N K : nat) (W : mat dy dx) (η γ1 γ2 C δ low_Z spread_Z D : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N).
Variable τ : {perm 'I_i.+1}.
Notation tN := (ltn_ord i).
Notation v := (prefix tN y).
Let e := INR N * exp (- (γ1 * (δ / 2))).
Let w k := widen_ord tN (τ (place k)).
Hypotheses (γ0 : 0 <= γ1) (C0 : 0 <= C) (small : 4 * Rabs γ2 * (INR K * e) <= δ).
Hypothesis lead : forall k j, j != τ (place k) ->
  prefix tN r j - γ2 * counts τ k j + δ
  <= prefix tN r (τ (place k)) - γ2 * counts τ k (τ (place k)).
Hypothesis dist : forall a b, ‖v a - v b‖ <= D.
Hypothesis range : forall j, low_Z <= reduced W x (v j) <= low_Z + spread_Z.
Let m k := ca_record γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot k i.
Let u k := ca_sum W η γ1 (γ1 * γ2) C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0)
  one_hot k i.

Lemma taken_counts k j : taken w k (widen_ord tN j) = counts τ k j.
Proof.
elim: k => [|k IH]; first by rewrite /taken big_ord0 (counts_level τ 0).
by rewrite taken_next IH counts_next.
Qed.

Lemma hot_sees k : (k < K)%N -> causal i (w k).
Proof. by move=> _; rewrite /causal /= -ltnS ltn_ord. Qed.

Lemma hot_ahead k : (k < K)%N -> forall j, causal i j -> j != w k ->
  r j - γ2 * taken w k j + δ <= r (w k) - γ2 * taken w k (w k).
Proof.
move=> _ j ij; have jn : (j < i.+1)%N by rewrite ltnS.
have -> : j = widen_ord tN (Ordinal jn) by exact/val_inj.
rewrite {2}/w !taken_counts => jk; apply: (lead (k := k)).
by apply: contra jk => /eqP ->.
Qed.

Lemma hot_near k j : (k <= K)%N -> Rabs (prefix tN (m k) j - counts τ k j) <= INR k * e.
Proof.
move=> kK; rewrite -taken_counts.
apply: (@greedy_near N K γ1 γ2 δ r i w γ0 small (@hot_sees) (@hot_ahead) k kK).
by rewrite /causal /= -ltnS ltn_ord.
Qed.

Lemma hot_D0 : 0 <= D.
Proof. by apply: Rle_trans (dist ord0 ord0); exact: vnorm_ge0. Qed.

Lemma hot_winner k : (k < K)%N ->
  ‖comb (ca_winner_weights γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot i (m k)) y
    - v (τ (place k))‖ <= D * e.
Proof.
move=> kK; rewrite /ca_winner_weights seen_comb.
apply: Rle_trans (mean_to_point _ (fun j => dist j (τ (place k)))) _.
apply: Rmult_le_compat_l; first exact: hot_D0.
rewrite -seen_softmax.
have near j : causal i j -> Rabs (m k j - taken w k j) <= INR k * e.
  exact: (@greedy_near N K γ1 γ2 δ r i w γ0 small (@hot_sees) (@hot_ahead) k (ltnW kK)).
by have [] := @greedy_miss N K γ1 γ2 δ r i w γ0 small (@hot_sees) (@hot_ahead) k kK near.
Qed.

Lemma hot_field k : (k < K)%N ->
  ‖comb (ca_field_weights W C 0 causal (fun _ => x) y (fun j => ‖y j‖²) (fun _ => 0) one_hot i
      (m k)) y - tail_mean W x v τ (place k)‖
  <= D * (C * (INR K * e) / 2 + INR N * exp (- (C - spread_Z))).
Proof.
move=> kK; rewrite /ca_field_weights seen_comb; have D0 := hot_D0.
have e0 : 0 <= e by exact: greedy_e0.
have kE : INR k * e <= INR K * e by apply: Rmult_le_compat_r => //; apply: INR_le; exact: ltnW.
set a := place k; pose f := flags τ a; pose E := INR k * e.
pose Z j := reduced W x (v j) - C * f j + C * E.
pose t j := C * (prefix tN (m k) j - counts τ k j) + C * E.
have tE j : 0 <= t j <= 2 * C * E.
  have := hot_near j (ltnW kK); rewrite -/E => near.
  have lo : - E <= prefix tN (m k) j - counts τ k j <= E by move: near; split_Rabs; lra.
  have := Rmult_le_compat_l _ _ _ C0 (proj1 lo); have := Rmult_le_compat_l _ _ _ C0 (proj2 lo).
  by rewrite /t; lra.
pose ζ j := Z j - t j; set p := comb _ _.
have -> : p = comb (softmax_on predT ζ) v.
  apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _); rewrite softmax_on_all.
  rewrite -(softmax_shift _ (C * INR (k %/ i.+1))); apply: eq_softmax => l.
  rewrite /ζ /Z /t /counts /f /reduced /prefix /= dot_one_hot -[(k %% _)%N]/(nat_of_ord a).
  by set q := flags _ _ _; set g := INR _; rewrite -/v; ring.
have tilt : ‖comb (softmax_on predT ζ) v - comb (softmax_on predT Z) v‖
    <= D * (2 * C * E / 4).
  by apply: (@tilt_mean _ predT Z t (τ a)) => // j l; exact: dist.
have EZ : comb (softmax_on predT Z) v = comb (field_weights W C x v f) v.
  apply: vec_eq => c; apply: eq_bigr => j _; congr (_ * _).
  by rewrite softmax_on_all /Z softmax_shift.
have := @field_error dx dy i.+1 W x v τ a D dist C spread_Z low_Z range; rewrite -/f -EZ.
set q := comb (softmax_on predT Z) v in tilt *; set c := tail_mean _ _ _ _ _ => field.
set p' := comb _ v in tilt *.
have -> : (p' - c = (p' - q) + (q - c))%V by apply: vec_eq => o; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _.
have crowd0 : field_crowd C spread_Z i.+1 a <= INR N * exp (- (C - spread_Z)).
  rewrite /field_crowd; apply: Rmult_le_compat_r; first by left; exact: exp_pos.
  have d1 : 1 <= INR (i.+1 - a) by rewrite -[1]/(INR 1); apply: INR_le; rewrite subn_gt0.
  apply: (Rmult_le_reg_r (INR (i.+1 - a))); first by lra.
  have -> : INR a / INR (i.+1 - a) * INR (i.+1 - a) = INR a by field; lra.
  have aN : INR a <= INR N by apply: INR_le; apply: ltnW; apply: leq_trans (ltn_ord a) tN.
  have N0 := INR_ge0 N; have a0 := INR_ge0 a.
  by have := Rmult_le_compat_l _ _ _ N0 d1; lra.
have c0 : 0 <= field_crowd C spread_Z i.+1 a.
  rewrite /field_crowd; apply: Rmult_le_pos; last by left; exact: exp_pos.
  apply: Rmult_le_pos; first exact: INR_ge0.
  by left; apply: Rinv_0_lt_compat; apply: INR_gt0; rewrite subn_gt0.
have sh := Rmult_le_compat_l _ _ _ D0 (Rle_trans _ _ _ (share_le_self c0) crowd0).
have CE := Rmult_le_compat_l _ _ _ D0 (Rmult_le_compat_l _ _ _ C0 kE).
by rewrite -/E in CE; lra.
Qed.

Lemma hot_total k : (k <= K)%N -> ‖u k - cyclic_terms η W x v τ k‖
  <= INR k * (2 * Rabs η * D * (e + C * (INR K * e) / 2 + INR N * exp (- (C - spread_Z)))).
Proof.
elim: k => [_|k IH kK].
  rewrite /cyclic_terms (_ : (_ - _)%V = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 /=; first by lra.
  by apply: vec_eq => a; rewrite /vsub /vscal big_ord0 /u /= /vzero; ring.
set A := comb (ca_winner_weights γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot i (m k)) y.
set F := comb (ca_field_weights W C 0 causal (fun _ => x) y (fun j => ‖y j‖²) (fun _ => 0) one_hot i
  (m k)) y.
have wE : ‖A - v (τ (place k))‖ <= D * e := hot_winner kK.
have fE := hot_field kK; rewrite -/F in fE.
have -> : (u k.+1 - cyclic_terms η W x v τ k.+1 = (u k - cyclic_terms η W x v τ k)
    + ((2 * η) *: (A - v (τ (place k)))
       + (- (2 * η)) *: (F - tail_mean W x v τ (place k))))%V.
  have uE : u k.+1 = (u k + (2 * η) *: (A - F))%V by [].
  by apply: vec_eq => a; rewrite uE /cyclic_terms /vsub /vadd /vscal sum_last /=; ring.
apply: Rle_trans (vnorm_triangle _ _) _; rewrite INR_S Rmult_plus_distr_r Rmult_1_l.
apply: Rplus_le_compat; first exact: IH (ltnW kK).
apply: Rle_trans (vnorm_triangle _ _) _; rewrite !vnorm_scal Rabs_Ropp Rabs_mult.
rewrite (Rabs_pos_eq 2); last by lra.
have η0 := Rabs_pos η.
by have := Rmult_le_compat_l (2 * Rabs η) _ _ ltac:(lra) (Rplus_le_compat _ _ _ _ wE fE); lra.
Qed.
End Hot.

(* Finitely many numbers have bounds. *)
Lemma finite_bound (I : finType) (f : I -> R) : exists B, 0 <= B /\ forall i, Rabs (f i) <= B.
Proof.
exists (∑_i Rabs (f i)); split; first by apply: sum_ge0 => i _; exact: Rabs_pos.
move=> i; apply: (@sum_ge_term _ predT (fun i => Rabs (f i))) => // j _; exact: Rabs_pos.
Qed.

(* Claim short-prefix-recount, parts surplus, induction: any number K of rounds at response i, γ₂
   above the spread of the rewards that it sees. In the limits γ₁ → ∞, and then C = c′ → ∞, chosen
   after the input, the accumulator is the cyclic sum of the terms, and the record holds how often
   each has been taken. *)
Theorem short_prefix_recount_limit : forall (dx dy N K : nat) (W : mat dy dx) (η γ2 : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  let r_i := prefix (ltn_ord i) r in
  ranks r_i τ -> r_i (τ ord0) - r_i (τ ord_max) < γ2 ->
  forall ε, 0 < ε -> exists strong, forall C, strong <= C -> exists hot, forall γ1, hot <= γ1 ->
  let X := run causal (nseq K (printed_block N W η γ1 (γ1 * γ2) C)) (masked_prompt x y r) in
  ‖X i Ca.u - cyclic_terms η W x (prefix (ltn_ord i) y) τ K‖ <= ε
  /\ forall j, Rabs (prefix (ltn_ord i) (X i Ca.m) j - counts τ K j) <= ε.
Proof.
move=> dx dy N K W η γ2 x y r i τ r_i ranked wide ε ε0.
have [δ [δ0 lead]] := cyclic_ahead ranked wide.
pose v := prefix (ltn_ord i) y.
have [D [D0 dist']] := finite_bound (fun p : 'I_i.+1 * 'I_i.+1 => ‖v p.1 - v p.2‖).
have dist a b : ‖v a - v b‖ <= D by have := dist' (a, b); rewrite Rabs_pos_eq //; exact: vnorm_ge0.
have [Z [Z0 range']] := finite_bound (fun j => reduced W x (v j)).
have range j : - Z <= reduced W x (v j) <= - Z + 2 * Z by have := range' j; split_Rabs; lra.
pose B := INR K * (2 * Rabs η * D) + 1.
have B0 : 0 < B.
  have : 0 <= INR K * (2 * Rabs η * D); last by rewrite /B; lra.
  have := Rabs_pos η => η0; apply: Rmult_le_pos; [exact: INR_ge0 | apply: Rmult_le_pos => //; lra].
have t0 : 0 < ε / (3 * B) by apply: Rdiv_lt_0_compat; lra.
have [s [s0 strong]] := cold (INR_ge0 N) Rlt_0_1 t0.
exists (s + 2 * Z) => C Cs; have C0 : 0 <= C by lra.
have t'0 : 0 < Rmin ε (ε / (3 * B) / (1 + C)).
  by apply: Rmin_glb_lt => //; apply: Rdiv_lt_0_compat; lra.
have [hot [hot0 small]] := greedy_cold N K γ2 δ0 t'0.
exists hot => γ1 h X; have γ0 : 0 <= γ1 by lra.
have [fit [e1 eK]] := small γ1 h; set e := INR N * exp (- (γ1 * (δ / 2))) in fit e1 eK.
have XE : X = ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
    (ca_record γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot K)
    (ca_sum W η γ1 (γ1 * γ2) C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
      K).
  by rewrite -ca_run.
split; rewrite ?XE.
  apply: Rle_trans (hot_total η γ0 C0 fit lead dist range (leqnn K)) _; rewrite -/e.
  have tE : ε / (3 * B) * (3 * B) = ε by field; lra.
  have qE : ε / (3 * B) / (1 + C) * (1 + C) = ε / (3 * B) by field; lra.
  have m2 := Rmin_r ε (ε / (3 * B) / (1 + C)).
  have small2 a : a <= Rmin ε (ε / (3 * B) / (1 + C)) -> a * (1 + C) <= ε / (3 * B).
    by move=> le; rewrite -qE; apply: Rmult_le_compat_r; lra.
  have e0 : 0 <= e by exact: greedy_e0.
  have Ke0 : 0 <= INR K * e by apply: Rmult_le_pos => //; exact: INR_ge0.
  have q1 : e <= ε / (3 * B) by have := small2 e e1; have := Rmult_le_pos _ _ e0 C0; lra.
  have q2 : C * (INR K * e) / 2 <= ε / (3 * B).
    by have := small2 _ eK; have := Rmult_le_pos _ _ Ke0 C0; lra.
  have q3 : INR N * exp (- (C - 2 * Z)) <= ε / (3 * B).
    by have := strong (C - 2 * Z) ltac:(lra); rewrite Rmult_1_r.
  apply: (Rle_trans _ (B * (3 * (ε / (3 * B))))); last by lra.
  rewrite -Rmult_assoc /B; set b := INR K * _.
  have b0 : 0 <= b by rewrite /B -/b in B0; move: B0; rewrite /b; have := Rabs_pos η => η0 _;
    apply: Rmult_le_pos; [exact: INR_ge0 | apply: Rmult_le_pos => //; lra].
  apply: (Rle_trans _ (b * (3 * (ε / (3 * B))))); last by apply: Rmult_le_compat_r; lra.
  by apply: Rmult_le_compat_l; rewrite /B -/b in q1 q2 q3 *; lra.
move=> j; apply: Rle_trans (hot_near γ0 fit lead j (leqnn K)) _.
by apply: Rle_trans eK (Rmin_l _ _).
Qed.

(* Claim short-prefix-recount, parts surplus, induction: N − 1 rounds are Q cycles of the i + 1
   responses and s rounds more; C and γ₁ are chosen after the input. What is too much tends to Q − 1
   cycles and s terms: nothing at the first position (its term is zero), at the last but one (Q = 1,
   s = 0) and at the last (Q = 0); elsewhere the limit is wrong unless this sum is zero. *)
Theorem short_prefix_recount_too_many : forall (dx dy N Q s : nat) (W : mat dy dx) (η γ2 : R)
    (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (τ : {perm 'I_i.+1}),
  let r_i := prefix (ltn_ord i) r in let y_i := prefix (ltn_ord i) y in
  ‖x‖ = 1 -> ranks r_i τ -> r_i (τ ord0) - r_i (τ ord_max) < γ2 ->
  (N - 1 = Q * i.+1 + s)%N -> (s < i.+1)%N ->
  let step := (((- η) *: gradient W x y_i τ) *v x)%V in
  let surplus := ((INR Q - 1) *: step + first_terms η W x y_i τ s)%V in
  forall ε, 0 < ε -> exists strong, forall C, strong <= C -> exists hot, forall γ1, hot <= γ1 ->
  let u := run causal (nseq (N - 1) (printed_block N W η γ1 (γ1 * γ2) C))
             (masked_prompt x y r) i Ca.u in
  ‖u - step - surplus‖ <= ε.
Proof.
move=> dx dy N Q s W η γ2 x y r i τ r_i y_i x1 ranked wide NE sn step surplus ε ε0.
have [strong H] := short_prefix_recount_limit (N - 1) W η x y ranked wide ε0.
exists strong => C Cs; have [hot {}H] := H C Cs.
exists hot => γ1 h u; have [le _] := H γ1 h; rewrite -/u -/y_i in le.
suff -> : (u - step - surplus = u - cyclic_terms η W x y_i τ (N - 1))%V by [].
rewrite NE cyclic_cycles // (first_terms_all W η x y_i τ (leq_subr 1 i.+1)).
rewrite -(gradient_step_terms W η _ τ x1).
by apply: vec_eq => a; rewrite -/step /surplus /vsub /vadd /vscal; ring.
Qed.
