from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from irdiff.attribute.commit_search import SideList
from irdiff.attribute.timed_bisect import TimedAnswer, TimedBisection
from tests.programs import bench_timed_bisect as bench

NAMES = [f"c{number}" for number in range(16)]


@dataclass
class Clock:
    """Commits with the levels given; the others are as the one before."""

    steps: Mapping[int, float]
    noise: float = 0.001
    broken: Sequence[str] = ()
    ready: str = ""
    timed: list[str] = field(default_factory=list)

    @property
    def levels(self):
        return {
            name: next((self.steps[n] for n in range(number, -1, -1) if n in self.steps), 0.0)
            for number, name in enumerate(NAMES)
        }

    def code(self, commit):
        return None if commit in self.broken else f"code {self.levels[commit]}"

    def logs(self, commit, attempt):
        self.timed.append(commit)
        return [self.levels[commit] + self.noise * (-1) ** number for number in range(12)]

    def is_ready(self, commit):
        return commit == self.ready


def bisect(clock):
    return TimedBisection(
        good=NAMES[0], bad=NAMES[-1], history=SideList(NAMES), clock=clock, report=lambda _line: None
    ).run()


@pytest.mark.parametrize(("place", "step"), [(1, 0.05), (7, -0.05), (15, 0.05)])
def test_the_commit_is_found(place, step):
    found = bisect(Clock({place: step}))
    assert (found.answer, found.commits) == (TimedAnswer.FOUND, (f"c{place}",))
    assert found.share == pytest.approx(step, abs=0.003)


def test_nothing_is_found_in_noise():
    assert bisect(Clock({5: 0.004})).answer is TimedAnswer.NOISE
    assert bisect(Clock({5: 0.05}, noise=0.5)).answer is TimedAnswer.NOISE
    assert bisect(Clock({})).answer is TimedAnswer.NOISE


def test_commits_that_cannot_be_built_are_left_with_it():
    found = bisect(Clock({7: 0.05}, broken=["c5", "c6"], ready="c8"))
    assert found.tried[0] == "c8", "one that is built goes first"
    assert found.answer is TimedAnswer.UNCLEAR
    assert set(found.commits) == {"c5", "c6", "c7"}


@pytest.mark.slow
def test_of_simulated_histories_none_is_named_wrongly():
    """As `python -m tests.programs.bench_timed_bisect` counts over 200."""
    told = [bench.judged(bench.Simulated(seed=seed)) for seed in range(25)]
    assert (told.count("wrong"), told.count("right") >= 20) == (0, True)
    noise = [bench.judged(bench.Simulated(seed=seed, step=False)) for seed in range(100, 110)]
    assert noise == ["rightly none"] * 10
