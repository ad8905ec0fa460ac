//===- Alignment.cpp - places that the engines can reach ------------------===//

#include "StreamEncoder.h"

#include "dmxc/Dialect/DLIR/Sum.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Bytes that places of a kind are a multiple of: whole elements, or lines of 64 where tiles begin.
static int64_t grainOf(std::optional<StringRef> name, bool tiles = false) {
  std::optional<hw::ElemKind> kind = name ? hw::elemKindFromName(name->str()) : std::nullopt;
  return tiles ? 64 : kind ? std::max(hw::elementBytes(*kind), 1) : 1;
}

/// Of each buffer of a task, in order.
static SmallVector<int64_t, 4> grainsOf(Operation *task) {
  using Grains = SmallVector<int64_t, 4>;
  auto walked = [](auto op) {
    auto d = op.getDescriptor().template getDefiningOp<dlir::DescriptorOp>();
    return Grains{grainOf(d.getKind(), d.getSourceRows()), grainOf(d.getTo().value_or(d.getKind()), d.getTargetRows())};
  };
  return TypeSwitch<Operation *, Grains>(task)
      .Case([&](dlir::DmaCopyOp op) { return walked(op); })
      .Case([&](engine::ReshapeOp op) {
        const auto bytes = static_cast<int64_t>(op.getElement().value_or(1));
        return op.getDescriptor() ? walked(op) : Grains{bytes, bytes};
      })
      .Case<engine::MatmulOp, engine::ConvOp>([](auto) { return Grains{64, 64, 4, 64}; })
      .Case([](engine::SimdOp op) {
        return Grains{grainOf(op.getToKind()), grainOf(op.getAKind()), grainOf(op.getBKind()), grainOf(op.getCKind())};
      })
      .Default(Grains());
}

template <typename OpTy> static LogicalResult checkPlaces(OpTy op) {
  for (auto [place, grain] : llvm::zip(op.getPlaces(), grainsOf(op))) {
    const AffineMap map = cast<AffineMapAttr>(place).getValue();
    std::optional<dlir::Sum> sum = dlir::sumOf(map, op.getIndices());
    if (!sum || grain < 2) // the encoder names what is no sum
      continue;
    if (sum->base % grain || llvm::any_of(sum->terms, [&](const auto &term) { return term.second % grain; }))
      return op.emitOpError("has a place that is no multiple of ") << grain << " bytes: " << AffineMapAttr::get(map);
  }
  return success();
}

/// Steps between tiles.
static LogicalResult checkSteps(Operation *op, ArrayRef<std::pair<StringRef, int64_t>> steps) {
  for (auto [name, grain] : steps)
    if (auto step = op->getAttrOfType<IntegerAttr>(name); step && step.getInt() % grain)
      return op->emitOpError("has ") << name << " " << step.getInt() << ", which is no multiple of " << grain;
  return success();
}

LogicalResult corsair::checkAlignment(Operation *task) {
  return TypeSwitch<Operation *, LogicalResult>(task)
      .Case<engine::MatmulOp, engine::ConvOp>([](auto op) {
        return success(succeeded(checkPlaces(op)) && succeeded(checkSteps(op, {{"activation_chunk", 64},
                                                                               {"activation_step", 64},
                                                                               {"image_band", 64},
                                                                               {"image_chunk", 64},
                                                                               {"stash_chunk", 64},
                                                                               {"stash_group", 64},
                                                                               {"stash_step", 64},
                                                                               {"result_row", 4},
                                                                               {"result_group", 4},
                                                                               {"result_step", 4}})));
      })
      .Case([](dlir::DmaCopyOp op) {
        Operation *descriptor = op.getDescriptor().getDefiningOp();
        return success(succeeded(checkPlaces(op)) &&
                       succeeded(checkSteps(descriptor, {{"source_band", 64}, {"target_band", 64}})));
      })
      .Case<engine::ReshapeOp, engine::SimdOp>([](auto op) { return checkPlaces(op); })
      .Default(success());
}
