"""Whether a side that gave other code gives that code again, in a process with other addresses and hashes.

A compilation is its stages one after another, each made of the artifact of the one before. So a side is asked
stage by stage, from the first one that changed to its binary: each is run again on the very artifact that
entered it, and its output is held against the one that was compared. What attribution ran again (the same
stage on the same text, to see its passes) has been asked already. The stages above need no second run: there
both compilers, which are other programs, made the same of it, so nothing that was reported rests on chance.

A stage that is run alone may print another thing than in its pipeline, and some cannot be run alone. So only
agreement is taken from it; anything else is settled by a whole compilation. A side whose time or memory ran
out, or whose worker died, has not answered: that is said of this run, and not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.attribute.attribution import stages_of
from irdiff.attribute.attributor import Replayer
from irdiff.attribute.replayer import Dump, Replay, Replayed
from irdiff.codegen.tool_compiler import Compiler
from irdiff.compare import cases
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError, made_by
from irdiff.errors import NormalizeError
from irdiff.model import Case, Failed, Launch, Sides, Target
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import MACHINE_STAGES, Stage
from irdiff.store import key_of

_VERSION = "recheck/2"
"""Part of the cache key: raised with any change of how a side is asked."""


@dataclass(frozen=True, kw_only=True)
class RecheckInput:
    """A changed case with what each side launched, and what is known of it already."""

    case: Case
    launches: Sides[Launch]
    target: Target
    again: Sides[Mapping[str, bool]]
    """As of `Attribution`; empty where the case was not attributed."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The sides of a case by what they made, if not the same again."""

    disagreeing: tuple[str, ...]
    unanswered: tuple[str, ...]


class _UnansweredError(Exception):
    """Another attempt may tell."""


class Rechecker:
    """Asks both sides of cases again. Thread-safe."""

    def __init__(
        self, compiler: Compiler, replayer: Replayer, comparator: ArtifactComparator, sides: Sides[Side]
    ) -> None:
        self._compiler = compiler
        self._replayer = replayer
        self._comparator = comparator
        self._sides = sides

    def whole(self, wanted: RecheckInput) -> Answers:
        """From the first changed stage on."""
        return self._asked(wanted, self._changed_stages(wanted.case))

    def assemblers(self, wanted: RecheckInput) -> Answers:
        """What the assemblers alone make of the same text."""
        return self._asked(wanted, [stage for stage in stages_of(wanted.case) if stage == Stage.CUBIN])

    def _changed_stages(self, case: Case) -> list[str] | None:
        """From the first changed one on; None where not all of them can be run alone."""
        stages = stages_of(case)
        first = case.origin.stage if case.origin else ""
        place = next((n for n, name in enumerate(stages) if first in (name, MACHINE_STAGES.get(name))), 0)
        if place == 0 or cases.not_compared(case):
            return None
        if place == 1 and not self._same(stages[0], *(side[stages[0]].digest for side in case.artifacts)):
            return None  # the frontend made something else
        return stages[place:]

    def _asked(self, wanted: RecheckInput, stages: Sequence[str] | None) -> Answers:
        agrees = of_both(lambda name: self._agrees(wanted, name, stages))
        return Answers(
            disagreeing=tuple(name for name, answer in agrees.items() if answer is False),
            unanswered=tuple(name for name, answer in agrees.items() if answer is None),
        )

    def _agrees(self, wanted: RecheckInput, name: str, stages: Sequence[str] | None) -> bool | None:
        """Whether a side agrees with itself, None where it did not answer.

        `stages` is None where only a whole compilation can tell.
        """
        artifacts = wanted.case.artifacts.of(name)
        key = key_of(
            _VERSION,
            made_by(),
            self._sides.of(name).toolchain.digest,
            wanted.launches.of(name).digest or wanted.launches.of(name).key,
            wanted.target.name,
            {stage: artifact.digest for stage, artifact in artifacts.items()},
            stages,
        )
        known: bool | None = self._comparator.store.get_record("rechecked", key)
        if known is None:
            try:
                known = self._stages_agree(wanted, name, stages) or self._settled(wanted, name, stages)
            except _UnansweredError:
                return None
            self._comparator.store.put_record("rechecked", key, known)
        return known

    # one stage

    def _stages_agree(self, wanted: RecheckInput, name: str, stages: Sequence[str] | None) -> bool:
        if stages is None:
            return False
        known = wanted.again.of(name)
        return all(known[s] if s in known else self._makes_again(wanted, name, s) for s in stages)

    def _makes_again(self, wanted: RecheckInput, name: str, stage: str) -> bool:
        output = self._output(self._replayed(wanted, name, stage))
        return output is not None and self._same(stage, output, wanted.case.artifacts.of(name)[stage].digest)

    def _output(self, replayed: Replayed) -> str | None:
        """The digest of what a stage made; None where it cannot be run alone."""
        return None if replayed.output is None else self._comparator.store.put(replayed.output)

    def _replayed(self, wanted: RecheckInput, name: str, stage: str) -> Replayed:
        """What a stage makes of its own input now."""
        case = wanted.case
        stages = stages_of(case)
        before = stages[stages.index(stage) - 1]
        return self._replayer.run(
            Replay(
                side=self._sides.of(name),
                launch_id=wanted.launches.of(name).id,
                target=wanted.target,
                stage=stage,
                input_stage=before,
                input_digest=case.artifacts.of(name)[before].digest,
                metadata=case.metadata.of(name),
                dump=Dump.NONE,
                randomized=True,
            )
        )

    def _same(self, stage: str, ours: str, theirs: str) -> bool:
        try:
            return self._comparator.same(stage, ours, theirs)
        except (NormalizeError, DamagedArtifactError):
            return False

    # a whole compilation

    def _settled(self, wanted: RecheckInput, name: str, stages: Sequence[str] | None) -> bool:
        """Whether a whole compilation agrees, and a stage that differs when run alone does so every time."""
        return self._compiles_the_same(wanted, name) and all(
            self._is_steady(wanted, name, stage) for stage in stages or ()
        )

    def _is_steady(self, wanted: RecheckInput, name: str, stage: str) -> bool:
        twice = [self._replayed(wanted, name, stage) for _ in range(2)]
        if any(replayed.may_be_cured for replayed in twice):
            raise _UnansweredError
        first, second = map(self._output, twice)
        if first is None or second is None:
            return first == second
        differed_before = wanted.again.of(name).get(stage) is False
        compared = wanted.case.artifacts.of(name)[stage].digest
        return self._same(stage, first, second) and not (
            differed_before and self._same(stage, first, compared)
        )

    def _compiles_the_same(self, wanted: RecheckInput, name: str) -> bool:
        try:
            return self._compiled_the_same(wanted, name, fresh=False)
        except DamagedArtifactError:
            return self._compiled_the_same(wanted, name, fresh=True)

    def _compiled_the_same(self, wanted: RecheckInput, name: str, *, fresh: bool) -> bool:
        side = self._sides.of(name)
        again = self._compiler.recompile(
            side.toolchain, side.corpus, wanted.launches.of(name), wanted.target, attempt=0, fresh=fresh
        )
        if isinstance(again, Failed):
            if again.transient:
                raise _UnansweredError
            return False
        return all(
            self._comparator.same(stage, first.digest, again.artifacts[stage].digest)
            for stage, first in wanted.case.artifacts.of(name).items()
            if stage in again.artifacts
        )
