"""One run as its readers see it. Terminal, Markdown and page print this, and decide nothing.

The order is that of the questions: is it safe, what is expected of its time, which figures moved, what was
changed and by whom, what is not known, and all else. What does not fit the limits is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from irdiff.backends.stages import in_stage_order
from irdiff.compare.cases import failed_program
from irdiff.diffs import launch_changes
from irdiff.diffs.group_diff import GroupDiffs
from irdiff.diffs.launch_changes import LaunchChange
from irdiff.model import Case, Fact, Radius, Revision, Run, RuntimeEdit, StageStatus, TestAnswer, Verdict
from irdiff.report import (
    commands,
    conclusion,
    distinct_edits,
    edit_coverage,
    error_clusters,
    expected_times,
    families,
    moved,
    phrases,
    projects,
    separating_option,
    tests_lines,
    witnesses,
)
from irdiff.report.conclusion import Conclusion
from irdiff.report.distinct_edits import DistinctEdit
from irdiff.report.error_clusters import SharedError
from irdiff.report.expected_times import LikelyRow
from irdiff.report.families import Family, Share
from irdiff.report.group_names import NamedGroup
from irdiff.report.moved import Movement, Outlier, StatisticMove
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingRow, TimingSummary, WrongOutput
from irdiff.resolve import packs
from irdiff.timing.results import Speed
from irdiff.words import counted, repeats_counted

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ListLimits:
    """The most entries of each list."""

    groups: int
    unfolded: int
    """Of these, the ones that are shown in full."""
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


VERDICTS = (
    *(Verdict.BROKEN, Verdict.CHANGED, Verdict.REMOVED, Verdict.FIXED, Verdict.ADDED, Verdict.ABSORBED),
    *(Verdict.UNCHANGED, Verdict.FAILING, Verdict.UNSUPPORTED),
)
"""In the order of reports."""
_DIGITS = 16
_SIGNS = {StageStatus.IDENTICAL: "·", StageStatus.EQUIVALENT: "=", StageStatus.CHANGED: "≠"}
_NOT_RECHECKED = "no case was compiled again (--no-recheck): any that changed may be nondeterministic"
_FEWEST_LINES = 6
"""Of a diff that shows anything."""
LISTED = ListLimits(groups=8, unfolded=8, lines=12, notes=8, rows=8)
"""Of a comment and a terminal."""
WHOLE = ListLimits(groups=40, unfolded=40, lines=24, notes=60, rows=60)
"""Of a document that is opened on purpose."""


@dataclass(frozen=True)
class Listed(Generic[T]):
    """The first entries of a list, and how many more there are."""

    rows: tuple[T, ...]
    more: int

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        return len(self.rows) + self.more


def listed(rows: Sequence[T], most: int) -> Listed[T]:
    return Listed(tuple(rows[:most]), max(0, len(rows) - most))


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Cases that ended alike, under one heading."""

    title: str
    errors: Listed[SharedError]


@dataclass(frozen=True, kw_only=True)
class StatisticRow:
    """One statistic over all targets."""

    name: str
    cells: tuple[Movement | None, ...]
    """By `moved_targets`."""

    @property
    def farthest(self) -> StatisticMove | None:
        """The case in which it moved by most."""
        moves = [moves[0] for cell in self.cells if cell for moves in (cell.up, cell.down) if moves]
        return max(moves, key=lambda move: (abs(move.relative), abs(move.head - move.base)), default=None)

    @property
    def up(self) -> int:
        return sum(len(cell.up) for cell in self.cells if cell)

    @property
    def down(self) -> int:
        return sum(len(cell.down) for cell in self.cells if cell)

    @property
    def words(self) -> str:
        return moved.counts(self.up, self.down)


@dataclass(frozen=True, kw_only=True)
class GroupLine(NamedGroup):
    """A change group in one line, and what is unfolded below it."""

    edit: str
    """What stands above the first group of an edit of kernels."""
    loud: bool
    targets: str
    culprit: str
    origin: str
    reasons: tuple[str, ...]
    """Why it has its class, in sentences that a reviewer can check; the first one decides."""
    witness: tuple[str, ...]
    """The lines of both sides that show a hazard."""
    charged: str
    alike: str
    smallest: Case
    css_class: str
    """Of its colour."""
    facts: Mapping[str, tuple[Fact, Fact]]
    """Those of the smallest case that moved, base and head."""
    moved: str
    unstable: str
    diff: tuple[str, ...]
    members: Listed[str]
    commands: tuple[str, ...]
    measured: str
    """What a GPU saw of its cases, where it is grave: `slower by up to 9.4 %`, `wrong results`."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    headline: str
    conclusion: Conclusion
    sides: str
    timing: TimingSummary | None
    wrong: Listed[WrongOutput]
    slower: Listed[TimingRow]
    unclear: Listed[TimingRow]
    expected: str
    """How many cases that were not measured are expected to be slower or faster; empty where none changed."""
    separating: str
    """The option that separates slower cases from faster ones; empty where none does."""
    likely: Listed[LikelyRow]
    broken: Ending
    projects: Listed[projects.BrokenCause]
    """What broke in the projects of packs."""
    verdicts: tuple[tuple[str, int], ...]
    """How many cases have each."""
    targets: tuple[str, ...]
    moved_targets: tuple[str, ...]
    """Those on which a statistic moved: the columns of `statistics`."""
    statistics: tuple[StatisticRow, ...]
    groups: tuple[GroupLine, ...]
    group_heading: str
    """`7 change groups, of 2 edits`: an edit of source files may be several groups."""
    group_count: int
    groups_left: str
    why: str
    """The command that gives the reason of a risk."""
    tests: tuple[str, ...]
    """Which tests launch what changed, a sentence each."""
    changed_tests: Listed[TestAnswer]
    unknown: Listed[str]
    """What was not compared, what no launch reads, what no case runs."""
    runtime: Listed[RuntimeEdit]
    endings: tuple[Ending, ...]
    """Nondeterministic, failing, fixed, added, removed."""
    movements: Listed[Movement]
    outliers: Listed[Outlier]
    """Of a bump, as what follows, which packs have too."""
    by_family: Listed[Movement]
    families: Listed[Family]
    """Or kernels, where all are of one family."""
    radius: tuple[tuple[str, Radius, Share], ...]
    """Of each target, and its cases by the stage in which their changes begin."""
    commands: tuple[str, ...]
    first_edit: str
    """The gravest edit with a case of it, for a reader who sees the headline alone."""
    excerpt: tuple[str, ...]
    """Machine code of that case, as a diff."""
    provenance_sides: tuple[tuple[str, str, str], ...]
    """Versions and digests: name, value at base, value at head."""
    provenance: tuple[tuple[str, str], ...]
    """The command and what it ran in: name and value."""
    launch_changes: tuple[tuple[LaunchChange, int], ...]

    @property
    def sign(self) -> str:
        """For a reader who sees the first line alone."""
        signs = {Conclusion.SUCCESS: "✅", Conclusion.NEUTRAL: "⚠️", Conclusion.FAILURE: "❌"}
        return signs[self.conclusion]

    @property
    def is_quiet(self) -> bool:
        """Nothing changed, and nothing was left unlooked at."""
        return self.conclusion is Conclusion.SUCCESS and not self.groups and not self.timing


def of(
    run: Run,
    diffs: GroupDiffs,
    timing: TimingSummary | None = None,
    limits: ListLimits = LISTED,
    *,
    as_: Shown = PLAIN,
) -> RunView:
    edits = distinct_edits.of(run)
    groups = as_.groups(run, edits)
    if timing:  # groups keep their numbers, by which they are called
        edits = distinct_edits.gravest_first(edits, timing.gravity)
        places = {
            group.id: place for place, group in enumerate(group for edit in edits for group in edit.groups)
        }
        groups.sort(key=lambda row: places[row.group.id])
    movements = [*moved.by_target(run), *as_.compile_times]
    moved_on = [target.name for target in run.targets if any(row.part == target.name for row in movements)]
    timed = timing.rows if timing else ()
    measured = {row.case_id for row in timed}
    lines = tuple(_group_lines(run, groups, edits, diffs, limits, as_.call, timing))
    return RunView(
        headline=as_.headline(run, edits, timing.sentence if timing else ""),
        conclusion=conclusion.of(run),
        sides=f"{phrases.sides(run)}, in {run.duration_s:.1f} s",
        timing=timing,
        wrong=listed(timing.wrong if timing else (), limits.rows),
        slower=listed([row for row in timed if row.measured.speed is Speed.SLOWER], limits.rows),
        unclear=listed([row for row in timed if row.measured.why], limits.rows),
        expected=expected_times.headline(run, measured),
        separating=separating_option.sentence(run, timed),
        likely=listed(expected_times.likely(run, measured), limits.rows),
        broken=_broken(run, limits),
        projects=listed(projects.broken(run), limits.rows),
        verdicts=tuple(_verdicts(run)),
        targets=tuple(target.name for target in run.targets),
        moved_targets=tuple(moved_on),
        statistics=_statistic_rows(movements, moved_on),
        groups=lines,
        group_heading=_group_heading(len(edits), len(groups)),
        group_count=len(groups),
        groups_left=_left(row.group.severity for row in groups[limits.groups :]),
        why=commands.explain(as_.call, "NUMBER"),
        tests=tuple(tests_lines.sentences(run.tests)) if run.tests else (),
        changed_tests=listed(tests_lines.changed(run.tests) if run.tests else (), limits.rows),
        unknown=_unknown(run, limits),
        runtime=listed(run.runtime, limits.rows),
        endings=_endings(run, limits),
        movements=listed(movements, 2 * limits.rows),
        outliers=listed(moved.outliers(movements) if as_.is_bump else (), limits.rows),
        by_family=listed(
            moved.by_family(run) if as_.is_bump or packs.projects(run.head.note) else (), 2 * limits.rows
        ),
        families=listed(families.compared(run), 2 * limits.rows),
        radius=tuple(
            (name, found, Share([case for case in run.cases if case.target == name]))
            for name, found in phrases.in_target_order(run)
        ),
        commands=_commands(run, lines, as_),
        first_edit=_first_edit(lines, len(groups)),
        excerpt=diffs.machine_code(lines[0].smallest, limits.lines) if lines else (),
        provenance_sides=tuple(_provenance_sides(run)[: 2 * limits.rows]),
        provenance=tuple(_provenance(run)[: 2 * limits.rows]),
        launch_changes=tuple(launch_changes.of_run(run)[: limits.rows]),
    )


def _with(run: Run, verdict: Verdict) -> list[Case]:
    return [case for case in run.cases if case.verdict is verdict]


def _verdicts(run: Run) -> Iterator[tuple[str, int]]:
    yield from ((name.value, count) for name in VERDICTS if (count := run.summary.verdicts[name]))
    if unstable := sum(bool(case.nondeterministic) for case in run.cases):
        yield "nondeterministic", unstable


# figures that moved


def _statistic_rows(movements: Iterable[Movement], targets: Sequence[str]) -> tuple[StatisticRow, ...]:
    by_name: dict[str, dict[str, Movement]] = {}
    for row in movements:
        by_name.setdefault(row.statistic.name, {})[row.part] = row
    return tuple(
        StatisticRow(name=name, cells=tuple(map(cells.get, targets))) for name, cells in by_name.items()
    )


# groups


def _group_heading(edits: int, groups: int) -> str:
    words = counted(groups, "change group")
    return words if groups == edits else f"{words}, of {counted(edits, 'edit')}"


def _group_lines(
    run: Run,
    rows: Sequence[NamedGroup],
    edits: Sequence[DistinctEdit],
    diffs: GroupDiffs,
    limits: ListLimits,
    call: str,
    timing: TimingSummary | None,
) -> Iterator[GroupLine]:
    cases = {case.id: case for case in run.cases}
    headings = {edit.groups[0].id: edit.words for edit in edits}
    for place, row in enumerate(rows[: limits.groups]):
        group, smallest = row.group, cases[row.group.representative]
        count = len(group.members)
        heading = headings.get(group.id, "")
        yield GroupLine(
            **vars(row),
            edit=heading,
            loud=phrases.is_loud(group),
            targets=phrases.members_by_target(group, cases),
            culprit=group.pass_name or group.origin_stage,
            origin=phrases.place(group.origin_stage, group.pass_name),
            reasons=tuple(repeats_counted(group.reasons)),
            witness=witnesses.of(smallest),
            charged="" if heading else ", ".join(component.value for component in group.charged),
            alike=f"{group.likeness:.0%} alike" if count > 1 and group.likeness < 1 else "",
            smallest=smallest,
            css_class=families.css_class(smallest),
            facts=phrases.moved_facts(smallest.facts.base, smallest.facts.head),
            moved=phrases.moved(smallest),
            unstable=error_clusters.unstable_words(smallest),
            diff=diffs.of(smallest, group.edit, limits.lines if place < limits.unfolded else 0),
            members=listed(group.members if count > 1 else (), limits.rows),
            commands=tuple(commands.story(call, row.short, smallest)),
            measured=timing.gravest(group.members) if timing else "",
        )


def _first_edit(lines: Sequence[GroupLine], count: int) -> str:
    if not lines:
        return ""
    gravest = lines[0]
    measured = f" ({gravest.measured})" if gravest.measured else ""
    first = "The change" if count == 1 else f"The first of {count} change groups"
    return f"{first}: {gravest.title} in {gravest.smallest.id}{measured}."


def _left(risks: Iterable[str]) -> str:
    """`50 more groups: 5 hazard, 45 not shown`."""
    counts = Counter(risks)
    words = [f"{count} {name}" for name, count in counts.items()]
    return f"{counted(counts.total(), 'more group')}: {', '.join(words)}" if counts else ""


# what is not known, and what else ended how


def _unknown(run: Run, limits: ListLimits) -> Listed[str]:
    asked = [] if run.options.recheck or not run.groups else [_NOT_RECHECKED]
    notes = listed([*edit_coverage.sentences(run), *run.notes, *asked], limits.notes)
    idle = listed([f"no case runs {place}" for place in edit_coverage.lines_not_run(run)], limits.rows)
    names = [f"renamed: {before} → {after}" for before, after in phrases.renamed(run)]
    renamed = listed(names, limits.rows)
    return Listed((*notes, *idle, *renamed), notes.more + idle.more + renamed.more)


def _endings(run: Run, limits: ListLimits) -> tuple[Ending, ...]:
    unstable = [
        _ending(f"nondeterministic: {words}", cases, limits.rows)
        for words, cases in error_clusters.unstable(run.cases)
    ]
    order = (Verdict.FAILING, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED)
    found = [_ending(verdict.value, _with(run, verdict), limits.rows) for verdict in order]
    return tuple(row for row in (*unstable, *found) if row.errors)


def _broken(run: Run, limits: ListLimits) -> Ending:
    cases = _with(run, Verdict.BROKEN)
    words = "compiles at base, not at head"
    if cases and all(map(failed_program, cases)):
        words = "not compared, since the program fails at head"
    return _ending(f"broken: {words}", cases, limits.rows)


def _ending(title: str, cases: Sequence[Case], most: int) -> Ending:
    shared = error_clusters.errors(sorted(cases, key=lambda case: case.id))
    return Ending(title=f"{title} ({len(cases)})", errors=listed(shared, most))


# details


def case_rows(run: Run, groups: Iterable[NamedGroup]) -> list[list[object]]:
    """Cells and colour of every case: what broke first, the rest in the order of `VERDICTS` and of groups."""
    number_of = {name: row.number for row in groups for name in row.group.members}
    last = len(run.groups) + 1

    def place(case: Case) -> tuple[int, int, str]:
        return VERDICTS.index(case.verdict), number_of.get(case.id, last), case.id

    return [_case_row(case, number_of.get(case.id)) for case in sorted(run.cases, key=place)]


def _case_row(case: Case, number: int | None) -> list[object]:
    signs = (name + _SIGNS[status] for name, status in in_stage_order(case.stages) if status in _SIGNS)
    return [
        case.id,
        case.verdict.value,
        error_clusters.unstable_words(case),
        phrases.place(case.origin.stage, case.origin.pass_name) if case.origin else "",
        " ".join(signs),
        phrases.moved(case, limit=4) or case.error or "",
        number,
        families.css_class(case),
    ]


def _commands(run: Run, rows: Sequence[GroupLine], as_: Shown) -> tuple[str, ...]:
    """To copy: what shows more of the first group, and what compares its example again anywhere."""
    page = commands.page(as_.call)
    if not rows:
        return (page,)
    words = (as_.fetch, *rows[0].commands, page, commands.again(run, rows[0].smallest))
    return tuple(filter(None, words))


def _provenance_sides(run: Run) -> list[tuple[str, str, str]]:
    base, head = _provenance_of(run.base), _provenance_of(run.head)
    rows = [(name, base.get(name, "none"), head.get(name, "none")) for name in {**base, **head}]
    return [row for row in rows if row[1] or row[2]]


def _provenance_of(side: Revision) -> dict[str, str]:
    """Digests by their beginning: `run.json` has them whole."""
    digests = {"digest": side.digest, "corpus": side.corpus, **side.ptxas}
    shown = {name: digest[:_DIGITS] for name, digest in digests.items()}
    return {"toolchain": side.spec, "version": side.version, **shown, "note": side.note}


def _provenance(run: Run) -> list[tuple[str, str]]:
    return [
        ("command", " ".join(("irdiff", *run.command))),
        ("irdiff", f"{run.irdiff_version}, normalizer {run.normalizer_version}, schema {run.schema}"),
        ("compared", f"{run.created}, in {run.duration_s:.1f} s"),
        *(("environment", f"{name}={value}") for name, value in run.environment.items()),
    ]
