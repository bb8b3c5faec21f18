"""Which cases are timed where, and what replies of a GPU process become: no GPU, no processes."""

import dataclasses
import math
from types import SimpleNamespace

import pytest

from irdiff import timing
from irdiff.cli.options import DURATION
from irdiff.cli.time_command import exit_code
from irdiff.errors import ExitCode, UsageError
from irdiff.model import Artifact, Sides, Verdict
from irdiff.timing import assemble, isolate, schedule, timing_file
from irdiff.timing.isolate import GpuProcessError
from irdiff.timing.results import NotTimed, OutputStatus, Speed
from irdiff.timing.samples import Sample
from tests.unit.timing import test_results
from tests.unit.timings import protocol

PROTOCOL = protocol()


def case(name, verdict=Verdict.CHANGED, target="sm_90"):
    artifacts = {"cubin": Artifact(stage="cubin", digest="0" * 64, size_bytes=1)}
    return SimpleNamespace(
        id=f"{name}@{target}", verdict=verdict, target=target, artifacts=Sides(base=artifacts, head=artifacts)
    )


def run(*cases):
    return SimpleNamespace(cases=cases)


def ids(cases):
    return [row.id for row in cases]


def test_changed_cases_are_chosen():
    rows = run(case("a"), case("b", Verdict.UNCHANGED), case("c", Verdict.BROKEN))
    assert ids(timing.chosen_cases(rows, (), every=False)) == ["a@sm_90"]


def test_all_takes_every_case_with_two_binaries():
    broken = case("c", Verdict.BROKEN)
    broken.artifacts = Sides(base=broken.artifacts.base, head=None)
    rows = run(case("a"), case("b", Verdict.UNCHANGED), broken)
    assert ids(timing.chosen_cases(rows, (), every=True)) == ["a@sm_90", "b@sm_90"]


@pytest.mark.parametrize(
    ("pattern", "found"), [("mat*", ["matmul@sm_90"]), ("softmax", ["softmax@sm_90"]), ("zz", [])]
)
def test_globs_and_parts_of_an_id(pattern, found):
    rows = run(case("matmul"), case("softmax"))
    assert ids(timing.chosen_cases(rows, (pattern,), every=False)) == found


def test_cases_are_spread_over_gpus_that_run_them():
    rows = [case(f"c{i}") for i in range(5)] + [case("d", target="sm_100")]
    parts, not_timed = timing.assign(rows, ["sm_90", "gfx942", "sm_90"])
    assert {index: len(names) for index, names in parts.items()} == {0: 3, 1: 0, 2: 2}
    assert [(row.case, row.reason) for row in not_timed] == [("d@sm_100", "no such GPU here: sm_100")]


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("30", 30)])
def test_budgets(text, value):
    assert DURATION.convert(text, None, None) == value


@pytest.mark.parametrize("text", ["", "m", "-3s", "ten", "inf", "nan"])
def test_what_is_not_a_time(text):
    with pytest.raises(UsageError):
        DURATION.convert(text, None, None)


def difference(**changes):
    row = {"argument": "out", "elements": 3, "max_ulp": 2, "relative_norm": 1e-4, "within": True}
    return row | changes


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"kind": "compared", "differences": [], "base_repeats": True}, OutputStatus.EQUAL),
        ({"kind": "compared", "differences": [difference()], "base_repeats": True}, OutputStatus.CLOSE),
        (
            {
                "kind": "compared",
                "differences": [difference(), difference(within=False)],
                "base_repeats": True,
            },
            OutputStatus.DIFFERENT,
        ),
        ({"kind": "refused", "message": "no"}, OutputStatus.NOT_LAUNCHED),
        ({"kind": "out of bounds", "side": "head", "arguments": ["out"]}, OutputStatus.OUT_OF_BOUNDS),
    ],
)
def test_replies_of_a_check(reply, status):
    assert schedule._check(reply).status is status


def samples(ratio, cases=3, processes=18):
    return [
        Sample(
            gpu="GPU-1",
            case=f"c{number}",
            process=process,
            round=0,
            position=position,
            arm=arm,
            launches=1,
            elapsed_us=100.0
            * (ratio if arm == "head" else 1.0)
            * (1 + 1e-4 * ((process * 7 + position) % 3)),
        )
        for number in range(cases)
        for process in range(processes)
        for position, arm in enumerate(("base", "control", "head"))
    ]


def test_simulated_samples_are_judged():
    found = timing.simulate(SimpleNamespace(cases=(), launches={}), samples(1.03), PROTOCOL)
    assert [row.measurement.speed for row in found.cases] == [Speed.SLOWER] * 3
    assert found.cases[0].measurement.ratio == pytest.approx(1.03, rel=1e-3)
    assert {row.outputs.status for row in found.cases} == {OutputStatus.NOT_CHECKED}


def test_rates_are_of_head_and_of_the_measured_peak():
    launch = SimpleNamespace(flops=2e9, min_bytes=1e8)
    work = schedule.GpuWork(
        peaks={"tflops": 100.0, "tb_per_s": 4.0},
        outputs={"c0": schedule.bad_output(OutputStatus.NOT_CHECKED, None, "")},
        samples={"c0": samples(1.0, cases=1)},
    )
    (row,) = assemble.case_timings("GPU-1", work, {"c0": launch}, PROTOCOL)
    found = row.measurement
    assert found.tflops == pytest.approx(20.0, rel=1e-2)
    assert found.tb_per_s == pytest.approx(1.0, rel=1e-2)
    assert found.percent_of_peak == pytest.approx(25.0, rel=1e-2)


def test_a_busy_gpu_is_not_a_pass():
    from irdiff.timing import host

    card = {
        "uuid": "GPU-1", "name": "card", "target": "sm_90", "driver": "CUDA 13.0", "multiprocessors": 1,
        "memory_bytes": 1, "l2_bytes": 1,
    }  # fmt: skip
    work = schedule.GpuWork(card=card, wall_s=10.0, busy_s=9.0)
    record = assemble.gpu_record(work, host.summarize([], ["pid 3"]))
    assert not record.trustworthy
    assert not math.isnan(record.wall_s)
    assert assemble.gpu_record(work, host.summarize([], [])).trustworthy
    assert dataclasses.asdict(record)["other_processes"] == ("pid 3",)


def test_a_fault_of_an_earlier_time_is_shown_again(tmp_path):
    said = []
    timing_file.write(tmp_path, test_results.found(cases=("a", "b"), status=OutputStatus.HANG, note="hung"))
    now = test_results.found(cases=("a", "c"))
    shown = timing._as_stored(now, timing_file.write(tmp_path, now), said.append)
    assert [(row.case, row.outputs.status) for row in shown.cases] == [
        ("a", OutputStatus.HANG),
        ("c", OutputStatus.EQUAL),
    ]
    assert [line.split(":")[0] for line in said] == ["a"]


def ended(status=OutputStatus.EQUAL, gpus=(), not_timed=()):
    rows = [SimpleNamespace(outputs=SimpleNamespace(status=status))]
    untimed = [NotTimed(case="a", reason=reason) for reason in not_timed]
    return SimpleNamespace(cases=rows, gpus=gpus, not_timed=untimed)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (ended(), ExitCode.DONE),
        (ended(OutputStatus.FAULT), ExitCode.DONE),
        (ended(OutputStatus.NOT_LAUNCHED), ExitCode.NOT_COMPARED),
        (ended(gpus=[SimpleNamespace(stopped="the GPU was lost")]), ExitCode.NOT_COMPARED),
        (ended(not_timed=["GPU 0 cannot be opened"]), ExitCode.NOT_COMPARED),
        (ended(not_timed=["no such GPU here: sm_100"]), ExitCode.DONE),
    ],
)
def test_exit_codes(found, code):
    assert exit_code(found) is code


class Listing:
    """A first GPU process that names two GPUs."""

    reply = {"kind": "listed", "targets": ["sm_90", "sm_90"], "versions": {"torch": "2"}}  # noqa: RUF012

    def __init__(self, folder, environment, log):
        pass

    def ask(self, request, timeout_s):
        return Listing.reply

    def close(self):
        pass


def on_two_gpus(monkeypatch, tmp_path, failing, error):
    def run_gpu(place, cases, protocol, say, bundle_of):
        if place.index in failing:
            raise error
        return schedule.GpuWork(card={"uuid": f"GPU-{place.index}"}, outputs=dict.fromkeys(cases))

    monkeypatch.setattr(schedule, "run_gpu", run_gpu)
    monkeypatch.setattr(isolate, "GpuProcess", Listing)
    options = timing.TimingOptions(patterns=(), every=False, protocol=PROTOCOL, environment={}, say=print)
    return timing._on_all_gpus(tmp_path, [case("a"), case("b")], options, tmp_path / "log")


def test_a_gpu_that_cannot_be_opened_does_not_take_the_others_with_it(monkeypatch, tmp_path):
    error = GpuProcessError("GPU 1 cannot be opened")
    works, not_timed, _ = on_two_gpus(monkeypatch, tmp_path, {1}, error)
    assert [list(work.outputs) for work in works] == [["a@sm_90"]]
    assert not_timed == [NotTimed(case="b@sm_90", reason="GPU 1 cannot be opened")]


@pytest.mark.parametrize(
    ("failing", "error"), [({0, 1}, GpuProcessError("cannot be opened")), ({1}, KeyError("a mistake"))]
)
def test_what_leaves_nothing_or_is_a_mistake_is_an_error(monkeypatch, tmp_path, failing, error):
    with pytest.raises(type(error)):
        on_two_gpus(monkeypatch, tmp_path, failing, error)


def test_gpus_that_cannot_be_listed_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(Listing, "reply", {"kind": "refused", "message": "no driver"})
    with pytest.raises(GpuProcessError, match="cannot be listed: no driver"):
        on_two_gpus(monkeypatch, tmp_path, set(), None)
