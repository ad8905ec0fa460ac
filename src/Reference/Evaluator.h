//===- Evaluator.h - what the evaluator of an op sees -----------*- C++ -*-===//
//
// Evaluators are written for the eleven element types that C++ has (bool, the 8 to 64 bit integers, f32, f64). The
// others are converted on the way in and rounded once on the way out (see Mode), in one place, so that no op has to
// know them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/Operation.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace dmxc::reference {

/// How operands and results of an op meet the evaluator.
enum class Mode : uint8_t {
  /// i4 and i2 as i8, u4 and u2 as u8; f16, bf16, f8 and f4 as f32. Results are wrapped, respectively rounded, once. To
  /// f8 and f4 a
  /// finite overflow saturates.
  Arithmetic,
  /// Elements are opaque bits; only packed types are unpacked, one to a byte. NaN payloads survive.
  Movement,
  /// Nothing is converted: the evaluator handles every type (constant, cast, views).
  Raw,
};

/// The type that an element type is evaluated in.
DType nativeType(DType type, Mode mode);
/// Conversions between a type and its native type; tensors that need none are returned as they are.
Tensor toNative(const Tensor &tensor, Mode mode);
Tensor fromNative(const Tensor &tensor, DType target, Mode mode);

using Outputs = Result<std::vector<Tensor>>;

/// One evaluation: the op, its operands in native types, and the types of its results.
struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<Tensor> in;
  Mode mode;

  /// Shape of result i.
  Shape shape(unsigned i = 0) const;
  /// Element type of result i as the IR has it (before it was made native).
  DType declaredType(unsigned i = 0) const;
  /// A zeroed tensor for result i, of its native type.
  Tensor makeResult(unsigned i = 0) const { return Tensor(nativeType(declaredType(i), mode), shape(i)); }
  /// "node 'name' (dmir.op): reason".
  Error error(const std::string &reason) const;
};

using Evaluator = Outputs (*)(const Call &call);

struct Entry {
  Evaluator evaluate = nullptr;
  Mode mode = Mode::Arithmetic;
};
/// Op name -> how it is evaluated.
using Table = llvm::StringMap<Entry>;

// Each family adds its ops.
void addConstants(Table &table);
void addUnary(Table &table);
void addBinary(Table &table);
void addCast(Table &table);
void addMovement(Table &table);
void addGather(Table &table);
void addDequantize(Table &table);
void addScatter(Table &table);
void addReduce(Table &table);
void addSelection(Table &table);
void addLinearAlgebra(Table &table);
void addWindow(Table &table);
void addNormalize(Table &table);
void addBlockFloat(Table &table);

/// Ops with a block_fp operand or result are evaluated by one function: their tensors are in host form
/// (ConstantData.h), which the conversions of Mode do not know.
bool usesBlockFloat(mlir::Operation *op);
Outputs evaluateBlockFloat(const Call &call);

/// One result, the usual case.
inline Outputs one(Tensor tensor) {
  std::vector<Tensor> results;
  results.push_back(std::move(tensor));
  return results;
}

} // namespace dmxc::reference
