//===- KernelBuilder.h - emission of one kernel -----------------*- C++ -*-===//
//
// The vocabulary that emitters of kernels are written in. A kernel is a
// `func.func` over `!llvm.ptr` buffers made of scf loops, arith/vector values
// and llvm loads and stores; all index arithmetic is i64. There is no memref
// and no linalg op, so nothing can silently fall back to scalar loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Panels.h"
#include "Processor.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dmxc::kernels {

/// Builds one kernel. What is the same for all targets is here; a target derives its builder, whose constructor makes
/// the function and calls `enter`, and which says how a kernel ends and fails. The insertion point is inside the
/// function.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using LoopBody = llvm::function_ref<void(Value index)>;

  virtual ~KernelBuilder() = default;

  // --- what a target decides ------------------------------------------------------
  /// Ends the kernel at the current insertion point.
  virtual void finish() = 0;
  /// Makes the kernel return `code` at its end if `condition` (i1) is true. Sticky: the first failure recorded is
  /// returned. The kernel goes on; emitters clamp the bad value themselves.
  virtual void failIf(Value condition, int32_t code) = 0;
  /// Runs `item` for those of the `count` work items that this call has.
  virtual void forItems(Dim count, LoopBody item);
  // Threads may compute a row together, in step (Team in Launch.h); Rows.h walks rows for them.
  /// The thread's number among those that share its row, and among those that share its scratch too: i64.
  virtual Value member() { return idx(0); }
  virtual Value memberHere() { return idx(0); }
  /// Which of the rows beside each other is its own: i64.
  virtual Value column() { return idx(0); }
  using Combine = llvm::function_ref<llvm::SmallVector<Value>(mlir::ValueRange, mlir::ValueRange)>;
  /// The values of all members of a row combined, the same for each of them, in an order that is the same in each run.
  /// `combine` gives the same for its arguments exchanged. What members stored to scratch before, others may read after
  /// it.
  virtual llvm::SmallVector<Value> ofTeam(mlir::ValueRange own, Combine) { return llvm::to_vector(own); }
  /// The largest of the members' i64, taken without signs.
  virtual Value mostOfTeam(Value own);
  /// Runs `body` for one member of each row.
  virtual void byOne(llvm::function_ref<void()> body) { body(); }
  const Processor &processor() const { return target; }

  // --- arguments. Buffers and dims follow the task in graph.json: operands, then results
  Value buffer(unsigned i) const { return arguments.buffers[i]; } ///< !llvm.ptr
  Value dim(unsigned i) const { return arguments.dims[i]; }       ///< i64
  Value begin() const { return arguments.begin; }                 ///< i64: first work item of this call
  Value end() const { return arguments.end; }                     ///< i64: one past the last work item
  Value scratch() const { return arguments.scratch; }             ///< !llvm.ptr: this thread's scratch
  Value results() const { return arguments.results; }             ///< !llvm.ptr to i64: data-dependent dims
  /// Makes begin() and end() give these values: a caller that cuts work differently maps its range first.
  void setRange(Value first, Value last) { arguments.begin = first, arguments.end = last; }
  /// Says that dim i is the value of symbol i.
  void setSymbols(dmir::SymbolSet names) { symbols = std::move(names); }
  /// Says that buffer i is a matrix in panels.
  void setPanels(unsigned i, const Panels &how) { panels[i] = how; }
  /// The panels that buffer i lies in.
  Panels panelsOf(unsigned i) const { return panels.lookup(i); }
  /// The block that every other one of the kernel sees.
  mlir::Block *entryBlock() const { return entry; }

  // --- i64 index arithmetic, folded while it is built ----------------------------------
  Value idx(int64_t value);
  /// The value of a size: a constant, or computed from the dims once, where every block sees it.
  Value idx(Dim size);
  /// The value of an integer constant, if it is one.
  static std::optional<int64_t> constantOf(Value value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value addC(Value a, int64_t b);
  Value mulC(Value a, int64_t b);
  Value mulC(Value a, Dim b) { return b.is(1) ? a : mul(a, idx(b)); }
  Value floorDiv(Value a, Value b); ///< a >= 0, b > 0
  Value rem(Value a, Value b);      ///< a >= 0, b > 0
  Value ceilDiv(Value a, Value b);
  Value minS(Value a, Value b);
  Value maxS(Value a, Value b);
  Value cmp(mlir::arith::CmpIPredicate predicate, Value a, Value b);

  // --- control flow --------------------------------------------------------------------
  /// for (i = lo; i < hi; i += step) body(i)
  void forLoop(Value lo, Value hi, Value step, LoopBody body);
  void forLoop(int64_t lo, int64_t hi, int64_t step, LoopBody body);
  /// The same with loop-carried values; the body returns the next ones.
  llvm::SmallVector<Value> forLoop(Value lo, Value hi, Value step, mlir::ValueRange init,
                                   llvm::function_ref<llvm::SmallVector<Value>(Value, mlir::ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

  // --- values --------------------------------------------------------------------------
  /// Constant of a scalar or vector type, splatted.
  Value constant(mlir::Type type, double value);
  Value constantInt(mlir::Type type, int64_t value);
  /// Splat of a scalar to `lanes` lanes; the scalar itself for lanes == 1.
  Value splat(Value scalar, int64_t lanes);
  /// The first lanes of a vector; and a vector that begins with `vector`, then has zeros. Of as many lanes as it has,
  /// or a scalar's one: itself.
  Value narrowed(Value vector, int64_t lanes);
  Value widened(Value vector, int64_t lanes);
  /// Of as many vectors as each has lanes, element j of vector i as element i of vector j.
  llvm::SmallVector<Value> transposed(llvm::ArrayRef<Value> rows);
  /// vector<lanes x T>, or T for lanes == 1.
  mlir::Type laneType(mlir::Type element, int64_t lanes);
  /// Fused multiply-add a*b+c of floats where the level has it, else a multiply
  /// and an add.
  Value fma(Value a, Value b, Value c);

  // --- memory: offsets count elements of the given storage type ------------------------
  /// Type a tensor element has in memory: i1 is kept in i8 (0/1), bf16 moves as
  /// i16, others as they are.
  mlir::Type storageType(mlir::Type element);
  /// Loads `lanes` consecutive elements (natural element alignment); i1 results
  /// come as i1.
  Value load(mlir::Type element, Value base, Value offset, int64_t lanes = 1);
  void store(Value value, Value base, Value offset);
  /// Masked forms; `mask` is vector<lanes x i1>; inactive lanes read as
  /// `passThru` (zero if null).
  Value maskedLoad(mlir::Type element, Value base, Value offset, Value mask, Value passThru = {});
  void maskedStore(Value value, Value base, Value offset, Value mask);
  /// Mask whose first `count` lanes are on: constant, or from an i64 value.
  Value headMask(int64_t lanes, int64_t count);
  Value headMask(int64_t lanes, Value count);
  /// i1: all of these pointers are multiples of `bytes`; and that they are, where it is known.
  Value areAligned(llvm::ArrayRef<Value> pointers, int64_t bytes);
  void assumeAligned(llvm::ArrayRef<Value> pointers, int64_t bytes);
  /// base + offset elements, as a pointer.
  Value elementPtr(mlir::Type element, Value base, Value offset);

protected:
  struct Arguments {
    llvm::SmallVector<Value> buffers, dims;
    Value begin, end, scratch, results;
  };
  KernelBuilder(mlir::Location loc, const Processor &target)
      : ImplicitLocOpBuilder(loc, loc.getContext()), target(target) {}
  /// Says where the kernel begins, and with which arguments.
  void enter(mlir::Block *block, Arguments values);

private:
  const Processor &target;
  mlir::Block *entry = nullptr;
  Arguments arguments;
  llvm::SmallDenseMap<unsigned, Panels> panels;                    ///< by buffer
  dmir::SymbolSet symbols;                                         ///< of the dims
  llvm::DenseMap<std::pair<int64_t, const void *>, Value> extents; ///< by Dim::key
  mlir::Operation *lastExtent = nullptr;                           ///< in the entry block
};

} // namespace dmxc::kernels
