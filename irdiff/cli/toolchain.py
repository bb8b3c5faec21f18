"""`irdiff toolchain`: the environments that irdiff made."""

from __future__ import annotations

import time
from pathlib import Path

import click

from irdiff.cli import options, screen, toolchain_commits
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.resolve import toolchains
from irdiff.resolve.toolchains import environments, identity
from irdiff.resolve.toolchains.building import kept_trees


@click.group("toolchain")
def toolchain_group() -> None:
    """Install, build, check, list and remove toolchains."""


@toolchain_group.command("list")
@options.configured
@options.json_option
def list_command(*, config: Config, json_path: Path | None) -> None:
    """List every toolchain that irdiff installed, and what builds left that did not end."""
    rows = [
        {
            "name": found.name,
            "spec": found.state["spec"],
            "version": found.state["version"],
            "digest": _digest(found, config),
            "path": str(found.path),
            "counts_lines": bool(found.state.get("counts")),
        }
        for found in environments.list_all(config)
    ]
    if json_path:
        options.write_json(json_path, rows)
        return
    for row in rows:
        kind = "  counts lines: no side of a comparison" if row["counts_lines"] else ""
        click.echo(f"{row['name']:32} {row['version']:12} {row['digest'][:12]}  {row['path']}{kind}")
    kept = kept_trees.names(config)
    for name in kept:
        state = "at work" if environments.is_at_work(name, config) else "did not end"
        click.echo(f"{name:32} {state:12} {'':12}  {config.toolchains / name}.tree")
    if not rows and not kept:
        click.echo("no toolchain is installed; `irdiff toolchain install triton==3.9.0` installs one")


def _digest(found: environments.Environment, config: Config) -> str:
    """The digest as it is now: the one that was written down then may follow another rule."""
    spec: str = found.state["spec"]
    if spec.startswith(("pack:", "with:", "build requirements:")):  # no toolchains
        return str(found.state["digest"])
    try:
        return identity.identify(spec, found.python, found.path, config).digest
    except ToolchainError:
        return "does not start"


@toolchain_group.command("install")
@click.argument("spec")
@options.configured
def install_command(*, spec: str, config: Config) -> None:
    """Install a toolchain ahead of its use."""
    with screen.status_line():
        found = toolchains.resolve(spec, config)
    click.echo(f"{found.spec}: Triton {found.version}, {found.digest[:12]}, {found.path}")


@toolchain_group.command("remove")
@click.argument("names", nargs=-1, required=True)
@options.configured
def remove_command(*, names: tuple[str, ...], config: Config) -> None:
    """Remove toolchains by name or spec."""
    known = environments.list_all(config)
    for name in names:
        matching = [row for row in known if name in (row.name, row.state["spec"], row.state["version"])]
        if not matching:
            raise UsageError(f"no toolchain {name!r}", hint="see `irdiff toolchain list`")
        for row in matching:
            environments.remove(row.name, config)
            click.echo(f"removed {row.name}")


@toolchain_group.command("prune")
@click.option(
    "--unused-days",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Remove what was unused for more days.",
)
@options.configured
def prune_command(*, unused_days: float, config: Config) -> None:
    """Remove toolchains that were not used for some time, and what builds left that did not end."""
    known = environments.list_all(config)
    bound = time.time() - unused_days * 86400
    old = [row.name for row in known if environments.last_used(row) < bound]
    for name in old:
        environments.remove(name, config)
    removed = [*old, *environments.remove_torn(config)]
    for name in kept_trees.names(config):
        if not environments.is_at_work(name, config):
            kept_trees.remove(name, config)
            removed.append(f"{name}.tree")
    for name in removed:
        click.echo(f"removed {name}")
    click.echo(f"{len(removed)} removed, {len(known) - len(old)} kept")


for command in toolchain_commits.COMMANDS:
    toolchain_group.add_command(command)
