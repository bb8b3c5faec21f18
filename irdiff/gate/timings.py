from __future__ import annotations

import math
from dataclasses import dataclass

from irdiff.timing.results import (
    FAULTS,
    CaseTiming,
    GpuRecord,
    OutputStatus,
    Speed,
    TimingResults,
    Unclear,
)

_ENOUGH = frozenset({None, Unclear.MANY_CASES, Unclear.WIDE, Unclear.THRESHOLD})
"""Reasons against a verdict that do not make the interval unreliable."""


@dataclass(frozen=True, kw_only=True)
class TimedCase:
    case: str
    device: str
    slower_percent: float | None
    """Head against base, positive if head takes longer; None if it could not be measured."""
    low_percent: float | None
    """Bounds of its confidence interval."""
    high_percent: float | None
    noise_percent: float
    """How far off an identical binary could be. A smaller value is no slowdown."""
    speed: Speed | None
    """None if it could not be measured."""
    enough: bool
    """True if the interval is reliable: all processes, in one hump, with a control that agrees. It may still
    be too wide for a verdict.
    """
    few_processes: bool
    """True after a quick look: fewer processes than a verdict needs."""
    faulted: bool
    """A side ended abnormally, in the check or while it was timed: there is no other result then."""
    same_result: bool | None
    """True if outputs agree within the launch's tolerance; None if undecided."""
    bitwise_equal: bool
    note: str

    @property
    def is_timed(self) -> bool:
        return self.low_percent is not None and not self.few_processes

    @property
    def reason(self) -> str:
        return self.note or "no reason given"

    @property
    def fault(self) -> str:
        return f"faulted on {self.device}: {self.note}"

    @property
    def interval(self) -> str:
        middle = "" if self.slower_percent is None else f"{self.slower_percent:+.2f} % "
        high = "?" if self.high_percent is None else f"{self.high_percent:+.2f}"
        return f"{middle}[{self.low_percent:+.2f}, {high}] on {self.device}"


def of_results(results: TimingResults) -> tuple[TimedCase, ...]:
    gpus = {gpu.uuid: gpu for gpu in results.gpus}
    return tuple(_timed(timing, gpus.get(timing.gpu)) for timing in results.cases)


def reasons_not_timed(results: TimingResults) -> tuple[str, ...]:
    return tuple(f"not timed: {timing.case}: {timing.reason}" for timing in results.not_timed)


def _timed(timing: CaseTiming, gpu: GpuRecord | None) -> TimedCase:
    unfit = _unfit(timing, gpu)
    measured = timing.measurement if not unfit else None
    return TimedCase(
        case=timing.case,
        device=gpu.name if gpu else timing.gpu,
        slower_percent=_percent(measured.ratio) if measured else None,
        low_percent=_percent(measured.ratio_low) if measured else None,
        high_percent=_percent(measured.ratio_high) if measured else None,
        noise_percent=100 * measured.noise_floor if measured else 0.0,
        speed=measured.speed if measured else None,
        enough=measured is not None and measured.unclear in _ENOUGH,
        few_processes=measured is not None and measured.unclear is Unclear.FEW_PROCESSES,
        faulted=timing.outputs.status in FAULTS,
        same_result=timing.outputs.same_result,
        bitwise_equal=timing.outputs.status is OutputStatus.EQUAL,
        note=_note(timing, unfit),
    )


def _note(timing: CaseTiming, unfit: str) -> str:
    """Puts a fault before anything else."""
    if timing.outputs.status in FAULTS:
        side = f" at {timing.outputs.side}" if timing.outputs.side else ""
        return f"{timing.outputs.status}{side}: {timing.outputs.message}"
    return unfit or (timing.measurement.why if timing.measurement else timing.note) or timing.outputs.message


def _unfit(timing: CaseTiming, gpu: GpuRecord | None) -> str:
    """Returns nothing if the measurement is reliable. No comparison holds for a NaN."""
    if gpu is None:
        return "nothing is recorded of this GPU"
    if not gpu.trustworthy:
        return f"the GPU was busy or throttled: {', '.join((*gpu.throttled, *gpu.other_processes)) or '?'}"
    measurement = timing.measurement
    if measurement is None:
        return ""
    is_interval = 0 < measurement.ratio_low <= measurement.ratio <= measurement.ratio_high < math.inf
    return "" if is_interval and measurement.noise_floor < math.inf else "the figures are no interval"


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)
