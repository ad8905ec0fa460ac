//===- FaultTest.cpp - each wrong word of a good image is found -----------===//
//
// Mutants of a sound image; what each must end in was written down before it ran. Where only data are wrong no check
// can know it, and the numbers differ.
//
//===----------------------------------------------------------------------===//
#include "RunProduct.h"

#include "schemas/aie/Configure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

using namespace aietest;
using F = hw::BdField;
using hw::Bundle;
using hw::CoreOp;
using hw::RegisterKind;
using hw::Tile;

namespace {

constexpr Tile kShim{0, 0}, kMemory{0, 1}, kCore{0, 2};
const Sizes kSizes{192, 128, 128}; // 6 results

/// A word of the initial configuration.
uint32_t &initial(hw::Image &image, Tile tile, const hw::Register &what) {
  hw::Machine machine = *hw::machineOf(image.machine);
  uint64_t address = hw::addressOf(tile, *hw::offsetOf(machine.kindOf(tile.row), what));
  for (hw::CdoCommand &command : image.overlays[0].initial)
    if (command.kind == hw::CdoCommand::Kind::BlockWrite && address >= command.address &&
        address < command.address + 4 * command.data.size())
      return command.data[(address - command.address) / 4];
  ADD_FAILURE() << "nothing writes " << address;
  static uint32_t none;
  return none;
}

/// Changes a field of a BD.
void change(hw::Image &image, Tile tile, uint32_t number, F field, const std::function<int64_t(int64_t)> &to) {
  hw::TileKind kind = hw::machineOf(image.machine)->kindOf(tile.row);
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < hw::kBdWords[static_cast<size_t>(kind)]; ++i)
    words.push_back(initial(image, tile, {RegisterKind::Bd, number, i}));
  std::string error;
  hw::Bd bd = *hw::decodeBd(kind, words, error);
  bd[field] = to(bd[field]);
  words = hw::encode(kind, bd, error);
  ASSERT_EQ(error, "");
  for (uint32_t i = 0; i < words.size(); ++i)
    initial(image, tile, {RegisterKind::Bd, number, i}) = words[i];
}
void set(hw::Image &image, Tile tile, uint32_t number, F field, int64_t value) {
  change(image, tile, number, field, [value](int64_t) { return value; });
}

uint32_t &master(hw::Image &image, Tile tile, hw::Port port) {
  hw::TileKind kind = hw::machineOf(image.machine)->kindOf(tile.row);
  return initial(image, tile, {RegisterKind::Master, *hw::numberOf(kind, hw::Side::Master, port)});
}

std::vector<hw::Instruction> &program(hw::Image &image) { return image.overlays[0].programs[0].code; }
/// The n-th instruction of a kind, from 0.
size_t find(hw::Image &image, CoreOp op, size_t n) {
  for (size_t i = 0; i < program(image).size(); ++i)
    if (program(image)[i].op == op && n-- == 0)
      return i;
  ADD_FAILURE() << "there is no such instruction";
  return 0;
}
void erase(hw::Image &image, CoreOp op, size_t n) {
  program(image).erase(program(image).begin() + static_cast<ptrdiff_t>(find(image, op, n)));
}

std::vector<hw::ControlOp> &control(hw::Image &image) { return image.kernels[0].control; }
hw::ControlOp &op(hw::Image &image, hw::ControlOp::Kind kind, size_t n) {
  for (hw::ControlOp &each : control(image))
    if (each.kind == kind && n-- == 0)
      return each;
  ADD_FAILURE() << "there is no such op";
  return control(image)[0];
}
void eraseSync(hw::Image &image, bool last) {
  auto isSync = [](const hw::ControlOp &each) { return each.kind == hw::ControlOp::Kind::Sync; };
  auto first = std::find_if(control(image).begin(), control(image).end(), isSync);
  control(image).erase(last ? control(image).end() - 1 : first);
}

struct Mutant {
  const char *name;
  std::function<void(hw::Image &)> change;
  const char *fault; ///< its name; "" where the numbers alone are wrong
  const char *names; ///< what the sentence names
};

const Mutant kMutants[] = {
    {"a release dropped", [](auto &i) { set(i, kMemory, 0, F::ReleaseValue, 0); }, "deadlock", "MM2S 0 of tile (0,1)"},
    {"a core's release dropped", [](auto &i) { erase(i, CoreOp::Release, 0); }, "deadlock", "core (0,2)"},
    {"a count off by one", [](auto &i) { set(i, kCore, 0, F::AcquireValue, -3); }, "deadlock", "lock 0 >= 3"},
    {"a BD too short", [](auto &i) { set(i, kMemory, 2, F::Length, 1020); }, "deadlock", "S2MM 0 of tile (0,2)"},
    {"a BD too long", [](auto &i) { set(i, kMemory, 6, F::Length, 4100); }, "undefined-read",
     "BD 6 of MM2S 2 of tile (0,1)"},
    {"a BD of the wrong stride", [](auto &i) { set(i, kMemory, 26, F::Step2, 1); }, "", ""},
    {"a BD out of its memory", [](auto &i) { set(i, kCore, 0, F::Base, 0x3fff); }, "bd-bounds",
     "BD 0 of S2MM 0 of tile (0,2)"},
    {"a BD in nobody's memory", [](auto &i) { set(i, kMemory, 0, F::Base, 0x100); }, "bd-bounds",
     "BD 0 of S2MM 0 of tile (0,1)"},
    {"a next BD that is none", [](auto &i) { set(i, kMemory, 0, F::Next, 9); }, "bd-invalid",
     "BD 9 of S2MM 0 of tile (0,1) is not valid"},
    {"a BD of the other channels", [](auto &i) { set(i, kMemory, 0, F::Next, 25); }, "bd-invalid", "BD 25 of S2MM 0"},
    {"another tile's lock", [](auto &i) { set(i, kMemory, 0, F::AcquireLock, 3); }, "bd-invalid", "names lock 3"},
    {"another BD's lock", [](auto &i) { set(i, kMemory, 2, F::AcquireLock, 64 + 3); }, "race", "MM2S 0 of tile (0,1)"},
    {"a flow taken out", [](auto &i) { master(i, kMemory, {Bundle::North, 0}) = 0; }, "unrouted-stream",
     "MM2S 0 of tile (0,1)"},
    {"two flows swapped",
     [](auto &i) { std::swap(master(i, kShim, {Bundle::North, 0}), master(i, kShim, {Bundle::North, 1})); }, "", ""},
    {"a flow to the wrong number", [](auto &i) { master(i, kMemory, {Bundle::North, 1}) = 1u << 31 | 7; },
     "illegal-connection", "SOUTH 0 of tile (0,1) to NORTH 1"},
    {"a queue overfilled", [](auto &i) { control(i).insert(control(i).begin() + 3, 6, control(i)[2]); },
     "queue-overflow", "MM2S 0 of tile (0,0)"},
    {"the last sync left out", [](auto &i) { eraseSync(i, true); }, "race", "S2MM 0 of tile (0,0)"},
    {"a sync left out", [](auto &i) { eraseSync(i, false); }, "bd-rewritten-while-running", "of tile (0,0)"},
    {"a patch behind the matrix", [](auto &i) { op(i, hw::ControlOp::Kind::Patch, 0).offset += 192 * 128 * 2; },
     "the code for the array is not usable", "op 1 (patch) patches in byte 49152 of argument 0, which has 49152"},
    {"a patch by a block", [](auto &i) { op(i, hw::ControlOp::Kind::Patch, 0).offset += 64 * 128 * 2; }, "", ""},
    {"results at one place", [](auto &i) { op(i, hw::ControlOp::Kind::Patch, 5).offset = 0; }, "undefined-read", "'c'"},
    {"full before anything came", [](auto &i) { initial(i, kMemory, {RegisterKind::Lock, 1}) = 1; }, "race",
     "MM2S 0 of tile (0,1)"},
    {"a lock that nobody takes", [](auto &i) { initial(i, kCore, {RegisterKind::Lock, 0}) = 63; }, "race",
     "of tile (0,2)"},
    {"a core that does not wait", [](auto &i) { erase(i, CoreOp::Acquire, 2); }, "race", "core (0,2), instruction"},
    {"a core at an odd address", [](auto &i) { program(i)[find(i, CoreOp::Address, 1)].value += 4; }, "misaligned",
     "matmul_bf16_f32 takes a"},
    {"a core in a neighbour's memory", [](auto &i) { program(i)[find(i, CoreOp::Address, 1)].value -= 0x20000; },
     "core-bounds", "core (0,2)"},
    {"a core at its neighbour's lock", [](auto &i) { program(i)[find(i, CoreOp::Acquire, 1)].index -= 48; },
     "core-bounds", "core (0,2)"},
    {"a parameter never written", [](auto &i) { control(i).erase(control(i).begin() + 9); }, "undefined-read",
     "core (0,2), instruction 5"},
    {"a core that waits for nothing", [](auto &i) { program(i) = {{CoreOp::Jump, 0, 0}}; }, "runaway", "a core"},
    {"tokens without a way", [](auto &i) { master(i, kShim, {Bundle::South, 0}) = 0; }, "unrouted-stream", "token"},
};

} // namespace

TEST(AieFault, TheImageItselfIsSound) {
  Matrices of = randomMatrices(kSizes, 1);
  Outcome outcome = run(hw::write(imageOf(kSizes)), kSizes, of);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.c, byTheRule(kSizes, of));
}

TEST(AieFault, EachMutantIsFound) {
  Matrices of = randomMatrices(kSizes, 1);
  std::vector<uint32_t> expected = byTheRule(kSizes, of);
  for (const Mutant &mutant : kMutants) {
    SCOPED_TRACE(mutant.name);
    hw::Image image = imageOf(kSizes);
    mutant.change(image);
    Outcome outcome = run(hw::write(image), kSizes, of);
    if (*mutant.fault) {
      EXPECT_TRUE(outcome.error.starts_with(std::string(mutant.fault) + ": ")) << outcome.error;
      EXPECT_NE(outcome.error.find(mutant.names), std::string::npos) << outcome.error;
    } else {
      EXPECT_EQ(outcome.error, "");
      EXPECT_NE(outcome.c, expected);
    }
  }
}
