"""Which operations an edited function of Triton's C++ matches."""

import pytest

from irdiff.resolve import tree_edits
from tests.texts import text_of

SOURCE = text_of("edited_functions/source.cpp")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ("pattern", ["AtomicRMWOp"]),
        ("helper", ["AtomicRMWOp"]),
        ("template", ["CeilOp", "FloorOp"]),
        ("isa", ["LoadOp", "LocalLoadOp"]),
    ],
)
def test_what_an_edited_function_matches(edit, expected):
    before = SOURCE.replace(f" // edit: {edit}", "")
    assert tree_edits.operations(before, SOURCE) == expected
    assert tree_edits.operations(SOURCE, before) == expected


def test_an_edit_of_a_table_is_of_its_definition():
    table = (
        'def TT_JoinOp : TT_Op<"join", [Pure]> {\n  let summary = "a";\n}\ndef TT_CatOp : TT_Op<"cat"> {\n}\n'
    )
    assert tree_edits.operations(table, table.replace('"a"', '"b"')) == ["JoinOp"]
    assert tree_edits.operations(table, "") == []
