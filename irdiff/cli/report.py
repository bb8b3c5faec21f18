"""`irdiff report RUN`: the same reports again, without a compiler and without a GPU."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff.cli import options
from irdiff.errors import ExitCode
from irdiff.report import bump as bumps
from irdiff.report.forest import Forest
from irdiff.run import run_folder

_path = options.OutputFile()


@click.command("report")
@click.argument("run")
@options.json_option
@click.option("--markdown", "markdown_path", type=_path, help="Write the Markdown report here.")
@click.option("--html", "html_path", type=_path, help="Write the HTML report here, one file.")
@click.option("--svg", "svg_path", type=_path, help="Write a picture of the terminal report here.")
@click.option("--bump", is_flag=True, help="As for a bump: distributions first, then outliers, groups.")
@options.cache_option
def report_command(
    run: str,
    json_path: Path | None,
    markdown_path: Path | None,
    html_path: Path | None,
    svg_path: Path | None,
    bump: bool,
    cache: Path | None,
) -> int:
    """Show RUN, a run folder or `last`, with its timings where it has any."""
    config = configuration.load(cache=cache)
    folder = options.run_path(run, config)
    found = run_folder.load(folder)
    is_bump = bump or bumps.is_wanted(found)
    if json_path:
        options.write_output(json_path, run_folder.dump(found))
    if markdown_path:
        from irdiff.report import markdown

        options.write_output(markdown_path, markdown.render(found, _timing(folder), is_bump=is_bump))
    if html_path:
        from irdiff.report import html

        options.write_output(html_path, html.render(found, folder, _timing(folder), is_bump=is_bump))
    if svg_path:
        from irdiff.report import terminal

        options.write_output(svg_path, terminal.svg(found, _timing(folder)))
    if not (json_path or markdown_path or html_path or svg_path):
        from irdiff.report import terminal

        console = Console(no_color=config.color is False)
        terminal.show(found, folder, console, _timing(folder), is_bump=is_bump)
    return ExitCode.DONE


def _timing(folder: Path) -> Forest | None:
    from irdiff.report import timed
    from irdiff.timing import timing_file

    found = timing_file.load(folder) if folder.is_dir() else None
    return timed.forest_of(found) if found else None
