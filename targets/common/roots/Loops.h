//===- Loops.h - loop nests of fused kernels --------------------*- C++ -*-===//
//
// What the emitters share: which axes are iterated as one, loops over work items and over lanes with
// their tail, and writing results through the epilogue.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Plans.h"

#include "targets/common/element/ElementExpr.h"

namespace dmxc::kernels {

/// Adjacent axes [first, last] of a tensor, iterated as one axis of `size`.
struct AxisGroup {
  unsigned first, last;
  Dim size;
  unsigned at; ///< the axis that carries the joined position: the last one that is not of size 1
};

/// Groups the axes of `values` (of equal shapes): adjacent axes a, a+1 join when every access that
/// computes the values is the same function of `index[a] * dim(a+1) + index[a+1]`, and `mayJoin(a)`.
/// Tensors in `leaves` are sources whose reader accepts joined indices.
llvm::SmallVector<AxisGroup> groupAxes(llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Value> leaves = {},
                                       llvm::function_ref<bool(unsigned)> mayJoin = nullptr);

/// Whether axes `axis` and `axis + 1` of a value may be iterated as one, as above.
bool axesJoin(mlir::Value value, unsigned axis, llvm::ArrayRef<mlir::Value> leaves = {});

/// The axis that carries one position over axes [first, last] of `values` (of equal shapes), if they all join.
std::optional<unsigned> joinedAxis(llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Value> leaves,
                                   unsigned first, unsigned last);

/// Index of a tensor of `rank` axes from one position a group: joined axes carry it in the last one.
Indices spread(ElementExpr &e, llvm::ArrayRef<AxisGroup> groups, llvm::ArrayRef<Index> positions, unsigned rank);

/// Emits the loops over this call's items and those inside an item; `body` gets the positions of all
/// loops but the last one, and the last one's range.
void emitItems(KernelBuilder &b, const WorkPlan &plan,
               llvm::function_ref<void(llvm::ArrayRef<mlir::Value> outer, mlir::Value lo, mlir::Value hi)> body);

/// Runs `body` for positions [lo, hi), `lanes` at a time and then the rest: under a mask where the
/// processor has masks for elements of `bits` and more, else one by one. `lo` is a multiple of
/// `multiple`.
void laneLoop(ElementExpr &e, mlir::Value lo, mlir::Value hi, int64_t lanes, unsigned bits, int64_t multiple,
              llvm::function_ref<void(Index)> body);
/// Combines the lanes of a vector pairwise, in a fixed order, to a scalar.
mlir::Value combineLanes(KernelBuilder &b, mlir::Value vector,
                         llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

/// Lanes for the values that compute `values`: a full register of the widest computed type, but not
/// fewer than a register of 32-bit elements has when there are such; 1 for values of one element. `narrowest` is the
/// least memory width met.
int64_t chooseLanes(llvm::ArrayRef<mlir::Value> values, const Processor &processor, unsigned *narrowest = nullptr);

/// Evaluates a region's results at an index of the root's result and stores them. Trailing reshapes,
/// transposes and relayouts change where a value is stored, not where it is computed.
class ResultWriter {
public:
  ResultWriter(ElementExpr &e, const RegionBody &body);
  /// The values computed at an index of the root's result space.
  llvm::ArrayRef<mlir::Value> values() const { return computed; }
  void write(llvm::ArrayRef<Index> index);
  /// The same in two steps: what is evaluated before others are stored may overlap with them in time. The caller
  /// forgets what was evaluated.
  llvm::SmallVector<mlir::Value> evaluate(llvm::ArrayRef<Index> index);
  void store(llvm::ArrayRef<mlir::Value> evaluated, llvm::ArrayRef<Index> index);
  /// True when joined indices may be given to `write`.
  bool acceptsJoined() const { return !moves; }

private:
  ElementExpr &e;
  const RegionBody &body;
  llvm::SmallVector<mlir::Value> computed;
  bool moves = false;
};

} // namespace dmxc::kernels
