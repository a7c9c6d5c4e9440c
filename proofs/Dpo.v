(* Chapter 14, What else this says: direct preference optimisation needs no row of squares. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings LogSumExp AlignmentTask GradientStep Weights.
From Icalign Require Import Transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* The density of N(W x, I/2) at y. *)
Definition gaussian {m n} (W : mat m n) (x : vec 'I_n) (y : vec 'I_m) : R :=
  exp (- ‖y - W *v x‖²) / sqrt PI ^ m.

(* The implicit reward: β log(π/π_ref), of policies with the means W x and W_ref x. *)
Definition implicit_reward {m n} (β : R) (W W_ref : mat m n) (x : vec 'I_n) (y : vec 'I_m) : R :=
  β * ln (gaussian W x y / gaussian W_ref x y).

(* Claim dpo-needs-no-square, part bilinear. *)
Theorem dpo_needs_no_square : forall (m n : nat) (β : R) (W W_ref : mat m n) (x : vec 'I_n),
  exists c, forall y : vec 'I_m,
  implicit_reward β W W_ref x y = 2 * β * ⟨(W - W_ref) *v x, y⟩ + c.
Proof.
move=> m n β W V x; exists (β * (‖V *v x‖² - ‖W *v x‖²)) => y.
have p0 : 0 < sqrt PI ^ m by apply: pow_lt; apply: sqrt_lt_R0; exact: PI_RGT_0.
have e0 (U : mat m n) := exp_pos (- ‖y - U *v x‖²).
rewrite /implicit_reward.
have -> : gaussian W x y / gaussian V x y = exp (- ‖y - W *v x‖²) / exp (- ‖y - V *v x‖²).
  by rewrite /gaussian; field; split; apply: Rgt_not_eq.
rewrite ln_div // !ln_exp !sqnorm_sub mulmv_sub dot_subl !(dotC y).
by ring.
Qed.

(* ── The head ───────────────────────────────────────────────────────────────────────────────── *)

Module Dp.
Inductive name := x | y | r | one | flag | top | u.
Inductive key := shaped | flagged.
End Dp.

Section Head.
Variables dx dy : nat.

Definition dp_width (a : Dp.name) : nat :=
  match a with Dp.x => dx | Dp.y | Dp.u => dy | _ => 1 end.

(* The rows of chapter 5, without that of squares. *)
Definition dp_stream : stream.
Proof.
refine {| row := Dp.name; width := dp_width;
  rows := [:: Dp.x; Dp.y; Dp.r; Dp.one; Dp.flag; Dp.top; Dp.u] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition dp_keys : stream.
Proof.
refine {| row := Dp.key; width := fun k => if k is Dp.shaped then dy else 1%N;
  rows := [:: Dp.shaped; Dp.flagged] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* Logit 2β⟨(W − W_ref) x, y_j⟩ − C·1·flag_j; writes −2ηβ y_j to u. *)
Definition dp_head (W W_ref : mat dy dx) (β η C : R) : head dp_stream :=
  @Head dp_stream dp_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Dp.shaped, Dp.x => (fun c d => 2 * β * (W (c, d) - W_ref (c, d)))
    | Dp.flagged, Dp.one => identity (- C) | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Dp.shaped, Dp.y => identity 1 | Dp.flagged, Dp.flag => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Dp.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Dp.u => identity (- (2 * η * β)) | _ => zero end).

End Head.

(* Claim dpo-needs-no-square, part head: for any number and content of tokens. *)
Theorem dpo_head : forall (dx dy : nat) (W W_ref : mat dy dx) (β η C : R)
    (T : finType) (X : T -> token (dp_stream dx dy)) (i j : T),
  X i Dp.one ord0 = 1 ->
  logit (dp_head W W_ref β η C) X i j
  = 2 * β * ⟨(W - W_ref) *v X i Dp.x, X j Dp.y⟩ - C * X j Dp.flag ord0.
Proof.
move=> dx dy W V β η C T X i j one; rewrite /logit; blocks; rewrite one.
rewrite (eq_bigr (fun c => 2 * β * (((W - V) *v X i Dp.x)%V c * X j Dp.y c))) => [|c _].
  rewrite sum_scal -[X in 2 * β * X + _]/(⟨(W - V) *v X i Dp.x, X j Dp.y⟩).
  by set s := dot _ _; ring.
blocks; rewrite (eq_bigr (fun d => 2 * β * ((W - V)%V (c, d) * X i Dp.x d))) => [|d _].
  rewrite sum_scal -[X in 2 * β * X]/(((W - V) *v X i Dp.x)%V c).
  by set s := mulmv _ _ _; ring.
exact: Rmult_assoc.
Qed.

(* Claim dpo-needs-no-square, part head: while nothing is flagged, the weights are softmax of the
   implicit rewards. *)
Theorem dpo_head_weights : forall (dx dy : nat) (W W_ref : mat dy dx) (β η C : R)
    (T : finType) (X : T -> token (dp_stream dx dy)) (i j : T),
  X i Dp.one ord0 = 1 -> (forall l, X l Dp.flag ord0 = 0) ->
  attention full (dp_head W W_ref β η C) X i j
  = softmax (fun l => implicit_reward β W W_ref (X i Dp.x) (X l Dp.y)) j.
Proof.
move=> dx dy W V β η C T X i j one live.
have [c E] := dpo_needs_no_square β W V (X i Dp.x).
rewrite (eq_softmax (z' := fun l => logit (dp_head W V β η C) X i l + c)) => [|l].
  by rewrite softmax_shift.
by rewrite E dpo_head // live; ring.
Qed.

(* ── The gradient ───────────────────────────────────────────────────────────────────────────── *)

(* L = −log P_PL of the implicit rewards, and its tail means. *)
Definition dpo_loss {m n N} β (W W_ref : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) : R := - ln (P_PL (fun j => implicit_reward β W W_ref x (y j)) τ).
Definition dpo_tail_mean {m n N} β (W W_ref : mat m n) (x : vec 'I_n) (y : 'I_N -> vec 'I_m)
    (τ : {perm 'I_N}) (k : 'I_N) : vec 'I_m :=
  comb (beta (fun j => implicit_reward β W W_ref x (y j)) τ k) (fun j => y (τ j)).

Lemma last_mean m N (s : 'I_N -> R) (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (k : 'I_N) :
  k.+1 = N -> comb (beta s τ k) (fun j => y (τ j)) = y (τ k).
Proof.
move=> kN; apply: vec_eq => a; rewrite /comb (bigD1 k) //= big1.
  by rewrite /beta leqnn pl_last_term_factor //; ring.
move=> j jk; rewrite /beta; case: ifP => [kj|_]; last by ring.
by move: jk; rewrite -val_eqE /= eqn_leq kj andbT -ltnS kN ltn_ord.
Qed.

(* Claim dpo-needs-no-square, part gradient: in every direction, at every point. *)
Theorem dpo_gradient : forall (m n N : nat) (β : R) (W_ref : mat m n) (x : vec 'I_n)
    (y : 'I_N -> vec 'I_m) (τ : {perm 'I_N}) (W V : mat m n),
  let μ := dpo_tail_mean β W W_ref x y τ in
  let gradient := ((2 * β) *: outer (∑_(k < N | (k.+1 < N)%N) (μ k - y (τ k))) x)%V in
  is_derive (fun t => dpo_loss β (W + t *: V) W_ref x y τ) 0 ⟨gradient, V⟩.
Proof.
move=> m n N β W' x y τ W V μ gradient.
pose z (k : 'I_N) := 2 * β * ⟨(W - W') *v x, y (τ k)⟩.
pose c (k : 'I_N) := 2 * β * ⟨V *v x, y (τ k)⟩.
apply: (is_derive_ext (fun t => ∑_k (lse (tail k) (fun j => z j + t * c j) - (z k + t * c k)))).
  move=> t; rewrite -placed_lse /dpo_loss; have [a E] := dpo_needs_no_square β (W + t *: V)%V W' x.
  rewrite -(pl_shift _ τ (- a)); congr (- ln _); apply: eq_placed => k; rewrite E /z /c.
  rewrite !mulmv_sub mulmv_add mulmv_scal !dot_subl dot_addl dot_scall; ring.
have -> : ⟨gradient, V⟩
    = ∑_k (wmean (gibbs (tail k) (fun j => z j + 0 * c j)) c - c k).
  rewrite /gradient dot_scall dot_outer dotC dot_vsumr -sum_scal big_mkcond.
  apply: eq_bigr => k _.
  have [a E] := dpo_needs_no_square β W W' x.
  have -> : wmean (gibbs (tail k) (fun j => z j + 0 * c j)) c = 2 * β * ⟨V *v x, μ k⟩.
    rewrite /μ /dpo_tail_mean dot_combr -sum_scal; apply: eq_bigr => j _.
    rewrite beta_gibbs -(gibbs_shift (fun j => z j + 0 * c j) a j (tail_self k)) /c.
    suff -> : gibbs (tail k) (fun i => z i + 0 * c i + a) j
        = gibbs (tail k) (fun i => implicit_reward β W W' x (y (τ i))) j by ring.
    have F i : z i + 0 * c i + a = implicit_reward β W W' x (y (τ i)) by rewrite E /z; ring.
    by rewrite /gibbs F; case: ifP => // _; congr (_ / _); apply: eq_bigr => i _; rewrite F.
  case: ifP => [_|/negbT]; first by rewrite dot_subr /c; ring.
  rewrite -leqNgt => Nk; rewrite /μ /dpo_tail_mean last_mean /c; first by ring.
  by apply/eqP; rewrite eqn_leq Nk ltn_ord.
apply: is_derive_sum => k _.
apply: (is_derive_minus (fun u => lse (tail k) (fun j => z j + u * c j))).
  exact: (is_derive_lse _ _ (tail_self k)).
by auto_derive => //; rewrite Rmult_1_l.
Qed.
