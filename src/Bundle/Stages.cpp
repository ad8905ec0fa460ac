//===- Stages.cpp - what of a graph is known when -------------------------===//
#include "dmxc/Bundle/Graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace dmxc::bundle {

namespace {

bool mentionsBroadcast(const Expr &expr) {
  return std::any_of(expr.operands().begin(), expr.operands().end(), mentionsBroadcast) ||
         (expr.kind() == Expr::Kind::Op && expr.op() == Expr::Op::Broadcast);
}

/// Calls `each` for every expression of a task, whatever its kind uses.
template <typename Each> void forEachExpr(const TaskDesc &task, Each each) {
  for (const Expr &dim : task.dims)
    each(dim);
  for (const Expr *expr :
       {&task.work, &task.grain, &task.scratch, &task.flops, &task.bytes, &task.srcOffset, &task.dstOffset, &task.size})
    each(*expr);
}

template <typename Each> void forEachExpr(const BufferDesc &buffer, Each each) {
  for (const Expr &dim : buffer.shape)
    each(dim);
  each(buffer.offset);
  each(buffer.size);
}

/// How many tasks must have ended before something is known.
class StageCutter {
public:
  explicit StageCutter(const GraphDesc &graph) : graph(graph) {}
  Result<std::vector<int64_t>> run();

private:
  const GraphDesc &graph;
  std::map<std::string, int64_t, std::less<>> dims;
  std::vector<int64_t> buffers;

  int64_t of(const Expr &expr) const {
    std::vector<std::string> names;
    expr.collectDims(names);
    int64_t last = 0;
    for (const std::string &name : names)
      if (auto it = dims.find(name); it != dims.end())
        last = std::max(last, it->second);
    return last;
  }
  /// After that task; its number may be any in a file that is not checked yet.
  int64_t after(int64_t task) const {
    return std::clamp<int64_t>(task, -1, static_cast<int64_t>(graph.tasks.size())) + 1;
  }
  int64_t ofBuffer(int64_t id) const {
    return id >= 0 && static_cast<size_t>(id) < buffers.size() ? buffers[static_cast<size_t>(id)] : 0;
  }
  void addBuffers();
  int64_t ofTask(const TaskDesc &task) const;
};

void StageCutter::addBuffers() {
  for (const BufferDesc &buffer : graph.buffers) {
    int64_t last = buffer.kind == BufferKind::Result ? after(buffer.task) : 0;
    forEachExpr(buffer, [&](const Expr &expr) { last = std::max(last, of(expr)); });
    if (buffer.kind == BufferKind::Arena && buffer.arena >= 0 &&
        static_cast<size_t>(buffer.arena) < graph.arenas.size()) {
      const ArenaDesc &arena = graph.arenas[static_cast<size_t>(buffer.arena)];
      last = std::max({last, of(arena.size), of(arena.lowerBound)});
    }
    buffers.push_back(last);
  }
  for (size_t i = 0; i < buffers.size(); ++i) // a parent may come later in the list
    if (graph.buffers[i].kind == BufferKind::Alias)
      buffers[i] = std::max(buffers[i], ofBuffer(graph.buffers[i].of));
}

int64_t StageCutter::ofTask(const TaskDesc &task) const {
  int64_t last = 0;
  forEachExpr(task, [&](const Expr &expr) { last = std::max(last, of(expr)); });
  for (const std::vector<int64_t> &list : {task.reads(), task.writes()})
    for (int64_t buffer : list)
      last = std::max(last, ofBuffer(buffer));
  return last;
}

Result<std::vector<int64_t>> StageCutter::run() {
  for (const DimDesc &dim : graph.dims)
    dims[dim.name] = dim.task >= 0 ? std::max({after(dim.task), of(dim.lower), of(dim.upper)})
                     : dim.expr    ? of(*dim.expr)
                                   : 0;
  addBuffers();
  std::vector<int64_t> ends;
  int64_t begin = 0, count = static_cast<int64_t>(graph.tasks.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t needed = ofTask(graph.tasks[static_cast<size_t>(i)]);
    if (needed > i)
      return modelError("task " + std::to_string(i) + " uses what task " + std::to_string(needed - 1) +
                        " returns, which is not an earlier one");
    if (needed > begin) {
      ends.push_back(i);
      begin = i;
    }
  }
  ends.push_back(count);
  // What only outputs and constraints mention is known in a last stage without tasks.
  int64_t last = 0;
  for (const auto &[name, needed] : dims)
    last = std::max(last, needed);
  for (int64_t needed : buffers)
    last = std::max(last, needed);
  if (last > begin)
    ends.push_back(count);
  return ends;
}

} // namespace

Result<std::vector<int64_t>> stageEnds(const GraphDesc &graph) { return StageCutter(graph).run(); }

std::vector<std::string> featuresOf(const GraphFile &file) {
  std::set<std::string> names;
  auto note = [&](const Expr &expr) {
    if (mentionsBroadcast(expr))
      names.insert("broadcast");
  };
  for (const GraphDesc &graph : file.graphs) {
    if (!graph.constraints.empty())
      names.insert("constraints");
    for (const DimDesc &dim : graph.dims) {
      if (dim.task >= 0)
        names.insert("returned-dims");
      if (dim.next)
        names.insert("state-lengths");
      if (dim.isRoom)
        names.insert("caller-caches");
      for (const Expr &expr : {dim.expr.value_or(0), dim.next.value_or(0), dim.lower, dim.upper})
        note(expr);
    }
    for (const ConstraintDesc &constraint : graph.constraints)
      note(constraint.lhs), note(constraint.rhs);
    for (const ArenaDesc &arena : graph.arenas)
      note(arena.size), note(arena.lowerBound);
    for (const BufferDesc &buffer : graph.buffers) {
      forEachExpr(buffer, note);
      if (buffer.dtype >= DType::F8E8M0) // the types that format 1.1 added
        names.insert("narrow-types");
    }
    for (const TaskDesc &task : graph.tasks) {
      forEachExpr(task, note);
      if (task.results)
        names.insert("returned-dims");
      if (task.isControl())
        names.insert("control-flow");
    }
  }
  return {names.begin(), names.end()};
}

} // namespace dmxc::bundle
