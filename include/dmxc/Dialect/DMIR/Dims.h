//===- Dims.h - dims of tensors that may be symbolic ------------*- C++ -*-===//
//
// A tensor type has its dynamic dims in its encoding (`#dmir.dims`), so that a type says all about a shape. These
// functions read and make such types; see Support/Dim.h for the arithmetic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace dmxc {
/// A fixed size (min == max) or a range of a symbolic dim.
struct DimBounds {
  int64_t min = 1, max = INT64_MAX;
};
} // namespace dmxc

namespace dmxc::dmir {

/// A dim of a type whose `?` has no name, which only hand-written text has.
Dim unnamedDim();

/// The dims of a tensor, a number each where they are static.
llvm::SmallVector<Dim> dimsOf(mlir::Type type);
inline llvm::SmallVector<Dim> dimsOf(mlir::Value value) { return dimsOf(value.getType()); }
Dim dimOf(mlir::Type type, int64_t axis);
inline Dim dimOf(mlir::Value value, int64_t axis) { return dimOf(value.getType(), axis); }
/// The number of elements.
Dim elementsOf(mlir::Type type);
Dim product(llvm::ArrayRef<Dim> dims);

/// The tensor type with these dims, in a layout where that is not null.
mlir::RankedTensorType tensorOf(llvm::ArrayRef<Dim> dims, mlir::Type element, mlir::Attribute layout = {});
/// The type's layout (`#dmir.blocked`), null where it is row-major.
mlir::Attribute layoutOf(mlir::Type type);

/// Numbers, with the next of `dims` from `from` on in the place of each dynamic one. Too few dims give unnamed ones.
llvm::SmallVector<Dim> mixDims(llvm::ArrayRef<int64_t> numbers, std::optional<DimsAttr> dims, size_t from = 0);
/// How many of `numbers` are dynamic.
size_t countDynamic(llvm::ArrayRef<int64_t> numbers);
/// The numbers of `dims`, kDynamic where they have none; those are appended to `dynamic`.
llvm::SmallVector<int64_t> splitDims(llvm::ArrayRef<Dim> dims, llvm::SmallVectorImpl<Dim> &dynamic);
/// An attribute of these, null when there are none.
DimsAttr dimsAttr(mlir::MLIRContext *context, llvm::ArrayRef<Dim> dims);

/// A Dim as an attribute: an i64, or #dmir.dims of one.
mlir::Attribute dimAttr(mlir::MLIRContext *context, Dim dim);
/// The Dim of such an attribute; `otherwise` for any other or none.
Dim dimOfAttr(mlir::Attribute attr, Dim otherwise = 0);

/// numpy broadcast of two shapes; nothing where numbers do not broadcast. What symbols must hold for it is a constraint
/// (Constraints.h).
std::optional<llvm::SmallVector<Dim>> broadcastDims(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);

/// Result extent of a window op (conv, pool) along one axis.
Dim windowExtent(Dim in, Dim window, Dim stride, Dim dilation, Dim low, Dim high);

/// The bounds of the symbols that are dims of the arguments, which a module keeps as `dmir.dims`.
void setSymbolBounds(mlir::ModuleOp module, const std::map<std::string, DimBounds> &bounds);
/// The bounds of a symbol in the module around `op`; all sizes where it has none.
DimBounds symbolBounds(mlir::Operation *op, llvm::StringRef symbol);

/// Symbols of an op's types and attributes, in the order they first appear in, each once.
using SymbolSet = llvm::SetVector<mlir::StringAttr>;
void collectSymbols(mlir::Operation *op, SymbolSet &symbols);
/// The symbols of a region's or kernel's body: what its tasks get as dims.
SymbolSet symbolsOf(mlir::Block *block);

} // namespace dmxc::dmir
