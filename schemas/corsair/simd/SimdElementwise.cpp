//===- SimdElementwise.cpp - functions of single elements -----------------===//

#include "SimdJob.h"

#include "schemas/blockfp/BlockFloat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dmx::corsair {
namespace {

using F = SimdFunction;

template <typename T> T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T> void put(std::byte *at, T value) { std::memcpy(at, &value, sizeof value); }

/// The numerics library's function, if it is one of those.
std::optional<Function> libraryFunction(F function) {
  switch (function) {
  case F::Exp:
    return Function::Exp;
  case F::Log:
    return Function::Log;
  case F::Tanh:
    return Function::Tanh;
  case F::Erf:
    return Function::Erf;
  case F::Gelu:
    return Function::Gelu;
  case F::GeluTanh:
    return Function::GeluTanh;
  case F::Sigmoid:
    return Function::Sigmoid;
  case F::Silu:
    return Function::Silu;
  case F::Sqrt:
    return Function::Sqrt;
  case F::Rsqrt:
    return Function::Rsqrt;
  case F::Reciprocal:
    return Function::Reciprocal;
  case F::Sin:
    return Function::Sin;
  case F::Cos:
    return Function::Cos;
  default:
    return std::nullopt;
  }
}

double clampTo(double value, double low, double high) {
  return std::isnan(value) ? value : std::min(std::max(value, low), high);
}

/// One-operand functions in f64: exact, or to be rounded once by the caller.
double unary(F function, double x, double p, double q) {
  switch (function) {
  case F::Neg:
    return -x;
  case F::Abs:
    return std::fabs(x);
  case F::Sign:
    return x > 0 ? 1 : x < 0 ? -1 : x;
  case F::Floor:
    return std::floor(x);
  case F::Ceil:
    return std::ceil(x);
  case F::Round:
    return std::nearbyint(x);
  case F::Relu:
    return x < 0 ? 0 : x;
  case F::LeakyRelu:
    return x < 0 ? x * p : x;
  case F::Clip:
    return clampTo(x, p, q);
  case F::Affine: // the product of an f16 or f32 by an f32 is exact in f64
    return sumToOdd(x * p, q);
  case F::HardSigmoid:
    return clampTo(sumToOdd(x * p, q), 0, 1);
  case F::HardSwish:
    return x * clampTo(x / 6 + 0.5, 0, 1);
  case F::Elu:
    return x < 0 ? p * std::expm1(x) : x;
  case F::Softplus:
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  default:
    return x;
  }
}

double floorMod(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

uint16_t binaryF16(F function, uint16_t a, uint16_t b, uint16_t c) {
  switch (function) {
  case F::Add:
    return f16Add(a, b);
  case F::Sub:
    return f16Sub(a, b);
  case F::Mul:
    return f16Mul(a, b);
  case F::Div:
    return f16Div(a, b);
  case F::Max:
    return f16Max(a, b);
  case F::Min:
    return f16Min(a, b);
  case F::Fma:
    return f16Fma(a, b, c);
  case F::Pow:
    return f16Round(std::pow(f16Read(a), f16Read(b)));
  case F::Mod:
    return f16Round(floorMod(f16Read(a), f16Read(b)));
  default:
    return a;
  }
}

float binaryF32(F function, float a, float b, float c) {
  switch (function) {
  case F::Add:
    return f32Add(a, b);
  case F::Sub:
    return f32Sub(a, b);
  case F::Mul:
    return f32Mul(a, b);
  case F::Div:
    return f32Div(a, b);
  case F::Max:
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::max(a, b);
  case F::Min:
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::min(a, b);
  case F::Fma:
    return f32Fma(a, b, c);
  case F::Pow:
    return f32Round(std::pow(double(a), double(b)));
  case F::Mod:
    return f32Round(floorMod(a, b));
  default:
    return a;
  }
}

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

int64_t binaryInteger(F function, int64_t a, int64_t b, int64_t c) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
  switch (function) {
  case F::Add:
    return wrap(ua + ub);
  case F::Sub:
    return wrap(ua - ub);
  case F::Mul:
    return wrap(ua * ub);
  case F::Div: // towards zero; by zero gives 0
    return divides ? a / b : b ? wrap(0 - ua) : 0;
  case F::Mod:
    return divides ? (a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b) : 0;
  case F::Max:
    return std::max(a, b);
  case F::Min:
    return std::min(a, b);
  case F::Fma:
    return wrap(ua * ub + static_cast<uint64_t>(c));
  case F::And:
    return a & b;
  case F::Or:
    return a | b;
  case F::Xor:
    return a ^ b;
  case F::Neg:
    return wrap(0 - ua);
  case F::Abs:
    return a < 0 ? wrap(0 - ua) : a;
  case F::Sign:
    return (a > 0) - (a < 0);
  case F::Relu:
    return std::max<int64_t>(a, 0);
  default:
    return a;
  }
}

template <typename T> bool compare(F function, T a, T b) {
  switch (function) {
  case F::Eq:
    return a == b;
  case F::Ne:
    return a != b;
  case F::Lt:
    return a < b;
  case F::Le:
    return a <= b;
  case F::Gt:
    return a > b;
  default:
    return a >= b;
  }
}

bool isComparison(F function) { return function >= F::Eq && function <= F::Ge; }
bool isLogic(F function) { return function >= F::And && function <= F::Not; }
bool isOneOperandFloat(F function) { return function >= F::Neg && function <= F::Softplus; }

/// Calls visit(index) for every element, dimension 3 fastest.
template <typename Visit> void eachElement(const SimdJob &job, Visit visit) {
  int64_t i[4];
  for (i[0] = 0; i[0] < job.n[0]; ++i[0])
    for (i[1] = 0; i[1] < job.n[1]; ++i[1])
      for (i[2] = 0; i[2] < job.n[2]; ++i[2])
        for (i[3] = 0; i[3] < job.n[3]; ++i[3])
          visit(i);
}

/// Runs visit(d, a, b, c) over all elements with pointers stepped along dimension 3.
template <typename Visit> void eachPointer(const SimdJob &job, Visit visit) {
  int64_t i[4] = {};
  for (i[0] = 0; i[0] < job.n[0]; ++i[0])
    for (i[1] = 0; i[1] < job.n[1]; ++i[1])
      for (i[2] = 0; i[2] < job.n[2]; ++i[2]) {
        std::byte *d = job.d.at(i);
        const std::byte *a = job.a.at(i), *b = job.b.at(i), *c = job.c.at(i);
        for (int64_t k = 0; k < job.n[3]; ++k) {
          visit(d, a, b, c);
          d += job.d.step[3];
          a += job.a.step[3];
          b += job.b.step[3];
          c += job.c.step[3];
        }
      }
}

void computeHalf(const SimdJob &job) {
  F function = job.function;
  if (auto library = libraryFunction(function)) {
    const auto &table = f16Table(*library);
    return eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *, const std::byte *) {
      put(d, table[load<uint16_t>(a)]);
    });
  }
  if (isOneOperandFloat(function))
    return eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *, const std::byte *) {
      put(d, f16Round(unary(function, f16Read(load<uint16_t>(a)), job.imm0, job.imm1)));
    });
  bool three = function == F::Fma;
  eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *b, const std::byte *c) {
    put(d, binaryF16(function, load<uint16_t>(a), load<uint16_t>(b), three ? load<uint16_t>(c) : uint16_t(0)));
  });
}

void computeFloat(const SimdJob &job) {
  F function = job.function;
  auto library = libraryFunction(function);
  bool one = isOneOperandFloat(function), three = function == F::Fma;
  eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *b, const std::byte *c) {
    float x = readFloat(a, job.a.kind), value;
    if (library)
      value = f32Function(*library, x);
    else if (one)
      value = f32Round(unary(function, x, job.imm0, job.imm1));
    else
      value = binaryF32(function, x, readFloat(b, job.b.kind), three ? readFloat(c, job.c.kind) : 0);
    writeFloat(d, job.d.kind, value);
  });
}

void computeInteger(const SimdJob &job) {
  F function = job.function;
  int operands = operandCount(function);
  eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *b, const std::byte *c) {
    int64_t x = readInteger(a, job.a.kind);
    int64_t y = operands > 1 ? readInteger(b, job.b.kind) : 0, z = operands > 2 ? readInteger(c, job.c.kind) : 0;
    int64_t value =
        function == F::Not ? (job.d.kind == ElemKind::Bool ? x == 0 : ~x) : binaryInteger(function, x, y, z);
    writeInteger(d, job.d.kind, value);
  });
}

void computeCompare(const SimdJob &job) {
  bool integers = isIntegerKind(job.a.kind);
  eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *b, const std::byte *) {
    bool value = integers ? compare(job.function, readInteger(a, job.a.kind), readInteger(b, job.b.kind))
                          : compare(job.function, readFloat(a, job.a.kind), readFloat(b, job.b.kind));
    writeInteger(d, job.d.kind, value);
  });
}

void cast(std::byte *d, ElemKind to, const std::byte *a, ElemKind from) {
  if (from == to)
    std::memmove(d, a, static_cast<size_t>(elementBytes(to)));
  else if (isIntegerKind(from))
    isIntegerKind(to) ? writeInteger(d, to, readInteger(a, from))
                      : writeFloat(d, to, static_cast<double>(readInteger(a, from)));
  else
    isIntegerKind(to) ? writeTruncated(d, to, readFloat(a, from)) : writeFloat(d, to, readFloat(a, from));
}

void computePlaced(const SimdJob &job) {
  bool integer = isIntegerKind(job.d.kind);
  int64_t rowDim = job.causal ? job.causal - 1 : 2;
  eachElement(job, [&](const int64_t (&i)[4]) {
    std::byte *d = job.d.at(i);
    int64_t column = job.place(3, i[3]);
    switch (job.function) {
    case F::Fill:
      integer ? writeInteger(d, job.d.kind, job.index) : writeFloat(d, job.d.kind, job.imm0);
      break;
    case F::Iota:
      integer
          ? writeInteger(d, job.d.kind, job.index + column)
          : writeFloat(d, job.d.kind, sumToOdd(static_cast<double>(job.imm1) * static_cast<double>(column), job.imm0));
      break;
    default: // CausalMask
      if (column <= job.place(rowDim, i[rowDim]) + job.index)
        cast(d, job.d.kind, job.a.at(i), job.a.kind);
      else
        writeFloat(d, job.d.kind, job.imm0);
    }
  });
}

} // namespace

float readFloat(const std::byte *at, ElemKind kind) {
  return kind == ElemKind::F16 ? static_cast<float>(f16Read(load<uint16_t>(at))) : load<float>(at);
}

void writeFloat(std::byte *at, ElemKind kind, double value) {
  if (kind == ElemKind::F16)
    return put(at, f16Round(value));
  float rounded = f32Round(value);
  put(at, kind == ElemKind::Bfp32 ? roundToBfp32(rounded) : rounded);
}

int64_t readInteger(const std::byte *at, ElemKind kind) {
  switch (kind) {
  case ElemKind::I8:
    return load<int8_t>(at);
  case ElemKind::I16:
    return load<int16_t>(at);
  case ElemKind::I32:
    return load<int32_t>(at);
  case ElemKind::I64:
    return load<int64_t>(at);
  default:
    return load<uint8_t>(at);
  }
}

void writeInteger(std::byte *at, ElemKind kind, int64_t value) {
  if (kind == ElemKind::Bool)
    value = value != 0;
  std::memcpy(at, &value, static_cast<size_t>(elementBytes(kind)));
}

void writeTruncated(std::byte *at, ElemKind kind, double value) {
  if (kind == ElemKind::Bool)
    return writeInteger(at, kind, value != 0);
  int bits = elementBytes(kind) * 8;
  bool isUnsigned = kind == ElemKind::U8;
  double high = std::ldexp(1.0, isUnsigned ? bits : bits - 1), low = isUnsigned ? 0 : -high;
  if (std::isnan(value))
    return writeInteger(at, kind, 0);
  if (value >= high)
    return writeInteger(at, kind, isUnsigned ? 255 : static_cast<int64_t>(~uint64_t(0) >> (65 - bits)));
  writeInteger(at, kind, value <= low ? static_cast<int64_t>(low) : static_cast<int64_t>(value));
}

void computeElementwise(const SimdJob &job) {
  F function = job.function;
  if (function == F::Fill || function == F::Iota || function == F::CausalMask)
    return computePlaced(job);
  if (function == F::Copy)
    return eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *, const std::byte *) {
      cast(d, job.d.kind, a, job.a.kind);
    });
  if (function == F::Select)
    return eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *b, const std::byte *c) {
      load<uint8_t>(a) ? cast(d, job.d.kind, b, job.b.kind) : cast(d, job.d.kind, c, job.c.kind);
    });
  if (function == F::IsNaN)
    return eachPointer(job, [&](std::byte *d, const std::byte *a, const std::byte *, const std::byte *) {
      writeInteger(d, job.d.kind, std::isnan(readFloat(a, job.a.kind)));
    });
  if (isComparison(function))
    return computeCompare(job);
  if (isLogic(function) || isIntegerKind(job.a.kind))
    return computeInteger(job);
  int operands = operandCount(function);
  bool half = job.d.kind == ElemKind::F16 && job.a.kind == ElemKind::F16 &&
              (operands < 2 || job.b.kind == ElemKind::F16) && (operands < 3 || job.c.kind == ElemKind::F16);
  half ? computeHalf(job) : computeFloat(job);
}

const char *checkKinds(const SimdJob &job) {
  F function = job.function;
  int operands = operandCount(function);
  auto plain = [](ElemKind kind) { return isFloatKind(kind) || isIntegerKind(kind); };
  const SimdOperand *sources[] = {&job.a, &job.b, &job.c};
  if (!plain(job.d.kind))
    return "the result has no plain kind";
  for (int i = 0; i < operands; ++i)
    if (!plain(sources[i]->kind) && !(i > 0 && sources[i]->kind == ElemKind::Raw))
      return "an operand has no plain kind";
  bool floats = true, integers = true;
  for (int i = 0; i < operands; ++i) {
    bool absent = i > 0 && sources[i]->kind == ElemKind::Raw;
    floats &= absent || isFloatKind(sources[i]->kind);
    integers &= absent || isIntegerKind(sources[i]->kind);
  }
  bool mayBeAbsent = function == F::LayerNorm || function == F::RmsNorm || function == F::DepthwiseConv;
  if (!mayBeAbsent && ((operands > 1 && !job.hasB) || (operands > 2 && !job.hasC)))
    return "an operand is missing";
  if (function == F::DepthwiseConv && !job.hasB)
    return "the weights are missing";
  if (function == F::Copy || function == F::Fill || function == F::Iota)
    return nullptr;
  if (function == F::Select)
    return job.a.kind == ElemKind::Bool ? nullptr : "the condition is not bool";
  if (isComparison(function))
    return !isIntegerKind(job.d.kind) ? "a comparison gives bool or integers"
           : floats || integers       ? nullptr
                                      : "floats are compared with integers";
  if (isLogic(function))
    return integers && isIntegerKind(job.d.kind) ? nullptr : "logic needs bool or integers";
  if (function == F::IsNaN || function == F::ArgMax || function == F::ArgMin)
    return floats && isIntegerKind(job.d.kind) ? nullptr : "floats in and bool or integers out are needed";
  bool onlyFloats = isOneOperandFloat(function) && !(function <= F::Sign || function == F::Relu);
  onlyFloats |=
      function == F::Pow || function == F::CausalMask || isWindowFunction(function) || isRowFunction(function);
  if (floats && isFloatKind(job.d.kind))
    return nullptr;
  return !onlyFloats && integers && isIntegerKind(job.d.kind)
             ? nullptr
             : "operands and result do not have kinds that go together";
}

} // namespace dmx::corsair
