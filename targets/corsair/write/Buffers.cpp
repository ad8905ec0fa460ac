//===- Buffers.cpp - ranges of the device's memories ----------------------===//

#include "Buffers.h"

#include "dmxc/Support/ArenaPacking.h"

#include "llvm/ADT/STLExtras.h"

using namespace dmxc::corsair;

Address Address::plus(hw::Term term) const {
  Address result = *this;
  if (term.scale == 0)
    return result;
  auto at = llvm::find_if(result.terms, [&](const hw::Term &t) { return t.source >= term.source; });
  if (at == result.terms.end() || at->source != term.source) {
    result.terms.insert(at, term);
    return result;
  }
  at->scale += term.scale;
  if (at->scale == 0)
    result.terms.erase(at);
  return result;
}

Address Address::from(const Address &origin, const Address &to) const {
  Address result = to.plus(offset - origin.offset);
  for (const hw::Term &term : terms)
    result = result.plus(term);
  for (hw::Term term : origin.terms) {
    term.scale = -term.scale;
    result = result.plus(term);
  }
  return result;
}

/// Tiles and vectors alike.
static constexpr int64_t kAlign = 64;

Buffers::Buffers(DlirWriter &writer, const hw::Machine &machine) : writer(writer), machine(machine) {}

int Buffers::add(hw::Memory memory, llvm::StringRef name, int64_t size, bool permanent) {
  Buffer buffer;
  buffer.memory = memory;
  buffer.size = std::max<int64_t>(kAlign, (size + kAlign - 1) / kAlign * kAlign);
  buffer.permanent = permanent;
  std::string own = name.str();
  for (int number = 1; !names.insert(own).second; ++number)
    own = name.str() + "." + std::to_string(number);
  buffer.value = writer.memory(memory, own, buffer.size, permanent);
  all.push_back(buffer);
  return static_cast<int>(all.size()) - 1;
}

int Buffers::unit(hw::Memory memory) {
  for (size_t id = 0; id < all.size(); ++id)
    if (all[id].memory == memory)
      return static_cast<int>(id);
  std::string name = llvm::StringRef(hw::nameOf(memory)).lower();
  int id = add(memory, name, static_cast<int64_t>(machine.memory(memory).size));
  all[id].address = 0;
  return id;
}

void Buffers::finish() {
  for (Buffer &buffer : all) {
    auto op = buffer.value.getDefiningOp<dlir::MemoryOp>();
    if (buffer.value.use_empty())
      op.erase();
    else
      op.setAddress(buffer.address);
  }
}

void Buffers::touch(int id, int task) {
  Buffer &buffer = all[id];
  buffer.first = buffer.first < 0 ? task : std::min(buffer.first, task);
  buffer.last = std::max(buffer.last, task);
}

void Buffers::placePermanent(MemoryUse &used) {
  for (Buffer &buffer : all)
    if (buffer.permanent) {
      int64_t &at = used[static_cast<int>(buffer.memory)];
      buffer.address = at;
      at += buffer.size;
    }
}

MemoryUse Buffers::placeTemporaries(const MemoryUse &used) {
  MemoryUse result = used;
  for (int memory = 0; memory < hw::kMemories; ++memory) {
    std::vector<LiveRange> ranges;
    std::vector<Buffer *> movable;
    for (Buffer &buffer : all)
      if (!buffer.permanent && !buffer.isUnit() && buffer.first >= 0 && static_cast<int>(buffer.memory) == memory) {
        ranges.push_back({buffer.size, buffer.first, buffer.last});
        movable.push_back(&buffer);
      }
    result[memory] += packArena(ranges);
    for (size_t i = 0; i < ranges.size(); ++i)
      movable[i]->address = used[memory] + ranges[i].offset;
  }
  return result;
}

std::vector<int> Buffers::permanentIn(hw::Memory memory) const {
  std::vector<int> ids;
  for (auto [id, buffer] : llvm::enumerate(all))
    if (buffer.permanent && buffer.memory == memory)
      ids.push_back(static_cast<int>(id));
  return ids;
}

std::vector<int> Buffers::inTheWay(hw::Memory memory, int64_t room) const {
  int tasks = 1;
  for (const Buffer &buffer : all)
    tasks = std::max(tasks, buffer.last + 1);
  std::vector<int> left, chosen;
  std::vector<int64_t> load(tasks);
  auto isLive = [&](const Buffer &buffer, int task) {
    return buffer.permanent || (buffer.first <= task && task <= buffer.last);
  };
  auto add = [&](const Buffer &buffer, int64_t bytes) {
    for (int task = 0; task < tasks; ++task)
      load[task] += isLive(buffer, task) ? bytes : 0;
  };
  for (auto [id, buffer] : llvm::enumerate(all))
    if (buffer.memory == memory && !buffer.isUnit() && (buffer.permanent || buffer.first >= 0)) {
      left.push_back(static_cast<int>(id));
      add(buffer, buffer.size);
    }
  while (!left.empty()) {
    const auto fullest = llvm::max_element(load);
    if (*fullest <= room && !chosen.empty())
      break;
    const int task = static_cast<int>(fullest - load.begin());
    auto size = [&](int id) { return isLive(all[id], task) ? all[id].size : 0; };
    auto largest = std::max_element(left.begin(), left.end(), [&](int a, int b) { return size(a) < size(b); });
    add(all[*largest], -all[*largest].size);
    chosen.push_back(*largest);
    left.erase(largest);
  }
  return chosen;
}

std::optional<hw::Memory> dmxc::corsair::exceeded(const MemoryUse &used, const hw::Machine &machine) {
  for (int memory = 0; memory < hw::kMemories; ++memory)
    if (static_cast<uint64_t>(used[memory]) > machine.memories[memory].size)
      return static_cast<hw::Memory>(memory);
  return std::nullopt;
}
