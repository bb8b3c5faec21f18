"""Where lines bend: steps of one reason, change points of nights, and compile times by a line of their own."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from irdiff.history import alerts, change_points, compile_times, database, lines, steps
from irdiff.history.lines import Timing
from irdiff.model import Verdict
from tests.unit import runs
from tests.unit.history import histories

A, B = "matmul/tma:fp16@sm_90", "matmul/tma:bf16@sm_90"


def moved(case, before, after, group):
    return runs.case(
        case, Verdict.CHANGED, base={"registers": before}, head={"registers": after}, group=group
    )


@pytest.fixture
def series(tmp_path):
    """Registers go up in 3.8.0 and come back in 3.9.0; a third case breaks."""
    up = moved(A, 100, 140, "g1"), moved(B, 90, 95, "g1"), runs.case("moe/x:fp8@sm_90", Verdict.BROKEN)
    down = moved(A, 140, 100, "g2")
    histories.kept(
        tmp_path / "h",
        histories.run("3.7.0", "3.8.0", *up, groups=(runs.group("g1", A, B),)),
        histories.run("3.8.0", "3.9.0", down, groups=(runs.group("g2", A),)),
    )
    ratios = {"3.7.0": (1.0, 0.002), "3.8.0": (1.05, 0.002), "3.9.0": (1.001, 0.002)}
    with database.writing(tmp_path / "h") as history:
        histories.session(history, A, ratios)
    with database.reading(tmp_path / "h") as history:
        return lines.read(history, "releases")


def test_cases_of_one_group_are_one_step(series, snapshot):
    """One of two moves of the group is back in the newest version."""
    found = steps.find(series)
    assert [
        (step.title, step.base, step.head, step.cases, step.undone_at, step.bisect) for step in found
    ] == snapshot
    moves = {(move.case_id, move.fact, move.before, move.after) for step in found for move in step.moves}
    assert moves >= {(A, "registers", 100, 140), (B, "registers", 90, 95), (A, "time", 1.0, 1.05)}
    assert (found[0].faster, found[0].slower) == (1, 0)


def timing(ratio, half=0.002, floor=0.002):
    known = {"low": ratio - half, "high": ratio + half, "noise_floor": floor}
    return Timing(median_us=50 * ratio, ratio=ratio, **known)


def test_intervals_decide_between_neighbours_and_a_long_line_is_judged_by_its_own_history():
    assert steps.timing_steps([timing(1.0), timing(1.05)]) == [(0, 1)]
    assert steps.timing_steps([timing(1.0), None, timing(0.95)]) == [(0, 2)]
    for other in (timing(1.012), timing(1.05, half=0.05), timing(1.05, floor=0.06)):
        assert steps.timing_steps([timing(1.0), other]) == []
    wiggles = [1.0, 1.02, 0.99, 1.01, 1.0, 1.02, 0.985, 1.0, 1.01, 0.99]
    assert steps.timing_steps([timing(ratio) for ratio in wiggles[:6]]) != []
    assert steps.timing_steps([timing(ratio) for ratio in (*wiggles, *wiggles)]) == []
    stepped = [*wiggles, *(1.2 * ratio for ratio in wiggles)]
    assert steps.timing_steps([timing(ratio) for ratio in stepped]) == [(9, 10)]


def line(*levels, noise=0.002, seed=1):
    rng = np.random.default_rng(seed)
    return [float(level * math.exp(rng.normal(0, noise))) for count, level in levels for _ in range(count)]


def found(values):
    return [step.index for step in change_points.level_steps(values)]


def test_a_step_is_two_points_on_another_level_beyond_the_noise_of_the_line():
    (step,) = change_points.level_steps(line((20, 50.0), (15, 53.0)))
    assert (step.index, step.share) == (20, pytest.approx(0.06, abs=0.005))
    assert found(line((20, 50.0), (2, 60.0), (20, 50.0))) == [20, 22]
    slow_night = line((20, 50.0), (20, 55.0))
    slow_night[17] = 60.0
    assert found(slow_night) == [20], "a slow night before a step does not move it"
    assert found(line((20, 50.0), (3, 51.5), noise=0.001)) == [20]
    assert found(line((20, 50.0), (3, 51.5), noise=0.02)) == []


def test_a_flat_line_a_single_point_and_nights_that_do_not_agree_are_no_step():
    for values in (line((40, 50.0)), line((40, 50.0), (1, 60.0)), [50.0] * 30, [50.0, 60.0, 70.0]):
        assert found(values) == []
    for slow in ((60.0,), (60.0, 53.0), (60.0, 50.0, 56.0), (54.0, 50.0, 54.0)):
        values = line((20, 50.0), (len(slow), 1.0), (20, 50.0))
        values[20 : 20 + len(slow)] = slow
        assert found(values) == [], slow


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


def test_a_compile_time_that_left_its_own_line_is_up_and_another_is_the_same(history):
    (row,) = (
        compile_times.of_run(history, of_head(history, "3.9.0", SLOWER, AS_BEFORE, "new/one:x@sm_90")) or ()
    )
    assert [move.words for move in row.up] == ["409 → 828 ms (+102.4 %)"]
    assert (len(row.down), row.same, row.unknown) == (0, 1, 1)


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
