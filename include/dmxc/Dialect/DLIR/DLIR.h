//===- DLIR.h - the DLIR dialect --------------------------------*- C++ -*-===//
//
// Programs of graphs, their buffers and tasks. What is inside a device's kernels is in Device.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/SymbolTable.h"

#include <memory>
#include <vector>

namespace dmxc::dlir {
struct DeviceModel;
} // namespace dmxc::dlir

#include "dmxc/Dialect/DLIR/DLIRDialect.h.inc"
#include "dmxc/Dialect/DLIR/DLIREnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/DLIR/DLIRInterfaces.h.inc"
#include "dmxc/Dialect/DLIR/DLIRTypes.h.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DLIR/DLIROps.h.inc"

namespace dmxc::dlir {

/// Of what a target's stages make of a kernel: the target's name, as of a dlir.kernel.
inline constexpr llvm::StringLiteral kDeviceAttr = "dlir.device";

/// The bytes of a program's buffers after aliases are resolved: two ranges conflict when their spaces are equal
/// and they overlap.
struct ByteRange {
  BufferKind kind;
  int64_t index; ///< input, output or arena number; for constants and results, the buffer op's address
  int64_t begin, end;
  bool overlaps(const ByteRange &other) const {
    return kind == other.kind && index == other.index && begin < other.end && other.begin < end;
  }
};
ByteRange byteRange(BufferOp buffer);

} // namespace dmxc::dlir
