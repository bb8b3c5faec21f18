"""Parts of names in `irdiff history backfill --case`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from irdiff import config
from irdiff.cli import history_commands
from irdiff.compile import selecting
from irdiff.errors import ToolchainError
from irdiff.resolve.sides import Side

Completed = Callable[..., tuple[str, ...]]


def gone() -> Side:
    raise ToolchainError("there is no such version")


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> Completed:
    """What becomes of `vector`, by ways to the versions."""

    def of_sides(patterns: Sequence[str], sides: Sequence[Side], *_: object) -> dict[str, tuple[str, ...]]:
        return {pattern: (f"{pattern} of {sides[0].toolchain.spec}",) for pattern in patterns}

    def whole_names(*newest_first: Callable[[], Side]) -> tuple[str, ...]:
        return history_commands._whole_names(
            ("vector",), newest_first, (), config.load(), lambda progress: None
        )

    monkeypatch.setattr(selecting, "of_sides", of_sides)
    return whole_names


def test_the_newest_version_completes_names(completed: Completed, build: Any) -> None:
    newest, older = build.side("3.9.0"), build.side("3.8.0")
    assert completed(lambda: newest, lambda: older) == ("vector of 3.9.0",)


def test_a_version_that_cannot_be_had_is_passed_over(completed: Completed, build: Any) -> None:
    older = build.side("3.8.0")
    assert completed(gone, lambda: older) == ("vector of 3.8.0",)


def test_where_none_can_be_had_patterns_stay_as_typed(completed: Completed) -> None:
    assert completed(gone) == ("vector",)
