"""`irdiff corpus gaps`: which passes of a compiler the corpus does not make work."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, Exerciser
from irdiff.attribute.replayer import WorkerReplayer
from irdiff.capture.catalogs import Wanted
from irdiff.cli import case_patterns, options, screen
from irdiff.cli.options import CaseArguments
from irdiff.compile.compiler import WorkerCompiler
from irdiff.compile.corpus_check import CorpusCheck
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError
from irdiff.model import Launch, Target
from irdiff.parallel import Report, in_parallel
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
@options.selection
@click.option(
    "--fewest", type=click.IntRange(min=1), default=3, show_default=True, help="How many cases are enough."
)
@click.option("--all", "show_all", is_flag=True, help="Show every pass, not only gaps.")
@options.json_option
@options.limited
def gaps_command(
    *,
    spec: str,
    selection: CaseArguments,
    fewest: int,
    show_all: bool,
    json_path: Path | None,
    config: Config,
) -> int:
    """List passes that run and do something in too few cases: an edit there would not be seen.

    Ends with 1 where there is one. A pass does something where the IR after it is another text than before.
    """
    side = selection.side(spec, config)
    targets = selection.targets(config)
    with screen.progress() as report:
        meant = case_patterns.of_sides(selection.cases, (side,), targets, config, report)
        wanted = Wanted(tiers=selection.tiers, cases=case_patterns.flat(meant))
        found = _exercise(side, targets, wanted, config, report)
    if not found:
        raise NothingComparedError("no case compiled", hint="see `irdiff corpus list`")
    rows = exercise.summarize(found)
    if json_path:
        options.write_json(json_path, [asdict(row) for row in rows])
    gaps = [row for row in rows if row.acted < fewest]
    for row in rows if show_all else gaps:
        examples = f"  {row.examples[0]}" if row.examples else ""
        ran = f"runs in {row.ran:4} of {len(found)}"
        click.echo(f"{row.name:44} {ran}, does something in {row.acted:4}{examples}")
    click.echo(f"{len(rows)} passes run; {len(gaps)} of them do something in fewer than {fewest} cases")
    return ExitCode.ANSWER_IS_NO if gaps else ExitCode.DONE


def _exercise(
    side: Side, targets: tuple[Target, ...], wanted: Wanted, config: Config, report: Report
) -> list[CaseExercise]:
    store = Store(config.store)
    with closing(Workers(config)) as workers:
        compiler = WorkerCompiler(Requests(config, workers), store, wanted, reuse=True)
        replayer = WorkerReplayer(config, store, workers, wanted)
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
