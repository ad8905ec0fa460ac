//===- ConvDecisions.h - what of a convolution's blocking is free -*- C++ -*-===//
//
// As GemmDecisions.h is for products.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Conv.h"
#include "Winograd.h"

#include "targets/cpu/Kernels.h"

namespace dmxc::cpu {

/// Of what writeTile wrote.
ConvTiles readConvTiles(mlir::DictionaryAttr tiles, const ConvKernel &spec, const IsaLevel &isa);
WinogradTiles readWinogradTiles(mlir::DictionaryAttr tiles, const WinogradSpec &spec, const IsaLevel &isa);

/// A plan's tiles, what is free of them, work, grain and scratch, beside `otherScratch` bytes.
/// `images`: how many, where the spec leaves that open.
void planDirectConv(KernelPlan &plan, const ConvKernel &spec, Dim images, const Choice &choice, int64_t otherScratch);
void planWinograd(KernelPlan &plan, const WinogradSpec &spec, const Choice &choice);

} // namespace dmxc::cpu
