"""What a user types to select: right, or an error that names what comes near."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from irdiff import case_ids
from irdiff.capture import notices
from irdiff.cli.options import DURATION
from irdiff.errors import UsageError
from irdiff.resolve import targets
from irdiff.stages import check_compared

WORKLOADS = ("elementwise/vector_add", "matmul/pointer", "matmul/split_k", "gluon/cdna_matmul")
FOLDERS = [Path(__file__).parents[3] / "targets"]


LAUNCHES = (
    "elementwise/vector_add:fp16-1m",
    "elementwise/vector_add:fp32-1m",
    "matmul/pointer:fp16",
    "matmul/pointer:fp16-4096",
    "matmul/split_k:bf16/main",
    "matmul/split_k:bf16/main#2",
    "gluon/cdna_matmul:fp8",
)


def completed(pattern: str) -> list[str]:
    def launches_of(workloads: Sequence[str]) -> list[str]:
        return [name for name in LAUNCHES if name.partition(":")[0] in workloads]

    return list(case_ids.completed([pattern], WORKLOADS, launches_of, ["sm_90", "gfx942"])[pattern])


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("vector_add", ["vector_add"]),
        ("vector", ["elementwise/vector_add"]),
        ("matmul", ["matmul"]),
        ("mat", ["matmul/pointer", "matmul/split_k", "gluon/cdna_matmul"]),
        ("@gfx*", ["@gfx*"]),
        ("mat*/p*", ["mat*/p*"]),
        (":fp16", [":fp16"]),
        ("matmul/pointer:fp16", ["matmul/pointer:fp16"]),
        ("split_k:bf16@sm_90", ["split_k:bf16@sm_90"]),
        ("matmul/split_k:bf16/main#2@gfx942", ["matmul/split_k:bf16/main#2@gfx942"]),
        ("ointer:fp16@sm_90", ["matmul/pointer:fp16@sm_90", "matmul/pointer:fp16-4096@sm_90"]),
        ("pointer:4096", ["matmul/pointer:fp16-4096"]),
        ("fp8", ["gluon/cdna_matmul:fp8"]),
        ("fp32-1m@gfx942", ["elementwise/vector_add:fp32-1m@gfx942"]),
        ("matmul fp16", ["matmul/pointer:fp16", "matmul/pointer:fp16-4096"]),
        ("fp8 gfx942", ["gluon/cdna_matmul:fp8@gfx942"]),
        ("main", ["matmul/split_k:bf16/main", "matmul/split_k:bf16/main#2"]),
    ],
)
def test_a_part_of_a_name_is_completed(pattern: str, wanted: list[str]) -> None:
    assert completed(pattern) == wanted
    cases = [f"{launch}@{target}" for launch in LAUNCHES for target in ("sm_90", "gfx942")]
    chosen = [name for name in cases if case_ids.selects(wanted, name)]
    if pattern not in wanted:
        assert chosen == case_ids.meant(pattern, cases), "as CASE of a run is read"


def test_workloads_are_run_for_their_labels_only_where_those_decide() -> None:
    def refuse(_: Sequence[str]) -> list[str]:
        raise AssertionError

    patterns = ["matmul", "mat", "matmul/*:fp*", "@sm_90"]
    assert list(case_ids.completed(patterns, WORKLOADS, refuse)) == patterns


def test_workloads_are_run_once_for_all_patterns() -> None:
    asked = []

    def launches_of(workloads: Sequence[str]) -> list[str]:
        asked.append(list(workloads))
        return [name for name in LAUNCHES if name.partition(":")[0] in workloads]

    patterns = ["matmul/pointer:fp16", "split_k:bf16", "pointer:4096", "vector"]
    found = case_ids.completed(patterns, WORKLOADS, launches_of)
    assert asked == [["matmul/pointer", "matmul/split_k"]]
    assert found["pointer:4096"] == ("matmul/pointer:fp16-4096",)
    assert found == {pattern: tuple(completed(pattern)) for pattern in patterns}


@pytest.mark.parametrize(
    ("pattern", "near"), [("matmull", "matmul"), ("vectr_add", "vector_add"), ("pointer:fp15", "fp16")]
)
def test_a_name_that_fits_nothing_is_refused(pattern: str, near: str) -> None:
    with pytest.raises(UsageError, match="means no case") as raised:
        completed(pattern)
    assert near in raised.value.hint


def test_a_misspelt_workload_is_refused_before_any_is_run() -> None:
    def refuse(_: Sequence[str]) -> list[str]:
        raise AssertionError

    with pytest.raises(UsageError, match="means no case") as raised:
        case_ids.completed(["matmul/pinter:fp16"], WORKLOADS, refuse)
    assert "matmul/pointer" in raised.value.hint


def test_what_a_part_of_a_name_stood_for_is_said() -> None:
    cases = [f"{launch}@sm_90" for launch in LAUNCHES[:5]]
    typed = {"matmul": ("matmul",), "fp": LAUNCHES[:4], "bf16": ("matmul/split_k:bf16/main",)}
    assert list(notices.patterns(typed, cases)) == [
        "--case fp is a part of elementwise/vector_add:fp16-1m, elementwise/vector_add:fp32-1m, "
        "matmul/pointer:fp16 and 1 more",
        "--case bf16 is a part of matmul/split_k:bf16/main",
    ]
    found = list(notices.patterns(typed, cases[:1]))
    assert found[1] == "--case fp is a part of elementwise/vector_add:fp16-1m", "others are of another tier"
    assert [text for text in found if text.endswith("means no case")] == [
        "--case matmul means no case",
        "--case bf16 means no case",
    ]


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
    assert [DURATION.convert(text, None, None) for text in ("60s", "2m", "1.5h", "1d", "30")] == [
        60,
        120,
        5400,
        86400,
        30,
    ]
