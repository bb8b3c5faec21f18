"""Before a push: which of the pushed commits touch what irdiff compares, and with what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve import edited_kernels
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import edited_files, repository
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
    rows = []
    for line in lines:
        parts = line.split()
        if len(parts) == 4 and parts[2].startswith("refs/heads/") and parts[1] != _NO_COMMIT:
            rows.append((parts[1], parts[3]))
    return list(dict.fromkeys(rows))


def inspect(store: GitStore, local: str, remote: str, config: Config) -> Push | None:
    """The push of a commit. None where it has no base or is its own, or the repository is not one of ours.

    Raises UsageError where an `irdiff.toml` cannot be read.
    """
    base = _base(store, local, remote)
    if base is None or base == local:
        return None
    before, after = (repository.snapshot(store, commit, config) for commit in (base, local))
    is_compiler = checkouts.is_triton(after, config)
    between = edited_files.between if is_compiler else edited_kernels.between
    edited = between(before, after, config)
    if edited is None:
        return None
    relevant = tuple(file.path for file in edited.files if file.counts)
    return Push(base=base, head=local, relevant=relevant, is_compiler=is_compiler)


def _base(store: GitStore, local: str, remote: str) -> str | None:
    try:
        return repository.default_base(store, local)
    except UsageError:
        pass
    try:
        return None if remote == _NO_COMMIT else repository.commit_of(store, remote)
    except UsageError:  # the remote has commits that were never fetched
        return None
