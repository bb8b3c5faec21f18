"""The results of `irdiff time`: the content of `timing.json`, next to `run.json` in a run folder.

Every sample is in `timing-samples.jsonl.zst`. Verdicts are computed from the times of each process, which are
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import ConfigDict

SCHEMA = "irdiff-timing/2"
TIMING_FILE = "timing.json"
PROCESSES = 18
"""The least even number (half of the processes set up head before base) with 0.75 ** PROCESSES < 0.01: an
effect in a quarter of all processes occurs in at least one of these, 99 times of 100.
"""
MAX_TIMING_BYTES = 64 << 20


class Speed(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    """Within the threshold, in every process: see `decision`."""
    UNCLEAR = "unclear"
    """None of the three is shown; `Unclear` says why."""


class Unclear(StrEnum):
    FEW_PROCESSES = "few processes"
    """Not all processes of the protocol measured it."""
    CONTROL = "control disagrees"
    """Base's own binary, loaded a second time, is off by more than the threshold."""
    TWO_HUMPS = "two humps"
    """Some processes, or some samples within them, are far from the others."""
    MANY_CASES = "many cases"
    """Beyond the threshold by itself, but not after the correction for the number of cases."""
    WIDE = "wide interval"
    """The interval is wider than the threshold allows on both sides."""
    THRESHOLD = "near the threshold"
    """The interval holds the threshold."""


class OutputStatus(StrEnum):
    EQUAL = "equal"
    """Bitwise equal."""
    CLOSE = "close"
    """Within the workload's tolerance."""
    DIFFERENT = "different"
    OUT_OF_BOUNDS = "out of bounds"
    """A side wrote outside of its buffers."""
    FAULT = "fault"
    """A side ended abnormally, in the check or while it was timed: an illegal address, a trap, a driver
    error, exhausted memory, or the death of the process.
    """
    HANG = "hang"
    """A side did not end within its limit, in the check or while it was timed."""
    NOT_LAUNCHED = "not launched"
    """The binary does not fit the captured launch, or an input cannot be created here."""
    NOT_CHECKED = "not checked"
    """Recorded samples were judged; nothing ran."""


FAULTS = frozenset({OutputStatus.FAULT, OutputStatus.HANG})
"""A fault is the result of a case, whatever else was measured of it."""
MEASURABLE = frozenset(
    {OutputStatus.EQUAL, OutputStatus.CLOSE, OutputStatus.DIFFERENT, OutputStatus.NOT_CHECKED}
)
"""Both sides ran to their end within their buffers, so that times mean something."""
_STAYS = {
    OutputStatus.DIFFERENT: 1,
    OutputStatus.OUT_OF_BOUNDS: 2,
    OutputStatus.HANG: 3,
    OutputStatus.FAULT: 3,
}
"""Results that a later timing does not undo, with how grave they are."""
BAD_OUTPUTS = frozenset(OutputStatus) - {OutputStatus.EQUAL, OutputStatus.CLOSE, OutputStatus.NOT_CHECKED}


@dataclass(frozen=True, kw_only=True)
class OutputCheck:
    """The result of running both sides once from the same inputs, or the fault that ended the case later."""

    status: OutputStatus
    side: str | None = None
    """The side to blame, if it is known: `base`, `control` (base's binary loaded again), `head`."""
    message: str
    arguments: tuple[str, ...] = ()
    """Names of the arguments whose contents differ."""
    max_ulp: int | None = None
    relative_norm: float | None = None
    """‖head - base‖ / ‖base‖ over the worst argument."""
    base_repeats: bool | None = None
    """False if base gives other bytes when it runs twice, as it may with atomics."""

    @property
    def same_result(self) -> bool | None:
        """True if both sides agree within the launch's tolerance, False if head does something else; None if
        that is not known, for example because base faults by itself.
        """
        if self.status in (OutputStatus.EQUAL, OutputStatus.CLOSE):
            return True
        is_compared = self.status not in (OutputStatus.NOT_LAUNCHED, OutputStatus.NOT_CHECKED)
        return False if is_compared and self.side not in ("base", "control") else None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The time of one arm in one round of one process: a line of `timing-samples.jsonl.zst`."""

    gpu: str
    case: str
    process: int
    round: int
    position: int
    """The position of the arm within its round, whose order is random."""
    arm: str
    launches: int
    elapsed_us: float
    """The time of all launches of the sample together."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One case timed on one GPU. Times are medians over all samples; ratios are head ÷ base."""

    base_us: float
    head_us: float
    ratio: float
    ratio_low: float
    ratio_high: float
    """Interval of Student's t over processes, at the protocol's confidence."""
    control_ratio: float
    """Control ÷ base. The control is base's binary, loaded a second time."""
    control_low: float
    control_high: float
    noise_floor: float
    """The greatest error of the control. A ratio counts only beyond it."""
    p_value: float
    q_value: float
    """After Benjamini-Hochberg over the cases of the GPU."""
    speed: Speed
    unclear: Unclear | None
    """The first reason against a verdict; None if there is a verdict."""
    why: str
    """All reasons against a verdict, in words; empty if there is a verdict."""
    processes: int
    samples: int
    launches_per_sample: int


@dataclass(frozen=True, kw_only=True)
class ProcessTimes:
    """One process's measurements of one case: microseconds of one launch."""

    process: int
    base_us: float
    """Median over the samples of the arm."""
    control_us: float
    head_us: float
    base_mean_us: float
    """Mean over the middle 80 % of the samples of the arm. Unlike the median it shows a second hump."""
    control_mean_us: float
    head_mean_us: float


@dataclass(frozen=True, kw_only=True)
class CaseTiming:
    case: str
    gpu: str
    """The UUID of the GPU."""
    outputs: OutputCheck
    measurement: Measurement | None
    """None if it was not measured, or faulted, whatever was measured before that."""
    processes: tuple[ProcessTimes, ...]
    """Each process that measured all arms, also for a case that faulted later."""
    note: str
    """Why there is no measurement."""


NO_SUCH_GPU = "no such GPU here"
"""Prefix of the reason of a case that no GPU of this host can run."""


@dataclass(frozen=True, kw_only=True)
class NotTimed:
    case: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Conditions:
    driver: str
    ecc: str | None
    mig: str | None
    sm_clock_mhz: tuple[float, float, float] | None
    """Least, median and greatest while kernels ran."""
    memory_clock_mhz: tuple[float, float, float] | None
    temperature_c: tuple[float, float, float] | None
    power_w: tuple[float, float, float] | None
    power_limit_w: float | None
    throttled: tuple[str, ...]
    """Reasons that make figures unfit: thermal and hardware slowdowns."""
    power_capped_fraction: float | None
    """Share of the readings in which the power limit held the clock down (normal for matrix work)."""
    other_processes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GpuRecord(Conditions):
    """One GPU and the conditions it was measured under."""

    uuid: str
    name: str
    target: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    wall_s: float
    busy_s: float
    """The part of that time in which kernels of this GPU were in flight."""
    trustworthy: bool
    """False on a busy or throttled GPU: its results are not a pass."""
    stopped: str
    """Why measuring ended before every process had measured every case; empty if it did not."""


@dataclass(frozen=True, kw_only=True)
class TimingProtocol:
    """The settings of the measurement."""

    budget_s: float
    threshold: float
    confidence: float
    processes: int
    seed: int
    verify_only: bool


@dataclass(frozen=True, kw_only=True)
class TimingResults:
    """The content of `timing.json`."""

    schema: str
    irdiff_version: str
    created: str
    host: Mapping[str, str]
    """Host name, kernel, and versions of the packages used."""
    protocol: TimingProtocol
    gpus: tuple[GpuRecord, ...]
    cases: tuple[CaseTiming, ...]
    not_timed: tuple[NotTimed, ...]
    duration_s: float


def merge(before: TimingResults, after: TimingResults) -> TimingResults:
    """Joins timings of two hosts, or of one host at two times.

    For the same case on the same GPU the later one counts; but a fault or a wrong output stays, even if a
    later time did not show it, since a race shows at times alone. A verdict under another threshold or
    confidence is unclear. A GPU is only as fit as at the worst time at which a kept case was measured. A case
    that either of them timed is not listed as not timed.
    """
    later = {(timing.case, timing.gpu): timing for timing in after.cases}
    kept = {}
    for timing in before.cases:
        again = later.get((timing.case, timing.gpu))
        if again is None:
            kept[timing.case, timing.gpu] = _under(after.protocol, before.protocol, timing)
        elif _STAYS.get(timing.outputs.status, 0) > _STAYS.get(again.outputs.status, 0):
            if timing.outputs.status in MEASURABLE:
                later[timing.case, timing.gpu] = replace(again, outputs=timing.outputs)
            else:
                kept[timing.case, timing.gpu] = timing
    cases = later | kept
    gpus = {gpu.uuid: gpu for gpu in before.gpus}
    for gpu in after.gpus:
        if gpu.uuid not in gpus or all(uuid != gpu.uuid for _, uuid in kept):
            gpus[gpu.uuid] = gpu
        elif any(uuid == gpu.uuid for _, uuid in later.keys() - kept.keys()):
            gpus[gpu.uuid] = _worst(gpus[gpu.uuid], gpu)
    timed = {case for case, _ in cases}
    not_timed = {
        timing.case: timing for timing in (*before.not_timed, *after.not_timed) if timing.case not in timed
    }
    return replace(
        after,
        host={**before.host, **after.host},
        gpus=tuple(gpus[uuid] for uuid in sorted(gpus)),
        cases=tuple(cases[key] for key in sorted(cases)),
        not_timed=tuple(not_timed[key] for key in sorted(not_timed)),
        duration_s=before.duration_s + after.duration_s,
    )


def _under(protocol: TimingProtocol, earlier: TimingProtocol, timing: CaseTiming) -> CaseTiming:
    """A verdict of another threshold or confidence is none here."""
    measured = timing.measurement
    if measured is None or (protocol.threshold, protocol.confidence) == (
        earlier.threshold,
        earlier.confidence,
    ):
        return timing
    thresholds = f"{100 * earlier.threshold:.3g} %, not {100 * protocol.threshold:.3g} %"
    why = f"it was timed for a threshold of {thresholds}: time it again"
    unclear = replace(measured, speed=Speed.UNCLEAR, unclear=Unclear.THRESHOLD, why=why)
    return replace(timing, measurement=unclear)


def _worst(before: GpuRecord, after: GpuRecord) -> GpuRecord:
    return replace(
        after,
        throttled=tuple(dict.fromkeys((*before.throttled, *after.throttled))),
        other_processes=tuple(dict.fromkeys((*before.other_processes, *after.other_processes))),
        trustworthy=before.trustworthy and after.trustworthy,
        stopped="; ".join(dict.fromkeys(filter(None, (before.stopped, after.stopped)))),
    )
