//===- Kernels.cpp - the table of the cores' library ----------------------===//
#include "Kernels.h"

#include "RowKernels.h"

#include <algorithm>

namespace dmx::aie {
namespace {

constexpr int64_t kClocksOfSteps = 1; ///< a number, all steps together (assumed)
constexpr int64_t kMostOfADim = 4096; ///< no memory of a tile holds more

enum class Form : uint8_t {
  Zero,
  Product,
  Bias,
  Relu,
  Steps,
  Residual,
  Narrow,
  AddNarrow,
  Rows
}; ///< Relu: each number by itself
struct Entry {
  KernelInfo info;
  Form form;
  /// Of an element of a and b, by which results lie in matrix steps, or of what numbers are narrowed to; 0 where that
  /// is no matter.
  int64_t operandBytes;
};

const std::array<Entry, static_cast<size_t>(KernelId::Count)> &table() {
  static const std::array<Entry, static_cast<size_t>(KernelId::Count)> all = {{
      {{"zero_f32", {"c"}, {"count"}, 256}, Form::Zero, 0},
      {{"matmul_bf16_f32", {"a", "b", "c"}, {"m", "k", "n"}, 2048}, Form::Product, 2},
      {{"bias_f32", {"bias", "c"}, {"m", "n"}, 512}, Form::Bias, 2},
      {{"relu_f32", {"c"}, {"count"}, 256}, Form::Relu, 0},
      {{"zero_i32", {"c"}, {"count"}, 256}, Form::Zero, 0},
      {{"matmul_i32_i32", {"a", "b", "c"}, {"m", "k", "n"}, 2048}, Form::Product, 4},
      {{"bias_i32", {"bias", "c"}, {"m", "n"}, 512}, Form::Bias, 4},
      {{"relu_i32", {"c"}, {"count"}, 256}, Form::Relu, 0},
      {{"matmul_i8_i32", {"a", "b", "c"}, {"m", "k", "n"}, 2048}, Form::Product, 1},
      {{"matmul_ui8_i32", {"a", "b", "c"}, {"m", "k", "n"}, 2048}, Form::Product, 1},
      {{"steps_f32", {"parameters", "c"}, {"count"}, 4096}, Form::Steps, 0},
      {{"residual_f32", {"r", "c"}, {"m", "n"}, 512}, Form::Residual, 2},
      {{"bias_i8_i32", {"bias", "c"}, {"m", "n"}, 512}, Form::Bias, 1},
      {{"round_bf16_f32", {"c"}, {"count"}, 256}, Form::Relu, 0},
      {{"float_i32", {"c"}, {"count"}, 256}, Form::Relu, 0},
      {{"scale_i8_i32", {"scales", "c"}, {"m", "n"}, 512}, Form::Bias, 1},
      {{"narrow_f32_f32", {"parameters", "c", "y"}, {"count"}, 4096}, Form::Narrow, 4},
      {{"narrow_f32_bf16", {"parameters", "c", "y"}, {"count"}, 4096}, Form::Narrow, 2},
      {{"narrow_f32_i8", {"parameters", "c", "y"}, {"count"}, 4096}, Form::Narrow, 1},
      {{"add_narrow_f32_i8", {"parameters", "r", "c", "y"}, {"m", "n"}, 4096}, Form::AddNarrow, 1},
      {{"copy_f32", {"x", "c"}, {"count"}, 256}, Form::Rows, 0},
      {{"add_f32", {"x", "c"}, {"count"}, 256}, Form::Rows, 0},
      {{"subtract_f32", {"x", "c"}, {"count"}, 256}, Form::Rows, 0},
      {{"subtract_from_f32", {"x", "c"}, {"count"}, 256}, Form::Rows, 0},
      {{"multiply_f32", {"x", "c"}, {"count"}, 512}, Form::Rows, 0},
      {{"divide_f32", {"x", "c"}, {"count"}, 1024}, Form::Rows, 0},
      {{"divide_into_f32", {"x", "c"}, {"count"}, 1024}, Form::Rows, 0},
      {{"add_row_f32", {"row", "c"}, {"m", "n"}, 256}, Form::Rows, 0},
      {{"subtract_row_f32", {"row", "c"}, {"m", "n"}, 256}, Form::Rows, 0},
      {{"subtract_from_row_f32", {"row", "c"}, {"m", "n"}, 256}, Form::Rows, 0},
      {{"multiply_row_f32", {"row", "c"}, {"m", "n"}, 512}, Form::Rows, 0},
      {{"divide_row_f32", {"row", "c"}, {"m", "n"}, 1024}, Form::Rows, 0},
      {{"divide_into_row_f32", {"row", "c"}, {"m", "n"}, 1024}, Form::Rows, 0},
      {{"softmax_f32", {"parameters", "c"}, {"m", "n"}, 2048}, Form::Rows, 0},
      {{"layer_norm_f32", {"parameters", "c"}, {"m", "n"}, 1024}, Form::Rows, 0},
      {{"rms_norm_f32", {"parameters", "c"}, {"m", "n"}, 1024}, Form::Rows, 0},
  }};
  return all;
}
const Entry &entryOf(KernelId kernel) { return table()[static_cast<size_t>(kernel)]; }
const MatrixStep &stepOf(const Entry &entry) {
  return entry.operandBytes == 1 ? kStepI8 : entry.operandBytes == 2 ? kStepBf16 : kStepI32;
}

bool inRange(std::initializer_list<int64_t> dims) { return std::min(dims) > 0 && std::max(dims) <= kMostOfADim; }

std::vector<Touch> wrong(const Entry &entry, const std::string &why, std::string &error) {
  error = std::string(entry.info.name) + " " + why;
  return {};
}

std::vector<Touch> touchesOfProduct(const Entry &entry, const Call &call, std::string &error) {
  int64_t m = call.scalars[0], k = call.scalars[1], n = call.scalars[2];
  const MatrixStep &step = stepOf(entry);
  auto product = [](int64_t rows, int64_t depth, int64_t columns) {
    std::string middle = std::to_string(depth);
    return std::to_string(rows) + " x " + middle + " by " + middle + " x " + std::to_string(columns);
  };
  if (!inRange({m, k, n}) || m % step.blockM() || k % step.k || n % step.blockN())
    return wrong(entry,
                 "multiplies whole blocks of " + product(step.blockM(), step.k, step.blockN()) + ", not " +
                     product(m, k, n),
                 error);
  return {{0, entry.operandBytes * m * k, true, false},
          {1, entry.operandBytes * k * n, true, false},
          {2, 4 * m * n, true, true}};
}

} // namespace

const KernelInfo &infoOf(KernelId kernel) { return entryOf(kernel).info; }

std::optional<KernelId> kernelNamed(std::string_view name) {
  for (size_t i = 0; i < table().size(); ++i)
    if (table()[i].info.name == name)
      return static_cast<KernelId>(i);
  return std::nullopt;
}

bool takesParameters(KernelId kernel) { return infoOf(kernel).addresses.front() == "parameters"; }

std::string_view macKind(KernelId kernel) {
  const Entry &entry = entryOf(kernel);
  if (entry.form != Form::Product)
    return "";
  return entry.operandBytes == 1 ? "i8" : entry.operandBytes == 2 ? "bf16" : "i32";
}

std::vector<Touch> touches(const Call &call, std::string &error) {
  const Entry &entry = entryOf(call.kernel);
  int64_t first = call.scalars[0], second = call.scalars[1];
  const MatrixStep &step = stepOf(entry);
  switch (entry.form) {
  case Form::Product:
    return touchesOfProduct(entry, call, error);
  case Form::Residual:
    if (!inRange({first, second}) || first % step.m || second % step.blockN())
      return wrong(entry, "adds whole matrix steps, not " + std::to_string(first) + " x " + std::to_string(second),
                   error);
    return {{0, 4 * first * second, true, false}, {1, 4 * first * second, true, true}};
  case Form::Bias:
    if (!inRange({first, second}) || first % step.m || second % step.n)
      return wrong(
          entry, "adds to whole matrix steps, not to " + std::to_string(first) + " x " + std::to_string(second), error);
    return {{0, second / step.n * kBiasStepBytes, true, false}, {1, 4 * first * second, true, true}};
  case Form::AddNarrow:
    if (!inRange({first, second}) || first % step.k || second % step.n)
      return wrong(entry, "adds whole matrix steps, not " + std::to_string(first) + " x " + std::to_string(second),
                   error);
    return {{0, 4 * kParameterWords, true, false},
            {1, first * second, true, false},
            {2, 4 * first * second, true, false},
            {3, first * second, false, true}};
  case Form::Rows:
    return touchesOfRows(call, error);
  case Form::Zero:
  case Form::Relu:
  case Form::Steps:
  case Form::Narrow:
    break;
  }
  if (first <= 0 || first > kMostOfADim * kMostOfADim || first % 8)
    return wrong(entry, "takes a multiple of 8 numbers, not " + std::to_string(first), error);
  if (entry.form == Form::Steps)
    return {{0, 4 * kParameterWords, true, false}, {1, 4 * first, true, true}};
  if (entry.form == Form::Narrow)
    return {{0, 4 * kParameterWords, true, false},
            {1, 4 * first, true, false},
            {2, entry.operandBytes * first, false, true}};
  return {{0, 4 * first, entry.form == Form::Relu, true}};
}

int64_t macsOf(const Call &call) {
  return macKind(call.kernel).empty() ? 0 : call.scalars[0] * call.scalars[1] * call.scalars[2];
}

/// A block of results: its sums are loaded, the body goes one step along k and multiplies each of its steps of a with
/// each of b, which are loaded meanwhile, and the sums are stored.
static int64_t clocksOfBlock(const Machine &machine, const Entry &entry, int64_t k) {
  const MatrixStep &step = stepOf(entry);
  int64_t loads = machine.loadsPerClock * machine.accessBytes, stores = machine.storesPerClock * machine.accessBytes;
  auto ceilDiv = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  int64_t clocksOfStep = std::max<int64_t>(1, step.m * step.k * step.n / machine.macs(entry.operandBytes));
  int64_t operands = entry.operandBytes * step.k * (step.blockM() + step.blockN());
  int64_t body = std::max(step.sumsDown * step.sumsAcross * clocksOfStep, ceilDiv(operands, loads));
  int64_t sums = 4 * step.blockM() * step.blockN();
  return machine.loopClocks + ceilDiv(sums, loads) + k / step.k * body + ceilDiv(sums, stores);
}

int64_t clocksOf(const Machine &machine, const Call &call) {
  const Entry &entry = entryOf(call.kernel);
  const auto &[m, k, n, rest0, rest1, rest2, rest3, rest4] = call.scalars;
  if (entry.form == Form::Rows)
    return machine.callClocks + clocksOfRows(machine, call);
  if (entry.form == Form::Product) {
    int64_t blocks = m / stepOf(entry).blockM() * (n / stepOf(entry).blockN());
    return machine.callClocks + blocks * clocksOfBlock(machine, entry, k);
  }
  if (entry.form == Form::Steps || entry.form == Form::Narrow || entry.form == Form::AddNarrow)
    return machine.callClocks + machine.loopClocks + m * (entry.form == Form::AddNarrow ? k : 1) * kClocksOfSteps;
  int64_t numbers = entry.form == Form::Bias || entry.form == Form::Residual ? m * k : m;
  // Each store has its load beside it.
  return machine.callClocks + machine.loopClocks + 4 * numbers / (machine.storesPerClock * machine.accessBytes);
}

} // namespace dmx::aie
