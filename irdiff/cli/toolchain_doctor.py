"""`irdiff toolchain doctor|prepare`: what a native build needs, and the parts that it would download."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import ExitCode, ToolchainError, UsageError
from irdiff.resolve import toolchains
from irdiff.resolve.toolchains import checkout, native, repository
from irdiff.resolve.toolchains.building import doctor, linked_llvm, offline_parts, packaged_llvm
from irdiff.resolve.toolchains.building.linked_llvm import LinkedLlvm
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
    """Check in seconds whether a native build of REVISION would work here, and print how it would."""
    config = configuration.load(cache=cache)
    found = read(repo, revision, config)
    diagnosis = doctor.examine(found, config)
    if json_path:
        rows = [{**vars(finding), "answer": finding.answer.value} for finding in diagnosis.findings]
        text = json.dumps({"works": diagnosis.works, "findings": rows, "environment": diagnosis.environment})
        options.write_output(json_path, text + "\n")
    else:
        _show(found, diagnosis, config)
    return ExitCode.DONE if diagnosis.works else ExitCode.ANSWER_IS_NO


def _show(found: Checkout, diagnosis: doctor.Readiness, config: Config) -> None:
    built = native.find(found, config)
    click.echo(f"{found.label}: native digest {found.native_digest[:12]}{', built already' if built else ''}")
    for line in doctor.lines(diagnosis.findings):
        click.echo(line)
    if diagnosis.environment:
        click.echo(
            "\nthis environment " + ("works" if diagnosis.works else "works once the rest is there") + ":"
        )
        for line in diagnosis.exports():
            click.echo(f"  {line}")
    elif diagnosis.works:
        click.echo("\nthe environment is as it should be")


@click.command("prepare")
@click.argument("revision", default="HEAD")
@click.option(
    "--llvm",
    "llvm_path",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="An installed LLVM with MLIR and lld; the default is the newest in /usr/lib.",
)
@click.option("--tools", "tools_spec", help="A release (triton==3.9.0) whose NVIDIA tools stand in.")
@options.repo_option
@options.cache_option
def prepare_command(
    revision: str, llvm_path: Path | None, tools_spec: str | None, repo: Path | None, cache: Path | None
) -> int:
    """Make what a build of REVISION would download, from what is installed, and print the environment.

    `eval "$(irdiff toolchain prepare main --tools triton==3.9.0)"` sets it for a shell.
    """
    config = configuration.load(cache=cache)
    found = read(repo, revision, config)
    llvm = packaged_llvm.prepare(_chosen(llvm_path), config)
    exports = doctor.Readiness(
        findings=(), environment={**doctor.recommended({}, llvm), "LLVM_SYSPATH": str(llvm.folder)}
    ).exports()
    if tools_spec:
        home = _provide_tools(found, tools_spec, config)
        exports.append(f"export TRITON_HOME={shlex.quote(str(home))}")
    click.echo("\n".join(exports))
    click.echo(f"{llvm.title()} in {llvm.folder}", err=True)
    return ExitCode.DONE


def _chosen(path: Path | None) -> LinkedLlvm:
    if path is not None:
        return LinkedLlvm(folder=path.absolute())
    found = linked_llvm.installed()
    if not found:
        raise UsageError("no LLVM with MLIR and lld is in /usr/lib", hint="name another: --llvm DIR")
    return found[0]


def _provide_tools(found: Checkout, spec: str, config: Config) -> Path:
    toolchain = toolchains.resolve(spec, config)
    backend = checkout.site_packages(toolchain, config) / "triton" / "backends" / "nvidia"
    wanted = doctor.wanted_tools(found)
    home = config.cache / "offline" / toolchain.digest[:16]
    lacking = offline_parts.provide(wanted, backend, home)
    if not wanted:
        raise ToolchainError(f"{found.label}: what its setup.py downloads is not understood")
    for one in lacking:
        click.echo(f"{spec} has no {one.place}: the build will want to download it", err=True)
    for one in (row for row in wanted if row not in lacking):
        click.echo(f"{one.title} of {spec} stands in for {one.version}", err=True)
    return home
