"""The one comment of irdiff on a pull request: created, updated in place, older ones minimized.

Only comments by the token's own account that carry a hidden marker count: nobody else's comment is ever
touched.

The comment says what a push changed. A hidden line keeps the groups for the last commit, and for the commit
before, so a job that runs twice for one commit says the same twice. Of that line only what has its exact form
is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from irdiff.errors import UsageError
from irdiff.github.api import Client, GithubError, GithubUnreachableError, NotSentError, TooLongError
from irdiff.model import Run
from irdiff.report import run_changes

MAX_BODY = 65_536
"""The most characters of a comment that GitHub accepts."""
_LIMITS = (8_000, 4_000, 2_000)
"""Limits of the report, tried in turn if GitHub finds the comment too long."""
_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_ATTEMPTS = 3
_MAX_PAGES = 50

_FIND = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      state
      headRefOid
      comments(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id databaseId body isMinimized author { login } }
      }
    }
  }
}
"""
_MINIMIZE = """
mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } }
}
"""


class Done(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    CLOSED = "not written: the pull request is closed"
    MOVED_ON = "not written: the pull request has newer commits"


@dataclass(frozen=True, kw_only=True)
class Posted:
    done: Done
    url: str | None
    minimized: int


_Comment = Mapping[str, Any]
"""With the fields of `_FIND`."""


def marker(key: str) -> str:
    """Raises UsageError for a key that could end the HTML comment."""
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"the comment's key {key[:60]!a} may have only a-z, 0-9 and -",
            hint="give another --key, such as --key nightly",
        )
    return f"<!-- irdiff:comment:{key} -->"


def body(key: str, report: str, footer: str) -> str:
    return f"{marker(key)}\n{report.rstrip()}\n{footer}"


def post(
    client: Client,
    number: int,
    render: Callable[[int], str],
    *,
    key: str = "default",
    footer: str = "",
    commit: str | None = None,
    pushed: Pushed | None = None,
) -> Posted:
    """render: returns the report in at most so many characters. pushed: the comment says what is new since
    its former commit. commit: nothing is written if the pull request's head is another one. Raises
    GithubError.
    """
    for limit in _LIMITS:
        text = body(key, render(limit), footer)
        if len(text) > MAX_BODY:
            continue
        try:
            return _post(client, number, text, key, commit, pushed)
        except TooLongError:
            continue
    raise GithubError(f"GitHub takes no comment on pull request {number}, not even a short one")


def _post(
    client: Client, number: int, text: str, key: str, commit: str | None, pushed: Pushed | None
) -> Posted:
    for _ in range(_ATTEMPTS):
        pull, ours = _find(client, number, marker(key))
        if pull["state"] != "OPEN":
            return Posted(done=Done.CLOSED, url=None, minimized=0)
        if commit is not None and pull["headRefOid"] != commit:
            return Posted(done=Done.MOVED_ON, url=None, minimized=0)
        shown = [comment for comment in ours if not comment["isMinimized"]]
        whole = appended(text, pushed, shown[-1]["body"] if shown else None)
        if len(whole) > MAX_BODY:
            raise TooLongError("the comment with what it keeps of its groups is too long")
        try:
            done, url = _write(client, number, whole, shown[-1] if shown else None)
        except NotSentError:
            continue  # it may be there: look again before writing a second one
        for comment in shown[:-1]:
            client.graphql(_MINIMIZE, {"id": comment["id"]}, to="minimize an older comment")
        return Posted(done=done, url=url, minimized=max(0, len(shown) - 1))
    raise GithubUnreachableError(
        f"could not write the comment on pull request {number}: no clear answer from {client.host}",
        hint="try again later",
    )


def _write(client: Client, number: int, text: str, present: _Comment | None) -> tuple[Done, str | None]:
    if present is None:
        path, to = f"/issues/{number}/comments", "write the comment"
        answer = client.rest("POST", path, {"body": text}, to=to, repeatable=False)
        return Done.CREATED, _url(answer)
    if present["body"].replace("\r\n", "\n").rstrip() == text.rstrip():
        return Done.UNCHANGED, None
    path = f"/issues/comments/{present['databaseId']}"
    return Done.UPDATED, _url(client.rest("PATCH", path, {"body": text}, to="update the comment"))


def _url(answer: Any) -> str | None:
    url = answer.get("html_url") if isinstance(answer, Mapping) else None
    return str(url) if url else None


def _find(client: Client, number: int, mark: str) -> tuple[_Comment, list[_Comment]]:
    """Returns the pull request, and this account's comments with the marker, the oldest first."""
    ours: list[_Comment] = []
    after: str | None = None
    pull: Any = None
    for _ in range(_MAX_PAGES):
        variables = {"owner": client.owner, "name": client.name, "number": number, "after": after}
        answer = client.graphql(_FIND, variables, to=f"read pull request {number}")
        pull = (answer.get("repository") or {}).get("pullRequest")
        if not pull:
            raise GithubError(
                f"{client.repository} has no pull request {number}, or the token cannot see it",
                hint="check --repo and --pr",
            )
        viewer = _plain_login(answer["viewer"])
        ours += [
            comment
            for comment in pull["comments"]["nodes"]
            if _plain_login(comment.get("author")) == viewer and comment["body"].lstrip().startswith(mark)
        ]
        page = pull["comments"]["pageInfo"]
        if not page["hasNextPage"]:
            break
        after = page["endCursor"]
    return pull, ours


def find_own(client: Client, number: int, key: str) -> str | None:
    _, ours = _find(client, number, marker(key))
    return ours[-1]["body"] if ours else None


def _plain_login(actor: Mapping[str, Any] | None) -> str | None:
    """An app is `NAME[bot]` as the viewer and `NAME` as an author."""
    return str(actor["login"]).removesuffix("[bot]") if actor else None


def find_pull_requests(client: Client, head: str, commit: str) -> list[int]:
    """Returns the open pull requests of `OWNER:BRANCH` at a commit: there may be one for each branch that it
    is to be merged into. The event of a fork's run names none: both arguments come from the event, not the
    run.
    """
    pulls: Any = client.rest(
        "GET",
        "/pulls",
        to="look for the pull request",
        parameters={"head": head, "state": "open", "per_page": 100},
    )
    return [int(pull["number"]) for pull in pulls if pull["head"]["sha"] == commit]


# what a push changed, for the comment: the groups of this run against those that the comment had before


_MOST_GROUPS = 400
"""A comment has room for so many. With more groups it keeps none, and compares nothing."""
_DIGITS = 12
_HEX = r"[0-9a-f]"
_FIRST = re.compile(r"^### .*\n", re.MULTILINE)
_PAIR = rf'"{_HEX}{{{_DIGITS}}}": ?"{_HEX}{{{_DIGITS}}}"'
_PUSHED = rf'\["{_HEX}{{40,64}}", ?\{{(?:{_PAIR}(?:, ?)?)*\}}\]'
_LINE = re.compile(rf"<!-- irdiff:groups:(\[(?:{_PUSHED}(?:, ?)?){{1,2}}\]) -->")


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """The groups of one commit's run."""

    commit: str
    groups: Mapping[str, str]
    """A digest of its cases and their changes, by the digest of each group's id."""


def of_run(run: Run, commit: str | None) -> Pushed | None:
    """Returns None if the commit is unknown, or there are more groups than a comment keeps."""
    if commit is None or len(run.groups) > _MOST_GROUPS:
        return None
    return Pushed(commit=commit, groups=run_changes.short_prints(run, _DIGITS))


def appended(text: str, now: Pushed | None, former: str | None) -> str:
    """Adds the changes since the former body, below the first line."""
    if now is None:
        return text
    before = next((pushed for pushed in _read(former or "") if pushed.commit != now.commit), None)
    kept = [now, *([before] if before else [])]
    kept_groups = json.dumps([[pushed.commit, dict(pushed.groups)] for pushed in kept])
    if before:
        sentence = run_changes.counts(before.groups, now.groups).sentence(before.commit[:7])
        text = _FIRST.sub(lambda match: f"{match[0]}\n{sentence}\n", text, count=1)
    return f"{text.rstrip()}\n<!-- irdiff:groups:{kept_groups} -->\n"


def _read(body: str) -> list[Pushed]:
    match = _LINE.search(body)
    if not match:
        return []
    try:
        return [Pushed(commit=commit, groups=groups) for commit, groups in json.loads(match[1])]
    except ValueError:
        return []
