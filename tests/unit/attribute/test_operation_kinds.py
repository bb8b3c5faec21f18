"""Kinds of operations as 3.9.0 prints them, and the table that is made of them."""

from operator import itemgetter

import pytest

from tests.programs.corpus_gaps import kind_table
from tests.programs.corpus_gaps.operation_kinds import OperationKind, kinds
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
