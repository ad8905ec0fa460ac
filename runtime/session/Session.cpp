//===- Session.cpp - creation, bindings and shapes of a session -----------===//
//
// SessionDevices.cpp has the choice of devices and code, SessionRun.cpp what happens
// around a run, Frame.h what happens in it.
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "runtime/bundle/DType.h"

#include <algorithm>

namespace dmxrt {

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Bundle> bundle, const Signature &signature,
                                                 const DeviceOptions &options) {
  std::unique_ptr<Session> session(new Session(std::move(bundle), signature));
  auto devices = createDevices(session->graph.targets, options);
  if (!devices)
    return devices.takeError();
  if (Status status = session->load(std::move(*devices), options.isa); !status)
    return status.takeError();
  return session;
}

Status Session::load(std::vector<std::unique_ptr<Device>> devices, std::string_view isa) {
  if (Status status = useDevices(std::move(devices), isa); !status)
    return status;
  auto made = Frame::create(machinery, graph, "", &signature);
  if (!made)
    return made.takeError();
  frame = std::move(*made);
  frame->listFrames(frames);
  machinery.profile.setTaskCount(machinery.taskCount);
  countPrograms();
  ranges.reserve(signature.inputs.size() + signature.outputs.size());
  return isStatic(graph) ? frame->prepareFirst() : Status();
}

Session::~Session() {
  if (!asyncStarted)
    return;
  if (state.load() == InFlight)
    (void)finishAsync();
  asyncStop = true;
  asyncGo.raise();
  pthread_join(asyncThread, nullptr);
}

void Session::resetState() {
  for (Frame *each : frames)
    each->resetState();
}

Status Session::checkTensor(dmx_io io, uint32_t index) const {
  if (io != DMX_INPUT && io != DMX_OUTPUT)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "argument io is ", io, ", neither DMX_INPUT nor DMX_OUTPUT");
  if (index >= tensorCount(io))
    return fail(DMX_STATUS_INVALID_ARGUMENT, io == DMX_INPUT ? "input " : "output ", index,
                " does not exist; the entry point has ", tensorCount(io));
  return {};
}

/// Whether only a run tells the shape.
bool Session::isLate(dmx_io io, uint32_t index) const {
  return io == DMX_OUTPUT && graph.buffers[graph.outputBuffers[index]].stage != 0;
}

Status Session::bind(dmx_io io, uint32_t index, const dmx_tensor_view &view, const int64_t *given) {
  const Signature::Tensor &wanted = tensor(io, index);
  auto wrong = [&](const auto &...parts) {
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(io, index), ": ", parts...);
  };
  if (view.dtype != wanted.dtype) {
    const char *got = dmx_dtype_name(view.dtype);
    return wrong("dtype is ", got ? got : "unknown", ", expected ", dmx_dtype_name(wanted.dtype));
  }
  if (view.rank != wanted.dims.size())
    return wrong("rank is ", view.rank, ", expected ", wanted.dims.size());
  if (view.rank && !view.dims)
    return wrong("dims is NULL");
  bool late = isLate(io, index);
  for (uint32_t axis = 0; axis < view.rank; ++axis) {
    const dmx_dim &dim = wanted.dims[axis];
    int64_t extent = view.dims[axis];
    // Of an output whose shape only a run tells, the dims say how much room there is.
    if (extent >= 0 && (late || (extent >= dim.min && extent <= dim.max)))
      continue;
    std::string name = dim.name ? cat(" ('", dim.name, "')") : "";
    if (dim.min == dim.max)
      return wrong("axis ", axis, name, " is ", extent, ", expected ", dim.min);
    return wrong("axis ", axis, name, " is ", extent, ", expected ", dim.min, " to ", dim.max);
  }
  int64_t bytes = dmx_tensor_bytes(view.dtype, view.rank, view.dims);
  if (bytes < 0)
    return wrong("its dims multiply to more than 63 bits");
  if (bytes && !view.data)
    return wrong("data is NULL");
  if (reinterpret_cast<uintptr_t>(view.data) % dtypeAlignment(view.dtype))
    return wrong("data is not aligned to the element size, ", dtypeAlignment(view.dtype), " bytes");

  std::span<const int64_t> extents(view.dims, view.rank), strides(given, given ? view.rank : 0);
  if (!strides.empty()) {
    if (late)
      return wrong("its shape is known only after a run; bind it without strides");
    if (dmx_dtype_bits(view.dtype) < 8)
      return wrong("elements of ", dmx_dtype_name(view.dtype), " are no whole bytes; bind it without strides");
    auto reach = reachOf(extents, strides);
    if (!reach || *reach > INT64_MAX / 64)
      return wrong(reach ? std::string("its strides reach over more than 63 bits") : reach.takeError().message);
    bytes = *reach * (dmx_dtype_bits(view.dtype) / 8);
  }
  if (io == DMX_INPUT) {
    const std::vector<int64_t> &old = frame->binding(io, index).dims;
    outputsValid &= std::equal(extents.begin(), extents.end(), old.begin(), old.end());
  } else {
    outputsValid = false;
  }
  frame->bind(io, index, extents, static_cast<std::byte *>(view.data), static_cast<uint64_t>(bytes), strides);
  return {};
}

void Session::unbind(dmx_io io, uint32_t index) {
  outputsValid = false;
  frame->unbind(io, index);
}

/// The shape of an output that only a run tells.
Status Session::runShape(uint32_t index, std::vector<int64_t> &shape) const {
  if (outputsValid) {
    shape = frame->output(index).dims;
    return {};
  }
  const Buffer &buffer = graph.buffers[graph.outputBuffers[index]];
  std::string why;
  for (ExprId extent : buffer.shape)
    graph.exprs.forEachDim(extent, [&](uint32_t dim) {
      if (graph.dims[dim].stage != 0 && why.empty())
        why = cat(" (dim '", graph.dims[dim].name, "' depends on the data)");
    });
  return fail(DMX_STATUS_SHAPE_UNKNOWN, tensorName(DMX_OUTPUT, index), ": its shape is known only after a run", why,
              "; leave it unbound and ask dmx_session_output then, or bind memory that is large enough");
}

Status Session::shape(dmx_io io, uint32_t index, int64_t *out, uint32_t capacity, uint32_t &rank) {
  const Signature::Tensor &wanted = tensor(io, index);
  size_t count = wanted.dims.size();
  if (count > capacity || (count && !out))
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(io, index), " has rank ", count, ", but there is room for ",
                out ? capacity : 0, " extents");
  std::vector<int64_t> shape;
  bool fixed = true;
  for (const dmx_dim &dim : wanted.dims) {
    fixed &= dim.name == nullptr;
    shape.push_back(dim.min);
  }
  if (!fixed) {
    uint32_t buffer = io == DMX_INPUT ? graph.inputBuffers[index] : graph.outputBuffers[index];
    if (buffer == kNone) { // an input that nothing reads has any shape
      if (!frame->binding(io, index).bound)
        return fail(DMX_STATUS_NOT_READY, tensorName(io, index), " is not bound");
      shape = frame->binding(io, index).dims;
    } else {
      if (Status status = frame->evaluateInputs(); !status)
        return status;
      Status status =
          isLate(io, index) ? runShape(index, shape) : evaluateShape(graph, buffer, frame->dimValues(), shape);
      if (!status)
        return isLate(io, index) ? status : Status(within(tensorName(io, index), status.takeError()));
    }
  }
  std::copy(shape.begin(), shape.end(), out);
  rank = static_cast<uint32_t>(count);
  return {};
}

Status Session::output(uint32_t index, dmx_tensor_view &view) const {
  if (!outputsValid)
    return fail(DMX_STATUS_NOT_READY, tensorName(DMX_OUTPUT, index),
                ": there is no run whose outputs are valid; call dmx_session_run after binding");
  if (frame->binding(DMX_OUTPUT, index).isStrided)
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_OUTPUT, index),
                " is bound with strides; read it where it is bound");
  const TensorPlace &place = frame->output(index);
  view = {tensor(DMX_OUTPUT, index).dtype, static_cast<uint32_t>(place.dims.size()), place.dims.data(), place.data};
  return {};
}

void Session::info(dmx_session_info &out) const {
  for (const Unit &unit : machinery.units) {
    out.threads = std::max(out.threads, unit.device->threads());
    out.scratch_bytes += unit.device->scratchBytes();
  }
  out.task_count = machinery.taskCount;
  out.target = targetText.c_str();
  out.isa = isaText.c_str();
  out.better_isa = betterIsa;
  out.machine = machineText.c_str();
  out.remarks = remarksText.c_str();
  for (const Frame *each : frames)
    each->info(out);
}

Status Session::taskInfo(uint32_t index, dmx_task_info &out) const {
  if (index >= machinery.taskCount)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "task ", index, " does not exist; there are ", machinery.taskCount);
  auto after = std::upper_bound(frames.begin(), frames.end(), index,
                                [](uint32_t task, const Frame *each) { return task < each->firstTask(); });
  const Frame &owner = **(after - 1);
  owner.taskInfo(index - owner.firstTask(), out);
  return {};
}

} // namespace dmxrt
