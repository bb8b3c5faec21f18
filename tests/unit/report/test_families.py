from __future__ import annotations

from dataclasses import replace

from irdiff.model import Run, Verdict
from irdiff.report import families
from tests.unit.report.runs import make_case, make_run


def two_families() -> Run:
    """matmul: sm_90 changed and broken, sm_100 unchanged; attention: gfx942 absorbed."""
    first = make_case(0, Verdict.CHANGED)
    broken = replace(make_case(0, Verdict.BROKEN), id="matmul/other:x@sm_90")
    return make_run((first, broken, make_case(1, Verdict.UNCHANGED), make_case(6, Verdict.ABSORBED)))


def test_counts_changed_of_compared_and_says_what_broke_beside_it() -> None:
    attention, matmul = families.table(two_families())
    assert (attention.name, matmul.name) == ("attention", "matmul")
    assert [share.words for share in matmul.by_target] == ["1/1, 1 broken", "0/1", "", ""]
    assert (matmul.total.words, matmul.total.percent) == ("1/2, 1 broken", "50%")
    assert [share.words for share in attention.by_target] == ["", "", "0/1", ""]


def test_one_family_has_no_table() -> None:
    run = make_run((make_case(0, Verdict.CHANGED), make_case(1, Verdict.UNCHANGED)))
    assert families.table(run) == []


def test_families_that_were_not_compared_are_no_rows() -> None:
    unsupported = make_case(6, Verdict.UNSUPPORTED)
    assert families.table(make_run((make_case(0, Verdict.CHANGED), unsupported))) == []
