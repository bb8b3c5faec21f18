"""One timing of the case that the tests of rules are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irdiff.gate.timings import TimedCase
from irdiff.timing.results import Speed

CASE = "a/x:1@sm_90"


def timed(
    low: float | None, high: float | None, speed: Speed | None = Speed.SAME, **changes: Any
) -> TimedCase:
    middle = None if low is None or high is None else (low + high) / 2
    return replace(
        TimedCase(
            case=CASE,
            device="H200",
            slower_percent=middle,
            low_percent=low,
            high_percent=high,
            noise_percent=0.2,
            speed=speed,
            enough=True,
            faulted=False,
            same_result=True,
            note="",
        ),
        **changes,
    )
