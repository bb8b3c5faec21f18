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

from irdiff.timing.results import ProcessTimes
from irdiff.timing.samples import Sample

_ARMS = frozenset({"base", "control", "head"})
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
        """The p-value of the hypothesis that the true log ratio is at most `margin`."""
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
    def base_us(self) -> float:
        return median(row.base_us for row in self.processes)

    @property
    def head_us(self) -> float:
        return median(row.head_us for row in self.processes)

    @property
    def noise_floor(self) -> float:
        """What the control could be off by: base's binary loaded twice, timed in the same rounds."""
        return max(abs(self.control.low - 1), abs(self.control.high - 1))


def process_times(samples: Iterable[Sample]) -> tuple[ProcessTimes, ...]:
    """The times of each process that has samples of all three arms."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in samples:
        found[row.process][row.arm].append(row.elapsed_us / row.launches)
    return tuple(_of_process(process, arms) for process, arms in sorted(found.items()) if set(arms) >= _ARMS)


def _of_process(process: int, arms: dict[str, list[float]]) -> ProcessTimes:
    (base, base_mean), (control, control_mean), (head, head_mean) = (
        _locations(arms[name]) for name in ("base", "control", "head")
    )
    return ProcessTimes(
        process=process,
        base_us=base,
        control_us=control,
        head_us=head,
        base_mean_us=base_mean,
        control_mean_us=control_mean,
        head_mean_us=head_mean,
    )


def _locations(times: Sequence[float]) -> tuple[float, float]:
    """The median and the trimmed mean of the values."""
    ordered = sorted(times)
    cut = int(_TRIMMED * len(ordered))
    return median(ordered), fmean(ordered[cut : len(ordered) - cut])


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
    center, error = float(logs.mean()), _standard_error(logs)
    reach = _LEAST_SPREAD + error * float(stats.t.ppf((1 + confidence) / 2, len(logs) - 1))
    return Ratio(
        value=math.exp(center),
        low=math.exp(center - reach),
        high=math.exp(center + reach),
        logs=tuple(map(float, logs)),
    )


def _standard_error(logs: np.ndarray) -> float:
    return float(logs.std(ddof=1)) / math.sqrt(len(logs))


def _p_greater(logs: np.ndarray, margin: float) -> float:
    """The p-value of a one-sided t test."""
    distance, error = float(logs.mean()) - margin, _standard_error(logs)
    if error < _LEAST_SPREAD:
        return 0.0 if distance > _LEAST_SPREAD else 1.0
    return float(stats.t.sf(distance / error, len(logs) - 1))
