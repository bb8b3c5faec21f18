"""Whether an edit was reached: passes that ran, and passes that did something."""

from __future__ import annotations

from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, PassUse
from irdiff.attribute.passes import END, State


def states(*rows: tuple[str, str]) -> list[State]:
    return [State.of(name, "", None, text.encode()) for name, text in rows]


def case(name: str, *, ran: str, acted: str = "", is_whole: bool = True) -> CaseExercise:
    return CaseExercise(
        case_id=name, ran=frozenset(ran.split()), acted=frozenset(acted.split()), is_whole=is_whole
    )


CASES = [
    case("c@sm_90", ran="Coalesce Pipeline"),
    case("a@sm_90", ran="Coalesce Pipeline", acted="Coalesce"),
    case("b@gfx950", ran="Coalesce", acted="Coalesce"),
]


def test_a_pass_did_something_where_the_text_after_it_is_another() -> None:
    log = states(("Inliner", "one"), ("Canonicalizer", "one"), ("CSE", "two"), (END, "two"))
    assert list(exercise.steps(log)) == [("Inliner", False), ("Canonicalizer", True), ("CSE", False)]
    assert list(exercise.steps([])) == []


def test_uses_are_counted_by_case() -> None:
    assert exercise.summarize(CASES) == [
        PassUse(name="Coalesce", ran=3, acted=2, examples=("a@sm_90", "b@gfx950")),
        PassUse(name="Pipeline", ran=2, acted=0, examples=()),
    ]


def test_a_silence_says_whether_the_edit_was_reached() -> None:
    told = exercise.sentences(
        {
            "lib/Axis.cpp": ["Coalesce", "Pipeline"],
            "lib/Hopper.cpp": ["WarpSpecialize"],
            "lib/Pipeline.cpp": ["Pipeline"],
            "python/src/llvm.cc": [],
        },
        CASES,
    )
    assert told == [
        "lib/Axis.cpp: defines 2 passes; at base 3 of 3 cases run it, and in 2 it does something",
        "lib/Hopper.cpp: defines WarpSpecialize; at base 0 of 3 cases run it, and in 0 it does something: never reached, unless head alone has it",
        "lib/Pipeline.cpp: defines Pipeline; at base 2 of 3 cases run it, and in 0 it does something: "
        "nothing came of it",
        "python/src/llvm.cc: defines no pass; whether it was exercised is not known",
    ]


def test_a_stage_that_cannot_be_run_again_is_said() -> None:
    told = exercise.sentences(
        {"lib/Hopper.cpp": ["WarpSpecialize"]}, [case("a@sm_90", ran="", is_whole=False)]
    )
    assert told[-1] == "in 1 of 1 cases a stage cannot be run again: its passes are not known"
