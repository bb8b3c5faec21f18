"""Which irdiff the jobs are to run, where nobody says it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from irdiff import config as configuration
from irdiff.cli import init_command
from irdiff.errors import UsageError

COMMIT = "c" * 40


def _installed(monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(
        init_command.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text)
    )
    monkeypatch.setattr(init_command.irdiff, "__file__", "/nowhere/irdiff/__init__.py")


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/o/irdiff",
        "https://github.com/o/irdiff.git",
        "ssh://git@github.com/o/irdiff.git",
        "git@github.com:o/irdiff.git",
        "https://user:token@github.example/o/irdiff/",
    ],
)
def test_it_is_the_commit_that_was_installed(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    _installed(monkeypatch, {"url": address, "vcs_info": {"vcs": "git", "commit_id": COMMIT}})
    assert init_command.own_action(configuration.load()) == f"o/irdiff@{COMMIT}"


@pytest.mark.parametrize("origin", [None, {}, {"url": "file:///nowhere", "dir_info": {}}])
def test_what_came_from_nowhere_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None
) -> None:
    _installed(monkeypatch, origin)
    assert init_command.own_action(configuration.load()) is None
    with pytest.raises(UsageError, match="not known which commit of irdiff") as caught:
        init_command.github_files(None, None, configuration.load(), is_compiler=True)
    assert "--action OWNER/NAME@COMMIT" in caught.value.hint
