(* The definitions as programs on floating-point numbers, to compare them with icalign
   (tests/test_extraction.py). Here R is OCaml's float; what is extracted is the definitions of the
   proofs themselves, mathcomp's sums and permutations included. Nothing here is proved. *)

From Coq Require Import Reals ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt.
From mathcomp Require Import all_ssreflect fingroup perm.
From Icalign Require Import Sums Vectors AlignmentTask GradientStep Convexity OnlineLoss Records.
From Icalign Require Import Transformer Selection.

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

Extraction "definitions.ml" x_scores x_law x_loss x_gradient x_second x_tail_means x_online
  x_records x_attention x_selected x_block.
