//===- Layout.h - bytes of a tensor in its layout ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Forms.h"

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
  if (std::optional<int64_t> bytes = dmir::formBytesOf(type))
    return *bytes;
  if (auto blocked = mlir::dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type)))
    shape[blocked.getAxis()] =
        (shape[blocked.getAxis()] + blocked.getBlock() - 1) / blocked.getBlock() * blocked.getBlock();
  return static_cast<int64_t>(dtypeBytes(*dmir::dtypeOf(tensor.getElementType()), elementCount(shape)));
}

/// Bytes of a tensor: `count` units of `unit` bytes, where the unit is 1 unless the shape depends on symbols. Sizes of
/// one unit compare, and lie in an arena, like numbers.
struct StorageSize {
  int64_t count = 0;
  Dim unit = 1;
  bool operator==(const StorageSize &other) const { return count == other.count && unit == other.unit; }
};
inline StorageSize storageSize(mlir::Type type) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  if (tensor.hasStaticShape())
    return {storageBytes(type), 1};
  int64_t bits = dtypeBits(*dmir::dtypeOf(tensor.getElementType()));
  llvm::SmallVector<Dim> dims = dmir::dimsOf(type);
  if (auto blocked = mlir::dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type)))
    dims[blocked.getAxis()] = Dim::ceilDiv(dims[blocked.getAxis()], blocked.getBlock()) * blocked.getBlock();
  Dim elements = dmir::product(dims);
  auto [count, unit] = (bits >= 8 ? elements * (bits / 8) : Dim::ceilDiv(elements * bits, 8)).contentAndPrimitive();
  return {count, unit};
}

/// The value whose bytes `value` is a view of.
inline mlir::Value viewedValue(mlir::Value value) {
  while (auto reshape = value.getDefiningOp<dmir::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// Whether the dims of a type, as of a view of the region's result, are known when it runs, not only by what runs after
/// it.
bool isKnownBefore(mlir::Type type, dmir::RegionOp region);

/// The result of the region's function that is the next value of a state, where the region's first result is that and
/// may be written over the state's old value.
std::optional<unsigned> stateInPlace(dmir::RegionOp region);

} // namespace dmxc
