"""Whether an edit was reached: passes that ran, and passes that did something."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.attribute import exercise
from irdiff.attribute.exercise import CaseExercise, PassUse
from irdiff.attribute.pass_states import END
from irdiff.model import Sides
from tests.unit import runs
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


@pytest.mark.parametrize(
    ("passes", "words"),
    [
        (["Coalesce", "Pipeline"], "defines 2 passes; at base 3 of 3 cases run it, and in 2 it does something"),
        (["WarpSpecialize"], "and in 0 it does something: never reached, unless head alone has it"),
        (["Pipeline"], "at base 2 of 3 cases run it, and in 0 it does something: nothing came of it"),
        ([], "defines no pass; whether it was exercised is not known"),
    ],
)  # fmt: skip
def test_a_silence_says_whether_the_edit_was_reached(passes: list[str], words: str) -> None:
    (row,) = exercise.sentences({"lib/Axis.cpp": passes}, CASES)
    assert row.startswith("lib/Axis.cpp: ") and row.endswith(words)
    *_, last = exercise.sentences({"a.cpp": passes}, [case("a@sm_90", ran="", is_whole=False)])
    assert "a stage cannot be run again: its passes are not known" in last


def test_what_is_reported_of_an_edited_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercise, "of_launches", lambda *_: CASES)
    compiler: Any = None
    edited = {"lib/Axis.cpp": ["Coalesce", "B", "C", "D"], "a.cc": []}
    sides = Sides(base=runs.side("main (1a2b)", edited=edited), head=runs.side("HEAD (3c4d)"))
    (names,) = exercise.named(sides.base)
    assert names.endswith(": lib/Axis.cpp: Coalesce, B, C and 1 more; a.cc: no pass")
    *reached, lines = exercise.of_edited(sides, [], compiler, print)
    assert "defines 4 passes; at base 3 of 3 cases run it" in reached[1]
    assert lines.endswith("(irdiff toolchain build HEAD --coverage main)")
    assert exercise.of_edited(Sides(base=sides.head, head=sides.head), [], compiler, print) == ()
    assert exercise.named(sides.head) == ()
