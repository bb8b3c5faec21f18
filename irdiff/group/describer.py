"""The canonical edit of a case, and what grouping needs of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from irdiff.attribute import syntax_drift
from irdiff.compare import edits, line_forms
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.edits import Edit, EditSource
from irdiff.effects import cases as effects_of
from irdiff.errors import NormalizeError
from irdiff.group.grouping import NO_LAUNCHES, Description, describe
from irdiff.model import Case, Cause, Effects, Launch, Sides
from irdiff.normalize.compressed_text import PackedLines
from irdiff.parallel import LARGE_TEXT
from irdiff.store.interning import interned


class CaseDescriber:
    """Thread-safe."""

    def __init__(self, comparator: ArtifactComparator) -> None:
        self._comparator = comparator

    def describe(
        self,
        case: Case,
        source: EditSource | None,
        launches: Sides[Launch | None] = NO_LAUNCHES,
    ) -> Description:
        """By the texts that show the edit best where they are known, else by the first changed stage."""
        source = source or source_of(case)
        with LARGE_TEXT:
            edit = self._edit(source) if source else None
            found = describe(case, edit, launches, self._effects(case))
        return _sharing(found)

    def _effects(self, case: Case) -> tuple[Effects, Cause] | None:
        try:
            return effects_of.of_case(case, lambda stage, digest: self._comparator.text(stage, digest).lines)
        except DamagedArtifactError:
            return None

    def _edit(self, source: EditSource) -> Edit | None:
        """None where there are no two texts to compare (a failed side, machine code, launch arguments)."""
        try:
            base, head = (
                PackedLines(self._lines(source.ir, digest)) for digest in (source.base, source.head)
            )
            return edits.between(source.ir, base, head)
        except (NormalizeError, DamagedArtifactError, UnicodeDecodeError):
            return None

    def _lines(self, ir: str, digest: str) -> Iterable[str]:
        """The canonical lines, one after another where they may be many."""
        if ir == "mlir":
            return syntax_drift.canonical(ir, self._comparator.content(digest).decode())
        lines = self._comparator.text(ir, digest).lines
        return map(syntax_drift.undone, lines) if ir in line_forms.MLIR_STAGES else lines


def _sharing(found: Description) -> Description:
    """The same, which holds only once what is said of other cases too."""
    return replace(
        found, key=interned(found.key), counts=interned(found.counts), summary=interned(found.summary)
    )


def source_of(case: Case) -> EditSource | None:
    """The artifacts of the first changed stage."""
    stage = case.origin.stage if case.origin else ""
    base, head = case.artifacts.base.get(stage), case.artifacts.head.get(stage)
    return EditSource(ir=stage, base=base.digest, head=head.digest) if base and head else None
