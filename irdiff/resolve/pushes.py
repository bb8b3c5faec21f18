"""Before a push: which of the pushed commits touch what irdiff compares, and with what."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides
from irdiff.resolve import tree_edits
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import GitStore

_NO_COMMIT = "0" * 40
MARK = "# written by `irdiff hook install`"
_OURS = re.compile(rf"#!/bin/sh\n{re.escape(MARK)}\n\[ -x .+ \] \|\| exit 0\nexec .+ hook run .+\n")


def is_ours(script: str) -> bool:
    """Whether `irdiff hook install` wrote it and nobody has added to it since."""
    return _OURS.fullmatch(script) is not None


@dataclass(frozen=True, kw_only=True)
class Push:
    """One commit that is pushed, and what it is compared with."""

    base: str
    head: str
    relevant: tuple[str, ...]
    """Changed paths that can change a kernel; none means there is nothing to compare."""
    is_compiler: bool


def pushed_commits(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(local commit, remote commit) of each branch that is pushed, from what git gives a pre-push hook."""
    rows = [parts for line in lines if len(parts := line.split()) == 4]
    return list(
        dict.fromkeys(
            (local, remote)
            for _, local, branch, remote in rows
            if branch.startswith("refs/heads/") and local != _NO_COMMIT
        )
    )


def inspect(store: GitStore, local: str, remote: str, config: Config) -> Push | None:
    """The push of a commit. None where it has no base or is its own, or the repository is not one of ours.

    Raises UsageError where an `irdiff.toml` cannot be read.
    """
    base = _base(store, local, remote)
    if base is None or base == local:
        return None
    commits = Sides(base=base, head=local)
    found = tree_edits.between(commits.map(lambda commit: repository.snapshot(store, commit, config)), config)
    if found is None:
        return None
    relevant = tuple(file.path for file in found.files if file.counts)
    return Push(base=base, head=local, relevant=relevant, is_compiler=not found.of_kernels)


def _base(store: GitStore, local: str, remote: str) -> str | None:
    with contextlib.suppress(UsageError):
        return repository.default_base(store, local)
    with contextlib.suppress(UsageError):  # the remote has commits that were never fetched
        return None if remote == _NO_COMMIT else repository.commit_of(store, remote)
    return None
