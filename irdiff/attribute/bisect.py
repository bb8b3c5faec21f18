"""The first commit between two revisions, or of a list of sides, that changes what one case compiles to.

Git says which commit to try next (`rev-list --bisect-all`), so merges are right; the comparison of each
commit with GOOD is that of `irdiff compare`. Commits with the same native digest share a native build, and
one that cannot be built is skipped, as git does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol

from irdiff.capture import catalogs, pairing
from irdiff.capture.catalogs import Wanted
from irdiff.codegen.tool_compiler import Compiler, ToolCompiler
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.comparer import CaseComparer
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import (
    DEFAULT_OPTIONS,
    Case,
    Options,
    Pair,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from irdiff.normalize import llvm_process
from irdiff.resolve.sides import Resolver, Side
from irdiff.resolve.toolchains import repository
from irdiff.resolve.tools.substitute import Substitute
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.words import counted
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

_ONE_SIDED = frozenset({Verdict.BROKEN, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED})
_BINARY_TEXT: Mapping[str, str] = {Stage.SASS: Stage.PTX}
"""What is shown for a stage that has no text."""


@dataclass(frozen=True, kw_only=True)
class BisectQuestion:
    """What is looked for."""

    good: str
    bad: str
    case_id: str
    """`family/workload:label@target`"""
    stage: str | None
    """The stage whose canonical text counts; None for the machine code."""


@dataclass(frozen=True, kw_only=True)
class FirstBadCommits:
    """The first commit that is bad, or those of which one is."""

    commits: tuple[str, ...]
    """One, or several where skipped commits lie between the last good and the first bad one."""
    case: Case
    """The case between the commit and its parent, or the last commit known to be good."""
    stage: str
    """Whose texts show the change: the case's first changed stage, or PTX in the place of a binary."""
    texts: Sides[str] | None
    """Of that stage; None where a side has none."""
    failure: tuple[str, ...]
    """The last lines of a compiler that failed."""
    tried: tuple[str, ...]
    skipped: tuple[str, ...]


class History(Protocol):
    """What git knows of commits."""

    def commit_of(self, revision: str) -> str: ...

    def merge_base(self, one: str, other: str) -> str: ...

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        """The commits of BAD that are in no good one, those that halve them best first."""
        ...

    def parents_of(self, commit: str) -> list[str]: ...


class GitHistory:
    """Of one repository."""

    def __init__(self, store: repository.GitStore) -> None:
        self._store = store

    def commit_of(self, revision: str) -> str:
        return repository.commit_of(self._store, revision)

    def merge_base(self, one: str, other: str) -> str:
        return repository.merge_base(self._store, one, other)

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        out = self._store.git("rev-list", "--bisect-all", bad, "--not", *goods).decode()
        return [line.split()[0] for line in out.splitlines() if line]

    def parents_of(self, commit: str) -> list[str]:
        return self._store.git("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]


class SideList:
    """Releases, LLVMs or assemblers in the order that a user gave, as a line of commits."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def commit_of(self, revision: str) -> str:
        return revision

    def merge_base(self, one: str, other: str) -> str:
        return min(one, other, key=self._names.index)

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        first = max(map(self._names.index, goods)) + 1
        left = self._names[first : self._names.index(bad) + 1]
        return sorted(left, key=lambda name: abs(2 * left.index(name) - len(left) + 2))

    def parents_of(self, commit: str) -> list[str]:
        place = self._names.index(commit)
        return self._names[max(0, place - 1) : place]


@dataclass(frozen=True, kw_only=True)
class Among:
    """What is searched."""

    history: History
    side_of: Callable[[str], Side]
    """Raises ToolchainError for a commit that cannot be built."""
    tools: Sequence[Substitute]
    """Those among the sides."""
    tell: Callable[[str], None]


def commits_of(resolver: Resolver) -> Among:
    """The commits of one repository."""
    history = GitHistory(resolver.store)
    return Among(history=history, side_of=resolver.side, tools=(), tell=resolver.options.progress)


def bisect(question: BisectQuestion, target: Target, among: Among, config: Config) -> FirstBadCommits:
    """Raises UsageError where GOOD and BAD do not differ or are no line of commits."""
    store = Store(config.store)
    wanted = Wanted(cases=(question.case_id,))
    with closing(Workers(config)) as workers, llvm_process.opened(config) as llvm:
        inner = WorkerCompiler(Requests(config, workers), store, wanted, reuse=True)
        return Bisection(
            question=question,
            target=target,
            history=among.history,
            side_of=among.side_of,
            compiler=ToolCompiler(inner, among.tools, store, config, reuse=True) if among.tools else inner,
            comparator=ArtifactComparator(store, llvm.reprint),
            tell=among.tell,
        ).run()


@dataclass(kw_only=True)
class Bisection:
    """One search. Compares many commits with GOOD and keeps what it learned."""

    question: BisectQuestion
    target: Target
    history: History
    side_of: Callable[[str], Side]
    """Raises ToolchainError for a commit that cannot be built."""
    compiler: Compiler
    comparator: ArtifactComparator
    tell: Callable[[str], None]
    tried: list[str] = field(default_factory=list, init=False)
    skipped: list[str] = field(default_factory=list, init=False)
    _sides: dict[str, Side] = field(default_factory=dict, init=False)

    def run(self) -> FirstBadCommits:
        """Raises UsageError where GOOD and BAD do not differ or are no line of commits."""
        good = self.history.commit_of(self.question.good)
        bad = self.history.commit_of(self.question.bad)
        if self.history.merge_base(good, bad) != good:
            raise UsageError(
                f"{self.question.good} is no ancestor of {self.question.bad}",
                hint=f"as GOOD, take `git merge-base {self.question.good} {self.question.bad}`",
            )
        whole = self._compare(good, bad)
        if whole is None:
            raise self._no_case(good, bad)
        if not self._is_bad(whole, whole):
            stage = self.question.stage or "machine code"
            raise UsageError(
                f"{self.question.case_id}: the {stage} is the same at {self.question.good} and "
                f"{self.question.bad} ({whole.verdict})",
                hint="stages that differ, for --stage: " + ", ".join(_differing(whole) or ["none"]),
            )
        return self._search(good, bad, whole)

    def _search(self, good: str, bad: str, whole: Case) -> FirstBadCommits:
        goods = [good]
        while True:
            candidates = self.history.order(bad, goods)
            open_ones = [commit for commit in candidates if commit not in (bad, *self.skipped)]
            if not open_ones:
                break
            commit = open_ones[0]
            left = math.ceil(math.log2(len(open_ones) + 1))
            self.tell(
                f"bisect: {counted(len(open_ones), 'commit')} left (about {counted(left, 'step')}), "
                f"trying {_short(commit)}"
            )
            judged = self._judge(good, commit, whole)
            if judged is None:
                self.skipped.append(commit)
            elif judged:
                bad = commit
            else:
                goods.append(commit)
        suspects = tuple(self.history.order(bad, goods))
        case = self._shown(bad, goods)
        stage = (case.origin.stage if case.origin else self.question.stage) or ""
        stage = _BINARY_TEXT.get(stage, stage)
        texts = self._texts(case, stage)
        failure = case.failures.head or case.failures.base
        return FirstBadCommits(
            commits=suspects,
            case=case,
            stage=stage,
            texts=texts,
            failure=tuple(failure.stderr.splitlines()[-30:]) if failure and not texts else (),
            tried=tuple(self.tried),
            skipped=tuple(self.skipped),
        )

    def _judge(self, good: str, commit: str, whole: Case) -> bool | None:
        """Whether a commit is bad; None where it cannot be told."""
        self.tried.append(commit)
        try:
            case = self._compare(good, commit)
        except ToolchainError as error:
            self.tell(f"bisect: {_short(commit)} is skipped: {error.what.splitlines()[0]}")
            return None
        if case is None:  # the case came later: without it a commit is as GOOD is
            return False
        if case.verdict is Verdict.BROKEN and whole.verdict is not Verdict.BROKEN:
            return None
        return self._is_bad(case, whole)

    def _is_bad(self, case: Case, whole: Case) -> bool:
        if case.verdict in _ONE_SIDED:
            return True
        if self.question.stage:
            return case.stages.get(self.question.stage) is StageStatus.CHANGED
        if whole.verdict is Verdict.FAILING:
            return _fails_otherwise(case)
        return case.verdict is Verdict.CHANGED

    def _shown(self, bad: str, goods: Sequence[str]) -> Case:
        """The case between the commit and the nearest one before it that can be compared.

        That is a parent that is known to be good, one that git knows to be, or the last good one that was
        tried.
        """
        parents = self.history.parents_of(bad)
        known = [parent for parent in parents if parent in goods]
        implied = [parent for parent in parents if parent not in (*goods, *self.skipped)]
        for before in (*known, *implied, goods[-1]):
            try:
                case = self._compare(before, bad)
            except ToolchainError:  # one that was never tried, since git knew it to be good
                continue
            if case is not None:
                return case
        case = self._compare(goods[0], bad)
        assert case is not None, "a bad commit differs from GOOD in this case"
        return case

    # one comparison

    def _side(self, commit: str) -> Side:
        if commit not in self._sides:
            self._sides[commit] = self.side_of(commit)
        return self._sides[commit]

    def _compare(self, base: str, head: str) -> Case | None:
        """None where neither commit has the case."""
        pair = next((pair for pair in self._pairs(base, head) if pair.id == self.question.case_id), None)
        if pair is None:
            return None
        sides = Sides(base=self._side(base), head=self._side(head))
        comparer = CaseComparer(self.compiler, self.comparator, sides, self._options)
        return comparer.uncompiled(pair) or comparer.compare(pair, comparer.compiled(pair))[0]

    @property
    def _options(self) -> Options:
        return replace(DEFAULT_OPTIONS, cases=(self.question.case_id,), recheck=False, attribute=False)

    def _pairs(self, base: str, head: str) -> list[Pair]:
        workload = self.question.case_id.partition(":")[0]
        sides = Sides(base=self._side(base), head=self._side(head))
        found = sides.map(lambda side: catalogs.of_side(self.compiler, side, workload, self.target))
        captured = pairing.CapturedWorkload(workload=workload, target=self.target, catalogs=found)
        return pairing.pairs([captured], self._options)

    def _no_case(self, base: str, head: str) -> UsageError:
        near = ", ".join(pair.id for pair in self._pairs(base, head)[:5])
        return UsageError(
            f"there is no case {self.question.case_id} at {_short(base)} or {_short(head)}",
            hint=f"found: {near}" if near else "list them: irdiff corpus list",
        )

    def _texts(self, case: Case, stage: str) -> Sides[str] | None:
        found = [artifacts.get(stage) for artifacts in case.artifacts]
        try:
            texts = [self.comparator.content(row.digest).decode(errors="replace") for row in found if row]
        except DamagedArtifactError:
            return None
        return Sides(base=texts[0], head=texts[1]) if len(texts) == 2 else None


def _short(name: str) -> str:
    """A commit as git shortens it, anything else as it is."""
    return name[:10] if re.fullmatch(r"[0-9a-f]{40}", name) else name


def _differing(case: Case) -> list[str]:
    return [stage for stage, status in case.stages.items() if status is StageStatus.CHANGED]


def _fails_otherwise(case: Case) -> bool:
    base, head = case.failures.base, case.failures.head
    return base is not None and head is not None and base.message != head.message
