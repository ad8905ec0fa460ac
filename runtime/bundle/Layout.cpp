//===- Layout.cpp - a graph's numbers for given shapes --------------------===//

#include "Layout.h"
#include "DType.h"

#include "schemas/Size.h"

namespace dmxrt {
namespace {

/// No machine has more memory.
constexpr int64_t kMaxBytes = int64_t(1) << 47;
/// Copies are split into parts of at least this many bytes.
constexpr int64_t kCopyGrain = 256 << 10;

class LayoutBuilder {
public:
  LayoutBuilder(const Graph &graph, const Archive &archive, std::span<const int64_t> dims, uint32_t stage,
                Layout &layout)
      : graph(graph), archive(archive), dims(dims), stage(stage), layout(layout) {}
  Status run();

private:
  const Graph &graph;
  const Archive &archive;
  std::span<const int64_t> dims;
  uint32_t stage;
  Layout &layout;
  Error error;
  std::vector<int64_t> shape;

  bool reject(Error because) {
    error = std::move(because);
    return false;
  }
  /// Evaluates into `value` and checks its range; `tooLarge` is what a number above it means.
  bool number(ExprId id, int64_t min, int64_t max, std::string_view what, int64_t &value,
              dmx_status tooLarge = DMX_STATUS_INVALID_BUNDLE);
  bool bytes(ExprId id, std::string_view what, uint64_t &value);
  bool addArena(size_t index);
  bool addBuffer(size_t index);
  bool checkRoom(size_t index, uint64_t room, std::string_view where, uint64_t alignment);
  bool checkPlace(size_t index);
  bool addTask(size_t index);
  bool addCopy(const Task &task, Layout::TaskNumbers &numbers);
  void makeRoom();
};

bool LayoutBuilder::number(ExprId id, int64_t min, int64_t max, std::string_view what, int64_t &value,
                           dmx_status tooLarge) {
  auto result = graph.exprs.evaluate(id, dims);
  if (!result)
    return reject(within(what, result.takeError()));
  value = *result;
  if (value < min || value > max)
    return reject(
        fail(value > max ? tooLarge : DMX_STATUS_INVALID_BUNDLE, what, " is ", value, ", not within ", min, "..", max));
  return true;
}

bool LayoutBuilder::bytes(ExprId id, std::string_view what, uint64_t &value) {
  int64_t number = 0;
  if (!this->number(id, 0, kMaxBytes, what, number, DMX_STATUS_OUT_OF_MEMORY))
    return false;
  value = static_cast<uint64_t>(number);
  return true;
}

bool LayoutBuilder::addArena(size_t index) {
  uint64_t size = 0, bound = 0;
  if (!bytes(graph.arenas[index].size, "size", size) || !bytes(graph.arenas[index].lowerBound, "lower_bound", bound))
    return reject(within(cat("arena ", index), std::move(error)));
  layout.arenaSizes[index] = size;
  layout.arenaLowerBounds[index] = bound;
  return true;
}

bool LayoutBuilder::addBuffer(size_t index) {
  const Buffer &buffer = graph.buffers[index];
  Layout::Place place;
  if (Status status = evaluateShape(graph, static_cast<uint32_t>(index), dims, shape); !status)
    return reject(status.takeError());
  if (buffer.room != kNone) {
    int64_t room = dims[buffer.room];
    if (room < shape[buffer.axis])
      return reject(badBundle("there is room for ", room, " rows, and it has ", shape[buffer.axis]));
    shape[buffer.axis] = room;
  }
  int64_t needed = dmx_tensor_bytes(buffer.dtype, static_cast<uint32_t>(shape.size()), shape.data());
  if (needed < 0 || needed > kMaxBytes)
    return reject(fail(DMX_STATUS_OUT_OF_MEMORY, "its shape has more elements than any memory"));
  place.size = place.dense = static_cast<uint64_t>(needed);
  if (buffer.kind >= BufferKind::Const) {
    if (!bytes(buffer.offset, "offset", place.offset) || !bytes(buffer.size, "size", place.size))
      return false;
    if (place.size < static_cast<uint64_t>(needed))
      return reject(badBundle("size ", place.size, " is less than its shape needs, ", needed));
  }
  layout.places[index] = place;
  return true;
}

bool LayoutBuilder::checkRoom(size_t index, uint64_t room, std::string_view where, uint64_t alignment) {
  const Layout::Place &place = layout.places[index];
  if (!dmx::liesWithin(place.offset, place.size, room))
    return reject(
        badBundle("bytes ", place.offset, "..", place.offset + place.size, " leave ", where, " of ", room, " bytes"));
  if (place.offset % alignment)
    return reject(badBundle("offset ", place.offset, " is not a multiple of ", alignment));
  return true;
}

bool LayoutBuilder::checkPlace(size_t index) {
  const Buffer &buffer = graph.buffers[index];
  switch (buffer.kind) {
  case BufferKind::Const:
    return checkRoom(index, archive.find(buffer.entry)->data.size(), "the entry", 64);
  case BufferKind::Arena:
    return checkRoom(index, layout.arenaSizes[buffer.parent], "the arena", 64);
  case BufferKind::Alias:
    return checkRoom(index, layout.places[buffer.parent].size, "the buffer it is an alias of",
                     dtypeAlignment(buffer.dtype));
  default:
    return true;
  }
}

bool LayoutBuilder::addCopy(const Task &task, Layout::TaskNumbers &numbers) {
  uint64_t size = 0;
  if (!bytes(task.srcOffset, "src_offset", numbers.srcOffset) ||
      !bytes(task.dstOffset, "dst_offset", numbers.dstOffset) || !bytes(task.size, "size", size))
    return false;
  uint64_t source = layout.places[task.buffers[0]].size, destination = layout.places[task.buffers[1]].size;
  if (!dmx::liesWithin(numbers.srcOffset, size, source) || !dmx::liesWithin(numbers.dstOffset, size, destination))
    return reject(badBundle("a copy of ", size, " bytes from offset ", numbers.srcOffset, " of ", source, " to offset ",
                            numbers.dstOffset, " of ", destination, " leaves its buffers"));
  numbers.work = static_cast<int64_t>(size);
  numbers.grain = kCopyGrain;
  return true;
}

bool LayoutBuilder::addTask(size_t index) {
  const Task &task = graph.tasks[index];
  Layout::TaskNumbers numbers;
  numbers.firstDim = layout.tasks[index].firstDim;
  for (size_t i = 0; i < task.dims.size(); ++i)
    if (!number(task.dims[i], INT64_MIN, INT64_MAX, "dims", layout.taskDims[numbers.firstDim + i]))
      return false;
  if (task.isCopy() && !addCopy(task, numbers))
    return false;
  if (task.hasKernel() &&
      (!number(task.work, 0, INT64_MAX, "work", numbers.work) ||
       !number(task.grain, 1, INT64_MAX, "grain", numbers.grain) || !bytes(task.scratch, "scratch", numbers.scratch)))
    return false;
  if (task.hasFlops && !number(task.flops, 0, INT64_MAX, "flops", numbers.flops))
    return false;
  if (task.hasBytes && !number(task.bytes, 0, INT64_MAX, "bytes", numbers.bytes))
    return false;
  layout.tasks[index] = numbers;
  return true;
}

/// Everything has its place from the start, so that pointers to it stay.
void LayoutBuilder::makeRoom() {
  layout.arenaSizes.assign(graph.arenas.size(), 0);
  layout.arenaLowerBounds.assign(graph.arenas.size(), 0);
  layout.places.assign(graph.buffers.size(), {});
  layout.tasks.assign(graph.tasks.size(), {});
  size_t count = 0;
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    layout.tasks[i].firstDim = static_cast<uint32_t>(count);
    count += graph.tasks[i].dims.size();
  }
  layout.taskDims.resize(count);
}

Status LayoutBuilder::run() {
  if (stage == 0)
    makeRoom();
  for (size_t i = 0; i < graph.arenas.size(); ++i)
    if (graph.arenas[i].stage == stage && !addArena(i))
      return within(cat("graph '", graph.name, "'"), std::move(error));
  for (size_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].stage == stage && !addBuffer(i))
      return within(cat("graph '", graph.name, "', buffer ", i), std::move(error));
  for (size_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].stage == stage && !checkPlace(i))
      return within(cat("graph '", graph.name, "', buffer ", i), std::move(error));
  for (size_t i = stage ? graph.stageEnds[stage - 1] : 0; i < graph.stageEnds[stage]; ++i)
    if (!addTask(i))
      return within(cat("graph '", graph.name, "', ", describeTask(graph, i)), std::move(error));
  return {};
}

/// "equal to 4"
std::string expectation(Relation relation, std::string_view rhs) {
  return relation == Relation::Eq   ? cat("equal to ", rhs)
         : relation == Relation::Le ? cat("at most ", rhs)
                                    : cat("a divisor of ", rhs);
}

Status checkConstraint(const Graph &graph, const Constraint &constraint, std::span<const int64_t> values) {
  auto lhs = graph.exprs.evaluate(constraint.lhs, values), rhs = graph.exprs.evaluate(constraint.rhs, values);
  if (!lhs || !rhs)
    return within(cat("constraint '", constraint.text, "'"), (lhs ? rhs : lhs).takeError());
  bool divides = *lhs != 0 && (*lhs == -1 || *rhs % *lhs == 0); // INT64_MIN % -1 is not defined
  bool holds = constraint.relation == Relation::Eq   ? *lhs == *rhs
               : constraint.relation == Relation::Le ? *lhs <= *rhs
                                                     : divides;
  if (holds)
    return {};
  auto side = [&](ExprId id, int64_t value) {
    int64_t same;
    return graph.exprs.isConstant(id, same) ? cat(value) : cat(value, " (", graph.exprs.text(id, graph.dimNames), ")");
  };
  return fail(DMX_STATUS_INVALID_ARGUMENT, constraint.text, ": ", side(constraint.lhs, *lhs), " is not ",
              expectation(constraint.relation, side(constraint.rhs, *rhs)));
}

} // namespace

bool isStatic(const Graph &graph) {
  for (const Dim &dim : graph.dims)
    if (dim.input != kNone || dim.isLength)
      return false;
  return true;
}

Status checkConstraints(const Graph &graph, uint32_t stage, uint32_t dim, std::span<const int64_t> values) {
  for (const Constraint &constraint : graph.constraints)
    if (constraint.stage == stage && constraint.dim == dim)
      if (Status status = checkConstraint(graph, constraint, values); !status)
        return status;
  return {};
}

Status evaluateShape(const Graph &graph, uint32_t buffer, std::span<const int64_t> dims, std::vector<int64_t> &shape) {
  shape.clear();
  for (ExprId extent : graph.buffers[buffer].shape) {
    auto value = graph.exprs.evaluate(extent, dims);
    if (!value)
      return within("shape", value.takeError());
    if (*value < 0)
      return fail(DMX_STATUS_INVALID_ARGUMENT, "shape: ", graph.exprs.text(extent, graph.dimNames), " is ", *value);
    shape.push_back(*value);
  }
  return {};
}

Status layOut(const Graph &graph, const Archive &archive, std::span<const int64_t> dims, uint32_t stage,
              Layout &layout) {
  Status status = LayoutBuilder(graph, archive, dims, stage, layout).run();
  if (status || stage > 0 || !isStatic(graph))
    return status;
  Error error = status.takeError();
  error.status = DMX_STATUS_INVALID_BUNDLE; // no input is to blame
  return error;
}

} // namespace dmxrt
