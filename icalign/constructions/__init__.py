"""Transformers with hand-set weights, one construction a file."""

from .causal import Causal
from .plackett_luce import PlackettLuce
from .selection import Selection

__all__ = ["Causal", "PlackettLuce", "Selection"]
