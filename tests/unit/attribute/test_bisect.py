"""The search for a commit, in histories that are made up, with a compiler that knows each commit's code."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff import normalize
from irdiff.attribute.bisect import Bisection, BisectQuestion, FirstBadCommits, GitHistory, SideList
from irdiff.capture.catalogs import NOTHING, Catalog
from irdiff.cli.bisect import diff_of
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import (
    Artifact,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Outcome,
    Sides,
    Target,
    Toolchain,
    Verdict,
)
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.store import Store, sha256
from tests.unit.no_llvm import no_llvm

CASE = "matmul/tma:fp16@sm_90"
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%%r1, %d;\n\tret;\n}\n"
TTIR = "module {\n  tt.func @k() {\n    tt.op%s\n    tt.return\n  }\n}\n"


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
class FakeCompiler:
    """Makes what it was told to of the only case, by commit."""

    store: Store
    launch: Launch
    makes: Callable[[str], Outcome | None]
    failing: set[str] = field(default_factory=set)

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        made = self.makes(toolchain.spec)
        launch = replace(self.launch, digest=sha256(toolchain.spec.encode()))
        return replace(NOTHING, launches=(launch,) if made else ())

    def compile(self, toolchain: Toolchain, *_: Any, fresh: bool = False) -> Outcome:
        made = self.makes(toolchain.spec)
        assert made is not None
        return made

    def recompile(self, *_: Any, attempt: int, fresh: bool = False) -> Outcome:
        raise AssertionError("a bisection does not ask twice")


def failed(message: str) -> Failed:
    failure = Failure(
        kind=FailureKind.ERROR, stage="ttgir", message=message, signal=None, stderr=f"Traceback\n{message}"
    )
    return Failed(failure=failure, transient=False, artifacts={}, stage_times_s={})


@dataclass
class Bench:
    store: Store
    build: Any
    history: FakeHistory | SideList = field(default_factory=lambda: line(*"abcdefgh"))
    unbuildable: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    makes: Callable[[str], Outcome | None] = lambda commit: None
    workloads: tuple[str, ...] = ("matmul/tma",)
    launch: Launch | None = None

    def code(self, number: int, ttir: str = "1") -> Compiled:
        """What compiles to PTX of this number; nothing assembles it, so that its text is the evidence."""
        texts = {"ttir": TTIR % ttir, "asm": PTX % number}
        return Compiled(
            handed={},
            artifacts={
                stage: Artifact(stage=stage, digest=self.store.put(text.encode()), size_bytes=len(text))
                for stage, text in texts.items()
            },
            metadata={},
            stage_times_s={},
            stage_cpu_s={},
            assembler=None,
            assembler_log="",
            notes=(),
        )

    def side(self, commit: str) -> Side:
        self.built.append(commit)
        if commit in self.unbuildable:
            raise ToolchainError(f"{commit} does not build\nmore")
        made: Side = self.build.side(commit)
        return replace(made, corpus=replace(made.corpus, workloads=self.workloads))

    def find(
        self, good: str = "a", bad: str = "h", stage: str | None = None, case: str = CASE
    ) -> FirstBadCommits:
        return Bisection(
            question=BisectQuestion(good=good, bad=bad, case_id=case, stage=stage),
            target=self.build.target(),
            history=self.history,
            side_of=self.side,
            compiler=FakeCompiler(self.store, self.launch or self.build.launch(CASE), self.makes),
            comparator=ArtifactComparator(self.store, no_llvm),
            tell=self.told.append,
        ).run()


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(Store(tmp_path), build)


@pytest.mark.parametrize("first_bad", list("bcdefgh"))
def test_the_first_commit_whose_code_differs_is_found(bench: Bench, first_bad: str) -> None:
    bench.makes = lambda commit: bench.code(2 if commit >= first_bad else 1)
    found = bench.find("tag-a", "tag-h")
    assert found.commits == (first_bad,)
    assert found.case.verdict is Verdict.CHANGED
    assert found.skipped == ()
    assert len(found.tried) <= 3
    assert [row for row in diff_of(found) if row[:1] in "+-" and "mov" in row] == [
        "-  mov.u32  %r1, 1;",
        "+  mov.u32  %r1, 2;",
    ]


def test_what_is_left_is_counted_in_words(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(2 if commit >= "c" else 1)
    bench.find("a", "c")
    assert [row for row in bench.told if "left" in row] == ["bisect: 1 commit left (about 1 step), trying b"]


def test_a_commit_is_resolved_once(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(2 if commit >= "e" else 1)
    bench.find()
    assert len(bench.built) == len(set(bench.built))


def test_a_merge_is_searched_on_both_of_its_sides(bench: Bench) -> None:
    bench.history = FakeHistory({"a": (), "b": ("a",), "x": ("a",), "y": ("x",), "m": ("b", "y")})
    bench.makes = lambda commit: bench.code(2 if commit in "xym" else 1)
    found = bench.find("a", "m")
    assert found.commits == ("x",)


def test_a_commit_that_cannot_be_built_is_skipped_and_suspected(bench: Bench) -> None:
    bench.unbuildable = {"d", "e"}
    bench.makes = lambda commit: bench.code(2 if commit >= "e" else 1)
    found = bench.find()
    assert set(found.commits) == {"d", "e", "f"}
    assert set(found.skipped) == {"d", "e"}
    assert found.case.verdict is Verdict.CHANGED, "compared with the last good one: no parent can be built"
    assert any("is skipped: d does not build" in row and "more" not in row for row in bench.told)


def test_a_commit_that_breaks_the_case_is_skipped_where_the_end_is_another_change(bench: Bench) -> None:
    bench.makes = lambda commit: failed("no") if commit == "d" else bench.code(2 if commit >= "f" else 1)
    found = bench.find()
    assert found.commits == ("f",)
    assert found.skipped == ("d",)


def test_the_commit_that_breaks_a_case_is_found_with_what_it_says(bench: Bench) -> None:
    bench.makes = lambda commit: failed("it broke") if commit >= "c" else bench.code(1)
    found = bench.find()
    assert (found.commits, found.case.verdict) == (("c",), Verdict.BROKEN)
    assert diff_of(found) == ["Traceback", "it broke"]


def test_the_commit_that_adds_a_case_is_found(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(1) if commit >= "g" else None
    found = bench.find()
    assert (found.commits, found.case.verdict, diff_of(found)) == (("g",), Verdict.ADDED, [])


def test_the_commit_after_which_a_case_fails_otherwise_is_found(bench: Bench) -> None:
    bench.makes = lambda commit: failed("new reason" if commit >= "f" else "old reason")
    found = bench.find()
    assert (found.commits, found.case.verdict) == (("f",), Verdict.FAILING)


def test_a_stage_may_be_asked_for_instead_of_the_code(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(2 if commit >= "g" else 1, ttir="new" if commit >= "c" else "old")
    assert bench.find().commits == ("g",)
    found = bench.find(stage="ttir")
    assert found.commits == ("c",)
    assert diff_of(found)[:2] == ["--- base/ttir", "+++ head/ttir"]
    assert [row[0] for row in diff_of(found) if "tt.op" in row] == ["-", "+"]


def test_a_parent_that_git_knows_to_be_good_need_not_be_built(bench: Bench) -> None:
    """Nobody tried it: a commit after it is good, so that it was never in question."""
    bench.history = FakeHistory(
        {"a": (), "p": ("a",), "g": ("p",), "i": ("g",), "z": ("p",), "m": ("i", "z")}
    )
    bench.unbuildable = {"p"}
    bench.makes = lambda commit: bench.code(2 if commit in "zm" else 1)
    found = bench.find("a", "m")
    assert (found.commits, found.case.verdict) == (("z",), Verdict.CHANGED)
    assert "p" in bench.built
    assert "p" not in found.tried


# what cannot be searched


def test_ends_that_are_the_same_are_no_question(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(1, ttir="new" if commit >= "c" else "old")
    with pytest.raises(UsageError, match="the machine code is the same") as caught:
        bench.find()
    assert caught.value.hint == "stages that differ, for --stage: ttir"
    bench.makes = lambda commit: bench.code(1)
    with pytest.raises(UsageError, match="the ttir is the same at a and h") as caught:
        bench.find(stage="ttir")
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("none")


def test_the_same_failure_at_both_ends_is_no_question(bench: Bench) -> None:
    bench.makes = lambda commit: failed("always")
    with pytest.raises(UsageError, match="is the same"):
        bench.find()


def test_ends_that_are_no_line_of_commits_are_refused(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(1)
    with pytest.raises(UsageError, match="h is no ancestor of a"):
        bench.find("h", "a")
    assert bench.built == []


def test_a_case_that_there_is_not_is_told_with_those_that_there_are(bench: Bench) -> None:
    bench.makes = lambda commit: bench.code(1)
    with pytest.raises(UsageError, match="there is no case matmul/tma:other") as caught:
        bench.find(case="matmul/tma:other@sm_90")
    assert caught.value.hint == "list them: irdiff corpus list"
    kernel = replace(bench.build.launch(CASE), id="matmul/tma:fp16/kernel")
    bench.launch = kernel
    with pytest.raises(UsageError, match="there is no case") as caught:
        bench.find()
    assert caught.value.hint == "found: matmul/tma:fp16/kernel@sm_90"
    bench.workloads = ()
    with pytest.raises(UsageError, match="there is no case") as caught:
        bench.find()
    assert caught.value.hint == "list them: irdiff corpus list"


# git


class FakeRepository:
    """Answers of git, by its first words."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    def git(self, *words: str, **_: object) -> bytes:
        self.asked.append(words)
        return self.answers[words[0].replace("-", "_")].encode()


def test_git_says_what_follows_what() -> None:
    repository: Any = FakeRepository(
        rev_parse="abc\n", merge_base="abc\ndef\n", rev_list="c (dist=2)\nb (dist=1)\n\na (dist=0)\n"
    )
    history = GitHistory(repository)
    assert history.commit_of("main") == "abc"
    assert history.merge_base("x", "y") == "abc"
    assert history.order("bad", ["one", "two"]) == ["c", "b", "a"]
    assert repository.asked[-1] == ("rev-list", "--bisect-all", "bad", "--not", "one", "two")
    repository.answers["rev_list"] = "merge first second\n"
    assert history.parents_of("merge") == ["first", "second"]


def test_a_text_that_is_gone_has_no_lines_to_show(bench: Bench) -> None:
    gone = Artifact(stage="ttgir", digest="0" * 64, size_bytes=1)
    search: Any = SimpleNamespace(comparator=ArtifactComparator(bench.store, no_llvm))
    case = replace(bench.build.case(), artifacts=Sides(base={"ttgir": gone}, head={"ttgir": gone}))
    assert Bisection._texts(search, case, "ttgir") is None


def test_a_list_of_sides_is_searched_as_a_line() -> None:
    names = ["llvm:/14", "llvm:/19", "llvm:/20", "llvm:/22"]
    found = SideList(names)
    assert found.merge_base("llvm:/14", "llvm:/22") == "llvm:/14"
    assert found.merge_base("llvm:/22", "llvm:/14") == "llvm:/14"
    assert set(found.order("llvm:/22", ["llvm:/14"])) == set(names[1:])
    assert found.order("llvm:/22", ["llvm:/14"])[0] in names[1:3], "one that halves the rest comes first"
    assert found.order("llvm:/20", ["llvm:/14", "llvm:/19"]) == ["llvm:/20"]
    assert found.parents_of("llvm:/19") == ["llvm:/14"]
    assert found.parents_of("llvm:/14") == []


@pytest.mark.parametrize("first_bad", list("bcdefgh"))
def test_the_first_side_of_a_list_that_changes_the_code_is_found(bench: Bench, first_bad: str) -> None:
    bench.history = SideList("abcdefgh")
    bench.makes = lambda commit: bench.code(2 if commit >= first_bad else 1)
    found = bench.find()
    assert found.commits == (first_bad,)
    assert len(found.tried) <= 3


def test_values_with_other_numbers_are_no_lines_of_the_diff(bench: Bench) -> None:
    body = "".join(f'    %{n} = "tt.op"(%{n - 1}) {{x = {n} : i32}} : (i32) -> i32\n' for n in range(1, 9))
    old = f"module {{\n  tt.func @k(%0: i32) {{\n{body}    tt.return\n  }}\n}}\n"
    more = body.replace("%", "%1").replace("(%10)", "(%9)")
    new = old.replace(body, f'    %9 = "tt.new"(%0) : (i32) -> i32\n{more}')
    finding = FirstBadCommits(
        commits=("c",),
        case=bench.build.case(),
        stage="ttir",
        texts=Sides(base=old, head=new),
        failure=(),
        tried=(),
        skipped=(),
    )
    moved = [row for row in diff_of(finding) if row[:2] in ("+ ", "- ")]
    assert len(moved) <= 3 and any("tt.new" in row for row in moved)
    assert difflib_lines(old, new) > len(moved)


def difflib_lines(old: str, new: str) -> int:
    rows = difflib.ndiff(*(normalize.canonicalize("ttir", text).lines for text in (old, new)))
    return sum(row[:2] in ("+ ", "- ") for row in rows)
