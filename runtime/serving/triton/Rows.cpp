//===- Rows.cpp - what requests bring, as the runtime takes it ------------===//
#include "Rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dmxrt::triton {

void Buffer::Free::operator()(std::byte *memory) const { std::free(memory); }

std::byte *Buffer::reserve(size_t bytes) {
  constexpr size_t alignment = 64;
  if (bytes > size || !memory) {
    const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    memory.reset(static_cast<std::byte *>(std::aligned_alloc(alignment, rounded)));
    size = memory ? rounded : 0;
    if (!memory)
      throw std::bad_alloc();
  }
  return memory.get();
}

bool isAligned(const void *data, dmx_dtype type) {
  return reinterpret_cast<uintptr_t>(data) % std::max(1U, dmx_dtype_bits(type) / 8) == 0;
}

bool Given::isWhole(dmx_dtype type) const { return pieces.size() == 1 && isAligned(pieces[0].data(), type); }

void Given::copyTo(std::byte *to) const {
  for (std::span<const std::byte> piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

Given readInput(TRITONBACKEND_Request *request, const Tensor &tensor) {
  TRITONBACKEND_Input *input = nullptr;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  const int64_t *shape = nullptr;
  const char *name = nullptr;
  uint32_t rank = 0, pieces = 0;
  uint64_t bytes = 0;
  check(TRITONBACKEND_RequestInput(request, tensor.name.c_str(), &input));
  check(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &pieces));
  if (type != serverType(tensor))
    refuse("the input '" + tensor.name + "' is " + TRITONSERVER_DataTypeString(type) + ", the model takes " +
           tensor.describe());
  Given given;
  given.dims.assign(shape, shape + rank);
  given.bytes = bytes;
  if (tensor.rank() == 0 && given.dims == std::vector<int64_t>{1}) // the server knows no scalars
    given.dims.clear();
  if (given.dims.size() != tensor.rank())
    refuse("the input '" + tensor.name + "' has " + std::to_string(rank) + " dims, the model takes " +
           tensor.describe());
  const int64_t wanted = dmx_tensor_bytes(tensor.type, rank, shape);
  uint64_t come = 0;
  for (uint32_t i = 0; i < pieces; ++i) {
    const void *data = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    check(TRITONBACKEND_InputBuffer(input, i, &data, &size, &kind, &id));
    if (kind == TRITONSERVER_MEMORY_GPU)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                    "the input '" + tensor.name + "' lies in a GPU's memory; send it from the host's");
    if (size)
      given.pieces.push_back({static_cast<const std::byte *>(data), size});
    come += size;
  }
  if (wanted < 0 || come != static_cast<uint64_t>(wanted))
    refuse("the input '" + tensor.name + "' has " + std::to_string(come) + " bytes, its shape needs " +
           std::to_string(wanted));
  return given;
}

} // namespace dmxrt::triton
