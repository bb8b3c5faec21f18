from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from irdiff import config as configuration
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import resolve
from tests.integration import browser
from tests.integration.browser import Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass
class Result:
    """One call of the command line."""

    code: int
    stdout: str
    stderr: str
    run: dict[str, Any] | None

    def case(self, case_id: str) -> dict[str, Any]:
        assert self.run is not None, self.stderr
        return next(case for case in self.run["cases"] if case["id"] == case_id)

    def verdicts(self) -> dict[str, int]:
        assert self.run is not None, self.stderr
        return {name: count for name, count in self.run["summary"]["verdicts"].items() if count}


@pytest.fixture
def irdiff(cache: Path, tmp_path: Path) -> Callable[..., Result]:
    """Calls `irdiff` in a process of its own; `compare` also gives the run."""

    def call(*words: str, cwd: Path | None = None, **environment: str) -> Result:
        json_path = tmp_path / "run.json"
        json_path.unlink(missing_ok=True)
        more = ["--json", str(json_path)] if words[0] == "compare" else []
        done = subprocess.run(
            [sys.executable, "-m", "irdiff", *words, *more],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=500,
            env={**os.environ, "IRDIFF_CACHE": str(cache), **environment},
        )
        run = json.loads(json_path.read_text()) if json_path.exists() else None
        return Result(done.returncode, done.stdout, done.stderr, run)

    return call


@pytest.fixture(scope="session")
def newest(shared_cache: Path) -> Toolchain:
    return _toolchain("triton==3.9.0", shared_cache)


@pytest.fixture(scope="session")
def previous(shared_cache: Path) -> Toolchain:
    return _toolchain("triton==3.8.0", shared_cache)


def _toolchain(spec: str, cache: Path) -> Toolchain:
    return resolve(spec, configuration.load(cache=cache))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.chromium() as found:
        yield found


@pytest.fixture
def page(chromium: Browser) -> Iterator[Watched]:
    watched = Watched(chromium)
    yield watched
    watched.page.close()
