"""What a task refuses, and what every sample of a class satisfies."""

import inspect
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from icalign import AlignmentTask, OutOfClass, sample_task
from icalign.tasks import refuse_ties

SEEDS = st.integers(0, 2**31 - 1)
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def small_task() -> dict[str, Tensor]:
    task = sample_task(batch=(3,), queries=2, responses=4, dim_x=5, dim_y=3)
    return {"x": task.x, "y": task.y, "r": task.r, "W": task.W}


def make_unchecked(**fields: object) -> None:
    """AlignmentTask(…) as users call it: without the tests' type checks, which would speak first."""
    inspect.unwrap(AlignmentTask.__init__)(object.__new__(AlignmentTask), **fields)


def put(tensor: Tensor, index: tuple[int, ...], value: float) -> Tensor:
    changed = tensor.clone()
    changed[index] = value
    return changed


REFUSED = {
    "x is no tensor": (lambda t: {"x": [1.0]}, "x: list, expected a floating torch tensor"),
    "integer rewards": (lambda t: {"r": t["r"].long()}, "r: dtype torch.int64, expected a floating torch tensor"),
    "mixed dtypes": (lambda t: {"y": t["y"].float()}, "y: dtype torch.float32, expected torch.float64 as in x"),
    "x is a vector": (lambda t: {"x": t["x"][0, 0]}, "x: shape (5,), expected (…, M, d_x)"),
    "no queries": (lambda t: {"x": t["x"][:, :0]}, "x: shape (3, 0, 5), expected (…, M, d_x) with no dimension 0"),
    "y of another batch": (lambda t: {"y": t["y"][0]}, "y: shape (2, 4, 3), expected (3, 2, N, d_y) to fit x of shape"),
    "y of more queries": (lambda t: {"y": t["y"][:, :1]}, "y: shape (3, 1, 4, 3), expected (3, 2, N, d_y)"),
    "a reward missing": (lambda t: {"r": t["r"][..., :3]}, "r: shape (3, 2, 3), expected (3, 2, 4)"),
    "W transposed": (lambda t: {"W": t["W"].mT}, "W: shape (5, 3), expected (d_y, d_x) = (3, 5)"),
    "a W for each task": (lambda t: {"W": t["W"].expand(3, 3, 5)}, "W: shape (3, 3, 5), expected (d_y, d_x) = (3, 5)"),
    "NaN in x": (lambda t: {"x": put(t["x"], (1, 0, 2), math.nan)}, "x: nan at (1, 0, 2), expected finite values"),
    "inf in y": (lambda t: {"y": put(t["y"], (2, 1, 3, 0), math.inf)}, "y: inf at (2, 1, 3, 0), expected finite"),
    "-inf in r": (lambda t: {"r": put(t["r"], (0, 1, 2), -math.inf)}, "r: -inf at (0, 1, 2), expected finite"),
    "NaN in W": (lambda t: {"W": put(t["W"], (2, 4), math.nan)}, "W: nan at (2, 4), expected finite values"),
    "tied rewards": (
        lambda t: {"r": put(put(t["r"], (1, 1, 3), 0.5), (1, 1, 0), 0.5)},
        "r: responses 0 and 3 of query (1, 1) both have reward 0.5, expected distinct rewards",
    ),
    "a long query": (
        lambda t: {"x": torch.cat([t["x"][:, :1], 1.5 * t["x"][:, 1:]], 1)},
        "x: query (0, 1) has norm 1.5, expected 1 to within 1e-09 (torch.float64)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_task_is_refused_with_the_argument_and_what_was_expected(case: str) -> None:
    arguments = small_task()
    change, message = REFUSED[case]
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        make_unchecked(**(arguments | change(arguments)))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(torch.float64, 1e-9), (torch.float32, 1e-5), (torch.float16, 2**-9), (torch.bfloat16, 2**-6)]
)
def test_the_norm_of_a_query_is_held_to_the_tolerance_of_its_dtype(dtype: torch.dtype, limit: float) -> None:
    task = sample_task(dim_x=1, responses=2, dtype=dtype)
    for sign in (1, -1):
        replace(task, x=torch.full((1, 1), 1 + sign * 0.9 * limit, dtype=torch.float64).to(dtype))
        with pytest.raises(ValueError, match=r"x: query \(0,\) has norm"):
            replace(task, x=torch.full((1, 1), 1 + sign * 1.6 * limit, dtype=torch.float64).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_queries_normalised_in_their_own_dtype_are_accepted(dtype: torch.dtype) -> None:
    task = sample_task(batch=(200,), dim_x=33, dtype=dtype)
    normal = torch.randn(task.x.shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    replace(task, x=normal / normal.norm(dim=-1, keepdim=True))


def test_ties_are_looked_for_within_a_query_only() -> None:
    refuse_ties("r", torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"responses 0 and 1 of query \(\) both have reward 2.0"):
        refuse_ties("r", torch.tensor([2.0, 2.0]))


def test_out_of_class_is_a_value_error() -> None:
    assert issubclass(OutOfClass, ValueError)


def test_a_task_reports_its_sizes_and_the_smallest_class_around_it() -> None:
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    y = torch.tensor([[[3.0, 4.0, 0.0], [0.0, 0.0, 1.0]], [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]])
    task = AlignmentTask(x, y, torch.tensor([[0.25, 1.0], [2.0, -1.0]]), torch.zeros(3, 2))
    assert (task.batch, task.queries, task.responses, task.dim_x, task.dim_y) == ((), 2, 2, 2, 3)
    assert (task.dtype, task.min_gap, task.reward_range, task.radius) == (torch.float32, 0.75, (-1.0, 2.0), 5.0)
    assert task.overlap == x[1, 0].item()
    single = sample_task(responses=1)
    assert (single.min_gap, single.overlap) == (math.inf, 0.0)


@given(
    seed=SEEDS,
    responses=st.integers(1, 9),
    queries=st.integers(1, 3),
    min_gap=st.floats(1e-3, 0.2),
    low=st.floats(-5.0, 5.0),
    width=st.floats(1.7, 4.0),
    radius=st.floats(1e-2, 1e2),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_every_sample_lies_in_its_class(
    seed: int,
    responses: int,
    queries: int,
    min_gap: float,
    low: float,
    width: float,
    radius: float,
    dtype: torch.dtype,
) -> None:
    high = low + width
    task = sample_task(
        batch=(2,), queries=queries, responses=responses, min_gap=min_gap, reward_range=(low, high), radius=radius,
        overlap=0.8, seed=seed, dtype=dtype,
    )  # fmt: skip
    assert task.dtype == dtype and task.y.shape == (2, queries, responses, 3)
    assert task.radius <= radius and task.overlap <= 0.8
    assert low <= task.reward_range[0] and task.reward_range[1] <= high
    for rewards in task.r.reshape(-1, responses).tolist():  # exact: float subtraction could round a short gap up
        ranked = sorted(map(Fraction, rewards))
        assert all(b - a >= Fraction(min_gap) for a, b in pairwise(ranked))


@given(seed=SEEDS, responses=st.integers(2, 30), spare=st.floats(1e-12, 1e-6))
def test_gaps_hold_in_an_almost_empty_class(seed: int, responses: int, spare: float) -> None:
    min_gap = 2 / (responses - 1) * (1 - spare)
    task = sample_task(responses=responses, min_gap=min_gap, seed=seed)
    ranked = sorted(map(Fraction, task.r[0].tolist()))
    assert all(b - a >= Fraction(min_gap) for a, b in pairwise(ranked))
    assert ranked[0] >= 0 and ranked[-1] <= 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_class_of_one_set_of_rewards_is_sampled_to_within_its_rounding(dtype: torch.dtype) -> None:
    # (N−1)Δ = R in float64 arithmetic, though 20 · fl(0.1) > 2 in real numbers: the gaps may fall short by 3 spacings.
    task = sample_task(responses=21, min_gap=0.1, dtype=dtype)
    assert task.min_gap > 0.1 - 3 * 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_of_every_dtype_stay_in_the_ball_and_the_range(dtype: torch.dtype) -> None:
    task = sample_task(batch=(50,), queries=2, dim_y=200, overlap=0.5, dim_x=6, dtype=dtype, reward_range=(-1.0, 1.5))
    assert task.radius <= 3 and task.overlap <= 0.5 and task.min_gap >= 0.1
    assert task.reward_range[0] >= -1 and task.reward_range[1] <= 1.5


def test_a_quarter_of_the_responses_lies_on_the_sphere() -> None:
    # 4000 coins of 1/4: standard deviation 0.0068, so 0.035 is five of them.
    norms = sample_task(batch=(500,), dim_y=2).y.norm(dim=-1)
    assert abs((norms > 3 * (1 - 1e-12)).double().mean().item() - 0.25) < 0.035
    assert (norms < 1.5).any()


def test_rewards_come_in_random_order_and_off_every_coarse_dyadic_grid() -> None:
    rewards = sample_task(batch=(400,), responses=4).r
    first_places = rewards.argmax(-1).flatten().bincount(minlength=4) / 400
    assert (first_places - 0.25).abs().max() < 5 * math.sqrt(0.25 * 0.75 / 400)  # five standard deviations
    on_grid = (rewards * 2**30) == (rewards * 2**30).round()
    assert not on_grid.any()  # each is on it with probability 2⁻²²


def test_samples_are_determined_by_the_seed_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    one, same, other = (sample_task(batch=(2,), queries=3, overlap=0.5, seed=seed) for seed in (11, 11, 12))
    assert torch.equal(before, torch.get_rng_state())
    for name in "xyrW":
        assert torch.equal(getattr(one, name), getattr(same, name))
        assert not torch.equal(getattr(one, name), getattr(other, name))


def test_w_depends_on_seed_and_dimensions_only() -> None:
    small, large = sample_task(seed=5), sample_task(batch=(6, 2), queries=3, responses=5, min_gap=0.01, seed=5)
    assert torch.equal(small.W, large.W)
    assert torch.equal(small.W.float(), sample_task(seed=5, dtype=torch.float32).W)
    given_W = torch.zeros(3, 4, dtype=torch.float64)
    assert sample_task(W=given_W).W is given_W


@given(seed=SEEDS, queries=st.integers(1, 6), dtype=st.sampled_from(DTYPES))
def test_orthonormal_queries_are_orthonormal_to_rounding(seed: int, queries: int, dtype: torch.dtype) -> None:
    task = sample_task(batch=(3,), queries=queries, dim_x=6, orthonormal=True, seed=seed, dtype=dtype)
    x = task.x.double()
    # QR in float64 is orthonormal to a small multiple of 2⁻⁵³; rounding the entries to u moves an inner product of unit
    # vectors by at most 2u + u².
    tolerance = 1.1 * torch.finfo(dtype).eps + 64 * 2**-53
    assert (x @ x.mT - torch.eye(queries)).abs().max() <= tolerance


@pytest.mark.parametrize("overlap", [-0.3, 0.0, 0.5, 1.0])
def test_overlap_bounds_every_pair_of_queries(overlap: float) -> None:
    task = sample_task(batch=(40,), queries=3, dim_x=4, overlap=overlap)
    products = task.x @ task.x.mT - 2 * torch.eye(3)
    assert products.max() <= overlap and products.max() == task.overlap
    assert products.max() > overlap - 0.2  # the bound is nearly used


EMPTY = {
    "too many responses": (
        {"responses": 22},
        "min_gap: 22 responses at gaps of 0.1 span (N−1)Δ = 2.1, expected at most high − low = 2: the class is empty",
    ),
    "zero gap": ({"min_gap": 0.0}, "min_gap: 0.0, expected a positive finite gap"),
    "NaN gap": ({"min_gap": math.nan}, "min_gap: nan, expected a positive finite gap"),
    "reversed range": ({"reward_range": (2.0, 0.0)}, "reward_range: (2.0, 0.0), expected finite (low, high)"),
    "infinite range": ({"reward_range": (0.0, math.inf)}, "reward_range: (0.0, inf), expected finite (low, high)"),
    "a batch that is no tuple": ({"batch": 3}, "batch: 3, expected a tuple of positive dimensions"),
    "half a batch": ({"batch": (2.5,)}, "batch: (2.5,), expected a tuple of positive dimensions"),
    "half a response": ({"responses": 2.5}, "responses: 2.5, expected an integer, at least 1"),
    "dimensions as text": ({"dim_x": "4"}, "dim_x: '4', expected an integer, at least 1"),
    "a truth value": ({"queries": True}, "queries: True, expected an integer, at least 1"),
    "half a seed": ({"seed": 1.5}, "seed: 1.5, expected an integer in [0, 2^31)"),
    "one end": ({"reward_range": 5}, "reward_range: 5, expected a pair (low, high)"),
    "three ends": ({"reward_range": (0, 1, 2)}, "reward_range: (0, 1, 2), expected a pair (low, high)"),
    "ends as text": ({"reward_range": "02"}, "reward_range: '02', expected a pair (low, high)"),
    "an end as text": ({"reward_range": (0.0, "2")}, "reward_range[1]: '2', expected a real number"),
    "an end no float holds": ({"reward_range": (0, 10**400)}, "expected a number that a float holds"),
    "a range below normal numbers": (
        {"reward_range": (0.0, 1e-320), "min_gap": 1e-322},
        "reward_range: (0.0, 1e-320), expected an end of size at least 2.22507e-308, the smallest normal number of",
    ),
    "a range below normal numbers of its dtype": (
        {"reward_range": (0.0, 1e-5), "min_gap": 1e-7, "dtype": torch.float16},
        "reward_range: (0.0, 1e-05), expected an end of size at least 6.10352e-05, the smallest normal number of",
    ),
    "a range beyond its dtype": (
        {"reward_range": (0.0, 1e5), "dtype": torch.float16},
        "reward_range: (0.0, 100000.0), expected rewards and high − low = 100000 of at most 65504, the largest number",
    ),
    "a width beyond float64": (
        {"reward_range": (-1e308, 1e308)},
        "reward_range: (-1e+308, 1e+308), expected rewards and high − low = inf of at most 1.79769e+308",
    ),
    "a gap as text": ({"min_gap": "0.1"}, "min_gap: '0.1', expected a real number"),
    "a radius as text": ({"radius": "3"}, "radius: '3', expected a real number"),
    "a diameter beyond float64": (
        {"radius": 1e308},
        "radius: 1e+308, expected at most 8.98847e+307: D₀ = 2·radius overflows torch.float64",
    ),
    "a diameter beyond its dtype": (
        {"radius": 4e4, "dtype": torch.float16},
        "radius: 40000.0, expected at most 32752: D₀ = 2·radius overflows torch.float16",
    ),
    "no radius": ({"radius": 0.0}, "radius: 0.0, expected a positive finite bound"),
    "no responses": ({"responses": 0}, "responses: 0, expected at least 1"),
    "no queries": ({"queries": 0}, "queries: 0, expected at least 1"),
    "empty batch": ({"batch": (2, 0)}, "batch: (2, 0), expected a tuple of positive dimensions"),
    "too wide a frame": (
        {"queries": 5, "orthonormal": True},
        "orthonormal: 5 queries in dimension dim_x = 4, expected queries ≤ dim_x",
    ),
    "frame with negative overlap": (
        {"queries": 2, "orthonormal": True, "overlap": -0.1},
        "overlap: -0.1, expected ≥ 0 with orthonormal=True",
    ),
    "impossible overlap": (
        {"queries": 3, "overlap": -0.6},  # three unit vectors have an inner product ≥ −1/2
        "overlap: -0.6 was not met by 3 queries in dimension 4 in 2000 rounds of redrawing",
    ),
    "overlap as text": ({"overlap": "no"}, "overlap: 'no', expected a real number"),
    "overlap above one": ({"overlap": 1.5}, "overlap: 1.5, expected a bound ρ in [−1, 1]"),
    "W transposed": (
        {"W": torch.zeros(4, 3, dtype=torch.float64)},
        "W: torch.float64 of shape (4, 3), expected torch.float64 of shape (dim_y, dim_x) = (3, 4)",
    ),
    "W as a list": ({"W": [[1.0]]}, "W: list, expected a floating torch tensor"),
    "W of integers": ({"W": torch.zeros(3, 4).long()}, "W: dtype torch.int64, expected a floating torch tensor"),
    "W of another dtype": (
        {"W": torch.zeros(3, 4)},
        "W: torch.float32 of shape (3, 4), expected torch.float64 of shape (dim_y, dim_x) = (3, 4)",
    ),
    "negative seed": ({"seed": -1}, "seed: -1, expected an integer in [0, 2^31)"),
    "integer dtype": ({"dtype": torch.int64}, "dtype: torch.int64, expected a floating type"),
    "dtype as text": ({"dtype": "float64"}, "dtype: 'float64', expected a floating type: one of torch.float64"),
    "int32": ({"dtype": torch.int32}, "dtype: torch.int32, expected a floating type: one of torch.float64"),
    "float8": ({"dtype": torch.float8_e5m2}, "dtype: torch.float8_e5m2, expected a floating type: one of torch.fl"),
    "coarse dtype": (
        {"dtype": torch.bfloat16, "responses": 500, "min_gap": 0.004},
        "dtype: torch.bfloat16 resolves rewards in (0.0, 2.0) to 0.016, expected one that holds 500 responses",
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("case", EMPTY)
def test_an_empty_class_is_refused_with_its_numbers(case: str) -> None:
    arguments, message = EMPTY[case]
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        sample_task(**arguments)
    assert message in str(refusal.value)


@pytest.mark.usefixtures("unchecked")
def test_sizes_and_seeds_of_numpy_and_lists_are_accepted() -> None:
    task = sample_task(batch=[2], responses=np.int64(5), reward_range=[0, 2], seed=np.int32(2**30 + 1))
    assert torch.equal(task.r, sample_task(batch=(2,), responses=5, seed=2**30 + 1).r)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-500, 1.0, 2.0**500, 2.0**1000])
def test_the_radius_of_very_large_and_small_responses(scale: float) -> None:
    task = sample_task()
    assert replace(task, y=task.y * scale).radius == task.radius * scale  # a power of two: every rounding is the same
    assert replace(task, y=task.y * 0).radius == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_and_the_smallest_classes_can_be_sampled(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    large = sample_task(batch=(9,), dtype=dtype, radius=limits.max / 2, reward_range=(0.0, limits.max), min_gap=1.0)
    assert 0.9 * limits.max / 2 < large.radius <= limits.max / 2
    end = limits.smallest_normal
    small = sample_task(batch=(9,), dtype=dtype, responses=3, reward_range=(0.0, end), min_gap=end / 4)
    assert small.min_gap >= end / 4 and small.reward_range[1] <= end
