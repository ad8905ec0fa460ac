//===- Graph.h - graph.json as plain structs --------------------*- C++ -*-===//
#pragma once

#include "Error.h"
#include "Expr.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dmxrt {

inline constexpr uint32_t kNone = ~0u;

/// A symbolic dim: read from an input's axis, or computed from earlier dims.
struct Dim {
  std::string name;
  int64_t min = 0, max = INT64_MAX; // inclusive; of dims read from an input
  uint32_t input = kNone, axis = 0; // kNone: computed
  ExprId expr = 0;
};

struct Arena {
  ExprId size = 0, lowerBound = 0;
};

enum class BufferKind : uint8_t { Input, Output, Const, Arena, Alias, State };

struct Buffer {
  BufferKind kind = BufferKind::Arena;
  uint32_t index = kNone;      // Input, Output: position in the entry point's list
  uint32_t parent = kNone;     // Arena: its arena; Alias: the buffer it lies in
  uint32_t device = kNone;     // State: the device of the tasks that use it; kNone: no task does
  std::string entry;           // Const: the weights entry
  ExprId offset = 0, size = 0; // not of Input and Output
  dmx_dtype dtype = 0;
  std::vector<ExprId> shape;
};

struct Task {
  bool isCopy = false;
  uint32_t device = 0; // position in Graph::targets
  std::string kernel, name;
  std::vector<std::string> nodes;
  std::vector<const char *> nodeNames; // the same for the C API
  std::vector<uint32_t> deps;
  std::vector<uint32_t> buffers; // dispatch: operands then results; copy: src, dst
  uint32_t outputs = 0;
  std::vector<ExprId> dims;
  ExprId work = 0, grain = 0, scratch = 0;
  ExprId srcOffset = 0, dstOffset = 0, size = 0; // copy
  bool hasFlops = false, hasBytes = false;
  ExprId flops = 0, bytes = 0;
};

/// The task graph of one entry point. Immutable once parsed; all ids are in range, deps
/// point backwards, written buffers are writable, a state serves tasks of one device.
struct Graph {
  std::string name;
  ExprPool exprs;
  std::vector<Dim> dims;
  std::vector<std::string> dimNames;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  std::vector<uint32_t> inputBuffers, outputBuffers; // buffer of each index; kNone: unused input
  std::vector<std::string> targets;                  // the queues' devices, each once; at least one
};

/// Parses and checks graph.json.
Result<std::vector<Graph>> parseGraphs(std::span<const std::byte> text);

} // namespace dmxrt
