//===- WeightBytes.h - elements of weights as they lie ----------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dmxc::cpu {

/// Element `index` of weights in a model's file, which puts them at any byte.
template <typename T> T elementAt(const std::byte *weights, int64_t index) {
  T value;
  std::memcpy(&value, weights + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

} // namespace dmxc::cpu
