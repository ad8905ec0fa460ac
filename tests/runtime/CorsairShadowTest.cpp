//===- CorsairShadowTest.cpp - the shadow against a model of single bytes -===//

#include "devices/corsair/Shadow.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

using namespace dmxrt::corsair;

namespace {

/// Per byte: kind, last writer, and everyone who has read since.
class ByteModel {
public:
  explicit ByteModel(size_t size) : bytes(size) {}

  /// The first problem's kind in order of addresses, or nothing.
  std::optional<FaultKind> read(size_t begin, size_t size, ElemKind kind, const Actor &actor) {
    for (size_t at = begin; at < begin + size; ++at) {
      Byte &byte = bytes[at];
      if (!actor.after(byte.writer))
        return FaultKind::Race;
      if (byte.kind == Shadow::kUndefined)
        return FaultKind::PoisonRead;
      if (kind != ElemKind::Raw && kind != byte.kind)
        return FaultKind::FormatMismatch;
      byte.readers.push_back(actor.epoch);
    }
    return std::nullopt;
  }
  std::optional<FaultKind> write(size_t begin, size_t size, ElemKind kind, const Actor &actor) {
    for (size_t at = begin; at < begin + size; ++at) {
      bool ordered = actor.after(bytes[at].writer);
      for (const Epoch &reader : bytes[at].readers)
        ordered &= actor.after(reader);
      if (!ordered)
        return FaultKind::Race;
    }
    for (size_t at = begin; at < begin + size; ++at)
      bytes[at] = {kind, actor.epoch, {}};
    return std::nullopt;
  }
  ElemKind kind(size_t at) const { return bytes[at].kind; }

private:
  struct Byte {
    ElemKind kind = Shadow::kUndefined;
    Epoch writer;
    std::vector<Epoch> readers;
  };
  std::vector<Byte> bytes;
};

} // namespace

TEST(CorsairShadow, AgreesWithTheModelOfSingleBytes) {
  constexpr size_t kBytes = 3 * 4096;
  constexpr int kQueues = 4;
  std::map<int, int> outcomes; // -1: no fault
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
    Shadow shadow;
    shadow.resize(kBytes);
    ByteModel model(kBytes);
    std::array<VectorClock, kQueues> clocks{};
    for (int i = 0; i < kQueues; ++i)
      clocks[i][i] = 1;
    if (seed % 4) { // the host wrote everything before
      Problem none;
      shadow.write(0, kBytes, ElemKind::F16, Actor(), none);
      (void)model.write(0, kBytes, ElemKind::F16, Actor());
    }
    bool faulted = false;
    for (int step = 0; step < 200; ++step) {
      size_t queue = pick(kQueues);
      if (pick(4)) { // a token from another queue
        size_t from = pick(kQueues);
        join(clocks[queue], clocks[from]);
        ++clocks[from][from];
        continue;
      }
      Actor actor{{clocks[queue][queue], static_cast<uint32_t>(step), static_cast<uint16_t>(queue)}, &clocks[queue]};
      size_t begin = pick(6) * 2040 + pick(40), size = 1 + pick(pick(4) ? 64 : 5000);
      size = std::min(size, kBytes - begin);
      auto kind = static_cast<ElemKind>(pick(8) ? 7 : 8);
      bool writes = pick(2);
      kind = writes ? (pick(12) ? kind : Shadow::kUndefined) : (pick(3) ? kind : ElemKind::Raw);
      Problem problem;
      bool good =
          writes ? shadow.write(begin, size, kind, actor, problem) : shadow.read(begin, size, kind, actor, problem);
      std::optional<FaultKind> expected =
          writes ? model.write(begin, size, kind, actor) : model.read(begin, size, kind, actor);
      ASSERT_EQ(good, !expected) << "seed " << seed << ", step " << step;
      ++outcomes[expected ? static_cast<int>(*expected) : -1];
      if (!good) {
        ASSERT_EQ(problem.kind, *expected) << "seed " << seed << ", step " << step;
        faulted = true;
        break; // a fault ends a program, possibly in the middle of a range
      }
    }
    if (faulted)
      continue;
    std::vector<ElemKind> kinds;
    shadow.kinds(0, kBytes, [&](uint64_t begin, uint64_t size, ElemKind kind) {
      EXPECT_GE(begin, kinds.size());
      kinds.resize(begin, Shadow::kUndefined);
      kinds.insert(kinds.end(), size, kind);
    });
    kinds.resize(kBytes, Shadow::kUndefined);
    for (size_t at = 0; at < kBytes; ++at)
      ASSERT_EQ(kinds[at], model.kind(at)) << at;
  }
  EXPECT_GT(outcomes[-1], 3000);
  EXPECT_GT(outcomes[static_cast<int>(FaultKind::Race)], 300);
  EXPECT_GT(outcomes[static_cast<int>(FaultKind::PoisonRead)], 300);
  EXPECT_GT(outcomes[static_cast<int>(FaultKind::FormatMismatch)], 30);
}
