"""Options that the commands of `irdiff history` share."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff.history import database

db_option = click.option(
    "--db",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=database.DEFAULT_NAME,
    show_default=True,
    help="The history, one file.",
)
