"""The canonical edit of a case, read from the store when it is asked for, so that texts do not pile up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irdiff import normalize
from irdiff.compare import edits, syntax_drift
from irdiff.compare.edits import Edit
from irdiff.errors import NormalizeError
from irdiff.model import Case
from irdiff.store import Store


@dataclass(frozen=True, kw_only=True)
class EditSource:
    """Two texts of the store, of the same IR, that the edit is taken between.

    The IR `mlir` is that of a pass on the way to LLVM IR: what is not translated is no part of the edit.
    """

    ir: str
    base: str
    head: str


class EditReader:
    """`edit_of` for grouping: of the responsible pass's output where it is known, else of the stage."""

    def __init__(self, store: Store, sources: Mapping[str, EditSource]) -> None:
        self._store = store
        self._sources = sources

    def __call__(self, case: Case) -> Edit | None:
        """None where there are no two texts to compare (a failed side, machine code, launch arguments)."""
        source = self._sources.get(case.id) or source_of(case)
        if source is None:
            return None
        base, head = self._lines(source.ir, source.base), self._lines(source.ir, source.head)
        if base is None or head is None:
            return None
        return edits.between(source.ir, base, head)

    def _lines(self, ir: str, digest: str) -> tuple[str, ...] | None:
        content = self._store.get(digest)
        try:
            return None if content is None else _canonical(ir, content.decode())
        except (NormalizeError, UnicodeDecodeError):
            return None


def _canonical(ir: str, text: str) -> tuple[str, ...]:
    if ir not in edits.MLIR_STAGES:
        return normalize.canonicalize(ir, text).lines
    lines = normalize.canonicalize("ttgir" if ir == "mlir" else ir, text).lines
    spelled = [syntax_drift.undone(line) for line in lines]
    return tuple(syntax_drift.translated(spelled) if ir == "mlir" else spelled)


def source_of(case: Case) -> EditSource | None:
    """The artifacts of the first changed stage."""
    stage = case.origin.stage if case.origin else ""
    base, head = case.artifacts.base.get(stage), case.artifacts.head.get(stage)
    return EditSource(ir=stage, base=base.digest, head=head.digest) if base and head else None
