//===- Convolution.h - what the plans of a convolution share ----*- C++ -*-===//
//
// Private to ConvRegion.cpp (static shapes) and ConvOpen.cpp (open sizes).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Conv.h"
#include "ConvRegion.h"
#include "Winograd.h"

#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::cpu {

/// Everything about a convolution that does not depend on the level. Of open sizes `spec` has only what weights tell.
struct Convolution {
  explicit Convolution(const RegionBody &body);
  /// Packs weights at compile time; the fastest way is for minimal filtering where that pays, and bytes four at a time
  /// where the layouts allow that.
  void pack(Packing packing);
  Dim images() const { return dmir::dimOf(op.getInput(), 0); }

  const RegionBody body;
  mutable dmir::ConvOp op; ///< a handle; reading it changes nothing
  ConvKernel spec;
  mlir::Type element;
  unsigned inputBuffer, weightsBuffer;
  std::optional<unsigned> scaleBuffer;  ///< factors of the input's channels, see scalingOfInput
  bool packed = false;                  ///< weights are packed at compile time
  std::optional<WinogradSpec> winograd; ///< when it is computed that way
};

/// Takes sums to the result through the region's epilogue.
class ConvWriter {
public:
  using Value = mlir::Value;

  ConvWriter(CpuBuilder &b, const Convolution &conv);
  /// Sums of channels from `oc` on (a multiple of the lanes) at a position counted through all spatial axes. `mask` is
  /// null where all channels exist.
  void write(Value n, Value oc, Value position, Value sums, Value mask);
  /// Sums of a channel at adjacent pixels of a row, from a position on, which is counted so, too.
  void writePixels(Value n, Value oc, Value position, Value sums, Value mask);

private:
  void writeAt(Value n, Index oc, Index position);

  const Convolution &conv;
  ElementExpr e;
  ResultWriter writer;
  size_t rank;
  std::optional<unsigned>
      positionAxis; ///< carries the position through all spatial axes, where the epilogue allows that
};

/// The packed weights: the constant, or in this thread's scratch, where they are scaled or come at run time.
mlir::Value packedWeights(CpuBuilder &b, const Convolution &conv);
/// Bytes of scratch that packedWeights takes, a multiple of 64.
int64_t packedWeightScratch(const Convolution &conv);

/// Plans a convolution of open sizes; scratch from `scratchOffset` on is free.
KernelPlan planOpenConv(const std::shared_ptr<Convolution> &conv, int64_t scratchOffset, const Choice &choice);
/// The same for depthwise ones; `scratchBytes` are used.
KernelPlan planOpenLanes(const std::shared_ptr<Convolution> &conv, int64_t scratchBytes, const Choice &choice);

} // namespace dmxc::cpu
