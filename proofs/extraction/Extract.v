(* The definitions as programs on floating-point numbers, to compare them with icalign
   (tests/test_extraction.py). Here R is OCaml's float; what is extracted is the definitions of the
   proofs themselves, mathcomp's sums and permutations included. *)

From Coq Require Import Reals ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors AlignmentTask GradientStep Convexity OnlineLoss Records.
From Icalign Require Import Transformer Selection Field Block BradleyTerry MaskedBlock StopSink.
From Icalign Require Import DepthBlocks QueryBlocks QueryStep.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* ── The numbers ────────────────────────────────────────────────────────────────────────────── *)

Extract Constant Rdefinitions.RbaseSymbolsImpl.R => "float".
Extract Constant Rdefinitions.RbaseSymbolsImpl.R0 => "0.".
Extract Constant Rdefinitions.RbaseSymbolsImpl.R1 => "1.".
Extract Constant Rdefinitions.RbaseSymbolsImpl.Rplus => "(+.)".
Extract Constant Rdefinitions.RbaseSymbolsImpl.Rmult => "( *. )".
Extract Constant Rdefinitions.RbaseSymbolsImpl.Ropp => "(~-.)".
Extract Constant Rdefinitions.RbaseSymbolsImpl.Rabst => "(fun _ -> assert false)".
Extract Constant Rdefinitions.RbaseSymbolsImpl.Rrepr => "(fun _ -> assert false)".
Extract Constant Rdefinitions.RinvImpl.Rinv => "(fun a -> 1. /. a)".
Extract Constant Rdefinitions.Rminus => "(-.)".
Extract Constant Rdefinitions.Rdiv => "(/.)".
Extract Constant Rdefinitions.IZR => "float_of_int".
Extract Constant Raxioms.INR => "float_of_int".
Extract Constant Rpow_def.pow => "(fun a n -> a ** float_of_int n)".
Extract Constant Rbasic_fun.Rmax => "Float.max".
Extract Constant RIneq.Rlt_dec => "(<)".
Extract Constant exp => "Stdlib.exp".
Extract Constant ln => "Stdlib.log".
Extract Constant sqrt => "Stdlib.sqrt".

Extraction Inline predT pred_of_argType.

(* ── Lists in, numbers out ──────────────────────────────────────────────────────────────────── *)

Definition vector n (l : seq R) : vec 'I_n := fun a => nth R0 l a.
Definition matrix_of m n (l : seq (seq R)) : mat m n := fun p => nth R0 (nth [::] l p.1) p.2.
Definition family m N (l : seq (seq R)) : 'I_N -> vec 'I_m := fun j => @vector m (nth [::] l j).
(* The ranking with the response l_k in place k; the identity if l is no ranking. *)
Definition ranking N (l : seq nat) : {perm 'I_N} :=
  odflt (perm_one _) (insub (sT := perm_subType _) [ffun k : 'I_N => insubd k (nth 0%N l k)]).

Section Task.
Variables (m n N : nat) (W : seq (seq R)) (x : seq R) (y : seq (seq R)) (order : seq nat).
Let W' := @matrix_of m n W.
Let x' := @vector n x.
Let y' := @family m N y.
Let τ := @ranking N order.

Definition x_scores := [seq score W' x' (y' j) | j <- enum 'I_N].
Definition x_law := P_PL (fun j => score W' x' (y' j)) τ.
Definition x_loss := loss W' x' y' τ.
Definition x_gradient := [seq gradient W' x' y' τ p | p <- enum [finType of 'I_m * 'I_n]].
Definition x_second V := second_derivative W' (@matrix_of m n V) x' y' τ.
Definition x_tail_means :=
  [seq tail_mean W' x' y' τ p.1 p.2 | p <- enum [finType of 'I_N * 'I_m]].
Definition x_online t (tN : is_true (t <= N)%N) (first : seq nat) :=
  loss W' x' (prefix tN y') (@ranking t first).
End Task.

Definition x_records N (r : seq R) := records (@vector N r).

(* The selection head, at every token: weights, and what the block writes. *)
Section Selecting.
Variables (dx dy N : nat) (γ : R) (x : seq R) (y : seq (seq R)) (r : seq R).
Definition x_attention := [seq sel_attention γ (@vector dx x) (@family dy N y) (@vector N r) p.1 p.2
  | p <- enum [finType of 'I_N * 'I_N]].
Definition x_selected := [seq selected γ (@vector dx x) (@family dy N y) (@vector N r) p.1 p.2
  | p <- enum [finType of 'I_N * 'I_dy]].
End Selecting.

(* A block with any matrices: one head of width k and a feed-forward layer of width h. *)
Section Blocks.
Variables (d k h N : nat) (Q K V O M1 M2 : seq (seq R)) (b1 b2 : seq R) (X : seq (seq R)).
Definition dense m n (l : seq (seq R)) : matrix (one_row m) (one_row n) :=
  fun _ _ i j => nth R0 (nth [::] l i) j.
Definition bias m (l : seq R) : token (one_row m) := fun _ i => nth R0 l i.
Definition any_block : block (one_row d) := Block
  [:: @Head (one_row d) (one_row k) (one_row k) (dense Q) (dense K) (dense V) (dense O)]
  (Some (@FeedForward (one_row d) (one_row h) (dense M1) (bias b1) (dense M2) (bias b2))).
Definition tokens (i : 'I_N) : token (one_row d) := bias (nth [::] X i).
Definition x_block (masked : bool) := [seq
  run (if masked then causal else full) [:: any_block] tokens p.1 tt p.2
  | p <- enum [finType of 'I_N * 'I_d]].
End Blocks.

(* ── The transformers of the theorems ───────────────────────────────────────────────────────── *)

(* A function of a token and a coordinate that keeps what it has computed. To Rocq it is the function;
   a run that is a function of a function of … would compute every token of a block anew for each. *)
Definition remember {T : Type} {S : stream} (X : T -> token S) : T -> token S := X.
Extract Constant remember => "(fun _ x ->
  let known = Hashtbl.create 997 in
  fun token row place ->
    let key = Obj.repr (token, row, place) in
    try Hashtbl.find known key
    with Not_found -> let value = x token row place in Hashtbl.add known key value; value)".

Section Remembered.
Variables (T : finType) (sees : rel T) (S : stream).

Definition remembered_transform (b : block S) (X : T -> token S) : T -> token S :=
  let X' := remember (attend sees (heads b) X) in
  remember (match layer b with Some f => fun i => feed f (X' i) | None => X' end).

Definition remembered_run (bs : list (block S)) (X : T -> token S) : T -> token S :=
  foldl (fun X b => remembered_transform b X) (remember X) bs.

(* It is the run of the theorems. *)
Lemma remembered_runE bs X : remembered_run bs X = run sees bs X.
Proof.
have step b Y : remembered_transform b Y = transform sees b Y.
  by rewrite /remembered_transform /transform; case: layer.
by rewrite /remembered_run /run; elim: bs (X) => //= b bs IH Y; rewrite step IH.
Qed.
End Remembered.

(* Matrices and tokens as lists: the coordinates in the order of the rows. *)
Section Listed.
Variables (S : stream) (same : row S -> row S -> bool).

Definition before (a : row S) : nat :=
  sumn [seq width b | b <- take (find (same a) (rows S)) (rows S)].
Definition token_of (l : seq R) : token S := fun a c => nth R0 l (before a + c)%N.
Definition listed (e : token S) : seq R :=
  flatten [seq [seq e a c | c <- enum 'I_(width a)] | a <- rows S].
Definition all_of (T : finType) (X : T -> token S) : seq R := flatten [seq listed (X i) | i <- enum T].

(* The token that is 1 at the p-th coordinate and 0 elsewhere. *)
Definition unit_token (p : nat) : token S := fun a c => if (before a + c == p)%N then R1 else R0.
Definition places : seq nat := iota 0 (sumn [seq width a | a <- rows S]).

(* K'Q and PV of a head, row by row. *)
Definition asked (h : head S) : seq R :=
  [seq inner (apply (W_K h) (unit_token p)) (apply (W_Q h) (unit_token q)) | p <- places, q <- places].
Definition offered (h : head S) : seq R :=
  flatten [seq listed (apply (W_O h) (apply (W_V h) (unit_token q))) | q <- places].
Definition x_heads (bs : seq (block S)) : seq (seq R) :=
  flatten [seq flatten [seq [:: asked h; offered h] | h <- heads b] | b <- bs].

(* What the layers make of tokens. *)
Definition x_layers (bs : seq (block S)) (es : seq (seq R)) : seq (seq R) :=
  [seq (if layer b is Some f then listed (feed f (token_of e)) else [::]) | b <- bs, e <- es].
End Listed.

Module SameEl. Scheme Boolean Equality for El.name. End SameEl.
Module SameCa. Scheme Boolean Equality for Ca.name. End SameCa.
Module SameMt. Scheme Boolean Equality for Mt.name. End SameMt.
Module SameCd. Scheme Boolean Equality for Cd.name. End SameCd.
Module SameBt. Scheme Boolean Equality for Bt.name. End SameBt.
Module SameFi. Scheme Boolean Equality for Fi.name. End SameFi.

(* Matrices, what layers make of tokens, and all tokens after all blocks; each when it is asked for. *)
Definition x_all (T : finType) (sees : rel T) S (same : row S -> row S -> bool)
    (bs : seq (block S)) (X : T -> token S) (es : seq (seq R)) :=
  (fun _ : unit => x_heads same bs, fun _ : unit => x_layers same bs es,
   fun _ : unit => [:: all_of (remembered_run sees bs X)]).

Section Constructions.
Variables (dx dy M N : nat) (W : seq (seq R)) (numbers : seq R).
Variables (es x y : seq (seq R)) (r : seq R).
Let W' := @matrix_of dy dx W.
Let at_ k := nth R0 numbers k.
Let x0 := @vector dx (nth [::] x 0).
Let y' := @family dy N y.
Let r' := @vector N r.

(* η, γ, Δ, the spread, B, C. *)
Definition x_plackett_luce :=
  x_all full (SameEl.name_beq : row (el_stream dx dy) -> _) (nseq (N - 1) (el_block W' (at_ 0) (at_ 1) (at_ 2) (at_ 3) (at_ 4) (at_ 5)))
    (el_prompt x0 y' r') es.
(* η, γ, c, C, σ, σ_Z; without a start token the last two are not read. *)
Definition x_causal :=
  x_all causal (SameCa.name_beq : row (ca_stream dx dy N) -> _)
    (nseq (N - 1) (ca_block N W' (at_ 0) (at_ 1) (at_ 2) (at_ 3) (at_ 4) (at_ 5)))
    (started_prompt x0 y' r') es.
Definition x_printed :=
  x_all causal (SameCa.name_beq : row (ca_stream dx dy N) -> _)
    (nseq (N - 1) (printed_block N W' (at_ 0) (at_ 1) (at_ 2) (at_ 3))) (masked_prompt x0 y' r') es.
(* η, γ₁, γ₂, γ_β, Δ, low, the spread, B, C; ε, λ and P pairs. *)
Definition x_multi_query (P : nat) :=
  let block := mt_block W' (at_ 0) (at_ 1) (at_ 2) (at_ 3) (at_ 4) (at_ 5) (at_ 6) (at_ 7) (at_ 8) in
  let bs := nseq (N - 1) block ++ [:: joint_block dx dy N P (at_ 9) (at_ 10)] in
  x_all full (SameMt.name_beq : row (mt_stream dx dy) -> _) bs
    (mt_prompt (@family dx M x) (fun a (j : 'I_N) => @vector dy (nth [::] y (a * N + j)))
       (fun a j => nth R0 r (a * N + j))) es.
(* η, Δ, low, high, C. *)
Definition x_constant_depth :=
  let bs := cd_blocks N W' (at_ 0) (at_ 1) (at_ 2) (at_ 3) (at_ 4) in
  x_all full (SameCd.name_beq : row (cd_stream dx dy N) -> _) bs (cd_prompt x0 y' r') es.
(* η, γ. *)
Definition x_bradley_terry :=
  x_all full (SameBt.name_beq : row (bt_stream dx dy) -> _) [:: bt_block W' (at_ 0) (at_ 1)] (bt_prompt x0 y' r') es.
Definition x_field :=
  x_all full (SameFi.name_beq : row (fi_stream dx dy) -> _) [:: Block [:: beta_head W'] None] (fi_prompt x0 y') es.
End Constructions.

Extraction "definitions.ml" x_scores x_law x_loss x_gradient x_second x_tail_means x_online
  x_records x_attention x_selected x_block
  x_plackett_luce x_causal x_printed x_multi_query x_constant_depth x_bradley_terry x_field.
