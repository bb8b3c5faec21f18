from __future__ import annotations

import pytest

from irdiff.words import counted, first_few


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, "case", "0 cases"),
        (1, "changed case", "1 changed case"),
        (2, "launch", "2 launches"),
        (3, "process", "3 processes"),
    ],
)
def test_counted(count: int, noun: str, expected: str) -> None:
    assert counted(count, noun) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c", "d"), "a, b and 2 more")],
)
def test_first_few(names: tuple[str, ...], expected: str) -> None:
    assert first_few(names, 2) == expected
