//===- MachineTest.cpp - descriptions of GPUs and their checks ----------------===//

#include "schemas/cuda/Machine.h"

#include "targets/cuda/product/GemmTile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dmx::cuda;
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

// Figures of NVIDIA's data sheets and manuals.
TEST(CudaMachine, FiguresAreThePublishedOnes) {
  const Machine &machine = builtinMachine();
  EXPECT_EQ(machine.multiprocessors, 132);
  EXPECT_EQ(machine.registers, 64 * 1024);
  EXPECT_EQ(machine.mostShared, 227 * 1024);
  EXPECT_EQ(machine.mostThreads, 1024);
  EXPECT_EQ(machine.mostRegisters, 255);
  EXPECT_NEAR(2 * machine.multiplicationsPerClock * machine.multiprocessors * machine.clockHz, 989.4e12, 1e12);
  // Of a multiprocessor's registers two warpgroups have 240 each where a third one keeps 24.
  EXPECT_EQ(machine.registersOfEach(64 * 1024 - 128 * 24, 256), 240);
  EXPECT_EQ(machine.registersOfEach(64 * 1024, 384), 168);
}

TEST(CudaMachine, AWrongFigureIsNamed) {
  const std::tuple<const char *, Json, const char *> cases[] = {
      {"/clock_hz/value", 1e9, "made of clock_hz, multiprocessors"},
      {"/multiprocessors/value", 0, "'multiprocessors' is 0, allowed are 1 to"},
      {"/multiprocessors/value", 13.5, "'multiprocessors' is 13.5, not an integer"},
      {"/memory/l2_bytes_per_second/value", -23, "'memory.l2_bytes_per_second' is -23"},
      {"/memory/l2_bytes_per_second/mark", "guess", "'memory.l2_bytes_per_second' has no mark"},
      {"/block/shared_bytes/value", 232449, "'block.shared_bytes' is 232449, allowed are 98336 to 232448"},
      {"/block/shared_bytes/value", 98335, "'block.shared_bytes' is 98335"},
      {"/thread/register_step/value", 16, "'thread.register_step' is 16"},
      {"/kernel/parameter_bytes/value", "4096", "'kernel.parameter_bytes' is not {\"value\": number"},
      {"/product/start_clock", Json{{"value", 3}, {"mark", "fact"}}, "numbers, but only"},
      {"/totals/flops_per_second/value", 1e15, "'totals.flops_per_second' is 1e+15"},
      {"/name", 3, "'name' is missing"},
  };
  for (const auto &[pointer, value, part] : cases)
    EXPECT_NE(errorOf(pointer, value).find(part), std::string::npos) << pointer << ": " << errorOf(pointer, value);
  Json json = Json::parse(builtinMachineJson());
  json["block"].erase("threads");
  std::string error;
  EXPECT_FALSE(parseMachine(json.dump(), error));
  EXPECT_EQ(error, "machine description: 'block.threads' is missing");
  EXPECT_FALSE(parseMachine("{", error));
  EXPECT_FALSE(parseMachine("[1]", error));
  EXPECT_FALSE(parseMachine(std::string(100000, '['), error));
}

// The least shared memory that is allowed has two slots of every tile.
TEST(CudaMachine, EveryTileFitsTheLeastSharedMemory) {
  Json json = Json::parse(builtinMachineJson());
  json["block"]["shared_bytes"]["value"] = 98336;
  std::string error;
  auto machine = parseMachine(json.dump(), error);
  ASSERT_TRUE(machine) << error;
  EXPECT_EQ((dmxc::cuda::GemmTile{128, 256, 2}.sharedBytes()), 98336);
  EXPECT_EQ((dmxc::cuda::GemmTile{128, 256}.mostStages(*machine)), 2);
}
