from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from irdiff.errors import RunFolderError
from irdiff.model import Verdict
from irdiff.run import run_folder, run_list

NAMES = ("20261121-100000-000001-a-b", "20261122-110000-000001-a-b", "20261122-110000-000002-c-d")


@pytest.fixture
def runs(tmp_path: Path, build: Any) -> Path:
    run = build.run(build.case("a/b:c@sm_90", Verdict.CHANGED), build.case("a/b:d@sm_90"))
    for number, name in enumerate(NAMES):
        folder = tmp_path / "runs" / name
        (folder / "artifacts").mkdir(parents=True)
        (folder / "run.json").write_bytes(run_folder.dump(run))
        os.utime(folder / "run.json", (number, number))
    (tmp_path / "runs" / "no run").mkdir()
    return tmp_path / "runs"


def test_the_newest_is_first(runs: Path) -> None:
    assert [row.name for row in run_list.listed(runs)] == [*reversed(NAMES)]
    assert run_list.listed(runs / "none") == []


def test_an_outline_says_what_the_run_says(runs: Path) -> None:
    found = run_list.outline(run_list.listed(runs)[0])
    assert not isinstance(found, str)
    run = run_folder.load(runs / NAMES[0])
    assert (found.base, found.head, found.summary, found.groups) == (run.base, run.head, run.summary, ())


@pytest.mark.parametrize("content", ["{}", "not json", '{"schema": "irdiff-run/1"}'])
def test_a_run_that_cannot_be_read_is_said_to_be_one(runs: Path, content: str) -> None:
    (runs / NAMES[0] / "run.json").write_text(content)
    row = next(row for row in run_list.listed(runs) if row.name == NAMES[0])
    assert isinstance(run_list.outline(row), str)


def test_a_run_is_found_by_each_of_its_names(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_list.find("last", runs) == runs / NAMES[2]
    assert run_list.find("20261121", runs) == runs / NAMES[0]
    assert run_list.find(NAMES[1], runs) == runs / NAMES[1]
    assert run_list.find(str(runs / NAMES[1]), runs) == runs / NAMES[1]
    monkeypatch.chdir(runs.parent)
    (runs.parent / "20261121").mkdir()
    assert run_list.find("20261121", runs) == Path("20261121"), "a path comes before a name"


def test_what_means_no_run_or_several_is_refused_with_what_comes_near(runs: Path) -> None:
    with pytest.raises(RunFolderError, match="2 runs begin with '20261122'"):
        run_list.find("20261122", runs)
    for text, near in (("lst", "last"), (NAMES[0][:-1] + "c", NAMES[0]), ("100000", NAMES[0])):
        with pytest.raises(RunFolderError) as raised:
            run_list.find(text, runs)
        assert near in raised.value.hint
    with pytest.raises(RunFolderError, match="there is no run yet"):
        run_list.find("last", runs / "none")


def test_what_a_report_calls_a_run_means_it_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [run_list.call_of(runs / name, runs) for name in NAMES]
    assert calls == ["20261121-100000", "20261122-110000-000001", "20261122-110000-000002"]
    assert [run_list.find(call, runs) for call in calls] == [runs / name for name in NAMES]
    monkeypatch.chdir(runs.parent)
    (runs.parent / "mine").mkdir()
    assert run_list.call_of(runs.parent / "mine", runs) == "mine"
    assert run_list.call_of(Path("/"), runs) == "/"
    (runs.parent / calls[0]).mkdir()
    assert run_list.call_of(runs / NAMES[0], runs) == "20261121-100000-000001", (
        "that would be the folder here"
    )


def test_last_is_the_run_that_was_written_last_wherever_it_lies(runs: Path) -> None:
    elsewhere = runs.parent / "elsewhere"
    (runs / NAMES[0]).rename(elsewhere)
    run_list.remember(elsewhere, runs)
    assert run_list.find("last", runs) == elsewhere
    assert run_list.call_of(elsewhere, runs) == str(elsewhere)
    later = (runs / ".last").stat().st_mtime + 1
    os.utime(runs / NAMES[1] / "run.json", (later, later))
    assert run_list.find("last", runs) == runs / NAMES[1]
    assert [row.name for row in run_list.listed(runs)] == [NAMES[1], NAMES[2]]


def test_last_does_not_become_an_earlier_run_unseen(runs: Path) -> None:
    run_list.remember(runs.parent / "gone", runs)
    with pytest.raises(RunFolderError, match="gone, and is there no more") as raised:
        run_list.find("last", runs)
    assert "irdiff runs" in raised.value.hint


def test_last_is_known_in_a_cache_without_runs(runs: Path, tmp_path: Path) -> None:
    run_list.remember(runs / NAMES[0], tmp_path / "new" / "runs")
    assert run_list.find("last", tmp_path / "new" / "runs") == runs / NAMES[0]
