"""The run of two revisions that make the same compiler: nothing was installed, built or compiled for it."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import irdiff
from irdiff import normalize
from irdiff.compare import radius
from irdiff.config import Config
from irdiff.model import SCHEMA, Options, Revision, Run, Target
from irdiff.resolve.look import Look
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.run import run_folder
from irdiff.store import Store


def write(found: Look, targets: tuple[Target, ...], options: Options, config: Config, out: Path) -> Run:
    """Writes the run folder `out`. Raises StoreError, UsageError."""
    assert found.edited.identical
    run = Run(
        schema=SCHEMA,
        irdiff_version=irdiff.__version__,
        normalizer_version=normalize.NORMALIZER_VERSION,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=tuple(sys.argv[1:]),
        options=options,
        base=_revision(found.snapshots.base),
        head=_revision(found.snapshots.head),
        targets=targets,
        environment={},
        summary=radius.summarize((), targets),
        cases=(),
        launches={},
        groups=(),
        reach=None,
        edited=found.edited,
        edited_lines=None,
        cut_from="",
        notes=(),
        duration_s=0.0,
    )
    run_folder.write(out, run, Store(config.store), ())
    return run


def _revision(snap: Snapshot) -> Revision:
    """A side that has no toolchain: it is known by its tree."""
    return Revision(
        spec=snap.label, version="", digest=snap.tree, corpus="", ptxas={}, note=snap.title, revision=""
    )
