"""Which lines of a text an edit added or changed."""

from __future__ import annotations

import pytest

from irdiff.resolve.toolchains import edited_lines


@pytest.mark.parametrize(
    ("before", "after", "numbers"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", []),
        ("a\nb\nc\n", "a\nx\nc\n", [2]),
        ("a\nb\nc\n", "a\nb\nx\ny\nc\n", [3, 4]),
        ("a\nb\nc\n", "a\nc\n", []),
        ("", "a\nb\n", [1, 2]),
        ("a\na\n", "a\na\na\n", [3]),
        ("a\x0cb\nc\n", "a\x0cb\nd\n", [2]),
    ],
)
def test_numbers_are_those_of_the_text_after_it(before: str, after: str, numbers: list[int]) -> None:
    assert edited_lines.numbers(before, after) == numbers
