"""What `compare` and `report` write of a run: files, or the terminal report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from irdiff.cli import options, run_argument
from irdiff.cli.run_argument import GivenRun
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Run
from irdiff.report import escape, shown
from irdiff.report.forest import Forest
from irdiff.report.shown import Shown
from irdiff.resolve import tools
from irdiff.run import known, run_folder


@dataclass(frozen=True, kw_only=True)
class RunOutputs:
    json: Path | None
    markdown: Path | None
    html: Path | None
    quiet: bool
    limit: int | None


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """What is shown of a run."""

    run: Run
    as_: Shown


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The run of `--known`, read before another one is made: `last` means another run by then."""

    run: Run
    call: str


def earlier_of(text: str | None, config: Config) -> Earlier | None:
    """Raises RunFolderError."""
    if text is None:
        return None
    with run_argument.opened(text, config) as given:
        return Earlier(run=run_folder.load(given.folder), call=given.call)


def part_of(run: Run, call: str, earlier: Earlier | None, *, is_bump: bool = False) -> ShownRun:
    """The whole run, or what of it an earlier run did not have. Raises UsageError for the run itself."""
    if earlier is None:
        as_bump = is_bump or any(tools.is_tool(side.spec) for side in (run.base, run.head))
        return ShownRun(run=run, as_=replace(shown.whole(call), is_bump=as_bump))
    if earlier.run == run:
        raise UsageError(f"{call} knows all of itself: nothing would be shown", hint="--known another run")
    found = known.news(run, earlier.run)
    return ShownRun(
        run=found.run, as_=shown.news(run, found.cases, found.groups, call=call, since=earlier.call)
    )


def write(run: Run, part: ShownRun, given: GivenRun, timing: Forest | None, outputs: RunOutputs) -> None:
    """JSON is of the whole run; the other forms are of the part that is shown."""
    if outputs.json:
        options.write_output(outputs.json, run_folder.dump_parts(run))
    if outputs.markdown:
        from irdiff.report import markdown

        options.write_output(outputs.markdown, markdown.render(part.run, given.folder, timing, as_=part.as_))
    if outputs.html:
        from irdiff.report import html

        options.write_output(outputs.html, html.render(part.run, given.folder, timing, as_=part.as_))


def print_report(
    part: ShownRun, given: GivenRun, timing: Forest | None, outputs: RunOutputs, config: Config
) -> None:
    if outputs.quiet:
        click.echo(escape.terminal(part.as_.headline(part.run)))
        return
    from irdiff.report import terminal

    console = Console(no_color=config.color is False)
    terminal.show(part.run, given.folder, console, timing, as_=part.as_, limit=outputs.limit)
