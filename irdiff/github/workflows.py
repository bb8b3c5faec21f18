"""The action and the workflows that `irdiff init --github` writes, from the templates in `reports/github/`.

This repository's own `.github/` is rendered from the same templates, with `.` as what pip installs; a test
holds the two together.
"""

from __future__ import annotations

from pathlib import Path

import jinja2

PINS = {
    # action: (repository, commit, tag that the commit had in the action's own repository when it was pinned)
    "checkout": ("actions/checkout", "3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "setup_python": ("actions/setup-python", "5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "cache": ("actions/cache", "27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "upload_artifact": ("actions/upload-artifact", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
    "download_artifact": ("actions/download-artifact", "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
}
_WORKFLOWS = ("irdiff-pr", "irdiff-comment", "irdiff-time", "irdiff-release", "irdiff-nightly")


def rendered(templates: Path, install: str, policy: str = "irdiff-policy.toml") -> dict[str, str]:
    """Every file by its path in a repository. `templates` is the folder `reports/github`.

    `install` is what pip installs: `irdiff==1.2.3` in a user's repository; `policy` is where the rules lie.
    """
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
    )
    values = {name: f"{repository}@{commit} # {tag}" for name, (repository, commit, tag) in PINS.items()}
    files = {f".github/workflows/{name}.yml": f"{name}.yml" for name in _WORKFLOWS}
    files[".github/actions/irdiff/action.yml"] = "action.yml"
    return {
        path: environment.get_template(template).render(install=install, policy=policy, **values)
        for path, template in sorted(files.items())
    }
