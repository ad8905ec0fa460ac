//===- RowMapping.h - rows on an array of cores -----------------*- C++ -*-===//
//
// Rows of a result are shared out over all cores, some to each at once: a block. What they are computed from is read as
// the host has it, by walks of the shims: a stride from row to row and one from number to number, and one for each dim
// that is not part of these, which is a loop. The result lies in whole blocks of rows of whole vectors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RowChain.h"

#include "targets/aie/place/Mapping.h"

#include "dmxc/Support/Result.h"

namespace dmxc::aie {

/// What of it is free.
struct RowTiling {
  int64_t herdRows = 4, herdColumns = 4, rows = 1;
  static llvm::ArrayRef<kernels::TileField<RowTiling>> fields();
};

/// How a shim reads an operand; strides in numbers.
struct RowWalk {
  unsigned argument = 0; ///< of the region
  mlir::RankedTensorType tensor;
  int64_t offset = 0, row = 0, column = 1;
  llvm::SmallVector<int64_t> outer;
  bool isRow = false; ///< one for all rows of a block
};

struct RowMapping {
  RowTiling tiling;
  int64_t inner = 1, columns = 1; ///< rows that a stride reads, numbers of a row
  llvm::SmallVector<int64_t> outer;
  std::vector<RowWalk> walks; ///< the first of the rows that are changed, the others as `ops` join them
  std::vector<RowOp> ops;
  mlir::RankedTensorType result;
  llvm::SmallVector<int64_t> resultStrides; ///< a dim of the host's, in the result's form

  int64_t pitch() const { return (columns + 7) / 8 * 8; }
  int64_t cores() const { return tiling.herdRows * tiling.herdColumns; }
  int64_t blockRows() const { return cores() * tiling.rows; }
  int64_t blocks() const { return (inner + blockRows() - 1) / blockRows(); }
  int64_t paddedRows() const { return blocks() * blockRows(); }
  int64_t outerCount() const;
  /// Numbers of a walk's form in DDR: to the end of what it reads.
  int64_t elements(const RowWalk &walk) const;
  /// The most rows that a core holds at once; below 1 where it holds none.
  int64_t mostRows(const hw::Machine &machine) const;
  /// Of all blocks, one after the other: the slowest of cores, shims and the controller; the first one's way in, the
  /// last one's out.
  int64_t clocks(const hw::Machine &machine) const;
};

/// Whether a value can be read row by row for a result of such a shape; `origin` is what lies in memory.
std::optional<RowWalk> walkOf(mlir::Value value, mlir::Value origin, mlir::RankedTensorType result);
/// What a region or kernel computes, with the tiling that a text has (may be null) and what is `decided` instead.
Result<RowMapping> rowMappingOf(const hw::Machine &machine, const Herd &most, mlir::Block *block,
                                mlir::Attribute written, mlir::DictionaryAttr decided);
std::vector<Decision> rowDecisions(const hw::Machine &machine, const Herd &most, mlir::Block *block,
                                   mlir::DictionaryAttr decided);
/// nullopt where the array holds it.
std::optional<std::string> refuses(const hw::Machine &machine, const RowMapping &mapping);

/// The program of grids of units.
dlir::DeviceProgramOp writeRows(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine,
                                llvm::StringRef name, const RowMapping &mapping);

} // namespace dmxc::aie
