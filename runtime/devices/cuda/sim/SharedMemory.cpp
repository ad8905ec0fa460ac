//===- SharedMemory.cpp - a block's shared memory, and who touched it ---------===//

#include "SharedMemory.h"

#include "runtime/Error.h"

namespace dmxrt::cuda {

std::string Actors::name(uint32_t actor) const {
  if (actor < warps)
    return cat("warp ", actor);
  if (actor < 2 * warps)
    return cat("a wgmma of warp ", actor - warps);
  if (actor < 3 * warps)
    return cat("a bulk store of warp ", actor - 2 * warps);
  return "a bulk load";
}

void SharedMemory::reset(uint64_t end, const Actors &who, bool check) {
  bytes.assign(end, std::byte(0xa5));
  checks = check;
  actors = who;
  writers.assign(check ? (end + kWord - 1) / kWord : 0, 0);
  reads.resize(who.count());
  for (std::vector<uint32_t> &each : reads)
    std::fill(each.begin(), each.end(), 0u);
}

std::vector<uint32_t> &SharedMemory::readsOf(uint32_t actor, size_t count) {
  std::vector<uint32_t> &own = reads[actor];
  if (own.size() < count)
    own.resize(count);
  return own;
}

std::string SharedMemory::problemOf(uint64_t word, Epoch writer, std::string_view verb, const Knowledge &who,
                                    bool isAsync) const {
  uint64_t address = word * kWord;
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

std::string SharedMemory::problemOfReaders(uint64_t word, const Knowledge &who) const {
  for (uint32_t actor = 0; actor < reads.size(); ++actor) {
    const std::vector<uint32_t> &own = reads[actor];
    size_t index = actors.isWarp(actor) ? word : word / (kRow / kWord);
    if (index < own.size() && own[index] > who.seen[actor])
      return cat("smem-race: it writes byte ", word * kWord, " of shared memory, which ", actors.name(actor),
                 " reads, and nothing orders the one behind the other");
  }
  return {};
}

std::string SharedMemory::read(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who) {
  if (!checks)
    return {};
  std::vector<uint32_t> &own = readsOf(warp, writers.size());
  for (uint64_t word = address / kWord; word * kWord < address + count; ++word) {
    if (writers[word] == 0)
      return cat("smem-uninit: it reads byte ", word * kWord, " of shared memory, which nobody wrote");
    if (std::string problem = problemOf(word, writers[word], "reads", who, false); !problem.empty())
      return problem;
    own[word] = who.seen[warp];
  }
  return {};
}

std::string SharedMemory::write(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who) {
  if (!checks)
    return {};
  for (uint64_t word = address / kWord; word * kWord < address + count; ++word) {
    std::string problem;
    if (writers[word])
      problem = problemOf(word, writers[word], "writes", who, false);
    if (problem.empty())
      problem = problemOfReaders(word, who);
    if (!problem.empty())
      return problem;
    writers[word] = epochOf(warp, who.seen[warp]);
  }
  return {};
}

std::string SharedMemory::readAsync(uint64_t address, uint64_t count, uint32_t actor, uint32_t tick,
                                    const Knowledge &who) {
  if (!checks)
    return {};
  for (uint64_t word = address / kWord; word * kWord < address + count; ++word) {
    if (writers[word] == 0)
      return cat("smem-uninit: it reads byte ", word * kWord, " of shared memory, which nobody wrote");
    if (std::string problem = problemOf(word, writers[word], "reads", who, true); !problem.empty())
      return problem;
  }
  std::vector<uint32_t> &own = readsOf(actor, writers.size() / (kRow / kWord) + 1);
  for (uint64_t row = address / kRow; row * kRow < address + count; ++row)
    own[row] = std::max(own[row], tick);
  return {};
}

std::string SharedMemory::fly(uint64_t address, uint64_t count, const Knowledge &who) {
  if (!checks)
    return {};
  for (uint64_t word = address / kWord; word * kWord < address + count; ++word) {
    std::string problem;
    if (writers[word])
      problem = problemOf(word, writers[word], "writes", who, true);
    if (problem.empty())
      problem = problemOfReaders(word, who);
    if (!problem.empty())
      return problem;
    writers[word] = kFlying;
  }
  return {};
}

void SharedMemory::land(uint64_t address, uint64_t count, uint32_t actor, uint32_t tick) {
  if (checks)
    std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(address / kWord), count / kWord, epochOf(actor, tick));
}

void SharedMemory::setBarrier(uint64_t address, bool isBarrier) {
  if (checks)
    std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(address / kWord), 2, isBarrier ? kBarrier : 0);
}

} // namespace dmxrt::cuda
