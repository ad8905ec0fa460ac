//===- Operands.h - where products read and write ---------------*- C++ -*-===//
#pragma once

#include "../decide/Spread.h"
#include "DeviceTensor.h"
#include "TileOrder.h"

#include "schemas/corsair/simd/SimdJob.h"

namespace dmxc::corsair {

/// The image of a convolution, in tiles of 64 pixels by 64 channels.
struct ConvSource {
  hw::Window window;
  int64_t blocks; ///< of 64 channels
  int64_t pixels; ///< of the output
};

/// A matrix of f16 that an epilogue reads beside the sums, where it lies for the result's first element; strides in
/// bytes.
struct Beside {
  Address at;
  int64_t row = 0, column = 0, slice = 0;
};
/// A function of tiles in the vector device's memory, each of which has a place there.
struct EpilogueStep {
  hw::SimdFunction function;
  float imm0 = 0, imm1 = 0;
  llvm::SmallVector<int, 3> sources; ///< places; below 0 -1 - the number of what lies beside
  int to = -1;                       ///< a place; -1: the result
};
/// What sums become before they are stored, elementwise; they are at place 0 in the beginning, as f16.
struct Epilogue {
  std::vector<EpilogueStep> steps;
  int places = 1;
  std::string node; ///< as which it is reported
};
/// Which place each value of an epilogue has, the sum and then what each of the functions makes, the last one as if it
/// needed one: `inputs` of each are functions before by number, -1 for the sum, below -1 for others.
llvm::SmallVector<int> placesOf(llvm::ArrayRef<llvm::SmallVector<int, 3>> inputs);
/// How many tiles the vector device's memory has places for, in each of two halves.
int64_t placesOfTiles(const hw::Machine &machine);

/// Where one product reads and writes; strides in bytes.
struct MatmulOperands {
  Address a, b, out, st;                  ///< `st`: B's tiles
  int64_t aRow = 0, aColumn = 0;          ///< along M and along K
  bool aTiles = false;                    ///< A is tiles; its rows begin at one
  hw::ElemKind aKind = hw::ElemKind::F16; ///< else f16 or f32
  int64_t bRow = 0, bColumn = 0;          ///< along K and along N
  int64_t outRow = 0, outBytes = 2;       ///< of an element: f16, or f32 for sums that go on
  /// Batch sharing: from one slice's product to the next.
  int64_t aSlice = 0, bSlice = 0, outSlice = 0;
  Address bias; ///< BFP32_1 of each column, added to the sums; no buffer: none
  /// In DDR, where A's rows come from and the result's go to while others are computed; no buffer: they do not. Rows
  /// follow each other without gaps, there and in GM.
  Address arrives, leaves;
  /// A convolution: `a` is its image and `pixel` the first output pixel.
  const ConvSource *conv = nullptr;
  Address pixel;
  llvm::SmallVector<Beside, 1> beside;
  llvm::ArrayRef<Epilogue> epilogues; ///< by the terms of a tile
  const Epilogue *epilogue = nullptr; ///< of the tiles that are computed
};

/// A product, or a batch of them, and where they lie; not spread yet.
struct PlacedProduct {
  /// `b`: null where it is packed.
  PlacedProduct(const DeviceTensor &a, const DeviceTensor *b, const DeviceTensor &out,
                llvm::ArrayRef<DeviceTensor> beside = {});
  /// Makes batch dims rows where B stays and rows go on.
  void joinBatch();

  Spread product;
  MatmulOperands operands;
  llvm::SmallVector<BatchDim> batch;
};

/// The arrays' memories as buffers.
struct ArrayUnits {
  int ib, wb, ob, simd;
};

/// Which of the arrays' memories is too small for any product: a clause with its key in the description, its size and
/// what is needed; nullopt where none is.
std::optional<std::string> lacksForProducts(const hw::Machine &machine);
/// Writes the tiles of one product (or of one for each slice) in an order. B's tiles are in ST.
void emitTiles(Program &program, const ArrayUnits &units, const Spread &plan, const TileOrder &order,
               const MatmulOperands &operands);
/// A box of a product's tiles, of the plan's size, from the operands' first one on.
struct PlacedBox {
  TileOrder::Box box;
  Spread plan;
  const Segments *segments;
  MatmulOperands operands;
};
/// One, or several of the same rows beside each other, which are computed of each band of rows. `stays`: weights do,
/// while rows pass.
void emitBoxes(Program &program, const ArrayUnits &units, llvm::ArrayRef<PlacedBox> boxes, bool stays);
/// All of a product, in the plan's order.
void emitProduct(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands);
/// The same of 64 rows, of the first so many rounds of columns; the numbers are of no buffer.
void emitRounds(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands,
                const Address &rounds);
/// The same of one round of columns, of the first so many segments along K.
void emitSegments(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands,
                  const Address &segments);
/// Quantises B, which lies in GM, to tiles in ST.
void emitPack(Program &program, const Spread &plan, const MatmulOperands &operands);

/// One step of a convolution after the other: how many, and what they move on by.
struct ImageWalk {
  int64_t count, from, to, weights, bias;
};
/// Where a step takes its image from and puts its result.
struct ImageStep {
  Address from, to, weights, bias;
  ImageStep plusLoop(int depth, const ImageWalk &walk, int64_t times = 1) const {
    return {from.plusLoop(depth, times * walk.from), to.plusLoop(depth, times * walk.to),
            weights.plusLoop(depth, times * walk.weights), bias.plusLoop(depth, times * walk.bias)};
  }
  ImageStep plus(const ImageWalk &walk, int64_t times = 1) const {
    return {from.plus(times * walk.from), to.plus(times * walk.to), weights.plus(times * walk.weights),
            bias.plus(times * walk.bias)};
  }
};

/// All of a convolution's tiles, in the order of its plan.
inline TileOrder wholeOrder(const Spread &plan, const MatmulOperands &operands) {
  TileOrder order = TileOrder::whole(plan, operands.bias.buffer >= 0);
  order.terms.front().epilogue = operands.epilogues.empty() ? -1 : 0;
  return order;
}

} // namespace dmxc::corsair
