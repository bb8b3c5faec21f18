"""Which irdiff the jobs are to run that `irdiff init` writes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from irdiff import config as configuration
from irdiff.cli import init_command
from irdiff.errors import UsageError

COMMIT = "c" * 40
HERE = (
    *("https://github.com/o/irdiff", "https://github.com/o/irdiff.git", "git@github.com:o/irdiff.git"),
    *("ssh://git@github.com/o/irdiff.git", "https://user:token@github.example/o/irdiff/"),
)
INSTALLED = {"vcs_info": {"vcs": "git", "commit_id": COMMIT}}


@pytest.mark.parametrize(
    ("origin", "action"),
    [
        *(({"url": address, **INSTALLED}, f"o/irdiff@{COMMIT}") for address in HERE),
        *((origin, None) for origin in (None, {}, {"url": "file:///nowhere", "dir_info": {}})),
    ],
)
def test_jobs_run_the_commit_that_was_installed_or_that_is_named(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None, action: str | None
) -> None:
    installed = SimpleNamespace(read_text=lambda _: None if origin is None else json.dumps(origin))
    monkeypatch.setattr(init_command.metadata, "distribution", lambda _: installed)
    monkeypatch.setattr(init_command.irdiff, "__file__", "/nowhere/irdiff/__init__.py")
    assert init_command.own_action(configuration.load()) == action
    if action is None:
        with pytest.raises(UsageError, match="not known which commit of irdiff"):
            init_command.github_files(None, None, configuration.load(), is_compiler=True, timing=False)
