"""Whether an edit was reached: passes that ran, and passes that did something."""

from __future__ import annotations

from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, PassUse
from irdiff.attribute.pass_states import END
from tests.unit.attribute.conftest import states


def case(name: str, *, ran: str, acted: str = "", is_whole: bool = True) -> CaseExercise:
    sets = {"ran": frozenset(ran.split()), "acted": frozenset(acted.split())}
    return CaseExercise(case_id=name, is_whole=is_whole, **sets)


CASES = [
    case("c@sm_90", ran="Coalesce Pipeline"),
    case("a@sm_90", ran="Coalesce Pipeline", acted="Coalesce"),
    case("b@gfx950", ran="Coalesce", acted="Coalesce"),
]


def test_a_pass_did_something_where_the_text_after_it_is_another() -> None:
    log = states(("Inliner", "one"), ("Canonicalizer", "one"), ("CSE", "two"), (END, "two"))
    assert list(exercise.steps(log)) == [("Inliner", False), ("Canonicalizer", True), ("CSE", False)]
    assert exercise.summarize(CASES) == [
        PassUse(name="Coalesce", ran=3, acted=2, examples=("a@sm_90", "b@gfx950")),
        PassUse(name="Pipeline", ran=2, acted=0, examples=()),
    ]
