"""Mistakes in a policy and in an acceptance file are named, and only what a run has is accepted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from irdiff.errors import UsageError
from irdiff.gate import acceptance, policy
from irdiff.model import Verdict
from tests.unit.gate.policies import TODAY

ROOT = Path(__file__).parents[3]
RULE = """
schema = "irdiff-policy/1"
[[rule]]
id = "broken"
kind = "verdict"
verdicts = ["broken"]
action = "deny"
reason = "because users would notice"
"""
WAIVER = """
[[waiver]]
rule = "broken"
cases = ["a/*"]
owner = "jane"
reason = "because it is being fixed"
issue = "https://github.com/o/n/issues/1"
expires = 2026-12-31
"""


@pytest.mark.parametrize(
    ("old", "new", "pattern"),
    [
        ("verdicts =", "verdict =", "there is no such key; did you mean 'verdicts'?"),
        ('kind = "verdict"', 'kind = "verdicts"', "rule.0"),
        ('["broken"]', "[]", "rule.0.verdict"),
        ("because users would notice", "why", "reason"),
        ('action = "deny"', "", "action"),
        ("irdiff-policy/1", "irdiff-policy/9", "schema"),
        ('id = "broken"', 'id = "b"', "waives the rule 'broken'"),
        ("https://github.com", "http://github.com", "waiver.0.issue"),
        ("expires = 2026-12-31", "", "waiver.0.expires"),
        ('cases = ["a/*"]', "", "names nothing"),
        ('cases = ["a/*"]', 'cases = [""]', "waiver.0.cases"),
        ("[[rule]]", "[[rule]", "is not TOML"),
        (WAIVER, RULE[RULE.index("[[rule]]") :], "two rules"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, pattern: str) -> None:
    assert old in RULE + WAIVER
    path = tmp_path / "policy.toml"
    path.write_text((RULE + WAIVER).replace(old, new))
    with pytest.raises(UsageError, match=pattern):
        policy.load(path)


def test_the_shipped_policy_is_valid() -> None:
    shipped = policy.load(ROOT / "reports" / "irdiff-policy.toml")
    assert {rule.kind for rule in shipped.rule} >= {"coverage", "verdict", "slower", "timed", "wrong-result"}
    assert not shipped.waiver


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
