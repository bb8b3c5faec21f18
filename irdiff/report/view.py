"""One run as its readers see it, in the order of their questions. Terminal, Markdown and page print this, and
decide nothing. What does not fit the limits is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Radius, Run, RuntimeEdit, TestAnswer
from irdiff.report import (
    case_lists,
    commands,
    conclusion,
    detail_tables,
    distinct_edits,
    edit_coverage,
    endings,
    expected_times,
    families,
    group_lines,
    moved,
    phrases,
    projects,
    provenance,
    separating_option,
    tests_lines,
)
from irdiff.report.case_lists import CaseList
from irdiff.report.conclusion import Conclusion
from irdiff.report.detail_tables import DetailTable
from irdiff.report.endings import Ending
from irdiff.report.families import Family, Share
from irdiff.report.group_lines import GroupLine
from irdiff.report.lists import LISTED, Listed, ListLimits, listed
from irdiff.report.moved import Movement, StatisticMove
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingRow, TimingSummary
from irdiff.resolve import packs

_NOT_RECHECKED = (
    "no case was compiled again (--no-recheck), so any change may come from a nondeterministic compiler"
)


@dataclass(frozen=True, kw_only=True)
class StatisticRow:
    name: str
    cells: tuple[Movement | None, ...]
    """By `moved_targets`."""

    @property
    def farthest(self) -> StatisticMove | None:
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
class RunView:
    headline_sentences: Sequence[str]
    conclusion: Conclusion
    sides: str
    sentences: tuple[str, ...]
    """Paragraphs below the headline. Add a new sentence of a report here."""
    next_step: str
    timing: TimingSummary | None
    first_lists: tuple[CaseList, ...]
    """Before the figures and the groups."""
    broken: Ending
    projects: Listed[projects.BrokenCause]
    """Breakages in the projects of packs."""
    verdicts: tuple[tuple[str, int], ...]
    """Each with its number of cases."""
    targets: tuple[str, ...]
    moved_targets: tuple[str, ...]
    """Targets on which a statistic moved: the columns of `statistics`."""
    statistics: tuple[StatisticRow, ...]
    groups: tuple[GroupLine, ...]
    group_heading: str
    """`7 change groups, of 2 edits`: an edit of source files may be several groups."""
    group_count: int
    groups_left: str
    why: str
    """The command that gives the reason of a risk."""
    changed_tests: Listed[TestAnswer]
    unknown: Listed[str]
    runtime: Listed[RuntimeEdit]
    endings: tuple[Ending, ...]
    """Nondeterministic, failing, fixed, added, removed."""
    movements: Listed[Movement]
    detail_lists: tuple[CaseList, ...]
    """After the groups, folded where the format can fold."""
    detail_tables: tuple[DetailTable, ...]
    """After `detail_lists`."""
    families: Listed[Family]
    """Or kernels, if all are of one family."""
    radius: tuple[tuple[str, Radius, Share], ...]
    """Each target, with its cases by the stage in which their changes begin."""
    commands: tuple[str, ...]
    gravest_group: str
    """The gravest edit with a case of it, for a reader who sees only the headline."""
    excerpt: tuple[str, ...]
    provenance_sides: tuple[tuple[str, str, str], ...]
    """Versions and digests: name, value at base, value at head."""
    provenance: tuple[tuple[str, str], ...]

    @property
    def headline(self) -> str:
        return " ".join(self.headline_sentences)

    @property
    def sign(self) -> str:
        signs = {Conclusion.SUCCESS: "✅", Conclusion.NEUTRAL: "⚠️", Conclusion.FAILURE: "❌"}
        return signs[self.conclusion]

    @property
    def is_quiet(self) -> bool:
        """Nothing changed, and everything was compared."""
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
    edits_in_order, groups = group_lines.gravest_first(edits, as_.groups(run, edits), timing)
    movements = [*moved.by_target(run), *as_.compile_times]
    moved_on = [target.name for target in run.targets if any(each.part == target.name for each in movements)]
    timed = timing.rows if timing else ()
    lines = tuple(group_lines.lines(run, groups, edits_in_order, diffs, limits, as_.call, timing))
    most, twice = limits.others, 2 * limits.others
    return RunView(
        headline_sentences=as_.sentences(run, edits_in_order, timing.sentence if timing else ""),
        conclusion=conclusion.of(run, timing),
        sides=f"{phrases.sides(run)}, in {run.duration_s:.1f} s",
        sentences=tuple(filter(None, _sentences(run, timed))),
        next_step=as_.next_step,
        timing=timing,
        first_lists=case_lists.first(run, timing, most),
        broken=endings.broken(run, most),
        projects=listed(projects.broken(run), most),
        verdicts=tuple(endings.counts(run)),
        targets=tuple(target.name for target in run.targets),
        moved_targets=tuple(moved_on),
        statistics=_statistic_rows(movements, moved_on),
        groups=lines,
        group_heading=group_lines.heading(len(edits), len(groups), are_timed=timing is not None),
        group_count=len(groups),
        groups_left=group_lines.left_out(named.report_class for named in groups[limits.groups :]),
        why=commands.explain(as_.call, "NUMBER"),
        changed_tests=listed(tests_lines.changed(run.tests) if run.tests else (), most),
        unknown=_unknown(run, limits),
        runtime=listed(run.runtime, most),
        endings=endings.others(run, most),
        movements=listed(movements, twice),
        detail_lists=case_lists.details(
            run,
            timing,
            movements,
            most,
            is_bump=as_.is_bump,
            has_families=bool(as_.is_bump or packs.projects(run.head.note)),
        ),
        detail_tables=detail_tables.of(run, most),
        families=listed(families.compared(run), twice),
        radius=tuple(_radius(run)),
        commands=_commands(run, lines, as_),
        gravest_group=group_lines.gravest(lines, len(groups)),
        excerpt=diffs.machine_code(lines[0].smallest, limits.lines) if lines else (),
        provenance_sides=tuple(provenance.sides(run)[:twice]),
        provenance=tuple(provenance.circumstances(run)[:twice]),
    )


def _sentences(run: Run, timed: Sequence[TimingRow]) -> Iterator[str]:
    """Empty sentences are dropped."""
    if run.tests:
        yield from tests_lines.sentences(run.tests)
    yield separating_option.sentence(run, timed)
    yield expected_times.headline(run, {timing.case_id for timing in timed})


def _statistic_rows(movements: Iterable[Movement], targets: Sequence[str]) -> tuple[StatisticRow, ...]:
    by_name: dict[str, dict[str, Movement]] = {}
    for movement in movements:
        by_name.setdefault(movement.statistic.name, {})[movement.part] = movement
    return tuple(
        StatisticRow(name=name, cells=tuple(map(cells.get, targets))) for name, cells in by_name.items()
    )


def _radius(run: Run) -> Iterator[tuple[str, Radius, Share]]:
    for target, radius in phrases.in_target_order(run):
        yield target, radius, Share([case for case in run.cases if case.target == target])


def _unknown(run: Run, limits: ListLimits) -> Listed[str]:
    unchecked = [] if run.options.recheck or not run.groups else [_NOT_RECHECKED]
    notes = listed([*edit_coverage.sentences(run), *run.notes, *unchecked], limits.notes)
    idle = listed([f"no case runs {place}" for place in edit_coverage.lines_not_run(run)], limits.others)
    names = [f"renamed: {before} → {after}" for before, after in phrases.renamed(run)]
    renamed = listed(names, limits.others)
    return Listed((*notes, *idle, *renamed), notes.more + idle.more + renamed.more)


def _commands(run: Run, lines: Sequence[GroupLine], as_: Shown) -> tuple[str, ...]:
    """Lists commands that show more of the first group, and that compare its example again anywhere."""
    page = commands.page(as_.call)
    if not lines:
        return (page,)
    words = (as_.fetch, *lines[0].commands, page, commands.again(run, lines[0].smallest))
    return tuple(filter(None, words))
