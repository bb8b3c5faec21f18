"""Publishes the verdict at a commit: a check run with annotations, or a commit status if checks are not
allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from irdiff.capture import program_failures
from irdiff.compare.cases import failed_program
from irdiff.github.api import Client, ForbiddenError
from irdiff.model import Case, Run, Verdict
from irdiff.report import distinct_edits, error_clusters, phrases
from irdiff.report.conclusion import Conclusion
from irdiff.report.escape import clean
from irdiff.words import counted

ANNOTATIONS_PER_REQUEST = 50
MAX_ANNOTATIONS = 200
_MAX_SUMMARY = 60_000
_MAX_DESCRIPTION = 140
"""GitHub refuses a longer commit status."""


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """Fields are named as in the checks API."""

    path: str
    annotation_level: str
    title: str
    message: str
    line: int = 1


def annotate(run: Run, root: str) -> tuple[Annotation, ...]:
    """One for each broken case, then one for each change group at its representative's source. root: the
    corpus's folder in the repository; other files are left out.
    """
    root = "" if run.head.revision else root
    return tuple([*_of_broken(run, root), *_of_groups(run, root)][:MAX_ANNOTATIONS])


def _of_broken(run: Run, root: str) -> Iterator[Annotation]:
    """Annotates an error of a file once, however many cases have it."""
    for shared in error_clusters.errors(case for case in run.cases if case.verdict is Verdict.BROKEN):
        of_path: dict[tuple[str, int], list[Case]] = {}
        for case in shared.cases:
            path, line = _place_of_failure(case) or _place(run, case, root)
            if path:
                of_path.setdefault((path, line), []).append(case)
        for (path, line), cases in of_path.items():
            names = replace(shared, cases=tuple(cases)).names
            yield replace(_annotation(path, "failure", f"broken: {names}", shared.words), line=line)


def _place_of_failure(case: Case) -> tuple[str | None, int] | None:
    """Returns the place where a program of the repository failed; None for any other case."""
    failure = failed_program(case)
    if failure is None:
        return None
    why = program_failures.of(failure, case.workload)
    return _repository_path(why.path, ""), why.line


def _of_groups(run: Run, root: str) -> Iterator[Annotation]:
    cases = {case.id: case for case in run.cases}
    for group in distinct_edits.ordered_groups(run):
        path, line = _place(run, cases[group.representative], root)
        if path:
            level = "warning" if phrases.is_loud(group) else "notice"
            where = f"{counted(len(group.members), 'case')} ({phrases.members_by_target(group, cases)})"
            place = phrases.place(group.origin_stage, group.pass_name)
            first = f"first in {place}; for example {group.representative}"
            yield replace(_annotation(path, level, group.title, f"{where}, {first}"), line=line)


def _annotation(path: str, level: str, title: str, message: str) -> Annotation:
    return Annotation(
        path=path,
        annotation_level=level,
        title=clean(title, limit=200),
        message=clean(message, limit=2000),
    )


def _place(run: Run, case: Case, root: str) -> tuple[str | None, int]:
    """Returns no path if the run names no file below `root`."""
    launch = run.launches.get(case.launches.head or case.launches.base or "")
    if launch is None:
        return None, 1
    return _repository_path(launch.source_path, root), max(launch.source_line, 1)


def _repository_path(text: str, root: str) -> str | None:
    path = PurePosixPath(text)
    if not path.parts or path.is_absolute() or ".." in path.parts or not path.as_posix().isprintable():
        return None
    return str(PurePosixPath(root) / path)[:1000]


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    commit: str
    name: str
    conclusion: Conclusion
    title: str
    summary: str
    """Markdown."""
    annotations: tuple[Annotation, ...]
    details_url: str | None


def publish(client: Client, check: CheckRun) -> str:
    """Falls back to a commit status. Returns which it published. Raises GithubError."""
    try:
        _publish_check(client, check)
    except ForbiddenError:
        _publish_status(client, check)
        return "status"
    return "check"


def _publish_check(client: Client, check: CheckRun) -> None:
    output: dict[str, Any] = {
        "title": clean(check.title, limit=200),
        "summary": check.summary[:_MAX_SUMMARY],
    }
    annotations = [_as_sent(annotation) for annotation in check.annotations]
    batches = [
        annotations[at : at + ANNOTATIONS_PER_REQUEST]
        for at in range(0, len(annotations), ANNOTATIONS_PER_REQUEST)
    ]
    request = {
        "name": check.name,
        "head_sha": check.commit,
        "status": "completed",
        "conclusion": check.conclusion.value,
        "output": {**output, "annotations": batches[0] if batches else []},
        **({"details_url": check.details_url} if check.details_url else {}),
    }
    answer = client.rest("POST", "/check-runs", request, to="publish a check")
    for batch in batches[1:]:  # each request adds its annotations to those before
        path = f"/check-runs/{int(answer['id'])}"
        client.rest("PATCH", path, {"output": {**output, "annotations": batch}}, to="annotate a check")


def _as_sent(annotation: Annotation) -> dict[str, Any]:
    fields = asdict(annotation)
    line = fields.pop("line")
    return {**fields, "start_line": line, "end_line": line}


def _publish_status(client: Client, check: CheckRun) -> None:
    # A status is a success or a failure, and changed code is no failure: its words ask for a look at it.
    words = f"to review: {check.title}" if check.conclusion is Conclusion.NEUTRAL else check.title
    request = {
        "state": "failure" if check.conclusion is Conclusion.FAILURE else "success",
        "description": clean(words, limit=_MAX_DESCRIPTION),
        "context": check.name,
        **({"target_url": check.details_url} if check.details_url else {}),
    }
    client.rest("POST", f"/statuses/{check.commit}", request, to="publish a commit status")
