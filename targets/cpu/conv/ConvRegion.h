//===- ConvRegion.h - regions around dmir.conv ------------------*- C++ -*-===//
//
// Glue between regions and the emitters of Conv.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/Kernels.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "targets/common/roots/Loops.h"

namespace dmxc::cpu {

void registerConv(KernelTable &table);

/// True when register tiles take the operands and their types; else planPixelConv's may, which are made for
/// row-major images of sizes that a run brings. What is left is computed element by element.
bool isDirectConv(const RegionBody &body);
/// Whether register tiles take a convolution of open batch or spatial dims: its result is blocked.
bool isOpenConv(dmir::ConvOp op);
/// Whether it can write a blocked result; of a plain input as well.
bool mayBlockOpenConv(dmir::ConvOp op);
/// The product x * s that a 1x1 convolution reads, where its kernel multiplies the weights by s instead: s is one
/// factor per channel, within [-1, 1] (what a sigmoid or a clip gives, as in squeeze and excitation, so that no product
/// with a weight overflows), and there are several positions for each output channel. Null elsewhere. Asked of graphs.
dmir::MulOp scalingOfInput(dmir::ConvOp op);
/// Whether one of static f32 may write a row-major result in vectors of pixels: direct sums, of rows that are worth it,
/// and of an image, blocked or row-major, that it reads as it lies.
bool writesRows(dmir::ConvOp op, bool isBlocked);
/// A convolution of u8 with s8 summed in i32: four input channels of a pixel meet at a time, so they have to be
/// adjacent.
bool isByteConv(dmir::ConvOp op);
/// A convolution of bf16 summed in f32.
bool isPairConv(dmir::ConvOp op);
/// Whether one of f32 whose operands were bf16 would be multiplied in pairs, and is not faster by minimal filtering.
/// Asked of graphs.
bool paysInPairs(dmir::ConvOp op);
/// Whether minimal filtering computes one whose image is blocked. Asked of graphs.
bool paysFiltered(dmir::ConvOp op);
/// One of bytes or of bf16 whose sizes are known but for the number of images.
bool isShortConvOfImages(dmir::ConvOp op);
/// Whether one that would be of bytes is faster of them.
bool takesBytes(dmir::ConvOp op);
bool isPixelConv(const RegionBody &body);
/// Whether lanes along a row do better than lanes of output channels, which are too few to fill a vector.
bool prefersPixels(const RegionBody &body);
KernelPlan planPixelConv(const RegionBody &body, const Choice &choice);

/// Writes packed weights ("convpanel16", "convquads16", "convpairs16").
Status packConvOperand(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

} // namespace dmxc::cpu
