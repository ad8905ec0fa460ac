//===- BlockFloat.cpp - ops on block floating point -----------------------===//
//
// The arithmetic is schemas/blockfp's, which the simulator of a target runs too: equal to the bit. A tensor of blocks
// is a row of bytes here, its wire format (dmir::hostFormOf); BFP32_1 is f32.
//
//===----------------------------------------------------------------------===//
#include "Evaluator.h"
#include "Strided.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Support/Half.h"

#include "schemas/blockfp/DotProduct.h"

#include <cstring>

using namespace dmx::blockfp;
using mlir::RankedTensorType;

namespace dmxc::reference {

namespace {

using dmir::BlockLayout;

/// A zeroed tensor in the host form of a type that the interpreter has checked.
Tensor makeHost(RankedTensorType type) {
  dmir::HostForm form = *dmir::hostFormOf(type);
  return Tensor(form.dtype, std::move(form.shape));
}

/// Of a type whose wire format was checked with its host form.
BlockLayout layoutOf(RankedTensorType type) {
  std::string error;
  return *dmir::blockLayoutOf(type, error);
}

bool hasBlocks(RankedTensorType type) { return dmir::blockedDim(type) >= 0; }

//===--- blocks as they are stored ----------------------------------------------===//

/// One block, wherever it lies: its scale byte and its mantissas.
struct Block {
  std::byte scale{};
  std::vector<int16_t> mantissas;
};

/// Reads and writes single blocks of a wire-format matrix. Data movement keeps blocks whole.
class BlockAccess {
public:
  BlockAccess(const TensorLayout &layout, const std::byte *bytes) : layout(layout), bytes(bytes) {}

  void read(int64_t run, int64_t index, Block &block) const {
    Place at = place(run, index);
    const std::byte *tile = bytes + at.tile;
    TileRun stored = runOf(layout.tile, tile, at.run);
    block.scale = stored.scales[at.block];
    block.mantissas.resize(layout.tile.depth);
    unpackMantissas(stored.mantissas, layout.tile.depth, layout.tile.format.precision, block.mantissas.data());
    int size = layout.tile.format.block;
    block.mantissas.erase(block.mantissas.begin(), block.mantissas.begin() + at.block * size);
    block.mantissas.resize(size);
  }

  void write(int64_t run, int64_t index, const Block &block, std::byte *out) const {
    Place at = place(run, index);
    std::byte *tile = out + at.tile;
    const TileShape &shape = layout.tile;
    TileRun stored = runOf(shape, tile, at.run);
    out[stored.scales + at.block - out] = block.scale;
    std::vector<int16_t> all(shape.depth);
    std::byte *mantissas = out + (stored.mantissas - out);
    unpackMantissas(mantissas, shape.depth, shape.format.precision, all.data());
    std::copy(block.mantissas.begin(), block.mantissas.end(), all.begin() + at.block * shape.format.block);
    packMantissas(all.data(), shape.depth, shape.format.precision, mantissas);
  }

  int64_t blocksOfRun() const { return (layout.runLength() + layout.tile.format.block - 1) / layout.tile.format.block; }

private:
  struct Place {
    int64_t tile;
    int run, block;
  };
  Place place(int64_t run, int64_t index) const {
    int perTile = layout.tile.blocksPerRun();
    return {layout.tileOffset(run / kTileRuns, index / perTile), static_cast<int>(run % kTileRuns),
            static_cast<int>(index % perTile)};
  }

  const TensorLayout &layout;
  const std::byte *bytes;
};

/// Copies blocks between two wire-format matrices: run r, block b of `to` is the one that `from` has at
/// (firstRun + r * step, firstBlock + b).
void copyBlocks(const TensorLayout &from, const std::byte *in, int64_t firstRun, int64_t step, int64_t firstBlock,
                const TensorLayout &to, std::byte *out, int64_t outRun, int64_t outBlock, int64_t runs,
                int64_t blocks) {
  BlockAccess source(from, in), target(to, out);
  Block block;
  for (int64_t r = 0; r < runs; ++r)
    for (int64_t b = 0; b < blocks; ++b) {
      source.read(firstRun + r * step, firstBlock + b, block);
      target.write(outRun + r, outBlock + b, block, out);
    }
}

int64_t blocksIn(int64_t elements, int64_t block) { return (elements + block - 1) / block; }

//===--- casts --------------------------------------------------------------------===//

/// The exact values, in f32.
Tensor dequantize(const Tensor &in, RankedTensorType type) {
  if (!hasBlocks(type))
    return in;
  BlockLayout layout = layoutOf(type);
  Tensor result(DType::F32, Shape(type.getShape().begin(), type.getShape().end()));
  int64_t elements = layout.matrix.rows * layout.matrix.cols;
  for (int64_t m = 0; m < layout.matrices; ++m)
    dequantizeTensor(layout.matrix, in.data() + m * layout.matrix.bytes(), result.as<float>() + m * elements,
                     layout.matrix.cols);
  return result;
}

/// f32 as it leaves the array: as f32, or rounded to f16 by the array's rule.
Tensor leaveArray(const Tensor &values, DType to) {
  if (to == DType::F32)
    return values;
  Tensor result(to, values.shape());
  for (int64_t i = 0, count = values.numElements(); i < count; ++i) {
    float value = values.as<float>()[i];
    if (to == DType::F16)
      result.as<uint16_t>()[i] = f16Round(value);
    else
      result.setDouble(i, value);
  }
  return result;
}

Outputs evaluateCast(const Call &call) {
  RankedTensorType from = typeOf(call.op->getOperand(0)), to = typeOf(call.op->getResult(0));
  if (from.getElementType() == to.getElementType())
    return one(call.in[0]);
  Tensor values = dmir::blockFpOf(from) ? dequantize(call.in[0], from) : call.in[0];
  if (dmir::blockFpOf(to)) {
    Result<Tensor> result = dmir::quantize(values, to);
    return result ? one(std::move(*result)) : Outputs(call.error(result.error().message));
  }
  return one(leaveArray(values, *dmir::dtypeOf(to.getElementType())));
}

//===--- product --------------------------------------------------------------------===//

/// One matrix product: tiles of 64 x 64 results, `atOnce` tiles along k summed by one tree.
struct Product {
  TensorLayout lhs, rhs;
  int64_t atOnce;
  TileMatmul engine;

  MaybeError run(const std::byte *a, const std::byte *b, float *out) {
    int64_t tilesK = lhs.tilesAlongRun(), columns = rhs.cols;
    std::vector<float> sums(kTileRuns * kTileRuns);
    for (int64_t i = 0; i < lhs.tilesOverRuns(); ++i)
      for (int64_t j = 0; j < rhs.tilesOverRuns(); ++j) {
        std::fill(sums.begin(), sums.end(), 0.0f); // k = 0
        int rows = static_cast<int>(std::min<int64_t>(kTileRuns, lhs.rows - i * kTileRuns));
        for (int64_t k = 0; k < tilesK; k += atOnce)
          if (MaybeError error = runChunk(a, b, i, j, k, std::min(atOnce, tilesK - k), rows, sums.data()))
            return error;
        int64_t width = std::min<int64_t>(kTileRuns, columns - j * kTileRuns);
        for (int r = 0; r < rows; ++r)
          std::copy_n(&sums[r * kTileRuns], width, out + (i * kTileRuns + r) * columns + j * kTileRuns);
      }
    return std::nullopt;
  }

private:
  MaybeError runChunk(const std::byte *a, const std::byte *b, int64_t i, int64_t j, int64_t k, int64_t count, int rows,
                      float *sums) {
    std::vector<const std::byte *> activations, weights;
    for (int64_t t = 0; t < count; ++t) {
      activations.push_back(a + lhs.tileOffset(i, k + t));
      weights.push_back(b + rhs.tileOffset(j, k + t));
    }
    return engine.run({lhs.tile, rhs.tile, rows, k > 0}, activations, weights, sums);
  }
};

Outputs evaluateMatMul(const Call &call) {
  RankedTensorType type = typeOf(call.op->getResult(0));
  BlockLayout lhs = layoutOf(typeOf(call.op->getOperand(0))), rhs = layoutOf(typeOf(call.op->getOperand(1)));
  Shape shape(type.getShape().begin(), type.getShape().end());
  Tensor sums(DType::F32, shape);
  auto atOnce = call.op->getAttrOfType<mlir::IntegerAttr>(dmir::kTreeTilesAttr);
  Product product{lhs.matrix, rhs.matrix, atOnce ? atOnce.getInt() : dmir::kDefaultTreeTiles, TileMatmul()};
  auto batch = std::span(shape).first(shape.size() - 2);
  auto leading = [](RankedTensorType operand) {
    return Shape(operand.getShape().begin(), operand.getShape().end() - 2);
  };
  StridedLoop<3> loop(batch, {broadcastStrides(leading(typeOf(call.op->getOperand(0))), batch),
                              broadcastStrides(leading(typeOf(call.op->getOperand(1))), batch), stridesOf(batch)});
  MaybeError error;
  int64_t elements = lhs.matrix.rows * rhs.matrix.cols;
  if (sums.numElements())
    loop.forEach([&](const std::array<int64_t, 3> &at) {
      if (!error)
        error = product.run(call.in[0].data() + at[0] * lhs.matrix.bytes(),
                            call.in[1].data() + at[1] * rhs.matrix.bytes(), sums.as<float>() + at[2] * elements);
    });
  if (error)
    return call.error(*error);
  std::optional<DType> to = dmir::dtypeOf(type.getElementType());
  return one(leaveArray(sums, to.value_or(DType::F32)));
}

Outputs evaluateAdd(const Call &call) {
  Tensor result = makeHost(typeOf(call.op->getResult(0)));
  const Shape &space = result.shape();
  StridedLoop<3> loop(space, {broadcastStrides(call.in[0].shape(), space), broadcastStrides(call.in[1].shape(), space),
                              stridesOf(space)});
  if (result.numElements())
    loop.forEach([&](const std::array<int64_t, 3> &at) {
      result.as<float>()[at[2]] = addToSum(call.in[0].as<float>()[at[0]], call.in[1].as<float>()[at[1]]);
    });
  return one(std::move(result));
}

//===--- movement ---------------------------------------------------------------------===//

/// The leading dims of a tensor with blocks: one matrix each.
Shape leadingDims(RankedTensorType type) { return Shape(type.getShape().begin(), type.getShape().end() - 2); }

/// A matrix is the same bytes after its two dimensions are exchanged and R has become C.
Outputs evaluateTranspose(const Call &call) {
  RankedTensorType from = typeOf(call.op->getOperand(0)), to = typeOf(call.op->getResult(0));
  Tensor result = makeHost(to);
  int64_t bytes = layoutOf(to).matrix.bytes();
  Strides own = stridesOf(leadingDims(from)), strides;
  for (int64_t axis : llvm::cast<dmir::TransposeOp>(call.op).getPermutation().drop_back(2))
    strides.push_back(own[axis]);
  Shape space = leadingDims(to);
  if (result.byteSize())
    StridedLoop<2>(space, {strides, stridesOf(space)}).forEach([&](const std::array<int64_t, 2> &at) {
      std::memcpy(result.mutableData() + at[1] * bytes, call.in[0].data() + at[0] * bytes, bytes);
    });
  return one(std::move(result));
}

Outputs evaluateSlice(const Call &call) {
  auto op = llvm::cast<dmir::SliceOp>(call.op);
  RankedTensorType from = typeOf(op.getInput()), to = typeOf(op.getResult());
  Tensor result = makeHost(to);
  BlockLayout in = layoutOf(from), out = layoutOf(to);
  int64_t rank = from.getRank(), along = dmir::blockedDim(from), across = along == rank - 1 ? rank - 2 : rank - 1;
  int64_t block = in.matrix.tile.format.block;
  Strides strides = stridesOf(leadingDims(from));
  int64_t base = 0;
  for (int64_t i = 0; i < rank - 2; ++i) {
    base += op.getStarts()[i] * strides[i];
    strides[i] *= op.getSteps()[i];
  }
  Shape space = leadingDims(to);
  if (result.byteSize())
    StridedLoop<2>(space, {strides, stridesOf(space)}).forEach([&](const std::array<int64_t, 2> &at) {
      copyBlocks(in.matrix, call.in[0].data() + (base + at[0]) * in.matrix.bytes(), op.getStarts()[across],
                 op.getSteps()[across], op.getStarts()[along] / block, out.matrix,
                 result.mutableData() + at[1] * out.matrix.bytes(), 0, 0, out.matrix.runs(),
                 blocksIn(out.matrix.runLength(), block));
    });
  return one(std::move(result));
}

/// Along a leading axis operands follow one another inside each outer index; else each matrix is put together.
Outputs evaluateConcat(const Call &call) {
  auto op = llvm::cast<dmir::ConcatOp>(call.op);
  RankedTensorType to = typeOf(op.getResult());
  Tensor result = makeHost(to);
  BlockLayout out = layoutOf(to);
  int64_t axis = op.getAxis(), rank = to.getRank(), along = dmir::blockedDim(to), block = out.matrix.tile.format.block;
  int64_t outer = 1, at = 0;
  for (int64_t dim : to.getShape().take_front(std::min(axis, rank - 2)))
    outer *= dim;
  for (auto [operand, tensor] : llvm::zip(op.getInputs(), call.in)) {
    BlockLayout in = layoutOf(typeOf(operand));
    if (axis < rank - 2) {
      int64_t part = in.bytes() / std::max<int64_t>(outer, 1), whole = out.bytes() / std::max<int64_t>(outer, 1);
      for (int64_t i = 0; i < outer; ++i)
        std::memcpy(result.mutableData() + i * whole + at, tensor.data() + i * part, part);
      at += part;
      continue;
    }
    for (int64_t m = 0; m < out.matrices; ++m)
      copyBlocks(in.matrix, tensor.data() + m * in.matrix.bytes(), 0, 1, 0, out.matrix,
                 result.mutableData() + m * out.matrix.bytes(), axis == along ? 0 : at, axis == along ? at / block : 0,
                 in.matrix.runs(), blocksIn(in.matrix.runLength(), block));
    at += typeOf(operand).getDimSize(axis);
  }
  return one(std::move(result));
}

Outputs evaluatePadBlocks(const Call &call) {
  Tensor result = makeHost(typeOf(call.op->getResult(0)));
  BlockLayout in = layoutOf(typeOf(call.op->getOperand(0))), out = layoutOf(typeOf(call.op->getResult(0)));
  for (int64_t m = 0; m < out.matrices; ++m)
    copyBlocks(in.matrix, call.in[0].data() + m * in.matrix.bytes(), 0, 1, 0, out.matrix,
               result.mutableData() + m * out.matrix.bytes(), 0, 0, in.matrix.runs(),
               blocksIn(in.matrix.runLength(), in.matrix.tile.format.block));
  return one(std::move(result));
}

/// BFP32_1 moves as f32 does; only ops with blocks are left to this file.
Outputs refuseMovement(const Call &call) {
  return call.error("the interpreter moves tensors of blocks only; cast BFP32_1 to f32 to move it");
}

} // namespace

bool usesBlockFloat(mlir::Operation *op) {
  auto isBlockFp = [](mlir::Type type) { return static_cast<bool>(dmir::blockFpOf(type)); };
  return llvm::any_of(op->getOperandTypes(), isBlockFp) || llvm::any_of(op->getResultTypes(), isBlockFp);
}

Outputs evaluateBlockFloat(const Call &call) {
  mlir::Operation *op = call.op;
  if (llvm::isa<dmir::CastOp>(op))
    return evaluateCast(call);
  if (llvm::isa<dmir::MatMulOp>(op))
    return evaluateMatMul(call);
  if (llvm::isa<dmir::AddOp>(op))
    return evaluateAdd(call);
  if (auto constant = llvm::dyn_cast<dmir::ConstantOp>(op)) {
    Result<Tensor> tensor = dmir::constantTensor(constant.getValue());
    return tensor ? one(std::move(*tensor)) : Outputs(tensor.takeError());
  }
  if (llvm::isa<dmir::UndefOp>(op))
    return one(makeHost(typeOf(op->getResult(0))));
  if (!hasBlocks(typeOf(op->getResult(0))))
    return refuseMovement(call);
  if (llvm::isa<dmir::TransposeOp>(op))
    return evaluateTranspose(call);
  if (llvm::isa<dmir::SliceOp>(op))
    return evaluateSlice(call);
  if (llvm::isa<dmir::ConcatOp>(op))
    return evaluateConcat(call);
  if (llvm::isa<dmir::PadBlocksOp>(op))
    return evaluatePadBlocks(call);
  return call.error("the interpreter has no block floating point in this op");
}

// dmir.pad_blocks has block_fp operands only; the other ops that take it are in the table for their other types.
void addBlockFloat(Table &table) {
  table["dmir.pad_blocks"] = {evaluateBlockFloat, Mode::Raw};
  table["dmir.undef"] = {[](const Call &call) { return one(makeHost(typeOf(call.op->getResult(0)))); }, Mode::Raw};
}

} // namespace dmxc::reference
