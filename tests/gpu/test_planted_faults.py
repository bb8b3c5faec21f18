"""Each planted fault is reported for its case, whenever it shows, and the others are timed.

`pytest --noconftest tests/gpu/test_planted_faults.py -s` on a host with an H100 or H200, torch and Triton.
"""

import datetime
import os

import pytest

from irdiff import gate, timing
from irdiff.gate import policy, timings
from irdiff.run import run_folder
from irdiff.timing import isolate, schedule
from irdiff.timing.results import OutputStatus, Speed, TimingProtocol, Unclear
from irdiff.timing.schedule import TimingOptions
from irdiff.timing.timing_file import SAMPLES_FILE, read_samples

from . import compile_here

pytestmark = pytest.mark.gpu

EXPECTED = {
    "good": OutputStatus.EQUAL,
    "illegal_address": OutputStatus.FAULT,
    "endless": OutputStatus.HANG,
    **dict.fromkeys(("wrong_result", "unwritten"), OutputStatus.DIFFERENT),
    "out_of_bounds": OutputStatus.OUT_OF_BOUNDS,
}
LATE = {"late_fault": "illegal_address", "late_hang": "endless"}
"""Good kernels, and whose binary head's arm gets in the third process that times them."""
LATE_STATUS = {"late_fault": OutputStatus.FAULT, "late_hang": OutputStatus.HANG}
PROCESSES = 5
LIMIT_S = 10.0  # the good kernels take microseconds; a hang costs this much


class Planting(isolate.GpuProcess):
    """A real GPU process that launches the faulting binary, for real, in the third process alone."""

    times: dict = {}  # noqa: RUF012 - by case

    def ask(self, request, timeout_s):
        case = request.get("heads", {}).get("head", "")
        name = case.split("@")[0]
        if name in LATE:
            Planting.times[name] = Planting.times.get(name, 0) + 1
            if Planting.times[name] == 3:
                request = request | {"heads": {"head": case.replace(name, LATE[name])}}
        return super().ask(request, timeout_s)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="no torch here")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no sm_90 GPU here")
    pytest.importorskip("triton", reason="no Triton here to compile the planted kernels with")
    folder = tmp_path_factory.mktemp("planted")
    builder = compile_here.Builder(compile_here.store_in(folder / "store"))
    workloads = compile_here.ROOT / "tests/data/texts/gpu/workloads"
    built = {row.split(":")[1]: made for row, made in builder.build(workloads, "planted").items()}
    builder.close()
    # the same arguments on both sides: only the binary differs
    pairs = [(name, built["good"], made) for name, made in built.items()]
    pairs += [(name, built["good"], built["good"]) for name in LATE]
    builder.write(folder / "run", pairs)
    return folder / "run"


@pytest.fixture(scope="module")
def found(folder):
    protocol = TimingProtocol(
        budget_s=20.0, threshold=0.01, confidence=0.95, processes=PROCESSES, seed=0, verify_only=False
    )
    options = TimingOptions(
        patterns=(), every=False, protocol=protocol, environment=dict(os.environ), say=print
    )
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(timing, "GpuProcess", Planting)
        planted.setattr(schedule, "_LAUNCH_LIMIT_S", LIMIT_S)
        Planting.times.clear()
        return timing.time_run(folder, options)


@pytest.fixture(scope="module")
def rows(found):
    return {row.case.split("@")[0]: row for row in found.cases}


@pytest.mark.parametrize(("name", "status"), (EXPECTED | LATE_STATUS).items())
def test_each_fault_is_reported_for_its_case(rows, name, status):
    assert rows[name].outputs.status is status


def test_the_side_to_blame_is_named(rows):
    blamed = {"out_of_bounds", "illegal_address", "endless", *LATE}
    assert {name: rows[name].outputs.side for name in blamed} == dict.fromkeys(blamed, "head")


@pytest.mark.parametrize("name", LATE)
def test_a_fault_in_the_third_process_alone_is_the_result(rows, folder, name):
    assert rows[name].measurement is None
    assert rows[name].note.startswith(f"while timing, in process 3 of {PROCESSES}: ")
    assert [row.process for row in rows[name].processes] == [0, 1]
    kept = {row.process for row in read_samples(folder / SAMPLES_FILE) if row.case == rows[name].case}
    assert kept == {0, 1}


def test_the_gate_does_not_pass_a_case_that_faulted_late(found, folder):
    rule = {
        "kind": "coverage",
        "requires": "timed",
        "action": "deny",
        "reason": "for this test",
        "cases": ["late_*"],
    }
    rules = policy.parse({"schema": policy.SCHEMA, "rule": [{"id": "timed", **rule}]}, "test")
    of_results = timings.of_results(found)
    outcome = gate.evaluate(
        run_folder.load(folder), rules, timings=of_results, today=datetime.date(2026, 1, 2)
    )
    (timed,) = outcome.rules
    assert not outcome.passed
    assert {finding.name.split("@")[0] for finding in timed.findings} == set(LATE)


def test_the_others_are_timed_by_every_process(rows):
    for name in ("good", "wrong_result"):
        measured = rows[name].measurement
        assert measured.processes == PROCESSES
        # fewer processes than a verdict needs: enough for this test
        assert (measured.speed, measured.unclear) == (Speed.UNCLEAR, Unclear.FEW_PROCESSES)
    assert rows["illegal_address"].measurement is None


def test_nothing_was_lost(found):
    assert [gpu.stopped for gpu in found.gpus] == [""]
    assert found.not_timed == ()
