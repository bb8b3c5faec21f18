"""Prints the report in a terminal, line by line. Without a terminal it is plain ASCII without colour, and
lines are never wrapped, so they can be searched.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from irdiff.backends.stages import in_stage_order
from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Meaning, Run
from irdiff.report import escape, tables, view
from irdiff.report.case_lists import CaseList
from irdiff.report.detail_tables import DetailTable
from irdiff.report.endings import Ending
from irdiff.report.group_lines import GroupLine
from irdiff.report.lists import LISTED
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.tables import Column
from irdiff.report.view import RunView, StatisticRow
from irdiff.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    from irdiff.report.timing_summary import TimingSummary

_ALARM, _DIM = "bold red", "dim"
_ASCII = str.maketrans(
    {"→": "->", "×": "x", "·": "-", "…": "...", "≠": "!=", "≤": "<=", "≥": ">=", "µ": "u", "█": "#", "░": "."}
)
_SVG_WIDTH = 118
_ERROR = 200
_BAR = 10
_UP = "█"
_GAP = "  "
_LIMITS = replace(LISTED, unfolded=0, others=12)
_COMMANDS = {
    "explain": "explain group 1",
    "diff": "show its lines",
    "report": "write a page",
    "compare": "compare one case",
}
_OF_MEANING = {str(meaning) for meaning in Meaning}
_LABEL = 1 + max(map(len, _COMMANDS.values()))
_WIDE = 100
"""The most characters of a line about a group."""


def show(
    run: Run,
    folder: Path,
    console: Console,
    timing: TimingSummary | None = None,
    *,
    as_: Shown = PLAIN,
    limit: int | None = None,
) -> None:
    """Shows at most `limit` groups and cases of each list."""
    plain = not console.is_terminal
    limits = _LIMITS
    if limit:
        limits = replace(limits, groups=limit, others=limit, notes=limit)
    shown = view.of(run, GroupDiffs(folder, run), timing, limits, as_=as_)
    for line in (*_lines(shown, None if plain else console.width), *_footer(shown, folder)):
        text = Text(line.plain.translate(_ASCII)) if plain else line
        text.rstrip()
        console.print(text, soft_wrap=plain or line.no_wrap is not False, highlight=False)


def svg(run: Run, timing: TimingSummary | None = None) -> str:
    """Returns the same bytes for the same run."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    console = Console(
        record=True, width=_SVG_WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO()
    )
    shown = view.of(run, GroupDiffs(Path(), run), timing, _LIMITS)
    for line in _lines(shown, _SVG_WIDTH):
        console.print(line, highlight=False)
    # without the web fonts: a picture in a README must not fetch anything
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="irdiff report", code_format=form, unique_id="irdiff")


def _lines(shown: RunView, width: int | None) -> Iterator[Text]:
    whole = escape.terminal(shown.headline, limit=len(shown.headline))
    yield Text(whole, style="bold", no_wrap=False)
    yield _said(shown.sides, _DIM)
    yield from (_said(sentence.replace("`", "")) for sentence in shown.sentences)
    yield from _ending(shown.broken, "bold white on red")
    yield from (_said(cause.title) for cause in shown.projects)
    for cases in shown.first_lists:
        yield from _case_list(cases)
    yield from _statistics(shown, width)
    yield from _groups(shown, width)
    yield from _unknown(shown)
    yield from _details(shown, width)


def _said(text: str, style: str = "") -> Text:
    return Text(escape.terminal(text), style=style, no_wrap=False)


def _line(text: object, style: str = "") -> Text:
    return Text(escape.terminal(text), style=style)


def _case(name: str, style: str, words: str, limit: int = escape.LINE_LIMIT) -> Text:
    return Text.assemble((escape.terminal(name), style), "  ", escape.terminal(words, limit=limit))


def _section(title: str, lines: Iterable[Text], more: int = 0, noun: str = "") -> Iterator[Text]:
    """Yields nothing without lines."""
    shown = list(lines)
    yield from tables.heading(escape.terminal(title)) if shown else ()
    yield from shown
    if more:
        yield _line(f"… and {counted(more, f'more {noun}')} (--limit)", _DIM)


# what matters most


def _ending(ending: Ending, style: str = "") -> Iterator[Text]:
    error_lines = (_case(shared.names, style, shared.words, _ERROR) for shared in ending.errors)
    return _section(ending.title, error_lines, ending.errors.more, "error")


def _case_list(cases: CaseList) -> Iterator[Text]:
    style = _ALARM if cases.is_alarm else ""
    lines = (_case(line.name, style, line.words) for line in cases.lines)
    return _section(cases.title, lines, cases.lines.more, cases.noun)


def _statistics(shown: RunView, width: int | None) -> Iterator[Text]:
    if not shown.statistics:
        return
    yield from tables.heading(f"figures that moved, with the number of cases ({_UP}: the share that went up)")
    names = [[Text(statistic.name), _bar(statistic)] for statistic in shown.statistics]
    columns = _columns("", "", *shown.moved_targets)
    cells = [[Text(cell.words if cell else "") for cell in statistic.cells] for statistic in shown.statistics]
    table = [[*left, *right] for left, right in zip(names, cells, strict=True)]
    if not tables.fits(columns, table, width):
        columns = _columns("", "", "")
        table = [
            [*left, Text(statistic.words)] for left, statistic in zip(names, shown.statistics, strict=True)
        ]
    yield from tables.lines(columns, table, width)
    farthest = [(statistic.name, statistic.farthest) for statistic in shown.statistics if statistic.farthest]
    far = [(Text(name), _line(f"{move.case_id} {move.words}")) for name, move in farthest]
    yield from tables.lines(_columns("largest move", ""), far, None) if far else ()


def _bar(statistic: StatisticRow) -> Text:
    up = round(_BAR * statistic.up / (statistic.up + statistic.down)) if statistic.up + statistic.down else 0
    up = min(max(up, statistic.up > 0), _BAR - (statistic.down > 0))
    return Text.assemble(_UP * up, ("░" * (_BAR - up), _DIM))


def _groups(shown: RunView, width: int | None) -> Iterator[Text]:
    if not shown.groups:
        return
    yield from tables.heading(f"{shown.group_heading}: number, cases, what changed, where it began")
    room = min(width or _WIDE, _WIDE)
    risk = ""
    for line in shown.groups:
        if line.edit:
            risk = ""
            yield _line(line.edit)
        if line.report_class != risk:
            risk = line.report_class
            yield _line(
                f"meaning: {risk}" if risk in _OF_MEANING else f"{risk}:", "bold red" if line.loud else "bold"
            )
        yield _group(line, room, is_aligned=width is not None)
    if shown.groups_left:
        yield _said(f"… {shown.groups_left} (--limit {shown.group_count})", _DIM)
    partly = next((line for line in shown.groups if line.is_partly_risky), None)
    if partly:
        risky, count = partly.short_title.risky, len(partly.group.members)
        yield _said(
            f"{risky}/{count}: {partly.report_class} in {risky} of the {count} cases of the group", _DIM
        )
    if any(line.short_title.risky for line in shown.groups):
        yield _said(f"why: {shown.why}", _DIM)


def _group(line: GroupLine, room: int, *, is_aligned: bool) -> Text:
    """Leaves out the pass, and then the measurement, if the edit would not fit beside them."""
    risky = f"{line.short_title.risky}/" if line.is_partly_risky else ""
    start = f"{line.number:>3} {f'{risky}{len(line.group.members)}':>5}  "
    room -= len(start)
    both = ", ".join(filter(None, (line.measured, line.divergence)))
    ends = [_GAP + escape.terminal(words) if words else "" for words in (both, line.measured)]
    if not line.short_title.within(room):
        end = ends[0]
    else:
        end = next((end for end in ends if line.short_title.within(room - len(end))), "")
    words = escape.terminal(line.short_title.cut(room - len(end)).replace("`", ""))
    end = end.rjust(room - len(words)) if end and is_aligned else end
    return Text.assemble((start, _DIM), (words, "red" if line.loud else ""), (end, _DIM))


def _unknown(shown: RunView) -> Iterator[Text]:
    lines = (_said(f"- {line}", "yellow") for line in shown.unknown)
    return _section("not compared, and other notes", lines, shown.unknown.more, "note")


# details


def _details(shown: RunView, width: int | None) -> Iterator[Text]:
    for ending in shown.endings:
        yield from _ending(ending)
    for cases in shown.detail_lists:
        yield from _case_list(cases)
    for table in shown.detail_tables:
        yield from _detail_table(table, width)
    if shown.radius:
        lines = tables.lines(_columns("target", "changed", "", "stages"), list(_radius(shown)), width)
        yield from _section(
            "blast radius: changed / compared cases, in all and for each stage (of the cases that have it)",
            lines,
        )


def _detail_table(table: DetailTable, width: int | None) -> Iterator[Text]:
    cells = [[_line(cell) for cell in row] for row in table.rows]
    lines = tables.lines(_columns(*table.columns), cells, width)
    return _section(table.title, lines, table.rows.more, table.noun)


def _radius(shown: RunView) -> Iterator[list[Text]]:
    for name, radius, cases in shown.radius:
        counts_by_stage = [
            (stage, counts) for stage, counts in in_stage_order(radius.stages) if counts.compared
        ]
        stages = "  ".join(f"{stage} {counts.changed}/{counts.compared}" for stage, counts in counts_by_stage)
        share = f"{radius.changed}/{radius.compared}"
        broken = f", {cases.broken} broken" if cases.broken else ""
        percent = f"{radius.fraction:.0%}" if radius.compared else ""
        yield [_line(name), Text(f"{share}{broken}"), Text(percent), _line(stages, _DIM)]


def _columns(*names: str) -> list[Column]:
    return [Column(name=escape.terminal(name)) for name in names]


def _footer(shown: RunView, folder: Path) -> Iterator[Text]:
    yield Text()
    yield _line(f"run folder: {folder}", _DIM)
    labels = dict(_COMMANDS)
    if shown.groups:
        labels["explain"] = f"explain group {shown.groups[0].number}"
    for command in shown.commands:
        yield _line(f"{labels.get(command.split()[1], 'fetch the run'):<{_LABEL}}{command}", _DIM)
