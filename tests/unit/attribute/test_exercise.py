"""Whether an edit was reached: passes that ran, and passes that did something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, PassUse
from irdiff.attribute.pass_states import END
from irdiff.model import Sides
from tests.unit.attribute.conftest import states


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
    rows = exercise.sentences({"lib/Hopper.cpp": ["W"]}, [case("a@sm_90", ran="", is_whole=False)])
    assert rows[-1] == "in 1 of 1 cases a stage cannot be run again: its passes are not known"


@pytest.mark.parametrize(
    ("edited", "note"),
    [
        ({"lib/Axis.cpp": list("ABCD"), "a.cc": []}, ": lib/Axis.cpp: A, B, C and 1 more; a.cc: no pass"),
        ({}, None),
    ],
)
def test_the_first_passes_of_an_edited_source_are_named(
    build: Any, edited: Mapping[str, Sequence[str]], note: str | None
) -> None:
    rows = exercise.named(build.side(edited=edited))
    assert [row.endswith(str(note)) for row in rows] == [True] * (note is not None)


def test_cases_are_counted_and_the_command_that_counts_lines_is_named(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercise, "of_launches", lambda *_: CASES)
    compiler: Any = None
    head = build.side("HEAD (3c4d)")
    sides = Sides(base=build.side("main (1a2b)", edited={"lib/Axis.cpp": ["Coalesce"]}), head=head)
    reached, lines = exercise.of_edited(sides, [], compiler, print)
    assert reached.endswith("defines Coalesce; at base 3 of 3 cases run it, and in 2 it does something")
    assert lines.endswith("(irdiff toolchain build HEAD --coverage main)")
    assert exercise.of_edited(Sides(base=head, head=head), [], compiler, print) == ()
