"""The search for a commit in histories that are made up, by code and by time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from irdiff.attribute.code_bisect import CodeBisection
from irdiff.attribute.commit_search import SideList
from irdiff.attribute.timed_bisect import TimedAnswer, TimedBisection
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Sides, StageStatus, Verdict
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"
COMMITS = "abcdefgh"
Code = Callable[[str], str | None]
"""What a commit makes of the case: a word, `no …` where it fails with that message, None without the case."""


def failures(code):
    return runs.failed(message=code).failure if code and code.startswith("no ") else None


@dataclass
class Search:
    code: Code = lambda _: "1"
    ttir: Code = lambda _: "1"
    unbuildable: str = ""
    built: set[str] = field(default_factory=set)

    def compare(self, base, head):
        self.built |= {base, head}
        for commit in (base, head):
            if commit in self.unbuildable:
                raise ToolchainError(f"{commit} does not build\nmore")
        ours, theirs = self.code(base), self.code(head)
        if ours is None and theirs is None:
            return None
        failed = Sides(base=failures(ours), head=failures(theirs))
        verdict = {
            (True, True): Verdict.FAILING,
            (False, True): Verdict.BROKEN,
            (True, False): Verdict.FIXED,
            (False, False): Verdict.UNCHANGED if ours == theirs else Verdict.CHANGED,
        }[bool(failed.base), bool(failed.head)]
        status = StageStatus.IDENTICAL if self.ttir(base) == self.ttir(head) else StageStatus.CHANGED
        verdict = Verdict.ADDED if ours is None else verdict
        return runs.case(CASE, verdict, stages={"ttir": status}, failures=failed)

    def find(self, good="a", bad="h", stage=None):
        more = {"history": SideList([*COMMITS]), "compare": self.compare, "report": lambda _: None}
        return CodeBisection(good=good, bad=bad, case_id=CASE, stage=stage, **more).run()


@pytest.mark.parametrize("first_bad", COMMITS[1:])
def test_the_first_commit_whose_code_differs_is_found(first_bad):
    found = Search(lambda commit: str(commit >= first_bad)).find()
    assert (found.commits, found.case.verdict, found.skipped) == ((first_bad,), Verdict.CHANGED, ())
    assert (ord(found.before) + 1, found.after) == (ord(first_bad), first_bad)
    assert len(found.tried) <= 3


def test_a_commit_that_cannot_be_built_is_skipped_and_suspected():
    found = Search(lambda commit: str(commit >= "e"), unbuildable="de").find()
    assert (set(found.commits), set(found.skipped)) == ({*"def"}, {*"de"})
    assert (found.before, found.case.verdict) == ("c", Verdict.CHANGED), "no parent of it can be built"


@pytest.mark.parametrize(
    ("code", "commits", "skipped", "verdict"),
    [
        (lambda c: "no d" if c == "d" else str(c >= "f"), ("f",), ("d",), Verdict.CHANGED),
        (lambda c: "no more" if c >= "c" else "1", ("c",), (), Verdict.BROKEN),
        (lambda c: "1" if c >= "g" else None, ("g",), (), Verdict.ADDED),
        (lambda c: "no new" if c >= "f" else "no old", ("f",), (), Verdict.FAILING),
    ],
    ids=["breaks in between", "breaks", "adds the case", "fails with another reason"],
)
def test_commits_that_do_more_than_change_the_code(code, commits, skipped, verdict):
    found = Search(code).find()
    assert (found.commits, found.skipped, found.case.verdict) == (commits, skipped, verdict)


def test_what_cannot_be_searched():
    for search, words, mistake, hint in (
        (Search(ttir=lambda c: str(c >= "c")), (), "the machine code is the same", "for --stage: ttir"),
        (Search(), ("a", "h", "ttir"), "the ttir is the same at a and h", ""),
        (Search(code=lambda _: "no never"), (), "is the same", ""),
        (Search(code=lambda _: None), (), "there is no case matmul/tma:fp16", "corpus list --case"),
    ):
        with pytest.raises(UsageError, match=mistake) as caught:
            search.find(*words)
        assert hint in (caught.value.hint or "")
        assert len(search.built) <= 2


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
