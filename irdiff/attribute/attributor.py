"""Where the change of a case comes from: the components charged, and the pass that began it.

Every stage whose output changed is put to a test. Where what entered it is the same on both sides, it did
it. Where that differs too, head's stage is run on *base's* input (stage swap): if it makes base's output, it
is innocent and only passes a difference on. Where it cannot read base's text, base's stage is tried on
head's; where neither works, the stage is not separable, and the note says why.

In the first changed stage the IR between passes of both sides is compared (`attribute.passes`). In the
stage from TTGIR to LLVM IR it also tells lowering (MLIR passes) from LLVM's own optimizer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Protocol

from pydantic import TypeAdapter

from irdiff.attribute import passes, survival
from irdiff.attribute.attribution import (
    FAILED,
    NOT_AGAIN,
    Attribution,
    AttributionInput,
    ResponsiblePass,
    stages_of,
)
from irdiff.attribute.passes import Culprit, State
from irdiff.attribute.replayer import Dump, Replay, Replayed, settings_change
from irdiff.attribute.state_comparer import StateComparer
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError, made_by
from irdiff.compare.edits import EditSource
from irdiff.errors import NormalizeError
from irdiff.findings import FindingKind
from irdiff.model import Artifact, Component, Origin, Sides, StageStatus, Verdict
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import INPUT, MACHINE_STAGES, MLIR, Stage
from irdiff.store import key_of

_VERSION = "origin/14"
"""Part of the cache key: raised with any change of how cases are judged or replayed."""
MAX_LLVM_TEXT_BYTES = 200_000
"""LLVM IR up to this size is followed through LLVM's passes: about 115 print it each, 25 MB together."""
_COMPONENTS: Mapping[str, Component] = {
    Stage.TTIR: Component.TTIR_PASSES,
    Stage.GLIR: Component.TTIR_PASSES,
    Stage.TTGIR: Component.TTGIR_PASSES,
    Stage.LLIR: Component.LLVM_LOWERING,
    Stage.PTX: Component.LLVM_CODEGEN,
    Stage.AMDGCN: Component.LLVM_CODEGEN,
    Stage.CUBIN: Component.PTXAS,
    Stage.HSACO: Component.PTXAS,
}


_adapter = TypeAdapter(Attribution)


class Replayer(Protocol):
    """Runs one stage of one side again. Thread-safe."""

    def run(self, replay: Replay) -> Replayed: ...


class Attributor:
    """Attributes cases of two sides. Thread-safe."""

    def __init__(self, comparator: ArtifactComparator, replayer: Replayer, sides: Sides[Side]) -> None:
        self._comparator = comparator
        self._store = comparator.store
        self._replayer = replayer
        self._sides = sides

    def attribute(self, subject: AttributionInput) -> Attribution:
        case = subject.case
        key = key_of(
            _VERSION,
            made_by(),
            self._sides.base.toolchain.digest,
            self._sides.head.toolchain.digest,
            [{name: a.digest for name, a in side.items()} for side in case.artifacts],
            [str(finding) for finding in case.findings],
            case.verdict,
            case.error,
        )
        known = self._store.get_record("origin", key)
        if known is not None:
            found = _adapter.validate_python(known)
            if found.step is None or all(map(self._store.has, asdict(found.step.leaving).values())):
                return replace(found, case_id=case.id)
        attribution = _CaseAttribution(subject, self._comparator, self._replayer, self._sides)
        found = replace(attribution.attributed(), may_be_cured=attribution.may_be_cured)
        if not found.may_be_cured:
            row = _adapter.dump_python(found, mode="json", exclude={"made", "may_be_cured"})
            self._store.put_record("origin", key, row)
        return found


@dataclass(frozen=True, kw_only=True)
class _Charge:
    component: Component | None
    note: str


class _CaseAttribution:
    """One case. Replays are made once and kept while it lasts."""

    def __init__(
        self,
        subject: AttributionInput,
        comparator: ArtifactComparator,
        replayer: Replayer,
        sides: Sides[Side],
    ) -> None:
        self.case = subject.case
        self.subject = subject
        self.comparator = comparator
        self.store = comparator.store
        self.replayer = replayer
        self.sides = sides
        self.may_be_cured = False
        self._states = StateComparer()
        self._step: ResponsiblePass | None = None
        self._left: tuple[State, State] | None = None
        """What leaves that pass on either side."""
        self._culprit: Culprit | None = None
        self._drifted: dict[str, bool] = {}
        self._again = Sides[dict[str, bool]](base={}, head={})
        self._cause = ""
        """The last stage that makes head's output of base's text: what is before it has no effect."""
        self._healed_before: Culprit | None = None

    @cached_property
    def stages(self) -> list[str]:
        return stages_of(self.case)

    def attributed(self) -> Attribution:
        origin = self.case.origin
        assert origin is not None
        if self.case.verdict in FAILED:
            return self._failure(origin)
        charged: list[Component] = []
        notes: list[str] = []
        if origin.stage == Stage.LAUNCH:
            charged.append(Component.PROGRAM if self._launches_otherwise() else Component.RUNTIME)
            toolchains = self.sides.map(lambda side: side.toolchain.digest)
            if charged == [Component.RUNTIME] or toolchains.base == toolchains.head:
                found = replace(origin, charged=tuple(charged))
                return Attribution(case_id=self.case.id, origin=found, edit=None, step=None, again=NOT_AGAIN)
        for charge in (self._frontend(), *map(self._stage, range(1, len(self.stages)))):
            if charge.component is not None and charge.component not in charged:
                charged.append(charge.component)
            if charge.note and charge.note not in notes:
                notes.append(charge.note)
        step, culprit = self._step, self._culprit
        stage = self._first_stage(origin.stage)
        if stage != origin.stage:
            notes.insert(0, f"{origin.stage} differs only in how it is printed")
        if self._cause:
            notes.insert(0, self._without_effect(stage, self._cause))
            stage = MACHINE_STAGES.get(self._cause, self._cause)
        found = Origin(
            stage=stage,
            pass_name=culprit.name if culprit else None,
            masked=culprit.masked if culprit else (),
            charged=tuple(sorted(charged, key=list(Component).index)),
            note="; ".join(notes),
        )
        source, made = None, None
        if step and self._left and step.leaving.base != step.leaving.head:
            ir = "mlir" if stage == Stage.LLIR else Stage.TTGIR
            source = EditSource(ir=ir, base=step.leaving.base, head=step.leaving.head)
            made = self._states.edit(ir, *self._left)
        again = Sides[Mapping[str, bool]](base=self._again.base, head=self._again.head)
        return Attribution(case_id=self.case.id, origin=found, edit=source, step=step, again=again, made=made)

    def _launches_otherwise(self) -> bool:
        """Whether the program launches something else, or in another order; not the toolchain's runtime
        alone.
        """
        digests = {side[Stage.LAUNCH].digest for side in self.case.artifacts if Stage.LAUNCH in side}
        is_handed = any(row.kind is FindingKind.LAUNCH_DIFFERS for row in self.case.findings)
        return len(digests) > 1 or not is_handed

    def _failure(self, origin: Origin) -> Attribution:
        """Of a side that does not compile: the pass that was running, where the stage fails alone, too."""
        side = "head" if self.case.verdict is Verdict.BROKEN else "base"
        before = INPUT.get(origin.stage, "")
        entering = self.case.artifacts.of(side).get(before)
        failed_in = None
        if entering is not None and origin.stage in (*MLIR, Stage.LLIR):
            asked = Replay(
                side=self.sides.of(side),
                launch_id=self.subject.launch_ids.of(side),
                target=self.subject.target,
                stage=origin.stage,
                input_stage=before,
                input_digest=entering.digest,
                metadata=self.case.metadata.of(side),
                dump=Dump.NAMES,
                randomized=False,
            )
            replayed = self.replayer.run(asked)
            self.may_be_cured |= replayed.may_be_cured
            failed_in = replayed.failed_in
        found = replace(origin, pass_name=failed_in)
        return Attribution(case_id=self.case.id, origin=found, edit=None, step=None, again=NOT_AGAIN)

    # charges

    def _frontend(self) -> _Charge:
        differing = [f.detail for f in self.case.findings if f.kind is FindingKind.SPECIALIZATION_DIFFERS]
        if differing:
            return _Charge(component=Component.SPECIALIZATION, note=f"specialized otherwise: {differing[0]}")
        first = self.stages[0] if len(self.stages) > 1 else ""
        if (
            first == Stage.SOURCE
            and not self._equal_stage(Stage.SOURCE)
            and not self._equal_stage(self.stages[1])
        ):
            return _Charge(component=Component.FRONTEND, note="")
        if first == Stage.TTIR and not self._equal_stage(Stage.TTIR):
            note = (
                "frontend and TTIR passes are not told apart: no IR before the first pass (Triton before 3.3)"
            )
            return _Charge(component=Component.NOT_SEPARABLE, note=note)
        return _Charge(component=None, note="")

    def _stage(self, index: int) -> _Charge:
        before, stage = self.stages[index - 1], self.stages[index]
        if self._equal_stage(stage):
            return _Charge(component=None, note="")
        if self._equal_stage(before):
            if stage in (Stage.TTIR, Stage.GLIR, Stage.TTGIR, Stage.LLIR):
                return self._own_passes(stage)
            return _Charge(component=_COMPONENTS[stage], note=self._called_otherwise(stage))
        return self._swapped(before, stage)

    def _called_otherwise(self, stage: str) -> str:
        """What one side's call has and the other's has not. Of a tool's call nothing is recorded: it is not
        made again for that, and the recheck makes it once for each group.
        """
        if any(side.substitute for side in self.sides):
            return ""
        return settings_change(*self._both(stage, Dump.NONE))

    def _own_passes(self, stage: str) -> _Charge:
        """The stage is guilty for certain: which of its passes began it?"""
        ours, theirs = self._both(stage, Dump.ALL)
        component = _COMPONENTS[stage]
        for side, row in (("base", ours), ("head", theirs)):
            if row.error:
                note = f"passes of {stage} not seen: {side} cannot run the stage alone: {row.error}"
                return _Charge(component=component, note=note)
        return self._by_passes(stage, ours, theirs)

    def _swapped(self, before: str, stage: str) -> _Charge:
        """Both what enters and what leaves the stage differ: one side's stage on the other side's text."""
        errors = {}
        dump = Dump.FINAL if stage == Stage.LLIR else Dump.NONE
        for compiler, text in (("head", "base"), ("base", "head")):
            swapped = self._replay(compiler, text, stage, dump)
            if swapped.error:
                errors[compiler] = swapped.error
                continue
            if self._same_output(stage, swapped.output, text):
                return _Charge(component=None, note="")
            if compiler == "head" and self._same_output(stage, swapped.output, "head"):
                return self._alone(stage)
            if stage == Stage.CUBIN:
                return _Charge(component=_COMPONENTS[stage], note="")
            own = self._replay(text, text, stage, dump)
            if own.error or not self._same_output(stage, own.output, text):
                note = f"{stage} not separable: run alone, {text}'s own stage makes something else"
                return _Charge(component=Component.NOT_SEPARABLE, note=note)
            rows = (own, swapped) if text == "base" else (swapped, own)
            return self._by_final_ir(stage, *rows)
        note = (
            f"{stage} not separable: head does not take base's {before} ({errors['head']}), "
            f"nor base head's ({errors['base']})"
        )
        return _Charge(component=Component.NOT_SEPARABLE, note=note)

    def _alone(self, stage: str) -> _Charge:
        """The stage makes head's output of base's text: whatever differs before it has no effect."""
        self._healed_before = self._healed_before or self._culprit
        self._cause, self._culprit, self._step, self._left = stage, None, None, None
        if stage != Stage.LLIR:
            return _Charge(component=_COMPONENTS[stage], note="")
        ours, theirs = self._both(stage, Dump.ALL, text="base")
        if ours.error or theirs.error:
            return _Charge(component=_COMPONENTS[stage], note="")
        return self._by_passes(stage, ours, theirs)

    def _without_effect(self, first: str, cause: str) -> str:
        edit = (
            f"the edit of {self._healed_before.name}" if self._healed_before else f"what differs in {first}"
        )
        return f"{edit} has no effect: head's {cause} stage makes the same of base's text"

    def _by_passes(self, stage: str, ours: Replayed, theirs: Replayed) -> _Charge:
        """In the first changed stage: the pass that began it."""
        base, head = ours.states, theirs.states
        same = self._states.same_below_mlir if stage == Stage.LLIR else self._states.same
        culprit = passes.find_culprit(base, head, same)
        if culprit is None:
            charge = self._by_final_ir(stage, ours, theirs)
            if charge.component is Component.LLVM_CODEGEN:
                self._culprit = self._llvm_culprit(stage)
            return charge
        if self._culprit is None:
            left = base[culprit.leaving[0]], head[culprit.leaving[1]]
            if (
                stage == Stage.LLIR
                and survival.tells_nothing(self._states.edit("mlir", *left))
                and (later := self._llvm_culprit(stage))
            ):
                masked = (*culprit.masked, culprit.name, *later.masked)
                self._culprit = replace(later, masked=tuple(dict.fromkeys(masked)))
                note = f"LLVM's optimizer makes the same of what {culprit.name} lowers otherwise"
                return _Charge(component=Component.LLVM_CODEGEN, note=note)
            self._culprit, self._left = culprit, left
            self._step = self._kept(culprit, base, head)
        note = f"{culprit.name}: {culprit.note}" if culprit.note else ""
        return _Charge(component=_COMPONENTS[stage], note=note)

    def _by_final_ir(self, stage: str, one: Replayed, other: Replayed) -> _Charge:
        """Tells the lowering to LLVM IR from what LLVM does with it."""
        if (
            stage == Stage.LLIR
            and one.final
            and other.final
            and self._states.same_below_mlir(one.final, other.final)
        ):
            change = settings_change(one, other)
            note = "LLVM's optimizer: the IR that enters it is the same" + (f"; {change}" if change else "")
            return _Charge(component=Component.LLVM_CODEGEN, note=note)
        return _Charge(component=_COMPONENTS[stage], note="")

    def _llvm_culprit(self, stage: str) -> Culprit | None:
        """The pass of LLVM's optimizer; None where its log would be long, or takes minutes to print."""
        size = max(side[stage].size_bytes for side in self.case.artifacts)
        if size > MAX_LLVM_TEXT_BYTES or not all(map(self._prints_llvm_fast, ("base", "head"))):
            return None
        base, head = self._both(stage, Dump.LLVM)
        return survival.llvm_culprit(base.states, head.states)

    def _prints_llvm_fast(self, side: str) -> bool:
        version = re.match(r"(\d+)\.(\d+)", self.sides.of(side).toolchain.version)
        return version is not None and (int(version.group(1)), int(version.group(2))) >= (3, 7)

    def _kept(self, culprit: Culprit, base: Sequence[State], head: Sequence[State]) -> ResponsiblePass:
        entering, leaving = culprit.entering, culprit.leaving
        responsible = head[entering[1]] if head[entering[1]].name == culprit.name else base[entering[0]]
        return ResponsiblePass(
            name=responsible.name,
            argument=responsible.argument,
            options=responsible.options,
            entering=Sides(
                base=self.store.put(base[entering[0]].content),
                head=self.store.put(head[entering[1]].content),
            ),
            leaving=Sides(
                base=self.store.put(base[leaving[0]].content),
                head=self.store.put(head[leaving[1]].content),
            ),
        )

    # replays and comparisons

    def _replay(self, compiler: str, text: str, stage: str, dump: Dump) -> Replayed:
        """The stage of one side's compiler on the text of a side."""
        return self._noted(compiler, text, stage, self.replayer.run(self._asked(compiler, text, stage, dump)))

    def _both(self, stage: str, dump: Dump, *, text: str | None = None) -> Sides[Replayed]:
        """The stage of both sides' compilers at once, each on its own text, or both on that of one side."""
        found = of_both(lambda side: self.replayer.run(self._asked(side, text or side, stage, dump)))
        for side, replayed in found.items():
            self._noted(side, text or side, stage, replayed)
        return found

    def _asked(self, compiler: str, text: str, stage: str, dump: Dump) -> Replay:
        """On a side's own text it is a recheck too (see `irdiff.recheck`), so it runs as one."""
        before = self.stages[self.stages.index(stage) - 1]
        artifacts: Mapping[str, Artifact] = self.case.artifacts.of(text)
        return Replay(
            side=self.sides.of(compiler),
            launch_id=self.subject.launch_ids.of(compiler),
            target=self.subject.target,
            stage=stage,
            input_stage=before,
            input_digest=artifacts[before].digest,
            metadata=self.case.metadata.of(text),
            dump=dump,
            randomized=compiler == text,
            compile_s=max(side.get(stage, 0.0) for side in self.case.compile_s),
        )

    def _noted(self, compiler: str, text: str, stage: str, replayed: Replayed) -> Replayed:
        self.may_be_cured |= replayed.may_be_cured
        if compiler == text and not replayed.error and stage not in self._again.of(text):
            self._again.of(text)[stage] = self._same_output(stage, replayed.output, text)
        return replayed

    def _equal_stage(self, stage: str) -> bool:
        """By the case's own statuses; the text that enters the first pass has none and is compared here."""
        status = self.case.stages.get(Stage.SASS if stage == Stage.CUBIN else stage)
        if stage == Stage.HSACO:
            # The assembly's status is that of machine code: linking is at fault where the text is the same.
            status = self.case.stages.get(Stage.AMDGCN)
            return status is not StageStatus.CHANGED or not self._same_artifacts(Stage.AMDGCN)
        if status is None or stage in (Stage.SOURCE, Stage.AMDGCN):
            return self._same_artifacts(stage)
        if status in (StageStatus.IDENTICAL, StageStatus.EQUIVALENT):
            return True
        return stage in MLIR and self._printed_otherwise(stage)

    def _printed_otherwise(self, stage: str) -> bool:
        """Whether the texts are the same but for spellings that differ between releases."""
        if stage not in self._drifted:
            base, head = self._contents(stage)
            self._drifted[stage] = (
                base is not None
                and head is not None
                and self._states.same(State.of(stage, "", None, base), State.of(stage, "", None, head))
            )
        return self._drifted[stage]

    def _first_stage(self, told: str) -> str:
        """The first changed stage, or the next one that differs in more than spelling."""
        if told not in MLIR or told not in self.stages or not self._equal_stage(told):
            return told
        later = [stage for stage in self.stages[1:] if not self._equal_stage(stage)]
        return MACHINE_STAGES.get(later[0], later[0]) if later else told

    def _same_artifacts(self, stage: str) -> bool:
        return self._same(stage, *(side[stage].digest for side in self.case.artifacts))

    def _same_output(self, stage: str, output: bytes | None, side: str) -> bool:
        wanted = self.case.artifacts.of(side)[stage].digest
        return output is not None and self._same(stage, self.store.put(output), wanted)

    def _same(self, stage: str, base: str, head: str) -> bool:
        try:
            return self.comparator.same(stage, base, head)
        except (NormalizeError, DamagedArtifactError):
            return False

    def _contents(self, stage: str) -> tuple[bytes | None, bytes | None]:
        artifacts = self.case.artifacts
        return self.store.get(artifacts.base[stage].digest), self.store.get(artifacts.head[stage].digest)
