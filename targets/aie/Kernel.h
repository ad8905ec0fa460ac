//===- Kernel.h - which ops the array computes ------------------*- C++ -*-===//
#pragma once

#include "Epilogue.h"
#include "place/Place.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Target/TargetBackend.h"

namespace dmxc::aie {

/// nullopt where the array computes the op, else the reason why not: a clause. What cores do behind a product
/// (Epilogue.h) is computed behind one that the array computes. `strict`: operands are not rounded.
std::optional<std::string> refuses(const hw::Machine &machine, const Herd &herd, bool strict, mlir::Operation *op);
/// Whether a product's operands, of f32 or f16, are rounded to bf16.
bool roundsOperands(mlir::Operation *product);
/// What a region or kernel computes: a product, a bias, a relu, steps; with the default tiling. `packed` (may be null)
/// has the numbers of the operands that are packed.
Result<Mapping> mappingOf(mlir::Block *block, mlir::DictionaryAttr packed, bool strict = false);

/// The form in which the bundle has a constant operand: as the border would make it, or of a convolution's weights and
/// bias in the order of k and n.
mlir::DictionaryAttr formOf(mlir::Builder &b, const Mapping &mapping, const Operand &operand);
/// The form in which the result of one product stays for the other, which reads it as its first operand; null where it
/// goes by the host. `pitch`: its columns.
mlir::Attribute formBetween(mlir::MLIRContext *context, const Mapping &from, const Mapping &to, int64_t pitch);
/// An operand of a product has this form.
void keep(Mapping &mapping, Part part, mlir::Attribute form);
/// That of b among those of a strategy; null where there is none.
mlir::DictionaryAttr formOfB(const Mapping &mapping, mlir::DictionaryAttr packed);
/// Takes the runs that the form of a packed b has, or none; a sentence where its text has others than the mapping's
/// tiling allows.
Status readRuns(const hw::Machine &machine, mlir::DictionaryAttr form, Mapping &mapping);
/// Puts a constant into its form.
Status pack(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

} // namespace dmxc::aie
