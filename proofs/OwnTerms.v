(* Chapter 8, Multiple queries II: a filtered head sees its own query, but for some strangers. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask Weights Spacing.
From Icalign Require Import Transformer Block BlockErrors Elsewhere.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The heads of chapter 5 with a filter ───────────────────────────────────────────────────── *)

Module Ow.
Inductive winner_key := query | reward.
Inductive field_key := asker | shaped | squared.
End Ow.

Section Heads.
Variables dx dy : nat.

Definition ow_winner_keys : stream.
Proof.
refine {| row := Ow.winner_key; width := fun k => if k is Ow.query then dx else 1%N;
  rows := [:: Ow.query; Ow.reward] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition ow_field_keys : stream.
Proof.
refine {| row := Ow.field_key;
  width := fun k => match k with Ow.asker => dx | Ow.shaped => dy | Ow.squared => 1%N end;
  rows := [:: Ow.asker; Ow.shaped; Ow.squared] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Variables (W : mat dy dx) (η γ1 γ2 γβ Δ spread C : R).

(* Logit γ₁⟨x_i, x_j⟩ + γ₂·1·(r_j − 2(spread+Δ) flag_j). *)
Definition ow_winner : head (el_stream dx dy) :=
  @Head (el_stream dx dy) ow_winner_keys (el_winner_values dy)
  (* query *)  (fun k b => match k, b with
    | Ow.query, El.x => identity γ1 | Ow.reward, El.one => identity γ2 | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Ow.query, El.x => identity 1 | Ow.reward, El.r => identity 1
    | Ow.reward, El.flag => identity (- (2 * (spread + Δ))) | _, _ => zero end)
  (* value *)  (W_V (winner_head dx dy η γ2 Δ spread))
  (* output *) (W_O (winner_head dx dy η γ2 Δ spread)).

(* Logit γ_β⟨x_i, x_j⟩ + 2⟨W x_i, y_j⟩ − 1·(sq_j + C flag_j). *)
Definition ow_field : head (el_stream dx dy) :=
  @Head (el_stream dx dy) ow_field_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Ow.asker, El.x => identity γβ | Ow.shaped, El.x => (fun c d => 2 * W (c, d))
    | Ow.squared, El.one => identity (- 1) | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Ow.asker, El.x => identity 1 | Ow.shaped, El.y => identity 1
    | Ow.squared, El.sq => identity 1 | Ow.squared, El.flag => identity C | _, _ => zero end)
  (* value *)  (W_V (field_head W η C))
  (* output *) (W_O (field_head W η C)).

End Heads.

(* M queries: the tokens of query a with the flags f a, and what they have accumulated. *)
Definition ow_state {dx dy M N} (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r f : 'I_M -> 'I_N -> R) (u : 'I_M -> vec 'I_dy) : 'I_M * 'I_N -> token (el_stream dx dy) :=
  fun t => el_state (x t.1) (y t.1) (r t.1) (f t.1) (u t.1) t.2.

Section Logits.
Variables (dx dy M N : nat) (W : mat dy dx) (η γ1 γ2 γβ Δ spread C : R).
Variables (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r f : 'I_M -> 'I_N -> R).
Variable u : 'I_M -> vec 'I_dy.
Let X := ow_state x y r f u.

Lemma ow_winner_logit a b i j : logit (ow_winner dx dy η γ1 γ2 Δ spread) X (a, i) (b, j)
  = γ1 * ⟨x a, x b⟩ + (γ2 * r b j - 2 * γ2 * (spread + Δ) * f b j).
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => γ1 * (x a c * x b c))) => [|c _]; last by blocks; ring.
by rewrite sum_scal -[X in γ1 * X + _]/(⟨x a, x b⟩); set s := dot _ _; ring.
Qed.

Lemma ow_field_logit a b i j : logit (ow_field W η γβ C) X (a, i) (b, j)
  = γβ * ⟨x a, x b⟩ + (reduced W (x a) (y b j) - C * f b j).
Proof.
rewrite /logit; blocks.
rewrite (eq_bigr (fun c => γβ * (x a c * x b c))) => [|c _]; last by blocks; ring.
rewrite [X in _ + (X + _)](eq_bigr (fun c => 2 * ((W *v x a)%V c * y b j c)));
  last first => [c _|].
  blocks; rewrite (eq_bigr (fun d => 2 * (W (c, d) * x a d))) => [|d _]; last exact: Rmult_assoc.
  by rewrite sum_scal -/((W *v x a)%V c); set w := mulmv _ _ _; ring.
rewrite !sum_scal -[X in γβ * X + _]/(⟨x a, x b⟩) -[X in _ + (2 * X + _)]/(⟨W *v x a, y b j⟩).
by rewrite /reduced; set s := dot _ _; set t := dot _ _; ring.
Qed.

End Logits.

(* ── Own tokens and strangers ───────────────────────────────────────────────────────────────── *)

Section Mixture.
Variables (M N d : nat) (g : 'I_M -> R) (z : 'I_M -> 'I_N -> R) (y : 'I_M -> 'I_N -> vec 'I_d).
Variables (a : 'I_M) (w : 'I_N).
Let logits (t : 'I_M * 'I_N) := g t.1 + z t.1 t.2.

(* A mean over all tokens, against that over the tokens of query a. *)
Lemma own_mean D0 χ : (forall b c i j, ‖y b i - y c j‖ <= D0) ->
  ∑_(b | b != a) ∑_j exp (g b + z b j) <= χ * ∑_j exp (g a + z a j) ->
  ‖comb (softmax logits) (fun t => y t.1 t.2) - comb (softmax (z a)) (y a)‖ <= D0 * share χ.
Proof.
move=> yD few; pose P (t : 'I_M * 'I_N) := t.1 == a.
have whole (F : 'I_M * 'I_N -> R) : ∑_t F t = ∑_b ∑_j F (b, j).
  by rewrite sum_pair; apply: eq_bigr => [[b j]].
have part (F : 'I_M * 'I_N -> R) : ∑_(t | P t) F t = ∑_j F (a, j).
  rewrite big_mkcond whole (sum_pick a) [X in _ + X]big1 => [|b /negbTE ba].
    by rewrite Monoid.mulm1; apply: eq_bigr => j _; rewrite /P eqxx.
  by rewrite big1 // => j _; rewrite /P /= ba.
have rest (F : 'I_M * 'I_N -> R) : ∑_(t | ~~ P t) F t = ∑_(b | b != a) ∑_j F (b, j).
  apply: (Rplus_eq_reg_l (∑_j F (a, j))).
  rewrite -[RHS](sum_pick a (fun b => ∑_j F (b, j))) -whole (sum_ID P predT).
  by rewrite -part.
have -> : comb (softmax (z a)) (y a) = comb (softmax_on P logits) (fun t => y t.1 t.2).
  apply: vec_eq => c; rewrite /comb /softmax_on.
  rewrite [RHS](eq_bigr (fun t => if P t then
      exp (logits t) / ∑_(l | P l) exp (logits l) * y t.1 t.2 c else 0)); last first.
    by move=> t _; case: (P t); rewrite // /Rdiv !Rmult_0_l.
  rewrite sum_if !part; apply: eq_bigr => j _; congr (_ * _).
  rewrite -(softmax_shift (z a) (g a)) /softmax /logits /= (Rplus_comm (g a)); congr (_ / _).
  by apply: eq_bigr => l _; rewrite Rplus_comm.
apply: (mean_to_part (P := P) (w := (a, w))) => [|t s|]; [exact: eqxx | exact: yD |].
by rewrite rest part.
Qed.
End Mixture.

(* ── The strangers' weight ──────────────────────────────────────────────────────────────────── *)

(* χ of the head that selects, in block k (counted from 0), and of the head that weighs. *)
Definition strangers (γ1 γ2 Δ spread ρ : R) (M N k : nat) : R :=
  let ξ := exp (- γ2 * Δ) in
  (INR M - 1) * ((1 - ξ ^ N) / (1 - ξ))
  * exp (γ2 * (spread - INR (N - k.+1) * Δ) - γ1 * (1 - ρ)).
Definition field_strangers (γβ spread_Z ρ : R) (M N k : nat) : R :=
  (INR M - 1) * INR N / INR (N - k) * exp (spread_Z - γβ * (1 - ρ)).

Lemma sum_but M (a : 'I_M) c : ∑_(b | b != a) c = (INR M - 1) * c.
Proof. by have := sum_pick a (fun=> c); rewrite sum_const_ord => E; lra. Qed.

(* Claim mq-own-term, part own-term: the head that selects, in block k of query a, against the head
   of chapter 5 on the tokens of query a alone. *)
Theorem mq_own_term_winner : forall (dx dy M N : nat) (η γ1 γ2 Δ ρ low spread D0 : R),
  0 <= γ1 -> 0 < γ2 -> 0 < Δ ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r f : 'I_M -> 'I_N -> R)
    (u : 'I_M -> vec 'I_dy) (τ : {perm 'I_N}) (a : 'I_M) (i k : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b, spaced Δ (r b)) -> ranks (r a) τ ->
  (forall b j, low <= r b j <= low + spread) -> (forall b c i j, ‖y b i - y c j‖ <= D0) ->
  f a = flags τ k -> (forall b j, 0 <= f b j) ->
  let A := attention full (ow_winner dx dy η γ1 γ2 Δ spread) (ow_state x y r f u) (a, i) in
  let own := attention full (winner_head dx dy η γ2 Δ spread)
               (el_state (x a) (y a) (r a) (f a) (u a)) i in
  ‖comb A (fun t => y t.1 t.2) - comb own (y a)‖
  <= D0 * share (strangers γ1 γ2 Δ spread ρ M N k).
Proof.
move=> dx dy M N η γ1 γ2 Δ ρ low spread D0 γ10 γ20 Δ0 x y r f u τ a i k.
move=> x1 overlap gaps ranked range dist fa f0; cbv zeta.
have mask : 0 <= spread + Δ by have := range a k; lra.
pose g b := γ1 * ⟨x a, x b⟩.
pose z b j := γ2 * r b j - 2 * γ2 * (spread + Δ) * f b j.
have -> : comb (attention full (ow_winner dx dy η γ1 γ2 Δ spread) (ow_state x y r f u) (a, i))
    (fun t => y t.1 t.2) = comb (softmax (fun t => g t.1 + z t.1 t.2)) (fun t => y t.1 t.2).
  apply: vec_eq => c; apply: eq_bigr => t _; congr (_ * _); apply: eq_softmax => [[b j]].
  exact: ow_winner_logit.
have -> : comb (attention full (winner_head dx dy η γ2 Δ spread)
    (el_state (x a) (y a) (r a) (f a) (u a)) i) (y a) = comb (softmax (z a)) (y a).
  by apply: vec_eq => c; apply: eq_bigr => j _; rewrite el_winner_attention.
apply: (own_mean g z y a k dist).
have best : low + INR (N - k.+1) * Δ <= r a (τ k).
  by apply: (ranks_low ranked (gaps a)) => j; case: (range a j).
set top := low + _ in best.
have ga : g a = γ1 by rewrite /g -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1; ring.
have own : exp (γ1 + γ2 * top) <= ∑_j exp (g a + z a j).
  apply: Rle_trans (_ : exp (g a + z a (τ k)) <= _).
    apply: exp_mono; rewrite ga /z fa flags_place ltnn.
    by have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ γ20) best; lra.
  apply: (sum_ge_term (P := predT) (F := fun j => exp (g a + z a j))) => // j _.
  by left; exact: exp_pos.
set ξ := exp (- γ2 * Δ).
have ξ1 : 0 < ξ < 1 by split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; nra].
have few b : b != a -> ∑_j exp (g b + z b j)
    <= exp (γ1 * ρ + γ2 * (low + spread)) * ((1 - ξ ^ N) / (1 - ξ)).
  move=> ba; have [τb ranked_b] := ranking_exists (spaced_distinct Δ0 (gaps b)).
  have -> : (1 - ξ ^ N) / (1 - ξ) = ∑_(l < N) ξ ^ l by rewrite -sum_geometric; field; lra.
  rewrite (sum_reindex predT _ (@perm_inj _ τb)) -sum_scal; apply: sum_le => l _.
  have -> : ξ ^ l = exp (- (INR l * (γ2 * Δ))) by rewrite exp_INR; congr (exp _ ^ _); ring.
  rewrite -exp_plus; apply: exp_mono; rewrite /g /z.
  have high j : r b j <= low + spread by case: (range b j).
  have := ranks_high ranked_b (gaps b) l high => place.
  have p1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ γ20) place.
  have p2 := Rmult_le_compat_l _ _ _ γ10 (overlap b ba).
  have p3 : 0 <= 2 * γ2 * (spread + Δ) * f b (τb l) by apply: Rmult_le_pos (f0 _ _); nra.
  by lra.
set q := exp (γ1 * ρ + γ2 * (low + spread)) * ((1 - ξ ^ N) / (1 - ξ)) in few.
apply: (Rle_trans _ ((INR M - 1) * q)).
  by rewrite -(sum_but a); apply: sum_le.
have -> : (INR M - 1) * q = strangers γ1 γ2 Δ spread ρ M N k * exp (γ1 + γ2 * top).
  rewrite /strangers -/ξ /q /top; set s := (1 - ξ ^ N) / (1 - ξ).
  rewrite [RHS]Rmult_assoc -exp_plus [RHS]Rmult_assoc (Rmult_comm s).
  by congr (_ * (exp _ * _)); ring.
apply: Rmult_le_compat_l own; rewrite /strangers -/ξ.
apply: Rmult_le_pos; last by left; exact: exp_pos.
apply: Rmult_le_pos.
  by have := INR_le (leq_ltn_trans (leq0n a) (ltn_ord a)); rewrite [INR 1]/=; lra.
apply: Rmult_le_pos; last by left; apply: Rinv_0_lt_compat; lra.
have [x0 x1'] := ξ1; have := pow_incr ξ 1 N (conj (Rlt_le _ _ x0) (Rlt_le _ _ x1')).
by rewrite pow1; lra.
Qed.

(* Claim mq-own-term, part own-term: the head that weighs. *)
Theorem mq_own_term_field : forall (dx dy M N : nat) (W : mat dy dx)
    (η γβ ρ spread_Z low_Z C D0 : R),
  0 <= γβ -> 0 <= C ->
  forall (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy) (r f : 'I_M -> 'I_N -> R)
    (u : 'I_M -> vec 'I_dy) (τ : {perm 'I_N}) (a : 'I_M) (i k : 'I_N),
  ‖x a‖ = 1 -> (forall b : 'I_M, b != a -> ⟨x a, x b⟩ <= ρ) ->
  (forall b j, low_Z <= reduced W (x a) (y b j) <= low_Z + spread_Z) ->
  (forall b c i j, ‖y b i - y c j‖ <= D0) ->
  f a = flags τ k -> (forall b j, 0 <= f b j) ->
  let A := attention full (ow_field W η γβ C) (ow_state x y r f u) (a, i) in
  let own := attention full (field_head W η C) (el_state (x a) (y a) (r a) (f a) (u a)) i in
  ‖comb A (fun t => y t.1 t.2) - comb own (y a)‖
  <= D0 * share (field_strangers γβ spread_Z ρ M N k).
Proof.
move=> dx dy M N W η γβ ρ spread_Z low_Z C D0 γβ0 C0 x y r f u τ a i k.
move=> x1 overlap range dist fa f0; cbv zeta.
pose g b := γβ * ⟨x a, x b⟩.
pose z b j := reduced W (x a) (y b j) - C * f b j.
have -> : comb (attention full (ow_field W η γβ C) (ow_state x y r f u) (a, i))
    (fun t => y t.1 t.2) = comb (softmax (fun t => g t.1 + z t.1 t.2)) (fun t => y t.1 t.2).
  apply: vec_eq => c; apply: eq_bigr => t _; congr (_ * _); apply: eq_softmax => [[b j]].
  exact: ow_field_logit.
have -> : comb (attention full (field_head W η C)
    (el_state (x a) (y a) (r a) (f a) (u a)) i) (y a) = comb (softmax (z a)) (y a).
  by apply: vec_eq => c; apply: eq_bigr => j _; rewrite el_field_attention.
apply: (own_mean g z y a k dist).
have ga : g a = γβ by rewrite /g -[⟨x a, x a⟩]/(‖x a‖²) -vnorm_sqr x1; ring.
have Nk : 0 < INR (N - k) by apply: INR_gt0; rewrite subn_gt0.
have own : INR (N - k) * exp (γβ + low_Z) <= ∑_j exp (g a + z a j).
  pose L : pred 'I_N := fun j => (k <= (τ^-1%g j : 'I_N))%N.
  rewrite -(sum_live τ k) -[X in X <= _]/(∑_(j | L j) exp (γβ + low_Z)).
  rewrite [X in _ <= X](sum_ID L predT) /=; set rest := ∑_(j | ~~ _) _.
  have rest0 : 0 <= rest by apply: sum_ge0 => j _; left; exact: exp_pos.
  rewrite -[X in X <= _]Rplus_0_r; apply: Rplus_le_compat => //.
  apply: sum_le => j lj; apply: exp_mono; rewrite ga /z fa /flags.
  have -> : ((τ^-1%g j : 'I_N) < k)%N = false by rewrite ltnNge; apply/negbF; exact: lj.
  by have := range a j; lra.
have few b : b != a -> ∑_j exp (g b + z b j) <= INR N * exp (γβ * ρ + (low_Z + spread_Z)).
  move=> ba; rewrite -sum_const_ord; apply: sum_le => j _; apply: exp_mono; rewrite /g /z.
  have := Rmult_le_compat_l _ _ _ γβ0 (overlap b ba); have := Rmult_le_pos _ _ C0 (f0 b j).
  by have := range b j; lra.
apply: (Rle_trans _ ((INR M - 1) * (INR N * exp (γβ * ρ + (low_Z + spread_Z))))).
  by rewrite -(sum_but a); apply: sum_le.
have -> : (INR M - 1) * (INR N * exp (γβ * ρ + (low_Z + spread_Z)))
    = field_strangers γβ spread_Z ρ M N k * (INR (N - k) * exp (γβ + low_Z)).
  rewrite /field_strangers (_ : γβ * ρ + (low_Z + spread_Z)
    = (spread_Z - γβ * (1 - ρ)) + (γβ + low_Z)); last by ring.
  by rewrite exp_plus; field; lra.
apply: Rmult_le_compat_l own; rewrite /field_strangers.
apply: Rmult_le_pos; last by left; exact: exp_pos.
apply: Rmult_le_pos; last by left; exact: Rinv_0_lt_compat.
apply: Rmult_le_pos; last exact: INR_ge0.
by have := INR_le (leq_ltn_trans (leq0n a) (ltn_ord a)); rewrite [INR 1]/=; lra.
Qed.

(* Claim mq-own-term, part norm: two means of responses, of all queries or of one, under any
   weights. *)
Theorem mq_own_term_norm : forall (d : nat) (I J : finType) (y : I -> vec 'I_d) (z : J -> vec 'I_d)
    (A : I -> R) (B : J -> R) (D0 : R),
  weights A -> weights B -> (forall i j, ‖y i - z j‖ <= D0) -> ‖comb A y - comb B z‖ <= D0.
Proof.
move=> d I J y z A B D0 wA wB dist; apply: point_to_mean_of wB _ => j.
rewrite vnorm_minus; apply: point_to_mean_of wA _ => i; rewrite vnorm_minus; exact: dist.
Qed.
