"""Git: revisions and the working tree as trees of blobs.

Programs that a repository's configuration names do not run: no hook, no file monitor, no check of signatures.
Filters of its attributes do run, because they define the content.

A `Snapshot` names one tree and the store of its objects. The working tree becomes a tree too: its files,
including uncommitted and untracked ones but not ignored ones, are written as objects to a folder of the cache
that has the checkout's objects as alternates. So nothing below the user's checkout is ever written, not even
its index.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from irdiff import config as configuration
from irdiff import process
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve.corpus import IgnoredFiles

WORKING_TREE = "."
_GITLINK = "160000"
_SYMLINK = "120000"
# in this order: a fork's own `main` may lag behind the project that it was forked from
_MAIN_BRANCHES = (
    *(f"refs/remotes/upstream/{name}" for name in ("HEAD", "main", "master")),
    *(f"refs/remotes/origin/{name}" for name in ("HEAD", "main", "master")),
    *(f"refs/heads/{name}" for name in ("main", "master")),
)
_NO_SOURCES = frozenset({".venv", "venv", "node_modules", "__pycache__", ".git", ".cache"})
_MOST_FILES, _MOST_BYTES = 20_000, 1 << 30
_FIXED = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
_NO_PROGRAMS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),  # `post-index-change` follows whatever writes an index
    *("-c", "log.showSignature=false"),
)


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A submodule without objects is one entry."""

    path: str
    mode: str
    blob: str
    store: GitStore

    @property
    def content(self) -> tuple[str, str]:
        return self.mode, self.blob

    @property
    def is_file(self) -> bool:
        return self.mode not in (_GITLINK, _SYMLINK)

    @property
    def is_link(self) -> bool:
        return self.mode == _SYMLINK

    @property
    def is_submodule(self) -> bool:
        return self.mode == _GITLINK


class GitFailed(UsageError):  # noqa: N818 - reads better where it is caught
    """The repository lacks something, is damaged, or belongs to another user."""


@dataclass(frozen=True, kw_only=True)
class GitStore:
    git_dir: Path
    common_dir: Path
    worktree: Path | None
    objects: Path | None
    """A folder of objects in the cache that is read first; None for a commit."""
    caller: Mapping[str, str] = field(repr=False, compare=False)
    """The environment that git runs in, before `_FIXED`."""

    @property
    def is_shallow(self) -> bool:
        return (self.common_dir / "shallow").exists()

    @property
    def place(self) -> Path:
        return self.worktree or self.git_dir

    def git(
        self,
        *words: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fixed: Sequence[str] = _NO_PROGRAMS,
    ) -> bytes:
        """Returns standard output. Raises GitFailed."""
        objects = {"GIT_OBJECT_DIRECTORY": str(self.objects)} if self.objects else {}
        worktree = [f"--work-tree={self.worktree}"] if self.worktree else []
        try:
            return process.run_bytes(
                ["git", f"--git-dir={self.git_dir}", *worktree, *fixed, *words],
                env={**self.caller, **_FIXED, **objects, **(env or {})},
                cwd=self.place if os.access(self.place, os.X_OK) else None,
                stdin=stdin,
            )
        except process.CommandFailed as error:
            raise GitFailed(
                f"git cannot read the repository {self.place}: {' '.join(error.stderr.split())[:400]}",
                hint="`git fsck` looks for what is missing; `git fetch --refetch` brings it again",
            ) from error
        except OSError as error:
            raise GitFailed(
                f"git cannot be started: {error}", hint="install git; two releases are compared without it"
            ) from error


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The tree of a commit, or of the working tree."""

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
        """Names the tree for reports: `main 1a2b3c4`, `1a2b3c4`, `working tree 1a2b3c4` (of its commit or
        tree).
        """
        short = (self.commit or self.tree)[:7]
        if self.spec == WORKING_TREE:
            return f"working tree {short}"
        return short if (self.commit or "").startswith(self.spec) else f"{self.spec} {short}"

    @property
    def title(self) -> str:
        if self.commit is None:
            return "uncommitted changes"
        return self.store.git("log", "-1", "--format=%s", self.commit).decode(errors="replace").strip()


def open_store(path: Path, config: Config) -> GitStore:
    """Raises UsageError if no repository holds `path`."""
    git = _gitpython()
    try:
        with contextlib.closing(git.Repo(path, search_parent_directories=True)) as repo:
            store = GitStore(
                git_dir=Path(repo.git_dir).absolute(),
                common_dir=Path(repo.common_dir).absolute(),
                worktree=Path(repo.working_tree_dir) if repo.working_tree_dir and not repo.bare else None,
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


def open_folder(path: Path, config: Config) -> GitStore:
    """Opens a folder outside of any repository, as the working tree of a repository in the cache. Raises
    UsageError if it is too large to be copied.
    """
    count = size = 0
    for place, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in _NO_SOURCES]
        count += len(names)
        size += sum(Path(place, name).lstat().st_size for name in names)
        if count > _MOST_FILES or size > _MOST_BYTES:
            raise UsageError(
                f"{path} is in no git repository, and too large to be copied: it holds more than "
                f"{_MOST_FILES} files or {_MOST_BYTES >> 20} MiB",
                hint="put the program and what it imports into a folder of their own, and go there",
            )
    folder = (
        config.cache.absolute() / "folders" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    )
    folder.mkdir(parents=True, exist_ok=True)
    store = GitStore(
        git_dir=folder,
        common_dir=folder,
        worktree=path.absolute(),
        objects=None,
        caller=config.tool_environment,
    )
    if not (folder / "HEAD").is_file():
        replace(store, worktree=None).git("init", "--quiet", "--bare")
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "exclude").write_text("".join(f"{name}/\n" for name in sorted(_NO_SOURCES)))
    return store


@cache
def _gitpython() -> ModuleType:
    """On import, GitPython asks git for its version, unless a variable names another program."""
    with configuration.variables(GIT_PYTHON_REFRESH="quiet", GIT_PYTHON_GIT_EXECUTABLE=os.devnull):
        import git

    return git


def snapshot(store: GitStore, spec: str, config: Config) -> Snapshot:
    """Reads the working tree for `.`. Raises UsageError."""
    if spec == WORKING_TREE:
        return _working_tree(store, config)
    commit = commit_of(store, spec)
    tree = store.git("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
    return Snapshot(store=store, tree=tree, commit=commit, spec=spec)


def commit_of(store: GitStore, spec: str) -> str:
    """Returns the full name. Raises UsageError if the repository has no such revision."""
    try:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{spec}^{{commit}}")
        return store.git(*words).decode().strip()
    except GitFailed as error:
        hint = "see `git branch --all` and `git tag`; a branch of a remote needs `git fetch` first"
        if store.is_shallow:
            hint = "this clone is shallow: `git fetch --unshallow` brings the history that is missing"
        raise UsageError(
            f"{spec!r} is no revision of the repository {store.place}",
            hint=f"{hint}; a release is written triton==3.9.0",
        ) from error


def is_dirty(store: GitStore) -> bool:
    """Includes staged and untracked files. A bare repository is clean."""
    return store.worktree is not None and bool(store.git("status", "--porcelain"))


def merge_base(store: GitStore, first: str, second: str) -> str:
    """Raises UsageError if the two have no common commit in the available history."""
    try:
        return store.git("merge-base", first, second).decode().split()[0]
    except (GitFailed, IndexError) as error:
        hint = "name the base: irdiff compare BASE HEAD"
        if store.is_shallow:
            hint = "this clone is shallow: `git fetch --unshallow`, or name the base"
        raise UsageError(f"{first} and {second} have no common commit here", hint=hint) from error


def default_base(store: GitStore, head: str) -> str:
    """Returns the merge base of `head` and the main branch. Raises UsageError if there is none."""
    branches = store.git("for-each-ref", "--format=%(refname)", *_MAIN_BRANCHES).decode().splitlines()
    main = next((name for name in _MAIN_BRANCHES if name in branches), None)
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
    """Includes files of submodules under their full path."""
    all_entries = []
    for entry in _own_entries(snap):
        if inner := _submodule(snap, entry, config):
            all_entries += [
                replace(inner_entry, path=f"{entry.path}/{inner_entry.path}")
                for inner_entry in entries(inner, config)
            ]
        else:
            all_entries.append(entry)
    return all_entries


def _own_entries(snap: Snapshot) -> Iterator[TreeEntry]:
    """A submodule is one entry."""
    listing = snap.store.git("ls-tree", "-r", "-z", "--full-tree", snap.tree)
    for line in filter(None, listing.split(b"\0")):
        head, _, name = line.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        yield TreeEntry(path=os.fsdecode(name), mode=mode, blob=blob, store=snap.store)


def read(wanted: Sequence[TreeEntry]) -> dict[str, bytes]:
    """Starts one git process for each repository."""
    contents: dict[str, bytes] = {}
    files = [entry for entry in wanted if not entry.is_submodule]
    for store in {entry.store for entry in files}:
        mine = [entry for entry in files if entry.store == store]
        names = "".join(f"{entry.blob}\n" for entry in mine).encode()
        output = store.git("cat-file", "--batch", stdin=names)
        position = 0
        for entry in mine:
            end = output.index(b"\n", position)
            if output[position:end].endswith(b" missing"):
                raise GitFailed(
                    f"{entry.path} is not among the objects of {store.place}",
                    hint="a partial clone: `git fetch --refetch` brings what is missing",
                )
            size = int(output[position:end].split()[-1])
            contents[entry.path] = output[end + 1 : end + 1 + size]
            position = end + 1 + size + 1
    return contents


def ignored(store: GitStore) -> IgnoredFiles | None:
    """Returns None if there is no working tree."""
    if store.worktree is None:
        return None
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    names = filter(None, store.git(*words).split(b"\0"))
    return IgnoredFiles(worktree=store.worktree, names=frozenset(map(os.fsdecode, names)))


def export(snap: Snapshot, folder: Path, config: Config, *, may_lack_submodules: bool = False) -> None:
    """Writes the whole tree into an empty folder. A submodule that was never fetched becomes an empty folder,
    as in the checkout, or raises UsageError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # the filters of git-lfs would want a network; a pointer file is all that code needs of it
    settings = ("core.bare=false", "core.autocrlf=false", "filter.lfs.smudge=", "filter.lfs.required=false")
    words = [word for setting in settings for word in ("-c", setting)]
    with tempfile.TemporaryDirectory() as scratch:
        own = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        snap.store.git("read-tree", snap.tree, env=own)
        snap.store.git(*words, f"--work-tree={folder}", "checkout-index", "--all", "--force", env=own)
    for entry in _own_entries(snap):
        inner = _submodule(snap, entry, config)
        if inner is not None:
            export(inner, folder / entry.path, config, may_lack_submodules=may_lack_submodules)
        elif entry.is_submodule and may_lack_submodules:
            (folder / entry.path).mkdir(parents=True, exist_ok=True)
        elif entry.is_submodule:
            raise UsageError(
                f"{snap.label}: the submodule {entry.path} is not there",
                hint=f"`git submodule update --init {entry.path}` in {snap.store.place}",
            )


def _submodule(snap: Snapshot, entry: TreeEntry, config: Config) -> Snapshot | None:
    """Returns the tree of a submodule at its pinned commit, or its working tree if the snapshot is of the
    working tree.
    """
    if not entry.is_submodule:
        return None
    places = [snap.store.worktree / entry.path] if snap.store.worktree else []
    for place in (*places, snap.store.common_dir / "modules" / entry.path):
        try:
            store = open_store(place, config)
        except UsageError:
            continue
        if store.common_dir == snap.store.common_dir:
            continue  # an empty folder of the checkout: the search went up to the checkout itself
        if snap.spec == WORKING_TREE and store.worktree is not None:
            return _working_tree(store, config)
        with contextlib.suppress(UsageError):
            return snapshot(store, entry.blob, config)
    return None


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
        # in a sparse checkout `add` refuses files outside of what it has
        settings = ("advice.addEmbeddedRepo=false", "core.safecrlf=false", "core.sparseCheckout=false")
        words = [word for setting in settings for word in ("-c", setting)]
        git = partial(replace(store, objects=written).git, *words, env={"GIT_INDEX_FILE": str(index)})
        _look_at_all(store.worktree, git)
        left_out = (b":(exclude,top,literal)" + name for name in _left_out(store.worktree, git, config))
        paths = [b":/", *left_out]
        git("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=b"\0".join(paths))
        tree = git("write-tree", "--missing-ok").decode().strip()
    commit = None
    with contextlib.suppress(GitFailed):
        head, head_tree = store.git("rev-parse", "HEAD", "HEAD^{tree}").decode().split()
        commit = head if head_tree == tree else None
    return Snapshot(store=replace(store, objects=seen), tree=tree, commit=commit, spec=WORKING_TREE)


def _left_out(worktree: Path, git: Callable[..., bytes], config: Config) -> Iterator[bytes]:
    """Yields irdiff's own cache, and repositories without a commit."""
    root, cache = worktree.resolve(), config.cache.resolve()
    if cache.is_relative_to(root) and cache != root:
        yield os.fsencode(cache.relative_to(root))
    for name in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        if name.endswith(b"/"):  # another repository
            try:
                open_store(root / os.fsdecode(name), config).git("rev-parse", "--verify", "--quiet", "HEAD")
            except UsageError:
                yield name.rstrip(b"/")


def _look_at_all(worktree: Path, git: Callable[..., bytes]) -> None:
    """Clears flags in a copied index that make git skip an edited file.

    `assume-unchanged` is always cleared. `skip-worktree` is cleared if the file exists: a file that a sparse
    checkout left out is as in the index, not deleted.
    """
    tagged = [line.split(b" ", 1) for line in git("ls-files", "-v", "-z").split(b"\0") if line]
    assumed = [name for tag, name in tagged if tag.islower()]
    skipped = [name for tag, name in tagged if tag in b"sS" and os.path.lexists(worktree / os.fsdecode(name))]
    git("update-index", "--no-assume-unchanged", "-z", "--stdin", stdin=b"\0".join(assumed))
    git("update-index", "--no-skip-worktree", "-z", "--stdin", stdin=b"\0".join(skipped))
