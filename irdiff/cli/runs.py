"""`irdiff runs`: the runs that the cache holds."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from irdiff.cli import options, report, run_argument, screen
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Verdict
from irdiff.report import commands, escape, phrases, tables
from irdiff.report.tables import Column
from irdiff.run import run_list, run_place
from irdiff.run.run_list import ListedRun, Outline

_SHOWN = 20
_COLUMNS = (
    *(Column(name=name) for name in ("run", "written", "base", "head")),
    *(Column(name=name, right=True) for name in ("cases", "changed", "broken", "groups", "size")),
)


@click.group("runs", invoke_without_command=True)
@click.option("--open", "opened", metavar="RUN", shell_complete=run_argument.complete, help="Show its page.")
@click.option("--limit", type=click.IntRange(min=1), default=_SHOWN, help="Show the newest N.")
@options.json_option
@options.configured
@click.pass_context
def runs_group(
    context: click.Context, *, opened: str | None, limit: int, json_path: Path | None, config: Config
) -> None:
    """List runs, the newest first; remove them, or show one in a browser.

    Every command that takes RUN takes the name of a run in this list, or a beginning that no other has.
    """
    context.obj = config
    if context.invoked_subcommand:
        return
    if opened:
        with run_argument.opened(opened, config) as given:
            report.open_page(report.part_of(given.run, given.call), given, config)
        return
    rows = run_list.listed(config.runs)
    if json_path:
        options.write_json(json_path, [_as_json(row, run_list.outline(row)) for row in rows])
    else:
        _show(rows[:limit], len(rows), config)


def _show(rows: Sequence[ListedRun], count: int, config: Config) -> None:
    if not rows:
        click.echo("there is no run yet; make one: irdiff compare triton==3.8.0 triton==3.9.0")
        return
    console = Console()
    cells = [_cells(row, run_list.outline(row), config) for row in rows]
    screen.print_lines(console, tables.lines(_COLUMNS, cells, console.width if console.is_terminal else None))
    if count > len(rows):
        click.echo(f"… and {count - len(rows)} older ones: --limit {count} shows all")
    call = run_list.call_of(rows[0].path, config.runs)
    click.echo(f"show one: {commands.command('report', call)}")


def _cells(row: ListedRun, found: Outline | str, config: Config) -> list[Text]:
    name = Text(escape.terminal(run_list.call_of(row.path, config.runs)), style="bold")
    written = datetime.datetime.fromtimestamp(row.written).astimezone().strftime("%Y-%m-%d %H:%M")
    size = _size(row.size_bytes)
    if isinstance(found, str):
        words = (written, escape.terminal(found, limit=80), "", "", "", "", "", size)
        return [name, *map(Text, words)]
    counts = found.summary.verdicts
    broken = counts.get(Verdict.BROKEN, 0)
    figures = (found.summary.cases, counts.get(Verdict.CHANGED, 0), broken, found.groups)
    sides = (escape.terminal(phrases.side(side), limit=60) for side in (found.base, found.head))
    return [name, *map(Text, (written, *sides, *map(str, figures), size))]


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def _as_json(row: ListedRun, found: Outline | str) -> dict[str, Any]:
    named = {"name": row.name, "path": str(row.path), "size_bytes": row.size_bytes}
    if isinstance(found, str):
        return {**named, "problem": found}
    return {
        **named,
        "created": found.created,
        "base": found.base.spec,
        "head": found.head.spec,
        "cases": found.summary.cases,
        "groups": found.groups,
        "verdicts": {verdict.value: count for verdict, count in found.summary.verdicts.items()},
    }


@runs_group.command("rm")
@run_argument.argument("names", nargs=-1, required=True)
@click.pass_obj
def remove_command(config: Config, *, names: tuple[str, ...]) -> None:
    """Remove runs of the list by name. A run that lies elsewhere is left."""
    folders = [run_list.find(name, config.runs) for name in names]
    for name, folder in zip(names, folders, strict=True):
        if folder.parent.resolve() != config.runs.resolve():
            raise UsageError(f"{name} is not in the list: nothing was removed", hint="see `irdiff runs`")
    for folder in dict.fromkeys(folders):
        run_place.remove(folder)
        click.echo(f"removed {escape.terminal(folder.name)}")


@runs_group.command("prune")
@click.option("--keep", type=click.IntRange(min=0), help="Keep the newest N.")
@click.option("--older-than", "age_s", type=options.DURATION, help="Remove those older than that: 30d, 12h.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.pass_obj
def prune_command(config: Config, *, keep: int | None, age_s: float | None, dry_run: bool) -> None:
    """Remove old runs: those beyond --keep that are also older than --older-than, where both are given."""
    if keep is None and age_s is None:
        raise UsageError("nothing says which runs are old", hint="as in --keep 20, or --older-than 30d")
    rows = run_list.listed(config.runs)
    bound = datetime.datetime.now(datetime.UTC).timestamp() - (age_s or 0.0)
    old = [row for row in rows[keep or 0 :] if age_s is None or row.written < bound]
    for row in old:
        if not dry_run:
            run_place.remove(row.path)
        click.echo(f"{'would remove' if dry_run else 'removed'} {escape.terminal(row.name)}")
    freed = _size(sum(row.size_bytes for row in old))
    click.echo(f"{len(old)} {'to remove' if dry_run else 'removed'} ({freed}), {len(rows) - len(old)} kept")
