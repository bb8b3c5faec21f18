"""Whether a side that gave other code gives that code again, in a process with other addresses and hashes.

A compilation is its stages one after another, each made of the artifact of the one before. So a side is asked
stage by stage, from the first one that changed to its binary: each is run again on the very artifact that
entered it, and its output is compared with the one that was compared. The stages above need no second run:
there both compilers, which are other programs, made the same of it, so nothing that was reported rests on
chance.

A stage that is run alone may print something else than in its pipeline, and some cannot be run alone. So only
agreement is taken from it; anything else is settled by a whole compilation, and by running the stage twice
more. A side whose time or memory ran out, or whose worker died, has not answered.

Replays and compilations are values of the cache: a second run of irdiff asks them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from irdiff.attribute.attribution import CaseToReplay, agree
from irdiff.attribute.replayer import Replayer
from irdiff.codegen.tool_compiler import Compiler
from irdiff.compare import cases
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.model import Failed
from irdiff.parallel import of_both
from irdiff.stages import MACHINE_STAGES, Stage

_ATTEMPTS = 3
"""How often a stage is run whose first output was not what was compared."""


class Depth(StrEnum):
    """How much of a case is run again."""

    ASSEMBLER = "assembler"
    WHOLE = "whole"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The sides of a case by what they made, if not the same again."""

    disagreeing: tuple[str, ...]
    unanswered: tuple[str, ...]


class _UnansweredError(Exception):
    """Another attempt may tell."""


class Rechecker:
    """Runs both sides of cases again. Thread-safe."""

    def __init__(self, compiler: Compiler, replayer: Replayer, comparator: ArtifactComparator) -> None:
        self._compiler = compiler
        self._replayer = replayer
        self._comparator = comparator

    def ask(self, subject: CaseToReplay, depth: Depth) -> Answers:
        """The whole case from the first changed stage on, or what the assemblers make of the same text."""
        if depth is Depth.WHOLE:
            stages = self._changed_stages(subject)
        else:
            stages = [stage for stage in subject.stages if stage == Stage.CUBIN]
        agrees = of_both(lambda side: self._agrees(subject, side, stages))
        return Answers(
            disagreeing=tuple(side for side, answer in agrees.items() if answer is False),
            unanswered=tuple(side for side, answer in agrees.items() if answer is None),
        )

    def _changed_stages(self, subject: CaseToReplay) -> list[str] | None:
        """From the first changed one on; None where only a whole compilation can tell."""
        case, stages = subject.case, subject.stages
        first = case.origin.stage if case.origin else ""
        place = next((n for n, name in enumerate(stages) if first in (name, MACHINE_STAGES.get(name))), 0)
        if place == 0 or cases.not_compared(case):
            return None
        base, head = (side[stages[0]].digest for side in case.artifacts)
        is_frontend = place == 1 and not agree(self._comparator, stages[0], base, head)
        return None if is_frontend else stages[place:]

    def _agrees(self, subject: CaseToReplay, side: str, stages: Sequence[str] | None) -> bool | None:
        """Whether a side agrees with itself, None where it did not answer."""
        try:
            if stages is not None and all(self._makes_again(subject, side, stage) for stage in stages):
                return True
            return self._compiles_the_same(subject, side) and all(
                self._is_steady(subject, side, stage) for stage in stages or ()
            )
        except _UnansweredError:
            return None

    def _makes_again(self, subject: CaseToReplay, side: str, stage: str) -> bool:
        output = self._output(subject, side, stage, attempt=0)
        compared = subject.case.artifacts.of(side)[stage].digest
        return output is not None and agree(self._comparator, stage, output, compared)

    def _is_steady(self, subject: CaseToReplay, side: str, stage: str) -> bool:
        """Whether a stage does the same each time; one that cannot be run alone cannot each time."""
        first, *others = (self._output(subject, side, stage, attempt=n) for n in range(_ATTEMPTS))
        if first is None or None in others:
            return first is None and not any(others)
        return all(output and agree(self._comparator, stage, first, output) for output in others)

    def _output(self, subject: CaseToReplay, side: str, stage: str, *, attempt: int) -> str | None:
        """The digest of what a stage makes of its own input; None where it cannot be run alone."""
        replayed = self._replayer.run(subject.replay(stage, side, attempt=attempt))
        if replayed.transient:
            raise _UnansweredError
        return replayed.output

    def _compiles_the_same(self, subject: CaseToReplay, side: str) -> bool:
        try:
            return self._compiled_the_same(subject, side, fresh=False)
        except DamagedArtifactError:
            return self._compiled_the_same(subject, side, fresh=True)

    def _compiled_the_same(self, subject: CaseToReplay, name: str, *, fresh: bool) -> bool:
        side, launch = subject.sides.of(name), subject.launches.of(name)
        assert launch is not None, "a changed case is launched on both sides"
        again = self._compiler.recompile(
            side.toolchain, side.corpus, launch, subject.target, attempt=0, fresh=fresh
        )
        if isinstance(again, Failed):
            if again.transient:
                raise _UnansweredError
            return False
        return all(
            self._comparator.same(stage, first.digest, again.artifacts[stage].digest)
            for stage, first in subject.case.artifacts.of(name).items()
            if stage in again.artifacts
        )
