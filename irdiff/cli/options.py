"""Options that several commands share, and what they make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from irdiff.cli import completing
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Target
from irdiff.resolve import targets
from irdiff.run import run_place


class OutputFile(click.Path):
    """A file to write, or `-`. Anything there but a plain file is refused before any work is done."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if str(path) != "-":
            check_output(path)
        return path


def check_output(path: Path) -> None:
    """Raises UsageError where `path` is neither a plain file nor a name for one."""
    try:
        above = next(folder for folder in path.absolute().parents if folder.exists())
        is_there, is_file = path.exists(), path.is_file()
        if is_file:
            path.open("ab").close()
        elif not is_there and above.is_dir():
            run_place.try_to_write(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    if is_there and not is_file:
        what = "a folder" if path.is_dir() else "a device or a pipe"
        raise UsageError(f"{path} is {what}, not a file to write", hint="name a file, or - for stdout")
    if not above.is_dir():
        raise UsageError(f"{path} cannot be written: {above} is not a folder", hint="name another file")


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror or error}", hint="name another file")


cache_option = click.option(
    "--cache", type=click.Path(path_type=Path), help="Folder for toolchains and the store (IRDIFF_CACHE)."
)
store_mode_option = click.option(
    "--store-mode",
    type=click.Choice(["read", "write"]),
    help="With a shared store (IRDIFF_STORE): only read it, or leave there what was made too. Default: read.",
)
corpus_option = click.option(
    "--corpus", type=click.Path(path_type=Path), help="Folder of workloads; default: the shipped corpus."
)
pack_option = click.option(
    "--pack",
    "packs",
    multiple=True,
    metavar="NAME",
    help="Kernels of published packages (corpus/packs) in place of the corpus's own; repeatable.",
)
bump_option = click.option(
    "--bump", is_flag=True, help="Report as for a bump: distributions first, then outliers, then groups."
)
origin_option = click.option(
    "--from",
    "origin",
    metavar="SIDE|RUN",
    help="Whose texts two tools (llvm:PATH, ptxas:PATH) compile: a release, or a run folder.",
)
ptxas_option = click.option(
    "--ptxas", metavar="PATH", help="Assembles what LLVMs make of the texts of a run."
)
repo_option = click.option(
    "--repo", type=click.Path(path_type=Path), help="A checkout; default: that of the current folder."
)
case_option = click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="PATTERN",
    shell_complete=completing.workloads,
    help="Only these cases: family/workload:label@target; parts and globs work; repeatable.",
)
tier_option = click.option(
    "--tier",
    "tiers",
    multiple=True,
    type=click.Choice(["gate", "core", "extended"]),
    help="Only cases of this tier; repeatable.",
)
target_option = click.option(
    "--target",
    "target_names",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.target_names,
    help="A target, repeatable; `all` for every known one. Default: sm_90 sm_100 gfx942 gfx950.",
)
targets_folder_option = click.option(
    "--targets-dir", type=click.Path(path_type=Path), help="A folder of further target files (*.toml)."
)
json_option = click.option("--json", "json_path", type=OutputFile(), help="Write JSON here (- for stdout).")

limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N groups and N cases of each list."
)


python_option = click.option(
    "--python", metavar="PYTHON", help="An interpreter that has Triton, and what the kernels import."
)
packages_option = click.option(
    "--with",
    "packages",
    multiple=True,
    metavar="PACKAGE",
    help="Install this package beside Triton for what imports it: torch, torch==2.13.0; repeatable.",
)
_program = click.option(
    "--program",
    metavar="COMMAND",
    help="Compare what this program of the repository launches: 'bench/run.py --small'.",
)
_configs = click.option(
    "--configs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take the first N configs of each autotuning list; default: all.",
)


def kernel_options(function: Callable[..., Any]) -> Any:
    """What a repository of kernels is launched by, and with."""
    return python_option(packages_option(_program(_configs(function))))


context_option = click.option(
    "--context",
    "-U",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many lines to show around a change.",
)

_jobs = click.option(
    "--jobs", "-j", type=int, help="How many compilers run at a time; default: the cores of this machine."
)
_timeout = click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=300.0,
    show_default=True,
    help="Seconds that a case may take.",
)
_memory = click.option(
    "--memory",
    "memory_mib",
    type=int,
    default=8192,
    show_default=True,
    help="MiB of memory that a case may take.",
)


def limit_options(function: Callable[..., Any]) -> Any:
    """Bounds of compilation and the number of cores."""
    return _jobs(_timeout(_memory(function)))


def corpus_folder(corpus: Path | None, config: Config) -> Path:
    return corpus or config.shipped / "corpus"


def selected_targets(
    names: tuple[str, ...], folder: Path | None, config: Config, cases: tuple[str, ...] = ()
) -> tuple[Target, ...]:
    """Without those that patterns of cases leave out."""
    folders = [config.shipped / "targets", *([folder] if folder else [])]
    return targets.selected(names, cases, folders)


def write_output(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Writes to a file, or to standard output for `-`. Raises UsageError where it cannot be written."""
    parts = (
        [content.encode()]
        if isinstance(content, str)
        else [content]
        if isinstance(content, bytes)
        else content
    )
    if str(path) == "-":
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.flush()
    else:
        check_output(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.writelines(parts)
        except OSError as error:
            raise _unwritable(path, error) from error


def check_beside(run: Path, outputs: Iterable[Path | None]) -> None:
    """Raises UsageError for an output inside a run folder, which holds a run and nothing else."""
    for path in outputs:
        if path and str(path) != "-" and path.resolve().is_relative_to(run.resolve()):
            raise UsageError(
                f"{path} lies in the run folder {run}, which is replaced as a whole",
                hint="write it beside the run",
            )
