//===- Independence.cpp - whether a model's rows are its clients' ---------===//
#include "Model.h"
#include "Rows.h"

#include <cmath>
#include <cstring>

namespace dmxrt::triton {
namespace {

/// Extents that open axes behind the first are tried with.
constexpr int64_t kOpen = 4;

/// The same numbers in each trial, from -2 to 2 (Knuth's linear congruential generator of 64 bits).
class Numbers {
public:
  float next() {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(state >> 40) / static_cast<float>(1 << 22) - 2;
  }

private:
  uint64_t state = 1;
};

/// Bytes that make sense as numbers of a type: small floats, 0 and 1 of others.
void fill(std::byte *to, dmx_dtype type, int64_t count, Numbers &numbers) {
  const size_t width = dmx_dtype_bits(type) / 8;
  std::memset(to, 0, static_cast<size_t>(count) * width);
  for (int64_t i = 0; i < count; ++i) {
    std::byte *at = to + static_cast<size_t>(i) * width;
    const float value = numbers.next();
    const double wide = value;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const auto brief = static_cast<uint16_t>(bits >> 16);
    if (type == DMX_DTYPE_F32)
      std::memcpy(at, &value, sizeof value);
    else if (type == DMX_DTYPE_F64)
      std::memcpy(at, &wide, sizeof wide);
    else if (type == DMX_DTYPE_BF16)
      std::memcpy(at, &brief, sizeof brief);
    else if (type == DMX_DTYPE_F16)
      at[1] = std::byte(0x3c | (value < 0 ? 0x80 : 0)), at[0] = std::byte(bits & 0xff); // 1 to 1.25, of either sign
    else
      at[0] = std::byte(value > 0);
  }
}

/// An element as a number.
double numberAt(const std::byte *from, dmx_dtype type) {
  uint32_t bits = 0;
  float value = 0;
  double wide = 0;
  switch (type) {
  case DMX_DTYPE_F32:
    std::memcpy(&value, from, sizeof value);
    return value;
  case DMX_DTYPE_F64:
    std::memcpy(&wide, from, sizeof wide);
    return wide;
  case DMX_DTYPE_BF16:
    std::memcpy(reinterpret_cast<std::byte *>(&bits) + 2, from, 2);
    std::memcpy(&value, &bits, sizeof value);
    return value;
  default: // equal bytes are equal numbers
    std::memcpy(&bits, from, std::min<size_t>(sizeof bits, dmx_dtype_bits(type) / 8));
    return bits;
  }
}

/// What a run of some rows gives: all outputs' numbers, row by row.
using Results = std::vector<std::vector<double>>;

Results runOf(const Model &model, dmx_session *session, const std::vector<std::vector<std::byte>> &inputs,
              int64_t rows) {
  dmx_error error = DMX_ERROR_INIT;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor &tensor = model.inputs()[i];
    std::vector<int64_t> dims{rows};
    for (size_t axis = 1; axis < tensor.dims.size(); ++axis)
      dims.push_back(std::min(std::max(tensor.dims[axis].min, kOpen), tensor.dims[axis].max));
    dmx_tensor_view view = {tensor.type, tensor.rank(), dims.data(), const_cast<std::byte *>(inputs[i].data())};
    check(dmx_session_bind(session, DMX_INPUT, static_cast<uint32_t>(i), &view, &error), error);
  }
  check(dmx_session_run(session, &error), error);
  Results results(static_cast<size_t>(rows));
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    dmx_tensor_view view = {};
    check(dmx_session_output(session, static_cast<uint32_t>(i), &view, &error), error);
    if (view.rank == 0 || view.dims[0] != rows)
      refuse("an output has another number of rows");
    const int64_t bytes = dmx_tensor_bytes(view.dtype, view.rank, view.dims), width = dmx_dtype_bits(view.dtype) / 8;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t at = bytes / rows * row; at < bytes / rows * (row + 1); at += width)
        results[static_cast<size_t>(row)].push_back(
            numberAt(static_cast<const std::byte *>(view.data) + at, view.dtype));
  }
  return results;
}

bool areClose(const std::vector<double> &one, const std::vector<double> &other) {
  double largest = 0;
  for (double value : one)
    largest = std::max(largest, std::isfinite(value) ? std::fabs(value) : 0);
  bool close = one.size() == other.size();
  for (size_t i = 0; close && i < one.size(); ++i)
    close = one[i] == other[i] || (std::isnan(one[i]) && std::isnan(other[i])) ||
            std::fabs(one[i] - other[i]) <= 1e-3 * largest;
  return close;
}

} // namespace

bool rowsAreIndependent(const Model &model, dmx_session *session) {
  try {
    Numbers numbers;
    std::vector<std::vector<std::byte>> first, second, both;
    for (const Tensor &tensor : model.inputs()) {
      int64_t count = 1;
      for (size_t axis = 1; axis < tensor.dims.size(); ++axis)
        count *= std::min(std::max(tensor.dims[axis].min, kOpen), tensor.dims[axis].max);
      const size_t bytes = static_cast<size_t>(count) * dmx_dtype_bits(tensor.type) / 8;
      for (std::vector<std::vector<std::byte>> *rows : {&first, &second}) {
        rows->emplace_back(bytes);
        fill(rows->back().data(), tensor.type, count, numbers);
      }
      both.push_back(first.back());
      both.back().insert(both.back().end(), second.back().begin(), second.back().end());
    }
    const Results one = runOf(model, session, first, 1), two = runOf(model, session, second, 1),
                  joined = runOf(model, session, both, 2);
    const bool independent = areClose(joined[0], one[0]) && areClose(joined[1], two[0]);
    if (!independent)
      log(TRITONSERVER_LOG_WARN,
          "dmx backend: rows of a run depend on each other, so requests are not joined; the parameter "
          "'batching' decides otherwise");
    return independent;
  } catch (const Failure &failure) {
    log(TRITONSERVER_LOG_WARN,
        std::string("dmx backend: requests are not joined, for a trial run says: ") + failure.what());
    return false;
  }
}

} // namespace dmxrt::triton
