//===- Design.h - the one design that products are computed by --*- C++ -*-===//
//
// c = a * b on one core: shim -> memory tile -> core and back. Tiles of a (64 x 32) and b (32 x 64), bf16, and of c (64
// x 64), f32, have two buffers in the memory tile and two in the core. The memory tile's BDs put operands into the
// order of matrix steps and take results out of it. Only the shim's BDs and a word of core memory change from product
// to product.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/aie/Image.h"

namespace dmxc::aie {

namespace hw = dmx::aie;

inline constexpr int64_t kTileM = 64, kTileK = 32, kTileN = 64;
/// The core has two buffers for operands and takes tiles along k in pairs.
inline constexpr int64_t kPairK = 2 * kTileK;

/// a: m x k, b: k x n.
struct Sizes {
  int64_t m = 0, k = 0, n = 0;
  int64_t paddedM() const { return (m + kTileM - 1) / kTileM * kTileM; }
  int64_t paddedK() const { return (k + kPairK - 1) / kPairK * kPairK; }
  int64_t paddedN() const { return (n + kTileN - 1) / kTileN * kTileN; }
  int64_t results() const { return paddedM() / kTileM * (paddedN() / kTileN); }
};
/// nullopt where the design holds the product, else a clause that says why not.
std::optional<std::string> refuses(const hw::Machine &machine, const Sizes &sizes);

/// What is configured before the first product. An error is ours.
hw::Overlay overlay(const hw::Machine &machine, std::string &error);
/// A product that `refuses` accepts, of the image's overlay 0. Its arguments are a, b (b, a where `swapped`) and c.
hw::KernelCode product(const hw::Machine &machine, std::string name, const Sizes &sizes, bool swapped,
                       std::string &error);

} // namespace dmxc::aie
