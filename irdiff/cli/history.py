"""`irdiff history`: every kernel over every version."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, run_argument
from irdiff.cli.history_backfill import backfill_command
from irdiff.cli.history_check import check_command
from irdiff.cli.options import CaseArguments
from irdiff.errors import UsageError
from irdiff.history import add, add_timings, benchmark_records, database, exchange, lines, session, site
from irdiff.run import run_folder

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("history")
def history_group() -> None:
    """Keep and show every kernel over every version: a database, its lines and steps, and a site."""


history_group.add_command(backfill_command)
history_group.add_command(check_command)


@history_group.command("add")
@run_argument.argument("runs", nargs=-1, required=True)
@options.db_option
def add_command(*, runs: tuple[str, ...], file: Path) -> None:
    """Add RUNs: folders, archives, `last`, names of `irdiff runs`. What is there already is added once."""
    new, timings = [], 0
    for run in runs:
        with run_argument.opened(run) as given:
            timed = session.load(given.folder)
            if timed is not None and given.timing is None:
                raise UsageError(
                    f"{given.folder} is not timed yet",
                    hint=f"on a GPU host: irdiff time {given.folder} --versions",
                )
            with database.writing(file) as history:
                if timed is not None and given.timing is not None:
                    timings += add_timings.add(history, timed, given.timing)
                else:
                    place = None if given.is_archive else given.folder
                    new.append(add.add_run(history, given.run, place))
    told = [f"{sum(new)} added, {len(new) - sum(new)} known"] if new else []
    click.echo(f"{', '.join([*told, *([f'{timings} timings'] if timings else [])])}: {file}")


@history_group.command("session")
@click.argument("out", type=_FOLDER)
@options.db_option
@click.option("--series", default="releases", show_default=True, help="Whose versions are timed.")
@options.only_targets
def session_command(*, out: Path, file: Path, series: str, selection: CaseArguments) -> None:
    """Write the binaries of all versions to OUT, to be timed in one session: `irdiff time OUT --versions`.

    They come from the folders of the runs. Afterwards `irdiff history add OUT` adds the timings.
    """
    targets = selection.targets(configuration.load())
    with database.reading(file) as history:
        found = lines.read(history, series)
    if not found.pairs:
        raise UsageError(
            f"the series {series!r} has no compared versions", hint="see irdiff history backfill"
        )
    made = session.write(found, targets, out)
    entries = sum(len(set(same.values())) - 1 for same in made.same.values())
    click.echo(f"{len(made.same)} cases, {entries} binaries against {made.reference}: {out}")


@history_group.command("site")
@click.argument("out", type=_FOLDER)
@options.db_option
@click.option(
    "--reports/--no-reports", default=True, help="Embed the reports of runs whose folders are there."
)
def site_command(*, out: Path, file: Path, reports: bool) -> None:
    """Write the history as a site of static files to the folder OUT: open its index.html."""
    assets = configuration.load().shipped / "reports" / "history"
    with database.reading(file) as history:
        written = site.write(history, out, assets, _report if reports else None)
    click.echo(
        f"{written.versions} versions, {written.cases} cases, {written.steps} change points, "
        f"{written.reports} reports: {out / 'index.html'}\n"
        f"the overview loads {written.overview_bytes / 1e6:.2f} MB of {written.size_bytes / 1e6:.1f} MB"
    )


def _report(folder: Path) -> str:
    from irdiff.report import html

    return html.render(run_folder.load(folder), folder)


@history_group.command("export")
@options.db_option
@click.option("--parquet", "folder", type=_FOLDER, metavar="DIR", help="Write a file a table to DIR.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["pytorch-benchmark"]),
    help="Write records of PyTorch's benchmark database to --json.",
)
@options.json_option
def export_command(*, file: Path, folder: Path | None, form: str | None, json_path: Path | None) -> None:
    """Write the history in another form: Parquet files, or the records of PyTorch's dashboard."""
    if (folder is None) == (form is None):
        raise UsageError("give either --parquet DIR or --format pytorch-benchmark")
    with database.reading(file) as history:
        if folder is not None:
            counts = exchange.export(history, folder)
            click.echo(f"{sum(counts.values())} rows in {len(counts)} tables: {folder}")
            return
        series = [lines.read(history, name) for name in lines.series_names(history)]
    found = [record for one in series for record in benchmark_records.records(one)]
    options.write_json(json_path or Path("-"), found)


@history_group.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@options.db_option
def import_command(*, folder: Path, file: Path) -> None:
    """Add what `irdiff history export` wrote to FOLDER: histories of several machines become one."""
    with database.writing(file) as history:
        counts = exchange.take(history, folder)
    click.echo(f"{sum(counts.values())} rows: {file}")
