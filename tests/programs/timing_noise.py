"""Simulated timings whose truth is known: every sample of a case, under noise as GPUs show it and worse.

A sample is `base × change × placement × drift × jitter`, on a log scale:

- *placement* is drawn once a process and arm (where code and buffers lie), so it is what processes differ by;
- a *hump* makes an arm of a process, or single samples, slower by a fixed share with a fixed chance;
- *drift* moves all arms of a process alike (clocks, temperature), or head alone from process to process;
- *jitter* is drawn once a sample.

The change asked for is the true one: what the humps add on average is taken off again, so a case without a
change and with a two-humped head is faster in most processes and much slower in some. How far processes differ
on an H200 is read from the intervals of `reports/samples/timing-3.8.0-3.9.0.json`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from irdiff.timing.results import Sample

ARMS = ("base", "control", "head")
SAMPLE_FILE = Path(__file__).parents[2] / "reports" / "samples" / "timing-3.8.0-3.9.0.json"
BASE_US = 50.0
LAUNCHES = 4
JITTER = 0.004


def measured_spreads() -> np.ndarray:
    """Standard deviation between processes of each case's log ratio, on an H200, sorted."""
    found = []
    for row in json.loads(SAMPLE_FILE.read_text())["cases"]:
        of_case = row["measurement"]
        count = of_case["processes"]
        half_width = (math.log(of_case["ratio_high"]) - math.log(of_case["ratio_low"])) / 2
        found.append(half_width * math.sqrt(count) / float(stats.t.ppf(0.975, count - 1)))
    return np.sort(found)


@dataclass(frozen=True, kw_only=True)
class Hump:
    """Slower by `share` with chance `chance`."""

    share: float
    chance: float
    arms: tuple[str, ...]
    """Which of them have it, each for itself."""

    @property
    def mean(self) -> float:
        """Of the log time."""
        return self.chance * math.log1p(self.share)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """One family. All figures are of log times."""

    name: str
    hump: Hump | None = None
    """Of whole processes."""
    sample_hump: Hump | None = None
    """Of single samples, in every process."""
    placement_freedom: float = math.inf
    """Degrees of freedom of placement: Student's t where finite, so some processes lie far out."""
    stalls: float = 0.0
    """Share of the samples that take up to four times as long."""
    drift: float = 0.0
    """Over the rounds of a process, and of its clock against other processes', of all arms alike."""
    head_drift: float = 0.0
    """Of head alone, from the first process to the last, around the true change."""


HEAD, EVERY = ("head",), ARMS
QUARTER = Hump(share=0.06, chance=0.25, arms=HEAD)
FAMILIES = (
    Noise(name="one-humped"),
    Noise(name="two-humped head, 1/4 by 6 %", hump=QUARTER),
    Noise(name="two-humped head, 1/2 by 3 %", hump=Hump(share=0.03, chance=0.5, arms=HEAD)),
    Noise(name="two-humped base, 1/4 by 6 %", hump=Hump(share=0.06, chance=0.25, arms=("base",))),
    Noise(name="two-humped everywhere, 1/4 by 6 %", hump=Hump(share=0.06, chance=0.25, arms=EVERY)),
    Noise(name="two-humped samples of head", sample_hump=QUARTER),
    Noise(name="drifting", drift=0.03),
    Noise(name="drifting head", drift=0.03, head_drift=0.01),
    Noise(name="heavy-tailed", placement_freedom=2.0, stalls=0.03),
    Noise(name="two-humped and drifting", hump=QUARTER, drift=0.03, head_drift=0.005),
    Noise(name="two-humped and heavy-tailed", hump=QUARTER, placement_freedom=2.0, stalls=0.03),
    Noise(name="all at once", hump=QUARTER, drift=0.03, head_drift=0.005, placement_freedom=2.0, stalls=0.03),
)


def samples(
    noise: Noise, change: float, spread: float, rng: np.random.Generator, *, processes: int, rounds: int = 16
) -> list[Sample]:
    """All samples of one case. `spread` is the standard deviation of a log ratio between processes."""
    logs = _logs(noise, change, spread, rng, processes, rounds)
    times = (np.exp(logs) * BASE_US * LAUNCHES).tolist()
    return [
        Sample(
            gpu="GPU",
            case="case",
            process=process,
            round=number,
            position=position,
            arm=arm,
            launches=LAUNCHES,
            elapsed_us=times[process][position][number],
        )
        for process in range(processes)
        for number in range(rounds)
        for position, arm in enumerate(ARMS)
    ]


def _logs(
    noise: Noise, change: float, spread: float, rng: np.random.Generator, processes: int, rounds: int
) -> np.ndarray:
    """Log times by process, arm and round."""
    shape = (processes, len(ARMS), rounds)
    logs = JITTER * np.abs(rng.standard_normal(shape))
    logs += _placement(noise, spread, rng, processes)[:, :, None]
    logs[:, ARMS.index("head"), :] += math.log1p(change)
    if noise.hump:
        logs += _humps(noise.hump, rng, (*shape[:2], 1))
    if noise.sample_hump:
        logs += _humps(noise.sample_hump, rng, shape)
    logs += np.where(rng.random(shape) < noise.stalls, np.log(rng.uniform(1.0, 4.0, shape)), 0.0)
    within = np.linspace(-0.5, 0.5, rounds)[None, None, :] * rng.normal(0, 1, (processes, 1, 1))
    between = rng.normal(0, 1, (processes, 1, 1)).cumsum(axis=0)
    logs += noise.drift * (within + between)
    logs[:, ARMS.index("head"), :] += noise.head_drift * np.linspace(-1, 1, processes)[:, None]
    return logs


def _placement(noise: Noise, spread: float, rng: np.random.Generator, processes: int) -> np.ndarray:
    size, scale = (processes, len(ARMS)), spread / math.sqrt(2)
    if math.isinf(noise.placement_freedom):
        return scale * rng.standard_normal(size)
    # of the same quartiles as the normal distribution: the tails are what differs
    quartile = float(stats.norm.ppf(0.75) / stats.t.ppf(0.75, noise.placement_freedom))
    return scale * quartile * rng.standard_t(noise.placement_freedom, size)


def _humps(hump: Hump, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Humps of the arms that have them, less their mean on head ÷ base: the true change stays what it is."""
    has = np.array([arm in hump.arms for arm in ARMS])[None, :, None]
    logs = np.where(has & (rng.random(shape) < hump.chance), math.log1p(hump.share), 0.0)
    return logs - np.where(has, hump.mean, 0.0)
