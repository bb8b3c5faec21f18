"""Reads the conditions of a measurement, and never sets them: clocks, temperature, power, throttling, and
other processes on the GPU.

If readings began and then failed, the figures of that time are not fit: a slowdown may have gone unseen.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from irdiff import process
from irdiff.backends import gpu_conditions
from irdiff.backends.gpu_conditions import POWER_CAP, UNFIT, Reading, parse_processes, parse_readings
from irdiff.timing.results import Conditions

_PERIOD_S = 1.0
_TIMEOUT_S = 20.0
_IDLE_PERCENT = 10.0
_MOST_FAILED_SHARE = 0.1


def _numbers(readings: Sequence[Reading], field: str, number: Callable[[str], float] = float) -> list[float]:
    """Leaves out values that are no numbers (`[N/A]`)."""
    numbers = []
    for reading in readings:
        with contextlib.suppress(ValueError):
            numbers.append(number(reading[field]))
    return numbers


class Monitor:
    """Reads the conditions about once a second while it is open."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._readings: list[Reading] = []
        self._failed_reads = 0
        self._others: set[tuple[str, int]] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_TIMEOUT_S)

    def _watch(self) -> None:
        count = 0
        while not self._stop.is_set():
            begin = time.monotonic()
            text = self._printed_by(gpu_conditions.READINGS)
            readings = parse_readings(text or "")
            if not readings and not self._readings:
                return  # no such tool, or no such card
            self._readings += readings
            self._failed_reads += not readings
            if count % 5 == 0:
                apps = self._printed_by(gpu_conditions.PROCESSES) or ""
                self._others |= {process for process in parse_processes(apps) if not _is_ours(process[1])}
            count += 1
            self._stop.wait(max(0.1, _PERIOD_S - (time.monotonic() - begin)))

    def _printed_by(self, words: Sequence[str]) -> str | None:
        try:
            return process.run(words, env=self._environment, timeout_s=_TIMEOUT_S)
        except (process.CommandFailed, process.TimeoutExpired, OSError):
            return None

    def conditions(self, uuid: str) -> Conditions:
        readings = [reading for reading in self._readings if reading["uuid"] == uuid]
        others = sorted(pid for gpu, pid in self._others if gpu == uuid)
        return summarize(readings, [f"pid {pid}" for pid in others], self._failed_reads)


def summarize(readings: Sequence[Reading], others: Sequence[str], failed_reads: int = 0) -> Conditions:
    reasons = _numbers(readings, "clocks_event_reasons.active", lambda text: int(text, 16))
    unfit = [name for bit, name in UNFIT.items() if any(bit & int(bits) for bits in reasons)]
    if failed_reads > _MOST_FAILED_SHARE * (len(readings) + failed_reads):
        unfit.append(f"{failed_reads} readings failed")
    before = _numbers(readings[:1], "utilization.gpu")  # our first process still imports
    if before and before[0] > _IDLE_PERCENT:
        others = [*others, f"something unseen (utilization {before[0]:.0f} % before the start)"]
    last = readings[-1] if readings else {}
    capped = [bool(POWER_CAP & int(bits)) for bits in reasons]
    return Conditions(
        sm_clock_mhz=_range(readings, "clocks.sm"),
        memory_clock_mhz=_range(readings, "clocks.mem"),
        temperature_c=_range(readings, "temperature.gpu"),
        power_w=_range(readings, "power.draw"),
        power_limit_w=next(iter(_numbers(readings[-1:], "power.limit")), None),
        throttled=tuple(unfit),
        power_capped_fraction=statistics.fmean(capped) if capped else None,
        other_processes=tuple(others),
        ecc=last.get("ecc.mode.current"),
        mig=last.get("mig.mode.current"),
        driver=last.get("driver_version", ""),
    )


def _range(readings: Sequence[Reading], field: str) -> tuple[float, float, float] | None:
    values = _numbers(readings, field)
    return (min(values), statistics.median(values), max(values)) if values else None


def _is_ours(pid: int) -> bool:
    """True if the process is this one, or descends from it."""
    for _ in range(64):
        if pid == os.getpid():
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return True  # gone: one of ours that has just ended, or not to be seen from here
        if pid <= 1:
            return False
    return False
