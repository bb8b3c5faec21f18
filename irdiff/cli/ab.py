"""`irdiff ab A B C…`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from irdiff import pipeline
from irdiff.cli import candidates, options, screen
from irdiff.cli.candidates import Candidate
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import DEFAULT_OPTIONS
from irdiff.run import run_list


@click.command("ab")
@click.argument("base", metavar="A")
@click.argument("heads", metavar="B C…", nargs=-1, required=True)
@options.checkout
@options.selection
@options.attribute_option
@click.option("--out", type=options.OUTPUT, default="-", help="Write the Markdown here; default: stdout.")
@options.limited
def ab_command(
    *,
    base: str,
    heads: tuple[str, ...],
    checkout: CheckoutArguments,
    selection: CaseArguments,
    attribute: bool,
    out: Path,
    config: Config,
) -> None:
    """Compare the candidates B, C … with one base A, in one report.

    Sides are written as for `irdiff compare`; owner/name@rev and a git URL with @rev name forks. The base is
    compiled once. Each comparison is a run of its own, for `irdiff report` and `irdiff time`.
    """
    if len({base, *heads}) != 1 + len(heads):
        raise UsageError("a side is there twice", hint="irdiff ab main owner/name@idea owner/name@other")
    targets = selection.targets(config)
    chosen = replace(DEFAULT_OPTIONS, tiers=selection.tiers, attribute=attribute)
    found = []
    for head in heads:
        with screen.status_line() as tell:
            words = pipeline.Arguments(
                base=base,
                head=head,
                sides=checkout.side_options(selection, tell),
                targets=targets,
                options=replace(chosen, cases=selection.cases),
                command=tuple(sys.argv[1:]),
            )
            asked = pipeline.resolved(words, config, lambda _: None)
        with screen.progress() as report:
            run, folder = pipeline.compare(asked, config, None, report)
        found.append(Candidate(name=head, run=run, place=run_list.call_of(folder, config.runs)))
    options.write_output(out, candidates.render(base, found))
