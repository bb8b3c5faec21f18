"""Schedules whose cycles can be counted by hand."""

from irdiff.cost import simulate
from irdiff.cost.trace import TraceStep
from irdiff.execution.schedule import Op

ONCE = [TraceStep(place, 1.0) for place in range(3)]


def op(kind="plain", pipe="none", **changes):
    fields = {"hold": 0.0, "latency": 0.0, "stall": 1, "result": 7, "operands": 7, "waits": 0}
    return Op(kind, pipe, **{**fields, **changes})


def cycles(ops, steps=ONCE, blocks=1, warps=1):
    return simulate.run(ops, steps, blocks, warps)


def test_a_stall_count_delays_the_next_instruction():
    assert cycles([op(stall=4), op(stall=2), op()]) == 6


def test_a_scoreboard_delays_what_waits_for_it_and_nothing_else():
    load = op(pipe="lsu", latency=30, result=0)
    assert cycles([load, op(), op(waits=1)]) == 30
    assert cycles([load, op(), op(waits=2)]) == 2


def test_a_step_counts_for_all_iterations_that_it_stands_for():
    assert (
        cycles([op(stall=5), op(stall=5), op()], [TraceStep(0, 1.0), TraceStep(1, 1.0), TraceStep(2, 10.0)])
        == 55
    )


def test_warps_share_the_pipe():
    matrix = [op(pipe="tensor", hold=16), op(pipe="tensor", hold=16), op()]
    assert cycles(matrix, blocks=4) > 2 * cycles(matrix)


def test_a_barrier_waits_for_the_slowest_warp_of_its_block():
    barrier = [op(), op(kind="barrier", latency=20), op()]
    assert cycles(barrier, warps=2) >= 20
