//===- TextImporter.h - torch-dialect text to DMIR --------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"

namespace dmxc::torchfe {

/// Whether a `.mlir` file is of the torch dialect.
bool recognisesText(const std::string &path, llvm::ArrayRef<char> head);

/// What torch-mlir's fx importer writes: one function over `!torch.vtensor`, `torch.aten.*` with all operands, literals
/// and resources; ONNX operators as `torch.operator "onnx.*"`.
std::optional<ImportedModel> importText(mlir::MLIRContext &context, const ImportOptions &options,
                                        Diagnostics &diagnostics);

} // namespace dmxc::torchfe
