//===- DeviceTest.cpp - what every device must do -------------------------===//
//
// One suite for all devices this runtime has; a new one adds itself together with code that
// has the kernels of kernels.c (DeviceParam.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Device.h"
#include "AllocationCount.h"
#include "DeviceParam.h"
#include "RuntimeTest.h"
#include "dmx/dmx_kernel.h"
#include "runtime/bundle/Manifest.h"

using namespace dmxtest;
using namespace dmxrt;

namespace {

std::string cpuObject() { return kernelObject(); }

const bool added =
    addDevice({"cpu", 1, cpuObject}) && addDevice({"cpu", 2, cpuObject}) && addDevice({"cpu", 5, cpuObject});

std::vector<DeviceParam> &deviceParams() {
  static std::vector<DeviceParam> all;
  return all;
}

class DeviceTest : public testing::TestWithParam<DeviceParam> {
protected:
  void SetUp() override {
    DeviceOptions options;
    options.threads = GetParam().threads;
    const std::string target = GetParam().target;
    auto made = createDevices({&target, 1}, options);
    ASSERT_TRUE(made) << made.error().message;
    device = std::move((*made)[0]);
    std::string object = GetParam().object();
    auto image = device->loadCode({reinterpret_cast<const std::byte *>(object.data()), object.size()});
    ASSERT_TRUE(image) << image.error().message;
    code = *image;
  }

  /// Prepares a list whose tasks are all the device's.
  Status prepare(std::span<const DeviceTask> tasks) {
    segments = {{0, static_cast<uint32_t>(tasks.size())}};
    return device->prepare(tasks, segments);
  }
  /// Device memory with these values, freed by the fixture.
  template <typename T> void *upload(const std::vector<T> &values) {
    auto memory = device->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(memory);
    blocks.emplace_back(*memory, values.size() * sizeof(T));
    device->copy(*memory, values.data(), values.size() * sizeof(T));
    return *memory;
  }
  template <typename T> std::vector<T> download(const void *memory, size_t count) {
    std::vector<T> values(count);
    device->copy(values.data(), memory, count * sizeof(T));
    return values;
  }
  DeviceTask task(const char *kernel, void *const *buffers, int64_t work, std::span<const uint32_t> deps = {},
                  const int64_t *dims = nullptr) {
    DeviceTask out;
    std::string name = GetParam().namedBySize ? std::string(kernel) + "_" + std::to_string(work) : kernel;
    out.kernel = code->findKernel(name);
    EXPECT_TRUE(out.kernel) << name;
    out.buffers = buffers;
    out.bufferBytes = sizesOf(buffers, std::string_view(kernel));
    out.dims = dims;
    out.dimCount = dims ? 1 : 0;
    out.work = work;
    out.deps = deps;
    return out;
  }
  /// Sizes of the blocks that a kernel's buffers are; they live as long as the fixture.
  std::span<const uint64_t> sizesOf(void *const *buffers, std::string_view kernel) {
    size_t count = kernel == "add" || kernel == "gather" ? 3 : kernel == "scale" ? 2 : 1;
    std::vector<uint64_t> &sizes = *sizeLists.emplace_back(std::make_unique<std::vector<uint64_t>>());
    for (size_t i = 0; i < count; ++i)
      for (auto [memory, size] : blocks)
        if (memory == buffers[i])
          sizes.push_back(size);
    EXPECT_EQ(sizes.size(), count);
    return sizes;
  }
  void TearDown() override {
    for (auto [memory, size] : blocks)
      device->release(memory, size);
  }

  std::unique_ptr<Device> device;
  std::shared_ptr<const CodeImage> code;
  std::vector<Segment> segments;
  std::vector<std::pair<void *, uint64_t>> blocks;
  std::vector<std::unique_ptr<std::vector<uint64_t>>> sizeLists;
};

} // namespace

TEST_P(DeviceTest, MemoryIsAlignedAndCopies) {
  for (size_t count : {1, 7, 100000}) {
    auto values = iota<float>(count);
    void *memory = upload(values);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(download<float>(memory, count), values);
  }
  EXPECT_FALSE(device->allocate(uint64_t(1) << 60)) << "more than any machine has";
}

TEST_P(DeviceTest, RunsDispatchesAndCopiesInOrder) {
  constexpr int64_t kCount = 1000;
  auto one = std::vector<float>(kCount, 1.0f);
  void *a = upload(iota<float>(kCount)), *b = upload(one), *c = upload(one), *d = upload(one);
  void *const add[] = {a, b, c}, *const scale[] = {c, c}, *const copy[] = {c, d};
  const uint32_t after0[] = {0}, after1[] = {1};
  const int64_t three[] = {3};
  std::vector<DeviceTask> tasks{task("add", add, kCount), task("scale", scale, kCount, after0, three), {}};
  tasks[2].buffers = copy;
  tasks[2].work = 400; // bytes
  tasks[2].srcOffset = 4;
  tasks[2].dstOffset = 8;
  tasks[2].deps = after1;
  Status prepared = prepare(tasks);
  ASSERT_TRUE(prepared) << prepared.error().message;
  for (int run = 0; run < 10; ++run) {
    device->enqueue(0);
    RunOutcome outcome = device->fence();
    ASSERT_EQ(outcome.code, DMX_KERNEL_OK);
    auto result = download<float>(d, kCount);
    EXPECT_EQ(result[1], 1.0f);
    EXPECT_EQ(result[2], 6.0f); // (1 + 1) * 3
    EXPECT_EQ(result[101], 303.0f);
    EXPECT_EQ(result[102], 1.0f);
  }
}

TEST_P(DeviceTest, PointersMayChangeBetweenRuns) {
  void *first = upload(std::vector<int32_t>(64)), *second = upload(std::vector<int32_t>(64));
  void *buffers[] = {first};
  std::vector<DeviceTask> tasks{task("fill", buffers, 64)};
  ASSERT_TRUE(prepare(tasks));
  for (void *target : {first, second}) {
    buffers[0] = target;
    device->enqueue(0);
    ASSERT_EQ(device->fence().code, DMX_KERNEL_OK);
    EXPECT_EQ(download<int32_t>(target, 64), iota<int32_t>(64));
  }
}

/// The stages of a session's graphs: a program stays as it was planned while others are planned and run.
TEST_P(DeviceTest, KeepsSeveralPrograms) {
  void *filled[] = {upload(std::vector<int32_t>(64)), upload(std::vector<int32_t>(64))};
  void *ones = upload(std::vector<float>(1000, 1.0f)), *sum = upload(std::vector<float>(1000));
  void *const first[] = {filled[0]}, *const second[] = {filled[1]}, *const add[] = {ones, ones, sum};
  // The second has its task behind one of another graph's stage.
  const std::vector<DeviceTask> lists[] = {
      {task("fill", first, 64)}, {DeviceTask(), task("fill", second, 64)}, {task("add", add, 1000)}};
  const Segment ranges[] = {{0, 1}, {1, 2}, {0, 1}};
  device->setProgramCount(3);
  for (uint32_t program : {2u, 0u, 1u}) {
    device->selectProgram(program);
    Status prepared = device->prepare(lists[program], {&ranges[program], 1});
    ASSERT_TRUE(prepared) << prepared.error().message;
  }
  bool seen = false; // the second program
  for (uint32_t program : {0u, 2u, 1u, 2u}) {
    device->selectProgram(program);
    device->enqueue(0);
    ASSERT_EQ(device->fence().code, DMX_KERNEL_OK) << program;
    EXPECT_EQ(download<int32_t>(filled[0], 64), iota<int32_t>(64));
    if (program == 2) {
      EXPECT_EQ(download<float>(sum, 1000), std::vector<float>(1000, 2.0f));
    }
    seen |= program == 1;
    EXPECT_EQ(download<int32_t>(filled[1], 64), seen ? iota<int32_t>(64) : std::vector<int32_t>(64)) << program;
  }
}

TEST_P(DeviceTest, ReportsTheTaskThatFailed) {
  void *data = upload(iota<float>(10)), *out = upload(std::vector<float>(4));
  void *bad = upload(std::vector<int64_t>{1, 2, 30, 4}), *good = upload(std::vector<int64_t>{1, 2, 3, 4});
  void *filled = upload(std::vector<int32_t>(4));
  void *gather[] = {data, bad, out}, *const fill[] = {filled};
  const int64_t ten[] = {10};
  const uint32_t after0[] = {0}, after1[] = {1};
  std::vector<DeviceTask> tasks{task("fill", fill, 4), task("gather", gather, 4, after0, ten),
                                task("fill", fill, 4, after1)};
  ASSERT_TRUE(prepare(tasks));
  device->enqueue(0);
  RunOutcome outcome = device->fence();
  EXPECT_EQ(outcome.code, DMX_KERNEL_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(outcome.task, 1u);
  gather[1] = good;
  device->enqueue(0);
  EXPECT_EQ(device->fence().code, DMX_KERNEL_OK) << "the next run starts afresh";
  EXPECT_EQ(download<float>(out, 4)[3], 4.0f);
}

TEST_P(DeviceTest, ProfilesEverySlice) {
  void *out = upload(std::vector<int32_t>(1024));
  void *const fill[] = {out};
  std::vector<DeviceTask> tasks{task("fill", fill, 1024), task("fill", fill, 0)};
  ASSERT_TRUE(prepare(tasks));
  EXPECT_EQ(device->sliceCount(0), device->threads());
  device->setProfiling(true);
  std::vector<TaskSlice> slices;
  for (int run = 0; run < 2; ++run) {
    device->enqueue(0);
    ASSERT_EQ(device->fence().code, DMX_KERNEL_OK);
    slices.clear();
    device->takeSlices(slices);
    ASSERT_EQ(slices.size(), device->threads()) << "an empty task takes no time";
    for (const TaskSlice &slice : slices) {
      EXPECT_EQ(slice.task, 0u);
      EXPECT_LT(slice.thread, device->threads());
      EXPECT_LE(slice.startNs, slice.endNs);
    }
  }
}

TEST_P(DeviceTest, CanBePreparedAgain) {
  void *out = upload(std::vector<int64_t>(100, -1));
  void *const range[] = {out};
  for (int64_t work : {100, 1, 50, 0, 100}) {
    std::vector<DeviceTask> tasks;
    for (int i = 0; i < 3; ++i)
      tasks.push_back(task("range", range, work));
    const uint32_t deps[] = {0, 1};
    tasks[1].deps = std::span(deps, 1);
    tasks[2].deps = deps;
    ASSERT_TRUE(prepare(tasks));
    for (int run = 0; run < 3; ++run) {
      device->enqueue(0);
      ASSERT_EQ(device->fence().code, DMX_KERNEL_OK);
    }
  }
  EXPECT_EQ(download<int64_t>(out, 1)[0], 0);
}

/// A device does its segments and nothing of what lies between them, also after runs that ended early.
TEST_P(DeviceTest, RunsSegmentsBetweenThoseOfOthers) {
  void *a = upload(std::vector<int32_t>(1024)), *b = upload(std::vector<int32_t>(1024));
  void *c = upload(std::vector<int32_t>(1024)), *d = upload(std::vector<int32_t>(1024));
  void *const fillA[] = {a}, *const fillB[] = {b}, *const aToC[] = {a, c}, *const cToD[] = {c, d};
  const uint32_t after0[] = {0}, after1[] = {1}, after2[] = {0, 2};
  // Tasks 1 and 4 are those of another device, which is not here; 2 waits for tasks before its segment.
  std::vector<DeviceTask> tasks{
      task("fill", fillA, 1024), task("fill", fillB, 1024, after0), {}, {}, task("fill", fillB, 1024)};
  tasks[2].buffers = aToC;
  tasks[2].work = 4096;
  tasks[2].deps = after1;
  tasks[3].buffers = cToD;
  tasks[3].work = 4096;
  tasks[3].deps = after2;
  segments = {{0, 1}, {2, 4}};
  ASSERT_TRUE(device->prepare(tasks, segments));
  device->setProfiling(true);
  std::vector<TaskSlice> slices;
  slices.reserve(100);
  auto runSegment = [&](uint32_t segment) {
    device->enqueue(segment);
    EXPECT_EQ(device->fence().code, DMX_KERNEL_OK);
    slices.clear();
    device->takeSlices(slices);
    EXPECT_FALSE(slices.empty());
    for (const TaskSlice &slice : slices) {
      EXPECT_GE(slice.task, segments[segment].begin);
      EXPECT_LT(slice.task, segments[segment].end);
    }
  };
  const std::vector<int32_t> zeros(1024);
  for (int run = 0; run < 6; ++run) {
    for (void *memory : {a, c, d})
      device->copy(memory, zeros.data(), 4096);
    runSegment(0);
    EXPECT_EQ(download<int32_t>(a, 1024), iota<int32_t>(1024));
    EXPECT_EQ(download<int32_t>(c, 1024), zeros);
    if (run % 3 == 1)
      continue; // another device's task failed
    runSegment(1);
    EXPECT_EQ(download<int32_t>(d, 1024), iota<int32_t>(1024));
    EXPECT_EQ(download<int32_t>(b, 1024), zeros);
  }
  EXPECT_EQ(device->sliceCount(0), device->threads());
  if (GetParam().target != std::string_view("cpu"))
    return; // the simulated card notes down what it did
  allocations = 0;
  countAllocations = true;
  for (int run = 0; run < 3; ++run)
    for (uint32_t segment : {0, 1}) {
      device->enqueue(segment);
      device->fence();
    }
  countAllocations = false;
  EXPECT_EQ(allocations, 0);
}

TEST(Devices, UnknownTargetsAreNamed) {
  const std::string targets[] = {"cpu", "nowhere"};
  auto made = createDevices(targets, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, DMX_STATUS_UNSUPPORTED);
  EXPECT_NE(made.error().message.find("'nowhere', which this runtime has no device for; it has: cpu"),
            std::string::npos);
}

TEST(Devices, OneOfThemIsTheHost) {
  EXPECT_EQ(hostTarget(), "cpu");
  EXPECT_TRUE(runsOnHost("cpu"));
  EXPECT_FALSE(runsOnHost("corsair"));
  EXPECT_FALSE(runsOnHost("nowhere"));
}

bool dmxtest::addDevice(const DeviceParam &device) {
  deviceParams().push_back(device);
  return true;
}

// Evaluated when tests are registered, after all files of the program have added theirs.
INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::ValuesIn(deviceParams()), [](const auto &info) {
  return std::string(info.param.target) + std::to_string(info.param.threads) + "threads";
});
