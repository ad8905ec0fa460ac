//===- Frame.cpp - what a frame is made of --------------------------------===//
//
// Nothing here changes with shapes. FrameMemory.cpp has what does, FrameRun.cpp what
// happens in a run, FrameControl.cpp the tasks that run other graphs.
//
//===----------------------------------------------------------------------===//

#include "Frame.h"

#include <algorithm>

namespace dmxrt {

Frame::Frame(Machinery &machinery, const Graph &graph, std::string path, const Signature *signature)
    : machinery(machinery), graph(graph), path(std::move(path)), signature(signature) {}

Result<std::unique_ptr<Frame>> Frame::create(Machinery &machinery, const Graph &graph, std::string path,
                                             const Signature *signature) {
  std::unique_ptr<Frame> frame(new Frame(machinery, graph, std::move(path), signature));
  if (Status status = frame->load(); !status)
    return status.takeError();
  return frame;
}

Frame::~Frame() {
  for (Memory &memory : arenas)
    release(memory);
  for (TensorPlace &place : outputs)
    release(place.own);
  for (Binding &binding : bindings[DMX_INPUT])
    release(binding.own);
  for (const std::unique_ptr<Control> &control : controls)
    for (size_t i = 0; control && i < control->results.size(); ++i)
      release(control->results[i].own);
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].data)
      deviceOfState(i).release(states[i].data, states[i].size);
}

std::string Frame::tensorName(dmx_io io, uint32_t index) const {
  const char *what = io == DMX_INPUT ? "input " : "output ";
  if (!signature)
    return cat(what, index, " of graph '", graph.name, "'");
  return cat(what, "'", (io == DMX_INPUT ? signature->inputs : signature->outputs)[index].name, "'");
}

Status Frame::load() {
  for (const std::string &target : graph.targets)
    unitIndex.push_back(static_cast<uint32_t>(std::find(machinery.targets.begin(), machinery.targets.end(), target) -
                                              machinery.targets.begin()));
  bindings[DMX_INPUT].resize(graph.inputBuffers.size());
  bindings[DMX_OUTPUT].resize(graph.outputBuffers.size());
  outputs.resize(graph.outputBuffers.size());
  arenas.resize(graph.arenas.size());
  states.resize(graph.buffers.size());
  bufferData.resize(graph.buffers.size());
  dims.resize(graph.dims.size());
  lengths.resize(graph.dims.size());
  nextLengths.resize(graph.dims.size());
  shapeRoom.reserve(DMX_MAX_RANK);
  hasRooms = std::any_of(graph.dims.begin(), graph.dims.end(), [](const Dim &dim) { return dim.isRoom; });
  findRead();
  taskBase = machinery.taskCount;
  machinery.taskCount += static_cast<uint32_t>(graph.tasks.size());
  if (Status status = findKernels(); !status)
    return status;
  makeStages();
  makeOperands();
  if (Status status = makeControls(); !status)
    return status;
  if (Status status = allocateState(); !status)
    return status;
  // A run may reach the graph of a task late or never. Constraints that do not hold may belong to a branch that is
  // never taken.
  return !signature && isStatic(graph) && evaluateInputDims() ? layOutStage(0) : Status();
}

void Frame::findRead() {
  isRead.resize(graph.inputBuffers.size());
  auto read = [&](uint32_t buffer) {
    if (buffer != kNone && graph.buffers[baseOf(buffer)].kind == BufferKind::Input)
      isRead[graph.buffers[baseOf(buffer)].index] = true;
  };
  for (const Task &task : graph.tasks) {
    for (uint32_t buffer : task.buffers)
      read(buffer);
    read(task.condition);
    read(task.tripCount);
  }
}

Status Frame::findKernels() {
  contracts.resize(graph.tasks.size());
  kernels.resize(graph.tasks.size());
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task &task = graph.tasks[i];
    const Unit &unit = unitOf(task.device);
    taskNames.push_back(path + task.name);
    if (!task.hasKernel())
      continue;
    const CodeImage *image = unit.imageOf(task.kernel);
    if (!image)
      return badBundle("task '", taskNames.back(), "' needs kernel '", task.kernel, "', which code '",
                       unit.target->entry, "' does not have; compile the model again");
    kernels[i] = image->findKernel(task.kernel);
    if (Status status = findContract(i, *image); !status)
      return status;
  }
  return {};
}

Status Frame::findContract(size_t index, const CodeImage &image) {
  auto &[table, contract] = contracts[index];
  table = image.contracts();
  contract = table ? table->find(graph.tasks[index].kernel) : nullptr;
  return contract ? table->matchTask(graph, index, *contract) : Status();
}

/// That the tasks of a stage, once laid out, fit what their kernels rely on.
Status Frame::checkContracts(const Stage &stage) const {
  for (uint32_t i = stage.begin; i < stage.end; ++i)
    if (contracts[i].contract)
      if (Status status = contracts[i].table->matchNumbers(graph, i, *contracts[i].contract, layout); !status)
        return status;
  return {};
}

/// A frame for each graph that a task owns.
Status Frame::makeControls() {
  controls.resize(graph.tasks.size());
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task &task = graph.tasks[i];
    if (!task.isControl())
      continue;
    controls[i] = std::make_unique<Control>();
    controls[i]->results.resize(task.outputs);
    bool branches = task.kind == TaskKind::If;
    for (int k = 0; k < (branches ? 2 : 1); ++k) {
      const char *part = !branches ? "/" : k == 0 ? "/then/" : "/else/";
      auto made = create(machinery, machinery.bundle->graph(task.graphs[k]), cat(taskNames[i], part), nullptr);
      if (!made)
        return made.takeError();
      controls[i]->frames[k] = std::move(*made);
    }
  }
  return {};
}

void Frame::makeStages() {
  stages.resize(graph.stageEnds.size());
  uint32_t begin = 0;
  for (size_t k = 0; k < stages.size(); ++k) {
    stages[k].begin = std::exchange(begin, graph.stageEnds[k]);
    stages[k].end = begin;
    cutSegments(stages[k]);
  }
  for (uint32_t i = 0; i < graph.dims.size(); ++i)
    stages[graph.dims[i].stage].rows.push_back(i);
  for (uint32_t i = 0; i < graph.outputBuffers.size(); ++i)
    stages[graph.buffers[graph.outputBuffers[i]].stage].outputs.push_back(i);
  for (uint32_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].kind == BufferKind::Result)
      stages[graph.buffers[i].stage].results.push_back(i);
}

/// Deps point backwards, so that runs of consecutive tasks of one device may be started in their order.
void Frame::cutSegments(Stage &stage) {
  stage.segments.resize(graph.targets.size());
  stage.programs.resize(graph.targets.size());
  uint32_t previous = kNone; // the device of the segment that goes on
  for (uint32_t i = stage.begin; i < stage.end; ++i) {
    const Task &task = graph.tasks[i];
    if (task.isControl()) {
      stage.turns.push_back({nullptr, 0, 0, i});
      previous = kNone;
      continue;
    }
    std::vector<Segment> &segments = stage.segments[task.device];
    if (previous != task.device) {
      if (segments.empty())
        stage.programs[task.device] = unitOf(task.device).programs++;
      stage.turns.push_back({&deviceOf(task), stage.programs[task.device], static_cast<uint32_t>(segments.size())});
      segments.push_back({i, i});
    }
    segments.back().end = i + 1;
    previous = task.device;
  }
}

/// Operands and results of all tasks, in their order; addresses are filled in stage by stage.
void Frame::makeOperands() {
  uint32_t resultCount = 0;
  for (uint32_t i = 0; i < graph.tasks.size(); ++i) {
    const Task &task = graph.tasks[i];
    firstOperand.push_back(static_cast<uint32_t>(operands.size()));
    firstResult.push_back(resultCount);
    resultCount += task.results;
    if (task.isControl())
      continue;
    for (uint32_t buffer : task.buffers) {
      if (isMovable(buffer))
        boundSlots.push_back({static_cast<uint32_t>(operands.size()), buffer});
      operands.push_back(nullptr);
    }
  }
  operandBytes.resize(operands.size());
  if (std::any_of(graph.targets.begin(), graph.targets.end(), [](const auto &target) { return !runsOnHost(target); }))
    findShared();
  results.resize(resultCount);
  tasks.resize(graph.tasks.size());
  auto slotAt = [&](uint32_t task) {
    uint32_t operand = task < graph.tasks.size() ? firstOperand[task] : static_cast<uint32_t>(operands.size());
    return static_cast<uint32_t>(std::lower_bound(boundSlots.begin(), boundSlots.end(), operand,
                                                  [](const Slot &slot, uint32_t at) { return slot.position < at; }) -
                                 boundSlots.begin());
  };
  for (Stage &stage : stages) {
    stage.firstSlot = slotAt(stage.begin);
    stage.endSlot = slotAt(stage.end);
  }
}

/// Which buffers tasks of more than one device use, or the graph's caller or those that it calls.
void Frame::findShared() {
  operandHomes.resize(operands.size());
  isShared.resize(graph.buffers.size());
  std::vector<uint32_t> user(graph.buffers.size(), kNone);
  auto use = [&](uint32_t buffer, uint32_t device) {
    if (buffer == kNone)
      return;
    uint32_t base = baseOf(buffer);
    isShared[base] = isShared[base] || device == kNone || (user[base] != kNone && user[base] != device);
    user[base] = device;
  };
  for (const Task &task : graph.tasks) {
    for (uint32_t buffer : task.buffers)
      use(buffer, task.isControl() ? kNone : task.device);
    use(task.condition, kNone);
    use(task.tripCount, kNone);
  }
  for (uint32_t buffer : graph.outputBuffers)
    use(buffer, kNone);
}

Status Frame::allocateState() {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    int64_t size = 0;
    graph.exprs.isConstant(buffer.size, size);
    if (buffer.kind == BufferKind::Const)
      constantBytes += static_cast<uint64_t>(size);
    if (buffer.kind != BufferKind::State || size <= 0)
      continue;
    auto memory = deviceOfState(i).allocate(static_cast<uint64_t>(size));
    if (!memory)
      return within(cat("state buffer ", i), memory.takeError());
    states[i] = {*memory, static_cast<uint64_t>(size)};
    if (buffer.length == kNone) // of others no row is there, and pages that no run gets to are not touched
      deviceOfState(i).clear(*memory, states[i].size);
  }
  return {};
}

void Frame::resetState() {
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].data && graph.buffers[i].length == kNone) // of others no row is there
      deviceOfState(i).clear(states[i].data, states[i].size);
  std::fill(lengths.begin(), lengths.end(), 0);
  lengthsChanged = true;
}

void Frame::listFrames(std::vector<Frame *> &list) {
  list.push_back(this);
  for (const std::unique_ptr<Control> &control : controls)
    for (int k = 0; control && k < 2; ++k)
      if (control->frames[k])
        control->frames[k]->listFrames(list);
}

/// Room for the slices of one execution, so that runs allocate nothing.
void Frame::setProfiling(bool on) {
  size_t most = 0;
  for (const Task &task : graph.tasks)
    most += task.isControl() ? 1 : deviceOf(task).threads();
  slices.clear();
  if (on)
    slices.reserve(most);
}

void Frame::info(dmx_session_info &out) const {
  for (const Memory &memory : arenas)
    out.arena_bytes += memory.size;
  for (const Memory &memory : states)
    out.state_bytes += memory.size;
  for (const TensorPlace &place : outputs)
    out.output_bytes += place.own.size;
  for (const std::unique_ptr<Control> &control : controls)
    for (size_t i = 0; control && i < control->results.size(); ++i)
      out.output_bytes += control->results[i].own.size;
  for (uint64_t bound : layout.arenaLowerBounds)
    out.arena_lower_bound += bound;
  for (const Binding &binding : bindings[DMX_INPUT])
    out.output_bytes += binding.own.size;
  out.constant_bytes += constantBytes;
  out.copied_bytes += copiedBytes;
}

void Frame::taskInfo(uint32_t index, dmx_task_info &out) const {
  const Task &task = graph.tasks[index];
  out.name = taskNames[index].c_str();
  out.kernel = task.hasKernel() ? task.kernel.c_str() : nullptr;
  out.nodes = task.nodeNames.data();
  out.node_count = static_cast<uint32_t>(task.nodeNames.size());
  out.work = out.flops = out.bytes = -1;
  size_t stage = 0;
  while (stages[stage].end <= index)
    ++stage;
  if (!inputsChanged && fits(stages[stage])) {
    if (!task.isControl()) {
      deviceOf(task).selectProgram(stages[stage].programs[task.device]);
      out.slices = deviceOf(task).sliceCount(index);
    }
    out.work = layout.tasks[index].work;
    out.flops = layout.tasks[index].flops;
    out.bytes = layout.tasks[index].bytes;
  }
  const TaskFigures &figures = machinery.profile.figuresOf(taskBase + index);
  out.calls = figures.calls;
  out.total_ns = figures.totalNs;
  out.busy_ns = figures.busyNs;
}

} // namespace dmxrt
