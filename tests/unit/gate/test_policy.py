"""The shipped policy, and what a run has that can be accepted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from irdiff.errors import UsageError
from irdiff.gate import acceptance
from irdiff.model import Verdict
from tests.unit.gate.policies import TODAY

# the acceptance file

DECISION = acceptance.Acceptance(owner="jane", reason="looked at every one", on=TODAY, expires=TODAY)


def test_accepted_edits_are_kept_and_read_again(tmp_path: Path, build: Any) -> None:
    hostile = 'a "quote"\n[[accepted]]\x7f\x00\u202e\\'
    case = build.case(f"a/{hostile}:1@sm_90", Verdict.CHANGED)
    run = build.run(case, groups=(build.group("ab" * 32, case.id, title=hostile),))
    path = tmp_path / "folder" / "accepted.toml"
    entries = acceptance.accept(run, ("abababab",), DECISION)
    acceptance.append(path, entries, ())
    known = acceptance.load(path)
    assert known == entries
    assert known[0].title == hostile
    assert known[0].edits == {case.id: case.edit}
    acceptance.append(path, entries, known)
    assert acceptance.load(path) == entries


def test_only_what_the_run_has_is_accepted_and_a_damaged_file_is_an_error(build: Any) -> None:
    case = build.case("a/x:1@sm_90", Verdict.CHANGED)
    run = build.run(case, groups=(build.group("ab" * 32, case.id),))
    for wanted in ("ababab", "f" * 64, "", "\x1b[2J", "a/x:2@sm_90"):
        with pytest.raises(UsageError, match="no change group"):
            acceptance.accept(run, (wanted,), DECISION)
    row = dataclasses.asdict(acceptance.accept(run, (case.id,), DECISION)[0])
    assert acceptance.parse({"schema": acceptance.SCHEMA, "accepted": [row]}, "file")
    for key, value in (
        ("expires", None),
        ("owner", ""),
        ("edits", {}),
        ("edits", {"a/x:1@sm_90": "100 -> 96"}),
        ("base_toolchain", "3.8.0"),
        ("everything", True),
    ):
        with pytest.raises(UsageError, match=rf"accepted\.0\.{key}"):
            acceptance.parse({"schema": acceptance.SCHEMA, "accepted": [{**row, key: value}]}, "file")
