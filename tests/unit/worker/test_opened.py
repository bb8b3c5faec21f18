"""Which files a reader of a report is told of."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The worker's module, not watching: an audit hook cannot be taken away again."""
    monkeypatch.delitem(sys.modules, "irdiff.worker.opened", raising=False)
    yield importlib.import_module("irdiff.worker.opened")
    monkeypatch.delitem(sys.modules, "irdiff.worker.opened")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("repository/shapes.json", "repository/kernels/k.py", "repository-2/other.json", "else.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path / "repository"


def opens(opened: ModuleType, *paths: object) -> None:
    for path in paths:
        opened._on_event("open", (path, "r", 0))


def test_files_below_the_folder_are_told_relative_to_it(
    opened: ModuleType, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "kernels")
    opened.begin(str(repository))
    opens(opened, str(repository / "shapes.json"), b"k.py", repository / "shapes.json")
    opens(opened, "../../else.json", str(repository.parent / "repository-2" / "other.json"), 3)
    opens(opened, str(repository / "gone.json"), str(repository / "kernels"))
    assert opened.report() == ["kernels/k.py", "shapes.json"]


def test_a_path_that_goes_up_on_its_way_is_told_as_what_it_is(
    opened: ModuleType, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "kernels")
    opened.begin(str(repository))
    opens(opened, "../shapes.json", str(repository / "kernels" / ".." / "kernels" / "k.py"))
    assert opened.report() == ["kernels/k.py", "shapes.json"]


def test_nothing_is_noted_while_nobody_asks(opened: ModuleType, repository: Path) -> None:
    opens(opened, str(repository / "shapes.json"))
    opened.begin(None)
    opens(opened, str(repository / "shapes.json"))
    assert opened.report() == []
    opened.begin(str(repository))
    assert opened.report() == []
    opens(opened, str(repository / "shapes.json"))
    opened.begin(str(repository))
    assert opened.report() == []
