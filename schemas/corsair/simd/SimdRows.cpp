//===- SimdRows.cpp - softmax, norms, reductions, RoPE --------------------===//
//
// Row functions in f32; sums go over 64 lanes and then a tree, ISA.md section 7.
//
//===----------------------------------------------------------------------===//

#include "SimdJob.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace dmx::corsair {
namespace {

using F = SimdFunction;
constexpr int kLanes = 64;

/// Lane l combines elements l, l + 64, ...; then lanes combine with the one
/// half of them further, down to one.
template <typename Combine> float laneReduce(const std::vector<float> &row, float neutral, Combine combine) {
  float lanes[kLanes];
  std::fill(std::begin(lanes), std::end(lanes), neutral);
  for (size_t i = 0; i < row.size(); ++i)
    lanes[i % kLanes] = i < kLanes ? row[i] : combine(lanes[i % kLanes], row[i]);
  for (int half = kLanes / 2; half; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = combine(lanes[i], lanes[i + half]);
  return lanes[0];
}

float laneSum(const std::vector<float> &row) { return laneReduce(row, 0, f32Add); }

float larger(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::max(a, b);
}
float smaller(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::min(a, b);
}

/// One row: where its elements lie.
class Row {
public:
  Row(const SimdJob &job, const int64_t (&outer)[4]) : job(job) {
    std::copy(std::begin(outer), std::end(outer), index);
  }

  /// Visits the elements in order: visit(number, index of the space).
  template <typename Visit> void each(Visit visit) { eachOf(job.rowLength(), visit); }
  template <typename Visit> void eachOf(int64_t length, Visit visit) {
    int64_t first = 4 - job.inner, i[4];
    std::copy(std::begin(index), std::end(index), i);
    for (int64_t number = 0; number < length; ++number) {
      visit(number, i);
      for (int64_t dim = 3; dim >= first; --dim) {
        if (++i[dim] < job.n[dim])
          break;
        i[dim] = 0;
      }
    }
  }
  /// The first `length` elements; the others are 0.
  std::vector<float> read(const SimdOperand &operand, int64_t length) {
    std::vector<float> values(static_cast<size_t>(job.rowLength()));
    eachOf(length, [&](int64_t number, const int64_t (&i)[4]) {
      values[static_cast<size_t>(number)] = readFloat(operand.at(i), operand.kind);
    });
    return values;
  }
  std::vector<float> read(const SimdOperand &operand) { return read(operand, job.rowLength()); }
  void write(const std::vector<float> &values) {
    each([&](int64_t number, const int64_t (&i)[4]) {
      writeFloat(job.d.at(i), job.d.kind, values[static_cast<size_t>(number)]);
    });
  }
  std::byte *result() const { return job.d.at(index); }

  const SimdJob &job;
  int64_t index[4];
};

void softmax(Row &row) {
  const SimdJob &job = row.job;
  const int64_t columns = validColumns(job, row.index);
  std::vector<float> values = row.read(job.a, columns), weights(values.size());
  auto valid = static_cast<size_t>(columns);
  float lowest = job.a.kind == ElemKind::F16 ? -65504.0f : -3e38f, peak = -std::numeric_limits<float>::infinity();
  std::vector<bool> counts(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    counts[i] = i < valid && !(values[i] <= lowest); // NaN counts: it spreads
    if (counts[i])
      peak = larger(peak, values[i]);
  }
  for (size_t i = 0; i < values.size(); ++i)
    weights[i] = counts[i] ? f32Function(Function::Exp, f32Sub(values[i], peak)) : 0;
  float sum = laneSum(weights);
  bool empty = std::none_of(counts.begin(), counts.end(), [](bool count) { return count; });
  float logSum = empty ? 0 : f32Function(Function::Log, sum);
  for (size_t i = 0; i < values.size(); ++i) {
    if (job.function == F::Softmax)
      weights[i] = counts[i] ? f32Div(weights[i], sum) : 0;
    else
      weights[i] = counts[i] ? f32Sub(f32Sub(values[i], peak), logSum) : -std::numeric_limits<float>::infinity();
  }
  row.write(weights);
}

void normalize(Row &row) {
  const SimdJob &job = row.job;
  std::vector<float> values = row.read(job.a), squares(values.size());
  auto count = static_cast<float>(values.size());
  if (job.function == F::LayerNorm) {
    float mean = f32Div(laneSum(values), count);
    for (float &value : values)
      value = f32Sub(value, mean);
  }
  for (size_t i = 0; i < values.size(); ++i)
    squares[i] = f32Mul(values[i], values[i]);
  float variance = f32Div(laneSum(squares), count);
  float scale = f32Function(Function::Rsqrt, f32Add(variance, job.imm0));
  std::vector<float> gain = job.hasB ? row.read(job.b) : std::vector<float>();
  std::vector<float> bias = job.hasC && job.function == F::LayerNorm ? row.read(job.c) : std::vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    float value = f32Mul(values[i], scale);
    if (!gain.empty())
      value = f32Mul(value, gain[i]);
    values[i] = bias.empty() ? value : f32Add(value, bias[i]);
  }
  row.write(values);
}

void reduce(Row &row) {
  const SimdJob &job = row.job;
  std::vector<float> values = row.read(job.a);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float result = 0;
  switch (job.function) {
  case F::ReduceMax:
    result = laneReduce(values, -kInfinity, larger);
    break;
  case F::ReduceMin:
    result = laneReduce(values, kInfinity, smaller);
    break;
  case F::ReduceProd:
    result = laneReduce(values, 1, f32Mul);
    break;
  case F::ReduceSumSquare:
    for (float &value : values)
      value = f32Mul(value, value);
    result = laneSum(values);
    break;
  case F::ReduceMean:
    result = f32Div(laneSum(values), static_cast<float>(values.size()));
    break;
  default:
    result = laneSum(values);
  }
  writeFloat(row.result(), job.d.kind, result);
}

void argExtreme(Row &row) {
  std::vector<float> values = row.read(row.job.a);
  size_t best = 0;
  for (size_t i = 1; i < values.size() && !std::isnan(values[best]); ++i)
    if (std::isnan(values[i]) || (row.job.function == F::ArgMax ? values[i] > values[best] : values[i] < values[best]))
      best = i;
  writeInteger(row.result(), row.job.d.kind, static_cast<int64_t>(best));
}

void cumulate(Row &row) {
  std::vector<float> values = row.read(row.job.a);
  for (size_t i = 1; i < values.size(); ++i)
    values[i] = f32Add(values[i - 1], values[i]);
  row.write(values);
}

void rotate(Row &row) {
  const SimdJob &job = row.job;
  std::vector<float> x = row.read(job.a), y(x.size());
  size_t half = x.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    auto at = [&](const SimdOperand &operand) {
      int64_t index[4] = {row.index[0], row.index[1], row.index[2], static_cast<int64_t>(i)};
      return readFloat(operand.at(index), operand.kind);
    };
    float cosine = at(job.b), sine = at(job.c);
    size_t p = job.function == F::Rope ? i : 2 * i, q = job.function == F::Rope ? i + half : 2 * i + 1;
    y[p] = f32Sub(f32Mul(x[p], cosine), f32Mul(x[q], sine));
    y[q] = f32Add(f32Mul(x[q], cosine), f32Mul(x[p], sine));
  }
  row.write(y);
}

} // namespace

int64_t validColumns(const SimdJob &job, const int64_t (&index)[4]) {
  int64_t length = job.rowLength();
  if (job.causal)
    return std::clamp<int64_t>(job.index + job.place(job.causal - 1, index[job.causal - 1]), 0, length);
  return job.index ? std::clamp<int64_t>(job.index, 0, length) : length;
}

bool readsValidOnly(const SimdJob &job) {
  return (job.function == F::Softmax || job.function == F::LogSoftmax) && job.inner == 1 && (job.causal || job.index);
}

bool isRowFunction(SimdFunction function) { return function >= F::Softmax && function <= F::RopeInterleaved; }
bool isReduction(SimdFunction function) { return function >= F::ReduceSum && function <= F::ArgMin; }
bool isWindowFunction(SimdFunction function) { return function >= F::PoolMax; }

void computeRows(const SimdJob &job) {
  void (*compute)(Row &) = reduce;
  if (job.function == F::Softmax || job.function == F::LogSoftmax)
    compute = softmax;
  else if (job.function == F::LayerNorm || job.function == F::RmsNorm)
    compute = normalize;
  else if (job.function == F::ArgMax || job.function == F::ArgMin)
    compute = argExtreme;
  else if (job.function == F::CumSum)
    compute = cumulate;
  else if (job.function == F::Rope || job.function == F::RopeInterleaved)
    compute = rotate;
  int64_t n[4] = {job.n[0], job.n[1], job.n[2], job.n[3]};
  for (int64_t dim = 4 - job.inner; dim < 4; ++dim)
    n[dim] = 1;
  int64_t i[4];
  for (i[0] = 0; i[0] < n[0]; ++i[0])
    for (i[1] = 0; i[1] < n[1]; ++i[1])
      for (i[2] = 0; i[2] < n[2]; ++i[2])
        for (i[3] = 0; i[3] < n[3]; ++i[3]) {
          Row row(job, i);
          compute(row);
        }
}

} // namespace dmx::corsair
