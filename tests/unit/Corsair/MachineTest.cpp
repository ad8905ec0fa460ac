//===- MachineTest.cpp - the machine description and its checks -----------===//

#include "schemas/corsair/Machine.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dmx::corsair;
using Json = nlohmann::json;

namespace {

/// The error of the built-in description with one change.
std::string errorOf(const std::string &pointer, const Json &value) {
  Json json = Json::parse(builtinMachineJson());
  json[Json::json_pointer(pointer)] = value;
  std::string error;
  EXPECT_FALSE(parseMachine(json.dump(), error)) << pointer;
  return error;
}

} // namespace

TEST(CorsairMachine, TotalsAreThePublishedOnes) {
  const Machine &machine = builtinMachine();
  EXPECT_EQ(machine.quadCount(), 32);
  EXPECT_EQ(machine.unitCount(Memory::WB), 2048);
  EXPECT_NEAR(machine.peakInt8(), 2400e12, 2.4e12);
  EXPECT_NEAR(machine.stReadBandwidth(), 150e12, 0.15e12);
  EXPECT_NEAR(machine.ddrBandwidth(), 400e9, 0.4e9);
  EXPECT_EQ(machine.sramBytes(), uint64_t(2) << 30);
}

TEST(CorsairMachine, AWrongKnobIsNamed) {
  const std::tuple<const char *, Json, const char *> cases[] = {
      {"/clock_hz/value", 1.2e9, "made of clock_hz"},
      {"/topology/cores/value", 8, "topology.cores"},
      {"/topology/quads/value", 3, "topology.quads"},
      {"/dimc/row_clocks_int8/value", 9, "dimc.row_clocks_int8"},
      {"/dimc/row_clocks_int4/value", 8, "dimc.row_clocks_int4"},
      {"/dimc/row_clocks_int16/value", 16, "dimc.row_clocks_int16"},
      {"/memories/ST/read/value", 1000, "memories.ST.read"},
      {"/memories/DDR/read/value", 43, "memories.DDR.read"},
      {"/memories/GM/size/value", 16777216 * 2, "memories.GM.size"},
      {"/memories/ST/size/value", 12582912 / 2, "memories.ST.size"},
      {"/memories/IB/size/value", -1, "'memories.IB.size' is -1"},
      {"/memories/IB/size/value", 73729, "'memories.IB.size' is not a multiple of 64"},
      {"/memories/IB/size/value", "big", "'memories.IB.size' is not {\"value\": number"},
      {"/simd/lanes/mark", "guess", "'simd.lanes' has no mark"},
      {"/simd/lanes/value", 1.5, "'simd.lanes' is 1.5, not an integer"},
      {"/simd/lane", Json{{"value", 3}, {"mark", "fact"}}, "numbers, but only"},
      {"/totals/quads/value", 31, "'totals.quads' is 31"},
      {"/name", 3, "'name' is missing"},
  };
  for (const auto &[pointer, value, part] : cases)
    EXPECT_NE(errorOf(pointer, value).find(part), std::string::npos) << pointer << ": " << errorOf(pointer, value);
  Json json = Json::parse(builtinMachineJson());
  json["dma"].erase("gm_to_ib");
  std::string error;
  EXPECT_FALSE(parseMachine(json.dump(), error));
  EXPECT_EQ(error, "machine description: 'dma.gm_to_ib' is missing");
  EXPECT_FALSE(parseMachine("{", error));
  EXPECT_FALSE(parseMachine(std::string(100000, '['), error));
}

TEST(CorsairMachine, SmallDeviationsAreAllowedAndFingerprintsDiffer) {
  Json json = Json::parse(builtinMachineJson());
  json["clock_hz"]["value"] = 1144409179.6875 * 1.0005;
  std::string error;
  auto machine = parseMachine(json.dump(), error);
  ASSERT_TRUE(machine) << error;
  EXPECT_NE(machine->fingerprint(), builtinMachine().fingerprint());
  auto same = parseMachine("\n  " + std::string(builtinMachineJson()) + "\n\n", error);
  ASSERT_TRUE(same) << error;
  EXPECT_EQ(same->fingerprint(), builtinMachine().fingerprint()) << "blanks do not matter";
}
