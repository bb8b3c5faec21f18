"""`irdiff init`: what a repository needs to use irdiff."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import __version__
from irdiff import config as configuration
from irdiff.cli import init_toml, options
from irdiff.errors import ExitCode, UsageError
from irdiff.github import workflows
from irdiff.resolve import kernel_repository


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--github", is_flag=True, help="Write the GitHub action, workflows and a release policy.")
@click.option(
    "--install",
    default=f"irdiff=={__version__}",
    show_default=True,
    help="What pip installs in the jobs: a release, or an address that it takes.",
)
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def init_command(folder: Path, github: bool, install: str, force: bool) -> int:
    """Prepare the repository in FOLDER: writes files, and changes none that is there."""
    files: dict[str, str] = {}
    if github:
        files |= _github_files(install)
    files |= _project_file(folder, asked=not github)
    if not files:
        raise UsageError("nothing to write", hint="irdiff init --github")
    for path, content in _to_write(folder, files, force).items():
        options.write_output(path, content)
        click.echo(f"wrote {path}")
    return ExitCode.DONE


def _project_file(folder: Path, *, asked: bool) -> dict[str, str]:
    """An `irdiff.toml` for a repository of kernels that has none; a checkout of Triton needs none."""
    if (folder / kernel_repository.FILE).exists() or (folder / "python/triton/__init__.py").exists():
        return {}
    found = init_toml.look_around(folder)
    return {kernel_repository.FILE: init_toml.irdiff_toml(found)} if asked or found.kernels else {}


def _github_files(install: str) -> dict[str, str]:
    if not install.isprintable() or any(mark in install for mark in "\"'\\$`{}"):
        raise UsageError(f"--install {install[:80]!a} cannot be quoted in a workflow")
    reports = configuration.load().shipped / "reports"
    policy = (reports / "irdiff-policy.toml").read_text(encoding="utf-8")
    return {**workflows.rendered(reports / "github", install), "irdiff-policy.toml": policy}


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
