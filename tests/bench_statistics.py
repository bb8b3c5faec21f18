"""How often is a verdict of speed right and wrong, when the truth is known?

    python -m tests.bench_statistics [--trials 1000] [--critical-trials 4000] [--processes 18] [--jobs 2] [--seed 1]

Every trial simulates all samples of one case (`tests.timing_noise`) and takes them to its verdict by
`irdiff.timing.decision`. *measured* draws the spread between processes from those of an H200; the other two are
the 90th and the 99th percentile of those. Changes are slower and faster in turn. `same`, `wrong` (slower or
faster for no change, or the wrong one of the two) are of a case that is alone, where no correction for many
cases helps; `found` is of a case among 200 that did not change, where the correction is hardest.

Limits: wrong `same` at most 1 % for a change of 1.5 thresholds or more, wrong slower or faster at most 5 %. A
limit counts as broken where the trials say so with 99.9 % confidence. Ends with 1 if one is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from irdiff.timing import decision
from irdiff.timing.results import Protocol, Speed
from tests import timing_noise
from tests.timing_noise import Noise

THRESHOLD = 0.01
CHANGES = (0.0, 0.015, 0.02, 0.05)
CRITICAL = 0.015
MOST_WRONG_SAME, MOST_WRONG_DIFFERENT = 0.01, 0.05
CROWD = 200


def protocol(processes: int = decision.PROCESSES) -> Protocol:
    return Protocol(
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
    for trial in range(cell.trials):
        sign = 1 if trial % 2 else -1
        change = (1 + cell.change) ** sign - 1
        rows = timing_noise.samples(
            cell.noise, change, _spread(cell.level, spreads, rng), rng, processes=cell.processes
        )
        (only,) = decision.decide(rows, rules).values()
        crowded = decision.verdict(only.estimate, only.p_value, min(1.0, CROWD * only.p_value), rules)
        alone[only.speed] += 1
        right = {0: Speed.SAME, 1: Speed.SLOWER, -1: Speed.FASTER}[sign if cell.change else 0]
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
                    trials=critical_trials if change == CRITICAL else trials,
                    processes=processes,
                    seed=seed * 100_003 + number,
                )


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield (
        f"{'noise':38}{'level':>9}{'change':>8}{'trials':>8}{'same':>9}{'unclear':>9}"
        f"{'wrong way':>11}{'found':>9}"
    )
    for row in outcomes:
        cell = row.cell
        shares = [count / cell.trials for count in (row.alone[Speed.SAME], row.alone[Speed.UNCLEAR])]
        shares += [count / cell.trials for count in (row.wrong_way, row.found)]
        yield (
            f"{cell.noise.name:38}{cell.level:>9}{100 * cell.change:>6.1f} %{cell.trials:>8}"
            f"{shares[0]:>9.2%}{shares[1]:>9.2%}{shares[2]:>11.2%}{shares[3]:>9.2%}"
            + (f"  BROKEN: {row.broken}" if row.broken else "")
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--critical-trials", type=int, default=4000, help="of changes of 1.5 thresholds")
    parser.add_argument("--processes", type=int, default=decision.PROCESSES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = list(cells(given.trials, given.critical_trials, given.processes, given.seed))
    with ProcessPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(simulate, chosen))
    print("\n".join(table(outcomes)))
    broken = [row for row in outcomes if row.broken]
    print(
        f"\n{sum(row.cell.trials for row in outcomes)} trials, {len(broken)} of {len(outcomes)} limits broken"
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
