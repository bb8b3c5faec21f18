"""Distributes the work of a comparison to processes of this machine or of many, before the comparison itself.

A batch is all cases of one workload for one target: a whole comparison, of both sides, with the options of
the comparison that it is part of. Its results are kept under the same keys, so the comparison that follows
finds them. That one compiles whatever is missing, because machines refuse, hang or disappear, and the run
notes it. A process works on one batch at a time, with the toolchains of its own machine, whose digests must
match.

The first batch opens what all batches of a comparison share: a machine checks once that toolchains and corpus
are the same. The compiling processes stay warm from comparison to comparison. No run folder is written: the
results go to the store of a shared folder, or to the store that all machines share.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from irdiff import case_ids, pipeline
from irdiff import config as configuration
from irdiff.comparison import Comparison
from irdiff.config import Config, Limits, StoreMode
from irdiff.errors import IrdiffError, NothingComparedError, ToolchainError, UsageError
from irdiff.model import Sides, Toolchain
from irdiff.parallel import Progress, Report
from irdiff.pipeline import ComparisonSteps
from irdiff.resolve import corpus as corpora
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

STALLED_S = 900.0
"""If no batch comes back for so long, the machines are given up: a batch takes minutes at most."""


class Machines(Protocol):
    def work(self, work: Callable[[Batch], str], batches: Sequence[Batch], /) -> Iterator[list[str]]:
        """Yields the reasons of batches that failed, or empty texts, as they come back. Ends if none comes
        for `STALLED_S`.
        """

    def workers(self) -> int: ...

    @property
    def own_jobs(self) -> int | None:
        """As in `Batch`."""


def fill(whole: Comparison, config: Config, machines: Machines, report: Report) -> tuple[str, ...]:
    """Returns notes on what the machines did not compile."""
    if whole.options.shard != (1, 1):
        raise UsageError("--cluster and --shard exclude each other", hint="leave --shard out")
    comparison = uuid.uuid4().hex
    config.cache.mkdir(parents=True, exist_ok=True)
    # machines that see this file have the same cache
    with tempfile.NamedTemporaryFile(dir=config.cache, prefix="cluster-") as token:
        batches = [
            Batch(
                name=name,
                comparison=comparison,
                part=part,
                cache=config.cache,
                token=None if config.shared_store else token.name,
                store_url=config.shared_store.url if config.shared_store else None,
                limits=config.limits,
                own_jobs=machines.own_jobs,
            )
            for name, part in parts(whole)
        ]
        done = 0
        refused: list[str] = []
        for group in machines.work(work, batches):
            done += len(group)
            refused += filter(None, group)
            detail = f"{machines.workers()} workers"
            report(Progress(phase="cluster", done=done, total=len(batches), detail=detail))
    refused += [f"nothing came back for {STALLED_S:g} s"] * (len(batches) - done)
    if not refused:
        return ()
    count = f"{len(refused)} of {len(batches)}"
    return (f"cluster: {count} batches were made here instead: {refused[0][:200]}",)


def parts(comparison: Comparison) -> list[tuple[str, Comparison]]:
    """Names parts `workload@target`, those of long files first. A long batch must not begin last, when the
    other machines are idle; a long file has more launches, and larger kernels.
    """
    names = {name for side in comparison.sides for name in side.corpus.workloads}
    longest_first = sorted(names, key=lambda name: (-_size_bytes(comparison, name), name))
    places = case_ids.places(comparison.options.cases, longest_first, comparison.targets)
    return [(f"{name}@{target.name}", _part(comparison, name, target.name)) for name, target in places]


def _size_bytes(comparison: Comparison, workload: str) -> int:
    """Returns the size of a workload's file on the longer side."""
    files = [side.corpus.root / f"{workload}.py" for side in comparison.sides]
    return max((file.stat().st_size for file in files if file.is_file()), default=0)


def _part(comparison: Comparison, workload: str, target: str) -> Comparison:
    def only(side: Side) -> Side:
        names = tuple(name for name in side.corpus.workloads if name == workload)
        return replace(side, corpus=replace(side.corpus, workloads=names))

    targets = tuple(each for each in comparison.targets if each.name == target)
    return replace(comparison, sides=comparison.sides.map(only), targets=targets)


# what works on a batch


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Travels pickled, between machines that trust each other."""

    name: str
    comparison: str
    """The unique name of the comparison that it is part of."""
    part: Comparison
    cache: Path
    token: str | None
    """A file that shows whether a machine sees that folder; None if machines share a store."""
    store_url: str | None
    limits: Limits
    own_jobs: int | None = None
    """How many compilers a process runs at a time on the distributing machine, which has the same toolchains;
    None for another machine.
    """


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """The comparison whose batches this process works on."""

    id: str
    toolchains: Sides[Toolchain]
    steps: ComparisonSteps
    closing: ExitStack


_warm: dict[Path, Workers] = {}
"""By cache: one process of a cluster serves one at a time."""
_opened: list[_Opened] = []
_one_at_a_time = threading.Lock()
"""A batch uses all cores of its process: a second one would only wait for them."""


def work(batch: Batch) -> str:
    """Returns why this machine could not work on the batch, which is then compiled elsewhere; empty if it
    did.
    """
    with _one_at_a_time:
        try:
            config = _config(batch)
            here = _comparison(batch, config)
            pipeline.fill(_with(here.toolchains, batch.part), here.steps)
        except NothingComparedError:
            return ""
        except IrdiffError as error:
            return error.what
    return ""


def _config(batch: Batch) -> Config:
    if batch.token is not None:
        if not Path(batch.token).exists():
            raise UsageError(
                f"{batch.cache} is not the same folder on this machine, and no shared store is named",
                hint="mount the cache on each machine, or set IRDIFF_STORE=s3://BUCKET/PATH on all of them",
            )
        config = configuration.load(cache=batch.cache, jobs=batch.own_jobs)
    else:
        config = configuration.load(store_mode=StoreMode.WRITE)
        if config.shared_store is None or config.shared_store.url != batch.store_url:
            raise UsageError(
                f"this machine's IRDIFF_STORE is not {batch.store_url}",
                hint=f"start its worker with IRDIFF_STORE={batch.store_url}",
            )
    return replace(config, limits=batch.limits)


def _comparison(batch: Batch, config: Config) -> _Opened:
    """Opens a comparison once for all of its batches. Raises IrdiffError, each time, if this machine cannot
    work on it.
    """
    if not _opened or _opened[0].id != batch.comparison:
        while _opened:
            _opened.pop().closing.close()
        local_toolchains = batch.part.sides.map(
            lambda side: side.toolchain if batch.own_jobs else _here(side, config)
        )
        if config.cache not in _warm:
            _warm[config.cache] = Workers(config)
        closing = ExitStack()
        comparison = _with(local_toolchains, batch.part)
        steps = pipeline.opened(comparison, config, lambda _: None, warm=_warm[config.cache])
        entered = closing.enter_context(steps)
        _opened.append(
            _Opened(id=batch.comparison, toolchains=local_toolchains, steps=entered, closing=closing)
        )
    return _opened[0]


def _with(local_toolchains: Sides[Toolchain], comparison: Comparison) -> Comparison:
    """Replaces the toolchains by this machine's own."""
    base, head = comparison.sides
    return replace(
        comparison,
        sides=Sides(
            base=replace(base, toolchain=local_toolchains.base),
            head=replace(head, toolchain=local_toolchains.head),
        ),
    )


def _here(side: Side, config: Config) -> Toolchain:
    """Raises IrdiffError if this machine's toolchain or corpus differs."""
    corpus = side.corpus if side.corpus.packages else corpora.load(side.corpus.root)
    if corpus.digest != side.corpus.digest:
        raise UsageError(
            f"{side.corpus.root} on this machine holds other workloads",
            hint="copy the corpus to the same path of each machine, and install the same irdiff",
        )
    toolchain = toolchains.resolve(side.toolchain.spec, config)
    if toolchain.digest != side.toolchain.digest:
        raise ToolchainError(
            f"{side.toolchain.spec} is another toolchain on this machine: its digest is "
            f"{toolchain.digest[:12]}, not {side.toolchain.digest[:12]}",
            hint="use the same Python, system libraries and environment variables on each machine",
        )
    return toolchain
