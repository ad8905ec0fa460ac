//===- MatmulRanges.h - what of a product is known to be zero, or not asked for -*- C++ -*-===//
//
// Facts that the graph has of a product's operands and of its result (dmxc/Dialect/DMIR/masks/Sparsity.h) leave a range
// of depths for each block of the result. A constant right operand is not asked about: SparseWeights.h leaves out more.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MatmulProduct.h"
#include "targets/common/roots/Plans.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

namespace dmxc::cpu {

struct ProductRanges {
  std::optional<dmir::Rule> left;   ///< what is not zero of the left operand
  std::optional<dmir::Rule> right;  ///< of the right one, its last two axes exchanged
  std::optional<dmir::Rule> result; ///< what is asked for

  /// What a kernel that is planned for the request leaves out.
  static ProductRanges of(const MatmulProduct &product, const kernels::PlanRequest &request);
  bool any() const { return left || right || result; }
  /// GemmCallbacks::depths of a product.
  std::pair<mlir::Value, mlir::Value> depths(CpuBuilder &b, const MatmulProduct &product, const GemmBox &box) const;
  /// The part of multiply-adds that blocks of some rows and columns do, of sizes that are known now: nothing of others.
  std::optional<double> part(const MatmulProduct &product) const;
};

/// Why the kernel of a plan multiplies all although something is known of the region's product; "" where it does not,
/// or nothing is known.
std::string whyNoRanges(dmir::RegionOp region, const kernels::KernelPlan &plan);

} // namespace dmxc::cpu
