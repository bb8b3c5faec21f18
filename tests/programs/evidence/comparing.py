"""A repository of kernels with commits, and `irdiff compare` between them as a user calls it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

PYTHON = (sys.executable, "-P")
"""Finds the irdiff that is installed for it, not one that lies in the current folder."""
TRITON = "triton==3.9.0"
TARGET = "sm_90"
PLAN = '[kernels]\nworkloads = "bench"\nimport = ["src"]\n'
"""The `irdiff.toml` of every repository here: workloads below `bench`, the kernels they import below `src`."""
PROBE = "from irdiff import config; print(config.load().cache)"
LINK = "-> "
"""How the content of a file begins that stands for a symbolic link."""


def git(repo: Path, *words: str) -> str:
    who = {
        f"GIT_{name}_{key}": value
        for name in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "T"), ("EMAIL", "t@t"))
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", repo, *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **who, **quiet},
    )
    return done.stdout.strip()


@dataclass(frozen=True)
class Repository:
    """A git repository whose commits are named by tags."""

    path: Path

    @staticmethod
    def new(path: Path) -> Repository:
        path.mkdir(parents=True)
        git(path, "init", "-q", "-b", "main")
        return Repository(path)

    def commit(self, name: str, files: Mapping[str, str]) -> None:
        """The next commit: these files and `irdiff.toml`, and nothing else."""
        for entry in self.path.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for place, text in {"irdiff.toml": PLAN, **files}.items():
            write(self.path / place, text)
        git(self.path, "add", "-A", "--force")
        git(self.path, "commit", "-q", "--allow-empty", "-m", name)
        git(self.path, "tag", name)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith(LINK):
        path.symlink_to(text.removeprefix(LINK))
    elif path.suffix == ".bc":
        path.write_bytes(_bitcode(text))
    else:
        path.write_text(text, encoding="utf-8")


def _bitcode(assembly: str) -> bytes:
    from llvmlite import binding

    return binding.parse_assembly(assembly).as_bitcode()


@dataclass(frozen=True)
class Compared:
    """What one call of `irdiff compare` said."""

    code: int
    stdout: str
    stderr: str
    run: dict[str, Any] | None
    markdown: str

    def cases(self) -> list[dict[str, Any]]:
        assert self.run is not None, self.stderr
        return self.run["cases"]

    def verdicts_of(self, workload: str) -> list[str]:
        """Of every case of a workload, in the order of their ids."""
        return [case["verdict"] for case in self.cases() if case["id"].startswith(workload + ":")]

    def first_line(self) -> str:
        return self.stdout.strip().splitlines()[0]


def compare(base: str, head: str, *words: str, cache: Path, repo: Path) -> Compared:
    """`irdiff compare` in a process of its own, in the repository; nothing is attributed or compiled again."""
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        outputs = [Path(folder, name) for name in ("run.json", "report.md", "run")]
        command = [*PYTHON, "-m", "irdiff", "compare", base, head]
        command += ["--json", str(outputs[0]), "--markdown", str(outputs[1]), "--out", str(outputs[2])]
        command += ["--target", TARGET, "--no-recheck", "--no-attribute", *words]
        environment = {**os.environ, "IRDIFF_CACHE": str(cache), "COLUMNS": "240"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=repo, env=environment)
        run, markdown = (path.read_text() if path.exists() else None for path in outputs[:2])
        return Compared(
            done.returncode, done.stdout, done.stderr, json.loads(run) if run else None, markdown or ""
        )


def compare_commits(repo: Repository, base: str, head: str, *words: str, cache: Path) -> Compared:
    """Two commits of a repository under one compiler."""
    return compare(base, head, "--triton", TRITON, *words, cache=cache, repo=repo.path)


def once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[], Mapping[str, Compared]]
) -> dict[str, Compared]:
    """What `make` gives: made by the first of pytest's processes that asks for it, and read by all others."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    kept = root / f"{name}.json"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            text = json.dumps({way: asdict(compared) for way, compared in make().items()})
            kept.write_text(text)
    return {way: Compared(**row) for way, row in json.loads(kept.read_text()).items()}


def shared_cache() -> Path:
    """The cache whose toolchains are shared, as the irdiff under test finds it."""
    done = subprocess.run([*PYTHON, "-c", PROBE], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def new_cache(folder: Path, shared: Path) -> Path:
    """An empty store with the shared toolchains."""
    folder.mkdir(parents=True)
    for name in ("toolchains", "uv", "digests"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to((shared / name).resolve())
    return folder


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        yield Path(folder)


def toolchain_python(shared: Path) -> Path:
    """The interpreter of the compiler that everything here is compared under; installs it where it is missing."""
    words = [*PYTHON, "-m", "irdiff", "toolchain"]
    environment = {**os.environ, "IRDIFF_CACHE": str(shared)}
    for operation in (["install", TRITON], ["list", "--json", "-"]):
        done = subprocess.run(
            [*words, *operation], capture_output=True, text=True, check=True, env=environment
        )
    found: Sequence[Mapping[str, str]] = json.loads(done.stdout)
    return Path(next(row["path"] for row in found if row["spec"] == TRITON), "bin", "python")
