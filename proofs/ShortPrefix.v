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

(* Toward claim short-prefix-recount, part greedy: n_j is the entry of a record that is the same
   for all γ₁; that the record of round k tends to the counts is not shown. If w leads in r − γ₂n,
   it gets all the attention in the limit γ₁ → ∞, c = γ₁γ₂. *)
Theorem short_prefix_recount_greedy : forall (dx dy N : nat) (η γ2 δ : R) (T : finType)
    (sees : rel T) (X : T -> token (ca_stream dx dy N)) (i w : T),
  0 < δ -> X i Ca.one ord0 = 1 -> sees i w ->
  let n j := ⟨X i Ca.m, X j Ca.p⟩ in
  (forall j, sees i j -> j != w ->
     X j Ca.r ord0 - γ2 * n j + δ <= X w Ca.r ord0 - γ2 * n w) ->
  forall ε, 0 < ε -> exists hot, forall γ1, hot <= γ1 ->
  1 - ε <= attention sees (ca_winner dx dy N η γ1 (γ1 * γ2) 0) X i w <= 1.
Proof.
move=> dx dy N η γ2 δ T sees X i w δ0 one iw n lead ε ε0.
pose M := INR #|sees i|.
have M0 : 0 < M by apply: INR_gt0; apply/card_gt0P; exists w.
exists (Rmax 0 (ln (M / ε) / δ)) => γ1 hot.
have γ0 : 0 <= γ1 by apply: Rle_trans hot; exact: Rmax_l.
have γl : ln (M / ε) / δ <= γ1 by apply: Rle_trans hot; exact: Rmax_r.
rewrite printed_winner_attention //; set z := (X in softmax_on _ X _); split.
  have := @lead_miss _ (sees i) z w (γ1 * δ) iw => H.
  have {H} le := H ltac:(by move=> j ij jw;
    have := Rmult_le_compat_l _ _ _ γ0 (lead j ij jw); rewrite /z -/(n j) -/(n w); lra).
  have : M * exp (- (γ1 * δ)) <= ε; last by rewrite -/M in le; lra.
  have a0 : 0 < M / ε by exact: Rdiv_lt_0_compat.
  have gd : ln (M / ε) <= γ1 * δ.
    have -> : ln (M / ε) = ln (M / ε) / δ * δ by field; lra.
    by apply: Rmult_le_compat_r => //; lra.
  have -> : M = M / ε * ε by field; lra.
  have : M / ε * exp (- (γ1 * δ)) <= 1.
    by rewrite -{1}(exp_ln _ a0) -exp_plus -exp_0; apply: exp_mono; lra.
  have := exp_pos (- (γ1 * δ)); set e := exp _; set b := M / ε => e1 e2.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ ε0) e2; lra.
rewrite -(softmax_on_sum z iw); apply: (@sum_ge_term _ predT) => // j _.
exact: softmax_on_ge0.
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

(* Toward claim short-prefix-recount, part surplus: the ratio of two weights of the second head;
   that the rounds add up to the cyclic sum, in the limits, is not shown. *)
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

(* Toward claim short-prefix-recount, part surplus: the cyclic sum of terms t, Q cycles of n and s
   rounds more, is Q cycles and s terms; that u is this sum, in the limits, is not shown. *)
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
