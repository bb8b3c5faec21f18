from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from irdiff.resolve import edited_kernels
from irdiff.resolve.kernel_repository import Plan


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("pkg/k.py", None),
        ("pkg/tuned.json", None),
        ("pkg/.tuned.json", None),
        ("pkg/.cache/tuned.json", None),
        ("bench/README.md", None),
        (".pins/lock.txt", None),
        (".github/workflows/test.yml", "other files"),
        (".gitignore", "other files"),
        (".tuned.json", None),
        (".cache/tuned.json", None),
        ("pkg/README.md", "documents"),
        ("LICENSE", "documents"),
    ],
)
def test_what_no_kernel_is_made_of(path: str, word: str | None) -> None:
    plan = Plan(workloads="bench", pin=".pins/lock.txt")  # imports from the root, as by default
    assert edited_kernels._beside(PurePosixPath(path), [plan]) == word
