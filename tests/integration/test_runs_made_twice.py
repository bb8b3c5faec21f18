"""A comparison is made twice in one cache, and every command that takes a run reads both runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from irdiff.model import Toolchain, Verdict
from irdiff.run import run_folder
from irdiff.store import Store
from tests import edited_toolchain
from tests.integration.conftest import Result
from tests.unit.conftest import Build

pytestmark = pytest.mark.integration

OLD, NEW = "triton==3.8.0", "triton==3.9.0"
FENCE = ("--case", "matmul/pointer:fp16-4096", "--target", "sm_90")


def readers(run: Path) -> Iterator[tuple[str, ...]]:
    """Every command that takes a run and needs neither a GPU nor a network."""
    yield ("report", str(run))
    yield ("report", str(run), "--html", str(run.parent / "page.html"))
    yield ("report", str(run), "--markdown", str(run.parent / "page.md"))
    yield ("diff", str(run))
    yield ("gate", str(run))
    yield ("comment", str(run), "--dry-run", "--repo", "o/r", "--pr", "1")
    yield ("release-report", str(run))
    yield ("diff-runs", str(run), str(run))
    case = run_folder.load(run).cases[0]
    yield ("explain", str(run), case.id)


def read_by_all(irdiff: Callable[..., Result], run: Path) -> None:
    for words in readers(run):
        done = irdiff(*words)
        said = done.stdout + done.stderr
        assert done.code in (0, 1, 2), (words, said)
        assert "not a valid run" not in said, (words, said)
        assert "Traceback" not in said, (words, said)


def test_a_changed_case(irdiff: Callable[..., Result], tmp_path: Path) -> None:
    made_twice(irdiff, tmp_path, (OLD, NEW, *FENCE), {"changed"})


def test_all_unchanged_under_another_compiler(
    irdiff: Callable[..., Result], tmp_path: Path, newest: Toolchain
) -> None:
    """The second run takes its results from the cache: its cases share one empty mapping."""
    edited = edited_toolchain.make(newest, tmp_path / "edited", edited_toolchain.AMD_EDIT)
    words = (NEW, edited, "--case", "elementwise/vector_add", "--target", "gfx942")
    made_twice(irdiff, tmp_path, words, {"unchanged"})


def made_twice(
    irdiff: Callable[..., Result], tmp_path: Path, words: tuple[str, ...], verdicts: set[str]
) -> None:
    runs: list[dict[str, Any]] = []
    for name in ("first", "second"):
        done = irdiff("compare", *words, "--out", str(tmp_path / name))
        assert done.run is not None, done.stderr
        assert {case["verdict"] for case in done.run["cases"]} == verdicts
        runs.append(done.run)
        read_by_all(irdiff, tmp_path / name)
    first, second = runs
    names = ("id", "verdict", "stages", "origin", "group", "facts", "metadata", "launches", "edit")
    for one, other in zip(first["cases"], second["cases"], strict=True):
        assert {name: one[name] for name in names} == {name: other[name] for name in names}
    assert first["groups"] == second["groups"]


def test_two_thousand_cases_that_share_one_empty_mapping(
    irdiff: Callable[..., Result], tmp_path: Path
) -> None:
    cases = [Build.case(f"family/workload:{number}@sm_90", Verdict.UNCHANGED) for number in range(2000)]
    run = Build.run(*cases)
    for name in ("first", "second"):
        run_folder.write(tmp_path / name, run, Store(tmp_path / "store"), ())
        assert run_folder.load(tmp_path / name) == run
        assert irdiff("report", str(tmp_path / name)).code == 0
    written = [json.loads((tmp_path / name / "run.json").read_bytes()) for name in ("first", "second")]
    assert written[0] == written[1]
