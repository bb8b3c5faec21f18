"""The order of processes and what a fault leaves, with a GPU process that only pretends."""

from pathlib import Path

import pytest

from irdiff.timing import assemble, schedule
from irdiff.timing.isolate import GpuProcessError, GpuProcessGone
from irdiff.timing.results import OutputStatus, Speed, Unclear
from tests.unit.runs import protocol

CARD = {"uuid": "GPU-1", "name": "card"}
PROCESSES = 18


class Fake:
    """Answers as a GPU process would, but for what a test plants.

    `faults` maps an operation, a case and its how-manieth time to what happens: a status (the process ends),
    a reply, or rows. `opens` is how often the GPU can be opened.
    """

    faults: dict = {}  # noqa: RUF012 - set by each test
    opens = 0
    log: list = []  # noqa: RUF012
    living: set = set()  # noqa: RUF012

    def __init__(self, folder, environment, log):
        self.closed = False
        Fake.living.add(self)

    def ask(self, request, timeout_s):
        assert not self.closed
        Fake.log.append(request)
        same = [
            row for row in Fake.log if (row["op"], row.get("case")) == (request["op"], request.get("case"))
        ]
        planted = Fake.faults.get((request["op"], request.get("case"), len(same)))
        if isinstance(planted, OutputStatus):
            raise GpuProcessGone(planted, "head", "gone")
        if planted is not None:
            return planted
        match request["op"]:
            case "open" if len(same) > Fake.opens:
                return {"kind": "refused", "message": "no such device"}
            case "open":
                return {"kind": "opened", "card": CARD}
            case "peaks":
                return {"kind": "peaks", "tflops": 1.0, "tb_per_s": 1.0, "busy_s": 0.1}
            case "verify":
                return {"kind": "compared", "differences": [], "base_repeats": True}
        others = request.get("others", ())
        return timed(**{f"head {number}": 101.0 for number in range(1, len(others) + 1)})

    def close(self):
        self.closed = True
        Fake.living.discard(self)


def timed(**elapsed):
    """The reply with one round; an arm whose time is None is left out."""
    times = {"base": 100.0, "control": 100.0, "head": 100.0} | elapsed
    rows = [[0, place, arm, 1, times[arm]] for place, arm in enumerate(times) if times[arm] is not None]
    return {"kind": "timed", "rows": rows, "busy_s": 0.5}


@pytest.fixture
def go(monkeypatch):
    def go(cases, *, faults=(), opens=1000, say=lambda line: None, bundle_of=None, **changes):
        Fake.faults, Fake.opens, Fake.log, Fake.living = dict(faults), opens, [], set()
        monkeypatch.setattr(schedule, "GpuProcess", Fake)
        place = schedule.GpuPlace(folder=Path("run"), environment={}, log=Path("log"), index=0)
        try:
            return schedule.run_gpu(place, cases, protocol(**changes), say, bundle_of=bundle_of)
        finally:
            assert not Fake.living

    return go


def operations(name):
    return [row for row in Fake.log if row["op"] == name]


def judged(work, **changes):
    """Case → what `timing.json` says of it."""
    rows = assemble.case_timings("GPU-1", work, {}, protocol(**changes))
    return {row.case: row for row in rows}


def test_every_process_times_every_case_in_abba_order(go):
    work = go(["a", "b"])
    requests = operations("time")
    assert [row["case"] for row in requests] == ["a", "b"] * PROCESSES
    reversed_ones = [row["reverse"] for row in requests[::2]]
    assert reversed_ones[:4] == [False, True, True, False]
    assert reversed_ones.count(True) == reversed_ones.count(False)
    assert len({row["seed"] for row in requests}) == 2 * PROCESSES
    assert {case: len(rows) for case, rows in work.samples.items()} == {"a": 54, "b": 54}
    assert work.peaks == {"tflops": 1.0, "tb_per_s": 1.0}
    assert {row.measurement.speed for row in judged(work).values()} == {Speed.SAME}


def test_a_fault_while_checking_leaves_the_others(go):
    work = go(["a", "bad", "c"], faults={("verify", "bad", 1): OutputStatus.FAULT})
    assert [check.status for check in work.outputs.values()] == [
        OutputStatus.EQUAL,
        OutputStatus.FAULT,
        OutputStatus.EQUAL,
    ]
    assert work.outputs["bad"].side == "head"
    assert set(work.samples) == {"a", "c"}
    assert len(operations("open")) == 1 + 1 + PROCESSES  # the checker, its successor, and those that time


@pytest.mark.parametrize("status", [OutputStatus.HANG, OutputStatus.FAULT])
@pytest.mark.parametrize("number", [1, 3, PROCESSES])
def test_a_fault_in_any_process_is_the_result(go, status, number):
    work = go(["bad", "c"], faults={("time", "bad", number): status})
    rows = judged(work)
    assert rows["bad"].measurement is None
    assert (rows["bad"].outputs.status, rows["bad"].outputs.side) == (status, "head")
    words = f"while timing, in process {number} of {PROCESSES}: gone"
    assert rows["bad"].outputs.message == rows["bad"].note == words
    assert len(rows["bad"].processes) == number - 1  # what it took until then is kept
    assert rows["c"].measurement.speed is Speed.SAME
    assert len([row for row in operations("time") if row["case"] == "bad"]) == number


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"kind": "refused", "message": "needs 7 GiB"}, "needs 7 GiB"),
        ({"kind": "odd"}, "odd"),
        (timed(control=None), "it took no samples of control"),
        (timed(base=None, control=None, head=None), "it took no samples of base, control, head"),
        (timed(head=0.0), "0.0 us is no time of a launch"),
        (timed(head=float("nan")), "nan us is no time of a launch"),
    ],
)
def test_a_process_without_samples_to_rely_on_is_a_fault(go, reply, words):
    work = go(["bad", "c"], faults={("time", "bad", 3): reply})
    row = judged(work)["bad"]
    assert (row.outputs.status, row.measurement) == (OutputStatus.FAULT, None)
    assert row.note == f"while timing, in process 3 of {PROCESSES}: {words}"
    assert judged(work)["c"].measurement.speed is Speed.SAME


def test_a_gpu_that_is_lost_while_timing_leaves_no_verdict(go):
    work = go(["a", "bad", "c"], faults={("time", "bad", 3): OutputStatus.FAULT}, opens=1 + 3)
    assert work.stopped == "measuring ended early: GPU 0 cannot be opened: no such device"
    rows = judged(work)
    assert rows["bad"].outputs.status is OutputStatus.FAULT
    for name, count in (("a", 3), ("c", 2)):
        measured = rows[name].measurement
        assert (measured.speed, measured.unclear) == (Speed.UNCLEAR, Unclear.FEW_PROCESSES)
        words = f"only {count} processes measured it, a verdict needs 18; {work.stopped}"
        assert measured.why == words


def test_a_gpu_that_is_lost_in_the_second_process_leaves_no_measurement(go):
    rows = judged(go(["a"], opens=2))
    assert rows["a"].measurement is None
    assert rows["a"].note.startswith("only 1 process measured it, a verdict needs 18; measuring ended early")


def test_a_gpu_that_is_lost_while_checking_leaves_the_rest_unchecked(go):
    work = go(["bad", "c"], faults={("verify", "bad", 1): OutputStatus.HANG}, opens=1)
    assert list(work.outputs) == ["bad"]
    assert work.stopped


def test_a_budget_that_is_spent_costs_no_process(go):
    said = []
    work = go(["a"], budget_s=0.01, say=said.append)
    assert len(work.samples["a"]) == 3 * PROCESSES
    assert "1 cases in 18 processes take 4 s, beyond the budget" in said


def test_fewer_processes_give_no_verdict(go):
    row = judged(go(["a"], processes=6), processes=6)["a"]
    assert (row.measurement.speed, row.measurement.unclear) == (Speed.UNCLEAR, Unclear.FEW_PROCESSES)


def test_verify_only_times_nothing(go):
    work = go(["a"], verify_only=True)
    assert not operations("time")
    assert work.outputs["a"].status is OutputStatus.EQUAL
    assert judged(work, verify_only=True)["a"].note == "only its outputs were compared"


def test_figures_of_merit_may_be_missing(go):
    work = go(["a"], faults={("peaks", None, 1): OutputStatus.HANG})
    assert work.peaks == {}
    assert judged(work)["a"].measurement.speed is Speed.SAME


def test_a_gpu_that_cannot_be_opened_is_an_error(go):
    with pytest.raises(GpuProcessError, match="cannot be opened"):
        go(["a"], faults={("open", None, 1): OutputStatus.FAULT})


# many versions at once


def family(case):
    return case.partition("~")[0]


def test_a_bundle_is_one_request_and_each_case_has_the_samples_of_the_base(go):
    work = go(["a~1", "b~1", "a~2", "a~3"], bundle_of=family)
    requests = operations("time")
    assert [(row["case"], row.get("others", ())) for row in requests[:2]] == [
        ("a~1", ("a~2", "a~3")),
        ("b~1", ()),
    ]
    assert len(requests) == 2 * PROCESSES
    assert requests[0]["slice_s"] == pytest.approx(3 * requests[1]["slice_s"], rel=0.2)
    rows = judged(work)
    assert set(rows) == {"a~1", "a~2", "a~3", "b~1"}
    assert rows["a~2"].measurement.ratio == pytest.approx(1.01)
    assert rows["a~1"].measurement.ratio == pytest.approx(1.0)
    assert {len(samples) for samples in work.samples.values()} == {3 * PROCESSES}


class FaultyHead(Fake):
    """The second head of a bundle dies whenever it runs."""

    def ask(self, request, timeout_s):
        if request["op"] == "time" and "a~2" in request.get("others", ()):
            Fake.log.append(request)
            place = 1 + request["others"].index("a~2")
            raise GpuProcessGone(OutputStatus.FAULT, f"head {place}", "gone")
        return super().ask(request, timeout_s)


def test_a_head_that_faults_leaves_its_bundle(monkeypatch):
    Fake.faults, Fake.opens, Fake.log, Fake.living = {}, 1000, [], set()
    monkeypatch.setattr(schedule, "GpuProcess", FaultyHead)
    place = schedule.GpuPlace(folder=Path("run"), environment={}, log=Path("log"), index=0)
    work = schedule.run_gpu(place, ["a~1", "a~2", "a~3"], protocol(), lambda line: None, bundle_of=family)
    assert not Fake.living
    rows = judged(work)
    assert (rows["a~2"].outputs.status, rows["a~2"].outputs.side) == (OutputStatus.FAULT, "head")
    assert rows["a~2"].measurement is None
    for case in ("a~1", "a~3"):  # nothing of theirs is lost
        assert rows[case].measurement.processes == PROCESSES


def test_a_bundle_without_a_sample_of_a_head_is_a_fault_of_all(go):
    work = go(["a~1", "a~2"], faults={("time", "a~1", 1): timed()}, bundle_of=family)
    assert {row.outputs.status for row in judged(work).values()} == {OutputStatus.FAULT}
    assert "it took no samples of head 1" in work.outputs["a~2"].message


@pytest.mark.parametrize(("side", "gone"), [("control", "ab"), ("head", "a"), ("head 1", "b"), (None, "ab")])
def test_who_is_to_blame_in_a_bundle(side, gone):
    assert schedule._guilty(("a", "b"), side) == tuple(gone)
