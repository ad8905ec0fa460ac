//===- KernelLowering.h - a region's ops to instructions --------*- C++ -*-===//
#pragma once

#include "KernelWriter.h"
#include "Window.h"

#include "dmxc/Target/TargetBackend.h"

#include "llvm/ADT/DenseMap.h"

namespace dmxc::corsair {

/// nullopt if the device computes the op (with its types and shapes), else why not: a full clause.
std::optional<std::string> refusal(mlir::Operation *op, const hw::Machine &machine);

/// The device's kind of an element type; nullopt for those it has none of. Floats are f16.
std::optional<hw::ElemKind> deviceKind(mlir::Type element);

/// The formats in which an op of a region is computed.
OpFormats formatsOf(mlir::Operation *op);

/// The vector device's function for an elementwise op; nullopt when it has none.
std::optional<hw::SimdFunction> elementwiseFunction(mlir::Operation *op);
/// The vector device's function for rows, its axes and its number; nullopt for other ops.
struct RowsOp {
  hw::SimdFunction function;
  llvm::SmallVector<int64_t> axes;
  float imm0 = 0;
};
std::optional<RowsOp> rowsOp(mlir::Operation *op);

/// Keys of the strategy.
inline constexpr llvm::StringLiteral kQuadsKey = "quads";   ///< of the team
inline constexpr llvm::StringLiteral kStatesKey = "states"; ///< pairs of argument and result that stay on the device
inline constexpr llvm::StringLiteral kDealsKey = "deals";   ///< of arguments: see Distribution::inputDeals

/// What partition decided for a kernel. Fails, by node and key, where text has something else that the machine cannot
/// do.
Result<Distribution> distributionOf(dlir::KernelOp kernel, const hw::Machine &machine);
/// The form in which a kernel wants a constant; null for what is none.
mlir::DictionaryAttr packedForm(dlir::KernelOp kernel, mlir::BlockArgument argument);

/// In which order the dims of an input lie: channels last for what convolutions read.
llvm::SmallVector<unsigned> preferredOrder(mlir::Value value, size_t rank);
/// Nothing but rows of a constant are read: they are fetched from DDR, where the table may be larger than GM.
bool isTable(mlir::BlockArgument argument);

class KernelLowering : public KernelWriter {
public:
  KernelLowering(dlir::KernelOp kernel, Distribution deal, const hw::Machine &machine, bool fromDdr);

  Status lower() override;

private:
  //--- arguments, results and states (Arguments.cpp)
  Status addArgument(mlir::BlockArgument argument, mlir::DictionaryAttr form);
  void addState(mlir::BlockArgument argument);
  Status keepState(mlir::Value value, const DeviceTensor &state, const std::string &name);
  void declareState(mlir::Type type, const DeviceTensor &state, const std::string &name);
  Status addResult(mlir::Value value, unsigned index);

  //--- ops
  Status lower(mlir::Operation *op);
  Status lowerConstant(mlir::Operation *op);
  /// Where the vector is that is added to a product; no buffer when there is none.
  Address biasOf(mlir::Operation *product);
  Status lowerElementwise(mlir::Operation *op, hw::SimdFunction function);
  Status lowerIsInf(mlir::Operation *op);
  Status lowerRows(mlir::Operation *op, const RowsOp &rowsOp);
  Status lowerMatmul(mlir::Operation *op);
  void multiplyAlongK(mlir::Operation *op, int64_t depth);
  Status lowerConv(mlir::Operation *op);
  Status lowerPool(mlir::Operation *op);
  Status lowerMovement(mlir::Operation *op);
  Status lowerConcat(mlir::Operation *op);
  Status lowerPad(mlir::Operation *op);
  Status lowerGather(mlir::Operation *op);
  Status lowerScatter(mlir::Operation *op);

  //--- values
  using KernelWriter::allocate;
  /// A dense tensor for a result; its dims lie in memory as those of `like`, row-major without.
  DeviceTensor allocate(mlir::Value result, const DeviceTensor *like = nullptr);
  /// Sends the quads' parts of values to all others.
  void makeWhole(llvm::ArrayRef<mlir::Value> parts);
  Address residentTiles(mlir::Value constant);

  dlir::KernelOp kernel;
  Distribution deal;
  llvm::DenseMap<mlir::Value, DeviceTensor> values;
  llvm::DenseMap<mlir::Value, Tiles> tiles;
  llvm::DenseMap<unsigned, unsigned> stateResults; ///< argument -> result
  llvm::DenseMap<unsigned, DeviceTensor> states;   ///< by the result
};

} // namespace dmxc::corsair
