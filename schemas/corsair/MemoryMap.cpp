//===- MemoryMap.cpp - what lies where in a kernel's memories -------------===//

#include "MemoryMap.h"
#include "Schedule.h"

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

/// An access at its steps.
struct Event {
  Steps steps;
  bool write;
  ByteRange bytes;
  uint32_t task; ///< number of the MARK
};
constexpr uint32_t kNoTask = ~0u;

/// A value in one unit: from its first write to its last read.
struct Life {
  ByteRange bytes;
  Steps steps;
  uint32_t task = kNoTask;
  bool isMade = true; ///< else it is of an earlier dispatch
  bool wasRead = false;
  /// What an overwritten value has left: it counts once it is read again.
  bool isRest = false;
};

/// The values that one unit holds one after the other.
class Lives {
public:
  void read(const Event &event) {
    bool found = false;
    for (Life &life : live)
      if (overlap(life.bytes, event.bytes)) {
        if (!life.isMade)
          life.bytes = joined(life.bytes, event.bytes);
        life.steps.last = std::max(life.steps.last, event.steps.last);
        life.isRest = false;
        found = life.wasRead = true;
      }
    if (!found)
      live.push_back({event.bytes, {0, event.steps.last}, kNoTask, false, true, false});
  }
  /// A write adds to a value that nobody has read yet, unless it replaces all of it, and to one that is still being
  /// made; else it begins the next one.
  void write(const Event &event) {
    Life next{event.bytes, event.steps, event.task, true, false, false};
    std::vector<Life> kept;
    for (const Life &life : live) {
      bool together = event.steps.first < life.steps.last;
      if (!overlap(life.bytes, event.bytes)) {
        kept.push_back(life);
      } else if (together || (!life.wasRead && !contains(event.bytes, life.bytes))) {
        next.bytes = joined(next.bytes, life.bytes);
        next.steps.add(life.steps.first, life.steps.last);
        next.task = life.task;
      } else {
        end(life);
        keepRest(kept, life, event);
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
  static void keepRest(std::vector<Life> &kept, const Life &life, const Event &event) {
    for (ByteRange rest : {ByteRange{life.bytes.begin, event.bytes.begin}, ByteRange{event.bytes.end, life.bytes.end}})
      if (life.wasRead && rest.begin < rest.end)
        kept.push_back({rest, {event.steps.first, event.steps.first}, life.task, true, true, true});
  }
};

/// Marks in force at each position of a stream.
std::vector<uint32_t> tasksOf(const Code &code) {
  std::vector<uint32_t> tasks;
  uint32_t task = kNoTask;
  for (const Instruction &in : code.instructions) {
    if (in.opcode == Opcode::Mark)
      task = static_cast<uint32_t>(in.operands[0].base);
    tasks.push_back(task);
  }
  return tasks;
}

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

  std::map<std::pair<Memory, uint32_t>, std::vector<Event>> events; ///< of `main`, by unit

  void addArguments();
  void addResidents(const std::optional<Schedule> &schedule);
  void addResident(std::vector<MapRange> &found, MapRange range) const;
  std::string sourceOf(const Access &access, const std::vector<MapRange> &found) const;
  void collect(const std::optional<Schedule> &schedule);
  void collect(const Access &access, const Steps &steps, uint32_t task, bool representative);
  void addTemporaries();
  void addUnordered();
  bool isPlaced(Memory memory, uint32_t unit, const ByteRange &bytes) const;
  void mergeUnits();
};

void MapBuilder::addArguments() {
  constexpr RangeKind kKinds[] = {RangeKind::Input, RangeKind::Output, RangeKind::State, RangeKind::Const};
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument &argument = kernel.arguments[i];
    for (const Piece &piece : argument.pieces) {
      auto begin = static_cast<int64_t>(piece.address);
      map.ranges.push_back({piece.memory,
                            kKinds[static_cast<int>(argument.role)],
                            {piece.unit},
                            {begin, begin + static_cast<int64_t>(spanOf(argument, piece))},
                            argument.name,
                            static_cast<int>(i),
                            0,
                            lastStep});
    }
  }
  placed = map.ranges.size();
}

/// Writes that overlap are of one thing.
void MapBuilder::addResident(std::vector<MapRange> &found, MapRange range) const {
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
}

/// The name of what a read of `init` reads, if it has one.
std::string MapBuilder::sourceOf(const Access &access, const std::vector<MapRange> &found) const {
  std::string name;
  auto look = [&](const MapRange &range) {
    if (range.memory == access.memory && overlap(range.bytes, *access.range) &&
        std::find(access.units.begin(), access.units.end(), range.units[0]) != access.units.end())
      name = range.name;
  };
  std::for_each(map.ranges.begin(), map.ranges.end(), look);
  std::for_each(found.begin(), found.end(), look);
  return name;
}

/// What `init` leaves in memories that keep their bytes, named after what it reads for it.
void MapBuilder::addResidents(const std::optional<Schedule> &schedule) {
  std::vector<MapRange> found;
  for (size_t i = 0; i < kernel.init.launches.size(); ++i) {
    std::string source; // of the instruction at hand: its reads come before its writes
    std::pair<uint32_t, uint32_t> at{~0u, 0};
    for (const Access &access : accessesOf(image, kernel, kernel.init.launches[i])) {
      if (at != std::pair(access.queue, access.position))
        source.clear();
      at = {access.queue, access.position};
      if (!access.range)
        continue;
      if (!access.write) {
        std::string name = sourceOf(access, found);
        source = name.empty() ? source : name;
        continue;
      }
      uint32_t first = schedule ? schedule->of[i][access.queue][access.position].first : 0;
      for (uint32_t unit : access.units)
        if (isKept(access.memory) && !isPlaced(access.memory, unit, *access.range))
          addResident(found, {access.memory,
                              RangeKind::Resident,
                              {unit},
                              *access.range,
                              source,
                              -1,
                              first == ~0u ? 0 : first,
                              lastStep});
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

/// Accesses at known places that hold nothing else; the rest is counted.
void MapBuilder::collect(const Access &access, const Steps &steps, uint32_t task, bool representative) {
  if (!access.range) {
    map.unknown[static_cast<int>(access.memory)] += representative;
    return;
  }
  if (!isKept(access.memory) && !representative)
    return;
  for (uint32_t unit : access.units)
    if (!isPlaced(access.memory, unit, *access.range))
      events[{access.memory, unit}].push_back({steps, access.write, *access.range, task});
}

void MapBuilder::collect(const std::optional<Schedule> &schedule) {
  std::set<std::array<uint32_t, 4>> seen;
  std::map<uint32_t, std::vector<uint32_t>> tasks; // by stream
  for (size_t i = 0; i < kernel.main.launches.size(); ++i) {
    const Launch &launch = kernel.main.launches[i];
    bool representative = seen.insert(launch.streams).second;
    for (const Access &access : accessesOf(image, kernel, launch)) {
      uint32_t stream = launch.streams[access.queue];
      auto [marks, fresh] = tasks.try_emplace(stream);
      if (fresh)
        marks->second = tasksOf(image.streams[stream]);
      Steps steps = schedule ? schedule->of[i][access.queue][access.position] : Steps{0, 0};
      if (steps.executed())
        collect(access, steps, marks->second[access.position], representative);
    }
  }
}

void MapBuilder::addTemporaries() {
  for (auto &[place, list] : events) {
    std::stable_sort(list.begin(), list.end(), [](const Event &a, const Event &b) {
      return std::tuple(a.steps.first, a.write) < std::tuple(b.steps.first, b.write);
    });
    Lives lives;
    for (const Event &event : list)
      event.write ? lives.write(event) : lives.read(event);
    for (const Life &life : lives.take())
      map.ranges.push_back({place.first,
                            RangeKind::Temporary,
                            {place.second},
                            life.bytes,
                            life.task == kNoTask ? "" : image.marks[life.task],
                            -1,
                            map.initSteps + life.steps.first,
                            map.initSteps + life.steps.last});
  }
}

/// The ranges in use, whenever.
void MapBuilder::addUnordered() {
  for (auto &[place, list] : events) {
    std::sort(list.begin(), list.end(), [](const Event &a, const Event &b) { return a.bytes.begin < b.bytes.begin; });
    std::vector<ByteRange> merged;
    for (const Event &event : list)
      if (!merged.empty() && event.bytes.begin < merged.back().end)
        merged.back() = joined(merged.back(), event.bytes);
      else
        merged.push_back(event.bytes);
    for (const ByteRange &range : merged)
      map.ranges.push_back({place.first, RangeKind::Temporary, {place.second}, range, "", -1, map.initSteps, lastStep});
  }
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
  std::optional<Schedule> init = scheduleOf(image, kernel, kernel.init), main = scheduleOf(image, kernel, kernel.main);
  map.initSteps = init ? init->steps : 1;
  map.mainSteps = main ? main->steps : 1;
  map.ordered = main.has_value();
  lastStep = std::max(map.initSteps + map.mainSteps, 1u) - 1;
  addArguments();
  addResidents(init);
  collect(main);
  main ? addTemporaries() : addUnordered();
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
