(* The paper's transformer (theory.md, section 0): softmax attention without 1/√d and without
   normalisation, feed-forward layers with biases, both residual; on a stream with named rows. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums.

Set Implicit Arguments.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Reserved Notation "∑_ ( i <- r ) F"
  (at level 36, F at level 36, i, r at level 50, format "∑_ ( i  <-  r )  F").
Notation "∑_ ( i <- r ) F" := (\big[Rplus/0]_(i <- r) F) : R_scope.

(* ── Named rows ─────────────────────────────────────────────────────────────────────────────── *)

(* The names of the rows, how many coordinates each has, and a list with every name once. *)
Record stream := Stream {
  row : Type;
  width : row -> nat;
  rows : list row;
  rows_all : forall a, List.In a rows;
  rows_once : List.NoDup rows }.

Arguments width {s} a : rename.

(* A token: a number for every coordinate of every row. *)
Definition token (S : stream) := forall a : row S, 'I_(width a) -> R.

(* A matrix from the rows of S to the rows of A, given by its blocks. *)
Definition matrix (A S : stream) :=
  forall (a : row A) (b : row S), 'I_(width a) -> 'I_(width b) -> R.

(* The product of a matrix and a token. *)
Definition apply A S (M : matrix A S) (e : token S) : token A :=
  fun a c => ∑_(b <- rows S) ∑_d (M a b c d * e b d).

Definition inner S (e f : token S) : R := ∑_(a <- rows S) ∑_c (e a c * f a c).

Lemma eq_apply A S (M : matrix A S) (e f : token S) a c :
  (forall b d, e b d = f b d) -> apply M e a c = apply M f a c.
Proof. by move=> ef; do 2 apply: eq_bigr => ? _; rewrite ef. Qed.

Arguments eq_apply {A S M e} f {a c}.

(* Blocks to write matrices with: nothing, and c times the identity. *)
Definition zero m n : 'I_m -> 'I_n -> R := fun _ _ => 0.
Definition identity n (c : R) : 'I_n -> 'I_n -> R := fun i j => if i == j then c else 0.

Arguments zero {m n} i j.
Arguments identity {n} c i j.

Lemma sum_zero m n (i : 'I_m) (f : 'I_n -> R) : ∑_j (zero i j * f j) = 0.
Proof. by apply: sum_eq0 => j _; rewrite /zero; ring. Qed.

Lemma sum_identity n c (i : 'I_n) (f : 'I_n -> R) : ∑_j (identity c i j * f j) = c * f i.
Proof.
rewrite (bigD1 i) //= big1 => [|j /negbTE ji]; first by rewrite /identity eqxx; ring.
by rewrite /identity eq_sym ji; ring.
Qed.

Lemma sum_ord1 (f : 'I_1 -> R) : ∑_j f j = f ord0.
Proof. by rewrite big_ord_recl big_ord0; ring. Qed.

(* Rewrites the products of block matrices with tokens into what the blocks say. *)
Ltac blocks := rewrite /inner /apply /=;
  do 3 rewrite ?(big_cons, big_nil, sum_zero, sum_identity) ?sum_ord1 /=.

(* A stream with one row. *)
Definition one_row (d : nat) : stream.
Proof.
refine {| row := unit; width := fun _ => d; rows := [:: tt] |}.
- by case; left.
- by repeat constructor.
Defined.

(* ── Attention ──────────────────────────────────────────────────────────────────────────────── *)

(* Query, key, value and output matrix; keys and values have named rows of their own. *)
Record head (S : stream) := Head {
  keys : stream;
  values : stream;
  W_Q : matrix keys S;
  W_K : matrix keys S;
  W_V : matrix values S;
  W_O : matrix S values }.

(* W₂ relu(W₁ e + b₁) + b₂. *)
Record feed_forward (S : stream) := FeedForward {
  hidden : stream;
  W_1 : matrix hidden S;
  b_1 : token hidden;
  W_2 : matrix S hidden;
  b_2 : token S }.

(* Heads side by side, then perhaps a feed-forward layer. *)
Record block (S : stream) := Block {
  heads : list (head S);
  layer : option (feed_forward S) }.

Section Run.
Variables (T : finType) (sees : rel T) (S : stream).
Implicit Types (h : head S) (X : T -> token S).

(* (KᵀQ)_ji: what token j answers to token i. *)
Definition logit h X (i j : T) : R := inner (apply (W_K h) (X j)) (apply (W_Q h) (X i)).

(* Softmax over the tokens j that i sees. *)
Definition attention h X (i j : T) : R :=
  (if sees i j then exp (logit h X i j) else 0) / ∑_(l | sees i l) exp (logit h X i l).

(* P V X softmax(KᵀQ), at token i. *)
Definition head_output h X (i : T) : token S :=
  apply (W_O h) (fun a c => ∑_j (attention h X i j * apply (W_V h) (X j) a c)).

Definition attend (hs : list (head S)) X (i : T) : token S :=
  fun a c => X i a c + ∑_(h <- hs) head_output h X i a c.

Definition relu (z : R) : R := Rmax 0 z.

Definition feed (f : feed_forward S) (e : token S) : token S := fun a c =>
  e a c + (apply (W_2 f) (fun k d => relu (apply (W_1 f) e k d + b_1 f k d)) a c + b_2 f a c).

Definition transform (b : block S) X (i : T) : token S :=
  match layer b with
  | Some f => feed f (attend (heads b) X i)
  | None => attend (heads b) X i
  end.

(* A transformer is a list of blocks. *)
Definition run (bs : list (block S)) X : T -> token S := foldl (fun X b => transform b X) X bs.

End Run.

(* Every token sees all tokens; under a causal mask, none that come later. *)
Definition full {T : finType} : rel T := fun _ _ => true.
Definition causal {n} : rel 'I_n := fun i j => (j <= i)%N.

Arguments logit {T S} h X i j.
Arguments attention {T} sees {S} h X i j.
Arguments head_output {T} sees {S} h X i a c.
Arguments attend {T} sees {S} hs X i a c.
Arguments feed {S} f e a c.
Arguments transform {T} sees {S} b X i a c.
Arguments run {T} sees {S} bs X i a c.

Lemma run_cat (T : finType) (sees : rel T) S (bs cs : list (block S)) (X : T -> token S) :
  run sees (bs ++ cs) X = run sees cs (run sees bs X).
Proof. exact: foldl_cat. Qed.

Lemma run_nseq (T : finType) (sees : rel T) S n (b : block S) (X : T -> token S) :
  run sees (nseq n.+1 b) X = transform sees b (run sees (nseq n b) X).
Proof. by rewrite -addn1 nseqD run_cat. Qed.
