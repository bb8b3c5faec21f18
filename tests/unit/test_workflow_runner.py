"""The expressions and caches of the runner that the workflow tests rest on, by GitHub's documentation."""

from __future__ import annotations

from pathlib import Path

from tests.workflow_runner import expressions
from tests.workflow_runner.services import DEFAULT, Caches

LABELS = [{"name": "irdiff: all"}, {"name": "b"}]
CONTEXT = {
    "github": {"event": {"action": "labeled", "pull_request": {"labels": LABELS}}},
    "needs": {"plan": {"result": "success", "outputs": {"nothing": "true"}}},
    "steps": {},
}


def _functions(ok: bool) -> dict:
    values = {"success": ok, "failure": not ok, "always": True, "cancelled": False}
    return {name: lambda value=value: value for name, value in values.items()}


def test_expressions() -> None:
    for text, value in (
        ("'it''s'", "it's"),
        ("github.event.action == 'LABELED'", True),
        ("github.event.nothing.there == ''", False),
        ("contains(github.event.pull_request.labels.*.name, 'irdiff: all')", True),
        ("contains('abc', 'B')", True),
        ("contains(fromJSON('[\"a\"]'), 'ab')", False),
        ("needs.plan.outputs.nothing == 'true' && 'x' || 'y'", "x"),
        ("!(needs.plan.result == 'skipped') && true", True),
        ("format('-part-{0}-{1}', 7, 'b')", "-part-7-b"),
        ("startsWith('/irdiff compare', '/IRDIFF')", True),
    ):
        assert expressions.evaluated(text, CONTEXT, _functions(True)) == value, text


def test_a_condition_without_a_status_needs_success() -> None:
    for text, after_success, after_failure in (
        (None, True, False),
        ("needs.plan.outputs.nothing == 'true'", True, False),
        ("always() && needs.plan.result == 'success'", True, True),
        ("${{ !cancelled() }}", True, True),
        ("failure()", False, True),
    ):
        assert expressions.condition(text, CONTEXT, _functions(True)) is after_success
        assert expressions.condition(text, CONTEXT, _functions(False)) is after_failure


def test_caches_are_read_from_the_default_branch_and_written_to_the_pull_request(tmp_path: Path) -> None:
    caches, file = Caches(tmp_path / "caches"), tmp_path / "kept"
    paths = [str(file)]
    file.write_text("nightly")
    assert caches.save(DEFAULT, paths, "tools-1")
    assert not caches.save(DEFAULT, paths, "tools-1"), "an entry is written once"
    file.write_text("pull request")
    assert caches.save("refs/pull/7/merge", paths, "tools-2")
    assert caches.restore("refs/pull/8/merge", paths, "tools-2", ["tools-"]) == "tools-1"
    assert file.read_text() == "nightly"
    assert caches.restore("refs/pull/7/merge", paths, "tools-3", ["tools-"]) == "tools-2"
    assert caches.restore("refs/pull/7/merge", ["other"], "tools-2", ["tools-"]) is None
    assert caches.restore(DEFAULT, paths, "tools-2", []) is None, "a pull request writes for itself alone"
