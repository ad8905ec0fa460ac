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

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace dmxc::corsair {

/// nullopt if the device computes the op (with its types and shapes), else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

/// Registers that a launch sets.
enum LaunchRegister : int {
  kQuadInChiplet = 0, ///< 0..3
  kIsFirst = 1,       ///< 1 in the first quad
  kLeadsChiplet = 2,  ///< 1 in the first quad of a chiplet
  kChipletMask = 3,   ///< quads of the team in the own chiplet
  kOthersMask = 4,    ///< quads of the team but this one
};
/// Keys of the strategy.
inline constexpr llvm::StringLiteral kQuadsKey = "quads";   ///< of the team
inline constexpr llvm::StringLiteral kStatesKey = "states"; ///< pairs of argument and result that stay on the device

class KernelLowering {
public:
  KernelLowering(const hw::Machine &machine, hw::Image &image)
      : machine(machine), image(image), init(buffers), main(buffers) {}

  /// `strategy` is what chooseStrategy gave. Writes the kernel's tasks. `fromDdr`: weights are fetched for every
  /// product (capacity mode) instead of staying in ST (performance mode).
  Status lower(mlir::Block *body, llvm::StringRef name, mlir::DictionaryAttr strategy, bool fromDdr);
  /// After all kernels of the image are lowered and their permanent buffers placed: gives the temporaries their places
  /// behind those, and adds streams and the kernel to the image.
  void placePermanent(MemoryUse &used) { buffers.placePermanent(used); }
  Status finish(const MemoryUse &permanent);

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
  void addPlainConstant(mlir::BlockArgument argument, const std::string &name);
  void addPackedConstant(mlir::BlockArgument argument, mlir::DictionaryAttr form, const std::string &name);
  void loadTiles(Program &program, const Tiles &packed, const Address &home);
  /// The tiles in ST, fetched now if they do not stay there.
  Address residentTiles(mlir::Value constant);
  void addState(mlir::BlockArgument argument);
  Status keepState(mlir::Value value, const DeviceTensor &state, const std::string &name);
  hw::Argument stateRecord(mlir::Type type, const DeviceTensor &state, const std::string &name);
  Status addResult(mlir::Value value, unsigned index);
  /// Adds an argument whose pieces lie in one DDR buffer, at the same address in every chiplet.
  int addDdr(hw::Argument record, int64_t bytes);

  //--- ops
  Status lower(mlir::Operation *op);
  Status lowerConstant(mlir::Operation *op);
  Status lowerElementwise(mlir::Operation *op, hw::SimdFunction function);
  Status lowerRows(mlir::Operation *op, hw::SimdFunction function, llvm::ArrayRef<int64_t> axes, float imm0);
  Status lowerMatmul(mlir::Operation *op);
  void multiplyAlongK(mlir::Operation *op, int64_t depth);
  void multiply(const MatmulPlan &plan, const MatmulOperands &operands);
  Status lowerConv(mlir::Operation *op);
  void convolve(const DeviceTensor &image, const DeviceTensor &whole, Split split, const Window &window,
                const Address &packed);
  Status lowerPool(mlir::Operation *op);
  Status lowerMovement(mlir::Operation *op);
  Status lowerConcat(mlir::Operation *op);
  Status lowerPad(mlir::Operation *op);
  Status lowerGather(mlir::Operation *op);
  Status lowerScatter(mlir::Operation *op);

  //--- values
  /// A dense tensor for a result; its dims lie in memory as those of `like`, row-major without.
  DeviceTensor allocate(mlir::Value result, const DeviceTensor *like = nullptr);
  DeviceTensor allocate(llvm::ArrayRef<int64_t> shape, hw::ElemKind kind, llvm::ArrayRef<unsigned> order);
  /// The tensor copied to a dense one whose dims lie in this order.
  DeviceTensor copied(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order);
  void copyInto(const DeviceTensor &from, const DeviceTensor &to, Split split);
  void fill(const DeviceTensor &tensor, double value);
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
  std::vector<hw::Launch> launches(std::array<uint32_t, kQueues> streams) const;
  /// Copies a tensor in a task of the main program; `quads` is the term of a mask of receivers, scale 0 for the own
  /// quad.
  void moveTensor(Queue queue, hw::Memory source, const DeviceTensor &from, hw::Memory target, const DeviceTensor &to,
                  hw::Term quads);

  const hw::Machine &machine;
  hw::Image &image;
  Buffers buffers;
  Program init, main;
  hw::Kernel kernel;
  Distribution deal;
  bool fromDdr = false;
  std::string node; ///< of the op that is being lowered
  llvm::DenseMap<mlir::Value, DeviceTensor> values;
  llvm::DenseMap<mlir::Value, Tiles> tiles;
  llvm::DenseMap<unsigned, unsigned> stateResults; ///< argument -> result
  llvm::DenseMap<unsigned, DeviceTensor> states;   ///< by the result
  /// Buffers whose parts went to other quads, which may still read them.
  llvm::DenseSet<int> sent;
  int weights = -1;      ///< WB as a buffer
  bool streamed = false; ///< the last product left WB to the array controller
  /// {argument, buffer}: the argument's pieces count their addresses from the buffer.
  std::vector<std::array<int, 2>> pieceBuffers;
};

} // namespace dmxc::corsair
