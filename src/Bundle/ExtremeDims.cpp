//===- ExtremeDims.cpp - values at the ends of the dims' bounds -----------===//
#include "dmxc/Bundle/Validate.h"

#include <algorithm>
#include <array>

namespace dmxc::bundle {

namespace {

/// What dims of no known size are taken for.
constexpr int64_t nominal = 16;

/// One end of bounds; of an upper end that is open, a small value.
int64_t endOf(int64_t min, int64_t max, bool upper) {
  return !upper ? min : max < INT64_MAX ? max : std::max<int64_t>(min, nominal);
}

/// The end within bounds, but not beyond `limit` where they allow that.
int64_t endWithin(int64_t min, int64_t max, bool upper, int64_t limit) {
  int64_t end = endOf(min, max, upper);
  return upper ? std::max(min, std::min(end, limit)) : std::min(max, std::max(end, limit));
}

/// Of a length, whose run must still have room for its rows.
Result<int64_t> lengthOf(const DimDesc &dim, DimValues values, bool upper, int64_t limit) {
  values[dim.name] = 0;
  auto added = dim.next->evaluate(values);
  if (!added)
    return added;
  if (*added < 0 || *added > dim.max)
    return Error{ErrorKind::Constraint, "there is no room for " + std::to_string(*added) + " rows"};
  return endWithin(0, dim.max - *added, upper, limit);
}

Result<int64_t> valueOf(const DimDesc &dim, const DimValues &values, bool upper, int64_t limit) {
  if (dim.expr)
    return dim.expr->evaluate(values);
  if (dim.next)
    return lengthOf(dim, values, upper, limit);
  if (dim.task < 0)
    return endWithin(dim.min, dim.max, upper, limit);
  auto min = dim.lower.evaluate(values), max = dim.upper.evaluate(values);
  if (!min || !max)
    return min ? max : min;
  // No value is right where the bounds are empty; others of the dims may still fit together.
  if (*min > *max)
    return Error{ErrorKind::Constraint,
                 "the bounds " + std::to_string(*min) + ".." + std::to_string(*max) + " are empty"};
  return endWithin(*min, *max, upper, limit);
}

/// All dims with those of the inputs, and those that tasks return, at their ends, but none beyond `limit`.
Result<DimValues> dimsWithin(const GraphDesc &graph, bool upper, int64_t limit) {
  DimValues values;
  for (const DimDesc &dim : graph.dims) {
    auto value = valueOf(dim, values, upper, limit);
    if (!value)
      return Error{value.error().kind, "graph '" + graph.name + "', dim '" + dim.name + "': " + value.error().message};
    values[dim.name] = *value;
  }
  for (const ConstraintDesc &constraint : graph.constraints)
    if (!holds(constraint, values))
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
    if (dim.input >= 0)
      common = upper ? std::min(common, endOf(dim.min, dim.max, true)) : std::max(common, dim.min);
  return dimsWithin(graph, upper, common);
}

Result<DimValues> usualDims(const GraphDesc &graph) { return dimsWithin(graph, true, nominal); }

namespace {

/// Whether a run may have these values: every tensor has a size.
bool areUsable(const GraphDesc &graph, const DimValues &values) {
  constexpr int64_t mostBytes = int64_t(1) << 47; // as the runtime has it
  for (const BufferDesc &buffer : graph.buffers) {
    for (const Expr &extent : buffer.shape)
      if (auto value = extent.evaluate(values); !extent.isInt() && (!value || *value < 0))
        return false;
    if (auto bytes = denseBytes(buffer.dtype, buffer.shape).evaluate(values); !bytes || *bytes > mostBytes)
      return false;
  }
  return true;
}

} // namespace

std::vector<DimValues> sampleDims(const GraphDesc &graph) {
  bool open = std::any_of(graph.dims.begin(), graph.dims.end(), [](const DimDesc &dim) { return !dim.expr; });
  std::vector<DimValues> samples;
  for (Result<DimValues> &values : std::array{extremeDims(graph, false), usualDims(graph), extremeDims(graph, true)})
    if (values && (!open || areUsable(graph, *values)) &&
        std::find(samples.begin(), samples.end(), *values) == samples.end())
      samples.push_back(std::move(*values));
  return samples;
}

} // namespace dmxc::bundle
