"""`irdiff ab A B C…`."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.api import run_name
from irdiff.cli import candidates, case_patterns, options, progress
from irdiff.cli.candidates import Candidate
from irdiff.cli.status import status_line
from irdiff.errors import ExitCode, UsageError
from irdiff.model import EVERYTHING
from irdiff.resolve.sides import SideOptions, resolve_sides
from irdiff.run import run_list
from irdiff.worker_client.workers import Workers


@click.command("ab")
@click.argument("base", metavar="A")
@click.argument("heads", metavar="B C…", nargs=-1, required=True)
@options.repo_option
@click.option("--triton", metavar="SPEC", help="The compiler of all sides where revisions select kernels.")
@click.option("--no-build", is_flag=True, help="Fail where a native part is missing, instead of building it.")
@options.target_option
@options.targets_folder_option
@options.corpus_option
@options.pack_option
@options.case_option
@options.tier_option
@click.option("--attribute/--no-attribute", default=True, help="Look for the pass behind each change.")
@click.option(
    "--out", type=options.OutputFile(), default="-", help="Write the Markdown here; default: stdout."
)
@options.cache_option
@options.limit_options
def ab_command(
    *,
    base: str,
    heads: tuple[str, ...],
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
    out: Path,
    cache: Path | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """Compare the candidates B, C … with one base A, in one report.

    Sides are written as for `irdiff compare`; owner/name@rev and a git URL with @rev name forks. The base is
    compiled once. Each comparison is a run of its own, for `irdiff report` and `irdiff time`.
    """
    if len({base, *heads}) != 1 + len(heads):
        raise UsageError("a side is there twice", hint="irdiff ab main owner/name@idea owner/name@other")
    config = configuration.load(cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib)
    targets = options.selected_targets(target_names, targets_dir, config, cases)
    console = Console(stderr=True, no_color=config.color is False)
    chosen = replace(EVERYTHING, tiers=tiers, attribute=attribute)
    found = []
    for head in heads:
        with status_line(console) as tell:
            wanted = SideOptions(
                repo=repo, corpus=corpus, triton=triton, build=not no_build, progress=tell, packs=packs
            )
            sides = resolve_sides(base, head, wanted, config)
        folder = config.runs / run_name(base, head)
        with progress.shown(console) as report, closing(Workers(config)) as warm:
            meant = case_patterns.of_sides(cases, sides, targets, config, report, warm=warm)
            asked = pipeline.Comparison(
                sides=sides,
                targets=targets,
                options=replace(chosen, cases=case_patterns.flat(meant)),
                command=tuple(sys.argv[1:]),
                meant=meant,
            )
            run = pipeline.compare(asked, config, folder, report, warm=warm)
        found.append(Candidate(name=head, run=run, place=run_list.call_of(folder, config.runs)))
    options.write_output(out, candidates.render(base, found))
    return ExitCode.DONE
