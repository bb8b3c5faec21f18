"""The gate's answer, as plain text: the caller escapes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from irdiff.backends.stages import MACHINE_CODE
from irdiff.findings import NOT_COMPARED, FindingKind
from irdiff.gate.acceptance import Accepted
from irdiff.gate.objections import BUT, Certainty
from irdiff.gate.policy import Action, Rule
from irdiff.model import COMPARED_VERDICTS, Case, Run, StageStatus
from irdiff.report import edit_coverage
from irdiff.words import counted

_MAX_GROUPS = 5
_ACCEPTED, _EQUAL_OUTPUTS = "accepted", "equal outputs"
_WORDS = {
    Certainty.VIOLATED: "violated by",
    Certainty.UNKNOWN: "unknown for",
    _ACCEPTED: "accepted for",
    _EQUAL_OUTPUTS: "settled by equal outputs for",
}
"""The number of cases, targets or files follows."""


class SubjectKind(StrEnum):
    CASE = "case"
    TARGET = "target"
    FILE = "file"
    NOTE = "note"
    RUN = "run"


@dataclass(frozen=True, kw_only=True)
class EqualOutputs:
    devices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GateFinding:
    subject: SubjectKind
    name: str
    """The case id, the target or the file; empty for the whole run."""
    certainty: Certainty
    action: Action
    detail: str
    """The deciding figures."""
    needs_gpu: bool
    is_measured: bool
    """True if a GPU measured the violation."""
    groups: tuple[str, ...]
    """Ids of the change groups behind it; empty if none can be accepted."""
    changes: Mapping[str, str | None]
    """By case, digests of the changes whose acceptance settles it; empty if none can be accepted."""
    not_accepted: str
    """Why no acceptance settles it, in one sentence; empty if nothing similar was accepted."""
    settled_by: EqualOutputs | tuple[Accepted, ...] | None

    @property
    def blocks(self) -> bool:
        return self.settled_by is None and self.action is not Action.WARN

    @property
    def lacks_data(self) -> bool:
        """Many cases may share its words: one command or option provides the data for all of them."""
        is_unknown = self.certainty is Certainty.UNKNOWN and self.settled_by is None
        return self.needs_gpu or (is_unknown and self.subject is SubjectKind.CASE)

    @property
    def subject_name(self) -> str:
        return "the run" if self.subject is SubjectKind.RUN else self.name

    @property
    def state(self) -> str:
        """`violated`, `unknown`, `outputs are bitwise equal on …` or `accepted by …`."""
        match self.settled_by:
            case None:
                return self.certainty.value
            case EqualOutputs(devices=devices):
                return f"outputs are bitwise equal on {', '.join(devices)}"
            case entries:
                return f"accepted by {'; '.join(entry.words for entry in entries)}"

    @property
    def whole_detail(self) -> str:
        """Includes why an acceptance does not settle it."""
        return f"{self.detail}; {self.not_accepted}" if self.not_accepted else self.detail


@dataclass(frozen=True, kw_only=True)
class RuleOutcome:
    rule: Rule
    examined: int
    """How many cases the rule selected."""
    findings: tuple[GateFinding, ...]

    @property
    def holds(self) -> bool:
        return not any(finding.blocks for finding in self.findings)

    @property
    def word(self) -> str:
        """Returns `pass`, `warn`, `settled`, `review` or `deny`: the worst of its findings."""
        blocking = {finding.action for finding in self.findings if finding.blocks}
        if blocking:
            return (Action.DENY if Action.DENY in blocking else Action.REVIEW).value
        if any(finding.settled_by is None for finding in self.findings):
            return Action.WARN.value
        return "settled" if self.findings else "pass"

    @property
    def summary(self) -> str:
        """`violated by 1 of 120 cases, unknown for 2, accepted for 1`."""
        cases = counted(self.examined, "case")
        if not self.findings:
            return f"holds for {cases}" if self.examined else "has no case here"
        counts = Counter(map(_answer, self.findings))
        kind = self.findings[0].subject
        if kind is SubjectKind.RUN:
            return f"{next(iter(counts))} for the run"
        first, *others = [(words, counts[name]) for name, words in _WORDS.items() if counts[name]]
        of_all = f"{first[1]} of {cases}" if kind is SubjectKind.CASE else counted(first[1], kind.value)
        return ", ".join([f"{first[0]} {of_all}", *(f"{words} {count}" for words, count in others)])

    @property
    def blocking(self) -> str:
        """`slower (2 violated, 1 unknown)`."""
        counts = Counter(finding.certainty for finding in self.findings if finding.blocks)
        return f"{self.rule.id} ({', '.join(f'{counts[each]} {each}' for each in Certainty if counts[each])})"

    @property
    def ordered(self) -> list[GateFinding]:
        """Puts findings that block first, then violated, settled and unknown ones."""
        return sorted(
            self.findings, key=lambda each: (not each.blocks, _ORDER.index(_answer(each)), each.name)
        )


_WORST_FIRST = (Action.DENY, Action.REVIEW, Action.WARN, "settled", "pass")
"""The words of rules, as answers list them."""
_ORDER = (Certainty.VIOLATED, _ACCEPTED, _EQUAL_OUTPUTS, Certainty.UNKNOWN)


def _answer(finding: GateFinding) -> str:
    """Returns its certainty, or how it was settled."""
    if finding.settled_by is None:
        return finding.certainty
    return _EQUAL_OUTPUTS if isinstance(finding.settled_by, EqualOutputs) else _ACCEPTED


@dataclass(frozen=True, kw_only=True)
class CaseCounts:
    machine_code: int
    as_text: int
    """Compared in the text of their last stage, because there is no binary."""
    equal_by_input: int
    """Not compiled, because both sides give one compiler the same input."""
    not_compared: int
    nondeterministic: int
    """Cases, among all of these, whose side gave different code when compiled again."""
    is_part: bool
    not_looked_at: tuple[str, ...]
    """From `edit_coverage.not_looked_at`."""

    @property
    def compared(self) -> int:
        return self.machine_code + self.as_text + self.equal_by_input

    @property
    def words(self) -> str:
        """`192 cases: 40 compared in machine code, 152 equal by input`."""
        parts = [f"{self.machine_code} compared in machine code", f"{self.equal_by_input} equal by input"]
        parts += [f"{self.as_text} compared as text"] if self.as_text else []
        parts += [f"{self.not_compared} not compared"] if self.not_compared else []
        parts += [f"{self.nondeterministic} nondeterministic"] if self.nondeterministic else []
        cases = counted(self.compared + self.not_compared, "case")
        cases += " without those of other shards" if self.is_part else ""
        return "; ".join([f"{cases}: {', '.join(parts)}", *self.not_looked_at])


def count_cases(run: Run) -> CaseCounts:
    kinds = Counter(map(_evidence, run.cases))
    return CaseCounts(
        machine_code=kinds["machine_code"],
        as_text=kinds["as_text"],
        equal_by_input=kinds["equal_by_input"],
        not_compared=kinds["not_compared"],
        nondeterministic=sum(bool(case.nondeterministic) for case in run.cases),
        is_part=run.options.shard != (1, 1),
        not_looked_at=tuple(edit_coverage.not_looked_at(run)),
    )


def _evidence(case: Case) -> str:
    """Returns the field of `CaseCounts` that counts the case. A case without evidence was not compared."""
    kinds = {finding.kind for finding in case.findings}
    if case.verdict not in COMPARED_VERDICTS or kinds & NOT_COMPARED:
        return "not_compared"
    if FindingKind.NOT_COMPILED in kinds:
        return "equal_by_input"
    if FindingKind.MACHINE_CODE_AS_TEXT in kinds:
        return "as_text"
    statuses = [case.stages.get(stage, StageStatus.ABSENT) for stage in MACHINE_CODE]
    return "machine_code" if any(status is not StageStatus.ABSENT for status in statuses) else "not_compared"


@dataclass(frozen=True, kw_only=True)
class FindingLine:
    name: str
    """The name of the first."""
    more: int
    groups: str
    words: str


def _without_repeats(lines: Iterable[FindingLine]) -> Iterator[FindingLine]:
    """Gives the reason of an undecided measurement once where the next lines have it, too."""
    last = ""
    for line in lines:
        figures, _, reason = line.words.partition(BUT)
        yield replace(line, words=f"{figures}; reason as above") if reason and reason == last else line
        last = reason


@dataclass(frozen=True, kw_only=True)
class Outcome:
    passed: bool
    base: str
    """The side in the words of reports."""
    head: str
    counts: CaseCounts
    timed_on: tuple[str, ...]
    """The devices of the timings; empty if the run was not timed."""
    rules: tuple[RuleOutcome, ...]
    group_names: Mapping[str, str]
    """The short ids of the run's change groups by their ids, in the order of reports."""
    notes: tuple[str, ...]
    """Cases that were not compared, acceptances that ended or settle nothing, and timings of unknown
    cases.
    """

    @property
    def headline(self) -> str:
        if self.passed:
            counts = Counter(rule.word for rule in self.rules)
            holding = counted(counts["pass"] + counts["settled"], "rule")
            passes = f"gate passes: {holding} {'holds' if holding == '1 rule' else 'hold'}"
            settled = f" ({counts['settled']} settled)" if counts["settled"] else ""
            warns = f", {counted(counts['warn'], 'rule')} warn{'s' if counts['warn'] == 1 else ''}"
            return f"{passes}{settled}{warns if counts['warn'] else ''}"
        failing = [rule.blocking for rule in self.worst_first if not rule.holds]
        if not failing:
            return "gate fails: nothing was compared"
        rules = counted(len(self.rules), "rule")
        return f"gate fails because of {len(failing)} of {rules}: {', '.join(failing)}"

    @property
    def worst_first(self) -> list[RuleOutcome]:
        return sorted(self.rules, key=lambda rule: _WORST_FIRST.index(rule.word))

    def groups_of(self, finding: GateFinding) -> str:
        names = [name for group, name in self.group_names.items() if group in finding.groups]
        return " ".join([*names[:_MAX_GROUPS], *(["…"] if len(names) > _MAX_GROUPS else [])])

    def with_groups(self, finding: GateFinding, words: str) -> str:
        """`words [g:b140]`."""
        named = self.groups_of(finding)
        return f"{words} [{named}]" if named else words

    def lines(self, rule: RuleOutcome) -> list[FindingLine]:
        """Joins findings with the same groups and words, and all cases of a target that lack the same
        data.
        """
        alike: dict[tuple[str, str, str], list[GateFinding]] = {}
        for finding in rule.ordered:
            words = finding.whole_detail
            if finding.settled_by is not None:
                words = f"{words}; {finding.state}"
            elif finding.certainty is not Certainty.VIOLATED:
                words = f"{finding.state}: {words}"
            target = finding.name.rpartition("@")[2] if finding.lacks_data else ""
            groups = "" if finding.lacks_data else self.groups_of(finding)
            alike.setdefault((target, groups, words), []).append(finding)
        lines = [self._line(target, words, findings) for (target, _, words), findings in alike.items()]
        return list(_without_repeats(lines))

    def _line(self, target: str, words: str, findings: Sequence[GateFinding]) -> FindingLine:
        count, first = len(findings), findings[0]
        if target and count > 1:
            return FindingLine(name=f"{count} cases on {target}", more=0, groups="", words=words)
        groups = "" if first.needs_gpu else self.groups_of(first)
        return FindingLine(name=first.subject_name, more=count - 1, groups=groups, words=words)

    @property
    def waiting(self) -> Sequence[str]:
        """Returns short ids."""
        groups = {
            group
            for rule in self.rules
            if rule.rule.action is Action.REVIEW
            for finding in rule.findings
            if finding.blocks and finding.certainty is Certainty.VIOLATED and finding.changes
            for group in finding.groups
        }
        return [name for group, name in self.group_names.items() if group in groups]
