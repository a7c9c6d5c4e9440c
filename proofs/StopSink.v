(* Chapter 12: a start token, with logits between those of live and of taken responses, absorbs the
   rounds that a short prefix has left over. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors OnlineLoss AlignmentTask Weights Spacing Transformer.
From Icalign Require Import MaskedBlock Mask.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── A start token in front ─────────────────────────────────────────────────────────────────── *)

(* s at the start token, f at the responses. *)
Definition with_start {A : Type} {N : nat} (s : A) (f : 'I_N -> A) (j : 'I_N.+1) : A :=
  if unlift ord0 j is Some l then f l else s.

Lemma with_start0 A N (s : A) (f : 'I_N -> A) : with_start s f ord0 = s.
Proof. by rewrite /with_start unlift_none. Qed.

Lemma with_startS A N (s : A) (f : 'I_N -> A) l : with_start s f (lift ord0 l) = f l.
Proof. by rewrite /with_start liftK. Qed.

(* The start token has the rows one and b alone. *)
Definition start_token {dx dy N} : token (ca_stream dx dy N) :=
  ca_token vzero vzero 0 0 1 vzero vzero vzero.

Definition started_prompt {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :
    'I_N.+1 -> token (ca_stream dx dy N) := with_start start_token (masked_prompt x y r).

(* Tokens with the start token in front, the records m and the accumulators u. *)
Definition started_state {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :=
  ca_state (with_start vzero (fun _ => x)) (with_start vzero y) (with_start 0 (fun j => ‖y j‖²))
    (with_start 0 r) (with_start 1 (fun _ => 0)) (with_start vzero one_hot).

Arguments start_token {dx dy N} a.
Arguments started_prompt {dx dy N} x y r j a.
Arguments started_state {dx dy N} x y r m u j a.

Lemma started_promptE dx dy N (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) :
  started_prompt x y r = started_state x y r (fun _ => vzero) (fun _ => vzero).
Proof.
apply: functional_extensionality => j; rewrite /started_prompt /started_state /ca_state.
by case: (unliftP ord0 j) => [l ->|->]; rewrite ?with_startS ?with_start0.
Qed.

(* ── What a response sees, renumbered: the start token and the prefix ───────────────────────── *)

Section Seen.
Variables (N : nat) (i : 'I_N).
Notation tN := (ltn_ord i).
Notation sN := (ltn_ord i : (i.+2 <= N.+1)%N).

Lemma prefix_start A (s : A) (f : 'I_N -> A) o :
  with_start s f (widen_ord sN o) = with_start s (prefix tN f) o.
Proof.
case: (unliftP ord0 o) => [l ->|->]; last first.
  by rewrite with_start0 (_ : widen_ord _ _ = ord0) ?with_start0 //; exact/val_inj.
rewrite with_startS (_ : widen_ord _ _ = lift ord0 (widen_ord tN l)) ?with_startS //.
exact/val_inj.
Qed.

Lemma started_sum (F : 'I_N.+1 -> R) :
  ∑_(j | causal (lift ord0 i) j) F j = ∑_(o < i.+2) F (widen_ord sN o).
Proof. by rewrite -(big_ord_narrow sN). Qed.

Lemma started_softmax s z o :
  softmax_on (causal (lift ord0 i)) (with_start s z) (widen_ord sN o)
  = softmax (with_start s (prefix tN z)) o.
Proof.
rewrite /softmax_on started_sum prefix_start /softmax.
have -> : causal (lift ord0 i) (widen_ord sN o) by rewrite /causal -ltnS; exact: (ltn_ord o).
by congr (_ / _); apply: eq_bigr => l _; rewrite prefix_start.
Qed.

Lemma started_at s z l :
  softmax_on (causal (lift ord0 i)) (with_start s z) (lift ord0 (widen_ord tN l))
  = softmax (with_start s (prefix tN z)) (lift ord0 l).
Proof. by rewrite -started_softmax; congr softmax_on; exact/val_inj. Qed.

Lemma started_comb s z d (v : 'I_N -> vec 'I_d) :
  comb (softmax_on (causal (lift ord0 i)) (with_start s z)) (with_start vzero v)
  = comb (softmax (with_start s (prefix tN z))) (with_start vzero (prefix tN v)).
Proof.
apply: vec_eq => a; rewrite /comb (bigID (causal (lift ord0 i))) /=.
rewrite [X in _ + X]big1 => [|j /negbTE ij]; last by rewrite /softmax_on ij /Rdiv !Rmult_0_l.
rewrite Rplus_0_r started_sum; apply: eq_bigr => o _; congr (_ * _).
  exact: started_softmax.
by rewrite prefix_start.
Qed.
End Seen.

(* ── The crowd, with a start token ──────────────────────────────────────────────────────────── *)

Section Crowd.
Variables (n : nat) (s : R) (z : 'I_n -> R).

Lemma started_crowd w : crowd (with_start s z) (lift ord0 w) = crowd z w + exp (s - z w).
Proof.
rewrite /crowd (sum_lift ord0) with_start0 with_startS /= Rplus_comm; congr (_ + _).
by apply: eq_big => j; rewrite ?(inj_eq lift_inj) // with_startS.
Qed.

Lemma start_crowd : crowd (with_start s z) ord0 = ∑_j exp (z j - s).
Proof.
rewrite /crowd (sum_lift ord0) eqxx Rplus_0_l with_start0.
by apply: eq_big => j // _; rewrite with_startS.
Qed.

(* A mean of responses and the zero of the start token, when that has nearly all the weight. *)
Lemma start_mean d (v : 'I_n -> vec 'I_d) D : (forall j, ‖v j‖ <= D) -> 0 <= D ->
  ‖comb (softmax (with_start s z)) (with_start vzero v)‖ <= D * share (∑_j exp (z j - s)).
Proof.
move=> vD D0; rewrite -start_crowd -softmax_miss.
set y := with_start _ v; have y0 : y ord0 = vzero by exact: with_start0.
have := @mean_to_point _ _ y (with_start s z) ord0 D; rewrite y0.
have sub0 (u : vec 'I_d) : (u - vzero = u)%V by apply: vec_eq => a; rewrite /vsub /vzero; ring.
rewrite sub0; apply => j; rewrite sub0 /y.
case: (unliftP ord0 j) => [l ->|->]; rewrite ?with_startS ?with_start0 //.
by rewrite (_ : vzero = 0 *: vzero)%V ?vnorm_scal ?Rabs_R0 ?Rmult_0_l //; apply: vec_eq => a;
   rewrite /vscal /vzero; ring.
Qed.
End Crowd.

(* What the heads find at a response, over the start token and the prefix that it sees. *)
Section Weights.
Variables (dx dy N : nat) (W : mat dy dx) (γ c C σ σ_Z : R) (x : vec 'I_dx).
Variables (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (m : vec 'I_N).
Notation tN := (ltn_ord i).

Lemma started_winner : ca_winner_weights γ c σ causal (with_start 0 r) (with_start 1 (fun _ => 0))
    (with_start vzero one_hot) (lift ord0 i) m
  = softmax_on (causal (lift ord0 i)) (with_start σ (fun j => γ * r j - c * m j)).
Proof.
apply: functional_extensionality => o; apply: eq_softmax_on => j _.
case: (unliftP ord0 j) => [l ->|->]; rewrite ?with_startS ?with_start0 ?dot_one_hot; first by ring.
by rewrite dotC dot_zerol; ring.
Qed.

Lemma started_field : ca_field_weights W C σ_Z causal (with_start vzero (fun _ => x))
    (with_start vzero y) (with_start 0 (fun j => ‖y j‖²)) (with_start 1 (fun _ => 0))
    (with_start vzero one_hot) (lift ord0 i) m
  = softmax_on (causal (lift ord0 i)) (with_start σ_Z (fun j => reduced W x (y j) - C * m j)).
Proof.
apply: functional_extensionality => o; apply: eq_softmax_on => j _; rewrite with_startS.
case: (unliftP ord0 j) => [l ->|->]; rewrite ?with_startS ?with_start0 ?dot_one_hot.
  by rewrite /reduced; ring.
by rewrite !(dotC _ vzero) !dot_zerol; ring.
Qed.
End Weights.

Lemma start_share n s (z : 'I_n -> R) q : (forall j, z j + q <= s) ->
  ∑_j exp (z j - s) <= INR n * exp (- q).
Proof.
by move=> le; rewrite -sum_const_ord; apply: sum_le => j _; apply: exp_mono; have := le j; lra.
Qed.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim stop-sink, part winner-margins; from the matrices. The record of token i holds the mask of
   token j, 0 or 1: live or taken. *)
Theorem stop_sink_winner_margins : forall (dx dy N : nat) (η γ c low high : R),
  0 <= γ ->
  let σ := stop_logit (γ * low) (γ * high) c in
  forall (T : finType) (X : T -> token (ca_stream dx dy N)) (start i j : T),
  X start = start_token -> X i Ca.one ord0 = 1 -> X j Ca.b ord0 = 0 ->
  low <= X j Ca.r ord0 <= high ->
  let z := logit (ca_winner dx dy N η γ c σ) X i in
  (⟨X i Ca.m, X j Ca.p⟩ = 0 -> z start + (c - γ * (high - low)) / 2 <= z j)
  /\ (⟨X i Ca.m, X j Ca.p⟩ = 1 -> z j + (c - γ * (high - low)) / 2 <= z start).
Proof.
move=> dx dy N η γ c low high γ0 σ T X start i j sE one bj range z.
have zs : z start = σ.
  rewrite /z ca_winner_logit // sE /= (_ : dot _ _ = 0); first by ring.
  by rewrite dotC; exact: dot_zerol.
have lo : γ * low <= γ * X j Ca.r ord0 by apply: Rmult_le_compat_l => //; lra.
have hi : γ * X j Ca.r ord0 <= γ * high by apply: Rmult_le_compat_l => //; lra.
by rewrite zs /z ca_winner_logit // bj /σ /stop_logit; split=> ->; lra.
Qed.

(* Claim stop-sink, part field-margins. *)
Theorem stop_sink_field_margins : forall (dx dy N : nat) (W : mat dy dx) (η C low high : R),
  let σ := stop_logit low high C in
  forall (T : finType) (X : T -> token (ca_stream dx dy N)) (start i j : T),
  X start = start_token -> X i Ca.one ord0 = 1 -> X j Ca.b ord0 = 0 ->
  X j Ca.sq ord0 = ‖X j Ca.y‖² -> low <= reduced W (X i Ca.x) (X j Ca.y) <= high ->
  let z := logit (ca_field N W η C σ) X i in
  (⟨X i Ca.m, X j Ca.p⟩ = 0 -> z start + (C - (high - low)) / 2 <= z j)
  /\ (⟨X i Ca.m, X j Ca.p⟩ = 1 -> z j + (C - (high - low)) / 2 <= z start).
Proof.
move=> dx dy N W η C low high σ T X start i j sE one bj sq range z.
have zs : z start = σ.
  rewrite /z ca_field_logit // sE /=; set a := dot _ _; set b := dot _ _.
  have -> : a = 0 by rewrite /a dotC; exact: dot_zerol.
  have -> : b = 0 by rewrite /b dotC; exact: dot_zerol.
  by ring.
rewrite zs /z ca_field_logit // bj sq.
rewrite -[2 * dot _ _ - _]/(reduced W (X i Ca.x) (X j Ca.y)).
by rewrite /σ /stop_logit; split=> ->; lra.
Qed.

(* Claim stop-sink, part absorbs; response i sees i+1 responses, all of which its record holds. In
   both heads the start token gets all but q/(1+q), and u gains at most that share of 2ηD. *)
Theorem stop_sink_absorbs : forall (dx dy N : nat) (W : mat dy dx)
    (η γ c C low high low_Z high_Z D : R),
  0 <= η -> 0 <= γ ->
  let winner := ca_winner dx dy N η γ c (stop_logit (γ * low) (γ * high) c) in
  let field := ca_field N W η C (stop_logit low_Z high_Z C) in
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (m : 'I_N.+1 -> vec 'I_N) (u : 'I_N.+1 -> vec 'I_dy) (i : 'I_N),
  (forall j : 'I_N, (j <= i)%N -> r j <= high /\ reduced W x (y j) <= high_Z /\ ‖y j‖ <= D) ->
  (forall j : 'I_N, (j <= i)%N -> m (lift ord0 i) j = 1) ->
  let X := started_state x y r m u in
  let q := INR i.+1 * exp (- ((c - γ * (high - low)) / 2)) in
  let q_Z := INR i.+1 * exp (- ((C - (high_Z - low_Z)) / 2)) in
  (1 - attention causal winner X (lift ord0 i) ord0 <= share q
   /\ ‖head_output causal winner X (lift ord0 i) Ca.u‖ <= 2 * η * D * share q)
  /\ (1 - attention causal field X (lift ord0 i) ord0 <= share q_Z
   /\ ‖head_output causal field X (lift ord0 i) Ca.u‖ <= 2 * η * D * share q_Z).
Proof.
move=> dx dy N W η γ c C low high low_Z high_Z D η0 γ0 winner field x y r m u i.
move=> seen taken X q q_Z.
have long (j : 'I_N) : (j <= i)%N -> ‖y j‖ <= D by move=> /seen [_ []].
have D0 : 0 <= D by apply: Rle_trans (long i (leqnn i)); exact: vnorm_ge0.
have start (s : R) (z : 'I_N -> R) p : (forall j : 'I_N, (j <= i)%N -> z j + p <= s) ->
    let A := softmax_on (causal (lift ord0 i)) (with_start s z) in
    let Q := INR i.+1 * exp (- p) in
    1 - A ord0 <= share Q /\ ‖comb A (with_start vzero y)‖ <= D * share Q.
  move=> below A Q.
  have crowdQ : ∑_j exp (prefix (ltn_ord i) z j - s) <= Q.
    by apply: start_share => j; apply: below; rewrite /= -ltnS ltn_ord.
  have le : share (∑_j exp (prefix (ltn_ord i) z j - s)) <= share Q.
    by apply: share_le => //; apply: sum_ge0 => j _; left; exact: exp_pos.
  have a0 : A ord0 = softmax (with_start s (prefix (ltn_ord i) z)) ord0.
    by rewrite -started_softmax /A; congr softmax_on; exact/val_inj.
  split; first by rewrite a0 softmax_miss start_crowd.
  rewrite /A started_comb; apply: Rle_trans (start_mean _ _ _ D0) _ => [j|].
    by apply: long; rewrite /= -ltnS ltn_ord.
  exact: Rmult_le_compat_l.
pose σ := stop_logit (γ * low) (γ * high) c; pose z j := γ * r j - c * m (lift ord0 i) j.
pose A := softmax_on (causal (lift ord0 i)) (with_start σ z).
have [w1 w2] : 1 - A ord0 <= share q /\ ‖comb A (with_start vzero y)‖ <= D * share q.
  apply: start => j ji; have := Rmult_le_compat_l _ _ _ γ0 (proj1 (seen j ji)).
  by rewrite /z (taken j ji) /σ /stop_logit; lra.
pose ς := stop_logit low_Z high_Z C; pose ζ j := reduced W x (y j) - C * m (lift ord0 i) j.
pose F := softmax_on (causal (lift ord0 i)) (with_start ς ζ).
have [f1 f2] : 1 - F ord0 <= share q_Z /\ ‖comb F (with_start vzero y)‖ <= D * share q_Z.
  by apply: start => j ji; have [_ [+ _]] := seen j ji; rewrite /ζ (taken j ji) /ς /stop_logit; lra.
have scaled a (v : vec 'I_dy) t : Rabs a = 2 * η -> ‖v‖ <= D * t -> ‖a *: v‖ <= 2 * η * D * t.
  move=> aE le; rewrite vnorm_scal aE (Rmult_assoc (2 * η) D); apply: Rmult_le_compat_l => //; lra.
split; split.
- by rewrite ca_winner_attention started_winner.
- have -> : head_output causal winner X (lift ord0 i) Ca.u
    = ((2 * η) *: comb A (with_start vzero y))%V.
    apply: vec_eq => a; rewrite ca_winner_output /A /σ -started_winner.
    by blocks; rewrite /vscal; ring.
  by apply: scaled w2; rewrite Rabs_pos_eq; lra.
- by rewrite ca_field_attention started_field.
have -> : head_output causal field X (lift ord0 i) Ca.u
  = ((- (2 * η)) *: comb F (with_start vzero y))%V.
  apply: vec_eq => a; rewrite ca_field_output /F /ς /ζ -(started_field W C _ x).
  by blocks; rewrite /vscal; ring.
by apply: scaled f2; rewrite Rabs_Ropp Rabs_pos_eq; lra.
Qed.
