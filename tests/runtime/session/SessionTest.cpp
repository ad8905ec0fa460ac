//===- SessionTest.cpp - options, binding and shapes ----------------------===//

#include "../RuntimeTest.h"

#include <cfenv>

using namespace dmxtest;

namespace {

std::string messageOf(const dmx_error &error) { return error.message; }

void expectPart(const dmx_error &error, const std::string &part) {
  EXPECT_NE(messageOf(error).find(part), std::string::npos)
      << "message: " << error.message << "\nexpected part: " << part;
}

struct CountingAllocator {
  int64_t live = 0, calls = 0;
  bool fail = false, misalign = false;
  dmx_allocator callbacks() {
    return {this,
            [](void *user, size_t size, size_t alignment) -> void * {
              auto *self = static_cast<CountingAllocator *>(user);
              ++self->calls;
              if (self->fail)
                return nullptr;
              void *memory = nullptr;
              if (posix_memalign(&memory, alignment, size + 64) != 0)
                return nullptr;
              self->live += static_cast<int64_t>(size);
              return static_cast<char *>(memory) + (self->misalign ? 1 : 0);
            },
            [](void *user, void *memory, size_t size) {
              auto *self = static_cast<CountingAllocator *>(user);
              self->live -= static_cast<int64_t>(size);
              std::free(static_cast<char *>(memory) - (self->misalign ? 1 : 0));
            }};
  }
};

} // namespace

TEST(Session, BindErrors) {
  OpenBundle open(batchModel());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> data(300);
  auto bind = [&](dmx_dtype dtype, std::vector<int64_t> dims, void *at, dmx_io io = DMX_INPUT, uint32_t index = 0) {
    dmx_tensor_view view{dtype, static_cast<uint32_t>(dims.size()), dims.data(), at};
    return dmx_session_bind(session.get(), io, index, &view, &error);
  };
  EXPECT_EQ(bind(DMX_DTYPE_I32, {2, 4}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "input 'x': dtype is i32, expected f32");
  EXPECT_EQ(bind(99, {2, 4}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "dtype is unknown");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {8}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "rank is 1, expected 2");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 5}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "axis 1 is 5, expected 4");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {65, 4}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "axis 0 ('batch') is 65, expected 1 to 64");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {-1, 4}, data.data()), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 4}, nullptr), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "data is NULL");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 4}, reinterpret_cast<char *>(data.data()) + 1), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "not aligned to the element size, 4 bytes");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 4}, data.data(), DMX_INPUT, 1), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "input 1 does not exist; the entry point has 1");
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 4}, data.data(), 2, 0), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "argument io is 2");
  dmx_tensor_view view{DMX_DTYPE_F32, 2, nullptr, data.data()};
  EXPECT_EQ(dmx_session_bind(session.get(), DMX_INPUT, 0, &view, &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "dims is NULL");
  EXPECT_EQ(dmx_session_bind(session.get(), DMX_INPUT, 0, nullptr, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_session_bind(nullptr, DMX_INPUT, 0, &view, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(bind(DMX_DTYPE_F32, {2, 4}, data.data()), DMX_OK);
  EXPECT_STREQ(error.message, "");
  EXPECT_EQ(error.status, DMX_OK);
}

TEST(Session, RunNeedsAllBindings) {
  OpenBundle open(addModel(4));
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> a(4), b(4), y(4);
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_NOT_READY);
  expectPart(error, "input 'a' is not bound");
  bindVector(session.get(), DMX_INPUT, 0, a, {4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_NOT_READY);
  expectPart(error, "input 'b' is not bound");
  bindVector(session.get(), DMX_INPUT, 1, b, {4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << "outputs may be left to the session: " << error.message;
  bindVector(session.get(), DMX_OUTPUT, 0, y, {4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(dmx_session_unbind(session.get(), DMX_INPUT, 1, &error), DMX_OK) << error.message;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_NOT_READY);
  expectPart(error, "input 'b' is not bound");
}

TEST(Session, ShapesFollowTheInputs) {
  OpenBundle open(batchModel());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  int64_t dims[4];
  uint32_t rank = 0;
  EXPECT_EQ(dmx_session_shape(session.get(), DMX_OUTPUT, 0, dims, 4, &rank, &error), DMX_STATUS_NOT_READY);
  expectPart(error, "input 'x' is not bound; it defines dim 'batch'");
  std::vector<float> x(256), y(256);
  for (int64_t batch : {3, 64, 1, 17}) {
    bindVector(session.get(), DMX_INPUT, 0, x, {batch, 4});
    ASSERT_EQ(dmx_session_shape(session.get(), DMX_OUTPUT, 0, dims, 4, &rank, &error), DMX_OK) << error.message;
    EXPECT_EQ(rank, 2u);
    EXPECT_EQ(dims[0], batch);
    EXPECT_EQ(dims[1], 4);
  }
  EXPECT_EQ(dmx_session_shape(session.get(), DMX_OUTPUT, 0, dims, 1, &rank, &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "has rank 2");
  // The output's shape is checked at the run.
  bindVector(session.get(), DMX_OUTPUT, 0, y, {16, 4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "output 'y': axis 0 is 16, for these inputs it must be 17");
  bindVector(session.get(), DMX_OUTPUT, 0, y, {17, 4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
}

TEST(Session, DynamicShapesRun) {
  OpenBundle open(batchModel());
  for (uint32_t threads : {1u, 3u}) {
    SessionPtr session = makeSession(open.get(), threads);
    for (int64_t batch : {2, 64, 5, 5, 64}) {
      auto x = iota<float>(static_cast<size_t>(batch) * 4);
      std::vector<float> y(x.size());
      ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {batch, 4}), DMX_OK);
      ASSERT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {batch, 4}), DMX_OK);
      ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], (x[i] + 1) * static_cast<float>(batch)) << i;
    }
  }
}

TEST(Session, OneDimInSeveralInputs) {
  ModelBuilder builder;
  builder.dim("n", 1, 100, 0, 0);
  int a = builder.input("a", "f32", {"n"}), b = builder.input("b", "f32", {Json::array({"mul", "n", 2})});
  int y = builder.output("y", "f32", {"n"});
  builder.dispatch("add", {a, b, y}, 1, "n");
  OpenBundle open(builder.finish());
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> x(100), z(200), result(100);
  bindVector(session.get(), DMX_INPUT, 0, x, {5});
  bindVector(session.get(), DMX_INPUT, 1, z, {11});
  bindVector(session.get(), DMX_OUTPUT, 0, result, {5});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "input 'b': axis 0 is 11, but n * 2 is 10 by the other inputs");
  bindVector(session.get(), DMX_INPUT, 1, z, {10});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
}

/// A graph whose ranges only fail for some shapes is refused when they come.
TEST(Session, LayoutErrorsOfDynamicShapes) {
  TestBundle model = batchModel();
  model.graph["graphs"][0]["buffers"][3]["size"] = 512; // enough for 32 rows
  model.graph["graphs"][0]["arenas"][0]["size"] = 512;
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> x(256), y(256);
  bindVector(session.get(), DMX_INPUT, 0, x, {33, 4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {33, 4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_INVALID_BUNDLE);
  expectPart(error, "buffer 3: size 512 is less than its shape needs, 528");
  bindVector(session.get(), DMX_INPUT, 0, x, {32, 4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {32, 4});
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
}

TEST(Session, OutputsMustNotOverlap) {
  OpenBundle open(addModel(8));
  SessionPtr session = makeSession(open.get());
  dmx_error error = DMX_ERROR_INIT;
  std::vector<float> memory(64);
  auto bindAt = [&](dmx_io io, uint32_t index, size_t offset) {
    int64_t dims[] = {8};
    dmx_tensor_view view{DMX_DTYPE_F32, 1, dims, memory.data() + offset};
    ASSERT_EQ(dmx_session_bind(session.get(), io, index, &view, nullptr), DMX_OK);
  };
  bindAt(DMX_INPUT, 0, 0);
  bindAt(DMX_INPUT, 1, 4); // inputs may overlap each other
  for (size_t offset : {0, 3, 4, 11}) {
    bindAt(DMX_OUTPUT, 0, offset);
    EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_INVALID_ARGUMENT) << offset;
    expectPart(error, "overlaps");
  }
  bindAt(DMX_OUTPUT, 0, 12);
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
}

TEST(Session, EmptyTensors) {
  ModelBuilder builder;
  builder.dim("n", 0, 10, 0, 0);
  int x = builder.input("x", "f32", {"n", 3}), y = builder.output("y", "f32", {"n", 3});
  builder.dispatch("scale", {x, y}, 1, Json::array({"mul", "n", 3}), {}, {{"dims", {2}}});
  OpenBundle open(builder.finish());
  SessionPtr session = makeSession(open.get(), 2);
  int64_t dims[] = {0, 3};
  dmx_tensor_view empty{DMX_DTYPE_F32, 2, dims, nullptr};
  EXPECT_EQ(dmx_session_bind(session.get(), DMX_INPUT, 0, &empty, nullptr), DMX_OK);
  EXPECT_EQ(dmx_session_bind(session.get(), DMX_OUTPUT, 0, &empty, nullptr), DMX_OK);
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
}

TEST(Session, OptionErrors) {
  OpenBundle open(addModel(4));
  dmx_error error = DMX_ERROR_INIT;
  auto create = [&](dmx_session_options options) {
    dmx_session *session = nullptr;
    dmx_status status = dmx_session_create(open.get(), nullptr, &options, &session, &error);
    dmx_session_destroy(session);
    return status;
  };
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  EXPECT_EQ(create(options), DMX_OK) << error.message;
  options.threads = 1025;
  EXPECT_EQ(create(options), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "threads is 1025");
  options.threads = 1;
  for (const char *bad :
       {"cpu.spin", "cpu.spin_us=abc", "cpu.spin_us", "cpu.pin=2", "cpu.pin=1x", "", "cpu.spin_us=-1"}) {
    options.device_options = &bad;
    options.device_option_count = 1;
    EXPECT_EQ(create(options), DMX_STATUS_INVALID_ARGUMENT) << bad;
    expectPart(error, "target cpu knows cpu.spin_us");
  }
  const char *good[] = {"cpu.spin_us=0", "cpu.pin=1"};
  options.device_options = good;
  options.device_option_count = 2;
  options.threads = 3;
  EXPECT_EQ(create(options), DMX_OK) << error.message;
  const char *null = nullptr;
  options.device_options = &null;
  options.device_option_count = 1;
  EXPECT_EQ(create(options), DMX_STATUS_INVALID_ARGUMENT);
  options = DMX_SESSION_OPTIONS_INIT;
  options.struct_size = 0;
  EXPECT_EQ(create(options), DMX_STATUS_INVALID_ARGUMENT);
  // A caller that knows only `threads`; what lies behind must not be read.
  options.struct_size = offsetof(dmx_session_options, isa);
  options.isa = "no such level";
  EXPECT_EQ(create(options), DMX_OK) << error.message;
  dmx_session *session = nullptr;
  EXPECT_EQ(dmx_session_create(open.get(), "other", nullptr, &session, &error), DMX_STATUS_INVALID_ARGUMENT);
  expectPart(error, "no entry point 'other'");
  EXPECT_EQ(dmx_session_create(nullptr, nullptr, nullptr, &session, &error), DMX_STATUS_INVALID_ARGUMENT);
  dmx_session_destroy(nullptr);
}

TEST(Session, AllocatorGetsAllLargeMemory) {
  ModelBuilder builder;
  builder.dim("n", 1, 1000, 0, 0);
  int x = builder.input("x", "i32", {"n", 8}), y = builder.output("y", "i32", {"n", 8});
  int state = builder.state(4096, "f32", {1024});
  (void)state;
  builder.dispatch("reverse_by_scratch", {x, y}, 1, "n", {},
                   {{"dims", {8}}, {"scratch", Json::array({"mul", "n", 32})}});
  TestBundle model = builder.finish();
  model.graph["graphs"][0]["arenas"][0]["size"] = {"mul", "n", 1024};
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  CountingAllocator counting;
  dmx_allocator callbacks = counting.callbacks();
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.allocator = &callbacks;
  SessionPtr session = makeSession(open.get(), 2, options);
  EXPECT_EQ(counting.live, 4096);
  auto run = [&](int64_t n) {
    std::vector<int32_t> in = iota<int32_t>(static_cast<size_t>(n) * 8), out(in.size());
    bindVector(session.get(), DMX_INPUT, 0, in, {n, 8});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {n, 8});
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status = dmx_session_run(session.get(), &error);
    EXPECT_EQ(out[0], status == DMX_OK ? 7 : 0);
    return status;
  };
  EXPECT_EQ(run(10), DMX_OK);
  EXPECT_EQ(counting.live, 4096 + 10 * 1024 + 2 * 320);
  int64_t calls = counting.calls;
  EXPECT_EQ(run(10), DMX_OK);
  EXPECT_EQ(run(4), DMX_OK) << "smaller shapes fit";
  EXPECT_EQ(counting.calls, calls);
  EXPECT_EQ(run(20), DMX_OK);
  EXPECT_EQ(counting.live, 4096 + 20 * 1024 + 2 * 640);
  counting.fail = true;
  EXPECT_EQ(run(40), DMX_STATUS_OUT_OF_MEMORY);
  counting.fail = false;
  EXPECT_EQ(run(40), DMX_OK);
  dmx_session_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_session_get_info(session.get(), &info, nullptr), DMX_OK);
  EXPECT_EQ(info.arena_bytes, 40u * 1024);
  EXPECT_EQ(info.scratch_bytes, 2u * 1280);
  EXPECT_EQ(info.state_bytes, 4096u);
  session.reset();
  EXPECT_EQ(counting.live, 0);
  counting.misalign = true;
  dmx_session *none = nullptr;
  EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &none, &open.error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(counting.live, 0);
}

TEST(Session, OutlivesTheBundle) {
  OpenBundle open(addModel(4));
  SessionPtr session = makeSession(open.get());
  open.bundle.reset();
  std::vector<float> a{1, 2, 3, 4}, b{1, 1, 1, 1}, y(4);
  bindVector(session.get(), DMX_INPUT, 0, a, {4});
  bindVector(session.get(), DMX_INPUT, 1, b, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {4});
  EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(y[3], 5.0f);
}

/// The best level that this processor has beyond the oldest ones, by the compiler's own test.
static const char *cpuLevel() {
  bool v4 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "x86-64-v3" : "";
}

TEST(Session, InfoAndIsaChoice) {
  TestBundle model = addModel(4);
  model.manifest["targets"].push_back({{"target", "cpu"},
                                       {"arch", "x86-64-plus"},
                                       {"entry", "code/cpu/plus/kernels.so"},
                                       {"features", {"sse", "sse2"}}});
  model.manifest["targets"].push_back({{"target", "cpu"},
                                       {"arch", "future"},
                                       {"entry", "code/cpu/plus/kernels.so"},
                                       {"features", {"sse", "sse2", "quantum"}}});
  model.files["code/cpu/plus/kernels.so"] = kernelObject("-sysv");
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  dmx_session_info info{};
  info.struct_size = sizeof info;
  SessionPtr best = makeSession(open.get(), 2);
  ASSERT_EQ(dmx_session_get_info(best.get(), &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.isa, "x86-64-plus");
  EXPECT_STREQ(info.target, "cpu");
  EXPECT_EQ(info.threads, 2u);
  EXPECT_EQ(info.task_count, 1u);
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.isa = "x86-64";
  SessionPtr plain = makeSession(open.get(), 1, options);
  ASSERT_EQ(dmx_session_get_info(plain.get(), &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.isa, "x86-64");
  EXPECT_STREQ(info.better_isa, cpuLevel()) << "the bundle's codes use neither AVX2 nor AVX-512";
  model.manifest["targets"][1]["features"] = {"sse", "sse2", "avx512f", "avx2"};
  OpenBundle wide(model);
  ASSERT_EQ(dmx_session_get_info(makeSession(wide.get(), 1, options).get(), &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.better_isa, "") << "it is there, and not asked for";
  options.isa = "future";
  dmx_session *none = nullptr;
  EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &none, &open.error), DMX_STATUS_UNSUPPORTED);
  expectPart(open.error, "its future code needs CPU feature 'quantum'");
}

/// What a level's own code lacks is in the code that several levels share.
TEST(Session, FindsKernelsInCommonCode) {
  TestBundle model = addModel(4);
  model.manifest["format"]["minor"] = 2;
  model.manifest["required"].push_back("common-code");
  model.files["code/cpu/x86-64/kernels.so"] = kernelObject("-nothing");
  model.files["code/cpu/common/kernels.so"] = kernelObject();
  OpenBundle alone(model);
  dmx_session *none = nullptr;
  EXPECT_EQ(dmx_session_create(alone.get(), nullptr, nullptr, &none, &alone.error), DMX_STATUS_INVALID_BUNDLE);
  expectPart(alone.error, "needs kernel 'add', which code 'code/cpu/x86-64/kernels.so' does not have");
  model.manifest["targets"][0]["common"] = "code/cpu/common/kernels.so";
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  std::vector<float> a{1, 2, 3, 4}, b{4, 3, 2, 1}, y(4);
  bindVector(session.get(), DMX_INPUT, 0, a, {4});
  bindVector(session.get(), DMX_INPUT, 1, b, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {4});
  ASSERT_EQ(dmx_session_run(session.get(), &open.error), DMX_OK) << open.error.message;
  EXPECT_EQ(y, std::vector<float>(4, 5));
}
