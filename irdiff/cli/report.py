"""`irdiff report RUN`: the same reports again, without a compiler and without a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, pages, run_argument, run_outputs
from irdiff.cli.run_outputs import RunOutputs
from irdiff.errors import ExitCode
from irdiff.report import timed
from irdiff.report.forest import Forest
from irdiff.run import run_folder
from irdiff.timing import timing_file

_path = options.OutputFile()


@click.command("report")
@run_argument.argument()
@options.json_option
@click.option("--markdown", "markdown_path", type=_path, help="Write the Markdown report here.")
@click.option("--html", "html_path", type=_path, help="Write the HTML report here, one file.")
@click.option("--svg", "svg_path", type=_path, help="Write a picture of the terminal report here.")
@click.option("--open", "is_opened", is_flag=True, help="Open the HTML report in a browser.")
@click.option(
    "--known",
    metavar="RUN",
    shell_complete=run_argument.complete,
    help="Show only what this earlier run did not have, and count the rest.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show the first line alone.")
@options.limit_option
@options.bump_option
@options.cache_option
def report_command(
    run: str,
    json_path: Path | None,
    markdown_path: Path | None,
    html_path: Path | None,
    svg_path: Path | None,
    is_opened: bool,
    known: str | None,
    quiet: bool,
    limit: int | None,
    bump: bool,
    cache: Path | None,
) -> int:
    """Show RUN, with its timings where it has any.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists.
    """
    config = configuration.load(cache=cache)
    outputs = RunOutputs(json=json_path, markdown=markdown_path, html=html_path, quiet=quiet, limit=limit)
    with run_argument.opened(run, config) as given:
        found, timing = run_folder.load(given.folder), _timing(given.folder)
        earlier = run_outputs.earlier_of(known, config)
        part = run_outputs.part_of(found, given.call, earlier, is_bump=bump)
        run_outputs.write(found, part, given, timing, outputs)
        if svg_path:
            from irdiff.report import terminal

            options.write_output(svg_path, terminal.svg(found, timing))
        if is_opened:
            pages.open_page(part, given, timing, config)
        if not (json_path or markdown_path or html_path or svg_path or is_opened):
            run_outputs.print_report(part, given, timing, outputs, config)
    return ExitCode.DONE


def _timing(folder: Path) -> Forest | None:
    found = timing_file.load(folder) if folder.is_dir() else None
    return timed.forest_of(found) if found else None
