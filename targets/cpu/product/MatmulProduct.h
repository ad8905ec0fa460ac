//===- MatmulProduct.h - a dmir.matmul as a product of matrices -*- C++ -*-===//
#pragma once

#include "BlockWeights.h"
#include "Gemm.h"
#include "RoundedWeights.h"
#include "targets/common/roots/Contraction.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::cpu {

/// Everything about a product that does not depend on the level. Operand types may be bytes, summed in i32; rounded
/// ones are those in memory.
struct MatmulProduct : Contraction {
  std::optional<BlockWeights> blocks; ///< what the right operand is made of, where it is no view
  bool bytes = false; ///< the left one is rounded to s8 in their blocks, which the kernel does: `lhs` is what of
  bool packedRhs = false, heavyEpilogue = false, grouped = false;
  bool mayGroup = true;                      ///< bytes may be multiplied four at a time, bf16 two
  WeightFormat weights = WeightFormat::Kept; ///< of a packed right operand of f32
  std::optional<WeightRuns> runs;            ///< of a packed right operand of which zeros are left out
  std::optional<MicroKernel> micro;          ///< that it calls for full tiles
  Units units;                               ///< that it is planned for
  bool roundsLhs = false, roundsRhs = false; ///< f32 in memory, rounded to bf16 where it is read
  bool runPairs = false;                     ///< of an attention, both operands of bf16: see GemmKernel::runPairs

  /// Whose batch dims may become rows where the right operand has none, which may be of few bits.
  MatmulProduct(dmir::MatMulOp op, bool heavyEpilogue) : MatmulProduct(op, heavyEpilogue, Kind::Root) {}
  /// Of rows in groups, whose right operand are matrices one after the other.
  MatmulProduct(dmir::GroupedMatMulOp op, bool heavyEpilogue);
  /// Of an attention, whose operands may be cast between f32 and bf16 on the way from memory.
  static MatmulProduct nested(dmir::MatMulOp op, bool heavyEpilogue) { return {op, heavyEpilogue, Kind::Nested}; }
  bool direct() const { return lhs && (rhs || blocks) && !unclear && element.getIntOrFloatBitWidth() >= 8 && !isF8(); }
  /// Bytes along rows times constant bytes: computed four at a time.
  bool fours() const;
  /// Floats of 16 bits, constant on the right, summed in f32: packed in pairs.
  bool pairs() const;
  bool isF8() const { return mlir::isa<mlir::FloatType>(element) && element.getIntOrFloatBitWidth() == 8; }
  GemmKernel kernel() const;
  /// Whether the right operand can be packed: of known sizes, and not empty.
  bool hasConstantShape() const;
  /// Whether the right operand is packed in panels of its own elements, so that blocks of zeros may be left out.
  bool keepsElements() const { return packedRhs && weights == WeightFormat::Kept && !fours() && !pairs() && !grouped; }
  /// A constant as the right operand of one matrix, and the columns that groups of it have.
  ConstantMatrix rightMatrix(const std::byte *data) const;
  int64_t runColumns() const;
  /// What the right operand is packed in.
  mlir::DictionaryAttr packedForm() const;
  /// The operands in memory. The product outlives them.
  GemmMatrix left(CpuBuilder &b) const { return matrix(b, *lhs, lhsBatch, lhsRow); }
  GemmMatrix right(CpuBuilder &b) const;

  /// Where the left operand lies, or what it is rounded from.
  static mlir::Value rowsOf(dmir::MatMulOp op);

private:
  enum class Kind { Root, Nested };
  MatmulProduct(dmir::MatMulOp op, bool heavyEpilogue, Kind kind);
  int64_t packedElements() const;
  GemmMatrix matrix(CpuBuilder &b, const StridedView &view, llvm::ArrayRef<Dim> batch, Dim rowStride) const;
};

} // namespace dmxc::cpu
