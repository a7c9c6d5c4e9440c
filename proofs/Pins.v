(* Values of the definitions on one instance, to nine digits: coq-interval bounds the expression,
   and the kernel checks the bounds. tests/test_proofs_pins.py reads the instance and the bounds
   from this file, and computes the same values with icalign.

   Only this file may rest on the primitive integers and floats of that tactic. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect fingroup perm.
From Interval Require Import Tactic.
From Icalign Require Import Sums Vectors Rankings AlignmentTask GradientStep LogSumExp Convexity.
From Icalign Require Import OnlineLoss Records Transformer Selection.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

(* ── The instance ───────────────────────────────────────────────────────────────────────────── *)

Definition vector n (l : seq R) : vec 'I_n := fun a => nth 0 l a.
Definition matrix_of m n (l : seq (seq R)) : mat m n := fun p => nth 0 (nth [::] l p.1) p.2.
Definition responses m N (l : seq (seq R)) : 'I_N -> vec 'I_m := fun j => vector (nth [::] l j).

Definition x : vec 'I_2 := vector [:: 3/5; 4/5].
Definition y : 'I_3 -> vec 'I_2 := responses [:: [:: 1; -1/2]; [:: 1/4; 3/4]; [:: -1/2; 1/8]].
Definition r : vec 'I_3 := vector [:: 1/2; -1/4; 7/8].
Definition W : mat 2 2 := matrix_of [:: [:: 1/2; -1/4]; [:: 3/8; 1]].
Definition V : mat 2 2 := matrix_of [:: [:: -1; 1/2]; [:: 1/3; 2]].
Definition γ : R := 3/2.

(* The ranking by reward, and that of the first two responses. *)
Definition i0 : 'I_3 := @Ordinal 3 0 isT.
Definition i1 : 'I_3 := @Ordinal 3 1 isT.
Definition i2 : 'I_3 := @Ordinal 3 2 isT.
Definition places (k : 'I_3) : 'I_3 := nth i0 [:: i2; i0; i1] k.

Lemma places_inj : injective places.
Proof. by case=> [[|[|[|k]]] ?] [[|[|[|l]]] ?] // _; apply/val_inj. Qed.

Definition τ : {perm 'I_3} := perm places_inj.

Lemma ranked : ranks r τ.
Proof.
by case=> [[|[|[|k]]] ?] [[|[|[|l]]] ?] // _; rewrite !permE /places /r /vector /=; lra.
Qed.

Definition two : (2 <= 3)%N := isT.
Definition y2 : 'I_2 -> vec 'I_2 := prefix two y.

Lemma ranked_2 : ranks (prefix two r) 1%g.
Proof.
by case=> [[|[|k]] ?] [[|[|l]] ?] // _; rewrite !perm1 /prefix /r /vector /=; lra.
Qed.

(* ── Finite sums, written out ───────────────────────────────────────────────────────────────── *)

Definition j0 : 'I_2 := @Ordinal 2 0 isT.
Definition j1 : 'I_2 := @Ordinal 2 1 isT.

Lemma sum_2 (P : pred 'I_2) (F : 'I_2 -> R) :
  ∑_(i | P i) F i = (if P j0 then F j0 else 0) + (if P j1 then F j1 else 0).
Proof.
rewrite big_mkcond !sum_first big_ord0 Rplus_0_r.
rewrite (_ : lift _ _ = j1); last exact/val_inj.
by rewrite (_ : ord0 = j0); last exact/val_inj.
Qed.

Lemma sum_3 (P : pred 'I_3) (F : 'I_3 -> R) : ∑_(i | P i) F i
  = (if P i0 then F i0 else 0) + (if P i1 then F i1 else 0) + (if P i2 then F i2 else 0).
Proof.
rewrite big_mkcond !sum_first big_ord0 Rplus_0_r -Rplus_assoc.
rewrite (_ : lift _ (lift _ _) = i2); last exact/val_inj.
rewrite (_ : lift _ _ = i1); last exact/val_inj.
by rewrite (_ : ord0 = i0); last exact/val_inj.
Qed.

Lemma prod_2 (F : 'I_2 -> R) : ∏_i F i = F j0 * F j1.
Proof.
rewrite !big_ord_recl big_ord0 Monoid.mulm1 (_ : lift _ _ = j1); last exact/val_inj.
by rewrite (_ : ord0 = j0); last exact/val_inj.
Qed.

Lemma prod_3 (F : 'I_3 -> R) : ∏_i F i = F i0 * F i1 * F i2.
Proof.
rewrite !big_ord_recl big_ord0 Monoid.mulm1 Monoid.mulmA.
rewrite (_ : lift _ (lift _ _) = i2); last exact/val_inj.
rewrite (_ : lift _ _ = i1); last exact/val_inj.
by rewrite (_ : ord0 = i0); last exact/val_inj.
Qed.

Lemma permτ k : τ k = places k. Proof. exact: permE. Qed.

Lemma score_W j : score W x (y j)
  = - ((1/10 - y j j0) * (1/10 - y j j0) + (41/40 - y j j1) * (41/40 - y j j1)).
Proof.
rewrite /score /sqnorm /dot sum_2 /vsub /mulmv !sum_2 /W /matrix_of /x /vector /=.
by field.
Qed.

Ltac pin := rewrite ?(prod_3, prod_2) ?(sum_3, sum_2) /= ?(sum_3, sum_2) /= ?(permτ, perm1)
  ?score_W /places /x /y /r /V /γ /matrix_of /responses /vector /=; interval.

(* ── Values ─────────────────────────────────────────────────────────────────────────────────── *)

Lemma pin_score_0 : -3.135625001 <= score W x (y i0) <= -3.135624999.
Proof. pin. Qed.

Lemma pin_score_1 : -0.098125001 <= score W x (y i1) <= -0.098124999.
Proof. pin. Qed.

Lemma pin_score_2 : -1.170000001 <= score W x (y i2) <= -1.169999999.
Proof. pin. Qed.

Lemma pin_law : 0.011268436 <= P_PL (fun j => score W x (y j)) τ <= 0.011268438.
Proof. rewrite /P_PL; pin. Qed.

Lemma pin_loss : 4.485749660 <= loss W x y τ <= 4.485749662.
Proof. rewrite /loss /P_PL; pin. Qed.

Lemma pin_tail_mean_0 : 0.091181584 <= tail_mean W x y τ i0 j0 <= 0.091181586.
Proof. rewrite /tail_mean /comb /beta; pin. Qed.

Lemma pin_tail_mean_1 : 0.692799733 <= tail_mean W x y τ i1 j1 <= 0.692799735.
Proof. rewrite /tail_mean /comb /beta; pin. Qed.

Ltac pin_gradient := rewrite /gradient /vscal /outer /vsum /vsub /tail_mean /comb /beta; pin.

Lemma pin_gradient_00 : -0.149397907 <= gradient W x y τ (j0, j0) <= -0.149397905.
Proof. pin_gradient. Qed.

Lemma pin_gradient_01 : -0.199197210 <= gradient W x y τ (j0, j1) <= -0.199197208.
Proof. pin_gradient. Qed.

Lemma pin_gradient_10 : 1.944934771 <= gradient W x y τ (j1, j0) <= 1.944934773.
Proof. pin_gradient. Qed.

Lemma pin_gradient_11 : 2.593246361 <= gradient W x y τ (j1, j1) <= 2.593246363.
Proof. pin_gradient. Qed.

Lemma pin_curvature : 2.320134793 <= second_derivative W V x y τ <= 2.320134795.
Proof. rewrite /second_derivative /variance /wmean /dot /mulmv /beta; pin. Qed.

(* The first two responses of the three. *)
Lemma pin_online_loss : 3.084340288 <= loss W x y2 1%g <= 3.084340290.
Proof. rewrite /loss /P_PL /y2 /prefix; pin. Qed.

Lemma pin_online_gradient_01 : -1.145087746 <= gradient W x y2 1%g (j0, j1) <= -1.145087744.
Proof. rewrite /y2 /prefix; pin_gradient. Qed.

Lemma pin_softmax : 0.341604959 <= softmax r i0 <= 0.341604961.
Proof. rewrite /softmax; pin. Qed.

(* The selection head: what token 0 attends to, and what it finds. *)
Lemma pin_attention : 0.569877129 <= sel_attention γ x y r i0 i2 <= 0.569877131.
Proof. rewrite sel_softmax /softmax; pin. Qed.

Lemma pin_selected_0 : 0.066121802 <= selected γ x y r i0 j0 <= 0.066121804.
Proof. rewrite sel_output /comb /softmax; pin. Qed.

Lemma pin_selected_1 : -0.012055958 <= selected γ x y r i0 j1 <= -0.012055956.
Proof. rewrite sel_output /comb /softmax; pin. Qed.

(* The rewards in their order of arrival: the first is a record, and so is the last. *)
Lemma pin_records : 2 <= INR (records r) <= 2.
Proof.
have r0 : record r i0 by apply/forallP => j; rewrite ltn0.
have r1 : record r i1 = false.
  by apply/negbTE/forallPn; exists i0; rewrite /=; case: Rlt_dec => //; rewrite /r /vector /=; lra.
have r2 : record r i2.
  by apply/forallP; case=> [[|[|[|j]]] ?] //; apply/implyP => _; case: Rlt_dec => //;
     rewrite /r /vector /=; lra.
rewrite /records !big_ord_recl big_ord0 (_ : lift _ (lift _ _) = i2); last exact/val_inj.
rewrite (_ : lift _ _ = i1); last exact/val_inj.
by rewrite (_ : ord0 = i0) ?r0 ?r1 ?r2 /=; [lra | exact/val_inj].
Qed.

Lemma pin_stirling : 225 <= INR (stirling 6 3) <= 225.
Proof. by rewrite (_ : stirling 6 3 = 225%N) ?INR_IZR_INZ /=; [lra | vm_compute]. Qed.
