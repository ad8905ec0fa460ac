//===- CorsairSimdTest.cpp - EXEC_SIMD functions against oracles ----------===//

#include "CorsairHarness.h"

#include "schemas/corsair/SimdFunctions.h"

#include <functional>
#include <numbers>

using namespace dmxtest;

namespace {

struct SimdCase {
  std::string fn, keys, fields;
  std::string kind[4] = {"f16", "f16", "f16", "f16"}; ///< y, a, b, c
  std::string host[4] = {"f32", "f32", "f32", "f32"};
  int64_t count[4] = {64, 64, 64, 64};
};

/// a, b, c in GM at 0x0, 0x8000, 0x10000; y from 0x18000.
std::string simdText(const SimdCase &c) {
  std::string text = ".stream s\n", arguments;
  const char *names[] = {"y", "a", "b", "c"};
  const int64_t places[] = {0x18000, 0x0, 0x8000, 0x10000};
  auto str = [](int64_t value) { return std::to_string(value); };
  for (int i : {1, 2, 3, 0}) {
    std::string size = str(isa::elementBytes(*isa::elemKindFromName(c.kind[i])));
    arguments += "  .argument " + std::string(names[i]) + (i ? " input " : " output ") + c.host[i] + " shape=[" +
                 str(c.count[i]) + "] form=" + c.kind[i] + "\n    .piece DDR unit=0 addr=" + str(places[i]) +
                 " begin=[0] extent=[" + str(c.count[i]) + "] strides=[" + size + "]\n";
    if (i)
      text += "  CONFIG_GM slot=" + str(i) + " kind=" + c.kind[i] + " unit=" + str(c.count[i]) +
              "\n  MOVE_DDR2GM slot=" + str(i) + " saddr=" + str(places[i]) + " daddr=" + str(places[i]) + "\n";
  }
  text += "  CONFIG_SIMD slot=0 dk=" + c.kind[0] + " ak=" + c.kind[1] + " bk=" + c.kind[2] + " ck=" + c.kind[3] + " " +
          c.keys + "\n";
  text += "  EXEC_SIMD fn=" + c.fn + " slot=0 d=0x18000 a=0x0 b=0x8000 c=0x10000 " + c.fields + "\n";
  text += "  CONFIG_GM slot=0 kind=" + c.kind[0] + " unit=" + str(c.count[0]) +
          "\n  MOVE_GM2DDR slot=0 saddr=0x18000 daddr=0x18000\n  HALT\n.kernel k\n  .footprint DDR=0x20000 GM=0x20000 "
          "SIMD=0x1000\n";
  return text + arguments + "  .main\n    .launch quad=0 q0=s\n";
}

float half(double value) { return isa::f16Widen(isa::f16Round(value)); }

std::vector<float> halfNoise(uint32_t seed, size_t count, float scale = 1) {
  std::vector<float> values = noise(seed, count);
  for (float &value : values)
    value = half(value * scale);
  return values;
}

/// Steps of one rounding: neighbours in f16 differ by 1.
int64_t ulps(float a, float b) {
  auto order = [](float value) {
    uint16_t bits = isa::f16Round(value);
    return bits & 0x8000 ? -int64_t(bits & 0x7fff) : int64_t(bits);
  };
  return std::abs(order(a) - order(b));
}

using Oracle = std::function<double(double, double, double)>;

/// All of y = fn(a, b, c) over 1000 elements, shared by four slices.
void expectElementwise(const std::string &fn, const Oracle &oracle, const std::string &fields = "", float scale = 1,
                       float least = -1e9f) {
  SCOPED_TRACE(fn);
  SimdCase c;
  c.fn = fn;
  c.fields = fields;
  c.keys = "n0=10 n3=100 d0=200 d3=2 a0=200 a3=2 b0=200 b3=2 c0=200 c3=2";
  for (int64_t &count : c.count)
    count = 1000;
  std::vector<float> a = halfNoise(1, 1000, scale), b = halfNoise(2, 1000), d = halfNoise(3, 1000);
  for (float &value : a)
    value = std::max(value, half(least));
  CorsairProgram program(simdText(c));
  program.set("a", a);
  program.set("b", b);
  program.set("c", d);
  program.expectRun();
  std::vector<float> y = program.get<float>("y");
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], half(oracle(a[i], b[i], d[i]))) << fn << " of " << a[i] << ", " << b[i] << ", " << d[i];
}

} // namespace

TEST(CorsairSimd, ElementwiseFunctionsAreRoundedOnce) {
  expectElementwise("copy", [](double a, double, double) { return a; });
  expectElementwise("add", [](double a, double b, double) { return a + b; });
  expectElementwise("sub", [](double a, double b, double) { return a - b; });
  expectElementwise("mul", [](double a, double b, double) { return a * b; });
  expectElementwise("max", [](double a, double b, double) { return std::max(a, b); });
  expectElementwise("min", [](double a, double b, double) { return std::min(a, b); });
  expectElementwise("fma", [](double a, double b, double c) { return a * b + c; });
  expectElementwise("neg", [](double a, double, double) { return -a; });
  expectElementwise("abs", [](double a, double, double) { return std::fabs(a); });
  expectElementwise("sign", [](double a, double, double) { return (a > 0) - (a < 0); });
  expectElementwise("floor", [](double a, double, double) { return std::floor(a); }, "", 8);
  expectElementwise("ceil", [](double a, double, double) { return std::ceil(a); }, "", 8);
  expectElementwise("round", [](double a, double, double) { return std::nearbyint(a); }, "", 8);
  expectElementwise("relu", [](double a, double, double) { return std::max(a, 0.0); });
  expectElementwise("leaky_relu", [](double a, double, double) { return a < 0 ? a * 0.125 : a; }, "imm0=0.125");
  expectElementwise(
      "clip", [](double a, double, double) { return std::min(std::max(a, -0.25), 0.5); }, "imm0=-0.25 imm1=0.5");
  expectElementwise("affine", [](double a, double, double) { return a * 3 + 0.5; }, "imm0=3 imm1=0.5");
  expectElementwise("exp", [](double a, double, double) { return std::exp(a); });
  expectElementwise("log", [](double a, double, double) { return std::log(a); }, "", 1, 0x1p-10f);
  expectElementwise("tanh", [](double a, double, double) { return std::tanh(a); });
  expectElementwise("erf", [](double a, double, double) { return std::erf(a); });
  expectElementwise("gelu", [](double a, double, double) { return a * 0.5 * std::erfc(-a / std::numbers::sqrt2); });
  expectElementwise("sigmoid", [](double a, double, double) { return 1 / (1 + std::exp(-a)); });
  expectElementwise("silu", [](double a, double, double) { return a / (1 + std::exp(-a)); });
  expectElementwise("sqrt", [](double a, double, double) { return std::sqrt(a); }, "", 1, 0);
  expectElementwise("rsqrt", [](double a, double, double) { return 1 / std::sqrt(a); }, "", 1, 0x1p-8f);
  expectElementwise("reciprocal", [](double a, double, double) { return 1 / a; }, "", 1, 0x1p-8f);
  expectElementwise(
      "hard_sigmoid", [](double a, double, double) { return std::clamp(a * 0.25 + 0.5, 0.0, 1.0); },
      "imm0=0.25 imm1=0.5");
  expectElementwise("elu", [](double a, double, double) { return a < 0 ? std::expm1(a) : a; }, "imm0=1");
  expectElementwise("softplus", [](double a, double, double) { return std::log1p(std::exp(a)); });
}

TEST(CorsairSimd, OperandsBroadcastStepAndLieInEveryMemory) {
  // y[i, j] = a[i, j] + b[j], a transposed on the way; a goes through the slices' SIMD memories.
  SimdCase c;
  c.fn = "add";
  c.keys = "n0=8 n3=8 d0=16 d3=2 a0=2 a3=16 b3=2";
  std::vector<float> a = halfNoise(4, 64), b = halfNoise(5, 64);
  CorsairProgram program(simdText(c));
  program.set("a", a);
  program.set("b", b);
  program.expectRun();
  std::vector<float> y = program.get<float>("y");
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 8; ++j)
      EXPECT_EQ(y[i * 8 + j], half(double(a[j * 8 + i]) + b[j]));
  std::string text = simdText(c);
  // The slices' parts, 2 rows each, in SIMD: they count from 0 there.
  text.replace(text.find("  CONFIG_SIMD"), 0,
               "  CONFIG_SIMD slot=1 n0=8 n3=8 a0=16 a3=2 d0=16 d3=2 dm=SIMD\n  EXEC_SIMD fn=copy slot=1 a=0x0 "
               "d=0x40\n  CONFIG_SIMD slot=2 n0=8 n3=8 a0=16 a3=2 d0=16 d3=2 am=SIMD\n"
               "  EXEC_SIMD fn=copy slot=2 a=0x40 d=0x0\n");
  CorsairProgram through(text);
  through.set("a", a);
  through.set("b", b);
  through.expectRun();
  EXPECT_EQ(through.get<float>("y"), y);
}

TEST(CorsairSimd, ComparisonsCastsIntegersAndSelection) {
  SimdCase less{"lt", "n3=64 d3=1 a3=2 b3=2 split=4", ""};
  less.kind[0] = "bool";
  less.host[0] = "bool";
  std::vector<float> a = halfNoise(6, 64), b = halfNoise(7, 64), d = halfNoise(8, 64);
  CorsairProgram compare(simdText(less));
  compare.set("a", a);
  compare.set("b", b);
  compare.expectRun();
  std::vector<uint8_t> flags = compare.get<uint8_t>("y");
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(flags[i], a[i] < b[i]);
  SimdCase select{"select", "n3=64 d3=2 a3=1 b3=2 c3=2", ""};
  select.kind[1] = "bool";
  select.host[1] = "bool";
  CorsairProgram chosen(simdText(select));
  chosen.set("a", flags);
  chosen.set("b", b);
  chosen.set("c", d);
  chosen.expectRun();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(chosen.get<float>("y")[i], flags[i] ? b[i] : d[i]);
  SimdCase truncate{"copy", "n3=64 d3=4 a3=2", ""};
  truncate.kind[0] = "i32";
  truncate.host[0] = "i64";
  CorsairProgram cast(simdText(truncate));
  for (size_t i = 0; i < 64; ++i)
    a[i] = half(static_cast<double>(i) * 1.75 - 40);
  a[0] = std::numeric_limits<float>::quiet_NaN();
  cast.set("a", a);
  cast.expectRun();
  EXPECT_EQ(cast.get<int64_t>("y")[0], 0);
  for (size_t i = 1; i < 64; ++i)
    EXPECT_EQ(cast.get<int64_t>("y")[i], static_cast<int64_t>(std::trunc(a[i])));
  SimdCase floorMod{"mod", "n3=64 d3=8 a3=8 b3=8", ""};
  for (int i = 0; i < 3; ++i) {
    floorMod.kind[i] = "i64";
    floorMod.host[i] = "i64";
  }
  std::vector<int64_t> x(64), m(64, 7);
  for (int64_t i = 0; i < 64; ++i)
    x[static_cast<size_t>(i)] = i - 30;
  m[5] = 0;
  CorsairProgram integers(simdText(floorMod));
  integers.set("a", x);
  integers.set("b", m);
  integers.expectRun();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(integers.get<int64_t>("y")[i], i == 5 ? 0 : ((x[i] % 7) + 7) % 7);
}

TEST(CorsairSimd, SoftmaxRowsMasksAndEmptyRows) {
  SimdCase c{"softmax", "n0=8 n3=100 d0=200 d3=2 a0=200 a3=2", ""};
  for (int64_t &count : c.count)
    count = 800;
  std::vector<float> a = halfNoise(9, 800, 2);
  for (size_t i = 0; i < 100; ++i)
    a[300 + i] = -65504; // a fully masked row
  for (size_t i = 0; i < 50; ++i)
    a[500 + i] = -std::numeric_limits<float>::infinity();
  auto check = [&](const SimdCase &what, const std::function<int64_t(int64_t)> &valid) {
    CorsairProgram program(simdText(what));
    program.set("a", a);
    program.expectRun();
    std::vector<float> y = program.get<float>("y");
    for (int64_t row = 0; row < 8; ++row) {
      double sum = 0, peak = -1e9;
      auto counts = [&](int64_t i) { return i < valid(row) && a[static_cast<size_t>(row * 100 + i)] > -65504; };
      for (int64_t i = 0; i < 100; ++i)
        if (counts(i))
          peak = std::max<double>(peak, a[static_cast<size_t>(row * 100 + i)]);
      for (int64_t i = 0; i < 100; ++i)
        sum += counts(i) ? std::exp(a[static_cast<size_t>(row * 100 + i)] - peak) : 0;
      for (int64_t i = 0; i < 100; ++i) {
        double expected = counts(i) ? std::exp(a[static_cast<size_t>(row * 100 + i)] - peak) / sum : 0;
        EXPECT_LE(ulps(y[static_cast<size_t>(row * 100 + i)], half(expected)), 1) << row << " " << i;
      }
    }
  };
  check(c, [](int64_t) { return 100; });
  c.fields = "index=30";
  check(c, [](int64_t) { return 30; });
  c.keys += " causal=1";
  c.fields = "index=1";
  check(c, [](int64_t row) { return row + 1; });
}

TEST(CorsairSimd, NormsAreWithinOneUlp) {
  SimdCase c{"layer_norm", "n0=5 n3=200 d0=400 d3=2 a0=400 a3=2 b3=2 c3=2", "imm0=1e-5"};
  for (int64_t &count : c.count)
    count = 1000;
  std::vector<float> a = halfNoise(10, 1000, 4), b = halfNoise(11, 1000), d = halfNoise(12, 1000);
  for (const char *fn : {"layer_norm", "rms_norm"}) {
    c.fn = fn;
    bool layer = c.fn == "layer_norm";
    CorsairProgram program(simdText(c));
    program.set("a", a);
    program.set("b", b);
    program.set("c", d);
    program.expectRun();
    std::vector<float> y = program.get<float>("y");
    for (size_t row = 0; row < 5; ++row) {
      double mean = 0, square = 0;
      for (size_t i = 0; i < 200; ++i)
        mean += a[row * 200 + i] / 200.0;
      mean = layer ? mean : 0;
      for (size_t i = 0; i < 200; ++i)
        square += (a[row * 200 + i] - mean) * (a[row * 200 + i] - mean) / 200.0;
      for (size_t i = 0; i < 200; ++i) {
        double expected = (a[row * 200 + i] - mean) / std::sqrt(square + 1e-5) * b[i] + (layer ? d[i] : 0);
        EXPECT_TRUE(ulps(y[row * 200 + i], half(expected)) <= 1 || std::fabs(y[row * 200 + i] - expected) < 1e-5)
            << fn << row << " " << i;
      }
    }
  }
}

TEST(CorsairSimd, ReductionsGoOverSeveralDimensions) {
  // [4, 6, 5, 7]: the two innermost are the row; columns of the image via steps.
  SimdCase c{"", "n0=4 n1=6 n2=5 n3=7 a0=420 a1=70 a2=14 a3=2 d0=12 d1=2 inner=2", ""};
  c.count[1] = 840;
  c.count[0] = 24;
  std::vector<float> a = halfNoise(13, 840);
  auto run = [&](const std::string &fn) {
    c.fn = fn;
    CorsairProgram program(simdText(c));
    program.set("a", a);
    program.expectRun();
    return program.get<float>("y");
  };
  for (size_t row = 0; row < 24; ++row) {
    std::vector<double> values(a.begin() + static_cast<long>(35 * row), a.begin() + static_cast<long>(35 * row + 35));
    double sum = 0, squares = 0, product = 1;
    for (double value : values) {
      sum += value;
      squares += value * value;
      product *= value;
    }
    EXPECT_LE(ulps(run("reduce_sum")[row], half(sum)), 1);
    EXPECT_LE(ulps(run("reduce_mean")[row], half(sum / 35)), 1);
    EXPECT_LE(ulps(run("reduce_sum_square")[row], half(squares)), 1);
    EXPECT_LE(ulps(run("reduce_prod")[row], half(product)), 1);
    EXPECT_EQ(run("reduce_max")[row], static_cast<float>(*std::max_element(values.begin(), values.end())));
    EXPECT_EQ(run("reduce_min")[row], static_cast<float>(*std::min_element(values.begin(), values.end())));
  }
  SimdCase arg{"argmax", "n0=24 n3=35 a0=70 a3=2 d0=8", ""};
  arg.kind[0] = "i64";
  arg.host[0] = "i64";
  arg.count[1] = 840;
  arg.count[0] = 24;
  CorsairProgram program(simdText(arg));
  program.set("a", a);
  program.expectRun();
  for (size_t row = 0; row < 24; ++row)
    EXPECT_EQ(program.get<int64_t>("y")[row],
              std::max_element(a.begin() + static_cast<long>(35 * row), a.begin() + static_cast<long>(35 * row + 35)) -
                  a.begin() - static_cast<long>(35 * row));
}

TEST(CorsairSimd, SumsHaveTheDocumentedOrder) {
  // Over 64 elements of 2^-12 lanes decide: sequential f32 sums of 4096 ones and small parts differ.
  SimdCase c{"reduce_sum", "n3=1000 a3=4 slices", "slices=0x1"};
  c.keys = "n3=1000 a3=4";
  c.kind[0] = c.kind[1] = "f32";
  c.count[1] = 1000;
  c.count[0] = 1;
  std::vector<float> a = noise(14, 1000);
  for (float &value : a)
    value *= 1.0001f;
  CorsairProgram program(simdText(c));
  program.set("a", a);
  program.expectRun();
  float lanes[64] = {};
  for (size_t i = 0; i < a.size(); ++i)
    lanes[i % 64] = i < 64 ? a[i] : lanes[i % 64] + a[i];
  for (int step = 32; step; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  EXPECT_EQ(program.get<float>("y")[0], lanes[0]);
}

TEST(CorsairSimd, RopeRotatesPairs) {
  SimdCase c{"rope", "n0=3 n3=16 a0=32 a3=2 d0=32 d3=2 b0=16 b3=2 c0=16 c3=2", ""};
  c.count[0] = c.count[1] = 48;
  c.count[2] = c.count[3] = 24;
  std::vector<float> x = halfNoise(15, 48), cosine = halfNoise(16, 24), sine = halfNoise(17, 24);
  for (bool interleaved : {false, true}) {
    c.fn = interleaved ? "rope_interleaved" : "rope";
    CorsairProgram program(simdText(c));
    program.set("a", x);
    program.set("b", cosine);
    program.set("c", sine);
    program.expectRun();
    std::vector<float> y = program.get<float>("y");
    for (size_t row = 0; row < 3; ++row)
      for (size_t i = 0; i < 8; ++i) {
        size_t p = row * 16 + (interleaved ? 2 * i : i), q = row * 16 + (interleaved ? 2 * i + 1 : i + 8),
               t = row * 8 + i;
        EXPECT_LE(ulps(y[p], half(double(x[p]) * cosine[t] - double(x[q]) * sine[t])), 1);
        EXPECT_LE(ulps(y[q], half(double(x[q]) * cosine[t] + double(x[p]) * sine[t])), 1);
      }
  }
}

TEST(CorsairSimd, PoolsAndDepthwiseWindows) {
  // Image 7 x 9 x 4 (NHWC), kernel 3 x 2, stride 2 x 1, padding 1 above and 0 left; 3 x 8 outputs, rows shared.
  const int64_t h = 7, w = 9, ch = 4, kh = 3, kw = 2, oh = 3, ow = 8;
  SimdCase c{"", "", ""};
  c.keys = "n1=3 n2=8 n3=4 a1=72 a2=8 a3=2 d1=64 d2=8 d3=2 b1=16 b2=8 b3=2 c3=2 win_h=7 win_w=9 win_kh=3 win_kw=2 "
           "win_sh=2 win_sw=1 win_ph=1 win_ow=8 split=2";
  c.count[1] = h * w * ch;
  c.count[0] = oh * ow * ch;
  std::vector<float> a = halfNoise(18, static_cast<size_t>(c.count[1])), b = halfNoise(19, 64), d = halfNoise(20, 64);
  for (const char *fn : {"pool_max", "pool_avg", "depthwise_conv"}) {
    c.fn = fn;
    CorsairProgram program(simdText(c));
    program.set("a", a);
    program.set("b", b);
    program.set("c", d);
    program.expectRun();
    std::vector<float> y = program.get<float>("y");
    for (int64_t r = 0; r < oh; ++r)
      for (int64_t s = 0; s < ow; ++s)
        for (int64_t k = 0; k < ch; ++k) {
          double peak = -1e9, sum = 0, weighted = d[static_cast<size_t>(k)];
          int64_t inside = 0;
          for (int64_t y0 = 0; y0 < kh; ++y0)
            for (int64_t x0 = 0; x0 < kw; ++x0) {
              int64_t ih = r * 2 - 1 + y0, iw = s + x0;
              if (ih < 0 || ih >= h || iw >= w)
                continue;
              double value = a[static_cast<size_t>((ih * w + iw) * ch + k)];
              peak = std::max(peak, value);
              sum += value;
              weighted += value * b[static_cast<size_t>((y0 * 2 + x0) * ch + k)];
              ++inside;
            }
          double expected = c.fn == "pool_max"   ? peak
                            : c.fn == "pool_avg" ? sum / static_cast<double>(inside)
                                                 : weighted;
          EXPECT_LE(ulps(y[static_cast<size_t>((r * ow + s) * ch + k)], half(expected)), 1) << fn;
        }
  }
}

TEST(CorsairSimd, FillsCountsAndMasks) {
  SimdCase iota{"iota", "n0=2 n3=32 d0=64 d3=2 split=4", "imm0=0.5 imm1=2"};
  CorsairProgram floats(simdText(iota));
  floats.expectRun();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(floats.get<float>("y")[i], 0.5f + 2 * static_cast<float>(i % 32));
  SimdCase mask{"causal_mask", "n2=8 n3=8 d2=16 d3=2 a2=16 a3=2 split=3", "imm0=-65504 index=2"};
  std::vector<float> a = halfNoise(21, 64);
  CorsairProgram causal(simdText(mask));
  causal.set("a", a);
  causal.expectRun();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(causal.get<float>("y")[i], i % 8 <= i / 8 + 2 ? a[i] : -65504.0f);
}
