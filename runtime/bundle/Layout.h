//===- Layout.h - a graph's numbers for given shapes ------------*- C++ -*-===//
#pragma once

#include "Archive.h"
#include "Graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dmxrt {

/// Everything about a graph that follows from the values of its dims; a stage's part is filled when its dims are
/// known. All ranges are checked: buffers lie in their arena, entry or parent, and hold their shape; copies stay
/// inside their buffers.
struct Layout {
  struct Place {
    uint64_t offset = 0; // in the arena, entry or parent
    uint64_t size = 0;   // bytes
    uint64_t dense = 0;  // of these, those of a dense tensor of its shape
  };
  struct TaskNumbers {
    int64_t work = 0, grain = 1; // a copy's work is its bytes
    uint64_t scratch = 0;
    uint64_t srcOffset = 0, dstOffset = 0;
    int64_t flops = -1, bytes = -1; // -1: unknown
    uint32_t firstDim = 0;          // in taskDims
  };
  std::vector<uint64_t> arenaSizes;
  std::vector<uint64_t> arenaLowerBounds;
  std::vector<Place> places; // per buffer
  std::vector<TaskNumbers> tasks;
  std::vector<int64_t> taskDims;
};

/// Whether no dim depends on the inputs' shapes, so that the first stage is always the same.
bool isStatic(const Graph &graph);

/// Checks those of a stage's constraints whose last dim is `dim` (kNone: that have none).
Status checkConstraints(const Graph &graph, uint32_t stage, uint32_t dim, std::span<const int64_t> values);

/// Fills in the values of a stage's dims and checks the constraints on them. `given(dim)` is the value of one that is
/// read from an input, returned by a task or kept.
template <typename Given>
Status evaluateDims(const Graph &graph, uint32_t stage, std::span<int64_t> values, Given given) {
  Status status = checkConstraints(graph, stage, kNone, values);
  for (uint32_t i = 0; i < graph.dims.size() && status; ++i) {
    const Dim &dim = graph.dims[i];
    if (dim.stage != stage)
      continue;
    bool computed = dim.input == kNone && dim.task == kNone && !dim.isLength && !dim.isRoom;
    Result<int64_t> value = computed ? graph.exprs.evaluate(dim.expr, values) : given(dim);
    if (!value)
      return computed ? within(cat("dim '", dim.name, "'"), value.takeError()) : value.takeError();
    values[i] = *value;
    status = checkConstraints(graph, stage, i, values);
  }
  return status;
}

/// The shape of a buffer for the dims' values; an error when an extent is negative.
Status evaluateShape(const Graph &graph, uint32_t buffer, std::span<const int64_t> dims, std::vector<int64_t> &shape);

/// Fills a stage's part of a layout that has those of the stages before. `archive` has the entries that constants
/// lie in.
Status layOut(const Graph &graph, const Archive &archive, std::span<const int64_t> dims, uint32_t stage,
              Layout &layout);

} // namespace dmxrt
