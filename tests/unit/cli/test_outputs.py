"""Files that commands write: what is there and is not theirs stays, and is named."""

import os

import pytest

from irdiff.cli.gate_commands import gate_command
from irdiff.cli.init_command import init_command
from irdiff.cli.report_command import report_command
from irdiff.errors import UsageError
from irdiff.run import run_folder
from irdiff.store import Store
from tests.unit import runs
from tests.unit.run.test_run_place import tree
from tests.unit.typed import typed


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    run_folder.write(path, runs.run(runs.case()), Store(tmp_path / "store"), [])
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("precious")
    return path


def test_a_report_goes_to_a_plain_file_only_and_the_gate_looks_at_its_outputs_first(folder):
    before = tree(folder.parent)
    for option in ("--json", "--markdown", "--html", "--svg"):
        for name in ("precious", "pipe", "link", "precious/file/below"):
            with pytest.raises(UsageError, match=r"not a file to write|cannot be written"):
                typed(report_command, str(folder), option, str(folder.parent / name))
    for option in ("--json", "--markdown", "--junit"):
        with pytest.raises(UsageError, match="not a file to write"):
            place = str(folder.parent / "precious")
            typed(gate_command, str(folder), "--policy", "not-there.toml", option, place)
    assert tree(folder.parent) == before
    path = folder.parent / "out"
    path.write_text("the report of yesterday")
    typed(report_command, str(folder), "--html", str(path))
    assert path.read_text().startswith("<!doctype html>")


def test_init_forced_replaces_files_and_nothing_else(tmp_path):
    (tmp_path / "irdiff-policy.toml").mkdir()
    (tmp_path / ".github").write_text("a file")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=r"not a file to write|cannot be written"):
        typed(init_command, str(tmp_path), "--github", "--force", "--action", f"o/irdiff@{'a' * 40}")
    assert tree(tmp_path) == before
