"""`irdiff bisect … --measure time`: the clock that the search asks, on a host with a GPU."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from irdiff import binaries, pipeline, timing
from irdiff.attribute.bisect import Among
from irdiff.attribute.timed_bisect import TimedAnswer, TimedBisection, TimedFinding
from irdiff.config import Config
from irdiff.errors import NothingComparedError, ToolchainError, UsageError
from irdiff.model import COMPARED_VERDICTS, DEFAULT_OPTIONS, Case, Sides, Target, Verdict
from irdiff.report import escape
from irdiff.resolve.toolchains import adopt, checkout, native, repository
from irdiff.run import run_folder
from irdiff.stages import MACHINE_STAGES
from irdiff.store import key_of
from irdiff.timing.results import TimingProtocol
from irdiff.timing.schedule import TimingOptions

_PROCESSES = 12
_BUDGET_S = 60.0
_SAME = "as GOOD"


@dataclass(kw_only=True)
class CommitClock:
    """Compares each commit with GOOD once, and times what changed as often as it is asked."""

    good: str
    case_id: str
    among: Among
    target: Target
    config: Config
    folder: Path
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
            case = self._compared(commit)
        except (ToolchainError, NothingComparedError) as error:
            self.among.tell(f"bisect: {commit[:10]} is skipped: {error.what.splitlines()[0]}")
            return None
        if case is None or case.verdict not in COMPARED_VERDICTS:
            return None
        if case.verdict is not Verdict.CHANGED:
            return _SAME
        for stage in MACHINE_STAGES:
            if stage in case.artifacts.head:
                content = run_folder.artifact(self._place(commit), case.artifacts.head[stage].digest)
                return binaries.machine_code(stage, content).digest if content else None
        return None

    def _compared(self, commit: str) -> Case | None:
        options = replace(DEFAULT_OPTIONS, cases=(self.case_id,), recheck=False, attribute=False)
        asked = pipeline.Comparison(
            sides=Sides(base=self.among.side_of(self.good), head=self.among.side_of(commit)),
            targets=(self.target,),
            options=options,
            command=("bisect", "--measure", "time"),
            meant={self.case_id: (self.case_id,)},
        )
        run, _ = pipeline.compare(asked, self.config, self._place(commit), lambda _step: None)
        return next((case for case in run.cases if case.id == self.case_id), None)

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
            environment=self.config.tool_environment,
            say=lambda _line: None,
        )
        found = timing.time_run(self._place(commit), options)
        rows = [row for row in found.cases if row.case == self.case_id]
        return [math.log(times.head_us / times.base_us) for row in rows for times in row.processes]

    def _place(self, commit: str) -> Path:
        return self.folder / key_of(commit)[:16]  # a side may be a path

    def is_ready(self, commit: str) -> bool:
        """Whether a commit's native part is built or adopted; those of a list of sides need no build."""
        if self.store is None:
            return True
        snap = repository.snapshot(self.store, commit, self.config)
        if not checkout.is_triton(snap, self.config):
            return True
        found = checkout.read(snap, self.config)
        adopted = adopt.find(found.native_digest, self.config)
        return adopted is not None or native.find(found, self.config) is not None


def search(
    ends: tuple[str, str],
    case_id: str,
    target: Target,
    among: Among,
    store: repository.GitStore | None,
    config: Config,
) -> TimedFinding:
    """Raises UsageError where GOOD is no ancestor of BAD, NothingTimedError without a GPU of the target."""
    good, bad = map(among.history.commit_of, ends)
    if among.history.merge_base(good, bad) != good:
        raise UsageError(
            f"{ends[0]} is no ancestor of {ends[1]}",
            hint=f"as GOOD, take `git merge-base {ends[0]} {ends[1]}`",
        )
    with tempfile.TemporaryDirectory(prefix="irdiff-bisect-") as folder:
        clock = CommitClock(
            good=good,
            case_id=case_id,
            among=among,
            target=target,
            config=config,
            folder=Path(folder),
            store=store,
        )
        return TimedBisection(good=good, bad=bad, history=among.history, clock=clock, tell=among.tell).run()


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
