"""From samples to a verdict. Pure: numpy and scipy on numbers, no GPU.

The unit of evidence is the *process*: samples of one process share its memory placement, clocks and
temperature, so they say little about another process. Each process gives one log ratio of medians,
head ÷ base. The interval is a percentile bootstrap over those, at the expanded level that Hesterberg gives
for few units (2015, "What Teachers Should Know About the Bootstrap"); p-values are one-sample t tests of
the same numbers against the margin.

The margin is the threshold or the case's own noise floor, whichever is larger. The floor is the larger
end of the control's interval: base's binary against itself, loaded twice, in the same rounds.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from irdiff.timing.results import Sample, Speed

RESAMPLES = 9999
_LEAST_SPREAD = 1e-6  # of a log ratio: events tick; identical numbers do not mean certainty beyond that


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its interval, and the log ratio of each process."""

    value: float
    low: float
    high: float
    logs: tuple[float, ...]

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2 / self.value


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What the samples of one case say, before cases are looked at together."""

    base_us: float
    head_us: float
    head: Ratio
    control: Ratio
    processes: int
    samples: int
    launches_per_sample: int

    @property
    def noise_floor(self) -> float:
        return max(abs(self.control.low - 1), abs(self.control.high - 1))


@dataclass(frozen=True, kw_only=True)
class Judged:
    speed: Speed
    p_value: float
    q_value: float


def medians(samples: Iterable[Sample]) -> dict[int, dict[str, float]]:
    """Process → arm → median microseconds of one launch."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in samples:
        found[row.process][row.arm].append(row.elapsed_us / row.launches)
    return {
        process: {arm: float(np.median(values)) for arm, values in arms.items()}
        for process, arms in found.items()
    }


def estimate(samples: Sequence[Sample], *, confidence: float, seed: int) -> Estimate | None:
    """None where fewer than two processes have samples of all three arms."""
    rows = [arms for arms in medians(samples).values() if {"base", "control", "head"} <= set(arms)]
    if len(rows) < 2:
        return None
    return Estimate(
        base_us=float(np.median([arms["base"] for arms in rows])),
        head_us=float(np.median([arms["head"] for arms in rows])),
        head=_ratio([math.log(arms["head"] / arms["base"]) for arms in rows], confidence, seed),
        control=_ratio([math.log(arms["control"] / arms["base"]) for arms in rows], confidence, seed + 1),
        processes=len(rows),
        samples=len(samples),
        launches_per_sample=samples[0].launches,
    )


def _ratio(logs: Sequence[float], confidence: float, seed: int) -> Ratio:
    values = np.asarray(logs)
    center = float(values.mean())
    if float(values.std()) < _LEAST_SPREAD:
        low = high = center
    else:
        count = len(values)
        quantile = stats.t.ppf((1 + confidence) / 2, count - 1) * math.sqrt(count / (count - 1))
        expanded = 1 - 2 * float(stats.norm.sf(quantile))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            interval = stats.bootstrap(
                (values,),
                np.mean,
                axis=0,
                vectorized=True,
                n_resamples=RESAMPLES,
                confidence_level=expanded,
                method="percentile",
                rng=np.random.default_rng(seed),
            ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return Ratio(
        value=math.exp(center),
        low=math.exp(low - _LEAST_SPREAD),
        high=math.exp(high + _LEAST_SPREAD),
        logs=tuple(logs),
    )


def judge(estimates: Mapping[str, Estimate], *, threshold: float, confidence: float) -> dict[str, Judged]:
    """The verdict of each case, corrected for their number (Benjamini-Hochberg)."""
    if not estimates:
        return {}
    alpha = 1 - confidence
    names = list(estimates)
    margins = {name: math.log1p(max(threshold, estimates[name].noise_floor)) for name in names}
    slower = {name: _p_greater(estimates[name].head.logs, margins[name]) for name in names}
    faster = {name: _p_greater([-x for x in estimates[name].head.logs], margins[name]) for name in names}
    both = [min(1.0, 2 * min(slower[name], faster[name])) for name in names]
    corrected = stats.false_discovery_control(both, method="bh")
    found = {}
    for name, p_value, q_value in zip(names, both, corrected, strict=True):
        row = estimates[name]
        if q_value <= alpha:
            speed = Speed.SLOWER if slower[name] < faster[name] else Speed.FASTER
        elif _inside(row, threshold):
            speed = Speed.SAME
        else:
            speed = Speed.UNCLEAR
        found[name] = Judged(speed=speed, p_value=float(p_value), q_value=float(q_value))
    return found


def _inside(row: Estimate, threshold: float) -> bool:
    """Whether ratio and control are known to be within the threshold: absence of evidence is not `same`."""
    edge = 1 + threshold
    return row.head.low > 1 / edge and row.head.high < edge and row.noise_floor <= threshold


def _p_greater(logs: Sequence[float], margin: float) -> float:
    """Of the hypothesis that the true log ratio is at most `margin`."""
    values = np.asarray(logs)
    if float(values.std()) < _LEAST_SPREAD:
        return 0.0 if float(values.mean()) > margin + _LEAST_SPREAD else 1.0
    return float(stats.ttest_1samp(values, margin, alternative="greater").pvalue)
