//===- TextDialect.h - reads torch-dialect text -----------------*- C++ -*-===//
//
// The `torch` dialect as far as its text goes: operators have the operands, types and literals that stand there, and no
// meaning. Types are opaque.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Dialect.h"

namespace dmxc::torchfe {

class TextDialect : public mlir::Dialect {
public:
  explicit TextDialect(mlir::MLIRContext *context);
  static constexpr llvm::StringLiteral getDialectNamespace() { return llvm::StringLiteral("torch"); }

  mlir::Type parseType(mlir::DialectAsmParser &parser) const override;
  void printType(mlir::Type type, mlir::DialectAsmPrinter &printer) const override;
  std::optional<ParseOpHook> getParseOperationHook(llvm::StringRef name) const override;
};

/// What `torch.operator` calls, and the literal of a constant.
inline constexpr llvm::StringLiteral kTextCallee = "callee", kTextValue = "value";

} // namespace dmxc::torchfe

MLIR_DECLARE_EXPLICIT_TYPE_ID(dmxc::torchfe::TextDialect)
