"""The terminal report: the verdict in words, what broke, the change groups, kernels by targets.

Where the output is no terminal (a pipe, the log of a job) it is plain ASCII without colour, and lines are
never wrapped: they can be searched.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from irdiff.model import Case, ChangeGroup, Run, Verdict
from irdiff.report import edited, escape, families, reach, wording
from irdiff.report.rank import rank
from irdiff.stages import Stage, in_stage_order

if TYPE_CHECKING:
    from rich.console import Console

    from irdiff.report.forest import Forest

STAGE_STYLE: Mapping[str, str] = {
    Stage.LAUNCH: "bright_magenta",
    Stage.SOURCE: "magenta",
    Stage.TTIR: "magenta",
    Stage.TTGIR: "red",
    Stage.LLIR: "yellow",
    Stage.PTX: "cyan",
    Stage.AMDGCN: "cyan",
    Stage.SASS: "blue",
}
_VERDICT_STYLE = {
    Verdict.UNCHANGED: "green",
    Verdict.ABSORBED: "dim",
    Verdict.BROKEN: "bold white on red",
    Verdict.FIXED: "green",
    Verdict.FAILING: "dim red",
    Verdict.ADDED: "green",
    Verdict.REMOVED: "red",
    Verdict.UNSUPPORTED: "dim",
}
_ASCII = str.maketrans({"→": "->", "×": "x", "·": "-", "…": "...", "≠": "!=", "≤": "<=", "≥": ">=", "µ": "u"})
_MAX_LISTED = 30
_MAX_GROUPS = 15
_MAX_GROUPS_IN_PICTURE = 8
_MAX_QUIET = 5
_MAX_CELL_MARKS = 3
_SVG_WIDTH = 118

headline = wording.headline


def show(run: Run, folder: Path, console: Console, timing: Forest | None = None) -> None:
    plain = not console.is_terminal
    footer = () if edited.same_compiler(run) else _footer(folder)
    for line in (*_report(run, timing, _MAX_GROUPS), *footer):
        text = Text(line.plain.translate(_ASCII)) if plain else line
        text.rstrip()
        console.print(text, soft_wrap=True, highlight=False)


def svg(run: Run, timing: Forest | None = None) -> str:
    """A picture of the report as a terminal shows it; the same bytes for the same run."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    console = Console(
        record=True, width=_SVG_WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO()
    )
    for line in _report(run, timing, _MAX_GROUPS_IN_PICTURE):
        console.print(line, highlight=False)
    # without the web fonts: a picture in a README must not fetch anything
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="irdiff report", code_format=form, unique_id="irdiff")


def _report(run: Run, timing: Forest | None, max_groups: int) -> Iterator[Text]:
    yield Text(headline(run), style="bold")
    yield Text(_sides(run))
    for sentence in filter(None, (edited.sentence(run), reach.sentence(run))):
        yield Text(escape.terminal(sentence))
    yield from _notes(run)
    if edited.same_compiler(run):
        return
    if timing:
        yield Text(escape.terminal(timing.headline), style="bold")
    yield from _failures(run, Verdict.BROKEN, _MAX_LISTED)
    yield from _groups(run, max_groups)
    yield from _singles(run)
    yield from _failures(run, Verdict.FIXED, _MAX_QUIET)
    yield from _failures(run, Verdict.FAILING, _MAX_QUIET)
    yield from _matrix(run)
    yield from _families(run)
    yield from _radius(run)


def _footer(folder: Path) -> Iterator[Text]:
    yield Text()
    yield Text(f"run folder: {escape.terminal(folder)}", style="dim")
    yield Text("one case: irdiff diff RUN CASE    page: irdiff report RUN --html report.html", style="dim")


def _sides(run: Run) -> str:
    rows = [f"{wording.side(side)} ({side.digest[:12]})" for side in (run.base, run.head)]
    return escape.terminal(f"{rows[0]} → {rows[1]}  in {run.duration_s:.1f} s")


def _notes(run: Run) -> Iterator[Text]:
    for note in run.notes[:_MAX_LISTED]:
        yield Text(f"note: {escape.terminal(note)}", style="yellow")
    if len(run.notes) > _MAX_LISTED:
        yield Text(f"… and {len(run.notes) - _MAX_LISTED} more notes", style="dim")


def _heading(text: str) -> Iterator[Text]:
    yield Text()
    yield Text(text, style="bold underline")


# what broke, and what changed


def _failures(run: Run, verdict: Verdict, limit: int) -> Iterator[Text]:
    cases = [case for case in run.cases if case.verdict is verdict]
    if cases:
        yield from _heading(f"{verdict.value}: {len(cases)}")
    for case in cases[:limit]:
        error = escape.terminal(case.error or "", limit=100)
        yield Text.assemble((escape.terminal(case.id), _VERDICT_STYLE[verdict]), "  ", error)
    if len(cases) > limit:
        yield Text(f"… and {len(cases) - limit} more", style="dim")


def _groups(run: Run, limit: int) -> Iterator[Text]:
    if not run.groups:
        return
    coverage = wording.coverage(run)
    yield from _heading("change groups" + (f": {coverage}" if coverage else ""))
    cases = {case.id: case for case in run.cases}
    for number, group in enumerate(wording.ordered_groups(run)[:limit], 1):
        style = "bold red" if wording.is_loud(group) else "bold"
        yield Text.assemble((f"{number:>3}  ", "dim"), (_title(group), style))
        where = wording.members_by_target(group, cases)
        origin = (escape.terminal(wording.group_origin(group)), STAGE_STYLE.get(group.origin_stage, ""))
        count = wording.cases_in_words(len(group.members))
        words = escape.terminal(f"     {group.severity} · {count} ({where}) · from ")
        yield Text.assemble(words, origin)
        yield Text(escape.terminal(f"     {group.representative}"), style="dim")
    if len(run.groups) > limit:
        left_out = len(run.groups) - limit
        yield Text(f"… and {left_out} more groups: all are in the HTML report", style="dim")


def _title(group: ChangeGroup) -> str:
    return escape.terminal(group.title.replace("`", ""))


def _singles(run: Run) -> Iterator[Text]:
    cases = wording.ungrouped(run, rank(run.cases))
    if not cases:
        return
    yield from _heading("changed cases" + (" outside of any group" if run.groups else ", by what moved"))
    width = max(len(case.id) for case in cases[:_MAX_LISTED])
    for case in cases[:_MAX_LISTED]:
        unstable = f"  nondeterministic: {', '.join(case.nondeterministic)}" if case.nondeterministic else ""
        stage = case.origin.stage if case.origin else ""
        yield Text.assemble(
            escape.terminal(case.id).ljust(width),
            "  ",
            (escape.terminal(wording.origin(case)), STAGE_STYLE.get(stage, "")),
            "  ",
            escape.terminal(wording.moved(case, limit=4) + unstable),
        )
    if len(cases) > _MAX_LISTED:
        yield Text(f"… and {len(cases) - _MAX_LISTED} more: all are in the HTML report", style="dim")


# kernels by targets


@dataclass(frozen=True)
class _Cell:
    text: Text

    @property
    def width(self) -> int:
        return self.text.cell_len


def _matrix(run: Run) -> Iterator[Text]:
    targets = [target.name for target in run.targets]
    cases: dict[str, dict[str, list[Case]]] = {}
    for case in run.cases:
        cases.setdefault(case.workload, {}).setdefault(case.target, []).append(case)
    rows = [
        [
            _Cell(Text("kernel", style="dim")),
            *(_Cell(Text(escape.terminal(name), style="dim")) for name in targets),
        ]
    ]
    rows += [
        [_Cell(Text(escape.terminal(workload))), *(_cell(by_target.get(name, ())) for name in targets)]
        for workload, by_target in sorted(cases.items())
    ]
    yield from _heading("changed of all cases, by kernel and target, with the first changed stages")
    yield from _aligned(rows)


def _aligned(rows: Sequence[Sequence[_Cell]]) -> Iterator[Text]:
    widths = [max(cell.width for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell.text)
            line.append(" " * (width - cell.width + 2))
        line.rstrip()
        yield line


def _cell(cases: Sequence[Case]) -> _Cell:
    """`11/13 ttgir llir`: how many changed, and where that began, the most frequent first."""
    if not cases:
        return _Cell(Text())
    changed = [case for case in cases if case.verdict is Verdict.CHANGED]
    text = Text(f"{len(changed)}/{len(cases)}", style="" if changed else "dim green")
    stages = Counter(case.origin.stage if case.origin else "?" for case in changed)
    marks = [
        (escape.terminal(stage), STAGE_STYLE.get(stage, ""))
        for stage, _ in stages.most_common(_MAX_CELL_MARKS)
    ]
    quiet = (Verdict.CHANGED, Verdict.UNCHANGED, Verdict.ABSORBED)
    others = Counter(case.verdict for case in cases if case.verdict not in quiet)
    marks += [(verdict.value, _VERDICT_STYLE[verdict]) for verdict in others]
    for mark, style in marks:
        text.append(" ")
        text.append(mark, style=style)
    return _Cell(text)


def _families(run: Run) -> Iterator[Text]:
    found = families.table(run)
    if not found:
        return
    names = ["family", *(target.name for target in run.targets), "all targets"]
    rows = [[_Cell(Text(escape.terminal(name), style="dim")) for name in names]]
    for family in found:
        shares = [_Cell(_share(share)) for share in (*family.by_target, family.total)]
        rows.append([_Cell(Text(escape.terminal(family.name))), *shares])
    yield from _heading("changed of compared cases, by family and target")
    yield from _aligned(rows)


def _share(share: families.Share) -> Text:
    style = _VERDICT_STYLE[Verdict.BROKEN] if share.broken else "" if share.changed else "dim green"
    return Text(share.words, style=style)


def _radius(run: Run) -> Iterator[Text]:
    yield from _heading("blast radius: changed of compared cases, and of each stage")
    rows = []
    for name, radius in wording.in_target_order(run):
        stages = "  ".join(
            f"{stage} {row.changed}/{row.compared}"
            for stage, row in in_stage_order(radius.stages)
            if row.compared
        )
        cells = (escape.terminal(name), f"{radius.changed}/{radius.compared}", f"{radius.fraction:.0%}")
        rows.append(
            [*(_Cell(Text(cell)) for cell in cells), _Cell(Text(escape.terminal(stages), style="dim"))]
        )
    yield from _aligned(rows) if rows else ()
