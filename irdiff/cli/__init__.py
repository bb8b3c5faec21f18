"""The command line. A command's module is imported only when the command is used."""

from __future__ import annotations

import ctypes
import errno
import gc
import importlib
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TypeGuard

import click
from click.exceptions import NoSuchCommand

from irdiff import __version__
from irdiff.errors import BuildInterrupted, ExitCode, IrdiffError, StoreError, UsageError

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h
_LARGE_BLOCK = 4 << 20
_GROUPS = {
    "Compare": {
        "compare": ("compare_command", "Compare two sides: compilers, or revisions of kernels."),
        "ab": ("ab_command", "Compare several candidates with one base."),
        "bisect": ("bisect_command", "Find the commit that changes a case."),
        "merge": ("runs_commands", "Join the runs of shards or targets into one."),
    },
    "Look at a run": {
        "report": ("report_command", "Show a run again: terminal, page, Markdown, JSON."),
        "explain": ("explain_command", "Say where a change comes from and what it does."),
        "diff": ("diff_command", "Show the lines that changed in a case or a group."),
        "count": ("count_command", "Count an operation or a pattern in the code of both sides."),
        "runs": ("runs_commands", "List and remove runs, or open one in a browser."),
        "diff-runs": ("runs_commands", "Show what is new between two runs."),
        "normalize": ("diff_command", "Print the canonical text of an IR file."),
    },
    "Time it": {
        "time": ("time_command", "Time the changed cases on a GPU, or take another machine's timings."),
    },
    "Gate and publish": {
        "gate": ("gate_commands", "Check a run against a policy: the exit code is 0 or 1."),
        "release-report": ("gate_commands", "Write one document over many runs."),
        "comment": ("comment_command", "Write a run's report on a pull request."),
        "github": ("github_commands", "Run one step of the workflows that `init --github` writes."),
    },
    "Keep": {
        "history": ("history_commands", "Keep the figures of every version, and show what moved."),
        "store": ("store_commands", "Show, check, share and prune the cache."),
    },
    "Set up": {
        "init": ("init_command", "Prepare a repository: irdiff.toml, workflows, policy."),
        "corpus": ("corpus_commands", "List, show, check and verify workloads."),
        "capture": ("capture_command", "Record a program's kernels as a corpus."),
        "toolchain": ("toolchain_commands", "Install, build, check and remove compilers."),
    },
}
"""The module and the help line of each command. The function is called `NAME_command` or `NAME_group` in its
module.
"""
_COMMANDS = {name: entry for commands in _GROUPS.values() for name, entry in commands.items()}
_UNLISTED = {"hook": "hook_commands"}
"""Commands that only programs call: `hook` is the entry of `.pre-commit-hooks.yaml`."""
_MODULES = {name: module for name, (module, _) in _COMMANDS.items()} | _UNLISTED


class _LazyGroup(click.Group):
    """Imports a command's module when the command is used, so that `irdiff --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _MODULES:
            return None
        members = vars(importlib.import_module(f"irdiff.cli.{_MODULES[cmd_name]}"))
        name = cmd_name.replace("-", "_")
        command: click.Command = members.get(f"{name}_command") or members[f"{name}_group"]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests near names among all commands: click knows only those that are imported."""
        if args[0] not in _MODULES and not args[0].startswith("-"):
            raise NoSuchCommand(args[0], possibilities=_COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, _COMMANDS))  # one column over all groups
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])


_EXTRAS = {
    **dict.fromkeys(("duckdb", "numpy", "ruptures", "scipy"), "history"),
    "obstore": "remote",
    "distributed": "cluster",
}
"""Maps a package to the extra of irdiff that installs it."""
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors of the disk, which are no bugs of irdiff."""
_ALLOCATIONS = 1_000_000
"""Python looks for cycles after so many new objects. With its default of 700 the search takes a fifth of the
time of a large comparison, and irdiff's values have no cycles.
"""


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="irdiff")
def cli() -> None:
    """Show what a change of Triton, or of Triton kernels, does to compiled kernels. No GPU is needed.

    First: irdiff compare triton==3.8.0 triton==3.9.0, or irdiff init bench/run.py in your own repository.
    """


def main() -> None:
    _share_freed_memory()
    gc.set_threshold(_ALLOCATIONS)
    try:
        code = cli.main(standalone_mode=False, prog_name="irdiff")
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        causes = (error, error.__cause__)  # click raises an `Abort` from what interrupted it
        builds = (str(cause) for cause in causes if isinstance(cause, BuildInterrupted))
        click.echo(f"interrupted; {next(builds, 'what was compiled is in the store')}", err=True)
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    except ImportError as error:
        code = _report_missing(error)
    except IrdiffError as error:
        code = _report(error)
    except Exception as error:
        code = _report_unwritable(error) if _is_unwritable(error) else _report_bug(error)
    sys.stdout.flush()
    sys.exit(int(code or 0))


def _share_freed_memory() -> None:
    """glibc: lets a thread reuse memory that another thread freed, and returns large blocks to the system. By
    default each thread would keep a heap of its own for texts of up to 20 MB. Blocks are large from 4 MB on:
    the system clears each that it is asked for, and texts of less come and go all the time.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


def _report(error: IrdiffError) -> ExitCode:
    click.echo(f"irdiff: {error}", err=True)
    return error.exit_code


def _report_missing(error: ImportError) -> ExitCode:
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        return _report_bug(error)
    message = f"the package {error.name} is not installed"
    return _report(UsageError(message, hint=f"pip install 'irdiff[{extra}]'"))


def _is_unwritable(error: Exception) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def _report_unwritable(error: OSError) -> ExitCode:
    return _report(
        StoreError(
            f"{error.filename or 'a file'} cannot be written: {error.strerror}",
            hint="free space, or name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        )
    )


def _report_bug(error: Exception) -> ExitCode:
    with tempfile.NamedTemporaryFile("w", prefix="irdiff-bug-", suffix=".log", delete=False) as log:
        log.write(f"irdiff {__version__}\npython {sys.version}\n{' '.join(sys.argv)}\n\n")
        traceback.print_exc(file=log)
    click.echo(f"irdiff: a bug: {type(error).__name__}: {error}", err=True)
    click.echo(f"  next: report it with the file {Path(log.name)}", err=True)
    return ExitCode.BUG
