"""The command line as a whole: what an interruption leaves."""

from __future__ import annotations

import click
import pytest

from irdiff import cli as command_line
from irdiff.errors import BuildInterrupted


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
