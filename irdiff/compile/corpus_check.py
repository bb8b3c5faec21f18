"""Checks that every launch of a corpus compiles where its workload says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace

from irdiff import case_ids
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.model import EVERY_LAUNCH, CaptureFailure, Compiled, Launch, Selection, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

CatalogEntry = Launch | CaptureFailure


@dataclass(frozen=True, kw_only=True)
class Checked:
    id: str
    target: str
    digest: str | None
    expected: bool
    compiled: bool
    message: str
    compile_s: float

    @property
    def surprising(self) -> bool:
        return self.expected != self.compiled


@dataclass(frozen=True, kw_only=True)
class OpenCorpus:
    """The kernels of a side, and the workers that capture and compile them."""

    side: Side
    compiler: WorkerCompiler
    captured: Sequence[tuple[Target, CatalogEntry]]
    """Every selected launch, for every target, and those that the frontend refused; by id."""


@contextmanager
def opened(
    side: Side,
    targets: Sequence[Target],
    wanted: Selection,
    config: Config,
    report: Report,
    *,
    frontend: bool = True,
    warm: Workers | None = None,
) -> Iterator[OpenCorpus]:
    """Workers stop with the block, unless the caller provides `warm` ones. Without the frontend launches have
    no input digest.
    """
    with nullcontext(warm) if warm else closing(Workers(config)) as workers:
        compiler = WorkerCompiler(
            Requests(config, workers), Store(config.store), wanted, reuse=True, frontend=frontend
        )

        def captured(job: tuple[str, Target]) -> list[tuple[Target, CatalogEntry]]:
            workload, target = job
            catalog = compiler.catalog(side, workload, target)
            entries: list[CatalogEntry] = [*catalog.launches, *catalog.failures]
            return [
                (target, entry)
                for entry in entries
                if entry.id == case_ids.whole(workload)  # it may have any label
                or case_ids.selects(wanted.cases, f"{entry.id}@{target.name}")
            ]

        jobs = case_ids.places(wanted.cases, side.corpus.workloads, targets)
        catalogs = in_parallel(captured, jobs, config.jobs, "capture", report)
        entries = sorted(
            (entry for catalog in catalogs for entry in catalog),
            key=lambda entry: (entry[1].id, entry[0].name),
        )
        yield OpenCorpus(side=side, compiler=compiler, captured=entries)


def launches(
    side: Side,
    targets: Sequence[Target],
    wanted: Selection,
    config: Config,
    report: Report,
    *,
    warm: Workers | None = None,
) -> list[Launch]:
    """Launches have no input digests."""
    with opened(side, targets, wanted, config, report, frontend=False, warm=warm) as corpus:
        return [launch for _, launch in corpus.captured if isinstance(launch, Launch)]


def check(
    side: Side, targets: Sequence[Target], cases: Sequence[str], config: Config, report: Report
) -> list[Checked]:
    """Compiles launches in the order of their ids."""
    with opened(side, targets, replace(EVERY_LAUNCH, cases=tuple(cases)), config, report) as corpus:

        def checked(entry: tuple[Target, CatalogEntry]) -> Checked:
            target, launch = entry
            failed, compile_s = getattr(launch, "failure", None), 0.0
            if isinstance(launch, Launch):
                outcome = corpus.compiler.compile(side, launch, target)
                failed = None if isinstance(outcome, Compiled) else outcome.failure
                compile_s = sum(outcome.stage_times_s.values())
            return Checked(
                id=f"{launch.id}@{target.name}",
                target=target.name,
                digest=getattr(launch, "digest", None),
                expected=launch.expected,
                compiled=failed is None,
                message=failed.message if failed else "",
                compile_s=compile_s,
            )

        checked_launches = in_parallel(checked, corpus.captured, config.jobs + 1, "check", report)
        return sorted(checked_launches, key=lambda entry: entry.id)
