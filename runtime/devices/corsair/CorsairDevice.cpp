//===- CorsairDevice.cpp - a simulated Corsair-class card as a device -----===//

#include "CorsairDevice.h"

#include "dmx/dmx_kernel.h"
#include "runtime/devices/common/CpuCount.h"

#include <algorithm>

namespace dmxrt::corsair {
namespace {

std::span<const uint8_t> bytesOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
}

/// What a task returns for a fault; the message has the rest.
int32_t codeOf(const Fault &fault) {
  return fault.kind == FaultKind::IndexOutOfRange ? DMX_KERNEL_INDEX_OUT_OF_RANGE : kDeviceFault;
}

} // namespace

// --- images ------------------------------------------------------------------

Result<std::shared_ptr<const CodeImage>> CorsairImage::load(std::span<const std::byte> bytes) {
  std::string error;
  auto read = isa::read(bytesOf(bytes), error);
  if (!read)
    return fail(DMX_STATUS_INVALID_BUNDLE, "the DMX ISA image is not usable: ", error);
  auto out = std::make_shared<CorsairImage>();
  out->image = std::move(*read);
  out->streams = decodeStreams(out->image);
  for (const isa::Kernel &kernel : out->image.kernels)
    out->handles.push_back({out.get(), &kernel});
  return std::shared_ptr<const CodeImage>(std::move(out));
}

/// A kernel's arguments are declared in the image, and the card checks every access.
Status CorsairImage::check(std::span<const std::byte> bytes, int32_t &contracts) {
  contracts = 1;
  std::string error;
  if (!isa::read(bytesOf(bytes), error))
    return fail(DMX_STATUS_INVALID_BUNDLE, "the DMX ISA image is not usable: ", error);
  return {};
}

const void *CorsairImage::findKernel(std::string_view name) const {
  for (const Handle &handle : handles)
    if (handle.kernel->name == name)
      return &handle;
  return nullptr;
}

Status CorsairImage::checkTask(const DeviceTask &task) const {
  const isa::Kernel &kernel = *static_cast<const Handle *>(task.kernel)->kernel;
  if (task.bufferBytes.size() != kernel.arguments.size())
    return badBundle("kernel '", kernel.name, "' has ", kernel.arguments.size(), " arguments, its task has ",
                     task.bufferBytes.size(), " buffers");
  for (size_t i = 0; i < kernel.arguments.size(); ++i)
    if (kernel.arguments[i].hostBytes() > task.bufferBytes[i])
      return badBundle("kernel '", kernel.name, "': argument '", kernel.arguments[i].name, "' has ",
                       kernel.arguments[i].hostBytes(), " bytes, its buffer ", task.bufferBytes[i]);
  if (kernel.dimRegisters.size() > task.dimCount)
    return badBundle("kernel '", kernel.name, "' needs ", kernel.dimRegisters.size(), " dims, its task gives ",
                     task.dimCount);
  return {};
}

// --- the device --------------------------------------------------------------

Result<std::unique_ptr<Device>> CorsairDevice::create(const DeviceOptions &options, std::span<const Setting> settings) {
  std::unique_ptr<CorsairDevice> device(new CorsairDevice(options));
  if (Status status = device->configure(options, settings); !status)
    return status.takeError();
  return std::unique_ptr<Device>(std::move(device));
}

CorsairDevice::CorsairDevice(const DeviceOptions &options) : SimulatedDevice(corsairDevice(), options.allocator) {}

CorsairDevice::~CorsairDevice() = default;

Status CorsairDevice::configure(const DeviceOptions &given, std::span<const Setting> settings) {
  options.threads = given.threads ? given.threads : defaultThreadCount();
  if (options.threads > 1024)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "option threads is ", options.threads, "; at most 1024 are allowed");
  for (const Setting &setting : settings) {
    if (setting.key == "skew_seed")
      options.skewSeed = setting.number;
    else if (setting.key == "hazards")
      options.hazards = setting.number == 1;
    else if (setting.key == "strict_range")
      strictRange = setting.number == 1;
    else if (setting.key == "report")
      reportFile = setting.text;
    else if (setting.key == "trace")
      tracePath = setting.text;
  }
  options.trace = !tracePath.empty();
  return {};
}

void CorsairDevice::release(void *memory, uint64_t size) {
  states.erase(memory);
  SimulatedDevice::release(memory, size);
}

void CorsairDevice::clear(void *memory, uint64_t size) {
  Device::clear(memory, size);
  states.erase(memory);
}

/// One card per session: memory for what all kernels of the image use.
Status CorsairDevice::reserve(const isa::Image &used) {
  if (image == &used)
    return {};
  if (image)
    return fail(DMX_STATUS_INTERNAL, "kernels of two images in one session");
  std::array<uint64_t, isa::kMemories> bytes{};
  for (const isa::Kernel &kernel : used.kernels)
    for (int i = 0; i < isa::kMemories; ++i)
      bytes[i] = std::max(bytes[i], kernel.footprint.bytes[i]);
  storage = std::make_unique<Storage>();
  if (Status status = storage->reserve(used.machine, bytes); !status)
    return status;
  card = std::make_unique<Card>(used.machine, *storage);
  image = &used;
  return {};
}

Status CorsairDevice::prepareTask(const DeviceTask &task) {
  const auto &handle = *static_cast<const CorsairImage::Handle *>(task.kernel);
  if (Status status = reserve(handle.image->image); !status)
    return status;
  return handle.image->checkTask(task);
}

std::optional<Fault> CorsairDevice::runProgram(const CorsairImage::Handle &handle, const isa::Program &program,
                                               const DeviceTask &task, RunResult &result) {
  ProgramRun run;
  run.image = &handle.image->image;
  run.streams = &handle.image->streams;
  run.program = &program;
  for (size_t i = 0; i < handle.kernel->dimRegisters.size(); ++i)
    if (handle.kernel->dimRegisters[i] != isa::kNoRegister)
      run.registers.emplace_back(handle.kernel->dimRegisters[i], task.dims[i]);
  for (size_t i = 0; i < handle.kernel->arguments.size(); ++i)
    if (const isa::Argument &argument = handle.kernel->arguments[i]; argument.role == isa::Role::Scalar)
      run.registers.emplace_back(argument.reg,
                                 Boundary::scalar(argument, static_cast<const std::byte *>(task.buffers[i])));
  for (Memory memory : {Memory::IB, Memory::WB, Memory::OB, Memory::SIMD, Memory::DRE})
    storage->forget(memory);
  result = card->run(run, options);
  return result.fault;
}

std::optional<Fault> CorsairDevice::prepareState(const isa::Argument &argument, const void *buffer) {
  auto known = states.find(buffer);
  if (known == states.end()) {
    Boundary(*storage, options.hazards).clear(argument);
    states.emplace(buffer, argument.pieces); // only now: out of memory may have come in between
  } else if (known->second != argument.pieces)
    return Fault{FaultKind::BadOperand, 0, 0,
                 cat("bad-operand: state '", argument.name, "' lies elsewhere in another kernel")};
  return std::nullopt;
}

/// A kernel's first dispatch of the session: constants, then `init`.
std::optional<Fault> CorsairDevice::initialize(const DeviceTask &task, const CorsairImage::Handle &handle,
                                               KernelRun &report) {
  if (initialized.contains(handle.kernel))
    return std::nullopt;
  Boundary boundary(*storage, options.hazards);
  for (size_t i = 0; i < handle.kernel->arguments.size(); ++i)
    if (const isa::Argument &argument = handle.kernel->arguments[i]; argument.role == isa::Role::Const) {
      boundary.write(argument, static_cast<const std::byte *>(task.buffers[i]));
      report.hostIn += argument.hostBytes();
    }
  std::optional<Fault> fault;
  if (!handle.kernel->init.launches.empty())
    fault = runProgram(handle, handle.kernel->init, task, report.init.emplace());
  if (!fault)
    initialized.insert(handle.kernel);
  return fault;
}

std::optional<Fault> CorsairDevice::dispatch(const DeviceTask &task) {
  const auto &handle = *static_cast<const CorsairImage::Handle *>(task.kernel);
  KernelRun report;
  report.image = &handle.image->image;
  report.kernel = handle.kernel->name;
  report.modelMacs = task.operations / 2;
  if (auto fault = initialize(task, handle, report))
    return fault;
  Boundary boundary(*storage, options.hazards);
  const std::vector<isa::Argument> &arguments = handle.kernel->arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].role == isa::Role::State)
      if (auto fault = prepareState(arguments[i], task.buffers[i]))
        return fault;
    if (arguments[i].role == isa::Role::Input) {
      boundary.write(arguments[i], static_cast<const std::byte *>(task.buffers[i]));
      report.hostIn += arguments[i].hostBytes();
      report.saturatedInputs += Boundary::saturated(arguments[i], static_cast<const std::byte *>(task.buffers[i]));
    }
  }
  if (auto fault = runProgram(handle, handle.kernel->main, task, report.main))
    return fault;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].role == isa::Role::Output) {
      if (auto fault = boundary.read(arguments[i], static_cast<std::byte *>(task.buffers[i])))
        return fault;
      report.hostOut += arguments[i].hostBytes();
    }
  lastRun.push_back(std::move(report));
  return std::nullopt;
}

RunOutcome CorsairDevice::runTask(const DeviceTask &task) {
  if (std::optional<Fault> fault = dispatch(task))
    return {codeOf(*fault), 0, std::move(fault->text)};
  return {};
}

/// Writes the reports.
Status CorsairDevice::endRun() {
  ++runs;
  saturation = saturationText(lastRun);
  if (firstRun.empty())
    firstRun = lastRun;
  if (!image)
    return {};
  if (!reportFile.empty() && !writeReport(reportFile, image->machine, firstRun, lastRun, runs))
    return fail(DMX_STATUS_IO, "cannot write the report '", reportFile, "' of the card");
  if (!tracePath.empty() && !writeTrace(tracePath, image->machine, lastRun))
    return fail(DMX_STATUS_IO, "cannot write the trace '", tracePath, "' of the card");
  if (strictRange && !saturation.empty())
    return fail(DMX_STATUS_KERNEL, "f16 ends at 65504: ", saturation,
                "; scale the model's values, or let the host compute these nodes (dmxc --place 'NODE=cpu'); "
                "corsair.strict_range=0 takes the results as they are");
  return {};
}

} // namespace dmxrt::corsair

const dmxrt::DeviceKind &dmxrt::corsairDevice() {
  static constexpr DeviceKind kind{"corsair",
                                   /*runsOnHost=*/false,
                                   corsair::CorsairDevice::kSettings,
                                   corsair::CorsairDevice::create,
                                   corsair::CorsairImage::check,
                                   corsair::CorsairImage::load};
  return kind;
}
