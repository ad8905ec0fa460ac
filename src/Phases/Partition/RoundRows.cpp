//===- RoundRows.cpp - rows that products by integers in blocks read ------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_ROUNDROWS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct RoundRows : dmxc::impl::RoundRowsBase<RoundRows> {
  explicit RoundRows(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    getOperation().walk([&](dmir::MatMulOp product) {
      const TargetBackend *target = context.responsible(product);
      std::optional<int64_t> block = target ? target->roundsRows(product) : std::nullopt;
      if (!block)
        return;
      OpBuilder b(product);
      product->setOperand(0, dmir::RoundBlocksOp::create(b, product.getLoc(), product.getLhs(), *block));
    });
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRoundRowsPass(const PhaseContext &context) { return std::make_unique<RoundRows>(context); }
} // namespace dmxc
