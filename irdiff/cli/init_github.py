"""`irdiff init --github`: the workflows, where their irdiff comes from, and what a person must still do."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

import irdiff
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.github import workflows
from irdiff.github.workflows import Setup
from irdiff.resolve.toolchains import repository

POLICY = "irdiff-policy.toml"
_ACTION = Path(".github", "actions", "irdiff", "action.yml")
_SHARDS = {True: 4, False: 1}
_ADDRESS = re.compile(r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)[^/:]+[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?")


def files(action: str | None, shards: int | None, config: Config, *, is_compiler: bool) -> dict[str, str]:
    """Every file by its path. Raises UsageError where nobody says which irdiff the jobs are to run."""
    reports = config.shipped / "reports"
    found = action or own_action(config)
    if found is None:
        raise UsageError(
            "it is not known which commit of irdiff the jobs are to run: this one came from no repository",
            hint="irdiff init --github --action OWNER/NAME@COMMIT, irdiff's repository on GitHub",
        )
    wanted = Setup(
        action=found,
        version=f"irdiff {irdiff.__version__}",
        is_compiler=is_compiler,
        shards=shards or _SHARDS[is_compiler],
    )
    policy = (reports / POLICY).read_text(encoding="utf-8")
    return {**workflows.rendered(reports / "github", wanted), POLICY: policy}


def own_action(config: Config) -> str | None:
    """OWNER/NAME@COMMIT of the irdiff that runs: as it was installed (PEP 610), or as its checkout says."""
    try:
        text = metadata.distribution("irdiff").read_text("direct_url.json")
        origin = json.loads(text) if text else {}
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    commit = origin.get("vcs_info", {}).get("commit_id")
    if commit:
        return _at(str(origin.get("url", "")), str(commit))
    parts = urlsplit(str(origin.get("url", "")))
    installed_from = [Path(unquote(parts.path))] if parts.scheme == "file" else []
    for folder in (Path(irdiff.__file__).parents[1], *installed_from):
        if (folder / _ACTION).is_file() and (folder / ".git").exists():
            return _of_checkout(folder, config)
    return None


def _of_checkout(folder: Path, config: Config) -> str | None:
    try:
        store = repository.open_store(folder, config)
        address = store.git("config", "--get", "remote.origin.url").decode().strip()
        return _at(address, repository.commit_of(store, "HEAD"))
    except UsageError:
        return None


def _at(address: str, commit: str) -> str | None:
    found = _ADDRESS.fullmatch(address)
    return f"{found[1]}@{commit}" if found else None


def still_to_do(action: str, *, is_compiler: bool, has_workloads: bool) -> list[str]:
    """What no file can do, in the order to do it."""
    repository_of_action = action.partition("@")[0]
    own = [
        "Record workloads: `irdiff capture script.py`, and name their folder in irdiff.toml."
        if not has_workloads
        else "Read irdiff.toml: the folder of workloads, and where Triton is pinned."
    ]
    return [
        *([] if is_compiler else own),
        f"Read {POLICY}: which kernels and targets hold a release.",
        "Commit the files to the default branch: comments and commands start from there alone.",
        f"Settings, Actions, General: allow actions/* and {repository_of_action}, and require approval for "
        "workflows of all outside contributors.",
        "Make the label `irdiff: all` (compare everything), and with GPU runners `irdiff: time`; let only "
        "maintainers set them.",
        "With GPU runners (self-hosted, gpu): an environment irdiff-gpu with required reviewers.",
    ]
