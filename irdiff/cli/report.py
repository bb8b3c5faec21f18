"""`irdiff report RUN`: the same reports again, without a compiler and without a GPU."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from irdiff import run_folder
from irdiff.cli import options
from irdiff.errors import ExitCode


@click.command("report")
@click.argument("run")
@options.json_option
@click.option(
    "--markdown", "markdown_path", type=click.Path(path_type=Path), help="Write the Markdown report here."
)
@click.option(
    "--html", "html_path", type=click.Path(path_type=Path), help="Write the HTML report here, one file."
)
def report_command(
    run: str, json_path: Path | None, markdown_path: Path | None, html_path: Path | None
) -> int:
    """Show RUN, a run folder or `last`."""
    folder = options.run_path(run)
    found = run_folder.load(folder)
    if json_path:
        options.write_output(json_path, run_folder.dump(found))
    if markdown_path:
        from irdiff.report import markdown

        options.write_output(markdown_path, markdown.render(found))
    if html_path:
        from irdiff.report import html

        options.write_output(html_path, html.render(found, folder))
    if not (json_path or markdown_path or html_path):
        from irdiff.report import terminal

        terminal.show(found, folder, Console())
    return ExitCode.DONE
