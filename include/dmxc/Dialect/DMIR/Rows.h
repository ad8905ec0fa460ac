//===- Rows.h - parts of rows -----------------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::dmir {

/// What a value has of each row of another, which it is cut out of along the last axis: start, start + step, ...
struct RowPart {
  mlir::Value whole; ///< the value itself where it is cut out of none
  int64_t start = 0, step = 1;
};
/// Through slices of static places that take the other axes whole, one after the other.
RowPart partOfRows(mlir::Value value);

} // namespace dmxc::dmir
