"""Recompiles changed cases with other addresses and another hash seed, to detect nondeterministic compilers.

A determinism check never changes a verdict. It warns that the difference may be noise. `README.md` says which
cases are chosen (`Rounds`), and how much of each is run again.

A stage that runs alone may print something else than in its pipeline, and some cannot run alone. So only
agreement is taken from it; anything else is settled by a whole compilation, and by running the stage twice
more. Stages before the origin need no second run: nothing differs there, or the difference has no effect. Nor
do stages that only pass a difference on. Attribution has run them with other addresses and another hash seed,
but on the input of one side, by the compiler of the other one: this is taken to speak for both sides.

Replays, compilations and agreements are kept in the cache. What disagreed is compared again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from irdiff.attribute.attribution import CaseToReplay, agree
from irdiff.attribute.replayer import Replayer
from irdiff.backends.stages import BINARIES, ORDER, WITHOUT_TEXT, reported
from irdiff.capture import launch_texts
from irdiff.compare import cases
from irdiff.compare.artifact_comparator import ArtifactComparator, intact
from irdiff.findings import FindingKind
from irdiff.ir.llir import llvm_process
from irdiff.model import ComparedCase, Failed, FailureKind, Sides, StageStatus, Verdict
from irdiff.parallel import Report, in_parallel, of_both
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.store.memo import Memo, MemoStep
from irdiff.words import counted

if TYPE_CHECKING:
    from irdiff.compile.compilation import Compiler
    from irdiff.group.grouping import Alike, Judged
    from irdiff.resolve.sides import Side

STEP: MemoStep[bool] = MemoStep("determinism", __name__, bool)
UNSTABLE: MemoStep[bool] = MemoStep("unstable-assembler", __name__, bool)

_ATTEMPTS = 3
"""The number of runs of a stage whose first output was not what was compared."""


class Depth(StrEnum):
    """The part of a case that runs again."""

    ASSEMBLER = "assembler"
    WHOLE = "whole"
    CAPTURE = "capture"
    """The workload, to compare its launches."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The sides that made something else when the case was made again, and those that gave no answer."""

    disagreeing: Mapping[str, str]
    """Side → the first stage whose output differed."""
    unanswered: tuple[str, ...]


_AGREEING = Answers(disagreeing={}, unanswered=())
_AGREES = ""
"""Stands for `no stage differed`."""
_UNKNOWN_STAGE = "compilation"


class _UnansweredError(Exception):
    """A side gave no answer; another attempt may."""


class Recompiler:
    """Runs both sides of cases again. Thread-safe."""

    def __init__(self, compiler: Compiler, replayer: Replayer, comparator: ArtifactComparator) -> None:
        self._compiler = compiler
        self._replayer = replayer
        self._comparator = comparator
        self._store = comparator.store

    def ask(self, subject: CaseToReplay, depth: Depth, passed_on: Sequence[str] = ()) -> Answers:
        """Runs the case again from its origin on, or its assemblers, or its launch, by `depth`.

        passed_on: as of `Attribution`; they need no second run.
        """
        if depth is Depth.CAPTURE:
            return _answers(of_both(lambda side: self._launches_again(subject, side)))
        if depth is Depth.WHOLE:
            stages = self._changed_stages(subject, passed_on)
        else:
            stages = [name for name in subject.stages if name in BINARIES and reported(name) in WITHOUT_TEXT]
        memo = self._memo(subject, stages)
        if memo and memo.get():
            return _AGREEING
        answers = _answers(of_both(lambda side: self._differing(subject, side, stages)))
        if memo and answers == _AGREEING:
            memo.keep(True)
        return answers

    def _memo(self, subject: CaseToReplay, stages: Sequence[str] | None) -> Memo[bool] | None:
        """Its key holds everything that an agreement rests on. None if compilations are not reused."""
        inputs = [launch and launch.digest for launch in subject.launches]
        if not self._replayer.reuse or not all(inputs):
            return None
        return self._store.memo(STEP, [llvm_process.version(), subject.made_of, inputs, stages])

    def _changed_stages(self, subject: CaseToReplay, passed_on: Sequence[str]) -> list[str] | None:
        """Returns the stages from the origin on; None if only a whole compilation can tell."""
        case, stages = subject.case, subject.stages
        first = case.origin.stage if case.origin else ""
        place = next((n for n, name in enumerate(stages) if first in (name, reported(name))), 0)
        if place == 0 or cases.not_compared(case):
            return None
        base, head = (side[stages[0]].digest for side in case.artifacts)
        is_frontend = place == 1 and not agree(self._comparator, stages[0], base, head)
        return None if is_frontend else [stage for stage in stages[place:] if stage not in passed_on]

    def _differing(self, subject: CaseToReplay, side: str, stages: Sequence[str] | None) -> str | None:
        """The first stage that a side makes differently; `_AGREES`, or None where the side did not answer."""
        try:
            if stages is not None and all(self._makes_again(subject, side, stage) for stage in stages):
                return _AGREES
            if stage := intact(lambda: self._compiles_differently(subject, side)):
                return stage
            unsteady = (stage for stage in stages or () if not self._is_steady(subject, side, stage))
            return next(unsteady, _AGREES)
        except _UnansweredError:
            return None

    def _makes_again(self, subject: CaseToReplay, side: str, stage: str) -> bool:
        output = self._output(subject, side, stage, attempt=0)
        compared = subject.case.artifacts.of(side)[stage].digest
        return output is not None and agree(self._comparator, stage, output, compared)

    def _is_steady(self, subject: CaseToReplay, side: str, stage: str) -> bool:
        """Returns True if a stage gives the same output each time, or can never run alone."""
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

    def _launches_again(self, subject: CaseToReplay, name: str) -> str | None:
        """Runs the workload again. Returns `Stage.LAUNCH` if it launches something else, `_AGREES` if not,
        and None if it gave no answer.
        """
        side, launch = subject.sides.of(name), subject.launches.of(name)
        assert launch is not None, "a changed case is launched on both sides"
        catalog = self._compiler.captured_again(side, launch.workload, subject.target)
        again = next((row for row in catalog.launches if row.id == launch.id), None)
        if again is None:
            ran_out = {row.failure.kind for row in catalog.failures} & {
                FailureKind.TIMEOUT,
                FailureKind.MEMORY,
            }
            return None if ran_out else Stage.LAUNCH
        if not catalog.undigested and again.digest != launch.digest:
            return Stage.LAUNCH
        other = subject.launches.head if name == "base" else subject.launches.base
        if other is not None:
            settings = launch_texts.options_of_sides(side.toolchain for side in subject.sides)
            again = launch_texts.beside(again, other, self._store, settings)
        return _AGREES if again.launched.digest == launch.launched.digest else Stage.LAUNCH

    def _compiles_differently(self, subject: CaseToReplay, name: str) -> str:
        """The first stage that differs when the case is compiled again; `_AGREES` where none does."""
        side, launch = subject.sides.of(name), subject.launches.of(name)
        assert launch is not None, "a changed case is launched on both sides"
        again = self._compiler.compile(side, launch, subject.target, attempt=0)
        if isinstance(again, Failed):
            if again.transient:
                raise _UnansweredError
            return again.failure.stage or _UNKNOWN_STAGE
        differing = (
            stage
            for stage, first in subject.case.artifacts.of(name).items()
            if stage in again.artifacts
            and not self._comparator.same(stage, first.digest, again.artifacts[stage].digest)
        )
        return min(differing, key=_place, default=_AGREES)


def _place(stage: str) -> int:
    return ORDER.index(stage) if stage in ORDER else len(ORDER)


def _answers(differing: Sides[str | None]) -> Answers:
    return Answers(
        disagreeing={side: stage for side, stage in differing.items() if stage},
        unanswered=tuple(side for side, stage in differing.items() if stage is None),
    )


@dataclass(frozen=True, kw_only=True)
class Question:
    case_id: str
    depth: Depth


@dataclass(frozen=True, kw_only=True)
class Answer:
    question: Question
    sides: Answers

    @property
    def id(self) -> str:
        """For progress."""
        return self.question.case_id


class UnstableAssemblers:
    """Targets for which an assembler of these sides was ever seen to disagree with itself."""

    def __init__(self, store: Store, sides: Sides[Side]) -> None:
        self._store = store
        self._assemblers = [sorted(side.toolchain.assemblers.values()) for side in sides]

    def add(self, target: str) -> None:
        for memo in self._memos(target):
            memo.keep(True)

    def __contains__(self, target: str) -> bool:
        return any(memo.get() for memo in self._memos(target))

    def _memos(self, target: str) -> Iterator[Memo[bool]]:
        return (self._store.memo(UNSTABLE, [rows, target]) for rows in self._assemblers if rows)


@dataclass(frozen=True, kw_only=True)
class Determinism:
    """The results of the determinism check."""

    disagreeing: Mapping[str, Mapping[str, str]]
    """By case: the sides that disagreed with themselves, each with the first stage that did."""
    unanswered: Mapping[str, tuple[str, ...]]
    """By case: the sides of which nothing is known, because they gave no answer."""
    notes: tuple[str, ...]


NOT_CHECKED = Determinism(disagreeing={}, unanswered={}, notes=())


@dataclass(frozen=True, kw_only=True)
class DeterminismCheck:
    """Recompiles cases, round by round, until the answers raise no more questions."""

    recompiler: Recompiler
    unstable: UnstableAssemblers
    sides: Sides[Side]
    threads: int

    def run(self, judged: Sequence[Judged], alike: Sequence[Alike], report: Report) -> Determinism:
        """Asks one case of each group again, and more where it disagrees with itself."""
        by_id = {each.id: each for each in judged}
        suspected = (each.id for each in judged if each.attribution and each.attribution.unstable)
        rounds = Rounds((each.case for each in judged), alike, self.unstable, suspected)

        def ask(question: Question) -> Answer:
            judged_case = by_id[question.case_id]
            pair = judged_case.pair
            subject = CaseToReplay(
                case=judged_case.case, sides=self.sides, launches=pair.launches, target=pair.target
            )
            attribution = judged_case.attribution
            passed_on = attribution.passed_on if attribution else ()
            sides = self.recompiler.ask(subject, question.depth, passed_on)
            return Answer(question=question, sides=sides)

        def slowest_first(due: Sequence[Question]) -> Sequence[Question]:
            """A slow one at the end would run while all other cores are idle."""
            return sorted(due, key=lambda each: _compile_s(by_id[each.case_id].case), reverse=True)

        rounds.run(
            lambda due: in_parallel(ask, slowest_first(due), self.threads, "determinism check", report)
        )
        return Determinism(
            disagreeing=rounds.disagreeing(), unanswered=rounds.unanswered(), notes=rounds.notes()
        )


def _compile_s(case: ComparedCase) -> float:
    return sum(seconds for side in case.compile_s for seconds in side.values())


class Rounds:
    """The questions that were asked so far, with their answers, and those that follow from them. Not
    thread-safe.

    groups: each speaks by its representative. suspected: ids of cases of which attribution saw a stage that
    made something else when it ran again.
    """

    def __init__(
        self,
        cases: Iterable[ComparedCase],
        groups: Iterable[Alike],
        unstable: UnstableAssemblers,
        suspected: Iterable[str],
    ) -> None:
        self.cases: dict[str, ComparedCase] = {}
        """The changed ones, by id."""
        self.answers: dict[Question, Answers] = {}
        self._unstable, self._suspected = unstable, frozenset(suspected)
        self._not_compiled: set[str] = set()
        for case in cases:
            kinds = {row.kind for row in case.findings}
            if FindingKind.ASSEMBLER_SETS_INTERSECT in kinds:
                unstable.add(case.target)
            if case.verdict is Verdict.CHANGED:
                self.cases[case.id] = case
            if FindingKind.NOT_COMPILED in kinds:  # only what is launched differs: no compiler made anything
                self._not_compiled.add(case.id)
        self._groups = [
            sorted(
                (name for name in group.members if name in self.cases),
                key=lambda name: name != group.representative,
            )
            for group in groups
        ]

    def run(self, ask: Callable[[Sequence[Question]], Iterable[Answer]]) -> None:
        """Asks, round by round, until the answers raise no more questions."""
        while due := list(self._due()):
            for answer in ask(due):
                self.answers[answer.question] = answer.sides
                if answer.question.depth is Depth.ASSEMBLER and answer.sides.disagreeing:
                    self._unstable.add(self.cases[answer.id].target)

    def disagreeing(self) -> dict[str, dict[str, str]]:
        """See `Determinism.disagreeing`."""
        by_case: dict[str, dict[str, str]] = {}
        for question, answers in self.answers.items():
            for side, stage in sorted(answers.disagreeing.items()):
                by_case.setdefault(question.case_id, {}).setdefault(side, stage)
        return by_case

    def unanswered(self) -> dict[str, tuple[str, ...]]:
        """As in `Determinism`. A side that answered for no case of a group answered for none of its cases."""
        silent = self._silent()
        sides: dict[str, set[str]] = {name: set(lacking) for name, lacking in silent.items()}
        for members in self._groups:
            of_asked = [silent[name] for name in members if name in silent]
            shared = set.intersection(*of_asked) if of_asked else set()
            for name in members:
                sides.setdefault(name, set()).update(shared)
        return {name: tuple(sorted(lacking)) for name, lacking in sides.items() if lacking}

    def _silent(self) -> dict[str, set[str]]:
        """By case that was compiled or captured again, the sides without an answer."""
        silent: dict[str, set[str]] = {}
        for question, answers in self.answers.items():
            if question.depth is not Depth.ASSEMBLER:
                silent.setdefault(question.case_id, set()).update(answers.unanswered)
        return silent

    def notes(self) -> tuple[str, ...]:
        """Says which cases were checked, so that a reader knows which were not."""
        if not self.cases:
            return ()
        depths = sorted({question.depth for question in self.answers} - {Depth.ASSEMBLER}, reverse=True)
        words = ("compiled" if depth is Depth.WHOLE else "captured" for depth in depths)
        how = " or ".join(words) or "compiled"
        silent = self._silent()
        assembled = {question.case_id for question in self.answers} - silent.keys()
        whole = {name for name, lacking in silent.items() if not lacking}
        is_of_each = all(not members or whole.intersection(members) for members in self._groups)
        more = f"; {len(assembled)} more were only assembled again" if assembled else ""
        unanswered = {question.case_id for question, sides in self.answers.items() if sides.unanswered}
        checked = counted(len(self.cases), "changed case")
        if len(whole) < len(self.cases):
            checked = (
                f"{len(whole)} of {checked}{', at least one of each change group,' if is_of_each else ''}"
            )
        elif len(whole) > 1:
            checked = f"all {checked}"
        again = "was" if len(whole) == 1 else "were"
        return (
            f"determinism check: {checked} {again} {how} again on each side with "
            f"randomized addresses{more}. Result: {self._outcome()}",
            *(
                f"could not check {name} for determinism: it ran out of time or memory, or its worker died"
                for name in sorted(unanswered)
            ),
        )

    def _outcome(self) -> str:
        """Each side is held against what it gave before."""
        if count := len(self.disagreeing()):
            return f"{count} of these cases gave other code the second time"
        is_whole = not any(sides.unanswered for sides in self.answers.values())
        return f"each side{'' if is_whole else ' that answered'} gave the same code again"

    def _due(self) -> Iterator[Question]:
        disagreeing = self.disagreeing()
        flagged = {
            target for target in {case.target for case in self.cases.values()} if target in self._unstable
        }
        for members in self._groups:
            speaking = members if any(member in disagreeing for member in members) else members[:1]
            for member in members:
                is_whole = member in speaking or member in self._suspected
                if is_whole and self.cases[member].stages.get(Stage.LAUNCH) is StageStatus.CHANGED:
                    yield from self._unasked(member, Depth.CAPTURE)
                if member in self._not_compiled:
                    continue
                if is_whole:
                    yield from self._unasked(member, Depth.WHOLE)
                # where a whole one disagrees: was it the assembler?
                if member in disagreeing or (not is_whole and self.cases[member].target in flagged):
                    yield from self._unasked(member, Depth.ASSEMBLER)

    def _unasked(self, case_id: str, depth: Depth) -> Iterator[Question]:
        question = Question(case_id=case_id, depth=depth)
        if question not in self.answers:
            yield question
