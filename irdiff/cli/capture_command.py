from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from irdiff.capture import record_program
from irdiff.cli import capture_tests, init_toml, options, screen, test_arguments
from irdiff.cli.options import CaseArguments
from irdiff.cli.test_arguments import TestArguments
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.report import commands
from irdiff.resolve import corpus_archive, extra_packages, kernel_repository, pins, targets, toolchains
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import repository

_DEFAULT_TOOLCHAIN = "triton==3.9.0"
_DEFAULT_FOLDER = Path("irdiff-captured")


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--out", type=options.PATH, help="Folder or FILE.tar.gz; default: irdiff.toml's folder.")
@click.option("--toolchain", "spec", help="Run the program with this Triton: triton==3.9.0.")
@click.option("--python", metavar="PYTHON", help="The program's Python; default: the active one, or .venv's.")
@options.packages_option
@click.option(
    "--target", "target_name", default=targets.FIRST, help="The target to record for if there is no GPU."
)
@click.option("--no-gpu", is_flag=True, help="Record as if there were no GPU: nothing is launched.")
@test_arguments.recording_options
@options.gathered("selection", CaseArguments, options.targets_folder_option)
@options.configured
@options.json_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def capture_command(
    *,
    out: Path | None,
    spec: str | None,
    python: str | None,
    packages: tuple[str, ...],
    target_name: str,
    no_gpu: bool,
    tests: TestArguments,
    selection: CaseArguments,
    config: Config,
    json_path: Path | None,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM (script.py and its arguments, or -m module), and write its kernels as a corpus.

    In a git repository the workloads import the repository's kernels, so that each revision launches its
    own. Every Triton launch is recorded once. With a GPU the launch then goes on as without irdiff. Without
    a GPU kernels compute nothing: torch's tensors lie on the CPU, and an autotuned kernel gives a launch
    for each config. --tests records what the repository's tests launch, as IR and without a GPU. If the
    program fails, its exit code is returned. Compare the corpus with `irdiff compare --corpus`. An archive
    (--out FILE.tar.gz) holds copies of the kernels: it travels.
    """
    if bool(program) == tests.are_given:
        hint = "irdiff capture script.py, or --tests PATH"
        raise UsageError("name what to record: a program, or tests, and not both", hint=hint)
    (target,) = replace(selection, target_names=(target_name,)).targets(config)
    if tests.are_given:
        side = f"python:{Path(python).absolute()}" if python else spec or _DEFAULT_TOOLCHAIN
        return capture_tests.capture(tests, side, packages, target, out or _DEFAULT_FOLDER, config)
    root = _repository_root(config)
    plan = kernel_repository.plan_above(root) if root else None
    out = out or (root / plan.workloads if root and plan and plan.workloads else _DEFAULT_FOLDER)
    is_archive = corpus_archive.is_archive(out)
    if is_archive:
        options.check_output(out)
    is_inside = root is not None and not is_archive and out.resolve().is_relative_to(root.resolve())
    words: list[str] = ["--target", json.dumps(asdict(target), default=dict)]
    words += ["--repo", str(root)] if is_inside else []
    words += ["--no-gpu"] if no_gpu else []
    words += ["--json", str(json_path)] if json_path else []
    if spec or packages:
        interpreter, more = _release(spec or _DEFAULT_TOOLCHAIN, python, packages, config)
        words += [*more, "--cure", "record again with --with {}"]
        words += [word for path in _import_folders(root, plan) for word in ("--import", str(path))]
    else:
        interpreter = _own_interpreter(python, root, config)
        words += ["--cure", f"{interpreter} -m pip install {{}}"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "corpus") if is_archive else out
        words = ["--out", str(folder), *words, *program]
        code = record_program.run(
            interpreter, words, config, lambda line: click.echo(line.replace(str(folder), str(out)))
        )
        if is_archive and folder.is_dir():
            options.write_output(out, corpus_archive.packed(folder))
    if root and is_inside and out.is_dir():
        for line in _next_steps(root, out, packages):
            click.echo(line)
    return code


def _release(
    spec: str, python: str | None, packages: tuple[str, ...], config: Config
) -> tuple[str, list[str]]:
    """Returns the interpreter of a release, and the worker's arguments for packages."""
    if python:
        raise UsageError(
            "--python names an interpreter; --toolchain and --with another one",
            hint="give --python alone, and install packages there",
        )
    with screen.status_line():
        toolchain = toolchains.resolve(spec, config)
        site = str(extra_packages.site(packages, toolchain, config)) if packages else ""
    return toolchain.python, ["--packages", site] if site else []


def _own_interpreter(python: str | None, root: Path | None, config: Config) -> str:
    """Falls back to the active environment, to that of the project's folder, then to `python`."""
    own = None if config.tool_environment.get("VIRTUAL_ENV") else pins.interpreter(root)
    named = python or (str(own) if own else "python")
    interpreter = shutil.which(named)
    if interpreter is None:
        raise UsageError(f"there is no interpreter {named}", hint="name it: --python PATH")
    if own and not python:
        click.echo(f"irdiff: the program runs with {interpreter}")
    return interpreter


def _repository_root(config: Config) -> Path | None:
    """Workloads in a working tree import the repository's kernels; elsewhere they hold copies of them."""
    try:
        return repository.open_store(Path.cwd(), config).worktree
    except UsageError:
        return None


def _import_folders(root: Path | None, plan: Plan | None) -> list[Path]:
    """Lists the folders of the repository's own packages, for an interpreter that lacks them."""
    names = plan.imports if plan else ("src", ".")
    return [root / name for name in names if (root / name).is_dir()] if root else []


def _next_steps(root: Path, out: Path, packages: Sequence[str]) -> Iterator[str]:
    """Yields what the user has to do after `packages` were used to write the workloads."""
    place = out.resolve()
    plan = kernel_repository.plan_above(root)
    if plan is None:
        words = [word for package in packages for word in ("--with", package)]
        yield f"  next: {commands.command('init', *words)}, then commit both; after a change: irdiff compare"
        return
    if plan.workloads is None:
        yield f"  note: {kernel_repository.FILE} names a program, not workloads"
    elif place != (root / plan.workloads).resolve():
        yield f"  note: {kernel_repository.FILE} has workloads in {plan.workloads}, not here"
    missing = [name for name in init_toml.folders_imported_from(place, root) if name not in plan.imports]
    if missing:
        yield f"  note: add to import = [...] in {kernel_repository.FILE}: {', '.join(missing)}"
    yield "  next: commit them; after a change: irdiff compare"
