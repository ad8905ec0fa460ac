//===- ProductTest.cpp - products through all stages, bit for bit ---------===//

#include "Device.h"
#include "Oracle.h"

using namespace dmxtest;

namespace {

/// The reference example's operands: those of the golden vector V17 in the first tile row and column.
struct Example {
  std::vector<float> a = goldenInput(1, 512 * 512, 512), w = goldenInput(7, 512 * 512, 512);

  Example() {
    std::vector<float> golden = goldenInput(2, 512 * 64, 64);
    for (size_t k = 0; k < 512; ++k)
      std::copy_n(golden.begin() + static_cast<long>(k * 64), 64, w.begin() + static_cast<long>(k * 512));
  }
  static const Example &get() {
    static const Example example;
    return example;
  }
  const std::vector<float> &expected() const {
    static const std::vector<float> result = expectedProduct(a, w, 512, 512, 512, 8);
    return result;
  }
};

std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (float value : values) {
    auto half = static_cast<_Float16>(value);
    bits.push_back(std::bit_cast<uint16_t>(half));
  }
  return bits;
}

std::vector<float> tileOf(const std::vector<float> &values, int64_t row, int64_t column) {
  std::vector<float> tile;
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j)
      tile.push_back(values[static_cast<size_t>((row * 64 + i) * 512 + column * 64 + j)]);
  return tile;
}

} // namespace

TEST(CorsairStages, TheReferenceExampleIsExactHoweverItIsSplit) {
  const Example &example = Example::get();
  std::string text = productText(512, 512, 512, example.w);
  const StageOptions cases[] = {{},          {"rows"},       {"columns", 4},      {"columns", 3},
                                {"rows", 6}, {"columns", 1}, {"auto", 8, 0, true}};
  for (const StageOptions &options : cases) {
    SCOPED_TRACE(options.split + ", " + std::to_string(options.quads) + " quads");
    auto device = makeDevice(encodeText(lowerToDlir(text, options)));
    ASSERT_TRUE(device);
    device->set("arg0", example.a);
    device->expectRun();
    std::vector<float> result = device->get<float>("result0");
    EXPECT_EQ(crcOf(halves(tileOf(result, 0, 0))), 0x60b8a470u) << "golden vector V17";
    EXPECT_TRUE(result == example.expected());
  }
}

TEST(CorsairStages, SampledTilesAreThoseOfTheSpecification) {
  const Example &example = Example::get();
  for (auto [row, column] : {std::pair(0, 0), std::pair(5, 3)}) {
    auto tile = specifiedTile(example.a, example.w, 512, 512, row, column);
    if (!tile)
      GTEST_SKIP() << "the specification's executable form is not here";
    EXPECT_EQ(halves(tileOf(example.expected(), row, column)), *tile);
  }
}

TEST(CorsairStages, ManyShapesAreExact) {
  struct Case {
    int64_t m, k, n, cores;
    StageOptions options;
  };
  const Case cases[] = {
      {64, 64, 64, 0, {}},                 // one tile: num_imc 1
      {1, 512, 1024, 0, {}},               // one row: weights are streamed
      {7, 100, 130, 0, {}},                // nothing is a multiple of 64
      {200, 1024, 320, 0, {"rows", 3}},    // 16 cores: IB has no second half; shares differ
      {128, 1472, 192, 0, {"columns", 2}}, // two chunks along k
      {256, 512, 256, 4, {"columns", 4}},  // chunks of four cores
      {1, 2048, 384, 8, {"columns", 2}},   // one row, four chunks
      {704, 192, 320, 0, {"columns", 5}},  // eleven bands
      {64, 512, 2048, 0, {"columns", 1}},  // several rounds of columns
      {2048, 256, 64, 0, {"rows", 32}},    // the whole card
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(std::to_string(c.m) + " x " + std::to_string(c.k) + " x " + std::to_string(c.n));
    std::vector<float> a = noise(3, static_cast<size_t>(c.m * c.k)), w = noise(4, static_cast<size_t>(c.k * c.n));
    StageOptions options = c.options;
    options.cores = c.cores;
    auto device = makeDevice(encodeText(lowerToDlir(productText(c.m, c.k, c.n, w), options)));
    ASSERT_TRUE(device);
    device->set("arg0", a);
    device->expectRun();
    EXPECT_TRUE(device->get<float>("result0") == expectedProduct(a, w, c.m, c.k, c.n, c.cores ? c.cores : 16));
  }
}

TEST(CorsairStages, SkewsAndThreadsChangeNothing) {
  const Example &example = Example::get();
  Encoded encoded = encodeText(lowerToDlir(productText(512, 512, 512, example.w), {}));
  for (int seed = 0; seed < 100; ++seed) {
    auto device = makeDevice(encoded, {"corsair.skew_seed=" + std::to_string(seed)}, seed % 2 + 1);
    ASSERT_TRUE(device);
    device->set("arg0", example.a);
    device->expectRun();
    ASSERT_TRUE(device->get<float>("result0") == example.expected()) << "seed " << seed;
  }
}

TEST(CorsairStages, WithoutRemovedConfigsTheBytesAreTheSame) {
  const Example &example = Example::get();
  std::string dlir = lowerToDlir(productText(512, 512, 512, example.w), {});
  Encoded lean = encodeText(dlir), full = encodeText(dlir, /*removeConfigs=*/false);
  auto count = [](const std::string &text) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find("CONFIG_", at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  EXPECT_LT(count(lean.assembly), count(full.assembly));
  for (const Encoded *encoded : {&lean, &full}) {
    auto device = makeDevice(*encoded);
    ASSERT_TRUE(device);
    device->set("arg0", example.a);
    device->expectRun();
    EXPECT_TRUE(device->get<float>("result0") == example.expected());
  }
}

TEST(CorsairStages, WeightsThatAreAnArgumentCome) {
  std::vector<float> a = noise(5, 128 * 192), w = noise(6, 192 * 320);
  const char *text = "func.func @main(%x: tensor<128x192xf32>, %w: tensor<192x320xf32>) -> tensor<128x320xf32> {\n"
                     "  %y = dmir.matmul %x, %w : (tensor<128x192xf32>, tensor<192x320xf32>) -> tensor<128x320xf32>\n"
                     "  return %y : tensor<128x320xf32>\n}\n";
  for (const char *split : {"rows", "columns"}) {
    auto device = makeDevice(encodeText(lowerToDlir(text, {split, 5})));
    ASSERT_TRUE(device);
    device->set("arg0", a);
    device->set("arg1", w);
    device->expectRun();
    EXPECT_TRUE(device->get<float>("result0") == expectedProduct(a, w, 128, 192, 320, 16)) << split;
  }
}

TEST(CorsairStages, ABiasIsAddedToTheSums) {
  std::vector<float> a = noise(5, 128 * 512), w = noise(6, 512 * 320), bias = noise(7, 320);
  std::string text = productText(128, 512, 320, w), hex = productText(1, 1, 320, bias);
  hex = hex.substr(hex.find("dense<"), hex.find(" : tensor") - hex.find("dense<"));
  text.replace(text.find("  return %y"), 11,
               "  %b = dmir.constant " + hex +
                   " : tensor<320xf32>\n  %z = dmir.add %y, %b : (tensor<128x320xf32>, "
                   "tensor<320xf32>) -> tensor<128x320xf32>\n  return %z");
  std::vector<float> expected = expectedProduct(a, w, 128, 512, 320, 8, bias);
  for (const StageOptions &options : {StageOptions{"columns", 5}, {"columns", 3}, {"columns", 1}, {"rows", 2}}) {
    SCOPED_TRACE(options.split + ", " + std::to_string(options.quads) + " quads");
    auto device = makeDevice(encodeText(lowerToDlir(text, options)));
    ASSERT_TRUE(device);
    device->set("arg0", a);
    device->expectRun();
    EXPECT_TRUE(device->get<float>("result0") == expected);
  }
}

TEST(CorsairStages, MatricesOfABatchGoToQuads) {
  const int64_t batch = 6, m = 64, k = 128, n = 128;
  std::vector<float> a = noise(8, static_cast<size_t>(batch * m * k)), w = noise(9, static_cast<size_t>(batch * k * n));
  const char *text =
      "func.func @main(%x: tensor<6x64x128xf32>, %w: tensor<6x128x128xf32>) -> tensor<6x64x128xf32> {\n"
      "  %y = dmir.matmul %x, %w : (tensor<6x64x128xf32>, tensor<6x128x128xf32>) -> tensor<6x64x128xf32>\n"
      "  return %y : tensor<6x64x128xf32>\n}\n";
  std::vector<float> expected;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<float> part = expectedProduct({a.begin() + b * m * k, a.begin() + (b + 1) * m * k},
                                              {w.begin() + b * k * n, w.begin() + (b + 1) * k * n}, m, k, n, 16);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (int64_t quads : {6, 2, 4}) {
    auto device = makeDevice(encodeText(lowerToDlir(text, {"batch", quads})));
    ASSERT_TRUE(device);
    device->set("arg0", a);
    device->set("arg1", w);
    device->expectRun();
    EXPECT_TRUE(device->get<float>("result0") == expected) << quads << " quads";
  }
}
