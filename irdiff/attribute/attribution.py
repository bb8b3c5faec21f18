"""The input of attribution, a case to run again, and its result: the origin, the edit and the first divergent
pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from irdiff.attribute.replayer import Dump, Replay
from irdiff.backends.stages import BINARIES, INPUT, ORDER, TEXTS
from irdiff.compare import cases
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.edits import EditSource
from irdiff.errors import NormalizeError
from irdiff.model import ComparedCase, Launch, Origin, Pair, Sides, Target, Verdict

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

ATTRIBUTED = frozenset({Verdict.CHANGED, Verdict.IR_ONLY})
FAILED = frozenset({Verdict.BROKEN, Verdict.FIXED})
_ORDER = tuple(stage for stage in ORDER if stage in TEXTS or stage in BINARIES)


@dataclass(frozen=True, kw_only=True)
class FirstDivergentPass:
    """The responsible pass with what enters and leaves it, for a test of that pass alone. Digests."""

    name: str
    argument: str
    options: str | None
    entering: Sides[str]
    leaving: Sides[str]

    def edit(self, ir: str) -> EditSource:
        """Between what leaves it on both sides, read as this IR."""
        return EditSource(ir=ir, base=self.leaving.base, head=self.leaving.head)


@dataclass(frozen=True, kw_only=True)
class Attribution:
    origin: Origin
    edit: EditSource | None
    """The edit between the outputs of the responsible pass. None where the stage's artifacts show it best."""
    step: FirstDivergentPass | None
    unstable: bool
    """True if a stage made another output when it ran again on its own side's text, with another address
    layout and hash seed.
    """
    passed_on: tuple[str, ...] = ()
    """Stages for which one side's compiler made the other side's output of the other side's input, with
    another address layout and hash seed. Mostly head's compiler on base's input; the reverse was not run.
    """


class Attributed(NamedTuple):
    """A case with where its change comes from."""

    pair: Pair
    case: ComparedCase
    attribution: Attribution | None
    """None where nobody asks for it, or the case does not change."""


@dataclass(frozen=True, kw_only=True)
class CaseToReplay:
    """One case with what is needed to run its stages again."""

    case: ComparedCase
    sides: Sides[Side]
    launches: Sides[Launch | None]
    target: Target

    @cached_property
    def stages(self) -> list[str]:
        """The stages of which both sides have an artifact, in the order of compilation."""
        common = self.case.artifacts.base.keys() & self.case.artifacts.head.keys()
        return [name for name in _ORDER if name in common]

    @property
    def made_of(self) -> list[object]:
        """The digests of both toolchains, and of what they made, by stage."""
        made = [{name: row.digest for name, row in side.items()} for side in self.case.artifacts]
        return [[side.toolchain.digest for side in self.sides], made]

    def replay(
        self, stage: str, compiler: str, text: str = "", *, dump: Dump = Dump.NONE, attempt: int = 0
    ) -> Replay:
        """The stage of one side's compiler on the `text` of a side, by default its own.

        It runs with randomized addresses: then its result is a determinism check too. An assembler runs so on
        its side's own text alone: what it makes of the other's is in the cache where both have the same one.
        """
        case, text = self.case, text or compiler
        launch = self.launches.of(compiler)
        assert launch is not None, "a side that launched nothing has no artifacts"
        is_common = stage in self.stages
        before = self.stages[self.stages.index(stage) - 1] if is_common else INPUT[stage]
        return Replay(
            side=self.sides.of(compiler),
            launch=launch,
            target=self.target,
            stage=stage,
            input_stage=before,
            input_digest=case.artifacts.of(text)[before].digest,
            metadata=case.metadata.of(text),
            dump=dump,
            randomized=compiler == text or stage not in BINARIES,
            attempt=attempt,
            compile_s=max(side.get(stage, 0.0) for side in case.compile_s) if is_common else None,
        )


def agree(comparator: ArtifactComparator, stage: str, one: str, other: str) -> bool:
    """Returns False if one of the artifacts is damaged or cannot be read."""
    try:
        return comparator.same(stage, one, other)
    except (NormalizeError, DamagedArtifactError):
        return False


def attributed(case: ComparedCase, found: Attribution) -> ComparedCase:
    """The case with its origin; one that broke or was fixed says in its error which pass failed."""
    name = found.origin.pass_name
    if case.verdict not in FAILED or name is None or case.error is None or name in case.error:
        return replace(case, origin=found.origin)
    side = "head" if case.verdict is Verdict.BROKEN else "base"
    error = case.error.replace(f"{side}: ", f"{side}: {name}: ", 1)
    return replace(case, origin=found.origin, error=error)


def is_attributed(case: ComparedCase) -> bool:
    """Not where nothing changed, or its code was not compared."""
    known = case.verdict in (ATTRIBUTED | FAILED) and case.origin is not None
    return known and not cases.not_compared(case)
