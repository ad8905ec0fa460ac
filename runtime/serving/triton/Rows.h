//===- Rows.h - what requests bring, as the runtime takes it ----*- C++ -*-===//
#pragma once

#include "Model.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dmxrt::triton {

/// Memory that grows and is aligned as the runtime likes it.
class Buffer {
public:
  std::byte *reserve(size_t bytes);

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  std::unique_ptr<std::byte, Free> memory;
  size_t size = 0;
};

/// One input of one request, in the pieces in which the server has it.
struct Given {
  std::vector<int64_t> dims;
  std::vector<std::span<const std::byte>> pieces;
  size_t bytes = 0;

  /// In one piece that lies as elements of the type must; what follows the JSON of an HTTP body may lie anywhere.
  bool isWhole(dmx_dtype type) const;
  void copyTo(std::byte *to) const;
};

/// An input of a request. Fails where type, rank or size are not those of the bundle's tensor.
Given readInput(TRITONBACKEND_Request *request, const Tensor &tensor);

/// Whether `data` lies as elements of the type must.
bool isAligned(const void *data, dmx_dtype type);

} // namespace dmxrt::triton
