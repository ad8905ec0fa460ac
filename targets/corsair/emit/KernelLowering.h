//===- KernelLowering.h - a region's ops to instructions --------*- C++ -*-===//
//
// One kernel: arguments come from DDR into the quad's GM, every op reads and writes GM, results go back. Floats are f16
// on the device; operands of matrix products become BFP16 where they enter the array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SimdOp.h"
#include "Window.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/DenseMap.h"

namespace dmxc::corsair {

/// nullopt if the device computes the op (with its types and shapes), else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

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
  void convolve(const DeviceTensor &image, const DeviceTensor &result, const Window &window, int64_t channelsOut,
                const Address &packed);
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
  /// Starts a task of the main program that is called as the op's node.
  void task(mlir::Operation *op);
  void copyBytes(Program &program, Queue queue, const std::string &task, hw::Memory source, Address from,
                 hw::Memory target, Address to, int64_t bytes);

  const hw::Machine &machine;
  hw::Image &image;
  Buffers buffers;
  Program init, main;
  hw::Kernel kernel;
  llvm::DenseMap<mlir::Value, DeviceTensor> values;
  /// Constants packed as tiles: their place in ST.
  llvm::DenseMap<mlir::Value, Address> tiles;
  std::string node; ///< of the op that is being lowered
  /// Pieces whose address is that of a DDR buffer.
  std::vector<std::array<int, 3>> pieceBuffers; ///< argument, piece, buffer
};

} // namespace dmxc::corsair
