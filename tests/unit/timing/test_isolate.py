"""A GPU process as its parent sees it: the child is a pair of pipes, nothing is started."""

import io
import os
import threading

import pytest

from irdiff import process
from irdiff.timing import gpu_process, isolate
from irdiff.timing.isolate import GpuProcessError, GpuProcessGone
from irdiff.timing.results import OutputStatus

READY = b'{"kind": "ready"}\n'


class Child:
    """Says `lines`, then ends with `code`, or stays silent."""

    def __init__(self, lines, code):
        reader, writer = os.pipe()
        self.stdin, self.stdout = io.BytesIO(), os.fdopen(reader, "rb")
        self.code, self.killed = code, threading.Event()
        os.write(writer, b"".join(lines))
        self.writer = writer
        if code is not None:
            os.close(writer)

    def kill(self):
        self.killed.set()
        if self.code is None:
            os.close(self.writer)
            self.code = -9

    def wait(self):
        return self.code


@pytest.fixture
def start(monkeypatch, tmp_path):
    def start(*lines, code=None, ready=READY, log=""):
        child = Child([ready, *lines], code)

        def started(command, *, env, stderr):
            stderr.write_text(log)
            return child

        monkeypatch.setattr(process, "start_worker", started)
        return isolate.GpuProcess(tmp_path / "run", {}, tmp_path / "gpu.log"), child

    return start


def ended(gpu, timeout_s=5.0):
    with pytest.raises(GpuProcessGone) as caught:
        gpu.ask({"op": "time"}, timeout_s)
    return caught.value


def test_a_reply(start):
    gpu, _ = start(b'{"kind": "progress", "side": "head"}\n', b'{"kind": "timed", "rows": []}\n')
    assert gpu.ask({"op": "time"}, 5.0) == {"kind": "timed", "rows": []}
    gpu.close()


def test_a_fault_names_the_side_that_ran(start):
    gpu, child = start(
        b'{"kind": "progress", "side": "control"}\n', b'{"kind": "fault", "message": "illegal address"}\n'
    )
    found = ended(gpu)
    assert (found.status, found.side, found.message) == (OutputStatus.FAULT, "control", "illegal address")
    assert child.killed.is_set()


def test_silence_is_a_hang(start):
    gpu, child = start(b'{"kind": "progress", "side": "base"}\n')
    found = ended(gpu, timeout_s=0.05)
    assert (found.status, found.side) == (OutputStatus.HANG, "base")
    assert child.killed.is_set()


def test_death_is_a_fault_with_its_last_words(start):
    gpu, _ = start(code=-11, log="noise\nCUDA error: misaligned address\n")
    found = ended(gpu)
    assert found.status is OutputStatus.FAULT
    assert found.message == "the GPU process ended with -11: CUDA error: misaligned address"


@pytest.mark.parametrize(
    "line", [b"hello\n", b'{"kind": "tim', b"[]\n", b"{}\n", b'{"kind": 3}\n', b"\xff\n"]
)
def test_what_is_no_reply_is_a_fault(start, line):
    gpu, _ = start(line, code=0)
    found = ended(gpu)
    assert found.status is OutputStatus.FAULT
    assert "answered" in found.message


@pytest.mark.parametrize("ready", [b"", b'{"kind": "timed"}\n', b"no module named torch\n"])
def test_a_process_that_does_not_start_is_an_error(start, ready):
    gpu, _ = start(ready=ready, code=1)
    with pytest.raises(GpuProcessError, match="did not start"):
        gpu.ask({"op": "list"}, 5.0)


def test_a_process_that_cannot_be_started_is_an_error(monkeypatch, tmp_path):
    def refuse(command, *, env, stderr):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(process, "start_worker", refuse)
    with pytest.raises(GpuProcessError, match="temporarily unavailable"):
        isolate.GpuProcess(tmp_path, {}, tmp_path / "gpu.log")


def test_each_process_has_a_log_of_its_own(start):
    assert start()[0].log != start()[0].log


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
