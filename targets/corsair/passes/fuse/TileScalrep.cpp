//===- TileScalrep.cpp - tiles in memory as values -------------------------===//
#include "../KernelFunctions.h"
#include "../Passes.h"
#include "../Views.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dmxc {
#define GEN_PASS_DEF_TILESCALREP
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineLoadOp, affine::AffineStoreOp;

namespace {

/// A tile by its grid and the map of its index.
struct Place {
  Value grid;
  AffineMap map;
  SmallVector<Value> operands;

  template <typename Op>
  explicit Place(Op op) : grid(op.getMemRef()), map(op.getAffineMap()), operands(op.getMapOperands()) {}
  bool operator==(const Place &) const = default;
};

Value rootOf(Value buffer) {
  while (isBufferView(buffer.getDefiningOp()) || buffer.getDefiningOp<affine_ext::TilesOp>())
    buffer = buffer.getDefiningOp()->getOperand(0);
  return buffer;
}

struct TileScalrep : dmxc::impl::TileScalrepBase<TileScalrep> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kQuadsAttr) || function.isExternal())
      return;
    function.walk([](affine::AffineForOp loop) { forward(*loop.getBody()); });
    for (auto alloc : llvm::make_early_inc_range(function.getOps<memref::AllocOp>()))
      if (hasTiles(alloc.getResult()) && isNeverRead(alloc.getResult()))
        erase(alloc);
  }

  /// Tiles that are known, by where they lie; what writes elsewhere may overlap.
  static void forward(Block &block) {
    SmallVector<std::pair<Place, Value>> known;
    auto forget = [&](Value root) {
      llvm::erase_if(known, [&](const auto &each) { return !root || rootOf(each.first.grid) == root; });
    };
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto load = dyn_cast<AffineLoadOp>(op)) {
        const Place place(load);
        auto found = llvm::find_if(known, [&](const auto &each) { return each.first == place; });
        if (found == known.end()) {
          known.push_back({place, load.getResult()});
          continue;
        }
        load.replaceAllUsesWith(found->second);
        load.erase();
      } else if (auto store = dyn_cast<AffineStoreOp>(op)) {
        forget(rootOf(store.getMemRef()));
        known.push_back({Place(store), store.getValueToStore()});
      } else if (op.getNumRegions() || !(isMemoryEffectFree(&op) || hasSingleEffect<MemoryEffects::Read>(&op))) {
        forget(Value());
      }
    }
  }

  static bool hasTiles(Value buffer) {
    return llvm::any_of(buffer.getUsers(), [](Operation *user) {
      return isa<affine_ext::TilesOp>(user) || (isBufferView(user) && hasTiles(user->getResult(0)));
    });
  }
  static bool isNeverRead(Value buffer) {
    return llvm::all_of(buffer.getUsers(), [](Operation *user) {
      return isa<AffineStoreOp>(user) ||
             ((isa<affine_ext::TilesOp>(user) || isBufferView(user)) && isNeverRead(user->getResult(0)));
    });
  }
  static void erase(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      erase(user);
    op->erase();
  }
};

} // namespace
