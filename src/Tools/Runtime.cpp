//===- Runtime.cpp - the runtime's C API for tools ------------------------===//
#include "dmxc/Tools/Runtime.h"

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Keys.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace dmxc::tools {

// The C API numbers the types from 1 in the order of DType.
static_assert(static_cast<int>(DType::Bool) + 1 == DMX_DTYPE_BOOL &&
              static_cast<int>(DType::F32) + 1 == DMX_DTYPE_F32 && static_cast<int>(DType::U2) + 1 == DMX_DTYPE_U2);

double nowMs() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

namespace {

ErrorKind kindOf(dmx_status status) {
  switch (status) {
  case DMX_STATUS_INVALID_ARGUMENT:
    return ErrorKind::Usage;
  case DMX_STATUS_IO:
  case DMX_STATUS_OUT_OF_MEMORY:
    return ErrorKind::IO;
  case DMX_STATUS_INVALID_BUNDLE:
  case DMX_STATUS_CHECKSUM:
  case DMX_STATUS_UNSUPPORTED:
  case DMX_STATUS_KERNEL:
    return ErrorKind::Model;
  case DMX_STATUS_UNTRUSTED:
    return ErrorKind::Mismatch;
  default:
    return ErrorKind::Internal;
  }
}

/// Calls a function of the C API whose last parameter is the error.
template <typename Fn, typename... Args> Status call(Fn fn, Args... args) {
  dmx_error error = DMX_ERROR_INIT;
  if (dmx_status status = fn(args..., &error))
    return runtimeError(status, error);
  return Status::ok();
}

dmx_tensor_view viewOf(const Tensor &tensor) {
  return {static_cast<dmx_dtype>(tensor.dtype()) + 1, static_cast<uint32_t>(tensor.rank()), tensor.shape().data(),
          const_cast<std::byte *>(tensor.data())};
}

} // namespace

Result<Tensor> newTensor(DType type, const Shape &shape, const std::string &what) {
  int64_t bytes = dmx_tensor_bytes(static_cast<dmx_dtype>(type) + 1, static_cast<uint32_t>(shape.size()), shape.data());
  auto lack = [&] {
    return ioError("out of memory: " + what + " of " + std::string(dtypeName(type)) + " " + shapeString(shape) +
                   " needs " + (bytes < 0 ? "more than 2^63" : std::to_string(bytes)) +
                   " bytes; give smaller dims (--dim, or smaller inputs)");
  };
  if (bytes < 0)
    return lack();
  try {
    return Tensor(type, shape);
  } catch (const std::bad_alloc &) {
    return lack();
  }
}

Error runtimeError(dmx_status status, const dmx_error &error) { return {kindOf(status), error.message}; }

Status openBundle(const std::string &path, const OpenSettings &settings, dmx_bundle *&bundle) {
  if (!settings.signatureFile.empty() && settings.trustedKeys.empty())
    return usageError("--signature proves nothing without a --trusted-key");
  std::vector<unsigned char> keys;
  for (const std::string &file : settings.trustedKeys) {
    auto key = readPublicKey(file);
    if (!key)
      return key.takeError();
    keys.insert(keys.end(), key->begin(), key->end());
  }
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.flags = (settings.copyBundle ? DMX_BUNDLE_COPY : 0) | (settings.requireContracts ? DMX_BUNDLE_CONTRACTS : 0) |
                  (settings.noUserCode ? DMX_BUNDLE_NO_USER_CODE : 0);
  options.trusted_keys = keys.empty() ? nullptr : keys.data();
  options.trusted_key_count = static_cast<uint32_t>(settings.trustedKeys.size());
  std::shared_ptr<const MappedFile> signature;
  if (!settings.signatureFile.empty()) {
    auto file = MappedFile::open(settings.signatureFile);
    if (!file)
      return file.takeError();
    signature = *file;
    options.signature = signature->bytes().empty() ? "" : static_cast<const void *>(signature->bytes().data());
    options.signature_size = signature->bytes().size();
  }
  Status opened = call(dmx_bundle_open_with, path.c_str(), &options, &bundle);
  if (std::string twice = path + ": "; !opened && opened.error().message.starts_with(twice) &&
                                       opened.error().message.find("'" + path + "'") != std::string::npos)
    return Error{opened.error().kind, opened.error().message.substr(twice.size())};
  if (!opened && opened.error().kind == ErrorKind::Model)
    if (std::string model = modelTakenForBundle(path); !model.empty())
      return Error{ErrorKind::Model, model};
  return opened;
}

std::string IoTensor::str() const {
  std::string text(dtypeName(dtype));
  const char *separator = " ";
  if (dims.empty())
    return text + " scalar";
  for (const IoDim &dim : dims) {
    text += separator + (dim.name.empty() ? std::to_string(dim.min) : dim.name);
    separator = "x";
  }
  return text;
}

Status ModelSession::readSignature(dmx_io io, std::vector<IoTensor> &list) {
  const char *name = entryPoint.empty() ? nullptr : entryPoint.c_str();
  uint32_t count = dmx_bundle_tensor_count(bundle, name, io);
  for (uint32_t i = 0; i < count; ++i) {
    dmx_tensor_info info = {};
    info.struct_size = sizeof info;
    if (Status done = call(dmx_bundle_tensor_info, bundle, name, io, i, &info); !done)
      return done;
    IoTensor tensor{info.name, static_cast<DType>(info.dtype - 1), {}};
    for (uint32_t axis = 0; axis < info.rank; ++axis) {
      const dmx_dim &dim = info.dims[axis];
      tensor.dims.push_back({dim.name ? dim.name : "", dim.min, dim.max});
    }
    list.push_back(std::move(tensor));
  }
  return Status::ok();
}

Result<std::unique_ptr<ModelSession>> ModelSession::open(const std::string &path, const SessionSettings &settings) {
  std::unique_ptr<ModelSession> self(new ModelSession);
  self->entryPoint = settings.entryPoint;
  double start = nowMs();
  if (Status done = openBundle(path, settings, self->bundle); !done)
    return done.takeError();
  double opened = nowMs();
  self->loadTime = opened - start;
  std::vector<const char *> deviceOptions;
  for (const std::string &option : settings.deviceOptions)
    deviceOptions.push_back(option.c_str());
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.flags = DMX_SESSION_SIMULATE; // tools say so: noteMachine
  options.threads = settings.threads;
  options.isa = settings.isa.empty() ? nullptr : settings.isa.c_str();
  options.device_options = deviceOptions.data();
  options.device_option_count = static_cast<uint32_t>(deviceOptions.size());
  const char *entry = self->entryPoint.empty() ? nullptr : self->entryPoint.c_str();
  if (Status done = call(dmx_session_create, self->bundle, entry, &options, &self->session); !done)
    return done.takeError();
  self->sessionTime = nowMs() - opened;
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    if (Status done = self->readSignature(io, io == DMX_INPUT ? self->inputList : self->outputList); !done)
      return done.takeError();
  self->inputTensors.resize(self->inputList.size());
  self->outputTensors.resize(self->outputList.size());
  return self;
}

std::vector<std::string> contractsOf(const std::string &path) {
  std::vector<std::string> list;
  dmx_bundle *bundle = nullptr;
  if (dmx_bundle_open(path.c_str(), &bundle, nullptr) != DMX_OK)
    return list;
  for (uint32_t i = 0; i < dmx_bundle_code_count(bundle); ++i) {
    dmx_code_info info = {};
    info.struct_size = sizeof info;
    bool known = dmx_bundle_code_info(bundle, i, &info, nullptr) == DMX_OK;
    list.push_back(!known ? "" : info.contracts < 0 ? "unknown target" : info.contracts ? "yes" : "no");
  }
  dmx_bundle_close(bundle);
  return list;
}

ModelSession::~ModelSession() {
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
}

Status ModelSession::bindInput(size_t index, const Tensor &tensor) {
  Status done = bind(DMX_INPUT, index, viewOf(tensor));
  if (done)
    inputTensors[index] = tensor;
  return done;
}

Status ModelSession::bind(dmx_io io, size_t index, const dmx_tensor_view &view) {
  return call(dmx_session_bind, session, io, static_cast<uint32_t>(index), &view);
}

Status ModelSession::unbind(dmx_io io, size_t index) {
  return call(dmx_session_unbind, session, io, static_cast<uint32_t>(index));
}

Result<std::optional<Shape>> ModelSession::outputShape(size_t index) {
  Shape shape(DMX_MAX_RANK);
  uint32_t rank = 0;
  dmx_error error = DMX_ERROR_INIT;
  dmx_status status =
      dmx_session_shape(session, DMX_OUTPUT, static_cast<uint32_t>(index), shape.data(), DMX_MAX_RANK, &rank, &error);
  if (status == DMX_STATUS_SHAPE_UNKNOWN)
    return std::optional<Shape>();
  if (status != DMX_OK)
    return runtimeError(status, error);
  shape.resize(rank);
  return std::optional(std::move(shape));
}

Result<dmx_tensor_view> ModelSession::outputView(size_t index) {
  dmx_tensor_view view = {};
  if (Status done = call(dmx_session_output, session, static_cast<uint32_t>(index), &view); !done)
    return done.takeError();
  return view;
}

Status ModelSession::allocateOutputs() {
  std::vector<size_t> lateBefore;
  std::swap(lateBefore, lateOutputs);
  for (size_t i = 0; i < outputList.size(); ++i) {
    auto shape = outputShape(i);
    if (!shape)
      return shape.takeError();
    // After a run the shape is known, as that run's.
    bool late = std::find(lateBefore.begin(), lateBefore.end(), i) != lateBefore.end();
    if (late || !*shape) {
      lateOutputs.push_back(i);
      if (Status done = unbind(DMX_OUTPUT, i); !done)
        return done;
      continue;
    }
    auto tensor = newTensor(outputList[i].dtype, **shape, "output '" + outputList[i].name + "'");
    if (!tensor)
      return tensor.takeError();
    outputTensors[i] = std::move(*tensor);
    if (Status done = bind(DMX_OUTPUT, i, viewOf(outputTensors[i])); !done)
      return done;
  }
  return Status::ok();
}

Status ModelSession::fetchOutput(size_t index) {
  auto view = outputView(index);
  if (!view)
    return view.takeError();
  Shape shape(view->dims, view->dims + view->rank);
  auto tensor = newTensor(outputList[index].dtype, shape, "output '" + outputList[index].name + "'");
  if (!tensor)
    return tensor.takeError();
  outputTensors[index] = std::move(*tensor);
  if (uint64_t bytes = outputTensors[index].byteSize())
    std::memcpy(outputTensors[index].mutableData(), view->data, bytes);
  return Status::ok();
}

Status ModelSession::run() {
  if (stateRows())
    if (Status done = truncateState(0); !done)
      return done;
  return runOn();
}

Status ModelSession::runOn() {
  if (Status done = call(dmx_session_run, session); !done)
    return done;
  for (size_t index : lateOutputs)
    if (Status done = fetchOutput(index); !done)
      return done;
  return Status::ok();
}

Status ModelSession::resetState() { return call(dmx_session_reset_state, session); }

std::optional<StateRows> ModelSession::stateRows() {
  StateRows rows;
  const dmx_status status = dmx_session_state_length(session, nullptr, &rows.length, &rows.capacity, nullptr);
  return status == DMX_OK ? std::optional(rows) : std::nullopt;
}

Status ModelSession::truncateState(int64_t length) {
  return call(dmx_session_state_truncate, session, static_cast<const char *>(nullptr), length);
}

std::string ModelSession::metadata(const std::string &key) const {
  const char *text = dmx_bundle_metadata(bundle, key.c_str());
  return text ? text : "";
}

Status ModelSession::profile(uint32_t capacity) { return call(dmx_session_profile, session, capacity); }

Result<std::vector<dmx_profile_event>> ModelSession::takeEvents(uint64_t &dropped) {
  uint32_t count = 0;
  dropped = 0;
  dmx_profile_event *none = nullptr;
  uint64_t *noCount = nullptr;
  if (Status done = call(dmx_session_take_events, session, none, 0u, &count, noCount); !done)
    return done.takeError();
  std::vector<dmx_profile_event> events(count);
  if (Status done = call(dmx_session_take_events, session, events.data(), count, &count, &dropped); !done)
    return done.takeError();
  events.resize(count);
  return events;
}

Result<dmx_session_info> ModelSession::info() {
  dmx_session_info info = {};
  info.struct_size = sizeof info;
  if (Status done = call(dmx_session_get_info, session, &info); !done)
    return done.takeError();
  return info;
}

Result<std::vector<TaskFigures>> ModelSession::tasks() {
  auto facts = info();
  if (!facts)
    return facts.takeError();
  std::vector<TaskFigures> all;
  for (uint32_t i = 0; i < facts->task_count; ++i) {
    dmx_task_info info = {};
    info.struct_size = sizeof info;
    if (Status done = call(dmx_session_task_info, session, i, &info); !done)
      return done.takeError();
    TaskFigures task;
    task.name = info.name ? info.name : "";
    task.kernel = info.kernel ? info.kernel : "";
    task.nodes.assign(info.nodes, info.nodes + info.node_count);
    task.work = info.work;
    task.flops = info.flops;
    task.bytes = info.bytes;
    task.slices = info.slices;
    task.calls = info.calls;
    task.totalNs = info.total_ns;
    task.busyNs = info.busy_ns;
    all.push_back(std::move(task));
  }
  return all;
}

} // namespace dmxc::tools
