"""`irdiff github fetch` against a server that answers as GitHub does: what a comparison kept, or why it kept nothing."""

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli import github_commands
from irdiff.errors import UsageError
from irdiff.run import failure
from tests.integration.github.fake_github import COMMIT, TOKEN, FakeGithub, WorkflowRun

FAILED = {"name": "What was asked for", "conclusion": "failure"}
PLAN = {"name": "plan", "conclusion": "failure", "steps": [FAILED]}
KEPT = {"schema": "irdiff-failure/1", "parts": [vars(failure.NOTHING_KEPT)]}
DONE = {"name": "compare (1)", "conclusion": "success", "steps": []}


@pytest.fixture
def hub(httpserver, monkeypatch):
    values = {"TOKEN": TOKEN, "REPOSITORY": "o/n", "API_URL": httpserver.url_for("/api/v3")}
    for name, value in values.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    return FakeGithub(httpserver)


def _fetched(out, *words):
    words = (*words, "--out", str(out))
    done = CliRunner().invoke(github_commands.fetch_command, words, standalone_mode=False)
    if done.exception:
        raise done.exception
    return {path.name for path in out.iterdir()}


def _zip(place, files):
    with zipfile.ZipFile(place, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return place


def test_a_run_is_unpacked_and_nothing_else(hub, tmp_path):
    kept = _zip(tmp_path / "irdiff-run.zip", {"run.json": b"{}", "evil.sh": b"rm"})
    hub.runs = [WorkflowRun(number=5, head=COMMIT, artifacts=[tmp_path / "other.zip", kept])]
    (tmp_path / "other.zip").write_bytes(b"")
    assert _fetched(tmp_path / "a", "--run", "5") == {"run.json"}
    assert _fetched(tmp_path / "b", "--commit", COMMIT) == {"run.json"}
    assert not [row for row in hub.requests if "storage" in row["path"]], "the token stays with GitHub"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (None, "job plan"),
        ({"failure.json": json.dumps(KEPT).encode()}, "job plan"),
        ({"../run.json": b"{}"}, "reading the run"),
        ({"readme": b""}, "reading the run"),
    ],
)
def test_the_reason_is_kept_where_there_is_no_run(hub, tmp_path, files, told):
    artifacts = [_zip(tmp_path / "irdiff-run.zip", files)] if files else []
    kept = {"artifacts": artifacts, "jobs": [PLAN, DONE]}
    hub.runs = [WorkflowRun(number=5, head=COMMIT, conclusion="failure", **kept)]
    assert _fetched(tmp_path / "out", "--run", "5") == {"failure.json"}
    (part,) = failure.load(tmp_path / "out")
    assert part.step == told
    if told == "job plan":
        assert part.lines == ("failed in the step: What was asked for",)


def test_a_comparison_that_is_on_its_way_is_waited_for(hub, tmp_path):
    hub.runs = [WorkflowRun(number=5, head=COMMIT, status="in_progress")]
    for commit in (COMMIT, "b" * 40):
        with pytest.raises(UsageError, match="no finished comparison"):
            _fetched(tmp_path / "out", "--commit", commit)


def test_a_night_goes_on_with_the_history_of_the_night_before(hub, tmp_path, monkeypatch):
    """A night that kept none is passed over, and so is whatever a pull request keeps under the same name."""

    def asked():
        words = ["--branch", "main"]
        done = CliRunner().invoke(github_commands.history_command, words, standalone_mode=False)
        assert done.exception is None
        return done.stdout

    monkeypatch.chdir(tmp_path)
    assert asked() == "irdiff-history.duckdb: new\n" and not Path("irdiff-history.duckdb").exists()
    for number, event in ((1, "schedule"), (2, "workflow_dispatch"), (3, "schedule"), (4, "pull_request")):
        (tmp_path / str(number)).mkdir()
        kept = _zip(tmp_path / str(number) / "irdiff-history.zip", {"irdiff-history.duckdb": b"%d" % number})
        artifacts = [kept] if number != 3 else []
        hub.runs.append(WorkflowRun(number=number, head=COMMIT, event=event, artifacts=artifacts))
    assert asked() == "irdiff-history.duckdb: of the run 2\n"
    assert Path("irdiff-history.duckdb").read_bytes() == b"2"
    assert all(row["query"]["branch"] == "main" for row in hub.requests if "workflows" in row["path"])
