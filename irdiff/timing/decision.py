"""From the samples of cases to their verdicts. Pure, and the only place where a verdict of speed is made.

`slower` and `faster`: a t test over processes against the margin, of medians and of trimmed means (the larger
p-value of the two counts), corrected for the number of cases (Benjamini-Hochberg). The margin is the
threshold or the noise floor of the case, whichever is larger.

`same` is a claim of its own, never what is left over. All of these must hold:

- all processes of the protocol measured the case (`PROCESSES`);
- the interval of head ÷ base lies inside the threshold, of medians and of trimmed means: a second hump of the
  samples moves the mean and leaves the median where it was;
- so does the control's, and no process of head or control stands apart from the others. Where 18 processes
  agree, at least three quarters of all do, with 99 % confidence (S. S. Wilks, 1941, "Determination of Sample
  Sizes for Setting Tolerance Limits"). No interval says that: one over processes that all missed a hump is
  narrow and wrong.

`python -m tests.programs.bench_statistics` shows how often each is wrong under simulated noise.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median

from scipy import stats

from irdiff.timing import statistics
from irdiff.timing.results import PROCESSES, Speed, TimingProtocol, Unclear
from irdiff.timing.samples import Sample
from irdiff.timing.statistics import Estimate, Ratio
from irdiff.words import counted

_APART = 2.0
"""A process stands apart beyond this many thresholds from the median process. A hump that is smaller must be
in most processes to hide a change of 1.5 thresholds, and then the interval sees it."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The verdict of one case, and what it rests on."""

    estimate: Estimate
    speed: Speed
    unclear: Unclear | None
    """The first objection to a verdict; None where there is one."""
    why: str
    """All objections, in words."""
    p_value: float
    q_value: float


def decide(samples: Iterable[Sample], protocol: TimingProtocol) -> dict[str, Decision]:
    """Case → decision, of all samples of one GPU. Left out is what fewer than two processes measured."""
    by_case: dict[str, list[Sample]] = defaultdict(list)
    for row in samples:
        by_case[row.case].append(row)
    estimates = {
        case: found
        for case, rows in by_case.items()
        if (found := statistics.estimate(rows, confidence=protocol.confidence))
    }
    return judge(estimates, protocol)


def judge(estimates: Mapping[str, Estimate], protocol: TimingProtocol) -> dict[str, Decision]:
    """The decision on each case, corrected for their number."""
    if not estimates:
        return {}
    p_values = [p_value(row, protocol) for row in estimates.values()]
    q_values = stats.false_discovery_control(p_values, method="bh")
    return {
        name: verdict(row, p, float(q), protocol)
        for (name, row), p, q in zip(estimates.items(), p_values, q_values, strict=True)
    }


def p_value(row: Estimate, protocol: TimingProtocol) -> float:
    """Of the hypothesis that medians or means are within the margin, two-sided."""
    margin = math.log1p(max(protocol.threshold, row.noise_floor))
    slower = max(row.head.p_greater(margin), row.head_means.p_greater(margin))
    faster = max(row.head.p_less(margin), row.head_means.p_less(margin))
    return min(1.0, 2 * min(slower, faster))


def verdict(row: Estimate, p: float, q: float, protocol: TimingProtocol) -> Decision:
    """The decision on one case, given its p-value before (`p`) and after (`q`) the correction."""
    objections: list[tuple[Unclear, str]] = []
    speed = Speed.UNCLEAR
    if few := few_processes(len(row.processes), protocol):
        objections.append((Unclear.FEW_PROCESSES, few))
    elif q <= 1 - protocol.confidence:
        speed = Speed.SLOWER if row.head.value > 1 else Speed.FASTER
    else:
        objections += _objections_to_same(row, p, protocol)
        speed = Speed.UNCLEAR if objections else Speed.SAME
    return Decision(
        estimate=row,
        speed=speed,
        unclear=objections[0][0] if objections else None,
        why="; ".join(words for _, words in objections),
        p_value=p,
        q_value=q,
    )


def few_processes(count: int, protocol: TimingProtocol) -> str:
    """Why so many processes are too few, in words; empty where they are enough."""
    needed = max(PROCESSES, protocol.processes)
    if count >= needed:
        return ""
    return f"only {counted(count, 'process')} measured it, a verdict needs {needed}"


def _objections_to_same(row: Estimate, p: float, protocol: TimingProtocol) -> list[tuple[Unclear, str]]:
    threshold = protocol.threshold
    found: list[tuple[Unclear, str]] = []
    if row.noise_floor > threshold:
        words = f"base's own binary, loaded again, may be off by {_percent(row.noise_floor)}"
        found.append((Unclear.CONTROL, f"{words}, more than the threshold of {_percent(threshold)}"))
    apart = _APART * math.log1p(threshold)
    for name, ratio in (("head", row.head), ("base's own binary", row.control)):
        if strays := ratio.apart(apart):
            found.append((Unclear.TWO_HUMPS, _two_humps(name, ratio.logs, strays)))
    places = _place(row.head, threshold), _place(row.head_means, threshold)
    if places != (_IntervalPlace.WITHIN, _IntervalPlace.WITHIN):
        found.append(_interval(row, places, p, protocol))
    return found


class _IntervalPlace(Enum):
    """Where an interval lies."""

    WITHIN = "within the threshold"
    ACROSS = "across it"
    BEYOND = "beyond it"


def _place(ratio: Ratio, threshold: float) -> _IntervalPlace:
    edge = math.log1p(threshold)
    low, high = math.log(ratio.low), math.log(ratio.high)
    if -edge < low and high < edge:
        return _IntervalPlace.WITHIN
    return _IntervalPlace.BEYOND if low > edge or high < -edge else _IntervalPlace.ACROSS


def _two_humps(name: str, logs: tuple[float, ...], strays: tuple[float, ...]) -> str:
    away = median(strays) - median(logs)
    far = f"{_percent(math.expm1(abs(away)))} {'slower' if away > 0 else 'faster'}"
    return f"in {len(strays)} of {len(logs)} processes {name} is about {far} than in the others: two humps"


def _interval(
    row: Estimate, places: tuple[_IntervalPlace, _IntervalPlace], p: float, protocol: TimingProtocol
) -> tuple[Unclear, str]:
    """Why the intervals of medians and means give no verdict."""
    threshold = _percent(protocol.threshold)
    interval = f"the interval {_interval_words(row.head)}"
    match places:
        case (_IntervalPlace.BEYOND, _IntervalPlace.BEYOND) if p <= 1 - protocol.confidence:
            return Unclear.MANY_CASES, (
                f"{interval} is beyond {threshold}, but not after the correction for the number of cases"
            )
        case (_IntervalPlace.BEYOND, _IntervalPlace.BEYOND):
            return Unclear.CONTROL, (
                f"{interval} is beyond {threshold}, but not beyond what base's own binary may be off by"
            )
        case (_IntervalPlace.WITHIN | _IntervalPlace.BEYOND, _):
            return Unclear.TWO_HUMPS, (
                f"{interval} of the medians and {_interval_words(row.head_means)} of the means disagree: "
                "samples within a process lie in two humps"
            )
    if math.log(row.head.high / row.head.low) >= 2 * math.log1p(protocol.threshold):
        return Unclear.WIDE, f"{interval} is too wide to lie within {threshold} on both sides"
    return Unclear.THRESHOLD, f"{interval} is neither within {threshold} nor beyond it"


def _interval_words(ratio: Ratio) -> str:
    return f"{100 * (ratio.low - 1):+.2f} to {100 * (ratio.high - 1):+.2f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
