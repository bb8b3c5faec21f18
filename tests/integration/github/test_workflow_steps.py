"""The steps of the workflows as scripts, from a bare clone of Triton to the posted comment.

Everything but GitHub's own services: checkout, cache and artifacts are stood in for by git and zip, `gh` by a
script that hands out the zip, the API by `fake_github`. The pull request comes from a fork.

The comments that come out are the ones in `reports/examples/`; `IRDIFF_EXAMPLES=1` (`make examples`) keeps them
there.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from checkouts import commit, edit, git
from fake_github import TOKEN, FakeGithub
from pytest_httpserver import HTTPServer

from irdiff.model import Verdict
from irdiff.run import run_folder
from tests import examples

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
EXAMPLE_WORKLOADS = ("elementwise/vector_add", "activation/rope", "normalization/softmax", "matmul/pointer")
NVIDIA = "third_party/nvidia/backend/compiler.py"
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


@dataclass(frozen=True)
class Step:
    name: str
    env: dict[str, str]
    script: str


def steps(path: Path) -> dict[str, Step]:
    """The named steps with a `run`, of a file written in the plain form of our templates."""
    found = {}
    for block in re.split(r"^ *- (?=name: |uses: )", path.read_text(), flags=re.MULTILINE)[1:]:
        name = re.match(r"name: (.*)", block)
        run = re.search(r"^( *)run: (?:\|\n((?:\1  .*\n|\n)+)|(.*)\n?)", block, re.MULTILINE)
        if not name or not run:
            continue
        lines = (run[2] or "").splitlines()
        script = "\n".join(line[len(run[1]) + 2 :] for line in lines) if run[2] else run[3]
        rows = re.search(r"^( *)env:\n((?:\1  .*\n)+)", block, re.MULTILINE)
        env = dict(re.findall(r"^ *(\w+): (.*)$", rows[2], re.MULTILINE)) if rows else {}
        found[name[1]] = Step(name[1], env, script)
    return found


class Job:
    """Runs steps as a runner does: its own shell each, expressions filled in where they stand in `env`."""

    def __init__(self, folder: Path, cwd: Path, context: dict[str, str], environment: dict[str, str]) -> None:
        self.temp = folder / "temp"
        self.temp.mkdir(parents=True)
        self.cwd = cwd
        self.context = {**context, "runner.temp": str(self.temp)}
        self.summary, self.output = folder / "summary", folder / "output"
        tools = folder / "bin"
        tools.mkdir()
        (tools / "python3").symlink_to(sys.executable)
        (tools / "irdiff").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m irdiff "$@"\n')
        (tools / "irdiff").chmod(0o755)
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        self.environment = {
            **kept,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            **environment,
        }
        self.tools = tools

    def run(self, step: Step, code: int = 0) -> str:
        assert "${{" not in step.script
        self.output.write_text("")
        env = {name: _EXPRESSION.sub(self._value, value.strip('"')) for name, value in step.env.items()}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step.script],
            cwd=self.cwd,
            env={**self.environment, **env},
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        assert done.returncode == code, f"{step.name}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())

    def _value(self, match: re.Match[str]) -> str:
        return self.context[match[1]]


@dataclass(frozen=True)
class Story:
    """A change to Triton, and what a reviewer is told."""

    name: str
    edited: tuple[str, str, str]
    verdict: str
    headline: str
    conclusion: str


STORIES = [
    Story(
        "changes-nothing",
        (NVIDIA, "class CUDAOptions:\n", "# The options of one kernel.\nclass CUDAOptions:\n"),
        "unchanged",
        r"no code changed in \d+ compared cases?",
        "success",
    ),
    Story(
        "changes-an-option",
        (NVIDIA, "num_warps: int = 4", "num_warps: int = 8"),
        "changed",
        r"\d+ of \d+ compared cases? changed in",
        "neutral",
    ),
    Story(
        "breaks-the-compiler",
        (NVIDIA, "        emuTF32", '        raise ValueError("unknown capability")\n        emuTF32'),
        "broken",
        r"\d+ cases? broken",
        "failure",
    ),
]


@pytest.fixture
def bare(irdiff, cache: Path, newest, tmp_path: Path) -> tuple[Path, Path]:
    """A bare clone of Triton's Python part with the release adopted for it, and the cache that knows it."""
    import checkouts

    from irdiff import config as configuration
    from irdiff.resolve.toolchains import checkout

    shared = (cache / "toolchains").resolve()
    (cache / "toolchains").unlink()
    (cache / "toolchains").mkdir()
    for path in shared.glob("triton-*"):
        (cache / "toolchains" / path.name).symlink_to(path)
    origin = tmp_path / "origin"
    checkouts.triton_checkout(origin, checkout.site_packages(newest, configuration.load()))
    done = irdiff("toolchain", "adopt", "HEAD", "triton==3.9.0", cwd=origin)
    assert done.code == 0, done.stderr
    git(tmp_path, "clone", "-q", "--bare", str(origin), str(tmp_path / "triton.git"))
    return tmp_path / "triton.git", cache


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A copy of a few workloads: enough for a comment that shows something."""
    for name in EXAMPLE_WORKLOADS:
        path = tmp_path / "corpus" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "corpus" / f"{name}.py", path)
    return tmp_path / "corpus"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_from_a_bare_clone_to_the_comment(
    story: Story, bare: tuple[Path, Path], tmp_path: Path, corpus: Path, httpserver: HTTPServer
) -> None:
    repository, cache = bare
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(repository), str(work))
    base = git(work, "rev-parse", "HEAD")
    git(work, "checkout", "-q", "-b", "branch")
    edit(work, *story.edited)
    head = commit(work, "The pull request")

    # irdiff-pr: the pull request's code, no token
    inputs = {
        "base": base,
        "head": head,
        "targets": "sm_90",
        "corpus": os.path.relpath(corpus, work),
        "tiers": "gate",
        "shard": "1/1",
        "budget": "300",
    }
    context = {"github.event.pull_request.base.sha": base, "github.event.pull_request.head.sha": head}
    context |= {f"inputs.{name}": value for name, value in inputs.items()}
    job = Job(tmp_path / "pr", work, context, {})
    (job.temp / "irdiff").symlink_to(cache)
    job.run(steps(ROOT / ".github/workflows/irdiff-pr.yml")["Where the pull request begins"])
    assert job.outputs() == {"base": base}
    action = steps(ROOT / ".github/actions/irdiff/action.yml")
    job.run(action["Cache key"])
    assert re.fullmatch("[0-9a-f]{32}", job.outputs()["toolchains"])
    job.run(action["Compare"])
    assert re.search(story.headline, job.summary.read_text().splitlines()[0])
    job.run(action["Outcome"])
    outputs = job.outputs()
    assert outputs["verdict"] == story.verdict
    assert json.loads(outputs["counts"])[story.verdict]
    packed = _zipped(Path(outputs["run"]), tmp_path / "artifact.zip")

    # irdiff-comment: trusted code, a token, and the run as data; the pull request is that of a fork
    hub = FakeGithub(httpserver, head=head)
    event = {
        "id": "1",
        "head_repository.owner.login": "fork",
        "head_branch": "branch",
        "head_sha": head,
        "html_url": "https://github.example/o/n/actions/runs/1",
    }
    context = {f"github.event.workflow_run.{name}": value for name, value in event.items()}
    environment = {"GITHUB_REPOSITORY": "o/n", "GITHUB_API_URL": httpserver.url_for("/api/v3")}
    second = Job(tmp_path / "comment", ROOT, {**context, "github.token": TOKEN}, environment)
    _stand_in_for_gh(second.tools / "gh", packed)
    workflow = steps(ROOT / ".github/workflows/irdiff-comment.yml")
    second.run(workflow["Download the run"])
    said = second.run(workflow["Comment"])
    assert said.startswith("check published\ncomment created: https://github.example/")
    assert TOKEN not in said
    (posted,) = hub.comments
    assert re.search(story.headline, posted.body)
    check = next(row["body"] for row in hub.requests if row["path"].endswith("/check-runs"))
    assert (check["conclusion"], check["head_sha"]) == (story.conclusion, head)

    # the same run again: nothing new to say
    shutil.rmtree(tmp_path / "comment" / "temp")
    (tmp_path / "comment" / "temp").mkdir()
    second.run(workflow["Download the run"])
    assert "comment unchanged" in second.run(workflow["Comment"])

    # what this repository shows of it
    example = examples.EXAMPLES / f"comment-{story.name}.md"
    text = posted.body.replace(f"{tmp_path}/pr/temp/", "")
    if os.environ.get("IRDIFF_EXAMPLES"):
        examples.keep(example, text)
    assert examples.settled(text) == examples.settled(examples.read(example)), "stale: `make examples`"


@pytest.mark.parametrize(("verdict", "passes"), [(Verdict.UNCHANGED, True), (Verdict.BROKEN, False)])
@pytest.mark.parametrize("workflow", ["irdiff-release", "irdiff-nightly"])
def test_shards_are_merged_reported_and_gated(
    tmp_path: Path, workflow: str, verdict: Verdict, passes: bool
) -> None:
    build = runpy.run_path(str(ROOT / "tests/unit/conftest.py"))["Build"]
    cases = [build.case(f"a/x:{n}@sm_90", verdict if n == 3 else Verdict.UNCHANGED) for n in range(24)]
    job = Job(tmp_path / "gate", ROOT, {}, {})
    for number in (1, 2):
        run = build.run(*cases[number - 1 :: 2])
        folder = job.temp / "shards" / f"irdiff-shard-{number}"
        folder.mkdir(parents=True)
        content = run_folder.dump(replace(run, options=replace(run.options, shard=(number, 2))))
        (folder / "run.json").write_bytes(content)
    found = steps(ROOT / f".github/workflows/{workflow}.yml")
    job.run(found["Merge"])
    job.run(found["Report"])
    said = job.run(found["Gate"], code=0 if passes else 1)
    job.run(found["Summary"])
    headline = "gate passes" if passes else "gate fails: 1 of "
    assert said.startswith(headline)
    assert job.summary.read_text().startswith(f"### {headline}")
    names = {path.name for path in (job.temp / "report").iterdir()}
    assert names == {"irdiff.html", "irdiff.md", "gate.md", "gate.json", "gate.xml", "gate.sarif"}


def _zipped(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return path


def _stand_in_for_gh(path: Path, packed: Path) -> None:
    """Answers the two calls of the workflow: the list of artifacts (through its `--jq`), and the zip."""
    path.write_text(f'#!/bin/sh\ncase "$2" in\n  */zip) cat "{packed}" ;;\n  *artifacts*) echo 5 ;;\nesac\n')
    path.chmod(0o755)
