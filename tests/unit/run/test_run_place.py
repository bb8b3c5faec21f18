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
from irdiff.cli import compare, merge
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

_Made = Callable[[Path, Run, Store], Path]


def _current_folder(home: Path, run: Run, store: Store) -> Path:
    return Path()


def _current_folder_that_is_a_run(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    os.chdir(home / "run")
    return home / "run"


def _above_the_current_folder(home: Path, run: Run, store: Store) -> Path:
    return Path("..")


def _root(home: Path, run: Run, store: Store) -> Path:
    return Path("/")


def _repository(home: Path, run: Run, store: Store) -> Path:
    (home / "repo" / ".git").mkdir(parents=True)
    (home / "repo" / "kernel.py").write_text("import triton")
    return home / "repo"


def _dot_files_alone(home: Path, run: Run, store: Store) -> Path:
    (home / "repo" / ".git").mkdir(parents=True)
    return home / "repo"


def _file(home: Path, run: Run, store: Store) -> Path:
    return home / "precious.txt"


def _below_a_file(home: Path, run: Run, store: Store) -> Path:
    return home / "precious.txt" / "run"


def _pipe(home: Path, run: Run, store: Store) -> Path:
    os.mkfifo(home / "pipe")
    return home / "pipe"


def _link_to_an_empty_folder(home: Path, run: Run, store: Store) -> Path:
    (home / "empty").mkdir()
    (home / "link").symlink_to("empty")
    return home / "link"


def _link_to_a_run(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "link").symlink_to("run")
    return home / "link"


def _link_to_nothing(home: Path, run: Run, store: Store) -> Path:
    (home / "link").symlink_to("nowhere")
    return home / "link"


def _inside_a_run(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    return home / "run" / "artifacts" / "new"


def _run_with_a_file(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "run" / "notes.md").write_text("what I saw")
    return home / "run"


def _run_with_a_file_among_its_artifacts(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "run" / "artifacts" / "mine.ttgir").write_text("module {}")
    return home / "run"


def _run_with_a_folder(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "run" / "sub").mkdir()
    return home / "run"


def _run_with_a_link(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "run" / "timing.json").symlink_to(home / "precious.txt")
    return home / "run"


def _run_whose_artifacts_are_a_link(home: Path, run: Run, store: Store) -> Path:
    write(home / "run", run, store)
    (home / "run" / "artifacts").rename(home / "elsewhere")
    (home / "run" / "artifacts").symlink_to(home / "elsewhere")
    return home / "run"


def _somebody_elses_run_json(home: Path, run: Run, store: Store) -> Path:
    (home / "run" / "artifacts").mkdir(parents=True)
    (home / "run" / "run.json").write_text('{"schema": "mine/1", "irdiff-run/1": 0}')
    return home / "run"


def _report_alone(home: Path, run: Run, store: Store) -> Path:
    (home / "reports").mkdir()
    (home / "reports" / "run.json").write_bytes(run_folder.dump(run))
    return home / "reports"


REFUSED: list[_Made] = [
    _current_folder,
    _current_folder_that_is_a_run,
    _above_the_current_folder,
    _root,
    _repository,
    _dot_files_alone,
    _file,
    _below_a_file,
    _pipe,
    _link_to_an_empty_folder,
    _link_to_a_run,
    _link_to_nothing,
    _inside_a_run,
    _run_with_a_file,
    _run_with_a_file_among_its_artifacts,
    _run_with_a_folder,
    _run_with_a_link,
    _run_whose_artifacts_are_a_link,
    _somebody_elses_run_json,
    _report_alone,
]


def _name(make: _Made) -> str:
    return make.__name__.strip("_")


@pytest.mark.parametrize("make", REFUSED, ids=_name)
def test_what_is_no_run_is_refused_and_stays_as_it_was(
    make: _Made, place: Path, run: Run, store: Store
) -> None:
    folder = make(place, run, store)
    before = tree(place)
    with pytest.raises(UsageError) as raised:
        run_place.check(folder)
    assert "--out" in raised.value.hint
    with pytest.raises(UsageError):
        write(folder, run, store)
    assert tree(place) == before


@pytest.mark.parametrize("make", REFUSED, ids=_name)
def test_compare_refuses_before_anything_is_resolved(
    make: _Made, place: Path, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a side was resolved")

    monkeypatch.setattr(compare, "resolve_sides", never)
    monkeypatch.setattr("irdiff.api.resolve_sides", never)
    folder = make(place, run, store)
    before = tree(place)
    words = ["triton==3.8.0", "triton==3.9.0", "--out", str(folder)]
    with pytest.raises(UsageError):
        CliRunner().invoke(compare.compare_command, words, standalone_mode=False, catch_exceptions=False)
    with pytest.raises(UsageError):
        compare_in_python("triton==3.8.0", "triton==3.9.0", targets=[], cases=[], corpus=None, out=folder)
    assert tree(place) == before


@pytest.mark.parametrize("make", REFUSED, ids=_name)
def test_merge_refuses_before_anything_is_read(make: _Made, place: Path, run: Run, store: Store) -> None:
    folder = make(place, run, store)
    before = tree(place)
    with pytest.raises(UsageError):
        CliRunner().invoke(
            merge.merge_command,
            ["no-run", "--out", str(folder)],
            standalone_mode=False,
            catch_exceptions=False,
        )
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
    words = ["a", "b", "--out", "run", "--html", "run/report.html"]
    with pytest.raises(UsageError, match="replaced as a whole"):
        CliRunner().invoke(compare.compare_command, words, standalone_mode=False, catch_exceptions=False)


def test_merge_does_not_replace_one_of_its_runs(place: Path, run: Run, store: Store) -> None:
    write(place / "one", run, store)
    before = tree(place)
    with pytest.raises(UsageError, match="one of the runs to merge"):
        CliRunner().invoke(
            merge.merge_command, ["one", "--out", "one"], standalone_mode=False, catch_exceptions=False
        )
    assert tree(place) == before


# before anything is compiled

_WORDS = ["triton==3.8.0", "triton==3.9.0"]


def _full(*_: object, **__: object) -> object:
    raise OSError(28, "No space left on device")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.NamedTemporaryFile", _full)

    def never(*_: object) -> None:
        raise AssertionError("a side was resolved")

    monkeypatch.setattr(compare, "resolve_sides", never)
    monkeypatch.setattr("irdiff.api.resolve_sides", never)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    "words", [["--out", "a/run"], ["--cache", "cache"], ["--json", "run.json"]], ids=" ".join
)
def test_compare_asks_first_whether_it_can_write(place: Path, words: list[str]) -> None:
    before = tree(place)
    with pytest.raises(StoreError, match=r"cannot be written: No space left") as raised:
        CliRunner().invoke(
            compare.compare_command, [*_WORDS, *words], standalone_mode=False, catch_exceptions=False
        )
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
