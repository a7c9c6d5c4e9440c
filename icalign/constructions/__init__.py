"""Transformers with hand-set weights, one construction a file."""

from .causal import Causal
from .multi_query import MultiQuery
from .parallel import ConstantDepth
from .parallel_causal import CausalConstantDepth
from .parallel_grid import TwoLayers, TwoLayersMultiQuery
from .plackett_luce import PlackettLuce
from .selection import Selection

__all__ = [
    "Causal",
    "CausalConstantDepth",
    "ConstantDepth",
    "MultiQuery",
    "PlackettLuce",
    "Selection",
    "TwoLayers",
    "TwoLayersMultiQuery",
]
