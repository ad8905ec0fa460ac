//===- RunProduct.h - a product on the device, and by the rule --*- C++ -*-===//
#pragma once

#include "targets/aie/Design.h"

#include <string>
#include <vector>

namespace aietest {

namespace hw = dmx::aie;
using dmxc::aie::Sizes;

/// An image with one kernel, "product".
hw::Image imageOf(const Sizes &sizes, bool swapped = false, const char *machine = "npu1");

struct Matrices {
  std::vector<float> a, b;
};
Matrices randomMatrices(const Sizes &sizes, uint64_t seed);
/// The stated rule, computed otherwise: operands rounded to bf16 by their exponents, sums in f32 in ascending k.
std::vector<float> byTheRule(const Sizes &sizes, const Matrices &of);

struct Outcome {
  std::string error; ///< of loading, or the fault
  std::vector<float> c;
};
/// Loads the image's bytes and runs its first kernel as a session does. Options as --device-opt has them.
Outcome run(const std::vector<std::byte> &code, const Sizes &sizes, const Matrices &of, bool swapped = false,
            const std::vector<std::string> &options = {});

} // namespace aietest
