"""What `nvidia-smi` prints, read; nothing is started."""

import os

from irdiff.timing import host

TEXT = """GPU-1, 1980, 3201, 45, 512.3, 700.00, 0x0000000000000004, Enabled, Disabled, 580.1, 0
GPU-1, 1700, 3201, 50, 690.0, 700.00, 0x0000000000000000, Enabled, Disabled, 580.1, 0
GPU-2, [N/A], 3201, 50, [N/A], 700.00, Not Active, N/A, N/A, 580.1, 97
garbage
"""


def test_readings():
    rows = host.parse_readings(TEXT)
    assert [row["uuid"] for row in rows] == ["GPU-1", "GPU-1", "GPU-2"]
    unknown = host.summarize(rows[2:], [])
    assert (unknown.sm_clock_mhz, unknown.power_w, unknown.throttled) == (None, None, ())
    found = host.summarize(rows[:2], [])
    assert found.sm_clock_mhz == (1700.0, 1840.0, 1980.0)
    assert found.power_capped_fraction == 0.5
    assert (found.throttled, found.ecc, found.mig) == ((), "Enabled", "Disabled")


def test_slowdowns_are_named():
    rows = host.parse_readings(TEXT.replace("0x0000000000000004", "0x0000000000000048"))
    assert host.summarize(rows, []).throttled == ("hardware slowdown", "hardware thermal slowdown")


def test_no_readings():
    found = host.summarize([], ["pid 7"])
    assert found.sm_clock_mhz is None
    assert found.power_capped_fraction is None
    assert found.other_processes == ("pid 7",)


def test_processes_of_the_gpu():
    assert host.parse_processes("GPU-1, 12\nGPU-2, 13\n[N/A]\n") == [("GPU-1", 12), ("GPU-2", 13)]
    assert host._is_ours(os.getpid())
    assert not host._is_ours(1)


def test_a_gpu_that_works_before_the_start_is_busy():
    rows = host.parse_readings(TEXT)
    assert host.summarize(rows[:1], []).other_processes == ()
    assert "97 %" in host.summarize(rows[2:], []).other_processes[0]


def watched(monkeypatch, answers):
    """Conditions after `nvidia-smi` gave these answers, one a reading."""
    monitor = host.Monitor({})
    waiting = list(answers)

    def ask(*words):
        if words[0].startswith("--query-compute"):
            return ""
        answer = waiting.pop(0)
        if not waiting:
            monitor._stop.set()
        return answer

    monkeypatch.setattr(monitor, "_ask", ask)
    monkeypatch.setattr(monitor._stop, "wait", lambda seconds: None)
    monitor._watch()
    return monitor.conditions("GPU-1")


def test_readings_go_on_after_one_that_failed(monkeypatch):
    found = watched(monkeypatch, [TEXT] * 20 + [None] + [TEXT.replace("000004,", "000008,")])
    assert found.throttled == ("hardware slowdown",)


def test_a_time_without_readings_is_not_fit(monkeypatch):
    assert watched(monkeypatch, [TEXT] * 5 + [None, "garbage"]).throttled == ("2 readings failed",)
    assert watched(monkeypatch, [None]).throttled == ()
    assert watched(monkeypatch, [TEXT.replace("0x0000000000000004", "0xodd")]).throttled == ()
