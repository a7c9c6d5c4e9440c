"""Transformers with hand-set weights, one construction a file."""

from .selection import Selection

__all__ = ["Selection"]
