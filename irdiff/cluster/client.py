"""The work of a comparison given to the machines of a Dask cluster, before the comparison itself.

Dask brings batches to machines, and to another one where a machine dies. Whatever is not made there, because
machines refuse, hang or go away, or the scheduler does, is made here by the comparison that follows, and the
run says so. Through the scheduler go only the batches' names and counts.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from irdiff.cluster import on_worker
from irdiff.cluster.batches import Batch, Worked, parts
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.parallel import Progress, Report
from irdiff.pipeline import Comparison

_CONNECT_S = 15
_GROUP_S = 0.25
"""So long results gather before they are fetched together."""
_TLS = "set distributed.comm.tls: ca-file, client.cert, client.key; see irdiff/cluster/README.md"
STALLED_S = 900.0
"""So long without any batch coming back, and the cluster is given up: a batch takes minutes at most."""


class Cluster(Protocol):
    """What is needed of a cluster."""

    def work(self, work: Callable[[Batch], Worked], batches: Sequence[Batch]) -> Iterator[Sequence[Worked]]:
        """What came back since the last time; ends early where nothing more comes for `STALLED_S`."""
        ...

    def workers(self) -> int:
        """How many there are now."""
        ...


def fill(asked: Comparison, config: Config, cluster: Cluster, report: Report) -> tuple[str, ...]:
    """Has the cluster make what a comparison needs; returns notes of what it did not make."""
    if asked.options.shard != (1, 1):
        raise UsageError("--cluster and --shard exclude each other", hint="leave --shard out")
    comparison = uuid.uuid4().hex
    with _token(config) as token:
        batches = [
            Batch(
                name=name,
                comparison=comparison,
                asked=part,
                cache=config.cache,
                token=token,
                store_url=config.shared_store.url if config.shared_store else None,
                limits=config.limits,
            )
            for name, part in parts(asked)
        ]
        return tuple(_worked(batches, cluster, report))


def _worked(batches: Sequence[Batch], cluster: Cluster, report: Report) -> Iterator[str]:
    """Notes, once all batches are back or no more of them are coming."""
    came = 0
    refused: list[str] = []
    for group in cluster.work(on_worker.work, batches):
        came += len(group)
        refused += [worked.refused for worked in group if worked.refused]
        detail = f"{cluster.workers()} workers"
        report(Progress(phase="cluster", done=came, total=len(batches), detail=detail))
    refused += [f"nothing came back for {STALLED_S:g} s"] * (len(batches) - came)
    if refused:
        yield f"cluster: {len(refused)} of {len(batches)} batches were made here instead: {refused[0][:200]}"


@contextlib.contextmanager
def _token(config: Config) -> Iterator[str | None]:
    """A file by which machines see that they have the same cache; None with a shared store between them."""
    if config.shared_store is not None:
        yield None
        return
    path = config.cache / f"cluster-{uuid.uuid4().hex}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


# Dask


class DaskCluster:
    """By the address of its scheduler. Certificates of `tls://` are those of Dask's configuration."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client, Security
        except ImportError as error:
            raise UsageError(
                "--cluster needs the extra `cluster`", hint="pip install 'irdiff[cluster]'"
            ) from error
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

    def work(self, work: Callable[[Batch], Worked], batches: Sequence[Batch]) -> Iterator[Sequence[Worked]]:
        keys = [f"irdiff-{batch.name}-{uuid.uuid4().hex}" for batch in batches]
        running = self._client.map(work, batches, key=keys, pure=False, retries=2)
        names = {future.key: batch.name for future, batch in zip(running, batches, strict=True)}
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
            yield self._results(group, names)

    def _results(self, ended: Sequence[Any], names: Mapping[str, str]) -> list[Worked]:
        """Of all in one request: one for each would take the scheduler longer than the work."""
        finished = [future for future in ended if future.status == "finished"]
        try:
            found = dict(zip(finished, self._client.gather(finished), strict=True))
        except (OSError, TimeoutError, CancelledError):  # the scheduler is gone, and with it what it knew
            found = {}
        return [found.get(future) or _lost(names[future.key], future) for future in ended]

    def workers(self) -> int:
        try:
            return len(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError, ValueError, TimeoutError):  # it is gone: batches tell
            return 0

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=5)


def _lost(name: str, future: Any) -> Worked:
    """Its worker died too often, or the scheduler lost it."""
    error = future.exception(timeout=_CONNECT_S) if future.status == "error" else None
    reason = f"{type(error).__name__}: {error}" if error else f"the scheduler lost it ({future.status})"
    return Worked(name=name, cases=0, refused=reason, wall_s=0.0)


def _check_certificate(address: str, security: Callable[[], Any]) -> None:
    """Before Dask looks for one: it would take half a minute to say so."""
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
