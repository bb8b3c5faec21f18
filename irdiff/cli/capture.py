"""`irdiff capture script.py [args…]`."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff.capture import record_program
from irdiff.cli import captured_corpus, options
from irdiff.cli.status import status_line
from irdiff.config import Config
from irdiff.errors import ExitCode, UsageError
from irdiff.resolve import packages as beside
from irdiff.resolve import pins, toolchains
from irdiff.resolve.toolchains import install_progress

_DEFAULT_TOOLCHAIN = "triton==3.9.0"


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The corpus folder to write; default: that of irdiff.toml, or irdiff-captured.",
)
@click.option("--toolchain", "spec", help="Run the program with this Triton: triton==3.9.0.")
@click.option(
    "--python",
    "python",
    metavar="PYTHON",
    help="The program's own interpreter; default: that of the active environment, of .venv, or `python`.",
)
@options.packages_option
@click.option(
    "--target",
    "target_name",
    default="sm_90",
    show_default=True,
    help="The target to record for where there is no GPU.",
)
@click.option("--no-gpu", is_flag=True, help="Record as if there were no GPU: nothing is launched.")
@click.option(
    "--from-trace", type=click.Path(path_type=Path), help="A trace of tritonparse instead of a program."
)
@options.targets_folder_option
@options.cache_option
@options.json_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def capture_command(
    out: Path | None,
    spec: str | None,
    python: str | None,
    packages: tuple[str, ...],
    target_name: str,
    no_gpu: bool,
    from_trace: Path | None,
    targets_dir: Path | None,
    cache: Path | None,
    json_path: Path | None,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM (script.py and its arguments, or -m module), and write its kernels as a corpus.

    In a git repository the workloads import the repository's kernels, so that each revision launches its own.
    Every Triton launch is recorded once. With a GPU it then goes on as usual: the program runs as without
    irdiff, and its exit code is ours where it fails. Without one nothing is computed: torch's tensors lie
    on the CPU, and an autotuned kernel gives a launch for each config. The folder is for `irdiff compare
    --corpus`.
    """
    if bool(program) == bool(from_trace):
        raise UsageError("nothing to record", hint="irdiff capture script.py, or --from-trace FILE.ndjson")
    config = configuration.load(cache=cache)
    (target,) = options.selected_targets((target_name,), targets_dir, config)
    root = None if from_trace else captured_corpus.repository_root(config)
    out = out or captured_corpus.default_folder(root)
    words: list[str] = ["--out", str(out), "--target", json.dumps(asdict(target), default=dict)]
    words += ["--repo", str(root)] if captured_corpus.is_inside(out, root) else []
    words += ["--no-gpu"] if no_gpu else []
    words += ["--json", str(json_path)] if json_path else []
    words += ["--from-trace", str(from_trace)] if from_trace else []
    if spec or packages or (not python and from_trace):
        interpreter, more = _release(spec or _DEFAULT_TOOLCHAIN, python, packages, config)
        words += [*more, "--cure", "record again with --with {}"]
        words += [word for path in captured_corpus.import_folders(root) for word in ("--import", str(path))]
    else:
        interpreter = _own_interpreter(python, root, config)
        words += ["--cure", f"{interpreter} -m pip install {{}}"]
    code = record_program.run(interpreter, [*words, *program], config, click.echo)
    if code == ExitCode.DONE and root and captured_corpus.is_inside(out, root):
        for line in captured_corpus.next_steps(root, out, packages):
            click.echo(line)
    return code


def _release(
    spec: str, python: str | None, packages: tuple[str, ...], config: Config
) -> tuple[str, list[str]]:
    """The interpreter of a release, and the words that give it packages."""
    if python:
        raise UsageError(
            "--python names an interpreter; --toolchain and --with another one",
            hint="give --python alone, and install packages there",
        )
    with status_line(Console(stderr=True)) as tell, install_progress.telling(tell):
        toolchain = toolchains.resolve(spec, config)
        site = str(beside.site(packages, toolchain, config)) if packages else ""
    return toolchain.python, ["--packages", site] if site else []


def _own_interpreter(python: str | None, root: Path | None, config: Config) -> str:
    """The one that was named, that of the active environment or of the project's folder, or `python`."""
    own = None if config.tool_environment.get("VIRTUAL_ENV") else pins.interpreter(root)
    named = python or (str(own) if own else "python")
    found = shutil.which(named)
    if found is None:
        raise UsageError(f"there is no interpreter {named}", hint="name it: --python PATH")
    if own and not python:
        click.echo(f"irdiff: the program runs with {found}")
    return found
