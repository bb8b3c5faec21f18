"""Finds where the change of a case comes from: the components charged, and the pass that began it.

The stages are examined from the last one that differs backwards, until one makes the whole difference by
itself. That is a stage whose input is the same on both sides, or one that makes head's output of *base's*
input, too (stage swap). What is before it has no effect, and is not examined. A stage that makes base's
output of base's input only passes a difference on. Where head's stage cannot read base's text, base's is
tried on head's; where neither works, the stage is not separable, and the note says why. Where one compiler
makes both sides, no stage behind the first that differs can be the cause.

In the stage found the IR between passes of both sides is compared (`first_divergent_pass`). In the stage from
TTGIR to LLVM IR it also separates lowering (MLIR passes) from LLVM's own optimizer, whose pass
`attribute.llvm_passes` names for who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING

from irdiff.attribute import first_divergent_pass, llvm_passes
from irdiff.attribute.attribution import (
    FAILED,
    Attributed,
    Attribution,
    CaseToReplay,
    FirstDivergentPass,
    agree,
    attributed,
    is_attributed,
)
from irdiff.attribute.edit_reader import EditReader
from irdiff.attribute.first_divergent_pass import Divergence
from irdiff.attribute.pass_states import State
from irdiff.attribute.replayer import CODEGEN_LIBRARY, Dump, Replayed, Replayer, settings_change
from irdiff.attribute.state_comparer import StateComparer
from irdiff.backends.stages import BINARIES, COMPONENTS, INPUT, reported
from irdiff.compare import launchers
from irdiff.findings import FindingKind
from irdiff.ir.llir import llvm_process
from irdiff.model import Component, Origin, Sides, StageStatus, Verdict
from irdiff.parallel import Stream, of_both
from irdiff.stages import MLIR, Stage
from irdiff.store.memo import MemoStep
from irdiff.texts import title

if TYPE_CHECKING:
    from irdiff.compare.comparer import ComparedPair
    from irdiff.resolve.sides import Side

STEP: MemoStep[Attribution] = MemoStep("attributed", __name__, Attribution)
_WITH_STATUS_OF_CODE = [kind.assembly for kind in BINARIES.values() if kind.is_reported_as_text]
_BY_PASSES = (Stage.TTIR, Stage.GLIR, Stage.TTGIR, Stage.LLIR)

Charge = tuple[Component | None, str]
"""The component that a stage is charged to, or None if it is innocent; and a note."""
_INNOCENT: Charge = (None, "")
_OTHER_SETTINGS = "the program changes other settings of the compiler (variables, knobs or functions)"
_NO_SOURCE = "frontend and TTIR passes are not told apart: no IR before the first pass (Triton before 3.3)"


def attribute(
    compared: Stream[ComparedPair], attributor: Attributor | None, sides: Sides[Side]
) -> Stream[Attributed]:
    """Finds where the change of each case comes from, if that is asked for."""

    def attributed_case(compared_pair: ComparedPair) -> Attributed:
        pair, case = compared_pair
        if attributor is None or not is_attributed(case):
            return Attributed(pair, case, None)
        attribution = attributor.attribute(
            CaseToReplay(case=case, sides=sides, launches=pair.launches, target=pair.target)
        )
        return Attributed(pair, attributed(case, attribution), attribution)

    return compared.then(attributed_case)


class Attributor:
    """Thread-safe."""

    def __init__(self, reader: EditReader, replayer: Replayer) -> None:
        self._reader = reader
        self._store = reader.comparator.store
        self._replayer = replayer

    def attribute(self, subject: CaseToReplay) -> Attribution:
        """From the cache where the same compilations have been attributed."""
        case = subject.case
        findings = [str(finding) for finding in case.findings]
        memo = self._store.memo(
            STEP, [llvm_process.version(), subject.made_of, findings, case.verdict, case.error]
        )
        found = memo.get()
        if found and (found.step is None or all(map(self._store.has, asdict(found.step.leaving).values()))):
            return found
        work = _CaseAttribution(subject, self._reader, self._replayer)
        found = work.attributed()
        if not work.transient:
            memo.keep(found)
        return found


class _CaseAttribution:
    """One case."""

    def __init__(self, subject: CaseToReplay, reader: EditReader, replayer: Replayer) -> None:
        self.case = subject.case
        self.subject = subject
        self.stages = subject.stages
        self.reader = reader
        self.comparator = reader.comparator
        self.store = self.comparator.store
        self.replayer = replayer
        self._states = StateComparer()
        self._divergence: Divergence | None = None
        self._step: FirstDivergentPass | None = None
        self._is_quiet = False
        """True if the pass is a lowering with an edit which LLVM's optimizer may take back."""
        self._cause = ""
        """The last stage that makes the whole difference: what is before it has no effect."""
        self._spelling: dict[str, bool] = {}
        """By stage whether its texts differ in their spelling alone."""
        self._unstable = False
        self._passed_on: list[str] = []
        """See `Attribution.passed_on`."""
        self.transient = False
        """True if another attempt may find more, so that this result is not kept."""

    def attributed(self) -> Attribution:
        origin = self._failure() if self.case.verdict in FAILED else self._origin()
        step, edit = self._step, None
        if step and not self._is_quiet and step.leaving.base != step.leaving.head:
            edit = step.edit("mlir" if origin.stage == Stage.LLIR else Stage.TTGIR)
        return Attribution(
            origin=origin,
            edit=edit,
            step=step,
            unstable=self._unstable,
            passed_on=tuple(self._passed_on),
        )

    def _failure(self) -> Origin:
        """Names the pass that was running when a side failed to compile, if the stage fails alone, too."""
        origin = self.case.origin
        assert origin is not None
        side = "head" if self.case.verdict is Verdict.BROKEN else "base"
        stage = origin.stage
        has_input = INPUT.get(stage) in self.case.artifacts.of(side)
        if not has_input or stage not in (*MLIR, Stage.LLIR):
            return replace(origin, pass_name=None)
        asked = replace(self.subject.replay(stage, side, dump=Dump.NAMES), randomized=False)
        replayed = self.replayer.run(asked)
        self.transient |= replayed.transient
        return replace(origin, pass_name=replayed.failed_in)

    def _origin(self) -> Origin:
        origin = self.case.origin
        assert origin is not None
        charges: list[Charge] = []
        if origin.stage == Stage.LAUNCH:
            component = Component.PROGRAM if self._launches_differ() else Component.RUNTIME
            charges.append((component, ""))
            if component is Component.RUNTIME or (self._is_one_toolchain and not self._has_other_settings):
                return replace(origin, charged=(component,))
        charges += self._contributing()
        notes = [note for _, note in charges if note]
        if self._has_other_settings:
            notes.append(_OTHER_SETTINGS)
        stage = self._first_stage(origin.stage)
        if stage != origin.stage:
            notes.insert(0, f"{origin.stage} differs only in how it is printed")
        if origin.stage != Stage.LAUNCH and self._cause and reported(self._cause) != stage:
            notes.insert(0, self._nothing_before_matters())
            stage = reported(self._cause)
        divergence = self._divergence
        charged = {component for component, _ in charges if component is not None}
        charged |= {Component.LLVM_CODEGEN} if self._is_quiet else set()
        return Origin(
            stage=stage,
            pass_name=divergence.name if divergence and not self._is_quiet else None,
            masked=divergence.masked if divergence else (),
            charged=tuple(sorted(charged, key=list(Component).index)),
            note="; ".join(dict.fromkeys(notes)),
        )

    def _nothing_before_matters(self) -> str:
        before = self.stages[self.stages.index(self._cause) - 1]
        leaving = "machine code" if self._cause in BINARIES else title(self._cause)
        effect = f"no difference before the {leaving} has an effect"
        if self._is_equal(before):
            return f"{effect}: {title(before)} is the same on both sides again"
        return f"{effect}: head's compiler turns base's {title(before)} into head's {leaving}"

    def _launches_differ(self) -> bool:
        """Returns True if the program launches something else, or in another order. Differences of the
        toolchain's runtime alone do not count.
        """
        digests = {side[Stage.LAUNCH].digest for side in self.case.artifacts if Stage.LAUNCH in side}
        passed = [row.detail for row in self.case.findings if row.kind is FindingKind.LAUNCH_DIFFERS]
        return len(digests) > 1 or not passed or passed == [launchers.SCRATCH]

    # charges

    @cached_property
    def _is_one_compiler(self) -> bool:
        """True if both sides run the same stages with the same options and settings. Then a stage makes
        another output only of another input.
        """
        launched = {launch and launch.launched.digest for launch in self.subject.launches}
        has_digest = all(launch and launch.digest for launch in self.subject.launches)
        is_one = self._is_one_toolchain and len(launched) == 1 and has_digest
        return is_one and not self._has_other_settings and not self._has_tool

    @property
    def _is_one_toolchain(self) -> bool:
        return len({side.toolchain.digest for side in self.subject.sides}) == 1

    @property
    def _has_other_settings(self) -> bool:
        return len({launch and launch.settings for launch in self.subject.launches}) > 1

    @property
    def _has_tool(self) -> bool:
        return any(side.substitute for side in self.subject.sides)

    def _contributing(self) -> list[Charge]:
        """Charges the stages from the last one back to the one that makes the whole difference."""
        charges: list[Charge] = []
        for index in range(len(self.stages) - 1, 0, -1):
            if self._is_equal(self.stages[index]):
                continue
            charges.insert(0, self._stage(index))
            if self._cause:
                return charges
        return [self._frontend(), *charges]

    def _frontend(self) -> Charge:
        differing = [f.detail for f in self.case.findings if f.kind is FindingKind.SPECIALIZATION_DIFFERS]
        if differing:
            return Component.SPECIALIZATION, f"specialized differently: {differing[0]}"
        if len(self.stages) < 2 or self._is_equal(self.stages[0]):
            return _INNOCENT
        if self.stages[0] == Stage.SOURCE and not self._is_equal(self.stages[1]):
            return Component.FRONTEND, ""
        return (Component.NOT_SEPARABLE, _NO_SOURCE) if self.stages[0] == Stage.TTIR else _INNOCENT

    def _stage(self, index: int) -> Charge:
        before, stage = self.stages[index - 1], self.stages[index]
        # An assembler may read another spelling of equal text differently.
        is_same_input = self._is_equal(before) and (stage not in BINARIES or self._is_one_text(before))
        if not is_same_input:
            return _INNOCENT if self._is_one_compiler else self._swapped(before, stage)
        self._cause = stage
        if stage in _BY_PASSES:
            return self._by_passes(stage)
        # Of a tool's call nothing is recorded, so it is not made again here.
        if self._has_tool:
            return COMPONENTS[stage], ""
        replayed = self._both(stage, Dump.NONE)
        return _component(stage, *replayed), settings_change(*replayed)

    def _swapped(self, before: str, stage: str) -> Charge:
        """Both what enters and what leaves the stage differ: one side's stage on the other side's text."""
        errors = {}
        dump = Dump.FINAL if stage == Stage.LLIR else Dump.NONE
        for compiler, text in (("head", "base"), ("base", "head")):
            swapped = self._replay(compiler, text, stage, dump)
            if swapped.error:
                errors[compiler] = swapped.error
                continue
            if self._is_artifact(stage, swapped, text):
                if stage not in BINARIES:
                    self._passed_on.append(stage)
                return _INNOCENT
            if compiler == "head" and self._is_artifact(stage, swapped, "head"):
                return self._sole_cause(stage, swapped)
            if stage in BINARIES:
                return COMPONENTS[stage], ""
            own = self._replay(text, text, stage, dump)
            if not self._is_artifact(stage, own, text):
                note = (
                    f"the stage {stage} is not separable: when {text}'s stage runs alone, its output differs"
                )
                return Component.NOT_SEPARABLE, note
            return self._lowering_or_llvm(stage, *((own, swapped) if text == "base" else (swapped, own)))
        note = (
            f"the stage {stage} is not separable: head's compiler cannot read base's {before} "
            f"({errors['head']}), and base's compiler cannot read head's ({errors['base']})"
        )
        return Component.NOT_SEPARABLE, note

    def _sole_cause(self, stage: str, swapped: Replayed) -> Charge:
        """The stage makes head's output of base's text: whatever differs before it has no effect."""
        self._cause = stage
        if stage == Stage.LLIR:
            return self._by_passes(stage, text="base")
        own = self._replay("base", "base", stage, Dump.NONE)
        return _component(stage, own, swapped), settings_change(own, swapped)

    def _by_passes(self, stage: str, *, text: str = "") -> Charge:
        """The stage did it: which of its passes began it? On each side's own text, or on that of one side."""
        found = self._both(stage, Dump.ALL, text)
        component = COMPONENTS[stage]
        for side, row in found.items():
            if row.error:
                note = f"passes of {stage} not seen: {side} cannot run the stage alone: {row.error}"
                return component, note
        base, head = found.base.states, found.head.states
        same = self._states.same_below_mlir if stage == Stage.LLIR else self._states.same
        divergence = first_divergent_pass.find_divergence(base, head, same)
        if divergence is None:
            return self._lowering_or_llvm(stage, *found)
        name, note = divergence.name, divergence.note
        if note.startswith(first_divergent_pass.OTHER_OPTIONS):
            note = f"{name} {note}"
        self._divergence, self._step = divergence, self._kept(divergence, base, head)
        edit = self._step.edit("mlir")
        self._is_quiet = stage == Stage.LLIR and llvm_passes.is_quiet(self.reader.edit(edit))
        if self._is_quiet:
            note = f"{name} differs in address arithmetic alone, which LLVM's optimizer may undo"
        return component, note

    def _lowering_or_llvm(self, stage: str, base: Replayed, head: Replayed) -> Charge:
        """Charges LLVM's optimizer if the IR that enters it is the same on both sides."""
        finals = base.final, head.final
        if stage != Stage.LLIR or not all(finals) or not self._states.same_below_mlir(*finals):  # type: ignore[arg-type]
            return _component(stage, base, head), ""
        change = settings_change(base, head)
        note = "the IR that enters LLVM's optimizer is the same on both sides"
        if change:
            note += f"; its options are not: {change}"
        return Component.LLVM_CODEGEN, note

    def _kept(
        self, divergence: Divergence, base: Sequence[State], head: Sequence[State]
    ) -> FirstDivergentPass:
        (i, j), leaving = divergence.entering, divergence.leaving
        responsible = head[j] if head[j].name == divergence.name else base[i]
        put = self.store.put
        return FirstDivergentPass(
            name=responsible.name,
            argument=responsible.argument,
            options=responsible.options,
            entering=Sides(base=put(base[i].content), head=put(head[j].content)),
            leaving=Sides(base=put(base[leaving[0]].content), head=put(head[leaving[1]].content)),
        )

    # replays and comparisons

    def _replay(self, compiler: str, text: str, stage: str, dump: Dump) -> Replayed:
        replayed = self.replayer.run(self.subject.replay(stage, compiler, text, dump=dump))
        self.transient |= replayed.transient
        if compiler == text and not replayed.error and not self._is_artifact(stage, replayed, text):
            self._unstable = True
        return replayed

    def _both(self, stage: str, dump: Dump, text: str = "") -> Sides[Replayed]:
        """The stage of both sides' compilers at once."""
        return of_both(lambda side: self._replay(side, text or side, stage, dump))

    def _is_artifact(self, stage: str, replayed: Replayed, side: str) -> bool:
        """Returns True if the replay reproduced the artifact of a side."""
        compared = self.case.artifacts.of(side)[stage].digest
        return replayed.output is not None and agree(self.comparator, stage, replayed.output, compared)

    def _is_equal(self, stage: str) -> bool:
        """By the case's own statuses; the text that enters the first pass has none and is compared here."""
        status, kind = self.case.stages.get(reported(stage)), BINARIES.get(stage)
        if kind and kind.is_reported_as_text:
            # The assembly's status is that of machine code: linking is at fault where the text is the same.
            return status is not StageStatus.CHANGED or not self._are_same_artifacts(kind.assembly)
        if status is None or stage in (Stage.SOURCE, *_WITH_STATUS_OF_CODE):
            return self._are_same_artifacts(stage)
        if status in (StageStatus.IDENTICAL, StageStatus.EQUIVALENT):
            return True
        return stage in MLIR and self._differs_in_spelling(stage)

    def _is_one_text(self, stage: str) -> bool:
        return len({side[stage].digest for side in self.case.artifacts}) == 1

    def _are_same_artifacts(self, stage: str) -> bool:
        base, head = (side[stage].digest for side in self.case.artifacts)
        return agree(self.comparator, stage, base, head)

    def _differs_in_spelling(self, stage: str) -> bool:
        """Returns True if the texts differ only in spellings that differ between releases."""
        if stage not in self._spelling:
            base, head = (self.store.get(side[stage].digest) for side in self.case.artifacts)
            self._spelling[stage] = bool(base and head) and self._states.same(
                State.of("", base or b""), State.of("", head or b"")
            )
        return self._spelling[stage]

    def _first_stage(self, stage: str) -> str:
        """The first changed stage, or the next one that differs in more than spelling."""
        if stage not in MLIR or stage not in self.stages or not self._is_equal(stage):
            return stage
        later = [name for name in self.stages[1:] if not self._is_equal(name)]
        return reported(later[0]) if later else stage


def _component(stage: str, *replayed: Replayed) -> Component:
    if any(CODEGEN_LIBRARY in row.settings for row in replayed):
        return Component.CODEGEN_LIBRARY
    return COMPONENTS[stage]
