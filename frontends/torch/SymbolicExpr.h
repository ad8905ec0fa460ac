//===- SymbolicExpr.h - sizes as sympy writes them --------------*- C++ -*-===//
#pragma once

#include "Program.h"

#include "dmxc/Support/Dim.h"

namespace dmxc::torchfe {

/// A size of the file as a Dim: `Add(Mul(Integer(2), Symbol('s0', positive=True)), Integer(1))`, or `2*s0 + 1` as older
/// exporters wrote it. Nothing where it has a function that sizes do not need; `problem` says which.
std::optional<Dim> parseSize(const SymInt &size, std::string &problem);

} // namespace dmxc::torchfe
