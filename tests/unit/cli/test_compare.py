from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff import pipeline
from irdiff.cli import compare_command
from irdiff.run import run_list
from tests.unit.report.runs import large_run

RUN = large_run(60, 6)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The words of a comparison that finds `RUN` without a toolchain."""
    monkeypatch.setattr(pipeline, "resolved", lambda *_: None)
    monkeypatch.setattr(pipeline, "compare", lambda *_, **__: (RUN, tmp_path / "run"))
    return ["--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "run")]


def call(*words: str) -> str:
    found = CliRunner().invoke(
        compare_command.compare_command, list(words), standalone_mode=False, catch_exceptions=False
    )
    return found.output


def test_writes_each_report_and_shows_it(compared: list[str], tmp_path: Path) -> None:
    wanted = {
        "--html": "<!doctype html>",
        "--markdown": "### irdiff: 3 of 60 kernels no longer compile",
        "--json": "{",
    }
    paths = {option: tmp_path / f"out{option}" for option in wanted}
    text = call(*compared, *(word for option, path in paths.items() for word in (option, str(path))))
    assert text.startswith("3 of 60 kernels no longer compile")
    for option, start in wanted.items():
        assert paths[option].read_text("utf-8").startswith(start)


def test_last_names_a_run_that_lies_elsewhere(compared: list[str], tmp_path: Path) -> None:
    call(*compared)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    assert run_list.find("last", tmp_path / "cache" / "runs") == tmp_path / "run"


def test_a_report_on_standard_output_stands_alone(compared: list[str]) -> None:
    text = call(*compared, "--html", "-")
    assert text.startswith("<!doctype html>")
    assert "run folder:" not in text
