//===- Layout.h - a graph's numbers for given shapes ------------*- C++ -*-===//
#pragma once

#include "Archive.h"
#include "Graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dmxrt {

/// Everything about a graph that follows from the values of its dims. All ranges are checked: buffers
/// lie in their arena, entry or parent, and hold their shape; copies stay inside their buffers.
struct Layout {
  struct Place {
    uint64_t offset = 0; // in the arena, entry or parent
    uint64_t size = 0;   // bytes
  };
  struct TaskNumbers {
    int64_t work = 0, grain = 1; // a copy's work is its bytes
    uint64_t scratch = 0;
    uint64_t srcOffset = 0, dstOffset = 0;
    int64_t flops = -1, bytes = -1; // -1: unknown
    uint32_t firstDim = 0;          // in taskDims
  };
  std::vector<uint64_t> arenaSizes;
  uint64_t arenaLowerBound = 0; // sum over arenas
  std::vector<Place> places;    // per buffer
  std::vector<TaskNumbers> tasks;
  std::vector<int64_t> taskDims;
};

/// Whether all dims of the graph are fixed.
bool isStatic(const Graph &graph);

/// Values of all dims. `axisValue(input, axis)` gives the extent of a bound input.
template <typename AxisValue> Result<std::vector<int64_t>> evaluateDims(const Graph &graph, AxisValue axisValue) {
  std::vector<int64_t> values;
  for (const Dim &dim : graph.dims) {
    Result<int64_t> value = dim.input != kNone ? axisValue(dim) : graph.exprs.evaluate(dim.expr, values);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

/// The shape of a buffer for the dims' values; an error when an extent is negative.
Status evaluateShape(const Graph &graph, uint32_t buffer, std::span<const int64_t> dims, std::vector<int64_t> &shape);

/// `archive` has the entries that constants lie in.
Result<Layout> layOut(const Graph &graph, const Archive &archive, std::span<const int64_t> dims);

} // namespace dmxrt
