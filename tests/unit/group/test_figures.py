"""Figures that moved, over the cases of a group."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.group import figures
from irdiff.model import Case, Verdict


def cases(build: Any, *rows: tuple[dict[str, Any], dict[str, Any]]) -> list[Case]:
    return [
        build.case(f"a/x:{n}@sm_90", Verdict.CHANGED, base=base, head=head)
        for n, (base, head) in enumerate(rows)
    ]


def moved(build: Any, *rows: tuple[dict[str, Any], dict[str, Any]], said: str = "") -> list[str]:
    return list(figures.moved(cases(build, *rows), said))


def test_values_where_they_are_the_same_in_all_cases_else_by_how_much_they_moved(build: Any) -> None:
    row = ({"registers": 26}, {"registers": 20})
    assert moved(build, row) == moved(build, row, row) == ["registers 26 → 20"]
    assert moved(build, row, ({"registers": 30}, {"registers": 24})) == ["registers -6"]
    assert moved(build, row, ({"registers": 30}, {"registers": 32})) == ["registers -6 … +2"]
    assert moved(build, row, ({"registers": 30}, {"registers": 30})) == ["registers -6 … 0"]
    assert moved(build, ({"registers": 26}, {"registers": 26})) == []
    assert moved(build, ({"spill_store_bytes": 0}, {"spill_store_bytes": 64.0})) == ["spills 0 → 64 B"]


def test_what_moved_in_fewer_than_half_of_the_cases_is_not_told(build: Any) -> None:
    still, row = ({"registers": 8}, {"registers": 8}), ({"registers": 8}, {"registers": 9})
    assert moved(build, row, still) == ["registers 0 … +1"]
    assert moved(build, row, still, still) == []


def test_absorbed_cases_do_not_outvote_but_are_in_the_range(build: Any) -> None:
    same = {"registers": 8}
    absorbed = [build.case(f"b/x:{n}@sm_90", Verdict.ABSORBED, base=same, head=same) for n in range(5)]
    rows = [*cases(build, ({"registers": 8}, {"registers": 9})), *absorbed]
    assert list(figures.moved(rows, "")) == ["registers 0 … +1"]
    assert list(figures.moved(absorbed, "")) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ptx.barrier", "PTX `bar` and `mbarrier` 3 → 4"),
        ("amdgcn.barrier", "`s_barrier` 3 → 4"),
        ("ptx.fence", "PTX `fence` 3 → 4"),
        ("amdgcn.wait", "`s_waitcnt` 3 → 4"),
        ("ttgir.convert_layout", "`ttg.convert_layout` in TTGIR 3 → 4"),
    ],
)
def test_each_kind_of_synchronization_has_its_own_word(build: Any, name: str, words: str) -> None:
    assert moved(build, ({name: 3}, {name: 4})) == [words]


def test_what_the_causes_say_is_not_said_again(build: Any) -> None:
    row = ({"ttgir.convert_layout": 4}, {"ttgir.convert_layout": 2})
    assert moved(build, row, said="2 fewer `ttg.convert_layout`") == []


def test_the_width_of_accesses(build: Any) -> None:
    before, after = {"ptx.load_global_128": 4, "ptx.load_global_64": 1}, {"ptx.load_global_64": 9}
    assert moved(build, (before, after)) == ["global loads 128 → 64 bit"]
    assert moved(build, (after, before)) == ["global loads 64 → 128 bit"]
    assert moved(build, ({"ptx.load_global_128": 4}, {"ptx.load_global_128": 2})) == [], "only fewer"
    other = ({"ptx.load_global_64": 1}, {"ptx.load_global_32": 2})
    assert moved(build, (before, after), other) == ["global loads of other widths"]
    shared = {"amdgcn.store_shared_64": 2}, {"amdgcn.store_shared_128": 1}
    assert moved(build, shared) == ["shared stores 64 → 128 bit"]


def test_as_many_in_the_assembly_is_said_where_it_holds_for_all(build: Any) -> None:
    same, more = (
        ({"amdgcn.barrier": 3}, {"amdgcn.barrier": 3}),
        ({"amdgcn.barrier": 3}, {"amdgcn.barrier": 4}),
    )
    words = ["as many `s_barrier` in the assembly"]
    assert list(figures.kept(cases(build, same, same), ["`ttg.barrier`"])) == words
    assert list(figures.kept(cases(build, same, more), ["`ttg.barrier`"])) == []
    assert list(figures.kept(cases(build, same), ["`ttng.fence_async_shared`"])) == []
    fences = cases(build, ({"ptx.fence": 1}, {"ptx.fence": 1}))
    assert list(figures.kept(fences, ["`ttng.fence_async_shared`"])) == ["as many `fence` in PTX"]


def test_widths_are_weighed_by_bits(build: Any) -> None:
    """What took the place of the wide accesses is what moves most bits now, not what there is most of."""
    before = {"ptx.load_global_128": 3}
    assert moved(build, (before, {"ptx.load_global_64": 3, "ptx.load_global_32": 4})) == [
        "global loads 128 → 64 bit"
    ]
    tie = {"ptx.load_global_64": 2, "ptx.load_global_32": 4}
    assert moved(build, (before, tie)) == ["global loads 128 → 32 bit"]


def test_a_figure_that_is_no_number_counts_as_none(build: Any) -> None:
    rows = ({"registers": "unknown"}, {"registers": 20}), ({"registers": 8}, {"registers": 10})
    assert moved(build, *rows) == ["registers +2 … +20"]


def test_whole_numbers_are_told_to_the_last_digit(build: Any) -> None:
    row = {"shared_bytes": 1234567}, {"shared_bytes": 1234568}
    assert moved(build, row) == ["shared memory 1234567 → 1234568 B"]
