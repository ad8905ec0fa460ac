//===- Report.h - what runs of a device cost, as JSON -----------*- C++ -*-===//
//
// One form for all devices, which dmx-inspect --html shows: names of memories, engines, kinds of numbers are the
// device's. The figures of a run are lists of the caller's, written as they come.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "TextWriter.h"

#include <span>

namespace dmxrt::sim {

struct Count {
  std::string_view name;
  uint64_t number;
};
struct Share {
  std::string_view name;
  double number;
};

/// What was moved and computed.
struct Work {
  std::span<const uint64_t> readBytes, writtenBytes; ///< by memory
  std::span<const Count> linkBytes, macs;            ///< macs by the kind of the numbers
  uint64_t simdOps = 0, instructions = 0;
  uint64_t saturated = 0; ///< results that their format could not hold
};

struct RunFigures {
  uint64_t clocks = 0;
  double seconds = 0;
  std::span<const Count> units;  ///< what took part
  std::string_view bound;        ///< what kept it from being faster
  std::span<const Share> shares; ///< 0..1
  Work work;
  std::span<const Share> utilisation; ///< by engine, 0..1
  std::span<const Share> energy;      ///< joules, by component; none where the device has no figures
  double peakOps = 0, ops = 0;        ///< operations a second at most, and those that were done
};

/// What a memory could have done in all its units that took part.
struct Roof {
  std::string_view memory;
  uint64_t units = 1;
  double bytesPerSecond = 0; ///< with the run's mix of reads and writes
  double readPerSecond = 0, writtenPerSecond = 0;
  bool onePort = false; ///< reads and writes share it
};

/// Of a session: runs("first"), runs("last"); in each of them kernel, program("init"), program("main") for every
/// dispatch; behind a program its roofs, then its tasks.
class ReportWriter {
public:
  ReportWriter(std::string_view machine, std::span<const std::string_view> memories, double clockHz, uint64_t count);
  void runs(const char *which);
  void kernel(std::string_view name, uint64_t hostBytesIn, uint64_t hostBytesOut, double hostSeconds);
  void program(const char *which, const RunFigures &run);
  void roof(const Roof &roof);
  /// From its first clock to its last.
  void task(std::string_view name, uint64_t first, uint64_t last, std::string_view bound, const Work &work);
  bool save(const std::string &path);

private:
  enum Level : uint8_t { File, Runs, Kernel, Roofs, Tasks };
  /// Ends what is inside of a level.
  void back(Level to);
  void comma() { out.text += items++ ? ", " : ""; }
  void add(std::span<const Count> figures);
  void add(std::span<const Share> figures);
  void bytes(const char *key, std::span<const uint64_t> numbers);
  void work(const Work &work);

  TextWriter out;
  std::span<const std::string_view> memories;
  Level level = File;
  unsigned items = 0, kernels = 0; ///< of the object at hand, of the list of runs
};

} // namespace dmxrt::sim
