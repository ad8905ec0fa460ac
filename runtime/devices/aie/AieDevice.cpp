//===- AieDevice.cpp - the array as a device of the runtime ---------------===//
#include "Report.h"

#include "runtime/devices/Device.h"
#include "runtime/devices/common/SimulatedDevice.h"
#include "runtime/devices/common/Trace.h"
#include "schemas/aie/Border.h"

#include <chrono>
#include <cstring>

namespace dmxrt {
const DeviceKind &aieDevice();
} // namespace dmxrt

namespace dmxrt::aie {
namespace {

constexpr SettingSpec kSettings[] = {{"report", "FILE"}, {"trace", "FILE"}, {"skew_seed", "0..4294967295", UINT32_MAX}};

Status checkBuffers(const hw::KernelCode &kernel, const DeviceTask &task) {
  if (kernel.arguments.size() != task.bufferBytes.size())
    return badBundle("kernel '", kernel.name, "' has ", kernel.arguments.size(), " arguments, its task has ",
                     task.bufferBytes.size(), " buffers");
  for (size_t i = 0; i < kernel.arguments.size(); ++i)
    if (const hw::Argument &argument = kernel.arguments[i]; argument.hostBytes() > task.bufferBytes[i])
      return badBundle("kernel '", kernel.name, "': argument '", argument.name, "' has ", argument.hostBytes(),
                       " bytes, its buffer ", task.bufferBytes[i]);
  return {};
}

void give(const hw::Argument &argument, const std::byte *buffer, std::byte *form) {
  if (argument.packed)
    std::memcpy(form, buffer, argument.ddrBytes());
  else
    hw::toDevice(argument, buffer, form);
}

/// A kernel with the sizes of a task.
Result<hw::KernelCode> launched(const hw::KernelCode &kernel, const DeviceTask &task) {
  std::span<const int64_t> dims(task.dims, task.dimCount);
  if (std::string wrong = hw::checkDims(kernel, dims); !wrong.empty())
    return badBundle("kernel '", kernel.name, "': ", wrong);
  hw::KernelCode code = hw::launched(kernel, dims);
  if (Status status = checkBuffers(code, task); !status)
    return status.takeError();
  return code;
}

void take(const hw::Argument &argument, const std::byte *form, std::byte *buffer) {
  if (argument.packed)
    std::memcpy(buffer, form, argument.ddrBytes());
  else
    hw::toHost(argument, form, buffer);
}

/// A kernel with what it is part of.
struct Loaded {
  const hw::Machine *machine;
  const hw::Image *image;
  const hw::KernelCode *code;
  std::span<const std::shared_ptr<const hw::HostCode>> users;
};

class ArrayImage final : public CodeImage {
public:
  ArrayImage(hw::Image read, std::vector<std::shared_ptr<const hw::HostCode>> code)
      : image(std::move(read)), machine(*hw::machineOf(image.machine)), users(std::move(code)) {
    for (const hw::KernelCode &kernel : image.kernels)
      kernels.push_back({&machine, &image, &kernel, users});
  }
  const void *findKernel(std::string_view name) const override {
    for (const Loaded &kernel : kernels)
      if (kernel.code->name == name)
        return &kernel;
    return nullptr;
  }
  Status checkTask(const DeviceTask &task) const override {
    Result<hw::KernelCode> code = launched(*static_cast<const Loaded *>(task.kernel)->code, task);
    return code ? Status() : Status(code.takeError());
  }

private:
  hw::Image image;
  hw::Machine machine;
  std::vector<std::shared_ptr<const hw::HostCode>> users;
  std::vector<Loaded> kernels;
};

/// The code of an image's objects, in which all functions are that it names.
Result<std::vector<std::shared_ptr<const hw::HostCode>>> usersOf(const hw::Image &image) {
  std::vector<std::shared_ptr<const hw::HostCode>> users;
  for (const std::vector<std::byte> &object : image.objects) {
    std::string error;
    if (!users.emplace_back(hw::HostCode::load(object, error)))
      return badBundle("the object of a user's kernel is not one that the array's simulator loads: ", error);
  }
  for (const hw::UserFunction &function : image.functions)
    if (!users[function.object]->has(function.symbol))
      return badBundle("the code for the array is not usable: the object of the kernel '", function.kernel,
                       "' defines no function '", function.symbol, "'");
  return users;
}

Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes) {
  std::string error;
  std::optional<hw::Image> image = hw::readImage(bytes, error);
  if (!image)
    return badBundle("the code for the array is not usable: ", error);
  auto users = usersOf(*image);
  if (!users)
    return users.takeError();
  return std::shared_ptr<const CodeImage>(std::make_shared<ArrayImage>(std::move(*image), std::move(*users)));
}

class AieDevice final : public sim::SimulatedDevice {
public:
  AieDevice(const DeviceOptions &options, std::span<const Setting> settings)
      : SimulatedDevice(aieDevice(), options.allocator) {
    for (const Setting &setting : settings)
      if (setting.key == "skew_seed")
        seed = setting.number;
      else
        (setting.key == "trace" ? traceFile : reportFile) = setting.text;
  }

  void startRun() override {
    lastRun.clear();
    trace = sim::Trace();
    clocks = 0;
  }

  Status endRun() override {
    if (++runs == 1)
      firstRun = lastRun;
    if (!reportFile.empty() && machine && !report())
      return fail(DMX_STATUS_IO, "cannot write the report '", reportFile, "' of the array");
    if (!traceFile.empty() && !trace.save(traceFile))
      return fail(DMX_STATUS_IO, "cannot write the trace '", traceFile, "' of the array");
    return {};
  }

private:
  Status prepareTask(const DeviceTask &task) override {
    Result<hw::KernelCode> code = launched(*static_cast<const Loaded *>(task.kernel)->code, task);
    return code ? Status() : Status(code.takeError());
  }

  /// Each dispatch starts from the overlay's initial configuration.
  RunOutcome runTask(const DeviceTask &task) override {
    const Loaded &kernel = *static_cast<const Loaded *>(task.kernel);
    const hw::KernelCode code = hw::launched(*kernel.code, {task.dims, task.dimCount});
    const std::vector<hw::Argument> &arguments = code.arguments;
    machine = kernel.machine;
    Array array(*kernel.machine, *kernel.image, code, seed, kernel.users);
    array.keepsTrace = !traceFile.empty();
    using Clock = std::chrono::steady_clock;
    Clock::time_point start = Clock::now();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].output || arguments[i].packed) // what of a form is not written stays
        if (std::byte *form = array.host(i, true))
          give(arguments[i], static_cast<const std::byte *>(task.buffers[i]), form);
    Clock::duration atHost = Clock::now() - start;
    array.run();
    Figures figures = figuresOf(array, code, task.operations / 2);
    start = Clock::now();
    for (size_t i = 0; i < arguments.size() && array.fault.empty(); ++i)
      if (arguments[i].output)
        if (const std::byte *form = array.host(i, false))
          take(arguments[i], form, static_cast<std::byte *>(task.buffers[i]));
    if (!array.fault.empty())
      return {kDeviceFault, 0, array.fault};
    figures.hostSeconds = std::chrono::duration<double>(atHost + (Clock::now() - start)).count();
    lastRun.push_back(std::move(figures));
    record(array, code);
    return {};
  }

  /// Kernels stand one after the other in the trace.
  void record(const Array &array, const hw::KernelCode &kernel) {
    double microseconds = 1e6 / machine->clockHz;
    trace.process(0, std::string(machine->name));
    for (const Interval &interval : array.intervals) {
      trace.row(0, interval.thread, array.nameOf(interval.thread));
      trace.begin(0, interval.thread, static_cast<double>(clocks + interval.start) * microseconds,
                  static_cast<double>(interval.end - interval.start) * microseconds, interval.name);
      trace.argument("kernel", kernel.name);
      trace.finish();
    }
    clocks += array.now;
  }

  bool report() const {
    sim::ReportWriter out(machine->name, kMemories, machine->clockHz, runs);
    for (bool last : {false, true}) {
      out.runs(last ? "last" : "first");
      for (const Figures &run : last ? lastRun : firstRun)
        write(out, *machine, run);
    }
    return out.save(reportFile);
  }

  std::string reportFile, traceFile;
  uint64_t seed = 0, runs = 0, clocks = 0;
  const hw::Machine *machine = nullptr; ///< of the image that ran last
  std::vector<Figures> firstRun, lastRun;
  sim::Trace trace; ///< of the last run
};

Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings) {
  return std::unique_ptr<Device>(std::make_unique<AieDevice>(options, settings));
}

/// A kernel's arguments are declared in the code, and every access is checked.
Status checkCode(std::span<const std::byte> bytes, int32_t &contracts) {
  contracts = 1;
  auto loaded = load(bytes);
  return loaded ? Status() : Status(loaded.takeError());
}

} // namespace
} // namespace dmxrt::aie

const dmxrt::DeviceKind &dmxrt::aieDevice() {
  static constexpr DeviceKind kind{"aie", /*runsOnHost=*/false, aie::kSettings, aie::create, aie::checkCode, aie::load};
  return kind;
}
