"""The examples that are rendered from the recorded run are what irdiff writes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import examples


@pytest.fixture(scope="module")
def made() -> dict[Path, str]:
    return examples.recorded()


@pytest.mark.parametrize("name", ["comment-timed.md", "gate-fails.md", "gate-passes.md", "release-report.md"])
def test_is_not_stale(name: str, made: dict[Path, str]) -> None:
    path = examples.EXAMPLES / name
    assert examples.settled(made[path]) == examples.settled(examples.read(path)), "stale: `make examples`"


def test_times_and_digests_do_not_count_but_everything_else_does() -> None:
    text = "compared: `2026-11-22T05:30:39+00:00, in 21.6 s` with `af1a6967bfdd`, 3 of 7 changed"
    later = text.replace("21.6", "3").replace("T05:30", "T06:31").replace("af1a6967bfdd", "0123456789ab")
    assert examples.settled(text) == examples.settled(later)
    assert examples.settled(text) != examples.settled(text.replace("3 of 7", "4 of 7"))


def test_every_committed_example_is_made_by_something() -> None:
    stories = {
        f"comment-{name}.md" for name in ("changes-nothing", "changes-an-option", "breaks-the-compiler")
    }
    there = {path.name for path in examples.EXAMPLES.iterdir()}
    assert there == {path.name for path in examples.recorded()} | stories | {"README.md"}
