"""The search for a commit, in histories that are made up, with comparisons that know each commit's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.attribute.code_bisect import CodeBisection, FirstBadCommits
from irdiff.attribute.commit_search import SideList
from irdiff.cli.bisect_command import diff_lines
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Case, Sides, StageStatus, Verdict
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"
COMMITS = "abcdefgh"
Code = Callable[[str], str | None]
"""What a commit makes of the case: a word, `no …` where it fails with that message, None without the case."""


@dataclass
class FakeHistory:
    """Commits with their parents."""

    parents: dict[str, Sequence[str]]

    def commit_of(self, revision: str) -> str:
        return revision

    def merge_base(self, one: str, other: str) -> str:
        return one if one in self._reached(other) else "elsewhere"

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        """As git has it: those with as many commits below as above them first."""
        left = self._reached(bad).difference(*map(self._reached, goods))
        below = {commit: len(self._reached(commit) & left) for commit in left}
        return sorted(left, key=lambda commit: (-min(below[commit], len(left) - below[commit]), commit))

    def parents_of(self, commit: str) -> list[str]:
        return list(self.parents[commit])

    def _reached(self, commit: str) -> set[str]:
        return {commit}.union(*map(self._reached, self.parents[commit]))


LINE = FakeHistory({commit: COMMITS[max(n - 1, 0) : n] for n, commit in enumerate(COMMITS)})


def failures(code: str | None) -> Any:
    return runs.failed(message=code).failure if code and code.startswith("no ") else None


@dataclass
class Search:
    code: Code = lambda _: "1"
    ttir: Code = lambda _: "1"
    history: Any = None
    unbuildable: str = ""
    built: set[str] = field(default_factory=set)

    def compare(self, base: str, head: str) -> Case | None:
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

    def find(self, good: str = "a", bad: str = "h", stage: str | None = None) -> FirstBadCommits:
        more: Any = {"history": self.history or LINE, "compare": self.compare, "report": lambda _: None}
        return CodeBisection(good=good, bad=bad, case_id=CASE, stage=stage, **more).run()


@pytest.mark.parametrize("first_bad", COMMITS[1:])
@pytest.mark.parametrize("history", [LINE, SideList(list(COMMITS))], ids=["commits", "a list"])
def test_the_first_commit_whose_code_differs_is_found(first_bad: str, history: Any) -> None:
    found = Search(lambda commit: str(commit >= first_bad), history=history).find()
    assert (found.commits, found.case.verdict, found.skipped) == ((first_bad,), Verdict.CHANGED, ())
    assert (ord(found.before) + 1, found.after) == (ord(first_bad), first_bad)
    assert len(found.tried) <= 3


def test_a_commit_that_cannot_be_built_is_skipped_and_suspected() -> None:
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
def test_commits_that_do_more_than_change_the_code(code: Code, commits, skipped, verdict: Verdict) -> None:
    found = Search(code).find()
    assert (found.commits, found.skipped, found.case.verdict) == (commits, skipped, verdict)


def test_a_stage_may_be_asked_for_instead_of_the_code() -> None:
    search = Search(code=lambda commit: str(commit >= "g"), ttir=lambda commit: str(commit >= "c"))
    assert search.find().commits == ("g",)
    assert search.find(stage="ttir").commits == ("c",)


def test_a_parent_that_git_knows_to_be_good_need_not_be_built() -> None:
    """Nobody tried it: a commit after it is good, so that it was never in question."""
    history = FakeHistory({"a": "", "p": "a", "g": "p", "i": "g", "z": "p", "m": "iz"})
    search = Search(lambda commit: str(commit in "zm"), history=history, unbuildable="p")
    found = search.find("a", "m")
    assert (found.commits, found.case.verdict) == (("z",), Verdict.CHANGED)
    assert "p" in search.built and "p" not in found.tried


@pytest.mark.parametrize(
    ("search", "words", "mistake", "hint"),
    [
        (Search(ttir=lambda c: str(c >= "c")), (), "the machine code is the same", "for --stage: ttir"),
        (Search(), ("a", "h", "ttir"), "the ttir is the same at a and h", ""),
        (Search(code=lambda _: "no never"), (), "is the same", ""),
        (Search(), ("h", "a"), "h is no ancestor of a", ""),
        (Search(code=lambda _: None), (), "there is no case matmul/tma:fp16", "corpus list --case"),
    ],
)
def test_what_cannot_be_searched(search: Search, words: Any, mistake: str, hint: str) -> None:
    with pytest.raises(UsageError, match=mistake) as caught:
        search.find(*words)
    assert hint in (caught.value.hint or "")
    assert len(search.built) <= 2


def test_values_with_other_numbers_are_no_lines_of_the_diff() -> None:
    body = "".join(f"    %{n} = tt.op %{n - 1} : i32\n" for n in range(1, 9))
    old = f"module {{\n  tt.func @k(%0: i32) {{\n{body}    tt.return\n  }}\n}}\n"
    more = body.replace("%", "%1").replace("%10", "%9")
    rows = diff_lines("ttir", old, old.replace(body, f"    %9 = tt.new %0 : i32\n{more}"))
    moved = [row for row in rows if row[:2] in ("+ ", "- ")]
    assert len(moved) <= 3 and any("tt.new" in row for row in moved)
