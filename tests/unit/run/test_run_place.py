"""Nothing but an absent or empty folder, or a run, is ever replaced by a run."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from irdiff.api import compare as compare_in_python
from irdiff.cli import compare_command, runs_commands
from irdiff.errors import StoreError, UsageError
from irdiff.model import Artifact, Sides
from irdiff.run import run_folder, run_place
from irdiff.store import Store
from tests.unit import runs
from tests.unit.typed import typed


def tree(folder):
    """Everything below a folder: what it is, its content, its mode."""
    rows = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        else:
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        rows[str(path.relative_to(folder))] = (status.st_mode, content)
    return rows


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache" / "store")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The user's folder, and the current one."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "precious.txt").write_text("do not lose this")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(store):
    digest = store.put(b"module {}")
    artifact = Artifact(stage="ttir", digest=digest, size_bytes=9)
    case = runs.case(artifacts=Sides(base={"ttir": artifact}, head={"ttir": artifact}))
    return runs.run(case)


def write(folder, run, store):
    digests = {artifact.digest for case in run.cases for artifact in case.artifacts.base.values()}
    run_folder.write(folder, run, store, digests)


def with_file(path, text="what I saw"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path.parent


def linked(link, target):
    link.symlink_to(target)
    return link


REFUSED = {
    "current folder": lambda home, run: Path(),
    "above the current folder": lambda home, run: Path(".."),
    "root": lambda home, run: Path("/"),
    "repository": lambda home, run: with_file(with_file(home / "repo/.git/config").parent / "kernel.py"),
    "dot files alone": lambda home, run: with_file(home / "repo/.git/config").parent,
    "file": lambda home, run: home / "precious.txt",
    "below a file": lambda home, run: home / "precious.txt" / "run",
    "pipe": lambda home, run: os.mkfifo(home / "pipe") or home / "pipe",
    "link to an empty folder": lambda home, run: linked(home / "link", tempfile.mkdtemp(dir=home)),
    "link to nothing": lambda home, run: linked(home / "link", "nowhere"),
    "somebody else's run.json": lambda home, run: with_file(
        with_file(home / "a/artifacts/x").parent / "run.json", '{"schema": "mine/1", "irdiff-run/1": 0}'
    ),
    "report alone": lambda home, run: with_file(home / "reports/run.json", run_folder.dump(run).decode()),
    "current folder that is a run": lambda home, run: os.chdir(home / "run") or home / "run",
    "link to a run": lambda home, run: linked(home / "link", "run"),
    "inside a run": lambda home, run: home / "run" / "artifacts" / "new",
    "run with a file": lambda home, run: with_file(home / "run" / "notes.md"),
    "run with a file among its artifacts": lambda home, run: (
        with_file(home / "run/artifacts/mine.ttgir").parent
    ),
    "run with a folder": lambda home, run: with_file(home / "run" / "sub" / "x").parent,
    "run with a link": lambda home, run: linked(home / "run/timing.json", home / "precious.txt").parent,
    "run whose artifacts are a link": lambda home, run: (
        linked(home / "run/artifacts", (home / "run/artifacts").rename(home / "elsewhere")).parent
    ),
}
"""Made in the user's folder, which holds a run, too."""


@pytest.fixture
def unresolved(monkeypatch):
    """Whoever resolves a side has come too far."""

    def never(*_):
        raise AssertionError("a side was resolved")

    monkeypatch.setattr("irdiff.cli.compare_command.resolved", never)


WORDS = ("triton==3.8.0", "triton==3.9.0")


@pytest.mark.usefixtures("unresolved")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_run_is_refused_by_all_and_stays_as_it_was(kind, place, run, store):
    write(place / "run", run, store)
    refused = REFUSED[kind](place, run)
    before = tree(place)
    with pytest.raises(UsageError) as raised:
        run_place.check(refused)
    assert "--out" in raised.value.hint
    for attempt in (
        lambda: write(refused, run, store),
        lambda: typed(compare_command.compare_command, *WORDS, "--out", refused),
        lambda: compare_in_python(*WORDS, targets=[], cases=[], corpus=None, out=refused),
        lambda: typed(runs_commands.merge_command, "no-run", "--out", refused),
    ):
        with pytest.raises(UsageError):
            attempt()
    assert tree(place) == before


@pytest.mark.usefixtures("unresolved")
def test_no_output_lies_in_the_run_folder_and_merge_replaces_none_of_its_runs(place, run, store):
    write(place / "one", run, store)
    before = tree(place)
    with pytest.raises(UsageError, match="replaced as a whole"):
        typed(compare_command.compare_command, "a", "b", "--out", "run", "--html", "run/report.html")
    with pytest.raises(UsageError, match="one of the runs to merge"):
        typed(runs_commands.merge_command, "one", "--out", "one")
    assert tree(place) == before


@pytest.mark.parametrize("name", ["a/b/run", "empty", "run", "reports/run"])
def test_an_absent_or_empty_folder_or_a_run_is_replaced_as_a_whole(place, run, store, name):
    (place / "empty").mkdir()
    with_file(place / "reports" / "run.json", run_folder.dump(run).decode())
    write(place / "run", runs.run(runs.case("a/y:1@sm_90")), store)
    for file in ("timing.json", "timing-samples.jsonl.zst"):
        (place / "run" / file).write_text("{}")
    before = tree(place)
    run_place.prepare(place / name)
    assert tree(place) == before, "trying to write leaves nothing"
    write(place / name, run, store)
    assert run_folder.load(place / name) == run
    assert sorted(path.name for path in (place / name).iterdir()) == ["artifacts", "run.json"]
    assert stat.S_IMODE((place / name).stat().st_mode) == 0o755
    assert not list(place.rglob(".*"))


def full(*_, **__):
    raise OSError(28, "No space left on device")


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("fail", [full, interrupted])
@pytest.mark.parametrize("before", ["absent", "empty", "run"])
def test_a_failure_leaves_what_was_there(place, run, store, monkeypatch, before, fail):
    if before == "empty":
        (place / "run").mkdir()
    elif before == "run":
        write(place / "run", run, store)
    known = tree(place)
    monkeypatch.setattr(run_folder, "stored", fail)
    with pytest.raises((StoreError, KeyboardInterrupt)) as raised:
        write(place / "run", run, store)
    if isinstance(raised.value, StoreError):
        assert "what was compiled is in the store" in raised.value.hint
    assert tree(place) == known


def test_a_failure_at_the_very_end_leaves_the_old_run(place, run, store, monkeypatch):
    write(place / "run", run, store)
    known, rename = tree(place), Path.rename
    monkeypatch.setattr(
        Path, "rename", lambda path, to: full() if path.name.startswith(".part-") else rename(path, to)
    )
    with pytest.raises(StoreError, match="No space left"):
        write(place / "run", run, store)
    assert tree(place) == known


def test_a_file_that_comes_while_the_run_is_made_stays(place, run, store):
    write(place / "run", run, store)
    with pytest.raises(UsageError, match=r"notes\.md"), run_place.replaced(place / "run"):
        (place / "run" / "notes.md").write_text("what I saw")
    assert (place / "run" / "notes.md").read_text() == "what I saw"
    assert sorted(path.name for path in place.iterdir()) == ["precious.txt", "run"]


@pytest.mark.usefixtures("unresolved")
@pytest.mark.parametrize("option", ["--out", "--cache", "--json"])
def test_a_place_without_space_is_found_before_anything_is_resolved(place, monkeypatch, option):
    with pytest.raises(UsageError, match="File name too long"):
        run_place.prepare(place / ("x" * 300))
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    before = tree(place)
    with pytest.raises(StoreError, match=r"cannot be written: No space left") as raised:
        typed(compare_command.compare_command, *WORDS, option, "a/place")
    assert "name another" in raised.value.hint
    with pytest.raises(StoreError, match="No space left"):
        compare_in_python("a", "b", targets=[], cases=[], corpus=None, out=place / "run")
    assert tree(place) == before
