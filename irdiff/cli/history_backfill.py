"""`irdiff history backfill`."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from irdiff import pipeline
from irdiff.capture.catalogs import Wanted
from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.compile import selecting
from irdiff.config import Config
from irdiff.errors import ExitCode, ToolchainError, UsageError
from irdiff.history import backfill, inventory, versions
from irdiff.model import DEFAULT_OPTIONS, Options, Run, Sides, Target
from irdiff.parallel import Report
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side, SideOptions, resolve_sides, shared_corpus


@click.command("backfill")
@click.argument("specs", nargs=-1, required=True, metavar="VERSIONS…")
@options.db_option
@click.option("--runs", "runs_folder", type=options.PATH, help="Run folders; default: beside the history.")
@click.option("--index", metavar="URL", help="A package index, as of nightlies; default: the configured.")
@click.option("--every", default="0d", metavar="Nd", help="One version in so many days: 1d, 7d.")
@options.checkout
@options.selection
@options.attribute_option
@options.recheck_option
@options.limited
def backfill_command(
    *,
    specs: tuple[str, ...],
    file: Path,
    runs_folder: Path | None,
    index: str | None,
    every: str,
    checkout: CheckoutArguments,
    selection: CaseArguments,
    attribute: bool,
    recheck: bool,
    config: Config,
) -> int:
    """Compile each of VERSIONS once and compare neighbours: triton==3.2.0..3.9.0, single ones, REV..REV.

    What is done is kept at once: after an interruption the same command goes on where it was.
    """
    config = versions.with_index(config, index)
    wanted = checkout.side_options(selection, lambda _text: None)
    series = versions.of_specs(specs, _days(every), checkout.repo, config)
    work = _Work(
        config=config,
        targets=replace(selection, cases=()).targets(config),
        wanted=wanted,
        options=replace(DEFAULT_OPTIONS, tiers=selection.tiers, attribute=attribute, recheck=recheck),
    )
    newest_first = [partial(work.resolve, point.spec) for point in reversed(series)]
    with screen.progress() as report:
        cases = _whole_names(selection.cases, newest_first, work.targets, config, report)
    work = replace(work, options=replace(work.options, cases=cases))
    choice = backfill.Choice(
        targets=work.targets,
        wanted=work.launches,
        corpus=shared_corpus(series[-1].spec, wanted, config),
        compiler=toolchains.resolve(checkout.triton, config).digest if checkout.triton else "",
        file=file,
        runs=runs_folder or file.absolute().with_name(f"{file.stem}-runs"),
    )
    done = backfill.backfill(series, choice, work)
    counts = f"{len(done.measured)} versions compiled, {len(done.compared)} pairs compared"
    click.echo(f"{counts}, {done.known} known: {file}")
    for gap in done.gaps:
        click.echo(f"gap: {gap}")
    return ExitCode.TOOLCHAIN if done.gaps else ExitCode.DONE


@dataclass(frozen=True, kw_only=True)
class _Work:
    """`backfill.Steps`: how each version is resolved, compiled and compared."""

    config: Config
    targets: tuple[Target, ...]
    wanted: SideOptions
    options: Options

    @property
    def launches(self) -> Wanted:
        return Wanted(tiers=self.options.tiers, cases=self.options.cases)

    def resolve(self, spec: str) -> Side:
        return resolve_sides(spec, spec, self.wanted, self.config).base

    def measure(self, side: Side) -> inventory.Inventory:
        with screen.progress() as report:
            return inventory.take(side, self.targets, self.launches, self.config, report)

    def compare(self, sides: Sides[Side], folder: Path) -> Run:
        asked = pipeline.Comparison(
            sides=sides,
            targets=self.targets,
            options=self.options,
            command=tuple(sys.argv[1:]),
            meant={pattern: (pattern,) for pattern in self.options.cases},
        )
        with screen.progress() as report:
            return pipeline.compare(asked, self.config, folder, report)[0]

    def say(self, text: str) -> None:
        click.echo(text, err=True)


def _whole_names(
    patterns: tuple[str, ...],
    newest_first: Sequence[Callable[[], Side]],
    targets: Sequence[Target],
    config: Config,
    report: Report,
) -> tuple[str, ...]:
    """The patterns as the newest version that can be had completes them: it has the most launches."""
    for resolve in newest_first if patterns else ():
        with contextlib.suppress(ToolchainError):
            return selecting.flat(selecting.of_sides(patterns, [resolve()], targets, config, report))
    return patterns


def _days(text: str) -> int:
    found = re.fullmatch(r"(\d{1,4})d?", text)
    if not found:
        raise UsageError(f"--every {text!r} is not a number of days", hint="write it as 1d or 7d")
    return int(found[1])
