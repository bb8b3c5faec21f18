"""irdiff as a user calls it, what a call cost, and comparisons of the commits of a repository of kernels.

Everything goes through the command line of the interpreter that runs this, so that the same programs and tests
judge any checkout of irdiff.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs import checkouts

PYTHON = (sys.executable, "-P")
"""Finds the irdiff that is installed for it, not one that lies in the current folder."""
TRITON = "triton==3.9.0"
TARGET = "sm_90"
PLAN = '[kernels]\nworkloads = "bench"\nimport = ["src"]\n'
"""The `irdiff.toml` of every repository here: workloads below `bench`, the kernels they import below `src`."""
LINK = "-> "
"""How the content of a file begins that stands for a symbolic link."""
_PROBE = "from irdiff import config; print(config.load().cache)"
_MEASURED = """
import resource, sys
from irdiff.cli import main
try:
    main()
finally:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"@usage {own.ru_utime + own.ru_stime} {children.ru_utime + children.ru_stime} {own.ru_maxrss}", file=sys.stderr)
"""


# calls


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    own_cpu_s: float
    """Of irdiff's own process."""
    peak_mib: float


@dataclass(frozen=True)
class Ended:
    """A call of irdiff that has ended."""

    code: int
    stdout: str
    stderr: str
    cost: Cost


def irdiff(*words: object, cache: Path, cwd: Path | None = None, **environment: str) -> Ended:
    begin = time.monotonic()
    done = subprocess.run(
        [*PYTHON, "-c", _MEASURED, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={
            **os.environ,
            "IRDIFF_CACHE": str(cache),
            "COLUMNS": "240",
            "PYTHONDONTWRITEBYTECODE": "",  # as users have it: an installed package is compiled once
            **environment,
        },
    )
    wall_s = time.monotonic() - begin
    stderr, _, usage = done.stderr.rpartition("@usage ")
    own, children, peak = map(float, usage.split())
    return Ended(done.returncode, done.stdout, stderr, Cost(wall_s, own + children, own, peak / 1024))


def shared_cache() -> Path:
    """The cache whose toolchains are shared, as the irdiff under test finds it."""
    done = subprocess.run([*PYTHON, "-c", _PROBE], capture_output=True, text=True, check=True)
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
    """The interpreter of the compiler that all is compared under; installs it where it is missing."""
    irdiff("toolchain", "install", TRITON, cache=shared)
    found: list[dict[str, str]] = json.loads(irdiff("toolchain", "list", "--json", "-", cache=shared).stdout)
    return Path(next(row["path"] for row in found if row["spec"] == TRITON), "bin", "python")


# repositories

git = checkouts.git


@dataclass(frozen=True)
class Repository:
    """A git repository whose commits are named by tags."""

    path: Path

    @staticmethod
    def new(path: Path) -> Repository:
        return Repository(checkouts.new_repository(path))

    def commit(self, name: str, files: Mapping[str, str | bytes]) -> None:
        """The next commit: these files and `irdiff.toml`, and nothing else."""
        for entry in self.path.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for place, text in {"irdiff.toml": PLAN, **files}.items():
            write(self.path / place, text)
        checkouts.git(self.path, "add", "-A", "--force")
        checkouts.git(self.path, "commit", "-q", "--allow-empty", "-m", name)
        checkouts.git(self.path, "tag", name)


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif text.startswith(LINK):
        path.symlink_to(text.removeprefix(LINK))
    elif path.suffix == ".bc":
        from llvmlite import binding

        path.write_bytes(binding.parse_assembly(text).as_bitcode())
    else:
        path.write_text(text, encoding="utf-8")


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

    def verdict_of(self, workload: str) -> str:
        return "+".join(self.verdicts_of(workload))

    def first_line(self) -> str:
        return self.stdout.strip().splitlines()[0]


def compare(base: str, head: str, *words: str, cache: Path, repo: Path) -> Compared:
    """`irdiff compare` in the repository; nothing is attributed or compiled again."""
    with workplace() as folder:
        run, markdown = folder / "run.json", folder / "report.md"
        outputs = ("--json", run, "--markdown", markdown, "--out", folder / "run")
        plainly = ("--target", TARGET, "--no-recheck", "--no-attribute")
        done = irdiff("compare", base, head, *outputs, *plainly, *words, cache=cache, cwd=repo)
        return Compared(
            done.code,
            done.stdout,
            done.stderr,
            json.loads(run.read_text()) if run.exists() else None,
            markdown.read_text() if markdown.exists() else "",
        )


def compare_commits(repo: Repository, base: str, head: str, *words: str, cache: Path) -> Compared:
    """Two commits of a repository under one compiler."""
    return compare(base, head, "--triton", TRITON, *words, cache=cache, repo=repo.path)
