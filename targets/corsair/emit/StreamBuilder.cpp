//===- StreamBuilder.cpp - writing an instruction stream ------------------===//

#include "StreamBuilder.h"

#include "dmxc/Support/ArenaPacking.h"

#include "llvm/Support/FormatVariadic.h"

using namespace dmxc::corsair;

Address Address::plusLoop(int depth, int64_t scale) const {
  Address result = *this;
  hw::Term term = hw::loopTerm(depth, scale);
  auto at = llvm::find_if(result.terms, [&](const hw::Term &t) { return t.source >= term.source; });
  if (at != result.terms.end() && at->source == term.source)
    at->scale += scale;
  else if (scale != 0)
    result.terms.insert(at, term);
  return result;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Tiles and vectors alike.
static constexpr int64_t kAlign = 64;

int Buffers::add(hw::Memory memory, int64_t size, bool permanent) {
  Buffer buffer;
  buffer.memory = memory;
  buffer.size = std::max<int64_t>(kAlign, (size + kAlign - 1) / kAlign * kAlign);
  buffer.permanent = permanent;
  all.push_back(buffer);
  return static_cast<int>(all.size()) - 1;
}

void Buffers::touch(int id) {
  Buffer &buffer = all[id];
  if (buffer.first < 0)
    buffer.first = step;
  buffer.last = std::max(buffer.last, step);
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
      if (!buffer.permanent && buffer.first >= 0 && static_cast<int>(buffer.memory) == memory) {
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
      return llvm::formatv("{0} holds {1} bytes, the model needs {2}", hw::nameOf(static_cast<hw::Memory>(memory)),
                           size, used[memory])
          .str();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

hw::Instruction &StreamBuilder::emit(hw::Opcode opcode) { return code.emplace_back(opcode); }

void StreamBuilder::address(std::string_view field, const Address &value) {
  if (value.buffer >= 0)
    buffers.touch(value.buffer);
  fixups.push_back({code.size() - 1, std::string(field), value});
}

int StreamBuilder::config(hw::Unit unit, std::vector<hw::ConfigPair> keys) {
  llvm::erase_if(keys, [](const hw::ConfigPair &pair) {
    return pair.second == hw::findConfigKey(pair.first)->byDefault;
  });
  llvm::sort(keys);
  std::list<Slot> &known = slots[unit];
  auto hit = llvm::find_if(known, [&](const Slot &slot) { return slot.keys == keys; });
  if (hit == known.end()) {
    int number = static_cast<int>(known.size());
    if (number == hw::kConfigSlots) {
      number = known.back().number;
      known.pop_back();
    }
    static constexpr hw::Opcode opcodes[] = {hw::Opcode::ConfigAC, hw::Opcode::ConfigSIMD, hw::Opcode::ConfigGM,
                                              hw::Opcode::ConfigST};
    hw::Instruction &instruction = emit(opcodes[static_cast<int>(unit)]);
    instruction.set("slot", number);
    for (const hw::ConfigPair &pair : keys)
      instruction.key(pair.first, pair.second);
    hit = known.insert(known.end(), {number, std::move(keys)});
  }
  known.splice(known.begin(), known, hit);
  return known.front().number;
}

void StreamBuilder::loop(int64_t trips, llvm::function_ref<void(int depth)> body) {
  if (trips <= 0)
    return;
  emit(hw::Opcode::Loop).set("n", trips);
  body(depth++);
  --depth;
  emit(hw::Opcode::EndLoop);
}

hw::Code StreamBuilder::finish(std::string name) {
  emit(hw::Opcode::Halt);
  for (const Fixup &fixup : fixups) {
    int64_t base = fixup.value.buffer >= 0 ? buffers[fixup.value.buffer].address : 0;
    code[fixup.instruction].set(fixup.field, base + fixup.value.offset,
                                {fixup.value.terms.begin(), fixup.value.terms.end()});
  }
  fixups.clear();
  return {std::move(name), std::move(code)};
}
