"""The search for a commit, in histories that are made up, with comparisons that know each commit's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.attribute.code_bisect import CodeBisection, FirstBadCommits
from irdiff.attribute.commit_search import GitHistory, SideList
from irdiff.cli.bisect_command import diff_lines
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Case, Failure, FailureKind, Sides, StageStatus, Verdict

CASE = "matmul/tma:fp16@sm_90"
Code = Callable[[str], str | None]
"""What a commit makes of the case: a word, `no …` where it fails with that message, None without the case."""


class FakeHistory:
    """Commits with their parents."""

    def __init__(self, parents: dict[str, tuple[str, ...]]) -> None:
        self.parents = parents

    def commit_of(self, revision: str) -> str:
        return revision.removeprefix("tag-")

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


def line(*commits: str) -> FakeHistory:
    return FakeHistory({commit: tuple(commits[n - 1 : n]) if n else () for n, commit in enumerate(commits)})


@dataclass
class Bench:
    build: Any
    history: FakeHistory | SideList = field(default_factory=lambda: line(*"abcdefgh"))
    unbuildable: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    built: set[str] = field(default_factory=set)
    code: Code = lambda commit: "1"
    ttir: Code = lambda commit: "1"

    def compare(self, base: str, head: str) -> Case | None:
        self.built |= {base, head}
        for commit in (base, head):
            if commit in self.unbuildable:
                raise ToolchainError(f"{commit} does not build\nmore")
        ours, theirs = self.code(base), self.code(head)
        if ours is None and theirs is None:
            return None
        fails = [code is not None and code.startswith("no ") for code in (ours, theirs)]
        failures = [
            Failure(kind=FailureKind.ERROR, stage="ttgir", message=str(code), signal=None, stderr="")
            if failed
            else None
            for code, failed in zip((ours, theirs), fails, strict=True)
        ]
        verdicts = {
            (True, True): Verdict.FAILING,
            (False, True): Verdict.BROKEN,
            (True, False): Verdict.FIXED,
        }
        same = Verdict.UNCHANGED if ours == theirs else Verdict.CHANGED
        verdict = Verdict.ADDED if ours is None else verdicts.get((fails[0], fails[1]), same)
        differs = self.ttir(base) != self.ttir(head)
        stages = {"ttir": StageStatus.CHANGED if differs else StageStatus.IDENTICAL}
        made: Case = self.build.case(
            CASE, verdict, stages=stages, failures=Sides(base=failures[0], head=failures[1])
        )
        return made

    def find(self, good: str = "a", bad: str = "h", stage: str | None = None) -> FirstBadCommits:
        return CodeBisection(
            good=good, bad=bad, case_id=CASE, stage=stage, history=self.history, compare=self.compare,
            report=self.told.append,
        ).run()  # fmt: skip


@pytest.fixture
def bench(build: Any) -> Bench:
    return Bench(build)


@pytest.mark.parametrize("first_bad", list("bcdefgh"))
@pytest.mark.parametrize("history", [line(*"abcdefgh"), SideList("abcdefgh")], ids=["commits", "a list"])
def test_the_first_commit_whose_code_differs_is_found(bench: Bench, first_bad: str, history: Any) -> None:
    bench.history, bench.code = history, lambda commit: str(commit >= first_bad)
    found = bench.find("a", "h")
    assert (found.commits, found.case.verdict, found.skipped) == ((first_bad,), Verdict.CHANGED, ())
    assert found.after == first_bad
    assert ord(found.before) == ord(first_bad) - 1
    assert len(found.tried) <= 3


def test_what_is_left_is_counted_in_words(bench: Bench) -> None:
    bench.code = lambda commit: str(commit >= "c")
    bench.find("tag-a", "tag-c")
    assert [row for row in bench.told if "left" in row] == ["bisect: 1 commit left (about 1 step), trying b"]


def test_a_merge_is_searched_on_both_of_its_sides(bench: Bench) -> None:
    bench.history = FakeHistory({"a": (), "b": ("a",), "x": ("a",), "y": ("x",), "m": ("b", "y")})
    bench.code = lambda commit: str(commit in "xym")
    assert bench.find("a", "m").commits == ("x",)


def test_a_commit_that_cannot_be_built_is_skipped_and_suspected(bench: Bench) -> None:
    bench.unbuildable, bench.code = {"d", "e"}, lambda commit: str(commit >= "e")
    found = bench.find()
    assert (set(found.commits), set(found.skipped)) == ({"d", "e", "f"}, {"d", "e"})
    assert (found.before, found.case.verdict) == ("c", Verdict.CHANGED), "no parent of it can be built"
    assert any("is skipped: d does not build" in row and "more" not in row for row in bench.told)


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
def test_commits_that_do_more_than_change_the_code(
    bench: Bench, code: Code, commits: tuple[str, ...], skipped: tuple[str, ...], verdict: Verdict
) -> None:
    bench.code = code
    found = bench.find()
    assert (found.commits, found.skipped, found.case.verdict) == (commits, skipped, verdict)


def test_a_stage_may_be_asked_for_instead_of_the_code(bench: Bench) -> None:
    bench.code, bench.ttir = lambda commit: str(commit >= "g"), lambda commit: str(commit >= "c")
    assert bench.find().commits == ("g",)
    assert bench.find(stage="ttir").commits == ("c",)


def test_a_parent_that_git_knows_to_be_good_need_not_be_built(bench: Bench) -> None:
    """Nobody tried it: a commit after it is good, so that it was never in question."""
    bench.history = FakeHistory(
        {"a": (), "p": ("a",), "g": ("p",), "i": ("g",), "z": ("p",), "m": ("i", "z")}
    )
    bench.unbuildable, bench.code = {"p"}, lambda commit: str(commit in "zm")
    found = bench.find("a", "m")
    assert (found.commits, found.case.verdict) == (("z",), Verdict.CHANGED)
    assert "p" in bench.built
    assert "p" not in found.tried


# what cannot be searched


def test_ends_that_are_the_same_are_no_question(bench: Bench) -> None:
    bench.ttir = lambda commit: str(commit >= "c")
    with pytest.raises(UsageError, match="the machine code is the same") as caught:
        bench.find()
    assert caught.value.hint == "stages that differ, for --stage: ttir"
    bench.ttir = lambda commit: "1"
    with pytest.raises(UsageError, match="the ttir is the same at a and h"):
        bench.find(stage="ttir")
    bench.code = lambda commit: "no never"
    with pytest.raises(UsageError, match="is the same"):
        bench.find()


def test_ends_that_are_no_line_of_commits_are_refused(bench: Bench) -> None:
    with pytest.raises(UsageError, match="h is no ancestor of a"):
        bench.find("h", "a")
    assert bench.built == set()


def test_a_case_that_there_is_not_is_refused(bench: Bench) -> None:
    bench.code = lambda commit: None
    with pytest.raises(UsageError, match="there is no case matmul/tma:fp16") as caught:
        bench.find()
    assert caught.value.hint == "list them: irdiff corpus list --case 'matmul/tma'"


# histories, and the diff that is shown


def test_git_says_what_follows_what() -> None:
    answers = {
        "rev-parse": "abc\n",
        "merge-base": "abc\ndef\n",
        "rev-list": "c (dist=2)\nb (dist=1)\n\na (dist=0)\n",
    }
    asked: list[tuple[str, ...]] = []

    class Repository:
        def git(self, *words: str, **_: object) -> bytes:
            asked.append(words)
            return answers[words[0]].encode()

    repository: Any = Repository()
    history = GitHistory(repository)
    assert (history.commit_of("main"), history.merge_base("x", "y")) == ("abc", "abc")
    assert history.order("bad", ["one", "two"]) == ["c", "b", "a"]
    assert asked[-1] == ("rev-list", "--bisect-all", "bad", "--not", "one", "two")
    answers["rev-list"] = "merge first second\n"
    assert history.parents_of("merge") == ["first", "second"]


def test_a_list_of_sides_is_searched_as_a_line() -> None:
    names = ["llvm:/14", "llvm:/19", "llvm:/20", "llvm:/22"]
    found = SideList(names)
    assert found.merge_base(names[0], names[3]) == found.merge_base(names[3], names[0]) == names[0]
    assert set(found.order(names[3], names[:1])) == set(names[1:])
    assert found.order(names[3], names[:1])[0] in names[1:3], "one that halves the rest comes first"
    assert found.order(names[2], names[:2]) == names[2:3]
    assert (found.parents_of(names[1]), found.parents_of(names[0])) == (names[:1], [])


def test_values_with_other_numbers_are_no_lines_of_the_diff() -> None:
    body = "".join(f'    %{n} = "tt.op"(%{n - 1}) {{x = {n} : i32}} : (i32) -> i32\n' for n in range(1, 9))
    old = f"module {{\n  tt.func @k(%0: i32) {{\n{body}    tt.return\n  }}\n}}\n"
    more = body.replace("%", "%1").replace("(%10)", "(%9)")
    new = old.replace(body, f'    %9 = "tt.new"(%0) : (i32) -> i32\n{more}')
    rows = diff_lines("ttir", old, new)
    assert rows[:2] == ["--- base/ttir", "+++ head/ttir"]
    moved = [row for row in rows if row[:2] in ("+ ", "- ")]
    assert len(moved) <= 3
    assert any("tt.new" in row for row in moved)
