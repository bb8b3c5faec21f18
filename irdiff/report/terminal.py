"""The terminal report: the verdict in words, what broke, the change groups, kernels by targets.

Where the output is no terminal (a pipe, the log of a job) it is plain ASCII without colour, and lines are
never wrapped: they can be searched. Groups come before tables, and commands to copy come last.
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

from irdiff import case_ids
from irdiff.model import Case, ChangeGroup, Run, Verdict
from irdiff.report import (
    bump_terminal,
    commands,
    edited,
    edited_lines,
    escape,
    families,
    reach,
    tables,
    together,
    wording,
)
from irdiff.report.rank import rank
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.tables import Column
from irdiff.stages import Stage, in_stage_order
from irdiff.words import counted

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


def show(
    run: Run,
    folder: Path,
    console: Console,
    timing: Forest | None = None,
    *,
    as_: Shown = PLAIN,
    limit: int | None = None,
) -> None:
    """At most `limit` groups and cases of each list."""
    plain = not console.is_terminal
    width = None if plain else console.width
    limits = ListLimits(groups=limit or _MAX_GROUPS, cases=limit or _MAX_LISTED, quiet=limit or _MAX_QUIET)
    footer = () if edited.same_compiler(run) else _footer(run, folder, as_)
    for line in (*_report(run, timing, limits, width, as_), *footer):
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
    limits = ListLimits(groups=_MAX_GROUPS_IN_PICTURE, cases=_MAX_LISTED, quiet=_MAX_QUIET)
    for line in _report(run, timing, limits, _SVG_WIDTH, PLAIN):
        console.print(line, highlight=False)
    # without the web fonts: a picture in a README must not fetch anything
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="irdiff report", code_format=form, unique_id="irdiff")


@dataclass(frozen=True, kw_only=True)
class ListLimits:
    """The most entries of each list. What is left out is counted."""

    groups: int
    cases: int
    quiet: int
    """Of cases that are no cause for alarm."""


def _report(
    run: Run, timing: Forest | None, limits: ListLimits, width: int | None, as_: Shown
) -> Iterator[Text]:
    yield Text(escape.terminal(as_.headline(run)), style="bold")
    yield Text(_sides(run))
    for sentence in filter(None, (edited.sentence(run), reach.sentence(run), edited_lines.sentence(run))):
        yield Text(escape.terminal(sentence))
    yield from _not_run(run)
    yield from _renamed(run)
    yield from _notes(run)
    if edited.same_compiler(run):
        return
    if timing:
        yield Text(escape.terminal(timing.headline), style="bold")
    yield from bump_terminal.lines(run) if as_.is_bump else ()
    yield from _failures(run, Verdict.BROKEN, limits.cases)
    yield from _groups(run, limits.groups, as_)
    yield from _singles(run, limits.cases)
    yield from _unstable(run)
    yield from _failures(run, Verdict.FIXED, limits.quiet)
    yield from _failures(run, Verdict.FAILING, limits.quiet)
    yield from _matrix(run, width)
    yield from _families(run, width)
    yield from _radius(run, width)


_FOOTER_WORDS = {"explain": "story", "diff": "lines", "report": "page"}


def _footer(run: Run, folder: Path, as_: Shown) -> Iterator[Text]:
    yield Text()
    yield Text(f"run folder: {escape.terminal(folder)}", style="dim")
    groups = as_.groups(run)
    cases = {case.id: case for case in run.cases}
    changed = next((case.id for case in run.cases if case.verdict is Verdict.CHANGED), "")
    case = cases.get(groups[0].group.representative if groups else changed)
    rows = [commands.page(as_.call)]
    if case is not None:
        rows = [*commands.story(as_.call, groups[0].short if groups else case.id, case), *rows]
    for command in rows:
        word = _FOOTER_WORDS[command.split()[1]]
        yield Text(f"{word:<7}{escape.terminal(command)}", style="dim")


def _sides(run: Run) -> str:
    return escape.terminal(f"{wording.sides(run)}  in {run.duration_s:.1f} s")


def _renamed(run: Run) -> Iterator[Text]:
    names = wording.renamed(run)
    for before, after in names[:_MAX_QUIET]:
        yield Text(f"renamed: {escape.terminal(before)} → {escape.terminal(after)}")
    if len(names) > _MAX_QUIET:
        yield Text(f"… and {len(names) - _MAX_QUIET} more renamed", style="dim")


def _not_run(run: Run) -> Iterator[Text]:
    """Edited lines that no case runs."""
    stretches = edited_lines.not_run(run)
    for stretch in stretches[:_MAX_LISTED]:
        yield Text(f"  no case runs {escape.terminal(stretch.sentence)}", style="yellow")
    if len(stretches) > _MAX_LISTED:
        yield Text(f"  … and {len(stretches) - _MAX_LISTED} more places", style="dim")


def _notes(run: Run) -> Iterator[Text]:
    for note in run.notes[:_MAX_LISTED]:
        yield Text(f"note: {escape.terminal(note)}", style="yellow")
    if len(run.notes) > _MAX_LISTED:
        yield Text(f"… and {len(run.notes) - _MAX_LISTED} more notes", style="dim")


# what broke, and what changed


def _failures(run: Run, verdict: Verdict, limit: int) -> Iterator[Text]:
    cases = [case for case in run.cases if case.verdict is verdict]
    if cases:
        yield from tables.heading(f"{verdict.value}: {len(cases)}")
    errors = together.errors(cases)
    for shared in errors[:limit]:
        words = escape.terminal(shared.words, limit=200)
        yield Text.assemble((escape.terminal(shared.names), _VERDICT_STYLE[verdict]), "  ", words)
    if len(errors) > limit:
        yield Text(f"… and {len(errors) - limit} more errors", style="dim")


def _unstable(run: Run) -> Iterator[Text]:
    """Cases in which base alone disagrees are told too: that head mended them is good news."""
    rows = together.unstable(run.cases)
    if rows:
        yield from tables.heading("nondeterministic: compiled again, a side gave other code")
    for words, cases in rows:
        yield Text(f"{words}: {counted(len(cases), 'case')}")
        yield from (Text(f"     {escape.terminal(case.id)}", style="dim") for case in cases[:_MAX_LISTED])
        if len(cases) > _MAX_LISTED:
            yield Text(f"     … and {len(cases) - _MAX_LISTED} more", style="dim")


def _groups(run: Run, limit: int, as_: Shown) -> Iterator[Text]:
    if not run.groups:
        return
    coverage = wording.coverage(run)
    yield from tables.heading("change groups" + (f": {coverage}" if coverage else ""))
    cases = {case.id: case for case in run.cases}
    for row in as_.groups(run)[:limit]:
        group = row.group
        style = "bold red" if wording.is_loud(group) else "bold"
        names = f"{row.number:>3}  {escape.terminal(row.short)}  "
        yield Text.assemble((names, "dim"), (_title(group), style))
        where = wording.members_by_target(group, cases)
        origin = (escape.terminal(wording.group_origin(group)), STAGE_STYLE.get(group.origin_stage, ""))
        count = counted(len(group.members), "case")
        words = escape.terminal(f"     {group.severity} · {count} ({where}) · from ")
        yield Text.assemble(words, origin)
        yield Text(escape.terminal(f"     {group.representative}"), style="dim")
    if len(run.groups) > limit:
        left_out = len(run.groups) - limit
        yield Text(f"… and {left_out} more groups: --limit {len(run.groups)} shows all", style="dim")


def _title(group: ChangeGroup) -> str:
    return escape.terminal(group.title.replace("`", ""))


def _singles(run: Run, limit: int) -> Iterator[Text]:
    cases = rank(wording.ungrouped(run, run.cases))
    if not cases:
        return
    yield from tables.heading(
        "changed cases" + (" outside of any group" if run.groups else ", by what moved")
    )
    width = max(len(case.id) for case in cases[:limit])
    for case in cases[:limit]:
        unstable = f"  {together.unstable_words(case)}" if case.nondeterministic else ""
        stage = case.origin.stage if case.origin else ""
        yield Text.assemble(
            escape.terminal(case.id).ljust(width),
            "  ",
            (escape.terminal(wording.origin(case)), STAGE_STYLE.get(stage, "")),
            "  ",
            escape.terminal(wording.moved(case, limit=4) + unstable),
        )
    if len(cases) > limit:
        yield Text(f"… and {len(cases) - limit} more: --limit {len(cases)} shows all", style="dim")


# kernels by targets


def _matrix(run: Run, width: int | None) -> Iterator[Text]:
    targets = [target.name for target in run.targets]
    cases: dict[str, dict[str, list[Case]]] = {}
    for case in run.cases:
        cases.setdefault(_launcher(case), {}).setdefault(case.target, []).append(case)
    rows = [
        [Text(escape.terminal(launcher)), *(_cell(by_target.get(name, ())) for name in targets)]
        for launcher, by_target in sorted(cases.items())
    ]
    if not rows:
        return
    yield from tables.heading("changed of all cases, by kernel and target, and the stages where it began")
    yield from tables.lines(_columns("kernel", *targets), rows, width)


def _launcher(case: Case) -> str:
    """The workload, and the kernel where one of its labels launches several, as a program does."""
    name = case_ids.parse(case.id)
    return f"{case.workload} {case.kernel}" if "/" in name.label else case.workload


def _columns(*names: str) -> list[Column]:
    return [Column(name=escape.terminal(name)) for name in names]


def _cell(cases: Sequence[Case]) -> Text:
    """`11/13 ttgir llir`: how many changed, and where that began, the most frequent first."""
    if not cases:
        return Text()
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
    return text


def _families(run: Run, width: int | None) -> Iterator[Text]:
    found = families.table(run)
    if not found:
        return
    columns = _columns("family", *(target.name for target in run.targets), "all targets")
    rows = [
        [Text(escape.terminal(family.name)), *map(_share, (*family.by_target, family.total))]
        for family in found
    ]
    yield from tables.heading("changed of compared cases, by family and target")
    yield from tables.lines(columns, rows, width)


def _share(share: families.Share) -> Text:
    style = _VERDICT_STYLE[Verdict.BROKEN] if share.broken else "" if share.changed else "dim green"
    return Text(share.words, style=style)


def _radius(run: Run, width: int | None) -> Iterator[Text]:
    rows = []
    for name, radius in wording.in_target_order(run):
        stages = "  ".join(
            f"{stage} {row.changed}/{row.compared}"
            for stage, row in in_stage_order(radius.stages)
            if row.compared
        )
        cells = (escape.terminal(name), f"{radius.changed}/{radius.compared}", f"{radius.fraction:.0%}")
        rows.append([*map(Text, cells), Text(escape.terminal(stages), style="dim")])
    if rows:
        yield from tables.heading("blast radius: changed of compared cases, and of each stage")
        yield from tables.lines(_columns("target", "changed", "", "stages"), rows, width)
