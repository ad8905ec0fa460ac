//===- Epilogue.h - what cores do behind a product --------------*- C++ -*-===//
//
// A sum with a row, of floats one with a tensor, a relu, then up to three steps (schemas/aie/Kernels.h). Of bf16 what
// each op makes is rounded, as its type says: between two steps that is one step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/aie/Kernels.h"
#include "targets/common/roots/Contraction.h"

#include <vector>

namespace dmxc::aie {

namespace hw = dmx::aie;

struct Epilogue {
  mlir::Value bias;
  bool negated = false; ///< the bias is subtracted
  mlir::Value residual; ///< a tensor of the product's shape that is added
  bool relu = false;
  std::vector<hw::Step> steps;
  bool casts = false; ///< sums of f32 become bf16 or f16 at the end
};

/// What an op does to each number of f32, as a step of the cores; nullopt where it is none.
std::optional<hw::Step> stepOf(const kernels::Follower &follower);
/// nullopt where something in the chain is not what cores do, or not in that order.
std::optional<Epilogue> epilogueOf(const kernels::Chain &chain);
/// The chain that ends with a value, of what cores compute; nullopt where there is none.
std::optional<kernels::Chain> computedTo(mlir::Value value);
/// Whether an op may be computed by the cores behind a product, and what they do behind that, whose value is `result`.
bool isEpilogue(mlir::Operation *op, mlir::Value result);

} // namespace dmxc::aie
