(* Chapter 11: causal attention with a record of the positions taken. The two heads, with the logits
   σ, σ′ of a start token (chapter 12); as the paper prints them, σ = σ′ = 0 and there is none. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors OnlineLoss Weights Spacing Transformer.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The block ──────────────────────────────────────────────────────────────────────────────── *)

(* The rows: b marks the start token, p is a one-hot position, m the record, u what is added up. *)
Module Ca.
Inductive name := x | y | sq | r | one | b | p | m | u.
Inductive winner_key := level | place.
Inductive field_key := shaped | height | masked.
Inductive winner_value := response | position.
End Ca.

Section Block.
Variables dx dy N : nat.

Definition ca_width (a : Ca.name) : nat :=
  match a with Ca.x => dx | Ca.y | Ca.u => dy | Ca.p | Ca.m => N | _ => 1 end.

Definition ca_stream : stream.
Proof.
refine {| row := Ca.name; width := ca_width;
  rows := [:: Ca.x; Ca.y; Ca.sq; Ca.r; Ca.one; Ca.b; Ca.p; Ca.m; Ca.u] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition ca_winner_keys : stream.
Proof.
refine {| row := Ca.winner_key; width := fun k => if k is Ca.place then N else 1%N;
  rows := [:: Ca.level; Ca.place] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition ca_field_keys : stream.
Proof.
refine {| row := Ca.field_key;
  width := fun k => match k with Ca.shaped => dy | Ca.height => 1%N | Ca.masked => N end;
  rows := [:: Ca.shaped; Ca.height; Ca.masked] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

Definition ca_winner_values : stream.
Proof.
refine {| row := Ca.winner_value; width := fun v => if v is Ca.response then dy else N;
  rows := [:: Ca.response; Ca.position] |}.
- by case; rewrite /=; tauto.
- by repeat constructor; rewrite /=; intuition discriminate.
Defined.

(* What a class of inputs decides: W, the step size η, the temperature γ, the masks c and C of the
   two heads, and the start token's logits σ and σ_Z. *)
Variables (W : mat dy dx) (η γ c C σ σ_Z : R).

(* Logit 1·(γ r_j + σ b_j) − c ⟨m_i, p_j⟩; writes 2η y_j to u and p_j to m. *)
Definition ca_winner : head ca_stream := @Head ca_stream ca_winner_keys ca_winner_values
  (* query *)  (fun k a => match k, a with
    | Ca.level, Ca.one => identity 1 | Ca.place, Ca.m => identity (- c) | _, _ => zero end)
  (* key *)    (fun k a => match k, a with
    | Ca.level, Ca.r => identity γ | Ca.level, Ca.b => identity σ
    | Ca.place, Ca.p => identity 1 | _, _ => zero end)
  (* value *)  (fun v a => match v, a with
    | Ca.response, Ca.y => identity 1 | Ca.position, Ca.p => identity 1 | _, _ => zero end)
  (* output *) (fun a v => match a, v with
    | Ca.u, Ca.response => identity (2 * η) | Ca.m, Ca.position => identity 1 | _, _ => zero end).

(* Logit 2⟨W x_i, y_j⟩ − 1·(sq_j − σ_Z b_j) − C ⟨m_i, p_j⟩; writes −2η y_j to u. *)
Definition ca_field : head ca_stream := @Head ca_stream ca_field_keys (one_row dy)
  (* query *)  (fun k a => match k, a with
    | Ca.shaped, Ca.x => (fun e d => 2 * W (e, d)) | Ca.height, Ca.one => identity (- 1)
    | Ca.masked, Ca.m => identity (- C) | _, _ => zero end)
  (* key *)    (fun k a => match k, a with
    | Ca.shaped, Ca.y => identity 1 | Ca.height, Ca.sq => identity 1
    | Ca.height, Ca.b => identity (- σ_Z) | Ca.masked, Ca.p => identity 1 | _, _ => zero end)
  (* value *)  (fun _ a => match a with Ca.y => identity 1 | _ => zero end)
  (* output *) (fun a _ => match a with Ca.u => identity (- (2 * η)) | _ => zero end).

Definition ca_block : block ca_stream := Block [:: ca_winner; ca_field] None.
End Block.

Arguments ca_winner dx dy N η γ c σ : clear implicits.
Arguments ca_field {dx dy} N W η C σ_Z.
Arguments ca_block {dx dy} N W η γ c C σ σ_Z.

(* The block as the paper prints it. *)
Definition printed_block {dx dy} N (W : mat dy dx) η γ c C := ca_block N W η γ c C 0 0.

(* A token with its rows. *)
Definition ca_token {dx dy N} (x : vec 'I_dx) (y : vec 'I_dy) (sq r b : R) (p m : vec 'I_N)
    (u : vec 'I_dy) : token (ca_stream dx dy N) := fun a =>
  match a with
  | Ca.x => x | Ca.y => y | Ca.sq => fun _ => sq | Ca.r => fun _ => r | Ca.one => fun _ => 1
  | Ca.b => fun _ => b | Ca.p => p | Ca.m => m | Ca.u => u
  end.

Definition one_hot {N} (j : 'I_N) : vec 'I_N := fun l => if l == j then 1 else 0.

(* The prompt: responses with their positions, nothing recorded, nothing added up. *)
Definition masked_prompt {dx dy N} (x : vec 'I_dx) (y : 'I_N -> vec 'I_dy) (r : 'I_N -> R)
    (j : 'I_N) : token (ca_stream dx dy N) :=
  ca_token x (y j) (‖y j‖²) (r j) 0 (one_hot j) vzero vzero.

(* ── The logits, from the matrices ──────────────────────────────────────────────────────────── *)

Lemma ca_winner_logit dx dy N η γ c σ (T : finType) (X : T -> token (ca_stream dx dy N)) i j :
  X i Ca.one ord0 = 1 ->
  logit (ca_winner dx dy N η γ c σ) X i j
  = γ * X j Ca.r ord0 + σ * X j Ca.b ord0 - c * ⟨X i Ca.m, X j Ca.p⟩.
Proof.
move=> one; rewrite /logit; blocks; rewrite one; set s := (X in _ + (X + 0) = _).
set q := dot _ _; have -> : s = - c * q; last by ring.
by rewrite /s /q /dot -sum_scal; apply: eq_bigr => e _; blocks; ring.
Qed.

Lemma ca_field_logit dx dy N (W : mat dy dx) η C σ_Z (T : finType)
    (X : T -> token (ca_stream dx dy N)) i j :
  X i Ca.one ord0 = 1 ->
  logit (ca_field N W η C σ_Z) X i j
  = 2 * ⟨W *v X i Ca.x, X j Ca.y⟩ - X j Ca.sq ord0 + σ_Z * X j Ca.b ord0
    - C * ⟨X i Ca.m, X j Ca.p⟩.
Proof.
move=> one; rewrite /logit; blocks; rewrite one.
set s := (X in X + _ = _); set t := (X in _ + (_ + (X + 0)) = _).
set v := dot _ _; set q := dot _ _; have -> : s = 2 * v.
  rewrite /s /v /dot -sum_scal; apply: eq_bigr => e _.
  blocks; rewrite (eq_bigr (fun d => 2 * (W (e, d) * X i Ca.x d))) => [|d _].
    by rewrite sum_scal -/((W *v X i Ca.x)%V e); ring.
  exact: Rmult_assoc.
have -> : t = - C * q; last by ring.
by rewrite /t /q /dot -sum_scal; apply: eq_bigr => e _; blocks; ring.
Qed.

(* Claim mask-logits, part winner; paper: Lemma F.1 of the camera-ready. No start token in sight. *)
Theorem mask_logits_winner : forall (dx dy N : nat) (η γ c : R) (T : finType)
    (X : T -> token (ca_stream dx dy N)) (i j : T),
  X i Ca.one ord0 = 1 ->
  logit (ca_winner dx dy N η γ c 0) X i j = γ * X j Ca.r ord0 - c * ⟨X i Ca.m, X j Ca.p⟩.
Proof. by move=> dx dy N η γ c T X i j one; rewrite ca_winner_logit //; ring. Qed.

(* Claim mask-logits, part field. *)
Theorem mask_logits_field : forall (dx dy N : nat) (W : mat dy dx) (η C : R) (T : finType)
    (X : T -> token (ca_stream dx dy N)) (i j : T),
  X i Ca.one ord0 = 1 ->
  logit (ca_field N W η C 0) X i j
  = 2 * ⟨W *v X i Ca.x, X j Ca.y⟩ - X j Ca.sq ord0 - C * ⟨X i Ca.m, X j Ca.p⟩.
Proof. by move=> dx dy N W η C T X i j one; rewrite ca_field_logit //; ring. Qed.

(* ── What the block does, from the matrices ─────────────────────────────────────────────────── *)

Section Step.
Variables (dx dy N : nat) (W : mat dy dx) (η γ c C σ σ_Z : R) (T : finType) (sees : rel T).
Variables (x : T -> vec 'I_dx) (y : T -> vec 'I_dy) (sq r b : T -> R) (p : T -> vec 'I_N).

(* Tokens with the records m and the accumulators u. *)
Definition ca_state (m : T -> vec 'I_N) (u : T -> vec 'I_dy) (j : T) : token (ca_stream dx dy N) :=
  ca_token (x j) (y j) (sq j) (r j) (b j) (p j) (m j) (u j).

(* The weights at token i with the record m. *)
Definition ca_winner_weights (i : T) (m : vec 'I_N) : T -> R :=
  softmax_on (sees i) (fun j => γ * r j + σ * b j - c * ⟨m, p j⟩).
Definition ca_field_weights (i : T) (m : vec 'I_N) : T -> R :=
  softmax_on (sees i) (fun j => 2 * ⟨W *v x i, y j⟩ - sq j + σ_Z * b j - C * ⟨m, p j⟩).

Variables (m : T -> vec 'I_N) (u : T -> vec 'I_dy).
Let X := ca_state m u.

Lemma ca_winner_attention i j :
  attention sees (ca_winner dx dy N η γ c σ) X i j = ca_winner_weights i (m i) j.
Proof. by apply: eq_softmax_on => l _; rewrite ca_winner_logit. Qed.

Lemma ca_field_attention i j :
  attention sees (ca_field N W η C σ_Z) X i j = ca_field_weights i (m i) j.
Proof. by apply: eq_softmax_on => l _; rewrite ca_field_logit. Qed.

Let found i : token (ca_winner_values dy N) := fun v => match v with
  | Ca.response => comb (ca_winner_weights i (m i)) y
  | Ca.position => comb (ca_winner_weights i (m i)) p end.

Lemma ca_winner_output i a e : head_output sees (ca_winner dx dy N η γ c σ) X i a e
  = apply (W_O (ca_winner dx dy N η γ c σ)) (found i) a e.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite ca_winner_attention; blocks.
  by congr (_ * _); ring.
by congr (_ * _); ring.
Qed.

Let weighed i : token (one_row dy) := fun _ => comb (ca_field_weights i (m i)) y.

Lemma ca_field_output i a e : head_output sees (ca_field N W η C σ_Z) X i a e
  = apply (W_O (ca_field N W η C σ_Z)) (weighed i) a e.
Proof.
apply: eq_apply => -[] d; apply: eq_bigr => j _; rewrite ca_field_attention; blocks.
by congr (_ * _); ring.
Qed.

(* One block makes a state of a state. *)
Lemma ca_step : transform sees (ca_block N W η γ c C σ σ_Z) X = ca_state
  (fun i => m i + comb (ca_winner_weights i (m i)) p)%V
  (fun i => u i + (2 * η) *: (comb (ca_winner_weights i (m i)) y
                              - comb (ca_field_weights i (m i)) y))%V.
Proof.
apply: functional_extensionality => i; apply: functional_extensionality_dep => a.
apply: functional_extensionality => e; rewrite /transform /= /attend /= !big_cons big_nil.
rewrite ca_winner_output ca_field_output.
by case: a e => e; blocks; rewrite /weighed /vadd /vscal /vsub; ring.
Qed.
End Step.

Arguments ca_state {dx dy N T} x y sq r b p m u j a.
Arguments ca_winner_weights {N} γ c σ {T} sees r b p i m j.
Arguments ca_field_weights {dx dy N} W C σ_Z {T} sees x y sq b p i m j.

(* After K blocks: the record and the accumulator at token i, by recursion. *)
Section Rounds.
Variables (dx dy N : nat) (W : mat dy dx) (η γ c C σ σ_Z : R) (T : finType) (sees : rel T).
Variables (x : T -> vec 'I_dx) (y : T -> vec 'I_dy) (sq r b : T -> R) (p : T -> vec 'I_N).
Let A := ca_winner_weights γ c σ sees r b p.
Let F := ca_field_weights W C σ_Z sees x y sq b p.

Fixpoint ca_record (K : nat) (i : T) : vec 'I_N :=
  if K is k.+1 then (ca_record k i + comb (A i (ca_record k i)) p)%V else vzero.

Fixpoint ca_sum (K : nat) (i : T) : vec 'I_dy :=
  if K is k.+1 then
    (ca_sum k i + (2 * η) *: (comb (A i (ca_record k i)) y - comb (F i (ca_record k i)) y))%V
  else vzero.

Lemma ca_run K : run sees (nseq K (ca_block N W η γ c C σ σ_Z))
    (ca_state x y sq r b p (fun _ => vzero) (fun _ => vzero))
  = ca_state x y sq r b p (ca_record K) (ca_sum K).
Proof. by elim: K => [|K IH] //; rewrite run_nseq IH ca_step. Qed.
End Rounds.

Arguments ca_record {N} γ c σ {T} sees r b p K i.
Arguments ca_sum {dx dy N} W η γ c C σ σ_Z {T} sees x y sq r b p K i.

(* ── What a token sees under a causal mask, renumbered ──────────────────────────────────────── *)

Section Seen.
Variables (N : nat) (i : 'I_N).
Notation tN := (ltn_ord i).

Lemma seen_sum (F : 'I_N -> R) : ∑_(j | causal i j) F j = ∑_(l < i.+1) prefix tN F l.
Proof. by rewrite /prefix -(big_ord_narrow tN). Qed.

Lemma seen_softmax z l : softmax_on (causal i) z (widen_ord tN l) = softmax (prefix tN z) l.
Proof. by rewrite /softmax_on seen_sum /causal /= -ltnS ltn_ord. Qed.

Lemma seen_comb z d (v : 'I_N -> vec 'I_d) :
  comb (softmax_on (causal i) z) v = comb (softmax (prefix tN z)) (prefix tN v).
Proof.
apply: vec_eq => a; rewrite /comb (bigID (causal i)) /= [X in _ + X]big1 => [|j /negbTE ij].
  rewrite Rplus_0_r seen_sum; apply: eq_bigr => l _; congr (_ * _).
  exact: seen_softmax.
by rewrite /softmax_on ij /Rdiv !Rmult_0_l.
Qed.

Lemma unseen z (j : 'I_N) : (i < j)%N -> softmax_on (causal i) z j = 0.
Proof. by move=> ij; rewrite /softmax_on /causal leqNgt ij /Rdiv Rmult_0_l. Qed.
End Seen.

Lemma spaced_prefix t N (tN : (t <= N)%N) Δ (r : 'I_N -> R) :
  spaced Δ r -> spaced Δ (prefix tN r).
Proof.
by move=> gaps i j ij; apply: gaps; apply: contra ij => /eqP /(f_equal val) /= /val_inj ->.
Qed.

Lemma dot_one_hot N (m : vec 'I_N) j : ⟨m, one_hot j⟩ = m j.
Proof.
rewrite /dot (sum_pick j) /one_hot eqxx big1 => [|l /negbTE ->]; ring.
Qed.

Lemma comb_one_hot N (A : 'I_N -> R) l : comb A one_hot l = A l.
Proof.
rewrite /comb (sum_pick l) /one_hot eqxx big1 => [|j jl]; first by ring.
by rewrite eq_sym (negbTE jl); ring.
Qed.
