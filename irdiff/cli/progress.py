"""Progress on a terminal (a bar with an estimate), and plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console  # noqa: TC002
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from irdiff.parallel import Progress

_PLAIN_INTERVAL_S = 15.0
_FEW = 4


_UNITS = {"capture": "workloads of a side and a target", "compare": "cases", "attribute": "cases"}


def counted(step: Progress) -> str:
    unit = _UNITS.get(step.phase, "")
    return f"{step.done}/{step.total} {unit}".rstrip()


def left(step: Progress, passed_s: float) -> str:
    """An estimate by what is done; none from the first few, which wait for processes to start."""
    if not _FEW < step.done < step.total:
        return ""
    seconds = passed_s / step.done * (step.total - step.done)
    return f", about {seconds:.0f} s left" if seconds < 120 else f", about {seconds / 60:.0f} min left"


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A reporter for the pipeline."""
    if console.is_terminal:
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
                if step.phase not in tasks:
                    tasks[step.phase] = bar.add_task(step.phase, total=step.total, detail="")
                bar.update(tasks[step.phase], completed=step.done, detail=step.detail[:60])

            yield report
        return
    phase, printed, begin = "", 0.0, 0.0

    def plain(step: Progress) -> None:
        nonlocal phase, printed, begin
        now = time.monotonic()
        if step.phase != phase:
            begin = now
        if step.phase != phase or step.done == step.total or now - printed >= _PLAIN_INTERVAL_S:
            phase, printed = step.phase, now
            console.print(f"{step.phase}: {counted(step)}{left(step, now - begin)}", highlight=False)

    yield plain
