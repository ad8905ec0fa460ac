//===- Region.h - strided ranges as contiguous runs -------------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace dmxrt::corsair {

/// Addresses beyond this are refused before any arithmetic on them.
inline bool isFar(int64_t value) { return value > int64_t(1) << 60 || value < -(int64_t(1) << 60); }

/// Units of `unit` bytes at base + sum of index * step: up to 5 dimensions.
struct Region {
  static constexpr int kDims = 5;
  int64_t base = 0, unit = 1;
  int64_t n[kDims] = {1, 1, 1, 1, 1}, step[kDims] = {};
};

/// Visits the bytes of a region as runs (address, size), each byte's run once where the
/// steps allow: repeated places (step 0) are visited once, neighbours joined. Stops at false.
template <typename Visit> bool forEachRun(Region region, Visit visit) {
  int64_t n[Region::kDims], step[Region::kDims];
  int dims = 0;
  for (int i = 0; i < Region::kDims; ++i) {
    if (region.n[i] <= 0)
      return true;
    if (region.n[i] == 1 || region.step[i] == 0)
      continue;
    n[dims] = region.n[i];
    step[dims] = region.step[i];
    if (step[dims] < 0) {
      region.base += (n[dims] - 1) * step[dims];
      step[dims] = -step[dims];
    }
    ++dims;
  }
  for (int i = 1; i < dims; ++i) // by step, the smallest first
    for (int k = i; k > 0 && step[k] < step[k - 1]; --k) {
      std::swap(step[k], step[k - 1]);
      std::swap(n[k], n[k - 1]);
    }
  int first = 0;
  while (first < dims && step[first] == region.unit)
    region.unit *= n[first++];
  int64_t index[Region::kDims] = {};
  for (int64_t address = region.base;;) {
    if (!visit(address, region.unit))
      return false;
    int dim = first;
    while (dim < dims && ++index[dim] == n[dim]) {
      address -= (n[dim] - 1) * step[dim];
      index[dim++] = 0;
    }
    if (dim == dims)
      return true;
    address += step[dim];
  }
}

/// What a port spends on a region: runs below 64 bytes take a beat each.
inline uint64_t portBytes(const Region &region) {
  uint64_t bytes = 0;
  forEachRun(region, [&](int64_t, int64_t size) {
    bytes += static_cast<uint64_t>(std::max<int64_t>(size, 64));
    return true;
  });
  return bytes;
}

} // namespace dmxrt::corsair
