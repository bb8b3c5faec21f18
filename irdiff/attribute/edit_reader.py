"""Edits between two texts of the store: for attribution, and for what groups and titles say of a case."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from irdiff.attribute.state_comparer import canonical
from irdiff.compare import edits
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.edits import Edit, EditSource
from irdiff.errors import NormalizeError
from irdiff.ir.compressed_text import PackedLines
from irdiff.ir.mlir import spellings
from irdiff.parallel import LARGE_TEXT
from irdiff.stages import MLIR

_KEPT = 8
"""The steps of one case ask for its edit one after another, while a few threads have a case each."""


class EditReader:
    """Thread-safe."""

    def __init__(self, comparator: ArtifactComparator) -> None:
        self.comparator = comparator
        self._kept = functools.lru_cache(_KEPT)(self._made)

    def edit(self, source: EditSource) -> Edit | None:
        """None where there are no two texts to compare (a failed side, machine code, launch arguments)."""
        return self._kept(source)

    def _made(self, source: EditSource) -> Edit | None:
        try:
            with LARGE_TEXT:
                base, head = (
                    PackedLines(self._lines(source.ir, digest)) for digest in (source.base, source.head)
                )
                return edits.between(source.ir, base, head)
        except (NormalizeError, DamagedArtifactError, UnicodeDecodeError):
            return None

    def _lines(self, ir: str, digest: str) -> Iterable[str]:
        """The canonical lines, one after another where they may be many."""
        if ir == "mlir":
            return canonical(ir, self.comparator.content(digest).decode())
        lines = self.comparator.text(ir, digest).lines
        return map(spellings.undone, lines) if ir in MLIR else lines
