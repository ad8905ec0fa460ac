//===- QueueDevice.cpp - a device that runs programs of queues ------------===//
#include "QueueDevice.h"

#include "Report.h"
#include "Trace.h"

#include <algorithm>

namespace dmxrt::sim {
namespace {

using queues::Line;
using queues::Word;

/// The lines of arguments, in order.
std::vector<const Line *> argumentsOf(const queues::Program &kernel) {
  std::vector<const Line *> arguments;
  for (const Line &line : kernel)
    if (line.word == Word::Argument)
      arguments.push_back(&line);
  return arguments;
}

/// That the task's buffers are those that its kernel was made for.
Status checkBuffers(const DeviceTask &task) {
  const auto &kernel = *static_cast<const queues::Program *>(task.kernel);
  std::vector<const Line *> arguments = argumentsOf(kernel);
  if (arguments.size() != task.bufferBytes.size())
    return badBundle("kernel '", kernel[0].name, "' has ", arguments.size(), " arguments, its task has ",
                     task.bufferBytes.size(), " buffers");
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i]->walk.hostBytes() > task.bufferBytes[i])
      return badBundle("kernel '", kernel[0].name, "': argument '", arguments[i]->name, "' has ",
                       arguments[i]->walk.hostBytes(), " bytes, its buffer ", task.bufferBytes[i]);
  return {};
}

class QueueImage final : public CodeImage {
public:
  std::vector<queues::Program> kernels;

  const void *findKernel(std::string_view name) const override {
    auto found = std::ranges::find_if(kernels, [&](const queues::Program &kernel) { return kernel[0].name == name; });
    return found == kernels.end() ? nullptr : &*found;
  }
  Status checkTask(const DeviceTask &task) const override { return checkBuffers(task); }
};

/// One dispatch.
struct KernelRun {
  std::string kernel;
  uint64_t hostIn = 0, hostOut = 0;
  QueueCost cost;
};

class QueueDevice final : public SimulatedDevice {
public:
  QueueDevice(const DeviceKind &kind, const queues::Machine &machine, const Engines &engines,
              const DeviceOptions &options, std::span<const Setting> settings)
      : SimulatedDevice(kind, options.allocator), machine(machine), engines(engines) {
    for (const Setting &setting : settings)
      (setting.key == "trace" ? traceFile : reportFile) = setting.text;
  }

  void startRun() override {
    lastRun.clear();
    trace = Trace();
    clocks = 0;
  }

  Status endRun() override {
    if (++runs == 1)
      firstRun = lastRun;
    if (!reportFile.empty() && !report())
      return fail(DMX_STATUS_IO, "cannot write the report '", reportFile, "' of the ", machine.name);
    if (!traceFile.empty() && !trace.save(traceFile))
      return fail(DMX_STATUS_IO, "cannot write the trace '", traceFile, "' of the ", machine.name);
    return {};
  }

private:
  Status prepareTask(const DeviceTask &task) override { return checkBuffers(task); }

  RunOutcome runTask(const DeviceTask &task) override {
    const auto &kernel = *static_cast<const queues::Program *>(task.kernel);
    QueueMachine run(machine, engines, kernel);
    run.keepsTrace = !traceFile.empty();
    KernelRun &figures = lastRun.emplace_back();
    figures.kernel = kernel[0].name;
    std::vector<const Line *> arguments = argumentsOf(kernel);
    for (size_t i = 0; i < arguments.size() && run.fault.empty(); ++i)
      if (!arguments[i]->n[0]) {
        run.write(*arguments[i], static_cast<const std::byte *>(task.buffers[i]));
        figures.hostIn += arguments[i]->walk.hostBytes();
      }
    run.run();
    for (size_t i = 0; i < arguments.size() && run.fault.empty(); ++i)
      if (arguments[i]->n[0]) {
        run.read(*arguments[i], static_cast<std::byte *>(task.buffers[i]));
        figures.hostOut += arguments[i]->walk.hostBytes();
      }
    if (!run.fault.empty())
      return {kDeviceFault, 0, run.fault};
    figures.cost = run.cost();
    record(run, kernel);
    return {};
  }

  /// Kernels stand one after the other in the trace.
  void record(const QueueMachine &run, const queues::Program &kernel) {
    double microseconds = 1e6 / machine.clockHz;
    trace.process(0, std::string(machine.name));
    for (const QueueMachine::Interval &interval : run.intervals) {
      trace.row(0, interval.queue, cat("queue ", interval.queue));
      trace.begin(0, interval.queue, static_cast<double>(clocks + interval.start) * microseconds,
                  static_cast<double>(interval.end - interval.start) * microseconds, interval.group);
      trace.argument("kernel", kernel[0].name);
      trace.argument("instruction", textOf(*interval.line, machine));
      trace.finish();
    }
    clocks += lastRun.back().cost.clocks;
  }

  bool report() const {
    std::vector<std::string_view> names;
    for (const queues::Memory &memory : machine.memories)
      names.push_back(memory.name);
    ReportWriter out(machine.name, names, machine.clockHz, runs);
    for (bool last : {false, true}) {
      out.runs(last ? "last" : "first");
      for (const KernelRun &run : last ? lastRun : firstRun) {
        out.kernel(run.kernel, run.hostIn, run.hostOut, 0);
        write(out, run.cost);
      }
    }
    return out.save(reportFile);
  }

  void write(ReportWriter &out, const QueueCost &cost) const {
    double clocks = static_cast<double>(std::max<uint64_t>(cost.clocks, 1));
    const Count units{"queues", cost.queues}, macs{machine.numbers, cost.macs};
    const Share busy[] = {{"busiest copies", static_cast<double>(cost.copying) / clocks},
                          {"busiest engine", static_cast<double>(cost.computing) / clocks}};
    out.program("main", {cost.clocks,
                         static_cast<double>(cost.clocks) / machine.clockHz,
                         {&units, 1},
                         cost.computing > cost.copying ? "compute" : "memory",
                         {},
                         {cost.readBytes, cost.writtenBytes, {}, {&macs, 1}, 0, cost.steps},
                         busy,
                         {},
                         machine.peakOps,
                         2 * static_cast<double>(cost.macs)});
    for (const queues::Memory &memory : machine.memories) {
      double rate = static_cast<double>(memory.bytesPerClock) * machine.clockHz;
      out.roof({memory.name, 1, rate, rate, rate, true});
    }
  }

  const queues::Machine &machine;
  const Engines &engines;
  std::string reportFile, traceFile;
  std::vector<KernelRun> firstRun, lastRun;
  Trace trace; ///< of the last run
  uint64_t runs = 0, clocks = 0;
};

} // namespace

std::unique_ptr<Device> createQueueDevice(const DeviceKind &kind, const queues::Machine &machine,
                                          const Engines &engines, const DeviceOptions &options,
                                          std::span<const Setting> settings) {
  return std::make_unique<QueueDevice>(kind, machine, engines, options, settings);
}

Result<std::shared_ptr<const CodeImage>> loadQueues(const queues::Machine &machine, std::span<const std::byte> bytes) {
  auto image = std::make_shared<QueueImage>();
  std::string error;
  image->kernels = read(bytes, machine, error);
  if (!error.empty())
    return badBundle("the code for the ", machine.name, " is not usable: ", error);
  return std::shared_ptr<const CodeImage>(std::move(image));
}

} // namespace dmxrt::sim
