import re
from pathlib import Path

import pytest

from irdiff.cli.init_command import init_command
from irdiff.errors import UsageError
from irdiff.gate import policy
from irdiff.github import workflows
from irdiff.resolve import kernel_repository
from tests.programs.rendered_workflows import KINDS, ROOT, TEMPLATES
from tests.unit.typed import typed

ACTION = KINDS["kernels"].action
FILES = {
    f"{kind} {path}": content
    for kind, wanted in KINDS.items()
    for path, content in workflows.rendered(TEMPLATES, wanted).items()
}
TABLE = dict(
    re.findall(r"^\| `(irdiff-\w+)` \|.*\|(.*)\|.*\|$", (TEMPLATES / "README.md").read_text(), re.MULTILINE)
)
"""What a job of each workflow may do, as README.md says it."""


def _init(*arguments):
    return typed(init_command, *arguments)[1]


def _jobs(content):
    return re.split(r"^  (?=[a-z]+:\n)", content[content.index("\njobs:") :], flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("path", FILES)
def test_no_job_has_more_than_it_says(path):
    content = FILES[path]
    assert "\npermissions: {}\n" in content
    granted = set(re.findall(r"^ {6}([\w-]+: (?:read|write))\b", content, re.MULTILINE))
    assert granted == set(re.findall(r"`([\w-]+: \w+)`", TABLE[Path(path).stem]))
    assert "secrets." not in content
    for job in _jobs(content):
        assert re.search(r"^    permissions:", job, re.MULTILINE), job
        assert "persist-credentials: true" not in job
        assert job.count("actions/checkout@") == job.count("persist-credentials: false")


@pytest.mark.parametrize("path", FILES)
def test_what_may_write_neither_checks_out_nor_installs_by_name(path):
    """Everything but irdiff's own action could bring code of a pull request, or of somebody who took a name."""
    for job in _jobs(FILES[path]):
        if ": write" not in job:
            continue
        if "nightly" not in path:  # which is of the default branch alone
            assert "actions/checkout" not in job
            assert "actions/cache" not in job
        assert not re.search(r"\b(pip|uv|npm|apt-get|curl|wget)\b", job), job


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-history.txt"])
def test_what_is_installed_is_installed_by_hash(file):
    script = (ROOT / ".github/actions/install/install.sh").read_text()
    *by_name, own = [line for line in script.splitlines() if " install " in line or '"${uv[@]}"' in line]
    by_name = [line for line in by_name if not line.startswith("uv=")]
    assert len(by_name) == 2
    for line in by_name:
        assert "--require-hashes --only-binary :all: --requirement" in line
    assert {"--no-deps", "--no-index", "--no-build-isolation"} <= set(own.split())
    wanted = (ROOT / ".github/actions/install" / file).read_text()
    names = re.findall(r"^([\w.-]+)==\S+.*\\$", wanted, re.MULTILINE)
    assert len(names) == len(re.findall(r"^\S", wanted, re.MULTILINE))
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", wanted)) >= len(names)
    locked = (ROOT / "requirements.lock").read_text()
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", wanted, re.MULTILINE):
        if f"\n{name}==" in f"\n{locked}":
            assert f"\n{name}=={version} " in f"\n{locked}", "make lock"


def test_a_job_that_runs_the_pull_request_has_no_token():
    content = FILES["kernels .github/workflows/irdiff-pr.yml"]
    plan, *others = _jobs(content)
    assert all("github.token" not in job for job in others)
    assert "irdiff compare" not in plan, "the job with a token that reads runs no code of the pull request"
    assert "actions/irdiff@" not in plan


def test_the_pull_request_never_runs_where_the_default_branch_is_trusted():
    """`issue_comment`, `pull_request_target` and `workflow_run` write into the caches of the default branch."""
    for path, content in FILES.items():
        if re.search(r"^  (issue_comment|pull_request_target|workflow_run):", content, re.MULTILINE):
            assert "actions/checkout" not in content, path
            assert "actions/irdiff@" not in content, path
            assert "irdiff compare" not in re.sub("#.*", "", content), path


def test_the_gpu_host_checks_out_nothing():
    content = FILES["kernels .github/workflows/irdiff-time.yml"]
    job = next(job for job in _jobs(content) if job.startswith("time:"))
    assert "permissions: {}" in job
    assert "checkout" not in job
    assert "TOKEN" not in job


def test_init_writes_everything_once(tmp_path):
    (tmp_path / "kernels.py").write_text("import triton\n\n\n@triton.jit\ndef k():\n    pass\n")
    said = _init(tmp_path, "--github", "--action", ACTION)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    names = {f".github/workflows/{name}.yml" for name in workflows.NAMES if name != "irdiff-time"}
    assert written == {"kernels.py", "irdiff.toml", "irdiff-policy.toml", *names}
    assert policy.load(tmp_path / "irdiff-policy.toml").rule
    assert kernel_repository.parse_plan((tmp_path / "irdiff.toml").read_bytes(), "").workloads
    assert f"The jobs run {ACTION}. What you must still do:" in said
    assert "irdiff-gpu" not in said
    asked = _init(tmp_path, "--github", "--action", ACTION, "--time")
    assert (tmp_path / ".github/workflows/irdiff-time.yml").is_file()
    assert "1. Before you commit: runners (self-hosted, gpu), and an environment irdiff-gpu" in asked
    assert "shard: [1]" in (tmp_path / ".github/workflows/irdiff-pr.yml").read_text()
    _init(tmp_path, "--github", "--action", ACTION)
    changed = tmp_path / ".github/workflows/irdiff-pr.yml"
    changed.write_text("mine")
    with pytest.raises(UsageError, match="is there and differs"):
        _init(tmp_path, "--github", "--action", ACTION)
    assert changed.read_text() == "mine"
    _init(tmp_path, "--github", "--action", ACTION, "--force", "--shards", "3")
    assert "shard: [1, 2, 3]" in changed.read_text()


@pytest.mark.parametrize(
    "action",
    ["irdiff", "o/n@v1", "o/n@" + "a" * 39, f"o/n@{'a' * 40}\n", f"$(id)/n@{'a' * 40}", f"o/n/x@{'a' * 40}"],
)
def test_an_action_is_a_repository_and_a_whole_commit(tmp_path, action):
    with pytest.raises(UsageError, match="is not OWNER/NAME@COMMIT"):
        _init(tmp_path, "--github", "--action", action)
