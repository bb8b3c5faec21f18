from __future__ import annotations

import pytest

from irdiff.capture import changed_files

TEXT = '''
import triton


def settings(n):
    """How a kernel is launched."""
    return 4 if n < 4096 else 8


class Gate:
    @staticmethod
    @cached
    def forward(x):
        def inner():
            return x
        return inner
'''


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("How a kernel is launched.", "Other words.", []),
        ("    return 4", "    # why\n    return 4", []),
        ("import triton\n", "import triton\n\nEPS = 1\n", []),
        ("4096", "2048", [("settings", (5, 5))]),
        ("import triton\n", "import triton\nimport torch\n", []),
        ("            return x", "            return x + 1", [("Gate.forward", (11, 11))]),
        ("def settings(n)", "def other(n)", []),
    ],
)
def test_what_a_function_does_counts(old: str, new: str, found: list[tuple[str, tuple[int, int]]]) -> None:
    rows = changed_files.changed_functions(TEXT, TEXT.replace(old, new, 1))
    assert [(row.name, row.lines) for row in rows] == found


def test_lines_are_those_of_each_side() -> None:
    (row,) = changed_files.changed_functions(TEXT, "\n\n" + TEXT.replace("8", "16"))
    assert row.lines == (5, 7)


def test_what_the_frontend_runs_where_nobody_notes_it_is_not_said_to_be_idle() -> None:
    text = "@triton.constexpr_function\ndef half(n):\n    return n // 2\n"
    assert changed_files.changed_functions(text, text.replace("2", "3")) == []


def test_no_python() -> None:
    assert changed_files.changed_functions("def", "def f(): pass") == []
