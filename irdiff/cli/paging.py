"""Long output: one screen after another on a terminal, all of it in a pipe or a file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import click
from rich.console import Console  # noqa: TC002
from rich.text import Text  # noqa: TC002


def show(console: Console, lines: Iterable[Text], *, with_pager: bool) -> None:
    """Prints the lines; where a terminal is too low for them, by the user's pager (PAGER)."""
    if not console.is_terminal:
        for line in lines:
            click.echo(line.plain.rstrip())
        return
    left = iter(lines)
    first = list(itertools.islice(left, console.height - 1 if with_pager else None))
    if len(first) < console.height - 1 or not with_pager:
        for line in first:
            console.print(line, soft_wrap=True, highlight=False)
        return
    click.echo_via_pager(_with_colour(console, itertools.chain(first, left)), color=not console.no_color)


def _with_colour(console: Console, lines: Iterable[Text]) -> Iterator[str]:
    for line in lines:
        with console.capture() as captured:
            console.print(line, soft_wrap=True, highlight=False)
        yield captured.get()
