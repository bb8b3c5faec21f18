"""irdiff: which kernels does a Triton change touch, why, and how much does it matter.

>>> run = irdiff.compare("triton==3.8.0", "triton==3.9.0", targets=["sm_90"])
>>> run = irdiff.load_run("path/to/run")
>>> [case.id for case in run.cases if case.verdict == "changed"]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irdiff.model import Run

__version__ = "0.1.0"


def compare(
    base: str,
    head: str,
    *,
    targets: Sequence[str] = (),
    cases: Sequence[str] = (),
    corpus: str | Path | None = None,
    out: str | Path | None = None,
) -> Run:
    """Compares two sides and returns the run; see `irdiff compare --help` for what each argument takes.

    `out` is the run folder; by default one in the cache. Raises `irdiff.errors.IrdiffError`.
    """
    from irdiff import api

    return api.compare(base, head, targets=targets, cases=cases, corpus=corpus, out=out)


def load_run(path: str | Path) -> Run:
    """The run of a run folder. Raises `irdiff.errors.RunFolderError`."""
    from irdiff.run import run_folder

    return run_folder.load(Path(path))
