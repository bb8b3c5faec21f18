"""Spellings that are the same operation, and neighbours that are not: `tests/golden/pairs/mlir-spellings.toml`. More is
the same for attribution than for verdicts, and what cannot be read is the same only to the byte.
"""

import tomllib
from pathlib import Path

import pytest

from irdiff.attribute.pass_states import State
from irdiff.attribute.state_comparer import StateComparer
from irdiff.attribute.syntax_drift import translated, undone
from tests.unit.compiled import mlir

GOLDEN = tomllib.loads((Path(__file__).parents[2] / "golden/pairs/mlir-spellings.toml").read_text())


@pytest.mark.parametrize("row", GOLDEN["spelling"], ids=lambda row: row["old"])
def test_the_newer_spelling_is_the_older_one(row):
    assert undone(row["new"]) == undone(row["old"]) == row["old"]


def test_everything_else_stays():
    assert [undone(line) for line in GOLDEN["stays"]] == GOLDEN["stays"]


@pytest.mark.parametrize("row", GOLDEN["lowered"], ids=lambda row: row["base"][-1])
def test_what_is_the_same_in_llvms_dialects(row):
    assert (list(translated(row["base"])) == list(translated(row["head"]))) is row["same"]


def test_what_stays_of_llvms_dialects():
    for lines, left in GOLDEN["translated"]:
        assert list(translated(lines)) == left


def state(*operations, **function):
    return State.of("P", mlir(*operations, **function).encode())


def lowered(*operations, attributes=""):
    return state(*operations, function=f"llvm.func @k(){attributes}", end="llvm.return")


SIZED = "%0 = ttg.x {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32"
CONSTANT = "%{} = llvm.mlir.constant({} : i32) : i32"
EARLY = lowered(CONSTANT.format(0, 1), "%1 = llvm.x : i32", "llvm.use %0, %1 : i32")
LATE = ("%1 = llvm.x : i32", CONSTANT.format(0, 1), "llvm.use %0, %1 : i32")
MARKED = lowered(*LATE, attributes=" attributes {ttg.mark = 1 : i32}")
OTHER = lowered(CONSTANT.format(0, 2), "%1 = llvm.x : i32", "llvm.use %0, %1 : i32")


def test_what_is_the_same():
    for one, other, same, below_mlir in (
        (state("%a = ttg.x : i32", "ttg.y %a"), state("%0 = ttg.x : i32", "ttg.y %0"), True, True),
        (state(SIZED), state(SIZED.replace(", allocation.size = 8 : i32", "")), True, True),
        *(
            (state("ttg.x"), state(*other), False, False)
            for other in (("ttg.y",), ("ttg.x", "ttg.x"), (), ("ttg.x {a = 1 : i32}",))
        ),
        (EARLY, lowered(*LATE), False, True),
        (EARLY, OTHER, False, False),
        (EARLY, lowered("%1 = llvm.x : i32"), False, False),
        (lowered(*LATE), MARKED, False, True),
        (State.of("P", b"not IR"), State.of("Q", b"not IR"), True, True),
        (State.of("P", b"not IR"), State.of("P", b"nor this"), False, False),
    ):
        comparer = StateComparer()
        assert comparer.same(one, other) is same
        assert comparer.same_below_mlir(one, other) is below_mlir
