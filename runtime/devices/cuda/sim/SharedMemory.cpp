//===- SharedMemory.cpp - a block's shared memory, and who touched it ---------===//

#include "SharedMemory.h"

#include "runtime/Error.h"

namespace dmxrt::cuda {

std::string Actors::name(uint32_t actor) const {
  if (actor >= 3 * warps)
    return "a bulk load";
  constexpr std::string_view whose[] = {"", "a wgmma of ", "a bulk store of "};
  uint32_t number = actor % warps, block = number / own;
  return cat(whose[actor / warps], "warp ", number % own,
             block == first / own ? "" : cat(" of block ", block, " of the cluster"));
}

void SharedMemory::reset(uint64_t end, const Actors &who, bool check) {
  bytes.assign(end, std::byte(0xa5));
  checks = check;
  actors = who;
  writers.assign(check ? (end + kWord - 1) / kWord : 0, 0);
  spans.assign(check ? (end + kRow - 1) / kRow : 0, 0);
  reads.resize(who.count());
  for (uint32_t actor : readers)
    reads[actor].clear();
  readers.clear();
  settled = {};
}

std::vector<uint32_t> &SharedMemory::readsOf(uint32_t actor) {
  std::vector<uint32_t> &own = reads[actor];
  if (own.empty()) {
    own.resize(actors.isWarp(actor) ? writers.size() : writers.size() / (kRow / kWord) + 1);
    readers.push_back(actor);
  }
  return own;
}

/// Of a word that is not settled.
std::string SharedMemory::problemOf(uint64_t word, std::string_view verb, const Knowledge &who, bool isAsync) const {
  uint64_t address = word * kWord;
  Epoch writer = writers[word];
  if (writer == 0)
    return {};
  if (writer == kFlying)
    return cat("smem-race: it ", verb, " byte ", address, " of shared memory, where a bulk load is to land");
  if (writer == kBarrier)
    return cat("mbar-overwrite: it ", verb, " byte ", address, " of shared memory, which is an mbarrier's");
  uint32_t actor = actorOf(writer);
  if (who.seen[actor] < tickOf(writer))
    return cat("smem-race: it ", verb, " byte ", address, " of shared memory, which ", actors.name(actor),
               " wrote, and nothing orders the one behind the other");
  if (isAsync && actors.isWarp(actor) && who.fenced[actor] < tickOf(writer))
    return cat("proxy-fence: it ", verb, " byte ", address, " of shared memory, which ", actors.name(actor),
               " wrote by a plain instruction, and there is no fence.proxy.async between them");
  return {};
}

/// Of a range that is to be written.
std::string SharedMemory::problemOfReaders(uint64_t first, uint64_t count, const Knowledge &who) const {
  for (uint32_t actor : readers) {
    uint32_t scale = actors.isWarp(actor) ? 1 : kRow / kWord, latest = 0;
    const std::vector<uint32_t> &own = reads[actor];
    uint64_t begin = first / scale, end = (first + count - 1) / scale + 1;
    for (uint64_t i = begin; i < end; ++i)
      latest = std::max(latest, own[i]);
    if (latest <= who.seen[actor])
      continue;
    while (own[begin] <= who.seen[actor])
      ++begin;
    return cat("smem-race: it writes byte ", begin * scale * kWord, " of shared memory, which ", actors.name(actor),
               " reads, and nothing orders the one behind the other");
  }
  return {};
}

std::string SharedMemory::checkRead(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync) {
  if (isSettled(first, count, who, isAsync))
    return {};
  for (uint64_t word = first;; ++word) {
    if (writers[word] == 0)
      return cat("smem-uninit: it reads byte ", word * kWord, " of shared memory, which nobody wrote");
    if (std::string problem = problemOf(word, "reads", who, isAsync); !problem.empty())
      return problem;
  }
}

std::string SharedMemory::checkWrite(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync) {
  if (!isSettled(first, count, who, isAsync))
    for (uint64_t word = first; word < first + count; ++word)
      if (std::string problem = problemOf(word, "writes", who, isAsync); !problem.empty())
        return problem;
  return problemOfReaders(first, count, who);
}

/// Words of a range of bytes: the first, and how many they are.
static std::pair<uint64_t, uint64_t> wordsOf(uint64_t address, uint64_t count, uint64_t word) {
  return {address / word, (address + count - 1) / word - address / word + 1};
}

std::string SharedMemory::read(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who) {
  if (!checks)
    return {};
  auto [first, words] = wordsOf(address, count, kWord);
  std::string problem = checkRead(first, words, who, false);
  if (problem.empty())
    std::fill_n(readsOf(warp).begin() + static_cast<std::ptrdiff_t>(first), words, who.seen[warp]);
  return problem;
}

std::string SharedMemory::write(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who) {
  if (!checks)
    return {};
  auto [first, words] = wordsOf(address, count, kWord);
  std::string problem = checkWrite(first, words, who, false);
  if (!problem.empty())
    return problem;
  std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(first), words, epochOf(warp, who.seen[warp]));
  for (uint64_t row = address / kRow; row * kRow < address + count; ++row)
    spans[row] = 0;
  return {};
}

std::string SharedMemory::readAsync(uint64_t address, uint64_t count, uint32_t actor, uint32_t tick,
                                    const Knowledge &who) {
  if (!checks)
    return {};
  auto [first, words] = wordsOf(address, count, kWord);
  std::string problem = checkRead(first, words, who, true);
  if (problem.empty())
    std::fill_n(readsOf(actor).begin() + static_cast<std::ptrdiff_t>(address / kRow), count / kRow, tick);
  return problem;
}

std::string SharedMemory::fly(uint64_t address, uint64_t count, const Knowledge &who) {
  if (!checks)
    return {};
  auto [first, words] = wordsOf(address, count, kWord);
  std::string problem = checkWrite(first, words, who, true);
  if (problem.empty())
    std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(first), words, kFlying);
  return problem;
}

void SharedMemory::land(uint64_t address, uint32_t actor, uint32_t tick, uint32_t span) {
  if (!checks)
    return;
  std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(address / kWord), kRow / kWord, epochOf(actor, tick));
  spans[address / kRow] = static_cast<uint8_t>(span + 1);
}

void SharedMemory::setBarrier(uint64_t address, bool isBarrier) {
  if (checks)
    std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(address / kWord), 2, isBarrier ? kBarrier : 0);
}

} // namespace dmxrt::cuda
