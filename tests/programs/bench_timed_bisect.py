"""How often bisecting by time names the right commit, a wrong one, or none, over simulated histories.

    python -m tests.programs.bench_timed_bisect

A history is 64 commits of which two thirds change the code of a case. One of them makes it 2 to 20 % slower or
faster. Every other change of code moves the time too, by its layout (`LAYOUT`), and each process of a code is
off by what processes on an H200 differ by, with the tails of Student's t and one process in fifty 5 % slow.
Some commits cannot be built. In a further tenth of the histories nothing happens at all.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from irdiff.attribute.commit_search import SideList
from irdiff.attribute.timed_bisect import TimedAnswer, TimedBisection
from tests.programs.timing_noise import measured_spreads

COMMITS = 64
LAYOUT = 0.002
PROCESSES = 12


@dataclass
class Simulated:
    """A line of commits with one culprit, and what a clock shows of it."""

    seed: int
    step: bool = True
    names: list[str] = field(init=False)
    culprit: str = field(init=False)
    share: float = field(init=False)

    def __post_init__(self) -> None:
        rng = self._rng = np.random.default_rng(self.seed)
        self.names = [f"c{number:02d}" for number in range(COMMITS)]
        place = int(rng.integers(1, COMMITS))
        self.culprit = self.names[place]
        self.share = math.exp(rng.uniform(math.log(0.02), math.log(0.20))) * (1 if rng.random() < 0.5 else -1)
        changes = rng.random(COMMITS) < 2 / 3
        changes[place] = True
        self._codes = np.cumsum(changes)
        layout = rng.normal(0, LAYOUT, int(self._codes[-1]) + 1)
        jump = np.where(np.arange(COMMITS) >= place, math.log1p(self.share), 0.0) if self.step else 0.0
        self._levels = layout[self._codes] + jump
        self._levels -= self._levels[0]
        self._spread = float(rng.choice(measured_spreads()))
        self._broken = {name for name in self.names[1:-1] if rng.random() < 0.05}
        self.timed = 0

    def code(self, commit: str) -> str | None:
        return None if commit in self._broken else str(self._codes[self.names.index(commit)])

    def logs(self, commit: str, attempt: int) -> Sequence[float]:
        self.timed += 1
        noise = self._spread / math.sqrt(2) * self._rng.standard_t(4, PROCESSES)
        slow = 0.05 * (self._rng.random(PROCESSES) < 0.02)
        return list(map(float, self._levels[self.names.index(commit)] + noise + slow))

    def is_ready(self, commit: str) -> bool:
        return self.names.index(commit) % 4 == 0

    def bisect(self):
        return TimedBisection(
            good=self.names[0],
            bad=self.names[-1],
            history=SideList(self.names),
            clock=self,
            report=lambda _line: None,
        ).run()


def judged(history: Simulated) -> str:
    found = history.bisect()
    if not history.step:
        return "named in noise" if found.answer is TimedAnswer.FOUND else "rightly none"
    if found.answer is not TimedAnswer.FOUND:
        suspects = "culprit among them" if history.culprit in found.commits else "culprit not among them"
        return f"{found.answer} ({suspects})" if found.commits else str(found.answer)
    return "right" if found.commits == (history.culprit,) else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    sessions = 0
    for seed in range(chosen.histories + chosen.histories // 10):
        history = Simulated(seed=seed, step=seed < chosen.histories)
        counts[judged(history)] += 1
        sessions += history.timed
    named = counts["right"] + counts["wrong"]
    print(f"{chosen.histories} histories with a step, {chosen.histories // 10} without; {sessions} sessions")
    for word, count in counts.most_common():
        print(f"{count:5} {word}")
    print(f"of {named} that were named, right: {100 * counts['right'] / max(1, named):.2f} %")


if __name__ == "__main__":
    main()
