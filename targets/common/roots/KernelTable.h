//===- KernelTable.h - which ops have kernels, and what is known of them -*- C++ -*-===//
//
// One row for each op that gives a region its loop structure. The file that emits it defines the row; a target's table
// has the rows of `registerRoots` and its own. What phases ask about an op is answered from its row.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Plans.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/MapVector.h"

namespace dmxc::kernels {

/// Which operands are read at an index only while the result's element of that index is computed, so that the result
/// may have their buffer.
enum class InPlace {
  Never,
  SameIndex, ///< those of the result's shape
  Copied,    ///< the first one: it is copied before anything else
};

struct KernelRow {
  Result<KernelPlan> (*plan)(const RegionBody &body, const PlanRequest &request);
  bool readsOnce = false; ///< each element of operand 0, about: fused producers are computed no more often
  /// Elements of operands are read many times: only what is a view of memory is fused there, and what the row takes.
  bool readsViews = false;
  bool (*takes)(mlir::Operation *root, mlir::Operation *producer) = nullptr; ///< null: nothing else
  bool epilogue = false;                                                     ///< results go through fused consumers
  InPlace inPlace = InPlace::Never;
  /// Arithmetic operations of the op; null: one for each element that it touches.
  Dim (*operations)(mlir::Operation *op) = nullptr;
  /// Other ops of the region that the root's kernel computes; null: none.
  llvm::SmallVector<mlir::Operation *> (*computes)(mlir::Operation *root) = nullptr;
};

class KernelTable {
public:
  /// A row of an op that has one takes its place.
  template <typename... Ops> void add(const KernelRow &row) {
    ((rows[mlir::StringRef(Ops::getOperationName())] = row), ...);
  }
  /// Null for ops that are no roots.
  const KernelRow *find(mlir::Operation *op) const;
  const llvm::MapVector<llvm::StringRef, KernelRow> &all() const { return rows; }

  /// Whether an op can be computed at all, as a root or by the pull model of ElementExpr.h.
  bool has(mlir::Operation *op) const;
  bool readsOnce(mlir::Operation *op) const;
  bool readsViews(mlir::Operation *op) const;
  /// Whether a root's kernel computes `producer`, which is no view, where it reads an operand many times.
  bool takes(mlir::Operation *root, mlir::Operation *producer) const;
  bool hasEpilogue(mlir::Operation *op) const;
  /// The ops besides a root that its kernel computes.
  llvm::SmallVector<mlir::Operation *> computedWith(mlir::Operation *root) const;
  /// Arithmetic operations of a region: products and sums count one each, other elements' functions one.
  Dim operations(mlir::Block *block) const;

  /// Plans a region's body. Fails for bodies that the table's answers do not form.
  Result<KernelPlan> plan(mlir::Block *block, const PlanRequest &request) const;
  /// Emits a kernel into `module` for a processor; the words of its contract (dmx_kernel.h).
  Result<std::vector<int64_t>> emit(mlir::ModuleOp module, dlir::KernelOp kernel, const PlanRequest &request,
                                    const Processor &processor) const;

private:
  Result<RegionBody> bodyOf(mlir::Block *block) const;
  llvm::MapVector<llvm::StringRef, KernelRow> rows;
};

/// Elements of an op's first result or operand, whichever has more.
Dim elementsTouched(mlir::Operation *op);

/// Plans a region without a root: elementwise ops and data movement.
KernelPlan planPointwise(const RegionBody &body, const PlanRequest &request);

/// Plan the plain kernels of products and of convolutions. Floats are summed in runs, those of a convolution in one for
/// each channel, or `chained`: one after the other, an element at a time.
KernelPlan planPlainProduct(const RegionBody &body, const PlanRequest &request, llvm::StringRef algorithm,
                            bool chained);
KernelPlan planPlainConvolution(const RegionBody &body, const PlanRequest &request, llvm::StringRef algorithm,
                                bool chained);

/// All of the rows below.
void registerRoots(KernelTable &table);
void registerProducts(KernelTable &table);
void registerConvolutions(KernelTable &table);
void registerReductions(KernelTable &table);
void registerRowKernels(KernelTable &table);
void registerPools(KernelTable &table);
void registerTopK(KernelTable &table);
void registerGreedySelect(KernelTable &table);
void registerScatters(KernelTable &table);

} // namespace dmxc::kernels
