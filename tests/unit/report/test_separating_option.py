"""One sentence where one option of the launches tells slower cases from faster ones, and none elsewhere."""

from dataclasses import replace

import pytest

from irdiff.model import Verdict
from irdiff.report import separating_option
from irdiff.report.timing_summary import TimingRow
from irdiff.timing.results import Speed
from tests.unit.report.test_reports import measurement
from tests.unit.runs import case, run


def said(slower, faster):
    """Of cases whose launches have these options."""
    speeds = [(Speed.SLOWER, options) for options in slower] + [(Speed.FASTER, options) for options in faster]
    cases = [case(f"a/x:{number}@sm_90", Verdict.CHANGED) for number in range(len(speeds))]
    of = run(*cases)
    launches = {
        key: replace(launch, options=options)
        for each, (_, options) in zip(cases, speeds, strict=True)
        for key in each.launches
        if (launch := of.launches[key])
    }
    rows = [
        TimingRow(case_id=each.id, measured=measurement(speed), outputs="bitwise equal")
        for each, (speed, _) in zip(cases, speeds, strict=True)
    ]
    return separating_option.sentence(replace(of, launches=launches), rows)


FOUR, EIGHT, SIXTEEN = ({"num_warps": number, "num_stages": "3"} for number in ("4", "8", "16"))


def test_the_option_that_separates_them_is_named_with_its_values():
    assert said([FOUR] * 5, [EIGHT, EIGHT, SIXTEEN, EIGHT]) == (
        "num_warps separates them: all 5 slower cases have 4, all 4 faster ones 8 or 16."
    )


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ([FOUR] * 5, [EIGHT] * 3),
        ([FOUR] * 5, [EIGHT] * 4 + [FOUR]),
        ([FOUR] * 5, [EIGHT | {"num_stages": "2"}] * 5),
        ([FOUR] * 5, []),
    ],
    ids=["three are no rule", "one has the other's value", "two options would do", "none is faster"],
)
def test_no_sentence_where_none_is_sure(slower, faster):
    assert said(slower, faster) == ""
