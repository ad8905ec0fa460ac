//===- ElementAt.h - elements of tensors at any byte ------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dmxc {

/// Element `index` of a dense tensor that may begin at any byte, as weights in a model's file do.
template <typename T> T elementAt(const std::byte *tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

} // namespace dmxc
