"""Small valid timings for unit tests, as `timing.json` has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irdiff.timing import results
from irdiff.timing.results import (
    CaseTiming,
    GpuRecord,
    OutputCheck,
    OutputStatus,
    TimingProtocol,
    TimingResults,
)


def protocol(**changes: Any) -> TimingProtocol:
    facts = {
        "budget_s": 60.0,
        "threshold": 0.01,
        "confidence": 0.95,
        "processes": 18,
        "seed": 0,
        "verify_only": False,
    }
    return TimingProtocol(**(facts | changes))


def check(
    status: OutputStatus = OutputStatus.EQUAL, side: str | None = None, message: str = ""
) -> OutputCheck:
    return OutputCheck(
        status=status,
        side=side,
        message=message,
        arguments=(),
        max_ulp=0,
        relative_norm=0.0,
        base_repeats=True,
    )


def gpu(uuid: str = "GPU-1", **changes: Any) -> GpuRecord:
    """One that did nothing else."""
    facts: dict[str, Any] = dict.fromkeys(GpuRecord.__dataclass_fields__)
    facts |= {
        "uuid": uuid,
        "name": "card",
        "target": "sm_90",
        "driver": "580",
        "multiprocessors": 132,
        "memory_bytes": 1,
        "l2_bytes": 1,
        "sm_clock_mhz": (345.0, 1980.0, 1980.0),
        "throttled": (),
        "other_processes": (),
        "wall_s": 1.0,
        "busy_s": 0.9,
        "trustworthy": True,
        "stopped": "",
    }
    return GpuRecord(**(facts | changes))


def found(cases: Iterable[CaseTiming], **changes: Any) -> TimingResults:
    facts: dict[str, Any] = {
        "schema": results.SCHEMA,
        "irdiff_version": "0",
        "created": "2026-01-01T00:00:00+00:00",
        "host": {},
        "protocol": protocol(),
        "gpus": (gpu(),),
        "cases": tuple(cases),
        "not_timed": (),
        "duration_s": 2.0,
    }
    return TimingResults(**(facts | changes))
