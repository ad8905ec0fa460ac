//===- FormTest.cpp - where the numbers of arguments lie ------------------===//
//
// Arguments whose sizes come back as small numbers where they wrap. The products were found by search; each is checked
// here in plain 64 bits.
//
//===----------------------------------------------------------------------===//
#include "schemas/aie/Image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

using namespace dmx::aie;

namespace {

Argument argumentOf(std::vector<Axis> axes, uint32_t rows = 1, uint32_t pitch = 1024) {
  Argument argument;
  argument.name = "x";
  argument.axes = std::move(axes);
  argument.rows = rows;
  argument.pitch = pitch;
  return argument;
}

TEST(AieForm, ProductsThatWrap) {
  const uint32_t triples[][4] = {
      {279040, 246241, 268468226, 1024}, {632272, 73371, 1192923487, 1296}, {446968, 128603, 641833213, 3720}};
  for (auto [a, b, c, small] : triples) {
    ASSERT_EQ(uint64_t(a) * b * c, small);
    for (uint32_t stride : {0u, 1u}) {
      Argument argument = argumentOf({{a, 0, 1, 0, 0}, {b, 0, 1, 0, 0}, {c, 0, 1, stride, 0}}, 4, 4096);
      EXPECT_NE(checkForm(argument).find("has a dim of"), std::string::npos) << checkForm(argument);
      EXPECT_EQ(argument.hostElements(), dmx::Size::kTooLarge);
      EXPECT_EQ(argument.hostBytes(), dmx::Size::kTooLarge);
    }
  }
  EXPECT_NE(checkForm(argumentOf({}, UINT32_MAX, UINT32_MAX)), "");
}

/// By looking at all its numbers.
bool fits(const Argument &argument) {
  uint64_t elements = uint64_t(argument.rows) * argument.pitch;
  std::vector<uint64_t> places{0};
  for (const Axis &axis : argument.axes) {
    std::vector<uint64_t> next;
    for (uint64_t place : places)
      for (uint32_t i = 0; i < axis.extent; ++i)
        next.push_back(place + axis.at(i));
    places = std::move(next);
  }
  return *std::ranges::max_element(places) < elements;
}

// What is accepted has a place for each of its numbers. (The other way round a form may be refused that would do: the
// bound adds the last quotient and the last phase, which one number need not have both.)
TEST(AieForm, PlacesAreCounted) {
  std::mt19937 random(3);
  auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Argument argument = argumentOf({}, 1 + below(8), 1 + below(64));
    for (uint32_t axes = below(4); axes; --axes)
      argument.axes.push_back({1 + below(6), below(5), 1 + below(3), below(40), below(40)});
    bool isAccepted = checkForm(argument).empty();
    (isAccepted ? accepted : refused) += 1;
    ASSERT_TRUE(!isAccepted || fits(argument)) << round;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(AieForm, PatchesStayInTheirArguments) {
  Image image;
  image.machine = "npu1";
  image.overlays.push_back({"o", {}, {}});
  KernelCode kernel;
  kernel.name = "k";
  kernel.arguments = {argumentOf({{1024, 0, 1, 1, 0}})};
  std::optional<Machine> machine = machineOf(image.machine);
  std::optional<uint32_t> offset = offsetOf(TileKind::Shim, {RegisterKind::Bd, 0, 1});
  ASSERT_TRUE(machine && offset);
  kernel.control = {patchOp(addressOf({0, 0}, *offset), 0, 4092)};
  image.kernels = {kernel};
  EXPECT_EQ(verify(image), "");
  for (uint64_t at : {uint64_t(4096), uint64_t(1) << 36, uint64_t(1) << 47, UINT64_MAX}) {
    image.kernels[0].control[0].offset = at;
    EXPECT_NE(verify(image).find("patches in byte " + std::to_string(at) + " of argument 0, which has 4096"),
              std::string::npos)
        << verify(image);
  }
  image.kernels[0].control.clear();
  image.kernels[0].arguments.assign(kMostArguments, kernel.arguments[0]);
  EXPECT_EQ(verify(image), "");
  image.kernels[0].arguments.push_back(kernel.arguments[0]);
  EXPECT_NE(verify(image).find("it has 4096 arguments"), std::string::npos) << verify(image);
}

TEST(AieForm, WaitsAreForTilesThatAreThere) {
  Image image;
  image.machine = "npu1";
  image.overlays.push_back({"o", {}, {}});
  KernelCode kernel;
  kernel.name = "k";
  const Machine machine = *machineOf(image.machine);
  ControlOp wait;
  wait.kind = ControlOp::Kind::Sync;
  auto said = [&](Tile first, uint32_t columns, uint32_t rows) {
    wait.tile = first, wait.columns = columns, wait.rows = rows;
    kernel.control = {wait};
    image.kernels = {kernel};
    return verify(image);
  };
  EXPECT_EQ(said({0, 0}, machine.columns, 1), "");
  EXPECT_EQ(said({machine.columns - 1, 0}, 1, 1), "");
  const std::tuple<Tile, uint32_t, uint32_t> wrong[] = {{{0, 0}, machine.columns + 1, 1},
                                                        {{machine.columns - 1, 0}, 2, 1},
                                                        {{0, 0}, 1, machine.rows + 1},
                                                        {{0, 0}, 0, 1},
                                                        {{0, 0}, 1, 0}};
  for (auto [tile, columns, rows] : wrong)
    EXPECT_NE(said(tile, columns, rows).find("waits for tiles that the machine does not have"), std::string::npos)
        << tile.column << " " << columns << " " << rows;
}

} // namespace
