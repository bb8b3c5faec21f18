from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, run_argument, screen
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.config import Config
from irdiff.errors import ExitCode, UsageError
from irdiff.github import api, issue
from irdiff.github.api import Client
from irdiff.history import (
    add,
    alerts,
    backfill,
    benchmark_records,
    compile_times,
    database,
    lines,
    session,
    site,
    versions,
)
from irdiff.history.alerts import Alert
from irdiff.history.lines import SeriesLines
from irdiff.model import DEFAULT_OPTIONS
from irdiff.report.shown import Shown
from irdiff.resolve import toolchains
from irdiff.resolve.sides import shared_corpus
from irdiff.resolve.toolchains import environments
from irdiff.run import run_folder
from irdiff.words import counted

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("history")
def history_group() -> None:
    """Keep the figures of every kernel in every version, in one file, and show what moved."""


@history_group.command("add")
@run_argument.argument("runs", nargs=-1, required=True)
@options.db_option
def add_command(*, runs: tuple[str, ...], file: Path) -> None:
    """Add RUNs with their timings: folders, archives, `last`, names of `irdiff runs`.

    A known run is skipped; its timings are added if it was timed since.
    """
    new, timings = [], 0
    for run in runs:
        with run_argument.opened(run) as opened:
            timed = session.load(opened.folder)
            if timed is not None and opened.timing is None:
                raise UsageError(
                    f"{opened.folder} is not timed yet",
                    hint=f"on a GPU host: irdiff time {opened.folder} --versions",
                )
            with database.writing(file) as history:
                if timed is not None and opened.timing is not None:
                    timings += add.add_timings(history, timed, opened.timing)
                else:
                    place = None if opened.is_archive else opened.folder
                    new.append(add.add_run(history, opened.run, place))
                    if opened.timing is not None:
                        timings += add.add_run_timings(history, opened.run, opened.timing)
    counts = [f"{sum(new)} added, {len(new) - sum(new)} known"] if new else []
    counts += [f"{timings} timings"] if timings else []
    click.echo(f"{', '.join(counts)}: {file}")


@history_group.command("session")
@click.argument("out", type=_FOLDER)
@options.db_option
@click.option("--series", default="releases", help="Whose versions are timed.")
@options.only_targets
def session_command(*, out: Path, file: Path, series: str, selection: CaseArguments) -> None:
    """Write the binaries of all versions to OUT, to be timed in one session: `irdiff time OUT --versions`.

    The binaries come from the run folders. Afterwards `irdiff history add OUT` adds the timings.
    """
    targets = selection.targets(configuration.load())
    with database.reading(file) as history:
        series_lines = lines.read(history, series)
    if not series_lines.pairs:
        raise UsageError(
            f"the series {series!r} has no compared versions", hint="see irdiff history backfill"
        )
    written = session.write(series_lines, targets, out)
    entries = sum(len(set(same.values())) - 1 for same in written.same.values())
    click.echo(f"{counted(len(written.same), 'case')}, {entries} binaries against {written.reference}: {out}")


@history_group.command("site")
@click.argument("out", type=_FOLDER)
@options.db_option
@click.option("--reports/--no-reports", default=True, help="Embed reports of runs that are still there.")
def site_command(*, out: Path, file: Path, reports: bool) -> None:
    """Write the history as a site of static files to the folder OUT: open its index.html."""
    assets = configuration.load().shipped / "reports" / "history"
    with database.reading(file) as history:
        written = site.write(history, out, assets, partial(_report, history) if reports else None)
    click.echo(
        f"{counted(written.versions, 'version')}, {counted(written.cases, 'case')}, "
        f"{counted(written.steps, 'change point')}, {counted(written.reports, 'report')}: "
        f"{out / 'index.html'}\n"
        f"the overview loads {written.overview_bytes / 1e6:.2f} MB of {written.size_bytes / 1e6:.1f} MB"
    )


def _report(history: database.Database, folder: Path) -> str:
    from irdiff.report import html

    run = run_folder.load(folder)
    return html.render(run, folder, as_=Shown(compile_times=compile_times.of_run(history, run) or ()))


@history_group.command("export")
@options.db_option
@click.option("--parquet", "folder", type=_FOLDER, metavar="DIR", help="Write each table to a file in DIR.")
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
        raise UsageError(
            "one form of the history is written at a time",
            hint="give either --parquet DIR or --format pytorch-benchmark",
        )
    with database.reading(file) as history:
        if folder is not None:
            counts = database.export(history, folder)
            click.echo(f"{sum(counts.values())} rows in {len(counts)} tables: {folder}")
            return
        series = [lines.read(history, name) for name in lines.series_names(history)]
    benchmark = [record for one in series for record in benchmark_records.records(one)]
    options.write_json(json_path or Path("-"), benchmark)


@history_group.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@options.db_option
def import_command(*, folder: Path, file: Path) -> None:
    """Add what `irdiff history export` wrote to FOLDER, on another machine for example."""
    with database.writing(file) as history:
        counts = database.take(history, folder)
    click.echo(f"{sum(counts.values())} rows: {file}")


@history_group.command("check")
@options.db_option
@click.option("--series", help="Which series; default: that of the run that was added last.")
@options.markdown_option
@options.json_option
@click.option("--issue", "to_issue", is_flag=True, help="Keep an issue on what moved, closed when undone.")
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
    """Check whether the newest version moved a figure beyond that figure's noise; exit with 1 if so.

    With --issue the token comes from GITHUB_TOKEN or GH_TOKEN; it needs `issues: write`.
    """
    with database.reading(file) as history:
        series_lines = lines.read(history, _series(history, series))
    alert = alerts.check(series_lines)
    text = alerts.markdown(alert)
    if markdown_path:
        options.write_output(markdown_path, text)
    if json_path:
        options.write_json(json_path, alerts.as_json(alert))
    if "-" not in map(str, (markdown_path, json_path)):
        click.echo(text, nl=False)
    if to_issue:
        for line in keep_issues(api.of_environment(repository, api_url), series_lines, alert):
            click.echo(line, err=True)
    if alert.is_news:
        return ExitCode.ANSWER_IS_NO
    return ExitCode.DONE if alert.compared else ExitCode.NOT_COMPARED


def _series(history: database.Database, chosen: str | None) -> str:
    names = lines.series_names(history)
    if chosen is not None and chosen not in names:
        raise UsageError(f"there is no series {chosen!r}", hint=f"there are: {', '.join(names) or 'none'}")
    newest = history.value("SELECT series FROM runs JOIN versions ON version = head ORDER BY created DESC")
    if chosen is None and newest is None:
        raise UsageError("the history has no run to check", hint="add one: irdiff history add RUN")
    return chosen or str(newest)


def keep_issues(client: Client, series: SeriesLines, alert: Alert) -> list[str]:
    """Writes one issue for each version with news. Closes the issues of earlier versions once all of their
    changes are undone.
    """
    open_issues = issue.open_issues(client)
    key = f"{alert.series}-{alert.version}"
    done = []
    if alert.is_news:
        title = f"irdiff: {alert.version}: {alert.headline}"
        action, url = issue.write(client, open_issues, key, title, alerts.markdown(alert))
        done.append(f"issue {action}: {url}")
    places = {f"{series.name}-{version.label}": place for place, version in enumerate(series.versions)}
    for tracked in open_issues:
        if tracked.key == key or tracked.key not in places:
            continue
        if alerts.is_undone(series, alerts.check(series, places[tracked.key])):
            issue.close(client, tracked, f"All of it is undone in {alert.version}.")
            done.append(f"issue {issue.IssueDone.CLOSED}: {tracked.url}")
    return done


# a series from its beginning


@history_group.command("backfill")
@click.argument("specs", nargs=-1, required=True, metavar="VERSIONS…")
@options.db_option
@click.option("--runs", "runs_folder", type=options.PATH, help="Run folders; default: next to the history.")
@click.option("--index", metavar="URL", help="An index of nightlies; default: the configured one.")
@click.option("--every", "every_s", type=options.DURATION, metavar="Nd", help="Take one in N days: 1d, 7d.")
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
    every_s: float | None,
    checkout: CheckoutArguments,
    selection: CaseArguments,
    attribute: bool,
    recheck: bool,
    config: Config,
) -> int:
    """Compile each version once and compare neighbours: triton==3.2.0..3.9.0, REV..REV, single ones.

    Each result is kept at once: after an interruption the same command goes on.
    """
    config = versions.with_index(config, index)
    wanted = checkout.side_options(selection)
    series = versions.of_specs(specs, int((every_s or 0) // configuration.DAY_S), checkout.repo, config)
    work = backfill.Backfill(
        config=config,
        targets=replace(selection, cases=()).targets(config),
        sides=wanted,
        options=replace(
            DEFAULT_OPTIONS,
            cases=selection.cases,
            tiers=selection.tiers,
            attribute=attribute,
            recheck=recheck,
        ),
        corpus=shared_corpus(series[-1].spec, wanted, config),
        compiler=toolchains.resolve(checkout.triton, config).digest if checkout.triton else "",
        file=file,
        runs=runs_folder or file.absolute().with_name(f"{file.stem}-runs"),
        say=partial(click.echo, err=True),
        progress=screen.progress,
    )
    with environments.showing(work.say):
        cases = work.whole_names(series[::-1])
        done = replace(work, options=replace(work.options, cases=cases)).run(series)
    counts = f"{len(done.measured)} versions compiled, {len(done.compared)} pairs compared"
    click.echo(f"{counts}, {done.already_there} were there: {file}")
    for gap in done.gaps:
        click.echo(f"gap: {gap}")
    return ExitCode.TOOLCHAIN if done.gaps else ExitCode.DONE
