"""Uses the machines of a Dask cluster. Dask distributes batches, and moves them if a machine dies."""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import Any

from irdiff.cluster.batches import STALLED_S, Batch
from irdiff.errors import UsageError

_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:\d+")
_CONNECT_S = 15
_GROUP_S = 0.25
"""Results gather for so long before they are fetched together."""
_TLS = "set distributed.comm.tls: ca-file, client.cert, client.key; see irdiff/cluster/README.md"


class DaskCluster:
    """Certificates of `tls://` are those of Dask's configuration."""

    own_jobs = None

    def __init__(self, address: str) -> None:
        from distributed import Client, Security

        if not _ADDRESS.fullmatch(address):
            raise UsageError(
                f"{address!r} is not the address of a Dask scheduler",
                hint="write it as --cluster tcp://HOST:8786; `dask scheduler` prints it when it starts",
            )
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
        """Fetches all in one request: one for each would take the scheduler longer than the work."""
        finished = [future for future in ended if future.status == "finished"]
        results: dict[Any, str] = {}
        # the scheduler may be gone, and with it what it knew
        with contextlib.suppress(OSError, TimeoutError, CancelledError):
            results = dict(zip(finished, self._client.gather(finished), strict=True))
        return [results[future] if future in results else _lost(future) for future in ended]

    def workers(self) -> int:
        try:
            return len(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError, ValueError, TimeoutError):  # it is gone, as batches will be
            return 0

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=5)


def _lost(future: Any) -> str:
    """Explains that the worker died too often, or the scheduler lost the batch."""
    error = future.exception(timeout=_CONNECT_S) if future.status == "error" else None
    return f"{type(error).__name__}: {error}" if error else f"the scheduler lost it ({future.status})"


def _check_certificate(address: str, security: Callable[[], Any]) -> None:
    """Checks before Dask does, which takes half a minute to fail."""
    if not address.startswith("tls://"):
        return
    try:
        context = security().get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise UsageError(
            f"{address} needs a certificate, and Dask's cannot be read: {error}", hint=_TLS
        ) from error
    if context is None:
        raise UsageError(f"{address} needs a certificate, and Dask's configuration names none", hint=_TLS)
