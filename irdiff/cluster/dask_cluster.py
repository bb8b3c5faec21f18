"""The work of a comparison given to the machines of a Dask cluster, before the comparison itself.

Dask brings batches to machines, and to another one where a machine dies. The comparison that follows here
makes whatever is missing, because machines refuse, hang or go away, or the scheduler does, and the run notes
it.

What runs on a machine of a cluster: one batch, with this machine's own toolchains, proved to be the same.
A batch is all cases of one workload for one target: a whole comparison, of both sides, with the options of
the one that it is part of. What it makes is kept under the same keys, so the comparison that follows on the
first machine finds it, and is right whatever of it is missing.

What the batches of a comparison share is opened with the first of them: a machine checks once that toolchains
and corpus are the same. The processes that compile stay warm from comparison to comparison. No run folder is
written: the results lie in the store of a shared folder, or are left in the store that all machines share.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from irdiff import case_ids, pipeline
from irdiff import config as configuration
from irdiff.config import Config, Limits, StoreMode
from irdiff.errors import IrdiffError, NothingComparedError, ToolchainError, UsageError
from irdiff.model import Sides, Toolchain
from irdiff.parallel import Progress, Report
from irdiff.pipeline import Comparison, ComparisonSteps
from irdiff.resolve import corpus as corpora
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

_CONNECT_S = 15
_GROUP_S = 0.25
"""So long results gather before they are fetched together."""
_TLS = "set distributed.comm.tls: ca-file, client.cert, client.key; see irdiff/cluster/README.md"
STALLED_S = 900.0
"""So long without any batch coming back, and the cluster is given up: a batch takes minutes at most."""


def fill(asked: Comparison, config: Config, cluster: DaskCluster, report: Report) -> tuple[str, ...]:
    """Has the cluster make what a comparison needs; returns notes of what it did not make."""
    if asked.options.shard != (1, 1):
        raise UsageError("--cluster and --shard exclude each other", hint="leave --shard out")
    comparison = uuid.uuid4().hex
    config.cache.mkdir(parents=True, exist_ok=True)
    # machines that see this file have the same cache
    with tempfile.NamedTemporaryFile(dir=config.cache, prefix="cluster-") as token:
        batches = [
            Batch(
                name=name,
                comparison=comparison,
                asked=part,
                cache=config.cache,
                token=None if config.shared_store else token.name,
                store_url=config.shared_store.url if config.shared_store else None,
                limits=config.limits,
            )
            for name, part in parts(asked)
        ]
        done = 0
        refused: list[str] = []
        for group in cluster.work(work, batches):
            done += len(group)
            refused += filter(None, group)
            detail = f"{cluster.workers()} workers"
            report(Progress(phase="cluster", done=done, total=len(batches), detail=detail))
    refused += [f"nothing came back for {STALLED_S:g} s"] * (len(batches) - done)
    if not refused:
        return ()
    count = f"{len(refused)} of {len(batches)}"
    return (f"cluster: {count} batches were made here instead: {refused[0][:200]}",)


def parts(asked: Comparison) -> list[tuple[str, Comparison]]:
    """Named as `workload@target`; those of long files first.

    A batch that takes long must not begin last, when the other machines have nothing left to do. What it will
    take is not known before its launches are; a long file has more of them, and larger kernels.
    """
    names = {name for side in asked.sides for name in side.corpus.workloads}
    longest_first = sorted(names, key=lambda name: (-_size_bytes(asked, name), name))
    rows = case_ids.places(asked.options.cases, longest_first, asked.targets)
    return [(f"{name}@{target.name}", _part(asked, name, target.name)) for name, target in rows]


def _size_bytes(asked: Comparison, workload: str) -> int:
    """Of the file of a workload, that of the longer side."""
    files = [side.corpus.root / f"{workload}.py" for side in asked.sides]
    return max((file.stat().st_size for file in files if file.is_file()), default=0)


def _part(asked: Comparison, workload: str, target: str) -> Comparison:
    def only(side: Side) -> Side:
        names = tuple(name for name in side.corpus.workloads if name == workload)
        return replace(side, corpus=replace(side.corpus, workloads=names))

    targets = tuple(row for row in asked.targets if row.name == target)
    return replace(asked, sides=asked.sides.map(only), targets=targets)


class DaskCluster:
    """By the address of its scheduler. Certificates of `tls://` are those of Dask's configuration."""

    def __init__(self, address: str) -> None:
        from distributed import Client, Security

        _check_certificate(address, Security)
        try:
            connect: Any = Client
            self._client = connect(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(
                f"no Dask scheduler answers at {address}: {' '.join(str(error).split())[:200]}",
                hint="start one: dask scheduler; see irdiff/cluster/README.md",
            ) from error
        if not self.workers():
            self.close()
            raise UsageError(
                f"the scheduler at {address} has no workers",
                hint=f"start one: dask worker {address} --nthreads 1",
            )

    def work(self, work: Callable[[Batch], str], batches: Sequence[Batch]) -> Iterator[list[str]]:
        """Why batches were not made, or nothing, as they come back. Ends where none comes for `STALLED_S`."""
        keys = [f"irdiff-{batch.name}-{uuid.uuid4().hex}" for batch in batches]
        running = self._client.map(work, batches, key=keys, pure=False, retries=2)
        ended: SimpleQueue[Any] = SimpleQueue()
        for future in running:
            future.add_done_callback(ended.put)
        left = len(running)
        while left:
            try:
                group = [ended.get(timeout=STALLED_S)]
            except Empty:
                return
            time.sleep(_GROUP_S)
            while not ended.empty():
                group.append(ended.get())
            left -= len(group)
            yield self._results(group)

    def _results(self, ended: Sequence[Any]) -> list[str]:
        """Of all in one request: one for each would take the scheduler longer than the work."""
        finished = [future for future in ended if future.status == "finished"]
        found: dict[Any, str] = {}
        # the scheduler may be gone, and with it what it knew
        with contextlib.suppress(OSError, TimeoutError, CancelledError):
            found = dict(zip(finished, self._client.gather(finished), strict=True))
        return [found[future] if future in found else _lost(future) for future in ended]

    def workers(self) -> int:
        try:
            return len(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError, ValueError, TimeoutError):  # it is gone, as batches will be
            return 0

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=5)


def _lost(future: Any) -> str:
    """Its worker died too often, or the scheduler lost it."""
    error = future.exception(timeout=_CONNECT_S) if future.status == "error" else None
    return f"{type(error).__name__}: {error}" if error else f"the scheduler lost it ({future.status})"


def _check_certificate(address: str, security: Callable[[], Any]) -> None:
    """Before Dask looks for one, which takes half a minute to fail."""
    if not address.startswith("tls://"):
        return
    try:
        found = security().get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise UsageError(
            f"{address} needs a certificate, and Dask's cannot be read: {error}", hint=_TLS
        ) from error
    if found is None:
        raise UsageError(f"{address} needs a certificate, and Dask's configuration names none", hint=_TLS)


# what runs on a machine of a cluster: one batch, with this machine's own toolchains, proved to be the same


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a machine gets. It travels pickled, between machines that trust each other."""

    name: str
    comparison: str
    """The unique name of the comparison that it is a part of."""
    asked: Comparison
    cache: Path
    """The folder of the one who asks."""
    token: str | None
    """A file that shows whether a machine sees that folder; None where machines share a store."""
    store_url: str | None
    limits: Limits


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
"""The last comparison, or none."""
_one_at_a_time = threading.Lock()
"""A batch has the cores of its process: a second one would only wait for them."""


def work(batch: Batch) -> str:
    """Why this machine could not work on the batch, which is made elsewhere then; empty where it did."""
    with _one_at_a_time:
        try:
            config = _config(batch)
            here = _comparison(batch, config)
            pipeline.fill(_with(here.toolchains, batch.asked), here.steps)
        except NothingComparedError:
            return ""
        except IrdiffError as error:
            return error.what
    return ""


def _config(batch: Batch) -> Config:
    if batch.token is not None:
        if not Path(batch.token).exists():
            raise UsageError(f"{batch.cache} is not the same folder here, and no shared store is named")
        config = configuration.load(cache=batch.cache)
    else:
        config = configuration.load(store_mode=StoreMode.WRITE)
        if config.shared_store is None or config.shared_store.url != batch.store_url:
            raise UsageError(f"IRDIFF_STORE is not {batch.store_url} here")
    return replace(config, limits=batch.limits)


def _comparison(batch: Batch, config: Config) -> _Opened:
    """What this process holds for all batches of a comparison. Raises IrdiffError where this machine cannot
    work on it, each time it is asked.
    """
    if not _opened or _opened[0].id != batch.comparison:
        while _opened:
            _opened.pop().closing.close()
        found = batch.asked.sides.map(lambda side: _here(side, config))
        if config.cache not in _warm:
            _warm[config.cache] = Workers(config)
        closing = ExitStack()
        asked = _with(found, batch.asked)
        steps = pipeline.opened(asked, config, lambda _: None, warm=_warm[config.cache])
        entered = closing.enter_context(steps)
        _opened.append(_Opened(id=batch.comparison, toolchains=found, steps=entered, closing=closing))
    return _opened[0]


def _with(found: Sides[Toolchain], asked: Comparison) -> Comparison:
    """The comparison with this machine's own toolchains."""
    base, head = asked.sides
    return replace(
        asked,
        sides=Sides(base=replace(base, toolchain=found.base), head=replace(head, toolchain=found.head)),
    )


def _here(side: Side, config: Config) -> Toolchain:
    """The toolchain of a side on this machine. Raises IrdiffError where it or the corpus is not the same."""
    corpus = side.corpus if side.corpus.packages else corpora.load(side.corpus.root)
    if corpus.digest != side.corpus.digest:
        raise UsageError(f"{side.corpus.root} holds another corpus here")
    found = toolchains.resolve(side.toolchain.spec, config)
    if found.digest != side.toolchain.digest:
        raise ToolchainError(f"{side.toolchain.spec} is another toolchain here: {found.digest[:12]}")
    return found
