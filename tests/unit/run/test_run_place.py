"""Nothing but an absent or empty folder, or a run, is ever replaced by a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irdiff import pipeline
from irdiff.api import compare as compare_in_python
from irdiff.cli import compare_command, runs_commands
from irdiff.errors import StoreError, UsageError
from irdiff.model import Artifact, Run, Sides
from irdiff.run import run_folder, run_place
from irdiff.store import Store


def tree(folder: Path) -> dict[str, object]:
    """Everything below a folder: what it is, its content, its mode."""
    rows: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content: object = str(path.readlink())
        else:
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        rows[str(path.relative_to(folder))] = (status.st_mode, content)
    return rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache" / "store")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, and the current one."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "precious.txt").write_text("do not lose this")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(build: Any, store: Store) -> Run:
    digest = store.put(b"module {}")
    artifact = Artifact(stage="ttir", digest=digest, size_bytes=9)
    case = build.case(artifacts=Sides(base={"ttir": artifact}, head={"ttir": artifact}))
    made: Run = build.run(case)
    return made


def write(folder: Path, run: Run, store: Store) -> None:
    run_folder.write(folder, run, store, _digests(run))


def _digests(run: Run) -> set[str]:
    return {artifact.digest for case in run.cases for artifact in case.artifacts.base.values()}


# refused


def _linked(link: Path, target: str | Path) -> Path:
    link.symlink_to(target)
    return link


def _with_file(path: Path, text: str = "what I saw", *, of: Path | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return of or path.parent


def _with_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path.parent


def _moved_behind_a_link(artifacts: Path, elsewhere: Path) -> Path:
    artifacts.rename(elsewhere)
    return _linked(artifacts, elsewhere).parent


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _entered(folder: Path) -> Path:
    os.chdir(folder)
    return folder


REFUSED: dict[str, Callable[[Path, Run], Path]] = {
    "current folder": lambda home, run: Path(),
    "above the current folder": lambda home, run: Path(".."),
    "root": lambda home, run: Path("/"),
    "repository": lambda home, run: _with_file(_with_folder(home / "repo/.git") / "kernel.py"),
    "dot files alone": lambda home, run: _with_folder(home / "repo/.git"),
    "file": lambda home, run: home / "precious.txt",
    "below a file": lambda home, run: home / "precious.txt" / "run",
    "pipe": lambda home, run: _pipe(home / "pipe"),
    "link to an empty folder": lambda home, run: _linked(home / "link", _with_folder(home / "a/b")),
    "link to nothing": lambda home, run: _linked(home / "link", "nowhere"),
    "somebody else's run.json": lambda home, run: _with_file(
        _with_folder(home / "run/artifacts") / "run.json", '{"schema": "mine/1", "irdiff-run/1": 0}'
    ),
    "report alone": lambda home, run: _with_file(home / "reports/run.json", run_folder.dump(run).decode()),
}
"""Made in the user's folder."""
OF_A_RUN: dict[str, Callable[[Path, Path], Path]] = {
    "current folder that is a run": lambda home, folder: _entered(folder),
    "link to a run": lambda home, folder: _linked(home / "link", "run"),
    "inside a run": lambda home, folder: folder / "artifacts" / "new",
    "run with a file": lambda home, folder: _with_file(folder / "notes.md"),
    "run with a file among its artifacts": lambda home, folder: _with_file(
        folder / "artifacts/mine.ttgir", of=folder
    ),
    "run with a folder": lambda home, folder: _with_folder(folder / "sub"),
    "run with a link": lambda home, folder: _linked(folder / "timing.json", home / "precious.txt").parent,
    "run whose artifacts are a link": lambda home, folder: _moved_behind_a_link(
        folder / "artifacts", home / "elsewhere"
    ),
}
"""Made of a run in it."""


@pytest.fixture(params=[*REFUSED, *OF_A_RUN])
def refused(request: pytest.FixtureRequest, place: Path, run: Run, store: Store) -> Path:
    """A place that is no run to be replaced."""
    if request.param in REFUSED:
        return REFUSED[request.param](place, run)
    write(place / "run", run, store)
    return OF_A_RUN[request.param](place, place / "run")


_WORDS = ("triton==3.8.0", "triton==3.9.0")


def _invoke(command: Any, *words: object) -> None:
    CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False, catch_exceptions=False)


def test_what_is_no_run_is_refused_and_stays_as_it_was(
    refused: Path, place: Path, run: Run, store: Store
) -> None:
    before = tree(place)
    with pytest.raises(UsageError) as raised:
        run_place.check(refused)
    assert "--out" in raised.value.hint
    with pytest.raises(UsageError):
        write(refused, run, store)
    assert tree(place) == before


@pytest.fixture
def unresolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever resolves a side has come too far."""

    def never(*_: object) -> None:
        raise AssertionError("a side was resolved")

    monkeypatch.setattr(pipeline, "resolved", never)


@pytest.mark.usefixtures("unresolved")
def test_commands_refuse_before_anything_is_read_or_resolved(refused: Path, place: Path) -> None:
    before = tree(place)
    with pytest.raises(UsageError):
        _invoke(compare_command.compare_command, *_WORDS, "--out", refused)
    with pytest.raises(UsageError):
        compare_in_python(*_WORDS, targets=[], cases=[], corpus=None, out=refused)
    with pytest.raises(UsageError):
        _invoke(runs_commands.merge_command, "no-run", "--out", refused)
    assert tree(place) == before


# allowed


def test_an_absent_folder_is_made_with_those_above_it(place: Path, run: Run, store: Store) -> None:
    folder = place / "a" / "b" / "run"
    write(folder, run, store)
    assert run_folder.load(folder) == run
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_an_empty_folder_becomes_the_run(place: Path, run: Run, store: Store) -> None:
    (place / "run").mkdir()
    write(place / "run", run, store)
    assert run_folder.load(place / "run") == run


def test_a_run_is_replaced_as_a_whole(place: Path, run: Run, store: Store, build: Any) -> None:
    write(place / "run", run, store)
    (place / "run" / "timing.json").write_text("{}")
    (place / "run" / "timing-samples.jsonl.zst").write_bytes(b"")
    other = build.run(build.case("a/y:1@sm_90"))
    write(place / "run", other, store)
    assert run_folder.load(place / "run") == other
    assert sorted(path.name for path in place.iterdir()) == ["precious.txt", "run"]
    assert sorted(path.name for path in (place / "run").iterdir()) == ["artifacts", "run.json"]


def test_a_folder_with_a_json_report_may_hold_a_run(place: Path, run: Run, store: Store) -> None:
    (place / "reports").mkdir()
    (place / "reports" / "run.json").write_bytes(run_folder.dump(run))
    write(place / "reports" / "run", run, store)
    assert run_folder.load(place / "reports" / "run") == run


# whole or not at all


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", ["absent", "empty", "run"])
def test_a_failure_leaves_what_was_there(
    place: Path,
    run: Run,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    error: BaseException,
) -> None:
    if before == "empty":
        (place / "run").mkdir()
    elif before == "run":
        write(place / "run", run, store)
    known = tree(place)

    def fail(_: object) -> object:
        raise error

    monkeypatch.setattr(run_folder, "stored", fail)
    with pytest.raises((StoreError, KeyboardInterrupt)):
        write(place / "run", run, store)
    assert tree(place) == known


def test_a_failure_at_the_very_end_leaves_the_old_run(
    place: Path, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "run", run, store)
    known = tree(place)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.startswith(".part-"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        write(place / "run", run, store)
    assert tree(place) == known


def test_a_file_that_comes_while_the_run_is_made_stays(
    place: Path, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "run", run, store)
    with pytest.raises(UsageError, match=r"notes\.md"), run_place.replaced(place / "run"):
        (place / "run" / "notes.md").write_text("what I saw")
    assert (place / "run" / "notes.md").read_text() == "what I saw"
    assert sorted(path.name for path in place.iterdir()) == ["precious.txt", "run"]


# outputs and the run folder


def test_a_report_inside_the_run_folder_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(pipeline, "compare", lambda *_: run)
    with pytest.raises(UsageError, match="replaced as a whole"):
        _invoke(compare_command.compare_command, "a", "b", "--out", "run", "--html", "run/report.html")


def test_merge_does_not_replace_one_of_its_runs(place: Path, run: Run, store: Store) -> None:
    write(place / "one", run, store)
    before = tree(place)
    with pytest.raises(UsageError, match="one of the runs to merge"):
        _invoke(runs_commands.merge_command, "one", "--out", "one")
    assert tree(place) == before


# before anything is compiled


def _full(*_: object, **__: object) -> object:
    raise OSError(28, "No space left on device")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch, unresolved: None) -> None:
    monkeypatch.setattr("tempfile.NamedTemporaryFile", _full)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    "words", [["--out", "a/run"], ["--cache", "cache"], ["--json", "run.json"]], ids=" ".join
)
def test_compare_asks_first_whether_it_can_write(place: Path, words: list[str]) -> None:
    before = tree(place)
    with pytest.raises(StoreError, match=r"cannot be written: No space left") as raised:
        _invoke(compare_command.compare_command, *_WORDS, *words)
    assert "name another" in raised.value.hint
    assert tree(place) == before


@pytest.mark.usefixtures("full")
def test_programs_are_told_at_once_too(place: Path) -> None:
    with pytest.raises(StoreError, match="No space left"):
        compare_in_python("a", "b", targets=[], cases=[], corpus=None, out=place / "run")


def test_trying_to_write_leaves_nothing(place: Path, run: Run, store: Store) -> None:
    write(place / "run", run, store)
    before = tree(place)
    for folder in ("run", "new", "a/b"):
        run_place.prepare(place / folder)
    assert tree(place) == before


def test_a_name_that_no_system_takes_is_one_clear_error(place: Path) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        run_place.prepare(place / ("x" * 300))


def test_a_run_that_finds_no_space_says_what_is_kept(
    place: Path, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "stored", _full)
    with pytest.raises(StoreError, match="No space left") as raised:
        write(place / "run", run, store)
    assert "what was compiled is in the store" in raised.value.hint
