"""Lists the change groups of a report, each with details below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.group import report_classes
from irdiff.model import Case, ChangeGroup, Fact, Run
from irdiff.report import commands, distinct_edits, divergence, error_clusters, families, phrases, witnesses
from irdiff.report.distinct_edits import DistinctEdit
from irdiff.report.group_names import NamedGroup
from irdiff.report.lists import Listed, ListLimits, listed
from irdiff.report.timing_summary import TimingSummary
from irdiff.words import counted, repeats_counted


@dataclass(frozen=True, kw_only=True)
class GroupLine(NamedGroup):
    edit: str
    """The heading above the first group of an edit of kernels; empty for the others."""
    loud: bool
    targets: str
    divergence: str
    origin: str
    reasons: tuple[str, ...]
    """Why it has its class, in sentences that a reviewer can check; the first one decides."""
    witness: tuple[str, ...]
    """The lines of both sides that show a hazard."""
    charged: str
    alike: str
    smallest: Case
    css_class: str
    facts: Mapping[str, tuple[Fact, Fact]]
    """Facts of the smallest case that moved, base and head."""
    moved: str
    unstable: str
    diff: tuple[str, ...]
    members: Listed[str]
    commands: tuple[str, ...]
    measured: str
    """The gravest measurement of its cases: `slower by up to 9.4 %`, `wrong results`; else empty."""


def gravest_first(
    edits: Sequence[DistinctEdit], groups: Sequence[NamedGroup], timing: TimingSummary | None
) -> tuple[Sequence[DistinctEdit], Sequence[NamedGroup]]:
    """Orders by measurements. Groups keep their numbers, which `irdiff explain RUN NUMBER` takes."""
    if timing is None:
        return edits, groups
    ordered = distinct_edits.gravest_first(edits, timing.gravity)
    ids = [group.id for edit in ordered for group in edit.groups]
    return ordered, sorted(groups, key=lambda named: ids.index(named.group.id))


def lines(
    run: Run,
    groups: Sequence[NamedGroup],
    edits: Sequence[DistinctEdit],
    diffs: GroupDiffs,
    limits: ListLimits,
    call: str,
    timing: TimingSummary | None,
) -> Iterator[GroupLine]:
    cases = {case.id: case for case in run.cases}
    of_files = {edit.groups[0].id: edit.words for edit in edits}
    others = {edit.groups[0].id: _others(edit) for edit in edits if any(of_files.values())}
    for place, named in enumerate(groups[: limits.groups]):
        group, smallest = named.group, cases[named.group.representative]
        count = len(group.members)
        heading = of_files.get(group.id, "")
        yield GroupLine(
            **vars(named),
            edit=heading or others.get(group.id, ""),
            loud=phrases.is_loud(group),
            targets=phrases.members_by_target(group, cases),
            divergence=divergence.of_group(group, cases),
            origin=phrases.place(group.origin_stage, group.pass_name),
            reasons=_reasons(group),
            witness=witnesses.of(smallest),
            charged="" if heading else phrases.components(group.charged),
            alike=f"{group.similarity:.0%} alike" if count > 1 and group.similarity < 1 else "",
            smallest=smallest,
            css_class=families.css_class(smallest),
            facts=phrases.moved_facts(smallest.facts.base, smallest.facts.head),
            moved=phrases.moved(smallest),
            unstable=error_clusters.unstable_words(smallest),
            diff=diffs.of(smallest, group.edit, limits.lines if place < limits.unfolded else 0),
            members=listed(group.members if count > 1 else (), limits.others),
            commands=tuple(commands.story(call, named.short, smallest)),
            measured=timing.gravest(group.members) if timing else "",
        )


def _reasons(group: ChangeGroup) -> tuple[str, ...]:
    if not report_classes.is_of_this_irdiff(group):
        return ("another version of irdiff wrote this run, with classes that this version does not know",)
    return tuple(repeats_counted(group.reasons))


def _others(edit: DistinctEdit) -> str:
    """Heads groups of no edited file, so that they do not seem to belong to the edit above."""
    cases = sum(len(group.members) for group in edit.groups)
    return f"the kernel's source did not change: {counted(cases, 'case')}"


def heading(edits: int, groups: int, *, are_timed: bool) -> str:
    """`7 change groups, of 2 edits`: an edit of source files may be several groups."""
    words = counted(groups, "change group")
    if groups != edits:
        words += f", of {counted(edits, 'edit')}"
    return words + (
        ", the gravest measurement first (timing changed the order of the rows; each group keeps its number)"
        if are_timed and groups > 1
        else ""
    )


def gravest(shown: Sequence[GroupLine], count: int) -> str:
    if not shown:
        return ""
    line = shown[0]
    measured = f" ({line.measured})" if line.measured else ""
    which = "The change" if count == 1 else f"The gravest of {count} change groups is group {line.number}"
    end = "" if line.title.endswith("…") else "."
    return f"{which}{measured}: {line.title}{end} Smallest example: {line.smallest.id}."


def left_out(risks: Iterable[str]) -> str:
    """`50 more groups: 5 hazard, 45 not shown`."""
    counts = Counter(risks)
    words = [f"{count} {name}" for name, count in counts.items()]
    return f"{counted(counts.total(), 'more group')}: {', '.join(words)}" if counts else ""
