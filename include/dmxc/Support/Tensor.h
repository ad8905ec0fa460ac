//===- Tensor.h - a dense host tensor ---------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/DType.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dmxc {

using Shape = std::vector<int64_t>;

/// Product of the dims; 1 for rank 0, INT64_MAX where it exceeds 63 bits. Dims must be non-negative.
int64_t elementCount(std::span<const int64_t> shape);
/// "2x3x4", "scalar" for rank 0.
std::string shapeString(std::span<const int64_t> shape);

/// Element `i` of data of a packed type (isPacked), as bits without a sign.
uint8_t packedBits(DType type, const std::byte *data, int64_t i);
void setPackedBits(DType type, std::byte *data, int64_t i, uint8_t value);
/// The value of such bits of a signed integer type.
int8_t signExtended(DType type, uint8_t bits);

/// A dense, row-major, little-endian tensor. The bytes are shared and treated
/// as immutable once shared; `mutableData` is for the one who fills it.
/// Copying copies the handle, not the bytes. Thread-safe as shared_ptr is.
class Tensor {
public:
  Tensor() = default;
  /// Allocates zeroed bytes, 64-byte aligned.
  Tensor(DType type, Shape shape);
  /// Wraps bytes owned by somebody else; `owner` keeps them alive.
  Tensor(DType type, Shape shape, const std::byte *bytes, std::shared_ptr<const void> owner);

  DType dtype() const { return type; }
  const Shape &shape() const { return dims; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numElements() const { return elementCount(dims); }
  uint64_t byteSize() const { return dtypeBytes(type, numElements()); }
  const std::byte *data() const { return bytes; }
  std::byte *mutableData() { return const_cast<std::byte *>(bytes); }
  std::span<const std::byte> raw() const { return {bytes, byteSize()}; }
  bool empty() const { return !bytes; }
  const std::shared_ptr<const void> &owner() const { return keepAlive; }

  /// Typed access; T must have the element's storage size.
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(bytes); }
  template <typename T> T *as() { return reinterpret_cast<T *>(mutableData()); }

  /// Element `i` (row-major) as a double, respectively a signed 64-bit value.
  double asDouble(int64_t i) const;
  int64_t asInt(int64_t i) const;
  /// Stores with the dtype's rounding (to nearest even) or wrap-around.
  void setDouble(int64_t i, double value);
  void setInt(int64_t i, int64_t value);

  /// The same bytes under another shape of equal element count.
  Tensor reshaped(Shape shape) const;

private:
  DType type = DType::F32;
  Shape dims;
  const std::byte *bytes = nullptr;
  std::shared_ptr<const void> keepAlive;
};

} // namespace dmxc
