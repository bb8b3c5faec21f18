"""`irdiff diff-runs OLD NEW`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from irdiff.cli import options, run_argument, screen
from irdiff.cli.run_argument import GivenRun
from irdiff.config import Config
from irdiff.errors import ExitCode
from irdiff.model import ChangeGroup
from irdiff.report import commands, escape, group_names, headline, run_changes
from irdiff.report.group_names import NamedGroup
from irdiff.report.run_changes import ChangedGroup, RunChanges
from irdiff.words import counted

_LISTED = 15


@click.command("diff-runs")
@run_argument.argument("old")
@run_argument.argument("new")
@options.limit_option
@click.option("--exit-code", is_flag=True, help="End with 1 where the runs found something different.")
@options.json_option
@options.configured
def diff_runs_command(
    *, old: str, new: str, limit: int | None, exit_code: bool, json_path: Path | None, config: Config
) -> int:
    """Show what is new, gone, or changed between two runs, as of two pushes to a pull request.

    OLD and NEW are run folders, zip or tar files of them, `last`, or names that `irdiff runs` lists. A group
    is the same in both where its cases have the same kind of edit; it is changed where other cases are in it,
    or a case of it has another concrete edit.
    """
    with run_argument.opened(old, config) as before, run_argument.opened(new, config) as after:
        found = run_changes.between(before.run, after.run)
    if json_path:
        options.write_json(json_path, _as_json(found))
    if str(json_path) != "-":
        screen.print_lines(Console(), _lines(found, (before, after), limit or _LISTED))
    return ExitCode.ANSWER_IS_NO if exit_code and not found.is_empty else ExitCode.DONE


def _lines(found: RunChanges, given: tuple[GivenRun, GivenRun], limit: int) -> Iterator[Text]:
    yield Text(escape.terminal(found.counts.sentence(given[0].call)), style="bold")
    for name, one in zip(("old", "new"), given, strict=True):
        yield Text(escape.terminal(f"{name} {one.call}: {headline.of(one.run)}"), style="dim")
    for note in found.notes:
        yield Text(f"note: {escape.terminal(note)}", style="yellow")
    names = [{row.group.id: row for row in group_names.named(one.run)} for one in given]
    yield from _part("new groups", [_group(group, names[1]) for group in found.new], limit)
    yield from _part("gone groups", [_group(group, names[0]) for group in found.gone], limit)
    yield from _part("changed groups", [_changed(row, names[1]) for row in found.changed], limit)
    yield from _part("cases with another verdict, edit or facts", list(map(str, found.cases)), limit)
    yield from _part("cases that only the old run looked at", found.only_old, limit)
    yield from _part("cases that only the new run looked at", found.only_new, limit)
    shown = [*found.new, *(row.new for row in found.changed)]
    if shown:
        command = commands.explain(given[1].call, names[1][shown[0].id].short)
        yield Text(f"\n{escape.terminal(command)}", style="dim")


def _part(title: str, lines: Sequence[str], limit: int) -> Iterator[Text]:
    if lines:
        yield Text(f"\n{title}: {len(lines)}", style="bold underline")
    for line in lines[:limit]:
        yield Text(escape.terminal(f"  {line}"))
    if len(lines) > limit:
        yield Text(f"  … and {len(lines) - limit} more: --limit {len(lines)} shows all", style="dim")


def _group(group: ChangeGroup, names: dict[str, NamedGroup]) -> str:
    row = names[group.id]
    title = group.title.replace("`", "")
    return f"{row.number:>3} {row.short}  {title}  ({counted(len(group.members), 'case')})"


def _changed(row: ChangedGroup, names: dict[str, NamedGroup]) -> str:
    parts = ((row.joined, "more"), (row.left, "fewer"), (row.edited, "with another edit"))
    words = [f"{len(cases)} {word}" for cases, word in parts if cases]
    return f"{_group(row.new, names)}: {', '.join(words)}"


def _as_json(found: RunChanges) -> dict[str, Any]:
    return {
        "schema": "irdiff-run-changes/1",
        "new": [group.id for group in found.new],
        "gone": [group.id for group in found.gone],
        "changed": [
            {"group": row.new.id, "joined": row.joined, "left": row.left, "edited": row.edited}
            for row in found.changed
        ],
        "cases": [
            {
                "case": row.id,
                "verdicts": [row.old.verdict.value, row.new.verdict.value],
                "edits": [row.old.edit, row.new.edit],
                "facts": [{"path": f.path, "old": f.base, "new": f.head} for f in row.facts],
            }
            for row in found.cases
        ],
        "only_old": found.only_old,
        "only_new": found.only_new,
        "notes": found.notes,
    }
