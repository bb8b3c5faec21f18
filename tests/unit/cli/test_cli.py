"""The command line as a whole: help, completion, interruptions, values of options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from irdiff import cli as command_line
from irdiff.cli import cli
from irdiff.cli.options import DURATION
from irdiff.errors import BuildInterrupted, UsageError


def _commands(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{words} {name}")


def test_every_command_and_option_says_what_it_is_for() -> None:
    for words, command in _commands(cli, "irdiff"):
        for text in (command.help, *(row.help for row in command.params if isinstance(row, click.Option))):
            assert text, f"an option of {words} says nothing"
            assert "\\b" not in text, "click takes a character of one"
            assert text[0].isupper() or text[0] in "`-" or "/" in text.split()[0], text


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


def test_completion_offers_commands_targets_and_workloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRDIFF_CACHE", str(tmp_path))

    def offered(*words: str) -> list[str]:
        found = ShellComplete(cli, {}, "irdiff", "_IRDIFF_COMPLETE")
        return [item.value for item in found.get_completions(list(words[:-1]), words[-1])]

    assert offered("re") == ["report", "release-report"]
    assert offered("diff", "no such run", "g:") == []
    assert offered("compare", "--target", "sm_9") == ["sm_90"]
    assert offered("compare", "--case", "matmul/po") == ["matmul/pointer"]
    assert "matmul@gfx942" in offered("compare", "--case", "matmul@gfx")
    assert offered("runs", "pr") == ["prune"]
    for shell in ("bash", "zsh", "fish"):
        assert "_IRDIFF_COMPLETE" in CliRunner().invoke(cli, ["completion", shell]).output
    assert "'compare'" in CliRunner().invoke(cli, ["comparre"]).output


def test_times_have_units() -> None:
    times = {"60s": 60, "2m": 120, "1.5h": 5400, "1d": 86400, "30": 30}
    assert {text: DURATION.convert(text, None, None) for text in times} == times
    for text in ("", "0", "-1s", "1w", "s", "nan", "1e99"):
        with pytest.raises(UsageError, match="is not a time"):
            DURATION.convert(text, None, None)
