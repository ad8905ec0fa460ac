//===- DropUnread.cpp - buffers that nothing reads -------------------------===//
#include "../KernelFunctions.h"
#include "../Passes.h"
#include "../Views.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dmxc {
#define GEN_PASS_DEF_DROPUNREAD
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineStoreOp;

namespace {

struct DropUnread : dmxc::impl::DropUnreadBase<DropUnread> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kQuadsAttr) || function.isExternal())
      return;
    while (dropsOne(function))
      ;
  }

  /// Loops that store nothing more read nothing, either.
  static bool dropsOne(func::FuncOp function) {
    bool any = false;
    for (auto alloc : llvm::make_early_inc_range(function.getOps<memref::AllocOp>()))
      if (alloc->use_empty() || (hasTiles(alloc.getResult()) && isNeverRead(alloc.getResult()))) {
        erase(alloc);
        any = true;
      }
    for (auto loop : llvm::make_early_inc_range(function.getOps<affine::AffineForOp>()))
      if (isOpTriviallyDead(loop)) {
        loop.erase();
        any = true;
      }
    return any;
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
