//===- RandomTest.cpp - whatever is encoded decodes to the same -----------===//
#include "schemas/aie/Cdo.h"
#include "schemas/aie/Control.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmx::aie;
using F = BdField;
using Kind = ControlOp::Kind;

namespace {

constexpr int kCases = 10000;
constexpr TileKind kKinds[] = {TileKind::Shim, TileKind::Memory, TileKind::Core};

class Random {
public:
  int64_t between(int64_t first, int64_t last) { return std::uniform_int_distribution<int64_t>(first, last)(engine); }
  uint32_t below(int64_t count) { return static_cast<uint32_t>(between(0, count - 1)); }
  uint32_t word() { return static_cast<uint32_t>(engine()); }
  TileKind kind() { return kKinds[below(3)]; }
  std::vector<uint32_t> words(int64_t count) {
    std::vector<uint32_t> list(static_cast<size_t>(count));
    for (uint32_t &each : list)
      each = word();
    return list;
  }

private:
  std::mt19937_64 engine{20260501};
};

ControlOp randomOp(Random &random) {
  static constexpr Kind kinds[] = {Kind::Write, Kind::BlockWrite, Kind::MaskWrite, Kind::Preempt,
                                   Kind::Load,  Kind::Sync,       Kind::Patch};
  switch (Kind kind = kinds[random.below(7)]; kind) {
  case Kind::Write:
    return writeOp(random.word(), random.word());
  case Kind::BlockWrite: {
    ControlOp op = blockWriteOp(random.word(), random.words(random.between(1, 40)));
    op.tile = {random.below(256), random.below(256)};
    return op;
  }
  case Kind::MaskWrite:
    return maskWriteOp(random.word(), random.word(), random.word());
  case Kind::Patch:
    return patchOp(random.word(), random.word(), uint64_t(random.word()) << 32 | random.word());
  case Kind::Sync: {
    ControlOp op =
        syncOp({random.below(256), random.below(256)}, static_cast<Direction>(random.below(2)), random.below(256));
    op.columns = random.below(256);
    op.rows = random.below(256);
    return op;
  }
  case Kind::Preempt:
  case Kind::Load: {
    ControlOp op;
    op.kind = kind;
    op.value = random.below(1 << 16);
    if (kind == Kind::Load) {
      op.address = uint64_t(random.word()) << 32 | random.word();
      op.offset = random.word();
    }
    return op;
  }
  }
  return {};
}

template <typename Word> void survives(const Word &word) {
  Word read;
  EXPECT_TRUE(decode(encode(word), read));
  EXPECT_EQ(read, word);
}

} // namespace

TEST(AieRandom, BdsSurvive) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    TileKind kind = random.kind();
    Bd bd;
    for (size_t at = 0; at < kBdFields; ++at)
      if (auto range = rangeOf(kind, static_cast<F>(at)))
        switch (random.below(4)) { // often the ends
        case 0:
          bd[static_cast<F>(at)] = range->first;
          break;
        case 1:
          bd[static_cast<F>(at)] = range->second;
          break;
        default:
          bd[static_cast<F>(at)] = random.between(range->first, range->second);
        }
    std::string error;
    std::vector<uint32_t> words = encode(kind, bd, error);
    ASSERT_EQ(words.size(), kBdWords[static_cast<size_t>(kind)]) << error;
    std::optional<Bd> read = decodeBd(kind, words, error);
    ASSERT_TRUE(read) << error;
    ASSERT_EQ(*read, bd);
    ASSERT_EQ(encode(kind, *read, error), words);
  }
}

TEST(AieRandom, WordsAreBdsOrRefused) {
  Random random;
  int refused = 0;
  for (int i = 0; i < kCases; ++i) {
    TileKind kind = random.kind();
    std::vector<uint32_t> words = random.words(static_cast<int64_t>(kBdWords[static_cast<size_t>(kind)]));
    if (random.below(2))
      for (uint32_t &word : words)
        word &= random.word() & random.word() & random.word();
    std::string error;
    std::optional<Bd> read = decodeBd(kind, words, error);
    refused += !read;
    if (read)
      ASSERT_EQ(encode(kind, *read, error), words) << error;
    else
      ASSERT_NE(error, "");
  }
  EXPECT_GT(refused, kCases / 10);
  EXPECT_LT(refused, kCases);
}

TEST(AieRandom, RoutesSurvive) {
  Random random;
  for (int connected = 0; connected < kCases;) {
    TileKind kind = random.kind();
    Port from{static_cast<Bundle>(random.below(8)), random.below(8)},
        to{static_cast<Bundle>(random.below(8)), random.below(8)};
    auto slave = numberOf(kind, Side::Slave, from), master = numberOf(kind, Side::Master, to);
    EXPECT_EQ(slave.has_value(), from.index < portCount(kind, Side::Slave, from.bundle));
    if (!slave || !master) {
      EXPECT_NE(refuses(kind, from, to), nullptr);
      continue;
    }
    EXPECT_EQ(portAt(kind, Side::Slave, *slave), from);
    EXPECT_EQ(portAt(kind, Side::Master, *master), to);
    EXPECT_TRUE(offsetOf(kind, {RegisterKind::Master, *master}));
    EXPECT_TRUE(offsetOf(kind, {RegisterKind::Rule, *slave, 3}));
    survives(MasterWord{true, false, *slave, false, 0, 0});
    survives(MasterWord{true, true, 0, random.below(2) != 0, random.below(16), random.below(8)});
    survives(SlaveWord{true, random.below(2) != 0});
    survives(RuleWord{random.below(2) != 0, random.below(32), random.below(32), random.below(4), random.below(8)});
    survives(QueueWord{random.below(64), 1 + random.below(256), random.below(2) != 0});
    survives(PacketHeader{random.below(32), random.below(8), {random.below(128), random.below(32)}});
    connected += refuses(kind, from, to) == nullptr;
  }
}

TEST(AieRandom, OffsetsSurvive) {
  for (TileKind kind : kKinds) {
    int known = 0;
    for (uint32_t offset = 0; offset < 1u << 20; ++offset)
      if (auto what = registerAt(kind, offset)) {
        ++known;
        ASSERT_EQ(offsetOf(kind, *what), offset) << nameOf(what->kind) << " " << what->index;
      }
    EXPECT_GT(known, 200) << nameOf(kind);
  }
}

TEST(AieRandom, ControlStreamsSurvive) {
  Random random;
  for (int left = kCases; left > 0;) {
    std::vector<ControlOp> ops(static_cast<size_t>(random.between(0, 60)));
    for (ControlOp &op : ops)
      op = randomOp(random);
    left -= static_cast<int>(ops.size());
    ControlHeader header{random.below(256), random.below(256), random.below(256), random.below(256)}, read;
    std::vector<uint32_t> words = encode(header, ops);
    std::string error;
    auto again = decodeControl(words, read, error);
    ASSERT_TRUE(again) << error;
    ASSERT_EQ(*again, ops);
    ASSERT_EQ(encode(read, *again), words);
  }
}

TEST(AieRandom, CdosSurvive) {
  using Command = CdoCommand::Kind;
  Random random;
  for (int left = kCases; left > 0;) {
    std::vector<CdoCommand> commands(static_cast<size_t>(random.between(0, 40)));
    for (CdoCommand &command : commands) {
      static constexpr Command kinds[] = {Command::NoOp, Command::Write, Command::MaskWrite, Command::BlockWrite,
                                          Command::Poll};
      command.kind = kinds[random.below(5)];
      if (command.kind != Command::NoOp)
        command.address = uint64_t(random.word()) << 32 | random.word();
      if (command.kind == Command::NoOp || command.kind == Command::BlockWrite)
        command.data = random.words(random.below(2) ? random.between(1, 9) : random.between(250, 260));
      else
        command.value = random.word();
      if (command.kind == Command::MaskWrite || command.kind == Command::Poll)
        command.mask = random.word();
      if (command.kind == Command::Poll)
        command.timeout = random.word();
    }
    left -= static_cast<int>(commands.size());
    std::string error;
    std::vector<uint32_t> words = encodeCdo(commands);
    auto again = decodeCdo(words, error);
    ASSERT_TRUE(again) << error;
    ASSERT_EQ(*again, commands);
    ASSERT_EQ(encodeCdo(*again), words);
  }
}

TEST(AieRandom, MutatedWordsAreRefusedOrSound) {
  Random random;
  std::vector<ControlOp> ops;
  std::vector<CdoCommand> commands(3);
  for (int i = 0; i < 20; ++i)
    ops.push_back(randomOp(random));
  for (CdoCommand &command : commands) {
    command.kind = CdoCommand::Kind::BlockWrite;
    command.data = random.words(5);
  }
  const std::vector<uint32_t> stream = encode({}, ops), cdo = encodeCdo(commands);
  for (int i = 0; i < kCases; ++i) {
    std::string error;
    ControlHeader header;
    for (bool control : {true, false}) {
      std::vector<uint32_t> words = control ? stream : cdo;
      for (uint32_t changes = 1 + random.below(3); changes > 0; --changes)
        words[random.below(static_cast<int64_t>(words.size()))] ^=
            random.below(2) ? 1u << random.below(32) : random.word();
      if (random.below(4) == 0)
        words.resize(random.below(static_cast<int64_t>(words.size())));
      if (control) {
        if (auto read = decodeControl(words, header, error))
          ASSERT_EQ(encode(header, *read), words);
      } else if (auto read = decodeCdo(words, error)) {
        ASSERT_EQ(encodeCdo(*read), words);
      }
    }
  }
}

TEST(AieCdo, TheFormIsBootgens) {
  CdoCommand write;
  write.kind = CdoCommand::Kind::Write;
  write.address = 0x0123456789;
  write.value = 7;
  // The header's checksum is the complement of the sum of its other words.
  const std::vector<uint32_t> expected = {4, 0x004F4443, 0x200, 4, ~(4u + 0x004F4443u + 0x200u + 4u), 3u << 16 | 0x108,
                                          1, 0x23456789, 7};
  EXPECT_EQ(encodeCdo({&write, 1}), expected);
}
