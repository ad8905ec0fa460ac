//===- AttentionParts.h - what kernels of attention read and write -*- C++ -*-===//
#pragma once

#include "FewQueries.h"

#include "targets/common/math/VectorMath.h"
#include "targets/common/roots/Loops.h"

namespace dmxc::cuda {

/// Elements of an attention's operands, its scores and its results, for rows of groups of heads.
class AttentionParts {
protected:
  using Value = mlir::Value;
  /// A row of a group: which item's, and which of it.
  struct Row {
    Value item, at;
  };
  AttentionParts(CudaBuilder &b, const RegionBody &body, const FewQueries &few)
      : b(b), few(few), e(b, body.block), writer(e, body), f32(b.getF32Type()), attention(few.attention) {}

  /// Of a number behind the last row, the last one.
  Row rowOf(Value number);
  Value query(const Row &row, Value term) { return load(attention.scores.getLhs(), row.item, few.batch, row.at, term); }
  Value key(Value item, Value key, Value term) { return load(attention.scores.getRhs(), item, few.batch, term, key); }
  Value value(Value item, Value key, Value column) {
    return load(attention.result.getRhs(), item, few.resultBatch, key, column);
  }
  /// What the softmax takes, of a product's sum.
  Value scoreOf(const Row &row, Value sum, Value key);
  /// Stores what becomes of an element of the result, if the group has the row.
  void write(Value number, Value column, Value value);

  /// A number of the result; 0 where a run has no keys.
  Value whereKeys(Value value);
  /// exp(x - most), where nothing is there yet: 0; of one or a vector of them.
  Value powerOver(Value x, Value most);
  /// Combines the values of lanes that are `from` to `to` / 2 apart.
  Value ofLanes(Value value, int64_t from, int64_t to, llvm::function_ref<Value(Value, Value)> combine);
  Value add(Value x, Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  Value lowest() { return b.constant(f32, -std::numeric_limits<double>::infinity()); }

  CudaBuilder &b;
  const FewQueries &few;
  ElementExpr e;
  ResultWriter writer;
  mlir::Type f32;
  Attention attention;
  Value group;

  bool rounds = false; ///< operands are asked for to be rounded to bf16: as words with their bits, or as f32 still

  /// An index of a tensor whose batch meets these batch axes.
  Indices indexOf(Value tensor, Value item, llvm::ArrayRef<Dim> batch, Value row, Value column);

private:
  Value load(Value tensor, Value item, llvm::ArrayRef<Dim> batch, Value row, Value column);
};

} // namespace dmxc::cuda
