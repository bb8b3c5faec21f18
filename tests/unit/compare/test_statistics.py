"""Each row of the statistics has a figure in a real run."""

from irdiff.backends import BACKENDS
from tests.unit.report.test_recorded_runs import recorded


def test_real_compilations_have_the_facts_of_every_row():
    run = recorded("release")
    backends = {target.name: target.backend for target in run.targets}
    for name, backend in BACKENDS.items():
        facts = [case.facts.head for case in run.cases if backends[case.target] == name]
        for row in backend.STATISTICS:
            assert any(row.of(side) is not None for side in facts), row
