//===- ShadowTest.cpp - the shadow against a model of single bytes -===//

#include "runtime/devices/common/Shadow.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

using namespace dmxrt::sim;

namespace {

constexpr ByteKind kHalf = 7, kOther = 8;

/// Per byte: kind, last writer, and everyone who has read since.
class ByteModel {
public:
  explicit ByteModel(size_t size) : bytes(size) {}

  /// The first problem's kind in order of addresses, or nothing.
  std::optional<Problem::Why> read(size_t begin, size_t size, ByteKind kind, const Actor &actor) {
    for (size_t at = begin; at < begin + size; ++at) {
      Byte &byte = bytes[at];
      if (!actor.after(byte.writer))
        return Problem::Race;
      if (byte.kind == kUndefined)
        return Problem::Undefined;
      if (kind != kAnyKind && kind != byte.kind)
        return Problem::OtherKind;
      byte.readers.push_back(actor.epoch);
    }
    return std::nullopt;
  }
  std::optional<Problem::Why> write(size_t begin, size_t size, ByteKind kind, const Actor &actor) {
    for (size_t at = begin; at < begin + size; ++at) {
      bool ordered = actor.after(bytes[at].writer);
      for (const Epoch &reader : bytes[at].readers)
        ordered &= actor.after(reader);
      if (!ordered)
        return Problem::Race;
    }
    for (size_t at = begin; at < begin + size; ++at)
      bytes[at] = {kind, actor.epoch, {}};
    return std::nullopt;
  }
  ByteKind kind(size_t at) const { return bytes[at].kind; }

private:
  struct Byte {
    ByteKind kind = kUndefined;
    Epoch writer;
    std::vector<Epoch> readers;
  };
  std::vector<Byte> bytes;
};

/// Runs of `threads` that take turns; the outcomes' counts, -1: no fault.
std::map<int, int> compare(size_t threads, uint32_t seeds) {
  constexpr size_t kBytes = 3 * 4096;
  std::map<int, int> outcomes;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
    Shadow shadow;
    shadow.resize(kBytes);
    ByteModel model(kBytes);
    std::vector<VectorClock> clocks(threads, VectorClock(threads));
    for (size_t i = 0; i < threads; ++i)
      clocks[i][static_cast<uint16_t>(i)] = 1;
    if (seed % 4) { // the host wrote everything before
      Problem none;
      shadow.write(0, kBytes, kHalf, Actor(), none);
      (void)model.write(0, kBytes, kHalf, Actor());
    }
    bool faulted = false;
    for (int step = 0; step < 200; ++step) {
      auto queue = static_cast<uint16_t>(pick(threads));
      if (pick(4)) { // a token from another queue
        auto from = static_cast<uint16_t>(pick(threads));
        clocks[queue].join(clocks[from]);
        ++clocks[from][from];
        continue;
      }
      Actor actor{{clocks[queue].of(queue), static_cast<uint32_t>(step), queue}, &clocks[queue]};
      size_t begin = pick(6) * 2040 + pick(40), size = 1 + pick(pick(4) ? 64 : 5000);
      size = std::min(size, kBytes - begin);
      ByteKind kind = pick(8) ? kHalf : kOther;
      bool writes = pick(2);
      kind = writes ? (pick(12) ? kind : kUndefined) : (pick(3) ? kind : kAnyKind);
      Problem problem;
      bool good =
          writes ? shadow.write(begin, size, kind, actor, problem) : shadow.read(begin, size, kind, actor, problem);
      std::optional<Problem::Why> expected =
          writes ? model.write(begin, size, kind, actor) : model.read(begin, size, kind, actor);
      EXPECT_EQ(good, !expected) << "seed " << seed << ", step " << step;
      ++outcomes[expected ? static_cast<int>(*expected) : -1];
      if (!good) {
        EXPECT_EQ(problem.why, *expected) << "seed " << seed << ", step " << step;
        faulted = true;
        break; // a fault ends a program, possibly in the middle of a range
      }
    }
    if (faulted)
      continue;
    std::vector<ByteKind> kinds;
    shadow.kinds(0, kBytes, [&](uint64_t begin, uint64_t size, ByteKind kind) {
      EXPECT_GE(begin, kinds.size());
      kinds.resize(begin, kUndefined);
      kinds.insert(kinds.end(), size, kind);
    });
    kinds.resize(kBytes, kUndefined);
    for (size_t at = 0; at < kBytes; ++at)
      EXPECT_EQ(kinds[at], model.kind(at)) << at;
  }
  return outcomes;
}

} // namespace

TEST(Shadow, AgreesWithTheModelOfSingleBytes) {
  std::map<int, int> outcomes = compare(4, 3000);
  EXPECT_GT(outcomes[-1], 3000);
  EXPECT_GT(outcomes[Problem::Race], 300);
  EXPECT_GT(outcomes[Problem::Undefined], 300);
  EXPECT_GT(outcomes[Problem::OtherKind], 30);
}

TEST(Shadow, HasAsManyThreadsAsTheDevice) {
  std::map<int, int> outcomes = compare(500, 300);
  EXPECT_GT(outcomes[Problem::Race], 30);
  EXPECT_GT(outcomes[-1], 100);
}

TEST(Shadow, OrdersTheHostBeforeClocksOfAnyLength) {
  Shadow shadow;
  shadow.resize(64);
  Problem problem;
  ASSERT_TRUE(shadow.write(0, 64, kHalf, Actor(), problem));
  VectorClock none, two(2);
  EXPECT_TRUE(shadow.read(0, 64, kHalf, Actor{{1, 0, 0}, &none}, problem));
  EXPECT_FALSE(shadow.write(0, 64, kHalf, Actor{{1, 0, 1}, &two}, problem)) << "nothing orders thread 0's read";
  EXPECT_EQ(problem.why, Problem::Race);
  EXPECT_EQ(problem.other.thread, 0);
}
