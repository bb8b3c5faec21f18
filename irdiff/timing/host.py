"""The conditions of a measurement, read and never set.

Clocks, temperature, power, throttling, other processes on the GPU.

NVIDIA only, through `nvidia-smi`; on other cards conditions are recorded as unknown. Where readings began
and then failed, the figures of that time are not fit: a slowdown may have gone unseen.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff import process

_FIELDS = (
    "uuid",
    "clocks.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "clocks_event_reasons.active",
    "ecc.mode.current",
    "mig.mode.current",
    "driver_version",
    "utilization.gpu",
)
_PERIOD_S = 1.0
_TIMEOUT_S = 20.0
_UNFIT = {
    # nvml.h, nvmlClocksEventReason*
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_POWER_CAP = 0x4
_IDLE_PERCENT = 10.0
_MOST_FAILED_SHARE = 0.1

Range = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One GPU at one moment."""

    uuid: str
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    reasons: int
    ecc: str
    mig: str
    driver: str
    utilization_percent: float | None


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """All readings of one GPU, summarized."""

    sm_clock_mhz: Range | None
    memory_clock_mhz: Range | None
    temperature_c: Range | None
    power_w: Range | None
    power_limit_w: float | None
    throttled: tuple[str, ...]
    power_capped_fraction: float | None
    other_processes: tuple[str, ...]
    ecc: str | None
    mig: str | None
    driver: str | None


def parse_readings(text: str) -> list[GpuReading]:
    """Rows of `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`."""
    found = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) != len(_FIELDS):
            continue
        uuid, sm, memory, temperature, power, limit, reasons, ecc, mig, driver, used = words
        found.append(
            GpuReading(
                uuid=uuid,
                sm_clock_mhz=_number(sm),
                memory_clock_mhz=_number(memory),
                temperature_c=_number(temperature),
                power_w=_number(power),
                power_limit_w=_number(limit),
                reasons=_bits(reasons),
                ecc=ecc,
                mig=mig,
                driver=driver,
                utilization_percent=_number(used),
            )
        )
    return found


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _bits(word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        return 0


def parse_processes(text: str) -> list[tuple[str, int]]:
    """(GPU UUID, process id) of `nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader`."""
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [(row[0], int(row[1])) for row in rows if len(row) == 2 and row[1].isdigit()]


class Monitor:
    """Reads the conditions about once a second while it is open."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._readings: list[GpuReading] = []
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
            text = self._ask(f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
            rows = parse_readings(text or "")
            if not rows and not self._readings:
                return  # no such tool, or no such card
            self._readings += rows
            self._failed_reads += not rows
            if count % 5 == 0:
                apps = self._ask("--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader") or ""
                self._others |= {row for row in parse_processes(apps) if not _is_ours(row[1])}
            count += 1
            self._stop.wait(max(0.1, _PERIOD_S - (time.monotonic() - begin)))

    def _ask(self, *words: str) -> str | None:
        try:
            return process.run(["nvidia-smi", *words], env=self._environment, timeout_s=_TIMEOUT_S)
        except (process.CommandFailed, process.TimeoutExpired, OSError):
            return None

    def conditions(self, uuid: str) -> Conditions:
        readings = [row for row in self._readings if row.uuid == uuid]
        others = sorted(pid for gpu, pid in self._others if gpu == uuid)
        return summarize(readings, [f"pid {pid}" for pid in others], self._failed_reads)


def summarize(readings: Sequence[GpuReading], others: Sequence[str], failed_reads: int = 0) -> Conditions:
    reasons = 0
    blind = failed_reads > _MOST_FAILED_SHARE * (len(readings) + failed_reads)
    for row in readings:
        reasons |= row.reasons
    capped = sum(bool(row.reasons & _POWER_CAP) for row in readings)
    last = readings[-1] if readings else None
    before = readings[0].utilization_percent if readings else None  # our first process still imports
    if before is not None and before > _IDLE_PERCENT:
        others = [*others, f"something unseen (utilization {before:.0f} % before the start)"]
    return Conditions(
        sm_clock_mhz=_range([row.sm_clock_mhz for row in readings]),
        memory_clock_mhz=_range([row.memory_clock_mhz for row in readings]),
        temperature_c=_range([row.temperature_c for row in readings]),
        power_w=_range([row.power_w for row in readings]),
        power_limit_w=last.power_limit_w if last else None,
        throttled=(
            *(name for bit, name in _UNFIT.items() if reasons & bit),
            *([f"{failed_reads} readings failed"] if blind else []),
        ),
        power_capped_fraction=capped / len(readings) if readings else None,
        other_processes=tuple(others),
        ecc=last.ecc if last else None,
        mig=last.mig if last else None,
        driver=last.driver if last else None,
    )


def _range(values: Sequence[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    return (min(known), statistics.median(known), max(known)) if known else None


def _is_ours(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
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
