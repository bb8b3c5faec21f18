"""Which changed cases are asked again: one of each change group, and more wherever one disagrees with itself.

The verdict does not rest on this: a case whose code differs is `changed`, asked again or not. What asking
adds is the warning that the difference may be a compiler's chance. Chance that makes an edit sits in the pass
that makes it, which is what the members of a group have in common: one of them speaks for all, and where it
disagrees with itself the others are asked too. The exception is an assembler, whose chance depends on the
text of a case and not on the edit: where one was ever seen to disagree with itself, on any case and in any
run of this store, every changed case of that target is assembled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irdiff.findings import FindingKind
from irdiff.model import Case, ChangeGroup, Sides, Verdict
from irdiff.recheck.rechecker import Answers, Depth
from irdiff.resolve.sides import Side
from irdiff.store import Store, key_of


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
        for key in self._keys(target):
            self._store.put_record("unstable-assembler", key, True)

    def __contains__(self, target: str) -> bool:
        return any(self._store.get_record("unstable-assembler", key) for key in self._keys(target))

    def _keys(self, target: str) -> Iterator[str]:
        return (key_of("unstable-assembler/1", rows, target) for rows in self._assemblers if rows)


@dataclass
class Rounds:
    """What was asked so far, and what is to be asked next. Not thread-safe."""

    cases: Mapping[str, Case]
    """The changed ones, by id."""
    groups: Sequence[tuple[str, ...]]
    """Ids of the changed members of each group, the one that speaks for the others first."""
    unstable: UnstableAssemblers
    suspected: frozenset[str]
    """Ids of cases of which attribution saw a stage that made something else when it ran again."""
    answers: dict[Question, Answers] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cases: Iterable[Case],
        groups: Iterable[ChangeGroup],
        unstable: UnstableAssemblers,
        suspected: Iterable[str],
    ) -> Rounds:
        changed = {}
        for case in cases:
            kinds = {row.kind for row in case.findings}
            if FindingKind.ASSEMBLER_SETS_INTERSECT in kinds:
                unstable.add(case.target)
            # where only what is launched differs no compiler made anything
            if case.verdict is Verdict.CHANGED and FindingKind.NOT_COMPILED not in kinds:
                changed[case.id] = case
        members = [
            tuple(sorted((m for m in group.members if m in changed), key=lambda m: m != group.representative))
            for group in groups
        ]
        return cls(
            cases=changed,
            groups=[row for row in members if row],
            unstable=unstable,
            suspected=frozenset(suspected),
        )

    def run(self, ask: Callable[[Sequence[Question]], Iterable[Answer]]) -> None:
        """Asks, round by round, until the answers raise no more questions."""
        while due := list(self._due()):
            for answer in ask(due):
                self.answers[answer.question] = answer.sides
                if answer.question.depth is Depth.ASSEMBLER and answer.sides.disagreeing:
                    self.unstable.add(self.cases[answer.id].target)

    def disagreeing(self) -> dict[str, tuple[str, ...]]:
        """The sides that disagreed with themselves, by case."""
        found: dict[str, set[str]] = {}
        for question, sides in self.answers.items():
            if sides.disagreeing:
                found.setdefault(question.case_id, set()).update(sides.disagreeing)
        return {case_id: tuple(sorted(sides)) for case_id, sides in found.items()}

    def notes(self) -> tuple[str, ...]:
        """What was asked, for a reader who wants to know what was not."""
        if not self.cases:
            return ()
        whole = {question.case_id for question in self.answers if question.depth is Depth.WHOLE}
        assembled = {question.case_id for question in self.answers} - whole
        more = f", and {len(assembled)} were assembled again" if assembled else ""
        unanswered = {question.case_id for question, sides in self.answers.items() if sides.unanswered}
        return (
            f"recheck: {len(whole)} of {len(self.cases)} changed cases, at least one of each change group, "
            f"were made again on each side with randomized addresses{more}",
            *(
                f"recheck: {name} did not answer (its time or memory ran out, or its worker died), so "
                "a compiler's chance is not ruled out there"
                for name in sorted(unanswered)
            ),
        )

    def _due(self) -> Iterator[Question]:
        disagreeing = self.disagreeing()
        flagged = {
            target for target in {case.target for case in self.cases.values()} if target in self.unstable
        }
        for members in self.groups:
            speaking = members if any(member in disagreeing for member in members) else members[:1]
            for member in members:
                is_whole = member in speaking or member in self.suspected
                if is_whole:
                    yield from self._unasked(member, Depth.WHOLE)
                # where a whole one disagrees: was it the assembler?
                if member in disagreeing or (not is_whole and self.cases[member].target in flagged):
                    yield from self._unasked(member, Depth.ASSEMBLER)

    def _unasked(self, case_id: str, depth: Depth) -> Iterator[Question]:
        question = Question(case_id=case_id, depth=depth)
        if question not in self.answers:
            yield question
