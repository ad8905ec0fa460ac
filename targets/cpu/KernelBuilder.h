//===- KernelBuilder.h - emission of one CPU kernel -------------*- C++ -*-===//
//
// The vocabulary every CPU kernel emitter is written in. A kernel is a
// `func.func` over `!llvm.ptr` buffers made of scf loops, arith/vector values
// and llvm loads and stores; all index arithmetic is i64. There is no memref
// and no linalg op, so nothing can silently fall back to scalar loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "IsaLevel.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dmxc::cpu {

/// Builds one kernel: the exported wrapper that unpacks `dmx_kernel_args`
/// (dmx_kernel.h) and a private body whose buffers are noalias arguments.
/// The builder's insertion point is inside the body; `finish` returns OK.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using LoopBody = llvm::function_ref<void(Value index)>;

  /// Starts kernel `name` in `module`. `numBuffers` and `numDims` follow the
  /// task in graph.json: operands, then results. A buffer listed twice is
  /// passed twice; `noalias[i]` is false for buffers that share bytes with
  /// another one (in-place results).
  KernelBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, unsigned numBuffers, unsigned numDims,
                const IsaLevel &isa, llvm::ArrayRef<bool> noalias = {});

  Value buffer(unsigned i) const; ///< !llvm.ptr
  Value dim(unsigned i) const;    ///< i64
  Value begin() const;            ///< i64: first work item of this call
  Value end() const;              ///< i64: one past the last work item
  /// Makes begin() and end() give these values: a caller that cuts work differently maps its range first.
  void setRange(Value first, Value last) { range[0] = first, range[1] = last; }
  Value scratch() const; ///< !llvm.ptr: this thread's scratch
  static constexpr int64_t kTileBytes = 2048;
  /// !llvm.ptr: kTileBytes, room for the sums of a register tile, on the stack; one for the whole kernel.
  Value tileBuffer();
  Value results() const; ///< !llvm.ptr to i64: data-dependent dims
  /// i64: what this thread's last call of the task left by `keep`, which says what is prepared in scratch; -1 if this
  /// is the first one.
  Value kept();
  void keep(Value number);
  /// Says that dim i is the value of symbol i.
  void setSymbols(dmir::SymbolSet names) { symbols = std::move(names); }
  const IsaLevel &isa() const { return level; }

  /// Ends the kernel: returns DMX_KERNEL_OK at the current insertion point.
  void finish();
  /// Makes the kernel return `code` at its end if `condition` (i1) is true.
  /// Sticky: the first failure recorded is returned. The kernel goes on;
  /// emitters clamp the bad value themselves.
  void failIf(Value condition, int32_t code);

  // --- i64 index arithmetic, folded while it is built
  // -------------------------
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

  // --- control flow
  // -----------------------------------------------------------
  /// for (i = lo; i < hi; i += step) body(i)
  void forLoop(Value lo, Value hi, Value step, LoopBody body);
  void forLoop(int64_t lo, int64_t hi, int64_t step, LoopBody body);
  /// The same with loop-carried values; the body returns the next ones.
  llvm::SmallVector<Value> forLoop(Value lo, Value hi, Value step, mlir::ValueRange init,
                                   llvm::function_ref<llvm::SmallVector<Value>(Value, mlir::ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

  // --- values
  // -----------------------------------------------------------------
  /// Constant of a scalar or vector type, splatted.
  Value constant(mlir::Type type, double value);
  Value constantInt(mlir::Type type, int64_t value);
  /// Splat of a scalar to `lanes` lanes; the scalar itself for lanes == 1.
  Value splat(Value scalar, int64_t lanes);
  /// The first lanes of a vector; and a vector that begins with `vector`, then has zeros. Of as many lanes as it has,
  /// or a scalar's one: itself.
  Value narrowed(Value vector, int64_t lanes);
  Value widened(Value vector, int64_t lanes);
  /// vector<lanes x T>, or T for lanes == 1.
  mlir::Type laneType(mlir::Type element, int64_t lanes);
  /// Fused multiply-add a*b+c of floats where the level has it, else a multiply
  /// and an add.
  Value fma(Value a, Value b, Value c);

  // --- memory: offsets count elements of the given storage type
  // -----------------
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
  /// base + offset elements, as a pointer.
  Value elementPtr(mlir::Type element, Value base, Value offset);
  /// Keeps loads that are emitted later from being scheduled before this point;
  /// costs no instruction. Between the steps of an unrolled register tile it keeps
  /// the registers of one step from adding to those of the next.
  void fence();
  /// A fence that also gives the pointer a value LLVM knows nothing about. Keeps it
  /// from merging equal loads through different copies and spilling the values;
  /// loading twice is cheaper.
  Value opaque(Value pointer);
  /// The vector, of which LLVM knows only that a register holds it. For levels with AVX-512.
  Value held(Value vector);
  /// Prefetch of the line that holds the element; locality 3 = L1 .. 0 = none.
  void prefetch(mlir::Type element, Value base, Value offset, int locality, bool write = false);

private:
  const IsaLevel &level;
  mlir::ModuleOp module;
  mlir::Operation *body = nullptr; ///< the private func.func
  Value range[2];                  ///< of setRange; null: the call's own
  Value status;                    ///< stack slot of the sticky failure, made on demand
  Value tile;                      ///< tileBuffer, made on demand
  unsigned numBuffers, numDims;
  dmir::SymbolSet symbols;                                         ///< of the dims
  llvm::DenseMap<std::pair<int64_t, const void *>, Value> extents; ///< by Dim::key
  mlir::Operation *lastExtent = nullptr;                           ///< in the entry block
};

} // namespace dmxc::cpu
