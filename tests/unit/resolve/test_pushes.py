from __future__ import annotations

from irdiff.resolve import pushes

NONE = "0" * 40


def test_what_is_pushed() -> None:
    lines = [
        f"refs/heads/feature {'a' * 40} refs/heads/feature {NONE}\n",
        f"HEAD {'b' * 40} refs/heads/main {'c' * 40}\n",
        f"refs/tags/v1 {'d' * 40} refs/tags/v1 {NONE}\n",
        f"(delete) {NONE} refs/heads/gone {'e' * 40}\n",
        "\n",
    ]
    assert pushes.pushed_commits(lines) == [("a" * 40, NONE), ("b" * 40, "c" * 40)]
