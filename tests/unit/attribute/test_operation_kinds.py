"""Kinds of operations as 3.9.0 prints them, and the table and sentences that are made of them."""

from operator import itemgetter

import pytest

from irdiff.attribute import exercise, kind_table
from irdiff.attribute.exercise import CaseExercise
from irdiff.attribute.operation_kinds import OperationKind, kinds
from irdiff.resolve.tree_edits import EditedCode
from tests.unit.golden import golden


@pytest.mark.parametrize("row", golden("operation-kinds")["kind"], ids=itemgetter("line"))
def test_an_operation_its_element_type_and_its_mask(row):
    found = kinds(f"    %true = arith.constant true\n    {row.pop('line')}\n")
    assert OperationKind(**row) in found


MASKED = OperationKind(operation="tt.atomic_rmw", element="add i32", masked=True)
PLAIN = OperationKind(operation="tt.atomic_rmw", element="fadd f16", masked=False)


def test_the_table_says_which_tier_has_a_kind_or_that_none_has():
    rows = kind_table.table([("gate", {PLAIN}), ("core", {MASKED, PLAIN})], ["tt.print"])
    plain, masked, printing = rows
    assert (plain.operation, plain.gate, plain.later) == ("tt.atomic_rmw", ["fadd f16"], [])
    assert (masked.operation, masked.gate, masked.later) == ("tt.atomic_rmw, masked", [], ["add i32"])
    assert "fadd bf16" in plain.none and "fadd f16" in masked.none
    assert (printing.operation, printing.none) == ("tt.print", [""])


def test_an_edited_source_says_how_many_cases_have_what_it_matches():
    edited = {"lib/Atomics.cpp": EditedCode(passes=[], operations=["AtomicRMWOp", "JoinOp"])}
    became = OperationKind(operation="llvm.atomicrmw", element="f16", masked=False)
    plain = {"ran": frozenset(), "acted": frozenset(), "is_whole": True}
    entering = [{"lib/Atomics.cpp": had} for had in ({PLAIN}, {became})]
    cases = [CaseExercise(case_id=str(n), entering=had, **plain) for n, had in enumerate(entering)]
    assert exercise.sentences(edited, cases) == [
        "lib/Atomics.cpp: AtomicRMWOp: 1 of 2 cases (fadd f16), with a mask: 0 of 2 cases; JoinOp: 0 of 2 cases"
    ]
