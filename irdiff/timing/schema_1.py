"""Timing files of schema 1, and the rule by which they are read.

Schema 1 called a case `same` after six processes, or after what a fault had left of them, and kept no times
of single processes, so its `same` cannot be judged again. The rule:

- a case with a note beside its measurement ended in a fault (nothing else wrote such a note): the fault is
  its result;
- `same` and `unclear` are read as `unclear`, for want of processes;
- `slower` and `faster` stand where six processes measured them: they rest on a difference that was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter

from irdiff.timing.results import (
    SCHEMA,
    CaseTiming,
    GpuRecord,
    Measurement,
    NotTimed,
    OutputCheck,
    OutputStatus,
    Speed,
    TimingProtocol,
    TimingResults,
    Unclear,
)

_PROCESSES = 6


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    base_us: float
    head_us: float
    ratio: float
    ratio_low: float
    ratio_high: float
    control_ratio: float
    control_low: float
    control_high: float
    noise_floor: float
    p_value: float
    q_value: float
    speed: Speed
    processes: int
    samples: int
    launches_per_sample: int
    tflops: float | None
    tb_per_s: float | None
    percent_of_peak: float | None


@dataclass(frozen=True, kw_only=True)
class _CaseTiming:
    case: str
    gpu: str
    outputs: OutputCheck
    measurement: _Measurement | None
    note: str


@dataclass(frozen=True, kw_only=True)
class _GpuRecord:
    uuid: str
    name: str
    target: str
    driver: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    ecc: str | None
    mig: str | None
    sm_clock_mhz: tuple[float, float, float] | None
    memory_clock_mhz: tuple[float, float, float] | None
    temperature_c: tuple[float, float, float] | None
    power_w: tuple[float, float, float] | None
    power_limit_w: float | None
    throttled: tuple[str, ...]
    power_capped_fraction: float | None
    other_processes: tuple[str, ...]
    peak_tflops: float | None
    peak_tb_per_s: float | None
    wall_s: float
    busy_s: float
    trustworthy: bool


@dataclass(frozen=True, kw_only=True)
class _Protocol:
    budget_s: float
    threshold: float
    confidence: float
    processes: int
    seed: int
    verify_only: bool


@dataclass(frozen=True, kw_only=True)
class _TimingResults:
    irdiff_version: str
    created: str
    host: Mapping[str, str]
    protocol: _Protocol
    gpus: tuple[_GpuRecord, ...]
    cases: tuple[_CaseTiming, ...]
    not_timed: tuple[NotTimed, ...]
    duration_s: float


_adapter = TypeAdapter(_TimingResults)


def parse(content: bytes) -> TimingResults:
    """A file of schema 1 by the rule above. Raises pydantic's ValidationError."""
    found = _adapter.validate_json(content)
    return TimingResults(
        schema=SCHEMA,
        irdiff_version=found.irdiff_version,
        created=found.created,
        host=found.host,
        protocol=TimingProtocol(**asdict(found.protocol)),
        gpus=tuple(GpuRecord(**asdict(gpu), stopped="") for gpu in found.gpus),
        cases=tuple(_case(row) for row in found.cases),
        not_timed=found.not_timed,
        duration_s=found.duration_s,
    )


def _case(row: _CaseTiming) -> CaseTiming:
    plain = CaseTiming(
        case=row.case, gpu=row.gpu, outputs=row.outputs, measurement=None, processes=(), note=row.note
    )
    if row.measurement is None:
        return plain
    if row.note:
        status = OutputStatus.HANG if row.note.startswith("hang") else OutputStatus.FAULT
        return replace(plain, outputs=replace(row.outputs, status=status, side=None, message=row.note))
    return replace(plain, measurement=_measurement(row.measurement))


def _measurement(found: _Measurement) -> Measurement:
    stands = found.speed in (Speed.SLOWER, Speed.FASTER) and found.processes >= _PROCESSES
    why = f"an earlier irdiff measured it in {found.processes} processes, too few for a verdict"
    return Measurement(
        **asdict(found)
        | {
            "speed": found.speed if stands else Speed.UNCLEAR,
            "unclear": None if stands else Unclear.FEW_PROCESSES,
            "why": "" if stands else why,
        }
    )
