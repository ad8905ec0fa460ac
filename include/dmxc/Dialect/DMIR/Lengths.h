//===- Lengths.h - states of which as many rows are there as runs have made -*- C++ -*-===//
//
// A state with a length has room for rows along an axis; a dim that the session keeps says how many of them are there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace dmxc::dmir {

/// Function or program: array of [NAME, #dmir.dims<NEXT>], the dims that the session keeps: 0 at first, and after a run
/// what NEXT was in it.
inline constexpr llvm::StringLiteral kLengthsAttr = "dmir.lengths";
/// Function argument that is a state, or its buffer: [NAME, AXIS], the dim that says how many rows are there, and their
/// axis.
inline constexpr llvm::StringLiteral kLengthAttr = "dmir.length";

} // namespace dmxc::dmir
