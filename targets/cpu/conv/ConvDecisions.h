//===- ConvDecisions.h - what of a convolution's blocking is free -*- C++ -*-===//
//
// As GemmDecisions.h is for products. `decided`: names and values for a level, or null.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Conv.h"
#include "Winograd.h"

#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Nothing is free where elements are fours.
std::vector<Decision> convDecisions(const ConvSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);
std::vector<Decision> winogradDecisions(const WinogradSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);
/// The blockings with what is decided, as far as it is in the domains.
ConvTiles decidedConvTiles(const ConvSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);
WinogradTiles decidedWinogradTiles(const WinogradSpec &spec, const IsaLevel &isa, mlir::DictionaryAttr decided);

/// Of what writeTile wrote.
ConvTiles readConvTiles(mlir::DictionaryAttr tiles, const ConvSpec &spec, const IsaLevel &isa);
WinogradTiles readWinogradTiles(mlir::DictionaryAttr tiles, const WinogradSpec &spec, const IsaLevel &isa);

/// A plan's tiles, what is free of them, work, grain and scratch, beside `otherScratch` bytes.
void planDirectConv(KernelPlan &plan, const ConvSpec &spec, const Choice &choice, int64_t otherScratch);
void planWinograd(KernelPlan &plan, const WinogradSpec &spec, const Choice &choice);

} // namespace dmxc::cpu
