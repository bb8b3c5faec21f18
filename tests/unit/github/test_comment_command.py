import pytest
from click.testing import CliRunner

from irdiff.cli.comment_command import comment_command
from irdiff.errors import UsageError
from irdiff.github.comment import marker
from irdiff.model import Verdict
from irdiff.run import run_folder
from tests.unit import runs

PLACE = ("--repo", "o/n", "--pr", "7")
COMMIT = "a" * 40


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_REPOSITORY", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path):
    case = runs.case("a/x<img>@octocat:1@sm_90", Verdict.BROKEN)
    (tmp_path / "run.json").write_bytes(run_folder.dump(runs.run(case)))
    return tmp_path


def _invoke(*arguments):
    result = CliRunner().invoke(comment_command, [str(a) for a in arguments], standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.output


def test_a_dry_run_prints_the_comment_and_needs_no_token(folder):
    more = ("--commit", COMMIT, "--url", "https://github.example/run/(1)", "--check")
    output = _invoke(folder, *PLACE, *more, "--dry-run")
    assert output.startswith("would write to pull request 7 of o/n, ")
    assert "would publish a check: failure, 1 annotations" in output
    assert marker("default") in output
    assert "`a/x<img>@octocat:1@sm_90`" in output
    assert output.count("<img>") == output.count("`a/x<img>@octocat:1@sm_90`")
    assert "`aaaaaaaaaaaa`" in output
    assert "(https://github.example/run/%281%29)" in output


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (("--pr", 7), "no repository"),
        ((*PLACE, "--pr-head", "o:b"), "either --pr"),
        (("--repo", "o/n", "--pr-head", "o:b"), "need --commit"),
        ((*PLACE, "--commit", "abc"), "not a full commit"),
        ((*PLACE, "--url", "javascript:alert(1)"), "not an https link"),
        ((*PLACE, "--key", "-->"), "comment key"),
        (PLACE, "no token"),
    ],
)
def test_a_mistake_is_named(folder, arguments, pattern):
    with pytest.raises(UsageError, match=pattern):
        _invoke(folder, *arguments)
