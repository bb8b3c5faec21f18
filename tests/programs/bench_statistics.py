"""How often is a verdict of speed right and wrong, when the truth is known?

    python -m tests.programs.bench_statistics [--trials 500] [--critical-trials 4000] [--processes 18] [--jobs 2] [--seed 1]

Every trial simulates all samples of one case (`tests.programs.timing_noise`) and takes them to its verdict by
`irdiff.timing.decision`. *measured* draws the spread between processes from those of an H200; the other two are
the 90th and the 99th percentile of those. `same`, `unclear` and `wrong way` (slower or faster for no change, or
the wrong one of the two) are of a case that is alone, where no correction for many cases helps; `found` is of a
case among 200 that did not change, where the correction is hardest.

Limits: wrong `same` at most 1 % for a change of 1.5 thresholds or more, wrong slower or faster at most 5 %. A
limit counts as broken where the trials say so with 99.9 % confidence. Ends with 1 if one is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from irdiff.timing import decision
from irdiff.timing.results import PROCESSES, Speed, TimingProtocol
from tests.programs import timing_noise
from tests.programs.timing_noise import Noise

THRESHOLD = 0.01
CHANGES = (0.0, 0.015, -0.015, 0.02, 0.05)
CRITICAL = 0.015
MOST_WRONG_SAME, MOST_WRONG_DIFFERENT = 0.01, 0.05
CROWD = 200


def protocol(processes: int = PROCESSES) -> TimingProtocol:
    return TimingProtocol(
        budget_s=600.0, threshold=THRESHOLD, confidence=0.95, processes=processes, seed=0, verify_only=False
    )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table: what is simulated."""

    noise: Noise
    level: str
    change: float
    trials: int
    processes: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Counts of trials."""

    cell: Cell
    alone: Counter[Speed]
    wrong_way: int
    found: int
    """Right, among many cases."""

    @property
    def wrong_same(self) -> int:
        return self.alone[Speed.SAME] if self.cell.change else 0

    @property
    def broken(self) -> str:
        """The limit that is broken, in words; empty where none is."""
        if _exceeds(self.wrong_same, self.cell.trials, MOST_WRONG_SAME):
            return "wrong same"
        return "wrong way" if _exceeds(self.wrong_way, self.cell.trials, MOST_WRONG_DIFFERENT) else ""


def _exceeds(count: int, trials: int, limit: float) -> bool:
    """Whether so many of the trials would be a surprise (1 in 1000) if the limit held."""
    return count > int(stats.binom.ppf(0.999, trials, limit))


def simulate(cell: Cell) -> Outcome:
    rng = np.random.default_rng(cell.seed)
    spreads = timing_noise.measured_spreads()
    rules = protocol(cell.processes)
    alone: Counter[Speed] = Counter()
    wrong_way = found = 0
    right = Speed.SLOWER if cell.change > 0 else Speed.FASTER if cell.change < 0 else Speed.SAME
    for _ in range(cell.trials):
        spread = _spread(cell.level, spreads, rng)
        rows = timing_noise.samples(cell.noise, cell.change, spread, rng, processes=cell.processes)
        estimate = decision.estimate(rows, confidence=rules.confidence)
        assert estimate
        p = decision.p_value(estimate, rules)
        only = decision.judge(estimate, p, p, rules)
        crowded = decision.judge(estimate, p, min(1.0, CROWD * p), rules)
        alone[only.speed] += 1
        wrong_way += only.speed in {Speed.SLOWER, Speed.FASTER} - {right}
        found += crowded.speed is right
    return Outcome(cell=cell, alone=alone, wrong_way=wrong_way, found=found)


def _spread(level: str, spreads: np.ndarray, rng: np.random.Generator) -> float:
    if level == "measured":
        return float(rng.choice(spreads))
    return float(np.percentile(spreads, float(level)))


def cells(trials: int, critical_trials: int, processes: int, seed: int) -> Iterator[Cell]:
    number = 0
    for noise in timing_noise.FAMILIES:
        for level in ("measured", "90", "99"):
            for change in CHANGES:
                number += 1
                yield Cell(
                    noise=noise,
                    level=level,
                    change=change,
                    trials=critical_trials if abs(change) == CRITICAL else trials,
                    processes=processes,
                    seed=seed * 100_003 + number,
                )


HEADING = f"{'noise':38}{'level':>9}{'change':>8}{'trials':>8}{'same':>9}{'unclear':>9}{'wrong way':>11}{'found':>9}"


def line(row: Outcome) -> str:
    cell = row.cell
    counts = (row.alone[Speed.SAME], row.alone[Speed.UNCLEAR], row.wrong_way, row.found)
    same, unclear, wrong_way, found = (count / cell.trials for count in counts)
    return (
        f"{cell.noise.name:38}{cell.level:>9}{100 * cell.change:>+6.1f} %{cell.trials:>8}"
        f"{same:>9.2%}{unclear:>9.2%}{wrong_way:>11.2%}{found:>9.2%}"
        + (f"  BROKEN: {row.broken}" if row.broken else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--critical-trials", type=int, default=4000, help="of changes of 1.5 thresholds")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = list(cells(given.trials, given.critical_trials, given.processes, given.seed))
    print(HEADING)
    broken = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in pool.map(simulate, chosen):
            print(line(row), flush=True)
            broken += bool(row.broken)
    print(f"\n{sum(cell.trials for cell in chosen)} trials, {broken} of {len(chosen)} lines break a limit")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
