"""What a report counts over many cases: families, statistics and their outliers, errors, nondeterminism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from irdiff.findings import Finding, FindingKind
from irdiff.model import Case, Run, Verdict
from irdiff.report import error_clusters, families, moved
from irdiff.report.moved import Movement
from tests.unit import runs

# families


def test_families_count_changed_of_compared_and_what_broke_apart_from_it() -> None:
    """matmul: sm_90 changed and broken, sm_100 unchanged; attention: gfx942 absorbed."""
    verdicts = {
        "matmul/a:x@sm_90": Verdict.CHANGED,
        "matmul/b:x@sm_90": Verdict.BROKEN,
        "matmul/a:x@sm_100": Verdict.UNCHANGED,
        "attention/a:x@gfx942": Verdict.ABSORBED,
        "moe/a:x@gfx942": Verdict.UNSUPPORTED,
    }
    attention, matmul = families.table(runs.run(*(runs.case(*row) for row in verdicts.items())))
    assert [share.words for share in matmul.by_target] == ["1/1, 1 broken", "0/1", ""]
    assert (matmul.total.words, matmul.total.percent) == ("1/2, 1 broken", "50%")
    assert [share.words for share in attention.by_target] == ["", "", "0/1"]


def test_one_family_has_no_table() -> None:
    cases = (runs.case("a/x:1@sm_90", Verdict.CHANGED), runs.case("b/x:1@sm_90", Verdict.UNSUPPORTED))
    assert families.table(runs.run(*cases)) == []


# better and worse


def changed(name: str, base: Mapping[str, int], head: Mapping[str, int], **more: Any) -> Case:
    facts = {"spill_store_bytes": 0, "spill_load_bytes": 0, "warps_per_multiprocessor": 16}
    return runs.case(
        f"matmul/{name}:x@sm_90", Verdict.CHANGED, base={**facts, **base}, head={**facts, **head}, **more
    )


@pytest.fixture
def run() -> Run:
    same = (Finding(FindingKind.SAME_INSTRUCTIONS),)
    spilling = {"registers": 255, "warps_per_multiprocessor": 4, "spill_store_bytes": 32}
    return runs.run(
        changed("a", {"ptx.total": 100, "registers": 64}, {"ptx.total": 90, "registers": 64}),
        changed("b", {"ptx.total": 100, "registers": 64}, {"ptx.total": 150, "registers": 80}),
        changed("c", {"registers": 255, "warps_per_multiprocessor": 8}, spilling),
        changed("d", {"ptx.total": 7}, {"ptx.total": 7}, findings=same),
        changed("e", {"ptx.total": 7}, {"ptx.total": 8}, findings=same),
        runs.case("matmul/f:x@sm_90"),
    )


def of(run: Run) -> dict[str, Movement]:
    return {row.statistic.name: row for row in moved.by_target(run)}


def test_a_statistic_counts_worse_better_same_and_unknown(run: Run) -> None:
    found = of(run)["instructions"]
    assert [move.case_id[:8] for move in found.worse] == ["matmul/b", "matmul/e"]
    assert (len(found.better), found.same, found.unknown) == (1, 2, 1)
    assert (found.affected, found.total) == ((207, 248), (214, 255))
    assert (found.quantiles[0], found.quantiles[-1]) == pytest.approx((-0.1, 0.5))
    occupancy = of(run)["occupancy"]
    assert (len(occupancy.worse), len(occupancy.better)) == (1, 0), "fewer warps are worse"
    assert "code size" not in of(run), "it moves nowhere"


def test_only_the_schedule_moved(run: Run) -> None:
    assert [case.id for case in run.cases if moved.only_scheduled(case)] == ["matmul/d:x@sm_90"]


def test_outliers_are_the_worst_first(run: Run) -> None:
    found = moved.outliers(moved.by_target(run))
    assert (found[0].case_id, len(found[0].why)) == ("matmul/c:x@sm_90", 2)
    assert "matmul/d:x@sm_90" not in {row.case_id for row in found}


@pytest.mark.parametrize(
    ("values", "share", "wanted"), [([0.0, 1.0, 2.0], 0.5, 1.0), ([0.0, 1.0], 0.25, 0.25), ([], 0.95, 0.0)]
)
def test_quantiles_lie_between_neighbours(values: list[float], share: float, wanted: float) -> None:
    assert moved.quantile(values, share) == wanted


# what many cases have in common


def errors(*messages: str | None) -> list[tuple[str, str]]:
    cases = [runs.case(f"a/x:{n}@sm_90", Verdict.BROKEN, error=message) for n, message in enumerate(messages)]
    return [(row.words, row.names) for row in error_clusters.errors(cases)]


def test_one_error_of_many_cases_is_one_row_with_what_differs_left_open() -> None:
    assert errors("odd", "head: no room", "head: no room", None) == [
        ("head: no room", "a/x:1@sm_90 and 1 more"),
        ("odd", "a/x:0@sm_90"),
        ("no message", "a/x:3@sm_90"),
    ]
    varying = [f"needs {n} bytes of 'k{n}' in /tmp/{n}" for n in range(2)]
    assert errors(*varying) == [("needs … bytes of … in …", "a/x:0@sm_90 and 1 more")]
    assert errors("needs 1 byte") == [("needs 1 byte", "a/x:0@sm_90")]


def test_nondeterminism_of_head_comes_before_that_of_base_alone() -> None:
    sides = {"none": (), "base": ("base",), "both": ("base", "head"), "head": ("head",)}
    cases = [runs.case(f"a/x:{name}@sm_90", nondeterministic=found) for name, found in sides.items()]
    found = error_clusters.unstable(cases)
    assert [same[0].id for _, same in found] == ["a/x:both@sm_90", "a/x:head@sm_90", "a/x:base@sm_90"]
    assert len({words for words, _ in found}) == 3
    assert [text.split()[0] for text in error_clusters.unstable_counts(cases)] == ["2", "1"]
    assert error_clusters.unstable_words(cases[0]) == ""
    assert error_clusters.unstable_counts(cases[:1]) == []
