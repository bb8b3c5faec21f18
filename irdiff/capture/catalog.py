"""The catalog of one workload: what it launches for one target on one side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irdiff.capture.selection import WorkloadSelection
from irdiff.model import CaptureFailure, Launch


@dataclass(frozen=True, kw_only=True)
class Catalog:
    launches: tuple[Launch, ...]
    failures: tuple[CaptureFailure, ...]
    supported: bool
    selection: WorkloadSelection
    """As it was captured."""
    read: tuple[str, ...] = ()
    """Files of a repository that capturing opened, relative to its root."""
    missing: tuple[str, ...] = ()
    """Files and, without a suffix, modules of a repository that capturing looked for and that it does not
    have, relative to its root."""
    called: tuple[str, ...] = ()
    """`kernels/rope.py:12`: functions of a repository, by file and first line, that ran while it was captured
    or that the frontend compiled; relative to its root."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By kernel: configs of its autotuner that `WorkloadSelection.configs` left out."""
    caveats: tuple[tuple[str, int, str], ...] = ()
    """What the program was told without a GPU to ask, or did unseen: `("bench/run.py", 12, "asks …")`; of no
    file `("", 0, "workloads recorded …")`."""
    uncompared: tuple[tuple[str, int, str], ...] = ()
    """What the program launches, or does to its launches, where irdiff does not see it: as caveats."""
    undigested: str = ""
    """Why the frontend was not run although it was asked for: no launch has an input digest then."""


NOTHING = Catalog(launches=(), failures=(), supported=True, selection=WorkloadSelection(tiers=(), labels=()))
