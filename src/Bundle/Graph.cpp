//===- Graph.cpp - the task graph of a bundle (graph.json) ----------------===//
#include "dmxc/Bundle/Graph.h"

#include "Json.h"

#include <algorithm>
#include <array>

namespace dmxc::bundle {

using json::Reader;
using json::Value;

namespace {
constexpr std::array<std::string_view, 3> relationNames = {"eq", "le", "divides"};
} // namespace

std::string_view relationName(Relation relation) { return relationNames[static_cast<size_t>(relation)]; }

bool holds(const ConstraintDesc &constraint, const DimValues &dims) {
  auto lhs = constraint.lhs.evaluate(dims), rhs = constraint.rhs.evaluate(dims);
  if (!lhs || !rhs)
    return false;
  if (constraint.relation == Relation::Eq)
    return *lhs == *rhs;
  return constraint.relation == Relation::Le ? *lhs <= *rhs : applyExprOp(Expr::Op::Mod, *rhs, *lhs) == 0;
}

std::string_view bufferKindName(BufferKind kind) {
  switch (kind) {
  case BufferKind::Input:
    return "input";
  case BufferKind::Output:
    return "output";
  case BufferKind::Result:
    return "result";
  case BufferKind::Const:
    return "const";
  case BufferKind::Arena:
    return "arena";
  case BufferKind::Alias:
    return "alias";
  case BufferKind::State:
    return "state";
  }
  return "";
}

std::string_view taskKindName(TaskKind kind) {
  static constexpr std::array<std::string_view, 4> names = {"dispatch", "copy", "if", "loop"};
  return names[static_cast<size_t>(kind)];
}

std::vector<std::string> TaskDesc::ownedGraphs() const {
  if (kind == TaskKind::If)
    return {thenGraph, elseGraph};
  return kind == TaskKind::Loop ? std::vector<std::string>{body} : std::vector<std::string>();
}

std::vector<int64_t> TaskDesc::reads() const {
  if (kind == TaskKind::Copy)
    return {src};
  if (kind == TaskKind::Dispatch)
    return {buffers.begin(), buffers.end() - std::clamp<int64_t>(outputs, 0, static_cast<int64_t>(buffers.size()))};
  std::vector<int64_t> all = carried;
  all.insert(all.end(), buffers.begin(), buffers.end());
  for (int64_t scalar : {cond, tripCount})
    if (scalar >= 0)
      all.push_back(scalar);
  return all;
}

std::vector<int64_t> TaskDesc::writes() const {
  if (kind == TaskKind::Copy)
    return {dst};
  if (isControl())
    return {};
  return {buffers.end() - std::clamp<int64_t>(outputs, 0, static_cast<int64_t>(buffers.size())), buffers.end()};
}

Expr denseBytes(DType dtype, const std::vector<Expr> &shape) {
  unsigned bits = dtypeBits(dtype);
  // The integers are multiplied first, so that few operations remain.
  Expr fixed = bits < 8 ? 1 : static_cast<int64_t>(bits / 8);
  std::optional<Expr> symbolic;
  for (const Expr &dim : shape) {
    if (dim.isInt())
      fixed = Expr::binary(Expr::Op::Mul, fixed, dim);
    else
      symbolic = symbolic ? Expr::binary(Expr::Op::Mul, *symbolic, dim) : dim;
  }
  Expr bytes = fixed;
  if (symbolic)
    bytes = fixed == Expr(1) ? *symbolic : Expr::binary(Expr::Op::Mul, *symbolic, fixed);
  return bits < 8 ? Expr::binary(Expr::Op::CeilDiv, bytes, 8 / bits) : bytes;
}

const GraphDesc *GraphFile::find(std::string_view name) const {
  for (const GraphDesc &graph : graphs)
    if (graph.name == name)
      return &graph;
  return nullptr;
}

Result<DimValues> GraphDesc::evaluateDims(DimValues values) const {
  for (const DimDesc &dim : dims) {
    if (dim.expr) {
      Result<int64_t> value = dim.expr->evaluate(values);
      if (!value)
        return Error{value.error().kind, "graph '" + name + "', dim '" + dim.name + "': " + value.error().message};
      values[dim.name] = *value;
    } else if (!values.count(dim.name)) {
      return modelError("graph '" + name + "': no value given for dim '" + dim.name + "'");
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

Value dimValue(const DimDesc &dim) {
  Value v = {{"name", dim.name}};
  if (dim.expr) {
    v[dim.isRoom ? "room" : "expr"] = json::toValue(*dim.expr);
    return v;
  }
  if (dim.task >= 0) {
    v["task"] = dim.task;
    if (dim.output >= 0) {
      v["output"] = dim.output;
      v["axis"] = dim.axis;
    } else {
      v["result"] = dim.result;
    }
    v["min"] = json::toValue(dim.lower);
    v["max"] = json::toValue(dim.upper);
    return v;
  }
  if (dim.next) {
    v["next"] = json::toValue(*dim.next);
    v["max"] = dim.max;
    return v;
  }
  v["min"] = dim.min;
  v["max"] = dim.max;
  v["input"] = dim.input;
  v["axis"] = dim.axis;
  return v;
}

Value bufferValue(const BufferDesc &buffer) {
  Value v = {{"kind", std::string(bufferKindName(buffer.kind))}};
  switch (buffer.kind) {
  case BufferKind::Input:
  case BufferKind::Output:
    v["index"] = buffer.index;
    if (!buffer.room.empty()) {
      v["room"] = buffer.room;
      v["axis"] = buffer.axis;
      v["past"] = buffer.past;
    }
    break;
  case BufferKind::Result:
    v["task"] = buffer.task;
    v["output"] = buffer.index;
    break;
  case BufferKind::Const:
    v["entry"] = buffer.entry;
    v["tensor"] = buffer.tensor;
    break;
  case BufferKind::Arena:
    v["arena"] = buffer.arena;
    break;
  case BufferKind::Alias:
    v["of"] = buffer.of;
    break;
  case BufferKind::State:
    if (!buffer.length.empty()) {
      v["length"] = buffer.length;
      v["axis"] = buffer.axis;
    }
    break;
  }
  if (buffer.kind >= BufferKind::Const && buffer.kind != BufferKind::State)
    v["offset"] = json::toValue(buffer.offset);
  if (buffer.kind >= BufferKind::Const)
    v["size"] = json::toValue(buffer.size);
  v["dtype"] = std::string(dtypeName(buffer.dtype));
  v["shape"] = json::toValue(buffer.shape);
  return v;
}

void addControl(const TaskDesc &task, Value &v) {
  v["name"] = task.name;
  v["nodes"] = task.nodes;
  if (task.kind == TaskKind::If) {
    v["cond"] = task.cond;
    v["then"] = task.thenGraph;
    v["else"] = task.elseGraph;
    v["inputs"] = task.buffers;
    v["outputs"] = task.outputs;
    return;
  }
  v["body"] = task.body;
  if (task.tripCount >= 0)
    v["trip_count"] = task.tripCount;
  if (task.cond >= 0)
    v["cond"] = task.cond;
  v["carried"] = task.carried;
  v["inputs"] = task.buffers;
  v["scans"] = task.scans;
}

Value taskValue(const TaskDesc &task) {
  Value v = {{"kind", std::string(taskKindName(task.kind))}, {"queue", task.queue}};
  if (task.kind == TaskKind::Copy) {
    v["name"] = task.name;
    v["src"] = task.src;
    v["dst"] = task.dst;
    v["src_offset"] = json::toValue(task.srcOffset);
    v["dst_offset"] = json::toValue(task.dstOffset);
    v["size"] = json::toValue(task.size);
  } else if (task.isControl()) {
    addControl(task, v);
  } else {
    v["kernel"] = task.kernel;
    v["name"] = task.name;
    v["nodes"] = task.nodes;
    v["buffers"] = task.buffers;
    v["outputs"] = task.outputs;
    v["dims"] = json::toValue(task.dims);
    if (task.results)
      v["results"] = task.results;
    v["work"] = json::toValue(task.work);
    v["grain"] = json::toValue(task.grain);
    v["scratch"] = json::toValue(task.scratch);
    v["flops"] = json::toValue(task.flops);
    v["bytes"] = json::toValue(task.bytes);
  }
  v["deps"] = task.deps;
  return v;
}

template <typename T, typename Fn> Value arrayOf(const std::vector<T> &items, Fn convert) {
  Value array = Value::array();
  for (const T &item : items)
    array.push_back(convert(item));
  return array;
}

Value graphValue(const GraphDesc &graph) {
  Value v = {{"name", graph.name}};
  v["dims"] = arrayOf(graph.dims, dimValue);
  if (!graph.constraints.empty())
    v["constraints"] = arrayOf(graph.constraints, [](const ConstraintDesc &c) {
      return Value{{"rel", std::string(relationName(c.relation))},
                   {"lhs", json::toValue(c.lhs)},
                   {"rhs", json::toValue(c.rhs)},
                   {"text", c.text}};
    });
  v["arenas"] = arrayOf(graph.arenas, [](const ArenaDesc &arena) {
    return Value{
        {"size", json::toValue(arena.size)}, {"lower_bound", json::toValue(arena.lowerBound)}, {"align", arena.align}};
  });
  v["buffers"] = arrayOf(graph.buffers, bufferValue);
  v["queues"] = arrayOf(graph.queues,
                        [](const QueueDesc &queue) { return Value{{"name", queue.name}, {"target", queue.target}}; });
  v["tasks"] = arrayOf(graph.tasks, taskValue);
  return v;
}

} // namespace

std::string toJson(const GraphFile &file) {
  Value root = Value::object();
  root["graphs"] = arrayOf(file.graphs, graphValue);
  // root, "graphs", a graph, its arrays: deeper containers keep to one line.
  return json::dump(root, 4);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

DimDesc readDim(const Reader &r) {
  DimDesc dim;
  dim.name = r.string("name");
  if (r.has("expr")) {
    dim.expr = r.expr("expr");
    return dim;
  }
  if (r.has("room")) {
    dim.expr = r.expr("room");
    dim.isRoom = true;
    return dim;
  }
  if (r.has("task")) {
    dim.task = r.integer("task");
    if (r.has("output")) {
      dim.output = r.integer("output");
      dim.axis = r.integer("axis");
    } else {
      dim.result = r.integer("result");
    }
    dim.lower = r.expr("min", 0);
    dim.upper = r.expr("max", INT64_MAX);
    return dim;
  }
  if (r.has("next")) {
    dim.next = r.expr("next");
    dim.max = r.integer("max");
    return dim;
  }
  if (!r.failed() && !r.has("input"))
    r.fail("a dim needs 'input' and 'axis', 'expr', 'room', 'task', or 'next'");
  dim.min = r.integer("min", 0);
  dim.max = r.integer("max", INT64_MAX);
  dim.input = r.integer("input");
  dim.axis = r.integer("axis");
  return dim;
}

ConstraintDesc readConstraint(const Reader &r) {
  ConstraintDesc constraint;
  std::string name = r.string("rel");
  auto found = std::find(relationNames.begin(), relationNames.end(), name);
  if (found == relationNames.end())
    r.fail("unknown relation '" + name + "'; known are eq, le, divides");
  else
    constraint.relation = static_cast<Relation>(found - relationNames.begin());
  constraint.lhs = r.expr("lhs");
  constraint.rhs = r.expr("rhs");
  constraint.text = r.string("text", "");
  return constraint;
}

BufferDesc readBuffer(const Reader &r) {
  BufferDesc buffer;
  std::string kind = r.string("kind");
  if (kind == "input" || kind == "output") {
    buffer.kind = kind == "input" ? BufferKind::Input : BufferKind::Output;
    buffer.index = r.integer("index");
    if (kind == "output" && r.has("room")) {
      buffer.room = r.string("room");
      if (!r.failed() && buffer.room.empty())
        r.fail("'room' is empty");
      buffer.axis = r.integer("axis");
      buffer.past = r.integer("past");
    }
  } else if (kind == "result") {
    buffer.kind = BufferKind::Result;
    buffer.task = r.integer("task");
    buffer.index = r.integer("output");
  } else if (kind == "const") {
    buffer.kind = BufferKind::Const;
    buffer.entry = r.string("entry");
    buffer.tensor = r.string("tensor");
  } else if (kind == "arena") {
    buffer.arena = r.integer("arena");
  } else if (kind == "alias") {
    buffer.kind = BufferKind::Alias;
    buffer.of = r.integer("of");
  } else if (kind == "state") {
    buffer.kind = BufferKind::State;
    if (r.has("length")) {
      buffer.length = r.string("length");
      if (!r.failed() && buffer.length.empty())
        r.fail("'length' is empty");
      buffer.axis = r.integer("axis");
    }
  } else {
    r.fail("unknown kind of buffer '" + kind + "'; known are input, output, result, const, arena, alias, state");
  }
  if (buffer.kind >= BufferKind::Const && buffer.kind != BufferKind::State)
    buffer.offset = r.expr("offset");
  if (buffer.kind >= BufferKind::Const)
    buffer.size = r.expr("size");
  std::string dtype = r.string("dtype");
  if (std::optional<DType> type = dtypeFromName(dtype))
    buffer.dtype = *type;
  else
    r.fail("unknown dtype '" + dtype + "'");
  buffer.shape = r.exprs("shape", true);
  return buffer;
}

void readControl(const Reader &r, TaskDesc &task) {
  task.nodes = r.strings("nodes", false);
  task.buffers = r.integers("inputs", true);
  if (r.string("kind") == "if") {
    task.kind = TaskKind::If;
    task.cond = r.integer("cond");
    task.thenGraph = r.string("then");
    task.elseGraph = r.string("else");
    task.outputs = r.integer("outputs");
    return;
  }
  task.kind = TaskKind::Loop;
  task.body = r.string("body");
  for (auto [key, buffer] : {std::pair("trip_count", &task.tripCount), std::pair("cond", &task.cond)})
    if (*buffer = r.integer(key, -1); r.has(key) && *buffer < 0)
      r.fail(std::string("'") + key + "' is negative");
  task.carried = r.integers("carried", true);
  task.scans = r.integer("scans", 0);
  if (task.scans < 0 || task.scans > 65536)
    r.fail("'scans' is " + std::to_string(task.scans) + ", expected 0 to 65536");
}

TaskDesc readTask(const Reader &r) {
  TaskDesc task;
  std::string kind = r.string("kind");
  task.queue = r.integer("queue");
  task.name = r.string("name");
  task.deps = r.integers("deps", true);
  if (kind == "copy") {
    task.kind = TaskKind::Copy;
    task.src = r.integer("src");
    task.dst = r.integer("dst");
    task.srcOffset = r.expr("src_offset", 0);
    task.dstOffset = r.expr("dst_offset", 0);
    task.size = r.expr("size");
    return task;
  }
  if (kind == "if" || kind == "loop") {
    readControl(r, task);
    return task;
  }
  if (kind != "dispatch")
    r.fail("unknown kind of task '" + kind + "'; known are dispatch, copy, if, loop");
  task.kernel = r.string("kernel");
  task.nodes = r.strings("nodes", false);
  task.buffers = r.integers("buffers", true);
  task.outputs = r.integer("outputs");
  task.dims = r.exprs("dims", false);
  task.results = r.integer("results", 0);
  task.work = r.expr("work");
  task.grain = r.expr("grain", 1);
  task.scratch = r.expr("scratch", 0);
  task.flops = r.expr("flops", 0);
  task.bytes = r.expr("bytes", 0);
  return task;
}

GraphDesc readGraph(const Reader &r) {
  GraphDesc graph;
  graph.name = r.string("name");
  r.forEach("dims", false, [&](const Reader &d) { graph.dims.push_back(readDim(d)); });
  r.forEach("constraints", false, [&](const Reader &c) { graph.constraints.push_back(readConstraint(c)); });
  r.forEach("arenas", true, [&](const Reader &a) {
    ArenaDesc arena;
    arena.size = a.expr("size");
    arena.lowerBound = a.expr("lower_bound", 0);
    arena.align = a.integer("align", 64);
    graph.arenas.push_back(std::move(arena));
  });
  r.forEach("buffers", true, [&](const Reader &b) { graph.buffers.push_back(readBuffer(b)); });
  r.forEach("queues", true, [&](const Reader &q) { graph.queues.push_back({q.string("name"), q.string("target")}); });
  r.forEach("tasks", true, [&](const Reader &t) { graph.tasks.push_back(readTask(t)); });
  return graph;
}

} // namespace

Result<GraphFile> parseGraph(std::string_view text) {
  Reader::Sink sink;
  Value root = json::parse(text, "graph.json", sink);
  GraphFile file;
  if (!sink.failed)
    Reader(root, "graph.json", sink).forEach("graphs", true, [&](const Reader &g) {
      file.graphs.push_back(readGraph(g));
    });
  if (sink.failed)
    return modelError(sink.message);
  return file;
}

} // namespace dmxc::bundle
