"""In the tests, the shapes in icalign's signatures are checked at run time; here that check is seen to fail."""

import pytest
import torch
from jaxtyping import TypeCheckError

from icalign.preferences import plackett_luce_nll


def test_a_sound_call_passes() -> None:
    assert plackett_luce_nll(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 2.0])).shape == ()


def test_a_wrong_shape_is_caught_before_the_body_runs() -> None:
    with pytest.raises(TypeCheckError, match="rewards"):
        plackett_luce_nll(torch.zeros(2), torch.zeros(3))


def test_a_wrong_dtype_is_caught() -> None:
    with pytest.raises(TypeCheckError, match="scores"):
        plackett_luce_nll(torch.zeros(2, dtype=torch.int64), torch.zeros(2))
