"""What `--help` says: every command and every option says something, and says it whole."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from irdiff.cli import cli


def _commands(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{words} {name}")


COMMANDS = dict(_commands(cli, "irdiff"))


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_option_says_what_it_is_for(words: str) -> None:
    command = COMMANDS[words]
    texts = [command.help, *(row.help for row in command.params if isinstance(row, click.Option))]
    for text in texts:
        assert text, f"an option of {words} says nothing"
        assert "\\b" not in text, "click takes a character of one"
        assert text[0].isupper() or text[0] in "`-" or "/" in text.split()[0], text
