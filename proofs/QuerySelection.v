(* Chapter 7, Multiple queries I: selection. One prompt holds the responses to M queries, and every
   token is to find the best response to its own. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors Rankings Weights Spacing Transformer Selection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The head ───────────────────────────────────────────────────────────────────────────────── *)

Module Mq.
Inductive key := query | reward.
End Mq.

Section Head.
Variables dx dy : nat.

Definition mq_keys : stream.
Proof.
refine {| row := Mq.key; width := fun k => if k is Mq.query then dx else 1%N;
  rows := [:: Mq.query; Mq.reward] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* On the rows of Lemma C.2: query [γ₁ x; γ₂·1], key [x; r], value y, written to best. *)
Definition mq_head (γ1 γ2 : R) : head (sel_stream dx dy) :=
  @Head (sel_stream dx dy) mq_keys (one_row dy)
  (* query *)  (fun k b => match k, b with
    | Mq.query, Sel.x => identity γ1 | Mq.reward, Sel.one => identity γ2 | _, _ => zero end)
  (* key *)    (fun k b => match k, b with
    | Mq.query, Sel.x => identity 1 | Mq.reward, Sel.r => identity 1 | _, _ => zero end)
  (* value *)  (fun _ b => match b with Sel.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Sel.best => identity 1 | _ => zero end).

(* Token (a, i) is [x^a; y_i^a; r_i^a; 1; 0]. *)
Definition mq_prompt {M N} (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
    (r : 'I_M -> 'I_N -> R) : 'I_M * 'I_N -> token (sel_stream dx dy) :=
  fun t a => match a with
  | Sel.x => x t.1 | Sel.y => y t.1 t.2 | Sel.r => fun _ => r t.1 t.2 | Sel.one => fun _ => 1
  | Sel.best => fun _ => 0 end.

End Head.

(* The logit, and the weight, of the token t of the prompt at its token s. *)
Definition mq_logit {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
  (r : 'I_M -> 'I_N -> R) (s t : 'I_M * 'I_N) : R :=
  logit (mq_head dx dy γ1 γ2) (mq_prompt x y r) s t.
Definition mq_attention {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx) (y : 'I_M -> 'I_N -> vec 'I_dy)
  (r : 'I_M -> 'I_N -> R) (s t : 'I_M * 'I_N) : R :=
  attention full (mq_head dx dy γ1 γ2) (mq_prompt x y r) s t.

(* Claim mq-logits, part logits; paper: F.1. For any number and content of tokens. *)
Theorem mq_logits : forall (dx dy : nat) (γ1 γ2 : R) (T : finType)
    (X : T -> token (sel_stream dx dy)) (i j : T),
  X i Sel.one ord0 = 1 ->
  logit (mq_head dx dy γ1 γ2) X i j = γ1 * ⟨X i Sel.x, X j Sel.x⟩ + γ2 * X j Sel.r ord0.
Proof.
move=> dx dy γ1 γ2 T X i j one; rewrite /logit; blocks; rewrite one.
rewrite (eq_bigr (fun c => γ1 * (X i Sel.x c * X j Sel.x c))) => [|c _].
  rewrite sum_scal -[X in γ1 * X + _]/(⟨X i Sel.x, X j Sel.x⟩); set s := dot _ _; ring.
by blocks; ring.
Qed.

(* Claim mq-logits, part logits: of the response j to query b, at the response i to query a. *)
Theorem mq_logits_prompt : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (i j : 'I_N),
  mq_logit γ1 γ2 x y r (a, i) (b, j) = γ1 * ⟨x a, x b⟩ + γ2 * r b j.
Proof. by move=> *; rewrite /mq_logit mq_logits. Qed.

(* ── The printed chain, and the critical ratio ──────────────────────────────────────────────── *)

(* Distinct unit vectors have an inner product below one. *)
Lemma unit_distinct d (u v : vec 'I_d) : ‖u‖ = 1 -> ‖v‖ = 1 -> u <> v -> ⟨u, v⟩ < 1.
Proof.
move=> u1 v1 uv; have : 0 < ‖u - v‖².
  apply: sqnorm_gt0 => e; apply: uv; apply: vec_eq => c.
  by have := f_equal (fun w => w c) e; rewrite /vsub /vzero; lra.
by rewrite sqnorm_sub -!vnorm_sqr u1 v1; lra.
Qed.

(* One key beats another: a linear inequality. *)
Lemma ratio_iff γ1 γ2 n g (ra rb : R) : 0 < γ2 -> g < n ->
  γ1 * g + γ2 * rb < γ1 * n + γ2 * ra <-> (rb - ra) / (n - g) < γ1 / γ2.
Proof.
move=> γ0 gn; have n0 : 0 < n - g by lra.
have E : γ1 * n + γ2 * ra - (γ1 * g + γ2 * rb)
    = (γ1 / γ2 - (rb - ra) / (n - g)) * (γ2 * (n - g)) by field; lra.
have P : 0 < γ2 * (n - g) by exact: Rmult_lt_0_compat.
split=> [lt|/Rlt_Rminus lt]; last by have := Rmult_lt_0_compat _ _ lt P; lra.
apply: Rminus_gt_0_lt; apply: (Rmult_lt_reg_r (γ2 * (n - g))) => //; lra.
Qed.

Section Ratio.
Variables (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx).
Variables (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R).
Hypothesis γ0 : 0 < γ2.

Lemma beats_iff a b (s i j : 'I_N) : ⟨x a, x b⟩ < ‖x a‖² ->
  mq_logit γ1 γ2 x y r (a, s) (b, j) < mq_logit γ1 γ2 x y r (a, s) (a, i)
  <-> (r b j - r a i) / (‖x a‖² - ⟨x a, x b⟩) < γ1 / γ2.
Proof. by move=> lt; rewrite !mq_logits_prompt; exact: ratio_iff. Qed.

Lemma own_iff a (s i j : 'I_N) :
  mq_logit γ1 γ2 x y r (a, s) (a, j) < mq_logit γ1 γ2 x y r (a, s) (a, i) <-> r a j < r a i.
Proof. by rewrite !mq_logits_prompt; split; nra. Qed.

Lemma div_le c d e : 0 < e -> c <= d -> c / e <= d / e.
Proof. by move=> e0 cd; apply: Rmult_le_compat_r cd; left; exact: Rinv_0_lt_compat. Qed.
End Ratio.

(* Claim mq-chain, part first-link; paper: F.1. *)
Theorem mq_chain_first_link : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a : 'I_M) (best s : 'I_N),
  0 < γ2 -> (forall i : 'I_N, i != best -> r a i < r a best) ->
  forall i : 'I_N, i != best ->
  mq_logit γ1 γ2 x y r (a, s) (a, i) < mq_logit γ1 γ2 x y r (a, s) (a, best).
Proof. by move=> dx dy M N γ1 γ2 x y r a best s γ0 top i ib; apply/own_iff => //; exact: top. Qed.

(* Claim mq-chain, part pair; paper: F.1. *)
Theorem mq_chain_pair : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (s i j : 'I_N),
  0 < γ2 -> ‖x a‖ = 1 -> ⟨x a, x b⟩ < 1 ->
  mq_logit γ1 γ2 x y r (a, s) (b, j) < mq_logit γ1 γ2 x y r (a, s) (a, i)
  <-> (r b j - r a i) / (1 - ⟨x a, x b⟩) < γ1 / γ2.
Proof.
move=> dx dy M N γ1 γ2 x y r a b s i j γ0 x1 lt.
have n1 : ‖x a‖² = 1 by rewrite -vnorm_sqr x1; ring.
by have := @beats_iff dx dy M N γ1 γ2 x y r γ0 a b s i j; rewrite n1 => H; exact: H.
Qed.

(* Claim mq-chain, part extremes; paper: F.1. The printed chain for all queries, at any tokens s. *)
Theorem mq_chain : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best worst : 'I_M -> 'I_N)
    (s : 'I_N),
  (2 <= N)%N -> 0 < γ2 -> (forall a, ‖x a‖ = 1) -> (forall a b : 'I_M, a != b -> x a <> x b) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i < r a (best a)) ->
  (forall a i, r a (worst a) <= r a i) ->
  let at_a a b j := mq_logit γ1 γ2 x y r (a, s) (b, j) in
  (forall (a : 'I_M) (i : 'I_N), i != best a -> at_a a a i < at_a a a (best a)
     /\ forall (b : 'I_M) j, b != a -> at_a a b j < at_a a a i)
  <-> (forall a b : 'I_M, a != b -> (r b (best b) - r a (worst a)) / (1 - ⟨x a, x b⟩) < γ1 / γ2).
Proof.
move=> dx dy M N γ1 γ2 x y r best worst s N2 γ0 x1 xx top bottom at_a.
have lt a b : a != b -> ⟨x a, x b⟩ < 1 by move=> ab; apply: unit_distinct => //; exact: xx.
have top' a j : r a j <= r a (best a).
  by case: (eqVneq j (best a)) => [->|/top]; lra.
have pair a b i j := @mq_chain_pair dx dy M N γ1 γ2 x y r a b s i j γ0 (x1 a).
split=> [chain a b ab|ratio a i ib].
  have wb : worst a != best a.
    apply/negP => /eqP e; pose o := Ordinal (ltnW N2); pose o' := Ordinal N2.
    have [i ib] : exists i, i != best a.
      by case: (eqVneq o (best a)) => [<-|]; [exists o' | exists o].
    by have := top a i ib; have := bottom a i; rewrite e; lra.
  have [_ H] := chain a (worst a) wb; apply/pair; first exact: lt.
  by apply: H; rewrite eq_sym.
split=> [|b j ba]; first by apply: mq_chain_first_link => //; exact: top.
have ab : a != b by rewrite eq_sym.
apply/pair; first exact: lt.
apply: Rle_lt_trans (ratio a b ab); apply: div_le; first by have := lt a b ab; lra.
by have := top' b j; have := bottom a i; lra.
Qed.

(* Claim mq-critical-ratio, parts pair, any-norm: with ‖x^a‖² = 1 for unit queries. *)
Theorem mq_critical_ratio_pair : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (a b : 'I_M) (best s j : 'I_N),
  0 < γ2 -> ⟨x a, x b⟩ < ‖x a‖² ->
  mq_logit γ1 γ2 x y r (a, s) (b, j) < mq_logit γ1 γ2 x y r (a, s) (a, best)
  <-> (r b j - r a best) / (‖x a‖² - ⟨x a, x b⟩) < γ1 / γ2.
Proof. by move=> dx dy M N γ1 γ2 x y r a b best s j γ0 lt; exact: beats_iff. Qed.

(* At every token of every query, its own winner has strictly the largest logit. *)
Definition winners_ahead {dx dy M N} γ1 γ2 (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) : Prop :=
  forall (a : 'I_M) (s : 'I_N) (t : 'I_M * 'I_N), t != (a, best a) ->
  mq_logit γ1 γ2 x y r (a, s) t < mq_logit γ1 γ2 x y r (a, s) (a, best a).

(* (max r^b − max r^a)/(‖x^a‖² − ⟨x^a, x^b⟩). *)
Definition critical_ratio {dx M N} (x : 'I_M -> vec 'I_dx) (r : 'I_M -> 'I_N -> R)
    (best : 'I_M -> 'I_N) (a b : 'I_M) : R :=
  (r b (best b) - r a (best a)) / (‖x a‖² - ⟨x a, x b⟩).

(* Claim mq-critical-ratio, parts maximum, any-norm: for all pairs of queries. *)
Theorem mq_critical_ratio : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N),
  0 < γ2 -> (forall a b : 'I_M, a != b -> ⟨x a, x b⟩ < ‖x a‖²) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i < r a (best a)) ->
  winners_ahead γ1 γ2 x y r best
  <-> (forall a b : 'I_M, a != b -> critical_ratio x r best a b < γ1 / γ2).
Proof.
move=> dx dy M N γ1 γ2 x y r best γ0 lt top; split=> [ahead a b ab|ratio a s [b j] tb].
  apply/(@beats_iff dx dy M N γ1 γ2 x y r γ0 a b (best a)); first exact: lt.
  by apply: ahead; rewrite xpair_eqE eq_sym (negbTE ab).
case: (eqVneq a b) => [ab|ab].
  by subst b; apply/own_iff => //; apply: top; move: tb; rewrite xpair_eqE eqxx.
apply/beats_iff => //; first exact: lt.
apply: Rle_lt_trans (ratio a b ab); apply: div_le; first by have := lt a b ab; lra.
by case: (eqVneq j (best b)) => [->|/top]; lra.
Qed.

(* Claim mq-critical-ratio, part maximum: at the pair of queries where it is largest. *)
Theorem mq_critical_ratio_unit : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (a' b' : 'I_M),
  0 < γ2 -> (forall a, ‖x a‖ = 1) -> (forall a b : 'I_M, a != b -> x a <> x b) ->
  (forall (a : 'I_M) (i : 'I_N), i != best a -> r a i < r a (best a)) ->
  let ratio a b := (r b (best b) - r a (best a)) / (1 - ⟨x a, x b⟩) in
  a' != b' -> (forall a b : 'I_M, a != b -> ratio a b <= ratio a' b') ->
  winners_ahead γ1 γ2 x y r best <-> ratio a' b' < γ1 / γ2.
Proof.
move=> dx dy M N γ1 γ2 x y r best a' b' γ0 x1 xx top ratio ab' largest.
have n1 a : ‖x a‖² = 1 by rewrite -vnorm_sqr x1; ring.
have lt a b : a != b -> ⟨x a, x b⟩ < ‖x a‖².
  by move=> ab; rewrite n1; apply: unit_distinct => //; exact: xx.
have E a b : critical_ratio x r best a b = ratio a b by rewrite /critical_ratio n1.
split=> [/(mq_critical_ratio γ1 y γ0 lt top) /(_ a' b' ab')|H]; first by rewrite E.
apply/(mq_critical_ratio γ1 y γ0 lt top) => a b ab; rewrite E.
exact: Rle_lt_trans (largest a b ab) H.
Qed.

(* Claim mq-critical-ratio, part weaker. *)
Theorem mq_critical_ratio_weaker : forall (dx M N : nat) (x : 'I_M -> vec 'I_dx)
    (r : 'I_M -> 'I_N -> R) (best worst : 'I_M -> 'I_N) (a b : 'I_M),
  (2 <= N)%N -> ⟨x a, x b⟩ < 1 ->
  (forall i : 'I_N, i != best a -> r a i < r a (best a)) -> (forall i, r a (worst a) <= r a i) ->
  (r b (best b) - r a (best a)) / (1 - ⟨x a, x b⟩)
  < (r b (best b) - r a (worst a)) / (1 - ⟨x a, x b⟩).
Proof.
move=> dx M N x r best worst a b N2 lt top bottom.
apply: Rmult_lt_compat_r; first by apply: Rinv_0_lt_compat; lra.
pose o := Ordinal (ltnW N2); pose o' := Ordinal N2.
have [i ib] : exists i, i != best a.
  by case: (eqVneq o (best a)) => [<-|]; [exists o' | exists o].
by have := top i ib; have := bottom i; lra.
Qed.

(* ── What unit norm is for ──────────────────────────────────────────────────────────────────── *)

(* Claim mq-unit-norm, part necessary-sufficient: the temperatures are chosen before the rewards. *)
Theorem mq_unit_norm : forall (dx dy M n : nat) (Δ low spread : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_n.+1 -> vec 'I_dy),
  0 < Δ -> INR n * Δ <= spread ->
  (exists γ1 γ2, 0 <= γ1 /\ 0 < γ2 /\ forall (r : 'I_M -> 'I_n.+1 -> R) (best : 'I_M -> 'I_n.+1),
    (forall a, spaced Δ (r a)) -> (forall a i, low <= r a i <= low + spread) ->
    (forall a i, r a i <= r a (best a)) -> winners_ahead γ1 γ2 x y r best)
  <-> (forall a b : 'I_M, a != b -> ⟨x a, x b⟩ < ‖x a‖²).
Proof.
move=> dx dy M n Δ low spread x y Δ0 room; split=> [[γ1 [γ2 [γ10 [γ20 works]]]] a b ab|lt].
  pose r (_ : 'I_M) (i : 'I_n.+1) := low + spread - INR i * Δ.
  have H : winners_ahead γ1 γ2 x y r (fun=> ord0).
    apply: works => [a0 i j|a0 i|a0 i]; rewrite /r.
    - rewrite -val_eqE neq_ltn /= => /orP [] /INR_le; rewrite INR_S => le.
        by rewrite Rabs_pos_eq; nra.
      by rewrite Rabs_minus_sym Rabs_pos_eq; nra.
    - have := INR_ge0 i; have := INR_le (ltn_ord i : (i <= n)%N).
      by split; nra.
    - by have := INR_ge0 i; rewrite /=; nra.
  have := H a ord0 (b, ord0); rewrite xpair_eqE eq_sym (negbTE ab) => /(_ isT).
  rewrite !mq_logits_prompt -[⟨x a, x a⟩]/(‖x a‖²) => G; apply: Rnot_le_lt => le.
  by have := Rmult_le_compat_l _ _ _ γ10 le; rewrite /r in G; lra.
have [c [c0 cE]] : exists c, 0 < c /\ forall a b : 'I_M, a != b -> c <= ‖x a‖² - ⟨x a, x b⟩.
  case: M x y lt => [|m] x y lt; first by exists 1; split=> [|[]//]; lra.
  pose f p := if p.1 == p.2 then 1 else ‖x p.1‖² - ⟨x p.1, x p.2⟩.
  have [[a b] le] := least f (ord0, ord0); exists (f (a, b)); split=> [|a' b' ab].
    by rewrite /f /=; case: (eqVneq a b) => [_|/lt]; lra.
  by have := le (a', b'); rewrite {2}/f /= (negbTE ab).
have spread0 : 0 <= spread by have := INR_ge0 n; nra.
exists ((spread + 1) / c), 1; split; first by left; apply: Rdiv_lt_0_compat; lra.
split=> [|r best gaps range top]; first by lra.
apply/mq_critical_ratio => // [|a i ib|a b ab]; first by lra.
  by have := gaps a _ _ ib; have := top a i; split_Rabs; lra.
have cab := cE a b ab; rewrite /critical_ratio.
have -> : (spread + 1) / c / 1 = (spread + 1) / c by field; lra.
apply: (Rle_lt_trans _ (spread / c)); last first.
  by apply: Rmult_lt_compat_r; [exact: Rinv_0_lt_compat | lra].
apply: (Rle_trans _ (spread / (‖x a‖² - ⟨x a, x b⟩))).
  by apply: div_le; [lra|have := range a (best a); have := range b (best b); lra].
by apply: Rmult_le_compat_l => //; apply: Rinv_le_contravar.
Qed.

(* Claim mq-unit-norm, part unit. *)
Theorem mq_unit_norm_unit : forall (dx : nat) (x x' : vec 'I_dx),
  ‖x‖ = ‖x'‖ -> x <> x' -> ⟨x, x'⟩ < ‖x‖².
Proof.
move=> dx u v uv ne; have : 0 < ‖u - v‖².
  apply: sqnorm_gt0 => e; apply: ne; apply: vec_eq => c.
  by have := f_equal (fun w => w c) e; rewrite /vsub /vzero; lra.
by rewrite sqnorm_sub -!vnorm_sqr -uv; lra.
Qed.

(* Claim mq-unit-norm, part orthogonal. *)
Theorem mq_unit_norm_orthogonal : forall (dx : nat) (x x' : vec 'I_dx),
  x <> vzero -> ⟨x, x'⟩ = 0 -> ⟨x, x'⟩ < ‖x‖².
Proof. by move=> dx u v u0 ->; exact: sqnorm_gt0. Qed.

(* Claim mq-duplicates, part inseparable. *)
Theorem mq_duplicates_inseparable : forall (dx dy M N : nat) (γ1 γ2 : R) (x : 'I_M -> vec 'I_dx)
    (y : 'I_M -> 'I_N -> vec 'I_dy) (r : 'I_M -> 'I_N -> R) (best : 'I_M -> 'I_N) (a b : 'I_M)
    (s : 'I_N),
  a != b -> x a = x b ->
  (forall t, mq_logit γ1 γ2 x y r (a, s) t = mq_logit γ1 γ2 x y r (b, s) t)
  /\ ~ winners_ahead γ1 γ2 x y r best.
Proof.
move=> dx dy M N γ1 γ2 x y r best a b s ab xx.
have same t : mq_logit γ1 γ2 x y r (a, s) t = mq_logit γ1 γ2 x y r (b, s) t.
  by case: t => c j; rewrite !mq_logits_prompt xx.
split=> // ahead; have := ahead a s (b, best b); have := ahead b s (a, best a).
by rewrite !xpair_eqE !(eq_sym b) (negbTE ab) !same => /(_ isT) ? /(_ isT); lra.
Qed.
