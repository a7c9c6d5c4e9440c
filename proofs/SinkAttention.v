(* Chapter 8, Multiple queries II: softmax heads and a sink make linear attention. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums Vectors Weights Transformer SinkPairs.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The heads ──────────────────────────────────────────────────────────────────────────────── *)

Module Sk.
Inductive name := x | v | one | b | sum.
Inductive key := product | sink.
End Sk.

Section Heads.
Variables dx dv : nat.

Definition sk_width (a : Sk.name) : nat :=
  match a with Sk.x => dx | Sk.v | Sk.sum => dv | _ => 1 end.

Definition sk_stream : stream.
Proof.
refine {| row := Sk.name; width := sk_width; rows := [:: Sk.x; Sk.v; Sk.one; Sk.b; Sk.sum] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition sk_keys : stream.
Proof.
refine {| row := Sk.key; width := fun k => if k is Sk.product then dx else 1%N;
  rows := [:: Sk.product; Sk.sink] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Query [ε x; λ·1], key [x; b]; writes scale·v to sum. *)
Definition sk_head (ε λ scale : R) : head sk_stream := @Head sk_stream sk_keys (one_row dv)
  (* query *)  (fun k b => match k, b with
    | Sk.product, Sk.x => identity ε | Sk.sink, Sk.one => identity λ | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Sk.product, Sk.x => identity 1 | Sk.sink, Sk.b => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Sk.v => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Sk.sum => identity scale | _ => zero end).

(* Two heads with opposite signs. *)
Definition sk_pair (ε λ scale : R) : list (head sk_stream) :=
  [:: sk_head ε λ scale; sk_head (- ε) λ (- scale)].

(* P pairs at ε, 2ε, …, Pε, combined with the coefficients a_k. *)
Definition sk_block (P : nat) (ε λ : R) : block sk_stream :=
  Block (flatten [seq sk_pair (INR k * ε) λ
                        (sink_coefficient P k * (exp λ / (2 * (INR k * ε)))) | k <- iota 1 P]) None.

(* The sink, of which only b is not zero, and n tokens [x_j; v_j; 1; 0; 0]. *)
Definition sk_prompt {n} (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) :
    'I_n.+1 -> token sk_stream := fun t =>
  match unlift ord0 t with
  | Some j => fun a => match a with
    | Sk.x => x j | Sk.v => v j | Sk.one => fun _ => 1 | _ => fun _ => 0 end
  | None => fun a => match a with Sk.b => fun _ => 1 | _ => fun _ => 0 end
  end.

End Heads.

Arguments sk_prompt {dx dv n} x v.

Lemma sk_logit dx dv ε λ scale (T : finType) (X : T -> token (sk_stream dx dv)) (i j : T) :
  logit (sk_head dx dv ε λ scale) X i j
  = ε * ⟨X i Sk.x, X j Sk.x⟩ + λ * (X i Sk.one ord0 * X j Sk.b ord0).
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => ε * (X i Sk.x c * X j Sk.x c))) => [|c _].
  rewrite sum_scal -[X in ε * X + _]/(⟨X i Sk.x, X j Sk.x⟩); set s := dot _ _; ring.
by blocks; ring.
Qed.

(* What one head adds to the row sum of the token i. *)
Lemma sk_head_output dx dv n ε λ scale (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) i c :
  head_output full (sk_head dx dv ε λ scale) (sk_prompt x v) (lift ord0 i) Sk.sum c
  = scale * ∑_j (beside_sink λ ε (fun l => ⟨x i, x l⟩) j * v j c).
Proof.
set X := sk_prompt x v.
have XS j a : X (lift ord0 j) a = match a with
    | Sk.x => x j | Sk.v => v j | Sk.one => fun _ => 1 | _ => fun _ => 0 end.
  by rewrite /X /sk_prompt liftK.
have L0 : logit (sk_head dx dv ε λ scale) X (lift ord0 i) ord0 = λ.
  rewrite sk_logit !XS /X /sk_prompt unlift_none dotC dot_zerol; ring.
have LS j : logit (sk_head dx dv ε λ scale) X (lift ord0 i) (lift ord0 j) = ε * ⟨x i, x j⟩.
  by rewrite sk_logit !XS !Rmult_0_r Rplus_0_r.
rewrite /head_output; blocks; rewrite Rplus_0_r; congr (_ * _); rewrite sum_first.
have X0 : X ord0 Sk.v c = 0 by rewrite /X /sk_prompt unlift_none.
blocks; rewrite X0 !(Rplus_0_l, Rplus_0_r, Rmult_0_r); apply: eq_bigr => j _; blocks.
rewrite XS; suff -> : attention full (sk_head dx dv ε λ scale) X (lift ord0 i) (lift ord0 j)
  = beside_sink λ ε (fun l => ⟨x i, x l⟩) j by ring.
rewrite /attention /= LS /beside_sink; congr (_ / _); rewrite sum_first L0.
by congr (_ + _); apply: eq_bigr => l _; rewrite LS.
Qed.

(* The weights that the pairs give together. *)
Lemma sk_output dx dv n P ε λ (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) i :
  run full [:: sk_block dx dv P ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum
  = comb (sink_weight λ P ε (fun l => ⟨x i, x l⟩)) v.
Proof.
apply: vec_eq => c; rewrite /run /= /transform /= /attend /sk_prompt liftK Rplus_0_l.
rewrite -/(sk_prompt x v) big_flatten big_map.
rewrite (iotaDl 1 0) big_map -[P in iota 0 P]subn0 -/(index_iota 0 P) big_mkord.
rewrite /comb /sink_weight; under [RHS]eq_bigr => j _ do rewrite -sum_scalr.
rewrite exchange_big; apply: eq_bigr => k _; rewrite add1n.
rewrite !big_cons big_nil Monoid.mulm1 !sk_head_output.
move: (INR k.+1 * ε) (sink_coefficient _ _) => e a.
rewrite /= -!sum_scal -sum_add; apply: eq_bigr => j _; ring.
Qed.

(* ── The claim ──────────────────────────────────────────────────────────────────────────────── *)

(* Claim sink-linear-attention, part pairs: P pairs, for every P. *)
Theorem sink_linear_attention_pairs : forall (dx dv n P : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (i : 'I_n),
  (forall j, Rabs ⟨x i, x j⟩ <= 1) ->
  let a := sink_coefficient P in
  let sum := run full [:: sk_block dx dv P ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let bent := Rabs (∑_(k < P) (a k.+1 * sinh (INR k.+1 * ε) / (INR k.+1 * ε)) - 1) in
  let leak := INR n * exp (- λ)
    * ∑_(k < P) (Rabs (a k.+1) * (sinh (2 * (INR k.+1 * ε)) / (INR k.+1 * ε))) in
  ‖sum - comb (fun j => ⟨x i, x j⟩) v‖ <= (bent + leak) * ∑_j ‖v j‖.
Proof.
move=> dx dv n P ε λ ε0 x v i z1 a sum bent leak; rewrite /sum sk_output.
have -> : bent = Rabs (sink_curve P ε 1 - 1).
  by congr (Rabs (_ - _)); apply: eq_bigr => k _; rewrite Rmult_1_r.
set w := sink_weight _ _ _ _.
have -> : (comb w v - comb (fun j => ⟨x i, x j⟩) v = comb (fun j => (w j - ⟨x i, x j⟩)%R) v)%V.
  by apply: vec_eq => c; rewrite /vsub /comb -sum_sub; apply: eq_bigr => j _; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite -sum_scal; apply: sum_le => j _.
apply: Rmult_le_compat_r; first exact: vnorm_ge0.
exact: sink_weight_le ε0 z1.
Qed.

(* Claim sink-linear-attention, part bound: one pair. *)
Theorem sink_linear_attention : forall (dx dv n : nat) (ε λ : R),
  0 < ε ->
  forall (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (i : 'I_n),
  (forall j, Rabs ⟨x i, x j⟩ <= 1) ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  ‖sum - comb (fun j => ⟨x i, x j⟩) v‖
  <= (sinh ε / ε - 1 + INR n * exp (- λ) * (sinh (2 * ε) / ε)) * ∑_j ‖v j‖.
Proof.
move=> dx dv n ε λ ε0 x v i z1 sum.
have a1 : sink_coefficient 1 1 = 1 by rewrite /sink_coefficient /=; field.
have := @sink_linear_attention_pairs dx dv n 1 ε λ ε0 x v i z1; cbv zeta.
rewrite -/sum !sum_ord1 a1 Rabs_R1 [INR _]/= !Rmult_1_l.
have -> : Rabs (sinh ε / ε - 1) = sinh ε / ε - 1.
  apply: Rabs_pos_eq.
  have := bend_mono 1 ε0 (Rlt_le _ _ Rlt_0_1); rewrite bend_0 /sink_curve sum_ord1 a1 [INR _]/=.
  by rewrite !Rmult_1_l !Rmult_1_r; lra.
by [].
Qed.

(* Where all products are 1 and all values equal, the pair is off by the first term, nearly. *)
Lemma sink_least dx dv n ε λ (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) p i :
  0 < ε -> (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) ->
  (sinh ε / ε - 1 - INR n * exp (- λ) * (sinh (2 * ε) / ε)) * ∑_j ‖v j‖
  <= ‖run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum
      - comb (fun j => ⟨x i, x j⟩) v‖.
Proof.
move=> ε0 z1 vp; rewrite sk_output; set w := sink_weight _ _ _ _.
have -> : (comb w v - comb (fun j => ⟨x i, x j⟩) v = ∑_j (w j - 1)%R *: p)%V.
  apply: vec_eq => c; rewrite /vsub /comb /vscal -sum_sub -sum_scalr.
  by apply: eq_bigr => j _; rewrite z1 vp; ring.
rewrite vnorm_scal; apply: Rle_trans (Rmult_le_compat_r _ _ _ (vnorm_ge0 _) (Rle_abs _)).
rewrite (eq_bigr (fun=> ‖p‖)) => [|j _]; last by rewrite vp.
rewrite sum_const_ord -Rmult_assoc; apply: Rmult_le_compat_r; first exact: vnorm_ge0.
rewrite Rmult_comm -sum_const_ord; apply: sum_le => j _.
have a1 : sink_coefficient 1 1 = 1 by rewrite /sink_coefficient /=; field.
have bound l : Rabs ⟨x i, x l⟩ <= 1 by rewrite z1 Rabs_R1; exact: Rle_refl.
have := pair_leak λ j ε0 bound; rewrite /= z1 Rmult_1_r.
have -> : w j = exp λ / (2 * ε) * (beside_sink λ ε (fun l => ⟨x i, x l⟩) j
    - beside_sink λ (- ε) (fun l => ⟨x i, x l⟩) j).
  by rewrite /w /sink_weight sum_ord1 a1 [INR _]/= !Rmult_1_l.
by move: (_ * (_ - _)) => e le; split_Rabs; lra.
Qed.

(* Claim sink-linear-attention, part sharp-in-epsilon: as λ grows, the error tends to the first
   term where all products are 1 and all values equal. *)
Theorem sink_linear_attention_sharp : forall (dx dv n : nat) (ε : R) (x : 'I_n -> vec 'I_dx)
    (v : 'I_n -> vec 'I_dv) (p : vec 'I_dv) (i : 'I_n),
  0 < ε -> (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) ->
  let sum λ := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  forall δ, 0 < δ -> exists Λ, forall λ, Λ <= λ ->
  Rabs (‖sum λ - comb (fun j => ⟨x i, x j⟩) v‖ - (sinh ε / ε - 1) * ∑_j ‖v j‖) <= δ.
Proof.
move=> dx dv n ε x v p i ε0 z1 vp sum δ δ0; set S := ∑_j ‖v j‖.
have S0 : 0 <= S by apply: sum_ge0 => j _; exact: vnorm_ge0.
have s0 : 0 <= sinh (2 * ε) / ε.
  apply: Rmult_le_pos; last by left; exact: Rinv_0_lt_compat.
  by rewrite /sinh; have := exp_increasing (- (2 * ε)) (2 * ε) ltac:(lra); lra.
pose K := INR n * (sinh (2 * ε) / ε) * S.
have K0 : 0 <= K by apply: Rmult_le_pos S0; apply: Rmult_le_pos s0; exact: INR_ge0.
exists (ln ((K + 1) / δ)) => λ large.
have small : K * exp (- λ) <= δ.
  have q0 : 0 < (K + 1) / δ by apply: Rdiv_lt_0_compat; lra.
  have : exp (- λ) <= / ((K + 1) / δ).
    by rewrite -[X in _ <= / X]exp_ln // -exp_Ropp; apply: exp_mono; lra.
  move=> le; apply: Rle_trans (Rmult_le_compat_l _ _ _ K0 le) _.
  apply: (Rmult_le_reg_r (K + 1)); first by lra.
  by have -> : K * / ((K + 1) / δ) * (K + 1) = K * δ by [field; lra]; nra.
have bound l : Rabs ⟨x i, x l⟩ <= 1 by rewrite z1 Rabs_R1; exact: Rle_refl.
set e := ‖_‖; set b := sinh ε / ε - 1; set c := INR n * exp (- λ) * (sinh (2 * ε) / ε).
have up : e <= (b + c) * S := sink_linear_attention λ ε0 v bound.
have low : (b - c) * S <= e := sink_least λ ε0 z1 vp.
have E : c * S = K * exp (- λ) by rewrite /K /c; ring.
by apply: Rabs_le; split; lra.
Qed.

(* Claim sink-linear-attention, part norm: weights w that are off by E each. *)
Theorem sink_linear_attention_norm : forall (d : nat) (I : finType) (w z : I -> R)
    (v : I -> vec 'I_d) (E : R),
  (forall j, Rabs (w j - z j) <= E) -> ‖comb w v - comb z v‖ <= E * ∑_j ‖v j‖.
Proof.
move=> d I w z v E off.
have -> : (comb w v - comb z v = comb (fun j => (w j - z j)%R) v)%V.
  by apply: vec_eq => c; rewrite /vsub /comb -sum_sub; apply: eq_bigr => j _; ring.
apply: Rle_trans (vnorm_comb _ _) _; rewrite -sum_scal; apply: sum_le => j _.
by apply: Rmult_le_compat_r (off j); exact: vnorm_ge0.
Qed.

(* Where all products are 1, each token weighs sinh ε/ε/((1 + te^ε)(1 + te^−ε)), t = ne^−λ. *)
Lemma sink_lost n ε λ z (j : 'I_n) : 0 < ε -> (forall l, z l = 1) ->
  let t := INR n * exp (- λ) in
  sink_weight λ 1 ε z j = sinh ε / ε / ((1 + t * exp ε) * (1 + t * exp (- ε))).
Proof.
move=> ε0 z1 t; have a1 : sink_coefficient 1 1 = 1 by rewrite /sink_coefficient /=; field.
have S e : ∑_l exp (e * z l) = INR n * exp e.
  by rewrite -sum_const_ord; apply: eq_bigr => l _; rewrite z1 Rmult_1_r.
rewrite /sink_weight sum_ord1 a1 [INR _]/= !Rmult_1_l /beside_sink !S z1 !Rmult_1_r /t /sinh.
have n0 : 0 <= INR n := INR_ge0 n.
have u0 := exp_pos ε; have L0 := exp_pos λ; rewrite !exp_Ropp.
have nu := Rmult_le_pos _ _ n0 (Rlt_le _ _ u0).
have Lu := Rmult_lt_0_compat _ _ L0 u0.
by field; repeat split; lra.
Qed.

(* What is lost where all products are 1 and all values equal, over the second term. *)
Lemma sink_ratio dx dv n ε λ (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (p : vec 'I_dv) i :
  0 < ε -> (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) -> p <> vzero ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let lost := ‖(sinh ε / ε) *: comb (fun j => ⟨x i, x j⟩) v - sum‖ in
  let second := INR n * exp (- λ) * (sinh (2 * ε) / ε) * ∑_j ‖v j‖ in
  let t := INR n * exp (- λ) in let a := exp ε + exp (- ε) in
  lost / second = (1 + t / a) / (1 + a * t + t ^ 2).
Proof.
move=> ε0 z1 vp p0 sum lost second t a; have u0 := exp_pos ε; have v0 := exp_pos (- ε).
have uv : exp ε * exp (- ε) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
have u1 : 1 < exp ε by rewrite -exp_0; exact: exp_increasing.
have a0 : 0 < a by rewrite /a; lra.
have s0 : 0 < sinh ε / ε by apply: Rdiv_lt_0_compat => //; rewrite /sinh; nra.
have n0 : 0 < INR n by apply: INR_gt0; exact: leq_ltn_trans (ltn_ord i).
have t0 : 0 < t by apply: Rmult_lt_0_compat (exp_pos _).
have P0 : 0 < ‖p‖.
  case: (vnorm_ge0 p) => // P; case: p0; apply: sqnorm_eq0; rewrite -vnorm_sqr -P; ring.
pose q := 1 + a * t + t ^ 2; have q0 : 0 < q by rewrite /q; nra.
have qE : (1 + t * exp ε) * (1 + t * exp (- ε)) = q.
  by rewrite /q /a; transitivity (1 + (exp ε + exp (- ε)) * t + exp ε * exp (- ε) * t ^ 2);
     [ring | rewrite uv; ring].
have lostE : lost = INR n * ‖p‖ * (sinh ε / ε * ((a * t + t ^ 2) / q)).
  rewrite /lost /sum sk_output.
  have -> : ((sinh ε / ε) *: comb (fun j => ⟨x i, x j⟩) v
      - comb (sink_weight λ 1 ε (fun l => ⟨x i, x l⟩)) v
    = (INR n * (sinh ε / ε * ((a * t + t ^ 2) / q)))%R *: p)%V.
    apply: vec_eq => c; rewrite /vsub /vscal /comb.
    rewrite (eq_bigr (fun=> p c)) => [|j _]; last by rewrite z1 vp Rmult_1_l.
    rewrite [X in _ - X](eq_bigr (fun=> sinh ε / ε / q * p c)) => [|j _]; last first.
      by rewrite sink_lost // vp -/t qE.
    by rewrite !sum_const_ord /q; field; rewrite -/q; split; lra.
  rewrite vnorm_scal Rabs_pos_eq; first by ring.
  apply: Rmult_le_pos; first by lra.
  by apply: Rmult_le_pos; [lra | left; apply: Rdiv_lt_0_compat => //; nra].
have secondE : second = INR n * ‖p‖ * (t * (sinh ε / ε * a)).
  rewrite /second (eq_bigr (fun=> ‖p‖)) => [|j _]; last by rewrite vp.
  rewrite sum_const_ord -[INR n * exp (- λ)]/t.
  have -> : sinh (2 * ε) / ε = sinh ε / ε * a.
    have e2 : exp (2 * ε) = exp ε * exp ε by rewrite -exp_plus; congr exp; ring.
    have e3 : exp (- (2 * ε)) = exp (- ε) * exp (- ε) by rewrite -exp_plus; congr exp; ring.
    by rewrite /sinh e2 e3 /a; field; lra.
  by ring.
have -> : 1 + t / a = (a * t + t ^ 2) / (t * a) by field; lra.
rewrite lostE secondE -/q; move: (sinh ε / ε) s0 (a * t + t ^ 2) => σ σ0 w.
by field; repeat split; lra.
Qed.

(* Claim sink-linear-attention, part sharp-in-lambda: what is lost where all products are 1 and all
   values equal, over the second term of the bound. *)
Theorem sink_linear_attention_sharp_in_lambda : forall ε δ : R,
  0 < ε -> 0 < δ -> exists small, 0 < small /\
  forall (dx dv n : nat) (λ : R) (x : 'I_n -> vec 'I_dx) (v : 'I_n -> vec 'I_dv) (p : vec 'I_dv)
    (i : 'I_n),
  (forall j, ⟨x i, x j⟩ = 1) -> (forall j, v j = p) -> p <> vzero ->
  INR n * exp (- λ) <= small ->
  let sum := run full [:: sk_block dx dv 1 ε λ] (sk_prompt x v) (lift ord0 i) Sk.sum in
  let lost := ‖(sinh ε / ε) *: comb (fun j => ⟨x i, x j⟩) v - sum‖ in
  let second := INR n * exp (- λ) * (sinh (2 * ε) / ε) * ∑_j ‖v j‖ in
  Rabs (lost / second - 1) <= δ.
Proof.
move=> ε δ ε0 δ0; have u0 := exp_pos ε; have v0 := exp_pos (- ε).
have uv : exp ε * exp (- ε) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
set a := exp ε + exp (- ε); have a2 : 2 <= a.
  have := Rmult_le_pos _ _ (Rlt_le _ _ v0) (pow2_ge_0 (exp ε - 1)).
  have -> : exp (- ε) * (exp ε - 1) ^ 2
    = exp ε * exp (- ε) * exp ε - 2 * (exp ε * exp (- ε)) + exp (- ε) by ring.
  by rewrite uv /a; lra.
exists (Rmin 1 (δ / (a + 1))); split.
  by apply: Rmin_glb_lt; [lra | apply: Rdiv_lt_0_compat; lra].
move=> dx dv n λ x v p i z1 vp p0 le sum lost second.
rewrite /lost /sum /second (sink_ratio λ ε0 z1 vp p0) -/a.
have n0 : 0 < INR n by apply: INR_gt0; exact: leq_ltn_trans (ltn_ord i).
set t := INR n * exp (- λ) in le *; have t0 : 0 < t by apply: Rmult_lt_0_compat (exp_pos _).
have t1 := Rle_trans _ _ _ le (Rmin_l _ _); have tδ := Rle_trans _ _ _ le (Rmin_r _ _).
set q := 1 + a * t + t ^ 2; have q0 : 0 < q by rewrite /q; nra.
have -> : (1 + t / a) / q - 1 = - ((t * (a + t - / a)) / q) by rewrite /q; field; rewrite -/q; lra.
have ia : 0 < / a < 1.
  split; first by apply: Rinv_0_lt_compat; lra.
  by rewrite -Rinv_1; apply: Rinv_lt_contravar; lra.
rewrite Rabs_Ropp Rabs_pos_eq.
  apply: (Rmult_le_reg_r q) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; last by lra.
  have tE : δ / (a + 1) * (a + 1) = δ by field; lra.
  have : t * (a + t - / a) <= δ by rewrite -tE; apply: Rmult_le_compat; lra.
  by have : 0 <= δ * (a * t + t ^ 2) by [apply: Rmult_le_pos; [lra | nra]]; rewrite /q; lra.
by left; apply: Rdiv_lt_0_compat => //; apply: Rmult_lt_0_compat; lra.
Qed.
