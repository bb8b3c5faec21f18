"""The hook of `.pre-commit-hooks.yaml`, which runs before a push, in a bounded time."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff import process
from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import ExitCode, IrdiffError, UsageError
from irdiff.model import Sides
from irdiff.resolve import tree_edits
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import GitStore

_UNPROCESSED = {"ignore_unknown_options": True}
_DEFAULT_FOR_COMPILER = ("--tier", "gate")


@click.group("hook")
def hook_command() -> None:
    """Compare before pushing."""


@hook_command.command("run", context_settings=_UNPROCESSED)
@click.option(
    "--budget", "budget_s", type=options.DURATION, default="120s", help="How long a push may wait: 60s, 2m."
)
@click.option("--block", is_flag=True, help="Stop a push that changes code.")
@click.option("--from-ref", envvar="PRE_COMMIT_FROM_REF", help="What the remote has (set by pre-commit).")
@click.option("--to-ref", envvar="PRE_COMMIT_TO_REF", help="What is pushed (set by pre-commit).")
@click.argument("compare_options", nargs=-1, type=click.UNPROCESSED)
def run_command(
    *,
    budget_s: float,
    block: bool,
    from_ref: str | None,
    to_ref: str | None,
    compare_options: tuple[str, ...],
) -> int:
    """Compare what is pushed. git and pre-commit say what that is.

    COMPARE_OPTIONS after -- choose what is compared; the default in a checkout of Triton is `--tier gate`.
    """
    config = configuration.load()
    deadline = time.monotonic() + budget_s
    lines = [f"refs/heads/x {to_ref} refs/heads/x {from_ref or '0' * 40}"] if to_ref else list(sys.stdin)
    answer = ExitCode.DONE
    try:
        store = repository.open_store(Path.cwd(), config)
        for local, remote in pushed_commits(lines):
            push = inspect(store, local, remote, config)
            if push is not None and push.relevant:
                left_s = deadline - time.monotonic()
                answer = max(answer, _compare(push, compare_options, left_s, config))
    except IrdiffError as error:  # a hook that cannot work must not be in the way
        click.echo(f"irdiff: {error}", err=True)
    if answer is ExitCode.ANSWER_IS_NO and block:
        click.echo("irdiff: the push is stopped; `git push --no-verify` pushes all the same", err=True)
        return ExitCode.ANSWER_IS_NO
    return ExitCode.DONE


def _compare(push: Push, compare_options: tuple[str, ...], left_s: float, config: Config) -> ExitCode:
    """Reports a push that cannot be compared in time, and does not stop it."""
    chosen = compare_options or (_DEFAULT_FOR_COMPILER if push.is_compiler else ())
    words = ["compare", push.base, push.head, "--no-build", "--no-recheck", "--exit-code", *chosen]
    click.echo(f"irdiff: {len(push.relevant)} paths that can change kernels", err=True)
    try:
        command = [sys.executable, "-m", "irdiff", *words]
        click.echo(process.run(command, env=config.tool_environment, timeout_s=max(1.0, left_s)), err=True)
    except process.TimeoutExpired:
        click.echo("irdiff: the time budget is used up; nothing is known of this push", err=True)
    except process.CommandFailed as failed:
        click.echo(failed.stdout if failed.code == ExitCode.ANSWER_IS_NO else failed.tail(), err=True)
        if failed.code == ExitCode.ANSWER_IS_NO:
            return ExitCode.ANSWER_IS_NO
    return ExitCode.DONE


# Before a push: which of the pushed commits touch what irdiff compares, and with what.


_NO_COMMIT = "0" * 40


@dataclass(frozen=True, kw_only=True)
class Push:
    base: str
    head: str
    relevant: tuple[str, ...]
    """Changed paths that can change a kernel; if empty, there is nothing to compare."""
    is_compiler: bool


def pushed_commits(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Parses the lines that git gives a pre-push hook. Returns (local commit, remote commit) for each pushed
    branch.
    """
    refs = [parts for line in lines if len(parts := line.split()) == 4]
    return list(
        dict.fromkeys(
            (local, remote)
            for _, local, branch, remote in refs
            if branch.startswith("refs/heads/") and local != _NO_COMMIT
        )
    )


def inspect(store: GitStore, local: str, remote: str, config: Config) -> Push | None:
    """Returns None if there is nothing to compare: no base, or neither Triton nor an irdiff.toml. Raises
    UsageError.
    """
    base = _base(store, local, remote)
    if base is None or base == local:
        return None
    commits = Sides(base=base, head=local)
    edits = tree_edits.between(commits.map(lambda commit: repository.snapshot(store, commit, config)), config)
    if edits is None:
        return None
    relevant = tuple(file.path for file in edits.files if file.counts)
    return Push(base=base, head=local, relevant=relevant, is_compiler=not edits.of_kernels)


def _base(store: GitStore, local: str, remote: str) -> str | None:
    with contextlib.suppress(UsageError):
        return repository.default_base(store, local)
    with contextlib.suppress(UsageError):  # the remote has commits that were never fetched
        return None if remote == _NO_COMMIT else repository.commit_of(store, remote)
    return None
