"""`irdiff capture script.py [args…]`."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.capture import record_program
from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve import toolchains


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("irdiff-captured"),
    show_default=True,
    help="The corpus folder to write.",
)
@click.option("--toolchain", "spec", help="Run the program with this Triton: triton==3.9.0.")
@click.option(
    "--python", "python", metavar="PYTHON", help="The program's own interpreter; default: `python`."
)
@click.option("--target", "target_name", default="sm_90", show_default=True, help="Where there is no GPU.")
@click.option("--no-gpu", is_flag=True, help="Record as if there were no GPU: nothing is launched.")
@click.option(
    "--from-trace", type=click.Path(path_type=Path), help="A trace of tritonparse instead of a program."
)
@options.targets_folder_option
@options.cache_option
@options.json_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def capture_command(
    out: Path,
    spec: str | None,
    python: str | None,
    target_name: str,
    no_gpu: bool,
    from_trace: Path | None,
    targets_dir: Path | None,
    cache: Path | None,
    json_path: Path | None,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM (script.py and its arguments, or -m module), and write its kernels as a corpus.

    Every Triton launch is recorded once. With a GPU it then goes on as usual: the program runs as without
    irdiff, and its exit code is ours where it fails. Without one nothing is computed: torch's tensors lie
    on the CPU, and an autotuned kernel gives a launch for each config. The folder is for `irdiff compare
    --corpus`.
    """
    if bool(program) == bool(from_trace):
        raise UsageError("nothing to record", hint="irdiff capture script.py, or --from-trace FILE.ndjson")
    config = configuration.load(cache=cache)
    (target,) = options.selected_targets((target_name,), targets_dir, config)
    words: list[str] = ["--out", str(out), "--target", json.dumps(asdict(target), default=dict)]
    words += ["--no-gpu"] if no_gpu else []
    words += ["--json", str(json_path)] if json_path else []
    words += ["--from-trace", str(from_trace)] if from_trace else []
    interpreter = _interpreter(spec, python, config, needs_program=not from_trace)
    return record_program.run(interpreter, [*words, *program], config, click.echo)


def _interpreter(spec: str | None, python: str | None, config: Config, *, needs_program: bool) -> str:
    if spec and python:
        raise UsageError("--toolchain and --python name two interpreters", hint="give one of them")
    if spec or (not python and not needs_program):
        return toolchains.resolve(spec or "triton==3.9.0", config).python
    found = shutil.which(python or "python")
    if found is None:
        raise UsageError(f"there is no interpreter {python or 'python'}", hint="name it: --python PATH")
    return found
