//===- Gpu.cpp - a GPU that can run the kernels -------------------------------===//

#include "Gpu.h"

#include <array>

namespace dmxrt::cuda {
namespace {

Error cannotRun(const auto &...why) { return fail(DMX_STATUS_UNSUPPORTED, why...); }

/// What is known of a GPU before it is used.
struct Candidate {
  GpuHandle handle = 0;
  std::string name;
  int major = 0, minor = 0;
  bool fits() const { return major == 9 && minor == 0; }
  std::string text() const { return cat("'", name, "' has compute capability ", major, ".", minor); }
};

Result<Candidate> look(const Driver &driver, int number) {
  const DriverApi &api = driver.api;
  Candidate out;
  std::array<char, 256> name{};
  DriverCode code = api.deviceGet(&out.handle, number);
  if (!code)
    code = api.deviceGetName(name.data(), static_cast<int>(name.size()) - 1, out.handle);
  if (!code)
    code = api.deviceGetAttribute(&out.major, driver::ComputeMajor, out.handle);
  if (!code)
    code = api.deviceGetAttribute(&out.minor, driver::ComputeMinor, out.handle);
  if (code)
    return cannotRun("the driver does not say what GPU ", number, " is: ", driver.explain(code));
  out.name = name.data();
  return out;
}

Result<Candidate> choose(const Driver &driver, std::optional<uint64_t> number) {
  int count = 0;
  if (DriverCode code = driver.api.deviceGetCount(&count))
    return cannotRun("the driver does not say which GPUs there are: ", driver.explain(code));
  if (count <= 0)
    return cannotRun("the driver finds no GPU");
  if (number && *number >= static_cast<uint64_t>(count))
    return cannotRun("there is no GPU ", *number, ": the driver finds ", count, ", numbered from 0");
  std::string others;
  for (int i = number ? static_cast<int>(*number) : 0; i < (number ? static_cast<int>(*number) + 1 : count); ++i) {
    auto candidate = look(driver, i);
    if (!candidate || candidate->fits())
      return candidate;
    others += cat(others.empty() ? "" : ", ", candidate->text());
  }
  return cannotRun(others, "; the bundle's kernels are for 9.0 (sm_90a: H100, H200, GH200)");
}

} // namespace

Status Gpu::retain() {
  if (DriverCode code = api().primaryContextRetain(&context, handle))
    return failure(code, "use the GPU");
  return {};
}

Gpu::~Gpu() {
  if (context)
    (void)api().primaryContextRelease(handle);
}

Result<std::shared_ptr<Gpu>> Gpu::find(const Driver &driver, std::optional<uint64_t> number) {
  auto chosen = choose(driver, number);
  if (!chosen)
    return chosen.takeError();
  static std::mutex mutex;
  static std::map<std::pair<const Driver *, GpuHandle>, std::weak_ptr<Gpu>> used;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Gpu> &known = used[{&driver, chosen->handle}];
  if (std::shared_ptr<Gpu> gpu = known.lock())
    return gpu;
  std::shared_ptr<Gpu> gpu(new Gpu(driver, chosen->handle, chosen->name));
  if (Status status = gpu->retain(); !status)
    return status.takeError();
  known = gpu;
  return gpu;
}

Error Gpu::failure(DriverCode code, std::string_view what) const {
  return within(cat("GPU '", called, "'"), library.failure(code, what));
}

Result<std::shared_ptr<GpuMemory>> Gpu::allocate(uint64_t bytes) {
  Current current(*this);
  GpuAddress address = 0;
  DriverCode code = current.code ? current.code : api().memoryAllocate(&address, bytes);
  if (code)
    return failure(code, cat("allocate ", bytes, " bytes on it"));
  return std::make_shared<GpuMemory>(shared_from_this(), address, bytes);
}

Result<std::pair<uint64_t, uint64_t>> Gpu::memory() const {
  Current current(*this);
  size_t free = 0, total = 0;
  if (DriverCode code = current.code ? current.code : api().memoryInfo(&free, &total))
    return failure(code, "ask for its memory");
  return std::pair<uint64_t, uint64_t>(free, total);
}

bool Gpu::hasConstant(const void *host, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = constants.find({host, bytes});
  return found != constants.end() && !found->second.expired();
}

Result<std::shared_ptr<GpuMemory>> Gpu::constant(const void *host, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<GpuMemory> &known = constants[{host, bytes}];
  if (std::shared_ptr<GpuMemory> memory = known.lock())
    return memory;
  auto made = allocate(bytes);
  if (!made)
    return made.takeError();
  Current current(*this);
  DriverCode code = current.code ? current.code : api().copyToGpu((*made)->address, host, bytes, nullptr);
  if (!code)
    code = api().streamSynchronize(nullptr);
  if (code)
    return failure(code, cat("copy ", bytes, " bytes of constants to it"));
  known = *made;
  return *made;
}

} // namespace dmxrt::cuda
