//===- Buffers.cpp - ranges of the device's memories ----------------------===//

#include "Buffers.h"

#include "dmxc/Support/ArenaPacking.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

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

std::optional<std::string> dmxc::corsair::exceeds(const MemoryUse &used, const hw::Machine &machine) {
  for (int memory = 0; memory < hw::kMemories; ++memory)
    if (uint64_t size = machine.memories[memory].size; static_cast<uint64_t>(used[memory]) > size)
      return llvm::formatv("{0} holds {1} bytes, the model needs {2}; {3}", hw::nameOf(static_cast<hw::Memory>(memory)),
                           size, used[memory],
                           memory == static_cast<int>(hw::Memory::ST)
                               ? "a larger team (-t corsair:quads=N) or capacity mode may help"
                               : "a smaller batch (--dim) or some nodes on the host (--place 'NODE=cpu') may help")
          .str();
  return std::nullopt;
}
