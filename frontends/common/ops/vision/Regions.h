//===- Regions.h - pooling of regions whose place is computed ---*- C++ -*-===//
//
// Of an image x [n, c, h, w] and regions of it: `boxes` [regions, 4] are x1, y1, x2, y2 in elements, `images` (i64
// [regions]) says of which image each is. Results are [regions, c, height, width].
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../../Emitter.h"

namespace dmxc::frontend {

/// Bins of a region. With channels of their own (position-sensitive), bin [i, j] has every height * width-th channel
/// from i * width + j on, and the result has c / (height * width).
struct RegionBins {
  int64_t height = 1, width = 1;
  bool ownChannels = false;
};

/// How bins are sampled at places between elements.
struct RegionSampling {
  int64_t ratio = 0;    ///< samples of a bin along each axis; 0: as many as a bin of the region has elements, or more
  bool largest = false; ///< the maximum of the samples' weighted corners, not their mean
  bool atLeastOne = false; ///< a region is at least one element high and wide
};
Val sampledRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins,
                   const RegionSampling &o);

/// The largest element of each bin, whose ends are rounded to elements; 0 where there is none.
Val largestOfRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins);
/// Their mean, of bins with channels of their own. The end of a region does not belong to it, nor the image's last row
/// and column to any, as torchvision has it.
Val meansOfRegions(Emitter &e, const Val &x, const Val &boxes, const Val &images, const RegionBins &bins);

} // namespace dmxc::frontend
