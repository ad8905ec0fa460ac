//===- CudaPlanTest.cpp - what is copied between host and GPU -----------------===//

#include "runtime/devices/cuda/driver/ByteRanges.h"
#include "runtime/devices/cuda/driver/GpuPlan.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxrt;
using namespace dmxrt::cuda;

namespace {

using Ranges = std::vector<ByteRanges::Range>;

TEST(CudaPlan, RangesOfBytes) {
  ByteRanges set;
  EXPECT_EQ(set.add(10, 20), (Ranges{{10, 20}}));
  EXPECT_EQ(set.add(12, 18), Ranges());
  EXPECT_EQ(set.add(20, 30), (Ranges{{20, 30}})); // touches
  EXPECT_EQ(set.add(40, 50), (Ranges{{40, 50}}));
  EXPECT_EQ(set.add(0, 60), (Ranges{{0, 10}, {30, 40}, {50, 60}}));
  EXPECT_EQ(set.add(0, 60), Ranges());
  EXPECT_EQ(set.add(7, 7), Ranges());
}

// Against a flag a byte.
TEST(CudaPlan, RangesOfBytesAreThoseOfFlags) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    ByteRanges set;
    std::vector<bool> flags(100);
    for (int i = 0; i < 20; ++i) {
      uint64_t begin = random() % 100, end = begin + random() % (101 - begin);
      std::vector<bool> fresh(100);
      for (auto [from, to] : set.add(begin, end)) {
        ASSERT_LT(from, to);
        for (uint64_t at = from; at < to; ++at) {
          ASSERT_FALSE(fresh[at]);
          fresh[at] = true;
        }
      }
      for (uint64_t at = 0; at < 100; ++at) {
        bool wanted = at >= begin && at < end && !flags[at];
        ASSERT_EQ(fresh[at], wanted) << "trial " << trial << " byte " << at;
        flags[at] = flags[at] || wanted;
      }
    }
  }
}

/// A list of tasks over one block of each kind, written out.
struct TaskList {
  std::byte host[4096] = {};
  KernelLaunch kernel;
  struct Own {
    std::vector<void *> buffers;
    std::vector<uint64_t> bytes;
    std::vector<BufferHome> homes;
  };
  std::vector<std::unique_ptr<Own>> owned;
  std::vector<DeviceTask> tasks;
  int arena = 0, border = 0, state = 0;

  struct Buffer {
    BufferHome::Kind kind;
    uint64_t offset, bytes;
    bool isShared = false;
  };
  void add(std::vector<Buffer> buffers, uint32_t written, bool updates = false) {
    Own &own = *owned.emplace_back(std::make_unique<Own>());
    for (const Buffer &each : buffers) {
      const void *block = each.kind == BufferHome::Arena    ? static_cast<const void *>(&arena)
                          : each.kind == BufferHome::Border ? static_cast<const void *>(&border)
                          : each.kind == BufferHome::State  ? static_cast<const void *>(&state)
                                                            : host;
      own.buffers.push_back(host + each.offset);
      own.bytes.push_back(each.bytes);
      own.homes.push_back({each.kind, each.isShared, block, 1024, each.offset});
    }
    DeviceTask &task = tasks.emplace_back();
    task.kernel = &kernel;
    task.buffers = own.buffers.data();
    task.bufferBytes = own.bytes;
    task.homes = own.homes;
    task.written = written;
    task.updates = updates;
  }
};

TEST(CudaPlan, OnlyWhatOthersUseIsCopied) {
  TaskList list;
  // Task 0: reads an input, a constant and a shared buffer; writes a private one.
  list.add({{BufferHome::Border, 0, 64},
            {BufferHome::Constant, 0, 64},
            {BufferHome::Arena, 0, 64, true},
            {BufferHome::Arena, 64, 64}},
           1);
  // Task 1: reads both again; writes a shared one.
  list.add({{BufferHome::Arena, 64, 64}, {BufferHome::Arena, 0, 64, true}, {BufferHome::Arena, 128, 64, true}}, 1);
  // Task 2: reads what task 1 wrote and more behind it; writes an output, and again a part of what task 1 wrote.
  list.add({{BufferHome::Arena, 128, 96, true}, {BufferHome::Border, 512, 128}, {BufferHome::Arena, 160, 32, true}}, 2);
  BlockNeeds needs;
  SegmentPlan plan = planSegment(list.tasks, {0, 3}, needs);
  EXPECT_EQ(plan.toGpu, (std::vector<BorderCopy>{{0, 0, 0, 64}, {0, 2, 0, 64}, {2, 0, 64, 32}}));
  EXPECT_EQ(plan.toHost, (std::vector<BorderCopy>{{1, 2, 0, 64}, {2, 1, 0, 128}}));
  ASSERT_EQ(needs.size(), 3u);
  EXPECT_EQ(needs[&list.arena].bytes, 1024u);
  EXPECT_EQ(needs[list.host].host, list.host);
  // In segments of their own, each begins with what the host has.
  plan = planSegment(list.tasks, {2, 3}, needs);
  EXPECT_EQ(plan.toGpu, (std::vector<BorderCopy>{{2, 0, 0, 96}}));
}

TEST(CudaPlan, StatesStayAndWhatIsUpdatedIsReadFirst) {
  TaskList list;
  list.add({{BufferHome::Border, 0, 64}, {BufferHome::State, 0, 64}, {BufferHome::Arena, 64, 64, true}}, 2, true);
  BlockNeeds needs;
  SegmentPlan plan = planSegment(list.tasks, {0, 1}, needs);
  EXPECT_EQ(plan.toGpu, (std::vector<BorderCopy>{{0, 0, 0, 64}, {0, 2, 0, 64}}));
  EXPECT_EQ(plan.toHost, (std::vector<BorderCopy>{{0, 2, 0, 64}}));
  EXPECT_EQ(needs[&list.state].kind, BufferHome::State);
}

TEST(CudaPlan, CopiesTouchWhatTheyCopy) {
  TaskList list;
  list.add({{BufferHome::Border, 0, 256}, {BufferHome::Border, 512, 256}}, 0);
  DeviceTask &copy = list.tasks[0];
  copy.kernel = nullptr;
  copy.work = 32;
  copy.srcOffset = 16;
  copy.dstOffset = 64;
  BlockNeeds needs;
  SegmentPlan plan = planSegment(list.tasks, {0, 1}, needs);
  EXPECT_EQ(plan.toGpu, (std::vector<BorderCopy>{{0, 0, 16, 32}}));
  EXPECT_EQ(plan.toHost, (std::vector<BorderCopy>{{0, 1, 64, 32}}));
}

} // namespace
