//===- Strided.h - loops over strided operands ------------------*- C++ -*-===//
//
// An iteration space and, for each of N operands, a stride an axis. Axes that all operands walk as one are merged, so
// equal shapes and scalars become one row and the inner loop is long wherever it can be.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include "llvm/ADT/SmallVector.h"

#include <array>
#include <span>

namespace dmxc::reference {

using Strides = llvm::SmallVector<int64_t, 6>;

/// Row-major element strides of a shape.
inline Strides stridesOf(std::span<const int64_t> shape) {
  Strides strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Strides with which `shape`, aligned right, is read over `space`: 0 on axes where it is broadcast.
inline Strides broadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> space) {
  Strides own = stridesOf(shape);
  Strides strides(space.size(), 0);
  size_t lead = space.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    strides[lead + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

template <size_t N> class StridedLoop {
public:
  StridedLoop(std::span<const int64_t> space, std::array<Strides, N> operandStrides) {
    for (size_t axis = 0; axis < space.size(); ++axis) {
      if (space[axis] == 0)
        empty = true;
      if (space[axis] == 1)
        continue;
      if (!dims.empty() && mergesWithLast(operandStrides, axis, space[axis])) {
        dims.back() *= space[axis];
        for (size_t n = 0; n < N; ++n)
          strides[n].back() = operandStrides[n][axis];
        continue;
      }
      dims.push_back(space[axis]);
      for (size_t n = 0; n < N; ++n)
        strides[n].push_back(operandStrides[n][axis]);
    }
    if (dims.empty()) {
      dims.push_back(1);
      for (Strides &operand : strides)
        operand.push_back(0);
    }
  }

  /// Elements of a row and the operands' strides in it.
  int64_t rowLength() const { return dims.back(); }
  int64_t rowStride(size_t n) const { return strides[n].back(); }

  /// Calls f(first, offsets) for each row in row-major order: `first` counts elements of the space, `offsets` those of
  /// the operands.
  template <typename F> void forEachRow(F &&f) const {
    if (empty)
      return;
    size_t outer = dims.size() - 1;
    Strides index(outer, 0);
    std::array<int64_t, N> offsets{};
    for (int64_t first = 0;; first += dims.back()) {
      f(first, offsets);
      size_t axis = outer;
      for (; axis > 0; --axis) {
        size_t a = axis - 1;
        for (size_t n = 0; n < N; ++n)
          offsets[n] += strides[n][a];
        if (++index[a] < dims[a])
          break;
        for (size_t n = 0; n < N; ++n)
          offsets[n] -= strides[n][a] * dims[a];
        index[a] = 0;
      }
      if (axis == 0)
        return;
    }
  }

  /// Calls f(offsets) for each element.
  template <typename F> void forEach(F &&f) const {
    forEachRow([&](int64_t, std::array<int64_t, N> at) {
      for (int64_t i = 0; i < rowLength(); ++i) {
        f(at);
        for (size_t n = 0; n < N; ++n)
          at[n] += rowStride(n);
      }
    });
  }

private:
  bool mergesWithLast(const std::array<Strides, N> &operandStrides, size_t axis, int64_t dim) const {
    for (size_t n = 0; n < N; ++n)
      if (strides[n].back() != operandStrides[n][axis] * dim)
        return false;
    return true;
  }

  llvm::SmallVector<int64_t, 6> dims;
  std::array<Strides, N> strides;
  bool empty = false;
};

} // namespace dmxc::reference
