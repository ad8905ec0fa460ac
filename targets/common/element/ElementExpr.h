//===- ElementExpr.h - values of tensors, element by element ----*- C++ -*-===//
//
// The pull model of fused kernels. An emitter asks for the value of any tensor of a region's body at
// a multi-index; ElementExpr emits the loads and the arithmetic that give it, through every fused
// elementwise and data-movement op, for one lane or for a vector of lanes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/code/KernelBuilder.h"
#include "targets/common/math/VectorMath.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace dmxc::kernels {

/// The position on one axis: lane l of a vector is at `base + l * stride`, or at `vec[l]` when the
/// positions have no stride (they come from an index tensor).
struct Index {
  mlir::Value base;
  int64_t stride = 0;
  int64_t multiple = 1; ///< `base` is known to be a multiple of this
  mlir::Value vec;      ///< vector<lanes x i64>; then base and stride are not used
  int64_t repeat = 1;   ///< lane l is at `base + l / repeat`; more than 1 where there is no stride

  bool uniform() const { return stride == 0 && !vec && repeat == 1; }
};
using Indices = llvm::SmallVector<Index, 6>;

/// How a value came to be read; the cost of a choice of lanes is judged by it.
struct AccessCounts {
  int64_t contiguous = 0, uniform = 0, gathered = 0;
};

/// A tensor's elements have `carried` types in kernels: signless integers, the float type itself, i8
/// for the 8-bit floats and all 4-bit types (f4 as its pattern). Signedness is in the DMIR type. Every op computes as
/// its definition says and rounds to its element type once, so fusion never changes a result; but x * sigmoid(x) is one
/// function.
///
/// Values are memoised: a tensor asked for twice at the same place is emitted once. An emitter that
/// changes memory which was read must call `forget`.
class ElementExpr {
public:
  using Value = mlir::Value;
  /// Gives a bound tensor's value at an index: carried type, of `lanes()` lanes (a scalar for one).
  using Source = std::function<Value(llvm::ArrayRef<Index>)>;

  /// `block`'s arguments are the kernel's first buffers, in order.
  ElementExpr(KernelBuilder &builder, mlir::Block *block);

  /// Makes `tensor` come from `source` instead of its defining op.
  void bind(Value tensor, Source source);
  /// The same from a value in hand, whatever the index: its first lane where one is asked for.
  void bindValue(Value tensor, Value value);
  void unbind(Value tensor);

  /// The value of `tensor` at `index`: of its carried type, `lanes()` lanes (a scalar for one).
  Value evaluate(Value tensor, llvm::ArrayRef<Index> index);
  /// The same as a float to compute with: f32 for the types narrower than it, else f64.
  Value evaluateWide(Value tensor, llvm::ArrayRef<Index> index);
  /// Writes a value of `type`'s carried element type into the tensor of that type at `base`.
  void store(Value value, Value base, mlir::RankedTensorType type, llvm::ArrayRef<Index> index);

  // --- lanes ------------------------------------------------------------------
  int64_t lanes() const { return laneCount; }
  Value mask() const { return laneMask; }
  /// While it lives, values have `lanes` lanes of which those in `mask` (all if null) are computed;
  /// the others are neither read nor written nor checked.
  class Lanes {
  public:
    Lanes(ElementExpr &e, int64_t lanes, Value mask = {}) : e(e), lanes(e.laneCount), mask(e.laneMask) {
      e.laneCount = lanes;
      e.laneMask = mask;
    }
    ~Lanes() {
      e.laneCount = lanes;
      e.laneMask = mask;
    }
    Lanes(const Lanes &) = delete;

  private:
    ElementExpr &e;
    int64_t lanes;
    Value mask;
  };

  // --- types --------------------------------------------------------------------
  mlir::Type carried(mlir::Type element) const;
  /// f16, bf16 and the 8-bit floats are computed in f32; other types are carried as they are.
  mlir::Type computed(mlir::Type element) const;
  Value widen(Value carriedValue, mlir::Type element);
  /// `overflow` is for 8-bit floats.
  Value narrow(Value computedValue, mlir::Type element, Overflow overflow = Overflow::SaturateFinite);
  /// A constant of `type`'s carried form in the current lanes.
  Value constant(mlir::Type element, double value);

  // --- index arithmetic, each distinct value emitted once --------------------------
  Index at(int64_t value);
  Index at(Value value, int64_t multiple = 1, int64_t stride = 0) const { return {value, stride, multiple, {}}; }
  Index add(Index a, Index b);
  Index addC(Index a, int64_t c);
  Index addC(Index a, Dim c) { return c.isStatic() ? addC(a, *c.known()) : add(a, at(b.idx(c))); }
  Index mulC(Index a, int64_t c);
  Index mulC(Index a, Dim c);
  /// Quotient and remainder by c > 0 of a non-negative index.
  std::pair<Index, Index> divRem(Index a, int64_t c);
  std::pair<Index, Index> divRem(Index a, Dim c);
  /// max(low, min(a, high))
  Index clamp(Index a, Dim low, Dim high);
  /// low <= a < high: an i1, per lane unless `a` is uniform.
  Value inRange(Index a, Dim low, Dim high);
  /// The index on an axis of `own` elements that meets an axis of `whole` ones: the same, or 0 where it has only one.
  Index broadcastIndex(Index a, Dim own, Dim whole);
  /// The positions as vector<lanes x i64>.
  Value vectorOf(Index a);
  /// Records quotient and remainder of `value` by `c` for divRem, where a loop nest knows them.
  void knowDivision(Value value, int64_t c, Value quotient, Value remainder);

  /// Element offset of `index` in memory, by the type's layout.
  Index offsetOf(mlir::RankedTensorType type, llvm::ArrayRef<Index> index);
  /// An element of a matrix in panels (KernelBuilder::setPanels).
  Value loadInPanels(mlir::RankedTensorType type, Value base, llvm::ArrayRef<Index> index, const Panels &panels);
  Value loadAt(mlir::Type element, Value base, Index offset);
  void storeAt(Value value, Value base, Index offset);
  /// The same by the tensor's element type, with packed elements; those need one lane, one work item and
  /// stores that run upwards.
  Value loadElement(mlir::Type element, Value base, Index offset);
  void storeElement(Value value, Value base, mlir::Type element, Index offset);

  /// Read-only bytes that an op's values are read from, once in the kernel's module.
  Value tableOf(mlir::Operation *op, llvm::StringRef bytes, unsigned alignment);

  /// Fails the kernel if `condition` (scalar, or per lane) is true for a lane that is on.
  void failIf(Value condition, int32_t code);
  /// Forgets memoised values (memory has changed).
  void forget() { memo.clear(); }

  KernelBuilder &builder() { return b; }
  AccessCounts counts;

private:
  struct Memo {
    Value tensor;
    Indices index;
    int64_t lanes;
    Value mask, value;
  };
  bool visible(Value value) const;
  Value *findMemo(Value tensor, llvm::ArrayRef<Index> index);
  Value evaluateNew(Value tensor, llvm::ArrayRef<Index> index);
  Value evaluateConstant(mlir::Operation *op, llvm::ArrayRef<Index> index);
  Value evaluateElementwise(mlir::Operation *op, llvm::ArrayRef<Index> index);
  Value evaluateMovement(mlir::Operation *op, llvm::ArrayRef<Index> index);
  std::pair<Value, Value> placeOfPacked(mlir::Type element, Index offset);
  Value gatherLanes(mlir::Type element, Value base, Index offset);
  Value loadStrided(mlir::Type element, Value base, Value first, int64_t stride);
  Value loadRepeated(mlir::Type element, Value base, Index offset);
  Value cached(int kind, Value a, Value b, llvm::function_ref<Value()> make);
  Value addV(Value a, Value b);
  Value mulV(Value a, int64_t c);
  Value constantIndex(int64_t value);
  /// The value of a size.
  Value sizeIndex(Dim size) { return size.isStatic() ? constantIndex(*size.known()) : b.idx(size); }
  Value makeTable(llvm::StringRef bytes, unsigned alignment);

  KernelBuilder &b;
  mlir::Block *block;
  int64_t laneCount = 1;
  Value laneMask;
  llvm::DenseMap<Value, Source> bound;
  std::vector<Memo> memo;
  struct Known {
    Value base;
    int64_t c;
    Value quotient, remainder;
  };
  std::vector<Known> divisions;
  struct CachedOp {
    int kind;
    Value a, b, result;
  };
  std::vector<CachedOp> indexOps;
  llvm::DenseMap<int64_t, Value> indexConstants;
  llvm::DenseMap<mlir::Operation *, Value> tables; ///< addresses of constant tables
};

/// True for elements of 4 bits, which lie two a byte.
bool isPacked(mlir::Type element);
/// True for unsigned integers and bool.
bool isUnsignedElement(mlir::Type element);
/// The result of an elementwise op from its operands' carried values (ElementArith.cpp).
mlir::Value emitElementwise(ElementExpr &e, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);
/// The index of the element of a tensor of shape `from` that has `index` in the tensor of shape `to`
/// with the same elements in row-major order.
/// The ends of the shortest runs of axes of two shapes, from axes i and j on, with equal element counts; of all axes
/// where none is seen.
std::pair<size_t, size_t> equalRuns(llvm::ArrayRef<Dim> to, llvm::ArrayRef<Dim> from, size_t i, size_t j);
Indices reshapeIndex(ElementExpr &e, llvm::ArrayRef<Dim> to, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Index> index);
/// Of a block of dmir.round_blocks: magnitudes as integers in the same order, NaN the greatest; the scale of the
/// greatest one, 0 or NaN as the op says; and numbers over it as whole ones, 0 where it is 0 or NaN.
mlir::Value magnitudeBits(KernelBuilder &b, mlir::Value x);
mlir::Value scaleOfGreatest(KernelBuilder &b, mlir::Value bits);
mlir::Value wholeOverScale(KernelBuilder &b, mlir::Value x, mlir::Value scale);
/// The op's value at an index.
mlir::Value evaluateRoundBlocks(ElementExpr &e, dmir::RoundBlocksOp op, llvm::ArrayRef<Index> index);
/// The index of the element of an operand with dims `own` that is broadcast to `whole`, where `index` is.
Indices broadcastIndices(ElementExpr &e, llvm::ArrayRef<Index> index, llvm::ArrayRef<Dim> own,
                         llvm::ArrayRef<Dim> whole);
/// max and min of two computed values: NaN if either is, +0 above -0.
mlir::Value emitMax(KernelBuilder &b, mlir::Value x, mlir::Value y, bool isUnsigned);
mlir::Value emitMin(KernelBuilder &b, mlir::Value x, mlir::Value y, bool isUnsigned);

} // namespace dmxc::kernels
