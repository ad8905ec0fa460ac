//===- UserBody.h - nodes that a user's assembly computes -------*- C++ -*-===//
#pragma once

#include "UserText.h"

#include "dmxc/Dialect/DMIR/Kernels.h"

namespace dmxc::corsair {

/// Why the device runs no body of the kernel: a clause.
std::optional<std::string> whyNoBody(dmir::ExternOp op, const hw::Machine &machine);

/// The text of the kernel's body, read for the node. Errors name the file, the line and what does not fit.
Result<UserText> readUserText(dmir::ExternOp op, const hw::Machine &machine);

/// What later stages need of the op: {kernel, body, scalars}.
mlir::DictionaryAttr userParameters(dmir::ExternOp op, const hw::Machine &machine);
/// The text that such parameters name, for values of these types on the device.
Result<UserText> readUserText(mlir::DictionaryAttr parameters, mlir::TypeRange operands, mlir::TypeRange results,
                              const hw::Machine &machine);

/// An estimate for one run of the kernel on a quad, in clocks: that of its slowest queue.
double clocksOf(const UserText &text, const hw::Machine &machine);

/// Of a program: what users wrote of its code, an array of {kernel, file, symbol, sha256}.
inline constexpr llvm::StringLiteral kUserBodies = "corsair.user_bodies";
/// Adds what the parameters name to a program.
void noteBody(mlir::DictionaryAttr parameters, mlir::Operation *program);
/// Says of a program whose code is emitted what users wrote of it.
void noteUserCode(mlir::Operation *program, const hw::Machine &machine);

} // namespace dmxc::corsair
