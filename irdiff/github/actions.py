"""GitHub Actions through its API: runs of workflows, their artifacts and caches, and who may write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff.errors import UsageError
from irdiff.github.api import Client, GithubError
from irdiff.run import run_archive
from irdiff.run.failure import PartFailure

_PAGE = 100
_FAILED = frozenset({"failure", "timed_out", "startup_failure"})
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\[bot\])?")


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    number: int
    """The id in addresses."""
    is_done: bool
    url: str


@dataclass(frozen=True, kw_only=True)
class ActionsCache:
    number: int
    ref: str
    """The branch or pull request whose jobs may read it: `refs/heads/main`, `refs/pull/7/merge`."""
    key: str
    size_bytes: int
    last_used: str
    """ISO 8601, UTC."""


def newest_run(client: Client, workflow: str, commit: str) -> WorkflowRun | None:
    """Returns the newest run for a commit of a pull request, without skipped ones."""
    runs = _runs(client, workflow, head_sha=commit, event="pull_request")
    real = [run for run in runs if run.get("conclusion") != "skipped"]
    newest = max(real, key=lambda run: int(run["run_number"]), default=None)
    if newest is None:
        return None
    return WorkflowRun(
        number=int(newest["id"]),
        is_done=newest.get("status") == "completed",
        url=str(newest.get("html_url") or ""),
    )


def _runs(client: Client, workflow: str, **chosen: str) -> Any:
    path, parameters = f"/actions/workflows/{workflow}/runs", {**chosen, "per_page": _PAGE}
    return client.rest("GET", path, to=f"look for runs of {workflow}", parameters=parameters)["workflow_runs"]


def rerun(client: Client, run: WorkflowRun) -> None:
    client.rest(
        "POST", f"/actions/runs/{run.number}/rerun", to="start the comparison again", repeatable=False
    )


def fetch_artifact(client: Client, run_id: int, name: str, place: Path) -> bool:
    """Downloads a zip file; returns False if there is no artifact of that name. Raises GithubError, also if
    it is larger than any run.
    """
    parameters = {"name": name, "per_page": _PAGE}
    path = f"/actions/runs/{run_id}/artifacts"
    artifacts = client.rest("GET", path, to="list what the run kept", parameters=parameters)["artifacts"]
    mine = [
        artifact for artifact in artifacts if artifact.get("name") == name and not artifact.get("expired")
    ]
    if not mine:
        return False
    newest = max(mine, key=lambda artifact: int(artifact["id"]))
    limit = run_archive.MAX_ARCHIVE_BYTES
    if int(newest.get("size_in_bytes") or 0) > limit:
        raise GithubError(f"the artifact {name} has more than {limit} bytes")
    address = f"/actions/artifacts/{int(newest['id'])}/zip"
    client.download(address, place, limit_bytes=limit, to=f"download the artifact {name}")
    return True


def fetch_from_newest(client: Client, workflow: str, branch: str, name: str, place: Path) -> int | None:
    """Returns the id of the run, or None. Runs that a pull request started do not count: they may keep
    anything under any name.
    """
    runs = _runs(client, workflow, branch=branch)
    numbers = [int(run["id"]) for run in runs if run.get("event") in ("schedule", "workflow_dispatch")]
    newest_first = sorted(numbers, reverse=True)
    return next((run for run in newest_first if fetch_artifact(client, run, name, place)), None)


def failures(client: Client, run_id: int) -> tuple[PartFailure, ...]:
    """Returns failed jobs with their failed step, as GitHub names them."""
    path = f"/actions/runs/{run_id}/jobs"
    jobs = client.rest("GET", path, to="list the jobs of the run", parameters={"per_page": _PAGE})["jobs"]
    failed = []
    for job in [each for each in jobs if each.get("conclusion") in _FAILED][:20]:
        steps = [step for step in job.get("steps") or () if step.get("conclusion") in _FAILED]
        lines = tuple(f"failed in the step: {str(step.get('name'))[:200]}" for step in steps[:5])
        failed.append(PartFailure(step=f"job {str(job.get('name'))[:100]}", code=1, lines=lines))
    return tuple(failed)


def may_write(client: Client, login: str) -> bool:
    """Checks the right to push, and not the role that a comment states."""
    if not _LOGIN.fullmatch(login):
        raise UsageError(
            f"{login[:100]!a} cannot be the name of a GitHub account",
            hint="pass the `login` of the comment's author",
        )
    answer = client.rest("GET", f"/collaborators/{login}/permission", to=f"ask what {login} may do")
    return answer.get("permission") in {"admin", "write"}  # `maintain` is `write` here


def pull_request(client: Client, number: int) -> tuple[str, bool]:
    """Returns the newest commit, and whether the pull request is open."""
    answer = client.rest("GET", f"/pulls/{number}", to=f"read pull request {number}")
    return str(answer["head"]["sha"]), answer["state"] == "open"


def react(client: Client, comment: int, content: str) -> None:
    path = f"/issues/comments/{comment}/reactions"
    client.rest("POST", path, {"content": content}, to="answer a comment")


# caches


def caches(client: Client, prefix: str) -> Iterator[ActionsCache]:
    for cache in client.listed("/actions/caches", {"key": prefix}, to="list caches", within="actions_caches"):
        yield ActionsCache(
            number=int(cache["id"]),
            ref=str(cache["ref"]),
            key=str(cache["key"]),
            size_bytes=int(cache["size_in_bytes"]),
            last_used=str(cache["last_accessed_at"]),
        )


def to_remove(present: list[ActionsCache], closed: set[int], max_bytes: int) -> list[ActionsCache]:
    """Returns caches of closed pull requests, then those unused longest until the rest fits."""
    gone = [cache for cache in present if (number := pull_request_of(cache)) is not None and number in closed]
    kept = sorted(
        (cache for cache in present if cache not in gone),
        key=lambda cache: cache.last_used,
        reverse=True,
    )
    total = 0
    for cache in kept:
        total += cache.size_bytes
        if total > max_bytes:
            gone.append(cache)
    return gone


def pull_request_of(cache: ActionsCache) -> int | None:
    match = re.fullmatch(r"refs/pull/(\d{1,9})/(?:merge|head)", cache.ref)
    return int(match[1]) if match else None


def remove_cache(client: Client, cache: ActionsCache) -> None:
    client.rest("DELETE", f"/actions/caches/{cache.number}", to=f"remove the cache {cache.key[:80]}")
