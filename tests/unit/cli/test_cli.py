"""The command line as a whole: what an interruption leaves."""

from __future__ import annotations

import sys

import click
import pytest

from irdiff import cli as command_line
from irdiff.errors import BuildInterrupted


def test_history_without_its_extra_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("irdiff.history", "irdiff.cli.history"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr("sys.argv", ["irdiff", "history", "check"])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    assert "next: pip install 'irdiff[history]'" in capsys.readouterr().err


def test_an_interruption_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for raised, words in (
        (KeyboardInterrupt(), "interrupted; what was compiled is in the store"),
        (BuildInterrupted("what was built is kept: /x"), "interrupted; what was built is kept: /x"),
    ):

        @click.command()
        def interrupted(raised: BaseException = raised) -> None:
            raise raised

        monkeypatch.setattr(command_line, "cli", interrupted)
        monkeypatch.setattr("sys.argv", ["irdiff"])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        assert ended.value.code == 130
        assert capsys.readouterr().err.strip() == words
