"""A GPU process from both ends: its parent with a child that is a pair of pipes, how it answers, and what its host says."""

import io
import os
import threading
from types import SimpleNamespace

import pytest

from irdiff import process
from irdiff.backends import gpu_conditions
from irdiff.backends.device import DeviceError, DriverError
from irdiff.backends.launch_plan import AbiError
from irdiff.timing import gpu_process, host, isolate
from irdiff.timing.isolate import GpuProcessGone
from irdiff.timing.results import OutputStatus
from tests.texts import text_of

ON_CONTROL = b'{"kind": "progress", "side": "control"}\n'
FAULT = b'{"kind": "fault", "message": "illegal address"}\n'


class Child:
    """Says `lines`, then ends with `code`, or stays silent. Its own `stdout`."""

    def __init__(self, lines, code):
        self.stdin, self.stdout, self.lines, self.code = io.BytesIO(), self, lines, code
        self.heard, self.killed = threading.Event(), threading.Event()

    def __iter__(self):
        yield from filter(None, self.lines)
        self.heard.set()
        if self.code is None:
            self.killed.wait()

    def kill(self):
        self.killed.set()

    def wait(self):
        return self.code

    def close(self):
        """Nothing is open."""


@pytest.fixture
def start(monkeypatch, tmp_path):
    def start(*lines, code=None, log=""):
        child = Child(lines, code)

        def started(command, *, env, stderr):
            stderr.write_text(log)
            return child

        monkeypatch.setattr(process, "start_worker", started)
        return isolate.GpuProcess(tmp_path / "run", {}, tmp_path / "gpu.log"), child

    return start


ODD = (b"hello\n", b'{"kind": "tim', b"[]\n", b"{}\n", b'{"kind": 3}\n', b"\xff\n")


@pytest.mark.parametrize(
    ("line", "code", "status", "message"),
    [
        (FAULT, None, OutputStatus.FAULT, "illegal address"),
        (b"", None, OutputStatus.HANG, "did not end within its limit"),
        (b"", -11, OutputStatus.FAULT, "the GPU process ended with -11: CUDA error: misaligned"),
        *((line, 0, OutputStatus.FAULT, "the GPU process answered") for line in ODD),
    ],
)
def test_a_process_that_does_not_reply_is_gone(start, line, code, status, message):
    gpu, child = start(ON_CONTROL, line, code=code, log="noise\nCUDA error: misaligned\n")
    child.heard.wait()
    with pytest.raises(GpuProcessGone) as caught:
        gpu.ask({"op": "time"}, 0.1 if status is OutputStatus.HANG else 600.0)
    assert (caught.value.status, caught.value.side) == (status, "control")
    assert caught.value.message.startswith(message)
    assert child.killed.is_set()


def answer(monkeypatch, operation, synchronize=lambda: None):
    monkeypatch.setitem(gpu_process._OPERATIONS, "time", operation)
    torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize))
    session = SimpleNamespace(device="a card", torch=torch)
    return gpu_process.answer(session, {"op": "time"}, lambda row: None)


def raising(error):
    def operation(*_):
        raise error

    return operation


def test_what_does_not_fit_is_refused_and_what_the_driver_or_torch_ends_in_is_a_fault(monkeypatch):
    for error in (AbiError("takes\nsomething else"), DeviceError("no clusters"), ValueError("no such fill")):
        reply = answer(monkeypatch, raising(error))
        assert reply == {"kind": "refused", "message": " ".join(str(error).split())}
    for error in (DriverError("refused a call"), RuntimeError("out of memory")):
        with pytest.raises(type(error)):
            answer(monkeypatch, raising(error))
        with pytest.raises(type(error)):  # one that shows late is no reply either
            answer(monkeypatch, lambda *_: {"kind": "timed"}, synchronize=raising(error))


def test_what_a_kernel_prints_is_not_a_reply(capfd):
    kept = os.dup(1)
    try:
        channel = gpu_process.private_channel()
        os.write(1, b"printed by a kernel\n")
        channel.write("reply\n")
        channel.close()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr() == ("reply\n", "printed by a kernel\n")


TEXT = text_of("timing/nvidia-smi.csv")
HOT = TEXT.replace("000004,", "000048,")


@pytest.fixture
def watched(monkeypatch):
    def watched(*answers):
        """The monitor after `nvidia-smi` gave these answers, one a reading."""
        monitor, waiting = host.Monitor({}), list(answers)

        def printed_by(words):
            if words == gpu_conditions.PROCESSES:
                return f"GPU-1, {os.getpid()}\nGPU-1, 1\nGPU-2, 13\n[N/A]\n"
            answer = waiting.pop(0)
            if not waiting:
                monitor._stop.set()
            return answer

        monkeypatch.setattr(monitor, "_printed_by", printed_by)
        monkeypatch.setattr(monitor._stop, "wait", lambda seconds: None)
        monitor._watch()
        return monitor

    return watched


def test_conditions_of_each_gpu(watched, snapshot):
    """Of the second one much is not known, and it was busy before the start; the third is not there."""
    monitor = watched(TEXT)
    assert [monitor.conditions(f"GPU-{number}") for number in (1, 2, 3)] == snapshot


def test_what_makes_a_gpu_unfit(watched):
    slow = ("hardware slowdown", "hardware thermal slowdown")
    for answers, throttled in (
        ([HOT], slow),
        ([TEXT] * 20 + [None, HOT], slow),
        ([TEXT] * 5 + [None, "garbage"], ("2 readings failed",)),
        ([None], ()),
        ([TEXT.replace("0x0000000000000004", "0xodd")], ()),
    ):
        assert watched(*answers).conditions("GPU-1").throttled == throttled
