"""The symbols of the constructions, with the assumptions that the derivations may use (theory §0)."""

import sympy as sp

N, M, d_x, d_y = sp.symbols("N M d_x d_y", integer=True, positive=True)
gamma = sp.Symbol("gamma", nonnegative=True)
eta, Delta = sp.symbols("eta Delta", positive=True)
W = sp.MatrixSymbol("W", d_y, d_x)
