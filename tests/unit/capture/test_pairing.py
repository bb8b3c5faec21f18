"""A failure stands for what it kept from being launched: nothing that broke reads as removed or added. And
which calls come in another order.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from irdiff.capture import pairing
from irdiff.capture.catalogs import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.compare import cases
from irdiff.model import (
    DEFAULT_OPTIONS,
    CaptureFailure,
    Failure,
    FailureKind,
    Launch,
    Pair,
    Sides,
    Target,
    Verdict,
)

TARGET = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
FAILURE = Failure(
    kind=FailureKind.ERROR, stage="capture", message="No module named 'torch'", signal=None, stderr="…"
)


def failure(name: str, *, expected: bool = True) -> CaptureFailure:
    return CaptureFailure(id=name, expected=expected, failure=FAILURE)


def verdict_of(matched: pairing.Matched) -> tuple[Verdict, str | None]:
    pair = Pair(
        id=f"{matched.id}@sm_90",
        launch_id=matched.id,
        target=TARGET,
        base=matched.base,
        head=matched.head,
        supported=Sides(base=True, head=True),
        moved=False,
    )
    case = cases.one_sided(pair, Sides(base=None, head=None))
    return case.verdict, case.error


@pytest.mark.parametrize("swapped", [False, True], ids=["at head", "at base"])
@pytest.mark.parametrize(
    ("ids", "fails"),
    [
        (["f/w:a", "f/w:b"], ["f/w:*"]),
        (["f/w:a/k1", "f/w:a/k2"], ["f/w:a"]),
        (["f/w:a/k1#1", "f/w:a/k1#2"], ["f/w:a"]),
        (["f/w:a/k1", "f/w:a/b/k2"], ["f/w:a", "f/w:a/b"]),
        (["f/w:a"], ["f/w:a"]),
    ],
)
def test_what_failed_on_one_side_breaks_there(launch: Launch, ids, fails, swapped: bool) -> None:
    sides = [[replace(launch, id=name) for name in ids], [failure(name) for name in fails]]
    rows = pairing.match(*(reversed(sides) if swapped else sides))
    assert [row.id for row in rows] == ids
    wanted = (Verdict.FIXED, "base: ") if swapped else (Verdict.BROKEN, "head: ")
    assert {verdict_of(row) for row in rows} == {(wanted[0], wanted[1] + FAILURE.message)}


def test_the_nearest_failure_is_told(launch: Launch) -> None:
    near = replace(failure("f/w:a"), failure=replace(FAILURE, message="near"))
    rows = pairing.match([replace(launch, id="f/w:a/k")], [failure("f/w:*"), near])
    assert [(row.id, verdict_of(row)[0]) for row in rows] == [
        ("f/w:a/k", Verdict.BROKEN),
        ("f/w:*", Verdict.FAILING),  # nothing is lost: it stands for no other
    ]
    assert verdict_of(rows[0])[1] == "head: near"


def test_what_fails_on_both_sides_is_failing() -> None:
    rows = pairing.match([failure("f/w:a"), failure("f/w:b")], [failure("f/w:*")])
    assert [(row.id, verdict_of(row)[0]) for row in rows] == [
        ("f/w:a", Verdict.FAILING),
        ("f/w:b", Verdict.FAILING),
    ]
    (row,) = pairing.match([failure("f/w:*")], [failure("f/w:*")])
    assert verdict_of(row)[0] is Verdict.FAILING


def test_what_is_new_and_does_not_compile_is_not_added() -> None:
    (row,) = pairing.match([], [failure("f/w:*")])
    assert (row.id, verdict_of(row)[0]) == ("f/w:*", Verdict.FAILING)


def test_what_failed_and_is_gone_is_removed() -> None:
    (row,) = pairing.match([failure("f/w:a")], [])
    assert verdict_of(row)[0] is Verdict.REMOVED


def test_launches_of_one_side_only(launch: Launch) -> None:
    both, gone, new = (replace(launch, id=f"f/w:{name}") for name in ("both", "gone", "new"))
    rows = pairing.match([both, gone], [both, new])
    assert [(row.id, row.base, row.head) for row in rows] == [
        ("f/w:both", both, both),
        ("f/w:gone", gone, None),
        ("f/w:new", None, new),
    ]
    assert [verdict_of(row)[0] for row in rows[1:]] == [Verdict.REMOVED, Verdict.ADDED]


def test_a_failure_of_another_label_stands_for_nothing_else(launch: Launch) -> None:
    a, ab = replace(launch, id="f/w:a"), replace(launch, id="f/w:ab")
    rows = {row.id: verdict_of(row)[0] for row in pairing.match([ab], [failure("f/w:a")])}
    assert rows == {"f/w:ab": Verdict.REMOVED, "f/w:a": Verdict.FAILING}
    assert a.id in rows


def test_a_label_that_fails_after_a_launch_has_failed(launch: Launch) -> None:
    one = replace(launch, id="f/w:a")
    (row,) = pairing.match([one], [one, failure("f/w:a")])
    assert verdict_of(row)[0] is Verdict.BROKEN


@pytest.mark.parametrize("expected", [False, True])
def test_whether_it_was_meant_to_compile_is_for_the_other_side_to_say(launch: Launch, expected: bool) -> None:
    (row,) = pairing.match([replace(launch, id="f/w:a", expected=expected)], [failure("f/w:*")])
    assert row.head is not None
    assert row.head.expected is expected


# the order of calls


@pytest.mark.parametrize(
    ("base", "head", "moved"),
    [
        ("abc", "abc", ""),
        ("ab", "ba", "b"),
        ("abcd", "bcda", "a"),
        ("abcd", "dabc", "d"),
        ("abc", "axbc", ""),
        ("axbc", "abc", ""),
        ("aab", "ab", "a"),
        ("aba", "aab", "a"),
    ],
    ids=["same", "swap", "to the end", "to the front", "inserted", "removed", "once less", "between"],
)
def test_the_fewest_calls_have_moved(launch: Launch, base: str, head: str, moved: str) -> None:
    """Each letter is a call of the launch of that name, in the order of one entry."""

    def launches(calls: str) -> tuple[Launch, ...]:
        return tuple(
            replace(
                launch,
                id=f"a/b:c/{name}",
                places=tuple(place for place, call in enumerate(calls, 1) if call == name),
            )
            for name in sorted(set(calls))
        )

    catalogs = Sides(base=base, head=head).map(lambda calls: replace(NOTHING, launches=launches(calls)))
    rows = pairing.pairs(
        [CapturedWorkload(workload="a/b", target=TARGET, catalogs=catalogs)], DEFAULT_OPTIONS
    )
    assert {pair.launch_id.rpartition("/")[2] for pair in rows if pair.moved} == set(moved)
