//===- VectorMathTest.cpp - accuracy and special values of VectorMath
//---------===//
//
// Every function of the table, in f32 and f64, at every level this machine
// runs, against long double. DMXC_VECTOR_MATH_EXHAUSTIVE=1 walks all 2^32
// floats instead of a sample and DMXC_VECTOR_MATH_BENCH=1 prints times.
//
//===----------------------------------------------------------------------===//

#include "VectorMathCases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;

namespace {

/// The worst error seen, and where.
struct Worst {
  double ulp = 0;
  double x = 0, y = 0, got = 0, exact = 0;

  void add(double distance, double atX, double atY, double result, long double reference) {
    if (distance > ulp)
      *this = {distance, atX, atY, result, double(reference)};
  }
  std::string text() const {
    char buffer[200];
    snprintf(buffer, sizeof buffer, "%.4g ulp at (%a = %.9g, %a = %.9g): got %a, exact %a", ulp, x, x, y, y, got,
             exact);
    return buffer;
  }
};

class VectorMathLevels : public testing::TestWithParam<IsaLevel> {};
INSTANTIATE_TEST_SUITE_P(Isa, VectorMathLevels, testing::ValuesIn(runnableLevels()),
                         [](const auto &info) { return info.param.name.substr(info.param.name.size() - 2); });

template <typename T> double allowed(const VectorMathFunction &fn) {
  return sizeof(T) == 4 ? fn.maxUlpF32 : fn.maxUlpF64;
}

/// The distance in units in the last place; none where the absolute error is one that is allowed.
template <typename T> double errorOf(const VectorMathFunction &fn, T got, long double exact) {
  if (fabsl(got - exact) < (sizeof(T) == 4 ? fn.maxAbsoluteF32 : fn.maxAbsoluteF64))
    return 0;
  return ulpDistance(got, exact);
}

template <typename T> void pad(std::vector<T> &values) { values.resize((values.size() + 15) / 16 * 16, T(1)); }

template <typename T> void checkUnary(const VectorMathFunction &fn, const IsaLevel &isa, std::vector<T> x) {
  TestKernel kernel = makeMathKernel(fn, isa, sizeof(T) * 8);
  ASSERT_TRUE(kernel.fn) << kernel.error;
  pad(x);
  std::vector<T> out(x.size());
  ASSERT_EQ(kernel({x, out}, 0, x.size()), DMX_KERNEL_OK);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = referenceUnary(std::string_view(fn.name), x[i]);
    worst.add(errorOf(fn, out[i], exact), x[i], 0, out[i], exact);
  }
  EXPECT_LE(worst.ulp, allowed<T>(fn)) << fn.name.str() << " f" << sizeof(T) * 8 << ": " << worst.text();
  printf("%-16s f%zu %.3f ulp\n", fn.name.str().c_str(), sizeof(T) * 8, worst.ulp);
}

template <typename T>
void checkBinary(const VectorMathFunction &fn, const IsaLevel &isa, std::vector<T> x, std::vector<T> y) {
  TestKernel kernel = makeMathKernel(fn, isa, sizeof(T) * 8);
  ASSERT_TRUE(kernel.fn) << kernel.error;
  pad(x), pad(y);
  std::vector<T> out(x.size());
  ASSERT_EQ(kernel({x, y, out}, 0, x.size()), DMX_KERNEL_OK);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = referenceBinary(std::string_view(fn.name), x[i], y[i]);
    worst.add(ulpDistance(out[i], exact), x[i], y[i], out[i], exact);
  }
  EXPECT_LE(worst.ulp, allowed<T>(fn)) << fn.name.str() << " f" << sizeof(T) * 8 << ": " << worst.text();
  printf("%-16s f%zu %.3f ulp\n", fn.name.str().c_str(), sizeof(T) * 8, worst.ulp);
}

template <typename T> std::vector<T> unaryInputs() {
  std::vector<T> x = specialValues<T>();
  std::vector<T> more = sampleValues<T>(sizeof(T) == 4 ? 4000 : 8000);
  x.insert(x.end(), more.begin(), more.end());
  if (sizeof(T) == 4) // every 16411th float: a prime, so that all low bits occur
    for (uint64_t pattern = 0; pattern < (1ull << 32); pattern += 16411) {
      uint32_t bits = uint32_t(pattern);
      float value;
      std::memcpy(&value, &bits, 4);
      x.push_back(value);
    }
  return x;
}

/// All pairs of special values, then random pairs; for pow also bases and
/// exponents whose power stays in range.
template <typename T> std::pair<std::vector<T>, std::vector<T>> binaryInputs() {
  std::vector<T> x, y, special = specialValues<T>();
  for (T a : special)
    for (T b : special)
      x.push_back(a), y.push_back(b);
  std::vector<T> a = sampleValues<T>(8000), b = a;
  std::mt19937_64 random(5);
  std::shuffle(b.begin(), b.end(), random);
  x.insert(x.end(), a.begin(), a.end());
  y.insert(y.end(), b.begin(), b.end());
  for (T v : a) {
    T base = std::fabs(v);
    double limit = (sizeof(T) == 4 ? 100.0 : 740.0) / std::max(1e-3, std::fabs(std::log(double(base))));
    x.push_back(base);
    y.push_back(T(std::uniform_real_distribution<double>(-limit, limit)(random)));
  }
  return {x, y};
}

TEST_P(VectorMathLevels, EveryFunctionF32) {
  auto x = unaryInputs<float>();
  auto [a, b] = binaryInputs<float>();
  for (const VectorMathFunction &fn : vectorMathFunctions())
    fn.binary ? checkBinary<float>(fn, GetParam(), a, b) : checkUnary<float>(fn, GetParam(), x);
}

TEST_P(VectorMathLevels, EveryFunctionF64) {
  auto x = unaryInputs<double>();
  auto [a, b] = binaryInputs<double>();
  for (const VectorMathFunction &fn : vectorMathFunctions())
    fn.binary ? checkBinary<double>(fn, GetParam(), a, b) : checkUnary<double>(fn, GetParam(), x);
}

/// What the table's notes promise where the results are not tiny.
TEST_P(VectorMathLevels, SigmoidAndSiluFromMinus20Up) {
  std::vector<float> x = unaryInputs<float>();
  llvm::erase_if(x, [](float v) { return v < -20; });
  for (const char *name : {"sigmoid", "silu"}) {
    VectorMathFunction fn = *findVectorMathFunction(name);
    fn.maxUlpF32 = 4;
    checkUnary<float>(fn, GetParam(), x);
  }
}

/// Scalars and odd lane counts give the bits that full vectors give.
template <typename T> void checkLanes(const VectorMathFunction &fn, const IsaLevel &isa) {
  std::vector<T> x = specialValues<T>(), y = x;
  std::reverse(y.begin(), y.end());
  x.resize(x.size() / 48 * 48), y.resize(x.size());
  std::vector<T> expected(x.size()), got(x.size());
  auto call = [&](int64_t lanes, std::vector<T> &out) {
    TestKernel kernel = makeMathKernel(fn, isa, sizeof(T) * 8, lanes);
    ASSERT_TRUE(kernel.fn) << kernel.error;
    std::vector<Operand> operands = {x};
    if (fn.binary)
      operands.push_back(y);
    operands.push_back(out);
    ASSERT_EQ(kernel(operands, 0, x.size()), DMX_KERNEL_OK);
  };
  call(0, expected);
  for (int64_t lanes : {1, 3}) {
    call(lanes, got);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE((std::isnan(expected[i]) && std::isnan(got[i])) || std::memcmp(&got[i], &expected[i], sizeof(T)) == 0)
          << fn.name.str() << " lanes " << lanes << " at " << x[i] << ", " << y[i] << ": " << got[i] << " / "
          << expected[i];
  }
}

TEST_P(VectorMathLevels, AnyLaneCount) {
  for (const VectorMathFunction &fn : vectorMathFunctions()) {
    checkLanes<float>(fn, GetParam());
    checkLanes<double>(fn, GetParam());
  }
}

TEST(VectorMath, TableIsSortedAndSearchable) {
  auto rows = vectorMathFunctions();
  EXPECT_TRUE(llvm::is_sorted(rows, [](auto &a, auto &b) { return a.name < b.name; }));
  for (const VectorMathFunction &row : rows) {
    EXPECT_EQ(findVectorMathFunction(row.name), &row);
    EXPECT_EQ(row.unary == nullptr, row.binary != nullptr);
  }
  EXPECT_EQ(findVectorMathFunction("gamma"), nullptr);
}

//===----------------------------------------------------------------------===//
// By hand: every float, and times
//===----------------------------------------------------------------------===//

using Fast = double (*)(double);
double sigmoidReference(double x) { return 1 / (1 + std::exp(-x)); }
double siluReference(double x) { return x * sigmoidReference(x); }
const std::pair<const char *, Fast> nativeF32[] = {
    {"exp", std::exp},      {"log", std::log},     {"tanh", std::tanh}, {"erf", std::erf},
    {"expm1", std::expm1},  {"log1p", std::log1p}, {"exp2", std::exp2}, {"sigmoid", sigmoidReference},
    {"silu", siluReference}};

void walkAllFloats(const VectorMathFunction &fn, const IsaLevel &isa, Fast reference) {
  TestKernel kernel = makeMathKernel(fn, isa, 32);
  ASSERT_TRUE(kernel.fn) << kernel.error;
  constexpr uint64_t block = 1 << 16;
  std::vector<float> x(block), out(block);
  Worst worst;
  for (uint64_t start = 0; start < (1ull << 32); start += block) {
    for (uint64_t i = 0; i < block; ++i) {
      uint32_t pattern = uint32_t(start + i);
      std::memcpy(&x[i], &pattern, 4);
    }
    kernel({x, out}, 0, block);
    for (uint64_t i = 0; i < block; ++i) {
      double exact = reference(x[i]);
      if (float(exact) == out[i] && std::signbit(exact) == std::signbit(out[i])) { // at most half a unit off
        if (worst.ulp >= 0.5)
          continue;
      }
      worst.add(errorOf(fn, out[i], exact), x[i], 0, out[i], exact);
    }
  }
  printf("%s %s: %s\n", isa.name.c_str(), fn.name.str().c_str(), worst.text().c_str());
  EXPECT_LE(worst.ulp, fn.maxUlpF32);
}

TEST_P(VectorMathLevels, EveryFloat) {
  const char *wanted = getenv("DMXC_VECTOR_MATH_EXHAUSTIVE");
  if (!wanted)
    GTEST_SKIP() << "minutes of work; set DMXC_VECTOR_MATH_EXHAUSTIVE=1 (or to "
                    "a function's name)";
  for (auto [name, reference] : nativeF32)
    if (std::string_view(wanted) == "1" || std::string_view(wanted) == name)
      walkAllFloats(*findVectorMathFunction(name), GetParam(), reference);
}

TEST_P(VectorMathLevels, Times) {
  if (!getenv("DMXC_VECTOR_MATH_BENCH"))
    GTEST_SKIP() << "prints times; set DMXC_VECTOR_MATH_BENCH=1";
  using Clock = std::chrono::steady_clock;
  constexpr int64_t n = 2048; // stays in L1
  for (const VectorMathFunction &fn : vectorMathFunctions()) {
    TestKernel kernel = makeMathKernel(fn, GetParam(), 32);
    ASSERT_TRUE(kernel.fn) << kernel.error;
    alignas(64) static float x[n], y[n], out[n];
    for (int64_t i = 0; i < n; ++i)
      x[i] = -3 + 6.0f * i / n, y[i] = 1.5f;
    void *buffers[] = {x, fn.binary ? y : out, out};
    int64_t kept = -1;
    dmx_kernel_args args = {buffers, nullptr, 0, n, nullptr, nullptr, &kept};
    double best = 1e9;
    for (int round = 0; round < 200; ++round) {
      auto start = Clock::now();
      for (int i = 0; i < 20; ++i)
        kernel.fn(&args);
      best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / (20 * n));
    }
    printf("%s %-16s %.3f ns/element\n", GetParam().name.c_str(), fn.name.str().c_str(), best);
  }
}

} // namespace
