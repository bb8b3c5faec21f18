"""Better and worse, from facts that are made up."""

from __future__ import annotations

import pytest

from irdiff.findings import Finding, FindingKind
from irdiff.model import Case, Run, Verdict
from irdiff.report import moved
from irdiff.report.moved import Movement
from tests.unit.conftest import Build


def changed(name: str, base: dict[str, int], head: dict[str, int], **more: object) -> Case:
    facts = {"spill_store_bytes": 0, "spill_load_bytes": 0, "warps_per_multiprocessor": 16}
    return Build.case(name, Verdict.CHANGED, base={**facts, **base}, head={**facts, **head}, **more)


@pytest.fixture
def run(build: type[Build]) -> Run:
    same = (Finding(FindingKind.SAME_INSTRUCTIONS),)
    return build.run(
        changed("matmul/a:x@sm_90", {"ptx.total": 100, "registers": 64}, {"ptx.total": 90, "registers": 64}),
        changed("matmul/b:x@sm_90", {"ptx.total": 100, "registers": 64}, {"ptx.total": 150, "registers": 80}),
        changed(
            "matmul/c:x@sm_90",
            {"registers": 255, "warps_per_multiprocessor": 8},
            {"registers": 255, "warps_per_multiprocessor": 4, "spill_store_bytes": 32},
        ),
        changed("matmul/d:x@sm_90", {"ptx.total": 7}, {"ptx.total": 7}, findings=same),
        changed("matmul/e:x@sm_90", {"ptx.total": 7}, {"ptx.total": 8}, findings=same),
        Build.case("matmul/f:x@sm_90", Verdict.UNCHANGED),
    )


def of(run: Run) -> dict[str, Movement]:
    return {row.statistic.name: row for row in moved.by_target(run)}


def test_counts_worse_better_same_and_unknown(run: Run) -> None:
    found = of(run)["instructions"]
    assert [move.case_id for move in found.worse] == ["matmul/b:x@sm_90", "matmul/e:x@sm_90"]
    assert (len(found.better), found.same, found.unknown) == (1, 2, 1)
    assert found.affected == (207, 248)
    assert found.total == (214, 255)
    assert found.quantiles[0] == pytest.approx(-0.1)
    assert found.quantiles[-1] == pytest.approx(0.5)


def test_fewer_warps_are_worse(run: Run) -> None:
    occupancy = of(run)["occupancy"]
    assert (len(occupancy.worse), len(occupancy.better)) == (1, 0)


def test_what_moves_nowhere_has_no_row(run: Run) -> None:
    assert "code size" not in of(run)


def test_only_the_schedule_moved(run: Run) -> None:
    assert [case.id for case in run.cases if moved.only_scheduled(case)] == ["matmul/d:x@sm_90"]


def test_outliers_are_the_worst_first(run: Run) -> None:
    found = moved.outliers(moved.by_target(run))
    assert found[0].case_id == "matmul/c:x@sm_90"
    assert len(found[0].why) == 2
    assert "matmul/d:x@sm_90" not in {row.case_id for row in found}


def test_quantiles_lie_between_neighbours() -> None:
    assert moved.quantile([0.0, 1.0, 2.0], 0.5) == 1.0
    assert moved.quantile([0.0, 1.0], 0.25) == 0.25
    assert moved.quantile([], 0.95) == 0.0
