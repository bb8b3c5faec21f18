"""Files that commands write: what is there and is not theirs stays, and is named."""

import os

import pytest

from irdiff.cli import hook_commands
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
    for option in ("--json", "--markdown", "--junit", "--sarif"):
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


@pytest.fixture
def place(tmp_path, monkeypatch):
    class Repository:
        @staticmethod
        def hook_path(name):
            return tmp_path / ".git" / "hooks" / name

    monkeypatch.setattr(hook_commands.repository, "open_store", lambda *_: Repository())
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    return tmp_path / ".git" / "hooks" / "pre-push"


@pytest.mark.parametrize("kind", ["foreign", "changed", "link"])
def test_another_hook_stays_and_is_put_aside_by_force(place, kind):
    foreign = "#!/bin/sh\nmake test\n"
    if kind == "link":
        (place.parent / "shared").write_text(foreign)
        place.symlink_to("shared")
    elif kind == "changed":
        typed(hook_commands.install_command)
        place.write_text(place.read_text().replace("exec ", "make test || exit 1\nexec "))
    else:
        place.write_text(foreign)
    before, content = tree(place.parent), place.read_text()
    with pytest.raises(UsageError, match="there is a pre-push hook already"):
        typed(hook_commands.install_command)
    assert tree(place.parent) == before
    typed(hook_commands.install_command, "--force")
    typed(hook_commands.install_command, "--budget", "30", "--", "--tier", "gate")
    assert hook_commands.is_ours(place.read_text()) and "--budget 30" in place.read_text()
    assert place.stat().st_mode & 0o777 == 0o755
    place.write_text(foreign)
    typed(hook_commands.install_command, "--force")
    assert (place.parent / "pre-push.before-irdiff").read_text() == content
    assert (place.parent / "pre-push.before-irdiff-2").read_text() == foreign
