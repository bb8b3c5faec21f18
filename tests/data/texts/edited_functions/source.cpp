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
