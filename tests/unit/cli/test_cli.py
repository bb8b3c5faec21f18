"""The command line as a whole: help, completion, interruptions, values of options."""

from __future__ import annotations

import click
import pytest

from irdiff import cli as command_line
from irdiff.cli.options import DURATION
from irdiff.errors import BuildInterrupted, UsageError


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


def test_times_have_units() -> None:
    times = {"60s": 60, "2m": 120, "1.5h": 5400, "1d": 86400, "30": 30}
    assert {text: DURATION.convert(text, None, None) for text in times} == times
    for text in ("", "0", "-1s", "1w", "s", "nan", "1e99"):
        with pytest.raises(UsageError, match="is not a time"):
            DURATION.convert(text, None, None)
