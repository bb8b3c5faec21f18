"""Does every launch of a corpus compile where its workload says it does?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass

from irdiff import case_ids
from irdiff.capture.catalogs import Wanted
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.model import CaptureFailure, Compiled, Launch, Target, Toolchain
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One launch on one target: what was declared and what happened."""

    id: str
    target: str
    expected: bool
    compiled: bool
    message: str
    compile_s: float

    @property
    def surprising(self) -> bool:
        return self.expected != self.compiled


@dataclass(frozen=True, kw_only=True)
class CorpusCheck:
    """A corpus under one toolchain, and which of its launches are asked for."""

    compiler: WorkerCompiler
    toolchain: Toolchain
    corpus: Corpus
    targets: Sequence[Target]
    cases: Sequence[str]
    jobs: int
    report: Report

    def captured(self) -> list[tuple[Target, Launch | CaptureFailure]]:
        """Every launch that the patterns select, for every target, and those that the frontend refused."""
        jobs = case_ids.places(self.cases, self.corpus.workloads, self.targets)
        found = in_parallel(self._captured, jobs, self.jobs, "capture", self.report)
        return sorted((row for rows in found for row in rows), key=lambda row: (row[1].id, row[0].name))

    def checked(self) -> list[Checked]:
        """Each of them compiled, in the order of their ids."""
        rows = in_parallel(self._checked, self.captured(), self.jobs + 1, "check", self.report)
        return sorted(rows, key=lambda row: row.id)

    def _captured(self, job: tuple[str, Target]) -> list[tuple[Target, Launch | CaptureFailure]]:
        name, target = job
        catalog = self.compiler.catalog(self.toolchain, self.corpus, name, target)
        rows: list[Launch | CaptureFailure] = [*catalog.launches, *catalog.failures]
        return [(target, row) for row in rows if case_ids.selects(self.cases, f"{row.id}@{target.name}")]

    def _checked(self, row: tuple[Target, Launch | CaptureFailure]) -> Checked:
        target, launch = row
        if isinstance(launch, CaptureFailure):
            return Checked(
                id=f"{launch.id}@{target.name}",
                target=target.name,
                expected=launch.expected,
                compiled=False,
                message=launch.failure.message,
                compile_s=0.0,
            )
        outcome = self.compiler.compile(self.toolchain, self.corpus, launch, target)
        return Checked(
            id=f"{launch.id}@{target.name}",
            target=target.name,
            expected=launch.expected,
            compiled=isinstance(outcome, Compiled),
            message="" if isinstance(outcome, Compiled) else outcome.failure.message,
            compile_s=sum(outcome.stage_times_s.values()),
        )


@contextmanager
def opened(
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    wanted: Wanted,
    config: Config,
    report: Report,
    *,
    warm: Workers | None = None,
) -> Iterator[CorpusCheck]:
    """A check whose workers stop with the block, unless they are given (`warm`)."""
    with nullcontext(warm) if warm else closing(Workers(config)) as workers:
        yield CorpusCheck(
            compiler=WorkerCompiler(Requests(config, workers), Store(config.store), wanted, reuse=True),
            toolchain=toolchain,
            corpus=corpus,
            targets=targets,
            cases=wanted.cases,
            jobs=config.jobs,
            report=report,
        )


def captured(
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    cases: Sequence[str],
    config: Config,
    report: Report,
    *,
    warm: Workers | None = None,
) -> list[Launch]:
    """Every launch that the patterns select, for every target; without its input digest. With processes that
    stay, where they are given.
    """
    wanted = Wanted(cases=tuple(cases), frontend=False)
    with opened(toolchain, corpus, targets, wanted, config, report, warm=warm) as check:
        return [launch for _, launch in check.captured() if isinstance(launch, Launch)]


def check(
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    cases: Sequence[str],
    config: Config,
    report: Report,
) -> list[Checked]:
    with opened(toolchain, corpus, targets, Wanted(cases=tuple(cases)), config, report) as found:
        return found.checked()
