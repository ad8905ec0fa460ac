//===- Array.h - the array, run by its configuration words alone *- C++ -*-===//
//
// What the registers say is all that this knows: BDs, locks, start queues, switches, the shims' multiplexers. Time is a
// model in clocks; data, order and what may be read when are not.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Lock.h"
#include "Walk.h"

#include "runtime/Error.h"
#include "runtime/devices/common/CheckedMemory.h"
#include "schemas/aie/Image.h"
#include "schemas/aie/Registers.h"
#include "schemas/aie/host/HostCode.h"

#include <deque>
#include <map>
#include <random>

namespace dmxrt::aie {

using hw::Direction;
using hw::Tile;
using hw::TileKind;

/// An agent of the array: a core, a channel or the controller.
struct Thread {
  uint16_t number = 0;
  Moment now;
  uint32_t position = 0; ///< instruction, BD or op

  sim::Actor actor() const { return {{now.known.of(number), position, number}, &now.known}; }
  /// What is done from here on is not known to those who have joined it so far.
  void advance() { ++now.known[number]; }
};

/// A stream's way from one channel to another.
struct Path {
  uint32_t source = 0, sink = 0; ///< channels
  uint32_t hops = 0;             ///< switches on the way
  int64_t latency = 0;
  size_t capacity = 0;
  std::deque<std::pair<uint64_t, uint32_t>> words; ///< when each arrives, what it is
  Moment sender;                                   ///< of the words' BD
  uint64_t moved = 0;
};

struct Channel {
  Tile tile;
  Direction direction;
  uint32_t number;
  Thread thread;
  struct Task {
    hw::QueueWord word;
    Moment giver;
  };
  std::deque<Task> waiting = {}; ///< the queue; what runs is no part of it
  bool running = false, acquired = false;
  Task task = {};
  uint32_t bdNumber = 0;
  hw::Bd bd = {};
  Walk walk = {};
  int64_t left = 0;          ///< words
  std::byte *base = nullptr; ///< of word 0 of the window that the BD is in
  std::vector<Path *> out = {};
  Path *in = nullptr;
  sim::Counter tokens = sim::Counter(); ///< of finished tasks
  uint64_t wakeAt = 0, startedAt = 0, busy = 0;
};

struct Core {
  Tile tile;
  const hw::CoreProgram *program;
  Thread thread;
  bool enabled = false, halted = false, waiting = false;
  size_t at = 0;
  std::vector<std::pair<size_t, int64_t>> loops = {}; ///< first instruction, runs that are left
  hw::Call arguments = {};
  uint64_t freeAt = 0, busy = 0, bf16Macs = 0, i32Macs = 0, i8Macs = 0, instructions = 0;
};

/// Registers and memory of a tile.
struct TileState {
  Tile tile;
  TileKind kind;
  std::unique_ptr<sim::CheckedMemory> memory = {}; ///< none of shims
  std::vector<Lock> locks = {};
  std::vector<uint32_t> bds = {}, masters = {}, slaves = {}, rules = {}; ///< words
  uint32_t mux = 0, demux = 0;
  uint32_t firstChannel = 0; ///< S2MM, then MM2S
  int32_t core = -1;         ///< its program's number, if it has one
};

/// An interval of an agent.
struct Interval {
  uint64_t start, end;
  uint16_t thread;
  std::string name;
};

class Array {
public:
  /// Of an image that hw::verify accepts; all three stay in place. `seed` 0: no delays but those of the model.
  /// `users`: the code of the image's objects.
  Array(const hw::Machine &machine, const hw::Image &image, const hw::KernelCode &kernel, uint64_t seed,
        std::span<const std::shared_ptr<const hw::HostCode>> users = {});

  /// The DDR form of an argument, for the host.
  std::byte *host(size_t argument, bool write);
  void run();

  std::string fault;       ///< the first one, after which nothing goes on
  bool keepsTrace = false; ///< set before the run
  std::vector<Interval> intervals;
  uint64_t now = 0;
  uint64_t configurationWords = 0, controlWords = 0;

  std::string nameOf(uint16_t thread) const;
  size_t threads() const { return threadCount; }
  const std::deque<Channel> &allChannels() const { return channels; }
  const std::deque<Core> &allCores() const { return cores; }
  const std::deque<Path> &allPaths() const { return paths; }
  /// Bytes that the array read and wrote: of DDR, of memory tiles, of cores' memories.
  std::array<uint64_t, 3> readBytes() const { return traffic(false); }
  std::array<uint64_t, 3> writtenBytes() const { return traffic(true); }

private:
  // Array.cpp
  void makeTiles();
  void fail(std::string_view name, const std::string &text);
  TileState *find(Tile tile);
  bool step();
  uint64_t nextTime() const;
  void checkRest();
  std::array<uint64_t, 3> traffic(bool written) const;
  uint64_t skew(uint32_t most);
  void mark(const Thread &thread, uint64_t start, uint64_t end, std::string name);
  // Registers.cpp
  void configure();
  void write(uint32_t address, uint32_t value, uint32_t mask);
  void writeBd(TileState &tile, const hw::Register &at, uint32_t value, uint32_t mask);
  void writeLock(TileState &tile, uint32_t lock, uint32_t value);
  void push(TileState &tile, const hw::Register &at, uint32_t value);
  // Routes.cpp
  void trace();
  void follow(const TileState &tile, uint32_t slave, uint32_t source, uint32_t hops);
  void leave(const TileState &tile, hw::Port port, uint32_t source, uint32_t hops);
  void arrive(const TileState &tile, uint32_t channel, uint32_t source, uint32_t hops);
  // Channels.cpp
  Channel &channel(const TileState &tile, Direction direction, uint32_t number);
  bool step(Channel &channel);
  bool startBd(Channel &channel);
  bool check(Channel &channel);
  Lock *lockOf(const TileState &tile, int64_t number);
  sim::CheckedMemory *memoryOf(const TileState &tile, int64_t word, int64_t &inside);
  bool move(Channel &channel);
  void beginRun(const Channel &channel);
  void finishBd(Channel &channel);
  void finishTask(Channel &channel);
  // Cores.cpp
  bool step(Core &core);
  bool execute(Core &core, const hw::Instruction &at);
  bool useLock(Core &core, const hw::Instruction &at);
  bool call(Core &core, hw::KernelId kernel);
  std::byte *access(Core &core, int64_t address, int64_t bytes, bool write);
  Lock *lockOf(const Core &core, uint32_t number);
  // UserCalls.cpp
  bool callUser(Core &core, uint32_t number);
  std::byte *userBytes(Core &core, const hw::UserFunction &function, size_t number, bool isKept);
  // Controller.cpp
  bool stepController();
  bool execute(const hw::ControlOp &op);
  bool sync(const hw::ControlOp &op);
  void patch(const hw::ControlOp &op);
  std::string waits() const;
  std::string waits(const Channel &channel) const;

  const hw::Machine &machine;
  const hw::Image &image;
  const hw::KernelCode &kernel;
  std::span<const std::shared_ptr<const hw::HostCode>> users;
  std::mt19937_64 random;
  bool skewed;

  std::deque<TileState> tiles;
  std::deque<Channel> channels;
  std::deque<Core> cores;
  std::deque<Path> paths;
  std::vector<std::unique_ptr<sim::CheckedMemory>> ddr; ///< by argument
  std::vector<uint32_t> active; ///< channels that have had a task, those of shims behind the others
  size_t activeShims = 0;
  size_t threadCount = 0;
  bool routed = false;      ///< whether paths are those of the registers
  int64_t ddrWordsLeft = 0; ///< of this clock
  Thread controller;
  size_t op = 0; ///< of the control stream
  uint64_t controlFreeAt = 0, controlMovedAt = 0;
  uint64_t coreStepsAlone = 0; ///< instructions since anything else went on
};

/// Runs a kernel's body on the bytes that it touches, in the order of hw::touches.
void compute(const hw::Call &call, std::byte *const *touched);
void computeRows(const hw::Call &call, std::byte *const *touched);

/// Clocks that a core is delayed by, at most, where a seed asks for it.
inline constexpr uint32_t kCoreSkew = 64;
/// Where an argument begins in the addresses of shims' BDs.
inline constexpr int64_t kArgumentShift = 36;
constexpr int64_t argumentAddress(size_t argument) { return static_cast<int64_t>(argument + 1) << kArgumentShift; }

} // namespace dmxrt::aie
