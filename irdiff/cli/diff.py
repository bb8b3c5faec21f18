"""`irdiff diff RUN CASE`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff import config as configuration
from irdiff import normalize
from irdiff.cli import disassembly, options
from irdiff.errors import ExitCode, RunFolderError, UsageError
from irdiff.model import Case, Launch, Run, StageStatus
from irdiff.report import diff_view, escape, stage_diff, wording
from irdiff.report.diff_view import View
from irdiff.report.stage_diff import StageDiff
from irdiff.run import run_folder
from irdiff.stages import Stage, in_stage_order

_MAX_CANDIDATES = 20
_MAX_ON_TERMINAL = 20_000


@click.command("diff")
@click.argument("run")
@click.argument("case")
@click.option("--stage", default="", help="Default: the first stage that changed.")
@click.option("--raw", is_flag=True, help="The lines as the compiler printed them; canonical by default.")
@click.option("--side-by-side", "-y", is_flag=True, help="Base on the left, head on the right.")
@click.option(
    "--context", "-U", type=click.IntRange(min=0), default=3, show_default=True, help="Lines around a change."
)
@options.cache_option
def diff_command(
    run: str, case: str, stage: str, raw: bool, side_by_side: bool, context: int, cache: Path | None
) -> int:
    """Show what changed in one CASE of RUN (a run folder or `last`), stage by stage.

    CASE is an id, a part that only one id has, or the id of a change group (its smallest example). Lines
    that differ only by the numbers of values count as the same. `--stage sass` disassembles with the
    nvdisasm of an installed toolchain.
    """
    config = configuration.load(cache=cache)
    folder = options.run_path(run, config)
    found = run_folder.load(folder)
    chosen = find_case(found, case)
    name = stage or _first_stage(chosen)
    console = Console(no_color=config.color is False)
    view = View(context=context, raw=raw, side_by_side=side_by_side, width=console.width)
    if name == Stage.SASS:
        texts = disassembly.of_case(folder, chosen, config)
        diff = stage_diff.compare(Stage.SASS, texts.base, texts.head)
        findings = normalize.equivalent(Stage.SASS, texts.base, texts.head).findings
        told = [wording.finding(finding) for finding in findings]
    else:
        diff, told = _read(folder, found, chosen, name), []
    _show(console, found, chosen, diff, view)
    for line in told:
        console.print(line)
    return ExitCode.DONE


def find_case(run: Run, text: str) -> Case:
    """The case that a text names. Raises UsageError with the candidates where it names none or several."""
    group = next((group for group in run.groups if group.id == text), None)
    wanted = group.representative if group else text
    exact = [case for case in run.cases if case.id == wanted]
    found = exact or [case for case in run.cases if all(word in case.id for word in wanted.split())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"no case of the run has {escape.terminal(text)!r} in its id", hint="see: irdiff report RUN"
        )
    names = [escape.terminal(case.id) for case in found[:_MAX_CANDIDATES]]
    more = [f"… and {len(found) - len(names)} more"] if len(found) > len(names) else []
    raise UsageError(
        f"{len(found)} cases have {escape.terminal(text)!r} in their id:\n    "
        + "\n    ".join([*names, *more]),
        hint="name one of them",
    )


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


def _print_lines(console: Console, lines: Iterable[Text]) -> bool:
    """Prints the lines; returns whether there were any. A file gets all of them, at the speed of a file."""
    index = -1
    for index, line in enumerate(lines):
        if not console.is_terminal:
            click.echo(line.plain)
        elif index < _MAX_ON_TERMINAL:
            console.print(line, soft_wrap=True, highlight=False)
        else:
            console.print(f"… more than {_MAX_ON_TERMINAL} lines: write them to a file to see the rest")
            break
    return index >= 0


def _show(console: Console, run: Run, case: Case, diff: StageDiff, view: View) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(Text(escape.terminal(text), style=style), soft_wrap=True)

    pass_name = case.origin.pass_name if case.origin and case.origin.stage == diff.stage else None
    say(f"{case.id}  {diff.stage}" + (f"  first in {pass_name}" if pass_name else ""), "bold")
    say(f"--- base {wording.side(run.base)}", "red")
    say(f"+++ head {wording.side(run.head)}", "green")
    if not _print_lines(console, diff_view.lines(diff, view)):
        say("no line differs up to the numbers of values")
    others = [
        name
        for name, status in in_stage_order(case.stages)
        if status is StageStatus.CHANGED and name != diff.stage
    ]
    say(diff_view.counts(diff), "dim")
    if others:
        say(f"also changed: {', '.join(others)}  (--stage NAME)", "dim")
