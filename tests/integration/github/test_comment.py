"""The comment flow end to end against a local server that behaves as the GitHub endpoints used do.

The requests of the whole story are recorded in `tests/golden/github/requests.json`: set
`IRDIFF_UPDATE_GOLDEN=1` to write them anew, and read the difference.
"""

import json
import re

import pytest
from werkzeug import Response

from irdiff.cli.comment_command import comment_command
from irdiff.errors import ExitCode, UsageError
from irdiff.github import checks, comment
from irdiff.github.api import Client, ForbiddenError, GithubError, GithubUnreachableError
from irdiff.github.comment import Done
from tests.integration.github.fake_github import COMMIT, LIMIT, TOKEN, FakeGithub, answer_json, counted
from tests.unit import runs
from tests.unit.golden import recorded
from tests.unit.typed import typed


def _answer(message, status, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: Response(
        json.dumps({"message": message}), status, named, content_type="application/json"
    )


@pytest.fixture
def hub(httpserver):
    yield FakeGithub(httpserver)
    httpserver.check_assertions()


def _post(hub, text="report", **more):
    return comment.post(hub.client(), 7, lambda limit: text[:limit], **more)


def test_the_whole_story_as_recorded(hub):
    story = {}

    def chapter(title, tell):
        hub.requests.clear()
        tell()
        story[title] = json.loads(re.sub(r"x{1000,}", counted, json.dumps(hub.requests)))

    def says(text, done, minimized=0):
        def tell():
            posted = _post(hub, text, commit=COMMIT)
            assert (posted.done, posted.minimized) == (done, minimized)
            if done is Done.CREATED:
                assert posted.url == "https://github.example/o/n/pull/7#issuecomment-1"

        return tell

    def forbidden():
        with pytest.raises(
            ForbiddenError, match="may not update the comment in o/n: Resource not accessible"
        ):
            _post(hub, "### irdiff: 5 cases changed", commit=COMMIT)

    chapter("create", says("### irdiff: None of 5 kernels changed.", Done.CREATED))
    chapter("update", says("### irdiff: 3 cases changed", Done.UPDATED))
    chapter("nothing new", says("### irdiff: 3 cases changed", Done.UNCHANGED))
    hub.add(comment.body("default", "written by a run at the same time", ""))
    chapter("minimize", says("### irdiff: 4 cases changed", Done.UPDATED, minimized=1))
    hub.faults = [lambda request: None, _answer("Body is too long", 422)]
    chapter("too long", says("x" * 29_990, Done.UPDATED))
    hub.may_comment = False
    chapter("no permission", forbidden)
    assert [row.minimized for row in hub.comments] == [True, False]
    assert TOKEN not in json.dumps(story)
    recorded("github/requests.json", json.dumps(story, indent=1, sort_keys=True) + "\n")


def test_only_our_own_comment_is_touched(hub):
    mark = comment.marker("default")
    hub.add(f"{mark}\nnot yours", login="octocat")
    hub.add(f"{mark}\nof a deleted account", login="")
    hub.add(f"quoting {mark}")
    hub.add(f"{comment.marker('other')}\nof another key")
    hub.add(f"{mark}\nhidden by a maintainer", minimized=True)
    before = [row.body for row in hub.comments]
    assert _post(hub).done is Done.CREATED
    assert [row.body for row in hub.comments[:5]] == before
    assert _post(hub, "newer").done is Done.UPDATED
    assert len(hub.comments) == 6


def test_the_comment_is_found_on_a_later_page(hub):
    for n in range(250):
        hub.add(f"comment {n}", login="octocat")
    hub.add(f"{comment.marker('default')}\nold")
    assert _post(hub).done is Done.UPDATED
    assert [row["body"]["variables"]["after"] for row in hub.requests[:3]] == [None, "100", "200"]


@pytest.mark.parametrize(
    ("state", "head", "done"), [("MERGED", COMMIT, Done.CLOSED), ("OPEN", "b" * 40, Done.MOVED_ON)]
)
def test_a_closed_pull_request_and_a_newer_run_are_left_alone(hub, state, head, done):
    hub.state, hub.head = state, head
    assert _post(hub, commit=COMMIT).done is done
    assert not hub.comments


def _page(request):
    return Response("<html>502</html>", 502)


LIMIT_OF_GRAPHQL = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}
RESET = {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "1042"}
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
SECONDS = {"Retry_After": "17"}


@pytest.mark.parametrize(
    ("faults", "slept"),
    [
        ([_answer(SECONDARY, 403, **SECONDS), _answer(SECONDARY, 403), _answer("too many", 429)], [17.0, 120.0, 240.0]),
        ([_answer("API rate limit exceeded", 403, **RESET)], [42.0]),
        ([lambda r: answer_json(LIMIT_OF_GRAPHQL)], [60.0]),
        ([_page, _page], [2.0, 4.0]),
    ],
    ids=["secondary limit", "limit", "limit of GraphQL", "bad gateway"],
)  # fmt: skip
def test_what_passes_is_waited_for(hub, faults, slept):
    hub.faults = list(faults)
    assert _post(hub).done is Done.CREATED
    assert hub.slept == slept


def test_a_comment_that_may_have_been_written_is_looked_for_first(hub):
    def written_and_lost(request):
        hub.add(request.get_json()["body"])
        return _page(request)

    hub.faults = [lambda request: None, written_and_lost]
    assert _post(hub).done is Done.UNCHANGED
    assert len(hub.comments) == 1


@pytest.mark.parametrize(
    ("faults", "code", "says", "times"),
    [
        ([_answer("slow down", 403, Retry_After="7200")], ExitCode.NOT_COMPARED, "slow down", 0),
        ([_answer("unicorn", 503)] * 10, ExitCode.NOT_COMPARED, "after 5 attempts: status 503: unicorn", 4),
        ([_answer(f"Bad credentials {TOKEN}", 401)], ExitCode.USAGE, "does not accept the token", 0),
        ([_answer(f"no {TOKEN}\x1b[2J", 400)], ExitCode.USAGE, r"no \*\*\*", 0),
    ],
    ids=["limit of hours", "never an answer", "wrong token", "hostile answer"],
)
def test_what_does_not_pass_is_one_clear_error_without_the_token(hub, faults, code, says, times):
    hub.faults = faults
    with pytest.raises(GithubError, match=says) as caught:
        _post(hub)
    assert caught.value.exit_code is code
    assert TOKEN not in str(caught.value) and "\x1b" not in str(caught.value)
    assert len(hub.slept) == times


def test_no_network_and_no_pull_request_are_one_clear_error(hub):
    client = Client(TOKEN, "o/n", api_url="http://127.0.0.1:9/api/v3")
    client.sleep = hub.slept.append
    with pytest.raises(GithubUnreachableError, match="ConnectionError") as caught:
        comment.post(client, 7, lambda limit: "x")
    assert TOKEN not in str(caught.value)
    with pytest.raises(GithubError, match="has no such thing"):
        comment.post(hub.client(), 8, lambda limit: "x")


def test_a_report_is_made_shorter_until_it_fits(hub):
    asked = []

    def render(limit):
        asked.append(limit)
        return "x" * (LIMIT if limit > 2_000 else limit)

    assert comment.post(hub.client(), 7, render).done is Done.CREATED
    assert asked == [8_000, 4_000, 2_000]
    hub.comments.clear()
    with pytest.raises(GithubError, match="not even a short one"):
        comment.post(hub.client(), 7, lambda limit: "x" * LIMIT)


def test_hostile_names_are_refused():
    """A key cannot end its marker, a token goes nowhere in the clear, a repository is an owner and a name."""
    urls = [
        "http://github.com/api/v3",
        "ftp://x",
        "https://user:pw@host/api",
        "https://",
        "file:///etc/passwd",
    ]
    tries = [lambda key=key: comment.marker(key) for key in ("", "-->", "a b", "x" * 50, "A")]
    tries += [lambda url=url: Client(TOKEN, "o/n", api_url=url) for url in urls]
    names = ("", "o", "o/", "/n", "o/n/x", "o/n?x", "o/../x")
    tries += [lambda name=name: Client(TOKEN, name) for name in names]
    for wrong in tries:
        with pytest.raises(UsageError):
            wrong()


def test_the_pull_request_of_a_fork_is_found_by_its_branch(hub):
    assert comment.find_pull_requests(hub.client(), "fork:branch", COMMIT) == [7]
    assert not comment.find_pull_requests(hub.client(), "fork:branch", "c" * 40)
    assert not comment.find_pull_requests(hub.client(), "fork:other", COMMIT)


def test_pull_requests_that_share_their_commit_get_no_comment(hub, httpserver, monkeypatch, tmp_path):
    hub.others_at_head = [8]
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", httpserver.url_for("/api/v3"))
    folder = runs.saved(tmp_path / "run", runs.run())
    place = ("--repo", "o/n", "--pr-head", "fork:branch", "--commit", COMMIT)
    _, said = typed(comment_command, folder, *place)
    assert "no comment: #7, #8 have the same commit" in said
    assert not hub.comments


def _check(count):
    row = checks.Annotation(path="corpus/a.py", annotation_level="notice", title="t", message="m")
    words = {"name": "irdiff", "title": "3 of 9 kernels changed.", "summary": "summary", "commit": COMMIT}
    more = {"conclusion": checks.Conclusion.NEUTRAL, "details_url": "https://github.example/run/1"}
    return checks.CheckRun(annotations=(row,) * count, **words, **more)


def test_annotations_go_fifty_at_a_time(hub):
    assert checks.publish(hub.client(), _check(120)) == "check"
    counts = [(row["method"], len(row["body"]["output"]["annotations"])) for row in hub.requests]
    assert counts == [("POST", 50), ("PATCH", 50), ("PATCH", 20)]


def test_a_status_stands_in_where_checks_are_not_allowed(hub):
    hub.may_check = False
    assert checks.publish(hub.client(), _check(1)) == "status"
    where = {"context": "irdiff", "target_url": "https://github.example/run/1"}
    said = {"state": "success", "description": "to review: 3 of 9 kernels changed."}
    assert hub.requests[-1]["body"] == {**where, **said}
