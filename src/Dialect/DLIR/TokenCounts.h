//===- TokenCounts.h - text form of the tokens of groups and barriers -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/IR/OpImplementation.h"

namespace dmxc::dlir {

/// `%a, %b >= 2`: what is waited for.
mlir::ParseResult parseWaits(mlir::OpAsmParser &parser,
                             llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &tokens,
                             mlir::DenseI64ArrayAttr &counts);
void printWaits(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::OperandRange tokens,
                mlir::DenseI64ArrayAttr counts);
/// `%a, %b += 2`: what is given.
mlir::ParseResult parseSignals(mlir::OpAsmParser &parser,
                               llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &tokens,
                               mlir::DenseI64ArrayAttr &counts);
void printSignals(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::OperandRange tokens,
                  mlir::DenseI64ArrayAttr counts);

} // namespace dmxc::dlir
