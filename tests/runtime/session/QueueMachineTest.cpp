//===- QueueMachineTest.cpp - programs of queues --------------------------===//
//
// A machine with two memories and an engine that adds one to bytes. What programs give is written out by hand.
//
//===----------------------------------------------------------------------===//
#include "runtime/devices/common/QueueDevice.h"

#include <gtest/gtest.h>

using namespace dmxrt;
using namespace dmx::queues;

namespace {

constexpr Memory kMemories[] = {{"FAR", 256, 4}, {"NEAR", 64, 8}};
constexpr std::string_view kTasks[] = {"toy.increment"};
constexpr Machine kMachine{"toy", kMemories, kTasks, "i8", 1e9, 1e9};

struct Incrementer final : sim::Engines {
  std::optional<sim::EngineWork> run(size_t, sim::EngineTask &on) const override {
    const std::byte *from = on.bytes(0, 8, false);
    std::byte *to = from ? on.bytes(1, 8, true) : nullptr;
    for (int i = 0; to && i < 8; ++i)
      to[i] = static_cast<std::byte>(std::to_integer<int>(from[i]) + on.number());
    return to ? std::optional(sim::EngineWork{10, 8}) : std::nullopt;
  }
};

Line line(Word word, std::initializer_list<int64_t> numbers = {}, const char *name = "") {
  Line made{word};
  std::copy(numbers.begin(), numbers.end(), made.n);
  std::snprintf(made.name, sizeof made.name, "%s", name);
  return made;
}

/// A place: base, step of the only loop.
Line at(Line made, std::initializer_list<std::pair<int64_t, int64_t>> places) {
  size_t i = 0;
  for (auto [base, step] : places) {
    made.place[i].base = base;
    made.place[i++].steps[0] = step;
  }
  return made;
}

Line walk(Line made) {
  made.walk.bytes = 8;
  return made;
}

Line argument(int64_t output, int64_t buffer, const char *name) {
  Line made = line(Word::Argument, {output, buffer}, name);
  made.walk = {4, {1, 1, 4}, {0, 0, 4}, {0, 0, 4}};
  return made;
}

/// 16 bytes in two turns: to NEAR, one more, by a channel back to FAR.
std::vector<Line> program() {
  return {line(Word::Kernel, {}, "k"),
          at(line(Word::Buffer, {0, 16}, "x"), {{0, 0}}),
          at(line(Word::Buffer, {0, 16}, "y"), {{16, 0}}),
          argument(0, 0, "x"),
          argument(1, 1, "y"),
          line(Word::Token, {0}),
          line(Word::Token, {1}),
          line(Word::Channel, {1}),
          line(Word::Queue),
          line(Word::Loop, {2}),
          line(Word::Group, {}, "load"),
          line(Word::Wait, {1, 1}),
          walk(at(line(Word::Copy, {0, 1}), {{0, 8}, {0, 0}})),
          line(Word::Signal, {0, 1}),
          line(Word::End),
          line(Word::Queue),
          line(Word::Loop, {2}),
          line(Word::Group, {}, "increment"),
          line(Word::Wait, {0, 1}),
          at(line(Word::Engine, {0, 1, 1}), {{0, 0}, {8, 0}, {0, 0}, {1, 0}}),
          walk(at(line(Word::Put, {0, 1}), {{8, 0}})),
          line(Word::Signal, {1, 1}),
          line(Word::End),
          line(Word::Queue),
          line(Word::Loop, {2}),
          line(Word::Group, {}, "store"),
          walk(at(line(Word::Get, {0, 0}), {{16, 8}})),
          line(Word::End)};
}

Line &find(std::vector<Line> &lines, Word word, size_t number = 0) {
  for (Line &each : lines)
    if (each.word == word && number-- == 0)
      return each;
  throw std::runtime_error("no such line");
}

struct Result {
  std::string error, fault;
  std::vector<int> y;
  sim::QueueCost cost;
};

Result run(const std::vector<Line> &lines) {
  Result out;
  auto *bytes = reinterpret_cast<const std::byte *>(lines.data());
  std::vector<Program> kernels = read({bytes, lines.size() * sizeof(Line)}, kMachine, out.error);
  if (kernels.empty())
    return out;
  Incrementer engines;
  sim::QueueMachine machine(kMachine, engines, kernels[0]);
  std::vector<std::byte> x(16), y(16);
  for (int i = 0; i < 16; ++i)
    x[i] = static_cast<std::byte>(10 * i);
  machine.write(kernels[0][3], x.data());
  machine.run();
  if (machine.fault.empty())
    machine.read(kernels[0][4], y.data());
  for (std::byte each : y)
    out.y.push_back(std::to_integer<int>(each));
  out.fault = machine.fault;
  out.cost = machine.cost();
  return out;
}

TEST(QueueMachine, DoesWhatItsProgramSays) {
  Result result = run(program());
  EXPECT_EQ(result.error + result.fault, "");
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(result.y[i], (10 * i + 1) % 256) << i;
  // Each turn: 8 bytes at 4 a clock, 10 clocks, 8 bytes at 8, 8 bytes at 4; the engine gives NEAR back after its put.
  EXPECT_EQ(result.cost.clocks, 2u * (2 + 10 + 1) + 2);
  EXPECT_EQ(result.cost.readBytes[0], 16u);
  EXPECT_EQ(result.cost.writtenBytes[1], 32u);
  EXPECT_EQ(result.cost.macs, 16u);
}

// What the loops around add to a place is counted before it is done.
TEST(QueueMachine, RefusesPlacesOutOfAllNumbers) {
  const int64_t most = int64_t(1) << 31;
  auto loops = [&](int64_t trips, int64_t step, int count) {
    std::vector<Line> lines = {line(Word::Kernel, {}, "k"), line(Word::Queue)};
    for (int i = 0; i < count; ++i)
      lines.push_back(line(Word::Loop, {trips}));
    lines.push_back(walk(at(line(Word::Copy, {0, 1}), {{0, 0}, {0, 0}})));
    for (int i = 0; i < count; ++i)
      lines.back().place[1].steps[i] = step;
    for (int i = 0; i < count; ++i)
      lines.push_back(line(Word::End));
    std::string error;
    read({reinterpret_cast<const std::byte *>(lines.data()), lines.size() * sizeof(Line)}, kMachine, error);
    return error;
  };
  EXPECT_EQ(loops(most - 1, most, 1), "");
  EXPECT_EQ(loops(most - 1, most, 2), "instruction 4 is not sound");
  EXPECT_EQ(loops(most - 1, -most, 6), "instruction 8 is not sound");
  EXPECT_EQ(loops(1, -most, 6), "");
  EXPECT_EQ(loops(1, 0, 7), "instruction 8 is not sound");
  std::vector<Line> queues(2 + kMostQueues, line(Word::Queue));
  queues[0] = line(Word::Kernel, {}, "k");
  std::string error;
  auto *bytes = reinterpret_cast<const std::byte *>(queues.data());
  read({bytes, (queues.size() - 1) * sizeof(Line)}, kMachine, error);
  EXPECT_EQ(error, "");
  read({bytes, queues.size() * sizeof(Line)}, kMachine, error);
  EXPECT_EQ(error, "instruction 1025 is not sound");
}

TEST(QueueMachine, StopsAtWhatIsNotOrdered) {
  std::vector<Line> early = program();
  early.erase(early.begin() + (&find(early, Word::Wait, 1) - early.data()));
  EXPECT_NE(run(early).fault.find("race: 'increment' of queue 1 "), std::string::npos) << run(early).fault;
  std::vector<Line> late = program();
  late.erase(late.begin() + (&find(late, Word::Wait, 0) - late.data()));
  EXPECT_NE(run(late).fault.find("race: "), std::string::npos) << run(late).fault;
  std::vector<Line> blank = program();
  find(blank, Word::Engine).place[0].base = 32;
  EXPECT_EQ(run(blank).fault, "undefined: 'increment' of queue 1 reads NEAR at 32, which nothing has written");
}

TEST(QueueMachine, NamesWhatNeverEnds) {
  std::vector<Line> lines = program();
  find(lines, Word::Wait, 1).n[1] = 2;
  EXPECT_EQ(run(lines).fault, "deadlock: 'load' of queue 0 waits for ever at '  wait 1 1'");
  lines = program();
  find(lines, Word::Loop, 2).n[0] = 1;
  find(lines, Word::Loop, 0).n[0] = find(lines, Word::Loop, 1).n[0] = 3;
  EXPECT_NE(run(lines).fault.find("deadlock: 'increment' of queue 1 waits for ever at '  put 0 NEAR [8] of 8'"),
            std::string::npos)
      << run(lines).fault;
}

TEST(QueueMachine, KeepsInsideItsMemories) {
  std::vector<Line> lines = program();
  find(lines, Word::Copy).place[1].base = 60;
  EXPECT_EQ(run(lines).fault, "out of bounds: 'load' of queue 0 writes 8 bytes of NEAR at 60, which has 64");
  lines = program();
  find(lines, Word::Copy).place[0].base = -8;
  EXPECT_EQ(run(lines).fault, "out of bounds: 'load' of queue 0 reads 8 bytes of FAR at -8, which has 256");
  lines = program();
  find(lines, Word::Get).walk.bytes = 4;
  EXPECT_EQ(run(lines).fault, "'store' of queue 2 gets 8 bytes where it walks over 4");
  lines = program();
  lines[4].place[0].base = 8; // the argument leaves its buffer: y is not written there
  EXPECT_EQ(run(lines).fault, "undefined: the host reads FAR at 32, which nothing has written");
}

TEST(QueueMachine, RefusesCodeThatIsNotSound) {
  auto refused = [](auto change) {
    std::vector<Line> lines = program();
    change(lines);
    return run(lines).error;
  };
  EXPECT_EQ(refused([](auto &lines) { lines.pop_back(); }), "it ends too early");
  EXPECT_EQ(refused([](auto &lines) { lines.clear(); }), "it ends too early");
  EXPECT_EQ(refused([](auto &lines) { lines.erase(lines.begin()); }), "instruction 0 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[0].word = Word::Count; }), "instruction 0 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[0].name[63] = 'x'; }), "instruction 0 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[1].n[0] = 2; }), "instruction 1 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[3].n[1] = 2; }), "instruction 3 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[3].walk.counts[0] = 0; }), "instruction 3 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[3].walk.counts[0] = INT64_MAX; }), "instruction 3 is not sound");
  EXPECT_EQ(refused([](auto &lines) { lines[3].walk.source[2] = -4; }), "instruction 3 is not sound");
  EXPECT_EQ(refused([](auto &lines) { find(lines, Word::Wait).n[0] = 2; }), "instruction 11 is not sound");
  EXPECT_EQ(refused([](auto &lines) { find(lines, Word::Loop).n[0] = 0; }), "instruction 9 is not sound");
  EXPECT_EQ(refused([](auto &lines) { find(lines, Word::Engine).n[0] = 1; }), "instruction 19 is not sound");
  EXPECT_EQ(refused([](auto &lines) { find(lines, Word::Get).n[0] = 1; }), "instruction 26 is not sound");
  EXPECT_EQ(refused([](auto &lines) { find(lines, Word::Copy).place[0].steps[0] = INT64_MIN; }),
            "instruction 12 is not sound");
  EXPECT_EQ(refused([](auto &lines) { std::swap(lines[5], lines[8]); }), "instruction 6 is not sound");
}

TEST(QueueDevice, RunsTasksAndRefusesBuffersThatAreTooSmall) {
  std::vector<Line> lines = program();
  auto image = sim::loadQueues(kMachine, std::as_bytes(std::span(lines)));
  ASSERT_TRUE(image) << image.error().message;
  static const Incrementer engines;
  static const DeviceKind kind{"toy"};
  std::unique_ptr<Device> device = sim::createQueueDevice(kind, kMachine, engines, {}, {});
  unsigned char x[16] = {1, 2, 3}, y[16] = {};
  void *buffers[] = {x, y};
  uint64_t bytes[] = {16, 16};
  DeviceTask task;
  task.kernel = (*image)->findKernel("k");
  ASSERT_TRUE(task.kernel);
  EXPECT_FALSE((*image)->findKernel("other"));
  task.buffers = buffers;
  task.bufferBytes = bytes;
  const Segment all{0, 1};
  ASSERT_TRUE(device->prepare({&task, 1}, {&all, 1}));
  device->enqueue(0);
  EXPECT_EQ(device->fence().code, 0);
  EXPECT_EQ(std::vector<int>(y, y + 4), (std::vector<int>{2, 3, 4, 1}));
  bytes[1] = 15;
  EXPECT_EQ(device->prepare({&task, 1}, {&all, 1}).error().message,
            "kernel 'k': argument 'y' has 16 bytes, its buffer 15");
  EXPECT_EQ((*image)->checkTask(task).error().message, "kernel 'k': argument 'y' has 16 bytes, its buffer 15");
  task.bufferBytes = {bytes, 1};
  EXPECT_EQ(device->prepare({&task, 1}, {&all, 1}).error().message,
            "kernel 'k' has 2 arguments, its task has 1 buffers");
}

} // namespace
