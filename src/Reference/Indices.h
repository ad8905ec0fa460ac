//===- Indices.h - index operands of gathers and scatters -------*- C++ -*-===//
#pragma once

#include "Evaluator.h"

#include <span>
#include <vector>

namespace dmxc::reference {

/// The values of an index tensor (i32 or i64) with negative ones counted from the end. `dims` are the dims they index:
/// one for a plain index, several for tuples along the last axis. Fails on the first one that is out of range.
Result<std::vector<int64_t>> readIndices(const Call &call, const Tensor &tensor, std::span<const int64_t> dims);

/// One element offset a tuple; empty when tuples have no index at all.
std::vector<int64_t> tupleOffsets(const std::vector<int64_t> &indices, std::span<const int64_t> strides);

} // namespace dmxc::reference
