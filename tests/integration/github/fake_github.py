"""A local server that behaves as the GitHub REST and GraphQL endpoints that irdiff uses."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from irdiff.github.api import Client

TOKEN = "ghs_verysecrettoken"
COMMIT = "a" * 40
LIMIT = 65_536


@dataclass
class Comment:
    number: int
    login: str
    body: str
    minimized: bool = False


@dataclass
class WorkflowRun:
    number: int
    head: str
    status: str = "completed"
    conclusion: str = "success"
    event: str = "pull_request"
    artifacts: list[Path] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class FakeGithub:
    """State and behaviour of one repository with one pull request."""

    server: HTTPServer
    comments: list[Comment] = field(default_factory=list)
    state: str = "OPEN"
    head: str = COMMIT
    others_at_head: list[int] = field(default_factory=list)
    """Other pull requests of the same commit."""
    may_comment: bool = True
    may_check: bool = True
    page_size: int = 100
    permissions: dict[str, str] = field(default_factory=dict)
    """What people may do, by login; anybody else may read."""
    runs: list[WorkflowRun] = field(default_factory=list)
    caches: list[dict[str, Any]] = field(default_factory=list)
    reruns: list[int] = field(default_factory=list)
    faults: list[Callable[[Request], Response | None]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.server.expect_request("/api/graphql").respond_with_handler(self._record(self._graphql))
        for method, path, answer in (
            ("POST", "/api/v3/repos/o/n/issues/7/comments", self._create),
            ("GET", "/api/v3/repos/o/n/pulls", self._pulls),
            ("POST", "/api/v3/repos/o/n/check-runs", self._check),
            ("PATCH", "/api/v3/repos/o/n/check-runs/5", self._check),
            ("POST", f"/api/v3/repos/o/n/statuses/{COMMIT}", self._ok),
            ("GET", "/api/v3/repos/o/n/pulls/7", self._pull),
            ("GET", "/api/v3/repos/o/n/actions/workflows/irdiff-pr.yml/runs", self._workflow_runs),
            ("GET", "/api/v3/repos/o/n/actions/workflows/irdiff-nightly.yml/runs", self._workflow_runs),
            ("GET", "/api/v3/repos/o/n/actions/caches", self._caches),
        ):
            self.server.expect_request(path, method=method).respond_with_handler(self._record(answer))
        for method, pattern, answer in (
            ("GET", r"actions/runs/\d+/artifacts", self._artifacts),
            ("GET", r"actions/runs/\d+/jobs", self._jobs),
            ("GET", r"actions/artifacts/\d+/zip", self._zip),
            ("POST", r"actions/runs/\d+/rerun", self._rerun),
            ("DELETE", r"actions/caches/\d+", self._remove_cache),
            ("GET", r"collaborators/[^/]+/permission", self._permission),
            ("POST", r"issues/comments/\d+/reactions", self._ok),
        ):
            path = re.compile(f"/api/v3/repos/o/n/{pattern}")
            self.server.expect_request(path, method=method).respond_with_handler(self._record(answer))
        self.server.expect_request(re.compile(r"/storage/\d+")).respond_with_handler(self._stored)
        comments = re.compile(r"/api/v3/repos/o/n/issues/comments/\d+")
        self.server.expect_request(comments, method="PATCH").respond_with_handler(self._record(self._update))

    def client(self, token=TOKEN):
        client = Client(token, "o/n", api_url=self.server.url_for("/api/v3"), write_pause_s=0.0)
        client.sleep, client.now = self.slept.append, lambda: 1000.0
        return client

    def add(self, body, login="github-actions", minimized=False):
        added = Comment(number=len(self.comments) + 1, login=login, body=body, minimized=minimized)
        self.comments.append(added)
        return added

    def _record(self, answer):
        def handler(request):
            assert request.headers["Authorization"] == f"token {TOKEN}" or self.head == "bad-token"
            row = {"method": request.method, "path": request.path, "query": dict(request.args)}
            self.requests.append({**row, "body": request.get_json(silent=True)})
            if self.faults and (fault := self.faults.pop(0)(request)) is not None:
                return fault
            return answer(request)

        return handler

    def _graphql(self, request):
        sent = request.get_json()
        if "minimizeComment" in sent["query"]:
            number = int(sent["variables"]["id"].removeprefix("IC_"))
            self.comments[number - 1].minimized = True
            return answer_json({"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}})
        start = int(sent["variables"]["after"] or 0)
        end = start + self.page_size
        nodes = [
            {"id": f"IC_{row.number}", "databaseId": row.number, "body": row.body, "isMinimized": row.minimized,
             "author": {"login": row.login} if row.login else None}
            for row in self.comments[start:end]
        ]  # fmt: skip
        page = {"hasNextPage": end < len(self.comments), "endCursor": str(end)}
        pull = {"state": self.state, "headRefOid": self.head, "comments": {"pageInfo": page, "nodes": nodes}}
        found = pull if sent["variables"]["number"] == 7 else None
        errors = {} if found else {"errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}]}
        data = {"viewer": {"login": "github-actions[bot]"}, "repository": {"pullRequest": found}}
        return answer_json({"data": data, **errors})

    def _create(self, request):
        return self._write(request, self.add, 201)

    def _update(self, request):
        row = self.comments[int(request.path.rpartition("/")[2]) - 1]

        def change(body):
            row.body = body
            return row

        return self._write(request, change, 200)

    def _write(self, request, change, status):
        if not self.may_comment:
            return answer_json({"message": "Resource not accessible by integration"}, 403)
        body = request.get_json()["body"]
        if len(body) > LIMIT:
            error = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
            error |= {"message": "Body is too long (maximum is 65536 characters)"}
            return answer_json({"message": "Validation Failed", "errors": [error]}, 422)
        row = change(body)
        url = f"https://github.example/o/n/pull/7#issuecomment-{row.number}"
        return answer_json({"id": row.number, "html_url": url}, status)

    def _pulls(self, request):
        rows = [{"number": 6, "head": {"sha": "b" * 40}}, {"number": 7, "head": {"sha": self.head}}]
        rows += [{"number": number, "head": {"sha": self.head}} for number in self.others_at_head]
        return answer_json(rows if request.args["head"] == "fork:branch" else [])

    def _check(self, request):
        if not self.may_check:
            return answer_json({"message": "You must authenticate via a GitHub App."}, 403)
        if len(request.get_json()["output"]["annotations"]) > 50:
            return answer_json({"message": "Invalid request. No more than 50 items are allowed"}, 422)
        return answer_json({"id": 5}, 201)

    def _ok(self, request):
        return answer_json({}, 201)

    # actions

    def _pull(self, request):
        return answer_json({"number": 7, "state": self.state.lower(), "head": {"sha": self.head}})

    def _workflow_runs(self, request):
        rows = [
            {"id": run.number, "run_number": n, "status": run.status, "conclusion": run.conclusion,
             "html_url": f"https://github.example/o/n/actions/runs/{run.number}", "event": run.event}
            for n, run in enumerate(self.runs)
            if run.head == request.args.get("head_sha", run.head)
        ]  # fmt: skip
        return answer_json({"workflow_runs": rows})

    def _run_of(self, request):
        number = int(request.path.split("/runs/")[1].split("/")[0])
        return [run for run in self.runs if run.number == number][-1]

    def _artifacts(self, request):
        run = self._run_of(request)
        rows = [
            {"id": run.number * 10 + n, "name": path.stem, "size_in_bytes": path.stat().st_size, "expired": False}
            for n, path in enumerate(run.artifacts)
            if path.stem == request.args["name"]
        ]  # fmt: skip
        return answer_json({"artifacts": rows})

    def _zip(self, request):
        place = self.server.url_for(f"/storage/{request.path.split('/')[-2]}")
        return Response(status=302, headers={"Location": f"{place}?sig=x"})

    def _stored(self, request):
        assert "Authorization" not in request.headers, "the token went to another host"
        number, place = divmod(int(request.path.rpartition("/")[2]), 10)
        run = [run for run in self.runs if run.number == number][-1]
        return Response(run.artifacts[place].read_bytes(), content_type="application/zip")

    def _jobs(self, request):
        return answer_json({"jobs": self._run_of(request).jobs})

    def _rerun(self, request):
        self.reruns.append(self._run_of(request).number)
        return answer_json({}, 201)

    def _caches(self, request):
        rows = [row for row in self.caches if row["key"].startswith(request.args["key"])]
        return answer_json({"actions_caches": rows})

    def _remove_cache(self, request):
        number = int(request.path.rpartition("/")[2])
        self.caches = [row for row in self.caches if row["id"] != number]
        return Response(status=204)

    def _permission(self, request):
        login = request.path.split("/")[-2]
        return answer_json({"permission": self.permissions.get(login, "read")})


def counted(run):
    return f"({len(run[0])} characters)"


def answer_json(rows, status=200, **headers):
    return Response(json.dumps(rows), status, headers, content_type="application/json")
