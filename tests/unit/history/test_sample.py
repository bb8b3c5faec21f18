"""The committed history of eleven releases: its tables are a history that holds what its text describes."""

from __future__ import annotations

import itertools

import pytest

from irdiff.history import alerts, database, lines, steps
from irdiff.history.lines import SeriesLines
from tests.unit.history import histories

RELEASES = ["3.2.0", "3.3.0", "3.3.1", "3.4.0", "3.5.0", "3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0"]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> SeriesLines:
    with database.reading(histories.sample(tmp_path_factory.mktemp("sample") / "h")) as history:
        return lines.read(history, "releases")


def test_its_tables_hold_what_the_text_beside_it_describes(series: SeriesLines) -> None:
    """`reports/samples/history-3.2.0-3.9.0.md`."""
    assert [version.label for version in series.versions] == RELEASES
    assert [(pair.base, pair.head) for pair in series.pairs] == list(itertools.pairwise(range(len(RELEASES))))
    assert len(series.timings) == 48
    found = [step for step in steps.find(series) if series.versions[step.head].label == "3.7.1"]
    fences = [step for step in found if step.group and "fence" in (step.group.pass_name or "").lower()]
    (fence,) = (step for step in fences if step.cases[0].endswith("@sm_90"))
    assert (len(fence.cases), fence.slower, fence.faster) == (15, 9, 0)
    alert = alerts.check(series)
    assert (alert.version, len(alert.slower), alert.broken) == ("3.9.0", 8, ())
