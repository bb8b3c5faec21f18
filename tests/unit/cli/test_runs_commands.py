"""The list of runs, and what is new in one since another."""

import os
import shutil

import pytest
from click.testing import CliRunner

from irdiff import pipeline
from irdiff.cli.compare_command import compare_command
from irdiff.cli.report_command import report_command
from irdiff.cli.runs_commands import runs_group
from irdiff.errors import ExitCode, UsageError
from irdiff.model import Verdict
from irdiff.run import run_folder, run_list
from tests.unit import runs as build
from tests.unit.typed import typed

OLD, NEW = "20261121-100000-000001-a-b", "20261122-110000-000002-c-d"


def write(folder, run, written):
    (build.saved(folder, run) / "artifacts").mkdir()
    os.utime(folder / "run.json", (written, written))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two runs of one comparison: the newer one has one group more."""
    monkeypatch.setenv("IRDIFF_CACHE", str(tmp_path / "cache"))
    a, b = (
        build.case(f"a/b:{name}@sm_90", Verdict.CHANGED, edit="e" * 64, group=f"{name}eeeaaaabbbbcccc")
        for name in ("a", "b")
    )
    groups = build.group(a.group, a.id), build.group(b.group, b.id)
    folder = tmp_path / "cache" / "runs"
    write(folder / OLD, build.run(a, groups=groups[:1]), 1)
    write(folder / NEW, build.run(a, b, groups=groups), 2)
    return folder


def call(command, *words):
    return typed(command, *words)[1]


def test_removing_takes_names_of_the_list_and_nothing_else(runs, tmp_path):
    write(tmp_path / "elsewhere", build.run(build.case("a/b:c@sm_90")), 3)
    with pytest.raises(UsageError, match="nothing was removed"):
        call(runs_group, "rm", OLD, str(tmp_path / "elsewhere"))
    (runs / NEW / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="it was not removed"):
        call(runs_group, "rm", NEW)
    assert (runs / NEW / "run.json").exists()
    assert call(runs_group, "rm", "20261121") == f"removed {OLD}\n"
    assert not (runs / OLD).exists()


def test_pruning_keeps_what_it_is_told_to(runs):
    with pytest.raises(UsageError, match="say which runs are old"):
        call(runs_group, "prune")
    assert f"would remove {OLD}" in call(runs_group, "prune", "--keep", "1", "--dry-run")
    assert "0 removed" in call(runs_group, "prune", "--keep", "2", "--older-than", "1d")
    assert "1 removed" in call(runs_group, "prune", "--keep", "1")
    assert [path.name for path in runs.iterdir()] == [NEW]
    os.utime(runs / NEW / "run.json")
    assert "0 removed" in call(runs_group, "prune", "--older-than", "1d")


def test_only_what_is_new_is_shown_and_the_rest_is_counted(runs, tmp_path, snapshot):
    run_list.remember(runs / NEW, runs)
    text = call(report_command, "last", "--baseline", OLD)
    assert "\n  2     1  " in text, "a group has the number of the whole run"
    assert "g:aeee" not in text
    files = {kind: tmp_path / kind for kind in ("markdown", "html", "json")}
    words = (word for kind, path in files.items() for word in (f"--{kind}", str(path)))
    call(report_command, "last", "--baseline", OLD, *words)
    quiet = call(report_command, "last", "--baseline", OLD, "--quiet")
    for part in (text, files["markdown"].read_text(), files["html"].read_text()):
        assert quiet.strip() in part.replace("\\_", "_").replace("\n\n", " ")
    assert files["json"].read_bytes() == (runs / NEW / "run.json").read_bytes(), "JSON is whole"
    assert [quiet, call(report_command, OLD, "--baseline", NEW, "--quiet")] == snapshot
    for name in ("last", NEW, str(runs / NEW)):
        with pytest.raises(UsageError, match="nothing would be shown"):
            call(report_command, "last", "--baseline", name)


@pytest.fixture
def compared(runs, monkeypatch):
    """`irdiff compare` makes the newer run, where `--out` says, without a toolchain."""
    new = run_folder.load(runs / NEW)
    run_list.remember(runs / OLD, runs)
    shutil.rmtree(runs / NEW)

    def made(_asked, _config, out, _report, fill):
        write(out or runs / NEW, new, 2_000_000_000)
        return new, out or runs / NEW

    monkeypatch.setattr("irdiff.cli.compare_command.resolved", lambda *_: None)
    monkeypatch.setattr(pipeline, "compare", made)
    return runs


def test_last_is_the_run_before_the_one_that_is_made(compared):
    """Read after the comparison, `last` would be the new run, and hide all of it."""
    words = ("triton==3.8.0", "triton==3.9.0", "--baseline", "last", "--quiet", "--exit-code")
    found = CliRunner().invoke(compare_command, words, standalone_mode=False, catch_exceptions=False)
    assert "new since 20261121-100000: 1 of 1 case changed" in found.output
    assert found.return_value == ExitCode.ANSWER_IS_NO
