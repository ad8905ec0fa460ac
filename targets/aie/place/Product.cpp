//===- Product.cpp - which products the array holds -----------------------===//
#include "Place.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace dmxc::aie {
const Numbers kBf16{"bf16", "matmul_bf16_f32", "zero_f32", "bias_f32", "relu_f32", 64, 32, 64, hw::kStepKBf16, 2};
const Numbers kI32{"i32", "matmul_i32_i32", "zero_i32", "bias_i32", "relu_i32", 32, 32, 32, hw::kStepKI32, 4};
} // namespace dmxc::aie

static constexpr int64_t kMostBlocks = 4096; ///< a few MB of control stream
static constexpr int64_t kMostBytes = int64_t(1) << 32;

const Numbers *aie::numbersOf(Type element) {
  return element.isF32() ? &kBf16 : element.isInteger(32) && !element.isUnsignedInteger() ? &kI32 : nullptr;
}

bool Product::hasBias() const {
  return llvm::any_of(operands, [](const Operand &operand) { return operand.part == Part::Bias; });
}

std::pair<int64_t, int64_t> Product::formOf(Part part) const {
  switch (part) {
  case Part::A:
    return {paddedM(), paddedK()};
  case Part::B:
    return {paddedK(), paddedN()};
  case Part::Bias:
    return {1, paddedN()};
  case Part::C:
    break;
  }
  return {paddedM(), paddedN()};
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Product &product) {
  constexpr int64_t most = int64_t(1) << 30; // far above, and no product of sizes overflows
  if (std::max({product.m, product.k, product.n}) > most)
    return "a dim of the product is above " + std::to_string(most);
  int64_t step = machine.tile(hw::TileKind::Shim).largestStep, m = product.paddedM(), k = product.paddedK(),
          n = product.paddedN(), bytes = product.numbers->bytes;
  std::string over = " words, a shim's BD steps over " + std::to_string(step);
  if (k * bytes / 4 > step)
    return "a row of the first matrix has " + std::to_string(k * bytes / 4) + over;
  if (product.numbers->k * n * bytes / 4 > step)
    return std::to_string(product.numbers->k) + " rows of the second matrix have " +
           std::to_string(product.numbers->k * n * bytes / 4) + over;
  if (product.blocks() > kMostBlocks)
    return "the product has " + std::to_string(product.blocks()) + " blocks of " + std::to_string(product.blockM()) +
           " x " + std::to_string(product.blockN()) + ", the array's control stream holds " +
           std::to_string(kMostBlocks);
  if (bytes * m * k > kMostBytes || bytes * k * n > kMostBytes || 4 * m * n > kMostBytes)
    return "a matrix takes more than 4 GiB of the array's DDR";
  return std::nullopt;
}
