(* Chapters 2 and 6: what a test token reads out, with the weights of Theorem 3.3. It sees the N
   responses, and none of them sees it. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The tokens of T, and one more: None. All see the tokens of T only. *)
Definition sees_some {T : finType} : rel (option T) := fun _ j => isSome j.
Definition with_test {T : finType} {S : stream} (X : T -> token S) (test : token S) :
  option T -> token S := fun i => if i is Some j then X j else test.

Section Test.
Variables (T : finType) (S : stream).
Implicit Types (X : option T -> token S) (h : head S) (b : block S).

Lemma sum_some (F : option T -> R) : ∑_(j | isSome j) F j = ∑_j F (Some j).
Proof.
rewrite (reindex_omap Some id) => [|[i|] //].
by apply: eq_bigl => i; rewrite /= eqxx.
Qed.

Lemma test_attention h X i j : attention sees_some h X i (Some j)
  = exp (logit h X i (Some j)) / ∑_l exp (logit h X i (Some l)).
Proof. by rewrite /attention sum_some. Qed.

Lemma test_output h X i a c : head_output sees_some h X i a c
  = apply (W_O h) (fun v d => ∑_j (attention sees_some h X i (Some j)
                                   * apply (W_V h) (X (Some j)) v d)) a c.
Proof.
apply: eq_apply => v d; pose F j := attention sees_some h X i j * apply (W_V h) (X j) v d.
rewrite -[RHS](sum_some F) [RHS]big_mkcond; apply: eq_bigr => -[j|] _ //=.
by rewrite /attention /= /Rdiv !Rmult_0_l.
Qed.

(* The tokens of T do as without it. *)
Lemma test_unseen b X i :
  transform sees_some b X (Some i) = transform full b (fun j => X (Some j)) i.
Proof.
have at_ hs : attend sees_some hs X (Some i) = attend full hs (fun j => X (Some j)) i.
  apply: functional_extensionality_dep => a; apply: functional_extensionality => c.
  rewrite /attend; congr (_ + _); apply: eq_bigr => h _; rewrite test_output.
  by apply: eq_apply => v d; apply: eq_bigr => j _; rewrite test_attention.
by rewrite /transform; case: (layer b) => [f|]; rewrite at_.
Qed.

Lemma run_unseen bs X i : run sees_some bs X (Some i) = run full bs (fun j => X (Some j)) i.
Proof.
rewrite /run; elim: bs X => //= b bs IH X; rewrite IH; congr (foldl _ _ _ _).
by apply: functional_extensionality => j; exact: test_unseen.
Qed.

(* Tokens that ask the same are answered the same. *)
Lemma same_answer h X i i' a c :
  (forall k d, apply (W_Q h) (X i) k d = apply (W_Q h) (X i') k d) ->
  head_output sees_some h X i a c = head_output sees_some h X i' a c.
Proof.
move=> q; rewrite !test_output; apply: eq_apply => v d; apply: eq_bigr => j _; congr (_ * _).
have l n : logit h X i (Some n) = logit h X i' (Some n).
  by apply: eq_bigr => k _; apply: eq_bigr => e _; rewrite q.
by rewrite !test_attention l; congr (_ / _); apply: eq_bigr => n _; rewrite l.
Qed.

End Test.

Section ReadOut.
Variables (dx dy N : nat) (W : mat dy dx) (η γ Δ spread B C : R).
Variables (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (test : token (el_stream dx dy)).
Hypotheses (test_x : test El.x = x) (test_one : test El.one ord0 = 1) (test_u : test El.u = vzero).
Let b := el_block W η γ Δ spread B C.
Let X K := run sees_some (nseq K b) (with_test (el_prompt x y r) test).

(* It keeps what it asks with and its response, and accumulates what the others do. *)
Lemma test_state (i : 'I_N) K : X K None El.x = x /\ X K None El.one ord0 = 1
  /\ X K None El.y = test El.y
  /\ X K None El.u = run full (nseq K b) (el_prompt x y r) i El.u
  /\ X K (Some i) El.x = x /\ X K (Some i) El.one ord0 = 1.
Proof.
rewrite -[run full _ _ i]/(run full _ (fun j => with_test (el_prompt x y r) test (Some j)) i).
rewrite -run_unseen -/(X K).
elim: K => [|K [IHx [IH1 [IHy [IHu [IHi IHi1]]]]]]; first by [].
have E : X K.+1 = transform sees_some b (X K) by rewrite /X run_nseq.
have put o a c : transform sees_some b (X K) o a c = feed (eliminate dx dy Δ B)
  (attend sees_some [:: winner_head dx dy η γ Δ spread; field_head W η C] (X K) o) a c by [].
have keep o a : a = El.x \/ a = El.one \/ a = El.y ->
    forall c, transform sees_some b (X K) o a c = X K o a c.
  move=> ar c; rewrite put /feed /attend !big_cons big_nil /head_output.
  by case: ar c => [->|[->|->]] c; blocks; ring.
have add o c : transform sees_some b (X K) o El.u c = X K o El.u c
    + (head_output sees_some (winner_head dx dy η γ Δ spread) (X K) o El.u c
       + head_output sees_some (field_head W η C) (X K) o El.u c).
  by rewrite put /feed /attend !big_cons big_nil; blocks; ring.
have winner : forall k d, apply (W_Q (winner_head dx dy η γ Δ spread)) (X K None) k d
    = apply (W_Q (winner_head dx dy η γ Δ spread)) (X K (Some i)) k d.
  by case=> d; blocks; rewrite !ord1 IH1 IHi1.
have field : forall k d, apply (W_Q (field_head W η C)) (X K None) k d
    = apply (W_Q (field_head W η C)) (X K (Some i)) k d.
  by case=> d; blocks; rewrite ?IHx ?IHi // !ord1 IH1 IHi1.
rewrite E; do 5?split; try by apply: functional_extensionality => c; rewrite keep; auto;
  rewrite ?IHx ?IHy ?IHi.
- by rewrite keep; auto.
- apply: functional_extensionality => c; rewrite !add IHu.
  have same h := @same_answer _ _ h (X K) None (Some i) El.u c.
  by rewrite (same _ winner) (same _ field).
- by rewrite keep; auto.
Qed.

End ReadOut.

(* Claim readout-sign, parts printed, negated: from the matrices of Theorem 3.3, up to its error.
   The heads ask with the row x, so what the row y of the test token holds does not matter to
   them: y − u is the printed read-out, y + u the repaired one. *)
Theorem readout_sign_test_token : forall (dx dy N : nat) (W : mat dy dx)
    (η γ Δ spread spread_Z D B C : R),
  0 <= η -> 0 < Δ -> ln 5 <= γ * Δ -> 3 / 2 + 2 * spread / Δ <= B ->
  forall (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R) (τ : {perm 'I_N})
    (test : token (el_stream dx dy)),
  (0 < N)%N -> in_class W Δ spread spread_Z D x y r -> ranks r τ ->
  test El.x = x -> test El.one ord0 = 1 -> test El.u = vzero ->
  let X := with_test (el_prompt x y r) test in
  let out := run sees_some (nseq (N - 1) (el_block W η γ Δ spread B C)) X None in
  let G := gradient W x y τ in
  let ε := error_bound η γ Δ C spread spread_Z D N (N - 1) in
  ((test El.y = W *v x)%V -> ‖out El.y - out El.u - (W + η *: G) *v x‖ <= ε
                         /\ ‖out El.y + out El.u - (W - η *: G) *v x‖ <= ε)
  /\ ((test El.y = (- 1) *: (W *v x))%V ->
      ‖(- 1) *: (out El.y - out El.u) - (W - η *: G) *v x‖ <= ε).
Proof.
move=> dx dy N W η γ Δ spread spread_Z D B C η0 Δ0 hot B0 x y r τ test N0 cls ranked tx t1 tu.
move=> X out G ε; pose i : 'I_N := Ordinal N0.
have [_ [_ [yE [uE _]]]] :=
  @test_state _ _ _ W η γ Δ spread B C x y r test tx t1 tu i (N - 1).
have le := theorem_3_3 C η0 Δ0 hot B0 i cls ranked; rewrite /= -/G in le.
have u1 : ‖out El.u - (- η) *: G *v x‖ <= ε by rewrite /out uE.
have u2 : ‖(- 1) *: (out El.u - (- η) *: G *v x)‖ <= ε.
  by rewrite vnorm_scal Rabs_Ropp Rabs_R1 Rmult_1_l.
rewrite /out yE; split=> ->; [split|].
- apply: Rle_trans u2; right; congr (‖_‖); apply: vec_eq => c.
  by rewrite /out !(mulmv_add, mulmv_scal) /vadd /vsub /vscal; ring.
- apply: Rle_trans u1; right; congr (‖_‖); apply: vec_eq => c.
  by rewrite /out !(mulmv_sub, mulmv_scal) /vadd /vsub /vscal; ring.
- apply: Rle_trans u1; right; congr (‖_‖); apply: vec_eq => c.
  by rewrite /out !(mulmv_sub, mulmv_scal) /vadd /vsub /vscal; ring.
Qed.
