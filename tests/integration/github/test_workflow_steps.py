"""The workflows of `irdiff init --github`, run for real: from a push to the comment, every step of every job.

GitHub itself is stood in for by `tests/workflow_runner` (events, expressions, jobs, checkouts, caches, artifacts) and
`fake_github` (its API). Each job is a machine of its own: an empty HOME, a new Python, irdiff installed from the
action's commit by hash, nothing in the environment but what GitHub sets. Toolchains are linked in, and the
digests of their files, since a release is a gigabyte; the pull requests come from a fork.

The comments that come out are the ones in `reports/examples/`; `IRDIFF_EXAMPLES=1` (`make examples`) keeps them there.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from irdiff.github import comment_commands
from irdiff.model import Verdict
from tests.integration.github.fake_github import FakeGithub, WorkflowRun
from tests.programs import examples
from tests.programs.checkouts import NVIDIA, SQUARE, commit, edit, git, new_repository, triton_checkout, write
from tests.programs.rendered_workflows import KINDS, TEMPLATES
from tests.unit import runs
from tests.unit.golden import golden
from tests.workflow_runner.runner import TOKEN, Event, Machine
from tests.workflow_runner.services import DEFAULT, Artifacts

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[3]
ACTION = KINDS["kernels"].action
MERGE = "refs/pull/7/merge"
JOBS = ("plan", "toolchains", "compare", "finish")


@dataclass
class Project:
    """A repository on GitHub with one pull request, number 7, from a fork."""

    hub: FakeGithub
    machine: Machine
    work: Path
    """Somebody's clone, with the branch of the pull request."""
    base: str = ""
    head: str = ""

    def push(self, message, files=None):
        """A commit to the pull request's branch; GitHub makes the merge that its workflows check out."""
        write(self.work, files or {})
        self.head = commit(self.work, message)
        self.base = git(self.work, "rev-parse", "origin/main")
        git(self.work, "push", "-q", "--force", "origin", "HEAD:refs/pull/7/head", f"HEAD:{MERGE}")
        self.hub.head = self.head

    def start(self, workflow, name, ref, payload, **more):
        """As GitHub starts it: `pull_request` by the file of the merge, everything else by the default branch's."""
        where = ref if name == "pull_request" else DEFAULT
        path = f"{where}:.github/workflows/{workflow}.yml"
        text = git(self.work, "--git-dir", str(self.machine.origin), "show", path)
        return self.machine.run(workflow, text, Event(name, ref, self.head, payload), **more)

    def compare(self, action="synchronize", number=None, **more):
        pull = {"number": 7, "base": {"sha": self.base}, "head": {"sha": self.head}, "labels": []}
        payload = {"action": action, "pull_request": pull, **more}
        done = self.start("irdiff-pr", "pull_request", MERGE, payload, number=number)
        kept = [done.artifacts.place(name) for name in done.artifacts.names()]
        jobs = [{"name": name, "conclusion": result} for name, result in done.jobs.items()]
        run = WorkflowRun(done.number, self.head, conclusion=done.conclusion, artifacts=kept, jobs=jobs)
        self.hub.runs.append(run)
        return done

    def comment(self, done):
        fork = {"full_name": "fork/n", "owner": {"login": "fork"}}
        head = {"head_repository": fork, "head_branch": "branch", "head_sha": self.head}
        url = f"https://github.example/o/n/actions/runs/{done.number}"
        event = {"id": done.number, "event": "pull_request", "conclusion": done.conclusion, "html_url": url}
        return self.start("irdiff-comment", "workflow_run", DEFAULT, {"workflow_run": event | head})

    def says(self, login, body):
        comment = {"id": 99, "body": body, "user": {"login": login}}
        payload = {"action": "created", "issue": {"number": 7, "pull_request": {}}, "comment": comment}
        return self.start("irdiff-command", "issue_comment", DEFAULT, payload)

    def report(self):
        """The comment that irdiff keeps up to date."""
        mark = "<!-- irdiff:comment:default"
        (found,) = [row.body for row in self.hub.comments if row.body.startswith(mark)]
        return found

    def check(self):
        return [row["body"] for row in self.hub.requests if row["path"].endswith("/check-runs")][-1]


@pytest.fixture
def hub(httpserver):
    return FakeGithub(httpserver, permissions={"maintainer": "write", "admin": "admin", "visitor": "read"})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Of all machines here: irdiff is installed in the first of them."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture
def project(tmp_path, place, hub, httpserver, shared_cache):
    """Makes a project of a repository whose `main` is what its clones see."""

    def make(source, more=lambda temp: None):
        origin, work = tmp_path / "origin.git", tmp_path / "work"
        git(tmp_path, "clone", "-q", "--bare", str(source), str(origin))
        git(tmp_path, "clone", "-q", str(origin), str(work))

        def prepare(temp):
            (temp / "irdiff" / "toolchains").mkdir(parents=True)
            for path in (shared_cache / "toolchains").glob("triton-3.[89].0-*"):
                (temp / "irdiff" / "toolchains" / path.name).symlink_to(path.resolve())
            (temp / "irdiff" / "digests").symlink_to((shared_cache / "digests").resolve())
            more(temp / "irdiff")

        api_url = httpserver.url_for("/api/v3")
        machine = Machine(tmp_path / "github", place, origin, api_url, prepare=prepare)
        return Project(hub=hub, machine=machine, work=work)

    return make


def typed(cwd, *words):
    """A command of a person, as the README has it; its output."""
    command = [sys.executable, "-m", "irdiff", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def kernels(tmp_path):
    source = new_repository(tmp_path / "kernels")
    write(source, {**SQUARE, "requirements.txt": "triton==3.9.0\n"})
    commit(source, "Kernels")
    return source


def test_a_maintainer_sets_up_ci(project, kernels):
    """The first hour of a maintainer: two commands, then pull requests of each kind."""
    ours = project(kernels)
    assert "wrote irdiff.toml" in typed(ours.work, "init", "--github", "--action", ACTION)
    commit(ours.work, "Set up irdiff")
    git(ours.work, "push", "-q", "origin", "HEAD:main")
    git(ours.work, "fetch", "-q", "origin")
    git(ours.work, "checkout", "-q", "-b", "branch")

    # a kernel changes: every job runs, and the comment says what
    edit(ours.work, "mykernels.py", "x * x", "x * x + 1.0")
    ours.push("Another function <!-- $(id) `id` -->")
    done = ours.compare("opened")
    assert done.jobs == dict.fromkeys(JOBS, "success"), done.log
    assert ours.comment(done).conclusion == "success"
    assert re.search(r"4 of 4 cases changed", ours.report().splitlines()[1]), ours.report()
    assert ours.check()["conclusion"] == "neutral"
    saved = {(scope, re.sub("-Linux.*", "", key)) for scope, key in ours.machine.caches.saved}
    assert saved == {(MERGE, "irdiff-toolchains"), (MERGE, "irdiff-results")}, "for itself alone"

    # no file: one job, no toolchain, and the comment follows
    git(ours.work, "reset", "-q", "--hard", "origin/main")
    ours.push("Nothing", {})
    done = ours.compare()
    assert done.jobs == {**dict.fromkeys(JOBS, "skipped"), "plan": "success"}, done.log
    assert done.artifacts.names() == ["irdiff-run"]
    assert "no file differs" in done.summary
    ours.comment(done)
    assert "irdiff: no file differs: nothing was compared" in ours.report()
    assert ours.check()["conclusion"] == "success"

    # a label that means nothing here starts nothing
    assert ours.compare("labeled", label={"name": "bug"}).conclusion == "skipped"

    # a comparison that cannot be made: the comment says why, and cannot be written to by the reason
    toml = (ours.work / "irdiff.toml").read_text()
    ours.push("Break irdiff.toml", {"irdiff.toml": toml + "</details> @everyone ```\n"})
    done = ours.compare()
    assert done.conclusion == "failure", done.log
    ours.comment(done)
    assert "irdiff: the comparison failed" in ours.report()
    assert "**planning ended with code 2**" in ours.report()
    assert "irdiff.toml" in ours.report()
    assert ours.check()["conclusion"] == "failure"


@pytest.mark.wide
def test_commands_of_people_who_may_write(project, kernels):
    typed(kernels, "init", "--github", "--action", ACTION)
    commit(kernels, "Set up irdiff")
    ours = project(kernels)
    git(ours.work, "checkout", "-q", "-b", "branch")
    edit(ours.work, "mykernels.py", "x * x", "x * x + 2.0")
    ours.push("Another function")
    ours.hub.runs.append(WorkflowRun(number=500, head=ours.head))

    # of everybody else: nothing is done, and nothing is said
    said = ours.says("visitor", "/irdiff compare triton==3.8.0")
    assert "not obeyed: visitor may not write" in said.log
    assert not ours.hub.comments
    assert not ours.hub.reruns
    assert ours.says("maintainer", "what does /irdiff do?").conclusion == "skipped"

    # a mistake is answered
    ours.says("maintainer", "/irdiff compare $(id) --tier all")
    assert "is no revision or release" in ours.hub.comments[-1].body
    assert not ours.hub.reruns

    # a command is written down for this commit, and its comparison starts again with it
    said = ours.says("maintainer", "/irdiff compare triton==3.8.0 --target sm_90\nthank you")
    assert said.conclusion == "success", said.log
    assert ours.hub.reruns == [500]
    done = ours.compare("opened", number=500)
    assert done.conclusion == "success", done.log
    ours.comment(done)
    assert "`triton==3.8.0`" in ours.report()
    assert "| `sm_90` |" in ours.report()
    assert "gfx942" not in ours.report()
    (record,) = filter(None, (comment_commands.read(row.body, ours.head) for row in ours.hub.comments))
    assert (record.base, record.targets) == ("triton==3.8.0", ("sm_90",))

    # after the next push it is as ever
    git(ours.work, "reset", "-q", "--hard", "origin/main")
    ours.push("Documents", {"README.md": "new"})
    done = ours.compare()
    assert "nothing was asked for at this commit" in done.log
    assert TOKEN not in done.log


STORIES = golden("stories")
"""A change to Triton, the headline that a reviewer is told, and the conclusion of the check."""
ONLY = (
    "/irdiff compare --target sm_90 --tier gate --case elementwise/vector_add --case activation/rope "
    "--case normalization/softmax --case matmul/pointer"
)


@pytest.fixture
def triton(irdiff, cache, newest, tmp_path, project):
    """A repository of Triton's Python part, with its workflows and a runner that knows the release for it."""
    source = tmp_path / "triton"
    triton_checkout(source, Path(newest.root).parent)
    typed(source, "init", "--github", "--action", ACTION, "--shards", "2")
    commit(source, "Set up irdiff")
    done = irdiff("toolchain", "adopt", "HEAD", "triton==3.9.0", cwd=source)
    assert done.code == 0, done.stderr
    ours = project(source, lambda place: (place / "adoptions").symlink_to(cache / "adoptions"))
    git(ours.work, "checkout", "-q", "-b", "branch")
    return ours


@pytest.mark.parametrize(
    "story",
    [
        pytest.param("changes-an-option", marks=pytest.mark.wide),
        pytest.param("changes-nothing", marks=pytest.mark.wide),
        pytest.param("breaks-the-compiler", marks=pytest.mark.wide),
    ],
)
def test_from_a_bare_clone_to_the_comment(story, triton, place):
    edited, headline, conclusion = STORIES[story].values()
    edit(triton.work, NVIDIA, *edited)
    triton.push("The pull request")
    triton.hub.runs.append(WorkflowRun(number=500, head=triton.head))
    triton.says("maintainer", ONLY)
    done = triton.compare("opened")
    assert done.jobs["compare"] == "success", done.log
    assert "only Python differs: both sides share one native build" in done.log
    assert len(re.findall(r"^=== compare", done.log, re.MULTILINE)) == 2
    assert re.search(headline, done.summary.splitlines()[0] + done.summary), done.summary
    triton.comment(done)
    assert re.search(headline, triton.report().splitlines()[1])
    assert (triton.check()["conclusion"], triton.check()["head_sha"]) == (conclusion, triton.head)
    assert TOKEN not in json.dumps([row["body"] for row in triton.hub.requests])

    # the same run again: nothing new to say
    again = triton.comment(done)
    assert "comment unchanged" in again.log

    # what this repository shows of it
    example = examples.EXAMPLES / f"comment-{story}.md"
    text = triton.report().replace(f"{place}/machine/temp/", "")
    if os.environ.get("IRDIFF_EXAMPLES"):
        examples.keep(example, text)
    assert examples.settled(text) == examples.settled(examples.read(example)), "stale: `make examples`"


@pytest.mark.parametrize(
    ("workflow", "verdict", "passes"),
    [("irdiff-release", Verdict.BROKEN, False), ("irdiff-nightly", Verdict.UNCHANGED, True)],
)
def test_a_run_is_reported_and_gated(project, kernels, workflow, verdict, passes):
    """The last job of a release and of the night, over what the jobs before it keep."""
    typed(kernels, "init", "--github", "--action", ACTION)
    commit(kernels, "Set up irdiff")
    ours = project(kernels)
    cases = [runs.case(f"a/x:{n}@sm_90", verdict if n == 3 else Verdict.UNCHANGED) for n in range(24)]
    text = (ours.work / ".github/workflows" / f"{workflow}.yml").read_text()
    head, _, _ = text.partition("\njobs:\n")
    gate = re.search(r"\n  gate:\n(?:    .*\n|\n)+", text)
    waits = "!cancelled() && (needs.finish.result == 'success' || needs.plan.outputs.nothing == 'true')"
    alone = head + "\njobs:" + gate[0].replace("    needs: [plan, finish]\n", "")
    alone = alone.replace(f"    if: ${{{{ {waits} }}}}\n", "")
    event = Event("workflow_dispatch", DEFAULT, git(ours.work, "rev-parse", "HEAD"), {"inputs": {}})
    before = ours.machine.folder / "artifacts" / f"1000-{ours.machine.attempts + 1}"
    parts = [runs.run(*cases[number - 1 :: 2]) for number in (1, 2)]
    options = [replace(run.options, shard=(n, 2)) for n, run in enumerate(parts, 1)]
    _keep(before, [replace(run, options=chosen) for run, chosen in zip(parts, options, strict=True)])
    done = ours.machine.run(workflow, alone, event)
    assert done.jobs == {"gate": "success" if passes else "failure"}, done.log
    headline = "gate passes" if passes else "gate fails because of 1 of "
    assert f"\n{headline}" in done.log
    assert f"### {headline}" in done.summary
    done.artifacts.download("irdiff-report", ours.machine.folder / "report")
    names = {path.name for path in (ours.machine.folder / "report" / "report").iterdir()}
    assert names == {"irdiff.html", "irdiff.md", "gate.md", "gate.json", "gate.xml"}


def _keep(place, shards):
    """The artifact `irdiff-run`, as `irdiff github finish` makes it of the shards' runs."""
    parts = place.parent / f"{place.name}-parts"
    for number, run in enumerate(shards, 1):
        runs.saved(parts / f"irdiff-part-{number}", run)
    typed(place.parent, "github", "finish", str(parts), "--out", str(place.parent / "joined"))
    Artifacts(place).upload("irdiff-run", [str(place.parent / "joined")], overwrite=False)


def test_a_night_compares_what_was_merged_since_the_last_or_what_a_person_names(tmp_path, monkeypatch):
    """A commit of 25 hours ago that was merged an hour ago is not what the night before has seen."""
    now = 1_800_000_000

    def git_at(hours, *words):
        for role in ("AUTHOR", "COMMITTER"):
            monkeypatch.setenv(f"GIT_{role}_DATE", f"{now - 3600 * hours} +0000")
        return git(tmp_path, *words)

    def night(base):
        text = (TEMPLATES / "irdiff-nightly.yml").read_text()
        script = re.search(r"id: sides\n(?:.*\n)+?        run: \|\n((?: {10}.*\n)+)", text)
        output = tmp_path / "output"
        given = {"BASE": base, "GITHUB_OUTPUT": str(output), "GIT_TEST_DATE_NOW": str(now)}
        subprocess.run(["bash", "-euc", script[1]], cwd=tmp_path, env={**os.environ, **given}, check=True)
        rows = dict(line.split("=") for line in output.read_text().splitlines())
        output.unlink()
        return rows

    git_at(48, "init", "-q", "-b", "main")
    git_at(48, "commit", "-q", "--allow-empty", "-m", "last night's")
    seen = git_at(0, "rev-parse", "HEAD")
    git_at(25, "switch", "-q", "-c", "branch")
    git_at(25, "commit", "-q", "--allow-empty", "-m", "of 25 hours ago")
    git_at(1, "switch", "-q", "main")
    git_at(1, "merge", "-q", "--no-ff", "-m", "merged an hour ago", "branch")
    merged = git_at(0, "rev-parse", "HEAD")
    assert night("") == {"base": seen, "head": merged}
    assert night("v1") == {"base": "v1", "head": merged}


def test_old_caches_are_removed_at_night(project, kernels):
    typed(kernels, "init", "--github", "--action", ACTION)
    commit(kernels, "Set up irdiff")
    ours = project(kernels)
    ours.hub.state = "CLOSED"  # pull request 7
    rows = [
        (MERGE, "irdiff-toolchains-x", 1),
        (DEFAULT, "irdiff-toolchains-y", 5),
        (DEFAULT, "irdiff-old", 4),
    ]
    ours.hub.caches = [
        {"id": n, "ref": ref, "key": key, "size_in_bytes": size << 30, "last_accessed_at": f"2026-01-0{9 - n}"}
        for n, (ref, key, size) in enumerate(rows, 1)
    ]  # fmt: skip
    ours.hub.caches.append({**ours.hub.caches[0], "id": 4, "key": "somebody-elses"})
    text = (ours.work / ".github/workflows/irdiff-nightly.yml").read_text()
    job = re.search(r"\n  prune:\n(?:    .*\n|\n)+", text)
    event = Event("schedule", DEFAULT, git(ours.work, "rev-parse", "HEAD"), {})
    done = ours.machine.run("prune", text.partition("\njobs:\n")[0] + "\njobs:" + job[0], event)
    assert done.conclusion == "success", done.log
    assert [row["id"] for row in ours.hub.caches] == [2, 4]
