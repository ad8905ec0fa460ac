//===- MemoryMap.cpp - what lies where in a kernel's memories -------------===//

#include "MemoryMap.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dmx::corsair {
namespace {

bool overlap(const ByteRange &a, const ByteRange &b) { return a.begin < b.end && b.begin < a.end; }
bool contains(const ByteRange &outer, const ByteRange &inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}
ByteRange joined(const ByteRange &a, const ByteRange &b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}
/// Whether a memory keeps its bytes between dispatches.
bool isKept(Memory memory) { return memory == Memory::DDR || memory == Memory::GM || memory == Memory::ST; }

/// A loop's first and last position in its stream.
using LoopSpan = std::pair<uint32_t, uint32_t>;

std::vector<LoopSpan> loopsOf(const Code &code) {
  std::vector<LoopSpan> loops;
  std::vector<size_t> open;
  for (uint32_t i = 0; i < code.instructions.size(); ++i) {
    if (code.instructions[i].opcode == Opcode::Loop) {
      open.push_back(loops.size());
      loops.push_back({i, i});
    } else if (code.instructions[i].opcode == Opcode::EndLoop) {
      loops[open.back()].second = i;
      open.pop_back();
    }
  }
  return loops;
}

/// A value in one unit: from its first write to its last read.
struct Life {
  ByteRange bytes;
  uint32_t first = 0, last = 0;
  bool wasRead = false;
  /// What an overwritten value has left: it counts once it is read again.
  bool isRest = false;
};

/// The values that one unit holds one after the other.
class Lives {
public:
  void read(const ByteRange &bytes, uint32_t step) {
    bool found = false;
    for (Life &life : live)
      if (overlap(life.bytes, bytes)) {
        life.last = step;
        life.isRest = false;
        found = life.wasRead = true;
      }
    if (!found) // of an earlier dispatch
      live.push_back({bytes, 0, step, true, false});
  }
  /// A write adds to a value that nobody has read yet, unless it replaces all of it; else it begins the next one.
  void write(const ByteRange &bytes, uint32_t step) {
    Life next{bytes, step, step, false, false};
    std::vector<Life> kept;
    for (const Life &life : live) {
      if (!overlap(life.bytes, bytes)) {
        kept.push_back(life);
      } else if (!life.wasRead && life.bytes != bytes) {
        next.bytes = joined(next.bytes, life.bytes);
        next.first = std::min(next.first, life.first);
      } else {
        end(life);
        for (ByteRange rest : {ByteRange{life.bytes.begin, bytes.begin}, ByteRange{bytes.end, life.bytes.end}})
          if (rest.begin < rest.end)
            kept.push_back({rest, step, step, true, true});
      }
    }
    kept.push_back(next);
    live = std::move(kept);
  }
  std::vector<Life> take() {
    for (const Life &life : live)
      end(life);
    return std::move(ended);
  }

private:
  std::vector<Life> live, ended;
  void end(const Life &life) {
    if (!life.isRest)
      ended.push_back(life);
  }
};

class MapBuilder {
public:
  MapBuilder(const Image &image, const Kernel &kernel) : image(image), kernel(kernel) {}
  KernelMap run();

private:
  const Image &image;
  const Kernel &kernel;
  KernelMap map;
  size_t placed = 0;     ///< ranges of arguments and residents; the others are temporaries
  uint32_t lastStep = 0; ///< of `main`

  uint32_t stepsOf(const Program &program) const;
  void addArguments();
  void addResidents();
  void addTemporaries();
  void addTemporaries(const Launch &launch, bool representative);
  void addOrdered(const std::vector<Access> &accesses, const Code &code);
  void addUnordered(const std::vector<Access> &accesses);
  void addTemporary(Memory memory, uint32_t unit, const ByteRange &bytes, uint32_t first, uint32_t last);
  std::vector<Access> known(const std::vector<Access> &accesses, bool representative);
  bool isPlaced(Memory memory, uint32_t unit, const ByteRange &bytes) const;
  void mergeUnits();
};

uint32_t MapBuilder::stepsOf(const Program &program) const {
  size_t most = 0;
  for (const Launch &launch : program.launches)
    for (uint32_t stream : launch.streams)
      if (stream != kNoStream)
        most = std::max(most, image.streams[stream].instructions.size());
  return static_cast<uint32_t>(most);
}

void MapBuilder::addArguments() {
  constexpr RangeKind kKinds[] = {RangeKind::Input, RangeKind::Output, RangeKind::State, RangeKind::Const};
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument &argument = kernel.arguments[i];
    for (const Piece &piece : argument.pieces) {
      auto begin = static_cast<int64_t>(piece.address);
      map.ranges.push_back({piece.memory,
                            kKinds[static_cast<int>(argument.role)],
                            {piece.unit},
                            {begin, begin + std::max<int64_t>(spanOf(argument, piece), 0)},
                            argument.name,
                            static_cast<int>(i),
                            0,
                            lastStep});
    }
  }
  placed = map.ranges.size();
}

/// What `init` leaves in memories that keep their bytes, named after what it reads for it.
void MapBuilder::addResidents() {
  size_t arguments = map.ranges.size();
  std::vector<MapRange> found;
  auto join = [&](MapRange range) { // writes that overlap are of one thing
    for (size_t i = found.size(); i-- > 0;) {
      if (found[i].memory != range.memory || found[i].units != range.units || !overlap(found[i].bytes, range.bytes))
        continue;
      range.bytes = joined(range.bytes, found[i].bytes);
      range.first = std::min(range.first, found[i].first);
      if (range.name.empty() || found[i].name == range.name)
        range.name = found[i].name;
      else if (!found[i].name.empty() && found[i].name.find(range.name) == std::string::npos)
        range.name = found[i].name + ", " + range.name;
      found.erase(found.begin() + static_cast<ptrdiff_t>(i));
    }
    found.push_back(std::move(range));
  };
  for (const Launch &launch : kernel.init.launches) {
    std::string source; // of the instruction at hand: its reads come before its writes
    std::pair<uint32_t, uint32_t> at{~0u, 0};
    for (const Access &access : accessesOf(image, kernel, launch)) {
      if (at != std::pair(access.queue, access.position))
        source.clear();
      at = {access.queue, access.position};
      if (!access.range)
        continue;
      for (uint32_t unit : access.units) {
        if (!access.write) {
          for (size_t i = 0; i < arguments; ++i)
            if (const MapRange &range = map.ranges[i];
                range.memory == access.memory && range.units[0] == unit && overlap(range.bytes, *access.range))
              source = range.name;
          for (const MapRange &range : found)
            if (range.memory == access.memory && range.units[0] == unit && overlap(range.bytes, *access.range))
              source = range.name;
        } else if (isKept(access.memory) && !isPlaced(access.memory, unit, *access.range)) {
          join({access.memory, RangeKind::Resident, {unit}, *access.range, source, -1, access.position, lastStep});
        }
      }
    }
  }
  map.ranges.insert(map.ranges.end(), found.begin(), found.end());
  placed = map.ranges.size();
}

/// Whether a range lies in an argument or in what `init` wrote.
bool MapBuilder::isPlaced(Memory memory, uint32_t unit, const ByteRange &bytes) const {
  auto end = map.ranges.begin() + static_cast<ptrdiff_t>(placed);
  return std::any_of(map.ranges.begin(), end, [&](const MapRange &range) {
    return range.memory == memory && range.units[0] == unit && contains(range.bytes, bytes);
  });
}

void MapBuilder::addTemporary(Memory memory, uint32_t unit, const ByteRange &bytes, uint32_t first, uint32_t last) {
  map.ranges.push_back(
      {memory, RangeKind::Temporary, {unit}, bytes, "", -1, map.initSteps + first, map.initSteps + last});
}

/// Accesses that are at known places which hold nothing else; the rest is counted.
std::vector<Access> MapBuilder::known(const std::vector<Access> &accesses, bool representative) {
  std::vector<Access> out;
  for (const Access &access : accesses) {
    if (!access.range) {
      map.unknown[static_cast<int>(access.memory)] += representative;
      continue;
    }
    if (!isKept(access.memory) && !representative)
      continue;
    Access one = access;
    std::erase_if(one.units, [&](uint32_t unit) { return isPlaced(access.memory, unit, *access.range); });
    if (!one.units.empty())
      out.push_back(std::move(one));
  }
  return out;
}

void MapBuilder::addOrdered(const std::vector<Access> &accesses, const Code &code) {
  std::map<std::pair<Memory, uint32_t>, Lives> lives;
  for (const Access &access : accesses)
    for (uint32_t unit : access.units) {
      Lives &of = lives[{access.memory, unit}];
      access.write ? of.write(*access.range, access.position) : of.read(*access.range, access.position);
    }
  std::vector<LoopSpan> loops = loopsOf(code);
  for (auto &[place, of] : lives)
    for (Life &life : of.take()) {
      // What crosses a loop's end lives through all its trips.
      for (auto [begin, end] : loops) {
        bool first = begin <= life.first && life.first <= end, last = begin <= life.last && life.last <= end;
        if (first && !last)
          life.first = std::min(life.first, begin);
        if (last && !first)
          life.last = std::max(life.last, end);
      }
      addTemporary(place.first, place.second, life.bytes, life.first, life.last);
    }
}

void MapBuilder::addUnordered(const std::vector<Access> &accesses) {
  std::map<std::pair<Memory, uint32_t>, std::vector<ByteRange>> used;
  for (const Access &access : accesses)
    for (uint32_t unit : access.units)
      used[{access.memory, unit}].push_back(*access.range);
  for (auto &[place, ranges] : used) {
    std::sort(ranges.begin(), ranges.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
    std::vector<ByteRange> merged;
    for (const ByteRange &range : ranges)
      if (!merged.empty() && range.begin < merged.back().end)
        merged.back() = joined(merged.back(), range);
      else
        merged.push_back(range);
    for (const ByteRange &range : merged)
      addTemporary(place.first, place.second, range, 0, lastStep - map.initSteps);
  }
}

void MapBuilder::addTemporaries() {
  std::set<std::array<uint32_t, 4>> seen;
  for (const Launch &launch : kernel.main.launches)
    addTemporaries(launch, seen.insert(launch.streams).second);
}

void MapBuilder::addTemporaries(const Launch &launch, bool representative) {
  std::vector<Access> accesses = known(accessesOf(image, kernel, launch), representative);
  auto isUsed = [](uint32_t stream) { return stream != kNoStream; };
  if (std::count_if(launch.streams.begin(), launch.streams.end(), isUsed) > 1)
    addUnordered(accesses);
  else if (auto used = std::find_if(launch.streams.begin(), launch.streams.end(), isUsed); used != launch.streams.end())
    addOrdered(accesses, image.streams[*used]);
}

/// One entry for what is alike in several units.
void MapBuilder::mergeUnits() {
  auto keyOf = [](const MapRange &range) {
    return std::tuple(range.memory, range.kind == RangeKind::Temporary, range.bytes.begin, range.bytes.end, range.first,
                      range.last, range.kind, range.argument, range.name);
  };
  std::map<decltype(keyOf(map.ranges[0])), MapRange> merged;
  for (MapRange &range : map.ranges) {
    auto [it, fresh] = merged.try_emplace(keyOf(range), range);
    if (!fresh)
      it->second.units.insert(it->second.units.end(), range.units.begin(), range.units.end());
  }
  map.ranges.clear();
  for (auto &[key, range] : merged) {
    std::sort(range.units.begin(), range.units.end());
    range.units.erase(std::unique(range.units.begin(), range.units.end()), range.units.end());
    map.ranges.push_back(std::move(range));
  }
}

KernelMap MapBuilder::run() {
  map.initSteps = stepsOf(kernel.init);
  map.mainSteps = stepsOf(kernel.main);
  lastStep = std::max(map.initSteps + map.mainSteps, 1u) - 1;
  addArguments();
  addResidents();
  addTemporaries();
  mergeUnits();
  return std::move(map);
}

} // namespace

std::string_view nameOf(RangeKind kind) {
  constexpr std::string_view kNames[] = {"input", "output", "state", "const", "resident", "temporary"};
  return kNames[static_cast<int>(kind)];
}

KernelMap memoryMap(const Image &image, const Kernel &kernel) { return MapBuilder(image, kernel).run(); }

} // namespace dmx::corsair
