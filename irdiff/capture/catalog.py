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
    read: tuple[str, ...] = ()
    """Files of a repository that the capture opened, relative to its root."""
    missing: tuple[str, ...] = ()
    """Files and, without a suffix, modules of a repository that the capture looked for and that do not exist,
    relative to its root.
    """
    called: tuple[str, ...] = ()
    """`kernels/rope.py:12:rope`: functions of a repository, by file, first line and name, that ran during the
    capture or that the frontend compiled; relative to its root.
    """
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By kernel: configs of its autotuner that `WorkloadSelection.configs` left out."""
    caveats: tuple[tuple[str, int, str], ...] = ()
    """Made-up answers without a GPU, or unseen actions of the program: `("bench/run.py", 12, "asks …")`;
    without a file `("", 0, "workloads recorded …")`.
    """
    uncompared: tuple[tuple[str, int, str], ...] = ()
    """Launches, or effects on launches, that irdiff does not see; like caveats."""
    absent_variables: tuple[tuple[str, int, str], ...] = ()
    """By file and line: variables that a program looked for, and that its side does not have."""
    undigested: str = ""
    """Why the frontend was not run although it was requested: no launch then has an input digest."""


NOTHING = Catalog(launches=(), failures=(), supported=True, selection=WorkloadSelection(tiers=(), labels=()))
