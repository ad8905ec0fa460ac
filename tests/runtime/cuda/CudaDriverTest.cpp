//===- CudaDriverTest.cpp - the way to a GPU, on a driver that is not there ---===//
//
// FakeCuda.h says what it is: what is launched is computed by the simulator, and only where the GPU's memory is.
//
//===----------------------------------------------------------------------===//

#include "CudaBundle.h"
#include "runtime/devices/cuda/driver/Driver.h"

#include <gtest/gtest.h>

using namespace dmxtest;

namespace {

constexpr int64_t kCount = 100;

std::string bytesOf(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()), 4 * values.size()};
}

/// y = (x + c) + x, c a constant: a private tensor between two kernels.
ModelBuilder plainModel() {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {kCount}), y = builder.output("y", "f32", {kCount});
  int c = builder.constant(bytesOf(iota<float>(kCount, 1000)), "f32", {kCount});
  int sum = builder.arena(4 * kCount, "f32", {kCount});
  int first = builder.dispatch("plus", {x, c, sum}, 1, kCount, {}, {{"dims", {kCount}}});
  builder.dispatch("plus", {sum, x, y}, 1, kCount, {first}, {{"dims", {kCount}}});
  return builder;
}

/// Binds and runs a session of one input and one output of n elements.
struct Trial {
  std::vector<float> x = iota<float>(kCount), y = std::vector<float>(kCount, -1.0f);
  std::string error;
  dmx_status operator()(CudaSession &session) {
    auto n = static_cast<int64_t>(x.size());
    EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {n}, &session.error), DMX_OK) << session.error.message;
    EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {n}, &session.error), DMX_OK) << session.error.message;
    dmx_status status = session.run();
    error = session.error.message;
    return status;
  }
};

void expectNothingLeft() {
  const FakeCuda &fake = fakeCuda();
  EXPECT_EQ(fake.usedBytes, 0u);
  EXPECT_EQ(fake.blocks, 0);
  EXPECT_EQ(fake.contexts, 0);
  EXPECT_EQ(fake.modules, 0);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.events, 0);
  EXPECT_EQ(fake.retained, 0);
}

class CudaDriver : public testing::Test {
protected:
  FakeCuda &fake = fakeCuda();
  ~CudaDriver() override {
    expectNothingLeft();
    EXPECT_EQ(fake.breaches, std::vector<std::string>()); // of the driver's rules
    fake.breaches.clear();
  }

  /// What a session is refused with.
  std::string refusal(const std::vector<std::string> &options, dmx_status status = DMX_STATUS_UNSUPPORTED) {
    OpenBundle open(cudaBundle(plainModel()));
    EXPECT_EQ(open.status, DMX_OK) << open.error.message;
    CudaSession session(open.get(), options);
    EXPECT_EQ(session.status, status) << session.error.message;
    return session.error.message;
  }
  static bool has(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }
};

#define EXPECT_HAS(text, part) EXPECT_TRUE(has(text, part)) << text

TEST_F(CudaDriver, ConstantsOnceInputsAndOutputsEachRun) {
  OpenBundle open(cudaBundle(plainModel()));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CudaSession session(open.get()), other(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  EXPECT_EQ(session.machine(), "NVIDIA H100 of a test, driver of CUDA 12.4");
  for (int i = 0; i < 3; ++i) {
    Trial run;
    ASSERT_EQ(run(i == 1 ? other : session), DMX_OK) << run.error;
    for (int64_t k = 0; k < kCount; ++k)
      ASSERT_EQ(run.y[static_cast<size_t>(k)], static_cast<float>(3 * k + 1000)) << k;
  }
  EXPECT_EQ(fake.count("cuModuleLoadDataEx"), 1u); // shared by both sessions
  EXPECT_EQ(fake.count("cuMemcpyHtoDAsync_v2 400"), 1u + 3);
  EXPECT_EQ(fake.count("cuMemcpyDtoHAsync_v2 400"), 3u);
  EXPECT_EQ(fake.count("cuLaunchKernel plus 4 32"), 6u);
  EXPECT_EQ(fake.count("cuLaunchKernel"), 6u);
  // A steady run: what it sends, in this order, allocating nothing.
  Trial run;
  ASSERT_EQ(run(session), DMX_OK);
  fake.calls.clear();
  ASSERT_EQ(session.run(), DMX_OK);
  std::vector<std::string> calls;
  for (const std::string &call : fake.calls)
    if (!has(call, "Ctx"))
      calls.push_back(call);
  EXPECT_EQ(calls,
            (std::vector<std::string>{"cuMemcpyHtoDAsync_v2 8", "cuMemcpyHtoDAsync_v2 400", "cuLaunchKernel plus 4 32",
                                      "cuLaunchKernel plus 4 32", "cuMemcpyDtoHAsync_v2 400", "cuMemcpyDtoHAsync_v2 8",
                                      "cuStreamSynchronize"}));
}

// Host and GPU in turns: each sees what the other wrote, and what only one uses is not copied.
TEST_F(CudaDriver, TurnsWithTheHost) {
  const Json gpu = {{"queue", 1}, {"dims", {kCount}}};
  ModelBuilder builder;
  int x = builder.input("x", "f32", {kCount}), y = builder.output("y", "f32", {kCount});
  int a = builder.arena(4 * kCount, "f32", {kCount}), b = builder.arena(4 * kCount, "f32", {kCount});
  int c = builder.arena(4 * kCount, "f32", {kCount}), d = builder.arena(4 * kCount, "f32", {kCount});
  int t0 = builder.dispatch("scale", {x, a}, 1, kCount, {}, {{"dims", {2}}});   // host: a = 2 x
  int t1 = builder.dispatch("plus", {a, x, b}, 1, kCount, {t0}, gpu);           // gpu: b = 3 x, its own
  int t2 = builder.dispatch("plus", {b, b, c}, 1, kCount, {t1}, gpu);           // gpu: c = 6 x
  int t3 = builder.dispatch("scale", {c, d}, 1, kCount, {t2}, {{"dims", {3}}}); // host: d = 18 x
  builder.dispatch("plus", {d, b, y}, 1, kCount, {t3}, gpu);                    // gpu: y = 21 x
  OpenBundle open(cudaBundle(builder, /*mixed=*/true));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CudaSession session(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  for (int i = 0; i < 2; ++i) {
    Trial run;
    fake.calls.clear();
    ASSERT_EQ(run(session), DMX_OK) << run.error;
    for (int64_t k = 0; k < kCount; ++k)
      ASSERT_EQ(run.y[static_cast<size_t>(k)], static_cast<float>(21 * k)) << k;
    EXPECT_EQ(fake.count("cuMemcpyHtoDAsync_v2 400"), 3u); // a, x; d
    EXPECT_EQ(fake.count("cuMemcpyDtoHAsync_v2 400"), 2u); // c; y
  }
}

TEST_F(CudaDriver, StatesStayOnTheGpuUntilTheyAreReset) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {kCount}), y = builder.output("y", "f32", {kCount});
  int total = builder.state(4 * kCount, "f32", {kCount});
  builder.dispatch("collect", {x, total, y}, 2, kCount, {}, {{"dims", {kCount}}});
  OpenBundle open(cudaBundle(builder));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CudaSession session(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  for (int reset = 0; reset < 2; ++reset) {
    for (int i = 1; i <= 3; ++i) {
      Trial run;
      ASSERT_EQ(run(session), DMX_OK) << run.error;
      ASSERT_EQ(run.y[7], static_cast<float>(7 * i));
    }
    EXPECT_EQ(dmx_session_reset_state(session.get(), nullptr), DMX_OK);
  }
  EXPECT_EQ(fake.count("cuMemsetD8Async 400"), 2u);
}

// Shapes that only a run tells, and larger ones than before: twins grow.
TEST_F(CudaDriver, ReturnedDimsAndOpenSizes) {
  ModelBuilder builder;
  builder.dim("n", 1, 5000, 0, 0);
  builder.returnedDim("k", 0, 0, 0, "n");
  Json bytes = {"mul", "k", 4};
  int x = builder.input("x", "f32", {"n"});
  int y = builder.output("y", "f32", {"k"});
  int part = builder.alias(x, 0, bytes, "f32", {"k"});
  int room = builder.arenaOf({"add", bytes, 64}, "f32", {"k"});
  builder.dispatch("count", {x}, 0, 1, {}, {{"dims", {"n"}}, {"results", 1}});
  builder.dispatch("plus", {part, part, room}, 1, "k", {0}, {{"dims", {"k"}}});
  builder.copy(room, y, bytes, {1});
  OpenBundle open(cudaBundle(builder));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CudaSession session(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  for (int64_t n : {10, 3000, 5, 5000}) {
    std::vector<float> values = iota<float>(static_cast<size_t>(n), static_cast<float>(n) / 2);
    ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 0, values, {n}), DMX_OK);
    ASSERT_EQ(session.run(), DMX_OK) << session.error.message;
    std::vector<float> wanted;
    for (int64_t i = 0; i < n / 2; ++i)
      wanted.push_back(2 * values[static_cast<size_t>(i)]);
    EXPECT_EQ(takeOutput<float>(session.get(), 0), wanted) << n;
  }
}

TEST_F(CudaDriver, ScratchAndWhatAKernelReports) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {kCount}), y = builder.output("y", "f32", {kCount});
  int a = builder.arena(4 * kCount, "f32", {kCount});
  int first = builder.dispatch("shift", {x, a}, 1, kCount, {}, {{"dims", {kCount}}, {"scratch", 8}});
  builder.dispatch("strict", {a, y}, 1, kCount, {first}, {{"dims", {kCount}}});
  OpenBundle open(cudaBundle(builder));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CudaSession session(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  Trial run;
  ASSERT_EQ(run(session), DMX_OK) << run.error;
  EXPECT_EQ(run.y, run.x);
  run.x[60] = -1;
  EXPECT_EQ(run(session), DMX_STATUS_KERNEL);
  EXPECT_HAS(run.error,
             "task 'strict_1' (node 'node_strict') failed: an operand has a value its operation does not allow");
  run.x[60] = 1;
  EXPECT_EQ(run(session), DMX_OK) << run.error;
}

/// y = x, of rows of 128 f32, twice by tensor maps.
ModelBuilder tiledModel(int64_t rows) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {rows * 128}), y = builder.output("y", "f32", {rows * 128});
  int a = builder.arena(512 * rows, "f32", {rows * 128});
  int first = builder.dispatch("tiles", {x, a}, 1, rows, {}, {{"dims", {rows}}});
  builder.dispatch("tiles", {a, y}, 1, rows, {first}, {{"dims", {rows}}});
  return builder;
}

TEST_F(CudaDriver, SharedMemoryAndTensorMaps) {
  OpenBundle open(cudaBundle(tiledModel(5)));
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  for (const char *option : {"cuda.sim=off", "cuda.sim=on"}) {
    fake.calls.clear();
    CudaSession session(open.get(), {option});
    ASSERT_EQ(session.status, DMX_OK) << session.error.message;
    Trial run{iota<float>(640), std::vector<float>(640, -1.0f), {}};
    ASSERT_EQ(run(session), DMX_OK) << run.error;
    EXPECT_EQ(run.y, run.x);
    bool isGpu = option[9] == 'o' && option[10] == 'f';
    EXPECT_EQ(fake.count("cuFuncSetAttribute 8 65536"), isGpu ? 1u : 0u);
    EXPECT_EQ(fake.count("cuTensorMapEncodeTiled 7 2 0"), isGpu ? 4u : 0u); // f32, two axes, no swizzle
    fake.calls.clear();
    ASSERT_EQ(run(session), DMX_OK) << run.error;
    EXPECT_EQ(fake.count("cuTensorMapEncodeTiled"), 0u); // a steady run makes none
  }
}

TEST_F(CudaDriver, SharedMemoryAndTensorMapsThatAreRefused) {
  const TestBundle bundle = cudaBundle(tiledModel(3));
  const std::pair<const char *, std::string> calls[] = {
      {"cuFuncSetAttribute", "give kernel 'tiles' 65536 bytes of shared memory"},
      {"cuTensorMapEncodeTiled", "make tensor map 0 of kernel 'tiles'"}};
  for (const auto &[function, what] : calls) {
    fake.reset();
    fake.failures[function] = {0, 1};
    OpenBundle open(bundle);
    CudaSession session(open.get());
    std::string text = session.error.message;
    if (session.session) { // what depends on shapes is prepared by the first run
      Trial run{iota<float>(384), std::vector<float>(384), {}};
      EXPECT_NE(run(session), DMX_OK);
      text = run.error;
    }
    EXPECT_HAS(text, "GPU 'NVIDIA H100 of a test': cannot " + what);
    EXPECT_HAS(text, "(CUDA_ERROR_INVALID_VALUE, 1)");
  }
  fake.reset();
}

TEST_F(CudaDriver, TimesOfTasksAreTheGpus) {
  OpenBundle open(cudaBundle(plainModel()));
  CudaSession session(open.get());
  ASSERT_EQ(session.status, DMX_OK) << session.error.message;
  ASSERT_EQ(dmx_session_profile(session.get(), 64, nullptr), DMX_OK);
  Trial run;
  ASSERT_EQ(run(session), DMX_OK) << run.error;
  dmx_profile_event events[8];
  uint32_t count = 0;
  ASSERT_EQ(dmx_session_take_events(session.get(), events, 8, &count, nullptr, nullptr), DMX_OK);
  ASSERT_EQ(count, 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(events[i].task, i);
    EXPECT_EQ(events[i].end_ns - events[i].start_ns, 250000u); // a quarter of a millisecond between events
  }
}

// --- which GPU -----------------------------------------------------------------------

TEST_F(CudaDriver, NoGpuToRunOn) {
  fake.gpus.clear();
  std::string text = refusal({"cuda.sim=off"});
  EXPECT_HAS(text,
             "there is no GPU to run on: the driver finds no GPU; run on the simulator (device option cuda.sim=on), "
             "or compile the model for cpu");
  fake.gpus = {{"NVIDIA A100-SXM4-80GB", 8, 0}, {"NVIDIA B200", 10, 0}};
  text = refusal({"cuda.sim=off"});
  EXPECT_HAS(text, "'NVIDIA A100-SXM4-80GB' has compute capability 8.0, 'NVIDIA B200' has compute capability 10.0; the "
                   "bundle's kernels are for 9.0 (sm_90a: H100, H200, GH200)");
  text = refusal({"cuda.device=1"}); // named, so no simulator
  EXPECT_HAS(text, "there is no GPU to run on: 'NVIDIA B200' has compute capability 10.0;");
  text = refusal({"cuda.device=7"});
  EXPECT_HAS(text, "there is no GPU 7: the driver finds 2, numbered from 0");
  text = refusal({"cuda.driver=/nowhere/libcuda.so.1", "cuda.sim=off"});
  EXPECT_HAS(text, "NVIDIA's driver cannot be loaded (/nowhere/libcuda.so.1: cannot open shared object file");
  text = refusal({"cuda.driver=libm.so.6", "cuda.sim=off"});
  EXPECT_HAS(text, "'libm.so.6' has no function cuInit: it is no driver of NVIDIA's");
  text = refusal({"cuda.sim=maybe"}, DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_HAS(text, "has a value other than auto|on|off");
}

TEST_F(CudaDriver, TheGpuWhereThereIsOneElseTheSimulator) {
  OpenBundle open(cudaBundle(plainModel()));
  fake.gpus = {{"NVIDIA A100", 8, 0}, FakeGpu(), {"NVIDIA H200", 9, 0}};
  auto machineOf = [&](const std::vector<std::string> &options) {
    CudaSession session(open.get(), options);
    EXPECT_EQ(session.status, DMX_OK) << session.error.message;
    Trial run;
    EXPECT_EQ(run(session), DMX_OK) << run.error;
    EXPECT_EQ(run.y[3], 1009.0f);
    return session.machine();
  };
  EXPECT_EQ(machineOf({}), "NVIDIA H100 of a test, driver of CUDA 12.4");
  EXPECT_EQ(machineOf({"cuda.device=2"}), "NVIDIA H200, driver of CUDA 12.4");
  size_t launches = fake.count("cuLaunchKernel");
  EXPECT_EQ(launches, 4u);
  EXPECT_EQ(machineOf({"cuda.sim=on", "cuda.sim_seed=3"}), "simulator");
  fake.gpus.resize(1);
  EXPECT_HAS(machineOf({"cuda.sim=auto"}),
             "simulator, because 'NVIDIA A100' has compute capability 8.0; the bundle's kernels are for 9.0");
  EXPECT_HAS(machineOf({"cuda.sim=auto", "cuda.driver=/nowhere/libcuda.so.1"}),
             "simulator, because NVIDIA's driver cannot be loaded (");
  EXPECT_EQ(fake.count("cuLaunchKernel"), launches);
}

// A caller that says nothing of a simulator gets none: it would compute thousands of times as long.
TEST_F(CudaDriver, NobodyGetsASimulatorUnasked) {
  const std::string nowhere = "cuda.driver=/nowhere/libcuda.so.1";
  std::string text = refusal({nowhere});
  EXPECT_HAS(text, "there is no GPU to run on: NVIDIA's driver cannot be loaded (/nowhere/libcuda.so.1: ");
  EXPECT_HAS(text, "run on the simulator (device option cuda.sim=on)");
  fake.gpus.clear();
  EXPECT_HAS(refusal({}), "there is no GPU to run on: the driver finds no GPU; run on the simulator");
  OpenBundle open(cudaBundle(plainModel()));
  auto create = [&](uint32_t flags, const char *option, std::string &machine) {
    dmx_error error = DMX_ERROR_INIT;
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    const char *given[] = {nowhere.c_str(), option};
    options.device_options = given;
    options.device_option_count = option ? 2 : 1;
    options.flags = flags;
    dmx_session *made = nullptr;
    dmx_status status = dmx_session_create(open.get(), nullptr, &options, &made, &error);
    SessionPtr session(made);
    dmx_session_info info{};
    info.struct_size = sizeof info;
    machine = session && dmx_session_get_info(made, &info, nullptr) == DMX_OK ? info.machine : error.message;
    return status;
  };
  std::string said;
  EXPECT_EQ(create(0, nullptr, said), DMX_STATUS_UNSUPPORTED);
  EXPECT_EQ(create(DMX_SESSION_SIMULATE, nullptr, said), DMX_OK) << said;
  EXPECT_HAS(said, "simulator, because NVIDIA's driver cannot be loaded (");
  EXPECT_EQ(create(DMX_SESSION_SIMULATE, "cuda.sim=off", said), DMX_STATUS_UNSUPPORTED);
  EXPECT_EQ(create(2, nullptr, said), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_HAS(said, "options->flags has bits that are not known here");
}

// --- what goes wrong -----------------------------------------------------------------

TEST_F(CudaDriver, DriversThatAreTooOld) {
  fake.version = 11080;
  std::string text = refusal({});
  EXPECT_HAS(text,
             "the driver of GPU 'NVIDIA H100 of a test' is one of CUDA 11.8, too old for PTX 8.0; install one of CUDA "
             "12.0 or later (525.60 or later), or run on the simulator (device option cuda.sim=on)");
  // Should it say another number than it is:
  fake.reset();
  fake.failures["cuModuleLoadDataEx"] = {0, 222};
  fake.jitLog = "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.0; current version is '7.8'";
  text = refusal({});
  EXPECT_HAS(text, "GPU 'NVIDIA H100 of a test': cannot compile the kernels for it: the driver is too old for PTX 8.0; "
                   "install one of CUDA 12.0 or later (525.60 or later) (CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)");
  EXPECT_HAS(text, "current version is '7.8'");
}

TEST_F(CudaDriver, WhatTheCompilerSaysWithOurKernelAndNode) {
  const std::string code = cudaKernels();
  auto line =
      1 + std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(code.find(".entry strict")), '\n');
  fake.failures["cuModuleLoadDataEx"] = {0, 218};
  fake.jitLog =
      "ptxas application ptx input, line " + std::to_string(line + 9) + "; error   : Unknown modifier '.nosuch'";
  std::string text = refusal({});
  EXPECT_HAS(text,
             "entry 'code/cuda/sm_90a/kernels.ptx': GPU 'NVIDIA H100 of a test': cannot compile the kernels for it: "
             "the driver's compiler refuses the kernels (CUDA_ERROR_INVALID_PTX, 218)");
  EXPECT_HAS(text, "error   : Unknown modifier '.nosuch' (kernel 'strict', node 'node_strict')");
}

TEST_F(CudaDriver, ModelsThatAreLargerThanTheGpu) {
  fake.totalBytes = 1000;
  std::string text = refusal({}, DMX_STATUS_OUT_OF_MEMORY);
  // 400 of the constant; x, y and the arena of 448
  EXPECT_HAS(text, "the model needs 1648 bytes on GPU 'NVIDIA H100 of a test' (400 of constants, 1248 of tensors, 0 of "
                   "scratch), which has 1000 free of 1000; end what else uses the GPU, run smaller shapes, or compile");
}

TEST_F(CudaDriver, FaultsOfKernelsAndWhoseTheyAre) {
  OpenBundle open(cudaBundle(plainModel()));
  for (bool blocking : {false, true}) {
    CudaSession session(open.get(), {"cuda.blocking=" + std::to_string(blocking)});
    Trial run;
    ASSERT_EQ(run(session), DMX_OK) << run.error;
    fake.failures["cuStreamSynchronize"] = {blocking ? 1 : 0, 716};
    EXPECT_EQ(run(session), DMX_STATUS_KERNEL);
    EXPECT_HAS(run.error,
               "GPU 'NVIDIA H100 of a test': a kernel's access is not aligned; the simulator (cuda.sim=on) says "
               "where (CUDA_ERROR_MISALIGNED_ADDRESS, 716); this process cannot use the GPU any more");
    EXPECT_HAS(run.error, blocking ? "task 'plus_1'" : "task 'plus_0'");
    EXPECT_EQ(has(run.error, "it is one of 2 tasks from this one on: the device option cuda.blocking=1 tells which"),
              !blocking);
    fake.failures.clear();
  }
}

// Whatever fails, and whenever: a sentence, nothing left behind, and a session that goes on where it can.
TEST_F(CudaDriver, EveryCallMayFail) {
  const char *functions[] = {
      "cuDeviceGetCount",         "cuDeviceGet",         "cuDeviceGetName",    "cuDeviceGetAttribute",
      "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuModuleLoadDataEx", "cuModuleGetFunction",
      "cuFuncSetAttribute",       "cuMemGetInfo_v2",     "cuMemAlloc_v2",      "cuMemcpyHtoDAsync_v2",
      "cuMemcpyDtoHAsync_v2",     "cuMemsetD8Async",     "cuStreamCreate",     "cuStreamSynchronize",
      "cuLaunchKernel",           "cuEventCreate",       "cuEventRecord"};
  ModelBuilder builder;
  int x = builder.input("x", "f32", {kCount}), y = builder.output("y", "f32", {kCount});
  int total = builder.state(4 * kCount, "f32", {kCount}), sum = builder.arena(4 * kCount, "f32", {kCount});
  int c = builder.constant(bytesOf(iota<float>(kCount)), "f32", {kCount});
  builder.dispatch("plus", {x, c, sum}, 1, kCount, {}, {{"dims", {kCount}}});
  builder.dispatch("collect", {sum, total, y}, 2, kCount, {0}, {{"dims", {kCount}}});
  const TestBundle bundle = cudaBundle(builder);
  for (const char *function : functions) {
    int after = 0;
    for (bool failed = true; failed; ++after) {
      fake.reset();
      fake.failures[function] = {after, 802};
      OpenBundle open(bundle);
      CudaSession session(open.get());
      std::string text = session.error.message;
      if (session.session) {
        EXPECT_EQ(dmx_session_profile(session.get(), 64, nullptr), DMX_OK);
        Trial run;
        failed = run(session) != DMX_OK;
        text = run.error;
        if (!failed) {
          EXPECT_EQ(run.y[5], 10.0f) << function << " " << after;
        }
      } else {
        failed = true;
      }
      if (failed) {
        EXPECT_HAS(text, "the GPU's system is not ready; start its services (nvidia-fabricmanager), then run again "
                         "(CUDA_ERROR_SYSTEM_NOT_READY, 802)")
            << function << " " << after;
      }
      ASSERT_LT(after, 200) << function;
    }
    EXPECT_GT(after, 1) << function << " is never called";
  }
  fake.reset();
}

TEST_F(CudaDriver, EveryCodeIsASentence) {
  OpenBundle open(cudaBundle(plainModel()));
  int known = 0;
  for (int code = 1; code < 1000; ++code) {
    fake.reset();
    fake.failures["cuStreamCreate"] = {0, code};
    CudaSession session(open.get());
    ASSERT_NE(session.status, DMX_OK);
    EXPECT_EQ(session.status, code == 2 ? DMX_STATUS_OUT_OF_MEMORY : DMX_STATUS_UNSUPPORTED);
    std::string text = session.error.message;
    EXPECT_HAS(text, "GPU 'NVIDIA H100 of a test': cannot make a stream on it: ");
    EXPECT_HAS(text, ", " + std::to_string(code) + ")");
    if (const dmxrt::cuda::DriverError *error = dmxrt::cuda::findDriverError(code)) {
      EXPECT_EQ(std::string(error->name).find("CUDA_ERROR_"), 0u);
      EXPECT_HAS(text, std::string(error->text) + " (" + error->name);
      ++known;
    } else if (code == 987) {
      EXPECT_HAS(text, "something new (CUDA_ERROR_OF_TOMORROW, 987)");
    } else {
      EXPECT_HAS(text, "the driver reports an error that this runtime does not know (a code that it has no name for");
    }
  }
  EXPECT_GT(known, 45);
  fake.reset();
}

} // namespace
