"""A book whose proofs run: transformers with hand-set weights that descend a Plackett–Luce loss.

The names below are the public interface. They are loaded on first use, so that light parts
(``icalign.ledger``) do not pay for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .preferences import (
        bradley_terry_nll,
        gradient_step,
        online_gradient_steps,
        online_plackett_luce_nll,
        plackett_luce_nll,
        scores,
    )
    from .tasks import AlignmentTask, OutOfClass, sample_task

_HOME = {
    "AlignmentTask": "tasks",
    "OutOfClass": "tasks",
    "sample_task": "tasks",
    "bradley_terry_nll": "preferences",
    "gradient_step": "preferences",
    "online_gradient_steps": "preferences",
    "online_plackett_luce_nll": "preferences",
    "plackett_luce_nll": "preferences",
    "scores": "preferences",
}

__all__ = [
    "AlignmentTask",
    "OutOfClass",
    "bradley_terry_nll",
    "gradient_step",
    "online_gradient_steps",
    "online_plackett_luce_nll",
    "plackett_luce_nll",
    "sample_task",
    "scores",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
