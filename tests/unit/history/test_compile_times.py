"""Compile times of a run by the committed history of eleven releases, which holds the seconds of each stage."""

import itertools
from dataclasses import replace

import pytest

from irdiff.history import alerts, compile_times, database, lines, steps
from irdiff.model import Verdict
from tests.unit import runs
from tests.unit.history import histories

SLOWER, AS_BEFORE = "moe/grouped:fp16-8groups@sm_90", "elementwise/vector_add:fp32-16m@sm_90"


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    with database.reading(histories.sample(tmp_path_factory.mktemp("sample") / "h")) as opened:
        yield opened


def of_head(history, head, *names):
    cases = [runs.case(name, Verdict.CHANGED) for name in names]
    run = histories.run("3.2.0", head, *cases)
    query = "SELECT toolchain, corpus FROM versions WHERE label = ?"
    ((toolchain, corpus),) = history.rows(query, [head])
    return replace(run, head=replace(run.head, digest=toolchain, corpus=corpus))


def test_a_time_that_left_its_own_line_is_worse_and_another_is_the_same(history):
    (row,) = (
        compile_times.of_run(history, of_head(history, "3.9.0", SLOWER, AS_BEFORE, "new/one:x@sm_90")) or ()
    )
    assert [move.words for move in row.worse] == ["409 → 828 ms (+102.4 %)"]
    assert (len(row.better), row.same, row.unknown) == (0, 1, 1)


@pytest.mark.parametrize("head", ["3.3.0", "3.3.1"])
def test_a_few_versions_say_nothing(history, head):
    assert compile_times.of_run(history, of_head(history, head, SLOWER, AS_BEFORE)) == ()


def test_a_head_that_the_history_does_not_have_is_not_known(history):
    run = of_head(history, "3.9.0", SLOWER)
    assert compile_times.of_run(history, replace(run, head=replace(run.head, corpus="other"))) is None


RELEASES = ["3.2.0", "3.3.0", "3.3.1", "3.4.0", "3.5.0", "3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0"]


def test_its_tables_hold_what_the_text_beside_it_describes(history):
    """`reports/samples/history-3.2.0-3.9.0.md`."""
    series = lines.read(history, "releases")
    assert [version.label for version in series.versions] == RELEASES
    assert [(pair.base, pair.head) for pair in series.pairs] == list(itertools.pairwise(range(len(RELEASES))))
    assert len(series.timings) == 48
    found = [step for step in steps.find(series) if series.versions[step.head].label == "3.7.1"]
    fences = [step for step in found if step.group and "fence" in (step.group.pass_name or "").lower()]
    (fence,) = (step for step in fences if step.cases[0].endswith("@sm_90"))
    assert (len(fence.cases), fence.slower, fence.faster) == (15, 9, 0)
    alert = alerts.check(series)
    assert (alert.version, len(alert.slower), alert.broken) == ("3.9.0", 8, ())
