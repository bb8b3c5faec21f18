"""The one comment of irdiff on a pull request: created, updated in place, older ones minimized.

The comment carries a hidden marker. Only comments by the token's own account count: anybody can write a
marker into a comment of theirs, and nobody else's comment is ever touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from irdiff.errors import UsageError
from irdiff.github import since
from irdiff.github.api import Client, GithubError, GithubUnreachableError, NotSentError, TooLongError
from irdiff.github.since import Pushed

MAX_BODY = 65_536
"""The most characters of a comment that GitHub takes."""
_LIMITS = (8_000, 4_000, 2_000)
"""Limits of the report, tried in turn where GitHub finds the comment too long all the same."""
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


_Row = Mapping[str, Any]
"""As `_FIND` asks for it."""


def marker(key: str) -> str:
    """Raises UsageError for a key that could end the HTML comment."""
    if not _KEY.fullmatch(key):
        raise UsageError(f"the comment key {key[:60]!a} is not made of a-z, 0-9 and -")
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
    """Brings the comment up to date. `render` gives the report in at most so many characters.

    With `pushed`, the comment says what is new since the commit that it was of before.

    With `commit`, nothing is written where the pull request's head is another one: its own run is on the way.
    Raises GithubError.
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
        shown = [row for row in ours if not row["isMinimized"]]
        whole = since.appended(text, pushed, shown[-1]["body"] if shown else None)
        if len(whole) > MAX_BODY:
            raise TooLongError("the comment with what it keeps of its groups is too long")
        try:
            done, url = _write(client, number, whole, shown[-1] if shown else None)
        except NotSentError:
            continue  # it may be there: look again before writing a second one
        for row in shown[:-1]:
            client.graphql(_MINIMIZE, {"id": row["id"]}, to="minimize an older comment")
        return Posted(done=done, url=url, minimized=max(0, len(shown) - 1))
    raise GithubUnreachableError(
        f"could not write the comment on pull request {number}: no clear answer from {client.host}",
        hint="try again later",
    )


def _write(client: Client, number: int, text: str, known: _Row | None) -> tuple[Done, str | None]:
    if known is None:
        path, to = f"/issues/{number}/comments", "write the comment"
        answer = client.rest("POST", path, {"body": text}, to=to, repeatable=False)
        return Done.CREATED, _url(answer)
    if known["body"].replace("\r\n", "\n").rstrip() == text.rstrip():
        return Done.UNCHANGED, None
    path = f"/issues/comments/{known['databaseId']}"
    return Done.UPDATED, _url(client.rest("PATCH", path, {"body": text}, to="update the comment"))


def _url(answer: Any) -> str | None:
    url = answer.get("html_url") if isinstance(answer, Mapping) else None
    return str(url) if url else None


def _find(client: Client, number: int, mark: str) -> tuple[_Row, list[_Row]]:
    """The pull request, and the comments of this account that carry the marker, the oldest first."""
    ours: list[_Row] = []
    after: str | None = None
    pull: Any = None
    for _ in range(_MAX_PAGES):
        variables = {"owner": client.owner, "name": client.name, "number": number, "after": after}
        rows = client.graphql(_FIND, variables, to=f"read pull request {number}")
        pull = (rows.get("repository") or {}).get("pullRequest")
        if not pull:
            raise GithubError(
                f"{client.repository} has no pull request {number}, or the token cannot see it",
                hint="check --repo and --pr",
            )
        viewer = _plain_login(rows["viewer"])
        ours += [
            row
            for row in pull["comments"]["nodes"]
            if _plain_login(row.get("author")) == viewer and row["body"].lstrip().startswith(mark)
        ]
        page = pull["comments"]["pageInfo"]
        if not page["hasNextPage"]:
            break
        after = page["endCursor"]
    return pull, ours


def find_own(client: Client, number: int, key: str) -> str | None:
    """The text of this account's newest comment with a key; None where there is none."""
    _, ours = _find(client, number, marker(key))
    return ours[-1]["body"] if ours else None


def _plain_login(actor: Mapping[str, Any] | None) -> str | None:
    """An app is `NAME[bot]` as the viewer and `NAME` as an author."""
    return str(actor["login"]).removesuffix("[bot]") if actor else None


def find_pull_request(client: Client, head: str, commit: str) -> int | None:
    """The open pull request of `OWNER:BRANCH` at a commit; None where there is none (any more).

    For runs of forks, whose event names no pull request: both arguments come from the event, not the run.
    """
    rows: Any = client.rest(
        "GET",
        "/pulls",
        to="look for the pull request",
        parameters={"head": head, "state": "open", "per_page": 100},
    )
    numbers = [int(row["number"]) for row in rows if row["head"]["sha"] == commit]
    return numbers[0] if numbers else None
