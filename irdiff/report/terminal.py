"""The report in a terminal: a view, printed line by line.

Where the output is no terminal (a pipe, the log of a job) it is plain ASCII without colour, and lines are
never wrapped: they can be searched. Commands to copy come last.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Run
from irdiff.report import escape, phrases, tables, view
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.tables import Column
from irdiff.report.view import LISTED, Ending, RunView, StatisticRow
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
_COMMANDS = {"explain": "why", "diff": "lines", "report": "page", "compare": "again"}
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
    yield _said(shown.sides, _DIM)
    if shown.timing:
        yield _said(shown.timing.headline, "bold")
    if shown.compared:
        yield from _ending(shown.broken, "bold white on red")
        yield from (_said(cause.title) for cause in shown.projects)
        yield from _timed(shown)
        yield from _statistics(shown, width)
        yield from _groups(shown, width)
    yield from _unknown(shown)
    if shown.compared:
        yield from _details(shown, width)


def _said(text: str, style: str = "") -> Text:
    """Prose, which is wrapped."""
    return Text(escape.terminal(text), style=style, no_wrap=False)


def _line(text: object, style: str = "") -> Text:
    return Text(escape.terminal(text), style=style)


def _case(name: str, style: str, words: str, limit: int = escape.LINE_LIMIT) -> Text:
    return Text.assemble((escape.terminal(name), style), "  ", escape.terminal(words, limit=limit))


def _section(title: str, lines: Iterable[Text], more: int = 0, what: str = "") -> Iterator[Text]:
    """Nothing where there are no lines."""
    shown = list(lines)
    yield from tables.heading(escape.terminal(title)) if shown else ()
    yield from shown
    if more:
        yield _line(f"… and {more} more {what}: --limit shows them", _DIM)


# what matters most


def _ending(found: Ending, style: str = "") -> Iterator[Text]:
    rows = (_case(shared.names, style, shared.words, _ERROR) for shared in found.errors)
    return _section(found.title, rows, found.errors.more, "errors")


def _timed(shown: RunView) -> Iterator[Text]:
    wrong = (_case(row.case_id, "bold red", row.words) for row in shown.wrong)
    yield from _section("wrong results and faults when run", wrong, shown.wrong.more, "cases")
    slower = (_case(row.case_id, _BAD, row.words) for row in shown.slower)
    yield from _section("slower", slower, shown.slower.more, "cases")


def _statistics(shown: RunView, width: int | None) -> Iterator[Text]:
    if not shown.statistics:
        return
    wide = width is None or _WORDS + _CELL * len(shown.moved_targets) <= width
    yield from tables.heading(
        "better and worse" + ": kernels, and by how much the sum over them moved" * wide
    )
    columns = _columns("", "", *shown.moved_targets)
    rows, worst = [], []
    for row in shown.statistics:
        cells = ("" if cell is None else cell.summary if wide else cell.words for cell in row.cells)
        rows.append([Text(row.name), _bar(row), *map(Text, cells)])
        if row.worst:
            worst.append((Text(row.name), _line(f"{row.worst.case_id} {row.worst.words}")))
    yield from tables.lines(columns, rows, width)
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
    yield from tables.heading(shown.edits)
    most = min(width, _WIDE) if width else sys.maxsize
    places = [escape.terminal(phrases.fitted(group.culprit, most // 3)) for group in shown.groups]
    names = [f"{row.number:>3} {escape.terminal(row.short)} {row.cases:>9}  " for row in shown.groups]
    room = most - max(map(len, places)) - max(map(len, names)) - 2
    titles = [escape.terminal(phrases.fitted(row.title.replace("`", ""), room)) for row in shown.groups]
    severity = ""
    for row, name, title, place in zip(shown.groups, names, titles, places, strict=True):
        if row.edit:
            severity = ""
            yield _line(row.edit)
        if row.group.severity != severity:
            severity = row.group.severity
            yield _line(severity, "bold red" if row.loud else "bold")
        yield Text.assemble(
            (name, _DIM),
            (title.ljust(max(map(len, titles))), "red" if row.loud else ""),
            ("  " + place, _STAGE_STYLE.get(row.group.origin_stage, "")),
        )
    if shown.groups_left:
        yield _line(f"… {shown.groups_left} (--limit {shown.group_count})", _DIM)


def _unknown(shown: RunView) -> Iterator[Text]:
    lines = (_said(f"- {line}", "yellow") for line in shown.unknown)
    return _section("not compared, and other notes", lines, shown.unknown.more, "notes")


# details


def _details(shown: RunView, width: int | None) -> Iterator[Text]:
    singles = (_line(f"{row.short}  {row.origin}  {row.title}") for row in shown.singles)
    title = "changed cases" + (" outside of any group" if shown.groups else "")
    yield from _section(title, singles, shown.singles.more, "changed cases")
    for found in shown.endings:
        yield from _ending(found)
    yield from _bump(shown)
    if shown.families:
        names = ("family", *shown.targets, "all targets")
        shares = [[row.name, *(s.words for s in (*row.by_target, row.total))] for row in shown.families]
        table = tables.lines(_columns(*names), [list(map(_line, row)) for row in shares], width)
        yield from _section("changed of compared, by family and target", table)
    if shown.radius:
        table = tables.lines(_columns("target", "changed", "", "stages"), list(_radius(shown)), width)
        yield from _section("blast radius: changed of compared, and of each stage", table)


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
        columns = [Column(name=name, right=place >= 2) for place, name in enumerate(names)]
        table = tables.lines(columns, [[_line(cell) for cell in row] for row in rows], None)
        yield from _section("distributions: relative change over all compared cases", table)
    far = (_case(row.case_id, _BAD if row.worse else _GOOD, "; ".join(row.why)) for row in shown.outliers)
    yield from _section(f"outliers: {shown.outliers.total}", far, shown.outliers.more, "outliers")
    parts = (_line(f"{row.part}  {row.statistic.name}: {row.words}") for row in shown.by_family)
    yield from _section("better and worse, by family and target", parts, shown.by_family.more, "rows")


def _footer(shown: RunView, folder: Path) -> Iterator[Text]:
    if not shown.compared:
        return
    yield Text()
    yield _line(f"run folder: {folder}", _DIM)
    for command in shown.commands:
        word = _COMMANDS.get(command.split()[1], "first")
        if word != "again":
            yield _line(f"{word:<7}{command}", _DIM)
