import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from irdiff import config as configuration
from irdiff.cli import main
from irdiff.resolve.toolchains import resolve
from tests.programs import browser
from tests.programs.browser import Watched


@dataclass
class Result:
    """One call of the command line."""

    code: int
    stdout: str
    stderr: str
    run: dict[str, Any] | None

    def case(self, case_id):
        assert self.run is not None, self.stderr
        return next(case for case in self.run["cases"] if case["id"] == case_id)

    def verdicts(self):
        assert self.run is not None, self.stderr
        return {name: count for name, count in self.run["summary"]["verdicts"].items() if count}


@pytest.fixture
def irdiff(cache, tmp_path):
    """Calls `irdiff`; `compare` also gives the run. In this process, but where a variable is set for the call."""

    def call(*words, cwd=None, **environment):
        json_path = tmp_path / "run.json"
        json_path.unlink(missing_ok=True)
        words = (*words, "--json", str(json_path)) if words[0] == "compare" else words
        if environment:
            command = [sys.executable, "-m", "irdiff", *words]
            variables = {**os.environ, "IRDIFF_CACHE": str(cache), **environment}
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=cwd, timeout=500, env=variables
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = _in_process(words, cache, cwd)
        return Result(code, out, err, json.loads(json_path.read_text()) if json_path.exists() else None)

    return call


def started(cache, *words, cwd=None, **variables):
    """A command that goes on."""
    command, pipe = [sys.executable, "-m", "irdiff", *words], subprocess.PIPE
    environment = {**os.environ, "IRDIFF_CACHE": str(cache), **variables}
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)


def _in_process(words, cache, cwd):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, {"IRDIFF_CACHE": str(cache)}),
        mock.patch.object(sys, "argv", ["irdiff", *words]),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return ended.value.code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


@pytest.fixture(scope="session")
def newest(shared_cache):
    return _toolchain("triton==3.9.0", shared_cache)


@pytest.fixture(scope="session")
def previous(shared_cache):
    return _toolchain("triton==3.8.0", shared_cache)


def _toolchain(spec, cache):
    return resolve(spec, configuration.load(cache=cache))


@pytest.fixture(scope="module")
def chromium():
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.chromium() as found:
        yield found


@pytest.fixture
def page(chromium):
    watched = Watched(chromium)
    yield watched
    watched.page.close()
