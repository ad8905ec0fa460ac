//===- ConvTest.cpp - convolutions on the array are those of the rule -----===//
#include "RunProduct.h"

#include "dmxc/Support/Tensor.h"
#include "targets/aie/Kernel.h"
#include "targets/aie/Tilings.h"
#include "tests/Sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

using namespace aietest;
using dmxc::aie::ImageWalk;
using dmxc::aie::Mapping;
using dmxc::aie::Part;

namespace {

enum class Kind : uint8_t { F32, I32, I8, Ui8 }; ///< of the image; weights of bytes are i8

struct Conv {
  int64_t images, channels, height, width, outputs, kernelHeight, kernelWidth, strideHeight, strideWidth;
  int64_t top, left, bottom, right; ///< zeros around the image
  bool bias = false, relu = false;
  Kind kind = Kind::F32;
  bool flat = false;      ///< of one dim
  bool subtracts = false; ///< the bias
  Herd herd = {4, 4};
  int64_t pixels = 0; ///< 0: as the target chooses

  int64_t outHeight() const { return (height + top + bottom - kernelHeight) / strideHeight + 1; }
  int64_t outWidth() const { return (width + left + right - kernelWidth) / strideWidth + 1; }
  std::string text() const;
};

std::string Conv::text() const {
  std::string all;
  for (int64_t number : {images, channels, height, width, outputs, kernelHeight, kernelWidth, strideHeight, strideWidth,
                         top, left, bottom, right, herd.rows, herd.columns, pixels})
    all += std::to_string(number) + " ";
  return all + (bias ? "bias " : "") + (relu ? "relu " : "") + (flat ? "flat " : "") + (subtracts ? "minus " : "") +
         "kind " + std::to_string(static_cast<int>(kind));
}

/// The convolution as DMIR has it, in a module of its own.
dmxc::dmir::ConvOp convIn(mlir::ModuleOp module, const Conv &conv, mlir::Type image, mlir::Type weights,
                          mlir::Type wide) {
  mlir::OpBuilder b = mlir::OpBuilder::atBlockEnd(module.getBody());
  auto tensor = [&](llvm::SmallVector<int64_t> shape, mlir::Type element) {
    if (conv.flat)
      shape.erase(shape.end() - 2);
    return mlir::RankedTensorType::get(shape, element);
  };
  auto pair = [&](int64_t down, int64_t across) {
    return conv.flat ? llvm::SmallVector<int64_t>{across} : llvm::SmallVector<int64_t>{down, across};
  };
  mlir::Type x = tensor({conv.images, conv.channels, conv.height, conv.width}, image),
             w = tensor({conv.outputs, conv.channels, conv.kernelHeight, conv.kernelWidth}, weights),
             y = tensor({conv.images, conv.outputs, conv.outHeight(), conv.outWidth()}, wide);
  auto function = mlir::func::FuncOp::create(b, module.getLoc(), "main", b.getFunctionType({x, w}, {y}));
  mlir::Block *body = function.addEntryBlock();
  b.setInsertionPointToEnd(body);
  return dmxc::dmir::ConvOp::create(b, module.getLoc(), y, body->getArgument(0), body->getArgument(1),
                                    pair(conv.strideHeight, conv.strideWidth), pair(1, 1), pair(conv.top, conv.left),
                                    pair(conv.bottom, conv.right), /*groups=*/1, /*dims=*/{});
}

Mapping mappingOf(const Conv &conv) {
  mlir::Builder b(&context());
  bool floats = conv.kind == Kind::F32, bytes = conv.kind == Kind::I8 || conv.kind == Kind::Ui8;
  mlir::Type wide = floats ? mlir::Type(b.getF32Type()) : mlir::Type(b.getI32Type());
  mlir::Type weights = bytes ? mlir::Type(b.getI8Type()) : wide;
  mlir::Type image = conv.kind == Kind::Ui8 ? mlir::Type(b.getIntegerType(8, /*isSigned=*/false)) : weights;
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getUnknownLoc());
  dmxc::dmir::ConvOp op = convIn(*module, conv, image, weights, wide);
  Mapping out(dmxc::kernels::Contraction::ofWhole(op), *dmxc::aie::numbersOf(image, weights, wide));
  out.relu = conv.relu;
  out.operands = {{Part::A, op.getInput().getType()}, {Part::B, op.getWeights().getType(), true}};
  if (conv.bias)
    out.operands.push_back({Part::Bias,
                            mlir::RankedTensorType::get(conv.flat ? llvm::SmallVector<int64_t>{conv.outputs, 1}
                                                                  : llvm::SmallVector<int64_t>{conv.outputs, 1, 1},
                                                        wide),
                            true, conv.subtracts});
  out.operands.push_back({Part::C, op.getResult().getType()});
  dmxc::aie::Tiling tiling = out.tiling();
  tiling.herdRows = conv.herd.rows;
  tiling.herdColumns = conv.herd.columns;
  tiling.pixels = std::max<int64_t>(conv.pixels, 1);
  out.setTiling(tiling);
  if (conv.pixels)
    return out;
  return *dmxc::aie::Tilings(*hw::machineOf("npu1"), conv.herd, out).choose(&context(), {});
}

/// Words of 4 bytes; bytes are widened by their sign.
struct Tensors {
  std::vector<uint32_t> image, weights, bias;
};

Tensors randomTensors(const Conv &conv, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Tensors out;
  out.image.resize(static_cast<size_t>(conv.images * conv.channels * conv.height * conv.width));
  out.weights.resize(static_cast<size_t>(conv.outputs * conv.channels * conv.kernelHeight * conv.kernelWidth));
  out.bias.resize(conv.bias ? static_cast<size_t>(conv.outputs) : 0);
  bool bytes = conv.kind == Kind::I8 || conv.kind == Kind::Ui8;
  for (std::vector<uint32_t> *tensor : {&out.image, &out.weights, &out.bias})
    for (uint32_t &value : *tensor) {
      value = static_cast<uint32_t>(random());
      if (conv.kind == Kind::F32)
        value = std::bit_cast<uint32_t>(normal(random));
      else if (bytes && tensor != &out.bias)
        value = conv.kind == Kind::Ui8 && tensor == &out.image ? value & 0xff
                                                               : static_cast<uint32_t>(int32_t(int8_t(value)));
    }
  return out;
}

/// A sum of the rule that NUMERICS.md states.
class Sum {
public:
  explicit Sum(bool integers) : integers(integers) {}
  void multiply(uint32_t a, uint32_t b) {
    whole += a * b;
    volatile float product = rounded(std::bit_cast<float>(a)) * rounded(std::bit_cast<float>(b));
    sum += integers ? 0 : product;
  }
  uint32_t end(uint32_t bias, bool minus, bool relu) const {
    uint32_t all = minus ? whole - bias : whole + bias;
    float row = std::bit_cast<float>(bias), real = minus ? sum - row : sum + row;
    if (integers)
      return relu && all >> 31 ? 0 : all;
    return std::bit_cast<uint32_t>(relu && real < 0 ? 0.0f : real);
  }

private:
  bool integers;
  uint32_t whole = 0;
  float sum = 0;
};

/// Windows as they are written down: rows of the kernel that a stride takes together, then columns, then channels.
std::vector<uint32_t> byTheRule(const Conv &conv, const Tensors &of) {
  std::vector<uint32_t> out;
  auto at = [](int64_t number) { return static_cast<size_t>(number); };
  for (int64_t image = 0; image < conv.images; ++image)
    for (int64_t output = 0; output < conv.outputs; ++output)
      for (int64_t row = 0; row < conv.outHeight(); ++row)
        for (int64_t column = 0; column < conv.outWidth(); ++column) {
          Sum sum(conv.kind != Kind::F32);
          for (int64_t part = 0; part < conv.strideHeight; ++part)
            for (int64_t i = part; i < conv.kernelHeight; i += conv.strideHeight)
              for (int64_t j = 0; j < conv.kernelWidth; ++j)
                for (int64_t c = 0; c < conv.channels; ++c) {
                  int64_t y = row * conv.strideHeight + i - conv.top, x = column * conv.strideWidth + j - conv.left;
                  if (y < 0 || y >= conv.height || x < 0 || x >= conv.width)
                    continue;
                  sum.multiply(
                      of.image[at(((image * conv.channels + c) * conv.height + y) * conv.width + x)],
                      of.weights[at(((output * conv.channels + c) * conv.kernelHeight + i) * conv.kernelWidth + j)]);
                }
          out.push_back(sum.end(conv.bias ? of.bias[at(output)] : 0, conv.subtracts, conv.relu));
        }
  return out;
}

/// As the host has a tensor.
std::vector<uint32_t> stored(mlir::RankedTensorType type, const std::vector<uint32_t> &values) {
  if (!type.getElementType().isInteger(8))
    return values;
  std::vector<uint32_t> words((values.size() + 3) / 4);
  for (size_t i = 0; i < values.size(); ++i)
    words[i / 4] |= (values[i] & 0xff) << i % 4 * 8;
  return words;
}

/// As the bundle has it.
std::vector<uint32_t> packed(const Mapping &mapping, const dmxc::aie::Operand &operand,
                             const std::vector<uint32_t> &values) {
  mlir::Builder b(&context());
  mlir::DictionaryAttr form = dmxc::aie::formOf(b, mapping, operand);
  std::vector<uint32_t> out(static_cast<size_t>(form.getAs<mlir::IntegerAttr>("size").getInt()) / 4);
  mlir::Type element = operand.tensor.getElementType();
  auto type = element.isF32() ? dmxc::DType::F32 : element.isInteger(8) ? dmxc::DType::I8 : dmxc::DType::I32;
  llvm::ArrayRef<int64_t> shape = operand.tensor.getShape();
  dmxc::Tensor constant(type, {shape.begin(), shape.end()});
  std::vector<uint32_t> words = stored(operand.tensor, values);
  std::memcpy(constant.mutableData(), words.data(), constant.byteSize());
  dmxc::Status status = dmxc::aie::pack(form, constant, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return out;
}

std::vector<std::vector<uint32_t>> inputsOf(const Mapping &mapping, const Tensors &of) {
  std::vector<std::vector<uint32_t>> inputs = {stored(mapping.operands[0].tensor, of.image),
                                               packed(mapping, mapping.operands[1], of.weights)};
  if (mapping.has(Part::Bias))
    inputs.push_back(packed(mapping, mapping.operands[2], of.bias));
  return inputs;
}

void expectByTheRule(const Conv &conv, uint64_t seed, const std::vector<std::string> &options = {}) {
  SCOPED_TRACE(conv.text());
  Mapping mapping = mappingOf(conv);
  ASSERT_EQ(dmxc::aie::refuses(*hw::machineOf("npu1"), mapping).value_or(""), "");
  Tensors of = randomTensors(conv, seed);
  std::vector<uint32_t> expected = byTheRule(conv, of);
  Outcome outcome = run(hw::write(imageOf(mapping)), inputsOf(mapping, of), expected.size(), options);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.c, expected);
}

Conv randomConv(std::mt19937_64 &random) {
  auto from = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  Conv conv{};
  conv.images = random() % 4 ? 1 : from(2, 3);
  conv.channels = random() % 3 ? from(1, 8) : from(9, 70);
  conv.outputs = random() % 3 ? from(1, 40) : from(41, 150);
  conv.flat = random() % 4 == 0;
  conv.kernelHeight = conv.flat ? 1 : from(1, 7);
  conv.kernelWidth = from(1, 7);
  conv.height = conv.flat ? 1 : from(conv.kernelHeight, 20);
  conv.width = from(conv.kernelWidth, conv.flat ? 300 : 24);
  conv.strideHeight = conv.flat ? 1 : from(1, 3);
  conv.strideWidth = from(1, 3);
  for (int64_t *padding : {&conv.top, &conv.bottom})
    *padding = conv.flat ? 0 : from(0, conv.kernelHeight);
  for (int64_t *padding : {&conv.left, &conv.right})
    *padding = from(0, conv.kernelWidth);
  conv.bias = random() % 2;
  conv.relu = random() % 2;
  conv.kind = static_cast<Kind>(random() % 2 ? 0 : 1 + random() % 3);
  conv.subtracts = conv.bias && random() % 3 == 0;
  return conv;
}

} // namespace

/// 40, on the whole array or a column of it; a plain run takes some.
TEST(AieConv, RandomConvolutions) {
  std::mt19937_64 random(21);
  dmxc::sampling::Sample sample(5);
  for (int i = 0; i < 40; ++i) {
    Conv conv = randomConv(random);
    conv.herd = i % 2 ? Herd{4, 1} : Herd{4, 4};
    uint64_t seed = random();
    if (sample.takesNext())
      expectByTheRule(conv, seed);
  }
}

TEST(AieConv, EdgesOfWindows) {
  const Conv all[] = {
      {1, 3, 33, 31, 40, 7, 7, 2, 2, 3, 3, 3, 3, true, true}, // a first layer
      {1, 64, 9, 9, 32, 1, 1, 2, 2, 0, 0, 0, 0, true},        // a stride over its kernel
      {2, 3, 32, 32, 64, 8, 8, 8, 8, 0, 0, 0, 0},             // patches
      {1, 1, 4, 4, 1, 4, 4, 1, 1, 0, 0, 0, 0},                // one window
      {1, 32, 6, 7, 5, 3, 3, 1, 1, 0, 2, 1, 0, true},         // a tile of zeros, uneven padding
      {3, 2, 5, 5, 7, 3, 3, 2, 1, 3, 0, 3, 5},                // windows of padding alone
      {1, 1, 1, 400, 16, 1, 40, 1, 16, 0, 12, 0, 12, true, true, Kind::F32, /*flat=*/true}, // sound
      {1, 5, 11, 10, 3, 5, 3, 4, 1, 1, 1, 1, 1, false, true, Kind::I32},
      {1, 3, 17, 19, 30, 3, 3, 2, 1, 1, 1, 1, 1, true, true, Kind::Ui8, false, /*subtracts=*/true},
      {2, 3, 9, 70, 5, 3, 72, 1, 1, 1, 1, 1, 1, true}, // a window as wide as its image
      {2, 70, 6, 5, 20, 2, 3, 1, 1, 1, 1, 0, 2, true, false, Kind::I8},
  };
  for (Conv conv : all)
    for (Herd herd : {Herd{1, 1}, Herd{4, 1}, Herd{4, 4}}) {
      conv.herd = herd;
      expectByTheRule(conv, 1);
    }
}

/// What a row of the product has is a matter of clocks alone, and so are delays.
TEST(AieConv, PixelsOfARowAndDelaysChangeNoBit) {
  Conv conv{1, 3, 14, 17, 10, 3, 4, 2, 1, 1, 2, 1, 1, true, true};
  for (int64_t pixels : {1, 2, 3, 5, 17}) {
    conv.pixels = pixels;
    expectByTheRule(conv, 4, {"aie.skew_seed=" + std::to_string(pixels)});
  }
}

TEST(AieConv, TextsAreReadBack) {
  for (const Conv &conv :
       {Conv{1, 3, 20, 20, 24, 5, 5, 2, 2, 1, 1, 2, 2, true, true}, Conv{2, 32, 9, 9, 70, 3, 3, 1, 1, 1, 1, 1, 1, true},
        Conv{1, 3, 9, 9, 20, 3, 3, 2, 2, 1, 1, 1, 1, true, true, Kind::Ui8}}) {
    Mapping mapping = mappingOf(conv);
    std::vector<std::byte> direct = hw::write(imageOf(mapping));
    for (Stage stage : {Stage::Program, Stage::Placed, Stage::Control}) {
      std::string error;
      hw::Image image = imageOf(textOf(mapping, stage), error);
      ASSERT_EQ(error, "");
      EXPECT_EQ(hw::write(image), direct);
    }
  }
}

/// A walk by a step that is wrong by a word gives other numbers, wherever the step is.
TEST(AieConv, WrongStepsAreFound) {
  Conv conv{1, 4, 12, 12, 8, 3, 3, 1, 1, 1, 1, 1, 1};
  conv.pixels = 1;
  Mapping mapping = mappingOf(conv);
  Tensors of = randomTensors(conv, 2);
  std::vector<uint32_t> expected = byTheRule(conv, of);
  std::vector<std::vector<uint32_t>> inputs = inputsOf(mapping, of);
  std::string text = textOf(mapping, Stage::Placed);
  std::string walk = "[1, 3, 64, 32][0, 52, 4, 1]"; // rows of the kernel, pixels
  size_t found = 0;
  for (const char *wrong : {"[1, 3, 64, 32][0, 50, 4, 1]", "[1, 3, 64, 32][0, 54, 4, 1]", "[1, 3, 64, 32][0, 52, 2, 1]",
                            "[1, 3, 64, 32][0, 52, 6, 1]"}) {
    std::string changed = text, error;
    size_t at = changed.find(walk);
    ASSERT_NE(at, text.npos) << text.substr(text.find("aie.runtime_sequence"), 3000);
    changed.replace(at, walk.size(), wrong);
    hw::Image image = imageOf(changed, error);
    ASSERT_EQ(error, "");
    Outcome outcome = run(hw::write(image), inputs, expected.size());
    EXPECT_EQ(outcome.error, "");
    EXPECT_NE(outcome.c, expected) << wrong;
    ++found;
  }
  EXPECT_EQ(found, 4u);
  EXPECT_EQ(run(hw::write(imageOf(mapping)), inputs, expected.size()).c, expected);
}

TEST(AieConv, WhatTheArrayDoesNotHoldIsSaid) {
  auto refusal = [](const Conv &conv) {
    return dmxc::aie::refuses(*hw::machineOf("npu1"), mappingOf(conv)).value_or("");
  };
  EXPECT_EQ(refusal({1, 3, 224, 224, 64, 11, 11, 4, 4, 2, 2, 2, 2}), "");
  const std::pair<Conv, const char *> cases[] = {
      {{1, 4, 70, 70, 8, 10, 3, 5, 1, 0, 0, 0, 0},
       "rows by a stride of 5 take 5 tasks for a block of results, the queue of a shim's channel holds 4"},
      {{1, 1, 100, 9, 8, 65, 3, 1, 1, 0, 0, 0, 0}, "the kernel has 65 rows for a task, a BD counts to 64"},
      {{1, 1024, 3, 4096, 8, 3, 3, 1, 1, 0, 0, 0, 0},
       "rows of the image are 2097152 words apart, a shim's BD steps over 1048576"},
      {{1, 40000, 3, 3, 8, 1, 1, 1, 1, 0, 0, 0, 0},
       "a row of the kernel has 1250 tiles, a dim of a shim's BD has 1023"},
      {{1, 4096, 1, 2, 8, 1, 1, 1, 16, 0, 0, 0, 15},
       "8192 numbers would be 16777216 in the array's DDR, where they may be 9437184"},
      {{1, 3, 4000, 4000, 512, 1, 1, 1, 1, 0, 0, 0, 0},
       "the product has 125000 blocks of 256 x 256, the array's control stream holds 4096"}};
  for (auto [conv, why] : cases) {
    conv.pixels = 1;
    EXPECT_EQ(refusal(conv), why) << conv.text();
  }
}
