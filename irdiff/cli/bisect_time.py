"""`irdiff bisect … --measure time`: the clock that the search asks, on a host with a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from irdiff import pipeline, timing
from irdiff.attribute.commit_search import History, ends, short
from irdiff.attribute.timed_bisect import TimedAnswer, TimedBisection, TimedFinding
from irdiff.backends.machine_code import machine_code
from irdiff.backends.stages import BINARIES
from irdiff.config import Config
from irdiff.errors import NothingComparedError, ToolchainError
from irdiff.model import COMPARED_VERDICTS, DEFAULT_OPTIONS, Case, Sides, Target, Verdict
from irdiff.report import escape
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains import checkout, commits, native, repository
from irdiff.run import run_folder
from irdiff.store import key_of
from irdiff.timing.results import TimingProtocol
from irdiff.timing.schedule import TimingOptions

_PROCESSES = 12
_BUDGET_S = 60.0
_SAME = "as GOOD"


@dataclass(kw_only=True)
class CommitClock:
    """Compares each commit with GOOD once, and times what changed as often as it is asked."""

    comparisons: CommitComparisons
    good: str
    store: repository.GitStore | None
    """None for a list of sides."""
    _codes: dict[str, str | None] = field(default_factory=dict, init=False)

    def code(self, commit: str) -> str | None:
        if commit == self.good:
            return _SAME
        if commit not in self._codes:
            self._codes[commit] = self._code(commit)
        return self._codes[commit]

    def _code(self, commit: str) -> str | None:
        try:
            case = self.comparisons.compare(self.good, commit)
        except ToolchainError as error:
            self.comparisons.report(f"bisect: {short(commit)} is skipped: {error.what.splitlines()[0]}")
            return None
        if case is None or case.verdict not in COMPARED_VERDICTS:
            return None
        if case.verdict is not Verdict.CHANGED:
            return _SAME
        for stage in BINARIES:
            if stage in case.artifacts.head:
                folder = self.comparisons.folder_of(self.good, commit)
                content = run_folder.artifact(folder, case.artifacts.head[stage].digest)
                return machine_code(stage, content).digest if content else None
        return None

    def logs(self, commit: str, attempt: int) -> Sequence[float]:
        protocol = TimingProtocol(
            budget_s=_BUDGET_S,
            threshold=0.01,
            confidence=0.95,
            processes=_PROCESSES,
            seed=attempt,
            verify_only=False,
        )
        options = TimingOptions(
            patterns=(),
            every=False,
            protocol=protocol,
            environment=self.comparisons.config.tool_environment,
            say=lambda _line: None,
        )
        found = timing.time_run(self.comparisons.folder_of(self.good, commit), options)
        rows = [row for row in found.cases if row.case == self.comparisons.case_id]
        return [math.log(times.head_us / times.base_us) for row in rows for times in row.processes]

    def is_ready(self, commit: str) -> bool:
        """Whether a commit's native part is built or adopted; those of a list of sides need no build."""
        if self.store is None:
            return True
        snap = repository.snapshot(self.store, commit, self.comparisons.config)
        if not checkout.is_triton(snap, self.comparisons.config):
            return True
        found = checkout.read(snap, self.comparisons.config)
        adopted = commits.find(found.native_digest, self.comparisons.config)
        return adopted is not None or native.find(found, self.comparisons.config) is not None


def search(
    good: str, bad: str, history: History, comparisons: CommitComparisons, store: repository.GitStore | None
) -> TimedFinding:
    """Raises UsageError where GOOD is no ancestor of BAD, NothingTimedError without a GPU of the target."""
    first, last = ends(history, good, bad)
    clock = CommitClock(comparisons=comparisons, good=first, store=store)
    return TimedBisection(good=first, bad=last, history=history, clock=clock, report=comparisons.report).run()


def show(finding: TimedFinding, case_id: str, titles: Sequence[str]) -> None:
    change = f"{100 * finding.share:+.2f} ± {100 * finding.error:.2f} %"
    match finding.answer:
        case TimedAnswer.FOUND:
            click.echo(f"the commit that moves the time of {case_id} ({change} between GOOD and BAD):")
        case TimedAnswer.NOISE:
            click.echo(f"{finding.answer}: {case_id} ({change})")
        case TimedAnswer.UNCLEAR:
            click.echo(f"{finding.answer} ({change} between GOOD and BAD): one or several of these, or none:")
    for title in titles:
        click.echo("  " + escape.terminal(title))
    if finding.why:
        click.echo(finding.why)
    click.echo(f"{len(finding.tried)} tried, {len(finding.skipped)} skipped")


def row(finding: TimedFinding, case_id: str) -> dict[str, object]:
    return {"case": case_id, **vars(finding)}


# one case compared between commits: each pair once, in a run folder of its own


@dataclass(frozen=True, kw_only=True)
class CommitComparisons:
    case_id: str
    target: Target
    side_of: Callable[[str], Side]
    """Raises ToolchainError for a commit that cannot be built."""
    config: Config
    report: Callable[[str], None]
    root: Path
    """Holds the run folders."""

    def compare(self, base: str, head: str) -> Case | None:
        """None where neither commit has the case. Raises ToolchainError."""
        folder = self.folder_of(base, head)
        if not folder.exists():
            asked = pipeline.Comparison(
                sides=Sides(base=self.side_of(base), head=self.side_of(head)),
                targets=(self.target,),
                options=replace(DEFAULT_OPTIONS, cases=(self.case_id,), recheck=False, attribute=False),
                command=("bisect",),
                meant={self.case_id: (self.case_id,)},
            )
            try:
                pipeline.compare(asked, self.config, folder, lambda _step: None)
            except NothingComparedError:
                return None
        return next((case for case in run_folder.load(folder).cases if case.id == self.case_id), None)

    def folder_of(self, base: str, head: str) -> Path:
        return self.root / key_of(base, head)[:16]  # a side may be a path
