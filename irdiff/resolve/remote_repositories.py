"""Repositories that a side names by address: `owner/name@rev`, `https://…@rev`, `git@host:path@rev`.

Their branches and tags are fetched into a bare repository of the cache, and read from there like a checkout.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import GitFailed, GitStore
from irdiff.store import key_of

_URL = re.compile(
    r"(?P<where>(?:https|ssh|file)://[^\s@]*(?:@[^\s@]*)?|git@[^\s@:]+:[^\s@]+)@(?P<revision>[^@\s]+)"
)
_OWNER = re.compile(r"(?P<where>[\w][\w.-]*/[\w][\w.-]*)@(?P<revision>[^@\s{]+)")
_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class Remote:
    url: str
    revision: str


def parse(spec: str) -> Remote | None:
    """Returns None for a spec that means a revision of the local checkout."""
    if match := _URL.fullmatch(spec):
        return Remote(url=match["where"], revision=match["revision"])
    if match := _OWNER.fullmatch(spec):
        return Remote(url=f"https://github.com/{match['where']}", revision=match["revision"])
    return None


def snapshot(spec: str, store: GitStore, config: Config) -> repository.Snapshot:
    """Reads a local or remote revision; a local branch named `owner/name@x` wins. Raises UsageError."""
    remote = parse(spec)
    if remote is None:
        return repository.snapshot(store, spec, config)
    try:
        repository.commit_of(store, spec)
    except UsageError:
        snap = repository.snapshot(fetched(remote, config), remote.revision, config)
        return replace(snap, spec=spec)
    return repository.snapshot(store, spec, config)


def open_any(specs: Iterable[str | None], path: Path, config: Config) -> GitStore:
    """Opens the checkout at `path`, or else the first repository that a side names."""
    try:
        return repository.open_store(path, config)
    except UsageError:
        remote = next((parsed for spec in specs if spec and (parsed := parse(spec))), None)
        if remote is None:
            raise
        return fetched(remote, config)


def fetched(remote: Remote, config: Config) -> GitStore:
    """Returns an up-to-date copy. Raises UsageError if the repository cannot be fetched."""
    folder = config.cache.absolute() / "remotes" / key_of("remote/1", remote.url)[:20]
    folder.mkdir(parents=True, exist_ok=True)
    store = GitStore(
        git_dir=folder, common_dir=folder, worktree=None, objects=None, caller=config.tool_environment
    )
    with (folder.parent / f"{folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not (folder / "HEAD").is_file():
                store.git("init", "--quiet", "--bare")
            wanted = (remote.revision,) if _COMMIT.fullmatch(remote.revision) else _REFS
            store.git("fetch", "--quiet", "--no-auto-gc", "--", remote.url, *wanted)
        except GitFailed as error:
            raise UsageError(
                f"the repository cannot be fetched: {error.what}",
                hint="a side elsewhere is written owner/name@revision or https://host/path@revision",
            ) from error
    return store
