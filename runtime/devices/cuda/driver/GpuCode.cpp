//===- GpuCode.cpp - an image's kernels, compiled for a GPU -------------------===//

#include "GpuCode.h"

#include <algorithm>
#include <cctype>

namespace dmxrt::cuda {
namespace {

/// Room for what the compiler says; it cuts its words where they do not fit.
constexpr size_t kLogBytes = 16384;

/// "ptxas application ptx input, line 12; error : ..." is about line 12; 0 where no line is named.
uint32_t lineIn(std::string_view log) {
  size_t at = log.find("line ");
  uint32_t line = 0;
  for (at = at == log.npos ? log.size() : at + 5; at < log.size() && std::isdigit(static_cast<unsigned char>(log[at]));
       ++at)
    line = std::min(line, 400000000u) * 10 + static_cast<uint32_t>(log[at] - '0');
  return line;
}

/// The log without what is empty at its end.
std::string_view wordsOf(const std::vector<char> &log) {
  std::string_view words(log.data());
  while (!words.empty() && std::isspace(static_cast<unsigned char>(words.back())))
    words.remove_suffix(1);
  return words;
}

/// " (kernel 'k', node 'n')" of the kernel that a log is about; "" where it names none.
std::string placeOf(std::string_view log, const CudaImage &image) {
  const KernelLaunch *kernel = image.kernelAt(lineIn(log));
  if (!kernel) // or by its name
    for (const auto &each : image.launches())
      if (log.find(cat("'", each->name, "'")) != log.npos)
        kernel = each.get();
  if (!kernel)
    return {};
  return cat(" (kernel '", kernel->name, kernel->nodes.empty() ? "" : "', node '",
             kernel->nodes.empty() ? "" : kernel->nodes.front(), "')");
}

} // namespace

Status GpuCode::compile(const CudaImage &image) {
  Gpu::Current current(*gpu);
  if (current.code)
    return gpu->failure(current.code, "use it");
  if (int version = gpu->driver().version(); version && version < driver::kOldestVersion)
    return fail(DMX_STATUS_UNSUPPORTED, "the driver of GPU '", gpu->name(), "' is one of CUDA ",
                Driver::versionText(version),
                ", too old for PTX 8.0; install one of CUDA 12.0 or later (525.60 or later), or run on the simulator "
                "(device option cuda.sim=on)");
  std::vector<char> errors(kLogBytes), notes(kLogBytes);
  int keys[] = {driver::ErrorLog, driver::ErrorLogBytes, driver::InfoLog, driver::InfoLogBytes};
  void *bytes = reinterpret_cast<void *>(kLogBytes - 1);
  void *values[] = {errors.data(), bytes, notes.data(), bytes};
  if (DriverCode code = gpu->api().moduleLoad(&module, image.text().c_str(), 4, keys, values)) {
    std::string_view log = wordsOf(errors);
    Error error = gpu->failure(code, "compile the kernels for it");
    if (!log.empty())
      error.message += cat("; its compiler says: ", log, placeOf(log, image));
    return error;
  }
  for (const auto &kernel : image.launches()) {
    FunctionHandle &function = functions.emplace_back();
    if (DriverCode code = gpu->api().moduleGetFunction(&function, module, kernel->name.c_str()))
      return gpu->failure(code, cat("find kernel '", kernel->name, "' in what was compiled"));
    if (kernel->shared == 0)
      continue;
    if (DriverCode code =
            gpu->api().functionSetAttribute(function, driver::kMostDynamicShared, static_cast<int>(kernel->shared)))
      return gpu->failure(code, cat("give kernel '", kernel->name, "' ", kernel->shared, " bytes of shared memory"));
  }
  return {};
}

GpuCode::~GpuCode() {
  Gpu::Current current(*gpu);
  if (module)
    (void)gpu->api().moduleUnload(module);
}

Result<std::shared_ptr<const GpuCode>> GpuCode::of(const CudaImage &image, const std::shared_ptr<Gpu> &gpu) {
  CudaImage::Made &made = image.made();
  std::lock_guard<std::mutex> lock(made.mutex);
  std::erase_if(made.onGpu, [](const auto &each) { return each.second.expired(); });
  for (const auto &[which, code] : made.onGpu)
    if (which == gpu.get())
      if (auto known = code.lock())
        return std::static_pointer_cast<const GpuCode>(known);
  auto fresh = std::make_shared<GpuCode>(gpu);
  if (Status status = fresh->compile(image); !status)
    return status.takeError();
  made.onGpu.emplace_back(gpu.get(), fresh);
  return std::shared_ptr<const GpuCode>(std::move(fresh));
}

} // namespace dmxrt::cuda
