//===- DMIR.h - the DMIR dialect --------------------------------*- C++ -*-===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dmxc/Support/Dim.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SetVector.h"

namespace dmx::blockfp {
struct BlockFormat;
} // namespace dmx::blockfp

namespace dmxc {
/// Of a value that is a ranked tensor, as every value of DMIR is.
inline mlir::RankedTensorType typeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor) { return typeOf(tensor).getShape(); }
inline mlir::Type elementOf(mlir::Value tensor) { return typeOf(tensor).getElementType(); }

inline llvm::hash_code hash_value(Dim dim) { return llvm::hash_value(dim.key()); }
} // namespace dmxc

namespace dmxc::dmir {
/// True for !dmir.block_fp<BFP32_1>.
bool isBfp32(mlir::Type type);
/// See DMIRBase.td: the result element depends on the operands' elements at the same index.
template <typename ConcreteType> class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};
/// See DMIRBase.td: the op only moves elements.
template <typename ConcreteType> class DataMovement : public mlir::OpTrait::TraitBase<ConcreteType, DataMovement> {};
} // namespace dmxc::dmir

#include "dmxc/Dialect/DMIR/DMIRDialect.h.inc"
#include "dmxc/Dialect/DMIR/DMIREnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dmxc/Dialect/DMIR/DMIRAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/DMIR/DMIRTypes.h.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/DMIROps.h.inc"

namespace dmxc::dmir {

/// Whether kernels compute an element of the op's result where it is asked for: it depends on few elements of the
/// operands.
inline bool isPulled(mlir::Operation *op) {
  return op->hasTrait<Elementwise>() || op->hasTrait<DataMovement>() || mlir::isa<DequantizeOp, RoundBlocksOp>(op);
}

/// Names of the attributes DMIR keeps on `builtin.module` and function arguments.
/// Module: the model's name.
inline constexpr llvm::StringLiteral kModelNameAttr = "dmir.model_name";
/// Module: dictionary key -> text, what the model's file says of the model (its exporter, labels of its classes).
inline constexpr llvm::StringLiteral kMetadataAttr = "dmir.metadata";
/// Module: dictionary name -> [min, max] of the symbolic dims.
inline constexpr llvm::StringLiteral kDimsAttr = "dmir.dims";
/// Function argument / result: the tensor's name in the model file.
inline constexpr llvm::StringLiteral kNameAttr = "dmir.name";
/// Function argument / result: what the model's file says of the tensor, a text.
inline constexpr llvm::StringLiteral kDescriptionAttr = "dmir.description";
/// Of a function's argument and result that are one state of the session: its name.
inline constexpr llvm::StringLiteral kStateAttr = "dmir.state";
/// dmir.cast, unit: rounding from one block format to another is meant.
inline constexpr llvm::StringLiteral kRoundsTwiceAttr = "dmir.rounds_twice";
/// dmir.matmul of block_fp, integer: tiles along k whose partial sums one tree adds.
inline constexpr llvm::StringLiteral kTreeTilesAttr = "dmir.tree_tiles";
inline constexpr int64_t kDefaultTreeTiles = 16;
/// dmir.matmul of block_fp, integer: how many rows of the result anybody reads; a product of one tile row that was
/// padded.
inline constexpr llvm::StringLiteral kRowsAttr = "dmir.rows";

/// The type without its layout.
mlir::RankedTensorType logicalType(mlir::Type type);

/// The name of the model node an op comes from (its location), or its mnemonic when it has none.
std::string nodeName(mlir::Operation *op);
/// The same for a location; "" when it names nothing.
std::string nodeName(mlir::Location loc);

/// {operand, result} of a region that are one state of the session, which nothing else reads or writes.
llvm::SmallVector<std::pair<unsigned, unsigned>> stateUpdates(RegionOp region);

} // namespace dmxc::dmir
