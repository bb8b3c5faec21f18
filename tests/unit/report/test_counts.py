"""What a report counts over many cases: statistics and their outliers, shared errors, nondeterminism."""

import pytest

from irdiff.model import Verdict
from irdiff.report import error_clusters, moved
from tests.unit import runs


def changed(name, base, head):
    facts = {"spill_store_bytes": 0, "spill_load_bytes": 0, "warps_per_multiprocessor": 16}
    name = f"matmul/{name}:x@sm_90"
    return runs.case(name, Verdict.CHANGED, base={**facts, **base}, head={**facts, **head})


@pytest.fixture
def run():
    spilling = {"registers": 255, "warps_per_multiprocessor": 4, "spill_store_bytes": 32}
    return runs.run(
        changed("a", {"ptx.total": 100, "registers": 64}, {"ptx.total": 90, "registers": 64}),
        changed("b", {"ptx.total": 100, "registers": 64}, {"ptx.total": 150, "registers": 80}),
        changed("c", {"registers": 255, "warps_per_multiprocessor": 8}, spilling),
        changed("d", {"ptx.total": 7}, {"ptx.total": 7}),
        changed("e", {"ptx.total": 7}, {"ptx.total": 8}),
        runs.case("matmul/f:x@sm_90"),
    )


def test_a_statistic_counts_worse_better_same_and_unknown(run):
    rows = {row.statistic.name: row for row in moved.by_target(run)}
    found, occupancy = rows["instructions"], rows["occupancy"]
    assert [move.case_id[:8] for move in found.worse] == ["matmul/b", "matmul/e"]
    assert (len(found.better), found.same, found.unknown) == (1, 2, 1)
    assert (found.affected, found.total) == ((207, 248), (214, 255))
    assert found.quantiles == pytest.approx((-0.1, -0.08, 0, 0, 0.14, 0.43, 0.5), abs=0.01)
    assert (len(occupancy.worse), len(occupancy.better)) == (1, 0), "fewer warps are worse"
    assert "code size" not in rows, "it moves nowhere"


def test_outliers_are_the_worst_first(run):
    found = moved.outliers(moved.by_target(run))
    assert [row.case_id for row in found[:2]] == ["matmul/c:x@sm_90"] * 2
    assert "matmul/d:x@sm_90" not in {row.case_id for row in found}


def test_one_error_of_many_cases_is_one_row_with_what_differs_left_open():
    messages = ["odd", *(f"needs {n} bytes of 'k{n}' in /tmp/{n}" for n in range(2)), None]
    cases = [runs.case(f"a/x:{n}@sm_90", Verdict.BROKEN, error=text) for n, text in enumerate(messages)]
    assert [(row.words, row.names) for row in error_clusters.errors(cases)] == [
        ("needs … bytes of … in …", "a/x:1@sm_90 and 1 more"),
        ("odd", "a/x:0@sm_90"),
        ("no message", "a/x:3@sm_90"),
    ]


def test_nondeterminism_of_head_comes_before_that_of_base_alone():
    sides = {"none": (), "base": ("base",), "both": ("base", "head"), "head": ("head",)}
    cases = [runs.case(f"a/x:{name}@sm_90", nondeterministic=found) for name, found in sides.items()]
    found = error_clusters.unstable(cases)
    assert [same[0].id for _, same in found] == ["a/x:both@sm_90", "a/x:head@sm_90", "a/x:base@sm_90"]
