"""Which operations an edited function of Triton's C++ matches."""

import pytest

from irdiff.resolve import tree_edits

SOURCE = """\
#include "Utility.h"
using namespace mlir;

namespace {
Value emitMask(Value mask, Operation *op) {
  return mask; // edit: helper
}

struct AtomicRMWOpConversion
    : public ConvertOpToLLVMPattern<triton::AtomicRMWOp>,
      public LoadStoreConversionBase {
  LogicalResult
  matchAndRewrite(triton::AtomicRMWOp op, OpAdaptor adaptor) const override {
    auto mask = emitMask(adaptor.getMask(), op);
    auto zero = arith::ConstantOp::create(rewriter, loc);
    return success(); // edit: pattern
  }
};

template <typename SourceOp>
struct UnaryConversion : ConvertOpToLLVMPattern<SourceOp> {
  int width = 4; // edit: template
};
void populate(RewritePatternSet &patterns) {
  patterns.add<UnaryConversion<math::FloorOp>, UnaryConversion<math::CeilOp>>();
}

static bool isLoaded(Value value) {
  return isa_and_nonnull<tt::LoadOp, ttg::LocalLoadOp>(value.getDefiningOp()); // edit: isa
}
} // namespace
"""


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
