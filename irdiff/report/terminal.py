"""The terminal summary: the verdict in words, a matrix kernel × target, the changed cases by what moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from irdiff.model import Case, Fact, Run, Verdict
from irdiff.report.rank import moved_facts, rank

STAGE_STYLE = {
    "launch": "bright_magenta",
    "source": "magenta",
    "ttir": "magenta",
    "ttgir": "red",
    "llir": "yellow",
    "ptx": "cyan",
    "amdgcn": "cyan",
    "sass": "blue",
}
_VERDICT_MARK = {
    Verdict.UNCHANGED: ("·", "green"),
    Verdict.ABSORBED: ("absorbed", "dim"),
    Verdict.BROKEN: ("BROKEN", "bold white on red"),
    Verdict.FIXED: ("fixed", "green"),
    Verdict.FAILING: ("failing", "dim red"),
    Verdict.ADDED: ("added", "green"),
    Verdict.REMOVED: ("removed", "red"),
    Verdict.UNSUPPORTED: ("–", "dim"),
}
_MAX_ROWS = 40


def show(run: Run, folder: Path, console: Console) -> None:
    console.print(headline(run), style="bold", highlight=False)
    console.print(_sides(run), highlight=False)
    console.print(_matrix(run))
    console.print(_legend(run), highlight=False)
    console.print(_radius(run))
    _show_failures(run, console)
    _show_ranked(run, console)
    console.print(f"\nrun folder: {escape(str(folder))}", style="dim", highlight=False, soft_wrap=True)
    console.print(
        "one case: irdiff diff last CASE      all: irdiff report last --html report.html",
        style="dim",
        highlight=False,
    )


def headline(run: Run) -> str:
    """The verdict in words and counts: the first line of every report."""
    counts, total = run.summary.verdicts, run.summary.compared
    changed = counts.get(Verdict.CHANGED, 0)
    parts = [
        f"{changed} of {total} compared cases changed"
        if changed
        else f"no code changed in {total} compared cases"
    ]
    for verdict in (
        Verdict.BROKEN,
        Verdict.FIXED,
        Verdict.ABSORBED,
        Verdict.ADDED,
        Verdict.REMOVED,
        Verdict.FAILING,
        Verdict.UNSUPPORTED,
    ):
        if counts.get(verdict):
            parts.append(f"{counts[verdict]} {verdict.value}")
    unstable = sum(bool(case.nondeterministic) for case in run.cases)
    if unstable:
        parts.append(f"{unstable} nondeterministic")
    return ", ".join(parts)


def _sides(run: Run) -> str:
    rows = [f"{side.spec} ({side.version}, {side.digest[:12]})" for side in (run.base, run.head)]
    return escape(f"{rows[0]}  →  {rows[1]}   {run.duration_s:.1f} s")


def _matrix(run: Run) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("workload")
    targets = [target.name for target in run.targets]
    for name in targets:
        table.add_column(name, justify="left")
    cells: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in run.cases:
        cells[case.workload][case.target].append(case)
    for workload in sorted(cells):
        table.add_row(escape(workload), *(_cell(cells[workload][name]) for name in targets))
    return table


def _cell(cases: Sequence[Case]) -> Text:
    """One mark a launch: a dot where nothing changed, else the first changed stage, with a count."""
    text = Text()
    marks: dict[tuple[str, str], int] = defaultdict(int)
    for case in cases:
        if case.verdict is Verdict.CHANGED:
            stage = case.origin.stage if case.origin else "?"
            marks[stage, STAGE_STYLE.get(stage, "white")] += 1
        else:
            marks[_VERDICT_MARK[case.verdict]] += 1
    for (mark, style), count in sorted(marks.items(), key=lambda row: row[0][0] == "·"):
        if text:
            text.append(" ")
        text.append(
            mark * min(count, 8) if mark == "·" else mark + (f"×{count}" if count > 1 else ""), style=style
        )
    return text


def _legend(run: Run) -> Text:
    text = Text("first changed stage: ", style="dim")
    used = {case.origin.stage for case in run.cases if case.origin and case.verdict is Verdict.CHANGED}
    for stage, style in STAGE_STYLE.items():
        if stage in used:
            text.append(stage + " ", style=style)
    text.append("  · unchanged", style="green")
    return text


def _radius(run: Run) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("blast radius", "changed", "compared", "", "stages changed"):
        table.add_column(name, justify="right" if name in ("changed", "compared", "") else "left")
    for name, radius in run.summary.radius.items():
        stages = "  ".join(
            f"{stage} {row.changed}/{row.compared}" for stage, row in radius.stages.items() if row.compared
        )
        table.add_row(name, str(radius.changed), str(radius.compared), f"{radius.fraction:.0%}", stages)
    return table


def _show_failures(run: Run, console: Console) -> None:
    loud = [case for case in run.cases if case.verdict in (Verdict.BROKEN, Verdict.FAILING, Verdict.FIXED)]
    for case in loud[:_MAX_ROWS]:
        style = "red" if case.verdict is Verdict.BROKEN else "dim"
        console.print(
            f"{case.verdict.value:8} {escape(case.id)}: {escape((case.error or '')[:160])}",
            style=style,
            highlight=False,
        )
    if len(loud) > _MAX_ROWS:
        console.print(f"… and {len(loud) - _MAX_ROWS} more", style="dim")


def _show_ranked(run: Run, console: Console) -> None:
    ranked = rank(run.cases)
    if not ranked:
        return
    table = Table(
        box=None,
        padding=(0, 1),
        header_style="dim",
        title="changed cases, by what moved",
        title_justify="left",
    )
    for name in ("case", "from", "what moved"):
        table.add_column(name, overflow="fold")
    for case in ranked[:_MAX_ROWS]:
        stage = case.origin.stage if case.origin else "?"
        note = " nondeterministic: " + ", ".join(case.nondeterministic) if case.nondeterministic else ""
        moved = moved_facts(case.facts.base, case.facts.head)
        table.add_row(
            escape(case.id), Text(stage, style=STAGE_STYLE.get(stage, "white")), _moved(moved) + note
        )
    console.print(table)
    if len(ranked) > _MAX_ROWS:
        console.print(f"… and {len(ranked) - _MAX_ROWS} more; all are in the HTML report", style="dim")


def _moved(moved: Mapping[str, tuple[Fact, Fact]]) -> str:
    shown = list(moved.items())[:6]
    text = ", ".join(
        f"{name} {before:g} → {after:g}"
        if isinstance(before, (int, float)) and isinstance(after, (int, float))
        else f"{name} {before} → {after}"
        for name, (before, after) in shown
    )
    more = f" (+{len(moved) - len(shown)})" if len(moved) > len(shown) else ""
    return (text or "code only: no resource or instruction count moved") + more
