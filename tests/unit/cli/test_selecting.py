"""What a user types to select: right, or an error that names what comes near."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import case_ids
from irdiff.cli.durations import seconds
from irdiff.errors import UsageError
from irdiff.resolve import targets
from irdiff.stages import check_compared

WORKLOADS = ("elementwise/vector_add", "matmul/pointer", "matmul/split_k", "gluon/cdna_matmul")
FOLDERS = [Path(__file__).parents[3] / "targets"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("vector_add", ["vector_add"]),
        ("vector", ["elementwise/vector_add"]),
        ("matmul", ["matmul"]),
        ("mat", ["matmul/pointer", "matmul/split_k", "gluon/cdna_matmul"]),
        ("ointer:fp16@sm_90", ["matmul/pointer:fp16@sm_90"]),
        (":fp16", [":fp16"]),
        ("@gfx*", ["@gfx*"]),
        ("mat*/p*", ["mat*/p*"]),
    ],
)
def test_a_part_of_a_name_is_completed(pattern: str, wanted: list[str]) -> None:
    assert list(case_ids.completed([pattern], WORKLOADS)) == wanted


@pytest.mark.parametrize(("pattern", "near"), [("matmull", "matmul"), ("vectr_add:x", "vector_add")])
def test_a_name_that_fits_nothing_is_refused(pattern: str, near: str) -> None:
    with pytest.raises(UsageError) as raised:
        case_ids.completed(["matmul", pattern], WORKLOADS)
    assert near in raised.value.hint


def test_patterns_that_mean_no_case_are_known() -> None:
    names = ["matmul/pointer:fp16@sm_90"]
    assert case_ids.unmatched(["matmul", "matmul/pointer:bf16"], names) == ["matmul/pointer:bf16"]


def selected(names: list[str], patterns: list[str]) -> list[str]:
    return [target.name for target in targets.selected(names, patterns, FOLDERS)]


def test_targets_that_no_pattern_means_are_left_out() -> None:
    assert selected([], []) == ["sm_90", "sm_100", "gfx942", "gfx950"]
    assert selected([], ["matmul@sm_90"]) == ["sm_90"]
    assert selected([], ["matmul@gfx9*", "softmax@sm_100"]) == ["sm_100", "gfx942", "gfx950"]
    assert selected([], ["matmul@sm_80"]) == ["sm_80"], "one that is known, and no default"
    assert selected(["gfx942"], ["matmul"]) == ["gfx942"]


@pytest.mark.parametrize(
    ("names", "patterns", "hint"),
    [
        ([], ["matmul@sm90"], "did you mean sm_90?"),
        (["gfx942"], ["matmul@sm_90"], "leaves out what --case names"),
        (["sm90"], [], "did you mean sm_90?"),
    ],
)
def test_a_target_that_is_none_is_refused(names: list[str], patterns: list[str], hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        selected(names, patterns)
    assert hint in raised.value.hint


def test_a_stage_that_is_none_is_refused_where_all_stages_are_known() -> None:
    check_compared(["ttgir", "sass"], ["cuda", "hip"])
    check_compared(["asm"], ["npu"])
    with pytest.raises(UsageError) as raised:
        check_compared(["tgir"], ["cuda"])
    assert raised.value.hint == "did you mean ttgir?"


def test_times_have_units() -> None:
    assert [seconds(text) for text in ("60s", "2m", "1.5h", "1d", "30")] == [60, 120, 5400, 86400, 30]
