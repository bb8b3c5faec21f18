"""The lines of a file that an edit added or changed, by their number in the text after it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def numbers(before: str, after: str) -> list[int]:
    """From 1. Lines that were only removed are in no text that could be run, and have none."""
    old, new = split(before), split(after)
    begin = _common(old, new)
    end = _common(old[begin:][::-1], new[begin:][::-1])
    middle = SequenceMatcher(None, old[begin : len(old) - end], new[begin : len(new) - end], autojunk=False)
    return [
        begin + index + 1
        for kind, _, _, first, last in middle.get_opcodes()
        if kind in ("insert", "replace")
        for index in range(first, last)
    ]


def split(text: str) -> list[str]:
    """As compilers count lines: no other character than a line feed ends one."""
    return text.split("\n")


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many lines both begin with."""
    shortest = min(len(first), len(second))
    return next((index for index in range(shortest) if first[index] != second[index]), shortest)
