"""`irdiff history`: every kernel over every version; `backfill` is in a module of its own."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, run_argument
from irdiff.cli.history_backfill import backfill_command
from irdiff.cli.options import CaseArguments
from irdiff.errors import ExitCode, UsageError
from irdiff.github import issue
from irdiff.github.client import Client
from irdiff.history import (
    add,
    alerts,
    benchmark_records,
    database,
    lines,
    session,
    site,
)
from irdiff.history.alerts import Alert
from irdiff.history.lines import SeriesLines
from irdiff.run import run_folder

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("history")
def history_group() -> None:
    """Keep and show every kernel over every version: a database, its lines and steps, and a site."""


history_group.add_command(backfill_command)


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
                    timings += add.add_timings(history, timed, given.timing)
                else:
                    place = None if given.is_archive else given.folder
                    new.append(add.add_run(history, given.run, place))
    told = [f"{sum(new)} added, {len(new) - sum(new)} known"] if new else []
    click.echo(f"{', '.join([*told, *([f'{timings} timings'] if timings else [])])}: {file}")


@history_group.command("session")
@click.argument("out", type=_FOLDER)
@options.db_option
@click.option("--series", default="releases", help="Whose versions are timed.")
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
@click.option("--reports/--no-reports", default=True, help="Embed reports of runs that are still there.")
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
            counts = database.export(history, folder)
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
        counts = database.take(history, folder)
    click.echo(f"{sum(counts.values())} rows: {file}")


@history_group.command("check")
@options.db_option
@click.option("--series", help="Which series; default: that of the run that was added last.")
@click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the text here.")
@options.json_option
@click.option("--issue", "to_issue", is_flag=True, help="Keep one issue for news, closed when it is undone.")
@click.option("--repo", "repository", help="OWNER/NAME of the issue; default: GITHUB_REPOSITORY.")
@options.api_url_option
def check_command(
    *,
    file: Path,
    series: str | None,
    markdown_path: Path | None,
    json_path: Path | None,
    to_issue: bool,
    repository: str | None,
    api_url: str | None,
) -> int:
    """Ask whether the newest version moved anything beyond the noise of its lines: ends with 1 where it did.

    With --issue the token comes from GITHUB_TOKEN or GH_TOKEN; it needs `issues: write`.
    """
    with database.reading(file) as history:
        found = lines.read(history, _series(history, series))
    alert = alerts.check(found)
    text = alerts.markdown(alert)
    if markdown_path:
        options.write_output(markdown_path, text)
    if json_path:
        options.write_json(json_path, alerts.as_json(alert))
    if "-" not in map(str, (markdown_path, json_path)):
        click.echo(text, nl=False)
    if to_issue:
        config = configuration.load()
        place = repository or config.github_repository
        if not place or not config.github_token:
            raise UsageError(
                "--issue needs a repository and a token", hint="--repo OWNER/NAME and GITHUB_TOKEN"
            )
        client = Client(config.github_token, place, api_url=api_url or config.github_api_url)
        for line in keep_issues(client, found, alert):
            click.echo(line, err=True)
    return ExitCode.ANSWER_IS_NO if alert.is_news else ExitCode.DONE


def _series(history: database.Database, chosen: str | None) -> str:
    names = lines.series_names(history)
    if chosen is not None and chosen not in names:
        raise UsageError(f"there is no series {chosen!r}", hint=f"there are: {', '.join(names) or 'none'}")
    newest = history.value("SELECT series FROM runs JOIN versions ON version = head ORDER BY created DESC")
    if chosen is None and newest is None:
        raise UsageError("the history has no run to check", hint="add one: irdiff history add RUN")
    return chosen or str(newest)


def keep_issues(client: Client, series: SeriesLines, alert: Alert) -> list[str]:
    """One issue a version with news; those of earlier versions are closed once all of it is undone."""
    known = issue.open_issues(client)
    told = []
    if alert.is_news:
        done, url = issue.write(
            client,
            known,
            _key(alert),
            f"irdiff: {alert.version}: {alerts.headline(alert)}",
            alerts.markdown(alert),
        )
        told.append(f"issue {done}: {url}")
    for row in known:
        place = next(
            (n for n, version in enumerate(series.versions) if f"{series.name}-{version.label}" == row.key),
            None,
        )
        if place is None or row.key == _key(alert):
            continue
        if alerts.is_undone(series, alerts.check(series, place)):
            issue.close(client, row, f"All of it is undone in {alert.version}.")
            told.append(f"issue {issue.IssueDone.CLOSED}: {row.url}")
    return told


def _key(alert: Alert) -> str:
    return f"{alert.series}-{alert.version}"
