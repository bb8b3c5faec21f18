"""`irdiff diff RUN CASE`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff import normalize
from irdiff.cli import diff_view, disassembly, options, run_argument, screen
from irdiff.cli.diff_view import View
from irdiff.cli.run_argument import GivenRun
from irdiff.config import Config
from irdiff.diffs import stage_diff
from irdiff.diffs.stage_diff import StageDiff
from irdiff.errors import RunFolderError, UsageError
from irdiff.findings import Finding
from irdiff.model import Case, Launch, StageStatus
from irdiff.report import commands, escape, phrases
from irdiff.run import run_folder
from irdiff.stages import Stage, in_stage_order


@click.command("diff")
@run_argument.argument()
@run_argument.case_argument
@click.option("--stage", help="The stage to show; default: the first one that changed.")
@click.option("--raw", is_flag=True, help="Show the lines as the compiler printed them; default: canonical.")
@click.option("--side-by-side", "-y", is_flag=True, help="Show base on the left and head on the right.")
@options.context_option
@click.option("--width", type=click.IntRange(min=46), help="For --side-by-side; default: the terminal's.")
@click.option("--pager/--no-pager", default=True, help="Show what is longer than the terminal by PAGER.")
@options.configured
def diff_command(
    *,
    run: str,
    case: str,
    stage: str | None,
    raw: bool,
    side_by_side: bool,
    context: int,
    width: int | None,
    pager: bool,
    config: Config,
) -> None:
    """Show what changed in one CASE of RUN, stage by stage.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. CASE is an id,
    a part that only one id has, or a change group (2, g:b140) for its smallest example. Lines that differ
    only by the numbers of values count as the same; removed lines have the numbers of head, and a value that
    only base has ends in '. `--stage sass` disassembles with the nvdisasm of an installed toolchain.
    """
    console = Console()
    view = View(context=context, raw=raw, side_by_side=side_by_side, width=width or console.width)
    with run_argument.opened(run, config) as given:
        chosen = run_argument.find_case(given.run, case)
        name = stage or _first_stage(chosen)
        findings: Sequence[Finding] = ()
        if name == Stage.SASS:
            texts = disassembly.of_case(given.folder, chosen, config)
            diff = stage_diff.compare(Stage.SASS, texts.base, texts.head)
            findings = normalize.equivalent(Stage.SASS, texts.base, texts.head).findings
        else:
            diff = _read(given, chosen, name)
        screen.print_lines(console, _lines(given, chosen, diff, view, findings), with_pager=pager)


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


def _read(given: GivenRun, case: Case, stage: str) -> StageDiff:
    if stage == "launch":
        launches = (given.run.launches.get(digest or "") for digest in case.launches)
        return stage_diff.of_lines(stage, *(_launch(given.folder, launch) for launch in launches))
    found = stage_diff.read(given.folder, case, stage)
    if isinstance(found, str):
        known = ", ".join(name for name, _ in in_stage_order(case.stages))
        raise RunFolderError(
            f"{escape.terminal(case.id)}: {escape.terminal(found)}",
            hint=f"stages of this case: {escape.terminal(known)}",
        )
    return found


def _launch(folder: Path, launch: Launch | None) -> list[str]:
    """What is launched, and what the frontend hands to the compiler, one line for each value."""
    if launch is None:
        return []
    text = run_folder.artifact(folder, launch.launched.digest) or b""
    parts = {
        "type": launch.signature,
        "constexpr": launch.constexprs,
        "attribute": launch.attributes,
        "option": launch.options,
    }
    rows = [f"{kind} {name} = {value}" for kind, part in parts.items() for name, value in part.items()]
    return [*text.decode(errors="replace").splitlines(), "compiled with", *(f"  {row}" for row in rows)]


# output


def _lines(
    given: GivenRun, case: Case, diff: StageDiff, view: View, findings: Sequence[Finding]
) -> Iterator[Text]:
    def said(text: str, style: str = "") -> Text:
        return Text(escape.terminal(text), style=style)

    pass_name = case.origin.pass_name if case.origin and case.origin.stage == diff.stage else None
    yield said(f"{case.id}  {diff.stage}" + (f"  first in {pass_name}" if pass_name else ""), "bold")
    yield said(f"--- base {phrases.side(given.run.base)}", "red")
    yield said(f"+++ head {phrases.side(given.run.head)}", "green")
    shown = diff_view.lines(diff, view)
    yield next(shown, said("no line differs up to the numbers of values"))
    yield from shown
    yield said(diff_view.counts(diff), "dim")
    for name, status in in_stage_order(case.stages):
        if status is StageStatus.CHANGED and name != diff.stage:
            yield said(f"also changed: {commands.diff(given.call, case.id, '--stage', name)}", "dim")
    yield from (said(phrases.finding(finding)) for finding in findings)
