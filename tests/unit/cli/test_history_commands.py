"""Parts of names in `irdiff history backfill --case`."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff import config
from irdiff.cli import history_commands
from irdiff.compile import selecting
from irdiff.errors import ToolchainError
from irdiff.model import DEFAULT_OPTIONS, Sides


@pytest.mark.parametrize(
    ("gone", "wanted"), [("", "x of 3.9.0"), ("3.9.0", "x of 3.8.0"), ("3.9.0 3.8.0", "x")]
)
def test_the_newest_version_that_can_be_had_completes_names(
    build: Any, monkeypatch: pytest.MonkeyPatch, gone: str, wanted: str
) -> None:
    def resolve_sides(base: str, *_: object) -> Sides[Any]:
        if base in gone.split():
            raise ToolchainError("there is no such version")
        return Sides(base=build.side(base), head=build.side(base))

    def of_sides(patterns: Any, sides: Any, *_: object) -> dict[str, tuple[str, ...]]:
        return {pattern: (f"{pattern} of {sides[0].toolchain.spec}",) for pattern in patterns}

    monkeypatch.setattr(history_commands, "resolve_sides", resolve_sides)
    monkeypatch.setattr(selecting, "of_sides", of_sides)
    wish: Any = None
    work = history_commands._Work(config=config.load(), targets=(), wanted=wish, options=DEFAULT_OPTIONS)
    assert work.whole_names(("x",), ["3.9.0", "3.8.0"], lambda _: None) == (wanted,)
