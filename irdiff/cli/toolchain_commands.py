from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import click

from irdiff.cli import options, screen
from irdiff.config import DAY_S, Config
from irdiff.errors import ExitCode, UsageError
from irdiff.model import Sides
from irdiff.resolve import toolchains
from irdiff.resolve.toolchains import checkout, commits, counting, environments, native, repository
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.words import counted


@click.group("toolchain")
def toolchain_group() -> None:
    """Install, build, check, list and remove toolchains."""


@toolchain_group.command("list")
@options.configured
@options.json_option
def list_command(*, config: Config, json_path: Path | None) -> None:
    """List every toolchain that irdiff installed, and what interrupted builds left."""
    installed = [
        {
            "name": environment.name,
            "spec": environment.state["spec"],
            "version": environment.state["version"],
            "digest": environment.state["digest"],
            "path": str(environment.path),
            "counts_lines": bool(environment.state.get("counts")),
        }
        for environment in environments.list_all(config)
    ]
    if json_path:
        options.write_json(json_path, installed)
        return
    for each in installed:
        kind = "  counts lines: no side of a comparison" if each["counts_lines"] else ""
        click.echo(f"{each['name']:32} {each['version']:12} {each['digest'][:12]}  {each['path']}{kind}")
    kept = native.kept_trees(config)
    for name in kept:
        state = "at work" if environments.is_at_work(name, config) else "did not end"
        click.echo(f"{name:32} {state:12} {'':12}  {config.toolchains / name}.tree")
    if not installed and not kept:
        click.echo("no toolchain is installed; `irdiff toolchain install triton==3.9.0` installs one")


@toolchain_group.command("install")
@click.argument("spec")
@options.configured
def install_command(*, spec: str, config: Config) -> None:
    """Install a toolchain before a comparison needs it."""
    with screen.status_line():
        toolchain = toolchains.resolve(spec, config)
    click.echo(f"{toolchain.spec}: Triton {toolchain.version}, {toolchain.digest[:12]}, {toolchain.path}")


@toolchain_group.command("remove")
@click.argument("names", nargs=-1, required=True)
@options.configured
def remove_command(*, names: tuple[str, ...], config: Config) -> None:
    """Remove toolchains by name or spec."""
    installed = environments.list_all(config)
    for name in names:
        matching = [
            toolchain
            for toolchain in installed
            if name in (toolchain.name, toolchain.state["spec"], toolchain.state["version"])
        ]
        if not matching:
            raise UsageError(f"no toolchain {name!r}", hint="see `irdiff toolchain list`")
        for toolchain in matching:
            environments.remove(toolchain.name, config)
            click.echo(f"removed {toolchain.name}")


@toolchain_group.command("prune")
@click.option(
    "--unused-days", type=click.FloatRange(min=0), default=30.0, help="Days that an unused one is kept."
)
@options.configured
def prune_command(*, unused_days: float, config: Config) -> None:
    """Remove toolchains that were not used for some time, and what interrupted builds left."""
    installed = environments.list_all(config)
    bound = time.time() - unused_days * DAY_S
    old = [environment.name for environment in installed if environments.last_used(environment) < bound]
    for name in old:
        environments.remove(name, config)
    removed = [*old, *environments.remove_torn(config)]
    for name in native.kept_trees(config):
        if not environments.is_at_work(name, config):
            native.remove_tree(name, config)
            removed.append(f"{name}.tree")
    for name in removed:
        click.echo(f"removed {name}")
    click.echo(f"{len(removed)} removed, {len(installed) - len(old)} kept")


_MERGE_BASE = "the merge base"


def _read(repo: Path | None, revision: str, config: Config) -> Checkout:
    store = repository.open_store(repo or Path.cwd(), config)
    return checkout.read(repository.snapshot(store, revision, config), config)


@toolchain_group.command("build")
@click.argument("revision", default="HEAD")
@click.option(
    "--coverage",
    "coverage_base",
    is_flag=False,
    flag_value=_MERGE_BASE,
    metavar="[BASE]",
    help="Also build it to count runs of the lines that differ from BASE (default: the merge base "
    "with the main branch): `compare --exercised` then counts by line.",
)
@options.repo_option
@options.configured
def build_command(*, revision: str, coverage_base: str | None, repo: Path | None, config: Config) -> None:
    """Make the toolchain of REVISION before it is needed, with a native build if there is none to share.

    An interrupted build leaves its tree (the last four are kept), and the same build goes on there.
    """
    tree = _read(repo, revision, config)
    if coverage_base is not None:
        _build_counting(tree, revision, coverage_base, repo, config)
        return
    with screen.status_line():
        toolchain, note = commits.toolchain_of(tree, config, build=True)
    click.echo(f"{toolchain.spec}: Triton {toolchain.version}, {toolchain.digest[:12]}, {toolchain.path}")
    click.echo(note)


def _build_counting(head: Checkout, revision: str, base: str, repo: Path | None, config: Config) -> None:
    """Builds the toolchain that counts lines, and prints what it counts and what it is for."""
    if base == _MERGE_BASE:
        base = repository.default_base(repository.open_store(repo or Path.cwd(), config), revision)
    with screen.status_line():
        sides = Sides(base=_read(repo, base, config), head=head)
        counting_build = counting.build(sides, config)
    edit = counting_build.edit
    count = sum(len(lines) for lines in edit.lines.values())
    click.echo(f"{counting_build.toolchain.spec}: counts lines, in {counting_build.toolchain.path}")
    lines, files = counted(count, "edited line"), counted(len(edit.lines), "file")
    click.echo(f"  {lines} of {files}, in {counted(len(edit.units), 'unit')}")
    for path in edit.without_lines:
        click.echo(f"  {path} differs, too: it has no lines that run")
    click.echo(
        "  it is no side of a comparison: `irdiff compare BASE HEAD --exercised` asks it for its lines"
    )


@toolchain_group.command("adopt")
@click.argument("revision")
@click.argument("spec")
@click.option("--anyway", is_flag=True, help="Adopt although their Python parts do not agree.")
@options.repo_option
@options.configured
def adopt_command(*, revision: str, spec: str, anyway: bool, repo: Path | None, config: Config) -> None:
    """Declare that the native part of SPEC (triton==3.9.0, a wheel file) is the one of REVISION.

    Python-only work on top of REVISION then needs no native build. The Python parts of both are compared
    first; if some differ, they are listed and nothing is adopted.
    """
    spec = f"wheel:{spec}" if spec.endswith(".whl") and not spec.startswith("wheel:") else spec
    tree = _read(repo, revision, config)
    toolchain = toolchains.resolve(spec, config)
    adoption, differences = commits.adopt(tree, spec, toolchain, config, anyway=anyway)
    for line in differences:
        click.echo(line)
    click.echo(
        f"{spec} is adopted for {tree.label}: its native part serves every revision with the native digest "
        f"{adoption.native_digest[:12]} ({len(tree.native)} files)"
    )


@toolchain_group.command("key")
@click.argument("revision", default="HEAD")
@click.option("--paths", is_flag=True, help="List the files that feed the native part.")
@options.repo_option
@options.json_option
@options.configured
def key_command(
    *, revision: str, paths: bool, repo: Path | None, json_path: Path | None, config: Config
) -> None:
    """Print the native digest of REVISION and whether its native part is at hand."""
    tree = _read(repo, revision, config)
    adoption = commits.find(tree.native_digest, config)
    key = native.key_of_build(tree, config)
    is_built = environments.find(key.name, config) is not None
    if json_path:
        content = {
            "revision": tree.label,
            "commit": tree.snapshot.commit,
            "native_digest": tree.native_digest,
            "llvm": tree.llvm,
            "adopted": adoption.spec if adoption else None,
            "build": key.name,
            "built": is_built,
            "build_environment": key.environment,
            "paths": tree.native_paths,
        }
        options.write_json(json_path, content)
        return
    if paths:
        click.echo("\n".join(tree.native_paths))
        return
    at_hand = f"adopted from {adoption.spec}" if adoption else ("built" if is_built else "not at hand")
    click.echo(f"{tree.label}: native digest {tree.native_digest}")
    click.echo(f"  {len(tree.native)} files, LLVM {tree.llvm or 'not pinned'}, native part {at_hand}")


@toolchain_group.command("doctor")
@click.argument("revision", default="HEAD")
@options.repo_option
@options.json_option
@options.configured
def doctor_command(*, revision: str, repo: Path | None, json_path: Path | None, config: Config) -> int:
    """Check in seconds whether this machine has what a native build of REVISION needs.

    Ends with 1 if something is missing.
    """
    tree = _read(repo, revision, config)
    findings = native.examine(tree, config)
    works = native.works(findings)
    if json_path:
        options.write_json(json_path, {"works": works, "findings": [asdict(finding) for finding in findings]})
    else:
        built = ", built already" if native.find(tree, config) else ""
        click.echo(f"{tree.label}: native digest {tree.native_digest[:12]}{built}")
        click.echo("\n".join(finding.line for finding in findings))
    return ExitCode.DONE if works else ExitCode.ANSWER_IS_NO
