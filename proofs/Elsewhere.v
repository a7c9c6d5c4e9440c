(* Chapter 14, What else this says: what noise in a ranking costs. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Convexity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── Means of responses ─────────────────────────────────────────────────────────────────────── *)

Lemma point_to_mean_of d (J : finType) (y : J -> vec 'I_d) w v D :
  weights w -> (forall j, ‖v - y j‖ <= D) -> ‖v - comb w y‖ <= D.
Proof.
move=> [w0 w1] vD; have -> : (v - comb w y = comb w (fun j => v - y j))%V.
  apply: vec_eq => a; rewrite /comb /vsub.
  rewrite [in RHS](eq_bigr (fun j => w j * v a - w j * y j a)) => [|j _]; last by ring.
  by rewrite sum_sub sum_scalr w1; ring.
apply: Rle_trans (vnorm_comb _ _) _.
apply: (Rle_trans _ (∑_j (w j * D))); last by rewrite sum_scalr w1; lra.
by apply: sum_le => j _; rewrite Rabs_pos_eq //; apply: Rmult_le_compat_l.
Qed.

Lemma vnorm_minus d (u v : vec 'I_d) : ‖u - v‖ = ‖v - u‖.
Proof. by rewrite /vnorm !sqnorm_sub (dotC v u); congr sqrt; ring. Qed.

(* Claim noise-kendall, parts one-swap, norm: two means of the responses, under any weights. *)
Theorem noise_kendall_means : forall (m N : nat) (y : 'I_N -> vec 'I_m) (a b : 'I_N -> R) (D : R),
  weights a -> weights b -> (forall i j, ‖y i - y j‖ <= D) -> ‖comb a y - comb b y‖ <= D.
Proof.
move=> m N y a b D wa wb yD; apply: point_to_mean_of wb _ => j.
by rewrite vnorm_minus; exact: point_to_mean_of wa (yD j).
Qed.

(* ── The step with all N terms, and which tails a swap changes ──────────────────────────────── *)

(* The step on the ranking τ: ΔW_τ x, ΔW_τ = −η∇L. *)
Definition ranked_step {m n N} (η : R) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) : vec 'I_m := (((- η) *: gradient W x y τ) *v x)%V.

(* τ with the responses in the places k and l exchanged. *)
Definition swapped {N} (k l : 'I_N) (τ : {perm 'I_N}) : {perm 'I_N} := (tperm k l * τ)%g.

Lemma sum_but_first N D : ∑_(k < N) (if (0 < k)%N then D else 0) = D * INR (N - 1).
Proof.
case: N => [|n]; first by rewrite big_ord0 Rmult_0_r.
by rewrite sum_first subn1 -[RHS]Rplus_0_l (Rmult_comm D) -sum_const_ord.
Qed.

(* The Kendall distance: the number of pairs of responses that two rankings order differently. *)
Definition kendall {N} (τ σ : {perm 'I_N}) : nat :=
  #|[set p : 'I_N * 'I_N | (τ^-1%g p.1 < τ^-1%g p.2)%N && (σ^-1%g p.2 < σ^-1%g p.1)%N]|.

Section Tails.
Variables (m n N : nat) (η : R) (W : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m).
Implicit Types τ σ : {perm 'I_N}.
Let s (j : 'I_N) := score W x (y j).

Lemma ranked_step_all τ c : ‖x‖ = 1 ->
  ranked_step η W x y τ c = 2 * η * (∑_j y j c - ∑_k tail_mean W x y τ k c).
Proof.
move=> x1; rewrite /ranked_step /gradient !mulmv_scal mulmv_outer -[⟨x, x⟩]/(‖x‖²) -vnorm_sqr x1.
rewrite /vscal /vsum (sum_reindex predT (fun j => y j c) (@perm_inj _ τ)) -sum_sub big_mkcond.
set u := ∑_k _; set v := ∑_k _; suff -> : u = - v by ring.
rewrite /u /v -sum_opp; apply: eq_bigr => k _; case: ifP => [_|/negbT].
  by rewrite /vsub; ring.
rewrite -leqNgt => Nk; rewrite tail_mean_last; first by ring.
by apply/eqP; rewrite eqn_leq Nk ltn_ord.
Qed.

(* A tail mean knows the set of its responses only. *)
Lemma tail_mean_set τ (k : 'I_N) c : tail_mean W x y τ k c
  = ∑_(j | (k <= (τ^-1%g j : 'I_N))%N) (exp (s j) * y j c)
    / ∑_(j | (k <= (τ^-1%g j : 'I_N))%N) exp (s j).
Proof.
rewrite !(sum_reindex (fun j => (k <= (τ^-1%g j : 'I_N))%N) _ (@perm_inj _ τ)).
under eq_bigl => j do rewrite permK; under [X in _ / X]eq_bigl => j do rewrite permK.
rewrite -sum_div big_mkcond; apply: eq_bigr => j _; rewrite /beta.
case: ifP => _; last by rewrite Rmult_0_l.
rewrite -[LHS]/(exp (s (τ j)) / ∑_(l < N | (k <= l)%N) exp (s (τ l)) * y (τ j) c) /Rdiv.
by move: (/ _) => i; ring.
Qed.

Lemma eq_tail_mean τ σ (k : 'I_N) :
  (forall j, (k <= (τ^-1%g j : 'I_N))%N = (k <= (σ^-1%g j : 'I_N))%N) ->
  tail_mean W x y τ k = tail_mean W x y σ k.
Proof.
move=> E; apply: vec_eq => c; rewrite !tail_mean_set.
by congr (_ / _); apply: eq_bigl => j; rewrite E.
Qed.

Lemma tail_mean_first τ σ (k : 'I_N) : k = 0%N :> nat -> tail_mean W x y τ k = tail_mean W x y σ k.
Proof. by move=> k0; apply: eq_tail_mean => j; rewrite k0. Qed.

Lemma swapped_place (k l : 'I_N) τ (j : 'I_N) :
  ((swapped k l τ)^-1%g j : 'I_N) = tperm k l (τ^-1%g j).
Proof. by rewrite /swapped invMg tpermV permM. Qed.

(* A swap of the neighbours k, l = k+1 changes the l-th tail alone. *)
Lemma swapped_tail (k l p : 'I_N) τ : l = k.+1 :> nat -> p != l ->
  tail_mean W x y (swapped k l τ) p = tail_mean W x y τ p.
Proof.
move=> lk pl; apply: eq_tail_mean => j; rewrite swapped_place.
have {}pl : (p != k.+1 :> nat)%N by rewrite -lk.
have E : (p <= k.+1)%N = (p <= k)%N by rewrite leq_eqVlt (negbTE pl) ltnS.
by case: tpermP => [->|->|//]; rewrite lk E.
Qed.

Lemma swap_difference (k l : 'I_N) τ : l = k.+1 :> nat -> ‖x‖ = 1 ->
  (ranked_step η W x y (swapped k l τ) - ranked_step η W x y τ
   = (2 * η) *: (tail_mean W x y τ l - tail_mean W x y (swapped k l τ) l))%V.
Proof.
move=> lk x1; apply: vec_eq => c; rewrite /vsub /vscal !ranked_step_all //.
rewrite (sum_pick l (fun p => tail_mean W x y τ p c)).
rewrite (sum_pick l (fun p => tail_mean W x y (swapped k l τ) p c)).
have -> : ∑_(p | p != l) tail_mean W x y (swapped k l τ) p c
    = ∑_(p | p != l) tail_mean W x y τ p c.
  by apply: eq_bigr => p pl; rewrite swapped_tail.
by move: (∑_(p | p != l) _) (∑_j y j c) => u v; ring.
Qed.

Section Bound.
Variable D : R.
Hypotheses (x1 : ‖x‖ = 1) (η0 : 0 <= η) (yD : forall i j, ‖y i - y j‖ <= D).

Lemma tails_apart τ σ k : ‖tail_mean W x y τ k - tail_mean W x y σ k‖ <= D.
Proof.
have E ρ : tail_mean W x y ρ k = comb (fun j => beta s ρ k (ρ^-1%g j)) y.
  apply: vec_eq => c; rewrite /tail_mean /comb [RHS](sum_reindex predT _ (@perm_inj _ ρ)).
  by apply: eq_bigr => j _; rewrite permK.
have w ρ : weights (fun j => beta s ρ k (ρ^-1%g j)).
  have [w0 w1] := beta_weights s ρ k; split=> [j|] //.
  by rewrite (sum_reindex predT _ (@perm_inj _ ρ)) -w1; apply: eq_bigr => j _; rewrite permK.
by rewrite !E; exact: noise_kendall_means.
Qed.

Lemma swap_bound (k l : 'I_N) τ : l = k.+1 :> nat ->
  ‖ranked_step η W x y (swapped k l τ) - ranked_step η W x y τ‖ <= 2 * η * D.
Proof.
move=> lk; rewrite swap_difference // vnorm_scal Rabs_pos_eq; last by lra.
by apply: Rmult_le_compat_l; [lra | exact: tails_apart].
Qed.

(* All tails but the first, which is the set of all responses. *)
Lemma tails_bound τ σ :
  ‖ranked_step η W x y τ - ranked_step η W x y σ‖ <= 2 * η * D * INR (N - 1).
Proof.
pose t (k : 'I_N) := (tail_mean W x y σ k - tail_mean W x y τ k)%V.
have -> : (ranked_step η W x y τ - ranked_step η W x y σ = comb (fun=> 2 * η) t)%V.
  apply: vec_eq => c; rewrite /vsub !ranked_step_all // /comb sum_scal /t /vsub sum_sub.
  by move: (∑_j y j c) => u; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite sum_scal Rabs_pos_eq; last by lra.
rewrite (Rmult_assoc _ D); apply: Rmult_le_compat_l; first by lra.
rewrite -sum_but_first; apply: sum_le => k _; case: ifP => [_|/negbT]; first exact: tails_apart.
rewrite -eqn0Ngt => /eqP k0; rewrite /t (tail_mean_first τ σ k0) /vnorm.
rewrite (_ : ‖_‖² = 0) ?sqrt_0; first exact: Rle_refl.
by apply: sum_eq0 => c _; rewrite /vsub; ring.
Qed.

(* ── Neighbours that the other ranking has the other way round ──────────────────────────────── *)

(* One swap of neighbours is at distance one. *)
Lemma kendall_swapped (k l : 'I_N) τ : l = k.+1 :> nat -> kendall τ (swapped k l τ) = 1%N.
Proof.
move=> lk; suff E : [set p : 'I_N * 'I_N | (τ^-1%g p.1 < τ^-1%g p.2)%N
    && ((swapped k l τ)^-1%g p.2 < (swapped k l τ)^-1%g p.1)%N] = [set (τ k, τ l)].
  by rewrite /kendall E cards1.
apply/setP => [[i j]]; rewrite !inE /= !swapped_place xpair_eqE -[i](permKV τ) -[j](permKV τ).
rewrite !permK !(inj_eq perm_inj); move: (τ^-1%g i) (τ^-1%g j) => p q.
have kl : (k < l)%N by rewrite lk.
have kl' : (k == l) = false by rewrite -val_eqE ltn_eqF.
case: tpermP => [->|->|/eqP qk /eqP ql]; case: tpermP => [->|->|/eqP pk /eqP pl].
all: rewrite ?eqxx ?kl' ?(eq_sym l k) ?kl' ?ltnn ?andbF //=.
- by rewrite ltnNge (ltnW kl).
- by apply/negP => /andP [pk' lp]; have := ltn_trans lp pk'; rewrite ltnNge (ltnW kl).
- by rewrite kl.
- rewrite (negbTE pk) /=; apply/negP => /andP []; rewrite lk ltnS => a b.
  by have := leq_ltn_trans a b; rewrite ltnn.
- rewrite (negbTE ql) /=; apply/negP => /andP []; rewrite lk ltnS => a b.
  by have := leq_ltn_trans b a; rewrite ltnn.
- by apply/negP => /andP [lq qk']; have := ltn_trans lq qk'; rewrite ltnNge (ltnW kl).
- by rewrite (negbTE pk) /=; apply/negP => /andP [a b]; have := ltn_trans a b; rewrite ltnn.
Qed.

Lemma kendall_triangle τ ρ σ : (kendall τ σ <= kendall τ ρ + kendall ρ σ)%N.
Proof.
rewrite /kendall; apply: leq_trans (leq_card_setU _ _); apply: subset_leq_card.
apply/subsetP => [[i j]]; rewrite !inE /= => /andP [ij ji]; rewrite ij ji andbT /=.
case: (ltngtP (ρ^-1%g j) (ρ^-1%g i)) => // /val_inj /perm_inj E.
by move: ij; rewrite E ltnn.
Qed.

(* The other ranking is nearer by one after the swap. *)
Lemma nearer (k l : 'I_N) τ σ : l = k.+1 :> nat -> (σ^-1%g (τ l) < σ^-1%g (τ k))%N ->
  (kendall (swapped k l τ) σ < kendall τ σ)%N.
Proof.
move=> lk out; rewrite /kendall; apply: proper_card; apply/properP; split; last first.
  exists (τ k, τ l); rewrite !inE /= ?swapped_place !permK out andbT; first by rewrite lk.
  by rewrite tpermL tpermR lk ltnNge leqnSn.
apply/subsetP => [[i j]]; rewrite !inE /= !swapped_place => /andP [ij ji]; rewrite ji andbT.
move: ij ji; rewrite -[i](permKV τ) -[j](permKV τ) !permK.
move: (τ^-1%g i) (τ^-1%g j) => p q.
case: tpermP => [->|->|/eqP pk /eqP pl]; case: tpermP => [->|->|/eqP qk /eqP ql] //; rewrite ?lk.
- by rewrite ltnn.
- by rewrite ltnNge leqnSn.
- by move=> /ltnW.
- by move=> _; rewrite ltnNge ltnW.
- by rewrite ltnn.
- by rewrite [in X in _ -> _ -> X]ltn_neqAle eq_sym -lk ql lk => ->.
- by rewrite ltnS leq_eqVlt val_eqE (negbTE pk).
- by move=> /ltnW; rewrite ltnS.
Qed.

Lemma closer (k l : 'I_N) τ σ : l = k.+1 :> nat -> (σ^-1%g (τ l) < σ^-1%g (τ k))%N ->
  kendall τ σ = (kendall (swapped k l τ) σ).+1.
Proof.
move=> lk out; apply/eqP; rewrite eqn_leq (nearer lk out) andbT.
by have := kendall_triangle τ (swapped k l τ) σ; rewrite kendall_swapped.
Qed.

(* A ranking with no such neighbours is the other one. *)
Lemma increasing_id (f : {perm 'I_N}) :
  (forall k l : 'I_N, l = k.+1 :> nat -> (f k < f l)%N) -> forall k : 'I_N, f k = k.
Proof.
move=> inc; have mono (k l : 'I_N) : (k < l)%N -> (f k < f l)%N.
  move: {2}(l - k)%N (erefl (l - k)%N) => d; elim: d l => [|d IH] l dE kl.
    by move: kl; rewrite -subn_gt0 dE.
  have pN : (l.-1 < N)%N by rewrite (leq_ltn_trans (leq_pred l)).
  have [p lp] : exists p : 'I_N, l = p.+1 :> nat.
    by exists (Ordinal pN); rewrite /= prednK // (leq_ltn_trans _ kl).
  have := inc _ _ lp; move: kl; rewrite lp ltnS leq_eqVlt => /orP [/eqP/val_inj <- //|kp].
  have pd : (p - k)%N = d by apply/eqP; rewrite -eqSS -subSn ?(ltnW kp) // -lp dE.
  by apply: ltn_trans; exact: IH p pd kp.
have above (g : {perm 'I_N}) : (forall k l : 'I_N, (k < l)%N -> (g k < g l)%N) ->
    forall k : 'I_N, (k <= g k)%N.
  move=> gm [k kN]; elim: k kN => [|k IH] kN //.
  have kN' := ltnW kN; apply: leq_ltn_trans (IH kN') _.
  exact: (gm (Ordinal kN') (Ordinal kN) (ltnSn k)).
have inv (k l : 'I_N) : (k < l)%N -> (f^-1%g k < f^-1%g l)%N.
  move=> kl; rewrite ltnNge leq_eqVlt; apply/negP => /orP [/eqP/val_inj/perm_inj E|/mono].
    by move: kl; rewrite E ltnn.
  by rewrite !permKV ltnNge (ltnW kl).
move=> k; apply/val_inj/eqP; rewrite eqn_leq (above f mono) andbT.
have := above _ inv k; rewrite leq_eqVlt => /orP [/eqP/val_inj E|/mono].
  by rewrite {1}E permKV.
by rewrite permKV => /ltnW.
Qed.

Lemma neighbours τ σ : τ <> σ ->
  exists k l : 'I_N, l = k.+1 :> nat /\ (σ^-1%g (τ l) < σ^-1%g (τ k))%N.
Proof.
move=> ne; pose P (p : 'I_N * 'I_N) :=
  (nat_of_ord p.2 == p.1.+1) && (σ^-1%g (τ p.2) < σ^-1%g (τ p.1))%N.
case: (pickP P) => [[k l] /andP [/eqP lk out]|none]; first by exists k, l.
case: ne; apply/permP => k; apply: (@perm_inj _ σ^-1%g); rewrite permK -permM.
apply: increasing_id => {}k l lk; rewrite !permM ltnNge leq_eqVlt; apply/negP => /orP [/eqP E|out].
  by have := val_inj E => /perm_inj /perm_inj /(congr1 val); rewrite /= lk => /eqP; rewrite gtn_eqF.
by have := none (k, l); rewrite /P /= lk eqxx out.
Qed.

(* ── The bound ──────────────────────────────────────────────────────────────────────────────── *)

Lemma kendall_same σ : kendall σ σ = 0%N.
Proof.
apply/eqP; rewrite cards_eq0; apply/eqP/setP => p; rewrite !inE; apply/negP => /andP [lt gt].
by have := ltn_trans lt gt; rewrite ltnn.
Qed.

(* One such swap after another. *)
Lemma kendall_chain τ σ : exists ps : seq ('I_N * 'I_N),
  size ps = kendall τ σ /\ all (fun p : 'I_N * 'I_N => p.2 == p.1.+1 :> nat) ps
  /\ foldl (fun ρ p => swapped p.1 p.2 ρ) τ ps = σ.
Proof.
move: {2}(kendall τ σ) (erefl (kendall τ σ)) => K; elim: K τ => [|K IH] τ KE.
all: case: (eqVneq τ σ) => [E|/eqP ne];
  first by move: KE; rewrite E kendall_same // => _; exists [::].
all: have [k [l [lk out]]] := neighbours ne; move: KE; rewrite (closer lk out) // => -[KE].
have [ps [size_ps [nbs last]]] := IH _ KE; exists ((k, l) :: ps).
by rewrite /= size_ps nbs lk eqxx.
Qed.

Lemma kendall_bound τ σ :
  ‖ranked_step η W x y τ - ranked_step η W x y σ‖ <= 2 * η * D * INR (kendall τ σ).
Proof.
move: {2}(kendall τ σ) (leqnn (kendall τ σ)) => K; elim: K τ => [|K IH] τ le.
all: case: (eqVneq τ σ) => [->|/eqP ne];
  first by rewrite kendall_same Rmult_0_r /vnorm (_ : ‖_‖² = 0) ?sqrt_0; [exact: Rle_refl |
    apply: sum_eq0 => c _; rewrite /vsub; ring].
all: have [k [l [lk out]]] := neighbours ne; have lt := nearer lk out.
  by have := leq_trans lt le; rewrite ltn0.
set τ' := swapped k l τ in lt.
have -> : (ranked_step η W x y τ - ranked_step η W x y σ
    = (ranked_step η W x y τ - ranked_step η W x y τ')
    + (ranked_step η W x y τ' - ranked_step η W x y σ))%V.
  by apply: vec_eq => c; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _; rewrite vnorm_minus.
have D0 : 0 <= D by apply: Rle_trans (yD k k); exact: vnorm_ge0.
have := swap_bound τ lk; have := IH τ' (leq_trans lt le).
have : 2 * η * D * (INR (kendall τ' σ) + 1) <= 2 * η * D * INR (kendall τ σ).
  by rewrite -INR_S; apply: Rmult_le_compat_l; [nra | exact: INR_le].
by rewrite -/τ'; lra.
Qed.

End Bound.
End Tails.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* Claim noise-kendall, part swap: exactly one tail mean changes, and the step with it. *)
Theorem noise_kendall_swap : forall (m n N : nat) (η : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> l = k.+1 :> nat ->
  let τ' := swapped k l τ in
  let μ := tail_mean W x y τ in
  let μ' := tail_mean W x y τ' in
  (forall p : 'I_N, p != l -> μ' p = μ p)
  /\ (ranked_step η W x y τ' - ranked_step η W x y τ = (2 * η) *: (μ l - μ' l))%V.
Proof.
move=> m n N η W x y τ k l x1 lk; split=> [p|]; first exact: swapped_tail.
exact: swap_difference.
Qed.

(* Claim noise-kendall, parts one-swap, norm. *)
Theorem noise_kendall_one_swap : forall (m n N : nat) (η D : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> 0 <= η -> (forall i j, ‖y i - y j‖ <= D) -> l = k.+1 :> nat ->
  ‖ranked_step η W x y (swapped k l τ) - ranked_step η W x y τ‖ <= 2 * η * D.
Proof. by move=> *; exact: swap_bound. Qed.

(* Claim noise-kendall, part path: as many swaps of neighbours as the Kendall distance make one
   ranking the other. *)
Theorem noise_kendall_chain : forall (N : nat) (τ τ' : {perm 'I_N}),
  exists swaps : seq ('I_N * 'I_N),
    size swaps = kendall τ τ'
    /\ all (fun p : 'I_N * 'I_N => p.2 == p.1.+1 :> nat) swaps
    /\ foldl (fun ρ p => swapped p.1 p.2 ρ) τ swaps = τ'.
Proof. by move=> N τ τ'; exact: kendall_chain. Qed.

(* Claim noise-kendall, part path: the tail of all responses is common, and the bound. *)
Theorem noise_kendall : forall (m n N : nat) (η D : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ τ' : {perm 'I_N}),
  ‖x‖ = 1 -> 0 <= η -> (forall i j, ‖y i - y j‖ <= D) ->
  (forall k : 'I_N, k = 0%N :> nat -> tail_mean W x y τ k = tail_mean W x y τ' k)
  /\ ‖ranked_step η W x y τ - ranked_step η W x y τ'‖
     <= 2 * η * D * INR (minn (kendall τ τ') (N - 1)).
Proof.
move=> m n N η D W x y τ τ' x1 η0 yD; split=> [k|]; first exact: tail_mean_first.
rewrite /minn; case: ifP => _; first exact: kendall_bound.
exact: tails_bound.
Qed.

(* Claim noise-kendall, part attained: by swapping the last two places. *)
Theorem noise_kendall_attained : forall (m n N : nat) (η D : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k l : 'I_N),
  ‖x‖ = 1 -> 0 <= η -> l = k.+1 :> nat -> l.+1 = N -> ‖y (τ k) - y (τ l)‖ = D ->
  kendall τ (swapped k l τ) = 1%N
  /\ ‖ranked_step η W x y τ - ranked_step η W x y (swapped k l τ)‖ = 2 * η * D.
Proof.
move=> m n N η D W x y τ k l x1 η0 lk lN yD; split; first exact: kendall_swapped.
rewrite vnorm_minus swap_difference // !tail_mean_last // vnorm_scal Rabs_pos_eq; last by lra.
by rewrite /swapped permM tpermR vnorm_minus yD.
Qed.

(* ── Rankings drawn from the model's own law ────────────────────────────────────────────────── *)

(* Claim noise-kendall, part first-place: under the model's own law j is in the first place with
   probability softmax s_j, and y_j − μ₁ has mean zero. *)
Theorem noise_kendall_first_place : forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N.+1 -> vec 'I_m),
  let s j := score W x (y j) in
  (forall j, ∑_(τ : {perm 'I_N.+1} | τ ord0 == j) P_PL s τ = softmax s j)
  /\ comb (P_PL s) (fun τ => y (τ ord0) - tail_mean W x y τ ord0)%V = vzero.
Proof.
move=> m n N W x y s.
have first j : ∑_(τ : {perm 'I_N.+1} | τ ord0 == j) P_PL s τ = softmax s j.
  pose ρ : {perm 'I_N.+1} := tperm ord0 j; have := pl_top_k 1 s ρ.
  rewrite (big_pred1 ord0) => [|k]; last by rewrite ltnS leqn0.
  rewrite tpermL => E.
  transitivity (exp (s j) / ∑_(l < N.+1 | (0 <= l)%N) exp (s (ρ l))).
    rewrite -E; apply: eq_bigl => τ; apply/eqP/forallP => [τj k|H].
      apply/implyP; rewrite ltnS leqn0 => k0; rewrite (_ : k = ord0) ?tpermL ?τj //.
      exact/val_inj/eqP.
    by have := H ord0; rewrite tpermL => /eqP.
  by rewrite /softmax; congr (_ / _); rewrite [RHS](reindex_inj (@perm_inj _ ρ)).
split=> //; apply: vec_eq => c; rewrite /comb /vzero.
have mean τ : tail_mean W x y τ ord0 c = comb (softmax s) y c.
  rewrite tail_mean_set -sum_div; apply: eq_bigr => j _.
  have swap a b q : a * b / q = a / q * b by rewrite /Rdiv; ring.
  exact: swap.
rewrite (eq_bigr (fun τ => P_PL s τ * y (τ ord0) c - P_PL s τ * comb (softmax s) y c)).
  rewrite sum_sub sum_scalr pl_normalised Rmult_1_l.
  rewrite (partition_big (fun τ : {perm 'I_N.+1} => τ ord0) predT) //= /comb -sum_sub.
  apply: sum_eq0 => j _; rewrite -first -sum_scalr.
  by apply: Rminus_diag_eq; apply: eq_bigr => τ /eqP ->.
by move=> τ _; rewrite /vsub mean; ring.
Qed.

(* Claim noise-kendall, part exhaustive: in the mean over all rankings the gradient is zero. *)
Theorem noise_kendall_mean_gradient : forall (m n N : nat) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m),
  comb (fun τ => P_PL (fun j => score W x (y j)) τ) (fun τ => gradient W x y τ) = vzero.
Proof.
move=> m n N W x y; set G := comb _ _; apply: sqnorm_eq0; rewrite /sqnorm {2}/G dot_combr.
pose p (t : R) τ := P_PL (fun j => score (W + t *: G) x (y j)) τ.
have D : is_derive (fun t => ∑_τ p t τ) 0 (∑_τ (- ⟨gradient W x y τ, G⟩ * p 0 τ)).
  apply: is_derive_sum => τ _.
  apply: (is_derive_ext (fun t => exp (- loss (W + t *: G) x y τ))) => [t|].
    by rewrite /loss Ropp_involutive exp_ln //; exact: P_PL_gt0.
  have E : p 0 τ = exp (- loss (W + 0 *: G) x y τ).
    by rewrite /loss Ropp_involutive exp_ln //; exact: P_PL_gt0.
  rewrite E; apply: (is_derive_comp exp (fun t => - loss (W + t *: G) x y τ)).
    by apply/is_derive_Reals; exact: derivable_pt_lim_exp.
  by apply: (is_derive_opp (fun t => loss (W + t *: G) x y τ)); exact: pl_gradient.
have Z : is_derive (fun t => ∑_τ p t τ) 0 0.
  apply: (is_derive_ext (fun _ => 1)) => [t|]; first by rewrite /p pl_normalised.
  exact: is_derive_const.
have := is_derive_unique _ _ _ D; rewrite (is_derive_unique _ _ _ Z) => H.
have W0 : (W + 0 *: G = W)%V by apply: vec_eq => q; rewrite /vadd /vscal; ring.
transitivity (- ∑_τ (- ⟨gradient W x y τ, G⟩ * p 0 τ)); last by rewrite -H Ropp_0.
rewrite -sum_opp; apply: eq_bigr => τ _.
by rewrite /p W0 dotC; ring.
Qed.

(* Claim noise-kendall, part exhaustive: so the expected step is zero. *)
Theorem noise_kendall_mean : forall (m n N : nat) (η : R) (W : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m),
  comb (fun τ => P_PL (fun j => score W x (y j)) τ) (fun τ => ranked_step η W x y τ) = vzero.
Proof.
move=> m n N η W x y; apply: vec_eq => c; have G0 := noise_kendall_mean_gradient W x y.
rewrite /comb /ranked_step /mulmv.
rewrite (eq_bigr (fun τ => ∑_d (P_PL (fun j => score W x (y j)) τ
    * gradient W x y τ (c, d) * (- η * x d)))) => [|τ _]; last first.
  by rewrite -[LHS]sum_scal; apply: eq_bigr => d _; rewrite /vscal;
     move: (P_PL _ _) (x d) => p z; set g := gradient _ _ _ _ _; ring.
rewrite sum_exchange; apply: sum_eq0 => d _; rewrite sum_scalr.
by have := f_equal (fun v => v (c, d)) G0; rewrite /comb /vzero => ->; ring.
Qed.
