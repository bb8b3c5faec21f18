"""One run as its readers see it. Terminal, Markdown and page print this, and decide nothing.

The order is that of the questions: is it safe, what got better and worse, what was changed and by whom, what
is not known, and all else. What does not fit the limits is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from irdiff.diffs import launch_changes
from irdiff.diffs.group_diff import GroupDiffs
from irdiff.diffs.launch_changes import LaunchChange
from irdiff.group.severity import Severity
from irdiff.model import Case, ChangeGroup, Radius, Run, Verdict
from irdiff.report import (
    commands,
    edited,
    edited_lines,
    error_clusters,
    families,
    moved,
    provenance,
    reach,
    wording,
)
from irdiff.report.error_clusters import SharedError
from irdiff.report.families import Family
from irdiff.report.group_names import NamedGroup
from irdiff.report.moved import Movement, Outlier, StatisticMove
from irdiff.report.rank import rank
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingRow, TimingSummary
from irdiff.words import counted


@dataclass(frozen=True, kw_only=True)
class ListLimits:
    """The most entries of each list."""

    groups: int
    unfolded: int
    """Of these, the ones that are told of in full."""
    lines: int
    """Of a group's diff."""
    notes: int
    rows: int
    """Of every other list."""

    def tighter(self) -> ListLimits:
        """Fewer of all; of what the first screen has, only where little else is left."""
        scarce = not self.unfolded

        def less(count: int, least: int = 0) -> int:
            return max(least, count * 3 // 4)

        return ListLimits(
            groups=less(self.groups, 1) if scarce else self.groups,
            unfolded=less(self.unfolded) if self.lines <= _FEWEST_LINES else self.unfolded,
            lines=less(self.lines, _FEWEST_LINES),
            notes=less(self.notes, 2) if scarce else self.notes,
            rows=less(self.rows, 1 if scarce else 3),
        )


_FEWEST_LINES = 6
"""Of a diff that tells anything."""
LISTED = ListLimits(groups=8, unfolded=8, lines=12, notes=8, rows=8)
"""Of a comment and a terminal."""
WHOLE = ListLimits(groups=40, unfolded=40, lines=24, notes=60, rows=60)
"""Of a document that is opened on purpose."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """The first entries of a list, and how many more there are."""

    lines: tuple[str, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class Failing:
    """Cases that ended alike, under one heading."""

    title: str
    errors: tuple[SharedError, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class StatisticRow:
    """One statistic over all targets."""

    name: str
    cells: tuple[Movement | None, ...]
    """By `moved_targets`."""
    worst: StatisticMove | None
    """The case in which it got worse by most."""

    @property
    def worse(self) -> int:
        return sum(len(cell.worse) for cell in self.cells if cell)

    @property
    def better(self) -> int:
        return sum(len(cell.better) for cell in self.cells if cell)


@dataclass(frozen=True, kw_only=True)
class GroupLine:
    """A change group in one line, and what is unfolded below it."""

    number: int
    short: str
    title: str
    """What the edit is, without figures: for a line."""
    whole_title: str
    severity: str
    loud: bool
    count: int
    cases: str
    targets: str
    culprit: str
    stage: str
    origin: str
    charged: str
    alike: str
    reason: str
    representative: str
    moved: str
    diff: tuple[str, ...]
    members: tuple[str, ...]
    more_members: int


@dataclass(frozen=True, kw_only=True)
class SingleCase:
    id: str
    origin: str
    moved: str


@dataclass(frozen=True, kw_only=True)
class RunView:
    headline: str
    sides: str
    base: str
    head: str
    duration_s: float
    compared: bool
    """Whether anything was compared: False for two compilers that are the same."""
    timing: TimingSummary | None
    slower: tuple[TimingRow, ...]
    more_slower: int
    unclear: tuple[TimingRow, ...]
    more_unclear: int
    broken: Failing
    targets: tuple[str, ...]
    moved_targets: tuple[str, ...]
    """Those on which a statistic moved: the columns of `statistics`."""
    statistics: tuple[StatisticRow, ...]
    quiet: str
    """How many changed cases moved in nothing that counts."""
    groups: tuple[GroupLine, ...]
    group_count: int
    groups_left: str
    singles: tuple[SingleCase, ...]
    more_singles: int
    unknown: Told
    """What was not compared, what no launch reads, what no case runs."""
    endings: tuple[Failing, ...]
    """Nondeterministic, failing, fixed, added, removed."""
    movements: tuple[Movement, ...]
    is_bump: bool
    outliers: tuple[Outlier, ...]
    """Of a bump, as what follows."""
    by_family: tuple[Movement, ...]
    families: tuple[Family, ...]
    radius: tuple[tuple[str, Radius], ...]
    commands: tuple[str, ...]
    provenance_sides: tuple[tuple[str, str, str], ...]
    provenance: tuple[tuple[str, str], ...]
    launch_changes: tuple[tuple[LaunchChange, int], ...]


def of(
    run: Run,
    diffs: GroupDiffs,
    timing: TimingSummary | None = None,
    limits: ListLimits = LISTED,
    *,
    as_: Shown = PLAIN,
) -> RunView:
    cases = {case.id: case for case in run.cases}
    ranked = rank(run.cases)
    rows = as_.groups(run)
    singles = wording.ungrouped(run, ranked)
    movements = moved.by_target(run)
    parts = {row.part for row in movements}
    moved_on = [target.name for target in run.targets if target.name in parts]
    slower = [row for row in (timing.rows if timing else ()) if row.verdict == "slower"]
    unclear = [row for row in (timing.rows if timing else ()) if row.why]
    found_families = families.table(run)
    return RunView(
        headline=as_.headline(run),
        sides=wording.sides(run),
        base=wording.side(run.base),
        head=wording.side(run.head),
        duration_s=run.duration_s,
        compared=not edited.same_compiler(run),
        timing=timing,
        slower=tuple(slower[: limits.rows]),
        more_slower=max(0, len(slower) - limits.rows),
        unclear=tuple(unclear[: limits.rows]),
        more_unclear=max(0, len(unclear) - limits.rows),
        broken=_ending("broken: compiles at base, not at head", _with(run, Verdict.BROKEN), limits.rows),
        targets=tuple(target.name for target in run.targets),
        moved_targets=tuple(moved_on),
        statistics=statistic_rows(movements, moved_on),
        quiet=_quiet(ranked),
        groups=tuple(
            _group(row, cases, diffs, limits if place < limits.unfolded else replace(limits, lines=0))
            for place, row in enumerate(rows[: limits.groups])
        ),
        group_count=len(rows),
        groups_left=_left(row.group for row in rows[limits.groups :]),
        singles=tuple(map(_single, singles[: limits.rows])),
        more_singles=max(0, len(singles) - limits.rows),
        unknown=_unknown(run, limits),
        endings=_endings(run, limits),
        movements=tuple(movements),
        is_bump=as_.is_bump,
        outliers=tuple(moved.outliers(movements)) if as_.is_bump else (),
        by_family=tuple(moved.by_family(run)) if as_.is_bump else (),
        families=tuple(found_families[: 2 * limits.rows]),
        radius=tuple(wording.in_target_order(run)),
        commands=_commands(run, rows, ranked, as_),
        provenance_sides=tuple(provenance.sides(run)[: 2 * limits.rows]),
        provenance=tuple(provenance.rows(run)[: 2 * limits.rows]),
        launch_changes=tuple(launch_changes.of_run(run)[: limits.rows]),
    )


def _with(run: Run, verdict: Verdict) -> list[Case]:
    return [case for case in run.cases if case.verdict is verdict]


# better and worse


def statistic_rows(movements: Iterable[Movement], targets: Sequence[str]) -> tuple[StatisticRow, ...]:
    by_name: dict[str, dict[str, Movement]] = {}
    for row in movements:
        by_name.setdefault(row.statistic.name, {})[row.part] = row
    return tuple(
        StatisticRow(name=name, cells=tuple(map(cells.get, targets)), worst=_worst(cells.values()))
        for name, cells in by_name.items()
    )


def _worst(cells: Iterable[Movement]) -> StatisticMove | None:
    moves = [cell.worse[0] for cell in cells if cell.worse]
    return max(moves, key=lambda move: (abs(move.relative), abs(move.head - move.base)), default=None)


def _quiet(changed: Sequence[Case]) -> str:
    count = sum(map(moved.only_scheduled, changed))
    return f"in {count} of them only the schedule or names of registers moved" if count else ""


# groups


def _group(row: NamedGroup, cases: Mapping[str, Case], diffs: GroupDiffs, limits: ListLimits) -> GroupLine:
    group = row.group
    count = len(group.members)
    smallest = cases.get(group.representative)
    return GroupLine(
        number=row.number,
        short=row.short,
        title=wording.brief(group.title),
        whole_title=group.title,
        severity=group.severity,
        loud=wording.is_loud(group),
        count=count,
        cases=counted(count, "case"),
        targets=wording.members_by_target(group, cases),
        culprit=group.pass_name or group.origin_stage,
        stage=group.origin_stage,
        origin=wording.group_origin(group),
        charged=wording.charged(group),
        alike=f"{group.likeness:.0%} alike" if count > 1 and group.likeness < 1 else "",
        reason=wording.first_reason(group),
        representative=group.representative,
        moved=wording.moved(smallest) if smallest else "not in this run",
        diff=diffs.of(smallest, group.edit, limits.lines) if smallest else (),
        members=group.members[: limits.rows] if count > 1 else (),
        more_members=max(0, count - limits.rows) if count > 1 else 0,
    )


def _left(groups: Iterable[ChangeGroup]) -> str:
    """`50 more groups: 5 wrong-result risk, 45 resources`."""
    counts = Counter(group.severity for group in groups)
    known = [name.value for name in Severity]
    order = sorted(counts, key=lambda name: known.index(name) if name in known else len(known))
    words = [f"{counts[name]} {name}" for name in order]
    return f"{counted(counts.total(), 'more group')}: {', '.join(words)}" if counts else ""


def _single(case: Case) -> SingleCase:
    unstable = f" ({error_clusters.unstable_words(case)})" if case.nondeterministic else ""
    return SingleCase(id=case.id, origin=wording.origin(case), moved=wording.moved(case, limit=4) + unstable)


# what is not known, and what else ended how


def _unknown(run: Run, limits: ListLimits) -> Told:
    sentences = [reach.sentence(run) or edited.sentence(run), edited_lines.sentence(run)]
    lines = [*filter(None, sentences), *run.notes]
    stretches = [f"no case runs {stretch.sentence}" for stretch in edited_lines.not_run(run)]
    renamed = [f"renamed: {before} → {after}" for before, after in wording.renamed(run)]
    shown = [*lines[: limits.notes], *stretches[: limits.rows], *renamed[: limits.rows]]
    return Told(lines=tuple(shown), more=len(lines) + len(stretches) + len(renamed) - len(shown))


def _endings(run: Run, limits: ListLimits) -> tuple[Failing, ...]:
    unstable = [
        _ending(f"nondeterministic: {words}", cases, limits.rows)
        for words, cases in error_clusters.unstable(run.cases)
    ]
    order = (Verdict.FAILING, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED)
    found = [_ending(verdict.value, _with(run, verdict), limits.rows) for verdict in order]
    return tuple(row for row in (*unstable, *found) if row.errors)


def _ending(title: str, cases: Sequence[Case], most: int) -> Failing:
    shared = error_clusters.errors(sorted(cases, key=lambda case: case.id))
    shown = tuple(shared[:most])
    return Failing(title=f"{title} ({len(cases)})", errors=shown, more=len(shared) - len(shown))


# details


def _commands(run: Run, rows: Sequence[NamedGroup], ranked: Sequence[Case], as_: Shown) -> tuple[str, ...]:
    """To copy: what tells more of the first group, or case, and what compares it again anywhere."""
    cases = {case.id: case for case in run.cases}
    case = cases.get(rows[0].group.representative) if rows else ranked[0] if ranked else None
    if case is None:
        return (commands.page(as_.call),)
    words = [*commands.story(as_.call, rows[0].short if rows else case.id, case), commands.page(as_.call)]
    return tuple(filter(None, (as_.fetch, *words, commands.again(run, case))))
