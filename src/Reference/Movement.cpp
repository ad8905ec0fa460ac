//===- Movement.cpp - ops that rearrange elements without indices ---------===//
#include "Evaluator.h"
#include "Strided.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <algorithm>
#include <optional>

namespace dmxc::reference {

namespace {

/// Views: the same bytes under the result's shape.
Outputs evaluateView(const Call &call) { return one(call.in[0].reshaped(call.shape())); }

/// The axis along which a strided read is contiguous, if it is not the last one: the read is a transposition.
std::optional<size_t> transposedAxis(const Shape &space, const Strides &strides) {
  if (space.size() < 2 || space.back() == 1 || strides.back() <= 1)
    return std::nullopt;
  for (size_t axis = 0; axis + 1 < space.size(); ++axis)
    if (strides[axis] == 1 && space[axis] > 1)
      return axis;
  return std::nullopt;
}

/// Copies planes of (axis, last axis) in square tiles, so that each cache line of both sides is used whole.
template <typename T>
void copyTransposed(T *out, const T *in, const Shape &space, const Strides &strides, size_t axis) {
  constexpr int64_t tile = 32;
  Strides outStrides = stridesOf(space);
  int64_t rows = space[axis], columns = space.back(), outRow = outStrides[axis], inColumn = strides.back();
  Shape planes = space;
  planes[axis] = planes.back() = 1;
  StridedLoop<2>(planes, {strides, outStrides}).forEach([&](const std::array<int64_t, 2> &at) {
    for (int64_t r0 = 0; r0 < rows; r0 += tile)
      for (int64_t c0 = 0; c0 < columns; c0 += tile)
        for (int64_t r = r0, rEnd = std::min(r0 + tile, rows); r < rEnd; ++r)
          for (int64_t c = c0, cEnd = std::min(c0 + tile, columns); c < cEnd; ++c)
            out[at[1] + r * outRow + c] = in[at[0] + c * inColumn + r];
  });
}

template <typename T> void copyRows(T *out, const T *in, const Shape &space, const Strides &strides) {
  StridedLoop<1> loop(space, {strides});
  int64_t stride = loop.rowStride(0), length = loop.rowLength();
  loop.forEachRow([&](int64_t first, const std::array<int64_t, 1> &at) {
    const T *row = in + at[0];
    if (stride == 1)
      std::copy_n(row, length, out + first);
    else if (stride == 0)
      std::fill_n(out + first, length, *row);
    else
      for (int64_t i = 0; i < length; ++i)
        out[first + i] = row[i * stride];
  });
}

/// result[i..] = in[base + sum i_a * strides_a].
Outputs copyStrided(const Call &call, int64_t base, const Strides &strides) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  if (result.numElements() == 0)
    return one(std::move(result));
  withBits(result.dtype(), [&]<typename T>(T) {
    const T *in = call.in[0].as<T>() + base;
    if (std::optional<size_t> axis = transposedAxis(space, strides))
      copyTransposed(result.as<T>(), in, space, strides, *axis);
    else
      copyRows(result.as<T>(), in, space, strides);
  });
  return one(std::move(result));
}

Outputs evaluateBroadcast(const Call &call) {
  Shape space = call.shape();
  if (call.in[0].numElements() == elementCount(space))
    return evaluateView(call);
  return copyStrided(call, 0, broadcastStrides(call.in[0].shape(), space));
}

Outputs evaluateTranspose(const Call &call) {
  Strides own = stridesOf(call.in[0].shape()), strides;
  for (int64_t axis : llvm::cast<dmir::TransposeOp>(call.op).getPermutation())
    strides.push_back(own[axis]);
  return copyStrided(call, 0, strides);
}

Outputs evaluateSlice(const Call &call) {
  auto op = llvm::cast<dmir::SliceOp>(call.op);
  Strides own = stridesOf(call.in[0].shape()), strides;
  int64_t base = 0;
  for (size_t axis = 0; axis < own.size(); ++axis) {
    base += op.getStarts()[axis] * own[axis];
    strides.push_back(op.getSteps()[axis] * own[axis]);
  }
  return copyStrided(call, base, strides);
}

/// The operand's index that position `i` of a padded axis shows, -1 for the fill value.
int64_t paddedSource(dmir::PadMode mode, int64_t i, int64_t low, int64_t interior, int64_t dim) {
  int64_t at = i - low;
  switch (mode) {
  case dmir::PadMode::constant: {
    int64_t step = interior + 1;
    return at >= 0 && at % step == 0 && at / step < dim ? at / step : -1;
  }
  case dmir::PadMode::edge:
    return std::clamp<int64_t>(at, 0, dim - 1);
  case dmir::PadMode::reflect:
    at = at < 0 ? -at : at;
    return at >= dim ? 2 * (dim - 1) - at : at;
  case dmir::PadMode::wrap:
    return ((at % dim) + dim) % dim;
  }
  llvm_unreachable("not a pad mode");
}

/// For each axis, the operand offset of every result position, -1 where the fill value is.
std::vector<std::vector<int64_t>> padTables(const Call &call, const Shape &space) {
  auto op = llvm::cast<dmir::PadOp>(call.op);
  const Shape &shape = call.in[0].shape();
  Strides own = stridesOf(shape);
  std::vector<std::vector<int64_t>> tables(space.size());
  for (size_t axis = 0; axis < space.size(); ++axis)
    for (int64_t i = 0; i < space[axis]; ++i) {
      int64_t at = paddedSource(op.getMode(), i, op.getLow()[axis], op.getInterior()[axis], shape[axis]);
      tables[axis].push_back(at < 0 ? -1 : at * own[axis]);
    }
  return tables;
}

Outputs evaluatePad(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  if (space.empty())
    return one(call.in[0]);
  if (result.numElements() == 0)
    return one(std::move(result));
  std::vector<std::vector<int64_t>> tables = padTables(call, space);
  const std::vector<int64_t> &columns = tables.back();
  withBits(result.dtype(), [&]<typename T>(T) {
    const T *in = call.in[0].as<T>();
    T fill = *call.in[1].as<T>(), *out = result.as<T>();
    std::vector<int64_t> index(space.size(), 0);
    for (int64_t row = 0, rows = result.numElements() / space.back(); row < rows; ++row) {
      int64_t base = 0;
      bool outside = false;
      for (size_t axis = 0; axis + 1 < space.size(); ++axis) {
        outside |= tables[axis][index[axis]] < 0;
        base += tables[axis][index[axis]];
      }
      for (int64_t column : columns)
        *out++ = outside || column < 0 ? fill : in[base + column];
      for (size_t axis = space.size() - 1; axis-- > 0;) {
        if (++index[axis] < space[axis])
          break;
        index[axis] = 0;
      }
    }
  });
  return one(std::move(result));
}

Outputs evaluateConcat(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  size_t axis = llvm::cast<dmir::ConcatOp>(call.op).getAxis();
  int64_t outer = elementCount(std::span(space).first(axis));
  int64_t inner = elementCount(std::span(space).subspan(axis + 1));
  withBits(result.dtype(), [&]<typename T>(T) {
    T *out = result.as<T>();
    for (int64_t i = 0; i < outer; ++i)
      for (const Tensor &part : call.in) {
        int64_t length = part.shape()[axis] * inner;
        out = std::copy_n(part.as<T>() + i * length, length, out);
      }
  });
  return one(std::move(result));
}

Outputs evaluateIota(const Call &call) {
  Tensor result = call.makeResult();
  const Shape &space = result.shape();
  size_t axis = llvm::cast<dmir::IotaOp>(call.op).getAxis();
  int64_t outer = elementCount(std::span(space).first(axis));
  int64_t inner = elementCount(std::span(space).subspan(axis + 1));
  withNumber(result.dtype(), [&]<typename T>(T) {
    T *out = result.as<T>();
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t index = 0; index < space[axis]; ++index, out += inner)
        std::fill_n(out, inner, static_cast<T>(index));
  });
  return one(std::move(result));
}

/// Only sizes that are numbers: tensors here are static.
Outputs evaluateDimTensor(const Call &call) {
  auto op = llvm::cast<dmir::DimTensorOp>(call.op);
  if (op.getDims())
    return call.error("the sizes are known at run time only");
  Tensor result = call.makeResult();
  llvm::copy(op.getValues(), result.as<int64_t>());
  return one(std::move(result));
}

} // namespace

void addMovement(Table &table) {
  table["dmir.reshape"] = {evaluateView, Mode::Raw};
  table["dmir.relayout"] = {evaluateView, Mode::Raw};
  table["dmir.broadcast"] = {evaluateBroadcast, Mode::Movement};
  table["dmir.transpose"] = {evaluateTranspose, Mode::Movement};
  table["dmir.slice"] = {evaluateSlice, Mode::Movement};
  table["dmir.pad"] = {evaluatePad, Mode::Movement};
  table["dmir.concat"] = {evaluateConcat, Mode::Movement};
  table["dmir.dim_tensor"] = {evaluateDimTensor, Mode::Movement};
  table["dmir.iota"] = {evaluateIota, Mode::Arithmetic};
}

} // namespace dmxc::reference
