"""Figures that moved, over the cases of a group."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.group import figures
from irdiff.model import Case, Verdict
from tests.unit import runs

Facts = dict[str, Any]
DOWN = ({"registers": 26}, {"registers": 20})
STILL, UP = ({"registers": 8}, {"registers": 8}), ({"registers": 8}, {"registers": 9})
WIDE, NARROW = {"ptx.load_global_128": 4, "ptx.load_global_64": 1}, {"ptx.load_global_64": 9}
HALVES = {"ptx.load_global_64": 3, "ptx.load_global_32": 4}


def cases(*rows: tuple[Facts, Facts], verdict: Verdict = Verdict.CHANGED) -> list[Case]:
    return [
        runs.case(f"{verdict}/x:{n}@sm_90", verdict, base=base, head=head)
        for n, (base, head) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # values where they are the same in all cases, else by how much they moved
        ([DOWN], ["registers 26 → 20"]),
        ([DOWN, DOWN], ["registers 26 → 20"]),
        ([DOWN, ({"registers": 30}, {"registers": 24})], ["registers -6"]),
        ([DOWN, ({"registers": 30}, {"registers": 32})], ["registers -6 … +2"]),
        ([DOWN, ({"registers": 30}, {"registers": 30})], ["registers -6 … 0"]),
        ([STILL], []),
        ([({"spill_store_bytes": 0}, {"spill_store_bytes": 64.0})], ["spills 0 → 64 B"]),
        ([({"shared_bytes": 1234567}, {"shared_bytes": 1234568})], ["shared memory 1234567 → 1234568 B"]),
        # in half of the cases or more
        ([UP, STILL], ["registers 0 … +1"]),
        ([UP, STILL, STILL], []),
        # what is no number counts as none
        ([({"registers": "unknown"}, {"registers": 20}), ({"registers": 8}, {"registers": 10})], ["registers +2 … +20"]),
        # each kind of synchronization has its own word
        ([({"ptx.barrier": 3}, {"ptx.barrier": 4})], ["PTX `bar` and `mbarrier` 3 → 4"]),
        ([({"amdgcn.barrier": 3}, {"amdgcn.barrier": 4})], ["`s_barrier` 3 → 4"]),
        ([({"ptx.fence": 3}, {"ptx.fence": 4})], ["PTX `fence` 3 → 4"]),
        ([({"amdgcn.wait": 3}, {"amdgcn.wait": 4})], ["`s_waitcnt` 3 → 4"]),
        # the width of accesses, weighed by bits: not what there is most of
        ([(WIDE, NARROW)], ["global loads 128 → 64 bit"]),
        ([(NARROW, WIDE)], ["global loads 64 → 128 bit"]),
        ([({"ptx.load_global_128": 4}, {"ptx.load_global_128": 2})], []),
        ([(WIDE, NARROW), ({"ptx.load_global_64": 1}, {"ptx.load_global_32": 2})], ["global loads of other widths"]),
        ([({"amdgcn.store_shared_64": 2}, {"amdgcn.store_shared_128": 1})], ["shared stores 64 → 128 bit"]),
        ([({"ptx.load_global_128": 3}, HALVES)], ["global loads 128 → 64 bit"]),
        ([({"ptx.load_global_128": 3}, {**HALVES, "ptx.load_global_64": 2})], ["global loads 128 → 32 bit"]),
    ],
)  # fmt: skip
def test_figures_that_moved(rows: list[tuple[Facts, Facts]], wanted: list[str]) -> None:
    assert list(figures.moved(cases(*rows), "")) == wanted


def test_absorbed_cases_do_not_outvote_but_are_in_the_range() -> None:
    absorbed = cases(*[STILL] * 5, verdict=Verdict.ABSORBED)
    assert list(figures.moved([*cases(UP), *absorbed], "")) == ["registers 0 … +1"]
    assert list(figures.moved(absorbed, "")) == []


def test_what_the_causes_say_is_not_said_again() -> None:
    row = ({"ttgir.convert_layout": 4}, {"ttgir.convert_layout": 2})
    assert list(figures.moved(cases(row), "")) == ["`ttg.convert_layout` in TTGIR 4 → 2"]
    assert list(figures.moved(cases(row), "2 fewer `ttg.convert_layout`")) == []


@pytest.mark.parametrize(
    ("name", "heads", "subject", "wanted"),
    [
        ("amdgcn.barrier", (3, 3), "`ttg.barrier`", ["as many `s_barrier` in the assembly"]),
        ("amdgcn.barrier", (3, 4), "`ttg.barrier`", []),
        ("amdgcn.barrier", (3, 3), "`ttng.fence_async_shared`", []),
        ("ptx.fence", (3,), "`ttng.fence_async_shared`", ["as many `fence` in PTX"]),
    ],
)
def test_as_many_in_the_assembly_is_said_where_it_holds_for_all(
    name: str, heads: tuple[int, ...], subject: str, wanted: list[str]
) -> None:
    rows = cases(*(({name: 3}, {name: head}) for head in heads))
    assert list(figures.kept(rows, [subject])) == wanted
