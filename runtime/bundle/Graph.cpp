//===- Graph.cpp - graph.json as plain structs ----------------------------===//

#include "Graph.h"
#include "DType.h"
#include "Json.h"
#include "runtime/devices/Device.h"

#include <map>
#include <set>

namespace dmxrt {
namespace {

/// Reads one element of "graphs". Failures go to the document.
class GraphParser {
public:
  explicit GraphParser(JsonCursor cursor) : cursor(cursor) {}
  Graph parse();

private:
  JsonCursor cursor;
  Graph graph;
  ExprPool::DimNames dimIds;
  std::vector<uint32_t> queueDevices; // per queue
  uint32_t host = kNone;              // the host's position among the targets, if it is there

  ExprId expr(JsonCursor at) { return graph.exprs.parse(at, dimIds); }
  ExprId exprOr(JsonCursor at, int64_t fallback) { return at.present() ? expr(at) : graph.exprs.constant(fallback); }
  uint32_t id(JsonCursor at, size_t limit, std::string_view what);

  void parseDims(JsonCursor list);
  void parseReturnedDim(JsonCursor at, Dim &dim);
  void parseConstraints(JsonCursor list);
  void parseArenas(JsonCursor list);
  Buffer parseBuffer(JsonCursor at);
  void checkRows(JsonCursor at, const Buffer &buffer);
  void placeRows(JsonCursor at, Buffer &buffer);
  void placeBuffer(JsonCursor at, std::string_view kind, Buffer &buffer);
  void registerBound(JsonCursor at, const Buffer &buffer, uint32_t position);
  void checkBuffers(JsonCursor list);
  void parseQueues(JsonCursor list);
  Task parseTask(JsonCursor at, size_t position);
  void parseDispatch(JsonCursor at, Task &task);
  void parseCopy(JsonCursor at, Task &task);
  void parseControl(JsonCursor at, Task &task);
  void parseLoop(JsonCursor at, Task &task);
  uint32_t scalar(JsonCursor at, dmx_dtype dtype);
  void checkReturned(JsonCursor dims, JsonCursor buffers);
  void checkWritable(JsonCursor at, uint32_t buffer);
  void claimStates(JsonCursor at, const Task &task);
};

uint32_t GraphParser::id(JsonCursor at, size_t limit, std::string_view what) {
  int64_t value = at.integer(0, INT32_MAX);
  if (at.present() && static_cast<size_t>(value) >= limit) {
    at.fail(cat(what, " ", value, " does not exist; there are ", limit));
    return 0;
  }
  return static_cast<uint32_t>(value);
}

/// A value that a task returns, or an extent of one of its outputs.
void GraphParser::parseReturnedDim(JsonCursor at, Dim &dim) {
  dim.task = static_cast<uint32_t>(at["task"].integer(0, INT32_MAX));
  if (at.optional("output").present()) {
    dim.output = static_cast<uint32_t>(at["output"].integer(0, INT32_MAX));
    dim.axis = static_cast<uint32_t>(at["axis"].integer(0, DMX_MAX_RANK - 1));
  } else {
    dim.result = static_cast<uint32_t>(at["result"].integer(0, INT32_MAX));
  }
  dim.lower = exprOr(at.optional("min"), 0);
  dim.upper = exprOr(at.optional("max"), INT64_MAX);
}

void GraphParser::parseConstraints(JsonCursor list) {
  for (size_t i = 0; i < list.size(); ++i) {
    JsonCursor at = list.at(i);
    std::string_view name = at["rel"].text();
    Constraint constraint;
    if (name == "le")
      constraint.relation = Relation::Le;
    else if (name == "divides")
      constraint.relation = Relation::Divides;
    else if (name != "eq")
      at.fail(cat("unknown relation '", name, "' of a constraint; known are eq, le, divides"));
    constraint.lhs = expr(at["lhs"]);
    constraint.rhs = expr(at["rhs"]);
    constraint.text = at.optional("text").string();
    graph.constraints.push_back(std::move(constraint));
  }
}

void GraphParser::parseDims(JsonCursor list) {
  for (size_t i = 0; i < list.size(); ++i) {
    JsonCursor at = list.at(i);
    Dim dim;
    dim.name = at["name"].string();
    if (at.optional("expr").present()) {
      dim.expr = expr(at["expr"]);
    } else if (at.optional("room").present()) {
      dim.isRoom = true;
      dim.expr = expr(at["room"]);
    } else if (at.optional("task").present()) {
      parseReturnedDim(at, dim);
    } else if (at.optional("next").present()) {
      dim.isLength = true;
      dim.max = at["max"].integer(0, INT64_MAX);
    } else {
      dim.input = static_cast<uint32_t>(at["input"].integer(0, INT32_MAX));
      dim.axis = static_cast<uint32_t>(at["axis"].integer(0, DMX_MAX_RANK - 1));
      dim.min = at.optional("min").integer(0, INT64_MAX, 0);
      dim.max = at.optional("max").integer(dim.min, INT64_MAX, INT64_MAX);
    }
    if (!dimIds.emplace(dim.name, static_cast<uint32_t>(i)).second)
      at.fail(cat("two dims are named '", dim.name, "'"));
    if (dim.isLength) // may mention itself
      dim.next = expr(at["next"]);
    graph.dimNames.push_back(dim.name);
    graph.dims.push_back(std::move(dim));
  }
}

void GraphParser::parseArenas(JsonCursor list) {
  for (size_t i = 0; i < list.size(); ++i) {
    JsonCursor at = list.at(i);
    if (int64_t align = at.optional("align").integer(1, 1 << 21, 64); align != 64)
      at.fail(cat("align is ", align, ", not the 64 that arenas have"));
    graph.arenas.push_back({expr(at["size"]), exprOr(at.optional("lower_bound"), 0)});
  }
}

/// An output in memory with room for more rows, which begins with those of an input.
void GraphParser::placeRows(JsonCursor at, Buffer &buffer) {
  auto dim = dimIds.find(at["room"].string());
  buffer.room = dim == dimIds.end() ? kNone : dim->second;
  buffer.axis = static_cast<uint32_t>(at["axis"].integer(0, DMX_MAX_RANK - 1));
  buffer.past = static_cast<uint32_t>(at["past"].integer(0, 1 << 20));
  if (buffer.room == kNone || !graph.dims[buffer.room].isRoom)
    at.fail(cat("'", at["room"].text(), "' is no dim that says how much room there is"));
}

void GraphParser::placeBuffer(JsonCursor at, std::string_view kind, Buffer &buffer) {
  buffer.offset = graph.exprs.constant(0);
  buffer.size = graph.exprs.constant(0);
  if (kind == "input" || kind == "output") {
    buffer.kind = kind == "input" ? BufferKind::Input : BufferKind::Output;
    buffer.index = static_cast<uint32_t>(at["index"].integer(0, 1 << 20));
    if (kind == "output" && at.optional("room").present())
      placeRows(at, buffer);
    return;
  }
  if (kind == "result") {
    buffer.kind = BufferKind::Result;
    // Tasks come later; checkReturned looks at them.
    buffer.parent = static_cast<uint32_t>(at["task"].integer(0, INT32_MAX));
    buffer.index = static_cast<uint32_t>(at["output"].integer(0, INT32_MAX));
    return;
  }
  if (kind != "state" && kind != "const" && kind != "arena" && kind != "alias") {
    at.fail(cat("unknown kind of buffer '", kind, "'"));
    return;
  }
  buffer.size = expr(at["size"]);
  if (kind == "state") {
    int64_t value;
    buffer.kind = BufferKind::State;
    if (!graph.exprs.isConstant(buffer.size, value))
      at.fail("the size of a state buffer must be an integer");
    if (at.optional("length").present()) {
      auto dim = dimIds.find(at["length"].string());
      buffer.length = dim == dimIds.end() ? kNone : dim->second;
      buffer.axis = static_cast<uint32_t>(at["axis"].integer(0, DMX_MAX_RANK - 1));
      if (buffer.length == kNone || !graph.dims[buffer.length].isLength)
        at.fail(cat("'", at["length"].text(), "' is no length"));
    }
    return;
  }
  buffer.offset = expr(at["offset"]);
  if (kind == "const") {
    buffer.kind = BufferKind::Const;
    buffer.entry = at["entry"].string();
    int64_t value;
    if (!graph.exprs.isConstant(buffer.offset, value) || !graph.exprs.isConstant(buffer.size, value))
      at.fail("offset and size of a constant must be integers");
  } else if (kind == "arena") {
    buffer.kind = BufferKind::Arena;
    buffer.parent = id(at["arena"], graph.arenas.size(), "arena");
  } else {
    buffer.kind = BufferKind::Alias;
    // The parent may come later in the list; checkBuffers looks at it.
    buffer.parent = static_cast<uint32_t>(at["of"].integer(0, INT32_MAX));
  }
}

/// A state with a length has room for all rows that there may be.
void GraphParser::checkRows(JsonCursor at, const Buffer &buffer) {
  if (buffer.length == kNone)
    return;
  int64_t room = 0;
  for (ExprId extent : buffer.shape)
    if (int64_t value; !graph.exprs.isConstant(extent, value))
      at.fail("the shape of a state with a length must be integers");
  if (buffer.axis >= buffer.shape.size() || !graph.exprs.isConstant(buffer.shape[buffer.axis], room) ||
      room < graph.dims[buffer.length].max)
    at.fail(cat("axis ", buffer.axis, " has no room for the ", graph.dims[buffer.length].max, " rows of '",
                graph.dims[buffer.length].name, "'"));
}

Buffer GraphParser::parseBuffer(JsonCursor at) {
  Buffer buffer;
  placeBuffer(at, at["kind"].text(), buffer);
  std::string_view dtype = at["dtype"].text();
  buffer.dtype = dtypeFromName(dtype);
  if (!buffer.dtype)
    at.fail(cat("unknown dtype '", dtype, "'"));
  JsonCursor shape = at["shape"];
  if (shape.size() > DMX_MAX_RANK)
    shape.fail(cat("rank ", shape.size(), " is above the highest, ", DMX_MAX_RANK));
  for (size_t i = 0; i < shape.size(); ++i)
    buffer.shape.push_back(expr(shape.at(i)));
  checkRows(at, buffer);
  return buffer;
}

void GraphParser::registerBound(JsonCursor at, const Buffer &buffer, uint32_t position) {
  if (buffer.kind != BufferKind::Input && buffer.kind != BufferKind::Output)
    return;
  auto &list = buffer.kind == BufferKind::Input ? graph.inputBuffers : graph.outputBuffers;
  if (list.size() <= buffer.index)
    list.resize(buffer.index + 1, kNone);
  if (list[buffer.index] != kNone)
    at.fail("another buffer has the same kind and index");
  list[buffer.index] = position;
}

/// What needs the whole list: parents of aliases and sources of dims.
void GraphParser::checkBuffers(JsonCursor list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    if (buffer.kind != BufferKind::Alias)
      continue;
    if (buffer.parent >= graph.buffers.size())
      list.at(i).fail(cat("buffer ", buffer.parent, " does not exist; there are ", graph.buffers.size()));
    else if (graph.buffers[buffer.parent].kind == BufferKind::Alias)
      list.at(i).fail("an alias of an alias");
  }
  JsonCursor dims = cursor["dims"];
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim &dim = graph.dims[i];
    if (dim.input == kNone)
      continue;
    if (dim.input >= graph.inputBuffers.size() || graph.inputBuffers[dim.input] == kNone)
      dims.at(i).fail(cat("dim '", dim.name, "' is read from input ", dim.input, ", which no buffer stands for"));
    else if (dim.axis >= graph.buffers[graph.inputBuffers[dim.input]].shape.size())
      dims.at(i).fail(cat("dim '", dim.name, "' is read from axis ", dim.axis, ", which the input does not have"));
  }
}

void GraphParser::parseQueues(JsonCursor list) {
  std::map<std::string, uint32_t> positions;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string target = list.at(i)["target"].string();
    auto [known, fresh] = positions.emplace(target, static_cast<uint32_t>(positions.size()));
    queueDevices.push_back(known->second);
    if (fresh)
      graph.targets.push_back(std::move(target));
  }
  if (graph.targets.empty()) // a graph without tasks
    graph.targets.emplace_back(hostTarget());
  for (const auto &[target, position] : positions)
    if (runsOnHost(target))
      host = position;
}

void GraphParser::checkWritable(JsonCursor at, uint32_t index) {
  if (index >= graph.buffers.size())
    return; // already reported
  const Buffer *buffer = &graph.buffers[index];
  if (buffer->kind == BufferKind::Alias)
    buffer = &graph.buffers[buffer->parent];
  if (buffer->kind == BufferKind::Input || buffer->kind == BufferKind::Const)
    at.fail(cat("the task writes buffer ", index, ", which lies in an input or a constant"));
  if (buffer->kind == BufferKind::Result)
    at.fail(cat("the task writes buffer ", index, ", which lies in the result of another task"));
}

/// A device may keep a state to itself, so that another one would find old bytes in the session's buffer.
void GraphParser::claimStates(JsonCursor at, const Task &task) {
  for (uint32_t index : task.buffers) {
    if (index >= graph.buffers.size())
      continue; // already reported
    Buffer *buffer = &graph.buffers[index];
    if (buffer->kind == BufferKind::Alias && buffer->parent < graph.buffers.size())
      buffer = &graph.buffers[index = buffer->parent];
    if (buffer->kind != BufferKind::State)
      continue;
    if (buffer->device == kNone)
      buffer->device = task.device;
    if (buffer->device != task.device)
      at.fail(cat("state buffer ", index, " is used by tasks of targets '", graph.targets[buffer->device], "' and '",
                  graph.targets[task.device], "', but a state stays on one device"));
  }
}

void GraphParser::parseDispatch(JsonCursor at, Task &task) {
  task.kernel = at["kernel"].string();
  JsonCursor buffers = at["buffers"], dims = at.optional("dims");
  for (size_t i = 0; i < buffers.size(); ++i)
    task.buffers.push_back(id(buffers.at(i), graph.buffers.size(), "buffer"));
  task.outputs = static_cast<uint32_t>(at["outputs"].integer(0, static_cast<int64_t>(task.buffers.size())));
  for (size_t i = task.buffers.size() - task.outputs; i < task.buffers.size(); ++i)
    checkWritable(buffers.at(i), task.buffers[i]);
  for (size_t i = 0; i < dims.size(); ++i)
    task.dims.push_back(expr(dims.at(i)));
  task.work = expr(at["work"]);
  task.grain = exprOr(at.optional("grain"), 1);
  task.scratch = exprOr(at.optional("scratch"), 0);
  task.results = static_cast<uint32_t>(at.optional("results").integer(0, 1 << 16, 0));
  int64_t work = 0;
  if (task.results && (!graph.exprs.isConstant(task.work, work) || work != 1))
    at.fail("a task with results must have work 1, so that one thread returns them");
}

void GraphParser::parseCopy(JsonCursor at, Task &task) {
  task.kind = TaskKind::Copy;
  task.buffers = {id(at["src"], graph.buffers.size(), "buffer"), id(at["dst"], graph.buffers.size(), "buffer")};
  task.outputs = 1;
  checkWritable(at["dst"], task.buffers[1]);
  task.srcOffset = exprOr(at.optional("src_offset"), 0);
  task.dstOffset = exprOr(at.optional("dst_offset"), 0);
  task.size = expr(at["size"]);
}

/// A buffer of one element.
uint32_t GraphParser::scalar(JsonCursor at, dmx_dtype dtype) {
  uint32_t index = id(at, graph.buffers.size(), "buffer");
  if (index >= graph.buffers.size())
    return 0; // already reported
  bool one = graph.buffers[index].dtype == dtype;
  for (ExprId extent : graph.buffers[index].shape)
    if (int64_t value = 0; !graph.exprs.isConstant(extent, value) || value != 1)
      one = false;
  if (!one)
    at.fail(cat("buffer ", index, " is not one ", dmx_dtype_name(dtype)));
  return index;
}

void GraphParser::parseLoop(JsonCursor at, Task &task) {
  task.kind = TaskKind::Loop;
  task.graphNames[0] = at["body"].string();
  if (at.optional("trip_count").present())
    task.tripCount = scalar(at["trip_count"], DMX_DTYPE_I64);
  if (at.optional("cond").present())
    task.condition = scalar(at["cond"], DMX_DTYPE_BOOL);
  JsonCursor carried = at["carried"];
  task.carried = static_cast<uint32_t>(carried.size());
  for (size_t i = 0; i < carried.size(); ++i)
    task.buffers.push_back(id(carried.at(i), graph.buffers.size(), "buffer"));
  task.scans = static_cast<uint32_t>(at.optional("scans").integer(0, 1 << 16, 0));
  task.outputs = task.carried + task.scans;
}

/// A task that runs other graphs; linkGraphs finds them.
void GraphParser::parseControl(JsonCursor at, Task &task) {
  if (at["kind"].text() == "loop") {
    parseLoop(at, task);
  } else {
    task.kind = TaskKind::If;
    task.condition = scalar(at["cond"], DMX_DTYPE_BOOL);
    task.graphNames[0] = at["then"].string();
    task.graphNames[1] = at["else"].string();
    task.outputs = static_cast<uint32_t>(at["outputs"].integer(0, 1 << 16));
  }
  JsonCursor inputs = at["inputs"];
  for (size_t i = 0; i < inputs.size(); ++i)
    task.buffers.push_back(id(inputs.at(i), graph.buffers.size(), "buffer"));
  if (task.device != host)
    at.fail(cat("control flow runs on target '", hostTarget(), "' only"));
}

/// Dims and buffers that tasks give, once the tasks are there.
void GraphParser::checkReturned(JsonCursor dims, JsonCursor buffers) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim &dim = graph.dims[i];
    if (dim.task == kNone)
      continue;
    const Task *task = dim.task < graph.tasks.size() ? &graph.tasks[dim.task] : nullptr;
    uint32_t values = !task ? 0 : task->kind == TaskKind::Loop ? 1 : task->results;
    if (dim.output != kNone ? !task || !task->isControl() || dim.output >= task->outputs : dim.result >= values)
      dims.at(i).fail(cat("dim '", dim.name, "' is not among what task ", dim.task, " returns"));
  }
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    if (buffer.kind != BufferKind::Result)
      continue;
    if (buffer.parent >= graph.tasks.size() || !graph.tasks[buffer.parent].isControl() ||
        buffer.index >= graph.tasks[buffer.parent].outputs)
      buffers.at(i).fail(cat("task ", buffer.parent, " has no output ", buffer.index));
    else if (!seen.emplace(buffer.parent, buffer.index).second)
      buffers.at(i).fail("another buffer is the same output of the same task");
  }
}

Task GraphParser::parseTask(JsonCursor at, size_t position) {
  Task task;
  std::string_view kind = at["kind"].text();
  uint32_t queue = id(at["queue"], queueDevices.size(), "queue");
  task.device = queue < queueDevices.size() ? queueDevices[queue] : 0;
  task.name = at["name"].string();
  JsonCursor nodes = at.optional("nodes"), deps = at["deps"];
  for (size_t i = 0; i < nodes.size(); ++i)
    task.nodes.push_back(nodes.at(i).string());
  for (size_t i = 0; i < deps.size(); ++i)
    task.deps.push_back(id(deps.at(i), position, "earlier task"));
  if (kind == "dispatch")
    parseDispatch(at, task);
  else if (kind == "copy")
    parseCopy(at, task);
  else if (kind == "if" || kind == "loop")
    parseControl(at, task);
  else
    at.fail(cat("unknown kind of task '", kind, "'"));
  if (task.isCopy() && host != kNone)
    task.device = host; // all buffers are host memory
  claimStates(at, task);
  JsonCursor flops = at.optional("flops"), bytes = at.optional("bytes");
  task.hasFlops = flops.present();
  task.hasBytes = bytes.present();
  task.flops = exprOr(flops, 0);
  task.bytes = exprOr(bytes, 0);
  return task;
}

Graph GraphParser::parse() {
  graph.name = cursor["name"].string();
  parseDims(cursor["dims"]);
  parseConstraints(cursor.optional("constraints"));
  parseArenas(cursor["arenas"]);
  JsonCursor buffers = cursor["buffers"], tasks = cursor["tasks"];
  graph.buffers.reserve(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    graph.buffers.push_back(parseBuffer(buffers.at(i)));
    registerBound(buffers.at(i), graph.buffers.back(), static_cast<uint32_t>(i));
  }
  checkBuffers(buffers);
  for (uint32_t buffer : graph.outputBuffers)
    if (buffer == kNone)
      cursor.fail("an output index has no buffer");
  parseQueues(cursor["queues"]);
  graph.tasks.reserve(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i)
    graph.tasks.push_back(parseTask(tasks.at(i), i));
  checkReturned(cursor["dims"], buffers);
  if (std::string problem; !cursor.failed() && !cutStages(graph, problem))
    cursor.fail(problem);
  return std::move(graph);
}

} // namespace

Result<std::vector<Graph>> parseGraphs(std::span<const std::byte> text) {
  JsonDocument document(text, "graph.json");
  std::vector<Graph> graphs;
  JsonCursor list = document.root()["graphs"];
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    graphs.push_back(GraphParser(list.at(i)).parse());
    if (!names.insert(graphs.back().name).second)
      list.at(i).fail(cat("two graphs are named '", graphs.back().name, "'"));
  }
  if (document.failed())
    return document.takeError();
  if (Status status = linkGraphs(graphs); !status)
    return status.takeError();
  // Only now that the vectors stay where they are.
  for (Graph &graph : graphs)
    for (Task &task : graph.tasks)
      for (const std::string &node : task.nodes)
        task.nodeNames.push_back(node.c_str());
  return graphs;
}

} // namespace dmxrt
