"""What runs on a machine of a cluster: one batch, with this machine's own toolchains, proved to be the same.

The processes that compile stay warm from batch to batch. A batch leaves no run folder: what counts lies in
the store of a shared folder, or is left in the store that all machines share.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.cluster.batches import Batch, Worked
from irdiff.config import Config, StoreMode
from irdiff.errors import IrdiffError, NothingComparedError, ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.parallel import Progress
from irdiff.resolve import corpus as corpora
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

_warm: dict[Path, Workers] = {}
"""By cache: one process of a cluster serves one at a time."""
_one_at_a_time = threading.Lock()
"""A batch has the cores of its process: a second one would only wait for them."""


def work(batch: Batch) -> Worked:
    """Never raises what a user can act on: it is told, and the batch is made elsewhere."""
    begin = time.monotonic()
    with _one_at_a_time:
        try:
            cases, refused = _compared(batch), ""
        except IrdiffError as error:
            cases, refused = 0, error.what
    return Worked(name=batch.name, cases=cases, refused=refused, wall_s=time.monotonic() - begin)


def _compared(batch: Batch) -> int:
    config = _config(batch)
    sides = batch.asked.sides.map(lambda side: _here(side, config))
    part = replace(batch.asked, sides=sides)
    with pipeline.opened(part, config, _quiet, warm=_workers(config)) as steps:
        try:
            return pipeline.fill(part, steps)
        except NothingComparedError:
            return 0


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


def _here(side: Side, config: Config) -> Side:
    """The side with this machine's toolchain and corpus. Raises IrdiffError where they are not the same."""
    found = side.corpus if side.corpus.packages else corpora.load(side.corpus.root)
    if found.digest != side.corpus.digest:
        raise UsageError(f"{side.corpus.root} holds another corpus here")
    return replace(side, toolchain=_toolchain(side.toolchain, config))


def _toolchain(wanted: Toolchain, config: Config) -> Toolchain:
    found = toolchains.resolve(wanted.spec, config)
    if found.digest != wanted.digest:
        raise ToolchainError(f"{wanted.spec} is another toolchain here: {found.digest[:12]}")
    return found


def _workers(config: Config) -> Workers:
    if config.cache not in _warm:
        _warm[config.cache] = Workers(config)
    return _warm[config.cache]


def _quiet(_: Progress) -> None:
    """Progress is shown by who asks."""
