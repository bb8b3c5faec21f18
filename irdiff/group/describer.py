"""Describes each case's change: its canonical edit, effects, title and class. A description is cached under
the case and the texts that show its edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irdiff.attribute.edit_reader import EditReader
from irdiff.backends.binary_operations import BinaryOperations
from irdiff.compare.artifact_comparator import DamagedArtifactError
from irdiff.compare.edits import Edit, EditSource
from irdiff.effects import cases as effects_of
from irdiff.group.grouping import NO_LAUNCHES, Description, Judged, describe
from irdiff.model import GROUPED_VERDICTS, ComparedCase, Effects, Launch, Sides
from irdiff.parallel import LARGE_TEXT, Stream
from irdiff.stages import Stage
from irdiff.store.memo import MemoStep

if TYPE_CHECKING:
    from irdiff.attribute.attribution import Attributed

STEP: MemoStep[Description] = MemoStep("judged", __name__, Description)
_TIMES = "compile_s"
"""No description depends on it."""


def judge(attributed: Stream[Attributed], describer: CaseDescriber) -> Stream[Judged]:
    def judged(changed: Attributed) -> Judged:
        pair, case, attribution = changed
        edit = attribution.edit if attribution else None
        is_grouped = case.verdict in GROUPED_VERDICTS
        description = describer.describe(case, edit, pair.launches) if is_grouped else None
        return Judged(pair, case, description, attribution)

    return attributed.then(judged)


class CaseDescriber:
    def __init__(
        self,
        reader: EditReader,
        *,
        same_compiler: bool = False,
        reuse: bool = False,
        packages: Sequence[str] = (),
    ) -> None:
        """With one compiler on both sides every difference is one that the kernels or launches ask for.
        packages: as for `BinaryOperations`.
        """
        self._reader = reader
        self._packages = packages
        self._machine_code = BinaryOperations(reader.comparator.content, packages)
        self._store = reader.comparator.store
        self._same_compiler = same_compiler
        self._reuse = reuse

    def describe(
        self,
        case: ComparedCase,
        source: EditSource | None,
        launches: Sides[Launch | None] = NO_LAUNCHES,
    ) -> Description:
        """Uses the texts that show the edit best, if known, else the first changed stage."""
        fields = {name: value for name, value in vars(case).items() if name != _TIMES}
        memo = self._store.memo(STEP, [fields, source, [self._same_compiler, bool(self._packages)]])
        described = memo.get() if self._reuse else None
        if described is None:
            described = self._described(case, source, launches)
            if self._reuse and self._is_whole(case, source):
                memo.keep(described)
        return described

    def _described(
        self, case: ComparedCase, source: EditSource | None, launches: Sides[Launch | None]
    ) -> Description:
        source = source or source_of(case)
        edit = self._reader.edit(source) if source else None
        with LARGE_TEXT:
            return describe(
                case,
                edit,
                launches,
                self._effects(case),
                of_kernel=self._of_kernel(case, edit, launches),
                same_compiler=self._same_compiler,
            )

    def _of_kernel(
        self, case: ComparedCase, edit: Edit | None, launches: Sides[Launch | None]
    ) -> Edit | None:
        """A new argument or option changes the launch, which hides the edit of the kernel's IR."""
        is_edited = len({launch and launch.source_digest for launch in launches}) > 1
        if edit is None or edit.stage != Stage.LAUNCH or not is_edited:
            return None
        source = _source_at(case, Stage.TTIR)
        return self._reader.edit(source) if source else None

    def _effects(self, case: ComparedCase) -> Effects | None:
        text = self._reader.comparator.text
        try:
            return effects_of.of_case(
                case, lambda stage, digest: text(stage, digest).lines, self._machine_code
            )
        except DamagedArtifactError:
            return None

    def _is_whole(self, case: ComparedCase, source: EditSource | None) -> bool:
        """A text that was damaged is gone."""
        digests = {artifact.digest for side in case.artifacts for artifact in side.values()}
        digests |= {source.base, source.head} if source else set()
        return all(map(self._store.has, digests))


def source_of(case: ComparedCase) -> EditSource | None:
    return _source_at(case, case.origin.stage if case.origin else "")


def _source_at(case: ComparedCase, stage: str) -> EditSource | None:
    base, head = case.artifacts.base.get(stage), case.artifacts.head.get(stage)
    return EditSource(ir=stage, base=base.digest, head=head.digest) if base and head else None
