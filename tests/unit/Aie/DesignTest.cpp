//===- DesignTest.cpp - ten public designs as register words --------------===//
//
// Each register that a design configures is encoded from what the design says, and decoded to the same again.
//
//===----------------------------------------------------------------------===//
#include "Vectors.h"

#include "schemas/aie/Configure.h"

#include <map>

using namespace dmx::aie;
using namespace aietest;
using F = BdField;

namespace {

constexpr size_t kRegisters = 2309; ///< of all designs, as their source counts them

const Machine &machine() {
  static const Machine npu1 = *machineOf("npu1");
  return npu1;
}

Tile tileFrom(const Json &list) { return {list[0].get<uint32_t>(), list[1].get<uint32_t>()}; }
Direction directionFrom(const Json &name) { return name == "S2MM" ? Direction::S2MM : Direction::MM2S; }
Port portFrom(const Json &bundle, const Json &index) {
  for (Bundle name : {Bundle::Core, Bundle::Dma, Bundle::Ctrl, Bundle::Fifo, Bundle::South, Bundle::West, Bundle::North,
                      Bundle::East})
    if (nameOf(name) == bundle.get<std::string>())
      return {name, index.get<uint32_t>()};
  ADD_FAILURE() << "no bundle " << bundle;
  return {};
}

Bd bdFrom(const Json &json) {
  size_t kind = static_cast<size_t>(machine().kindOf(tileFrom(json["tile"]).row));
  Bd bd;
  bd[F::Base] = kOwnMemory[kind] + json["address"].get<int64_t>() / 4;
  bd[F::Length] = json["words"].get<int64_t>();
  const Json &dims = json["dims"], &pad = json["pad"];
  for (size_t i = 0; i < dims.size(); ++i) {
    bd[static_cast<F>(static_cast<size_t>(F::Step0) + i)] = dims[i][1].get<int64_t>();
    // The last dim of a tile ends with the length: memory tiles have no wrap of dim 3, core tiles none of dim 2.
    if (auto wrap = static_cast<F>(static_cast<size_t>(F::Wrap0) + i);
        i < 3 && rangeOf(static_cast<TileKind>(kind), wrap))
      bd[wrap] = dims[i][0].get<int64_t>();
  }
  for (size_t i = 0; i < pad.size(); ++i) {
    bd[static_cast<F>(static_cast<size_t>(F::Before0) + i)] = pad[i][0].get<int64_t>();
    bd[static_cast<F>(static_cast<size_t>(F::After0) + i)] = pad[i][1].get<int64_t>();
  }
  bd[F::Valid] = 1;
  if (!json["next"].is_null()) {
    bd[F::UseNext] = 1;
    bd[F::Next] = json["next"].get<int64_t>();
  }
  if (!json["acquire"].is_null()) {
    bd[F::AcquireOn] = 1;
    bd[F::AcquireLock] = kOwnLock[kind] + json["acquire"][0].get<int64_t>();
    bd[F::AcquireValue] = -json["acquire"][1].get<int64_t>();
  }
  if (!json["release"].is_null()) {
    bd[F::ReleaseLock] = kOwnLock[kind] + json["release"][0].get<int64_t>();
    bd[F::ReleaseValue] = json["release"][1].get<int64_t>();
  }
  return bd;
}

/// What a design says that its registers are.
struct Design {
  std::map<uint32_t, uint32_t> registers;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> masked; ///< by address and mask

  explicit Design(const Json &json) {
    for (const Json &pair : json["registers"])
      registers[static_cast<uint32_t>(numberOf(pair[0]))] = static_cast<uint32_t>(numberOf(pair[1]));
    for (const Json &triple : json["masked"])
      masked[{static_cast<uint32_t>(numberOf(triple[0])), static_cast<uint32_t>(numberOf(triple[1]))}] =
          static_cast<uint32_t>(numberOf(triple[2]));
  }
  uint32_t at(Tile tile, const Register &what) const {
    std::optional<uint32_t> offset = offsetOf(machine().kindOf(tile.row), what);
    return offset && registers.count(addressOf(tile, *offset)) ? registers.at(addressOf(tile, *offset)) : 0;
  }
};

/// The parts of a design; absent lists are empty.
Json part(const Json &design, const char *name) { return design.value(name, Json::array()); }

void configure(const Json &design, Configuration &to) {
  for (const Json &lock : part(design, "locks"))
    to.lock(tileFrom(lock), lock[2].get<uint32_t>(), lock[3].get<int64_t>());
  for (const Json &bd : part(design, "bds"))
    to.bd(tileFrom(bd["tile"]), bd["id"].get<uint32_t>(), bdFrom(bd));
  for (const Json &start : part(design, "starts"))
    to.start(tileFrom(start), directionFrom(start[2]), start[3].get<uint32_t>(),
             {start[4].get<uint32_t>(), start[5].get<uint32_t>(), false});
  for (const Json &connect : part(design, "connects"))
    to.connect(tileFrom(connect), portFrom(connect[2], connect[3]), portFrom(connect[4], connect[5]));
  for (const Json &mux : part(design, "shim_mux")) {
    bool in = mux[2] == "DMA";
    to.shimDma(tileFrom(mux), in ? Direction::MM2S : Direction::S2MM, mux[in ? 5 : 3].get<uint32_t>());
  }
}

/// A circuit, as the registers of its two ports say it.
void expectCircuit(const Design &design, const Json &connect) {
  Tile tile = tileFrom(connect);
  TileKind kind = machine().kindOf(tile.row);
  Port from = portFrom(connect[2], connect[3]), to = portFrom(connect[4], connect[5]);
  MasterWord master;
  SlaveWord slave;
  uint32_t number = *numberOf(kind, Side::Master, to);
  EXPECT_EQ(portAt(kind, Side::Master, number), to);
  ASSERT_TRUE(decode(design.at(tile, {RegisterKind::Master, number}), master));
  EXPECT_TRUE(master.enabled && !master.packets);
  EXPECT_EQ(portAt(kind, Side::Slave, master.slave), from);
  ASSERT_TRUE(decode(design.at(tile, {RegisterKind::Slave, master.slave}), slave));
  EXPECT_TRUE(slave.enabled && !slave.packets);
}

} // namespace

TEST(AieDesign, EveryRegisterIsEncoded) {
  AIE_VECTORS(vectors, "register_vectors.json");
  size_t total = 0;
  for (const Json &json : vectors["designs"]) {
    SCOPED_TRACE(json["name"].get<std::string>());
    Design design(json);
    Configuration configuration(machine());
    configure(json, configuration);
    ASSERT_EQ(configuration.error(), "");
    std::map<uint32_t, uint32_t> registers;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> masked;
    for (const RegisterWrite &write : configuration.writes())
      if (write.mask == UINT32_MAX)
        registers[write.address] = write.value;
      else
        masked[{write.address, write.mask}] = write.value;
    EXPECT_EQ(registers, design.registers);
    EXPECT_EQ(masked, design.masked);
    total += registers.size() + masked.size();
  }
  EXPECT_EQ(total, kRegisters);
}

TEST(AieDesign, EveryRegisterIsDecodedToTheSameFields) {
  AIE_VECTORS(vectors, "register_vectors.json");
  for (const Json &json : vectors["designs"]) {
    SCOPED_TRACE(json["name"].get<std::string>());
    Design design(json);
    std::map<RegisterKind, size_t> found;
    for (auto [address, value] : design.registers) {
      std::optional<Register> what = registerAt(machine().kindOf(tileOf(address).row), offsetIn(address));
      ASSERT_TRUE(what) << std::hex << address;
      ++found[what->kind];
    }
    for (const Json &lock : part(json, "locks")) {
      int64_t value = 0;
      ASSERT_TRUE(decodeLock(design.at(tileFrom(lock), {RegisterKind::Lock, lock[2].get<uint32_t>()}), value));
      EXPECT_EQ(value, lock[3].get<int64_t>());
    }
    size_t bdWords = 0;
    for (const Json &bd : part(json, "bds")) {
      Tile tile = tileFrom(bd["tile"]);
      std::vector<uint32_t> words;
      for (uint32_t i = 0; i < kBdWords[static_cast<size_t>(machine().kindOf(tile.row))]; ++i)
        words.push_back(design.at(tile, {RegisterKind::Bd, bd["id"].get<uint32_t>(), i}));
      std::string error;
      std::optional<Bd> decoded = decodeBd(machine().kindOf(tile.row), words, error);
      ASSERT_TRUE(decoded) << error;
      EXPECT_EQ(*decoded, bdFrom(bd)) << bd;
      bdWords += words.size();
    }
    EXPECT_EQ(found[RegisterKind::Bd], bdWords);
    EXPECT_EQ(found[RegisterKind::Lock], part(json, "locks").size());
    for (const Json &start : part(json, "starts")) {
      QueueWord task;
      ASSERT_TRUE(decode(
          design.at(tileFrom(start), {RegisterKind::Queue, start[3].get<uint32_t>(), 0, directionFrom(start[2])}),
          task));
      EXPECT_EQ(task, (QueueWord{start[4].get<uint32_t>(), start[5].get<uint32_t>(), false}));
    }
    EXPECT_EQ(found[RegisterKind::Queue], part(json, "starts").size());
    for (const Json &connect : part(json, "connects"))
      expectCircuit(design, connect);
    EXPECT_EQ(found[RegisterKind::Master], part(json, "connects").size());
    for (auto [place, value] : design.masked) {
      std::optional<Register> what = registerAt(machine().kindOf(tileOf(place.first).row), offsetIn(place.first));
      ASSERT_TRUE(what && (what->kind == RegisterKind::ShimMux || what->kind == RegisterKind::ShimDemux));
      EXPECT_EQ(place.second, value * 3);
    }
  }
}

TEST(AieDesign, WhatTheMachineLacksIsNamed) {
  Configuration columns(machine());
  columns.lock({4, 2}, 0, 1);
  EXPECT_EQ(columns.error(), "tile (4,2): the machine npu1 has 4 columns of 6 tiles");
  Configuration locks(machine());
  locks.lock({0, 2}, 16, 1);
  EXPECT_EQ(locks.error(), "tile (0,2): a core tile has no lock 16");
  Configuration values(machine());
  values.lock({0, 1}, 63, 64);
  EXPECT_EQ(values.error(), "tile (0,1): lock 63 starts at 64, its values are -64 to 63");
  Configuration fields(machine());
  Bd bd;
  bd[F::Wrap0] = 256;
  fields.bd({0, 2}, 3, bd);
  EXPECT_EQ(fields.error(), "tile (0,2): BD 3: wrap of dim 0 is 256, a BD of a core tile holds 0 to 255");
  bd[F::Wrap0] = 0;
  bd[F::Before0] = 1;
  Configuration padding(machine());
  padding.bd({0, 2}, 3, bd);
  EXPECT_EQ(padding.error(), "tile (0,2): BD 3: zeros before dim 0 is 1, a BD of a core tile has no such field");
  Configuration routes(machine());
  routes.connect({0, 1}, {Bundle::South, 1}, {Bundle::North, 2});
  EXPECT_EQ(
      routes.error(),
      "tile (0,1): cannot connect SOUTH 1 to NORTH 2: a memory tile's switch passes streams on with their number");
  EXPECT_TRUE(routes.writes().empty());
  Configuration repeats(machine());
  repeats.start({0, 0}, Direction::MM2S, 0, {0, 257, false});
  EXPECT_EQ(repeats.error(), "tile (0,0): a task of channel 0 runs 257 times, the most are 256");
}

TEST(AieDesign, FiguresAreMarked) {
  for (const char *name : {"npu1", "npu1_2col", "npu4"}) {
    std::optional<Machine> made = machineOf(name);
    ASSERT_TRUE(made);
    for (const Figure &figure : figures(*made))
      EXPECT_FALSE(figure.name.empty() || figure.source.empty());
    // The largest values of BD fields are those that the machine says.
    for (TileKind kind : {TileKind::Shim, TileKind::Memory, TileKind::Core}) {
      EXPECT_EQ(rangeOf(kind, F::Step0)->second, made->tile(kind).largestStep);
      EXPECT_EQ(rangeOf(kind, F::Wrap0)->second, made->tile(kind).largestWrap);
      EXPECT_EQ(rangeOf(kind, F::Length)->second, made->tile(kind).largestLength);
      EXPECT_EQ(rangeOf(kind, F::IterationWrap)->second, made->largestIteration);
      EXPECT_TRUE(offsetOf(kind, {RegisterKind::Bd, static_cast<uint32_t>(made->tile(kind).bds) - 1}));
      EXPECT_FALSE(offsetOf(kind, {RegisterKind::Bd, static_cast<uint32_t>(made->tile(kind).bds)}));
      EXPECT_TRUE(offsetOf(kind, {RegisterKind::Lock, static_cast<uint32_t>(made->tile(kind).locks) - 1}));
      EXPECT_FALSE(offsetOf(kind, {RegisterKind::Lock, static_cast<uint32_t>(made->tile(kind).locks)}));
      EXPECT_FALSE(offsetOf(kind, {RegisterKind::Queue, static_cast<uint32_t>(made->tile(kind).channels)}));
    }
  }
  EXPECT_FALSE(machineOf("npu2"));
  EXPECT_EQ(machineNames(), "npu1, npu1_1col, npu1_2col, npu1_3col, npu1_4col, npu4");
}
