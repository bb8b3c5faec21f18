"""`irdiff toolchain doctor`: what a native build needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import ExitCode
from irdiff.resolve.toolchains import checkout, native, repository
from irdiff.resolve.toolchains.building import doctor
from irdiff.resolve.toolchains.checkout import Checkout


def read(repo: Path | None, revision: str, config: Config) -> Checkout:
    store = repository.open_store(repo or Path.cwd(), config)
    return checkout.read(repository.snapshot(store, revision, config), config)


@click.command("doctor")
@click.argument("revision", default="HEAD")
@options.repo_option
@options.json_option
@options.cache_option
def doctor_command(revision: str, repo: Path | None, json_path: Path | None, cache: Path | None) -> int:
    """Check in seconds whether this machine has what a native build of REVISION needs.

    Ends with 1 where it has not.
    """
    config = configuration.load(cache=cache)
    found = read(repo, revision, config)
    rows = doctor.examine(found, config)
    works = doctor.works(rows)
    if json_path:
        text = json.dumps({"works": works, "findings": [asdict(row) for row in rows]}, indent=1)
        options.write_output(json_path, text + "\n")
    else:
        built = ", built already" if native.find(found, config) else ""
        click.echo(
            "\n".join(
                [f"{found.label}: native digest {found.native_digest[:12]}{built}", *doctor.lines(rows)]
            )
        )
    return ExitCode.DONE if works else ExitCode.ANSWER_IS_NO
