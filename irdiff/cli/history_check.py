"""`irdiff history check`."""

from __future__ import annotations

from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options
from irdiff.errors import ExitCode, UsageError
from irdiff.github import issue
from irdiff.github.client import Client
from irdiff.history import alerts, database, lines
from irdiff.history.alerts import Alert
from irdiff.history.lines import SeriesLines


@click.command("check")
@options.db_option
@click.option("--series", help="Which series; default: that of the run that was added last.")
@click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the text here.")
@options.json_option
@click.option(
    "--issue", "to_issue", is_flag=True, help="Open one issue for news, update it, close it when undone."
)
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
