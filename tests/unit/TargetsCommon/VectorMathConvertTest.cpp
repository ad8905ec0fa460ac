//===- VectorMathConvertTest.cpp - conversions of VectorMath -------------------===//
//
// Conversions between element types against dmxc/Support/Half.h and exact integer arithmetic,
// with every point where a result changes: ties, their neighbours and the ends of the ranges.
//
//===----------------------------------------------------------------------===//

#include "VectorMathCases.h"

#include "dmxc/Support/Half.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::FloatType;
using mlir::Type;
using mlir::Value;

namespace {

constexpr int64_t lanes = 8;

class VectorMathConversions : public testing::TestWithParam<IsaLevel> {};
INSTANTIATE_TEST_SUITE_P(Isa, VectorMathConversions, testing::ValuesIn(runnableLevels()),
                         [](const auto &info) { return info.param.name.substr(info.param.name.size() - 2); });

using Body = llvm::function_ref<Value(KernelBuilder &, VectorMath &, Value)>;

/// out[i] = body(in[i]) in vectors of 8; `type` makes the element type that is loaded.
template <typename Out, typename In>
std::vector<Out> run(const IsaLevel &isa, std::vector<In> in, llvm::function_ref<Type(KernelBuilder &)> type,
                     Body body) {
  in.resize((in.size() + lanes - 1) / lanes * lanes);
  std::vector<Out> out(in.size());
  TestKernel kernel = makeKernel("convert", isa, 2, 0, [&](KernelBuilder &b) {
    VectorMath math(b, isa);
    Type element = type(b);
    b.forLoop(b.begin(), b.end(), b.idx(lanes),
              [&](Value i) { b.store(body(b, math, b.load(element, b.buffer(0), i, lanes)), b.buffer(1), i); });
  });
  EXPECT_TRUE(kernel.fn) << kernel.error;
  if (kernel.fn) {
    EXPECT_EQ(kernel({in, out}, 0, in.size()), DMX_KERNEL_OK);
  }
  return out;
}

Type f32(KernelBuilder &b) { return b.getF32Type(); }
Type f64(KernelBuilder &b) { return b.getF64Type(); }

struct Narrow {
  DType dtype;
  const char *name;
};
const Narrow float8Formats[] = {{DType::F8E4M3FN, "e4m3fn"},
                                {DType::F8E4M3FNUZ, "e4m3fnuz"},
                                {DType::F8E5M2, "e5m2"},
                                {DType::F8E5M2FNUZ, "e5m2fnuz"}};

FloatType mlirType(KernelBuilder &b, DType type) {
  switch (type) {
  case DType::F8E4M3FN:
    return mlir::Float8E4M3FNType::get(b.getContext());
  case DType::F8E4M3FNUZ:
    return mlir::Float8E4M3FNUZType::get(b.getContext());
  case DType::F8E5M2:
    return mlir::Float8E5M2Type::get(b.getContext());
  case DType::F8E5M2FNUZ:
    return mlir::Float8E5M2FNUZType::get(b.getContext());
  case DType::BF16:
    return b.getBF16Type();
  default:
    return b.getF16Type();
  }
}

/// The values of a format and the midpoints between them, each with its neighbours in T; then
/// values beyond the range, specials and random ones.
template <typename T> std::vector<T> roundingInputs(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<T> points;
  for (size_t i = 0; i + 1 < values.size(); ++i)
    points.insert(points.end(), {T(values[i]), T((values[i] + values[i + 1]) / 2)});
  for (double big : {448.0, 464.0, 480.0, 61440.0, 65504.0, 65520.0, 1e9, 1e30, 3e38, 3.39e38})
    points.push_back(T(big));
  std::vector<T> out;
  for (T v : points)
    for (T n : {v, std::nextafter(v, T(INFINITY)), std::nextafter(v, T(-INFINITY))})
      out.insert(out.end(), {n, -n});
  for (T v : specialValues<T>())
    out.push_back(v);
  for (T v : sampleValues<T>(1000))
    out.push_back(v);
  return out;
}

std::vector<double> valuesOf(DType type, bool sixteen) {
  std::vector<double> values;
  for (uint32_t pattern = 0; pattern < (sixteen ? 0x8000u : 0x80u); ++pattern) {
    double v = !sixteen              ? narrowToFloat(type, uint8_t(pattern))
               : type == DType::BF16 ? bfloatToFloat(uint16_t(pattern))
                                     : halfToFloat(uint16_t(pattern));
    if (std::isfinite(v))
      values.push_back(v);
  }
  return values;
}

TEST_P(VectorMathConversions, DecodeFloat8) {
  std::vector<uint8_t> patterns(256);
  for (int i = 0; i < 256; ++i)
    patterns[i] = uint8_t(i);
  for (const Narrow &format : float8Formats) {
    auto i8 = [](KernelBuilder &b) -> Type { return b.getI8Type(); };
    auto single = run<float>(GetParam(), patterns, i8, [&](KernelBuilder &b, VectorMath &m, Value x) {
      return m.decodeF8(x, mlirType(b, format.dtype), b.getF32Type());
    });
    // Through the f8 type, and to f64.
    auto wide = run<double>(GetParam(), patterns, i8, [&](KernelBuilder &b, VectorMath &m, Value x) {
      Type narrow = b.laneType(mlirType(b, format.dtype), lanes);
      return m.extendFloat(mlir::arith::BitcastOp::create(b, narrow, x), b.getF64Type());
    });
    for (int i = 0; i < 256; ++i) {
      float expected = narrowToFloat(format.dtype, uint8_t(i));
      EXPECT_EQ(ulpDistance(single[i], expected), 0) << format.name << " " << i;
      EXPECT_EQ(ulpDistance(wide[i], expected), 0) << format.name << " " << i;
    }
  }
}

template <typename T> void checkEncode(const IsaLevel &isa, const Narrow &format, bool saturate) {
  auto inputs = roundingInputs<T>(valuesOf(format.dtype, false));
  auto got =
      run<uint8_t>(isa, inputs, sizeof(T) == 4 ? f32 : f64, [&](KernelBuilder &b, VectorMath &m, Value x) -> Value {
        Value narrow =
            m.truncateFloat(x, mlirType(b, format.dtype), saturate ? Overflow::Saturate : Overflow::Infinity);
        return mlir::arith::BitcastOp::create(b, b.laneType(b.getI8Type(), lanes), narrow);
      });
  for (size_t i = 0; i < inputs.size(); ++i) {
    int expected = doubleToNarrow(format.dtype, inputs[i], saturate);
    bool sameNaN = std::isnan(inputs[i]) && std::isnan(narrowToFloat(format.dtype, got[i]));
    EXPECT_TRUE(got[i] == expected || sameNaN) << format.name << " of " << inputs[i] << " saturate " << saturate << ": "
                                               << int(got[i]) << ", expected " << expected;
  }
}

TEST_P(VectorMathConversions, EncodeFloat8) {
  for (const Narrow &format : float8Formats)
    for (bool saturate : {false, true}) {
      checkEncode<float>(GetParam(), format, saturate);
      checkEncode<double>(GetParam(), format, saturate);
    }
}

template <typename T> void checkTruncate16(const IsaLevel &isa, DType type) {
  auto inputs = roundingInputs<T>(valuesOf(type, true));
  auto got =
      run<uint16_t>(isa, inputs, sizeof(T) == 4 ? f32 : f64, [&](KernelBuilder &b, VectorMath &m, Value x) -> Value {
        return m.truncateFloat(x, mlirType(b, type));
      });
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint16_t expected = type == DType::BF16 ? doubleToBfloat(inputs[i]) : doubleToHalf(inputs[i]);
    float value = type == DType::BF16 ? bfloatToFloat(got[i]) : halfToFloat(got[i]);
    EXPECT_TRUE(got[i] == expected || (std::isnan(inputs[i]) && std::isnan(value)))
        << std::string(dtypeName(type)) << " of " << inputs[i] << ": " << got[i] << ", expected " << expected;
  }
}

TEST_P(VectorMathConversions, Float16) {
  for (DType type : {DType::F16, DType::BF16}) {
    checkTruncate16<float>(GetParam(), type);
    checkTruncate16<double>(GetParam(), type);
    std::vector<uint16_t> patterns(65536);
    for (int i = 0; i < 65536; ++i)
      patterns[i] = uint16_t(i);
    auto element = [&](KernelBuilder &b) -> Type { return mlirType(b, type); };
    auto wide = run<double>(GetParam(), patterns, element,
                            [](KernelBuilder &b, VectorMath &m, Value x) { return m.extendFloat(x, b.getF64Type()); });
    for (int i = 0; i < 65536; ++i)
      EXPECT_EQ(ulpDistance(wide[i], type == DType::BF16 ? bfloatToFloat(uint16_t(i)) : halfToFloat(uint16_t(i))), 0)
          << i;
  }
}

/// A function on f16: computed in f32, rounded once more.
TEST_P(VectorMathConversions, FunctionsOfHalf) {
  std::vector<uint16_t> patterns(65536);
  for (int i = 0; i < 65536; ++i)
    patterns[i] = uint16_t(i);
  auto got = run<uint16_t>(
      GetParam(), patterns, [](KernelBuilder &b) -> Type { return b.getF16Type(); },
      [](KernelBuilder &, VectorMath &m, Value x) { return m.exp(x); });
  for (int i = 0; i < 65536; ++i) {
    uint16_t expected = doubleToHalf(std::exp(double(halfToFloat(uint16_t(i)))));
    if (std::isnan(halfToFloat(expected)))
      EXPECT_TRUE(std::isnan(halfToFloat(got[i])));
    else
      EXPECT_LE(std::abs(int(got[i]) - int(expected)), 1) << i;
  }
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// What VectorMath.h promises, in long double, which holds every i64, u64 and double.
template <typename Int> Int expectedInt(long double x) {
  if (std::isnan(x))
    return 0;
  x = truncl(x);
  auto saturate = [&](long double low, long double high) { return std::min(std::max(x, low), high); };
  if constexpr (std::is_same_v<Int, uint64_t>)
    return x < 0 ? Int(int64_t(saturate(-0x1p63L, 0))) : Int(saturate(0, 0xffffffffffffffffull));
  if constexpr (sizeof(Int) == 8 || std::is_same_v<Int, uint32_t>)
    return Int(int64_t(saturate(-0x1p63L, 0x7fffffffffffffffll)));
  return Int(int32_t(saturate(-0x1p31L, 0x7fffffff)));
}

template <typename Int, typename T> void checkToInt(const IsaLevel &isa) {
  auto inputs = roundingInputs<T>({0,     1,     2,     100,   127,    128,    129,    255,    256,    257,   300,
                                   32767, 32768, 65535, 65536, 0x1p31, 0x1p32, 0x1p62, 0x1p63, 0x1p64, 0x1p65});
  constexpr bool isUnsigned = std::is_unsigned_v<Int>;
  auto got = run<Int>(isa, inputs, sizeof(T) == 4 ? f32 : f64, [&](KernelBuilder &b, VectorMath &m, Value x) {
    return m.floatToInt(x, b.getIntegerType(sizeof(Int) * 8), isUnsigned);
  });
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(+got[i], +expectedInt<Int>(inputs[i]))
        << inputs[i] << " to " << (isUnsigned ? "u" : "i") << sizeof(Int) * 8 << " from f" << sizeof(T) * 8;
}

template <typename T> void checkToEveryInt(const IsaLevel &isa) {
  checkToInt<int8_t, T>(isa);
  checkToInt<uint8_t, T>(isa);
  checkToInt<int16_t, T>(isa);
  checkToInt<uint16_t, T>(isa);
  checkToInt<int32_t, T>(isa);
  checkToInt<uint32_t, T>(isa);
  checkToInt<int64_t, T>(isa);
  checkToInt<uint64_t, T>(isa);
}
TEST_P(VectorMathConversions, FloatToInt) {
  checkToEveryInt<float>(GetParam());
  checkToEveryInt<double>(GetParam());
}

template <typename Int> std::vector<Int> intInputs() {
  std::vector<Int> out;
  std::mt19937_64 random(3);
  for (unsigned bit = 0; bit < sizeof(Int) * 8; ++bit)
    for (int64_t delta : {-3, -2, -1, 0, 1, 2, 3}) {
      uint64_t v = (uint64_t(1) << bit) + delta;
      out.insert(out.end(), {Int(v), Int(0 - v)});
      // Ties of narrow formats: a short head, a long run of zeros, a bit far below.
      for (unsigned head : {7, 8, 10, 11, 23, 24, 52, 53})
        if (bit >= head)
          for (uint64_t odd : {0, 1}) {
            uint64_t tie = (uint64_t(1) << bit) | (uint64_t(1) << (bit - head)) | (odd << (bit - head + 1));
            out.insert(out.end(), {Int(tie + delta), Int(0 - tie - delta)});
          }
    }
  for (int i = 0; i < 2000; ++i)
    out.push_back(Int(random() >> (random() % 64)));
  return out;
}

/// The pattern of the format's value nearest to an integer, ties to even, compared exactly.
template <typename Int> uint16_t nearestNarrow(DType type, Int i) {
  auto value = [&](uint16_t p) -> long double { return type == DType::BF16 ? bfloatToFloat(p) : halfToFloat(p); };
  long double exact = i;
  uint16_t start = type == DType::BF16 ? doubleToBfloat(double(i)) : doubleToHalf(double(i)), best = start;
  if (std::isinf(value(start)))
    return start;
  for (int delta : {-1, 1}) {
    uint16_t other = uint16_t(start + delta);
    long double was = fabsl(value(best) - exact), is = fabsl(value(other) - exact);
    if (i != 0 && (is < was || (is == was && other % 2 == 0)))
      best = other;
  }
  return best;
}

template <typename Int> void checkFromInt(const IsaLevel &isa) {
  constexpr bool isUnsigned = std::is_unsigned_v<Int>;
  auto inputs = intInputs<Int>();
  auto element = [](KernelBuilder &b) -> Type { return b.getIntegerType(sizeof(Int) * 8); };
  auto to = [&](auto result, auto target) {
    return run<decltype(result)>(isa, inputs, element, [&](KernelBuilder &b, VectorMath &m, Value x) {
      return m.intToFloat(x, target(b), isUnsigned);
    });
  };
  auto single = to(float(), [](KernelBuilder &b) -> FloatType { return b.getF32Type(); });
  auto wide = to(double(), [](KernelBuilder &b) -> FloatType { return b.getF64Type(); });
  auto half = to(uint16_t(), [](KernelBuilder &b) -> FloatType { return b.getF16Type(); });
  auto brain = to(uint16_t(), [](KernelBuilder &b) -> FloatType { return b.getBF16Type(); });
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(single[i], float(inputs[i])) << +inputs[i];
    EXPECT_EQ(wide[i], double(inputs[i])) << +inputs[i];
    EXPECT_EQ(half[i], nearestNarrow(DType::F16, inputs[i])) << +inputs[i];
    EXPECT_EQ(brain[i], nearestNarrow(DType::BF16, inputs[i])) << +inputs[i];
  }
}

TEST_P(VectorMathConversions, IntToFloat) {
  checkFromInt<int8_t>(GetParam());
  checkFromInt<uint8_t>(GetParam());
  checkFromInt<int16_t>(GetParam());
  checkFromInt<uint16_t>(GetParam());
  checkFromInt<int32_t>(GetParam());
  checkFromInt<uint32_t>(GetParam());
  checkFromInt<int64_t>(GetParam());
  checkFromInt<uint64_t>(GetParam());
}

} // namespace
