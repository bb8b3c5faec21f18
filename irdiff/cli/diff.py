"""`irdiff diff RUN CASE`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff import config as configuration
from irdiff import normalize
from irdiff.cli import case_argument, diff_view, disassembly, options, paging, run_argument
from irdiff.cli.diff_view import View
from irdiff.diffs import stage_diff
from irdiff.diffs.stage_diff import StageDiff
from irdiff.errors import ExitCode, RunFolderError, UsageError
from irdiff.model import Case, Launch, Run, StageStatus
from irdiff.report import commands, escape, wording
from irdiff.run import run_folder
from irdiff.stages import Stage, in_stage_order


@click.command("diff")
@run_argument.argument()
@case_argument.argument
@click.option("--stage", default="", help="The stage to show; default: the first one that changed.")
@click.option("--raw", is_flag=True, help="Show the lines as the compiler printed them; default: canonical.")
@click.option("--side-by-side", "-y", is_flag=True, help="Show base on the left and head on the right.")
@options.context_option
@click.option(
    "--width", type=click.IntRange(min=46), help="Columns of --side-by-side; default: the terminal's, or 80."
)
@click.option("--pager/--no-pager", default=True, help="Show what is longer than the terminal by PAGER.")
@options.cache_option
def diff_command(
    run: str,
    case: str,
    stage: str,
    raw: bool,
    side_by_side: bool,
    context: int,
    width: int | None,
    pager: bool,
    cache: Path | None,
) -> int:
    """Show what changed in one CASE of RUN, stage by stage.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. CASE is an id,
    a part that only one id has, or a change group (2, g:b140) for its smallest example. Lines that differ
    only by the numbers of values count as the same; removed lines have the numbers of head, and a value that
    only base has ends in '. `--stage sass` disassembles with the nvdisasm of an installed toolchain.
    """
    config = configuration.load(cache=cache)
    console = Console(no_color=config.color is False)
    view = View(context=context, raw=raw, side_by_side=side_by_side, width=width or console.width)
    with run_argument.opened(run, config) as given:
        folder, found = given.folder, run_folder.load(given.folder)
        chosen = case_argument.find(found, case)
        name = stage or _first_stage(chosen)
        if name == Stage.SASS:
            texts = disassembly.of_case(folder, chosen, config)
            diff = stage_diff.compare(Stage.SASS, texts.base, texts.head)
            findings = normalize.equivalent(Stage.SASS, texts.base, texts.head).findings
            told = [wording.finding(finding) for finding in findings]
        else:
            diff, told = _read(folder, found, chosen, name), []
        paging.show(console, _lines(found, chosen, diff, view, told, given.call), with_pager=pager)
    return ExitCode.DONE


def _first_stage(case: Case) -> str:
    if case.origin:
        return case.origin.stage
    changed = [name for name, status in in_stage_order(case.stages) if status is StageStatus.CHANGED]
    if not changed:
        reason = f": {escape.terminal(case.error)}" if case.error else ""
        raise UsageError(
            f"{escape.terminal(case.id)} is {case.verdict.value}, no stage of it changed{reason}",
            hint="name a stage with --stage to see it anyway",
        )
    return changed[0]


def _read(folder: Path, run: Run, case: Case, stage: str) -> StageDiff:
    if stage == "launch":
        return stage_diff.of_lines(stage, _launch(run, case.launches.base), _launch(run, case.launches.head))
    found = stage_diff.read(folder, case, stage)
    if isinstance(found, str):
        known = ", ".join(name for name, _ in in_stage_order(case.stages))
        raise RunFolderError(
            f"{escape.terminal(case.id)}: {escape.terminal(found)}",
            hint=f"stages of this case: {escape.terminal(known)}",
        )
    return found


def _launch(run: Run, digest: str | None) -> list[str]:
    """What the frontend hands to the compiler, one line for each value."""
    launch: Launch | None = run.launches.get(digest) if digest else None
    if launch is None:
        return []
    parts = {
        "argument": launch.signature,
        "constexpr": launch.constexprs,
        "attribute": launch.attributes,
        "option": launch.options,
    }
    lines = [f"kernel source {launch.source_digest[:12]}", f"grid {launch.grid}"]
    for kind, rows in parts.items():
        lines += [f"{kind} {name} = {value}" for name, value in rows.items()]
    return lines


# output


def _lines(
    run: Run, case: Case, diff: StageDiff, view: View, told: Sequence[str], call: str
) -> Iterator[Text]:
    def said(text: str, style: str = "") -> Text:
        return Text(escape.terminal(text), style=style)

    pass_name = case.origin.pass_name if case.origin and case.origin.stage == diff.stage else None
    yield said(f"{case.id}  {diff.stage}" + (f"  first in {pass_name}" if pass_name else ""), "bold")
    yield said(f"--- base {wording.side(run.base)}", "red")
    yield said(f"+++ head {wording.side(run.head)}", "green")
    nothing = said("no line differs up to the numbers of values")
    shown = diff_view.lines(diff, view)
    yield next(shown, nothing)
    yield from shown
    yield said(diff_view.counts(diff), "dim")
    for name, status in in_stage_order(case.stages):
        if status is StageStatus.CHANGED and name != diff.stage:
            yield said(f"also changed: {commands.diff(call, case.id, '--stage', name)}", "dim")
    yield from map(said, told)
