//===- GraphLinks.cpp - graphs that tasks of other graphs own --------------===//

#include "Graph.h"
#include "runtime/devices/Device.h"

#include "schemas/BundleFormat.h"

#include <map>

namespace dmxrt {
namespace {

/// Deeper than models nest; bounds the recursions over graphs.
using dmx::format::kMaxNesting;

/// dtype and rank of a tensor between a task and its graph.
struct Form {
  dmx_dtype dtype = 0;
  size_t rank = 0;
  bool operator==(const Form &) const = default;
};

std::string text(Form form) { return cat(dmx_dtype_name(form.dtype), " of rank ", form.rank); }

Form formOf(const Graph &graph, uint32_t buffer) {
  return {graph.buffers[buffer].dtype, graph.buffers[buffer].shape.size()};
}

class Linker {
public:
  explicit Linker(std::vector<Graph> &graphs) : graphs(graphs), owners(graphs.size(), kNone) {}
  Status run();

private:
  std::vector<Graph> &graphs;
  std::map<std::string, uint32_t> names;
  std::vector<uint32_t> owners; // the graph whose task owns it

  Status own(uint32_t owner, Task &task);
  Status check(const Graph &owner, const Task &task, Graph &nested);
  Status checkOutputs(const Graph &owner, const Task &task, const Graph &nested);
  Status checkResults(const Graph &owner, size_t index);
};

Status Linker::own(uint32_t owner, Task &task) {
  for (int i = 0; i < (task.kind == TaskKind::If ? 2 : 1); ++i) {
    auto found = names.find(task.graphNames[i]);
    if (found == names.end())
      return badBundle("there is no graph '", task.graphNames[i], "'");
    if (owners[found->second] != kNone)
      return badBundle("graph '", task.graphNames[i], "' is another task's already; a graph has one owner");
    owners[found->second] = owner;
    graphs[found->second].owned = true;
    task.graphs[i] = found->second;
    if (Status status = check(graphs[owner], task, graphs[found->second]); !status)
      return within(cat("graph '", task.graphNames[i], "'"), status.takeError());
  }
  return {};
}

Status Linker::check(const Graph &owner, const Task &task, Graph &nested) {
  std::vector<Form> given;
  if (task.kind == TaskKind::Loop)
    given = {{DMX_DTYPE_I64, 0}, {DMX_DTYPE_BOOL, 0}};
  for (uint32_t buffer : task.buffers)
    given.push_back(formOf(owner, buffer));
  if (nested.inputBuffers.size() > given.size())
    return badBundle("it has input ", nested.inputBuffers.size() - 1, ", but gets ", given.size(), " inputs");
  nested.inputBuffers.resize(given.size(), kNone);
  for (size_t i = 0; i < given.size(); ++i) {
    uint32_t buffer = nested.inputBuffers[i];
    if (buffer != kNone && formOf(nested, buffer) != given[i])
      return badBundle("its input ", i, " is ", text(formOf(nested, buffer)), ", but it gets ", text(given[i]));
  }
  for (const Dim &dim : nested.dims)
    if (dim.isLength || dim.isRoom)
      return badBundle("it has the ", dim.isRoom ? "room" : "length", " '", dim.name, "', which entry points alone ",
                       dim.isRoom ? "know" : "keep");
  for (const std::string &target : nested.targets)
    if (!runsOnHost(target))
      return fail(DMX_STATUS_UNSUPPORTED, "it has a queue of target '", target, "'; graphs of control flow run on '",
                  hostTarget(), "' only");
  return checkOutputs(owner, task, nested);
}

Status Linker::checkOutputs(const Graph &owner, const Task &task, const Graph &nested) {
  bool loop = task.kind == TaskKind::Loop;
  size_t expected = size_t(task.outputs) + loop, first = loop;
  if (nested.outputBuffers.size() != expected)
    return badBundle("it has ", nested.outputBuffers.size(), " outputs, expected ", expected);
  for (size_t i = 0; loop && i <= task.carried; ++i) {
    Form form = formOf(nested, nested.outputBuffers[i]);
    Form wanted = i ? formOf(owner, task.buffers[i - 1]) : Form{DMX_DTYPE_BOOL, 0};
    if (form != wanted)
      return badBundle("its output ", i, " is ", text(form), ", expected ", text(wanted));
  }
  for (const Buffer &buffer : owner.buffers) {
    if (buffer.kind != BufferKind::Result || &owner.tasks[buffer.parent] != &task)
      continue;
    Form form = formOf(nested, nested.outputBuffers[first + buffer.index]);
    form.rank += loop && buffer.index >= task.carried;
    if (Form wanted{buffer.dtype, buffer.shape.size()}; form != wanted)
      return badBundle("its output ", first + buffer.index, " gives ", text(form), ", but the result's buffer is ",
                       text(wanted));
  }
  return {};
}

/// The axes that dims are read from.
Status Linker::checkResults(const Graph &owner, size_t index) {
  const Task &task = owner.tasks[index];
  const Graph *branches[2] = {&graphs[task.graphs[0]], task.kind == TaskKind::If ? &graphs[task.graphs[1]] : nullptr};
  bool loop = task.kind == TaskKind::Loop;
  for (const Graph *branch : branches)
    for (const Dim &dim : owner.dims)
      if (branch && dim.task == index && dim.output != kNone) {
        size_t rank = formOf(*branch, branch->outputBuffers[dim.output + loop]).rank;
        rank += loop && dim.output >= task.carried;
        if (dim.axis >= rank)
          return badBundle("dim '", dim.name, "' is read from axis ", dim.axis, " of output ", dim.output,
                           ", which has rank ", rank);
      }
  return {};
}

Status Linker::run() {
  for (uint32_t i = 0; i < graphs.size(); ++i)
    names.emplace(graphs[i].name, i);
  for (uint32_t i = 0; i < graphs.size(); ++i)
    for (size_t t = 0; t < graphs[i].tasks.size(); ++t) {
      if (!graphs[i].tasks[t].isControl())
        continue;
      std::string where = cat("graph '", graphs[i].name, "', ", describeTask(graphs[i], t));
      if (Status status = own(i, graphs[i].tasks[t]); !status)
        return within(where, status.takeError());
      if (Status status = checkResults(graphs[i], t); !status)
        return within(where, status.takeError());
    }
  for (uint32_t i = 0; i < graphs.size(); ++i) {
    uint32_t depth = 0;
    for (uint32_t at = owners[i]; at != kNone; at = owners[at])
      if (++depth > kMaxNesting)
        return badBundle("graph '", graphs[i].name, "' is nested deeper than ", kMaxNesting, " levels or in itself");
  }
  return {};
}

/// Outputs that begin with the rows of an input, which is put there before the first task.
Status checkCaches(const Graph &graph) {
  auto textOf = [&](ExprId expr) { return graph.exprs.text(expr, graph.dimNames); };
  for (const Dim &dim : graph.dims)
    if (dim.isRoom && dim.stage != 0)
      return badBundle("graph '", graph.name, "': the room '", dim.name, "' depends on what tasks return");
  for (const Buffer &buffer : graph.buffers) {
    if (buffer.past == kNone)
      continue;
    uint32_t input = buffer.past < graph.inputBuffers.size() ? graph.inputBuffers[buffer.past] : kNone;
    if (input == kNone || formOf(graph, input) != formOf(graph, graph.outputBuffers[buffer.index]) ||
        buffer.axis >= buffer.shape.size() || dmx_dtype_bits(buffer.dtype) < 8 || buffer.stage != 0 ||
        textOf(buffer.shape[buffer.axis]) != textOf(graph.dims[buffer.room].expr))
      return badBundle("graph '", graph.name, "': output ", buffer.index, " cannot begin with the rows of input ",
                       buffer.past, " along axis ", buffer.axis);
  }
  return {};
}

} // namespace

Status linkGraphs(std::vector<Graph> &graphs) {
  for (const Graph &graph : graphs)
    if (Status status = checkCaches(graph); !status)
      return status;
  return Linker(graphs).run();
}

} // namespace dmxrt
