//===- KernelHarness.cpp - compile, link, load and call kernels ----------===//

#include "KernelHarness.h"

#include "targets/common/code/KernelDialects.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;

LoadedKernels::LoadedKernels(const std::vector<char> &so) {
  int fd = memfd_create("kernels", 0);
  if (fd < 0 || write(fd, so.data(), so.size()) != static_cast<ssize_t>(so.size())) {
    message = "memfd: " + std::string(strerror(errno));
    return;
  }
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    message = dlerror();
  else
    query = reinterpret_cast<dmx_query_kernels_fn>(dlsym(handle, DMX_KERNEL_QUERY_SYMBOL));
  // The descriptor stays open: its number is the library's name to the loader,
  // and a second library under the same number would be taken for the first
  // one.
  static_cast<void>(fd);
}

LoadedKernels::~LoadedKernels() {
  if (handle)
    dlclose(handle);
}
LoadedKernels::LoadedKernels(LoadedKernels &&other) noexcept { *this = std::move(other); }
LoadedKernels &LoadedKernels::operator=(LoadedKernels &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(query, other.query);
  std::swap(message, other.message);
  return *this;
}

const dmx_kernel_table *LoadedKernels::table(uint32_t version) const { return query ? query(version) : nullptr; }

dmx_kernel_fn LoadedKernels::find(const std::string &name) const {
  const dmx_kernel_table *kernels = table();
  for (uint32_t i = 0; kernels && i < kernels->kernel_count; ++i)
    if (name == kernels->kernels[i].name)
      return kernels->kernels[i].fn;
  return nullptr;
}

int32_t TestKernel::operator()(const std::vector<Operand> &operands, int64_t begin, int64_t end, int64_t scratchBytes,
                               std::vector<int64_t> dims, uint32_t results) const {
  KernelTask made(fn, operands, results, scratchBytes, std::move(dims));
  int32_t code = 0;
  for (dmxrt::GuardSide side : {dmxrt::GuardSide::Start, dmxrt::GuardSide::End}) {
    dmxrt::GuardedTask guarded(made.task, side, 1);
    dmxrt::GuardedTask::Thread thread = guarded.makeThread();
    code = guarded.call(thread, begin, end);
    if (code == dmxrt::kDeviceFault || guarded.check(thread) != 0)
      ADD_FAILURE() << guarded.problem();
    if (side == dmxrt::GuardSide::End)
      guarded.copyOut();
  }
  return code;
}

TestKernel dmxc::cpu::test::makeKernel(const std::string &name, const IsaLevel &isa, unsigned numBuffers,
                                       unsigned numDims, const Emit &emit, llvm::ArrayRef<bool> noalias) {
  mlir::MLIRContext context;
  loadKernelDialects(context);
  auto loc = mlir::UnknownLoc::get(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  CpuBuilder b(*module, loc, name, numBuffers, numDims, isa, noalias);
  emit(b);
  b.finish();
  LoweringOptions options;
  if (const char *dir = getenv("DMXC_KERNEL_TEMPS"))
    options.saveTempsDir = dir;
  TestKernel kernel;
  auto object = compileKernel(*module, isa, options);
  if (!object) {
    kernel.error = object.error().message;
    return kernel;
  }
  auto so = linkKernels({&*object, 1}, isa);
  if (!so) {
    kernel.error = so.error().message;
    return kernel;
  }
  kernel.library = std::make_shared<LoadedKernels>(*so);
  kernel.error = kernel.library->error();
  kernel.fn = kernel.library->find(name);
  return kernel;
}

std::vector<IsaLevel> dmxc::cpu::test::runnableLevels() {
  std::vector<IsaLevel> levels;
  for (const char *name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    if (auto isa = IsaLevel::byName(name); isa && isa->runsHere())
      levels.push_back(*isa);
  return levels;
}
