"""Transformers with hand-set weights, one construction a file."""

from .plackett_luce import PlackettLuce
from .selection import Selection

__all__ = ["PlackettLuce", "Selection"]
