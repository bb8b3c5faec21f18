"""What runs on a machine of a cluster: one batch, with this machine's own toolchains, proved to be the same.

A batch is all cases of one workload for one target: a whole comparison, of both sides, with the options of
the one that it is part of. What it makes is kept under the same keys, so the comparison that follows on the
first machine finds it, and is right whatever of it is missing.

What the batches of a comparison share is opened with the first of them: a machine checks once that toolchains
and corpus are the same. The processes that compile stay warm from comparison to comparison. No run folder is
written: the results lie in the store of a shared folder, or are left in the store that all machines share.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.config import Config, Limits, StoreMode
from irdiff.errors import IrdiffError, NothingComparedError, ToolchainError, UsageError
from irdiff.model import Sides, Toolchain
from irdiff.pipeline import Comparison, ComparisonSteps
from irdiff.resolve import corpus as corpora
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers


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
