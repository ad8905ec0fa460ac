//===- Epilogue.h - what cores do behind a product --------------*- C++ -*-===//
//
// A sum with a row, of floats one with a tensor, a relu, then a few steps (schemas/aie/Kernels.h) of floats, which sums
// of i32 become by a cast, and behind them a narrower type. A value of bytes may go on as the f32 that it stands for,
// where bytes come of that again. Of bf16 what each op makes is rounded, as its type says: between two steps that is
// one step.
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
  bool floats = false;    ///< sums of i32 become f32
  mlir::Value scales;     ///< a row that these are multiplied by
  mlir::Value bytes;      ///< a tensor of the product's shape that a step adds, as what its bytes stand for,
  int64_t opsOfBytes = 0; ///< by so many ops
  std::vector<hw::Step> steps;
  bool casts = false; ///< sums of f32 become bf16 or f16 at the end
};

/// What an op does to each number of f32, as a step of the cores; nullopt where it is none.
std::optional<hw::Step> stepOf(const kernels::Follower &follower);
/// nullopt where something in the chain is not what cores do, or not in that order. Of a chain that goes on there may
/// be more steps than cores take, of which one will be made.
std::optional<Epilogue> epilogueOf(const kernels::Chain &chain);
/// Whether an op is one of those by which a tensor of bytes becomes what a product's cores add to it.
bool isAddedByCores(mlir::Operation *op);
/// The chain that ends with a value, of what cores compute; nullopt where there is none.
std::optional<kernels::Chain> computedTo(mlir::Value value);
/// Whether results may be what a chain ends with: numbers of sums, or what they were narrowed to.
bool isResult(const kernels::Chain &chain);
/// Whether it ends with one, or what follows it alone goes on to one.
bool reachesResult(kernels::Chain chain);
/// Whether an op may be computed by the cores behind a product, and what they do behind that, whose value is `result`:
/// that ends with a result, or can go on to one.
bool isEpilogue(mlir::Operation *op, mlir::Value result);

} // namespace dmxc::aie
