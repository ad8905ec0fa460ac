//===- BlockFp.h - tensors of block floating point --------------*- C++ -*-===//
//
// What the type !dmir.block_fp means in bytes. The formats themselves and their arithmetic are in schemas/blockfp,
// which compiler, run-time boundary and simulators share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "schemas/blockfp/BlockFloat.h"

namespace dmxc::dmir {

/// The block_fp element type of a tensor, or null.
BlockFpType blockFpOf(mlir::Type tensor);

/// A tensor of blocks as the matrices of its last two dimensions, one after the other.
struct BlockLayout {
  dmx::blockfp::TensorLayout matrix;
  int64_t matrices = 1;

  int64_t bytes() const { return matrices * matrix.bytes(); }
};

/// The wire format of a static tensor of rank 2 or more whose element type has blocks. On failure nothing, and in
/// `error` a sentence without a full stop that names the type.
std::optional<BlockLayout> blockLayoutOf(mlir::RankedTensorType type, std::string &error);

/// Values of a float type in the host form (ConstantData.h) of a static block_fp type, rounded to nearest even; f64
/// goes through f32. Fails where the format has no code for a value.
Result<Tensor> quantize(const Tensor &values, mlir::RankedTensorType type);

/// The dimension along which the blocks of a tensor run; -1 where there are none.
int64_t blockedDim(mlir::RankedTensorType type);

} // namespace dmxc::dmir
