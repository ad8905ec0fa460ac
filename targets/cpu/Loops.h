//===- Loops.h - loop nests of fused kernels --------------------*- C++ -*-===//
//
// What the emitters share: which axes are iterated as one, how a nest is cut into work items, loops
// over lanes with their tail, and writing results through the epilogue.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ElementExpr.h"

#include "dmxc/Support/Result.h"

namespace dmxc::cpu {

/// The op that gives a region its loop structure, and the region's results.
struct RegionBody {
  mlir::Block *block = nullptr;
  mlir::Operation *root = nullptr; ///< null: elementwise and data movement only
  llvm::SmallVector<mlir::Value> results;

  /// Fails with the reason when the block has more than one root.
  static Result<RegionBody> of(mlir::Block *block);
  mlir::RankedTensorType resultType(unsigned i = 0) const;
};

/// The size that a plan is made for: a symbol's nominal value is the one in the region's strategy ("nominal"), or
/// before there is one a middling size within its bounds. Choices may rest on it, results may not.
int64_t nominal(mlir::Block *block, Dim size);
/// A size where its symbols have the least values that their bounds allow, but 1 where that is 0.
int64_t smallest(mlir::Block *block, Dim size);
/// The nominal values of the symbols in a region, as the strategy keeps them.
mlir::DictionaryAttr nominalSizes(mlir::Block *block);

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

/// How a nest over `dims` (outer to inner, the last one of lanes) is cut into work items: the first
/// `split` loops, and the last one in runs of `chunk` where split == dims.size() - 1.
struct WorkPlan {
  llvm::SmallVector<Dim> dims;
  unsigned split = 0;
  int64_t chunk = 0; ///< 0: the last loop is whole in every item
  Dim items = 1;
  int64_t grain = 1;
};

/// `cost`: nanoseconds an iteration of the innermost loop takes, roughly; small nests are not cut. `block` is the
/// region's.
WorkPlan planWork(mlir::Block *block, llvm::ArrayRef<Dim> dims, double cost);

/// Emits the loops over this call's items and those inside an item; `body` gets the positions of all
/// loops but the last one, and the last one's range.
void emitItems(KernelBuilder &b, const WorkPlan &plan,
               llvm::function_ref<void(llvm::ArrayRef<mlir::Value> outer, mlir::Value lo, mlir::Value hi)> body);

/// Runs `body` for positions [lo, hi), `lanes` at a time and then the rest: under a mask where the
/// ISA has cheap ones for elements of `bits` and more, else one by one. `lo` is a multiple of
/// `multiple`.
void laneLoop(ElementExpr &e, mlir::Value lo, mlir::Value hi, int64_t lanes, unsigned bits, int64_t multiple,
              llvm::function_ref<void(Index)> body);
/// Combines the lanes of a vector pairwise, in a fixed order, to a scalar.
mlir::Value combineLanes(KernelBuilder &b, mlir::Value vector,
                         llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

/// Whether masked loads and stores of `bits` are instructions of the level.
bool hasMasks(const IsaLevel &isa, unsigned bits);

/// Lanes for the values that compute `values`: a full register of the widest computed type, but not
/// fewer than a register of 32-bit elements has when there are such; 1 for values of one element. `narrowest` is the
/// least memory width met.
int64_t chooseLanes(llvm::ArrayRef<mlir::Value> values, const IsaLevel &isa, unsigned *narrowest = nullptr);

/// Evaluates a region's results at an index of the root's result and stores them. Trailing reshapes,
/// transposes and relayouts change where a value is stored, not where it is computed.
class ResultWriter {
public:
  ResultWriter(ElementExpr &e, const RegionBody &body);
  /// The values computed at an index of the root's result space.
  llvm::ArrayRef<mlir::Value> values() const { return computed; }
  void write(llvm::ArrayRef<Index> index);
  /// True when joined indices may be given to `write`.
  bool acceptsJoined() const { return !moves; }

private:
  ElementExpr &e;
  const RegionBody &body;
  llvm::SmallVector<mlir::Value> computed;
  bool moves = false;
};

/// Ops emitted by `emit` into a throw-away kernel, weighted by what they cost, for `lanes` elements.
double dryRunCost(mlir::Block *block, const IsaLevel &isa, int64_t lanes,
                  llvm::function_ref<void(ElementExpr &, llvm::function_ref<mlir::Value()> opaqueIndex)> emit);

/// The level that plans are made for: work items must not depend on the level.
const IsaLevel &nominalIsa();

} // namespace dmxc::cpu
