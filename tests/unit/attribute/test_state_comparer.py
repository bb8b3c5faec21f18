"""Spellings that are the same operation, and neighbours that are not: `tests/golden/pairs/mlir-spellings.toml`. More is
the same for attribution than for verdicts, and what cannot be read is the same only to the byte.
"""

import tomllib
from operator import itemgetter
from pathlib import Path

import pytest

from irdiff.attribute.pass_states import State
from irdiff.attribute.state_comparer import StateComparer
from irdiff.ir.mlir.spellings import translated, undone
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


def state(row):
    """A pass reads this: what is no list of operations is no IR."""
    if "text" in row:
        return State.of(row.get("name", "P"), row["text"].encode())
    lowered = (
        {"function": f"llvm.func @k(){row['lowered']}", "end": "llvm.return"} if "lowered" in row else {}
    )
    return State.of("P", mlir(*row["operations"], **lowered).encode())


@pytest.mark.parametrize("row", GOLDEN["state"], ids=itemgetter("why"))
def test_what_is_the_same(row):
    one, other = (state(row[side]) for side in ("base", "head"))
    comparer = StateComparer()
    assert comparer.same(one, other) is row["same"]
    assert comparer.same_below_mlir(one, other) is row["below_mlir"]
