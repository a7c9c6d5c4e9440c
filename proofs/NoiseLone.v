(* Chapter 14, What else this says: a lone response, ranked last, moves up by K places. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Elsewhere.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Lemma lone_last n (ρ : {perm 'I_n}) (lone j : 'I_n.+1) :
  ((lift_perm ord_max lone ρ)^-1%g j : nat)
  = if unlift lone j is Some l then (ρ^-1%g l : nat) else n.
Proof.
rewrite lift_permV; case: unliftP => [l ->|->]; last by rewrite lift_perm_id.
by rewrite lift_perm_lift lift_max.
Qed.

Lemma lone_moved n (ρ : {perm 'I_n}) (lone j a : 'I_n.+1) :
  ((lift_perm a lone ρ)^-1%g j : nat)
  = if unlift lone j is Some l then bump a (ρ^-1%g l) else a.
Proof.
rewrite lift_permV; case: unliftP => [l ->|->]; last by rewrite lift_perm_id.
by rewrite lift_perm_lift.
Qed.

Lemma pair_parts (A B : Type) (a a' : A) (b b' : B) : (a, b) = (a', b') -> a = a' /\ b = b'.
Proof. by case. Qed.

Lemma leq_bump_self a q : (a < bump a q)%N = (a <= q)%N.
Proof. by rewrite /bump; case: (leqP a q) => aq /=; rewrite ?ltnS // ltnNge ltnW. Qed.

Lemma count_behind n k : (k <= n)%N -> #|[set q : 'I_n | (k <= q)%N]| = (n - k)%N.
Proof.
move=> kn; have := cardsC [set q : 'I_n | (q < k)%N]; rewrite card_ord.
have -> : ~: [set q : 'I_n | (q < k)%N] = [set q : 'I_n | (k <= q)%N].
  by apply/setP => q; rewrite !inE -leqNgt.
have -> : #|[set q : 'I_n | (q < k)%N]| = k.
  rewrite -sum1_card; transitivity (\sum_(q < k) 1)%N; last by rewrite sum1_card card_ord.
  by rewrite (big_ord_widen n (fun=> 1%N) kn); apply: eq_bigl => q; rewrite inE.
by move=> E; apply/eqP; rewrite -(eqn_add2l k) E subnKC.
Qed.

Section Lone.
Variables (m n d : nat) (W : mat m d) (x : vec 'I_d) (y : 'I_n.+1 -> vec 'I_m).
Variables (ρ : {perm 'I_n}) (lone a : 'I_n.+1) (p : vec 'I_m).
Hypothesis others : forall j, j != lone -> y j = p.
Let τ := lift_perm ord_max lone ρ.
Let τ' := lift_perm a lone ρ.
Let s := score W x (y lone) - score W x p.

Lemma lone_kendall : kendall τ τ' = (n - a)%N.
Proof.
have an : (a <= n)%N by rewrite -ltnS.
pose pair q := (lift lone (ρ q), lone).
have inj : injective pair.
  by move=> q r E; case: (pair_parts E) => {}E _; apply: perm_inj (lift_inj E).
rewrite -(count_behind an) -(card_imset _ inj); apply: eq_card => [[i j]].
rewrite !inE /= !lone_last !lone_moved.
case: (unliftP lone i) => [l iE|iE]; case: (unliftP lone j) => [o jE|jE].
- transitivity false; last first.
    apply/esym/negbTE/negP => /imsetP [q _ E]; case: (pair_parts E) => _ {}E.
    by have := neq_lift lone o; rewrite -jE E eqxx.
  by rewrite [(bump _ _ < bump _ _)%N]ltnNge leq_bump2 -ltnNge; case: ltngtP.
- rewrite ltn_ord leq_bump_self /=.
  apply/idP/imsetP => [al|[q qa E]]; last case: (pair_parts E) => {}E _.
    by exists (ρ^-1%g l); rewrite ?inE // /pair permKV -iE -jE.
  by move: E; rewrite iE => /lift_inj ->; rewrite permK; rewrite inE in qa.
- transitivity false; last first.
    apply/esym/negbTE/negP => /imsetP [q _ E]; case: (pair_parts E) => _ {}E.
    by have := neq_lift lone o; rewrite -jE E eqxx.
  by rewrite ltnNge ltnW.
- rewrite ltnn; apply/esym/negbTE/negP => /imsetP [q _ E]; case: (pair_parts E) => {}E _.
  by have := neq_lift lone (ρ q); rewrite -E iE eqxx.
Qed.

Lemma lone_same_tail (k : 'I_n.+1) : (k <= a)%N -> tail_mean W x y τ k = tail_mean W x y τ' k.
Proof.
move=> ka; apply: eq_tail_mean => j; rewrite lone_last lone_moved.
case: unliftP => [l _|_]; last by rewrite ka -ltnS ltn_ord.
rewrite /bump; case: (leqP a (ρ^-1%g l)) => al; last by rewrite add0n.
by rewrite (leq_trans ka al) (leq_trans ka (leq_trans al (leq_addl _ _))).
Qed.

Lemma sum_lone (P : pred 'I_n.+1) (F : 'I_n.+1 -> R) : ∑_(j | P j) F j
  = (if P lone then F lone else 0) + ∑_(l | P (lift lone l)) F (lift lone l).
Proof. by rewrite big_mkcond (sum_at lone); congr (_ + _); rewrite -big_mkcond. Qed.

Lemma at_p l : y (lift lone l) = p.
Proof. by apply: others; rewrite eq_sym neq_lift. Qed.

Lemma lone_tail (k : 'I_n.+1) : (a < k)%N ->
  (tail_mean W x y τ k - tail_mean W x y τ' k
   = (exp s / (exp s + INR (n - k))) *: (y lone - p))%V.
Proof.
move=> ak; have kn : (k <= n)%N by rewrite -ltnS.
have e0 := exp_pos (score W x p); have u0 := exp_pos s; have N0 := INR_ge0 (n - k).
have lE : exp (score W x (y lone)) = exp s * exp (score W x p).
  by rewrite -exp_plus /s; congr exp; ring.
have behind c : ∑_(l : 'I_n | (k <= (ρ^-1%g l : 'I_n))%N) c = INR (n - k) * c.
  rewrite (sum_reindex (fun l => k <= (ρ^-1%g l : 'I_n))%N (fun=> c) (@perm_inj _ ρ)).
  rewrite -count_behind // -sum_const_card; apply: eq_bigl => q; rewrite permK.
  by rewrite [RHS]inE.
have τ'E : tail_mean W x y τ' k = p.
  apply: vec_eq => c; rewrite tail_mean_set.
  pose P (j : 'I_n.+1) := (k <= (τ'^-1%g j : 'I_n.+1))%N.
  have inP : P (τ' k) by rewrite /P permK.
  have each j : P j -> y j = p.
    move=> Pj; apply: others; apply/negP => /eqP E; move: Pj; rewrite /P E lone_moved unlift_none.
    by rewrite leqNgt ak.
  pose S := ∑_(j | P j) exp (score W x (y j)); have S0 : 0 < S.
    by apply: (sum_gt0 inP) => j _; exact: exp_pos.
  rewrite (eq_bigr (fun j => exp (score W x (y j)) * p c)) => [|j Pj]; last by rewrite (each j Pj).
  by rewrite sum_scalr -[X in X * _ / _]/S -[X in _ / X]/S; field; lra.
apply: vec_eq => c; rewrite /vsub τ'E /vscal tail_mean_set !sum_lone !lone_last unlift_none kn.
have tail (G : 'I_n -> R) : ∑_(l | (k <= (τ^-1%g (lift lone l) : 'I_n.+1))%N) G l
    = ∑_(l | (k <= (ρ^-1%g l : 'I_n))%N) G l.
  by apply: eq_bigl => l; rewrite lone_last liftK.
rewrite !tail; under eq_bigr => l _ do rewrite at_p.
under [X in _ / (_ + X)]eq_bigr => l _ do rewrite at_p.
by rewrite !behind lE; field; split; nra.
Qed.

Lemma lone_steps η : ‖x‖ = 1 ->
  (ranked_step η W x y τ' - ranked_step η W x y τ
   = (2 * η * ∑_(k < n.+1 | (a < k)%N) (exp s / (exp s + INR (n - k)))) *: (y lone - p))%V.
Proof.
move=> x1; apply: vec_eq => c; rewrite /vsub !ranked_step_all //.
transitivity (2 * η * ∑_k (tail_mean W x y τ k c - tail_mean W x y τ' k c)).
  by rewrite sum_sub; ring.
rewrite /vscal (Rmult_assoc (2 * η)); congr (_ * _); rewrite -sum_scalr [RHS]big_mkcond.
apply: eq_bigr => k _; case: ifP => ak.
  by have := f_equal (fun v => v c) (lone_tail ak); rewrite /vsub /vscal.
by rewrite lone_same_tail ?Rminus_eq_0 // leqNgt ak.
Qed.

End Lone.

(* Claim noise-kendall, part lone; N = n + 1 responses, one of them apart from the others, which
   stand at p; it is ranked last by τ and in place a, counted from 0, by τ′. *)
Theorem noise_kendall_lone : forall (m n d : nat) (W : mat m d) (x : vec 'I_d)
    (y : 'I_n.+1 -> vec 'I_m) (ρ : {perm 'I_n}) (lone a : 'I_n.+1) (p : vec 'I_m),
  (forall j, j != lone -> y j = p) ->
  let τ := lift_perm ord_max lone ρ in
  let τ' := lift_perm a lone ρ in
  let μ := tail_mean W x y τ in
  let μ' := tail_mean W x y τ' in
  let s := score W x (y lone) - score W x p in
  kendall τ τ' = (n - a)%N
  /\ (forall k : 'I_n.+1, (k <= a)%N -> μ k = μ' k)
  /\ (forall k : 'I_n.+1, (a < k)%N ->
      (μ k - μ' k = (exp s / (exp s + INR (n - k))) *: (y lone - p))%V).
Proof.
move=> m n d W x y ρ lone a p others; cbv zeta; split; [|split=> k].
- exact: lone_kendall.
- exact: lone_same_tail.
- exact: lone_tail.
Qed.

(* Claim noise-kendall, part nearly; K = n − a places. The quotient tends to 1 as s grows, which it
   does for suitable W. *)
Theorem noise_kendall_nearly : forall (m n d : nat) (x : vec 'I_d) (y : 'I_n.+1 -> vec 'I_m)
    (ρ : {perm 'I_n}) (lone a : 'I_n.+1) (p : vec 'I_m) (η D : R),
  (forall j, j != lone -> y j = p) -> ‖y lone - p‖ = D -> 0 < D -> ‖x‖ = 1 -> 0 < η -> (a < n)%N ->
  let τ := lift_perm ord_max lone ρ in
  let τ' := lift_perm a lone ρ in
  let moved W := ‖ranked_step η W x y τ - ranked_step η W x y τ'‖ in
  let s W := score W x (y lone) - score W x p in
  let bound := 2 * η * D * INR (minn (kendall τ τ') n) in
  (forall W, moved W = 2 * η * ∑_(k < n.+1 | (a < k)%N) (D * exp (s W) / (exp (s W) + INR (n - k))))
  /\ (forall δ, 0 < δ -> exists S, forall W, S <= s W -> Rabs (moved W / bound - 1) <= δ)
  /\ (forall S, exists W, s W = S).
Proof.
move=> m n d x y ρ lone a p η D others yD D0 x1 η0 an τ τ' moved s bound.
pose K := INR (n - a).
have K0 : 0 < K by apply: INR_gt0; rewrite subn_gt0.
have boundE : bound = 2 * η * D * K.
  by rewrite /bound lone_kendall (minn_idPl _) // leq_subr.
have term0 W (k : 'I_n.+1) : 0 < exp (s W) / (exp (s W) + INR (n - k)).
  have u0 := exp_pos (s W); have := INR_ge0 (n - k) => q0.
  by apply: Rdiv_lt_0_compat; lra.
have movedE W : moved W
    = 2 * η * D * ∑_(k < n.+1 | (a < k)%N) (exp (s W) / (exp (s W) + INR (n - k))).
  rewrite /moved vnorm_minus (@lone_steps _ _ _ W x y ρ lone a p others η x1) vnorm_scal yD -/(s W).
  set T := ∑_(k < n.+1 | _) _; rewrite Rabs_pos_eq; first by ring.
  by apply: Rmult_le_pos; [lra | apply: sum_ge0 => k _; exact: Rlt_le].
have count c : ∑_(k < n.+1 | (a < k)%N) c = K * c.
  rewrite /K; have an' : (a.+1 <= n.+1)%N by rewrite ltnS ltnW.
  have := count_behind an'; rewrite subSS => <-; rewrite sum_const_card.
  by congr (INR _ * _); apply: eq_card => k; rewrite [RHS]inE.
split=> [W|]; last split=> [δ δ0|S].
- rewrite movedE Rmult_assoc -[X in _ * X]sum_scal; congr (_ * _); apply: eq_bigr => k _.
  by rewrite /Rdiv Rmult_assoc.
- exists (ln (INR n / δ + 1)) => W large; have u0 := exp_pos (s W); have n0 := INR_ge0 n.
  have i0 := Rinv_0_lt_compat _ δ0.
  have nδ : INR n <= δ * exp (s W).
    have nd : 0 <= INR n / δ by apply: Rmult_le_pos; lra.
    have le : INR n / δ + 1 <= exp (s W).
      by rewrite -[X in X <= _]exp_ln; [exact: exp_mono | lra].
    have := Rmult_le_compat_l δ _ _ (Rlt_le _ _ δ0) le.
    have -> : δ * (INR n / δ + 1) = INR n + δ by field; lra.
    by lra.
  rewrite movedE boundE; set T := ∑_(k < n.+1 | _) _.
  have -> : 2 * η * D * T / (2 * η * D * K) - 1 = - ((K - T) / K) by field; lra.
  have hi : T <= K.
    rewrite -[K]Rmult_1_r -count; apply: sum_le => k _.
    have q0 := INR_ge0 (n - k); apply: (Rmult_le_reg_r (exp (s W) + INR (n - k))); first by lra.
    by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
  have lo : K * (1 - δ) <= T.
    rewrite -count; apply: sum_le => k _; have q0 := INR_ge0 (n - k).
    have qn : INR (n - k) <= INR n by apply: INR_le; exact: leq_subr.
    apply: (Rmult_le_reg_r (exp (s W) + INR (n - k))); first by lra.
    by rewrite /Rdiv Rmult_assoc Rinv_l; [nra | lra].
  rewrite Rabs_Ropp Rabs_pos_eq.
    apply: (Rmult_le_reg_r K) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
  by apply: Rmult_le_pos; [lra | left; exact: Rinv_0_lt_compat].
pose v := (y lone - p)%V; have v0 : ‖v‖² = D ^ 2 by rewrite -vnorm_sqr /v yD /=; ring.
have D2 : 0 < D ^ 2 by exact: pow_lt.
pose t := (S + ‖y lone‖² - ‖p‖²) / (2 * D ^ 2); exists (t *: outer v x)%V.
rewrite /s !pl_shift_reduced /reduced mulmv_scal mulmv_outer.
rewrite -[⟨x, x⟩]/(‖x‖²) -vnorm_sqr x1.
have E : ⟨v, y lone⟩ - ⟨v, p⟩ = D ^ 2 by rewrite -dot_subr -v0.
have tE : t * (2 * D ^ 2) = S + ‖y lone‖² - ‖p‖² by rewrite /t; field; lra.
have -> : (t *: ((1 * 1) *: v) = t *: v)%V by apply: vec_eq => c; rewrite /vscal; ring.
by rewrite !dot_scall; move: E tE; set b := ⟨v, _⟩; set c := ⟨v, _⟩ => E tE; nra.
Qed.
