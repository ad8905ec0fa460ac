//===- Channels.cpp - DMA channels ----------------------------------------===//
#include "Array.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::aie {
namespace {

using F = hw::BdField;

constexpr int64_t kMostWords = int64_t(1) << 28; ///< of a BD
constexpr int64_t kWindowWords = 0x20000;        ///< of a memory tile, in its own and its neighbours' numbers
constexpr uint32_t kReaching = 4;                ///< channels of a memory tile that reach its neighbours
constexpr uint32_t kSkew = 64;

} // namespace

Channel &Array::channel(const TileState &tile, Direction direction, uint32_t number) {
  uint32_t count = static_cast<uint32_t>(machine.tile(tile.kind).channels);
  return channels[tile.firstChannel + (direction == Direction::MM2S ? count : 0) + number];
}

bool Array::step(Channel &channel) {
  if (now < channel.wakeAt)
    return false;
  if (!channel.running) {
    if (channel.waiting.empty())
      return false;
    channel.task = channel.waiting.front();
    channel.waiting.pop_front();
    channel.thread.now.join(channel.task.giver);
    channel.bdNumber = channel.task.word.bd;
    channel.running = startBd(channel);
    return true;
  }
  if (!channel.acquired) {
    if (channel.bd[F::AcquireOn]) {
      Lock *lock = lockOf(*find(channel.tile), channel.bd[F::AcquireLock]);
      if (!lock->admits(channel.bd[F::AcquireValue]))
        return false;
      lock->take(channel.bd[F::AcquireValue], channel.thread.now);
    }
    channel.acquired = check(channel);
    channel.startedAt = now;
    if (channel.acquired)
      beginRun(channel);
    return true;
  }
  return move(channel);
}

/// Decodes the BD that comes next, as its words are now.
bool Array::startBd(Channel &channel) {
  const TileState &tile = *find(channel.tile);
  size_t words = hw::kBdWords[static_cast<size_t>(tile.kind)];
  std::string where = cat("BD ", channel.bdNumber, " of ", nameOf(channel.thread.number), " "), why;
  std::optional<hw::Bd> bd = hw::decodeBd(tile.kind, std::span(tile.bds).subspan(channel.bdNumber * words, words), why);
  auto wrong = [&](const std::string &what) {
    fail("bd-invalid", where + what);
    return false;
  };
  if (!bd)
    return wrong(why);
  if (!(*bd)[F::Valid])
    return wrong("is not valid");
  if ((*bd)[F::Length] == 0 || (*bd)[F::Length] > kMostWords)
    return wrong(cat("moves ", (*bd)[F::Length], " words"));
  if ((*bd)[F::PacketOn] || (*bd)[F::Compress])
    return wrong("sends packets or compresses, which this device does not do yet");
  if (channel.direction == Direction::S2MM)
    for (size_t dim = 0; dim < 3; ++dim)
      if (bd->before(dim) || bd->after(dim))
        return wrong("pads what it receives");
  if (tile.kind == TileKind::Memory && channel.number % 2 != channel.bdNumber / 24)
    return wrong("is none of its channel's: even channels have 0 to 23, odd ones 24 to 47");
  if ((*bd)[F::UseNext] && (*bd)[F::Next] >= machine.tile(tile.kind).bds)
    return wrong(cat("goes on with BD ", (*bd)[F::Next]));
  for (auto [on, number] :
       {std::pair((*bd)[F::AcquireOn], (*bd)[F::AcquireLock]), {(*bd)[F::ReleaseValue], (*bd)[F::ReleaseLock]}})
    if (on && !lockOf(tile, number))
      return wrong(cat("names lock ", number, ", which its tile does not reach"));
  bool routes = channel.direction == Direction::MM2S ? !channel.out.empty() : channel.in != nullptr;
  if (!routes) {
    fail("unrouted-stream", cat("no stream leads ", channel.direction == Direction::MM2S ? "from " : "to ",
                                nameOf(channel.thread.number)));
    return false;
  }
  channel.bd = *bd;
  channel.walk = Walk(channel.bd);
  channel.left = channel.bd[F::Length];
  channel.acquired = false;
  channel.thread.position = channel.bdNumber;
  if (skewed)
    channel.wakeAt = std::max(channel.wakeAt, now + skew(kSkew));
  return true;
}

/// Checks all that the BD moves, once it has its lock, and finds where it is.
bool Array::check(Channel &channel) {
  const TileState &tile = *find(channel.tile);
  bool write = channel.direction == Direction::S2MM;
  std::string where = cat("BD ", channel.bdNumber, " of ", nameOf(channel.thread.number)), why;
  channel.base = nullptr;
  return channel.walk.eachRun([&](int64_t first, int64_t words) {
    int64_t inside = 0;
    sim::CheckedMemory *memory = memoryOf(tile, first, inside);
    if (!memory || (tile.kind == TileKind::Memory && first / kWindowWords != 1 && channel.number >= kReaching)) {
      fail(tile.kind == TileKind::Shim ? "argument-bounds" : "bd-bounds",
           cat(where, " reaches word ", first, ", which is in no memory of its tile"));
      return false;
    }
    std::byte *bytes = memory->access(4 * inside, 4 * words, write, channel.thread.actor(), why);
    if (!bytes) {
      bool bounds = why.starts_with("out of bounds"), race = why.starts_with("race");
      fail(race                          ? "race"
           : !bounds                     ? "undefined-read"
           : tile.kind == TileKind::Shim ? "argument-bounds"
                                         : "bd-bounds",
           cat(where, ": ", why));
      return false;
    }
    std::byte *base = bytes - 4 * first;
    if (channel.base && channel.base != base) {
      fail("bd-bounds", where + " goes from one memory into another");
      return false;
    }
    channel.base = base;
    return true;
  });
}

/// The lock by the number that BDs of the tile have for it.
Lock *Array::lockOf(const TileState &tile, int64_t number) {
  int64_t count = machine.tile(tile.kind).locks;
  Tile of = tile.tile;
  if (tile.kind == TileKind::Memory) {
    of.column += static_cast<uint32_t>(number / count) - 1;
    number %= count;
  }
  TileState *there = number < count ? find(of) : nullptr;
  return there ? &there->locks[static_cast<size_t>(number)] : nullptr;
}

/// The memory that has the word, and which of its words it is.
sim::CheckedMemory *Array::memoryOf(const TileState &tile, int64_t word, int64_t &inside) {
  inside = word;
  if (word < 0)
    return nullptr;
  if (tile.kind == TileKind::Shim) {
    size_t argument = static_cast<size_t>(word >> (kArgumentShift - 2));
    inside = word & ((int64_t(1) << (kArgumentShift - 2)) - 1);
    return argument >= 1 && argument <= ddr.size() ? ddr[argument - 1].get() : nullptr;
  }
  Tile of = tile.tile;
  if (tile.kind == TileKind::Memory) {
    of.column += static_cast<uint32_t>(word / kWindowWords) - 1;
    inside = word % kWindowWords;
  }
  TileState *there = find(of);
  return there ? there->memory.get() : nullptr;
}

/// A shim asks DDR for each run of words that lie together; meanwhile none of its channels reads.
void Array::beginRun(const Channel &channel) {
  const TileState &tile = *find(channel.tile);
  if (tile.kind != TileKind::Shim || channel.direction != Direction::MM2S)
    return;
  for (uint32_t i = 0; i < machine.tile(tile.kind).channels; ++i) {
    uint64_t &wakeAt = this->channel(tile, Direction::MM2S, i).wakeAt;
    wakeAt = std::max(wakeAt, now + 1) + static_cast<uint64_t>(machine.shimRunClocks);
  }
}

/// A word, where there is one and room for it.
bool Array::move(Channel &channel) {
  bool isShim = machine.kindOf(channel.tile.row) == TileKind::Shim;
  if (isShim && ddrWordsLeft == 0)
    return false;
  if (channel.direction == Direction::MM2S) {
    for (const Path *path : channel.out)
      if (path->words.size() >= path->capacity)
        return false;
    uint32_t word = 0;
    if (!channel.walk.padding())
      std::memcpy(&word, channel.base + 4 * channel.walk.address(), 4);
    for (Path *path : channel.out) {
      if (channel.left == channel.bd[F::Length])
        path->sender.join(channel.thread.now);
      path->words.emplace_back(now + static_cast<uint64_t>(path->latency), word);
      ++path->moved;
    }
  } else {
    auto &words = channel.in->words;
    if (words.empty() || words.front().first > now)
      return false;
    if (channel.left == channel.bd[F::Length])
      channel.thread.now.join(channel.in->sender);
    std::memcpy(channel.base + 4 * channel.walk.address(), &words.front().second, 4);
    words.pop_front();
  }
  ddrWordsLeft -= isShim;
  ++channel.busy;
  int64_t address = channel.walk.address();
  if (--channel.left == 0) {
    finishBd(channel);
    return true;
  }
  channel.walk.next();
  if (channel.walk.address() != address + 1)
    beginRun(channel);
  return true;
}

void Array::finishBd(Channel &channel) {
  TileState &tile = *find(channel.tile);
  const hw::Bd &bd = channel.bd;
  mark(channel.thread, channel.startedAt, now + 1, cat("BD ", channel.bdNumber));
  if (bd[F::ReleaseValue]) {
    Lock &lock = *lockOf(tile, bd[F::ReleaseLock]);
    lock.give(bd[F::ReleaseValue], channel.thread.now);
    if (lock.value() > machine.largestLock || lock.value() < machine.smallestLock)
      return fail("lock-overflow", cat("BD ", channel.bdNumber, " of ", nameOf(channel.thread.number), " makes lock ",
                                       bd[F::ReleaseLock], " ", lock.value()));
  }
  channel.thread.advance();       // of this BD know those who have its words or its lock
  if (bd[F::IterationWrap] > 1) { // the device counts in the BD itself
    hw::Bd counted = bd;
    counted[F::IterationCurrent] = (bd[F::IterationCurrent] + 1) % bd[F::IterationWrap];
    std::string why;
    std::vector<uint32_t> words = hw::encode(tile.kind, counted, why);
    std::copy(words.begin(), words.end(), tile.bds.begin() + static_cast<ptrdiff_t>(channel.bdNumber * words.size()));
  }
  if (!bd[F::UseNext])
    return finishTask(channel);
  channel.bdNumber = static_cast<uint32_t>(bd[F::Next]);
  channel.running = startBd(channel);
}

void Array::finishTask(Channel &channel) {
  if (--channel.task.word.times > 0) {
    channel.bdNumber = channel.task.word.bd;
    channel.running = startBd(channel);
    return;
  }
  channel.running = false;
  if (!channel.task.word.token)
    return;
  const TileState &tile = *find(channel.tile);
  // Tokens go to the controller by CTRL 0 -> SOUTH 0 of the shim.
  hw::MasterWord master;
  std::optional<uint32_t> south = hw::numberOf(tile.kind, hw::Side::Master, {hw::Bundle::South, 0});
  std::optional<uint32_t> control = hw::numberOf(tile.kind, hw::Side::Slave, {hw::Bundle::Ctrl, 0});
  bool leads = tile.kind == TileKind::Shim && hw::decode(tile.masters[*south], master) && master.enabled &&
               !master.packets && master.slave == *control;
  if (!leads)
    return fail("unrouted-stream",
                cat("the token of ", nameOf(channel.thread.number), " has no way to the controller"));
  channel.tokens.give(1, channel.thread.now);
  channel.thread.advance();
}

} // namespace dmxrt::aie
