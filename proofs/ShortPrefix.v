(* Chapter 12: a short prefix is counted again. The block as printed, c = γ₁γ₂, at a token i with
   any record; tokens see what they may (`sees`), a causal prefix for instance. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask Weights Spacing Transformer.
From Icalign Require Import MaskedBlock.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Section Printed.
Variables (dx dy N : nat) (W : mat dy dx) (η γ c C : R) (T : finType) (sees : rel T).
Implicit Types (X : T -> token (ca_stream dx dy N)) (i j w : T).

Lemma printed_winner_attention X i j : X i Ca.one ord0 = 1 ->
  attention sees (ca_winner dx dy N η γ c 0) X i j
  = softmax_on (sees i) (fun l => γ * X l Ca.r ord0 - c * ⟨X i Ca.m, X l Ca.p⟩) j.
Proof. by move=> one; apply: eq_softmax_on => l _; exact: mask_logits_winner. Qed.

Lemma printed_field_attention X i j : X i Ca.one ord0 = 1 ->
  attention sees (ca_field N W η C 0) X i j
  = softmax_on (sees i) (fun l => 2 * ⟨W *v X i Ca.x, X l Ca.y⟩ - X l Ca.sq ord0
      - C * ⟨X i Ca.m, X l Ca.p⟩) j.
Proof. by move=> one; apply: eq_softmax_on => l _; exact: mask_logits_field. Qed.
End Printed.

(* Weight on one of the tokens of P: what it misses, when it leads by δ. *)
Lemma lead_miss (I : finType) (P : pred I) (z : I -> R) (w : I) (δ : R) : P w ->
  (forall j, P j -> j != w -> z j + δ <= z w) ->
  1 - softmax_on P z w <= INR #|P| * exp (- δ).
Proof.
move=> Pw lead; have S0 := sum_exp_gt0 z Pw; rewrite /softmax_on Pw.
set S := ∑_(j | P j) _ in S0 *; have e0 := exp_pos (z w).
have SE : S = exp (z w) + ∑_(j | P j && (j != w)) exp (z j) by rewrite /S (sum_D1 _ Pw).
have eS : exp (z w) <= S.
  by rewrite SE; have := @sum_ge0 _ (index_enum I) (fun j => P j && (j != w))
    (fun j => exp (z j)) (fun j _ => Rlt_le _ _ (exp_pos _)); lra.
have le : S - exp (z w) <= INR #|P| * exp (- δ) * exp (z w).
  have -> : S - exp (z w) = ∑_(j | P j && (j != w)) exp (z j) by lra.
  apply: (Rle_trans _ (∑_(j | P j && (j != w)) (exp (- δ) * exp (z w)))).
    apply: sum_le => j /andP [Pj jw]; rewrite -exp_plus; apply: exp_mono.
    by have := lead j Pj jw; lra.
  rewrite sum_const_card -Rmult_assoc; apply: Rmult_le_compat_r; first by lra.
  apply: Rmult_le_compat_r; first by left; exact: exp_pos.
  by apply: INR_le; apply: subset_leq_card; apply/subsetP => j /andP [Pj _]; exact: Pj.
apply: (Rmult_le_reg_r S) => //.
have -> : (1 - exp (z w) / S) * S = S - exp (z w) by field; lra.
apply: Rle_trans le _; apply: Rmult_le_compat_l => //.
by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: exp_pos].
Qed.

Lemma softmax_ratio (I : finType) (P : pred I) (z : I -> R) (j l : I) : P j -> P l ->
  softmax_on P z j / softmax_on P z l = exp (z j - z l).
Proof.
move=> Pj Pl; have S0 := sum_exp_gt0 z Pj; have e0 := exp_pos (z l).
rewrite /softmax_on Pj Pl (_ : z j - z l = z j + - z l) // exp_plus exp_Ropp.
by field; split; lra.
Qed.

(* How often j has been taken before round k, where round l takes w l. *)
Definition taken {T : eqType} (w : nat -> T) (k : nat) (j : T) : R :=
  ∑_(l < k) (if w l == j then 1 else 0).

Lemma taken_next (T : eqType) (w : nat -> T) k j :
  taken w k.+1 j = taken w k j + if w k == j then 1 else 0.
Proof. exact: sum_last. Qed.

(* A temperature from which on a e^{−γδ} is small. *)
Lemma cold a δ t : 0 <= a -> 0 < δ -> 0 < t ->
  exists hot, 0 <= hot /\ forall γ, hot <= γ -> a * exp (- (γ * δ)) <= t.
Proof.
move=> a0 δ0 t0; pose b := (a + t) / t; exists (ln b / δ).
have b1 : 1 <= b by rewrite /b; apply: (Rmult_le_reg_r t) => //; field_simplify; lra.
have L0 : 0 <= ln b.
  case: (b1) => [lt|<-]; last by rewrite ln_1; lra.
  by left; rewrite -ln_1; apply: ln_increasing; lra.
split=> [|γ hot]; first by apply: Rmult_le_pos => //; left; exact: Rinv_0_lt_compat.
have γδ : ln b <= γ * δ.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ δ0) hot; rewrite (_ : ln b / δ * δ = ln b);
     [lra | field; lra].
have e1 : b * exp (- (γ * δ)) <= 1.
  rewrite -[X in X * _](exp_ln b) -?exp_plus; last by lra.
  by rewrite -exp_0; apply: exp_mono; lra.
have e0 := exp_pos (- (γ * δ)); set e := exp _ in e0 e1 *.
apply: (Rle_trans _ (t * (b * e))); last first.
  by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ t0) e1; lra.
have -> : t * (b * e) = (a + t) * e by rewrite /b; field; lra.
by apply: Rmult_le_compat_r; lra.
Qed.

(* The rounds at token i, if the response w k leads by δ in round k; what a round misses. *)
Section Greedy.
Variables (N K : nat) (γ1 γ2 δ : R) (r : 'I_N -> R) (i : 'I_N) (w : nat -> 'I_N).
Let e := INR N * exp (- (γ1 * (δ / 2))).
Hypotheses (γ0 : 0 <= γ1) (small : 4 * Rabs γ2 * (INR K * e) <= δ).
Hypothesis sees : forall k, (k < K)%N -> causal i (w k).
Hypothesis ahead : forall k, (k < K)%N -> forall j, causal i j -> j != w k ->
  r j - γ2 * taken w k j + δ <= r (w k) - γ2 * taken w k (w k).
Let m k := ca_record γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot k i.
Let A k := ca_winner_weights γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot i (m k).

Lemma greedy_e0 : 0 <= e.
Proof. by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: exp_pos]. Qed.

Lemma greedy_miss k : (k < K)%N ->
  (forall j, causal i j -> Rabs (m k j - taken w k j) <= INR k * e) ->
  0 <= 1 - A k (w k) <= e.
Proof.
move=> kK near; have iw := sees k kK; have e0 := greedy_e0.
have kE : INR k * e <= INR K * e by apply: Rmult_le_compat_r => //; apply: INR_le; exact: ltnW.
have two j : causal i j -> Rabs (γ2 * (m k j - taken w k j)) <= δ / 4.
  move=> ij; rewrite Rabs_mult; have := Rmult_le_compat_l _ _ _ (Rabs_pos γ2) (near j ij).
  by have := Rmult_le_compat_l _ _ _ (Rabs_pos γ2) kE; lra.
split.
  have := softmax_on_sum (fun j => γ1 * r j + 0 * 0 - γ1 * γ2 * ⟨m k, one_hot j⟩) iw.
  have := @sum_ge_term _ predT (A k) (w k) isT (fun j _ => softmax_on_ge0 _ _ _).
  by rewrite /A /ca_winner_weights /=; lra.
apply: Rle_trans (@lead_miss _ (causal i) _ (w k) (γ1 * (δ / 2)) iw _) _ => [j ij jw|].
  rewrite !dot_one_hot; have := ahead k kK j ij jw; have := two j ij; have := two (w k) iw.
  move: (taken w k j) (taken w k (w k)) (m k j) (m k (w k)) => p q s t h1 h2 h3.
  have lead : r j - γ2 * s + δ / 2 <= r (w k) - γ2 * t by move: h1 h2; split_Rabs; lra.
  by have := Rmult_le_compat_l _ _ _ γ0 lead; lra.
apply: Rmult_le_compat_r; first by left; exact: exp_pos.
by apply: INR_le; apply: leq_trans (max_card _) _; rewrite card_ord.
Qed.

Lemma greedy_near k : (k <= K)%N ->
  forall j, causal i j -> Rabs (m k j - taken w k j) <= INR k * e.
Proof.
elim: k => [|k IH] kK j ij.
  by rewrite /m /= /vzero /taken big_ord0 Rminus_0_r Rabs_R0; lra.
have near := IH (ltnW kK); have := near j ij; have [m0 m1] := @greedy_miss k kK near.
have -> : m k.+1 j = m k j + A k j by rewrite /m /= /vadd comb_one_hot.
have A0 l : 0 <= A k l by exact: softmax_on_ge0.
rewrite taken_next INR_S; case: eqP => [<-|/eqP jw]; first by split_Rabs; lra.
have : A k j <= 1 - A k (w k).
  have := softmax_on_sum (fun j => γ1 * r j + 0 * 0 - γ1 * γ2 * ⟨m k, one_hot j⟩) (sees k kK).
  rewrite -[∑_j _]/(∑_j A k j) (sum_pick (w k)) => E.
  have := @sum_ge_term _ (fun l => l != w k) (A k) j; rewrite eq_sym jw.
  by move=> /(_ isT (fun l _ => A0 l)); lra.
by have := A0 j; split_Rabs; lra.
Qed.
End Greedy.

(* Temperatures at which all this holds, with errors up to ε. *)
Lemma greedy_cold (N K : nat) (γ2 δ ε : R) : 0 < δ -> 0 < ε -> exists hot, 0 <= hot /\
  forall γ1, hot <= γ1 -> let e := INR N * exp (- (γ1 * (δ / 2))) in
  4 * Rabs γ2 * (INR K * e) <= δ /\ e <= ε /\ INR K * e <= ε.
Proof.
move=> δ0 ε0; have K0 := INR_ge0 K; have G0 := Rabs_pos γ2.
pose b := 4 * Rabs γ2 * (INR K * 1) + 1; have b0 : 0 < b by rewrite /b; nra.
pose t := Rmin (δ / b) (ε / (INR K + 1)).
have t0 : 0 < t by apply: Rmin_glb_lt; apply: Rdiv_lt_0_compat; lra.
have [hot [hot0 small]] := cold (INR_ge0 N) (ltac:(lra) : 0 < δ / 2) t0.
exists hot; split=> // γ1 h e; have le : e <= t := small γ1 h.
have e0 : 0 <= e by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: exp_pos].
have le1 : e * b <= δ.
  have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ b0) (Rle_trans _ _ _ le (Rmin_l _ _)).
  by rewrite (_ : δ / b * b = δ) //; field; lra.
have le2 : e * (INR K + 1) <= ε.
  have := Rmult_le_compat_r (INR K + 1) _ _ ltac:(lra) (Rle_trans _ _ _ le (Rmin_r _ _)).
  by rewrite (_ : ε / (INR K + 1) * (INR K + 1) = ε) //; field; lra.
have := Rmult_le_pos _ _ K0 e0; move: le1; rewrite /b => le1 Ke.
by split; [lra | split; lra].
Qed.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim short-prefix-recount, part common-shift; X and Y differ in the record of token i, which
   holds the number a at all that i sees in X, and nothing in Y. *)
Theorem short_prefix_recount_common_shift : forall (dx dy N : nat) (W : mat dy dx) (η γ c C a : R)
    (T : finType) (sees : rel T) (X Y : T -> token (ca_stream dx dy N)) (i : T),
  (forall j e, X j e = Y j e \/ (j = i /\ e = Ca.m)) ->
  X i Ca.one ord0 = 1 -> (forall j, sees i j -> ⟨X i Ca.m, X j Ca.p⟩ = a) -> Y i Ca.m = vzero ->
  forall j,
  let winner := ca_winner dx dy N η γ c 0 in let field := ca_field N W η C 0 in
  attention sees winner X i j = attention sees winner Y i j
  /\ attention sees field X i j = attention sees field Y i j.
Proof.
move=> dx dy N W η γ c C a T sees X Y i same one level empty j winner field.
have eqs l e : e <> Ca.m -> X l e = Y l e by move=> em; case: (same l e) => // -[].
have one' : Y i Ca.one ord0 = 1 by rewrite -eqs.
have e0 l : ⟨Y i Ca.m, Y l Ca.p⟩ = 0 by rewrite empty; exact: dot_zerol.
split.
  rewrite !printed_winner_attention // -[RHS](softmax_on_shift _ _ (- (c * a))).
  by apply: eq_softmax_on => l il; rewrite level // e0 eqs //; ring.
rewrite !printed_field_attention // -[RHS](softmax_on_shift _ _ (- (C * a))).
by apply: eq_softmax_on => l il; rewrite level // e0 !eqs //; ring.
Qed.

(* Claim short-prefix-recount, parts greedy, induction; round k, from 0, at response i. If w k has
   the largest r − γ₂n in round k, by δ, n the times that a response has been taken before, then it
   gets all the attention in the limit γ₁ → ∞, c = γ₁γ₂, and the record tends to n. *)
Theorem short_prefix_recount_greedy : forall (N K : nat) (γ2 δ ε : R),
  0 < δ -> 0 < ε -> exists hot, forall (dx dy : nat) (W : mat dy dx) (η γ1 C : R), hot <= γ1 ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (i : 'I_N) (w : nat -> 'I_N),
  let n := taken w in
  (forall k, (k < K)%N -> causal i (w k)) ->
  (forall k, (k < K)%N -> forall j, causal i j -> j != w k ->
     r j - γ2 * n k j + δ <= r (w k) - γ2 * n k (w k)) ->
  let X k := run causal (nseq k (printed_block N W η γ1 (γ1 * γ2) C)) (masked_prompt x y r) in
  (forall k, (k < K)%N ->
     1 - ε <= attention causal (ca_winner dx dy N η γ1 (γ1 * γ2) 0) (X k) i (w k) <= 1)
  /\ (forall k, (k <= K)%N -> forall j, causal i j -> Rabs (X k i Ca.m j - n k j) <= ε).
Proof.
move=> N K γ2 δ ε δ0 ε0.
have [hot [hot0 small]] := greedy_cold N K γ2 δ0 ε0.
exists hot => dx dy W η γ1 C h x y r i w n sees ahead X.
have [fit [e1 eK]] := small γ1 h; have γ0 : 0 <= γ1 by lra.
have XE k : X k = ca_state (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
    (ca_record γ1 (γ1 * γ2) 0 causal r (fun _ => 0) one_hot k)
    (ca_sum W η γ1 (γ1 * γ2) C 0 0 causal (fun _ => x) y (fun j => ‖y j‖²) r (fun _ => 0) one_hot
      k).
  by rewrite -ca_run.
have near k kK := @greedy_near N K γ1 γ2 δ r i w γ0 fit sees ahead k kK.
split=> k kK; last first.
  move=> j ij; rewrite XE; apply: Rle_trans (near k kK j ij) (Rle_trans _ _ _ _ eK).
  by apply: Rmult_le_compat_r; [exact: greedy_e0 | exact: INR_le].
rewrite XE ca_winner_attention.
by have := @greedy_miss N K γ1 γ2 δ r i w γ0 fit sees ahead k kK (near k (ltnW kK)); lra.
Qed.

(* Claim short-prefix-recount, part cyclic; the a best responses have been taken q + 1 times, the
   others q times. In place a is the best response left; at least two responses. *)
Theorem short_prefix_recount_cyclic : forall (n q : nat) (r : 'I_n.+2 -> R) (τ : {perm 'I_n.+2})
    (γ2 : R),
  ranks r τ ->
  let value (a l : 'I_n.+2) := r (τ l) - γ2 * INR (q + (l < a)) in
  (forall a l, l != a -> value a l < value a a) <-> r (τ ord0) - r (τ ord_max) < γ2.
Proof.
move=> n q r τ γ2 ranked value; split=> [ahead|wide a l la].
  have := ahead ord_max ord0 isT; rewrite /value ltnn addn0 /= addn1 INR_S; lra.
have top k : r (τ k) <= r (τ ord0).
  case: (posnP k) => [k0|k0]; last by left; exact: ranked.
  by rewrite (_ : k = ord0); [lra | exact/val_inj].
have low k : r (τ ord_max) <= r (τ k).
  case: (ltnP k n.+1) => kn; first by left; apply: ranked.
  rewrite (_ : k = ord_max); first by lra.
  by apply/val_inj/eqP; rewrite eqn_leq kn -ltnS ltn_ord.
rewrite /value ltnn addn0; case: (ltngtP l a) => [lt|gt|/val_inj E]; last by rewrite E eqxx in la.
  by rewrite addn1 INR_S; have := top l; have := low a; lra.
by rewrite addn0; have := ranked _ _ gt; lra.
Qed.

(* Claim short-prefix-recount, part surplus: the ratio of two weights of the second head. *)
Theorem short_prefix_recount_ratio : forall (dx dy N : nat) (W : mat dy dx) (η C : R)
    (T : finType) (sees : rel T) (X : T -> token (ca_stream dx dy N)) (i j l : T),
  X i Ca.one ord0 = 1 -> sees i j -> sees i l ->
  (forall j, X j Ca.sq ord0 = ‖X j Ca.y‖²) ->
  let Z j := reduced W (X i Ca.x) (X j Ca.y) in
  let n j := ⟨X i Ca.m, X j Ca.p⟩ in
  attention sees (ca_field N W η C 0) X i j / attention sees (ca_field N W η C 0) X i l
  = exp (Z j - Z l - C * (n j - n l)).
Proof.
move=> dx dy N W η C T sees X i j l one ij il sq Z n.
rewrite !printed_field_attention // softmax_ratio //; congr exp.
have ZE k : 2 * ⟨W *v X i Ca.x, X k Ca.y⟩ - X k Ca.sq ord0 = Z k by rewrite sq.
have split a b p q : a - C * p - (b - C * q) = a - b - C * (p - q) by ring.
by rewrite -!ZE -split.
Qed.

(* Claim short-prefix-recount, part surplus: Q cycles of n terms and s rounds more are Q cycles and
   s terms; that u tends to such a sum is the theorem short_prefix_recount_limit. *)
Theorem short_prefix_recount_cycles : forall (n Q s : nat) (t : nat -> R),
  (s < n)%N ->
  ∑_(k < Q * n + s) t (k %% n)%N = INR Q * ∑_(k < n) t k + ∑_(k < s) t k.
Proof.
move=> n Q s t sn; elim: Q => [|Q IH].
  rewrite mul0n add0n /= Rmult_0_l Rplus_0_l; apply: eq_bigr => k _.
  by rewrite modn_small // (ltn_trans (ltn_ord k)).
rewrite mulSn -addnA big_split_ord INR_S /=.
rewrite (eq_bigr (fun k : 'I_n => t k)) => [|k _]; last by rewrite modn_small.
rewrite [X in _ + X](eq_bigr (fun k : 'I_(Q * n + s) => t (k %% n)%N)) => [|k _].
  have add a b c : a + (c * a + b) = (c + 1) * a + b by ring.
  rewrite IH; exact: add.
by rewrite modnDl.
Qed.
