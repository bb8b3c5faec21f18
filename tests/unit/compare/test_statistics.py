"""Every statistic is fed by facts that real compilations have, and the table knows which way is better."""

from __future__ import annotations

from irdiff.compare import statistics
from irdiff.compare.statistics import STATISTICS, Better
from tests.unit.report.test_recorded_runs import recorded


def test_real_compilations_have_the_facts_of_every_row() -> None:
    run = recorded("release")
    backends = {target.name: target.backend for target in run.targets}
    for row in STATISTICS:
        facts = [case.facts.head for case in run.cases if backends[case.target] == row.backend]
        assert any(row.of(side) is not None for side in facts), row


def test_a_direction_says_what_is_worse() -> None:
    for row in STATISTICS:
        more, less = row.worsened(1, 2), row.worsened(2, 1)
        assert (more, less) == {
            Better.LESS: (True, False),
            Better.MORE: (False, True),
            Better.NEITHER: (False, False),
        }[row.better]


def test_a_name_and_a_fact_mean_the_same_rows() -> None:
    assert {row.facts for row in statistics.named("occupancy")} == {
        ("warps_per_multiprocessor",),
        ("waves_per_simd",),
    }
    (fact,) = statistics.named("kernarg_bytes")
    assert fact.better is Better.LESS


def test_what_is_not_known_has_no_value() -> None:
    spills = next(row for row in STATISTICS if row.name == "spills")
    assert spills.of({}) is None
    assert spills.of({"spill_store_bytes": 4}) == 4
