"""Git: revisions and the working tree as trees of blobs.

GitPython finds a repository, its working tree and what it shares with others, and starts nothing; whatever
else is asked of git is a command, started where all processes are. What a repository's configuration names
is not run: no hook, no monitor of files, no check of signatures. Filters of its attributes are, as ever when
files are added: without them the content would not be what git makes of it.

A `Snapshot` names one tree and where its objects are. The working tree becomes a tree too: its files,
uncommitted and untracked ones included and ignored ones not, are written as objects to a folder of the
cache that has the checkout's objects as alternates. So nothing below the user's checkout is ever written,
not even its index, and everything else treats a commit and the working tree alike.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from irdiff import config as configuration
from irdiff import process
from irdiff.config import Config
from irdiff.errors import UsageError

WORKING_TREE = "."
_GITLINK = "160000"
_SYMLINK = "120000"
# in this order: a fork's own `main` may lag behind the project that it was forked from
_MAIN_BRANCHES = (
    "refs/remotes/upstream/HEAD",
    "refs/remotes/upstream/main",
    "refs/remotes/upstream/master",
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
_FIXED = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
_NO_PROGRAMS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),  # `post-index-change` follows whatever writes an index
    *("-c", "log.showSignature=false"),
)
_NOT_SPARSE = ("-c", "core.sparseCheckout=false")
"""For a working tree: otherwise `add` refuses files that lie outside of what a sparse checkout has."""


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """One file of a tree, in a submodule too. A submodule whose objects are not there is one entry."""

    path: str
    mode: str
    blob: str
    store: GitStore

    @property
    def content(self) -> tuple[str, str]:
        """Mode and blob."""
        return self.mode, self.blob

    @property
    def is_file(self) -> bool:
        return self.mode not in (_GITLINK, _SYMLINK)

    @property
    def is_link(self) -> bool:
        return self.mode == _SYMLINK

    @property
    def is_missing_submodule(self) -> bool:
        return self.mode == _GITLINK


class GitFailed(UsageError):  # noqa: N818 - reads better where it is caught
    """Git refused: the repository lacks something, is damaged, or belongs to someone else."""


@dataclass(frozen=True, kw_only=True)
class GitStore:
    """Where the objects of a tree are read."""

    git_dir: Path
    common_dir: Path
    worktree: Path | None
    objects: Path | None
    """A folder of objects of the cache that is read first, None for a commit."""
    caller: Mapping[str, str] = field(repr=False, compare=False)
    """The environment that git runs in, apart from what is fixed here."""

    def git(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Standard output of a git command. Raises GitFailed."""
        return self._run((*_NO_PROGRAMS, *words), stdin, env or {})

    def hook_path(self, name: str) -> Path:
        """Where git looks for a hook, by the repository's own configuration."""
        said = self._run(("rev-parse", "--git-path", f"hooks/{name}"), b"", {})
        return Path(self.worktree or self.git_dir, os.fsdecode(said).rstrip("\n"))

    def _run(self, words: Sequence[str], stdin: bytes, env: Mapping[str, str]) -> bytes:
        place = self.worktree or self.git_dir
        objects = {"GIT_OBJECT_DIRECTORY": str(self.objects)} if self.objects else {}
        try:
            return process.run_bytes(
                ["git", f"--git-dir={self.git_dir}", *words],
                env={**self.caller, **_FIXED, **objects, **env},
                cwd=place if os.access(place, os.X_OK) else None,
                stdin=stdin,
            )
        except process.CommandFailed as error:
            raise GitFailed(
                f"git cannot read the repository {place}: {' '.join(error.stderr.split())[:400]}",
                hint="`git fsck` looks for what is missing; `git fetch --refetch` brings it again",
            ) from error
        except OSError as error:
            raise GitFailed(
                f"git cannot be started: {error}", hint="install git; two releases are compared without it"
            ) from error


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One tree: that of a commit, or of the working tree."""

    store: GitStore
    tree: str
    commit: str | None
    """None for a working tree that differs from its commit."""
    spec: str
    """As the user wrote it."""

    @property
    def label(self) -> str:
        if self.commit is None:
            return f"working tree ({self.tree[:10]})"
        short = self.commit[:10]
        return short if self.commit.startswith(self.spec) else f"{self.spec} ({short})"

    @property
    def name(self) -> str:
        """As reports name it: `main 1a2b3c4`, `1a2b3c4`, `working tree 1a2b3c4` (of its commit or tree)."""
        short = (self.commit or self.tree)[:7]
        if self.spec == WORKING_TREE:
            return f"working tree {short}"
        return short if (self.commit or "").startswith(self.spec) else f"{self.spec} {short}"

    @property
    def title(self) -> str:
        """Subject of the commit."""
        if self.commit is None:
            return "uncommitted changes"
        return self.store.git("log", "-1", "--format=%s", self.commit).decode(errors="replace").strip()


def open_store(path: Path, config: Config) -> GitStore:
    """The repository that holds `path`. Raises UsageError where there is none."""
    git = _gitpython()
    try:
        with contextlib.closing(git.Repo(path, search_parent_directories=True)) as repo:
            worktree = Path(repo.working_tree_dir) if repo.working_tree_dir and not repo.bare else None
            store = GitStore(
                git_dir=Path(repo.git_dir).absolute(),
                common_dir=Path(repo.common_dir).absolute(),
                worktree=worktree,
                objects=None,
                caller=config.tool_environment,
            )
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise UsageError(
            f"{path} is in no git repository",
            hint="go to a checkout or name one with --repo PATH; a release is written triton==3.9.0",
        ) from error
    store.git("rev-parse", "--git-dir")
    return store


@cache
def _gitpython() -> ModuleType:
    """GitPython, which asks a program for its version as it is imported unless it is told of none."""
    with configuration.variables(GIT_PYTHON_REFRESH="quiet", GIT_PYTHON_GIT_EXECUTABLE=os.devnull):
        import git

    return git


def snapshot(store: GitStore, spec: str, config: Config) -> Snapshot:
    """The tree of a revision, or of the working tree for `.`. Raises UsageError."""
    if spec == WORKING_TREE:
        return _working_tree(store, config)
    commit = commit_of(store, spec)
    tree = store.git("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
    return Snapshot(store=store, tree=tree, commit=commit, spec=spec)


def commit_of(store: GitStore, spec: str) -> str:
    """The full name of a commit. Raises UsageError where the repository has no such revision."""
    try:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{spec}^{{commit}}")
        return store.git(*words).decode().strip()
    except GitFailed as error:
        where = store.worktree or store.git_dir
        hint = "see `git branch --all` and `git tag`; a branch of a remote needs `git fetch` first"
        if is_shallow(store):
            hint = "this clone is shallow: `git fetch --unshallow` brings the history that is missing"
        raise UsageError(
            f"{spec!r} is no revision of the repository {where}",
            hint=f"{hint}; a release is written triton==3.9.0",
        ) from error


def is_shallow(store: GitStore) -> bool:
    return (store.common_dir / "shallow").exists()


def is_dirty(store: GitStore) -> bool:
    """Whether the working tree has changed, staged or untracked files; a bare repository never has."""
    if store.worktree is None:
        return False
    status = store.git(f"--work-tree={store.worktree}", "status", "--porcelain", "-z")
    return bool(status.strip(b"\0"))


def main_branch(store: GitStore) -> str | None:
    """The reference of the branch that pull requests go to, as far as the repository knows."""
    listed = store.git("for-each-ref", "--format=%(refname)").decode(errors="replace").splitlines()
    names = set(listed)
    return next((name for name in _MAIN_BRANCHES if name in names), None)


def merge_base(store: GitStore, first: str, second: str) -> str:
    """Raises UsageError where the two have no common commit within the history that is there."""
    try:
        return store.git("merge-base", first, second).decode().split()[0]
    except (GitFailed, IndexError) as error:
        hint = "name the base: irdiff compare BASE HEAD"
        if is_shallow(store):
            hint = "this clone is shallow: `git fetch --unshallow`, or name the base"
        raise UsageError(f"{first} and {second} have no common commit here", hint=hint) from error


def default_base(store: GitStore, head: str) -> str:
    """The merge base of `head` and the main branch. Raises UsageError where that says nothing."""
    main = main_branch(store)
    if main is None:
        raise UsageError(
            "there is no main branch to compare with (looked for main and master, here and at the remotes "
            "origin and upstream)",
            hint="name the base: irdiff compare BASE HEAD",
        )
    tip = commit_of(store, "HEAD" if head == WORKING_TREE else head)
    base = merge_base(store, main, tip)
    if base == tip and head != WORKING_TREE:
        short = main.split("/", 2)[-1]
        raise UsageError(
            f"{head} is part of {short} and there are no uncommitted changes: nothing to compare",
            hint=f"name the base: irdiff compare {head}~1 {head}",
        )
    return base


def entries(snap: Snapshot, config: Config) -> list[TreeEntry]:
    """Every file of the tree, those of submodules under their full path."""
    return list(_entries(snap, "", config))


def _entries(snap: Snapshot, prefix: str, config: Config) -> Iterator[TreeEntry]:
    listing = snap.store.git("ls-tree", "-r", "-z", "--full-tree", snap.tree)
    for row in listing.split(b"\0"):
        if not row:
            continue
        head, _, name = row.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        path = os.fsdecode(name)
        if mode == _GITLINK:
            inner = _submodule(snap, path, blob, config)
            if inner is not None:
                yield from _entries(inner, f"{prefix}{path}/", config)
                continue
        yield TreeEntry(path=prefix + path, mode=mode, blob=blob, store=snap.store)


def read(wanted: Sequence[TreeEntry]) -> dict[str, bytes]:
    """Contents by path, in one git process a repository."""
    contents: dict[str, bytes] = {}
    for store in {entry.store for entry in wanted}:
        mine = [entry for entry in wanted if entry.store == store and not entry.is_missing_submodule]
        if not mine:
            continue
        names = "".join(f"{entry.blob}\n" for entry in mine).encode()
        output = store.git("cat-file", "--batch", stdin=names)
        position = 0
        for entry in mine:
            end = output.index(b"\n", position)
            if output[position:end].endswith(b" missing"):
                raise GitFailed(
                    f"{entry.path} is not among the objects of {store.worktree or store.git_dir}",
                    hint="a partial clone: `git fetch --refetch` brings what is missing",
                )
            size = int(output[position:end].split()[-1])
            contents[entry.path] = output[end + 1 : end + 1 + size]
            position = end + 1 + size + 1
    return contents


def export(snap: Snapshot, folder: Path, config: Config) -> None:
    """Writes the whole tree below an empty folder. Raises UsageError where a submodule is missing."""
    missing = [entry.path for entry in entries(snap, config) if entry.is_missing_submodule]
    if missing:
        raise UsageError(
            f"{snap.label}: the submodule {missing[0]} is not there",
            hint=f"`git submodule update --init {missing[0]}` in {snap.store.worktree or snap.store.git_dir}",
        )
    _export(snap, folder, config)


def _export(snap: Snapshot, folder: Path, config: Config) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        own = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        snap.store.git("read-tree", snap.tree, env=own)
        # the filters of git-lfs would want a network; a pointer file is all that code needs of it
        quiet = ("-c", "core.autocrlf=false", "-c", "filter.lfs.smudge=", "-c", "filter.lfs.required=false")
        words = (
            *quiet,
            "-c",
            "core.bare=false",
            f"--work-tree={folder}",
            "checkout-index",
            "--all",
            "--force",
        )
        snap.store.git(*words, env=own)
    for name, inner in _submodules(snap, config):
        _export(inner, folder / name, config)


def _submodules(snap: Snapshot, config: Config) -> Iterator[tuple[str, Snapshot]]:
    for row in snap.store.git("ls-tree", "-r", "-z", "--full-tree", snap.tree).split(b"\0"):
        if row.startswith(_GITLINK.encode()):
            head, _, name = row.partition(b"\t")
            inner = _submodule(snap, os.fsdecode(name), head.decode().split(" ")[2], config)
            if inner is not None:
                yield os.fsdecode(name), inner


def _submodule(snap: Snapshot, path: str, commit: str, config: Config) -> Snapshot | None:
    """The tree of a submodule at the commit it is pinned to; its working tree where that is asked for."""
    for place in _submodule_places(snap.store, path):
        try:
            store = open_store(place, config)
        except UsageError:
            continue
        if store.common_dir == snap.store.common_dir:
            continue  # an empty folder of the checkout: the search went up to the checkout itself
        if snap.spec == WORKING_TREE and store.worktree is not None:
            return _working_tree(store, config)
        with contextlib.suppress(UsageError):
            return snapshot(store, commit, config)
    return None


def _submodule_places(store: GitStore, path: str) -> Iterable[Path]:
    if store.worktree is not None:
        yield store.worktree / path
    yield store.common_dir / "modules" / path


def _working_tree(store: GitStore, config: Config) -> Snapshot:
    if store.worktree is None:
        raise UsageError(
            f"{store.git_dir} is a bare repository: it has no working tree",
            hint="name a revision instead of `.`",
        )
    own = Path(config.cache, "git", hashlib.sha256(os.fsencode(store.git_dir)).hexdigest()[:16])
    # new objects are written to a folder without alternates: git would touch those that it finds there
    written, seen = own / "objects", own / "all"
    written.mkdir(parents=True, exist_ok=True)
    (seen / "info").mkdir(parents=True, exist_ok=True)
    alternates = b"".join(os.fsencode(path) + b"\n" for path in (written, store.common_dir / "objects"))
    (seen / "info" / "alternates").write_bytes(alternates)
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch, "index")
        with contextlib.suppress(FileNotFoundError):  # so that unchanged files are not read again
            shutil.copy2(store.git_dir / "index", index)
        here = {"GIT_INDEX_FILE": str(index)}
        quiet = ("-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false")
        writing = replace(store, objects=written)
        _look_at_all(store, store.worktree, here)
        paths = [b":/", *(b":(exclude,top,literal)" + name for name in _left_out(store, config, here))]
        words = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        stdin = b"\0".join(paths)
        writing.git(*quiet, *_NOT_SPARSE, f"--work-tree={store.worktree}", *words, stdin=stdin, env=here)
        tree = writing.git("write-tree", "--missing-ok", env=here).decode().strip()
    overlaid = replace(store, objects=seen)
    commit = None
    with contextlib.suppress(GitFailed):
        head = store.git("rev-parse", "--verify", "--quiet", "HEAD^{tree}").decode().strip()
        if head == tree:
            commit = store.git("rev-parse", "HEAD").decode().strip()
    return Snapshot(store=overlaid, tree=tree, commit=commit, spec=WORKING_TREE)


def _left_out(store: GitStore, config: Config, here: Mapping[str, str]) -> Iterator[bytes]:
    """What is no part of a working tree, though it lies there: irdiff's own cache, repositories without a
    commit.
    """
    assert store.worktree is not None
    root = store.worktree.resolve()
    cache = config.cache.resolve()
    if cache.is_relative_to(root) and cache != root:
        yield os.fsencode(cache.relative_to(root))
    others = ("ls-files", "--others", "--exclude-standard", "-z")
    for name in store.git(*_NOT_SPARSE, f"--work-tree={store.worktree}", *others, env=here).split(b"\0"):
        if name.endswith(b"/"):  # another repository
            try:
                open_store(root / os.fsdecode(name), config).git("rev-parse", "--verify", "--quiet", "HEAD")
            except UsageError:
                yield name.rstrip(b"/")


def _look_at_all(store: GitStore, worktree: Path, here: Mapping[str, str]) -> None:
    """Clears in a copied index the flags by which git passes an edited file over.

    `assume-unchanged` goes everywhere. `skip-worktree` goes where the file lies there all the same: what a
    sparse checkout left out is as in the index, not deleted.
    """
    git = partial(store.git, *_NOT_SPARSE, f"--work-tree={worktree}", env=here)
    rows = [(row[:1], row[2:]) for row in git("ls-files", "-v", "-z").split(b"\0") if row]
    assumed = [name for tag, name in rows if tag.islower()]
    skipped = [name for tag, name in rows if tag in (b"s", b"S")]
    skipped = [name for name in skipped if os.path.lexists(worktree / os.fsdecode(name))]
    for option, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if names:
            git("update-index", option, "-z", "--stdin", stdin=b"".join(name + b"\0" for name in names))
