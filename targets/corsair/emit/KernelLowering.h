//===- KernelLowering.h - a region's ops to instructions --------*- C++ -*-===//
//
// One kernel: arguments come from DDR into the quad's GM, every op reads and writes GM, results go back. Floats are f16
// on the device; operands of matrix products become BFP16 where they enter the array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Constants.h"
#include "MatmulView.h"
#include "SimdOp.h"
#include "Window.h"

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace dmxc::corsair {

/// nullopt if the device computes the op (with its types and shapes), else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

/// The formats in which an op of a region is computed.
OpFormats formatsOf(mlir::Operation *op);

/// Registers that a launch sets: see launchRegisters.
enum LaunchRegister : int {
  kQuadInChiplet = 0, ///< 0..3
  kIsFirst = 1,       ///< 1 in the first quad
  kLeadsChiplet = 2,  ///< 1 in the first quad of a chiplet
  kChipletMask = 3,   ///< quads of the team in the own chiplet
  kOthersMask = 4,    ///< quads of the team but this one
  kLaunchRegisters
};
/// Keys of the strategy.
inline constexpr llvm::StringLiteral kQuadsKey = "quads";   ///< of the team
inline constexpr llvm::StringLiteral kStatesKey = "states"; ///< pairs of argument and result that stay on the device

/// What partition decided for a kernel.
Result<Distribution> distributionOf(dlir::KernelOp kernel);

class KernelLowering {
public:
  /// The program is written before the kernel. `fromDdr`: weights are fetched for every product (capacity mode) instead
  /// of staying in ST (performance mode).
  KernelLowering(dlir::KernelOp kernel, Distribution deal, const hw::Machine &machine, bool fromDdr);

  /// Writes the kernel's tasks.
  Status lower();
  /// After all kernels of the image are lowered and their permanent buffers placed: gives the temporaries their places
  /// behind those.
  void placePermanent(MemoryUse &used) { buffers.placePermanent(used); }
  Status finish(const MemoryUse &permanent);
  dlir::DeviceProgramOp program() { return writer.program(); }

private:
  /// A constant packed as tiles and its places.
  struct Tiles {
    TileForm form;
    int ddr;
    Address home; ///< in ST, when it stays there
  };

  //--- arguments, results and states (Arguments.cpp)
  Status addArgument(mlir::BlockArgument argument, mlir::DictionaryAttr form);
  void fetchOnce(DeviceTensor ddr, DeviceTensor tensor);
  void addPlainConstant(mlir::BlockArgument argument, const std::string &name, hw::ElemKind kind,
                        llvm::ArrayRef<int64_t> shape);
  void addPackedConstant(mlir::BlockArgument argument, mlir::DictionaryAttr form, const std::string &name);
  void loadTiles(Program &program, const Tiles &packed, const Address &home);
  /// The tiles in ST, fetched now if they do not stay there.
  Address residentTiles(mlir::Value constant);
  void addState(mlir::BlockArgument argument);
  Status keepState(mlir::Value value, const DeviceTensor &state, const std::string &name);
  void declareState(mlir::Type type, const DeviceTensor &state, const std::string &name);
  Status addResult(mlir::Value value, unsigned index);
  /// A tensor of the host, its dims in this order on the device, and where its pieces lie in a buffer.
  void declare(dlir::ArgumentRole role, const std::string &name, mlir::Type type, hw::ElemKind form,
               llvm::ArrayRef<unsigned> order, int buffer, llvm::ArrayRef<hw::Piece> pieces);
  int declareConstant(const std::string &name, hw::ElemKind kind, int64_t bytes, int64_t share);

  //--- ops
  Status lower(mlir::Operation *op);
  Status lowerConstant(mlir::Operation *op);
  /// Where the vector is that is added to a product; no buffer when there is none.
  Address biasOf(mlir::Operation *product);
  Status lowerElementwise(mlir::Operation *op, hw::SimdFunction function);
  Status lowerIsInf(mlir::Operation *op);
  Status lowerRows(mlir::Operation *op, hw::SimdFunction function, llvm::ArrayRef<int64_t> axes, float imm0);
  Status lowerMatmul(mlir::Operation *op);
  void multiplyAlongK(mlir::Operation *op, int64_t depth);
  void multiply(const MatmulPlan &plan, const MatmulOperands &operands);
  Status lowerConv(mlir::Operation *op);
  void convolve(const DeviceTensor &image, const DeviceTensor &whole, Split split, const Window &window,
                dmir::ConvOp conv);
  Status lowerPool(mlir::Operation *op);
  Status lowerMovement(mlir::Operation *op);
  Status lowerConcat(mlir::Operation *op);
  Status lowerPad(mlir::Operation *op);
  Status lowerGather(mlir::Operation *op);
  Status lowerScatter(mlir::Operation *op);
  void reshapeByIndex(llvm::StringRef function, llvm::StringRef rule, const DeviceTensor &from, const DeviceTensor &to,
                      const DeviceTensor &indices, DmaSpec spec, int64_t pitch, int64_t range);

  //--- values
  /// A dense tensor for a result; its dims lie in memory as those of `like`, row-major without.
  DeviceTensor allocate(mlir::Value result, const DeviceTensor *like = nullptr);
  DeviceTensor allocate(llvm::ArrayRef<int64_t> shape, hw::ElemKind kind, llvm::ArrayRef<unsigned> order);
  /// The tensor copied to a dense one whose dims lie in this order.
  DeviceTensor copied(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order);
  /// The tensor, or its copy where it is broadcast along `dim`, for rows of products: their descriptors take a step of
  /// 0 between elements for "side by side".
  DeviceTensor writtenOut(const DeviceTensor &tensor, size_t dim);
  void copyInto(const DeviceTensor &from, const DeviceTensor &to, Split split);
  void fill(const DeviceTensor &tensor, double value);
  /// Elements of the operands, broadcast, to those of the result.
  void map(hw::SimdFunction function, const DeviceTensor &result, llvm::ArrayRef<DeviceTensor> operands, Split split);
  void simd(SimdOp op);
  /// Starts a task of the main program that is called as the op's node.
  void task(mlir::Operation *op);

  //--- several quads (Team.cpp)
  /// Sends the quads' parts of values to all others.
  void makeWhole(llvm::ArrayRef<mlir::Value> parts);
  void exchange(llvm::ArrayRef<DeviceTensor *> parts);
  void meet();
  /// Where a tensor, or the parts of it, lie in the DDR of the chiplets.
  std::vector<hw::Piece> piecesOf(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order) const;
  int chiplets() const { return (deal.quads + machine.quadsPerChiplet() - 1) / machine.quadsPerChiplet(); }
  QuadRegisters launchRegisters() const;
  /// Copies a tensor in a task of the main program; `quads` is the term of a mask of receivers, scale 0 for the own
  /// quad.
  void moveTensor(Queue queue, const DeviceTensor &from, const DeviceTensor &to, hw::Term quads);

  dlir::KernelOp kernel;
  const hw::Machine &machine;
  const bool fromDdr;
  Distribution deal;
  QuadRegisters registers;
  mlir::OpBuilder builder;
  DlirWriter writer;
  Buffers buffers;
  std::unique_ptr<Program> init, main;
  std::string node; ///< of the op that is being lowered
  llvm::DenseMap<mlir::Value, DeviceTensor> values;
  llvm::DenseMap<mlir::Value, Tiles> tiles;
  llvm::DenseMap<unsigned, unsigned> stateResults; ///< argument -> result
  llvm::DenseMap<unsigned, DeviceTensor> states;   ///< by the result
  /// Buffers whose parts went to other quads, which may still read them.
  llvm::DenseSet<int> sent;
  bool streamed = false; ///< the last product left WB to the array controller
};

} // namespace dmxc::corsair
