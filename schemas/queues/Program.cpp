//===- Program.cpp - programs of queues, as bytes -------------------------===//
#include "Program.h"

#include "schemas/Size.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace dmx::queues {
namespace {

/// By Word: what an instruction's numbers are: (m)emory, (b)uffer, (t)oken, (c)hannel, (e)ngine task, or any; how many
/// places it has; and whether it walks.
struct Form {
  std::string_view word, numbers;
  size_t places = 0;
  bool walks = false;
};
constexpr Form kForms[] = {{"kernel", ""},
                           {"buffer", "m.", 1},
                           {"argument", ".b", 1, true},
                           {"token", "."},
                           {"channel", "."},
                           {"queue", ""},
                           {"loop", "."},
                           {"end", ""},
                           {"group", ""},
                           {"wait", "t."},
                           {"signal", "t."},
                           {"copy", "mm", 2, true},
                           {"put", "cm", 1, true},
                           {"get", "cm", 1, true},
                           {"engine", "emmm", 4}};
static_assert(std::has_unique_object_representations_v<Line>, "code is the same bytes each time");
static_assert(std::size(kForms) == static_cast<size_t>(Word::Count));

constexpr int64_t kLargest = int64_t(1) << 31;
/// Of an address, all loops and items counted.
constexpr int64_t kFarthest = int64_t(1) << 62;

bool isSmall(int64_t number) { return number >= -kLargest && number <= kLargest; }

/// What a kernel has declared so far.
class Scope {
public:
  explicit Scope(const Machine &machine) : machine(machine) {}
  bool isWhole() const { return loops == 0; }

  bool accepts(const Line &line) {
    if (line.word < Word::Kernel || line.word >= Word::Count || line.name[sizeof line.name - 1])
      return false;
    const Form &form = kForms[static_cast<size_t>(line.word)];
    for (size_t i = 0; i < form.numbers.size(); ++i)
      if (line.n[i] < 0 || line.n[i] >= limit(form.numbers[i]))
        return false;
    for (const Place &place : line.place)
      if (!isSmall(place.base) || !std::ranges::all_of(place.steps, isSmall) || !isNear(place))
        return false;
    // The host's tensor begins where a walk over it does.
    if (line.word == Word::Argument && std::ranges::any_of(line.walk.source, [](int64_t step) { return step < 0; }))
      return false;
    return (!form.walks || accepts(line.walk)) && stands(line);
  }

private:
  const Machine &machine;
  int64_t buffers = 0, tokens = 0, channels = 0, queues = 0;
  bool inQueue = false;
  size_t loops = 0;
  int64_t trips[kLoops] = {}; ///< of those that are open

  int64_t limit(char kind) const {
    switch (kind) {
    case 'm':
      return static_cast<int64_t>(machine.memories.size());
    case 'e':
      return static_cast<int64_t>(machine.engineTasks.size());
    case 'b':
      return buffers;
    case 't':
      return tokens;
    case 'c':
      return channels;
    default:
      return kLargest;
    }
  }

  static bool accepts(const Walk &walk) {
    Size all = walk.bytes;
    bool good = walk.bytes > 0;
    for (size_t i = 0; i < kDims; ++i) {
      good &= walk.counts[i] > 0 && isSmall(walk.source[i]) && isSmall(walk.target[i]);
      all *= walk.counts[i];
    }
    return good && all.fits(kLargest);
  }

  /// Whether no count of the loops around takes a place out of the numbers.
  bool isNear(const Place &place) const {
    Size far = std::abs(place.base);
    for (size_t i = 0; i < loops; ++i)
      far += Size(trips[i] - 1) * std::abs(place.steps[i]);
    return far.fits(kFarthest);
  }

  /// Whether it may stand behind those before it.
  bool stands(const Line &line) {
    if (line.word == Word::Kernel || line.word == Word::Queue) {
      if (line.word == Word::Kernel)
        buffers = tokens = channels = queues = 0;
      inQueue = line.word == Word::Queue;
      queues += inQueue;
      return loops == 0 && queues <= kMostQueues;
    }
    buffers += line.word == Word::Buffer;
    tokens += line.word == Word::Token;
    channels += line.word == Word::Channel;
    if (inQueue != (line.word > Word::Queue) || (line.word == Word::End && !loops) ||
        (line.word == Word::Loop && (!line.n[0] || loops == kLoops)))
      return false;
    if (line.word == Word::Loop)
      trips[loops++] = line.n[0];
    loops -= line.word == Word::End;
    return true;
  }
};

} // namespace

uint64_t Walk::hostBytes() const {
  Size last = bytes;
  for (size_t i = 0; i < kDims; ++i)
    last += Size(counts[i] - 1) * source[i];
  return last.value();
}

std::string_view wordOf(Word word) { return kForms[static_cast<size_t>(word)].word; }

std::vector<Program> read(std::span<const std::byte> code, const Machine &machine, std::string &error) {
  std::vector<Line> lines(code.size() / sizeof(Line));
  if (!lines.empty())
    std::memcpy(static_cast<void *>(lines.data()), code.data(), lines.size() * sizeof(Line));
  std::vector<Program> kernels;
  Scope scope(machine);
  for (const Line &line : lines) {
    if (line.word == Word::Kernel)
      kernels.emplace_back();
    if (kernels.empty() || !scope.accepts(line)) {
      error = "instruction " + std::to_string(&line - lines.data()) + " is not sound";
      return {};
    }
    kernels.back().push_back(line);
  }
  if (!kernels.empty() && scope.isWhole() && code.size() % sizeof(Line) == 0)
    return kernels;
  error = "it ends too early";
  return {};
}

std::string textOf(const Line &line, const Machine &machine) {
  const Form &form = kForms[static_cast<size_t>(line.word)];
  std::string text(line.word > Word::Queue ? "  " : "");
  text += line.word == Word::Engine ? machine.engineTasks[line.n[0]] : form.word;
  for (size_t i = line.word == Word::Engine; i < form.numbers.size(); ++i)
    text += " " + (form.numbers[i] == 'm' ? std::string(machine.memories[line.n[i]].name) : std::to_string(line.n[i]));
  for (size_t i = 0; i < form.places; ++i) {
    text += i ? ", [" : " [";
    text += std::to_string(line.place[i].base);
    for (size_t loop = 0; loop < kLoops; ++loop)
      if (int64_t step = line.place[i].steps[loop])
        text += " + " + std::to_string(step) + "*i" + std::to_string(loop);
    text += "]";
  }
  for (size_t i = 0; form.walks && i < kDims; ++i)
    if (line.walk.counts[i] != 1)
      text += " " + std::to_string(line.walk.counts[i]) + "(" + std::to_string(line.walk.source[i]) + ">" +
              std::to_string(line.walk.target[i]) + ")";
  if (form.walks)
    text += " of " + std::to_string(line.walk.bytes);
  return text + (line.name[0] ? std::string(" \"") + line.name + "\"" : "");
}

} // namespace dmx::queues
