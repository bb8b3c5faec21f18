"""`irdiff corpus gaps`: which passes of a compiler the corpus does not make work."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, Exerciser, PassUse
from irdiff.attribute.replayer import WorkerReplayer
from irdiff.capture.catalogs import Wanted
from irdiff.cli import case_patterns, options, progress
from irdiff.compile.compiler import WorkerCompiler
from irdiff.compile.corpus_check import CorpusCheck
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError
from irdiff.model import Launch, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve import packs as packages
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers


@click.command("gaps")
@click.option(
    "--toolchain",
    "spec",
    default="triton==3.9.0",
    show_default=True,
    help="The toolchain whose passes are looked at.",
)
@options.case_option
@options.tier_option
@click.option(
    "--fewest", type=click.IntRange(min=1), default=3, show_default=True, help="How many cases are enough."
)
@click.option("--all", "show_all", is_flag=True, help="Show every pass, not only gaps.")
@options.corpus_option
@options.pack_option
@options.target_option
@options.targets_folder_option
@options.cache_option
@options.json_option
@options.limit_options
def gaps_command(
    spec: str,
    cases: tuple[str, ...],
    tiers: tuple[str, ...],
    fewest: int,
    show_all: bool,
    corpus: Path | None,
    packs: tuple[str, ...],
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    cache: Path | None,
    json_path: Path | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """List passes that run and do something in too few cases: an edit there would not be seen.

    Ends with 1 where there is one. A pass does something where the IR after it is another text than before.
    """
    config = configuration.load(cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib)
    kernels = packages.load(options.corpus_folder(corpus, config), packs)
    toolchain = toolchains.resolve(spec, config)
    side = Side(toolchain=toolchain, corpus=packages.install(kernels, toolchain, config), note="")
    targets = options.selected_targets(target_names, targets_dir, config, cases)
    with progress.shown(Console(stderr=True)) as report:
        meant = case_patterns.of_sides(cases, (side,), targets, config, report)
        found = _exercise(side, targets, Wanted(tiers=tiers, cases=case_patterns.flat(meant)), config, report)
    if not found:
        raise NothingComparedError("no case compiled", hint="see `irdiff corpus list`")
    rows = exercise.summarize(found)
    if json_path:
        options.write_output(json_path, json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return _told(rows, len(found), fewest, show_all=show_all)


def _exercise(
    side: Side, targets: tuple[Target, ...], wanted: Wanted, config: Config, report: Report
) -> list[CaseExercise]:
    store = Store(config.store)
    with closing(Workers(config)) as workers:
        compiler = WorkerCompiler(Requests(config, workers), store, wanted, reuse=True)
        replayer = WorkerReplayer(config, store, workers, wanted, reuse=True)
        exerciser = Exerciser(side=side, compiler=compiler, replayer=replayer)
        asked = CorpusCheck(
            compiler=compiler,
            toolchain=side.toolchain,
            corpus=side.corpus,
            targets=targets,
            cases=wanted.cases,
            jobs=config.jobs,
            report=report,
        )
        launches = [(launch, target) for target, launch in asked.captured() if isinstance(launch, Launch)]
        rows = in_parallel(lambda job: exerciser.of_launch(*job), launches, config.jobs, "exercise", report)
        return [row for row in rows if row is not None]


def _told(rows: list[PassUse], cases: int, fewest: int, *, show_all: bool) -> int:
    gaps = [row for row in rows if row.acted < fewest]
    for row in rows if show_all else gaps:
        examples = f"  {row.examples[0]}" if row.examples else ""
        click.echo(f"{row.name:44} runs in {row.ran:4} of {cases}, does something in {row.acted:4}{examples}")
    click.echo(f"{len(rows)} passes run; {len(gaps)} of them do something in fewer than {fewest} cases")
    return ExitCode.ANSWER_IS_NO if gaps else ExitCode.DONE
