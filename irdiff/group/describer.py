"""The canonical edit of a case, and what grouping needs of it."""

from __future__ import annotations

from irdiff.attribute.edit_reader import EditReader
from irdiff.compare.artifact_comparator import DamagedArtifactError
from irdiff.compare.edits import EditSource
from irdiff.effects import cases as effects_of
from irdiff.group.grouping import NO_LAUNCHES, Description, describe
from irdiff.model import Case, Cause, Effects, Launch, Sides
from irdiff.parallel import LARGE_TEXT


class CaseDescriber:
    """Thread-safe."""

    def __init__(self, reader: EditReader, *, same_compiler: bool = False) -> None:
        """With one compiler on both sides every difference is one that the kernels or launches ask for."""
        self._reader = reader
        self._same_compiler = same_compiler

    def describe(
        self,
        case: Case,
        source: EditSource | None,
        launches: Sides[Launch | None] = NO_LAUNCHES,
    ) -> Description:
        """By the texts that show the edit best where they are known, else by the first changed stage."""
        source = source or source_of(case)
        edit = self._reader.edit(source) if source else None
        with LARGE_TEXT:
            effects = self._effects(case)
            return describe(case, edit, launches, effects, same_compiler=self._same_compiler)

    def _effects(self, case: Case) -> tuple[Effects, Cause] | None:
        text = self._reader.comparator.text
        try:
            return effects_of.of_case(case, lambda stage, digest: text(stage, digest).lines)
        except DamagedArtifactError:
            return None


def source_of(case: Case) -> EditSource | None:
    """The artifacts of the first changed stage."""
    stage = case.origin.stage if case.origin else ""
    base, head = case.artifacts.base.get(stage), case.artifacts.head.get(stage)
    return EditSource(ir=stage, base=base.digest, head=head.digest) if base and head else None
