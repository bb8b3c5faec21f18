"""`irdiff report RUN`: the same reports again, without a compiler and without a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff.cli import options, run_argument, run_outputs
from irdiff.cli.run_outputs import RunOutputs
from irdiff.config import Config


@click.command("report")
@run_argument.argument()
@run_outputs.run_outputs
@click.option("--svg", "svg_path", type=options.OUTPUT, help="Write a picture of the terminal report here.")
@click.option("--open", "is_opened", is_flag=True, help="Open the HTML report in a browser.")
@run_argument.known_option
@options.bump_option
@options.configured
def report_command(
    *,
    run: str,
    outputs: RunOutputs,
    svg_path: Path | None,
    is_opened: bool,
    known: str | None,
    bump: bool,
    config: Config,
) -> None:
    """Show RUN, with its timings where it has any.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists.
    """
    with run_argument.opened(run, config) as given:
        earlier = run_outputs.earlier_of(known, config)
        part = run_outputs.part_of(given.run, given.call, earlier, is_bump=bump)
        run_outputs.write(given.run, part, given, outputs)
        if svg_path:
            from irdiff.report import terminal

            options.write_output(svg_path, terminal.svg(given.run, given.timing_summary))
        if is_opened:
            run_outputs.open_page(part, given, config)
        if not (any(outputs.files) or svg_path or is_opened):
            run_outputs.print_report(part, given, outputs)
