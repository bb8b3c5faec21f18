import os
from pathlib import Path

import pytest

from irdiff.errors import RunFolderError
from irdiff.model import Verdict
from irdiff.run import run_folder, run_list
from tests.unit import runs as build

NAMES = ("20261121-100000-000001-a-b", "20261122-110000-000001-a-b", "20261122-110000-000002-c-d")


@pytest.fixture
def runs(tmp_path):
    run = build.run(build.case("a/b:c@sm_90", Verdict.CHANGED), build.case("a/b:d@sm_90"))
    for number, name in enumerate(NAMES):
        folder = build.saved(tmp_path / "runs" / name, run)
        (folder / "artifacts").mkdir()
        os.utime(folder / "run.json", (number, number))
    (tmp_path / "runs" / "no run").mkdir()
    return tmp_path / "runs"


def test_the_newest_is_first_with_its_outline_or_why_it_cannot_be_read(runs):
    rows = run_list.listed(runs)
    assert [row.name for row in rows] == [*reversed(NAMES)]
    assert run_list.listed(runs / "none") == []
    found = run_list.outline(rows[0])
    run = run_folder.load(runs / NAMES[0])
    assert not isinstance(found, str)
    assert (found.base, found.head, found.summary, found.groups) == (run.base, run.head, run.summary, ())
    for content in ("{}", "not json", '{"schema": "irdiff-run/1"}'):
        (runs / NAMES[2] / "run.json").write_text(content)
        assert isinstance(run_list.outline(rows[0]), str)


def test_a_run_is_found_by_each_of_its_names_and_by_what_a_report_calls_it(runs, monkeypatch):
    for text, name in (("20261121", 0), (NAMES[1], 1), (str(runs / NAMES[1]), 1)):
        assert run_list.find(text, runs) == runs / NAMES[name]
    calls = [run_list.call_of(runs / name, runs) for name in NAMES]
    assert calls == ["20261121-100000", "20261122-110000-000001", "20261122-110000-000002"]
    assert [run_list.find(call, runs) for call in calls] == [runs / name for name in NAMES]
    for place in ("mine", "others"):
        (runs.parent / place / "below").mkdir(parents=True)
    monkeypatch.chdir(runs.parent / "mine")
    run_list.remember(runs / NAMES[0], runs)
    monkeypatch.chdir(runs.parent / "mine" / "below")
    assert run_list.find("last", runs) == runs / NAMES[0], "the last run of the folder, or of one above"
    monkeypatch.chdir(runs.parent / "others")
    with pytest.raises(RunFolderError, match="no run was made in this folder") as raised:
        run_list.find("last", runs)
    assert str(raised.value.hint).startswith(
        "name one in place of `last`: 20261122-110000-000002 is the newest"
    )
    monkeypatch.chdir(runs.parent)
    (runs.parent / calls[0]).mkdir()
    assert run_list.find(calls[0], runs) == Path(calls[0]), "a path comes before a name"
    assert run_list.call_of(runs / NAMES[0], runs) == "20261121-100000-000001", "else it is the folder here"
