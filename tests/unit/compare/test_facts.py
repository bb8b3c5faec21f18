"""Statistics."""

from irdiff.compare import statistics
from irdiff.compare.statistics import STATISTICS, Better
from tests.unit.report.test_recorded_runs import recorded


def test_real_compilations_have_the_facts_of_every_row():
    run = recorded("release")
    backends = {target.name: target.backend for target in run.targets}
    for row in STATISTICS:
        facts = [case.facts.head for case in run.cases if backends[case.target] == row.backend]
        assert any(row.of(side) is not None for side in facts), row


def test_rows_by_name_or_fact_and_their_values():
    facts = {row.facts for row in statistics.named("occupancy")}
    assert facts == {("warps_per_multiprocessor",), ("waves_per_simd",)}
    (fact,) = statistics.named("kernarg_bytes")
    spills = next(row for row in STATISTICS if row.name == "spills")
    assert (fact.better, spills.of({}), spills.of({"spill_store_bytes": 4})) == (Better.LESS, None, 4)
