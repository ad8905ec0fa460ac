//===- Design.cpp - the one design that products are computed by ----------===//
#include "Design.h"
#include "Route.h"

#include "schemas/aie/Configure.h"

#include <algorithm>

namespace dmxc::aie {
namespace {

using F = hw::BdField;
using hw::Bundle;
using hw::CoreOp;
using hw::Direction;
using hw::Tile;

constexpr Tile kShim{0, 0}, kMemory{0, 1}, kCore{0, 2};
constexpr int64_t kWordsA = kTileM * kTileK / 2, kWordsB = kTileK * kTileN / 2, kWordsC = kTileM * kTileN;

/// Of both operands and the result, in the memory tile and in the core: two buffers of so many words from a word on.
struct Buffers {
  int64_t words, first;
  int64_t at(int64_t which) const { return first + which * words; }
};
constexpr Buffers kA{kWordsA, 0}, kB{kWordsB, 2 * kWordsA}, kC{kWordsC, 2 * kWordsA + 2 * kWordsB};
constexpr int64_t kParameter = kC.first + 2 * kWordsC; ///< the word that says how many pairs of tiles along k

/// Locks, in the memory tile and in the core: how many buffers are empty, and how many full.
struct Locks {
  uint32_t empty, full;
};
constexpr Locks kLocksA{0, 1}, kLocksB{2, 3}, kLocksC{4, 5};
constexpr uint32_t kStart = 6; ///< of the core: the parameter is written

/// Channels: of the shim and the memory tile for a and b, of the memory tile and the core for c.
constexpr uint32_t kChannelA = 0, kChannelB = 1, kChannelC = 0, kJoinC = 2;
constexpr uint32_t kFlights = 4;    ///< results that are begun before one has to be done: what a queue holds
constexpr uint32_t kBdsAResult = 3; ///< of the shim

constexpr int64_t kMostResults = 4096; ///< 1.5 MB of control stream
constexpr int64_t kMostBytes = int64_t(1) << 32;

struct Dim {
  int64_t wrap, step;
};
/// Dims from the innermost on; the last one's wrap is what the length leaves.
hw::Bd bd(int64_t base, int64_t length, std::initializer_list<Dim> dims) {
  hw::Bd out;
  out[F::Base] = base;
  out[F::Length] = length;
  size_t dim = 0;
  for (auto [wrap, step] : dims) {
    out[static_cast<F>(static_cast<size_t>(F::Step0) + dim)] = step;
    if (wrap)
      out[static_cast<F>(static_cast<size_t>(F::Wrap0) + dim)] = wrap;
    ++dim;
  }
  out[F::Valid] = 1;
  return out;
}

/// Two BDs that take turns, for the two buffers, started for ever.
void ring(hw::Configuration &to, Tile tile, Direction direction, uint32_t channel, uint32_t first,
          const Buffers &buffers, const Locks &locks, std::initializer_list<Dim> dims) {
  size_t kind = tile == kMemory ? 1 : 2;
  bool in = direction == Direction::S2MM;
  for (uint32_t i = 0; i < 2; ++i) {
    hw::Bd one = bd(hw::kOwnMemory[kind] + buffers.at(i), buffers.words, dims);
    one[F::AcquireOn] = 1;
    one[F::AcquireLock] = hw::kOwnLock[kind] + (in ? locks.empty : locks.full);
    one[F::AcquireValue] = -1;
    one[F::ReleaseLock] = hw::kOwnLock[kind] + (in ? locks.full : locks.empty);
    one[F::ReleaseValue] = 1;
    one[F::UseNext] = 1;
    one[F::Next] = first + 1 - i;
    to.bd(tile, first + i, one);
  }
  to.start(tile, direction, channel, {first, 1, false});
}

/// a and b: up to the memory tile, and on to the core; c the other way.
std::vector<Flow> flowsOf() {
  auto shim = [](Direction direction, uint32_t channel) {
    return End{kShim, {Bundle::South, hw::shimPort(direction, channel)}};
  };
  auto dma = [](Tile tile, uint32_t channel) { return End{tile, {Bundle::Dma, channel}}; };
  std::vector<Flow> flows;
  for (uint32_t channel : {kChannelA, kChannelB}) {
    flows.push_back({shim(Direction::MM2S, channel), {dma(kMemory, channel)}});
    flows.push_back({dma(kMemory, channel), {dma(kCore, channel)}});
  }
  flows.push_back({dma(kCore, kChannelC), {dma(kMemory, kJoinC)}});
  flows.push_back({dma(kMemory, kJoinC), {shim(Direction::S2MM, kChannelC)}});
  return flows;
}

void connect(hw::Configuration &to, const std::vector<Connection> &circuits) {
  for (const Connection &circuit : circuits)
    to.connect(circuit.tile, circuit.from, circuit.to);
  to.connect(kShim, {Bundle::Ctrl, 0}, {Bundle::South, 0}); // the tokens of results that are done
  for (uint32_t channel : {kChannelA, kChannelB})
    to.shimDma(kShim, Direction::MM2S, hw::shimPort(Direction::MM2S, channel));
  to.shimDma(kShim, Direction::S2MM, hw::shimPort(Direction::S2MM, kChannelC));
}

void configure(hw::Configuration &to, const std::vector<Connection> &circuits) {
  for (Tile tile : {kMemory, kCore})
    for (const Locks &locks : {kLocksA, kLocksB, kLocksC}) {
      to.lock(tile, locks.empty, 2);
      to.lock(tile, locks.full, 0);
    }
  to.lock(kCore, kStart, 0);
  connect(to, circuits);
  constexpr int64_t rowA = kTileK / 2, rowB = kTileN / 2, stepA = hw::kStepK / 2, stepB = hw::kStepN / 2;
  ring(to, kMemory, Direction::S2MM, kChannelA, 0, kA, kLocksA, {});
  ring(to, kMemory, Direction::S2MM, kChannelB, 24, kB, kLocksB, {});
  // A matrix step after the other: its words of a row, its rows, steps along k (of a) or n (of b), then the other way.
  ring(to, kMemory, Direction::MM2S, kChannelA, 2, kA, kLocksA,
       {{stepA, 1}, {hw::kStepM, rowA}, {kTileK / hw::kStepK, stepA}, {0, hw::kStepM * rowA}});
  ring(to, kMemory, Direction::MM2S, kChannelB, 26, kB, kLocksB,
       {{stepB, 1}, {hw::kStepK, rowB}, {kTileN / hw::kStepN, stepB}, {0, hw::kStepK * rowB}});
  ring(to, kMemory, Direction::S2MM, kJoinC, 4, kC, kLocksC,
       {{hw::kStepN, 1}, {hw::kStepM, kTileN}, {kTileN / hw::kStepN, hw::kStepN}, {0, hw::kStepM * kTileN}});
  ring(to, kMemory, Direction::MM2S, kJoinC, 6, kC, kLocksC, {});
  ring(to, kCore, Direction::S2MM, kChannelA, 0, kA, kLocksA, {});
  ring(to, kCore, Direction::S2MM, kChannelB, 2, kB, kLocksB, {});
  ring(to, kCore, Direction::MM2S, kChannelC, 4, kC, kLocksC, {});
  to.coreControl(kCore, true, false);
}

/// Waits for the parameter, then computes result after result for ever.
hw::CoreProgram coreProgram() {
  hw::CoreProgram out{kCore, {}};
  auto put = [&](CoreOp op, size_t index, int64_t value) {
    out.code.push_back({op, static_cast<uint8_t>(index), static_cast<int32_t>(value)});
  };
  auto lock = [](uint32_t own) { return 3 * hw::kCoreLocks + own; };
  auto address = [](int64_t word) { return hw::kCoreWindow[3] + 4 * word; };
  put(CoreOp::Acquire, lock(kStart), -1);
  for (int64_t result = 0; result < 2; ++result) {
    put(CoreOp::Acquire, lock(kLocksC.empty), -1);
    put(CoreOp::Address, 0, address(kC.at(result)));
    put(CoreOp::Scalar, 0, kWordsC);
    put(CoreOp::Call, static_cast<size_t>(hw::KernelId::ZeroF32), 0);
    put(CoreOp::LoopParameter, 0, address(kParameter));
    for (int64_t half = 0; half < 2; ++half) {
      put(CoreOp::Acquire, lock(kLocksA.full), -1);
      put(CoreOp::Acquire, lock(kLocksB.full), -1);
      for (auto [index, word] : {std::pair(0, kA.at(half)), {1, kB.at(half)}, {2, kC.at(result)}})
        put(CoreOp::Address, static_cast<size_t>(index), address(word));
      for (auto [index, size] : {std::pair(0, kTileM), {1, kTileK}, {2, kTileN}})
        put(CoreOp::Scalar, static_cast<size_t>(index), size);
      put(CoreOp::Call, static_cast<size_t>(hw::KernelId::MatmulBf16F32), 0);
      put(CoreOp::Release, lock(kLocksA.empty), 1);
      put(CoreOp::Release, lock(kLocksB.empty), 1);
    }
    put(CoreOp::EndLoop, 0, 0);
    put(CoreOp::Release, lock(kLocksC.full), 1);
  }
  put(CoreOp::Jump, 0, 1);
  return out;
}

/// Writes of registers that follow one another become one command.
std::vector<hw::CdoCommand> commandsOf(const std::vector<hw::RegisterWrite> &writes) {
  std::vector<hw::CdoCommand> out;
  for (const hw::RegisterWrite &write : writes) {
    bool whole = write.mask == UINT32_MAX;
    if (whole && !out.empty() && out.back().kind == hw::CdoCommand::Kind::BlockWrite &&
        out.back().address + 4 * out.back().data.size() == write.address) {
      out.back().data.push_back(write.value);
      continue;
    }
    hw::CdoCommand &command = out.emplace_back();
    command.kind = whole ? hw::CdoCommand::Kind::BlockWrite : hw::CdoCommand::Kind::MaskWrite;
    command.address = write.address;
    if (whole) {
      command.data = {write.value};
    } else {
      command.mask = write.mask;
      command.value = write.value;
    }
  }
  return out;
}

/// Ops that give the shim's channel a BD into an argument.
class ShimTask {
public:
  ShimTask(hw::KernelCode &kernel, std::string &error) : kernel(kernel), error(error) {}

  void start(uint32_t number, const hw::Bd &bd, Direction direction, uint32_t channel, uint32_t argument,
             int64_t offset, bool token) {
    hw::Bd one = bd;
    one[F::Burst] = 2;
    std::vector<uint32_t> words = encode(hw::TileKind::Shim, one, error);
    if (words.empty())
      return;
    kernel.control.push_back(hw::blockWriteOp(at({hw::RegisterKind::Bd, number}), std::move(words)));
    kernel.control.push_back(
        hw::patchOp(at({hw::RegisterKind::Bd, number, 1}), argument, static_cast<uint64_t>(offset)));
    kernel.control.push_back(
        hw::writeOp(at({hw::RegisterKind::Queue, channel, 0, direction}), encode(hw::QueueWord{number, 1, token})));
  }

private:
  static uint32_t at(const hw::Register &what) { return hw::addressOf(kShim, *hw::offsetOf(hw::TileKind::Shim, what)); }
  hw::KernelCode &kernel;
  std::string &error;
};

hw::Argument argument(std::string name, bool output, int64_t rows, int64_t columns, int64_t ddrRows, int64_t pitch) {
  return {std::move(name),
          output,
          output ? hw::Element::F32 : hw::Element::Bf16,
          static_cast<uint32_t>(rows),
          static_cast<uint32_t>(columns),
          static_cast<uint32_t>(ddrRows),
          static_cast<uint32_t>(pitch)};
}

} // namespace

std::optional<std::string> refuses(const hw::Machine &machine, const Sizes &sizes) {
  int64_t step = machine.tile(hw::TileKind::Shim).largestStep;
  constexpr int64_t most = int64_t(1) << 30; // far above, and no sum overflows
  if (std::max({sizes.m, sizes.k, sizes.n}) > most)
    return "a dim of the product is above " + std::to_string(most);
  int64_t m = sizes.paddedM(), k = sizes.paddedK(), n = sizes.paddedN();
  if (k / 2 > step)
    return "a row of the first matrix has " + std::to_string(k / 2) + " words, a shim's BD steps over " +
           std::to_string(step);
  if (kTileK * n / 2 > step)
    return std::to_string(kTileK) + " rows of the second matrix have " + std::to_string(kTileK * n / 2) +
           " words, a shim's BD steps over " + std::to_string(step);
  if (sizes.results() > kMostResults)
    return "the product has " + std::to_string(sizes.results()) +
           " results of 64 x 64, the array's control stream holds " + std::to_string(kMostResults);
  if (2 * m * k > kMostBytes || 2 * k * n > kMostBytes || 4 * m * n > kMostBytes)
    return "a matrix takes more than 4 GiB of the array's DDR";
  return std::nullopt;
}

hw::Overlay overlay(const hw::Machine &machine, std::string &error) {
  std::vector<Connection> circuits = route(machine, flowsOf(), error);
  if (!error.empty())
    return {};
  hw::Configuration configuration(machine);
  configure(configuration, circuits);
  error = configuration.error();
  return {"matmul_bf16_f32", commandsOf(configuration.writes()), {coreProgram()}};
}

hw::KernelCode product(const hw::Machine &machine, std::string name, const Sizes &sizes, bool swapped,
                       std::string &error) {
  hw::KernelCode out{std::move(name), 0, {}, {}};
  int64_t m = sizes.paddedM(), k = sizes.paddedK(), n = sizes.paddedN();
  out.arguments = {argument("a", false, sizes.m, sizes.k, m, k), argument("b", false, sizes.k, sizes.n, k, n),
                   argument("c", true, sizes.m, sizes.n, m, n)};
  if (swapped)
    std::swap(out.arguments[0], out.arguments[1]);
  hw::Configuration start(machine);
  start.data(kCore, kParameter, static_cast<uint32_t>(k / kPairK));
  start.lock(kCore, kStart, 1);
  error = start.error();
  for (const hw::RegisterWrite &write : start.writes())
    out.control.push_back(hw::writeOp(write.address, write.value));

  const hw::Bd a = bd(0, kTileM * k / 2, {{kTileK / 2, 1}, {kTileM, k / 2}, {0, kTileK / 2}});
  const hw::Bd b = bd(0, k * kTileN / 2, {{kTileN / 2, 1}, {kTileK, n / 2}, {0, kTileK * n / 2}});
  const hw::Bd c = bd(0, kWordsC, {{kTileN, 1}, {0, n}});
  const hw::ControlOp done = hw::syncOp(kShim, Direction::S2MM, kChannelC);
  ShimTask tasks(out, error);
  for (int64_t result = 0; result < sizes.results(); ++result) {
    int64_t row = result / (n / kTileN), column = result % (n / kTileN);
    if (result >= kFlights)
      out.control.push_back(done);
    uint32_t first = kBdsAResult * static_cast<uint32_t>(result % kFlights);
    tasks.start(first, a, Direction::MM2S, kChannelA, swapped, row * kTileM * k * 2, false);
    tasks.start(first + 1, b, Direction::MM2S, kChannelB, !swapped, column * kTileN * 2, false);
    tasks.start(first + 2, c, Direction::S2MM, kChannelC, 2, (row * kTileM * n + column * kTileN) * 4, true);
  }
  out.control.insert(out.control.end(), static_cast<size_t>(std::min<int64_t>(kFlights, sizes.results())), done);
  return out;
}

} // namespace dmxc::aie
