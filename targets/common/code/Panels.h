//===- Panels.h - matrices of constants that lie in panels ------*- C++ -*-===//
#pragma once

#include "mlir/IR/Types.h"

namespace dmxc::kernels {

/// A matrix in panels of 16 rows: the first `unit` columns of all sixteen, then the next ones, padded with zeros. The
/// right operands of products are packed so.
struct Panels {
  static constexpr int64_t kRows = 16;
  int64_t unit = 0;   ///< 0: the matrix is in no panels and has its type's layout
  mlir::Type kept;    ///< what elements of f32 are kept as, bf16 or i8; null: as the matrix's type says
  int64_t scales = 0; ///< of i8: place, in floats, of what the first row is multiplied by; the other rows' follow
};

} // namespace dmxc::kernels
