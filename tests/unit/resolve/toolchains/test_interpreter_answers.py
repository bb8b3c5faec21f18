"""When an interpreter's answer is used again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.resolve.toolchains import interpreter_answers


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment's folder of packages, all of it older than any answer."""
    site = tmp_path / "environment" / "lib" / "site-packages"
    (site / "backend-1.0.dist-info").mkdir(parents=True)
    (site / "backend-1.0.dist-info" / "entry_points.txt").write_text("[triton.backends]\nxpu = xpu\n")
    (site / "editable.pth").write_text("/somewhere\n")
    (tmp_path / "environment" / "bin").mkdir()
    (tmp_path / "environment" / "libs").mkdir()
    for number in "12":
        (tmp_path / "environment" / "libs" / f"libx.so.{number}").write_text("library")
    (tmp_path / "environment" / "libs" / "libx.so").symlink_to("libx.so.1")
    (tmp_path / "environment" / "bin" / "python").write_text("#!")
    return site


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    return configuration.load(cache=tmp_path / "cache")


def remembered(site: Path, settings: Config, asked_at: float | None = None) -> tuple[str, dict[str, Any]]:
    python = str(site.parents[1] / "bin" / "python")
    reply = {
        "triton": "3.9.0",
        "search_path": [str(site)],
        "libraries": [str(site.parents[1] / "libs/libx.so.1")],
    }
    interpreter_answers.remember(python, settings, reply, "digest", asked_at or time.time() + 60)
    return python, reply


def test_an_answer_holds_while_nothing_changes(site: Path, settings: Config) -> None:
    python, reply = remembered(site, settings)
    assert interpreter_answers.known(python, settings) == (reply, "digest")


def led_elsewhere(site: Path) -> None:
    """A link to a library: the one that was mapped is still there."""
    link = site.parents[1] / "libs" / "libx.so"
    link.unlink()
    link.symlink_to("libx.so.2")


@pytest.mark.parametrize(
    "change",
    [
        led_elsewhere,
        lambda site: (site / "other").mkdir(),
        lambda site: (site / "editable.pth").write_text("/elsewhere\n"),
        lambda site: (site / "backend-1.0.dist-info" / "entry_points.txt").write_text("[triton.backends]\n"),
        lambda site: (site / "editable.pth").unlink(),
        lambda site: (site.parents[1] / "bin" / "python").write_text("#! another"),
        lambda site: (site.parents[1] / "pyvenv.cfg").write_text("home = /usr"),
        lambda site: os.utime(site / "editable.pth", ns=(0, 0)),
    ],
    ids=[
        "link",
        "package",
        "pth",
        "entry-points",
        "pth-gone",
        "interpreter",
        "configuration",
        "time-set-back",
    ],
)
def test_any_change_on_the_search_path_asks_again(site: Path, settings: Config, change: Any) -> None:
    python, _ = remembered(site, settings)
    change(site)
    assert interpreter_answers.known(python, settings) is None


def test_an_answer_given_while_files_change_is_not_kept(site: Path, settings: Config) -> None:
    python, _ = remembered(site, settings, asked_at=time.time())
    assert interpreter_answers.known(python, settings) is None


def test_another_environment_asks_again(site: Path, tmp_path: Path, settings: Config) -> None:
    python, _ = remembered(site, settings)
    other = configuration.load(cache=tmp_path / "cache", compiler_environment={"LLVM_X": "1"})
    assert interpreter_answers.known(python, other) is None


def test_with_folders_of_libraries_every_run_asks(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "libraries"))
    settings = configuration.load(cache=tmp_path / "cache")
    python, _ = remembered(site, settings)
    assert interpreter_answers.known(python, settings) is None
