"""The list in a pipe, which is not laid out."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from irdiff.cli import screen
from irdiff.report import tables
from irdiff.report.tables import Column

COLUMNS = (Column(name="launch"), Column(name="count", right=True))
CELLS = [[Text(f"family/workload:{'long-' * n}[red]"), Text("1" * n)] for n in range(1, 60)]


def test_a_pipe_gets_what_a_console_would_print() -> None:
    laid_out, plain = (Console(file=io.StringIO(), width=80) for _ in range(2))
    for line in tables.lines(COLUMNS, CELLS, None):
        laid_out.print(line, soft_wrap=True, highlight=False)
    screen.print_lines(plain, tables.lines(COLUMNS, CELLS, None))
    assert isinstance(plain.file, io.StringIO)
    assert isinstance(laid_out.file, io.StringIO)
    assert plain.file.getvalue() == laid_out.file.getvalue()
    assert "long-" * 59 in plain.file.getvalue()
