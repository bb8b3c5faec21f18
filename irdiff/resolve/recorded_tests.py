"""Runs a repository's tests without a GPU with one side's toolchain, and reads what each of them launches.

The worker runs pytest (`worker/record/pytest_session.py`). A recording is cached under all of its inputs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Sides, Target, Toolchain
from irdiff.resolve import worker_surroundings
from irdiff.resolve.toolchains import identity
from irdiff.store import key_of, sha256

_COLLECTED = "collected.jsonl"
_DONE = "done"
_CANNOT_WRITE = 74
"""The worker's exit code if the disk is full."""


@dataclass(frozen=True, kw_only=True)
class TestSession:
    """The checkout, the packages and the toolchain that the tests of one side run with."""

    __test__ = False

    toolchain: Toolchain
    tree: Path
    """A copy of the repository at the side's revision, for this comparison alone."""
    tree_digest: str
    imports: tuple[str, ...]
    """Folders of the tree, first on the path."""
    site: Path | None
    """The folder of the packages that the tests import."""
    packages_digest: str
    paths: tuple[str, ...]
    """Arguments of pytest: files, folders or tests."""

    def words(self, target: Target) -> list[str]:
        target_fields = asdict(target)
        packages = self.site and {
            "site": str(self.site),
            "imports": ["torch"],
            "kernels": [],
            "torch_compile": True,
            "target": target_fields,
        }
        words = ["--root", str(self.tree), "--target", json.dumps(target_fields)]
        words += ["--packages", json.dumps(packages)] if packages else []
        return words + [word for name in self.imports for word in ("--import", name)]


@dataclass(frozen=True, kw_only=True)
class TestLaunch:
    """One input of the compiler, and how the test launches it."""

    __test__ = False

    recording: str
    """The name of the recorded launch: a digest of all inputs of the compiler."""
    kernel: str
    text: str
    """Digest of grids, arguments and the order of calls."""


@dataclass(frozen=True, kw_only=True)
class RecordedTest:
    name: str
    """`tests/test_norm.py::test_rms[bf16]`, from the repository's root: as its side's pytest takes it."""
    outcome: str
    """`passed`, `failed`, `skipped`, or `died` if the test ended its process."""
    reason: str
    calls: int
    launches: tuple[TestLaunch, ...]
    """Each recording once, in the order of first calls."""
    errors: tuple[str, ...]
    """Errors that the frontend raised."""
    reads: tuple[tuple[str, str, str], ...]
    """Recording, stage and digest of each text of compiled code that the test reads. The digest is empty if
    only assertions read it: then nothing was compiled for the test.
    """
    doubts: tuple[str, ...]
    """Reasons why a GPU run may launch more."""
    read: tuple[str, ...]
    """Files of the tree that were opened until it ended: its own, `conftest.py`, and their imports."""
    seconds: float

    @property
    def is_followed(self) -> bool:
        """True if irdiff saw everything that the test gave the compiler, including what the frontend
        rejects.
        """
        return self.outcome == "passed" and not self.doubts and bool(self.launches or self.errors)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The tests of one side for one target."""

    folder: Path
    tests: Mapping[str, RecordedTest]
    """By identity, see `Collection`."""
    uncollected: Mapping[str, str]
    """By file, why pytest could not collect its tests."""
    tree: Path

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Returns the digest of each file that a test read."""
        return {name: sha256(content) for name, content in self._contents.items()}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Returns the text of each Python file that a test read."""
        sources = ((name, content) for name, content in self._contents.items() if name.endswith(".py"))
        return {name: content.decode(errors="replace") for name, content in sources}

    @cached_property
    def every_file(self) -> Mapping[str, str]:
        """Returns the digest of each file of the tree. That of a link is where it points to."""
        paths = (path for path in self.tree.rglob("*") if path.is_symlink() or path.is_file())
        return {
            str(path.relative_to(self.tree)): sha256(
                os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            )
            for path in paths
            if ".git" not in path.parts
        }

    @cached_property
    def _contents(self) -> Mapping[str, bytes]:
        names = {name for test in self.tests.values() for name in test.read}
        return {name: (self.tree / name).read_bytes() for name in names if (self.tree / name).is_file()}


@dataclass(frozen=True, kw_only=True)
class Collection:
    names: Mapping[str, str]
    """By identity. The identity is the name with the values of parameters in place of numbers that pytest
    gives them (`[dtype0]`), so it stays the same when a parameter is added.
    """
    errors: Mapping[str, str]
    """By file, why pytest could not collect its tests."""

    def within(self, chosen: Container[str]) -> Collection:
        return replace(self, names={key: name for key, name in self.names.items() if key in chosen})


def collected(session: TestSession, target: Target, config: Config) -> Collection:
    """Raises ToolchainError if pytest does not start."""
    folder = _folder(session, target, (), config)
    if not (folder / _DONE).exists():
        _started(folder)
        _run(session, target, ["--jobs", str(config.jobs), *session.paths], folder, config)
        (folder / _DONE).touch()
    records = list(_lines(folder / _COLLECTED))
    errors = {record["file"]: record["error"] for record in records if "error" in record}
    names = _by_identity({record["test"]: record["identity"] for record in records if "test" in record})
    return Collection(names=names, errors=errors)


def no_tests(session: TestSession, collection: Collection) -> UsageError:
    side = session.toolchain.spec
    if collection.errors:
        file, error = next(iter(collection.errors.items()))
        last_line = error.strip().splitlines()[-1].removeprefix("E ").strip()
        return UsageError(
            f"{side}: pytest cannot collect {file}: {last_line}",
            hint="name the packages that the tests import: --with torch --with numpy",
        )
    return UsageError(
        f"{side}: pytest finds no test in {' '.join(session.paths) or 'the repository'}",
        hint="name files or folders of tests from the repository's root: --tests tests/test_norm.py",
    )


def _by_identity(identities: Mapping[str, str]) -> Mapping[str, str]:
    """Names tests that share an identity by their names."""
    tests_of = Counter(identities.values())
    return {identity if tests_of[identity] == 1 else name: name for name, identity in identities.items()}


def matched(collections: Sides[Collection]) -> Sides[Collection]:
    """A test whose identity the other side lacks goes by its name, if the other side has an unmatched test of
    that name: another release may print a value in other words.
    """
    base, head = collections
    alone = [
        {name for identity, name in ours.names.items() if identity not in theirs.names}
        for ours, theirs in ((base, head), (head, base))
    ]
    on_both = alone[0] & alone[1]
    return collections.map(
        lambda side: replace(
            side,
            names={name if name in on_both else identity: name for identity, name in side.names.items()},
        )
    )


def record(session: TestSession, target: Target, chosen: Collection, config: Config) -> Recording:
    """Raises ToolchainError."""
    names = sorted(chosen.names.values())
    folder = _folder(session, target, names, config)
    if not (folder / _DONE).exists():
        _started(folder)
        selected = folder / "selected"
        selected.write_text("\n".join(names), encoding="utf-8")
        words = ["--select", str(selected), "--jobs", str(config.jobs)]
        words += ["--timeout", str(int(config.limits.timeout_s))]
        _run(session, target, words, folder, config)
        if names and not any(any(_lines(path)) for path in folder.glob("tests-*.jsonl")):
            raise _not_run(session, folder / "log")
        (folder / _DONE).touch()
    return _read(folder, session.tree, chosen)


def sample(names: Iterable[str], count: int | None) -> list[str]:
    """Returns the same tests each time, spread over files and functions.

    Each function's tests are ordered by their digests. The first test of each function comes first, then the
    second of each, so a new test in one function displaces no test of another.
    """
    if count is None:
        return sorted(names)
    of_function: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=lambda name: sha256(name.encode())):
        of_function[name.partition("[")[0]].append(name)
    ranked = (
        (rank, sha256(name.encode()), name)
        for tests in of_function.values()
        for rank, name in enumerate(tests)
    )
    return sorted(name for _, _, name in sorted(ranked)[:count])


def _folder(session: TestSession, target: Target, names: Sequence[str], config: Config) -> Path:
    of_session = (session.toolchain.digest, session.tree_digest, session.packages_digest, session.imports)
    chosen = (session.paths, asdict(target), list(names), config.limits.timeout_s)
    key = key_of("tests/2", identity.worker_code(), *of_session, *chosen)
    return config.cache / "tests" / key[:32]


def _started(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _run(session: TestSession, target: Target, words: Sequence[str], folder: Path, config: Config) -> None:
    toolchain, log = session.toolchain, folder / "log"
    config.changed_files.mkdir(exist_ok=True)
    command = [*identity.worker_command(toolchain.python, "tests"), "--out", str(folder)]
    command += ["--changed", str(config.changed_files)]
    own = worker_surroundings.new_folder(config)
    environment = worker_surroundings.environment(toolchain, own, config)
    try:
        code = process.run_logged([*command, *session.words(target), *words], log=log, env=environment)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    if code == _CANNOT_WRITE:
        raise ToolchainError(
            f"{session.toolchain.spec}: what its tests launch cannot be written to {folder}",
            hint="free space there, or name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        )
    if code:
        raise _not_run(session, log)


def _not_run(session: TestSession, log: Path) -> ToolchainError:
    last = (log.read_text(errors="replace").strip().splitlines() or ["nothing was said"])[-1]
    return ToolchainError(
        f"{session.toolchain.spec}: its tests could not be run: {last}",
        hint="packages that they import: --with torch --with numpy",
        log_path=str(log),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _read(folder: Path, tree: Path, chosen: Collection) -> Recording:
    records = {record["test"]: record for path in folder.glob("tests-*.jsonl") for record in _lines(path)}
    tests = {
        identity: _test(records[name]) if name in records else _lost(name)
        for identity, name in chosen.names.items()
    }
    return Recording(folder=folder, tests=tests, uncollected=chosen.errors, tree=tree)


def _lost(name: str) -> RecordedTest:
    nothing: dict[str, Any] = dict.fromkeys(("launches", "errors", "reads", "doubts", "read"), ())
    why = "its file was not run to its end"
    return RecordedTest(name=name, outcome="died", reason=why, calls=0, seconds=0.0, **nothing)


def _test(record: Mapping[str, Any]) -> RecordedTest:
    return RecordedTest(
        name=record["test"],
        outcome=record["outcome"],
        reason=record["reason"],
        calls=record["calls"],
        launches=tuple(TestLaunch(recording=a, kernel=b, text=c) for a, b, c in record["launches"]),
        errors=tuple(record["errors"]),
        reads=tuple((recording, stage, text) for recording, stage, text in record["reads"]),
        doubts=tuple(record["doubts"]),
        read=tuple(record["read"]),
        seconds=record["seconds"],
    )
