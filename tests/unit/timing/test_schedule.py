"""The order of processes and what survives a fault, with a GPU process that only pretends."""

from pathlib import Path

import pytest

from irdiff.timing import schedule
from irdiff.timing.isolate import Ended, GpuProcessError
from irdiff.timing.results import OutputStatus, Protocol

CARD = {"uuid": "GPU-1", "name": "card"}


def protocol(**changes):
    facts = {
        "budget_s": 30.0,
        "threshold": 0.01,
        "precision": 0.005,
        "confidence": 0.95,
        "processes": 4,
        "seed": 0,
        "verify_only": False,
    }
    return Protocol(**(facts | changes))


class Fake:
    """Answers as a GPU process would; `faults` maps (operation, case) to how it ends."""

    faults: dict = {}  # noqa: RUF012 - set by each test
    spread = 0.0
    log: list = []  # noqa: RUF012

    def __init__(self, folder, environment, log):
        self.closed = False

    def ask(self, request, timeout_s):
        assert not self.closed
        Fake.log.append(request)
        key = (request["op"], request.get("case"))
        if key in Fake.faults:
            raise Ended(Fake.faults[key], "head", "gone")
        if request["op"] == "open":
            return {"kind": "opened", "card": CARD}
        if request["op"] == "peaks":
            return {"kind": "peaks", "tflops": 1.0, "tb_per_s": 1.0, "busy_s": 0.1}
        if request["op"] == "verify":
            return {"kind": "compared", "differences": [], "base_repeats": True}
        number = sum(r["op"] == "time" and r["case"] == request["case"] for r in Fake.log)
        shift = Fake.spread * (-1) ** number
        rows = [
            [0, position, arm, 1, 100.0 + (shift if arm == "head" else 0.0)]
            for position, arm in enumerate(("base", "control", "head"))
        ]
        return {"kind": "timed", "rows": rows, "busy_s": 0.5}

    def close(self):
        self.closed = True


@pytest.fixture
def go(monkeypatch):
    def go(cases, *, faults=(), spread=0.0, **changes):
        Fake.faults, Fake.spread, Fake.log = dict(faults), spread, []
        monkeypatch.setattr(schedule, "GpuProcess", Fake)
        place = schedule.Place(folder=Path("run"), environment={}, log=Path("log"), index=0)
        return schedule.run_gpu(place, cases, protocol(**changes), lambda line: None)

    return go


def operations(name):
    return [row for row in Fake.log if row["op"] == name]


def test_every_process_times_every_case_in_abba_order(go):
    work = go(["a", "b"])
    timed = operations("time")
    assert [row["case"] for row in timed] == ["a", "b"] * 4
    assert [row["reverse"] for row in timed[::2]] == [False, True, True, False]
    assert len({row["seed"] for row in timed}) == 8
    assert {case: len(rows) for case, rows in work.samples.items()} == {"a": 12, "b": 12}
    assert work.peaks == {"tflops": 1.0, "tb_per_s": 1.0}


def test_a_fault_while_checking_leaves_the_others(go):
    work = go(["a", "bad", "c"], faults={("verify", "bad"): OutputStatus.FAULT})
    assert [check.status for check in work.outputs.values()] == [
        OutputStatus.EQUAL,
        OutputStatus.FAULT,
        OutputStatus.EQUAL,
    ]
    assert work.outputs["bad"].side == "head"
    assert set(work.samples) == {"a", "c"}
    assert len(operations("open")) == 1 + 1 + 4  # the checker, its successor, and the timing processes


def test_a_hang_while_timing_leaves_the_others(go):
    work = go(["bad", "c"], faults={("time", "bad"): OutputStatus.HANG})
    assert "hang" in work.notes["bad"]
    assert len(work.samples["c"]) == 12
    assert len([row for row in operations("time") if row["case"] == "bad"]) == 1


def test_a_wide_interval_gets_more_processes(go):
    work = go(["a"], spread=3.0)
    assert len(work.samples["a"]) == 3 * schedule._MOST_PROCESSES


def test_a_precise_case_gets_no_more(go):
    assert len(go(["a"], spread=0.01).samples["a"]) == 12


def test_no_time_left_means_no_more_processes(go):
    assert len(go(["a"], spread=3.0, budget_s=0.01).samples["a"]) == 12


def test_verify_only_times_nothing(go):
    work = go(["a"], verify_only=True)
    assert not operations("time")
    assert work.outputs["a"].status is OutputStatus.EQUAL


def test_a_gpu_that_cannot_be_opened_is_an_error(go):
    with pytest.raises(GpuProcessError, match="cannot be opened"):
        go(["a"], faults={("open", None): OutputStatus.FAULT})
