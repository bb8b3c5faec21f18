"""The report in a terminal: a view, printed line by line.

Where the output is no terminal (a pipe, the log of a job) it is plain ASCII without colour, and lines are
never wrapped: they can be searched. Commands to copy come last.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Run
from irdiff.report import escape, phrases, tables, view
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.tables import Column
from irdiff.report.view import LISTED, Ending, GroupLine, RunView, StatisticRow
from irdiff.stages import Stage, in_stage_order

if TYPE_CHECKING:
    from rich.console import Console

    from irdiff.report.timing_summary import TimingSummary

_BAD, _GOOD, _DIM = "red", "green", "dim"
_STAGE_STYLE: Mapping[str, str] = {
    Stage.LAUNCH: "bright_magenta",
    Stage.SOURCE: "magenta",
    Stage.TTIR: "magenta",
    Stage.TTGIR: "red",
    Stage.LLIR: "yellow",
    Stage.PTX: "cyan",
    Stage.AMDGCN: "cyan",
    Stage.SASS: "blue",
}
_ASCII = str.maketrans(
    {"→": "->", "×": "x", "·": "-", "…": "...", "≠": "!=", "≤": "<=", "≥": ">=", "µ": "u", "█": "#", "░": "."}
)
_SVG_WIDTH = 118
_ERROR = 200
_BAR = 10
_ROWS = 12
_WORDS, _CELL = 26, 28
"""Columns that a row about a statistic begins with, and those of a target with its sum."""
_COMMANDS = {"explain": "story", "diff": "lines", "report": "page", "compare": "again"}
_WIDE = 100
"""Characters that a line about a group has where there is room."""


def show(
    run: Run,
    folder: Path,
    console: Console,
    timing: TimingSummary | None = None,
    *,
    as_: Shown = PLAIN,
    limit: int | None = None,
) -> None:
    """At most `limit` groups and cases of each list."""
    plain = not console.is_terminal
    limits = replace(LISTED, unfolded=0, rows=_ROWS)
    if limit:
        limits = replace(limits, groups=limit, rows=limit, notes=limit)
    shown = view.of(run, GroupDiffs(folder, run), timing, limits, as_=as_)
    for line in (*_lines(shown, None if plain else console.width), *_footer(shown, folder)):
        text = Text(line.plain.translate(_ASCII)) if plain else line
        text.rstrip()
        console.print(text, soft_wrap=plain or line.no_wrap is not False, highlight=False)


def svg(run: Run, timing: TimingSummary | None = None) -> str:
    """A picture of the report as a terminal shows it; the same bytes for the same run."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    console = Console(
        record=True, width=_SVG_WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO()
    )
    limits = replace(LISTED, unfolded=0, rows=_ROWS)
    shown = view.of(run, GroupDiffs(Path(), run), timing, limits)
    for line in _lines(shown, _SVG_WIDTH):
        console.print(line, highlight=False)
    # without the web fonts: a picture in a README must not fetch anything
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="irdiff report", code_format=form, unique_id="irdiff")


def _lines(shown: RunView, width: int | None) -> Iterator[Text]:
    yield _said(shown.headline, "bold")
    yield _said(f"{shown.sides}  in {shown.duration_s:.1f} s", _DIM)
    if shown.timing:
        yield _said(shown.timing.headline, "bold")
    if shown.compared:
        yield from _ending(shown.broken, "bold white on red")
        yield from _timed(shown)
        yield from _statistics(shown, width)
        yield from _groups(shown, width)
    yield from _unknown(shown)
    if shown.compared:
        yield from _details(shown, width)


def _said(text: str, style: str = "") -> Text:
    return Text(escape.terminal(text), style=style, no_wrap=False)


def _line(text: object, style: str = "") -> Text:
    return Text(escape.terminal(text), style=style)


def _case(name: str, style: str, words: str, limit: int = escape.LINE_LIMIT) -> Text:
    return Text.assemble((escape.terminal(name), style), "  ", escape.terminal(words, limit=limit))


def _more(count: int, what: str) -> Iterator[Text]:
    if count:
        yield _line(f"… and {count} more {what}: --limit shows them", _DIM)


# what matters most


def _ending(found: Ending, style: str = "") -> Iterator[Text]:
    if not found.errors:
        return
    yield from tables.heading(escape.terminal(found.title))
    for shared in found.errors:
        yield _case(shared.names, style, shared.words, _ERROR)
    yield from _more(found.errors.more, "errors")


def _timed(shown: RunView) -> Iterator[Text]:
    if shown.wrong or shown.slower:
        yield from tables.heading("wrong results and slower cases" if shown.wrong else "slower")
    yield from (_case(row.case_id, "bold red", row.words) for row in shown.wrong)
    yield from (_case(row.case_id, _BAD, row.words) for row in shown.slower)
    yield from _more(shown.wrong.more + shown.slower.more, "cases")


def _statistics(shown: RunView, width: int | None) -> Iterator[Text]:
    if not shown.statistics:
        return
    yield from tables.heading("better and worse")
    columns = _columns("", "", *shown.moved_targets)
    wide = width is None or _WORDS + _CELL * len(shown.moved_targets) <= width
    rows = [
        [
            Text(row.name),
            _bar(row),
            *(Text("" if cell is None else cell.summary if wide else cell.words) for cell in row.cells),
        ]
        for row in shown.statistics
    ]
    yield from tables.lines(columns, rows, width)
    worst = [
        (Text(row.name), _line(f"{row.worst.case_id} {row.worst.words}"))
        for row in shown.statistics
        if row.worst
    ]
    yield from tables.lines(_columns("worst", ""), worst, None) if worst else ()
    if shown.quiet:
        yield _line(shown.quiet, _DIM)


def _bar(row: StatisticRow) -> Text:
    """How many got worse, of those that moved."""
    worse = round(_BAR * row.worse / (row.worse + row.better)) if row.worse + row.better else 0
    worse = min(max(worse, row.worse > 0), _BAR - (row.better > 0))
    return Text.assemble(("█" * worse, _BAD), ("░" * (_BAR - worse), _GOOD))


def _groups(shown: RunView, width: int | None) -> Iterator[Text]:
    if not shown.groups:
        return
    edits = "one edit" if shown.group_count == 1 else f"{shown.group_count} distinct edits"
    yield from tables.heading(edits)
    most = min(width, _WIDE) if width else max(_WIDE, *(len(group.title) + _WIDE for group in shown.groups))
    places = [escape.terminal(phrases.fitted(group.culprit, most // 3)) for group in shown.groups]
    severity = ""
    for group, place in zip(shown.groups, places, strict=True):
        if group.severity != severity:
            severity = group.severity
            yield _line(severity, "bold red" if group.loud else "bold")
        yield _group(group, place, most - max(map(len, places)))
    if shown.groups_left:
        yield _line(f"… {shown.groups_left} (--limit {shown.group_count})", _DIM)


def _group(group: GroupLine, place: str, width: int) -> Text:
    """One line: number and name, in how many cases, what the edit is, and where it begins."""
    names = f"{group.number:>3} {escape.terminal(group.short)} {group.cases:>9}  "
    room = width - len(names) - 2
    title = escape.terminal(phrases.fitted(group.title.replace("`", ""), room))
    return Text.assemble(
        (names, _DIM),
        (title.ljust(room), "red" if group.loud else ""),
        ("  " + place, _STAGE_STYLE.get(group.stage, "")),
    )


def _unknown(shown: RunView) -> Iterator[Text]:
    if shown.unknown:
        yield from tables.heading("not compared, and other notes")
    yield from (_said(line, "yellow") for line in shown.unknown)
    yield from _more(shown.unknown.more, "notes")


# details


def _details(shown: RunView, width: int | None) -> Iterator[Text]:
    if shown.singles:
        yield from tables.heading("changed cases" + (" outside of any group" if shown.groups else ""))
    for row in shown.singles:
        where = f"  {row.origin}  " if row.origin else "  "
        yield _line(f"{row.id}{where}{row.moved}")
    yield from _more(shown.singles.more, "changed cases")
    for found in shown.endings:
        yield from _ending(found)
    yield from _bump(shown)
    if shown.families:
        names = ("family", *shown.targets, "all targets")
        rows = [
            [_line(row.name), *(Text(share.words) for share in (*row.by_target, row.total))]
            for row in shown.families
        ]
        yield from tables.heading("changed of compared, by family and target")
        yield from tables.lines(_columns(*names), rows, width)
    if shown.radius:
        yield from tables.heading("blast radius: changed of compared, and of each stage")
        yield from tables.lines(_columns("target", "changed", "", "stages"), list(_radius(shown)), width)


def _radius(shown: RunView) -> Iterator[list[Text]]:
    for name, radius in shown.radius:
        rows = [(stage, row) for stage, row in in_stage_order(radius.stages) if row.compared]
        stages = "  ".join(f"{stage} {row.changed}/{row.compared}" for stage, row in rows)
        share = f"{radius.changed}/{radius.compared}"
        yield [_line(name), Text(share), Text(f"{radius.fraction:.0%}"), _line(stages, _DIM)]


def _columns(*names: str) -> list[Column]:
    return [Column(name=escape.terminal(name)) for name in names]


def _bump(shown: RunView) -> Iterator[Text]:
    """Distributions and outliers: of a bump."""
    if not shown.is_bump:
        return
    names = ("statistic", "target", "worse", "better", "same", "least", "5 %", "median", "95 %", "greatest")
    rows = [
        [row.statistic.name, row.part, len(row.worse), len(row.better), row.same, *row.far]
        for row in shown.movements
    ]
    if rows:
        yield from tables.heading("distributions: relative change over all compared cases")
        columns = [Column(name=name, right=place >= 2) for place, name in enumerate(names)]
        yield from tables.lines(columns, [[_line(cell) for cell in row] for row in rows], None)
    if shown.outliers:
        yield from tables.heading(f"outliers: {shown.outliers.total}")
    for row in shown.outliers:
        yield _case(row.case_id, _BAD if row.worse else _GOOD, "; ".join(row.why))
    yield from _more(shown.outliers.more, "outliers")
    if shown.by_family:
        yield from tables.heading("better and worse, by family and target")
    for part in shown.by_family:
        yield _line(f"{part.part}  {part.statistic.name}: {part.words}")
    yield from _more(shown.by_family.more, "rows")


def _footer(shown: RunView, folder: Path) -> Iterator[Text]:
    if not shown.compared:
        return
    yield Text()
    yield _line(f"run folder: {folder}", _DIM)
    for command in shown.commands:
        word = _COMMANDS.get(command.split()[1], "first")
        if word != "again":
            yield _line(f"{word:<7}{command}", _DIM)
