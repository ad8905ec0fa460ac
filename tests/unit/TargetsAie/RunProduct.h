//===- RunProduct.h - a product on the device, and by the rule --*- C++ -*-===//
#pragma once

#include "targets/aie/place/Place.h"

#include <string>
#include <vector>

namespace aietest {

namespace hw = dmx::aie;
using dmxc::aie::Herd;

/// c = relu(a * b + bias): a is m x k, b is k x n; how many cores compute it.
struct Sizes {
  int64_t m, k, n;
};
struct Form {
  Herd herd = {1, 1};
  bool integers = false, bias = false, relu = false, swapped = false;
  bool packed = false; ///< b comes in its form
  const char *machine = "npu1";
};

/// Where types and texts are made.
mlir::MLIRContext &context();
/// To 8 significant bits, to even where two are as near.
float rounded(float value);
/// The product as the target places it, by the tiles of its numbers.
dmxc::aie::Mapping mappingOf(const Sizes &sizes, const Form &form = {});
/// Its text before, behind aie-place and behind aie-control.
enum class Stage : uint8_t { Program, Placed, Control };
std::string textOf(const Sizes &sizes, const Form &form, Stage stage);
std::string textOf(const dmxc::aie::Mapping &mapping, Stage stage, const char *machine = "npu1");
/// An image with one kernel, "product", by all stages.
hw::Image imageOf(const Sizes &sizes, const Form &form = {});
hw::Image imageOf(const dmxc::aie::Mapping &mapping, const char *machine = "npu1");
/// The same of a text of a device; or the first diagnostic.
hw::Image imageOf(const std::string &text, std::string &error);

/// Bits of f32 or i32.
struct Matrices {
  std::vector<uint32_t> a, b, bias;
};
Matrices randomMatrices(const Sizes &sizes, uint64_t seed, const Form &form = {});
/// The stated rule, computed otherwise: operands rounded to bf16 by their exponents, sums in f32 in ascending k; of
/// integers modulo 2^32.
std::vector<uint32_t> byTheRule(const Sizes &sizes, const Matrices &of, const Form &form = {});

struct Outcome {
  std::string error; ///< of loading, or the fault
  std::vector<uint32_t> c;
};
/// Loads the image's bytes and runs its first kernel as a session does. Options as --device-opt has them.
Outcome run(const std::vector<std::byte> &code, const Sizes &sizes, const Matrices &of, const Form &form = {},
            const std::vector<std::string> &options = {});
/// The same of inputs as the kernel has them, and a number of results; `operations`: that the model asks for.
Outcome run(const std::vector<std::byte> &code, std::vector<std::vector<uint32_t>> inputs, size_t results,
            const std::vector<std::string> &options = {}, uint64_t operations = 0);

} // namespace aietest
