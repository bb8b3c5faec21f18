"""The configs of an autotuner are matched by what they are: none is lost, and no id is given twice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from irdiff.capture import pairing
from irdiff.model import CaptureFailure, Failure, FailureKind, Launch

A, B, C, N = "8 warps", "4 warps", "2 warps", "16 warps"


def configs(launch: Launch, *warps: str, edited: bool = False) -> list[Launch]:
    """One launch for each; as after an edit of the kernel, of another input digest."""
    many = len(warps) > 1
    return [
        replace(
            launch,
            id=f"f/w:a/k#{number}" if many else "f/w:a",
            label="a",
            kernel="k",
            digest=f"{name}{' edited' * edited}",
            options={"num_warps": name},
        )
        for number, name in enumerate(warps, 1)
    ]


def warps_of(rows: list[pairing.Matched]) -> dict[str, tuple[str | None, str | None]]:
    return {
        row.id.removeprefix("f/w:a"): (
            row.base.options["num_warps"] if isinstance(row.base, Launch) else None,
            row.head.options["num_warps"] if isinstance(row.head, Launch) else None,
        )
        for row in rows
    }


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        ((A, B), (N, A, B), {"/k#1": (None, N), "/k#2": (A, A), "/k#3": (B, B)}),
        ((A, B), (B, A), {"/k#1": (B, B), "/k#2": (A, A)}),
        ((A, B), (B,), {"": (B, B), "/k#1": (A, None)}),
        ((B,), (A, B), {"/k#1": (None, A), "/k#2": (B, B)}),
        ((A, B, C), (B, C), {"/k#1": (B, B), "/k#2": (C, C), "/k#1-at-base": (A, None)}),
        ((A, B), (N, B), {"/k#1": (A, N), "/k#2": (B, B)}),
        ((A, B), (N, A), {"/k#1": (None, N), "/k#2": (A, A), "/k#2-at-base": (B, None)}),
        ((A,), (N,), {"": (A, N)}),
    ],
)
def test_a_config_is_matched_with_itself(launch: Launch, base, head, wanted, edited: bool) -> None:
    rows = pairing.match(configs(launch, *base), configs(launch, *head, edited=edited))
    assert warps_of(rows) == wanted


def test_an_equal_input_comes_before_an_equal_number(launch: Launch) -> None:
    """Launches that were specialized alike may read another global constant."""
    one, two = (replace(row, options={}) for row in configs(launch, A, B))
    swapped = [replace(one, digest=two.digest), replace(two, digest=one.digest)]
    rows = pairing.match([one, two], swapped)
    assert [(row.id, row.base) for row in rows] == [(two.id, one), (one.id, two)]


def test_a_failure_still_stands_for_all_of_its_label(launch: Launch) -> None:
    failure = Failure(kind=FailureKind.ERROR, stage="capture", message="no", signal=None, stderr="")
    failed = CaptureFailure(id="f/w:a", expected=True, failure=failure)
    rows = pairing.match(configs(launch, A, B), [failed])
    assert [(row.id, isinstance(row.head, CaptureFailure)) for row in rows] == [
        ("f/w:a/k#1", True),
        ("f/w:a/k#2", True),
    ]


def test_no_launch_is_lost_or_used_twice(launch: Launch) -> None:
    names = (A, B, C, N)
    choices = [row for count in range(4) for row in itertools.permutations(names, count)]
    for before, after in itertools.product(choices, choices):
        base, head = configs(launch, *before), configs(launch, *after, edited=True)
        rows = pairing.match(base, head)
        assert len({row.id for row in rows}) == len(rows)
        assert sorted(row.base.id for row in rows if row.base) == sorted(row.id for row in base)
        assert sorted(row.head.id for row in rows if row.head) == sorted(row.id for row in head)
        assert all(row.head is None or row.id == row.head.id for row in rows)
