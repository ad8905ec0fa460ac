//===- Layout.h - bytes of a tensor in its layout ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc {

/// Alignment of arena offsets and packed constants, in bytes: one cache line and one AVX-512 register.
inline constexpr int64_t kBufferAlign = 64;

inline int64_t alignTo(int64_t bytes) { return (bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign; }

/// Bytes a static tensor takes in its layout; a blocked axis is rounded up to whole blocks, block_fp to whole tiles.
inline int64_t storageBytes(mlir::Type type) {
  if (dmir::blockFpOf(type)) {
    std::optional<dmir::HostForm> form = dmir::hostFormOf(type);
    return form ? static_cast<int64_t>(dtypeBytes(form->dtype, elementCount(form->shape))) : 0;
  }
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  llvm::SmallVector<int64_t> shape(tensor.getShape());
  if (auto blocked = mlir::dyn_cast_or_null<dmir::BlockedAttr>(tensor.getEncoding()))
    shape[blocked.getAxis()] =
        (shape[blocked.getAxis()] + blocked.getBlock() - 1) / blocked.getBlock() * blocked.getBlock();
  return static_cast<int64_t>(dtypeBytes(*dmir::dtypeOf(tensor.getElementType()), elementCount(shape)));
}

} // namespace dmxc
