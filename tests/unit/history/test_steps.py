"""Where lines bend: steps of one reason."""

import pytest

from irdiff.history import database, lines, steps
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


def test_cases_of_one_group_are_one_step(series):
    newest, *older = steps.find(series)
    assert newest.cases == (A,)
    assert (newest.base, newest.head, newest.faster, newest.slower) == (1, 2, 1, 0)
    by_title = {step.title: step for step in older}
    broken = by_title["compiles no more: moe/x"]
    (grouped,) = (step for step in older if step is not broken)
    assert broken.cases == ("moe/x:fp8@sm_90",)
    assert grouped.cases == (B, A)
    assert {(move.case_id, move.fact, move.before, move.after) for move in grouped.moves} == {
        (A, "registers", 100, 140),
        (B, "registers", 90, 95),
        (A, "time", 1.0, 1.05),
    }
    assert (grouped.undone_at, newest.undone_at) == (2, None), "one of two moves is back"
    assert grouped.bisect.startswith('irdiff bisect "$(git merge-base v3.7.0 v3.8.0)" v3.8.0 --case ')


def timing(ratio, half=0.002, floor=0.002):
    known = {"low": ratio - half, "high": ratio + half, "noise_floor": floor, "outputs": "equal"}
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
