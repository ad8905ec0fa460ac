//===- ValidateGraph.cpp - the rules of graph.json ------------------------===//
#include "dmxc/Bundle/Validate.h"

#include "schemas/BundleFormat.h"
#include "schemas/Size.h"

#include <algorithm>
#include <map>
#include <set>

namespace dmxc::bundle {

namespace {

using dmx::format::kHostTarget;

/// Walks one graph and collects what is wrong. Checks that need values of
/// symbolic dims are made at both ends of the dims' bounds.
class GraphChecker {
public:
  GraphChecker(const GraphDesc &graph, const EntryPoint *entryPoint,
               const std::function<std::optional<uint64_t>(const std::string &)> &entrySize, size_t limit)
      : graph(graph), entryPoint(entryPoint), entrySize(entrySize), limit(limit) {}

  std::vector<Problem> run() {
    checkDims();
    checkConstraints();
    for (size_t i = 0; i < graph.arenas.size(); ++i)
      checkArena(i);
    for (size_t i = 0; i < graph.buffers.size(); ++i)
      checkBuffer(i);
    checkInterface();
    for (const QueueDesc &queue : graph.queues)
      hasHost |= queue.target == kHostTarget;
    for (size_t i = 0; i < graph.tasks.size(); ++i)
      checkTask(i);
    checkOutputsWritten();
    if (auto stages = stageEnds(graph); !stages)
      report("", stages.error().message);
    return std::move(problems);
  }

private:
  void report(const std::string &where, const std::string &message) {
    if (problems.size() < limit)
      problems.push_back({"graph '" + graph.name + "'" + (where.empty() ? "" : ", " + where), message});
  }

  void checkDims();
  void checkInputDim(const DimDesc &dim, const std::string &where);
  void checkConstraints();
  void checkReturnedDim(const DimDesc &dim, const std::string &where);
  void checkLength(const DimDesc &dim, const std::string &where);
  void checkStateRows(const BufferDesc &buffer, const std::string &where);
  void checkArena(size_t i);
  void checkBuffer(size_t i);
  void checkConst(const BufferDesc &buffer, const std::string &where);
  void checkAlias(size_t i, const std::string &where);
  void checkRange(const Expr &offset, const Expr &size, const Expr &whole, const std::string &where,
                  const std::string &inside);
  void checkInterface();
  bool sameShape(const std::vector<Expr> &a, const std::vector<Expr> &b) const;
  void checkTensors(const std::vector<TensorDesc> &tensors, BufferKind kind);
  void checkTask(size_t i);
  void checkDispatch(const TaskDesc &task, const std::string &where);
  void checkCopy(const TaskDesc &task, const std::string &where);
  void checkControl(const TaskDesc &task, const std::string &where);
  void checkScalar(int64_t buffer, DType dtype, const std::string &field, const std::string &where);
  void checkResult(const BufferDesc &buffer, const std::string &where);
  void checkWritten(int64_t buffer, const std::string &where);
  void checkStates(const TaskDesc &task, const std::string &where);
  void checkOutputsWritten();

  bool isBuffer(int64_t id) const { return id >= 0 && static_cast<size_t>(id) < graph.buffers.size(); }
  bool known(const Expr &expr, const std::string &where, const std::string &field);
  Expr sizeOf(const BufferDesc &buffer) const {
    return buffer.kind >= BufferKind::Const ? buffer.size : denseBytes(buffer.dtype, buffer.shape);
  }
  /// The values at the samples of the dims; fewer when they cannot be computed.
  std::vector<int64_t> values(const Expr &expr) const;
  bool atLeast(const Expr &expr, int64_t bound) const {
    for (int64_t value : values(expr))
      if (value < bound)
        return false;
    return true;
  }

  const GraphDesc &graph;
  const EntryPoint *entryPoint;
  const std::function<std::optional<uint64_t>(const std::string &)> &entrySize;
  size_t limit;
  std::set<std::string> dimNames;
  std::vector<DimValues> ends;
  std::set<int64_t> written;
  std::set<std::pair<BufferKind, int64_t>> bound; ///< kind and index of the inputs and outputs so far
  std::set<std::pair<int64_t, int64_t>> results;  ///< task and output of the result buffers so far
  bool hasHost = false;
  std::map<int64_t, std::string_view> stateTargets; ///< of the first task that uses the state
  std::vector<Problem> problems;
};

bool GraphChecker::known(const Expr &expr, const std::string &where, const std::string &field) {
  std::vector<std::string> names;
  expr.collectDims(names);
  for (const std::string &name : names)
    if (!dimNames.count(name)) {
      report(where, "'" + field + "' uses dim '" + name + "', which is not in the dim table before this point");
      return false;
    }
  for (const DimValues &dims : ends)
    if (auto value = expr.evaluate(dims); !value && value.error().kind != ErrorKind::Constraint) {
      report(where, "'" + field + "': " + value.error().message);
      return false;
    }
  return true;
}

std::vector<int64_t> GraphChecker::values(const Expr &expr) const {
  std::vector<int64_t> all;
  for (const DimValues &dims : ends)
    if (auto value = expr.evaluate(dims))
      all.push_back(*value);
  return all;
}

void GraphChecker::checkInputDim(const DimDesc &dim, const std::string &where) {
  if (dim.min < 0 || dim.max < dim.min)
    report(where, "the bounds " + std::to_string(dim.min) + ".." + std::to_string(dim.max) + " are empty or negative");
  for (const BufferDesc &buffer : graph.buffers)
    if (buffer.kind == BufferKind::Input && buffer.index == dim.input) {
      if (dim.axis < 0 || static_cast<size_t>(dim.axis) >= buffer.shape.size())
        report(where, "axis " + std::to_string(dim.axis) + " is out of range: input " + std::to_string(dim.input) +
                          " has rank " + std::to_string(buffer.shape.size()));
      else if (!(buffer.shape[dim.axis] == Expr::dim(dim.name)))
        report(where, "input " + std::to_string(dim.input) + " has '" + buffer.shape[dim.axis].str() + "' at axis " +
                          std::to_string(dim.axis));
      return;
    }
  report(where, "no buffer is input " + std::to_string(dim.input));
}

void GraphChecker::checkReturnedDim(const DimDesc &dim, const std::string &where) {
  known(dim.lower, where, "min");
  known(dim.upper, where, "max");
  bool exists = static_cast<size_t>(dim.task) < graph.tasks.size();
  const TaskDesc *task = exists ? &graph.tasks[static_cast<size_t>(dim.task)] : nullptr;
  int64_t values = !task ? 0 : task->kind == TaskKind::Loop ? 1 : task->kind == TaskKind::Dispatch ? task->results : 0;
  bool extent = dim.output >= 0;
  if (extent ? !task || !task->isControl() || dim.output >= task->outputCount() || dim.axis < 0
             : dim.result < 0 || dim.result >= values)
    report(where, "it is not among what task " + std::to_string(dim.task) + " returns");
}

void GraphChecker::checkLength(const DimDesc &dim, const std::string &where) {
  known(*dim.next, where, "next");
  if (dim.max < 0)
    report(where, "the bound " + std::to_string(dim.max) + " is negative");
  if (!entryPoint)
    report(where, "a graph that a task owns keeps no lengths");
}

void GraphChecker::checkStateRows(const BufferDesc &buffer, const std::string &where) {
  auto dim = std::find_if(graph.dims.begin(), graph.dims.end(),
                          [&](const DimDesc &row) { return row.next && row.name == buffer.length; });
  bool fits = dim != graph.dims.end() && buffer.axis >= 0 && static_cast<size_t>(buffer.axis) < buffer.shape.size() &&
              buffer.shape[static_cast<size_t>(buffer.axis)].isInt() &&
              buffer.shape[static_cast<size_t>(buffer.axis)].value() >= dim->max;
  if (!fits)
    report(where, "'length' is '" + buffer.length + "', which is no length whose rows axis " +
                      std::to_string(buffer.axis) + " has room for");
}

void GraphChecker::checkDims() {
  for (const DimDesc &dim : graph.dims) {
    std::string where = "dim '" + dim.name + "'";
    if (dim.expr)
      known(*dim.expr, where, "expr");
    else if (dim.task >= 0)
      checkReturnedDim(dim, where);
    else if (!dim.next)
      checkInputDim(dim, where);
    if (dim.name.empty())
      report(where, "the name is empty");
    if (!dimNames.insert(dim.name).second)
      report(where, "the name is used twice");
    if (dim.next)
      checkLength(dim, where);
  }
  ends = sampleDims(graph);
  auto usual = usualDims(graph);
  if (problems.empty() && !usual && usual.error().kind != ErrorKind::Constraint)
    report("", usual.error().message);
}

void GraphChecker::checkConstraints() {
  for (size_t i = 0; i < graph.constraints.size(); ++i) {
    std::string where = "constraint " + std::to_string(i);
    known(graph.constraints[i].lhs, where, "lhs");
    known(graph.constraints[i].rhs, where, "rhs");
  }
}

void GraphChecker::checkArena(size_t i) {
  const ArenaDesc &arena = graph.arenas[i];
  std::string where = "arena " + std::to_string(i);
  if (known(arena.size, where, "size") && !atLeast(arena.size, 0))
    report(where, "the size is negative");
  if (known(arena.lowerBound, where, "lower_bound") && !atLeast(arena.lowerBound, 0))
    report(where, "the lower bound is negative");
  if (arena.align != 64)
    report(where, "align is " + std::to_string(arena.align) + ", expected 64");
}

void GraphChecker::checkRange(const Expr &offset, const Expr &size, const Expr &whole, const std::string &where,
                              const std::string &inside) {
  for (const DimValues &dims : ends) {
    auto at = offset.evaluate(dims), count = size.evaluate(dims), total = whole.evaluate(dims);
    if (!at || !count || !total)
      continue; // reported by known()
    if (!dmx::liesWithin(*at, *count, *total)) {
      report(where, "bytes " + std::to_string(*at) + "+" + std::to_string(*count) + " leave " + inside + " of " +
                        std::to_string(*total) + " bytes");
      return;
    }
  }
}

void GraphChecker::checkConst(const BufferDesc &buffer, const std::string &where) {
  if (!buffer.offset.isInt() || !buffer.size.isInt())
    return report(where, "offset and size of a constant must be integers");
  std::optional<uint64_t> size = entrySize(buffer.entry);
  if (!size || !std::string_view(buffer.entry).starts_with("weights/"))
    return report(where, "there is no weights entry '" + buffer.entry + "'");
  checkRange(buffer.offset, buffer.size, static_cast<int64_t>(*size), where, "entry '" + buffer.entry + "'");
}

void GraphChecker::checkAlias(size_t i, const std::string &where) {
  const BufferDesc &buffer = graph.buffers[i];
  if (!isBuffer(buffer.of) || graph.buffers[buffer.of].kind == BufferKind::Alias)
    return report(where, "'of' is " + std::to_string(buffer.of) + ", expected a buffer that is not an alias");
  checkRange(buffer.offset, buffer.size, sizeOf(graph.buffers[buffer.of]), where,
             "buffer " + std::to_string(buffer.of));
}

void GraphChecker::checkResult(const BufferDesc &buffer, const std::string &where) {
  bool exists = buffer.task >= 0 && static_cast<size_t>(buffer.task) < graph.tasks.size();
  const TaskDesc *task = exists ? &graph.tasks[static_cast<size_t>(buffer.task)] : nullptr;
  if (!task || !task->isControl() || buffer.index < 0 || buffer.index >= task->outputCount())
    report(where, "task " + std::to_string(buffer.task) + " has no output " + std::to_string(buffer.index));
  else if (!results.emplace(buffer.task, buffer.index).second)
    report(where, "another buffer is the same output of the same task");
}

void GraphChecker::checkBuffer(size_t i) {
  const BufferDesc &buffer = graph.buffers[i];
  std::string where = "buffer " + std::to_string(i) + " (" + std::string(bufferKindName(buffer.kind)) + ")";
  for (const Expr &dim : buffer.shape)
    if (known(dim, where, "shape") && !atLeast(dim, 0))
      report(where, "the dim '" + dim.str() + "' is negative");
  if (buffer.kind == BufferKind::Result)
    checkResult(buffer, where);
  // Those of an entry point are counted against its tensors.
  bool isBound = buffer.kind == BufferKind::Input || buffer.kind == BufferKind::Output;
  if (isBound && !entryPoint && !bound.emplace(buffer.kind, buffer.index).second)
    report(where, "another buffer has the same kind and index");
  if (std::string problem = buffer.room.empty() ? "" : cacheProblem(graph, buffer); !problem.empty())
    report(where, problem);
  Expr dense = denseBytes(buffer.dtype, buffer.shape);
  if (!known(dense, where, "shape") || buffer.kind < BufferKind::Const)
    return;
  if (!known(buffer.offset, where, "offset") || !known(buffer.size, where, "size"))
    return;
  for (const DimValues &dims : ends) {
    auto have = buffer.size.evaluate(dims), need = dense.evaluate(dims);
    if (have && need && *have < *need) {
      report(where, "the size of " + std::to_string(*have) +
                        " bytes is less than dtype and shape need: " + std::to_string(*need));
      break;
    }
  }
  if (buffer.kind == BufferKind::State && !buffer.size.isInt())
    report(where, "the size of a state buffer must be an integer");
  if (buffer.kind == BufferKind::State && !buffer.length.empty())
    checkStateRows(buffer, where);
  if (buffer.kind == BufferKind::Const)
    checkConst(buffer, where);
  if (buffer.kind == BufferKind::Alias)
    return checkAlias(i, where);
  for (int64_t offset : values(buffer.offset))
    if (offset % 64) {
      report(where, "the offset " + std::to_string(offset) + " is not a multiple of 64");
      break;
    }
  if (buffer.kind != BufferKind::Arena)
    return;
  if (buffer.arena < 0 || static_cast<size_t>(buffer.arena) >= graph.arenas.size())
    return report(where, "there is no arena " + std::to_string(buffer.arena));
  checkRange(buffer.offset, buffer.size, graph.arenas[buffer.arena].size, where,
             "arena " + std::to_string(buffer.arena));
}

/// The manifest may spell a computed dim out, so values count, not spelling.
bool GraphChecker::sameShape(const std::vector<Expr> &a, const std::vector<Expr> &b) const {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i]) && (values(a[i]).size() != ends.size() || values(a[i]) != values(b[i])))
      return false;
  return true;
}

void GraphChecker::checkTensors(const std::vector<TensorDesc> &tensors, BufferKind kind) {
  std::vector<int64_t> seen(tensors.size());
  std::string name(bufferKindName(kind));
  for (const BufferDesc &buffer : graph.buffers) {
    if (buffer.kind != kind)
      continue;
    if (buffer.index < 0 || static_cast<size_t>(buffer.index) >= tensors.size()) {
      report("", "a buffer is " + name + " " + std::to_string(buffer.index) + ", the entry point has " +
                     std::to_string(tensors.size()));
      continue;
    }
    const TensorDesc &tensor = tensors[buffer.index];
    ++seen[buffer.index];
    if (tensor.dtype != buffer.dtype || !sameShape(tensor.shape, buffer.shape))
      report("", name + " '" + tensor.name + "' is " + std::string(dtypeName(buffer.dtype)) + " " +
                     shapeString(buffer.shape) + " in the graph and " + std::string(dtypeName(tensor.dtype)) + " " +
                     shapeString(tensor.shape) + " in the manifest");
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    // An input that nothing reads needs no buffer.
    if (seen[i] > 1 || (seen[i] == 0 && kind == BufferKind::Output))
      report("", name + " '" + tensors[i].name + "' has " + std::to_string(seen[i]) + " buffers");
  }
}

void GraphChecker::checkInterface() {
  if (!entryPoint)
    return;
  checkTensors(entryPoint->inputs, BufferKind::Input);
  checkTensors(entryPoint->outputs, BufferKind::Output);
}

void GraphChecker::checkWritten(int64_t id, const std::string &where) {
  const BufferDesc *buffer = &graph.buffers[id];
  if (buffer->kind == BufferKind::Alias && isBuffer(buffer->of)) {
    id = buffer->of;
    buffer = &graph.buffers[id];
  }
  written.insert(id);
  if (buffer->kind == BufferKind::Input || buffer->kind == BufferKind::Const || buffer->kind == BufferKind::Result)
    report(where, "writes buffer " + std::to_string(id) + ", which is " +
                      (buffer->kind == BufferKind::Input   ? "an input"
                       : buffer->kind == BufferKind::Const ? "a constant"
                                                           : "the result of another task"));
}

void GraphChecker::checkDispatch(const TaskDesc &task, const std::string &where) {
  if (task.kernel.empty())
    report(where, "the kernel's name is empty");
  if (task.outputs < 0 || static_cast<size_t>(task.outputs) > task.buffers.size())
    return report(where, "'outputs' is " + std::to_string(task.outputs) + ", there are " +
                             std::to_string(task.buffers.size()) + " buffers");
  size_t firstResult = task.buffers.size() - static_cast<size_t>(task.outputs);
  for (size_t i = 0; i < task.buffers.size(); ++i) {
    if (!isBuffer(task.buffers[i]))
      report(where, "there is no buffer " + std::to_string(task.buffers[i]));
    else if (i >= firstResult)
      checkWritten(task.buffers[i], where);
  }
  for (const Expr &dim : task.dims)
    known(dim, where, "dims");
  if (task.results < 0 || task.results > 65536)
    report(where, "'results' is " + std::to_string(task.results) + ", expected 0 to 65536");
  else if (task.results && !(task.work == Expr(1)))
    report(where, "a task with results must have work 1");
  struct {
    const char *name;
    const Expr &value;
    int64_t bound;
  } fields[] = {{"work", task.work, 0},
                {"grain", task.grain, 1},
                {"scratch", task.scratch, 0},
                {"flops", task.flops, 0},
                {"bytes", task.bytes, 0}};
  for (auto &field : fields)
    if (known(field.value, where, field.name) && !atLeast(field.value, field.bound))
      report(where, std::string("'") + field.name + "' is less than " + std::to_string(field.bound));
}

/// One element, whose value the runtime reads.
void GraphChecker::checkScalar(int64_t id, DType dtype, const std::string &field, const std::string &where) {
  if (!isBuffer(id))
    return report(where, "'" + field + "': there is no buffer " + std::to_string(id));
  const BufferDesc &buffer = graph.buffers[id];
  bool one = buffer.dtype == dtype;
  for (const Expr &extent : buffer.shape)
    one = one && extent == Expr(1);
  if (!one)
    report(where, "'" + field + "': buffer " + std::to_string(id) + " is not one " + std::string(dtypeName(dtype)));
}

void GraphChecker::checkControl(const TaskDesc &task, const std::string &where) {
  bool branches = task.kind == TaskKind::If;
  if (branches || task.cond >= 0)
    checkScalar(task.cond, DType::Bool, "cond", where);
  if (!branches && task.tripCount >= 0)
    checkScalar(task.tripCount, DType::I64, "trip_count", where);
  for (const std::vector<int64_t> &list : {task.carried, task.buffers})
    for (int64_t id : list)
      if (!isBuffer(id))
        report(where, "there is no buffer " + std::to_string(id));
  if (task.outputs < 0 || task.scans < 0)
    report(where, "the number of outputs is negative");
  if (task.queue >= 0 && static_cast<size_t>(task.queue) < graph.queues.size() &&
      graph.queues[task.queue].target != kHostTarget)
    report(where, "control flow runs on target '" + std::string(kHostTarget) + "' only");
}

void GraphChecker::checkCopy(const TaskDesc &task, const std::string &where) {
  if (!isBuffer(task.src) || !isBuffer(task.dst))
    return report(where, "copies between buffers " + std::to_string(task.src) + " and " + std::to_string(task.dst) +
                             "; there are " + std::to_string(graph.buffers.size()));
  checkWritten(task.dst, where);
  if (!known(task.size, where, "size") || !known(task.srcOffset, where, "src_offset") ||
      !known(task.dstOffset, where, "dst_offset"))
    return;
  checkRange(task.srcOffset, task.size, sizeOf(graph.buffers[task.src]), where, "buffer " + std::to_string(task.src));
  checkRange(task.dstOffset, task.size, sizeOf(graph.buffers[task.dst]), where, "buffer " + std::to_string(task.dst));
}

/// A device may keep a state to itself, so that another would find old bytes.
void GraphChecker::checkStates(const TaskDesc &task, const std::string &where) {
  bool copy = task.kind == TaskKind::Copy;
  if (task.queue < 0 || static_cast<size_t>(task.queue) >= graph.queues.size())
    return;
  std::string_view target = copy && hasHost ? kHostTarget : std::string_view(graph.queues[task.queue].target);
  std::vector<int64_t> used = task.reads(), changed = task.writes();
  used.insert(used.end(), changed.begin(), changed.end());
  for (int64_t id : used) {
    if (isBuffer(id) && graph.buffers[id].kind == BufferKind::Alias)
      id = graph.buffers[id].of;
    if (!isBuffer(id) || graph.buffers[id].kind != BufferKind::State)
      continue;
    if (std::string_view first = stateTargets.emplace(id, target).first->second; first != target)
      report(where, "uses state buffer " + std::to_string(id) + " on target '" + std::string(target) +
                        "', an earlier task on '" + std::string(first) + "'; a state stays on one device");
  }
}

void GraphChecker::checkTask(size_t i) {
  const TaskDesc &task = graph.tasks[i];
  std::string where = "task " + std::to_string(i);
  if (!task.name.empty())
    where += " (" + task.name + ")";
  if (task.queue < 0 || static_cast<size_t>(task.queue) >= graph.queues.size())
    report(where, "there is no queue " + std::to_string(task.queue));
  for (int64_t dep : task.deps)
    if (dep < 0 || dep >= static_cast<int64_t>(i))
      report(where, "depends on task " + std::to_string(dep) + ", which is not an earlier one");
  if (task.kind == TaskKind::Dispatch)
    checkDispatch(task, where);
  else if (task.isControl())
    checkControl(task, where);
  else
    checkCopy(task, where);
  checkStates(task, where);
}

void GraphChecker::checkOutputsWritten() {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const BufferDesc &buffer = graph.buffers[i];
    bool empty = false;
    for (int64_t size : values(sizeOf(buffer)))
      empty |= size == 0;
    if (buffer.kind == BufferKind::Output && !empty && !written.count(static_cast<int64_t>(i)))
      report("buffer " + std::to_string(i), "output " + std::to_string(buffer.index) + " is written by no task");
  }
}

} // namespace

std::vector<Problem> validateGraph(const GraphDesc &graph, const EntryPoint *entryPoint,
                                   const std::function<std::optional<uint64_t>(const std::string &)> &entrySize,
                                   size_t limit) {
  return GraphChecker(graph, entryPoint, entrySize, limit).run();
}

} // namespace dmxc::bundle
