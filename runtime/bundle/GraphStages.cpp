//===- GraphStages.cpp - what of a graph is known when ---------------------===//
//
// Values that tasks return cut the list of tasks into stages: a stage starts when
// all that its tasks use is known, and what becomes known with it is laid out then.
//
//===----------------------------------------------------------------------===//

#include "Graph.h"

#include <algorithm>

namespace dmxrt {
namespace {

/// Everything gets the number of tasks that must have ended before it is known: one more than the last task
/// that returns something it depends on.
class StageCutter {
public:
  explicit StageCutter(Graph &graph) : graph(graph) {}
  bool run(std::string &problem);

private:
  Graph &graph;
  std::vector<uint32_t> dims, arenas, buffers;

  uint32_t of(ExprId expr) const {
    uint32_t last = 0;
    graph.exprs.forEachDim(expr, [&](uint32_t dim) { last = std::max(last, dims[dim]); });
    return last;
  }
  uint32_t ofAll(const std::vector<ExprId> &exprs) const {
    uint32_t last = 0;
    for (ExprId expr : exprs)
      last = std::max(last, of(expr));
    return last;
  }
  void addDim(const Dim &dim);
  void addBuffers();
  uint32_t ofTask(const Task &task) const;
  uint32_t stageAfter(uint32_t tasks) const;
  void assign();
};

void StageCutter::addDim(const Dim &dim) {
  uint32_t last = 0;
  if (dim.task != kNone)
    last = std::max({dim.task + 1, of(dim.lower), of(dim.upper)});
  else if (dim.input == kNone && !dim.isLength)
    last = of(dim.expr);
  dims.push_back(last);
}

void StageCutter::addBuffers() {
  for (const Buffer &buffer : graph.buffers) {
    uint32_t last = std::max({ofAll(buffer.shape), of(buffer.offset), of(buffer.size)});
    if (buffer.kind == BufferKind::Arena)
      last = std::max(last, arenas[buffer.parent]);
    else if (buffer.kind == BufferKind::Result)
      last = std::max(last, buffer.parent + 1);
    buffers.push_back(last);
  }
  for (size_t i = 0; i < buffers.size(); ++i) // a parent may come later in the list
    if (graph.buffers[i].kind == BufferKind::Alias)
      buffers[i] = std::max(buffers[i], buffers[graph.buffers[i].parent]);
}

uint32_t StageCutter::ofTask(const Task &task) const {
  uint32_t last = std::max({ofAll(task.dims), of(task.work), of(task.grain), of(task.scratch), of(task.srcOffset),
                            of(task.dstOffset), of(task.size), of(task.flops), of(task.bytes)});
  for (uint32_t buffer : task.buffers)
    last = std::max(last, buffers[buffer]);
  for (uint32_t buffer : {task.condition, task.tripCount})
    if (buffer != kNone)
      last = std::max(last, buffers[buffer]);
  return last;
}

/// The first stage that starts after that many tasks.
uint32_t StageCutter::stageAfter(uint32_t tasks) const {
  if (tasks == 0)
    return 0;
  auto stage = std::lower_bound(graph.stageEnds.begin(), graph.stageEnds.end(), tasks);
  return static_cast<uint32_t>(stage - graph.stageEnds.begin()) + 1;
}

void StageCutter::assign() {
  for (size_t i = 0; i < dims.size(); ++i)
    graph.dims[i].stage = stageAfter(dims[i]);
  for (size_t i = 0; i < arenas.size(); ++i)
    graph.arenas[i].stage = stageAfter(arenas[i]);
  for (size_t i = 0; i < buffers.size(); ++i)
    graph.buffers[i].stage = stageAfter(buffers[i]);
  for (Constraint &constraint : graph.constraints) {
    auto visit = [&](uint32_t dim) {
      auto rank = [&](uint32_t d) { return std::pair(graph.dims[d].stage, d); };
      if (constraint.dim == kNone || rank(constraint.dim) < rank(dim))
        constraint.dim = dim;
    };
    graph.exprs.forEachDim(constraint.lhs, visit);
    graph.exprs.forEachDim(constraint.rhs, visit);
    constraint.stage = constraint.dim == kNone ? 0 : graph.dims[constraint.dim].stage;
  }
}

bool StageCutter::run(std::string &problem) {
  for (const Dim &dim : graph.dims)
    addDim(dim);
  for (const Arena &arena : graph.arenas)
    arenas.push_back(std::max(of(arena.size), of(arena.lowerBound)));
  addBuffers();
  uint32_t count = static_cast<uint32_t>(graph.tasks.size()), begin = 0;
  graph.stageEnds.clear();
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t needed = ofTask(graph.tasks[i]);
    if (needed > i) {
      problem = cat(describeTask(graph, i), " uses what ", describeTask(graph, needed - 1),
                    " returns, which is not an earlier one");
      return false;
    }
    if (needed > begin) {
      graph.stageEnds.push_back(i);
      begin = i;
    }
  }
  graph.stageEnds.push_back(count);
  assign();
  // What only outputs and constraints mention is known in a last stage without tasks.
  uint32_t last = static_cast<uint32_t>(graph.stageEnds.size()) - 1;
  for (const Dim &dim : graph.dims)
    last = std::max(last, dim.stage);
  for (const Buffer &buffer : graph.buffers)
    last = std::max(last, buffer.stage);
  graph.stageEnds.resize(last + 1, count);
  return true;
}

} // namespace

std::string describeTask(const Graph &graph, size_t task) {
  return cat("task ", task, " '", graph.tasks[task].name, "'");
}

bool cutStages(Graph &graph, std::string &problem) { return StageCutter(graph).run(problem); }

} // namespace dmxrt
