//===- Graph.h - graph.json as plain structs --------------------*- C++ -*-===//
#pragma once

#include "Expr.h"
#include "runtime/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dmxrt {

inline constexpr uint32_t kNone = ~0u;

/// A symbolic dim: read from an input's axis, computed from earlier dims, returned by a task, or a length that the
/// session keeps.
struct Dim {
  std::string name;
  int64_t min = 0, max = INT64_MAX;        // inclusive; of dims read from an input, and of lengths
  uint32_t input = kNone, axis = 0;        // the axis also of `output`
  uint32_t task = kNone;                   // the task that returns it
  uint32_t result = kNone, output = kNone; // which of its values, or which output's axis
  ExprId expr = 0;                         // when neither input nor task nor length
  bool isLength = false;
  bool isRoom = false;         // `expr` is the least, and what the caller binds outputs to says how much it is
  ExprId next = 0;             // of a length: its value after a run
  ExprId lower = 0, upper = 0; // inclusive; of dims that a task returns
  uint32_t stage = 0;          // at whose start it is known
};

enum class Relation : uint8_t { Eq, Le, Divides };

/// What the dims' values must fulfil.
struct Constraint {
  Relation relation = Relation::Eq;
  ExprId lhs = 0, rhs = 0;
  std::string text;
  uint32_t stage = 0;
  uint32_t dim = kNone; // the last of the dims it needs to be known; kNone: it needs none
};

struct Arena {
  ExprId size = 0, lowerBound = 0;
  uint32_t stage = 0; // at whose start it is allocated
};

enum class BufferKind : uint8_t { Input, Output, Result, Const, Arena, Alias, State };

struct Buffer {
  BufferKind kind = BufferKind::Arena;
  uint32_t index = kNone;      // Input, Output: position in the graph's list; Result: which output of its task
  uint32_t parent = kNone;     // Arena: its arena; Alias: the buffer it lies in; Result: its task
  uint32_t device = kNone;     // State: the device of the tasks that use it; kNone: no task does
  uint32_t length = kNone;     // State: the dim that says how many rows are there; kNone: all are
  uint32_t axis = 0;           // State, Output: of the rows
  uint32_t room = kNone;       // Output: the dim that says for how many rows its memory has room; kNone: those it has
  uint32_t past = kNone;       // Output: the input whose rows it begins with before the first task
  std::string entry;           // Const: the weights entry
  ExprId offset = 0, size = 0; // not of Input, Output and Result
  dmx_dtype dtype = 0;
  std::vector<ExprId> shape;
  uint32_t stage = 0; // at whose start its place is known
};

enum class TaskKind : uint8_t { Dispatch, Copy, If, Loop };

struct Task {
  TaskKind kind = TaskKind::Dispatch;
  uint32_t device = 0; // position in Graph::targets
  std::string kernel, name;
  std::vector<std::string> nodes;
  std::vector<const char *> nodeNames; // the same for the C API
  std::vector<uint32_t> deps;
  std::vector<uint32_t> buffers; // dispatch: operands then results; copy: src, dst; if, loop: see below
  uint32_t outputs = 0;          // of a dispatch: written buffers; if, loop: what result buffers stand for
  std::vector<ExprId> dims;
  ExprId work = 0, grain = 0, scratch = 0;
  ExprId srcOffset = 0, dstOffset = 0, size = 0; // copy
  bool hasFlops = false, hasBytes = false;
  ExprId flops = 0, bytes = 0;
  uint32_t results = 0; // values that a dispatch returns
  /// If: then and else, which get `buffers`. Loop: the body, which gets the iteration's number, the condition
  /// and `buffers`, the first `carried` of which it replaces; its last `scans` outputs are stacked.
  std::string graphNames[2];
  uint32_t graphs[2] = {kNone, kNone}; // positions of the same
  uint32_t condition = kNone, tripCount = kNone;
  uint32_t carried = 0, scans = 0;

  bool isCopy() const { return kind == TaskKind::Copy; }
  bool isControl() const { return kind == TaskKind::If || kind == TaskKind::Loop; }
  bool hasKernel() const { return kind == TaskKind::Dispatch; }
};

/// A task graph: that of an entry point, or one that a task of another graph owns. Immutable once parsed; all ids
/// are in range, deps point backwards, written buffers are writable, a state serves tasks of one device. Tasks of
/// a stage use only what is known when it starts.
struct Graph {
  std::string name;
  ExprPool exprs;
  std::vector<Dim> dims;
  std::vector<std::string> dimNames;
  std::vector<Constraint> constraints;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  std::vector<uint32_t> inputBuffers, outputBuffers; // buffer of each index; kNone: unused input
  std::vector<std::string> targets;                  // the queues' devices, each once; at least one
  std::vector<uint32_t> stageEnds{0};                // of each stage, one past its last task
  bool owned = false;                                // by a task of another graph
};

/// Finds the stages; false with a sentence in `problem` when something is used before it is known.
bool cutStages(Graph &graph, std::string &problem);
/// Resolves the graphs that tasks own and checks their inputs and outputs.
Status linkGraphs(std::vector<Graph> &graphs);
/// "task 3 'conv'"
std::string describeTask(const Graph &graph, size_t task);

/// Parses and checks graph.json.
Result<std::vector<Graph>> parseGraphs(std::span<const std::byte> text);

} // namespace dmxrt
