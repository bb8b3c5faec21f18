from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from irdiff import config as configuration
from irdiff.cli import options, run_argument
from irdiff.cli.run_argument import OpenedRun
from irdiff.errors import UsageError
from irdiff.github import api, checks, comment
from irdiff.github.checks import Annotation, CheckRun
from irdiff.model import Run, Verdict
from irdiff.report import conclusion, escape, headline, markdown, shown
from irdiff.report.conclusion import Conclusion
from irdiff.report.timing_summary import TimingSummary
from irdiff.run import failure
from irdiff.run.failure import PartFailure

_LEAST = 1_000
"""The fewest characters that a report needs."""
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, kw_only=True)
class _CommentPlace:
    repository: str
    number: int | None
    branch: str | None
    commit: str | None
    api_url: str | None
    key: str
    url: str | None
    time_label: str | None
    check: bool
    root: str

    def __post_init__(self) -> None:
        if self.commit is not None and not _COMMIT.fullmatch(self.commit):
            raise UsageError(
                f"--commit {self.commit[:80]!a} is not a full commit id",
                hint="write all of it: git rev-parse HEAD",
            )
        if self.url is not None and not re.fullmatch(r"https://[!-~]{1,1000}", self.url):
            raise UsageError(
                "--url is not an https link", hint="give the address of the job: --url https://…"
            )
        if not self.repository:
            raise UsageError("no repository was named", hint="name the one to comment in: --repo OWNER/NAME")
        if (self.number is None) == (self.branch is None):
            raise UsageError(
                "name one pull request: its number, or its branch",
                hint="give either --pr N or --pr-head OWNER:BRANCH",
            )
        if (self.branch is not None or self.check) and self.commit is None:
            raise UsageError("--pr-head and --check need a commit", hint="add --commit $(git rev-parse HEAD)")
        comment.marker(self.key)


@click.command("comment")
@run_argument.argument()
@click.option("--repo", "repository", help="OWNER/NAME; default: GITHUB_REPOSITORY.")
@click.option("--pr", "number", type=click.IntRange(min=1), help="Number of the pull request.")
@click.option("--pr-head", "branch", metavar="OWNER:BRANCH", help="Its branch, instead of the number.")
@click.option(
    "--commit", metavar="SHA", help="Its head commit; where the branch has moved on, nothing is written."
)
@options.api_url_option
@click.option("--key", default="default", help="One comment is kept for each key.")
@click.option("--url", help="An https link to the job and its full report.")
@click.option(
    "--time-label", metavar="LABEL", help="The label that asks for a GPU run; the comment names it."
)
@click.option("--check/--no-check", default=False, help="Publish a check (or status) with annotations, too.")
@click.option("--corpus-root", "root", default="corpus", help="Where the corpus lies in the repository.")
@click.option("--dry-run", is_flag=True, help="Print the comment; nothing is sent and no token is needed.")
def comment_command(*, run: str, repository: str | None, dry_run: bool, **place_options: Any) -> None:
    """Write the report of RUN on a pull request: one comment, updated in place.

    RUN is a run folder, or a zip or tar file of one; it may come from a job that is not trusted. The token
    comes from GITHUB_TOKEN or GH_TOKEN; it needs `pull-requests: write`, and `checks: write` for --check.
    """
    config = configuration.load()
    place = _CommentPlace(repository=repository or config.github_repository or "", **place_options)
    with run_argument.opened(run, config) as opened:
        story = _story(opened)
    if dry_run:
        click.echo(_dry(place, story), nl=False)
    else:
        _send(place, story)


@dataclass(frozen=True, kw_only=True)
class _Story:
    """The content of the comment: a run, the failures of its parts, or both."""

    folder: Path
    run: Run | None
    failed: tuple[PartFailure, ...]
    timing: TimingSummary | None

    def markdown(
        self, limit: int = markdown.COMMENT, *, url: str | None = None, time_label: str | None = None
    ) -> str:
        text = ""
        if self.failed:
            room = limit // 4 if self.run else limit
            text = markdown.of_failures(self.failed, has_run=self.run is not None, limit=max(room, _LEAST))
        if self.run is None:
            return text
        left = max(limit - len(text), _LEAST)
        as_ = shown.of_job(url, time_label if self.can_be_timed else None)
        return text + markdown.render(self.run, self.folder, self.timing, limit=left, as_=as_)

    @property
    def can_be_timed(self) -> bool:
        changed = self.run is not None and any(case.verdict is Verdict.CHANGED for case in self.run.cases)
        return changed and self.timing is None

    @property
    def title(self) -> str:
        if self.failed or self.run is None:
            return markdown.failure_headline(has_run=self.run is not None)
        return headline.of(self.run, timed=self.timing.sentence if self.timing else "")

    @property
    def conclusion(self) -> Conclusion:
        if self.failed or self.run is None:
            return Conclusion.FAILURE
        return conclusion.of(self.run, self.timing)

    def annotations(self, root: str) -> tuple[Annotation, ...]:
        return checks.annotate(self.run, root) if self.run else ()


def _story(opened: OpenedRun) -> _Story:
    """Raises RunFolderError if the folder holds neither a run nor a failure, or is damaged."""
    failures = failure.load(opened.folder)
    if failures and not (opened.folder / "run.json").exists():
        return _Story(folder=opened.folder, run=None, failed=failures, timing=None)
    return _Story(folder=opened.folder, run=opened.run, failed=failures, timing=opened.timing_summary)


def _footer(place: _CommentPlace) -> str:
    parts = [f"at {escape.code(place.commit[:12])}"] if place.commit else []
    parts += [f"[job]({escape.url(place.url)})"] if place.url else []
    return f"\n<sub>irdiff {', '.join(parts)}</sub>\n" if parts else "\n"


def _dry(place: _CommentPlace, story: _Story) -> str:
    report = story.markdown(url=place.url, time_label=place.time_label)
    text = comment.body(place.key, report, _footer(place))
    where = f"pull request {place.number}" if place.number else f"the pull request of {place.branch}"
    lines = [f"would write to {where} of {place.repository}, {len(text)} characters:"]
    if place.check:
        count = len(story.annotations(place.root))
        lines.append(f"would publish a check: {story.conclusion.value}, {count} annotations")
    return "\n".join(map(escape.terminal, [*lines, ""])) + "\n" + text


def _send(place: _CommentPlace, story: _Story) -> None:
    client = api.of_environment(place.repository, place.api_url)
    commit = place.commit or ""
    numbers = [place.number] if place.number is not None else []
    if place.branch is not None:
        numbers = comment.find_pull_requests(client, place.branch, commit)
    if place.check:
        check = CheckRun(
            commit=commit,
            name="irdiff" if place.key == "default" else f"irdiff ({place.key})",
            conclusion=story.conclusion,
            title=story.title,
            summary=story.markdown(),
            annotations=story.annotations(place.root),
            details_url=place.url,
        )
        click.echo(f"{checks.publish(client, check)} published")
    if len(numbers) != 1:
        several = ", ".join(f"#{number}" for number in numbers)
        why = f"{several} have the same commit, and nothing says which one was compared" if numbers else ""
        click.echo(f"no comment: {why or 'no open pull request has this commit as its head'}")
        return
    posted = comment.post(
        client,
        numbers[0],
        lambda limit: story.markdown(limit, url=place.url, time_label=place.time_label),
        key=place.key,
        footer=_footer(place),
        commit=place.commit,
        pushed=comment.of_run(story.run, place.commit) if story.run else None,
    )
    older = f", {posted.minimized} older ones minimized" if posted.minimized else ""
    click.echo(escape.terminal(f"comment {posted.done}{older}" + (f": {posted.url}" if posted.url else "")))
