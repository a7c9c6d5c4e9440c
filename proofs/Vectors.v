(* Vectors and matrices of reals, dot products and norms.

   A vector is a function from a finite type of coordinates: vec 'I_d, or vec rows for named rows.
   A matrix is the vector of its entries W (a, b), so that ⟨V, W⟩ and ‖W‖ are Frobenius'. *)

From Coq Require Import Reals Lra FunctionalExtensionality.
From mathcomp Require Import all_ssreflect.
From Icalign Require Import Sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Open Scope R_scope.

Definition vec (I : Type) := I -> R.
Definition mat (m n : nat) := vec ('I_m * 'I_n).

Declare Scope vec_scope.
Delimit Scope vec_scope with V.
Bind Scope vec_scope with vec.
Bind Scope vec_scope with mat.

Definition vadd {I : Type} (u v : vec I) : vec I := fun a => u a + v a.
Definition vsub {I : Type} (u v : vec I) : vec I := fun a => u a - v a.
Definition vscal {I : Type} (c : R) (v : vec I) : vec I := fun a => c * v a.
Definition vzero {I : Type} : vec I := fun _ => 0.

(* Scalar product, square of the norm, norm. *)
Definition dot {I : finType} (u v : vec I) : R := ∑_a (u a * v a).
Definition sqnorm {I : finType} (v : vec I) : R := dot v v.
Definition vnorm {I : finType} (v : vec I) : R := sqrt (sqnorm v).

(* W x, and the matrix g xᵀ. *)
Definition mulmv {I J : finType} (W : vec (I * J)) (x : vec J) : vec I :=
  fun a => ∑_b (W (a, b) * x b).
Definition outer {I J : Type} (g : vec I) (x : vec J) : vec (I * J) := fun p => g p.1 * x p.2.

(* The linear combination ∑_i w_i v_i. *)
Definition comb {I : finType} {J : Type} (w : I -> R) (v : I -> vec J) : vec J :=
  fun a => ∑_i (w i * v i a).

(* A sum of vectors. *)
Definition vsum {I : finType} {J : Type} (P : pred I) (v : I -> vec J) : vec J :=
  fun a => ∑_(i | P i) v i a.

Notation "∑_ ( i < n | P ) F" := (vsum (fun i : 'I_n => P%B) (fun i : 'I_n => F%V)) : vec_scope.
Notation "u + v" := (vadd u v) : vec_scope.
Notation "u - v" := (vsub u v) : vec_scope.
Notation "c *: v" := (vscal c%R v) (at level 40) : vec_scope.
Notation "W *v x" := (mulmv W x) (at level 40, left associativity) : vec_scope.
Notation "⟨ u , v ⟩" := (dot u%V v%V)
  (at level 0, u at level 99, v at level 99, format "⟨ u ,  v ⟩") : R_scope.
Notation "‖ v ‖" := (vnorm v%V) (at level 35, v at level 99, format "‖ v ‖") : R_scope.
Notation "‖ v ‖²" := (sqnorm v%V) (at level 35, v at level 99, format "‖ v ‖²") : R_scope.

(* Two vectors are equal if their coordinates are. *)
Lemma vec_eq (I : Type) (u v : vec I) : (forall a, u a = v a) -> u = v.
Proof. exact: functional_extensionality. Qed.

Section Dot.
Variable I : finType.
Implicit Types u v w : vec I.

(* The scalar product is symmetric and bilinear. *)
Lemma dotC u v : ⟨u, v⟩ = ⟨v, u⟩.
Proof. by apply: eq_bigr => a _; rewrite Rmult_comm. Qed.

Lemma dot_addl u v w : ⟨u + v, w⟩ = ⟨u, w⟩ + ⟨v, w⟩.
Proof. by rewrite /dot -sum_add; apply: eq_bigr => a _; rewrite /vadd; ring. Qed.

Lemma dot_addr u v w : ⟨w, u + v⟩ = ⟨w, u⟩ + ⟨w, v⟩.
Proof. by rewrite dotC dot_addl !(dotC w). Qed.

Lemma dot_subl u v w : ⟨u - v, w⟩ = ⟨u, w⟩ - ⟨v, w⟩.
Proof. by rewrite /dot -sum_sub; apply: eq_bigr => a _; rewrite /vsub; ring. Qed.

Lemma dot_subr u v w : ⟨w, u - v⟩ = ⟨w, u⟩ - ⟨w, v⟩.
Proof. by rewrite dotC dot_subl !(dotC w). Qed.

Lemma dot_scall c u v : ⟨c *: u, v⟩ = c * ⟨u, v⟩.
Proof. by rewrite /dot -sum_scal; apply: eq_bigr => a _; rewrite /vscal; ring. Qed.

Lemma dot_scalr c u v : ⟨u, c *: v⟩ = c * ⟨u, v⟩.
Proof. by rewrite dotC dot_scall (dotC v). Qed.

Lemma dot_zerol v : ⟨vzero, v⟩ = 0.
Proof. by apply: sum_eq0 => a _; rewrite /vzero; ring. Qed.

(* A scalar product with a linear combination. *)
Lemma dot_combr (J : finType) (c : J -> R) (v : J -> vec I) u :
  ⟨u, comb c v⟩ = ∑_j (c j * ⟨u, v j⟩).
Proof.
rewrite /dot /comb (eq_bigr (fun a => ∑_j (c j * (u a * v j a)))); last first.
  by move=> a _; rewrite -sum_scal; apply: eq_bigr => j _; ring.
by rewrite sum_exchange; apply: eq_bigr => j _; rewrite sum_scal.
Qed.

(* A scalar product with a sum of vectors. *)
Lemma dot_vsumr (J : finType) (P : pred J) (v : J -> vec I) u :
  ⟨u, vsum P v⟩ = ∑_(j | P j) ⟨u, v j⟩.
Proof.
rewrite /dot exchange_big; apply: eq_bigr => a _.
by rewrite /vsum -sum_scal.
Qed.

(* Squares of norms. *)
Lemma sqnorm_ge0 v : 0 <= ‖v‖².
Proof. by apply: sum_ge0 => a _; exact: Rle_0_sqr. Qed.

Lemma sqnorm_add u v : ‖u + v‖² = ‖u‖² + 2 * ⟨u, v⟩ + ‖v‖².
Proof. by rewrite /sqnorm dot_addl !dot_addr (dotC v u); ring. Qed.

Lemma sqnorm_sub u v : ‖u - v‖² = ‖u‖² - 2 * ⟨u, v⟩ + ‖v‖².
Proof. by rewrite /sqnorm dot_subl !dot_subr (dotC v u); ring. Qed.

Lemma sqnorm_scal c v : ‖c *: v‖² = c * c * ‖v‖².
Proof. by rewrite /sqnorm dot_scall dot_scalr; ring. Qed.

(* Only the zero vector has norm zero. *)
Lemma sqnorm_eq0 v : ‖v‖² = 0 -> v = vzero.
Proof.
move=> v0; apply: vec_eq => a; apply: Rsqr_0_uniq.
have := @sum_ge_term I predT (fun a => v a * v a) a isT (fun a _ => Rle_0_sqr (v a)).
by rewrite -[X in _ <= X]/(‖v‖²) v0; have := Rle_0_sqr (v a); rewrite /Rsqr; lra.
Qed.

Lemma sqnorm_gt0 v : v <> vzero -> 0 < ‖v‖².
Proof. by move=> v0; case: (sqnorm_ge0 v) => // /esym /sqnorm_eq0. Qed.

(* Norms. *)
Lemma vnorm_ge0 v : 0 <= ‖v‖. Proof. exact: sqrt_pos. Qed.

Lemma vnorm_sqr v : ‖v‖ * ‖v‖ = ‖v‖². Proof. exact: sqrt_sqrt (sqnorm_ge0 v). Qed.

Lemma vnorm_scal c v : ‖c *: v‖ = Rabs c * ‖v‖.
Proof.
rewrite /vnorm sqnorm_scal sqrt_mult; [|exact: Rle_0_sqr|exact: sqnorm_ge0].
by rewrite -[c * c]/(Rsqr c) sqrt_Rsqr_abs.
Qed.

(* Cauchy and Schwarz, squared and with norms. *)
Lemma dot_sqr_le u v : ⟨u, v⟩ * ⟨u, v⟩ <= ‖u‖² * ‖v‖².
Proof.
case: (sqnorm_ge0 v) => [v0|/esym v0]; last first.
  by rewrite v0 (sqnorm_eq0 v0) dotC dot_zerol; lra.
have := sqnorm_ge0 (‖v‖² *: u - ⟨u, v⟩ *: v)%V.
rewrite sqnorm_sub !sqnorm_scal dot_scall dot_scalr => H.
by apply: (Rmult_le_reg_l (‖v‖²)) => //; lra.
Qed.

Lemma dot_le u v : ⟨u, v⟩ <= ‖u‖ * ‖v‖.
Proof.
apply: Rle_trans (Rle_abs _) _; rewrite -(Rabs_right (‖u‖ * ‖v‖)); last first.
  by apply: Rle_ge; apply: Rmult_le_pos; exact: vnorm_ge0.
apply: Rsqr_le_abs_0; rewrite /Rsqr.
by have := dot_sqr_le u v; rewrite -!vnorm_sqr; lra.
Qed.

Lemma dot_abs_le u v : Rabs ⟨u, v⟩ <= ‖u‖ * ‖v‖.
Proof.
have := dot_le u v; have := dot_le ((-1) *: u)%V v.
by rewrite dot_scall vnorm_scal Rabs_Ropp Rabs_R1; split_Rabs; lra.
Qed.

(* The triangle inequality. *)
Lemma vnorm_triangle u v : ‖u + v‖ <= ‖u‖ + ‖v‖.
Proof.
have u0 := vnorm_ge0 u; have v0 := vnorm_ge0 v; have uv0 := vnorm_ge0 (u + v)%V.
rewrite -(Rabs_right (‖u + v‖)); last by lra.
rewrite -(Rabs_right (‖u‖ + ‖v‖)); last by lra.
apply: Rsqr_le_abs_0; rewrite /Rsqr vnorm_sqr sqnorm_add -!vnorm_sqr.
by have := dot_le u v; lra.
Qed.

(* The norm of a linear combination. *)
Lemma vnorm_comb (J : finType) (c : J -> R) (v : J -> vec I) :
  ‖comb c v‖ <= ∑_j (Rabs (c j) * ‖v j‖).
Proof.
set u := comb c v; case: (vnorm_ge0 u) => [u0|<-]; last first.
  by apply: sum_ge0 => j _; apply: Rmult_le_pos (Rabs_pos _) (vnorm_ge0 _).
apply: (Rmult_le_reg_l (‖u‖)) => //; rewrite vnorm_sqr /sqnorm {2}/u dot_combr -sum_scal.
apply: sum_le => j _; have le := Rle_abs (c j * ⟨u, v j⟩).
rewrite Rabs_mult in le; have := Rabs_pos (c j); have := dot_abs_le u (v j) => uj cj.
have := Rmult_le_compat_l _ _ _ cj uj; lra.
Qed.

End Dot.

(* Matrices act linearly on vectors. *)
Section Matrices.
Variables I J : finType.
Implicit Types (V W : vec (I * J)) (x : vec J).

Lemma mulmv_add V W x : ((V + W) *v x = V *v x + W *v x)%V.
Proof. by apply: vec_eq => a; rewrite /mulmv/vadd -sum_add; apply: eq_bigr => b _; ring. Qed.

Lemma mulmv_sub V W x : ((V - W) *v x = V *v x - W *v x)%V.
Proof. by apply: vec_eq => a; rewrite /mulmv/vsub -sum_sub; apply: eq_bigr => b _; ring. Qed.

Lemma mulmv_scal c W x : ((c *: W) *v x = c *: (W *v x))%V.
Proof. by apply: vec_eq => a; rewrite /mulmv/vscal -sum_scal; apply: eq_bigr => b _; ring. Qed.

(* (g xᵀ) z = ⟨x, z⟩ g, and ⟨g xᵀ, V⟩ = ⟨g, V x⟩. *)
Lemma mulmv_outer (g : vec I) x (z : vec J) : (outer g x *v z = ⟨x, z⟩ *: g)%V.
Proof.
apply: vec_eq => a; rewrite /mulmv/outer/vscal/dot -sum_scalr.
by apply: eq_bigr => b _ /=; ring.
Qed.

Lemma dot_outer (g : vec I) x V : ⟨outer g x, V⟩ = ⟨g, V *v x⟩.
Proof.
rewrite /dot /mulmv (eq_bigr (fun a => ∑_b (g a * x b * V (a, b)))); last first.
  by move=> a _; rewrite -sum_scal; apply: eq_bigr => b _; ring.
by rewrite sum_pair; apply: eq_bigr => [[a b]] _.
Qed.

(* ‖g xᵀ‖² = ‖g‖² ‖x‖², and ‖W x‖ ≤ ‖W‖ ‖x‖. *)
Lemma sqnorm_outer (g : vec I) x : ‖outer g x‖² = ‖g‖² * ‖x‖².
Proof. by rewrite /sqnorm dot_outer mulmv_outer dot_scalr Rmult_comm. Qed.

Lemma sqnorm_mulmv W x : ‖W *v x‖² <= ‖W‖² * ‖x‖².
Proof.
set g := (W *v x)%V; case: (sqnorm_ge0 g) => [g0|<-]; last first.
  by apply: Rmult_le_pos; exact: sqnorm_ge0.
have := dot_sqr_le (outer g x) W; rewrite dot_outer -/g sqnorm_outer -[⟨g, g⟩]/(‖g‖²).
by move=> le; apply: (Rmult_le_reg_l (‖g‖²)) => //; lra.
Qed.

End Matrices.
