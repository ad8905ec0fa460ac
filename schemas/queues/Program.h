//===- Program.h - programs of queues, as bytes -----------------*- C++ -*-===//
//
// What the inside of a kernel in DLIR is on a machine that has no instruction set of its own yet: its queues, loops,
// tokens, copies, channels, and the tasks of the machine's engines. Compiler and runtime share it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmx::queues {

/// A memory and what its port moves in a clock.
struct Memory {
  std::string_view name;
  int64_t size, bytesPerClock;
};
/// What programs of one machine may name, by number.
struct Machine {
  std::string_view name;
  std::span<const Memory> memories;
  std::span<const std::string_view> engineTasks; ///< "mine.multiply"
  std::string_view numbers;                      ///< that they multiply: "f32"
  double clockHz, peakOps;                       ///< a second: of all engines, at most
};

enum class Word : int64_t {
  Kernel,   ///< called `name`; what follows up to the next one is its own
  Buffer,   ///< called `name`, at place[0]: memory, bytes
  Argument, ///< called `name`: 1 for an output, buffer; place[0] in it; its walk's source is the host's tensor
  Token,    ///< how many there are at the start
  Channel,  ///< how many puts may be ahead of gets
  Queue,    ///< what follows up to the next one is its own
  Loop,     ///< trips
  End,      ///< of the loop
  Group,    ///< `name` is what follows, in messages and reports
  Wait,     ///< token, how many
  Signal,   ///< token, how many
  Copy,     ///< memory, memory: a walk from place[0] to place[1]
  Put,      ///< channel, memory: a walk's source from place[0]
  Get,      ///< channel, memory: a walk's target to place[0]
  Engine,   ///< which of the machine's tasks, memories of place[0] to place[2]; place[3] is a number
  Count
};
std::string_view wordOf(Word word);

inline constexpr size_t kLoops = 6, kDims = 3;
/// Queues of a kernel, at most: each is a thread to who runs them.
inline constexpr int64_t kMostQueues = 1024;

/// base, and what each count of the loops around adds, the outermost first.
struct Place {
  int64_t base = 0, steps[kLoops] = {};
};

/// Items of so many bytes: steps are bytes, the outermost dim first.
struct Walk {
  int64_t bytes = 0, counts[kDims] = {1, 1, 1}, source[kDims] = {}, target[kDims] = {};
  int64_t items() const { return counts[0] * counts[1] * counts[2]; }
  /// Bytes of the host's tensor that an argument's walk, whose steps there are not negative, reaches.
  uint64_t hostBytes() const;
};

/// An instruction; a code object is their bytes.
struct Line {
  Word word;
  int64_t n[4] = {};
  Place place[4];
  Walk walk;
  char name[64] = {};
};
using Program = std::vector<Line>;

/// Programs of the kernels in a code object; none, and why, where it is not sound: what an instruction names is there,
/// loops end, numbers are so small that no place overflows.
std::vector<Program> read(std::span<const std::byte> code, const Machine &machine, std::string &error);
/// One line of text.
std::string textOf(const Line &line, const Machine &machine);

} // namespace dmx::queues
