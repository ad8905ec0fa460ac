//===- Border.cpp - tensors of the caller that tasks do not take as they lie --===//
//
// Tasks take dense tensors, and caches that lie in a dense tensor with room for more rows. What the caller binds with
// other strides is in memory of the session during a run; the rows of a cache whose input and output are two tensors
// are put where the output is.
//
//===----------------------------------------------------------------------===//

#include "Frame.h"
#include "runtime/bundle/DType.h"

namespace dmxrt {

/// As many rows as the tensors have room for that the caller gives for outputs with this dim, where they agree.
Result<int64_t> Frame::roomDim(const Dim &dim) const {
  auto least = graph.exprs.evaluate(dim.expr, dims);
  if (!least)
    return within(cat("dim '", dim.name, "'"), least.takeError());
  int64_t room = kAnyRoom;
  for (uint32_t index : graph.outputBuffers) {
    const Buffer &buffer = graph.buffers[index];
    if (buffer.room != static_cast<uint32_t>(&dim - graph.dims.data()))
      continue;
    const Binding &binding = bindings[DMX_OUTPUT][buffer.index];
    if (!binding.bound || binding.dims[buffer.axis] != *least)
      return *least;
    std::optional<int64_t> own = roomAlong(buffer.axis, binding.dims, binding.strides);
    if (!own || (room != kAnyRoom && *own != kAnyRoom && *own != room))
      return *least;
    room = std::max(room, *own);
  }
  return std::max(room, *least);
}

/// Whether tasks write a bound output where the caller has it.
bool Frame::liesAsWritten(uint32_t output) const {
  const Binding &binding = bindings[DMX_OUTPUT][output];
  return sameSteps(binding.dims, binding.strides, outputs[output].strides);
}

bool Frame::isInPlace(uint32_t output) const {
  const Buffer &buffer = graph.buffers[graph.outputBuffers[output]];
  if (buffer.past == kNone)
    return false;
  const Binding &from = bindings[DMX_INPUT][buffer.past], &to = bindings[DMX_OUTPUT][output];
  return to.bound && from.data == to.data && sameSteps(from.dims, from.strides, to.strides);
}

/// Of inputs that tasks read: those that are not dense have a copy, written at each run.
Status Frame::placeInputs() {
  for (uint32_t i = 0; i < graph.inputBuffers.size(); ++i) {
    Binding &binding = bindings[DMX_INPUT][i];
    binding.at = binding.data;
    if (!isRead[i] || !binding.isStrided)
      continue;
    denseStrides(binding.dims, shapeRoom);
    if (sameSteps(binding.dims, binding.strides, shapeRoom))
      continue;
    int64_t bytes = dmx_tensor_bytes(graph.buffers[graph.inputBuffers[i]].dtype,
                                     static_cast<uint32_t>(binding.dims.size()), binding.dims.data());
    if (Status status = grow(binding.own, static_cast<uint64_t>(bytes)); !status)
      return within(tensorName(DMX_INPUT, i), status.takeError());
    binding.at = static_cast<std::byte *>(binding.own.data);
  }
  return {};
}

/// An output's strides as tasks write it, and that the input with its first rows fits.
Status Frame::layOutOutput(uint32_t output) {
  TensorPlace &place = outputs[output];
  const Buffer &buffer = graph.buffers[graph.outputBuffers[output]];
  shapeRoom = place.dims;
  if (buffer.room != kNone)
    shapeRoom[buffer.axis] = dims[buffer.room];
  denseStrides(shapeRoom, place.strides);
  if (buffer.past == kNone)
    return {};
  const std::vector<int64_t> &past = bindings[DMX_INPUT][buffer.past].dims;
  bool fits = past.size() == place.dims.size() && past[buffer.axis] <= place.dims[buffer.axis];
  for (size_t axis = 0; fits && axis < past.size(); ++axis)
    fits = axis == buffer.axis || past[axis] == place.dims[axis];
  return fits ? Status()
              : badBundle(tensorName(DMX_OUTPUT, output), " does not begin with the rows of ",
                          tensorName(DMX_INPUT, buffer.past));
}

void Frame::gather() {
  copiedBytes = 0;
  auto copy = [&](dmx_dtype dtype, std::span<const int64_t> extents, const std::byte *from,
                  std::span<const int64_t> fromStrides, std::byte *to, std::span<const int64_t> toStrides) {
    copyStrided(dmx_dtype_bits(dtype) / 8, extents, from, fromStrides, to, toStrides);
    copiedBytes +=
        static_cast<uint64_t>(dmx_tensor_bytes(dtype, static_cast<uint32_t>(extents.size()), extents.data()));
  };
  for (uint32_t i = 0; i < bindings[DMX_INPUT].size(); ++i)
    if (const Binding &binding = bindings[DMX_INPUT][i]; binding.at != binding.data) {
      denseStrides(binding.dims, shapeRoom);
      copy(graph.buffers[graph.inputBuffers[i]].dtype, binding.dims, binding.data, binding.strides, binding.at,
           shapeRoom);
    }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Buffer &buffer = graph.buffers[graph.outputBuffers[i]];
    if (buffer.past == kNone || (isInPlace(i) && outputs[i].data == bindings[DMX_OUTPUT][i].data))
      continue;
    const Binding &past = bindings[DMX_INPUT][buffer.past];
    copy(buffer.dtype, past.dims, past.data, past.strides, outputs[i].data, outputs[i].strides);
  }
}

void Frame::scatter() {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Binding &binding = bindings[DMX_OUTPUT][i];
    const TensorPlace &place = outputs[i];
    if (!binding.bound || place.data == binding.data)
      continue;
    copyStrided(dmx_dtype_bits(graph.buffers[graph.outputBuffers[i]].dtype) / 8, place.dims, place.data, place.strides,
                binding.data, binding.strides);
    copiedBytes += place.bytes;
  }
}

} // namespace dmxrt
