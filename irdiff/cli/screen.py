from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from irdiff.parallel import Progress, Report
from irdiff.report import tables
from irdiff.report.tables import Column
from irdiff.resolve.toolchains import environments

_STATUS_INTERVAL_S, _PROGRESS_INTERVAL_S = 30.0, 15.0
_COUNTED = re.compile(r"\d+/\d+")
"""Matches a count such as `3/20`. The text before it says what is counted; the text after it changes
with it.
"""
_FEW = 4
_UNITS = {"capture": "combinations of workload, side and target", "compare": "cases"}


class _Plain:
    """Prints a line for each new activity, and some in between, where there is no terminal."""

    def __init__(self, console: Console, interval_s: float) -> None:
        self._console, self._interval_s = console, interval_s
        self._key, self._printed = "", 0.0

    def show(self, key: str, text: str, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or key != self._key or now - self._printed >= self._interval_s:
            self._key, self._printed = key, now
            self._console.print(Text(text), soft_wrap=True)


@contextmanager
def status_line(console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """Shows one line that says what irdiff does, including installations."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        lines = _Plain(console, _STATUS_INTERVAL_S)

        def plain(text: str) -> None:
            lines.show(_COUNTED.split(text, maxsplit=1)[0], text)

        with environments.showing(plain):
            yield plain
        return
    with console.status("") as status:

        def live(text: str) -> None:
            status.update(Text(text))
            if text.startswith("ATTENTION"):
                console.print(Text(text, style="bold red"), soft_wrap=True)

        with environments.showing(live):
            yield live


@contextmanager
def progress(console: Console | None = None) -> Iterator[Report]:
    """Shows a bar and an estimate for each phase of the pipeline."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        lines = _Plain(console, _PROGRESS_INTERVAL_S)
        begins: dict[str, float] = {}

        def plain(step: Progress) -> None:
            if step.attention:
                console.print(Text(step.attention), soft_wrap=True)
                return
            passed_s = time.monotonic() - begins.setdefault(step.phase, time.monotonic())
            counted = f"{step.done}/{step.total} {_UNITS.get(step.phase, '')}".rstrip()
            text = f"{step.phase}: {counted}{_left(step, passed_s)}"
            lines.show(step.phase, text, always=step.done == step.total)

        yield plain
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", style="dim"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(step: Progress) -> None:
            if step.attention:
                bar.console.print(Text(step.attention, style="bold red"), soft_wrap=True)
                return
            if step.phase not in tasks:
                tasks[step.phase] = bar.add_task(step.phase, total=step.total, detail="")
            bar.update(tasks[step.phase], completed=step.done, detail=step.detail[:60])

        yield report


def _left(step: Progress, passed_s: float) -> str:
    """Returns no estimate for the first few items, which wait for processes to start."""
    if not _FEW < step.done < step.total:
        return ""
    seconds = passed_s / step.done * (step.total - step.done)
    return f", about {seconds:.0f} s left" if seconds < 120 else f", about {seconds / 60:.0f} min left"


def print_table(columns: Sequence[Column], cells: Sequence[Sequence[Text]]) -> None:
    console = Console()
    print_lines(console, tables.lines(columns, cells, console.width if console.is_terminal else None))


def print_lines(console: Console, lines: Iterable[Text], *, with_pager: bool = False) -> None:
    """Uses the user's PAGER if `with_pager` and the terminal is too low for the lines.

    Without a terminal the lines are written as they are: the layout of ten thousand lines takes seconds.
    """
    if not console.is_terminal:
        for line in lines:
            console.file.write(f"{line.plain.rstrip()}\n")
        return
    shown = list(lines)
    is_paged = with_pager and len(shown) >= console.height - 1
    with console.capture() if is_paged else nullcontext() as captured:
        for line in shown:
            console.print(line, soft_wrap=True, highlight=False)
    if captured:
        click.echo_via_pager(captured.get(), color=not console.no_color)
