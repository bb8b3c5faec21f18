"""Which cases are timed where, and what replies of a GPU process become: no GPU, no processes."""

from types import SimpleNamespace

import pytest

from irdiff import timing
from irdiff.cli.time_command import exit_code
from irdiff.errors import ExitCode
from irdiff.model import Artifact, Sides, Verdict
from irdiff.timing import host, schedule
from irdiff.timing.isolate import GpuProcessError
from irdiff.timing.results import NotTimed, OutputStatus
from irdiff.timing.schedule import GpuWork, TimingOptions
from tests.unit.runs import protocol

CUBIN = {"cubin": Artifact(stage="cubin", digest="0" * 64, size_bytes=1)}


def case(name, verdict=Verdict.CHANGED, target="sm_90", head=CUBIN):
    sides = Sides(base=CUBIN, head=head)
    return SimpleNamespace(id=f"{name}@{target}", verdict=verdict, target=target, artifacts=sides)


def test_a_busy_gpu_is_not_a_pass():
    card = {"uuid": "GPU-1", "name": "card", "target": "sm_90", "driver": "CUDA 13.0"}
    work = GpuWork(card=card | dict.fromkeys(("multiprocessors", "memory_bytes", "l2_bytes"), 1), wall_s=10.0)
    assert not work.record(host.summarize([], ["pid 3"])).trustworthy
    assert work.record(host.summarize([], [])).trustworthy


def test_exit_codes():
    for status, stopped, reasons, code in (
        (OutputStatus.EQUAL, "", [], ExitCode.DONE),
        (OutputStatus.FAULT, "", [], ExitCode.DONE),
        (OutputStatus.NOT_LAUNCHED, "", [], ExitCode.NOT_COMPARED),
        (OutputStatus.EQUAL, "the GPU was lost", [], ExitCode.NOT_COMPARED),
        (OutputStatus.EQUAL, "", ["GPU 0 cannot be opened"], ExitCode.NOT_COMPARED),
        (OutputStatus.EQUAL, "", ["no such GPU here: sm_100"], ExitCode.DONE),
    ):
        untimed = [NotTimed(case="a", reason=reason) for reason in reasons]
        cases, gpus = (
            [SimpleNamespace(outputs=SimpleNamespace(status=status))],
            [SimpleNamespace(stopped=stopped)],
        )
        assert exit_code(SimpleNamespace(cases=cases, gpus=gpus, not_timed=untimed)) is code


class Listing:
    """A first GPU process that names two GPUs."""

    def ask_first(self, request, timeout_s, failed):
        return {"kind": "listed", "targets": ["sm_90", "sm_90"], "versions": {"torch": "2"}}

    def close(self):
        pass


def test_a_gpu_that_cannot_be_opened_does_not_take_the_others_with_it(monkeypatch):
    def on_two_gpus(errors, target="sm_90"):
        def run_gpu(start, index, names, options):
            if index in errors:
                raise errors[index]
            return GpuWork(card={"uuid": f"GPU-{index}"}, outputs=dict.fromkeys(names))

        monkeypatch.setattr(schedule, "run_gpu", run_gpu)
        options = TimingOptions(patterns=(), every=False, protocol=protocol(), environment={}, say=print)
        return timing.on_all_gpus(Listing, [case("a", target=target), case("b", target=target)], options)

    error = GpuProcessError("GPU 1 cannot be opened")
    works, not_timed, _ = on_two_gpus({1: error})
    assert [list(work.outputs) for work in works] == [["a@sm_90"]]
    assert not_timed == [NotTimed(case="b@sm_90", reason="GPU 1 cannot be opened")]
    with pytest.raises(GpuProcessError):
        on_two_gpus({0: error, 1: error})
    with pytest.raises(KeyError):  # a mistake
        on_two_gpus({1: KeyError("x")})
    with pytest.raises(timing.NoGpuError, match="GPUs here are sm_90, its cases are for gfx942"):
        on_two_gpus({}, target="gfx942")
