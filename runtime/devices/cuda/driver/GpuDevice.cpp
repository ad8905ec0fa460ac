//===- GpuDevice.cpp - runs kernels on a GPU ----------------------------------===//
//
// What is planned, and its room on the GPU. GpuDeviceRun.cpp has what runs do.
//
//===----------------------------------------------------------------------===//

#include "GpuDevice.h"

#include <algorithm>

namespace dmxrt {
const DeviceKind &cudaDevice();
} // namespace dmxrt

namespace dmxrt::cuda {
namespace {

constexpr uint64_t kAlign = 64;

/// Bytes from a thread's scratch to the next one's.
uint64_t shareOf(const DeviceTask &task) { return (task.scratch + kAlign - 1) / kAlign * kAlign; }

} // namespace

GpuDevice::GpuDevice(const DeviceOptions &options, std::shared_ptr<Gpu> gpu, bool blocking)
    : HostMemoryDevice(cudaDevice(), options.allocator), gpu(std::move(gpu)), blocking(blocking) {
  called = cat(this->gpu->name(), ", driver of CUDA ", Driver::versionText(this->gpu->driver().version()));
}

Status GpuDevice::open() {
  Gpu::Current context(*gpu);
  DriverCode code = context.code ? context.code : gpu->api().streamCreate(&stream, driver::kNonBlocking);
  return code ? Status(gpu->failure(code, "make a stream on it")) : Status();
}

Result<std::unique_ptr<Device>> GpuDevice::create(const DeviceOptions &options, std::shared_ptr<Gpu> gpu,
                                                  bool blocking) {
  std::unique_ptr<GpuDevice> device(new GpuDevice(options, std::move(gpu), blocking));
  if (Status status = device->open(); !status)
    return status.takeError();
  return std::unique_ptr<Device>(std::move(device));
}

GpuDevice::~GpuDevice() {
  Gpu::Current context(*gpu);
  for (EventHandle event : events)
    (void)gpu->api().eventDestroy(event);
  if (stream)
    (void)gpu->api().streamDestroy(stream);
}

Status GpuDevice::compile(const CudaImage &image, std::shared_ptr<const GpuCode> &code) {
  if (code)
    return {};
  auto made = GpuCode::of(image, gpu);
  if (!made)
    return made.takeError();
  code = std::move(*made);
  return {};
}

Result<std::shared_ptr<const CodeImage>> GpuDevice::loadCode(std::span<const std::byte> bytes) {
  auto image = CudaImage::load(bytes);
  if (!image)
    return image;
  const auto &own = static_cast<const CudaImage &>(**image);
  if (Status status = compile(own, codes[&own]); !status) {
    codes.erase(&own);
    return status.takeError();
  }
  return image;
}

/// A state's twin holds its values; the host's memory is not looked at.
void GpuDevice::clear(void *memory, uint64_t) {
  for (auto &[block, twin] : twins)
    if (twin.host == memory)
      twin.isZero = true;
}

uint64_t GpuDevice::addressOf(const DeviceTask &task, size_t buffer) const {
  auto twin = twins.find(task.homes[buffer].block);
  return twin == twins.end() || !twin->second.memory ? 0 : twin->second.memory->address + task.homes[buffer].offset;
}

/// Whether what is asked for fits in what is free, with what is given back for it.
Status GpuDevice::checkRoom(const Needs &needs) const {
  uint64_t constants = 0, tensors = 0, fresh = 0, back = 0;
  auto count = [&](uint64_t bytes, const std::shared_ptr<GpuMemory> &have) {
    if (have && have->bytes >= bytes)
      return;
    fresh += bytes;
    back += have ? have->bytes : 0;
  };
  for (const auto &[block, need] : needs.blocks) {
    bool isConstant = need.kind == BufferHome::Constant;
    (isConstant ? constants : tensors) += need.bytes;
    auto twin = twins.find(block);
    if (!isConstant)
      count(need.bytes, twin == twins.end() ? nullptr : twin->second.memory);
    else if (need.bytes && !gpu->hasConstant(need.host, need.bytes))
      fresh += need.bytes;
  }
  count(needs.scratch, scratch);
  if (fresh == 0)
    return {};
  auto memory = gpu->memory();
  if (!memory)
    return memory.takeError();
  auto [free, total] = *memory;
  if (fresh <= free + back)
    return {};
  return fail(DMX_STATUS_OUT_OF_MEMORY, "the model needs ", constants + tensors + needs.scratch, " bytes on GPU '",
              gpu->name(), "' (", constants, " of constants, ", tensors, " of tensors, ", needs.scratch,
              " of scratch), which has ", free, " free of ", total,
              "; end what else uses the GPU, run smaller shapes, or compile the model for cpu");
}

Status GpuDevice::growTwin(const void *block, const BlockNeed &need) {
  Twin &twin = twins[block];
  if (need.bytes == 0 || (twin.memory && twin.memory->bytes >= need.bytes))
    return {};
  twin.memory = nullptr;
  auto made = need.kind == BufferHome::Constant ? gpu->constant(need.host, need.bytes) : gpu->allocate(need.bytes);
  if (!made)
    return made.takeError();
  twin.memory = std::move(*made);
  twin.host = need.kind == BufferHome::State ? need.host : nullptr;
  return {};
}

Status GpuDevice::makeRoom(const Needs &needs) {
  if (Status status = checkRoom(needs); !status)
    return status;
  for (const auto &[block, need] : needs.blocks)
    if (Status status = growTwin(block, need); !status)
      return status;
  auto grow = [&](std::shared_ptr<GpuMemory> &memory, uint64_t bytes) -> Status {
    if (bytes == 0 || (memory && memory->bytes >= bytes))
      return {};
    memory = nullptr;
    auto made = gpu->allocate(bytes);
    if (!made)
      return made.takeError();
    memory = std::move(*made);
    return {};
  };
  if (Status status = grow(scratch, needs.scratch); !status)
    return status;
  if (Status status = grow(report, 8 * needs.reportWords); !status)
    return status;
  reportWords.resize(std::max<size_t>(reportWords.size(), needs.reportWords));
  return {};
}

/// A step but for its words.
Result<GpuDevice::Step> GpuDevice::makeStep(const DeviceTask &task) {
  Step step;
  if (!task.kernel) {
    step.bytes = static_cast<uint64_t>(task.work);
    const BufferHome &from = task.homes[0], &to = task.homes[1];
    uint64_t a = from.offset + task.srcOffset, b = to.offset + task.dstOffset;
    step.overlaps = from.block == to.block && a < b + step.bytes && b < a + step.bytes;
    return step;
  }
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  if (Status status = kernel.image->checkTask(task); !status)
    return status.takeError();
  std::shared_ptr<const GpuCode> &code = codes[kernel.image];
  if (Status status = compile(*kernel.image, code); !status)
    return status.takeError();
  auto blocks = kernel.image->blocksOf(task);
  if (!blocks)
    return blocks.takeError();
  step.function = code->function(kernel);
  step.blocks = *blocks;
  step.threads = kernel.block;
  step.shared = kernel.shared;
  step.share = shareOf(task);
  step.returns = task.results != nullptr;
  uint64_t threads = uint64_t(step.blocks) * step.threads;
  if (step.share && threads > (uint64_t(1) << 40) / step.share)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "kernel '", kernel.name, "' has ", task.scratch,
                " bytes of scratch for each of ", threads, " threads");
  return step;
}

Status GpuDevice::makePart(std::span<const DeviceTask> tasks, Segment segment, Part &part, Needs &needs) {
  part.plan = planSegment(tasks, segment, needs.blocks);
  for (uint32_t i = segment.begin; i < segment.end; ++i) {
    auto step = makeStep(tasks[i]);
    if (!step)
      return step.takeError();
    step->task = i;
    step->firstResult = part.plan.firstResult[i - segment.begin];
    needs.scratch = std::max(
        {needs.scratch, uint64_t(step->blocks) * step->threads * step->share, step->overlaps ? step->bytes : 0});
    part.steps.push_back(std::move(*step));
  }
  needs.reportWords = std::max<uint64_t>(needs.reportWords, part.plan.results + (part.steps.size() + 1) / 2);
  return {};
}

/// Buffers do not move any more.
Status GpuDevice::fillWords(const DeviceTask &task, Step &step) const {
  for (size_t i = 0; i < task.homes.size(); ++i)
    step.words.push_back(addressOf(task, i));
  if (task.kernel) {
    auto sizes = static_cast<const KernelLaunch *>(task.kernel)->image->sizesOf(task);
    if (!sizes)
      return sizes.takeError();
    step.words.insert(step.words.end(), sizes->begin(), sizes->end());
  } else {
    step.words[0] += task.srcOffset;
    step.words[1] += task.dstOffset;
  }
  return {};
}

/// Tensor maps say where tensors are on the GPU.
Status GpuDevice::fillMaps(const DeviceTask &task, Step &step) const {
  if (!step.function || !step.blocks)
    return {};
  const auto &kernel = *static_cast<const KernelLaunch *>(task.kernel);
  Gpu::Current context(*gpu);
  for (size_t i = 0; i < kernel.maps.size(); ++i) {
    auto map = kernel.image->mapOf(task, i);
    if (!map)
      return map.takeError();
    map->base += addressOf(task, kernel.maps[i].buffer);
    if (std::string problem = problemOf(*map); !problem.empty())
      return badBundle("kernel '", kernel.name, "', map ", i, " of its launch: ", problem);
    EncodedMap &encoded = step.maps.emplace_back();
    if (DriverCode code = context.code ? context.code : encodeMap(gpu->api(), *map, encoded))
      return gpu->failure(code, cat("make tensor map ", i, " of kernel '", kernel.name, "'"));
  }
  return {};
}

Status GpuDevice::prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) {
  Program &program = programs[selected];
  program.tasks = tasks;
  program.parts.clear();
  Needs needs;
  for (Segment segment : segments)
    if (Status status = makePart(tasks, segment, program.parts.emplace_back(), needs); !status)
      return status;
  if (Status status = makeRoom(needs); !status)
    return status;
  size_t longest = slices.capacity(), most = 0;
  for (Part &part : program.parts) {
    for (Step &step : part.steps) {
      Status status = fillWords(tasks[step.task], step);
      if (status)
        status = fillMaps(tasks[step.task], step);
      if (!status)
        return status;
      most = std::max(most, step.words.size() + step.maps.size());
    }
    longest = std::max(longest, part.steps.size());
  }
  slices.reserve(longest);
  parameters.reserve(most + TailParameters);
  return {};
}

} // namespace dmxrt::cuda
