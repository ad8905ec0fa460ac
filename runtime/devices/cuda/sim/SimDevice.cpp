//===- SimDevice.cpp - GPUs of NVIDIA, simulated ------------------------------===//

#include "SimDevice.h"
#include "SharedMemory.h"
#include "schemas/Size.h"
#include "schemas/cuda/Limits.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace dmxrt::cuda {

/// A description of a GPU, for the clock.
static Result<Machine> machineOf(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()), error;
  if (!in)
    return fail(DMX_STATUS_IO, "cannot read the machine '", file, "' of cuda.sim_machine");
  auto machine = dmx::cuda::parseMachine(text, error);
  if (!machine)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the machine '", file, "' of cuda.sim_machine: ", error);
  return std::move(*machine);
}

Result<std::unique_ptr<Device>> SimDevice::create(const DeviceOptions &options, std::span<const Setting> settings) {
  std::unique_ptr<SimDevice> device(new SimDevice(options));
  for (const Setting &setting : settings) {
    if (setting.key == "sim_seed")
      device->seed = setting.number;
    else if (setting.key == "sim_steps")
      device->mostSteps = setting.number;
    else if (setting.key == "sim_checks")
      device->checks = setting.number == 1;
    else if (setting.key == "sim_blocks")
      device->mostBlocks = static_cast<uint32_t>(setting.number);
    else if (setting.key == "sim_machine") {
      auto machine = machineOf(setting.text);
      if (!machine)
        return machine.takeError();
      device->described = std::move(*machine);
    } else if (setting.key == "report")
      device->reportFile = setting.text;
    else if (setting.key == "trace")
      device->traceFile = setting.text;
    else if (setting.key == "why")
      device->name = cat("simulator, because ", setting.text);
  }
  return std::unique_ptr<Device>(std::move(device));
}

SimDevice::SimDevice(const DeviceOptions &options) : SimulatedDevice(cudaSimDevice(), options.allocator) {}

namespace {

/// What an image's text is to the simulator.
struct SimCode {
  std::shared_ptr<const ProgramModule> module;
  std::vector<const Program *> programs; ///< by KernelLaunch::index
};

/// Of the warps that are simulated at a time, for their registers and local memory.
constexpr uint64_t kMostWarpBytes = uint64_t(1) << 30;

/// What of a kernel is more than a block, or this simulator, has; "" where nothing.
std::string problemOfRoom(const Program &program, const KernelLaunch &kernel) {
  dmx::Size shared = dmx::Size(program.sharedBegin - kSharedBegin) + kernel.shared;
  if (!shared.fits(dmx::cuda::kMostShared))
    return cat("smem-budget: kernel '", kernel.name, "' has ", shared.text(),
               " bytes of shared memory, and a block has ", dmx::cuda::kMostShared);
  uint32_t warps = program.talks ? (kernel.block + kLanes - 1) / kLanes : 1;
  dmx::Size bytes = (dmx::Size(program.slots()) * sizeof(Warp::Slot) + dmx::Size(program.localBytes) * kLanes) * warps;
  if (!bytes.fits(kMostWarpBytes))
    return cat("kernel '", kernel.name, "' has ", bytes.text(), " bytes of registers and local memory in ", warps,
               " warps, and this simulator holds ", kMostWarpBytes);
  return {};
}

Result<const SimCode *> programsOf(const CudaImage &image) {
  std::lock_guard<std::mutex> lock(image.made().mutex);
  auto &known = image.made().simulated;
  if (!known) {
    auto loaded = loadPtx(image.text());
    if (!loaded)
      return within("the kernels cannot be used", loaded.takeError());
    auto code = std::make_shared<SimCode>();
    code->module = std::move(*loaded);
    for (const auto &kernel : image.launches()) {
      const Program *program = &*std::find_if(code->module->kernels.begin(), code->module->kernels.end(),
                                              [&](const Program &each) { return each.name == kernel->name; });
      if (std::string problem = problemOfRoom(*program, *kernel); !problem.empty())
        return badBundle("the kernels cannot be used: ", problem);
      code->programs.push_back(program);
    }
    known = std::move(code);
  }
  return static_cast<const SimCode *>(known.get());
}

} // namespace

Result<std::shared_ptr<const CodeImage>> SimDevice::load(std::span<const std::byte> bytes) {
  auto image = CudaImage::load(bytes);
  if (!image)
    return image;
  if (auto made = programsOf(static_cast<const CudaImage &>(**image)); !made)
    return made.takeError();
  return image;
}

Status SimDevice::check(std::span<const std::byte> bytes, int32_t &contracts) {
  contracts = 1;
  auto loaded = load(bytes);
  return loaded ? Status() : Status(loaded.takeError());
}

static constexpr uint64_t kAlign = 64;

/// Bytes from a thread's scratch to the next one's.
static uint64_t shareOf(const DeviceTask &task) {
  return (task.scratch + kAlign - 1) / kAlign * kAlign; // a layout has fewer than 2^48 bytes
}

static const KernelLaunch &kernelOf(const DeviceTask &task) { return *static_cast<const KernelLaunch *>(task.kernel); }

Status SimDevice::prepareTask(const DeviceTask &task) {
  const KernelLaunch &kernel = kernelOf(task);
  if (Status status = kernel.image->checkTask(task); !status)
    return status;
  auto blocks = kernel.image->blocksOf(task);
  if (!blocks)
    return blocks.takeError();
  dmx::Size threads = dmx::Size(*blocks) * kernel.block, needed = threads * shareOf(task);
  if (!threads.fits(UINT32_MAX - 1))
    return fail(DMX_STATUS_UNSUPPORTED, "kernel '", kernel.name, "' has ", threads.text(),
                " threads, more than the simulator of GPUs tells apart");
  if (!needed.fits(uint64_t(1) << 40))
    return fail(DMX_STATUS_OUT_OF_MEMORY, "kernel '", kernel.name, "' has ", task.scratch,
                " bytes of scratch for each of ", threads.text(), " threads");
  if (needed.value() + kAlign > scratch.size())
    scratch.resize(needed.value() + kAlign);
  return {};
}

const std::byte *SimDevice::scratchBegin() const {
  auto at = reinterpret_cast<uintptr_t>(scratch.data());
  return scratch.data() + (kAlign - at % kAlign) % kAlign;
}

MemoryRegion &SimDevice::addRegion(MemoryRegion::Kind kind, const void *begin, uint64_t bytes) {
  MemoryRegion &region = memory.regions.emplace_back();
  region.kind = kind;
  region.begin = reinterpret_cast<uintptr_t>(begin);
  region.bytes = bytes;
  if (checks && region.isWritten()) {
    region.writers.assign(bytes, 0);
    region.readers.assign(bytes, 0);
  }
  return region;
}

/// Results first: an operand may lie in one, and then what it reads is what the launch writes.
void SimDevice::addRegions(const DeviceTask &task, const KernelLaunch &kernel, const ProgramModule &module) {
  memory.regions.clear();
  memory.races = checks;
  auto count = static_cast<uint32_t>(task.bufferBytes.size()), operands = count - task.written;
  auto overlaps = [&](uint32_t i, uint32_t j) {
    auto a = reinterpret_cast<uintptr_t>(task.buffers[i]), b = reinterpret_cast<uintptr_t>(task.buffers[j]);
    return a < b + task.bufferBytes[j] && b < a + task.bufferBytes[i];
  };
  for (uint32_t i = operands; i < count; ++i) {
    if (task.bufferBytes[i] == 0)
      continue;
    MemoryRegion &region = addRegion(MemoryRegion::Result, task.buffers[i], task.bufferBytes[i]);
    region.number = i - operands;
    region.filled = task.updates || !checks;
    for (uint32_t j = 0; j < operands; ++j)
      region.filled |= overlaps(i, j);
  }
  for (uint32_t i = 0; i < operands; ++i) {
    MemoryRegion &region = addRegion(MemoryRegion::Operand, task.buffers[i], task.bufferBytes[i]);
    region.number = i;
    for (uint32_t j = operands; j < count; ++j)
      region.alone &= !overlaps(i, j);
  }
  addRegion(MemoryRegion::StatusWord, &statusWord, sizeof statusWord);
  if (task.results)
    addRegion(MemoryRegion::Dims, task.results, kernel.results * sizeof(int64_t)).filled = !checks;
  if (task.scratch) {
    MemoryRegion &region = addRegion(MemoryRegion::Scratch, scratchBegin(), scratch.size() / kAlign * kAlign - kAlign);
    region.share = shareOf(task);
    region.used = task.scratch;
    region.filled = !checks;
  }
  for (const Table &table : module.tables)
    addRegion(MemoryRegion::Table, table.begin, table.bytes);
}

void SimDevice::startRun() {
  lastRun.clear();
  trace = sim::Trace();
  clocks = 0;
}

/// Kernels stand one after the other.
LaunchOutcome SimDevice::timed(Launch &launch, const DeviceTask &task) {
  const KernelLaunch &kernel = kernelOf(task);
  auto products = kernel.image->multiplyAddsOf(task);
  if (!products)
    return {products.takeError().message, kernel.line, 0};
  Recorder recorder(launch);
  launch.recorder = &recorder;
  LaunchOutcome outcome = runLaunch(launch);
  if (!outcome.fault.empty())
    return outcome;
  LaunchFigures figures = estimate(launch, recorder, gpu(), !traceFile.empty());
  figures.kernel = kernel.name;
  figures.modelMacs = *products;
  if (!traceFile.empty())
    write(trace, gpu(), figures, clocks);
  clocks += figures.clocks;
  figures.waits = {};
  lastRun.push_back(std::move(figures));
  return outcome;
}

bool SimDevice::report() const {
  sim::ReportWriter out("sm_90a", kClockMemories, gpu().clockHz, runs);
  for (bool last : {false, true}) {
    out.runs(last ? "last" : "first");
    for (const LaunchFigures &figures : last ? lastRun : firstRun)
      write(out, gpu(), figures);
  }
  return out.save(reportFile);
}

Status SimDevice::endRun() {
  if (++runs == 1)
    firstRun = lastRun;
  if (!reportFile.empty() && !report())
    return fail(DMX_STATUS_IO, "cannot write the report '", reportFile, "' of the GPU's simulator");
  if (!traceFile.empty() && !trace.save(traceFile))
    return fail(DMX_STATUS_IO, "cannot write the trace '", traceFile, "' of the GPU's simulator");
  return {};
}

RunOutcome SimDevice::runTask(const DeviceTask &task) {
  const KernelLaunch &kernel = kernelOf(task);
  auto blocks = kernel.image->blocksOf(task);
  if (!blocks)
    return {kDeviceFault, 0, blocks.takeError().message};
  if (*blocks == 0)
    return {};
  auto made = programsOf(*kernel.image);
  if (!made)
    return {kDeviceFault, 0, made.takeError().message};
  const SimCode &code = **made;
  statusWord = 0;
  addRegions(task, kernel, *code.module);
  Launch launch;
  launch.program = code.programs[kernel.index];
  launch.module = code.module.get();
  launch.blocks = *blocks;
  launch.threads = kernel.block;
  launch.seed = seed;
  launch.mostSteps = mostSteps;
  launch.memory = &memory;
  launch.checks = checks;
  launch.shared = kernel.shared;
  launch.byBlock = kernel.byBlock;
  auto address = [](const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); };
  for (size_t i = 0; i < task.bufferBytes.size(); ++i)
    launch.parameters.push_back(address(task.buffers[i]));
  auto sizes = kernel.image->sizesOf(task);
  if (!sizes)
    return {kDeviceFault, 0, sizes.takeError().message};
  launch.parameters.insert(launch.parameters.end(), sizes->begin(), sizes->end());
  launch.parameters.insert(launch.parameters.end(),
                           {address(scratchBegin()), shareOf(task), address(task.results), address(&statusWord)});
  for (size_t i = 0; i < kernel.maps.size(); ++i) {
    auto map = kernel.image->mapOf(task, i);
    if (!map)
      return {kDeviceFault, 0, map.takeError().message};
    // A caller's tensor may begin anywhere; a GPU reads its own copy, which begins at a multiple of 64.
    map->base += address(task.buffers[kernel.maps[i].buffer]);
    launch.parameters.push_back(kMapWindow + dmx::cuda::kMapBytes * i);
    launch.maps.push_back(*map);
  }
  launch.mostBlocks = mostBlocks;
  LaunchOutcome outcome = reportFile.empty() && traceFile.empty() ? runLaunch(launch) : timed(launch, task);
  if (!outcome.fault.empty())
    return {kDeviceFault, 0,
            code.module->withPlaces(cat("kernel '", kernel.name, "', line ", outcome.line, " of its PTX, thread ",
                                        outcome.thread, ": ", outcome.fault))};
  return {static_cast<int32_t>(statusWord), 0, {}};
}

} // namespace dmxrt::cuda

const dmxrt::DeviceKind &dmxrt::cudaSimDevice() {
  static constexpr DeviceKind kind{
      "cuda", /*runsOnHost=*/false, {}, cuda::SimDevice::create, cuda::SimDevice::check, cuda::SimDevice::load};
  return kind;
}
