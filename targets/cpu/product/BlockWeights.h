//===- BlockWeights.h - right operands of few bits with a scale a block -*- C++ -*-===//
//
// A constant that dmir.dequantize makes the right operand of a product keeps its bits: in the bundle, in memory and on
// the way to the register tile, where few rows read them; more rows unpack a panel of it into scratch. The values are
// packed as "blocks16", integer zero points as "bytes16" ("sbytes16" where they are signed), scales and other zero
// points as "panel16".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Target/TargetBackend.h"

#include <optional>
#include <span>

namespace dmxc::cpu {

/// A right operand of k x n, or one for each group of rows, that dmir.dequantize makes of three buffers of a region.
struct BlockWeights {
  mutable dmir::DequantizeOp op;   ///< a handle, whose accessors are not const
  unsigned values = 0, scales = 0; ///< numbers of buffers
  std::optional<unsigned> zeros;
  GemmBlocks format;
  int64_t groups = 1, k = 0, n = 0;
  int64_t strideK = 0, strideN = 0;           ///< of the values, in elements
  int64_t blockStrideK = 0, blockStrideN = 0; ///< of scales and float zero points; 0 where one serves all
  int64_t zeroRowBytes = 0;                   ///< of integer zero points

  /// Whether rows that are rounded in blocks of so many can be multiplied by its integers.
  bool multipliesBytes(int64_t rowBlock) const {
    return format.bits == 8 && format.isSigned && format.zero == 0 && !format.zeroType && format.block == rowBlock &&
           rowBlock % 16 == 0 && rowBlock <= 256;
  }
  bool grouped() const { return op.getType().getRank() == 3; }
  int64_t blocks() const { return (k + format.block - 1) / format.block; }
  /// Whether k runs along the rows of what lies in memory.
  bool alongRows() const { return op.getAxis() + 1 == static_cast<uint64_t>(op.getType().getRank()); }
  /// From one row of integer zero points to the next, in elements.
  int64_t zeroStride() const {
    bool oneRow = alongRows() ? blockStrideN == 0 : blockStrideK == 0;
    return oneRow ? 0 : zeroRowBytes * 8 / format.bits;
  }
  llvm::SmallVector<unsigned> buffers() const {
    llvm::SmallVector<unsigned> all{values, scales};
    if (zeros)
      all.push_back(*zeros);
    return all;
  }
  /// Finds the numbers of the buffers; false where an operand is none.
  bool findBuffers();
};

/// The right operand of a product as block weights: a matrix of known size, or one for each group, whose blocks run
/// along k and are whole groups of four bytes. Without the numbers of its buffers.
std::optional<BlockWeights> matchBlockWeights(mlir::Value rhs);

/// Whether a mode of --numerics rounds the weights of a product, or of a table whose rows are gathered, to blocks.
bool mayKeepInBlocks(mlir::Operation *op);
/// How far a constant that an op of a region reads, or looks at through a view, is off by --numerics; nullopt where it
/// is as the model has it, or no constant.
std::optional<double> errorOfConstant(mlir::Value value);
/// Whether a product is one by weights that --numerics rounded to s8 without zero points, of rows of f32.
bool mayMultiplyBytes(mlir::Operation *product);
/// The formats of a product by weights that --numerics rounded to blocks, and of rows that are read of such.
std::optional<OpFormats> formatsOfBlocks(mlir::Operation *op);

/// The forms of its buffers, by number.
mlir::NamedAttrList blockForms(const BlockWeights &weights, mlir::MLIRContext *context);
bool isBlockForm(llvm::StringRef form);
void packBlockForm(mlir::DictionaryAttr form, std::span<const std::byte> constant, std::span<std::byte> out);

} // namespace dmxc::cpu
