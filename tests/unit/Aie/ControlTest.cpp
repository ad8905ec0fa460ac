//===- ControlTest.cpp - control streams and single words, as public ones -===//
#include "Vectors.h"

#include "schemas/aie/Configure.h"
#include "schemas/aie/Control.h"

#include <algorithm>

using namespace dmx::aie;
using namespace aietest;
using F = BdField;
using Kind = ControlOp::Kind;

namespace {

std::vector<uint32_t> encoded(const ControlOp &op) {
  std::vector<uint32_t> words;
  append(words, op);
  return words;
}

uint32_t number(const Json &json, const char *key) { return static_cast<uint32_t>(numberOf(json.at(key))); }

/// The op that a row of txn_vectors.json describes.
ControlOp opFrom(const Json &row) {
  std::string name = row["op"];
  Tile tile;
  if (row.contains("column"))
    tile = {number(row, "column"), number(row, "row")};
  if (name == "preempt" || name == "load_pdi") {
    ControlOp op;
    op.kind = name == "preempt" ? Kind::Preempt : Kind::Load;
    op.value = number(row, name == "preempt" ? "level" : "id");
    if (name == "load_pdi") {
      op.address = numberOf(row["address"]);
      op.offset = numberOf(row["size"]);
    }
    return op;
  }
  if (name == "sync") {
    ControlOp op = syncOp(tile, number(row, "direction") ? Direction::MM2S : Direction::S2MM, number(row, "channel"));
    op.columns = number(row, "columns");
    op.rows = number(row, "rows");
    return op;
  }
  uint32_t address = row.contains("column") ? addressOf(tile, number(row, "address")) : number(row, "address");
  if (name == "write")
    return writeOp(address, number(row, "value"));
  if (name == "maskwrite")
    return maskWriteOp(address, number(row, "value"), number(row, "mask"));
  EXPECT_EQ(name, "blockwrite");
  std::vector<uint32_t> data = row["data"];
  ControlOp op = blockWriteOp(address, data);
  op.tile = tile;
  return op;
}

} // namespace

TEST(AieControl, HeadersAreThePublicOnes) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  for (const Json &row : vectors["header"]) {
    ControlHeader header = headerOf(*machineOf(row["device"] == "npu1" ? "npu1" : "npu4"));
    EXPECT_EQ(header.rows, number(row, "rows"));
    EXPECT_EQ(header.columns, number(row, "columns"));
    EXPECT_EQ(header.memoryRows, number(row, "mem_rows"));
    // So many ops of so many bytes.
    std::vector<ControlOp> ops(row["ops"].get<size_t>() - 1, writeOp(0, 0));
    size_t rest = row["bytes"].get<size_t>() - 16 - 24 * ops.size();
    ops.push_back(blockWriteOp(0, std::vector<uint32_t>(rest / 4 - 4)));
    std::vector<uint32_t> words = encode(header, ops);
    EXPECT_EQ(std::vector<uint32_t>(words.begin(), words.begin() + 4), wordsOf(row["words"]));
    ControlHeader read;
    std::string error;
    auto decoded = decodeControl(words, read, error);
    ASSERT_TRUE(decoded) << error;
    EXPECT_EQ(read, header);
    EXPECT_EQ(*decoded, ops);
  }
}

TEST(AieControl, OpsAreThePublicOnes) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  size_t rows = 0;
  for (const Json &row : vectors["ops"]) {
    SCOPED_TRACE(row.dump());
    ControlOp op = opFrom(row);
    EXPECT_EQ(encoded(op), wordsOf(row["words"]));
    ControlHeader header;
    std::string error;
    std::vector<uint32_t> words = encode({}, {&op, 1});
    auto decoded = decodeControl(words, header, error);
    ASSERT_TRUE(decoded) << error;
    EXPECT_EQ(decoded->front(), op);
    ++rows;
  }
  EXPECT_EQ(rows, 8u);
}

TEST(AieControl, AnIteratedMemoryBd) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  const Json &row = vectors["mem_tile_bd"];
  // The source gives fields as they are stored: steps and the iteration's wrap are one more.
  Bd bd;
  bd[F::Length] = row["words"];
  bd[F::Base] = row["base_word"];
  bd[F::Wrap0] = row["d0"]["size"];
  bd[F::Step0] = row["d0"]["step_field"].get<int64_t>() + 1;
  bd[F::Wrap1] = row["d1"]["size"];
  bd[F::Step1] = row["d1"]["step_field"].get<int64_t>() + 1;
  bd[F::Step2] = row["d2"]["step_field"].get<int64_t>() + 1;
  bd[F::IterationCurrent] = row["iteration"]["current"];
  bd[F::IterationWrap] = row["iteration"]["size_field"].get<int64_t>() + 1;
  bd[F::IterationStep] = row["iteration"]["step_field"].get<int64_t>() + 1;
  bd[F::AcquireOn] = row["acquire"]["enable"];
  bd[F::AcquireLock] = row["acquire"]["id_field"];
  bd[F::AcquireValue] = row["acquire"]["value_field"];
  bd[F::ReleaseLock] = row["release"]["id_field"];
  bd[F::ReleaseValue] = row["release"]["value"];
  bd[F::UseNext] = 1;
  bd[F::Next] = row["next"];
  bd[F::Valid] = row["valid"];
  std::string error;
  EXPECT_EQ(encode(TileKind::Memory, bd, error), wordsOf(row["registers"])) << error;
  EXPECT_EQ(decodeBd(TileKind::Memory, wordsOf(row["registers"]), error), bd) << error;
  Tile tile{number(row, "column"), number(row, "row")};
  EXPECT_EQ(addressOf(tile, *offsetOf(TileKind::Memory, {RegisterKind::Bd, number(row, "id")})), 0x061A00C0u);
}

TEST(AieControl, AShimBdWithItsPatchAndStart) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  const Json &row = vectors["shim_copy"]; // [2][32][32] i32 in rows of 64, 4096 elements into the argument
  Bd bd;
  bd[F::Length] = 2 * 32 * 32;
  bd[F::Wrap0] = 32;
  bd[F::Wrap1] = 32;
  bd[F::Step1] = 64;
  bd[F::Step2] = 2048;
  bd[F::Burst] = 2;
  bd[F::Valid] = 1;
  std::string error;
  EXPECT_EQ(encode(TileKind::Shim, bd, error), wordsOf(row["registers"])) << error;
  EXPECT_EQ(decodeBd(TileKind::Shim, wordsOf(row["registers"]), error), bd) << error;
  EXPECT_EQ(offsetOf(TileKind::Shim, {RegisterKind::Bd, 0}), number(row, "bd_address"));
  EXPECT_EQ(offsetOf(TileKind::Shim, {RegisterKind::Bd, 0, 1}), number(row["patch"], "address"));
  EXPECT_EQ(number(row["patch"], "plus"), 4096u * 4);
  EXPECT_EQ(offsetOf(TileKind::Shim, {RegisterKind::Queue, 0, 0, Direction::MM2S}), number(row["start"], "address"));
  QueueWord task;
  ASSERT_TRUE(decode(number(row["start"], "value"), task));
  EXPECT_EQ(task, QueueWord());
}

TEST(AieControl, PatchesOfTheContainerWithAnInstructionBuffer) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  for (const Json &row : vectors["address_patch"]["rows"]) {
    uint32_t argument = number(row, "argument");
    uint64_t offset = containerOffset(argument, numberOf(row["offset"]));
    std::vector<uint32_t> words = encoded(patchOp(0x1D004, argument, offset));
    ASSERT_EQ(words.size() * 4, words[1]);
    EXPECT_EQ(words[6], 0x1D004u);
    EXPECT_EQ(words[8], argument);
    EXPECT_EQ(words[10], std::stoul(row["word"].get<std::string>(), nullptr, 16));
  }
}

TEST(AieControl, PacketHeadersAndRoutes) {
  AIE_VECTORS(vectors, "txn_vectors.json");
  for (const Json &row : vectors["packet_header"]) {
    PacketHeader header{number(row, "id"), number(row, "type"), {number(row, "column"), number(row, "row")}}, read;
    uint32_t word = static_cast<uint32_t>(std::stoul(row["word"].get<std::string>(), nullptr, 16));
    EXPECT_EQ(encode(header), word);
    EXPECT_TRUE(decode(word, read));
    EXPECT_EQ(read, header);
    EXPECT_FALSE(decode(word ^ 1, read)) << "wrong parity";
  }
  std::optional<Machine> machine = machineOf("npu1");
  Configuration route(*machine);
  RuleWord rule{true, 0, 31, 0, 0};
  route.rule({1, 2}, {Bundle::Dma, 0}, 0, rule);
  route.master({1, 2}, {Bundle::North, 0}, {true, true, 0, false, 1, 0});
  route.rule({1, 3}, {Bundle::South, 0}, 0, rule);
  route.master({1, 3}, {Bundle::Dma, 0}, {true, true, 0, true, 1, 0});
  ASSERT_EQ(route.error(), "");
  const Json &expected = vectors["packet_route"]["registers"];
  // Addresses of the source begin at column 1 of an array whose first column is 0.
  ASSERT_EQ(route.writes().size(), expected.size());
  for (const Json &pair : expected) {
    auto address = static_cast<uint32_t>(numberOf(pair[0]));
    auto found = std::find_if(route.writes().begin(), route.writes().end(),
                              [&](const RegisterWrite &write) { return write.address == address; });
    ASSERT_NE(found, route.writes().end()) << pair;
    EXPECT_EQ(found->value, numberOf(pair[1])) << pair;
  }
  const Json &with = vectors["packet_route"]["core_bd_with_packet"];
  Bd bd;
  bd[F::Base] = with["base_word"];
  bd[F::Length] = with["words"];
  bd[F::PacketOn] = 1;
  bd[F::PacketType] = with["packet_type"];
  bd[F::PacketId] = with["packet_id"];
  std::string error;
  EXPECT_EQ(encode(TileKind::Core, bd, error), wordsOf(with["registers"])) << error;
}

TEST(AieControl, UnsoundStreamsAreRefused) {
  std::vector<ControlOp> ops = {writeOp(1, 2), syncOp({0, 0}, Direction::S2MM, 0), blockWriteOp(16, {1, 2, 3})};
  const std::vector<uint32_t> good = encode(headerOf(*machineOf("npu1")), ops);
  auto errorOf = [](std::vector<uint32_t> words) {
    ControlHeader header;
    std::string error;
    EXPECT_FALSE(decodeControl(words, header, error));
    return error;
  };
  auto changed = [&](size_t word, uint32_t value) {
    std::vector<uint32_t> words = good;
    words[word] = value;
    return errorOf(words);
  };
  EXPECT_EQ(errorOf({}), "the control stream has no header of version 0.1");
  EXPECT_EQ(changed(0, 0x06030001), "the control stream has no header of version 0.1");
  EXPECT_EQ(changed(2, 4), "the control stream says that it has 4 ops, it has 3");
  EXPECT_EQ(changed(3, 20), "the control stream says that it has 20 bytes, it has 84");
  EXPECT_EQ(changed(4, 0x77), "op 0 of the control stream has no known opcode or length: 0x77");
  EXPECT_EQ(changed(5, 1), "op 0 of the control stream (write) sets bits that it does not have");
  EXPECT_EQ(changed(17, 4000), "op 2 of the control stream ends behind the stream");
  EXPECT_EQ(changed(17, 16), "op 2 of the control stream has no known opcode or length: 0x1");
}
