"""The texts that name a case of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irdiff.cli.run_argument import find_case
from irdiff.errors import UsageError
from irdiff.model import Run, Verdict
from irdiff.report import group_names
from tests.unit import runs
from tests.unit.runs import large_run

# cases of a run


@pytest.fixture(scope="module")
def run() -> Run:
    return large_run(60, 6)


def test_a_case_is_named_by_its_id_a_part_of_it_or_a_group(run: Run) -> None:
    assert find_case(run, run.cases[3].id) is run.cases[3]
    for row in group_names.named(run):
        for text in (str(row.number), row.short, row.group.id):
            assert find_case(run, text).id == row.group.representative
    case = runs.numbered(0, Verdict.CHANGED)
    longer = runs.run(case, replace(case, id=case.id + "0"))
    assert find_case(longer, case.id).id == case.id, "a whole id wins over ids that contain it"


def test_a_text_that_means_no_case_or_several_is_answered_with_those_that_come_near(run: Run) -> None:
    misspelt = run.cases[0].id.replace("sm_90", "sm90").replace("attention", "atention")
    reasons = {
        "matmul": r"'matmul' means \d+ cases:\n    matmul/",
        "nothing": "matches no case of the run",
        **dict.fromkeys(("7", "0", "g:ffff", "g:"), "no change group"),
        misspelt: f"did you mean .*{run.cases[0].id}",
    }
    for text, reason in reasons.items():
        with pytest.raises(UsageError) as raised:
            find_case(run, text)
        assert raised.match(reason)
