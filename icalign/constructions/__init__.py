"""Transformers with hand-set weights, one construction a file."""

from .causal import Causal
from .multi_query import MultiQuery
from .plackett_luce import PlackettLuce
from .selection import Selection

__all__ = ["Causal", "MultiQuery", "PlackettLuce", "Selection"]
