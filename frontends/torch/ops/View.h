//===- View.h - parts of tensors --------------------------------*- C++ -*-===//
#pragma once

#include "../AtenContext.h"

namespace dmxc::torchfe {

/// The diagonal of two axes as a last axis.
Val diagonalOf(Emitter &e, const Val &x, int64_t offset, int64_t first, int64_t second);
/// Elements of the flat tensor at offset + index * stride.
Val strided(Emitter &e, const Val &x, const Dims &sizes, llvm::ArrayRef<int64_t> strides, int64_t offset);
/// One slice of an axis, without the axis.
Val select(Emitter &e, const Val &x, int64_t axis, Dim index);

/// What the arguments start, end and step name of an axis.
struct SliceRange {
  Dim start, size;
  int64_t step = 1;
};
SliceRange sliceRange(AtenContext &c, Dim dim);

} // namespace dmxc::torchfe
