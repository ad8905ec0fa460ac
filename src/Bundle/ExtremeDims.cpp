//===- ExtremeDims.cpp - values at the ends of the dims' bounds -----------===//
#include "dmxc/Bundle/Validate.h"

#include <algorithm>

namespace dmxc::bundle {

namespace {

/// The end of a dim's bounds; of an upper end that is open, a small value.
int64_t endOf(const DimDesc &dim, bool upper) {
  return !upper ? dim.min : dim.max < INT64_MAX ? dim.max : std::max<int64_t>(dim.min, 16);
}

/// All dims with those of the inputs at their ends, but none beyond `limit`.
Result<DimValues> dimsWithin(const GraphDesc &graph, bool upper, int64_t limit) {
  DimValues inputs;
  for (const DimDesc &dim : graph.dims) {
    if (dim.expr)
      continue;
    int64_t end = endOf(dim, upper);
    inputs[dim.name] = upper ? std::max(dim.min, std::min(end, limit)) : std::min(dim.max, std::max(end, limit));
  }
  Result<DimValues> values = graph.evaluateDims(std::move(inputs));
  if (!values)
    return values;
  for (const ConstraintDesc &constraint : graph.constraints)
    if (!holds(constraint, *values))
      return Error{ErrorKind::Constraint, "graph '" + graph.name +
                                              "': the ends of the dims' bounds break the constraint '" +
                                              constraint.text + "'"};
  return values;
}

} // namespace

Result<DimValues> extremeDims(const GraphDesc &graph, bool upper) {
  Result<DimValues> values = dimsWithin(graph, upper, upper ? INT64_MAX : INT64_MIN);
  if (values || values.error().kind != ErrorKind::Constraint)
    return values;
  // Dims that must agree, or broadcast, do so when all have the same value.
  int64_t common = upper ? INT64_MAX : INT64_MIN;
  for (const DimDesc &dim : graph.dims)
    if (!dim.expr)
      common = upper ? std::min(common, endOf(dim, true)) : std::max(common, dim.min);
  return dimsWithin(graph, upper, common);
}

} // namespace dmxc::bundle
