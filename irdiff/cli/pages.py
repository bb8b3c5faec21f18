"""A run's HTML report in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import click

from irdiff.cli import options
from irdiff.cli.run_argument import GivenRun
from irdiff.cli.run_outputs import ShownRun
from irdiff.config import Config
from irdiff.report import html
from irdiff.report.forest import Forest


def open_page(part: ShownRun, given: GivenRun, timing: Forest | None, config: Config) -> None:
    """Writes the page beside the runs and opens it; where no browser starts, the path that is printed is
    left.
    """
    name = re.sub(r"[^\w.=-]+", "-", given.call).strip("-.") or "run"
    path = config.pages / f"{name[-100:]}.html"
    options.write_output(path, html.render(part.run, given.folder, timing, as_=part.as_))
    click.echo(path)
    _browse(path)


def _browse(path: Path) -> None:
    if click.launch(str(path)):
        click.echo("no browser could be started: open the file above", err=True)
