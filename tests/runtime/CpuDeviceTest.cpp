//===- CpuDeviceTest.cpp - threads that take each other's steps -----------===//

#include "runtime/devices/cpu/CpuDevice.h"
#include "RuntimeTest.h"

#include "dmx/dmx_kernel.h"

#include <chrono>
#include <random>
#include <thread>

using namespace dmxrt;

namespace {

/// What the kernels below get as their only buffer.
struct Log {
  std::atomic<int64_t> items{0};   // done, of any task
  std::atomic<int64_t> waitFor{0}; // the number of them that `hold` waits for
  std::atomic<bool> gaveUp{false};
};

int32_t countItems(const dmx_kernel_args *args) {
  static_cast<Log *>(args->buffers[0])->items += args->end - args->begin;
  return DMX_KERNEL_OK;
}

/// Item `held` waits until all others but those of its step are done, whoever does them.
template <int64_t held> int32_t hold(const dmx_kernel_args *args) {
  Log &log = *static_cast<Log *>(args->buffers[0]);
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (args->begin <= held && args->end > held && log.items < log.waitFor && !log.gaveUp) {
    log.gaveUp = std::chrono::steady_clock::now() > limit;
    std::this_thread::yield();
  }
  log.items += args->end - args->begin;
  return DMX_KERNEL_OK;
}

struct Tasks {
  std::vector<DeviceTask> list;
  std::vector<std::vector<uint32_t>> deps;
  void *buffer;

  explicit Tasks(void *memory) : buffer(memory) {}
  void add(dmx_kernel_fn kernel, int64_t work, std::vector<uint32_t> after, double costNs = 1e6) {
    deps.push_back(std::move(after));
    DeviceTask task;
    task.kernel = reinterpret_cast<const void *>(kernel);
    task.buffers = &buffer;
    task.work = work;
    task.costNs = costNs;
    list.push_back(task);
  }
  void prepare(Device &device) {
    for (size_t i = 0; i < list.size(); ++i)
      list[i].deps = deps[i];
    segment = {0, static_cast<uint32_t>(list.size())};
    ASSERT_TRUE(device.prepare(list, {&segment, 1}));
  }
  Segment segment;
};

std::unique_ptr<Device> device(uint32_t threads) {
  DeviceOptions options;
  options.threads = threads;
  auto made = CpuDevice::create(options, {});
  EXPECT_TRUE(made);
  return std::move(*made);
}

/// Runs tasks of which one is held until `log.waitFor` items are done, which takes threads that do others' steps.
void expectHelp(Tasks &tasks, Log &log, uint32_t threads, int64_t items) {
  auto cpu = device(threads);
  tasks.prepare(*cpu);
  cpu->enqueue(0);
  EXPECT_EQ(cpu->fence().code, 0);
  EXPECT_FALSE(log.gaveUp) << threads << " threads: nobody took the steps";
  EXPECT_EQ(log.items, items);
}

} // namespace

/// With a last task that waits for the held one, threads help while they wait for it; without, at the end.
TEST(CpuDevice, ThreadsTakeStepsOfOneThatIsHeldUp) {
  for (auto [threads, last] : {std::pair(2u, false), {2u, true}, {3u, false}, {3u, true}, {5u, true}}) {
    Log log;
    Tasks tasks(&log);
    tasks.add(hold<1>, threads, {});
    for (int i = 0; i < 6; ++i)
      tasks.add(countItems, threads, {});
    if (last)
      tasks.add(countItems, threads, {0});
    log.waitFor = 7 * threads - 1;
    expectHelp(tasks, log, threads, (last ? 8 : 7) * threads);
  }
}

/// The last half of a long share is for whoever is done first.
TEST(CpuDevice, ThreadsTakeSpareSteps) {
  for (uint32_t threads : {2, 3}) {
    Log log;
    Tasks tasks(&log);
    tasks.add(hold<8>, 8 * threads, {}, 1e8);
    tasks.add(countItems, threads, {0});
    log.waitFor = 8 * threads - 4;
    expectHelp(tasks, log, threads, 9 * threads);
  }
}

namespace {

template <int32_t code> int32_t refuse(const dmx_kernel_args *args) {
  ++static_cast<Log *>(args->buffers[0])->items;
  return code;
}

} // namespace

/// The last task refuses while the first one runs; the one between them refuses later and is still the one to report.
TEST(CpuDevice, FirstOfSeveralFailuresIsReported) {
  for (uint32_t threads : {2, 3}) {
    Log log;
    Tasks tasks(&log);
    tasks.add(hold<0>, 1, {});
    tasks.add(refuse<DMX_KERNEL_INDEX_OUT_OF_RANGE>, 1, {0});
    tasks.add(refuse<DMX_KERNEL_INVALID_ARGUMENT>, 1, {});
    tasks.add(countItems, 1, {1, 2});
    auto cpu = device(threads);
    tasks.prepare(*cpu);
    for (int run = 0; run < 50; ++run) {
      log.items = 0, log.waitFor = 1;
      cpu->enqueue(0);
      RunOutcome outcome = cpu->fence();
      ASSERT_FALSE(log.gaveUp);
      ASSERT_EQ(outcome.task, 1u) << "run " << run << " on " << threads << " threads";
      ASSERT_EQ(outcome.code, DMX_KERNEL_INDEX_OUT_OF_RANGE);
      ASSERT_EQ(log.items, 3) << "a task after the failed ones has run";
    }
  }
}

namespace {

/// A task of a random graph: what it reads must be what the tasks before it made in this run.
struct Node {
  std::vector<Node *> before;
  std::atomic<int64_t> value{0}; // of all items in all runs
  int64_t work = 0;
  std::atomic<int64_t> *run = nullptr;
  std::atomic<int> *errors = nullptr;
};

int32_t checkNode(const dmx_kernel_args *args) {
  Node &node = *static_cast<Node *>(args->buffers[0]);
  for (Node *other : node.before)
    if (other->value != *node.run * other->work)
      ++*node.errors;
  // What the last call left, if it was of this task in this run.
  static thread_local struct {
    Node *node = nullptr;
    int64_t run = 0, kept = 0;
  } last;
  if (*args->kept != (last.node == &node && last.run == *node.run ? last.kept : -1))
    ++*node.errors;
  last = {&node, *node.run, args->end};
  *args->kept = args->end;
  node.value += args->end - args->begin;
  return DMX_KERNEL_OK;
}

} // namespace

/// More threads than CPUs, so that workers are late, and graphs of few and of many tasks in turn.
TEST(CpuDevice, RandomGraphsRunInOrder) {
  std::mt19937 random(3);
  for (uint32_t threads : {2, 4, 9}) {
    auto cpu = device(threads);
    for (int graph = 0; graph < 12; ++graph) {
      std::atomic<int64_t> run{0};
      std::atomic<int> errors{0};
      size_t count = 1 + random() % 40;
      std::vector<Node> nodes(count);
      std::vector<void *> buffers(count);
      Tasks tasks(nullptr);
      for (size_t i = 0; i < count; ++i) {
        std::vector<uint32_t> after;
        for (uint32_t j = 0; j < i; ++j)
          if (random() % i < 2)
            after.push_back(j), nodes[i].before.push_back(&nodes[j]);
        nodes[i].work = 1 + random() % 12;
        nodes[i].run = &run;
        nodes[i].errors = &errors;
        buffers[i] = &nodes[i];
        tasks.add(checkNode, nodes[i].work, std::move(after), random() % 2 ? 1e8 : 100);
      }
      for (size_t i = 0; i < count; ++i)
        tasks.list[i].buffers = &buffers[i];
      tasks.prepare(*cpu);
      for (int i = 0; i < 150; ++i) {
        ++run;
        cpu->enqueue(0);
        ASSERT_EQ(cpu->fence().code, 0);
        for (Node &node : nodes)
          ASSERT_EQ(node.value, run * node.work) << "run " << run << " on " << threads << " threads";
      }
      ASSERT_EQ(errors, 0);
    }
  }
}
