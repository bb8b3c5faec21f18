"""`irdiff init`: what a repository needs to use irdiff."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import init_github, init_toml, options
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository
from irdiff.resolve.toolchains import source_parts


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--github", is_flag=True, help="Write GitHub workflows and a release policy.")
@click.option(
    "--action",
    metavar="OWNER/NAME@COMMIT",
    help="The irdiff that the jobs run; default: where this one came from.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 64),
    help="Jobs that share one comparison; default: 4 for a checkout of Triton, else 1.",
)
@options.packages_option
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def init_command(
    folder: Path,
    github: bool,
    action: str | None,
    shards: int | None,
    packages: tuple[str, ...],
    force: bool,
) -> None:
    """Prepare the repository in FOLDER: writes files, and changes none that is there."""
    config = configuration.load()
    is_compiler = (folder / source_parts.PACKAGE_MARK).exists()
    files = _project_file(folder, packages, asked=not github)
    if github:
        files |= init_github.files(action, shards, config, is_compiler=is_compiler)
    if not files:
        raise UsageError("nothing to write", hint="irdiff init --github")
    for path, content in _to_write(folder, files, force).items():
        options.write_output(path, content)
        click.echo(f"wrote {path}")
    if github:
        _say_what_is_left(folder, action or init_github.own_action(config) or "", is_compiler=is_compiler)


def _say_what_is_left(folder: Path, action: str, *, is_compiler: bool) -> None:
    has_workloads = not is_compiler and init_toml.look_around(folder).has_workloads
    rows = init_github.still_to_do(action, is_compiler=is_compiler, has_workloads=has_workloads)
    click.echo(f"\nThe jobs run {action}. What you must still do:")
    for number, row in enumerate(rows, 1):
        click.echo(f"  {number}. {row}")


def _project_file(folder: Path, packages: tuple[str, ...], *, asked: bool) -> dict[str, str]:
    """An `irdiff.toml` for a repository of kernels that has none; a checkout of Triton needs none."""
    if (folder / kernel_repository.FILE).exists() or (folder / source_parts.PACKAGE_MARK).exists():
        return {}
    found = init_toml.look_around(folder, packages)
    return {kernel_repository.FILE: init_toml.irdiff_toml(found)} if asked or found.kernels else {}


def _to_write(folder: Path, files: dict[str, str], force: bool) -> dict[Path, str]:
    """The files that are not there yet. Raises UsageError, before anything is written, where one differs."""
    wanted: dict[Path, str] = {}
    for name, content in files.items():
        path = folder / name
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == content:
            continue
        options.check_output(path)
        if path.exists() and not force:
            raise UsageError(f"{path} is there and differs; nothing was written", hint="--force replaces it")
        wanted[path] = content
    return wanted
