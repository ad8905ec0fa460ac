//===- Strides.cpp - tensors of which not all elements are neighbours ------===//

#include "Strides.h"

#include "dmx/dmx.h"

#include <algorithm>
#include <cstring>

namespace dmxrt {

void denseStrides(std::span<const int64_t> dims, std::vector<int64_t> &strides) {
  strides.resize(dims.size());
  int64_t within = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = within;
    within *= std::max<int64_t>(dims[axis], 1);
  }
}

bool sameSteps(std::span<const int64_t> dims, std::span<const int64_t> a, std::span<const int64_t> b) {
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] > 1 && a[axis] != b[axis])
      return false;
  return true;
}

/// Axes with steps, the least step first: each must step over what those before it reach.
Result<int64_t> reachOf(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0)
      return int64_t(0);
    if (strides[axis] < 0)
      return fail(DMX_STATUS_INVALID_ARGUMENT, "the stride of axis ", axis, " is ", strides[axis],
                  ", and strides are not negative; copy the tensor");
    if (dims[axis] > 1)
      axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t reach = 1;
  for (size_t axis : axes) {
    if (strides[axis] < reach)
      return fail(DMX_STATUS_INVALID_ARGUMENT, "the stride of axis ", axis, " is ", strides[axis],
                  " elements, less than the ", reach,
                  " from the first to the last one that it steps over, so that elements overlap; give each its room");
    int64_t steps = 0;
    if (__builtin_mul_overflow(strides[axis], dims[axis] - 1, &steps) || __builtin_add_overflow(reach, steps, &reach))
      return fail(DMX_STATUS_INVALID_ARGUMENT, "its strides reach over more than 63 bits");
  }
  return reach;
}

std::optional<int64_t> roomAlong(size_t axis, std::span<const int64_t> dims, std::span<const int64_t> strides) {
  int64_t within = 1, room = kAnyRoom;
  for (size_t k = dims.size(); k-- > 0;) {
    if (dims[k] == 0)
      return kAnyRoom;
    if (dims[k] > 1 && k >= axis && strides[k] != within)
      return std::nullopt;
    if (dims[k] > 1 && k < axis) {
      int64_t rows = strides[k] / within;
      if (strides[k] % within || rows < dims[axis] || (room != kAnyRoom && rows != room))
        return std::nullopt;
      room = rows;
    }
    if (k != axis)
      within *= dims[k];
  }
  return room;
}

void copyStrided(uint64_t elementBytes, std::span<const int64_t> dims, const std::byte *from,
                 std::span<const int64_t> fromStrides, std::byte *to, std::span<const int64_t> toStrides) {
  // The last axes that both have dense are one run of bytes.
  uint64_t run = elementBytes;
  size_t rank = dims.size();
  for (int64_t within = 1;
       rank && (dims[rank - 1] == 1 || (fromStrides[rank - 1] == within && toStrides[rank - 1] == within)); --rank) {
    within *= dims[rank - 1];
    run *= static_cast<uint64_t>(dims[rank - 1]);
  }
  if (run == 0 || std::find(dims.begin(), dims.end(), 0) != dims.end())
    return;
  int64_t index[DMX_MAX_RANK] = {};
  for (;;) {
    std::memcpy(to, from, run);
    size_t axis = rank;
    for (; axis > 0; --axis) {
      int64_t step = ++index[axis - 1] < dims[axis - 1] ? 1 : 1 - dims[axis - 1];
      from += step * fromStrides[axis - 1] * static_cast<int64_t>(elementBytes);
      to += step * toStrides[axis - 1] * static_cast<int64_t>(elementBytes);
      if (step == 1)
        break;
      index[axis - 1] = 0;
    }
    if (axis == 0)
      return;
  }
}

} // namespace dmxrt
