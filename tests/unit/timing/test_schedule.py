"""The order of processes and what a fault leaves, with a GPU process that only pretends."""

import pytest

from irdiff.timing import decision, schedule
from irdiff.timing.isolate import GpuProcessError, GpuProcessGone
from irdiff.timing.results import OutputStatus, Speed
from irdiff.timing.schedule import TimingOptions
from tests.unit.runs import protocol

PROCESSES = 18
FAULT, HANG = OutputStatus.FAULT, OutputStatus.HANG


class Pretended:
    """GPU processes that answer as they should, but for what a test plants.

    `faults` maps an operation, its (first) case and its how-manieth time to what happens: a status or a status
    with a side (the process ends), or a reply. `opens` is how often the GPU can be opened.
    """

    def __init__(self, faults=(), opens=1000):
        self.faults, self.opens = dict(faults), opens
        self.asked, self.living = [], set()

    def start(self):
        process = PretendedProcess(self)
        self.living.add(process)
        return process

    def of(self, operation):
        return [row for row in self.asked if row["op"] == operation]

    def answer(self, request):
        first = next(iter(request.get("heads", {"": request.get("case")}).values()))
        self.asked.append(request | {"first": first})
        count = sum(row["first"] == first for row in self.of(request["op"]))
        planted = self.faults.get((request["op"], first, count))
        if isinstance(planted, dict):
            return planted
        if planted:
            status, side = planted if isinstance(planted, tuple) else (planted, "head")
            raise GpuProcessGone(status, side, "gone")
        if request["op"] == "verify":
            return {"kind": "compared", "differences": [], "base_repeats": True}
        return timed(**{arm: 101.0 for arm in request["heads"] if arm != "head"})


class PretendedProcess:
    def __init__(self, gpu):
        self.gpu = gpu

    def ask_first(self, request, timeout_s, failed):
        self.gpu.asked.append(request)
        if len(self.gpu.of("open")) > self.gpu.opens:
            raise GpuProcessError(f"{failed}: no such device")
        return {"kind": "opened", "card": {"uuid": "GPU-1", "name": "card"}}

    def ask(self, request, timeout_s):
        assert self in self.gpu.living
        return self.gpu.answer(request)

    def close(self):
        self.gpu.living.discard(self)


def timed(**elapsed):
    """The reply with one round; an arm whose time is None is left out."""
    times = {"base": 100.0, "control": 100.0, "head": 100.0} | elapsed
    rows = [[0, place, arm, 1, times[arm]] for place, arm in enumerate(times) if times[arm] is not None]
    return {"kind": "timed", "samples": rows, "busy_s": 0.5}


def family(case):
    return case.partition("~")[0]


def go(cases, gpu, *, say=lambda line: None, **changes):
    """What was found, and what `timing.json` says of each case."""
    rules = protocol(**changes)
    options = TimingOptions(
        patterns=(), every=False, protocol=rules, environment={}, say=say, bundle_of=family
    )
    try:
        work = schedule.run_gpu(gpu.start, 0, cases, options)
    finally:
        assert not gpu.living
    return work, {row.case: row for row in decision.case_timings("GPU-1", work, rules)}


def test_every_process_times_every_case_in_abba_order():
    gpu = Pretended()
    work, rows = go(["a", "b"], gpu)
    requests = gpu.of("time")
    assert [row["first"] for row in requests] == ["a", "b"] * PROCESSES
    assert [row["reverse"] for row in requests[::2]] == ([False, True, True, False] * 5)[:PROCESSES]
    assert len({row["seed"] for row in requests}) == 2 * PROCESSES
    assert {case: len(found) for case, found in work.samples.items()} == {"a": 54, "b": 54}
    assert {row.measurement.speed for row in rows.values()} == {Speed.SAME}


@pytest.mark.parametrize(("status", "number"), [(HANG, 1), (FAULT, 3), (FAULT, PROCESSES)])
def test_a_fault_in_any_process_is_the_result(status, number):
    gpu = Pretended({("time", "bad", number): status})
    _, rows = go(["bad", "c"], gpu)
    bad = rows["bad"]
    assert (bad.measurement, bad.outputs.status, bad.outputs.side) == (None, status, "head")
    words = f"while timing, in process {number} of {PROCESSES}: gone"
    assert bad.outputs.message == bad.note == words
    assert len(bad.processes) == number - 1  # what it took until then is kept
    assert rows["c"].measurement.speed is Speed.SAME
    assert sum(row["first"] == "bad" for row in gpu.of("time")) == number


def test_a_process_without_samples_to_rely_on_is_a_fault():
    for reply, words in (
        ({"kind": "refused", "message": "needs 7 GiB"}, "needs 7 GiB"),
        (timed(base=None, control=None, head=None), "it took no samples of base, control, head"),
        (timed(head=0.0), "0.0 us is no time of a launch"),
        (timed(head=float("nan")), "nan us is no time of a launch"),
    ):
        _, rows = go(["bad", "c"], Pretended({("time", "bad", 3): reply}))
        assert (rows["bad"].outputs.status, rows["bad"].measurement) == (FAULT, None)
        assert rows["bad"].note == f"while timing, in process 3 of {PROCESSES}: {words}"
        assert rows["c"].measurement.speed is Speed.SAME


def test_a_gpu_that_is_lost_or_never_there_leaves_the_rest_unmeasured():
    _, rows = go(["a"], Pretended(opens=2))
    assert rows["a"].measurement is None
    assert rows["a"].note.startswith(
        "only 1 process measured it, any other timing verdict needs 18; measuring ended early"
    )
    work, rows = go(["bad", "c"], Pretended({("verify", "bad", 1): HANG}, opens=1))
    assert (list(rows), bool(work.stopped)) == (["bad"], True)
    with pytest.raises(GpuProcessError, match="GPU 0"):
        go(["a"], Pretended(opens=0))


def test_a_budget_that_is_spent_costs_no_process_and_verify_only_times_nothing():
    said, gpu = [], Pretended()
    work, _ = go(["a"], Pretended(), budget_s=0.01, say=said.append)
    assert len(work.samples["a"]) == 3 * PROCESSES
    assert any("beyond the budget" in line for line in said)
    _, rows = go(["a"], gpu, verify_only=True)
    assert not gpu.of("time")
    assert rows["a"].outputs.status is OutputStatus.EQUAL
    assert rows["a"].note == "only its outputs were compared"


def test_a_bundle_is_one_request_and_each_case_has_the_samples_of_the_base():
    gpu = Pretended()
    work, rows = go(["a~1", "b~1", "a~2", "a~3"], gpu)
    first, second, *rest = gpu.of("time")
    assert first["heads"] == {"head": "a~1", "head 1": "a~2", "head 2": "a~3"}
    assert second["heads"] == {"head": "b~1"}
    assert len(rest) == 2 * PROCESSES - 2
    assert first["slice_s"] == pytest.approx(3 * second["slice_s"], rel=0.2)
    assert set(rows) == {"a~1", "a~2", "a~3", "b~1"}
    assert rows["a~2"].measurement.ratio == pytest.approx(1.01)
    assert rows["a~1"].measurement.ratio == pytest.approx(1.0)
    assert {len(samples) for samples in work.samples.values()} == {3 * PROCESSES}


def test_only_who_is_to_blame_leaves_a_bundle():
    every = {"a~1", "a~2", "a~3"}
    for side, guilty, blamed in (
        ("head", {"a~1"}, "head"),
        ("head 1", {"a~2"}, "head"),
        ("control", every, "control"),
        (None, every, None),
    ):
        _, rows = go(sorted(every), Pretended({("time", "a~1", 2): (FAULT, side)}))
        assert {case for case, row in rows.items() if row.outputs.status is FAULT} == guilty
        for case in guilty:
            assert (rows[case].outputs.side, rows[case].measurement) == (blamed, None)
        for case in every - guilty:  # nothing of theirs is lost
            assert rows[case].measurement.processes == PROCESSES
