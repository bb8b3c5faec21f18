"""Renders the workflows that `irdiff init --github` writes, from the templates in `reports/github/`. They use
the actions in this repository's `.github/actions` at one commit, so they install irdiff at that commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import jinja2

from irdiff.errors import UsageError

PINS = {
    # action: (repository, commit, tag that the commit had in the action's own repository when it was pinned)
    "checkout": ("actions/checkout", "3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "setup_python": ("actions/setup-python", "5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "cache_restore": ("actions/cache/restore", "27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "cache_save": ("actions/cache/save", "27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "upload_artifact": ("actions/upload-artifact", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
    "download_artifact": ("actions/download-artifact", "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
}
TIMING = "irdiff-time"
NAMES = ("irdiff-pr", "irdiff-comment", "irdiff-command", TIMING, "irdiff-release", "irdiff-nightly")
_ACTION = re.compile(r"([A-Za-z0-9][\w.-]{0,99})/([\w.-]{1,100})@([0-9a-f]{40})")


@dataclass(frozen=True, kw_only=True)
class Setup:
    action: str
    """irdiff's actions: `OWNER/NAME@COMMIT`, with the full commit id."""
    version: str
    """The version of that irdiff, for a reader."""
    is_compiler: bool
    """A checkout of Triton, whose sides may need a native build."""
    shards: int
    """Jobs that share the comparison of a pull request."""
    timing: bool
    """True to write `irdiff-time`. GitHub creates its environment without reviewers if it is missing."""


def rendered(templates: Path, wanted: Setup) -> dict[str, str]:
    """Returns workflows by path. `templates` is the folder `reports/github`."""
    match = _ACTION.fullmatch(wanted.action)
    if not match:
        raise UsageError(
            f"{wanted.action[:150]!a} is not OWNER/NAME@COMMIT with a whole commit id",
            hint="the repository and commit of irdiff, as GitHub has them",
        )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - YAML, and every value is ours
        variable_start_string="[[",  # GitHub's own expressions are `${{ … }}`
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    owner, name, commit = match.groups()
    values = {key: f"{repository}@{pin} # {tag}" for key, (repository, pin, tag) in PINS.items()}
    return {
        f".github/workflows/{workflow}.yml": environment.get_template(f"{workflow}.yml").render(
            action=lambda action: f"{owner}/{name}/.github/actions/{action}@{commit} # {wanted.version}",
            numbers=lambda count: list(range(1, count + 1)),
            minutes=120 if workflow == "irdiff-pr" else 300,
            shards=wanted.shards * (1 if workflow == "irdiff-pr" else 2),
            native=wanted.is_compiler,
            policy="irdiff-policy.toml",
            **values,
        )
        for workflow in NAMES
        if wanted.timing or workflow != TIMING
    }
