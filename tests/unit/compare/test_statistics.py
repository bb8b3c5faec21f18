"""Each row of the statistics that a compilation gives has a figure in a real run; work is counted apart."""

from irdiff.backends import BACKENDS
from irdiff.backends.statistic import Resource
from tests.unit.report.test_recorded_runs import recorded


def test_real_compilations_have_the_facts_of_every_row():
    run = recorded("release")
    backends = {target.name: target.backend for target in run.targets}
    for name, backend in BACKENDS.items():
        facts = [case.facts.head for case in run.cases if backends[case.target] == name]
        for row in (row for row in backend.STATISTICS if row.resource is not Resource.WORK):
            assert any(row.of(side) is not None for side in facts), row
