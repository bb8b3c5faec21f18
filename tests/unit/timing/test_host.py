"""What `nvidia-smi` prints, read; nothing is started."""

import os

import pytest

from irdiff.timing import host

TEXT = """GPU-1, 1980, 3201, 45, 512.3, 700.00, 0x0000000000000004, Enabled, Disabled, 580.1, 0
GPU-1, 1700, 3201, 50, 690.0, 700.00, 0x0000000000000000, Enabled, Disabled, 580.1, 0
GPU-2, [N/A], 3201, 50, [N/A], 700.00, Not Active, N/A, N/A, 580.1, 97
garbage
"""
HOT = TEXT.replace("000004,", "000048,")


@pytest.fixture
def watched(monkeypatch):
    def watched(*answers):
        """The monitor after `nvidia-smi` gave these answers, one a reading."""
        monitor, waiting = host.Monitor({}), list(answers)

        def ask(*words):
            if words[0].startswith("--query-compute"):
                return f"GPU-1, {os.getpid()}\nGPU-1, 1\nGPU-2, 13\n[N/A]\n"
            answer = waiting.pop(0)
            if not waiting:
                monitor._stop.set()
            return answer

        monkeypatch.setattr(monitor, "_ask", ask)
        monkeypatch.setattr(monitor._stop, "wait", lambda seconds: None)
        monitor._watch()
        return monitor

    return watched


def test_conditions_of_each_gpu(watched):
    monitor = watched(TEXT)
    found, other, unknown = (monitor.conditions(f"GPU-{number}") for number in (1, 2, 3))
    assert (found.sm_clock_mhz, found.power_capped_fraction) == ((1700.0, 1840.0, 1980.0), 0.5)
    assert (found.throttled, found.ecc, found.mig) == ((), "Enabled", "Disabled")
    assert found.other_processes == ("pid 1",)  # not this one
    assert (other.sm_clock_mhz, other.power_w, other.throttled) == (None, None, ())
    assert "97 %" in other.other_processes[-1]  # it was busy before the start
    assert (unknown.sm_clock_mhz, unknown.power_capped_fraction, unknown.other_processes) == (None, None, ())


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
