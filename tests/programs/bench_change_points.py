"""How often steps are found that were planted, and steps that were not: `python -m tests.programs.bench_change_points`.

A line is a night a point. Its noise is what an H200 showed between processes (`measured_spreads`): a night is
the mean of so many processes, with the tails of Student's t with four degrees of freedom, and one night in a
hundred is off by 3 to 10 %. Forty lines have one step each, of 2 to 20 %, up or down; as many have none.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irdiff.history.change_points import level_steps
from tests.programs.timing_noise import measured_spreads

NIGHTS = 90
STEPS = 40
SLACK = 1
"""A step that is found so many nights off is found."""
Find = Callable[[Sequence[float]], list[int]]


@dataclass(frozen=True, kw_only=True)
class Line:
    values: tuple[float, ...]
    place: int | None
    share: float


@dataclass(frozen=True, kw_only=True)
class Score:
    found: int
    planted: int
    found_from_3_percent: int
    planted_from_3_percent: int
    false: int
    points: int

    @property
    def recall(self) -> float:
        """Of steps of 3 % and more."""
        return self.found_from_3_percent / self.planted_from_3_percent

    @property
    def false_per_thousand(self) -> float:
        return 1000 * self.false / self.points


def lines(seed: int, processes: int, nights: int = NIGHTS) -> list[Line]:
    rng = np.random.default_rng(seed)
    spreads = measured_spreads()
    made = []
    for number in range(2 * STEPS):
        noise = float(rng.choice(spreads)) / math.sqrt(processes) / math.sqrt(2) * rng.standard_t(4, nights)
        stalls = rng.random(nights) < 0.01
        noise = noise + stalls * rng.uniform(0.03, 0.10, nights)
        place, share = None, 0.0
        if number < STEPS:
            place = int(rng.integers(10, nights - 10))
            share = math.exp(math.log(0.02) + (math.log(0.20) - math.log(0.02)) * number / (STEPS - 1))
            sign = 1 if rng.random() < 0.5 else -1
            noise = noise + np.where(np.arange(nights) >= place, sign * math.log1p(share), 0.0)
        values = 50.0 * np.exp(noise)
        made.append(Line(values=tuple(map(float, values)), place=place, share=share))
    return made


def score(made: Sequence[Line], find: Find) -> Score:
    found = large = false = 0
    for line in made:
        places = find(line.values)
        hits = [p for p in places if line.place is not None and abs(p - line.place) <= SLACK]
        found += bool(hits)
        large += bool(hits) and line.share >= 0.03
        false += len(places) - bool(hits)
    planted = [line for line in made if line.place is not None]
    return Score(
        found=found,
        planted=len(planted),
        found_from_3_percent=large,
        planted_from_3_percent=sum(line.share >= 0.03 for line in planted),
        false=false,
        points=sum(len(line.values) for line in made),
    )


def ours(values: Sequence[float]) -> list[int]:
    return [step.index for step in level_steps(values)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=25)
    chosen = parser.parse_args()
    print(
        "lines of 90 nights; recall of steps from 3 % on, and of the worst draw; all steps; "
        "false steps a thousand points, and of the worst draw"
    )
    for processes in (1, 6, 18):
        rows = [score(lines(seed, processes), ours) for seed in range(chosen.seeds)]
        planted = sum(row.planted_from_3_percent for row in rows)
        recall = sum(row.found_from_3_percent for row in rows) / planted
        false = 1000 * sum(row.false for row in rows) / sum(row.points for row in rows)
        small = sum(row.found for row in rows) / sum(row.planted for row in rows)
        least, most = min(row.recall for row in rows), max(row.false_per_thousand for row in rows)
        print(
            f"{processes:3} processes a night  {100 * recall:6.2f} % ({100 * least:.1f})  all {100 * small:6.2f} %  "
            f"{false:6.3f} ({most:.2f})"
        )


if __name__ == "__main__":
    main()
