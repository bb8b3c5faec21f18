"""What a reader is told of the simulated schedules of two sides."""

import dataclasses

import pytest

from irdiff.cost.expected import RECORD, expected_time
from irdiff.cost.launch_time import LaunchTime
from irdiff.model import Expected, Sides
from tests.unit.work.kernels import counted, facts

COUNTS = (
    "instructions", "stall cycles", "waits on scoreboards", "waits on global loads", "latency of one warp",
    "shared wavefronts", "global sectors", "spill sectors",
)  # fmt: skip
BASE = LaunchTime(
    scheduled_us=95.0, memory_us=20.0, blocks=2, warps=4, grid=1000, undecided=0.0,
    counts=dict.fromkeys(COUNTS, 1000.0),
)  # fmt: skip
WORK = counted("EXIT", facts())
BOUND = {"memory_us": 120.0, "scheduled_us": 40.0}


def side(counts=None, **changes):
    return dataclasses.replace(BASE, counts={**BASE.counts, **(counts or {})}, **changes)


def told(base, head, work=WORK):
    return expected_time(Sides(base=base, head=head), Sides(base=work, head=work))


def test_equal_counts_are_no_change():
    assert told(BASE, side()).expected is Expected.NO_CHANGE


def test_equal_counts_of_an_edited_launch_say_nothing_of_caches():
    """On an H200, swapped axes of a grid were 2.3 % faster, and `num_stages=5` 3.7 %, with equal counts."""
    works = Sides(base=WORK, head=WORK)
    expected = expected_time(Sides(base=BASE, head=side()), works, is_edited=True)
    assert expected.expected is Expected.UNKNOWN
    assert "which loads hit a cache" in expected.why


@pytest.mark.parametrize(
    "head",
    [
        side(blocks=1),
        side(counts={"spill sectors": 1010.0}),
        side(counts={"waits on scoreboards": 1100.0}),
        side(scheduled_us=95.5),
        side(grid=999),
    ],
    ids=["occupancy", "spills", "waits", "simulated time", "grid"],
)
def test_what_moves_time_is_never_called_no_change(head):
    assert told(BASE, head).expected is Expected.UNKNOWN


def test_a_kernel_that_waits_for_memory_may_run_other_instructions():
    found = told(side(**BOUND), side(counts={"instructions": 1050.0}, **BOUND))
    assert found.expected is Expected.NO_CHANGE
    assert "memory" in found.why


@pytest.mark.parametrize(
    ("schedule", "latency", "expected"),
    [
        (110.0, 1200.0, Expected.SLOWER),
        (80.0, 900.0, Expected.FASTER),
        (110.0, 1010.0, Expected.UNKNOWN),
        (110.0, 800.0, Expected.UNKNOWN),
        (97.0, 1200.0, Expected.UNKNOWN),
    ],
)
def test_a_direction_needs_the_schedule_and_the_latency_of_one_warp(schedule, latency, expected):
    found = told(BASE, side(scheduled_us=schedule, counts={"latency of one warp": latency}))
    assert found.expected is expected


def test_a_direction_names_both_simulated_times_and_the_count_that_moved_most():
    found = told(
        BASE, side(scheduled_us=130.0, counts={"global sectors": 4000.0, "latency of one warp": 1500.0})
    )
    assert found.why == (
        "simulated time of a full multiprocessor +37 %, of one warp alone +50 %; "
        "global sectors 1,000 → 4,000 (+300 %)"
    )


def test_no_direction_is_told_where_the_memory_bounds_a_side():
    slower = side(scheduled_us=90.0, memory_us=120.0, counts={"latency of one warp": 1500.0})
    assert told(side(**BOUND), slower).expected is Expected.UNKNOWN


def test_nothing_is_told_where_data_decide():
    found = told(BASE, side(undecided=0.3))
    assert (found.expected, found.why) == (Expected.UNKNOWN, "data decide 30% of the instructions")
    least = dataclasses.replace(WORK, notes=("data decide how often the loop at 0x10 runs",))
    assert told(BASE, side(), least).expected is Expected.UNKNOWN


def test_each_word_but_not_known_has_its_record():
    assert RECORD.keys() == set(Expected) - {Expected.UNKNOWN}
