"""Keeps one issue for each piece of news: opened, updated in place, closed when the news is undone. As for
comments, a hidden marker identifies the issue, and only issues by the token's own account count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from irdiff.errors import UsageError
from irdiff.github.api import Client
from irdiff.github.comment import MAX_BODY

LABEL = "irdiff"
_KEY = re.compile(r"[A-Za-z0-9._+-]{1,80}")
_MARK = re.compile(r"<!-- irdiff:issue:([A-Za-z0-9._+-]{1,80}) -->")
_VIEWER = "query { viewer { login } }"


class IssueDone(StrEnum):
    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True)
class OpenIssue:
    number: int
    key: str
    title: str
    body: str
    url: str


def marker(key: str) -> str:
    """Raises UsageError for a key that could end the HTML comment."""
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"the issue's key {key[:90]!a} may have only letters, digits and ._+-",
            hint="give another --key, such as --key nightly",
        )
    return f"<!-- irdiff:issue:{key} -->"


def open_issues(client: Client) -> list[OpenIssue]:
    """Raises GithubError."""
    viewer = client.graphql(_VIEWER, {}, to="ask who the token is")["viewer"]["login"]
    issues = client.listed("/issues", {"state": "open", "labels": LABEL}, to="list issues")
    return [issue for entry in issues if (issue := _issue(entry, viewer))]


def _issue(answer: Mapping[str, Any], viewer: str) -> OpenIssue | None:
    mark = _MARK.match((answer.get("body") or "").lstrip())
    author = (answer.get("user") or {}).get("login")
    if mark is None or author != viewer or "pull_request" in answer:
        return None
    return OpenIssue(
        number=answer["number"],
        key=mark[1],
        title=answer["title"],
        body=answer["body"],
        url=answer["html_url"],
    )


def write(client: Client, present: list[OpenIssue], key: str, title: str, text: str) -> tuple[IssueDone, str]:
    """Opens or updates the issue of a key. Returns its address. Raises GithubError."""
    body, title = f"{marker(key)}\n{text}"[:MAX_BODY], title[:250]
    issue = next((issue for issue in present if issue.key == key), None)
    if issue is None:
        wanted = {"title": title, "body": body, "labels": [LABEL]}
        answer: Any = client.rest("POST", "/issues", wanted, to="open an issue", repeatable=False)
        return IssueDone.OPENED, str(answer["html_url"])
    if issue.body.replace("\r\n", "\n").rstrip() == body.rstrip() and issue.title == title:
        return IssueDone.UNCHANGED, issue.url
    client.rest("PATCH", f"/issues/{issue.number}", {"title": title, "body": body}, to="update the issue")
    return IssueDone.UPDATED, issue.url


def close(client: Client, issue: OpenIssue, why: str) -> None:
    """Comments the reason, and closes. Raises GithubError."""
    path = f"/issues/{issue.number}"
    client.rest("POST", f"{path}/comments", {"body": why}, to="say why the issue is closed", repeatable=False)
    client.rest("PATCH", path, {"state": "closed", "state_reason": "completed"}, to="close the issue")
