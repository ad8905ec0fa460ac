//===- GuardTest.cpp - kernels beside inaccessible pages ------------------===//

#include "../RuntimeTest.h"
#include "runtime/devices/common/guard/GuardMemory.h"
#include "runtime/devices/common/guard/GuardedCall.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <thread>

using namespace dmxtest;
using dmxrt::GuardedBytes;
using dmxrt::GuardPattern;
using dmxrt::GuardSide;

namespace {

SessionPtr guardedSession(const OpenBundle &open, const char *guard, uint32_t threads = 1) {
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.device_options = &guard;
  options.device_option_count = guard ? 1 : 0;
  return makeSession(open.bundle.get(), threads, options);
}

/// f32 y = x + c over n elements by `kernel`, with x and y in arenas or bound to the caller.
TestBundle sumModel(const std::string &kernel, int64_t n, bool bound, Json more = Json::object()) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {n}), y = builder.output("y", "f32", {n});
  int c = builder.constant(std::string(static_cast<size_t>(4 * n), '\0'), "f32", {n});
  if (bound) {
    builder.dispatch(kernel, {x, c, y}, 1, n, {}, more);
    return builder.finish();
  }
  int a = builder.arena(4 * n, "f32", {n}), b = builder.arena(4 * n, "f32", {n});
  builder.copy(x, a, 4 * n);
  builder.dispatch(kernel, {a, c, b}, 1, n, {0}, more);
  builder.copy(b, y, 4 * n, {1});
  return builder.finish();
}

/// The sentence of a run of a sumModel, "" when it went well and gave x.
std::string sum(const OpenBundle &open, const char *guard, int64_t n, uint32_t threads = 1) {
  SessionPtr session = guardedSession(open, guard, threads);
  auto x = iota<float>(static_cast<size_t>(n), 1);
  std::vector<float> y(x.size(), -1);
  bindVector(session.get(), DMX_INPUT, 0, x, {n});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {n});
  for (int run = 0; run < 2; ++run) { // a session goes on after a fault
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status = dmx_session_run(session.get(), &error);
    EXPECT_TRUE(status == DMX_OK || status == DMX_STATUS_KERNEL) << error.message;
    if (status != DMX_OK && run)
      return error.message;
    EXPECT_TRUE(status != DMX_OK || y == x);
  }
  return "";
}

} // namespace

TEST(Guard, RightKernelsRun) {
  for (bool bound : {false, true})
    for (int64_t n : {1, 3, 16, 1000, 4096, 5000}) {
      OpenBundle open(sumModel("add", n, bound));
      ASSERT_EQ(open.status, DMX_OK) << open.error.message;
      for (const char *guard : {"cpu.guard=end", "guard=start"})
        for (uint32_t threads : {1u, 2u, 5u})
          EXPECT_EQ(sum(open, guard, n, threads), "") << guard << " " << n;
    }
}

/// One element too many, read and written: unseen without guards.
TEST(Guard, OneElementMoreIsFound) {
  for (bool bound : {false, true})
    for (int64_t n : {1, 3, 17, 1000}) { // sizes that leave room in slots of 64 bytes
      OpenBundle open(sumModel("add_one_more", n, bound));
      ASSERT_EQ(open.status, DMX_OK) << open.error.message;
      if (!bound) {
        EXPECT_EQ(sum(open, nullptr, n), "");
      }
      for (uint32_t threads : {1u, 2u}) {
        std::string end = sum(open, "guard=end", n, threads), start = sum(open, "guard=start", n, threads);
        std::string bytes = std::to_string(4 * n);
        EXPECT_NE(end.find("guard memory: it reads byte " + bytes + " of operand"), std::string::npos) << end;
        EXPECT_NE(end.find("node_add_one_more"), std::string::npos) << end;
        EXPECT_NE(end.find("kernel 'add_one_more', code 1000"), std::string::npos) << end;
        EXPECT_NE(start.find("it wrote byte " + bytes + " of operand 2, a result of " + bytes), std::string::npos)
            << start;
      }
    }
}

TEST(Guard, FindsEachKindOfAccess) {
  struct Access {
    int64_t base, offset;
    bool write;
    const char *end, *start; // what the two sides say; "" when they cannot see it
  };
  constexpr int64_t n = 10, bytes = 4 * n;
  const Access accesses[] = {
      {0, bytes, false, "reads byte 40 of operand 0, which it may only read, of 40 bytes", ""},
      {0, -1, false, "", "reads byte -1 of operand 0"},
      {0, -4, true, "writes byte -4 of operand 0", "writes byte -4 of operand 0"},
      {0, 8, true, "writes byte 8 of operand 0, which it may only read", "writes byte 8 of operand 0"},
      {1, bytes + 100, false, "reads byte 140 of operand 1", ""},
      {1, bytes + 5000, false, "reads byte 5040 of operand 1", "reads byte 5040 of operand 1"},
      {1, 0, true, "writes byte 0 of operand 1", "writes byte 0 of operand 1"},
      {2, bytes, true, "writes byte 40 of operand 2, a result of 40 bytes", "wrote byte 40 of operand 2"},
      {2, -1, true, "wrote byte -1 of operand 2", "writes byte -1 of operand 2"},
      {-1, 100, true, "wrote byte 100 of its scratch of 100 bytes", "wrote byte 100 of its scratch of 100 bytes"},
      {-1, 128, false, "reads byte 128 of its scratch", ""},
      {-1, -1, false, "", "reads byte -1 of its scratch"},
      {-2, 24, false, "reads byte 24 of its dims of 24 bytes", ""},
      {-2, 0, true, "writes byte 0 of its dims", "writes byte 0 of its dims"},
      {-3, 24, false, "reads byte 24 of its operands' addresses of 24 bytes", ""},
      {0, -(int64_t(1) << 40), true, "writes address 0x", "writes address 0x"},
      {0, int64_t(1) << 62, false, "address 0, far from its operands", "address 0, far from its operands"},
  };
  for (const Access &access : accesses)
    for (bool bound : {false, true}) {
      OpenBundle open(sumModel("add_astray", n, bound,
                               {{"dims", {access.base, access.offset, int64_t(access.write)}}, {"scratch", 100}}));
      ASSERT_EQ(open.status, DMX_OK) << open.error.message;
      for (auto [guard, want] : {std::pair{"guard=end", access.end}, {"guard=start", access.start}}) {
        std::string got = sum(open, guard, n);
        EXPECT_TRUE(*want ? got.find(want) != std::string::npos : got.empty())
            << guard << " " << access.base << " " << access.offset << ": '" << got << "', want '" << want << "'";
      }
    }
}

TEST(Guard, EmptyOperandsAreNothingButGuard) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {0}), c = builder.constant(std::string(4, '\0'), "f32", {1});
  int y = builder.output("y", "f32", {1});
  builder.dispatch("add", {x, c, y}, 1, 1);
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  for (const char *guard : {"guard=end", "guard=start"}) {
    SessionPtr session = guardedSession(open, guard);
    std::vector<float> in(1), out(1);
    bindVector(session.get(), DMX_INPUT, 0, in, {0});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {1});
    dmx_error error = DMX_ERROR_INIT;
    EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
    EXPECT_NE(std::string(error.message).find("reads byte 0 of operand 0, which it may only read, of 0 bytes"),
              std::string::npos)
        << error.message;
  }
}

/// Operands that share bytes with a result stay where they are to each other: whole, and a part.
TEST(Guard, InPlaceStaysInPlace) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {8}), y = builder.output("y", "f32", {8});
  int room = builder.arena(32, "f32", {8}), part = builder.alias(room, 16, 16, "f32", {4});
  builder.copy(x, room, 32);
  builder.dispatch("add", {room, room, room}, 1, 8, {0}); // 2 x
  builder.dispatch("add", {part, part, room}, 1, 4, {1}); // the first half: 4 times the last half's
  builder.copy(room, y, 32, {2});
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  for (const char *guard : {"guard=end", "guard=start"}) {
    SessionPtr session = guardedSession(open, guard);
    std::vector<float> in = iota<float>(8), out(8);
    bindVector(session.get(), DMX_INPUT, 0, in, {8});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {8});
    dmx_error error = DMX_ERROR_INIT;
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(out, (std::vector<float>{16, 20, 24, 28, 8, 10, 12, 14}));
  }
}

TEST(Guard, StatesKeepTheirBytes) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {8}), state = builder.state(32, "f32", {8}), y = builder.output("y", "f32", {8});
  builder.dispatch("accumulate", {x, state, y}, 2, 8);
  OpenBundle open(builder.finish());
  for (uint32_t threads : {1u, 2u}) {
    SessionPtr session = guardedSession(open, "guard=end", threads);
    std::vector<float> in(8, 1.0f), out(8);
    bindVector(session.get(), DMX_INPUT, 0, in, {8});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {8});
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
    EXPECT_EQ(out, std::vector<float>(8, 3.0f));
  }
}

/// A kernel may need the alignment that its ABI promises.
TEST(Guard, AlignedKernelsRun) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {5}), y = builder.output("y", "f32", {5});
  int a = builder.arena(20, "f32", {5}), b = builder.arena(20, "f32", {5});
  builder.copy(x, a, 20);
  builder.dispatch("aligned_copy", {a, b}, 1, 1, {0});
  builder.copy(b, y, 20, {1});
  OpenBundle open(builder.finish());
  for (const char *guard : {"guard=end", "guard=start"}) {
    SessionPtr session = guardedSession(open, guard);
    std::vector<float> in = iota<float>(5, 1), out(5);
    bindVector(session.get(), DMX_INPUT, 0, in, {5});
    bindVector(session.get(), DMX_OUTPUT, 0, out, {5});
    dmx_error error = DMX_ERROR_INIT;
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 4), iota<float>(4, 1));
    EXPECT_NE(out[4], out[4]) << "what no kernel writes stays a NaN";
  }
}

TEST(Guard, ResultsAndScratchStartAsNaNs) {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {1}), y = builder.output("y", "f32", {2});
  builder.dispatch("find_nans", {x, y}, 1, 1, {}, {{"scratch", 64}});
  OpenBundle open(builder.finish());
  SessionPtr session = guardedSession(open, "guard=end");
  std::vector<float> in{5}, out(2);
  bindVector(session.get(), DMX_INPUT, 0, in, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, out, {2});
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
    EXPECT_EQ(out, (std::vector<float>{1, 5}));
  }
}

/// The plan is that of the session's threads; errors of kernels and times are those of other runs.
TEST(Guard, CutsAndReportsAsWithout) {
  ModelBuilder builder;
  int y = builder.output("y", "i64", {1000});
  builder.dispatch("range", {y}, 1, 1000, {}, {{"grain", 100}});
  OpenBundle open(builder.finish());
  SessionPtr session = guardedSession(open, "guard=end", 4);
  std::vector<int64_t> out(1000, -1);
  bindVector(session.get(), DMX_OUTPUT, 0, out, {1000});
  ASSERT_EQ(dmx_session_profile(session.get(), 100, nullptr), DMX_OK);
  ASSERT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  dmx_profile_event events[100];
  uint32_t count = 0;
  ASSERT_EQ(dmx_session_take_events(session.get(), events, 100, &count, nullptr, nullptr), DMX_OK);
  EXPECT_EQ(count, 4u);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], static_cast<int64_t>(i) / 250 * 250);
  ModelBuilder failing;
  int x = failing.input("x", "i64", {1}), z = failing.output("z", "i64", {1});
  failing.dispatch("fail_at", {x, z}, 1, 1, {}, {{"dims", {7}}});
  OpenBundle other(failing.finish());
  session = guardedSession(other, "guard=end");
  std::vector<int64_t> in{7}, one{0};
  bindVector(session.get(), DMX_INPUT, 0, in, {1});
  bindVector(session.get(), DMX_OUTPUT, 0, one, {1});
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  EXPECT_NE(std::string(error.message).find("an index lies outside of its axis"), std::string::npos) << error.message;
}

TEST(Guard, OtherValuesAreRefused) {
  OpenBundle open(addModel(4));
  for (const char *bad : {"guard=middle", "guard=", "cpu.guard=start|end", "guard"}) {
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.device_options = &bad;
    options.device_option_count = 1;
    dmx_error error = DMX_ERROR_INIT;
    dmx_session *session = nullptr;
    EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &session, &error), DMX_STATUS_INVALID_ARGUMENT) << bad;
    EXPECT_NE(std::string(error.message).find("cpu.guard=start|end"), std::string::npos) << error.message;
  }
}

TEST(GuardMemory, FindsChangedBytes) {
  for (GuardSide side : {GuardSide::Start, GuardSide::End})
    for (uint64_t size : {0, 1, 60, 4095, 4096, 10000}) {
      GuardedBytes memory(size, 64, side, GuardPattern::Result);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
      for (uint64_t i = 0; i < size; ++i)
        memory.data()[i] = std::byte(0);
      EXPECT_FALSE(memory.strayWrite());
      uint64_t slack = side == GuardSide::End ? (64 - size % 64) % 64 : (4096 - size % 4096) % 4096;
      for (int64_t offset : {int64_t(size), int64_t(size + slack) - 1})
        if (slack) {
          memory.data()[offset] ^= std::byte(1);
          EXPECT_EQ(memory.strayWrite(), offset);
          memory.data()[offset] ^= std::byte(1);
        }
      if (side == GuardSide::End && (size + slack) % 4096) {
        memory.data()[-1] ^= std::byte(1);
        EXPECT_EQ(memory.strayWrite(), -1);
      }
    }
}

TEST(GuardMemory, PatternIsNoNumber) {
  for (GuardPattern pattern : {GuardPattern::Input, GuardPattern::Result}) {
    GuardedBytes memory(64, 8, GuardSide::End, pattern);
    float single[16];
    double wide[8];
    std::memcpy(single, memory.data(), 64);
    std::memcpy(wide, memory.data(), 64);
    for (float value : single)
      EXPECT_NE(value, value);
    for (double value : wide)
      EXPECT_NE(value, value);
  }
}

namespace {

std::atomic<int> phase{0};
sigjmp_buf back;
std::atomic<int> passedOn{0};

int32_t waitForOther(const dmx_kernel_args *args) {
  phase = 1;
  while (phase != 2)
    std::this_thread::yield();
  return *static_cast<volatile int32_t *>(args->buffers[0]);
}

void onSignal(int) {
  ++passedOn;
  siglongjmp(back, 1);
}

} // namespace

/// While a guarded kernel runs, a fault of another thread belongs to the program's own handler; afterwards all do.
TEST(GuardedCall, LeavesOtherFaultsToOthers) {
  struct sigaction own{}, before{}, after{};
  own.sa_handler = onSignal;
  sigaction(SIGSEGV, &own, &before);
  std::thread other([] {
    while (phase != 1)
      std::this_thread::yield();
    GuardedBytes nothing(0, 1, GuardSide::End, GuardPattern::Input);
    if (sigsetjmp(back, 1) == 0)
      *reinterpret_cast<volatile char *>(nothing.data()) = 1;
    phase = 2;
  });
  GuardedBytes operand(0, 1, GuardSide::End, GuardPattern::Input);
  void *buffers[] = {operand.data()};
  dmx_kernel_args args{buffers, nullptr, 0, 1, nullptr, nullptr, nullptr};
  dmxrt::GuardFault fault;
  EXPECT_FALSE(callGuarded(waitForOther, args, fault));
  other.join();
  EXPECT_EQ(passedOn, 1);
  EXPECT_EQ(fault.address, reinterpret_cast<uintptr_t>(operand.data()));
  EXPECT_FALSE(fault.write);
  sigaction(SIGSEGV, &before, &after);
  EXPECT_EQ(after.sa_handler, onSignal);
}
