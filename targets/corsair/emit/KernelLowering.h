//===- KernelLowering.h - a region's ops to instructions --------*- C++ -*-===//
//
// One kernel: arguments come from DDR into the quad's GM, every op reads and writes GM, results go back. Floats are f16
// on the device; operands of matrix products become BFP16 where they enter the array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SimdOp.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/DenseMap.h"

namespace dmxc::corsair {

/// nullopt if the device computes the op (with its types and shapes), else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

/// How many slices share the columns of a product, and how a slice's cores do.
struct MatmulPlan {
  int64_t m, n, k;   ///< of one product
  int64_t kChunks;   ///< blocks of 64 along k
  int slicesN = 1, slicesM = 1;
  int imc = 1, ppr = 0, groups = 1; ///< num_imc, ppr_mode; tiles of 64 columns side by side
  /// Chunks that IB holds at once.
  int64_t chunksAtOnce = 16;

  int64_t tilesN() const { return (n + 63) / 64; }
  /// Rounds over the columns until all slices have seen all of theirs.
  int64_t rounds() const { return (tilesN() + groups * slicesN - 1) / (groups * slicesN); }
  /// Bytes of the packed constant in one slice.
  int64_t bytesPerSlice() const { return rounds() * groups * kChunks * kTileBytes; }
  int64_t packedBytes() const { return bytesPerSlice() * slicesN; }
  static constexpr int64_t kTileBytes = 4160;
};
MatmulPlan planMatmul(const hw::Machine &machine, int64_t m, int64_t n, int64_t k);

class KernelLowering {
public:
  KernelLowering(const hw::Machine &machine, hw::Image &image)
      : machine(machine), image(image), init(buffers), main(buffers) {}

  /// `packed`: operand number -> form, as chooseStrategy gave it. Writes the kernel's streams.
  Status lower(mlir::Block *body, llvm::StringRef name, mlir::DictionaryAttr packed);
  /// After all kernels of the image are lowered and their permanent buffers placed: gives the temporaries their places
  /// behind those, and adds streams and the kernel to the image.
  void placePermanent(MemoryUse &used) { buffers.placePermanent(used); }
  Status finish(const MemoryUse &permanent);

private:
  //--- arguments and results (Arguments.cpp)
  Status addArgument(mlir::BlockArgument argument, mlir::DictionaryAttr form);
  void addPlainConstant(mlir::BlockArgument argument, hw::Argument &record);
  void addPackedConstant(mlir::BlockArgument argument, mlir::DictionaryAttr form, hw::Argument &record);
  Status addResult(mlir::Value value, unsigned index);
  int addDdr(int64_t bytes);

  //--- ops
  Status lower(mlir::Operation *op);
  Status lowerConstant(mlir::Operation *op);
  Status lowerElementwise(mlir::Operation *op, hw::SimdFunction function);
  Status lowerRows(mlir::Operation *op, hw::SimdFunction function, llvm::ArrayRef<int64_t> axes, float imm0);
  Status lowerMatmul(mlir::Operation *op);
  Status lowerConv(mlir::Operation *op);
  Status lowerPool(mlir::Operation *op);
  Status lowerMovement(mlir::Operation *op);
  Status lowerConcat(mlir::Operation *op);
  Status lowerPad(mlir::Operation *op);
  Status lowerGather(mlir::Operation *op);

  //--- values
  /// A dense tensor for a result; its dims lie in memory as those of `like`, row-major without.
  DeviceTensor allocate(mlir::Value result, const DeviceTensor *like = nullptr);
  DeviceTensor allocate(llvm::ArrayRef<int64_t> shape, hw::ElemKind kind, llvm::ArrayRef<unsigned> order);
  /// The tensor copied to a dense one whose dims lie in this order.
  DeviceTensor copied(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order);
  void copyInto(const DeviceTensor &from, const DeviceTensor &to);
  void fill(const DeviceTensor &tensor, double value);
  void simd(SimdOp op);

  const hw::Machine &machine;
  hw::Image &image;
  Buffers buffers;
  StreamBuilder init, main;
  hw::Kernel kernel;
  llvm::DenseMap<mlir::Value, DeviceTensor> values;
  /// Constants packed as tiles: their place in ST.
  llvm::DenseMap<mlir::Value, Address> tiles;
  /// Pieces whose address is that of a DDR buffer.
  std::vector<std::array<int, 3>> pieceBuffers; ///< argument, piece, buffer
};

} // namespace dmxc::corsair
