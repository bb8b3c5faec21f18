"""Runs a workflow for an event: jobs in their order, each on a machine that has nothing of the others."""

import fnmatch
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.workflow_runner import expressions
from tests.workflow_runner.services import Artifacts, Caches, emptied

ROOT = Path(__file__).parents[2]
TOKEN = "ghs_verysecrettoken"
INSTALL = "Install irdiff"
"""The step that is run in the first job alone: later ones have what it installed."""


@dataclass
class Event:
    """What starts a workflow."""

    name: str
    ref: str
    """Its scope of caches."""
    sha: str
    payload: dict[str, Any]


@dataclass
class Outcome:
    """A run of a workflow that has ended."""

    number: int
    conclusion: str
    jobs: dict[str, str]
    """Result by the name of the job."""
    artifacts: Artifacts
    log: str
    summary: str


class StepFailed(Exception):
    pass


@dataclass
class Machine:
    """GitHub's side of one repository: where runs, caches and artifacts live."""

    folder: Path
    place: Path
    """Where its machines are, one at a time, with what was installed for one of any repository."""
    origin: Path
    """The repository, bare; pull requests are `refs/pull/N/merge` in it."""
    api_url: str
    repository: str = "o/n"
    attempts: int = 0
    runs: list[Outcome] = field(default_factory=list)
    prepare: Callable[[Path], None] = lambda temp: None
    """What a machine of one's own has in `RUNNER_TEMP` before a job begins."""

    def __post_init__(self):
        self.caches = Caches(self.folder / "caches")
        self.actions = self.place / "irdiff"
        if not self.actions.exists():
            _export(self.actions)

    def run(self, workflow, text, event, number=None):
        number = number or 1000 + len(self.runs)
        self.attempts += 1
        running = _Run(machine=self, workflow=yaml.safe_load(text), event=event, number=number)
        outcome = running.ended()
        self.runs.append(outcome)
        print(f"{workflow}: {outcome.conclusion} {outcome.jobs}")
        return outcome


def _export(place):
    """Irdiff as GitHub has it at a commit: what git tracks or would."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)


@dataclass
class _Run:
    machine: Machine
    workflow: dict[str, Any]
    event: Event
    number: int
    results: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)

    def __post_init__(self):
        kept = self.machine.folder / "artifacts"
        self.artifacts = Artifacts(kept / f"{self.number}-{self.machine.attempts}")

    def ended(self):
        jobs = dict(self.workflow["jobs"])
        while jobs:
            ready = (
                name for name, job in jobs.items() if set(_list(job.get("needs"))) <= self.results.keys()
            )
            name = next(ready)
            self._job(name, jobs.pop(name))
        found = self.results.values()
        conclusion = next((word for word in ("failure", "success") if word in found), "skipped")
        log, summary = "\n".join(self.log), "".join(self.summary)
        return Outcome(self.number, conclusion, self.results, self.artifacts, log, summary)

    def _job(self, name, job):
        needs = _list(job.get("needs"))
        ended = {
            name: {"result": self.results[name], "outputs": self.outputs.get(name, {})} for name in needs
        }
        inputs = self.event.payload.get("inputs", {})
        context = {"github": self._github(), "needs": ended, "inputs": inputs, "vars": {}}
        functions = _status(all(self.results[other] == "success" for other in needs))
        if not expressions.condition(job.get("if"), context, functions):
            self.results[name] = "skipped"
            return
        matrix = job.get("strategy", {}).get("matrix", {})
        rows = [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]
        ok = [_Job(self, name, job, {**context, "matrix": row}).ended() for row in rows]
        self.results[name] = "success" if all(ok) else "failure"

    def _github(self):
        event = {"event": self.event.payload, "event_name": self.event.name, "ref": self.event.ref}
        run = {"run_id": str(self.number), "run_attempt": str(self.machine.attempts), "sha": self.event.sha}
        place = {"repository": self.machine.repository, "server_url": "https://github.example"}
        return {**event, **run, **place, "token": TOKEN}


class _Job:
    """One machine: the same paths as every other one, and nothing in them."""

    def __init__(self, run, name, job, context):
        self.run, self.name, self.job = run, name, job
        machine = run.machine.place / "machine"
        emptied(machine)
        parts = (machine / part for part in ("temp", "home", "work", "tools"))
        self.temp, self.home, self.work, self.tools = parts
        for folder in (self.temp, self.home, self.work):
            folder.mkdir()
        run.machine.prepare(self.temp)
        (machine / "event.json").write_text(json.dumps(run.event.payload))
        self.context = {**context, "runner": {"temp": str(self.temp), "os": "Linux", "arch": "X64"}}
        (machine / "bin").mkdir()  # a program that keeps a step from installing anything on this machine
        (machine / "bin" / "sudo").write_text("#!/bin/sh\necho sudo: not here >&2\nexit 1\n")
        (machine / "bin" / "sudo").chmod(0o755)
        self.path = f"{machine / 'bin'}:/usr/bin:/bin"
        self.installed: Path | None = None
        """What its tools were copied from, or kept as."""
        event, certificates = str(machine / "event.json"), "/etc/ssl/certs/ca-certificates.crt"
        here = {"HOME": str(self.home), "RUNNER_TEMP": str(self.temp), "SSL_CERT_FILE": certificates}
        github = {"ACTIONS": "true", "REPOSITORY": run.machine.repository, "API_URL": run.machine.api_url}
        named = {f"GITHUB_{name}": value for name, value in {**github, "EVENT_PATH": event}.items()}
        self.environment = {"LANG": "C.UTF-8", "CI": "true", **here, **named}

    def ended(self):
        self.run.log.append(f"=== {self.name} {self.context.get('matrix') or ''}")
        steps = {}
        ok = self._steps(self.job["steps"], {**self.context, "steps": steps}, self.environment)
        self._keep_bytecode()
        context, functions = {**self.context, "steps": steps}, _status(ok)
        self.run.outputs[self.name] = {
            name: expressions.interpolated(str(text), context, functions)
            for name, text in self.job.get("outputs", {}).items()
        }
        return ok

    def _steps(self, steps, context, environment):
        ok = True
        for number, step in enumerate(steps):
            key = step.get("id", f"#{number}")
            functions = _status(ok)
            if not expressions.condition(_text(step.get("if")), context, functions):
                context["steps"][key] = {"outcome": "skipped", "conclusion": "skipped", "outputs": {}}
                continue
            fill = functools.partial(expressions.interpolated, context=context, functions=functions)
            outputs = {}
            try:
                (self._script if "run" in step else self._action)(step, fill, environment, outputs)
                outcome = "success"
            except StepFailed:
                outcome, ok = "failure", False
            context["steps"][key] = {"outcome": outcome, "conclusion": outcome, "outputs": outputs}
        return ok

    def _script(self, step, fill, environment, outputs):
        assert "${{" not in step["run"], "an expression in a script"
        output, summary = self.temp / "_output", self.temp / "_summary"
        for file in (output, summary):
            file.write_text("")
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        env = {name: fill(_text(value) or "") for name, value in step.get("env", {}).items()}
        name = step.get("name") or step["run"]
        installed = self.run.machine.place / f"installed-{env.get('EXTRAS') or 'plain'}"
        if name == INSTALL:
            self.installed = installed
        if name == INSTALL and installed.exists():
            emptied(self.tools)
            shutil.copytree(installed, self.tools, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
            self.run.log.append(f"--- {name}: as in an earlier job")
            return
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        env = {**environment, "PATH": self.path, **files, **env}
        done = subprocess.run(command, cwd=self.work, env=env, text=True, timeout=1500, **streams)
        assert TOKEN not in done.stdout
        self.run.log.append(f"--- {name}: {done.returncode}\n{done.stdout}")
        self.run.summary.append(summary.read_text())
        for line in output.read_text().splitlines():
            key, equals, value = line.partition("=")
            assert equals, f"{name} wrote the output {line!r}"
            outputs[key] = value
        if done.returncode:
            raise StepFailed(name)
        if name == INSTALL:
            shutil.copytree(self.tools, installed, symlinks=True, copy_function=os.link)

    def _keep_bytecode(self):
        """For later jobs: each would compile a thousand modules again, which takes two seconds."""
        for path in self.tools.rglob("*.pyc") if self.installed else ():
            kept = self.installed / path.relative_to(self.tools)
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, kept)

    def _action(self, step, fill, environment, outputs):
        name, _, _ = step["uses"].partition("@")
        given = {key: fill(_text(value) or "") for key, value in step.get("with", {}).items()}
        self.run.log.append(f"--- {name} {given}")
        if "/.github/actions/" in name:
            self._composite(name.rpartition("/")[2], given, environment, outputs)
            return
        known = {
            "actions/checkout": self._checkout,
            "actions/setup-python": self._setup_python,
            "actions/cache/restore": self._restore,
            "actions/cache/save": self._save,
            "actions/upload-artifact": self._upload,
            "actions/download-artifact": self._download,
        }
        outputs.update(known[name](given) or {})

    def _composite(self, name, given, environment, outputs):
        folder = self.run.machine.actions / ".github" / "actions" / name
        action = yaml.safe_load((folder / "action.yml").read_text())
        declared = action.get("inputs", {})
        assert given.keys() <= declared.keys(), f"{name} has no such input"
        inputs = {key: _text(row.get("default")) or "" for key, row in declared.items()} | given
        needed = [key for key, row in declared.items() if row.get("required")]
        assert all(inputs[key] for key in needed), f"{name} needs {needed}"
        steps = {}
        context = {name: self.context[name] for name in ("github", "runner")}
        context |= {"inputs": inputs, "steps": steps}
        assert all(step.get("shell") == "bash" for step in action["runs"]["steps"] if "run" in step)
        ok = self._steps(action["runs"]["steps"], context, {**environment, "GITHUB_ACTION_PATH": str(folder)})
        for key, row in action.get("outputs", {}).items():
            outputs[key] = expressions.interpolated(row["value"], context, _status(ok))
        if not ok:
            raise StepFailed(name)

    # what GitHub's own actions do

    def _checkout(self, given):
        assert given.get("persist-credentials") == "false"
        assert self.run.workflow["jobs"][self.name]["permissions"].get("contents") == "read"
        event = self.run.event
        git = ["git", "-c", "init.defaultBranch=main", "-C", str(self.work)]
        subprocess.run([*git, "init", "-q"], check=True)
        all_refs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
        fetched = [f"+{event.ref}:refs/remotes/event"]
        fetched += all_refs if given.get("fetch-depth") == "0" else ["--depth=1"]
        subprocess.run([*git, "fetch", "-q", f"file://{self.run.machine.origin}", *fetched], check=True)
        subprocess.run([*git, "checkout", "-q", "--detach", "refs/remotes/event"], check=True)

    def _setup_python(self, given):
        fresh = self.run.machine.place / "python"
        if fresh.exists():  # as it was made: with nothing in it
            shutil.copytree(fresh, self.tools, symlinks=True, copy_function=os.link)
        else:
            python = getattr(sys, "_base_executable", sys.executable)
            subprocess.run([python, "-m", "venv", self.tools], check=True, env={"PATH": "/usr/bin:/bin"})
            shutil.copytree(self.tools, fresh, symlinks=True)
        self.path = f"{self.tools}/bin:{self.path}"

    def _restore(self, given):
        found = self.run.machine.caches.restore(
            self.run.event.ref, _lines(given["path"]), given["key"], _lines(given.get("restore-keys", ""))
        )
        self.run.log.append(f"    restored: {found}")
        return {"cache-hit": "" if found is None else "true" if found == given["key"] else "false"}

    def _save(self, given):
        saved = self.run.machine.caches.save(self.run.event.ref, _lines(given["path"]), given["key"])
        self.run.log.append(f"    saved: {saved}")

    def _upload(self, given):
        overwrite = given.get("overwrite") == "true"
        self.run.artifacts.upload(given["name"], _lines(given["path"]), overwrite=overwrite)

    def _download(self, given):
        place = Path(given["path"])
        if "name" in given:
            if given["name"] not in self.run.artifacts.names():
                raise StepFailed(f"there is no artifact {given['name']}")
            self.run.artifacts.download(given["name"], place)
            return
        for name in fnmatch.filter(self.run.artifacts.names(), given["pattern"]):
            self.run.artifacts.download(name, place / name)


def _status(ok):
    values = {"success": ok, "failure": not ok, "always": True, "cancelled": False}
    return {name: lambda value=value: value for name, value in values.items()}


def _list(value):
    return [value] if isinstance(value, str) else list(value or ())


def _lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def _text(value):
    return None if value is None else expressions.as_text(value)
