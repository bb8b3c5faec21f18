"""`irdiff history`: every kernel over every version."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.capture.catalogs import Wanted
from irdiff.cli import options, progress
from irdiff.errors import ExitCode, UsageError
from irdiff.history import (
    add,
    backfill,
    benchmark_records,
    database,
    exchange,
    inventory,
    lines,
    points,
    site,
)
from irdiff.model import EVERYTHING, Run, Sides
from irdiff.resolve.sides import Side, SideOptions, load_corpus, resolve_sides
from irdiff.run import run_archive, run_folder, run_list

db_option = click.option(
    "--db",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=database.DEFAULT_NAME,
    show_default=True,
    help="The history, one file.",
)


@click.group("history")
def history_group() -> None:
    """Every kernel over every version: a database, its lines and steps, and a site."""


@history_group.command("add")
@click.argument("runs", nargs=-1, required=True)
@db_option
def add_command(runs: tuple[str, ...], file: Path) -> int:
    """Add RUNs: run folders, archives of them, or `last`. What is there already is added once."""
    loaded = []
    for run in runs:
        path = run_list.find(run, configuration.load().runs)
        with run_archive.opened(path) as folder:
            loaded.append((run_folder.load(folder), path))
    with database.writing(file) as history:
        new = [add.add_run(history, run, path) for run, path in loaded]
    click.echo(f"{sum(new)} added, {len(new) - sum(new)} known: {file}")
    return ExitCode.DONE


@history_group.command("backfill")
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
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="PATTERN",
    help="family/workload:label@target; parts and globs work.",
)
@click.option("--tier", "tiers", multiple=True, type=click.Choice(["gate", "core", "extended"]))
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
    targets = options.selected_targets(target_names, targets_dir, config)
    console = Console(stderr=True, no_color=config.color is False)
    wanted = SideOptions(
        repo=repo, corpus=corpus, triton=triton, build=not no_build, progress=_quiet, packs=packs
    )
    series = points.of_specs(specs, _days(every), repo, config)
    chosen = replace(EVERYTHING, cases=cases, tiers=tiers, attribute=attribute, recheck=recheck)
    choice = backfill.Choice(
        targets=targets,
        wanted=Wanted(tiers=tiers, cases=cases),
        corpus=load_corpus(wanted, config).digest if series[0].spec.startswith("triton==") else "",
        file=file,
        runs=runs_folder or file.absolute().with_name(f"{file.stem}-runs"),
    )

    def measure(side: Side) -> inventory.Inventory:
        with progress.shown(console) as report:
            return inventory.take(side, targets, choice.wanted, config, report)

    def compare(sides: Sides[Side], folder: Path) -> Run:
        with progress.shown(console) as report:
            asked = pipeline.Comparison(
                sides=sides, targets=targets, options=chosen, command=tuple(sys.argv[1:])
            )
            return pipeline.compare(asked, config, folder, report)

    steps = backfill.Steps(
        resolve=lambda spec: resolve_sides(spec, spec, wanted, config).base,
        measure=measure,
        compare=compare,
        say=lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True),
    )
    done = backfill.backfill(series, choice, steps)
    return _told(done, file)


def _told(done: backfill.Backfilled, file: Path) -> int:
    counts = f"{len(done.measured)} versions compiled, {len(done.compared)} pairs compared"
    click.echo(f"{counts}, {done.known} known: {file}")
    for gap in done.gaps:
        click.echo(f"gap: {gap}")
    return ExitCode.TOOLCHAIN if done.gaps else ExitCode.DONE


def _quiet(_text: str) -> None:
    """Each version says on its own what is done with it."""


def _days(text: str) -> int:
    found = re.fullmatch(r"(\d{1,4})d?", text)
    if not found:
        raise UsageError(f"--every {text!r} is not a number of days", hint="write it as 1d or 7d")
    return int(found[1])


@history_group.command("site")
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@db_option
@click.option(
    "--reports/--no-reports", default=True, help="Embed the reports of runs whose folders are there."
)
def site_command(out: Path, file: Path, reports: bool) -> int:
    """Write the history as a site of static files to the folder OUT: open its index.html."""
    assets = configuration.load().shipped / "reports" / "history"
    with database.reading(file) as history:
        written = site.write(history, out, assets, _report if reports else None)
    click.echo(
        f"{written.versions} versions, {written.cases} cases, {written.steps} change points, "
        f"{written.reports} reports: {out / 'index.html'}\n"
        f"the overview loads {written.overview_bytes / 1e6:.2f} MB of {written.size_bytes / 1e6:.1f} MB"
    )
    return ExitCode.DONE


def _report(folder: Path) -> str:
    from irdiff.report import html

    return html.render(run_folder.load(folder), folder)


@history_group.command("export")
@db_option
@click.option(
    "--parquet",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a file a table to DIR.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["pytorch-benchmark"]),
    help="Write records of PyTorch's benchmark database to --json.",
)
@options.json_option
def export_command(file: Path, folder: Path | None, form: str | None, json_path: Path | None) -> int:
    """Write the history in another form: Parquet files, or the records of PyTorch's dashboard."""
    if (folder is None) == (form is None):
        raise UsageError("give either --parquet DIR or --format pytorch-benchmark")
    with database.reading(file) as history:
        if folder is not None:
            counts = exchange.export(history, folder)
            click.echo(f"{sum(counts.values())} rows in {len(counts)} tables: {folder}")
            return ExitCode.DONE
        found = [
            record
            for name in lines.series_names(history)
            for record in benchmark_records.records(lines.read(history, name))
        ]
    options.write_output(json_path or Path("-"), json.dumps(found, indent=1) + "\n")
    return ExitCode.DONE


@history_group.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@db_option
def import_command(folder: Path, file: Path) -> int:
    """Add what `irdiff history export` wrote to FOLDER: histories of several machines become one."""
    with database.writing(file) as history:
        counts = exchange.take(history, folder)
    click.echo(f"{sum(counts.values())} rows: {file}")
    return ExitCode.DONE
