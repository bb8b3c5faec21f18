"""What a reader is told of two simulated times."""

import dataclasses

import pytest

from irdiff.cost import Confidence, Estimate, LaunchTime, NotEstimated, estimate
from irdiff.cost.launch_time import COUNTS

BASE = LaunchTime(
    microseconds=100.0, scheduled_us=95.0, memory_us=20.0, bound="latency", blocks=2, warps=4, grid=1000,
    undecided=0.0, counts=dict.fromkeys(COUNTS, 1000.0),
)  # fmt: skip


def head(microseconds=100.0, counts=None, **changes):
    return dataclasses.replace(
        BASE, microseconds=microseconds, counts={**BASE.counts, **(counts or {})}, **changes
    )


def told(other):
    found = estimate(BASE, other)
    assert isinstance(found, Estimate)
    return found


def test_equal_counts_are_no_change():
    found = told(head())
    assert (found.confidence, found.ratio, found.reasons) == (Confidence.NO_CHANGE, 1.0, ())


@pytest.mark.parametrize(
    "other",
    [
        head(blocks=1),
        head(counts={"spill sectors": 1010.0}),
        head(counts={"waits on scoreboards": 1100.0}),
        head(microseconds=100.5),
    ],
    ids=["occupancy", "spills", "waits", "simulated time"],
)
def test_what_moves_time_is_never_called_no_change(other):
    assert told(other).confidence is not Confidence.NO_CHANGE


def test_a_kernel_that_waits_for_memory_may_run_other_instructions():
    bound = {"memory_us": 120.0, "scheduled_us": 40.0, "bound": "memory"}
    found = estimate(head(**bound), head(counts={"instructions": 1050.0}, **bound))
    assert isinstance(found, Estimate)
    assert found.confidence is Confidence.NO_CHANGE


def test_a_great_move_is_likely_and_names_the_counts_that_moved_most():
    found = told(head(microseconds=130.0, counts={"global sectors": 4000.0, "instructions": 1500.0}))
    assert found.confidence is Confidence.LIKELY
    assert 1.0 < found.low < found.ratio < 1.3 < found.high
    assert [reason.partition(" 1,000")[0] for reason in found.reasons] == ["global sectors", "instructions"]


def test_nothing_is_estimated_where_data_decide():
    assert estimate(BASE, head(undecided=0.3)) == NotEstimated(reason="data decide 30% of the instructions")
