//===- Strides.h - tensors of which not all elements are neighbours -*- C++ -*-===//
#pragma once

#include "runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dmxrt {

/// Of a dense, row-major tensor; strides are in elements, here and below.
void denseStrides(std::span<const int64_t> dims, std::vector<int64_t> &strides);

/// Whether two tensors of one shape have each element at the same distance from the first.
bool sameSteps(std::span<const int64_t> dims, std::span<const int64_t> a, std::span<const int64_t> b);

/// From the first element to behind the last one; an error where a stride is negative, elements overlap or the number
/// has more than 63 bits.
Result<int64_t> reachOf(std::span<const int64_t> dims, std::span<const int64_t> strides);

inline constexpr int64_t kAnyRoom = -1; ///< nothing lies behind the rows, so that there may be room for any number

/// For how many rows along an axis a dense tensor has room that has the elements of this one, and kAnyRoom; nothing
/// where there is no such tensor.
std::optional<int64_t> roomAlong(size_t axis, std::span<const int64_t> dims, std::span<const int64_t> strides);

/// Copies a tensor of elements of so many bytes between places that do not overlap.
void copyStrided(uint64_t elementBytes, std::span<const int64_t> dims, const std::byte *from,
                 std::span<const int64_t> fromStrides, std::byte *to, std::span<const int64_t> toStrides);

} // namespace dmxrt
