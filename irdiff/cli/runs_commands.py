from __future__ import annotations

import contextlib
import datetime
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from irdiff.cli import options, report_command, run_argument, screen
from irdiff.cli.run_argument import OpenedRun
from irdiff.config import Config
from irdiff.errors import ExitCode, UsageError
from irdiff.model import ChangeGroup, Run, Verdict
from irdiff.report import commands, escape, group_names, headline, phrases, run_changes
from irdiff.report.group_names import NamedGroup
from irdiff.report.run_changes import ChangedGroup, RunChanges
from irdiff.report.tables import Column
from irdiff.run import merge, run_folder, run_list, run_place
from irdiff.run.run_list import ListedRun, Outline
from irdiff.store import Store
from irdiff.timing import timing_file
from irdiff.words import counted

_SHOWN_RUNS, _SHOWN_CHANGES = 20, 15
_COLUMNS = (
    *(Column(name=name) for name in ("run", "written", "base", "head")),
    *(Column(name=name, right=True) for name in ("cases", "changed", "broken", "groups", "size")),
)


@click.group("runs", invoke_without_command=True)
@click.option("--open", "opened", metavar="RUN", help="Open its page.")
@click.option("--limit", type=click.IntRange(min=1), default=_SHOWN_RUNS, help="Show the newest N.")
@options.json_option
@options.configured
@click.pass_context
def runs_group(
    context: click.Context, *, opened: str | None, limit: int, json_path: Path | None, config: Config
) -> None:
    """List runs, the newest first; remove them, or show one in a browser.

    Every command that takes RUN takes the name of a run in this list, or a unique beginning of it.
    """
    context.obj = config
    if context.invoked_subcommand:
        return
    if opened:
        with run_argument.opened(opened, config) as opened_run:
            report_command.open_page(
                report_command.part_of(opened_run.run, opened_run.call), opened_run, config
            )
        return
    listed = run_list.listed(config.runs)
    if json_path:
        options.write_json(json_path, [_run_json(run, run_list.outline(run)) for run in listed])
    elif not listed:
        click.echo("there is no run yet; make one: irdiff compare triton==3.8.0 triton==3.9.0")
    else:
        screen.print_table(_COLUMNS, [_cells(run, run_list.outline(run), config) for run in listed[:limit]])
        if len(listed) > limit:
            click.echo(f"… and {len(listed) - limit} older ones: --limit {len(listed)} shows all")
        call = run_list.call_of(listed[0].path, config.runs)
        click.echo(f"show one: {commands.command('report', call)}")


def _cells(run: ListedRun, outline: Outline | str, config: Config) -> list[Text]:
    name = Text(escape.terminal(run_list.call_of(run.path, config.runs)), style="bold")
    written = datetime.datetime.fromtimestamp(run.written).astimezone().strftime("%Y-%m-%d %H:%M")
    if isinstance(outline, str):
        words: tuple[object, ...] = (escape.terminal(outline, limit=80), "", "", "", "", "")
    else:
        verdicts = outline.summary.verdicts
        sides = (escape.terminal(phrases.side(side), limit=60) for side in (outline.base, outline.head))
        counts = (verdicts.get(Verdict.CHANGED, 0), verdicts.get(Verdict.BROKEN, 0), len(outline.groups))
        words = (*sides, outline.summary.cases, *counts)
    return [name, *(Text(str(word)) for word in (written, *words, _size(run.size_bytes)))]


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def _run_json(run: ListedRun, outline: Outline | str) -> dict[str, Any]:
    named = {"name": run.name, "path": str(run.path), "size_bytes": run.size_bytes}
    if isinstance(outline, str):
        return {**named, "problem": outline}
    return {
        **named,
        "created": outline.created,
        "base": outline.base.spec,
        "head": outline.head.spec,
        "cases": outline.summary.cases,
        "groups": len(outline.groups),
        "verdicts": outline.summary.verdicts,
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
@click.option("--older-than", "age_s", type=options.DURATION, help="Keep younger ones: 30d, 12h.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.pass_obj
def prune_command(config: Config, *, keep: int | None, age_s: float | None, dry_run: bool) -> None:
    """Remove runs that are neither among the newest --keep nor younger than --older-than."""
    if keep is None and age_s is None:
        raise UsageError("say which runs are old", hint="as in --keep 20, or --older-than 30d")
    listed = run_list.listed(config.runs)
    bound = datetime.datetime.now(datetime.UTC).timestamp() - (age_s or 0.0)
    old = [run for run in listed[keep or 0 :] if age_s is None or run.written < bound]
    for run in old:
        if not dry_run:
            run_place.remove(run.path)
        click.echo(f"{'would remove' if dry_run else 'removed'} {escape.terminal(run.name)}")
    freed = _size(sum(run.size_bytes for run in old))
    click.echo(f"{len(old)} {'to remove' if dry_run else 'removed'} ({freed}), {len(listed) - len(old)} kept")


# what is new between two runs


@click.command("diff-runs")
@run_argument.argument("old")
@run_argument.argument("new")
@options.limit_option
@click.option("--exit-code", is_flag=True, help="Exit with 1 if the runs found something different.")
@options.json_option
@options.configured
def diff_runs_command(
    *, old: str, new: str, limit: int | None, exit_code: bool, json_path: Path | None, config: Config
) -> int:
    """Show what is new, gone, or changed between two runs, such as two pushes to a pull request.

    OLD and NEW are run folders, zip or tar files of them, `last`, or names that `irdiff runs` lists. A
    change group is in both runs if its cases change in the same way. It counts as changed if it has other
    cases, or other lines of a case differ.
    """
    with run_argument.opened(old, config) as before, run_argument.opened(new, config) as after:
        changes = run_changes.between(before.run, after.run)
    if json_path:
        options.write_json(json_path, _changes_json(changes))
    if str(json_path) != "-":
        screen.print_lines(Console(), _lines(changes, before, after, limit or _SHOWN_CHANGES))
    return ExitCode.ANSWER_IS_NO if exit_code and not changes.is_empty else ExitCode.DONE


def _lines(changes: RunChanges, old: OpenedRun, new: OpenedRun, limit: int) -> Iterator[Text]:
    yield Text(escape.terminal(changes.counts.sentence(old.call)), style="bold")
    for name, one in (("old", old), ("new", new)):
        yield Text(escape.terminal(f"{name} {one.call}: {headline.of(one.run)}"), style="dim")
    for note in changes.notes:
        yield Text(f"note: {escape.terminal(note)}", style="yellow")
    before, after = ({group.group.id: group for group in group_names.named(one.run)} for one in (old, new))
    parts = {
        "new groups": [_group(group, after) for group in changes.new],
        "gone groups": [_group(group, before) for group in changes.gone],
        "changed groups": [_changed(group, after) for group in changes.changed],
        "cases with another verdict, edit or facts": list(map(str, changes.cases)),
        "cases that only the old run looked at": changes.only_old,
        "cases that only the new run looked at": changes.only_new,
    }
    for title, lines in parts.items():
        if lines:
            yield Text(f"\n{title}: {len(lines)}", style="bold underline")
        yield from (Text(escape.terminal(f"  {line}")) for line in lines[:limit])
        if len(lines) > limit:
            yield Text(f"  … and {len(lines) - limit} more: --limit {len(lines)} shows all", style="dim")
    shown = [*changes.new, *(group.new for group in changes.changed)]
    if shown:
        command = commands.explain(new.call, after[shown[0].id].short)
        yield Text(f"\n{escape.terminal(command)}", style="dim")


def _group(group: ChangeGroup, names: Mapping[str, NamedGroup]) -> str:
    named = names[group.id]
    title = group.title.replace("`", "")
    return f"{named.number:>3} {named.short}  {title}  ({counted(len(group.members), 'case')})"


def _changed(group: ChangedGroup, names: Mapping[str, NamedGroup]) -> str:
    parts = ((group.joined, "more"), (group.left, "fewer"), (group.edited, "with another diff"))
    words = [f"{len(cases)} {word}" for cases, word in parts if cases]
    return f"{_group(group.new, names)}: {', '.join(words)}"


def _changes_json(changes: RunChanges) -> dict[str, Any]:
    return {
        "schema": "irdiff-run-changes/1",
        "new": [group.id for group in changes.new],
        "gone": [group.id for group in changes.gone],
        "changed": [
            {"group": each.new.id, "joined": each.joined, "left": each.left, "edited": each.edited}
            for each in changes.changed
        ],
        "cases": [
            {
                "case": each.new.id,
                "verdicts": [each.old.verdict, each.new.verdict],
                "edits": [each.old.edit, each.new.edit],
                "facts": [{"path": f.path, "old": f.base, "new": f.head} for f in each.facts],
            }
            for each in changes.cases
        ],
        "only_old": changes.only_old,
        "only_new": changes.only_new,
        "notes": changes.notes,
    }


# one run of several


@click.command("merge")
@run_argument.argument("runs", nargs=-1, required=True)
@click.option("--out", type=options.PATH, required=True, help="The run folder to write.")
@click.option("--partial", is_flag=True, help="Merge although shards are missing; the run says so.")
@options.json_option
def merge_command(*, runs: tuple[str, ...], out: Path, partial: bool, json_path: Path | None) -> None:
    """Join runs that each hold a part of one comparison (shards, or targets) into one run."""
    run_place.prepare(out)
    options.check_outside(out, (json_path,))
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(run_argument.opened(run)).folder for run in runs]
        if out.exists() and any(folder.samefile(out) for folder in folders):
            raise UsageError(
                f"{out} is one of the runs to merge: it would be lost", hint="--out DIR, another"
            )
        joined = merged(folders, out, partial=partial)
    if json_path:
        options.write_output(json_path, run_folder.dump(joined))
    click.echo(escape.terminal(f"{len(runs)} runs merged: {headline.of(joined)}"), err=True)


def merged(folders: Sequence[Path], out: Path, *, partial: bool) -> Run:
    """Writes checked artifacts and timings, too."""
    runs = [run_folder.load(folder) for folder in folders]
    joined = merge.merge(runs, partial=partial)
    with tempfile.TemporaryDirectory(prefix="irdiff-merge-") as scratch:
        store = Store(Path(scratch))
        digests = set()
        for folder, run in zip(folders, runs, strict=True):
            names = {
                artifact.digest for case in run.cases for side in case.artifacts for artifact in side.values()
            }
            contents = (run_folder.artifact(folder, name) for name in names)
            digests |= {store.put(content) for content in contents if content is not None}
        run_folder.write(out, joined, store, digests)
        timing_file.join(out, [folder for folder in folders if folder.is_dir()])
    return joined
