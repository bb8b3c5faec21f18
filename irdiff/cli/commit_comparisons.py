"""Compares one case between pairs of commits, each pair once, in a run folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import pipeline
from irdiff.comparison import Comparison
from irdiff.config import Config
from irdiff.errors import NothingComparedError
from irdiff.model import DEFAULT_OPTIONS, Case, Sides, Target
from irdiff.resolve.sides import Side
from irdiff.run import run_folder
from irdiff.store import key_of


@dataclass(frozen=True, kw_only=True)
class CommitComparisons:
    case_id: str
    target: Target
    side_of: Callable[[str], Side]
    """Raises ToolchainError for a commit that cannot be built."""
    config: Config
    report: Callable[[str], None]
    root: Path

    def compare(self, base: str, head: str) -> Case | None:
        """Returns None if neither commit has the case. Raises ToolchainError."""
        folder = self.folder_of(base, head)
        if not folder.exists():
            comparison = Comparison(
                sides=Sides(base=self.side_of(base), head=self.side_of(head)),
                targets=(self.target,),
                options=replace(DEFAULT_OPTIONS, cases=(self.case_id,), recheck=False, attribute=False),
                command=("bisect",),
                expanded_patterns={self.case_id: (self.case_id,)},
            )
            try:
                pipeline.compare(comparison, self.config, folder, lambda _step: None)
            except NothingComparedError:
                return None
        return next((case for case in run_folder.load(folder).cases if case.id == self.case_id), None)

    def folder_of(self, base: str, head: str) -> Path:
        return self.root / key_of(base, head)[:16]  # a side may be a path
