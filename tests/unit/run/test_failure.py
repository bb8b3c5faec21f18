"""The reason of a comparison that failed, as an attacker may have written it."""

import json

import pytest

from irdiff.errors import RunFolderError
from irdiff.report import markdown
from irdiff.run import failure
from irdiff.run.failure import PartFailure


def test_what_is_no_failure_is_refused(tmp_path):
    many = {"schema": "irdiff-failure/1", "parts": [{"step": "x", "code": 1, "lines": []}] * 65}
    for content in (
        "",
        "[]",
        '{"schema": "irdiff-failure/2", "parts": []}',
        '{"schema": "irdiff-failure/1", "parts": [{"step": 1, "code": 0, "lines": []}]}',
        json.dumps(many),
        '{"schema": "irdiff-failure/1", "parts": "' + "x" * (2 << 20) + '"}',
    ):
        (tmp_path / "failure.json").write_text(content)
        with pytest.raises(RunFolderError):
            failure.load(tmp_path)
    (tmp_path / "failure.json").rename(tmp_path / "secret")
    (tmp_path / "secret").write_text('{"schema": "irdiff-failure/1", "parts": []}')
    (tmp_path / "failure.json").symlink_to(tmp_path / "secret")
    with pytest.raises(RunFolderError):
        failure.load(tmp_path)


def test_nothing_in_a_reason_is_markup_and_it_fits():
    lines = ("```", "</details>", "@team \x1b[2J", "::add-mask::x")
    hostile = PartFailure(step="@everyone <img src=x> [a](http://b) #1", code=1, lines=lines)
    text = markdown.of_failures([hostile], has_run=False, limit=60_000)
    heading, block = text.split("\n\n````\n", 1)
    assert "@\u200beveryone" in heading
    assert "\\[a\\](" in heading
    assert "<img" not in heading
    assert "http://" not in heading
    assert block.rstrip().endswith("\n````"), "the block has longer marks than its content"
    assert "\x1b" not in block
    long = PartFailure(step="comparing", code=1, lines=("z" * 400,) * 30)
    for limit in (1_000, 2_000, 60_000):
        text = markdown.of_failures([long] * 40, has_run=True, limit=limit)
        assert len(text) <= limit
        assert "more parts" in text
