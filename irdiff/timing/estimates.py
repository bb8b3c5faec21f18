"""From samples to estimates. Pure: numpy and scipy on numbers, no GPU. `decision` makes verdicts of them.

The unit of evidence is the *process*: samples of one process share its memory placement, clocks and
temperature, so they say little about another process. Each process gives one log ratio head ÷ base, of
medians and of trimmed means. Intervals and p-values are Student's t over those: with the few processes there
are, a bootstrap over them is too narrow (a resample of three values is never further apart than the three).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy import stats

from irdiff.timing.results import ProcessTimes, Sample

_ARMS = ("base", "control", "head")
_TRIMMED = 0.1  # at each end
_LEAST_SPREAD = 1e-6  # of a log ratio: events tick; identical numbers do not mean certainty beyond that


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its interval, and the log ratio of each process."""

    value: float
    low: float
    high: float
    logs: tuple[float, ...]

    def apart(self, distance: float) -> tuple[float, ...]:
        """Log ratios of the processes that lie further than a log ratio of `distance` from the median."""
        middle = median(self.logs)
        return tuple(log for log in self.logs if abs(log - middle) > distance)

    def p_greater(self, margin: float) -> float:
        """The p-value of the hypothesis that the true log ratio is at most `margin`: a one-sided t test."""
        return _p_greater(np.asarray(self.logs), margin)

    def p_less(self, margin: float) -> float:
        """The p-value of the hypothesis that the true log ratio is at least -`margin`."""
        return _p_greater(-np.asarray(self.logs), margin)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What the samples of one case say, before cases are looked at together."""

    processes: tuple[ProcessTimes, ...]
    head: Ratio
    """The ratio of medians. `control` is one of medians, too."""
    head_means: Ratio
    """The ratio of the means of the middle 80 % of the samples."""
    control: Ratio
    samples: int
    launches_per_sample: int

    @property
    def noise_floor(self) -> float:
        """What the control could be off by: base's binary loaded twice, timed in the same rounds."""
        return max(abs(self.control.low - 1), abs(self.control.high - 1))


def process_times(samples: Iterable[Sample]) -> tuple[ProcessTimes, ...]:
    """The times of each process that has samples of all three arms."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in samples:
        found[row.process][row.arm].append(row.elapsed_us / row.launches)
    return tuple(
        _of_process(process, *(arms[name] for name in _ARMS))
        for process, arms in sorted(found.items())
        if arms.keys() >= set(_ARMS)
    )


def _of_process(
    process: int, base: Sequence[float], control: Sequence[float], head: Sequence[float]
) -> ProcessTimes:
    return ProcessTimes(
        process=process,
        base_us=median(base),
        control_us=median(control),
        head_us=median(head),
        base_mean_us=_trimmed_mean(base),
        control_mean_us=_trimmed_mean(control),
        head_mean_us=_trimmed_mean(head),
    )


def _trimmed_mean(times: Sequence[float]) -> float:
    cut = int(_TRIMMED * len(times))
    return fmean(sorted(times)[cut : len(times) - cut])


def estimate(samples: Sequence[Sample], *, confidence: float) -> Estimate | None:
    """The estimate of one case. None where fewer than two processes have samples of all three arms."""
    rows = process_times(samples)
    if len(rows) < 2:
        return None
    return Estimate(
        processes=rows,
        head=_ratio([row.head_us / row.base_us for row in rows], confidence),
        head_means=_ratio([row.head_mean_us / row.base_mean_us for row in rows], confidence),
        control=_ratio([row.control_us / row.base_us for row in rows], confidence),
        samples=len(samples),
        launches_per_sample=samples[0].launches,
    )


def _ratio(ratios: Sequence[float], confidence: float) -> Ratio:
    logs = np.log(ratios)
    center = float(logs.mean())
    reach = _LEAST_SPREAD + _standard_error(logs) * float(stats.t.ppf((1 + confidence) / 2, len(logs) - 1))
    low, value, high = (math.exp(center + far) for far in (-reach, 0.0, reach))
    return Ratio(value=value, low=low, high=high, logs=tuple(map(float, logs)))


def _standard_error(logs: np.ndarray) -> float:
    return float(logs.std(ddof=1)) / math.sqrt(len(logs))


def _p_greater(logs: np.ndarray, margin: float) -> float:
    distance, error = float(logs.mean()) - margin, _standard_error(logs)
    if error < _LEAST_SPREAD:
        return 0.0 if distance > _LEAST_SPREAD else 1.0
    return float(stats.t.sf(distance / error, len(logs) - 1))
