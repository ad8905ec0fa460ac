//===- ConvSegment.h - the input that a span of output pixels reads -*- C++ -*-===//
//
// Private to the convolutions over images of open sizes: their geometry, and copies of row-major input to scratch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/code/CpuBuilder.h"

#include "targets/common/roots/windows/Window.h"

#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::cpu {

/// What a convolution over open sizes computes. Where all kernel dims, strides and pads are trivial, the spatial axes
/// are one axis; last axes of one element are left out.
struct PixelSpec {
  explicit PixelSpec(dmir::ConvOp op);

  Dim batch, inChannels;
  int64_t groupIc, groupOc, groups, taps = 1;
  unsigned bits; ///< of a sum
  llvm::SmallVector<WindowAxis> axes;
  bool isPointwise = true;
  bool isOneAxis = false; ///< it counts through several axes of the result
  /// Output channels of a work item, all of one group; the last item may have fewer where there is one group.
  int64_t channels = 64;
  /// Pixels whose input is copied at a time.
  int64_t segment = 48;

  int64_t outChannels() const { return groupOc * groups; }
  /// Sizes of the result's axes.
  llvm::SmallVector<Dim> out() const {
    return llvm::map_to_vector(axes, [](const WindowAxis &axis) { return axis.out; });
  }
  int64_t kernel() const { return *axes.back().taps.known(); }
  int64_t stride() const { return axes.back().stride; }
  /// Rows of input that a pixel reads.
  int64_t rows() const { return groupIc * (taps / kernel()); }
  /// By how much a phase of a row is longer than the pixels it is for.
  int64_t overhang() const { return (kernel() - 1) * axes.back().dilation / stride(); }
  /// Of a SegmentCopy.
  int64_t scratchBytes() const {
    int64_t phase = static_cast<int64_t>(llvm::alignTo(llvm::alignTo(segment, 16) + overhang(), 16));
    return rows() * stride() * phase * bits / 8;
  }
};

/// Copies the input of adjacent pixels of a row to scratch: a row for each channel and tap of the leading axes, zeros
/// for the padding, cut in phases where the stride is not 1. What register tiles load is contiguous then.
class SegmentCopy {
public:
  using Value = mlir::Value;

  SegmentCopy(CpuBuilder &b, dmir::ConvOp op, const PixelSpec &spec, mlir::Type accType);

  /// Pixels [first, first + count) of the row at `leading`, for the group whose first channel in all images is
  /// `channel`, to `target`.
  void copy(Value target, Value channel, llvm::ArrayRef<Value> leading, Value first, Value count);
  /// What is summed at a tap of the last axis: `offset` in the copy of the element that pixel 0 reads, the tap itself,
  /// and its number, right modulo 2.
  using TapBody = llvm::function_ref<void(Value offset, Value tap, int64_t number, llvm::MutableArrayRef<Value> sums)>;
  /// All taps of the last axis in a row, in their order; gives the sums after them. Many taps are a loop.
  llvm::SmallVector<Value> forTaps(Value row, mlir::ValueRange sums, TapBody body);
  /// An element as sums have them.
  Value widened(Value raw);

private:
  Value offset(Value row, int64_t tap);
  void copyRow(Value source, Value width, Value target);
  Value runOf(Value source, Value position, Value width);
  Value gathered(Value source, Value position, Value width);
  const WindowAxis &last() const { return s.axes.back(); }

  CpuBuilder &b;
  dmir::ConvOp op;
  const PixelSpec &s;
  mlir::Type element, accType;
  int64_t lanes;
  Value pixel; ///< the first one
  Value phase; ///< elements of one phase of a copied row
};

} // namespace dmxc::cpu
