from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from irdiff.cli import options, run_argument
from irdiff.cli.run_argument import OpenedRun
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Run
from irdiff.report import escape, shown
from irdiff.report.moved import Movement
from irdiff.report.shown import Shown
from irdiff.resolve import settings, tools
from irdiff.run import baseline as baseline_run
from irdiff.run import run_folder


@dataclass(frozen=True, kw_only=True)
class RunOutputs:
    json_path: Path | None
    markdown_path: Path | None
    html_path: Path | None
    quiet: bool
    limit: int | None

    @property
    def files(self) -> tuple[Path | None, ...]:
        return self.json_path, self.markdown_path, self.html_path


output_options = options.gathered(
    "outputs",
    RunOutputs,
    click.option(
        "--quiet", "-q", is_flag=True, help="Print the first line of the report alone, and no progress."
    ),
    options.limit_option,
    options.json_option,
    click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the Markdown report here."),
    click.option("--html", "html_path", type=options.OUTPUT, help="Write the HTML report here, one file."),
)


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """The part of a run that reports show, and how they show it."""

    run: Run
    as_: Shown


def earlier_of(text: str | None, config: Config) -> OpenedRun | None:
    """Reads the run of `--baseline` before another one is written, because `last` then means another run.
    Raises RunFolderError.
    """
    if text is None:
        return None
    with run_argument.opened(text, config) as opened:
        assert opened.run  # it is read now
        return opened


def part_of(run: Run, call: str, earlier: OpenedRun | None = None, *, is_bump: bool = False) -> ShownRun:
    """Leaves out what the earlier run had. Raises UsageError if both are the same run."""
    if earlier is None:
        as_bump = is_bump or any(_is_a_change_of_all(side.spec) for side in (run.base, run.head))
        return ShownRun(run=run, as_=Shown(call=call, is_bump=as_bump))
    if earlier.run == run:
        raise UsageError(
            "--baseline names the run itself: nothing would be shown", hint="--baseline another run"
        )
    news = baseline_run.news(run, earlier.run)
    as_ = shown.news(run, news.left_out, news.groups, call=call, since=earlier.call)
    return ShownRun(run=news.run, as_=as_)


def _is_a_change_of_all(spec: str) -> bool:
    """A tool or a setting affects every case, as a bump of the compiler does."""
    return tools.is_tool(spec) or bool(settings.split(spec)[1])


def write(run: Run, part: ShownRun, opened: OpenedRun, outputs: RunOutputs) -> None:
    """JSON holds the whole run; the other forms hold the part that is shown."""
    if outputs.json_path:
        options.write_output(outputs.json_path, run_folder.dump(run))
    if outputs.markdown_path:
        from irdiff.report import markdown

        text = markdown.render(part.run, opened.folder, opened.timing_summary, as_=part.as_)
        options.write_output(outputs.markdown_path, text)
    if outputs.html_path:
        options.write_output(outputs.html_path, _page(part, opened))


def print_report(part: ShownRun, opened: OpenedRun, outputs: RunOutputs) -> None:
    if outputs.quiet:
        timed = opened.timing_summary.sentence if opened.timing_summary else ""
        click.echo(escape.terminal(part.as_.headline(part.run, timed=timed)))
        return
    from irdiff.report import terminal

    timing = opened.timing_summary
    terminal.show(part.run, opened.folder, Console(), timing, as_=part.as_, limit=outputs.limit)


def open_page(part: ShownRun, opened: OpenedRun, config: Config) -> None:
    """Prints the page's path even if no browser opens."""
    name = re.sub(r"[^\w.=-]+", "-", opened.call).strip("-.") or "run"
    path = config.pages / f"{name[-100:]}.html"
    options.write_output(path, _page(part, opened))
    click.echo(path)
    if click.launch(str(path)):
        click.echo("no browser could be started: open the file above", err=True)


def _page(part: ShownRun, opened: OpenedRun) -> str:
    from irdiff.report import html

    return html.render(part.run, opened.folder, opened.timing_summary, as_=part.as_)


def _compile_times(history: Path, run: Run) -> tuple[Movement, ...]:
    from irdiff.history import compile_times, database

    with database.reading(history) as opened:
        movements = compile_times.of_run(opened, run)
    if movements is None:
        message = f"{history} has no compile times of this run's head"
        raise UsageError(message, hint="irdiff history backfill measures each version")
    return movements


@click.command("report")
@run_argument.argument()
@output_options
@click.option("--svg", "svg_path", type=options.OUTPUT, help="Write a picture of the terminal report here.")
@click.option("--open", "is_opened", is_flag=True, help="Open the HTML report in a browser.")
@click.option(
    "--history",
    type=options.PATH,
    metavar="FILE",
    help="Also show where compile time moved, by this history.",
)
@click.option(
    "--policy",
    "policy_path",
    type=options.PATH,
    metavar="FILE",
    help="Also show the gate's answer on the HTML page, by these rules.",
)
@run_argument.baseline_option
@options.bump_option
@options.configured
def report_command(
    *,
    run: str,
    outputs: RunOutputs,
    svg_path: Path | None,
    is_opened: bool,
    history: Path | None,
    policy_path: Path | None,
    baseline: str | None,
    bump: bool,
    config: Config,
) -> None:
    """Show RUN, with its timings where it has any.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists.
    """
    with run_argument.opened(run, config) as opened:
        earlier = earlier_of(baseline, config)
        part = part_of(opened.run, opened.call, earlier, is_bump=bump)
        if history:
            part = replace(part, as_=replace(part.as_, compile_times=_compile_times(history, part.run)))
        if policy_path:
            from irdiff.cli import gate_commands

            answer = gate_commands.answer(opened, policy_path)
            part = replace(part, as_=replace(part.as_, gate=tuple(answer.splitlines())))
        write(opened.run, part, opened, outputs)
        if svg_path:
            from irdiff.report import terminal

            options.write_output(svg_path, terminal.svg(opened.run, opened.timing_summary))
        if is_opened:
            open_page(part, opened, config)
        if not (any(outputs.files) or svg_path or is_opened):
            print_report(part, opened, outputs)
