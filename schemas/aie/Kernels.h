//===- Kernels.h - what cores can call --------------------------*- C++ -*-===//
//
// The library of the model's cores: names and argument order of mlir-aie's aie_kernels where one exists. What a call
// touches, multiplies and costs is known before it runs; the clocks are a model (NUMERICS.md says what is computed).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Machine.h"

#include <span>

namespace dmx::aie {

inline constexpr size_t kAddresses = 6, kScalars = 8; ///< of a call, at most

enum class KernelId : uint8_t {
  ZeroF32,
  MatmulBf16F32,
  BiasF32,
  ReluF32,
  ZeroI32,
  MatmulI32,
  BiasI32,
  ReluI32,
  MatmulI8I32,
  MatmulUi8I32,
  StepsF32,
  ResidualF32,
  BiasI8I32,
  RoundBf16,
  FloatI32,
  ScaleI32,
  NarrowF32,
  NarrowBf16,
  NarrowI8,
  AddNarrowI8,
  CopyF32, ///< from here on: of rows of f32 (RowKernels.h)
  AddF32,
  SubtractF32,
  SubtractFromF32,
  MultiplyF32,
  DivideF32,
  DivideIntoF32,
  AddRowF32,
  SubtractRowF32,
  SubtractFromRowF32,
  MultiplyRowF32,
  DivideRowF32,
  DivideIntoRowF32,
  SoftmaxF32,
  LayerNormF32,
  RmsNormF32,
  Count
};

struct KernelInfo {
  std::string_view name;
  std::vector<std::string_view> addresses, scalars; ///< what the arguments are called
  int64_t programBytes;                             ///< of its code (assumed)
};
const KernelInfo &infoOf(KernelId kernel);
std::optional<KernelId> kernelNamed(std::string_view name);

/// Arguments: addresses as the core sees them.
struct Call {
  KernelId kernel = KernelId::ZeroF32;
  std::array<uint32_t, kAddresses> addresses = {};
  std::array<int64_t, kScalars> scalars = {};
};
/// Bytes that a call touches from one of its addresses on.
struct Touch {
  size_t address;
  int64_t bytes;
  bool reads, writes;
};
/// None, and why, where the kernel does not take such scalars.
std::vector<Touch> touches(const Call &call, std::string &error);
/// Which number types a product multiplies: "bf16", "i32", "i8"; "" of what is no product.
std::string_view macKind(KernelId kernel);
/// Of a call whose scalars it takes.
int64_t macsOf(const Call &call);
int64_t clocksOf(const Machine &machine, const Call &call);

/// What steps_f32 and narrow_f32_* make of each number x, one step after the other; a step is a word of its kind and
/// two numbers.
enum class StepKind : uint32_t {
  None,
  Relu,
  Add,
  Multiply,
  Divide,
  Clip,
  Sigmoid,
  Silu,
  Tanh,
  Gelu,
  GeluTanh,
  RoundBf16, ///< the nearest bf16, to even where two are
  Round,
  QuantiseI8,
  QuantiseUi8,
  Dequantise,
  AddBytes,
  Count
};
struct Step {
  StepKind kind = StepKind::None;
  /// Add: x + a; Multiply: x * a; Divide: x / a; Clip: from a to b; Round: to the nearest integer, to even where two
  /// are; Quantise*: x / b rounded so, + a, clipped to what a byte holds; Dequantise: (x - a) * b; AddBytes:
  /// x + (r - a) * b, of what is added to a result.
  float a = 0, b = 0;
  bool operator==(const Step &) const = default;
};
/// Where the steps lie in a core's parameters, and how many there are, of those that do nothing too.
inline constexpr int64_t kFirstStepWord = 4, kStepWords = 3, kMostSteps = 6;
inline constexpr int64_t kParameterWords = kFirstStepWord + kMostSteps * kStepWords;
/// Behind them, of programs that add a residual: which of its pairs of tiles a core has, and which half (NUMERICS.md).
inline constexpr int64_t kFirstResidualWord = kParameterWords, kResidualWords = 4;
/// Whether a kernel's first address is that of the core's parameters.
bool takesParameters(KernelId kernel);

/// A matrix step: operands and results lie packed as tiles of m x k, k x n and m x n, by the operands' type. A kernel
/// keeps the sums of `sumsDown` by `sumsAcross` steps in registers while it goes along k.
struct MatrixStep {
  int64_t m, k, n, sumsDown, sumsAcross;
  /// Rows and columns of a result that a kernel has at once.
  constexpr int64_t blockM() const { return m * sumsDown; }
  constexpr int64_t blockN() const { return n * sumsAcross; }
  bool operator==(const MatrixStep &) const = default;
};
inline constexpr MatrixStep kStepBf16{4, 8, 4, 2, 4}, kStepI32{4, 4, 4, 2, 4}, kStepI8{4, 8, 8, 4, 2};
/// A bias lies in the place of an operand of k x n as its first rows do: the numbers of a step's columns at the first
/// words of its bytes.
inline constexpr int64_t kBiasStepBytes = 64;

} // namespace dmx::aie
