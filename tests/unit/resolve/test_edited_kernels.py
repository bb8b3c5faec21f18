from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from irdiff.resolve import edited_kernels, kernel_repository
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
        (".tuned.json", "other files"),
        ("pkg/README.md", "documents"),
        ("LICENSE", "documents"),
    ],
)
def test_what_no_kernel_is_made_of(path: str, word: str | None) -> None:
    plan = Plan(workloads="bench", pin=".pins/lock.txt")  # imports from the root, as by default
    assert edited_kernels._beside(PurePosixPath(path), [plan]) == word


def test_a_corpus_has_all_but_the_hidden_names_of_the_root(tmp_path: Path) -> None:
    """What is not counted must not be at hand, either."""
    for name in (".tuned.json", "pkg/.tuned.json"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text("{}")
    kernel_repository.link(tmp_path / "corpus", [tmp_path / "tree"])
    assert (tmp_path / "corpus" / "pkg" / ".tuned.json").is_file()
    assert not (tmp_path / "corpus" / ".tuned.json").exists()
