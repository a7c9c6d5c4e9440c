"""What holds for every test: one thread, no window for figures, and the same random examples in every run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import config

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "Agg"

# A deadline would measure the machine, and a check that passes today must pass tomorrow.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def root() -> Path:
    """The directory of the repository."""
    return Path(__file__).parents[1]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Calls as users make them: without the tests' type checks, which would speak first."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
