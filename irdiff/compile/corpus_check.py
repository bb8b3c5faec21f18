"""Does every launch of a corpus compile where its workload says it does?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from irdiff import case_ids
from irdiff.capture.catalogs import Wanted
from irdiff.compile.compiler import Compiler
from irdiff.config import Config
from irdiff.model import CaptureFailure, Compiled, Launch, Target, Toolchain
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.toolchains.interpreter_answers import WORKER
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

VERIFIER = WORKER.parent / "verify.py"
"""Runs on a GPU host, with the host's own torch and triton."""


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


@contextmanager
def _compiler(config: Config, wanted: Wanted) -> Iterator[Compiler]:
    workers = Workers(config)
    try:
        yield Compiler(Requests(config, workers), Store(config.store), wanted, reuse=True)
    finally:
        workers.close()


def captured(
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    cases: Sequence[str],
    config: Config,
    report: Report,
) -> list[Launch]:
    """Every launch that the patterns select, for every target; without its input digest."""
    with _compiler(config, Wanted(cases=tuple(cases), frontend=False)) as compiler:
        found = _captured(compiler, toolchain, corpus, targets, cases, config, report)
        return [launch for _, launch in found if isinstance(launch, Launch)]


def check(
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    cases: Sequence[str],
    config: Config,
    report: Report,
) -> list[Checked]:
    with _compiler(config, Wanted(cases=tuple(cases))) as compiler:
        found = _captured(compiler, toolchain, corpus, targets, cases, config, report)

        def one(row: tuple[Target, Launch | CaptureFailure]) -> Checked:
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
            outcome = compiler.compile(toolchain, corpus, launch, target, assemble=True)
            return Checked(
                id=f"{launch.id}@{target.name}",
                target=target.name,
                expected=launch.expected,
                compiled=isinstance(outcome, Compiled),
                message="" if isinstance(outcome, Compiled) else outcome.failure.message,
                compile_s=sum(outcome.stage_times_s.values()),
            )

        return sorted(in_parallel(one, found, config.jobs + 1, "check", report), key=lambda row: row.id)


def _captured(
    compiler: Compiler,
    toolchain: Toolchain,
    corpus: Corpus,
    targets: Sequence[Target],
    cases: Sequence[str],
    config: Config,
    report: Report,
) -> list[tuple[Target, Launch | CaptureFailure]]:
    jobs = [(name, target) for name in case_ids.workloads(cases, corpus.workloads) for target in targets]

    def one(job: tuple[str, Target]) -> list[tuple[Target, Launch | CaptureFailure]]:
        name, target = job
        catalog = compiler.catalog(toolchain, corpus, name, target)
        rows: list[Launch | CaptureFailure] = [*catalog.launches, *catalog.failures]
        return [(target, row) for row in rows if case_ids.selects(cases, f"{row.id}@{target.name}")]

    found = in_parallel(one, jobs, config.jobs, "capture", report)
    return sorted((row for rows in found for row in rows), key=lambda row: (row[1].id, row[0].name))
