(* Chapter 8, Multiple queries II: the whole step. N−1 filtered blocks, and a layer of sink pairs
   that adds up what the queries owe one another. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Turns Theorem33 OwnTerms.
From Icalign Require Import QueryGradient SinkPairs SinkOrder SinkAttention.
From Icalign Require Import QueryBlocks QueryTurn QueryRounds.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The layer of sink pairs ────────────────────────────────────────────────────────────────── *)

Section Coupling.
Variables (dx dy N : nat).

(* Query [ε x; λ·1], key [x; b]; writes scale·u/N to joint. *)
Definition joint_head (ε λ scale : R) : head (mt_stream dx dy) :=
  @Head (mt_stream dx dy) (sk_keys dx) (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Sk.product, Mt.x => identity ε | Sk.sink, Mt.one => identity λ | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Sk.product, Mt.x => identity 1 | Sk.sink, Mt.b => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Mt.u => identity (/ INR N) | _ => zero end)
  (* output *) (fun a _ => match a with Mt.joint => identity scale | _ => zero end).

Definition joint_pair (ε λ scale : R) : list (head (mt_stream dx dy)) :=
  [:: joint_head ε λ scale; joint_head (- ε) λ (- scale)].

(* P pairs at ε, 2ε, …, Pε, combined with the coefficients a_k. *)
Definition joint_block (P : nat) (ε λ : R) : block (mt_stream dx dy) :=
  Block (flatten [seq joint_pair (INR k * ε) λ
                        (sink_coefficient P k * (exp λ / (2 * (INR k * ε)))) | k <- iota 1 P]) None.
End Coupling.

Section Output.
Variables (dx dy M N : nat).
Variables (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R).
Variables (f : option ('I_M * 'I_N) -> R) (acc : 'I_M -> vec 'I_dy).
Let X := mt_state x y r f (own_u acc) (fun _ => vzero).
Let n := #|{: 'I_M * 'I_N}|.
Let q (l : 'I_n) : 'I_M := (enum_val l).1.
Let v (l : 'I_n) : vec 'I_dy := (/ INR N *: acc (q l))%V.

Lemma joint_logit ε λ scale t s : logit (joint_head dx dy N ε λ scale) X t s
  = ε * ⟨at_x x t, at_x x s⟩ + λ * (at_one t * at_b s).
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => ε * (at_x x t c * at_x x s c))) => [|c _]; last by blocks; ring.
by rewrite sum_scal -[X in ε * X + _]/(⟨at_x x t, at_x x s⟩); set p := dot _ _; ring.
Qed.

Lemma sum_tokens (F : option ('I_M * 'I_N) -> R) :
  ∑_s F s = F None + ∑_(l < n) F (Some (enum_val l)).
Proof.
rewrite (sum_pick None); congr (_ + _).
transitivity (∑_(p : 'I_M * 'I_N) F (Some p)); last first.
  by rewrite (reindex _ (onW_bij _ (enum_val_bij _))).
case: (pickP (fun _ : 'I_M * 'I_N => true)) => [p0 _|none].
  rewrite (reindex_onto Some (fun s => odflt p0 s)) /=; last by case.
  by apply: eq_bigl => p; rewrite eqxx.
rewrite big_pred0 => [|s]; last by case: s => // p; have := none p.
by rewrite big1 // => p _; have := none p.
Qed.

Lemma joint_output ε λ scale a i c :
  head_output full (joint_head dx dy N ε λ scale) X (Some (a, i)) Mt.joint c
  = scale * ∑_l (beside_sink λ ε (fun l => ⟨x a, x (q l)⟩) l * v l c).
Proof.
rewrite /head_output; blocks; rewrite ?Rplus_0_r ?Rplus_0_l; congr (_ * _).
rewrite sum_tokens; blocks; rewrite /vzero !(Rmult_0_r, Rplus_0_l, Rplus_0_r).
apply: eq_bigr => l _; blocks; rewrite -/(q l).
suff -> : attention full (joint_head dx dy N ε λ scale) X (Some (a, i)) (Some (enum_val l))
  = beside_sink λ ε (fun l => ⟨x a, x (q l)⟩) l by rewrite /v /vscal; ring.
rewrite /attention /= joint_logit /beside_sink sum_tokens !joint_logit /=.
have at_sink : ε * ⟨x a, vzero⟩ + λ * (1 * 1) = λ by rewrite dotC dot_zerol; ring.
have at_token b : ε * ⟨x a, x b⟩ + λ * (1 * 0) = ε * ⟨x a, x b⟩ by ring.
rewrite at_sink at_token; congr (_ / (_ + _)).
by apply: eq_bigr => m _; rewrite joint_logit /= at_token.
Qed.

Lemma joint_row P ε λ a i :
  transform full (joint_block dx dy N P ε λ) X (Some (a, i)) Mt.joint
  = comb (sink_weight λ P ε (fun l => ⟨x a, x (q l)⟩)) v.
Proof.
apply: vec_eq => c; rewrite /transform /= /attend /vzero Rplus_0_l big_flatten big_map.
rewrite (iotaDl 1 0) big_map -[P in iota 0 P]subn0 -/(index_iota 0 P) big_mkord.
rewrite /comb /sink_weight; under [RHS]eq_bigr => j _ do rewrite -sum_scalr.
rewrite exchange_big; apply: eq_bigr => k _; rewrite add1n.
rewrite !big_cons big_nil Monoid.mulm1 !joint_output.
move: (INR k.+1 * ε) (sink_coefficient _ _) => e b.
rewrite /= -!sum_scal -sum_add; apply: eq_bigr => j _; ring.
Qed.

(* A sum over all tokens, of what depends on the query alone. *)
Lemma sum_queries (F : 'I_M -> R) : ∑_(l < n) F (q l) = INR N * ∑_b F b.
Proof.
transitivity (∑_(p : 'I_M * 'I_N) F p.1).
  by rewrite [RHS](reindex _ (onW_bij _ (enum_val_bij _))).
rewrite -sum_scal (eq_bigr (fun p => F p.1)) // -(sum_pair (fun b (_ : 'I_N) => F b)).
by apply: eq_bigr => b _; rewrite sum_const_ord.
Qed.
End Output.

(* ── The claims ─────────────────────────────────────────────────────────────────────────────── *)

(* What P pairs at ε lose, and what λ lets through, among n tokens. *)
Definition sink_loss (P : nat) (ε : R) : R :=
  Rabs (∑_(k < P) (sink_coefficient P k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) - 1).
Definition sink_leak (P n : nat) (ε λ : R) : R := INR n * exp (- λ)
  * ∑_(k < P) (Rabs (sink_coefficient P k.+1)
               * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε))).

Lemma sink_ge0 P n ε λ : 0 < ε -> 0 <= sink_loss P ε + sink_leak P n ε λ.
Proof.
move=> ε0; apply: Rplus_le_le_0_compat; first exact: Rabs_pos.
apply: Rmult_le_pos; first by apply: Rmult_le_pos; [exact: INR_ge0 | left; exact: exp_pos].
apply: sum_ge0 => k _; apply: Rmult_le_pos; first exact: Rabs_pos.
have kε : 0 < INR k.+1 * ε by apply: Rmult_lt_0_compat ε0; exact: INR_gt0.
move: (INR k.+1 * ε) kε => e e0; apply: Rmult_le_pos; last by left; exact: Rinv_0_lt_compat.
by rewrite /sinh; have := exp_increasing (- (2 * e)) (2 * e) ltac:(lra); lra.
Qed.

(* A step is no longer than 2η(N−1) times the diameter of the responses. *)
Lemma step_length dx dy N (W : mat dy dx) η x (y : 'I_N -> vec 'I_dy) τ D :
  0 <= η -> (forall i j, ‖y i - y j‖ <= D) ->
  ‖first_terms η W x y τ (N - 1)‖ <= 2 * η * INR (N - 1) * D.
Proof.
move=> η0 yD; pose t (k : 'I_N) := (y (τ k) - tail_mean W x y τ k)%V.
have tD k : ‖t k‖ <= D.
  rewrite /t -live_mean; apply: (@point_to_mean _ _ y _ _ (τ k)) => [|j _]; last exact: yD.
  by rewrite permK.
have -> : first_terms η W x y τ (N - 1)
    = comb (fun k : 'I_N => if (k < N - 1)%N then 2 * η else 0) t.
  apply: vec_eq => c; rewrite /first_terms /vsum big_mkcond; apply: eq_bigr => k _.
  by case: ifP => _; rewrite /vscal //; ring.
apply: Rle_trans (vnorm_comb _ _) _.
apply: (Rle_trans _ (∑_(k < N) (if (k < N - 1)%N then 2 * η * D else 0))).
  apply: sum_le => k _; case: ifP => _; last by rewrite Rabs_R0; lra.
  by rewrite Rabs_pos_eq; [apply: Rmult_le_compat_l => //; lra | lra].
rewrite sum_if -(big_ord_widen N (fun=> 2 * η * D)) ?leq_subr // sum_const_ord; right; ring.
Qed.

(* Claim mq-theorem, part coupling: P pairs, for every P, on the tokens of M unit queries which hold
   acc b, whatever it is; up to the two terms of the sink pairs with n = MN. *)
Theorem mq_theorem_coupling : forall (dx dy M N P : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (f : option ('I_M * 'I_N) -> R) (acc : 'I_M -> vec 'I_dy) (a : 'I_M) (i : 'I_N),
  (forall b, ‖x b‖ = 1) ->
  let X := mt_state x y r f (own_u acc) (fun _ => vzero) in
  let joint := transform full (joint_block dx dy N P ε λ) X (Some (a, i)) Mt.joint in
  ‖joint - comb (fun b => ⟨x b, x a⟩) acc‖
  <= (sink_loss P ε + sink_leak P (M * N) ε λ) * ∑_b ‖acc b‖.
Proof.
move=> dx dy M N P ε λ ε0 x y r f acc a i x1 X joint; rewrite /joint joint_row.
set z := fun l => ⟨x a, _⟩; set v := fun l => _; set w := sink_weight _ _ _ _.
have N0 : 0 < INR N by apply: INR_gt0; apply: leq_ltn_trans (leq0n i) (ltn_ord i).
have -> : comb (fun b => ⟨x b, x a⟩) acc = comb z v.
  apply: vec_eq => c; rewrite /comb /z /v /vscal.
  rewrite (@sum_queries M N (fun b => ⟨x a, x b⟩ * (/ INR N * acc b c))) -sum_scal.
  by apply: eq_bigr => b _; rewrite dotC; field; lra.
have z1 l : Rabs (z l) <= 1.
  by apply: Rle_trans (dot_abs_le _ _) _; rewrite !x1; lra.
have -> : ∑_b ‖acc b‖ = ∑_l ‖v l‖.
  rewrite /v (eq_bigr (fun l => / INR N * ‖acc (enum_val l).1‖)) => [|l _]; last first.
    by rewrite vnorm_scal Rabs_pos_eq //; left; exact: Rinv_0_lt_compat.
  rewrite (@sum_queries M N (fun b => / INR N * ‖acc b‖)) sum_scal -Rmult_assoc.
  by rewrite Rinv_r ?Rmult_1_l; lra.
have -> : (comb w v - comb z v = comb (fun l => (w l - z l)%R) v)%V.
  by apply: vec_eq => c; rewrite /vsub /comb -sum_sub; apply: eq_bigr => l _; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite -sum_scal; apply: sum_le => l _.
apply: Rmult_le_compat_r; first exact: vnorm_ge0.
have := sink_weight_le λ P l ε0 z1; rewrite /sink_curve /sink_leak /sink_loss.
have -> : INR (M * N) = INR #|{: 'I_M * 'I_N}| by rewrite card_prod !card_ord.
by under eq_bigr => k _ do rewrite Rmult_1_r.
Qed.

(* Claim mq-theorem, parts bound, norm: N − 1 filtered blocks and P pairs make, at every token, the
   step ΔW x^a on the summed loss of all queries; the weights know the class only. *)
Theorem mq_theorem : forall (dx dy M N P : nat) (W : mat dy dx)
    (η g h Δ ρ low spread low_Z spread_Z D0 B ε λ : R),
  0 <= η -> 0 < Δ -> ln 9 <= g -> 0 <= h -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B -> 0 < ε ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> (forall b, ranks (r b) (τ b)) ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M)
                ++ [:: joint_block dx dy N P ε λ] in
  let joint := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  let U := 2 * η * (INR N - 1) * D0 in
  let E_own := U * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h)) in
  let E_sink := sink_loss P ε + sink_leak P (M * N) ε λ in
  ‖joint - ΔW *v x a‖ <= INR M * E_own + INR M * (U + E_own) * E_sink.
Proof.
move=> dx dy M N P W η g h Δ ρ low spread low_Z spread_Z D0 B ε λ η0 Δ0 g9 h0 ρ0 BR ε0 x y r τ a i.
move=> cls ranked blocks joint ΔW U E_own E_sink.
have N1 : (0 < N)%N by apply: leq_ltn_trans (leq0n i) (ltn_ord i).
have NE : INR (N - 1) = INR N - 1 by rewrite minus_INR //; apply/leP.
have [fs [acc [_ [XE le]]]] := mt_rounds η0 Δ0 g9 h0 ρ0 BR cls ranked (leqnn (N - 1)).
pose t b := first_terms η W (x b) (y b) (τ b) (N - 1).
have own b : ‖acc b - t b‖ <= E_own.
  by apply: Rle_trans (le b) _; rewrite NE /E_own /U; right; ring.
have D00 : 0 <= D0 by apply: Rle_trans (queries_lengths cls a i); exact: vnorm_ge0.
have tU b : ‖t b‖ <= U.
  by rewrite /U -NE; apply: step_length => // j l; exact: queries_distances cls _ _ _ _.
have stepE : (ΔW *v x a = comb (fun b => ⟨x b, x a⟩) t)%V.
  rewrite /ΔW mq_gradient; apply: vec_eq => c; rewrite /vscal /comb -sum_scal.
  apply: eq_bigr => b _; rewrite /t -(gradient_step_terms W η _ _ (queries_unit cls b)).
  rewrite mulmv_scal gradient_apply -[⟨x b, x b⟩]/(‖x b‖²) -vnorm_sqr (queries_unit cls b).
  by rewrite /vscal; ring.
have jE : joint = transform full (joint_block dx dy N P ε λ)
    (mt_state x y r (mt_flags τ (N - 1) fs) (own_u acc) (fun _ => vzero)) (Some (a, i)) Mt.joint.
  by rewrite /joint /blocks run_cat XE.
have sums : ∑_b ‖acc b‖ <= INR M * (U + E_own).
  rewrite -sum_const_ord; apply: sum_le => b _.
  have -> : acc b = ((acc b - t b) + t b)%V by apply: vec_eq => c; rewrite /vadd /vsub; ring.
  by apply: Rle_trans (vnorm_triangle _ _) _; have := own b; have := tU b; lra.
have couple := @mq_theorem_coupling dx dy M N P ε λ ε0 x y r (mt_flags τ (N - 1) fs) acc a i
  (queries_unit cls).
cbv zeta in couple; rewrite -jE in couple.
have E0 : 0 <= E_sink by exact: sink_ge0.
set s := comb (fun b => ⟨x b, x a⟩) acc in couple.
have near : ‖s - comb (fun b => ⟨x b, x a⟩) t‖ <= INR M * E_own.
  have -> : (s - comb (fun b => ⟨x b, x a⟩) t
      = comb (fun b => ⟨x b, x a⟩) (fun b => acc b - t b))%V.
    by apply: vec_eq => c; rewrite /s /vsub /comb -sum_sub; apply: eq_bigr => b _; ring.
  apply: Rle_trans (vnorm_comb _ _) _; rewrite -sum_const_ord; apply: sum_le => b _.
  have z1 : Rabs ⟨x b, x a⟩ <= 1.
    by apply: Rle_trans (dot_abs_le _ _) _; rewrite !(queries_unit cls); lra.
  have := Rmult_le_compat _ _ _ _ (Rabs_pos _) (vnorm_ge0 (acc b - t b)%V) z1 (own b); lra.
have -> : (joint - ΔW *v x a = (joint - s) + (s - comb (fun b => ⟨x b, x a⟩) t))%V.
  by rewrite stepE; apply: vec_eq => c; rewrite /vadd /vsub; ring.
apply: Rle_trans (vnorm_triangle _ _) _.
rewrite [X in _ <= X]Rplus_comm; apply: Rplus_le_compat near.
by apply: Rle_trans couple _; rewrite -/E_sink Rmult_comm; exact: Rmult_le_compat_r E0 sums.
Qed.

(* ── The choice from a tolerance ────────────────────────────────────────────────────────────── *)

(* Σ_k |a_k| sinh(2kε)/(kε). *)
Definition sink_total (P : nat) (ε : R) : R := ∑_(k < P) (Rabs (sink_coefficient P k.+1)
  * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε))).

(* 2 sinh(ε/2) = ((2P+1)!/(P!)² curvature)^{1/2P}. *)
Definition sink_spacing (P : nat) (curvature : R) : R :=
  2 * arcsinh (Rpower (INR (fact (2 * P + 1)) / (INR (fact P) * INR (fact P)) * curvature)
                 (/ INR (2 * P)) / 2).

Lemma sinh_mono s t : s <= t -> sinh s <= sinh t.
Proof. by case=> [/sinh_lt /Rlt_le|->] //; exact: Rle_refl. Qed.

Lemma arcsinh_pos t : 0 < t -> 0 < arcsinh t.
Proof.
move=> t0; apply: Rnot_le_lt => /sinh_mono; rewrite sinh_arcsinh sinh_0; lra.
Qed.

Lemma sink_spacing_gt0 P curvature : 0 < sink_spacing P curvature.
Proof.
have e0 : 0 < Rpower (INR (fact (2 * P + 1)) / (INR (fact P) * INR (fact P)) * curvature)
  (/ INR (2 * P)) / 2 by rewrite /Rpower; set e := exp _; have : 0 < e := exp_pos _; lra.
by have := arcsinh_pos e0; rewrite /sink_spacing; lra.
Qed.

Lemma sink_spacing_loss P curvature ε : (0 < P)%N -> 0 < curvature ->
  0 < ε <= sink_spacing P curvature -> sink_loss P ε <= curvature.
Proof.
move=> P0 c0 [ε0 close]; apply: Rle_trans (sink_order P ε0) _.
have f0 : 0 < INR (fact P) by exact: fact_gt0.
have f1 : 0 < INR (fact (2 * P + 1)) by exact: fact_gt0.
set q := INR (fact (2 * P + 1)) / (INR (fact P) * INR (fact P)) * curvature.
have q0 : 0 < q.
  by apply: Rmult_lt_0_compat => //; apply: Rdiv_lt_0_compat => //; exact: Rmult_lt_0_compat.
have n0 : 0 < INR (2 * P) by apply: INR_gt0; rewrite muln_gt0.
have le : 2 * sinh (ε / 2) <= Rpower q (/ INR (2 * P)).
  have h : ε / 2 <= arcsinh (Rpower q (/ INR (2 * P)) / 2).
    by move: close; rewrite /sink_spacing -/q; lra.
  by have := sinh_mono h; rewrite sinh_arcsinh; lra.
have s0 : 0 <= 2 * sinh (ε / 2).
  by have := sinh_mono (ltac:(lra) : 0 <= ε / 2); rewrite sinh_0; lra.
have pw := pow_incr _ _ (2 * P) (conj s0 le).
have E : Rpower q (/ INR (2 * P)) ^ (2 * P) = q.
  by rewrite -Rpower_pow ?Rpower_mult ?Rinv_l ?Rpower_1 //; [lra | rewrite /Rpower; exact: exp_pos].
rewrite E in pw.
have k0 : 0 <= INR (fact P) * INR (fact P) / INR (fact (2 * P + 1)).
  by apply: Rmult_le_pos; [apply: Rmult_le_pos; lra | left; exact: Rinv_0_lt_compat].
apply: Rle_trans (Rmult_le_compat_l _ _ _ k0 pw) _; right.
by rewrite /q; field; lra.
Qed.

Lemma sink_total_gt0 P ε : (0 < P)%N -> 0 < ε -> 0 < sink_total P ε.
Proof.
case: P => // P _ ε0.
have term (k : 'I_P.+1) : 0 <= Rabs (sink_coefficient P.+1 k.+1)
    * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε)).
  apply: Rmult_le_pos; first exact: Rabs_pos.
  have kε : 0 < INR k.+1 * ε by apply: Rmult_lt_0_compat ε0; exact: INR_gt0.
  apply: Rmult_le_pos; last by left; exact: Rinv_0_lt_compat.
  by have := sinh_mono (ltac:(lra) : 0 <= 2 * (INR k.+1 * ε)); rewrite sinh_0.
apply: (Rlt_le_trans _ (Rabs (sink_coefficient P.+1 1) * (sinh (2 * (INR 1 * ε)) / (INR 1 * ε)))).
  have e1 : 0 < INR 1 * ε by rewrite [INR 1]/=; lra.
  apply: Rmult_lt_0_compat; last first.
    apply: Rdiv_lt_0_compat => //; have := sinh_lt 0 (2 * (INR 1 * ε)) ltac:(lra).
    by rewrite sinh_0.
  apply: Rabs_pos_lt; rewrite /sink_coefficient subnn pow_O.
  have := fact_gt0 P.+1; have := fact_gt0 (P.+1 - 1); have := fact_gt0 (P.+1 + 1).
  move=> a0 b0 c0; apply: Rgt_not_eq; apply: Rdiv_lt_0_compat; last exact: Rmult_lt_0_compat.
  by have := Rmult_lt_0_compat _ _ c0 c0; lra.
exact: (@sum_ge_term _ predT (fun k : 'I_P.+1 => Rabs (sink_coefficient P.+1 k.+1)
    * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε))) ord0 isT (fun k _ => term k)).
Qed.

(* Claim mq-theorem, part choice: for every number P ≥ 1 of pairs, a tolerance of at most MU is met.
   The margins g and h fix γ₁, γ₂, γ_β and C. *)
Theorem mq_theorem_choice : forall (dx dy M N P : nat) (W : mat dy dx)
    (η Δ ρ low spread low_Z spread_Z D0 B tol : R),
  (0 < P)%N -> 0 < Δ -> 0 <= ρ < 1 -> 3 / 2 + 2 * spread / Δ <= B ->
  let U := 2 * η * (INR N - 1) * D0 in
  0 < tol <= INR M * U ->
  let g := Rmax (ln 9) (ln (15 * (INR M * U) / tol)) in
  let h := Rmax 1 (ln (6 * (INR N - 1) * (INR M * U) / tol)) in
  let ε := Rmin 1 (sink_spacing P (5 * tol / (36 * (INR M * U)))) in
  let λ := ln (INR (M * N) * sink_total P ε / (tol / (6 * (INR M * U)))) in
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R)
    (τ : 'I_M -> {perm 'I_N}) (a : 'I_M) (i : 'I_N),
  in_queries_class W Δ ρ low spread low_Z spread_Z D0 x y r -> (forall b, ranks (r b) (τ b)) ->
  let blocks := nseq (N - 1) (queries_block W η g h Δ ρ low spread spread_Z B M)
                ++ [:: joint_block dx dy N P ε λ] in
  let joint := run full blocks (mt_prompt x y r) (Some (a, i)) Mt.joint in
  let ΔW := ((- η) *: joint_gradient W x y τ)%V in
  ‖joint - ΔW *v x a‖ <= tol.
Proof.
move=> dx dy M N P W η Δ ρ low spread low_Z spread_Z D0 B tol P0 Δ0 ρ0 BR U [t0 tU].
set m := INR M * U in tU *; move=> g h ε λ x y r τ a i cls ranked blocks joint ΔW.
have M1 : 1 <= INR M.
  by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (leq0n a) (ltn_ord a).
have N1 : 1 <= INR N.
  by rewrite -[1]/(INR 1); apply: INR_le; exact: leq_ltn_trans (leq0n i) (ltn_ord i).
have m0 : 0 < m by lra.
have U0 : 0 < U by apply: Rnot_le_lt => U0; move: m0; rewrite /m; nra.
have N2 : 0 < INR N - 1.
  by case: (Req_dec (INR N - 1) 0) => [E|]; [move: U0; rewrite /U E; lra | lra].
have η0 : 0 <= η.
  have D00 : 0 <= D0 := Rle_trans _ _ _ (vnorm_ge0 _) (queries_lengths cls a i).
  apply: Rnot_lt_le => η0; have := Rmult_le_pos _ _ (Rlt_le _ _ N2) D00.
  by move: U0; rewrite /U; nra.
have ε0 : 0 < ε by apply: Rmin_glb_lt; [lra | exact: sink_spacing_gt0].
have g9 : ln 9 <= g by exact: Rmax_l.
have h0 : 0 <= h by have := Rmax_l 1 (ln (6 * (INR N - 1) * m / tol)); rewrite -/h; lra.
have bound := @mq_theorem dx dy M N P W η g h Δ ρ low spread low_Z spread_Z D0 B ε λ η0 Δ0 g9 h0 ρ0
  BR ε0 x y r τ a i cls ranked.
apply: Rle_trans bound _; rewrite -/U.
have small c z : 0 < c -> ln c <= z -> exp (- z) <= / c.
  by move=> c0 cz; rewrite -[X in _ <= / X](exp_ln c) // -exp_Ropp; apply: exp_mono; lra.
have eg : exp (- g) <= tol / (15 * m).
  have c0 : 0 < 15 * m / tol by apply: Rdiv_lt_0_compat; lra.
  have := small _ g c0 (Rmax_r _ _); rewrite (_ : / (15 * m / tol) = tol / (15 * m)) //.
  by field; lra.
have eh : (INR N - 1) * exp (- h) <= tol / (6 * m).
  have c0 : 0 < 6 * (INR N - 1) * m / tol.
    by apply: Rdiv_lt_0_compat => //; apply: Rmult_lt_0_compat => //; lra.
  have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ N2) (small _ h c0 (Rmax_r _ _)).
  rewrite (_ : (INR N - 1) * / (6 * (INR N - 1) * m / tol) = tol / (6 * m)) //.
  by field; lra.
set E_own := _ * (5 / 2 * exp (- g) + _).
have own : INR M * E_own <= tol / 3.
  have : m * (5 / 2 * exp (- g) + (INR N - 1) * exp (- h))
      <= m * (5 / 2 * (tol / (15 * m)) + tol / (6 * m)).
    by apply: Rmult_le_compat_l; lra.
  rewrite (_ : m * (5 / 2 * (tol / (15 * m)) + tol / (6 * m)) = tol / 3); last by field; lra.
  by rewrite /m /E_own -/U Rmult_assoc.
have loss : sink_loss P ε <= 5 * tol / (36 * m).
  apply: sink_spacing_loss => //; first by apply: Rdiv_lt_0_compat; lra.
  by split=> //; exact: Rmin_r.
have leak : sink_leak P (M * N) ε λ = tol / (6 * m).
  have T0 := @sink_total_gt0 P ε P0 ε0.
  have n0 : 0 < INR (M * N) by rewrite mult_INR; apply: Rmult_lt_0_compat; lra.
  have l0 : 0 < tol / (6 * m) by apply: Rdiv_lt_0_compat; lra.
  rewrite /sink_leak -/(sink_total P ε) /λ exp_Ropp exp_ln; first by field; lra.
  by apply: Rdiv_lt_0_compat => //; exact: Rmult_lt_0_compat.
have sink : sink_loss P ε + sink_leak P (M * N) ε λ <= 11 / 36 * (tol / m).
  rewrite leak; have -> : 11 / 36 * (tol / m) = 5 * tol / (36 * m) + tol / (6 * m) by field; lra.
  by lra.
have grown : INR M * (U + E_own) <= 4 / 3 * m by rewrite Rmult_plus_distr_l -/m; lra.
have s0 := @sink_ge0 P (M * N) ε λ ε0.
have g0 : 0 <= 4 / 3 * m by lra.
have both : INR M * (U + E_own) * (sink_loss P ε + sink_leak P (M * N) ε λ)
    <= 4 / 3 * m * (11 / 36 * (tol / m)).
  by apply: (Rle_trans _ (4 / 3 * m * (sink_loss P ε + sink_leak P (M * N) ε λ)));
     [apply: Rmult_le_compat_r | apply: Rmult_le_compat_l].
rewrite -/U in both *; move: both.
rewrite (_ : 4 / 3 * m * (11 / 36 * (tol / m)) = 11 / 27 * tol); last by field; lra.
by lra.
Qed.
