//===- CudaRulesTest.cpp - the driver of tests has NVIDIA's rules -------------===//
//
// Each rule is broken once, and the driver of tests names it. What the runtime does breaks none: CudaDriverTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "CudaBundle.h"
#include "runtime/devices/cuda/driver/Driver.h"

#include <gtest/gtest.h>

#include <functional>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

/// A text of one kernel `k` that has nothing to do.
std::string textOf(const std::string &parameters, const std::string &traits, const std::string &body = "",
                   const std::string &version = "8.0", const std::string &target = "sm_90a") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n.visible .entry k(" + parameters + ")\n" +
         traits + "\n{\n\t.reg .b64 %d<4>;\n\t.reg .b32 %r<4>;\n" + body + "\n\tret;\n}\n";
}
std::string words(int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += (i ? ", .param .u64 p" : ".param .u64 p") + std::to_string(i);
  return out;
}

class CudaRules : public testing::Test {
protected:
  FakeCuda &fake = fakeCuda();
  const DriverApi *api = nullptr;
  ContextHandle context = nullptr;

  void SetUp() override {
    auto driver = Driver::open(DMX_TEST_FAKE_CUDA);
    ASSERT_TRUE(driver);
    api = &(*driver)->api;
    ASSERT_EQ(api->primaryContextRetain(&context, 10), 0);
    ASSERT_EQ(api->contextPush(context), 0);
  }
  void TearDown() override {
    ContextHandle before;
    EXPECT_EQ(api->contextPop(&before), 0);
    EXPECT_EQ(api->primaryContextRelease(10), 0);
    EXPECT_EQ(fake.breaches, std::vector<std::string>());
    fake.breaches.clear();
  }

  /// That a call gives a code and names what it breaks, once.
  void expectBreach(int code, const std::string &text, int got) {
    EXPECT_EQ(got, code) << text;
    ASSERT_EQ(fake.breaches.size(), 1u) << text;
    EXPECT_NE(fake.breaches[0].find(text), std::string::npos) << fake.breaches[0] << "\nis not " << text;
    fake.breaches.clear();
  }
  DriverCode load(ModuleHandle &module, const std::string &text) {
    return api->moduleLoad(&module, text.c_str(), 0, nullptr, nullptr);
  }
  /// What is wrong with a text.
  void expectText(const std::string &words, const std::string &text) {
    ModuleHandle module = nullptr;
    expectBreach(218, "cuModuleLoadDataEx: " + words, load(module, text));
  }
  void expectGoodText(const std::string &text) {
    ModuleHandle module = nullptr;
    ASSERT_EQ(load(module, text), 0);
    EXPECT_EQ(api->moduleUnload(module), 0);
  }
};

TEST_F(CudaRules, EveryCallNeedsAContext) {
  GpuAddress memory = 0;
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  StreamHandle stream = nullptr;
  EventHandle event = nullptr;
  ASSERT_EQ(api->memoryAllocate(&memory, 256), 0);
  ASSERT_EQ(load(module, textOf("", ".reqntid 32")), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  ASSERT_EQ(api->streamCreate(&stream, 1), 0);
  ASSERT_EQ(api->eventCreate(&event, 0), 0);
  ContextHandle before;
  ASSERT_EQ(api->contextPop(&before), 0);
  alignas(64) char map[128], bytes[16] = {};
  const uint64_t sizes[] = {4}, strides[] = {0};
  const uint32_t box[] = {4}, steps[] = {1};
  size_t free, total;
  float time;
  FunctionHandle found;
  StreamHandle made;
  const std::pair<const char *, std::function<int()>> calls[] = {
      {"cuModuleLoadDataEx", [&] { return load(made, textOf("", "")); }},
      {"cuModuleGetFunction", [&] { return api->moduleGetFunction(&found, module, "k"); }},
      {"cuFuncSetAttribute", [&] { return api->functionSetAttribute(function, 8, 65536); }},
      {"cuTensorMapEncodeTiled",
       [&] {
         return api->tensorMapEncode(map, 7, 1, reinterpret_cast<void *>(memory), sizes, strides, box, steps, 0, 0, 0,
                                     0);
       }},
      {"cuMemGetInfo_v2", [&] { return api->memoryInfo(&free, &total); }},
      {"cuMemAlloc_v2", [&] { return api->memoryAllocate(&memory, 256); }},
      {"cuMemcpyHtoDAsync_v2", [&] { return api->copyToGpu(memory, bytes, 16, stream); }},
      {"cuMemcpyDtoHAsync_v2", [&] { return api->copyToHost(bytes, memory, 16, stream); }},
      {"cuMemcpyDtoDAsync_v2", [&] { return api->copyOnGpu(memory + 16, memory, 16, stream); }},
      {"cuMemsetD8Async", [&] { return api->fill(memory, 0, 16, stream); }},
      {"cuStreamCreate", [&] { return api->streamCreate(&made, 1); }},
      {"cuStreamSynchronize", [&] { return api->streamSynchronize(stream); }},
      {"cuLaunchKernel", [&] { return api->launch(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr); }},
      {"cuEventCreate", [&] { return api->eventCreate(&made, 0); }},
      {"cuEventRecord", [&] { return api->eventRecord(event, stream); }},
      {"cuEventElapsedTime", [&] { return api->eventElapsed(&time, event, event); }},
      {"cuEventDestroy_v2", [&] { return api->eventDestroy(event); }},
      {"cuStreamDestroy_v2", [&] { return api->streamDestroy(stream); }},
      {"cuModuleUnload", [&] { return api->moduleUnload(module); }},
      {"cuMemFree_v2", [&] { return api->memoryFree(memory); }},
      {"cuCtxPopCurrent_v2", [&] { return api->contextPop(&before); }}};
  for (const auto &[name, call] : calls)
    expectBreach(201, std::string(name) + ": no context is current", call());
  ASSERT_EQ(api->contextPush(context), 0);
  EXPECT_EQ(api->eventDestroy(event), 0);
  EXPECT_EQ(api->streamDestroy(stream), 0);
  EXPECT_EQ(api->moduleUnload(module), 0);
  EXPECT_EQ(api->memoryFree(memory), 0);
}

TEST_F(CudaRules, BytesOfParameters) {
  expectGoodText(textOf(words(544), ".reqntid 32"));
  expectText("kernel 'k': its parameters have 4360 bytes, and PTX 8.0 has at most 4352",
             textOf(words(545), ".reqntid 32"));
  fake.version = 12010;
  expectGoodText(textOf(words(545), ".reqntid 32", "", "8.1"));
  expectGoodText(textOf(words(4095), ".reqntid 32", "", "8.1"));
  expectText("kernel 'k': its parameters have 32768 bytes, and PTX 8.1 has at most 32764",
             textOf(words(4096), ".reqntid 32", "", "8.1"));
  // A map begins at a multiple of 64.
  expectText("kernel 'k': its parameters have 4416 bytes",
             textOf(words(529) + ", .param .align 64 .b8 m[128]", ".reqntid 32"));
}

TEST_F(CudaRules, VersionsAndTargets) {
  expectText("a driver of CUDA 12.4 knows no PTX 8.5", textOf("", "", "", "8.5"));
  fake.version = 12050;
  expectGoodText(textOf("", "", "", "8.5"));
  expectText("target 'sm_100a' is not for compute capability 9.0", textOf("", "", "", "8.0", "sm_100a"));
}

TEST_F(CudaRules, RegistersOfABlock) {
  expectText("kernel 'k': .reqntid and .maxntid exclude each other", textOf("", ".reqntid 128\n.maxntid 128"));
  expectText("kernel 'k', line 9: setmaxnreg does nothing",
             textOf("", ".reqntid 128", "\tsetmaxnreg.inc.sync.aligned.u32 240;"));
  expectGoodText(textOf("", ".reqntid 128\n.maxnreg 168", "\tsetmaxnreg.inc.sync.aligned.u32 168;"));
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  ASSERT_EQ(load(module, textOf("", ".maxntid 1024\n.maxnreg 128")), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  EXPECT_EQ(api->launch(function, 1, 1, 1, 512, 1, 1, 0, nullptr, nullptr, nullptr), 0);
  expectBreach(700, "cuLaunchKernel: the kernel has no status word on the GPU", api->streamSynchronize(nullptr));
  expectBreach(701, "cuLaunchKernel: .maxnreg 128 for 544 threads is 69632 registers, and a multiprocessor has 65536",
               api->launch(function, 1, 1, 1, 544, 1, 1, 0, nullptr, nullptr, nullptr));
  expectBreach(1, "cuLaunchKernel: blocks of 1056 threads",
               api->launch(function, 1, 1, 1, 1056, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(api->moduleUnload(module), 0);
  ASSERT_EQ(load(module, textOf("", ".maxntid 64")), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  expectBreach(1, "cuLaunchKernel: blocks of 128 threads, and the kernel has .reqntid 0 and .maxntid 64",
               api->launch(function, 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(api->moduleUnload(module), 0);
}

TEST_F(CudaRules, SharedMemoryIsAskedFor) {
  const std::string own = "\t.shared .align 16 .b8 own[1024];\n\tmov.b64 %d0, own;";
  expectText("kernel 'k': its variables have 49168 bytes of shared memory, and more than 49152 only a launch gives",
             textOf("", ".reqntid 32", "\t.shared .align 16 .b8 own[49168];\n\tmov.b64 %d0, own;"));
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  ASSERT_EQ(load(module, textOf("", ".reqntid 32", own)), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  auto launch = [&](unsigned shared) {
    return api->launch(function, 1, 1, 1, 32, 1, 1, shared, nullptr, nullptr, nullptr);
  };
  expectBreach(1, "cuLaunchKernel: 49168 bytes of shared memory, and cuFuncSetAttribute allows 49152", launch(49168));
  expectBreach(1, "cuFuncSetAttribute: a launch cannot give 232448 bytes of shared memory beside 1024 of variables",
               api->functionSetAttribute(function, 8, 232448));
  EXPECT_EQ(api->functionSetAttribute(function, 8, 231424), 0);
  expectBreach(1, "cuLaunchKernel: 231440 bytes of shared memory", launch(231440));
  expectBreach(1, "cuFuncSetAttribute: a launch cannot give -1 bytes", api->functionSetAttribute(function, 8, -1));
  EXPECT_EQ(api->moduleUnload(module), 0);
}

TEST_F(CudaRules, GridsAndParameters) {
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  ASSERT_EQ(load(module, textOf(".param .align 64 .b8 m[128]", ".reqntid 32")), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  alignas(64) char map[128] = {};
  void *parameters[] = {map}, *nothing[] = {nullptr};
  auto launch = [&](unsigned x, unsigned y, unsigned threads, void **given, void **extra = nullptr) {
    return api->launch(function, x, y, 1, threads, 1, 1, 0, nullptr, given, extra);
  };
  expectBreach(1, "cuLaunchKernel: a grid of 0 x 1 x 1 blocks", launch(0, 1, 32, parameters));
  expectBreach(1, "cuLaunchKernel: a grid of 2147483648 x 1 x 1 blocks", launch(1u << 31, 1, 32, parameters));
  expectBreach(1, "cuLaunchKernel: blocks of 64 threads, and the kernel has .reqntid 32", launch(1, 1, 64, parameters));
  expectBreach(1, "cuLaunchKernel: both parameters and extra", launch(1, 1, 32, parameters, parameters));
  for (void **given : {parameters, nothing}) { // told by the next wait
    EXPECT_EQ(launch(1, 1, 32, given), 0);
    expectBreach(1, "cuLaunchKernel: a parameter is missing, or a tensor map that nobody encoded",
                 api->streamSynchronize(nullptr));
  }
  EXPECT_EQ(api->moduleUnload(module), 0);
}

TEST_F(CudaRules, TensorMaps) {
  GpuAddress memory = 0;
  ASSERT_EQ(api->memoryAllocate(&memory, 1 << 20), 0);
  struct Map {
    int type = 9, interleave = 0, swizzle = 3, promotion = 3, fill = 0; // bf16
    uint32_t rank = 3;
    uint64_t base, sizes[6] = {64, 32, 4, 1, 1, 1}, strides[5] = {128, 4096, 16, 16, 16};
    uint32_t box[6] = {64, 32, 1, 1, 1, 1}, steps[6] = {1, 1, 1, 1, 1, 1};
    size_t shift = 0; // of where it goes
  };
  alignas(64) char room[256];
  auto encode = [&](const std::function<void(Map &)> &change) {
    Map map{.base = memory};
    change(map);
    return api->tensorMapEncode(room + map.shift, map.type, map.rank, reinterpret_cast<void *>(map.base), map.sizes,
                                map.strides, map.box, map.steps, map.interleave, map.swizzle, map.promotion, map.fill);
  };
  EXPECT_EQ(encode([](Map &) {}), 0);
  const std::pair<const char *, std::function<void(Map &)>> cases[] = {
      {"the map is to be at a multiple of 64", [](Map &m) { m.shift = 32; }},
      {"there is no type 13", [](Map &m) { m.type = 13; }},
      {"rank 0 is not 1 to 5", [](Map &m) { m.rank = 0; }},
      {"rank 6 is not 1 to 5", [](Map &m) { m.rank = 6; }},
      {"interleave 1 is none, or takes 3 axes", [](Map &m) { m.interleave = 1, m.rank = 2; }},
      {"the tensor's address is no multiple of 16", [](Map &m) { m.base += 8; }},
      {"the tensor's address is no multiple of 32", [](Map &m) { m.base += 16, m.interleave = 2, m.swizzle = 1; }},
      {"size 0 of axis 1 is not 1 to 2^32", [](Map &m) { m.sizes[1] = 0; }},
      {"size 4294967297 of axis 0 is not 1 to 2^32", [](Map &m) { m.sizes[0] = (uint64_t(1) << 32) + 1; }},
      {"a box of 0 elements along axis 2", [](Map &m) { m.box[2] = 0; }},
      {"a box of 257 elements along axis 1", [](Map &m) { m.box[1] = 257; }},
      {"an element stride of 9 along axis 1", [](Map &m) { m.steps[1] = 9; }},
      {"an element stride of 0 along axis 2", [](Map &m) { m.steps[2] = 0; }},
      {"stride 136 of axis 1 is no multiple of 16 below 2^40", [](Map &m) { m.strides[0] = 136; }},
      {"stride 1099511627776 of axis 2 is no multiple of 16 below 2^40",
       [](Map &m) { m.strides[1] = uint64_t(1) << 40; }},
      {"stride 144 of axis 1 is no multiple of 32 below 2^40",
       [](Map &m) { m.strides[0] = 144, m.interleave = 2, m.swizzle = 1; }},
      {"swizzle 4, promotion 3 or fill 0 is none", [](Map &m) { m.swizzle = 4; }},
      {"swizzle 3, promotion 4 or fill 0 is none", [](Map &m) { m.promotion = 4; }},
      {"interleaving by 32 bytes takes a swizzle of 32 bytes", [](Map &m) { m.interleave = 2; }},
      {"rows of a box of 120 bytes are no multiple of 16", [](Map &m) { m.box[0] = 60; }},
      {"rows of a box of 128 bytes are longer than a swizzle of 64", [](Map &m) { m.swizzle = 2; }},
      {"only numbers of floating point are filled with NaN", [](Map &m) { m.fill = 1, m.type = 1; }},
      {"its 1073747968 bytes are not all in one block", [](Map &m) { m.sizes[2] = 4, m.strides[1] = 357914624; }},
      {"its 18446744073709551615 bytes are not all in one block", // more than 2^64
       [](Map &m) {
         m.rank = 5, m.sizes[3] = m.sizes[4] = uint64_t(1) << 32,
         m.strides[2] = m.strides[3] = (uint64_t(1) << 40) - 16;
       }}};
  for (const auto &[words, change] : cases)
    expectBreach(1, std::string("cuTensorMapEncodeTiled: ") + words, encode(change));
  EXPECT_EQ(api->memoryFree(memory), 0);
}

TEST_F(CudaRules, MemoryOfEitherSide) {
  GpuAddress memory = 0;
  char bytes[64] = {};
  ASSERT_EQ(api->memoryAllocate(&memory, 64), 0);
  auto host = reinterpret_cast<GpuAddress>(bytes);
  auto *gpu = reinterpret_cast<char *>(memory);
  expectBreach(1, "cuMemAlloc_v2: 0 bytes", api->memoryAllocate(&host, 0));
  expectBreach(1, "cuMemcpyHtoDAsync_v2: 65 bytes are not from the host to one block of the GPU",
               api->copyToGpu(memory, bytes, 65, nullptr));
  expectBreach(1, "cuMemcpyHtoDAsync_v2: 16 bytes", api->copyToGpu(memory, gpu, 16, nullptr));
  expectBreach(1, "cuMemcpyDtoHAsync_v2: 16 bytes are not from one block of the GPU to the host",
               api->copyToHost(gpu, memory, 16, nullptr));
  expectBreach(1, "cuMemcpyDtoHAsync_v2: 64 bytes", api->copyToHost(bytes, memory + 1, 64, nullptr));
  expectBreach(1, "cuMemcpyDtoDAsync_v2: 16 bytes overlap, or are not of the GPU",
               api->copyOnGpu(memory + 8, memory, 16, nullptr));
  expectBreach(1, "cuMemsetD8Async: 65 bytes are not of one block of the GPU", api->fill(memory, 0, 65, nullptr));
  EXPECT_EQ(api->memoryFree(memory), 0);
}

TEST_F(CudaRules, NothingIsUsedBehindItsEnd) {
  GpuAddress memory = 0;
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  StreamHandle stream = nullptr;
  EventHandle event = nullptr, other = nullptr;
  float time = 0;
  ASSERT_EQ(api->memoryAllocate(&memory, 64), 0);
  EXPECT_EQ(api->memoryFree(memory), 0);
  expectBreach(1, "cuMemFree_v2: the address is none that was allocated, or was freed", api->memoryFree(memory));
  ASSERT_EQ(api->streamCreate(&stream, 1), 0);
  ASSERT_EQ(api->eventCreate(&event, 0), 0);
  ASSERT_EQ(api->eventCreate(&other, 0), 0);
  expectBreach(400, "cuEventElapsedTime: the event was not recorded", api->eventElapsed(&time, event, other));
  ASSERT_EQ(api->eventRecord(event, stream), 0);
  expectBreach(600, "cuEventElapsedTime: nobody waited for the event", api->eventElapsed(&time, event, event));
  EXPECT_EQ(api->eventDestroy(other), 0);
  EXPECT_EQ(api->eventDestroy(event), 0);
  expectBreach(400, "cuEventDestroy_v2: the event is none, or was destroyed", api->eventDestroy(event));
  EXPECT_EQ(api->streamDestroy(stream), 0);
  expectBreach(400, "cuStreamSynchronize: the stream is none, or was destroyed", api->streamSynchronize(stream));
  expectBreach(400, "cuStreamDestroy_v2: the stream is none, or was destroyed", api->streamDestroy(stream));
  ASSERT_EQ(load(module, textOf("", ".reqntid 32")), 0);
  ASSERT_EQ(api->moduleGetFunction(&function, module, "k"), 0);
  EXPECT_EQ(api->moduleUnload(module), 0);
  expectBreach(400, "cuLaunchKernel: the function's module is none, or was destroyed",
               api->launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  expectBreach(400, "cuFuncSetAttribute: the function's module is none", api->functionSetAttribute(function, 8, 16));
  expectBreach(400, "cuModuleUnload: the module is none, or was destroyed", api->moduleUnload(module));
}

TEST_F(CudaRules, TheContextEndsLast) {
  ContextHandle before;
  GpuAddress memory = 0;
  ASSERT_EQ(api->memoryAllocate(&memory, 64), 0);
  ASSERT_EQ(api->contextPop(&before), 0);
  expectBreach(201, "cuDevicePrimaryCtxRelease_v2: the context still has 1 blocks of memory, 0 modules",
               api->primaryContextRelease(10));
  ASSERT_EQ(api->contextPush(context), 0);
  EXPECT_EQ(api->memoryFree(memory), 0);
  expectBreach(201, "cuDevicePrimaryCtxRelease_v2: the context is current", api->primaryContextRelease(10));
  ASSERT_EQ(api->contextPop(&before), 0);
  EXPECT_EQ(api->primaryContextRelease(10), 0);
  expectBreach(201, "cuDevicePrimaryCtxRelease_v2: the context is not retained", api->primaryContextRelease(10));
  expectBreach(201, "cuCtxPushCurrent_v2: the context is none, or was released", api->contextPush(context));
  ASSERT_EQ(api->primaryContextRetain(&context, 10), 0);
  ASSERT_EQ(api->contextPush(context), 0);
}

} // namespace
