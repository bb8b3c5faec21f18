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
from rich.console import Console

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.capture.catalogs import Wanted
from irdiff.cli import case_patterns, options, progress
from irdiff.cli.history_options import db_option
from irdiff.config import Config
from irdiff.errors import ExitCode, ToolchainError, UsageError
from irdiff.history import backfill, inventory, points
from irdiff.model import EVERYTHING, Options, Run, Sides, Target
from irdiff.parallel import Report
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side, SideOptions, resolve_sides, shared_corpus


@click.command("backfill")
@click.argument("specs", nargs=-1, required=True, metavar="VERSIONS…")
@db_option
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    help="Where run folders go; default: beside the history.",
)
@click.option(
    "--index", metavar="URL", help="A package index in place of the configured one: one of nightlies."
)
@click.option(
    "--every", default="0d", show_default=True, metavar="Nd", help="One version in so many days: 1d, 7d."
)
@options.repo_option
@click.option("--triton", metavar="SPEC", help="The compiler, where revisions select kernels.")
@click.option("--no-build", is_flag=True, help="Commits whose native part is not at hand are gaps.")
@options.target_option
@options.targets_folder_option
@options.corpus_option
@options.pack_option
@options.case_option
@options.tier_option
@click.option("--attribute/--no-attribute", default=True, help="Look for the pass behind each change.")
@click.option(
    "--recheck/--no-recheck",
    default=True,
    help="Compile changed cases again to see if a side agrees with itself.",
)
@options.cache_option
@options.limit_options
def backfill_command(
    *,
    specs: tuple[str, ...],
    file: Path,
    runs_folder: Path | None,
    index: str | None,
    every: str,
    repo: Path | None,
    triton: str | None,
    no_build: bool,
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    corpus: Path | None,
    packs: tuple[str, ...],
    cases: tuple[str, ...],
    tiers: tuple[str, ...],
    attribute: bool,
    recheck: bool,
    cache: Path | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """Compile each of VERSIONS once and compare neighbours: triton==3.2.0..3.9.0, single ones, REV..REV.

    What is done is kept at once: after an interruption the same command goes on where it was.
    """
    config = configuration.load(cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib)
    config = points.with_index(config, index)
    work = _Work(
        config=config,
        targets=options.selected_targets(target_names, targets_dir, config),
        wanted=SideOptions(
            repo=repo, corpus=corpus, triton=triton, build=not no_build, progress=_quiet, packs=packs
        ),
        console=Console(stderr=True, no_color=config.color is False),
    )
    series = points.of_specs(specs, _days(every), repo, config)
    cases = work.whole_names(cases, series)
    choice = backfill.Choice(
        targets=work.targets,
        wanted=Wanted(tiers=tiers, cases=cases),
        corpus=shared_corpus(series[-1].spec, work.wanted, config),
        compiler=toolchains.resolve(triton, config).digest if triton else "",
        file=file,
        runs=runs_folder or file.absolute().with_name(f"{file.stem}-runs"),
    )
    chosen = replace(EVERYTHING, cases=cases, tiers=tiers, attribute=attribute, recheck=recheck)
    return _told(backfill.backfill(series, choice, work.steps(choice.wanted, chosen)), file)


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What each version is resolved, compiled and compared with."""

    config: Config
    targets: tuple[Target, ...]
    wanted: SideOptions
    console: Console

    def whole_names(self, cases: tuple[str, ...], series: Sequence[backfill.Point]) -> tuple[str, ...]:
        newest_first = [partial(self._resolved, point.spec) for point in reversed(series)]
        with progress.shown(self.console) as report:
            return _whole_names(cases, newest_first, self.targets, self.config, report)

    def steps(self, launches: Wanted, chosen: Options) -> backfill.Steps:
        return backfill.Steps(
            resolve=self._resolved,
            measure=partial(self._measured, launches),
            compare=partial(self._compared, chosen),
            say=partial(self.console.print, markup=False, highlight=False, soft_wrap=True),
        )

    def _resolved(self, spec: str) -> Side:
        return resolve_sides(spec, spec, self.wanted, self.config).base

    def _measured(self, launches: Wanted, side: Side) -> inventory.Inventory:
        with progress.shown(self.console) as report:
            return inventory.take(side, self.targets, launches, self.config, report)

    def _compared(self, chosen: Options, sides: Sides[Side], folder: Path) -> Run:
        asked = pipeline.Comparison(
            sides=sides, targets=self.targets, options=chosen, command=tuple(sys.argv[1:])
        )
        with progress.shown(self.console) as report:
            return pipeline.compare(asked, self.config, folder, report)


def _told(done: backfill.Backfilled, file: Path) -> int:
    counts = f"{len(done.measured)} versions compiled, {len(done.compared)} pairs compared"
    click.echo(f"{counts}, {done.known} known: {file}")
    for gap in done.gaps:
        click.echo(f"gap: {gap}")
    return ExitCode.TOOLCHAIN if done.gaps else ExitCode.DONE


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
            return case_patterns.flat(case_patterns.of_sides(patterns, [resolve()], targets, config, report))
    return patterns


def _quiet(_text: str) -> None:
    """Each version says on its own what is done with it."""


def _days(text: str) -> int:
    found = re.fullmatch(r"(\d{1,4})d?", text)
    if not found:
        raise UsageError(f"--every {text!r} is not a number of days", hint="write it as 1d or 7d")
    return int(found[1])
