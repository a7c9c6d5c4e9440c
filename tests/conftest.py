"""What holds for every test: one thread, no window for figures, and the same random examples in every run."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "Agg"

# A deadline would measure the machine, and a check that passes today must pass tomorrow.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def root() -> Path:
    """The directory of the repository."""
    return Path(__file__).parents[1]
