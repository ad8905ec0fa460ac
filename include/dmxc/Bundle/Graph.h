//===- Graph.h - the task graph of a bundle (graph.json) --------*- C++ -*-===//
//
// Plain structs, field for field those of schemas/FORMAT.md. Ids are positions
// in the arrays. All sizes and offsets are in bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Expr.h"
#include "dmxc/Support/DType.h"

#include <vector>

namespace dmxc::bundle {

/// One row of the dim table. Rows are evaluated in order. Exactly one of
/// {input and axis}, `expr`, {task and result} and {task, output and axis} says
/// where the value comes from.
struct DimDesc {
  std::string name;
  /// Inclusive bounds of a dim read from an input; unused for a computed one.
  int64_t min = 0;
  int64_t max = INT64_MAX;
  /// Input (its `index`) and axis that define the dim; -1 for a computed dim.
  int64_t input = -1;
  int64_t axis = -1;
  /// Set for a computed dim; mentions earlier rows only.
  std::optional<Expr> expr;
  /// Of a computed dim: it is the least that it may be, and the tensors that a caller gives for outputs with this
  /// `room` say how much it is.
  bool isRoom = false;
  /// The task that returns the dim: its value number `result`, or `axis` of its
  /// output number `output`; -1 for others.
  int64_t task = -1;
  int64_t result = -1;
  int64_t output = -1;
  /// Inclusive bounds of a returned dim, over earlier rows.
  Expr lower = 0;
  Expr upper = INT64_MAX;
  /// Set for a length, which the session keeps, 0 at first and `max` at most: its value after a run, over earlier rows
  /// and itself.
  std::optional<Expr> next;
};

/// One block of session memory. `lower_bound` is the largest sum of live bytes
/// at any time, for the report of how well the arena is packed.
struct ArenaDesc {
  Expr size;
  Expr lowerBound;
  int64_t align = 64;
};

enum class BufferKind { Input, Output, Result, Const, Arena, Alias, State };

struct BufferDesc {
  BufferKind kind = BufferKind::Arena;
  DType dtype = DType::F32;
  std::vector<Expr> shape;
  /// Input, Output: position in the graph's list; Result: which output of
  /// `task`.
  int64_t index = 0;
  /// Result: the if or loop that gives it.
  int64_t task = 0;
  /// Const: the weights entry and the tensor's name in it. `offset` then counts
  /// from the first byte of the entry (safetensors header included).
  std::string entry, tensor;
  /// Arena: which one.
  int64_t arena = 0;
  /// Alias: the non-alias buffer it is a byte range of.
  int64_t of = 0;
  /// Const, Arena, Alias.
  Expr offset;
  /// All but Input, Output and Result. An integer for Const and State.
  Expr size;
  /// State: the dim that says how many rows along `axis` are there; empty where all are.
  std::string length;
  int64_t axis = 0;
  /// Output: the dim that says for how many rows along `axis` its memory has room, and the input whose rows it begins
  /// with; empty and -1 where it is just its shape.
  std::string room;
  int64_t past = -1;
};

/// What the dims' values must fulfil. `Divides`: lhs is not 0 and rhs a
/// multiple of it.
enum class Relation { Eq, Le, Divides };

struct ConstraintDesc {
  Relation relation = Relation::Eq;
  Expr lhs, rhs;
  /// For people: where it comes from.
  std::string text;
};

struct QueueDesc {
  std::string name;
  std::string target;
};

enum class TaskKind { Dispatch, Copy, If, Loop };

struct TaskDesc {
  TaskKind kind = TaskKind::Dispatch;
  int64_t queue = 0;
  /// For people: profiles and error messages.
  std::string name;
  /// All but Copy: the model's nodes computed here.
  std::vector<std::string> nodes;
  /// Positions of earlier tasks that must have ended.
  std::vector<int64_t> deps;

  /// Dispatch: the kernel, its buffers (operands, then results; the last
  /// `outputs` are written), the values it gets as dims, its work items.
  std::string kernel;
  std::vector<int64_t> buffers;
  int64_t outputs = 1;
  std::vector<Expr> dims;
  Expr work = 1;
  /// Smallest number of work items worth giving to a thread.
  Expr grain = 1;
  /// Bytes of scratch per thread.
  Expr scratch;
  /// The cost model's figures, for reports: operations and bytes moved.
  Expr flops, bytes;

  /// Dispatch: how many values it returns.
  int64_t results = 0;

  /// If: the graphs, which get `buffers` and have `outputs` outputs. Loop: the
  /// body, which gets the iteration's number, the condition, `carried` and
  /// `buffers`. Both: the bool that decides; Loop: -1 when there is none.
  std::string thenGraph, elseGraph, body;
  int64_t cond = -1;
  /// Loop: the i64 that limits it (-1: none), its initial values, the number of
  /// outputs that are stacked.
  int64_t tripCount = -1;
  std::vector<int64_t> carried;
  int64_t scans = 0;

  bool isControl() const { return kind == TaskKind::If || kind == TaskKind::Loop; }
  /// The graphs that an If or Loop owns.
  std::vector<std::string> ownedGraphs() const;
  /// How many outputs an If or Loop has.
  int64_t outputCount() const { return kind == TaskKind::If ? outputs : static_cast<int64_t>(carried.size()) + scans; }
  /// Buffers that the task reads, then those among its operands that it writes.
  std::vector<int64_t> reads() const, writes() const;

  /// Copy: `size` bytes from src+srcOffset to dst+dstOffset.
  int64_t src = 0, dst = 0;
  Expr srcOffset, dstOffset, size;
};

struct GraphDesc {
  std::string name;
  std::vector<DimDesc> dims;
  std::vector<ConstraintDesc> constraints;
  std::vector<ArenaDesc> arenas;
  std::vector<BufferDesc> buffers;
  std::vector<QueueDesc> queues;
  std::vector<TaskDesc> tasks;

  /// Evaluates computed dims on top of the values given for the other dims.
  Result<DimValues> evaluateDims(DimValues inputs) const;
};

/// The whole of graph.json.
struct GraphFile {
  std::vector<GraphDesc> graphs;
  /// The graph of that name, or null.
  const GraphDesc *find(std::string_view name) const;
};

/// Deterministic text: keys in FORMAT.md's order, one line a task and buffer,
/// ends with a newline.
std::string toJson(const GraphFile &file);

/// Parses and checks types and the presence of fields; unknown fields are
/// ignored (they are a newer minor's). The rules between fields are checked by
/// `validate` (Validate.h). Errors are ErrorKind::Model and name the place,
/// e.g. "graph.json: graphs[0].tasks[3].queue: expected an integer, got a
/// string".
Result<GraphFile> parseGraph(std::string_view json);

/// The names that `required` has to have for these graphs (FORMAT.md), sorted.
std::vector<std::string> featuresOf(const GraphFile &file);

/// Where each stage's tasks end (FORMAT.md, "Stages"): at least one, the last
/// one is the number of tasks. Fails (ErrorKind::Model) when a task uses what it
/// or a later one returns, or something that does not exist.
Result<std::vector<int64_t>> stageEnds(const GraphDesc &graph);

/// Whether the constraint holds; false also where a side has no value.
bool holds(const ConstraintDesc &constraint, const DimValues &dims);

/// The JSON name: "eq", "le", "divides".
std::string_view relationName(Relation relation);
std::string_view bufferKindName(BufferKind kind);
std::string_view taskKindName(TaskKind kind);

/// Bytes of a dense tensor of this type and shape, as an expression.
Expr denseBytes(DType dtype, const std::vector<Expr> &shape);

} // namespace dmxc::bundle
