"""What the cases of the corpus lack: `python -m tests.programs.corpus_gaps [--passes]`. `corpus/gaps.md` says why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments
from irdiff.compile import corpus_check, selecting
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError
from irdiff.model import EVERY_LAUNCH, Launch
from irdiff.report.tables import Column
from tests.programs.corpus_gaps import kind_table
from tests.programs.corpus_gaps import passes as passes_of_cases

_KIND_COLUMNS = tuple(Column(name=name) for name in ("operation", "gate", "later tiers alone", "none"))
_FEWEST = 3
"""How many cases of a pass are enough."""


@click.command()
@click.option("--toolchain", "spec", default="triton==3.9.0", help="The toolchain that compiles.")
@options.selection
@click.option("--passes", is_flag=True, help="List passes that change too few cases, instead of operations.")
@click.option("--all", "show_all", is_flag=True, help="Show every operation or pass, not only gaps.")
@options.json_option
@options.limited
def main(
    *,
    spec: str,
    selection: CaseArguments,
    passes: bool,
    show_all: bool,
    json_path: Path | None,
    config: Config,
) -> int:
    """List what the gate tier's cases lack: an edit there would not be seen.

    These are operations of Triton's dialects, told apart by element type and mask; with `--passes` these
    are passes that change the IR of fewer than 3 cases. Ends with 1 if something is lacking.
    """
    side, targets = selection.side(spec, config), selection.targets(config)
    with screen.progress() as report:
        cases = selecting.flat(selecting.of_sides(selection.cases, (side,), targets, config, report))
        wanted = replace(EVERY_LAUNCH, tiers=selection.tiers, cases=cases)
        with corpus_check.opened(side, targets, wanted, config, report) as check:
            captured = [(launch, target) for target, launch in check.captured if isinstance(launch, Launch)]
            read = passes_of_cases.of_launches if passes else kind_table.of_launches
            found: Sequence[Any] = read(side, captured, check.compiler, report)
    if not found:
        raise NothingComparedError("no case compiled", hint="see `irdiff corpus list`")
    rows: Sequence[Any] = (
        passes_of_cases.summarize(found)
        if passes
        else kind_table.table(found, kind_table.registered(side.toolchain.root))
    )
    if json_path:
        options.write_json(json_path, [asdict(row) for row in rows])
    has_gaps = _pass_gaps(rows, len(found), show_all) if passes else _operation_gaps(rows, show_all)
    return ExitCode.ANSWER_IS_NO if has_gaps else ExitCode.DONE


def _pass_gaps(rows: Sequence[passes_of_cases.PassUse], cases: int, show_all: bool) -> bool:
    gaps = [row for row in rows if row.acted < _FEWEST]
    for row in rows if show_all else gaps:
        examples = f"  {row.examples[0]}" if row.examples else ""
        ran = f"runs in {row.ran:4} of {cases}"
        click.echo(f"{row.name:44} {ran}, does something in {row.acted:4}{examples}")
    click.echo(f"{len(rows)} passes run; {len(gaps)} of them do something in fewer than {_FEWEST} cases")
    return bool(gaps)


def _operation_gaps(rows: Sequence[kind_table.Row], show_all: bool) -> bool:
    gaps = [row for row in rows if row.later or row.none]
    cells = [
        # an operation without an element type is there or not
        [
            Text(row.operation),
            *(Text(", ".join(name or "yes" for name in kind)) for kind in (row.gate, row.later, row.none)),
        ]
        for row in (rows if show_all else gaps)
    ]
    screen.print_table(_KIND_COLUMNS, cells)
    gate, later, none = (sum(len(getattr(row, name)) for row in rows) for name in ("gate", "later", "none"))
    click.echo(f"kinds of operations: {gate} in the gate tier, {later} in later tiers alone, {none} in none")
    return bool(gaps)


if __name__ == "__main__":
    sys.exit(main(standalone_mode=False))
