//===- Hazards.cpp - unordered tasks that touch the same bytes ------------===//
#include "dmxc/Bundle/Validate.h"

#include "schemas/Size.h"

#include <algorithm>
#include <tuple>

namespace dmxc::bundle {

namespace {

/// One task's access to a byte range of one memory (arena, input or output).
struct Access {
  int64_t space; ///< arenas first, then one space a buffer
  uint64_t begin, end;
  size_t task;
  bool write;
};

/// Which tasks precede which, as one bit set a task. Stages run one after the
/// other.
class Order {
public:
  explicit Order(const GraphDesc &graph) : words((graph.tasks.size() + 63) / 64), bits(words * graph.tasks.size()) {
    if (auto found = stageEnds(graph))
      ends = std::move(*found);
    for (size_t i = 0; i < graph.tasks.size(); ++i)
      for (int64_t dep : graph.tasks[i].deps) {
        for (size_t w = 0; w < words; ++w)
          bits[i * words + w] |= bits[dep * words + w];
        bits[i * words + dep / 64] |= uint64_t(1) << (dep % 64);
      }
  }
  bool ordered(size_t a, size_t b) const {
    if (a > b)
      std::swap(a, b);
    auto end = std::upper_bound(ends.begin(), ends.end(), static_cast<int64_t>(a));
    bool later = end != ends.end() && static_cast<int64_t>(b) >= *end;
    return later || (bits[b * words + a / 64] >> (a % 64) & 1);
  }

private:
  std::vector<int64_t> ends; ///< of stages
  size_t words;
  std::vector<uint64_t> bits;
};

class AccessCollector {
public:
  AccessCollector(const GraphDesc &graph, const DimValues &dims) : graph(graph), dims(dims) {}

  void task(size_t i) {
    const TaskDesc &task = graph.tasks[i];
    if (task.kind == TaskKind::Copy) {
      add(i, task.src, value(task.srcOffset), value(task.size), false);
      add(i, task.dst, value(task.dstOffset), value(task.size), true);
      return;
    }
    for (int64_t id : task.reads())
      add(i, id, 0, bytes(graph.buffers[id]), false);
    for (int64_t id : task.writes())
      add(i, id, 0, bytes(graph.buffers[id]), true);
    for (size_t id = 0; task.isControl() && id < graph.buffers.size(); ++id)
      if (const BufferDesc &buffer = graph.buffers[id];
          buffer.kind == BufferKind::Result && buffer.task == static_cast<int64_t>(i))
        add(i, static_cast<int64_t>(id), 0, bytes(buffer), true);
  }

  std::vector<Access> accesses;

private:
  int64_t value(const Expr &expr) const {
    auto result = expr.evaluate(dims);
    return result ? *result : 0;
  }
  int64_t bytes(const BufferDesc &buffer) const {
    return value(buffer.kind >= BufferKind::Const ? buffer.size : denseBytes(buffer.dtype, buffer.shape));
  }
  void add(size_t task, int64_t id, dmx::Size offset, dmx::Size size, bool write) {
    const BufferDesc *buffer = &graph.buffers[id];
    if (buffer->kind == BufferKind::Alias) {
      offset += value(buffer->offset);
      id = buffer->of;
      buffer = &graph.buffers[id];
    }
    int64_t space = static_cast<int64_t>(graph.arenas.size()) + id;
    if (buffer->kind == BufferKind::Arena) {
      offset += value(buffer->offset);
      space = buffer->arena;
    }
    dmx::Size end = offset + size; // what is too large is refused for that
    if (size != 0 && end.isKnown() && buffer->kind != BufferKind::Const)
      accesses.push_back({space, offset.value(), end.value(), task, write});
  }

  const GraphDesc &graph;
  const DimValues &dims;
};

std::string describe(const GraphDesc &graph, size_t task) {
  return std::to_string(task) + " (" + graph.tasks[task].name + ")";
}

} // namespace

std::vector<Problem> findHazards(const GraphDesc &graph, const DimValues &dims, size_t limit) {
  // The order takes a bit for each pair of tasks; 32768 tasks take 128 MiB.
  if (graph.tasks.size() > 32768)
    return {};
  AccessCollector collector(graph, dims);
  for (size_t i = 0; i < graph.tasks.size(); ++i)
    collector.task(i);
  std::vector<Access> &all = collector.accesses;
  std::sort(all.begin(), all.end(), [](const Access &a, const Access &b) {
    return std::tie(a.space, a.begin, a.task, a.end, a.write) < std::tie(b.space, b.begin, b.task, b.end, b.write);
  });
  Order order(graph);
  std::vector<Problem> problems;
  std::vector<const Access *> open; // those that may reach the current begin
  for (const Access &access : all) {
    std::erase_if(open,
                  [&](const Access *other) { return other->space != access.space || other->end <= access.begin; });
    for (const Access *other : open) {
      if (other->task == access.task || !(other->write || access.write) || order.ordered(other->task, access.task))
        continue;
      if (problems.size() >= limit)
        return problems;
      problems.push_back(
          {"graph '" + graph.name + "'", "tasks " + describe(graph, std::min(other->task, access.task)) + " and " +
                                             describe(graph, std::max(other->task, access.task)) +
                                             " touch the same bytes, one writes, and no path of deps orders "
                                             "them"});
    }
    open.push_back(&access);
  }
  return problems;
}

} // namespace dmxc::bundle
