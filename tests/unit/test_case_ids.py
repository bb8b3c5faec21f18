from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from irdiff import case_ids
from irdiff.errors import CorpusError
from irdiff.resolve import corpus

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("matmul", True),
        ("matmul/pointer", True),
        ("matmul/point*", True),
        ("pointer", True),
        ("pointer@sm_90", True),
        ("point", False),
        ("matmul/pointer:fp16-4096", True),
        ("matmul/pointer:fp16-*@sm_90", True),
        ("@sm_90", True),
        (":fp16-4096", True),
        ("@gfx*", False),
        ("mat", False),
        ("attention", False),
        ("matmul/pointer:bf16-4096", False),
    ],
)
def test_patterns(pattern: str, expected: bool) -> None:
    assert case_ids.selects([pattern], "matmul/pointer:fp16-4096@sm_90") is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("a/b:fp16", True), ("a/b:fp16/main", True), ("a/b:fp16/other", False), ("a/b:fp1", False)],
)
def test_an_entry_means_every_launch_it_makes(pattern: str, expected: bool) -> None:
    assert case_ids.selects([pattern], "a/b:fp16/main@sm_90") is expected


def test_no_pattern_selects_all() -> None:
    assert case_ids.selects([], "a/b:c@sm_90")


def test_workloads_of_a_folder(tmp_path: Path) -> None:
    for name in ("a/x.py", "a/y.py", "b/z.py", "b/_helper.py", "b/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("LAUNCHES = {}")
    found = corpus.load(tmp_path)
    assert found.workloads == ("a/x", "a/y", "b/z")
    (tmp_path / "b/README.md").write_text("changed")
    assert corpus.load(tmp_path).digest == found.digest
    (tmp_path / "b/_helper.py").write_text("changed")
    assert corpus.load(tmp_path).digest != found.digest


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], ["a/x@sm_90", "a/x@gfx942", "b/z@sm_90", "b/z@gfx942"]),
        (["a"], ["a/x@sm_90", "a/x@gfx942"]),
        (["b/z:label@sm_90"], ["b/z@sm_90"]),
        (["@gfx*", "x:label"], ["a/x@sm_90", "a/x@gfx942", "b/z@gfx942"]),
        (["a@sm_100"], []),
    ],
)
def test_a_place_that_no_pattern_means_is_none(patterns: list[str], expected: list[str], build: Any) -> None:
    found = case_ids.places(patterns, ["a/x", "b/z"], [build.target("sm_90"), build.target("gfx942")])
    assert [f"{workload}@{target.name}" for workload, target in found] == expected


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no workload"):
        corpus.load(tmp_path)
