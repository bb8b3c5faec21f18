"""`irdiff github`: what the workflows call that run trusted code with a token. See reports/github/README.md.

What the jobs call that run the code of a pull request, which have no token, is in `github_jobs`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from irdiff import config as configuration
from irdiff.cli import github_jobs, options
from irdiff.cli.store import parse_size
from irdiff.errors import RunFolderError, UsageError
from irdiff.github import actions, asked, comment
from irdiff.github.asked import Asked
from irdiff.github.client import Client
from irdiff.report import escape
from irdiff.run import failure, run_archive
from irdiff.run.failure import PartFailure

COMPARING = "irdiff-pr.yml"
ARTIFACT = "irdiff-run"
_MAX_EVENT_BYTES = 4 << 20


@click.group("github")
def github_group() -> None:
    """Take a step of the workflows that `irdiff init --github` writes."""


def client() -> Client:
    """For the repository and with the token of the job. Raises UsageError where it has none."""
    config = configuration.load()
    if not config.github_token or not config.github_repository:
        raise UsageError("no token, or no repository", hint="set GITHUB_TOKEN and GITHUB_REPOSITORY")
    return Client(config.github_token, config.github_repository, api_url=config.github_api_url)


@github_group.command("fetch")
@click.option("--run", "run_id", type=click.IntRange(min=1), help="Id of the run of the workflow.")
@click.option("--commit", metavar="SHA", help="Or the commit: the newest comparison of it.")
@click.option("--out", type=options.PATH, required=True, help="The folder to write.")
def fetch_command(run_id: int | None, commit: str | None, out: Path) -> None:
    """Download what a comparison kept, within bounds; where that is nothing, OUT/failure.json says why."""
    hub = client()
    if (run_id is None) == (commit is None):
        raise UsageError("give either --run ID or --commit SHA")
    if run_id is None:
        newest = actions.newest_run(hub, COMPARING, commit or "")
        if newest is None or not newest.is_done:
            raise UsageError(
                f"there is no finished comparison of {(commit or '')[:40]!a}", hint="wait for irdiff-pr"
            )
        run_id = newest.number
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="irdiff-fetch-") as scratch:
        place = Path(scratch, "run.zip")
        has_artifact = actions.fetch_artifact(hub, run_id, ARTIFACT, place)
        if has_artifact:
            try:
                run_archive.unpack(place, out)
            except RunFolderError as error:
                failure.write(out, [PartFailure(step="reading the run", code=2, lines=(str(error)[:300],))])
        if not has_artifact or failure.load(out) == (failure.NOTHING_KEPT,):  # GitHub knows which step it was
            failure.write(out, actions.failures(hub, run_id) or (failure.NOTHING_KEPT,))
    said = sorted(path.name for path in out.iterdir())
    click.echo(f"fetched: {', '.join(said)}")


@github_group.command("asked")
@click.option("--pr", "number", type=click.IntRange(min=1), required=True, help="Number of the pull request.")
@click.option("--head", required=True, metavar="SHA", help="The commit that is to be compared.")
@click.option("--out", type=options.PATH, required=True, help="The record, for `github plan`.")
def asked_command(number: int, head: str, out: Path) -> None:
    """Read what a maintainer asked to compare this commit with, from the record of `github obey`."""
    found = asked.read(comment.find_own(client(), number, asked.KEY), head)
    out.write_text(asked.record(found, head) if found else "", encoding="utf-8")
    click.echo(f"asked for: {asked.in_words(found)}" if found else "nothing was asked for at this commit")


@github_group.command("obey")
@click.option("--event", type=options.PATH, required=True, help="GITHUB_EVENT_PATH.")
def obey_command(event: Path) -> None:
    """Carry out the command in a comment, where its author may write to the repository."""
    hub = client()
    said = _comment_of(event)
    if not actions.may_write(hub, said["login"]):
        click.echo(f"not obeyed: {said['login']} may not write to {hub.repository}")
        return
    try:
        wanted = asked.parse(said["body"])
    except UsageError as error:
        _answer(hub, said, f"{escape.markdown(error.what)}\n\n{escape.fence(asked.USAGE.splitlines())}")
        return
    if wanted is None:
        _answer(hub, said, escape.fence(asked.USAGE.splitlines()))
    else:
        _compare_again(hub, said, wanted)


def _comment_of(event: Path) -> dict[str, Any]:
    """What GitHub says of the comment that started the job: as it was written then, whatever it says now."""
    if event.stat().st_size > _MAX_EVENT_BYTES:
        raise UsageError("the event is larger than any event")
    rows = json.loads(event.read_bytes())
    try:
        if rows["action"] != "created" or "pull_request" not in rows["issue"]:
            raise UsageError("the event is not of a new comment on a pull request")
        return {
            "pull": int(rows["issue"]["number"]),
            "comment": int(rows["comment"]["id"]),
            "login": str(rows["comment"]["user"]["login"]),
            "body": str(rows["comment"]["body"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError("the event is not of a comment") from error


def _compare_again(hub: Client, said: dict[str, Any], wanted: Asked) -> None:
    """Records the command for the commit at hand, then starts the comparison of that commit again.

    The pull request's code never runs in this job: it would with the rights of the default branch, whose
    caches other workflows trust. It runs where it ran before, in the pull request's own workflow.
    """
    head = actions.head_of(hub, said["pull"])
    newest = actions.newest_run(hub, COMPARING, head)
    if newest is None or not newest.is_done:
        when = "when it has ended" if newest else f"when `{COMPARING}` has run for {head[:12]}"
        _answer(hub, said, f"a comparison of this commit is on its way: ask again {when}.")
        return
    words = escape.code(asked.in_words(wanted))
    link = f" ([run]({escape.url(newest.url)}))" if newest.url else ""
    who = escape.code(said["login"])
    text = (
        f"{asked.record(wanted, head)}\n{who} asked for {words} at {escape.code(head[:12])}{link}. "
        "The report is updated when it is done; if nothing starts, re-run that job by hand."
    )
    _answer(hub, said, text)
    actions.rerun(hub, newest)
    actions.react(hub, said["comment"], "rocket")
    click.echo(escape.terminal(f"started again: {newest.url}"))


def _answer(hub: Client, said: dict[str, Any], text: str) -> None:
    posted = comment.post(hub, said["pull"], lambda limit: text[:limit], key=asked.KEY)
    click.echo(escape.terminal(f"answered: comment {posted.done}"))


@github_group.command("prune")
@click.option("--max-size", default="8GB", help="What the caches of irdiff may hold.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
def prune_command(max_size: str, dry_run: bool) -> None:
    """Remove caches of closed pull requests, then those unused longest. GitHub gives a repository 10 GB."""
    hub = client()
    rows = [*actions.caches(hub, "irdiff-")]
    numbers = {number for row in rows if (number := actions.pull_request_of(row)) is not None}
    closed = {number for number in numbers if not actions.is_open(hub, number)}
    gone = actions.to_remove(rows, closed, parse_size(max_size))
    for row in gone:
        if not dry_run:
            actions.remove_cache(hub, row)
        click.echo(escape.terminal(f"{'would remove' if dry_run else 'removed'} {row.key} of {row.ref}"))
    kept = sum(row.size_bytes for row in rows) - sum(row.size_bytes for row in gone)
    click.echo(f"{len(gone)} of {len(rows)} caches removed, {kept / 1e9:.1f} GB kept")


for command in github_jobs.COMMANDS:
    github_group.add_command(command)
