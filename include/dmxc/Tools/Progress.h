//===- Progress.h - what a tool does, said while it does it -----*- C++ -*-===//
//
// On a terminal one line, rewritten in place and never wider than it. Elsewhere nothing in the first two seconds, then
// a line at least every two: the step, how far it is (Support/WorkCount.h), what runs now, and the seconds since the
// start, so that no line is like another. A thread of its own writes them, so that a step that says nothing for long is
// seen too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <mutex>
#include <string>

namespace dmxc::tools {

enum class ProgressForm {
  None,
  Delayed,  ///< lines, none in the first two seconds
  Plain,    ///< lines, one for each step at once
  Terminal, ///< one line in place
};

/// What suits stderr: a terminal that can move its cursor, or anything else.
ProgressForm progressFormOfStderr();

/// One at a time in a process.
class Progress {
public:
  /// `steps`: how many there will be; 0 where they are not numbered.
  Progress(ProgressForm form, size_t steps);
  ~Progress();
  Progress(const Progress &) = delete;
  /// The next step begins: its name, and what it does.
  void step(const std::string &name, const std::string &summary);
  /// The last step is done: says how far it came, where anything was said at all, and no more.
  void finish();

private:
  struct Writer;
  std::unique_ptr<Writer> writer; ///< null where nothing is said
};

/// To be held while something else is written to stderr: takes the line off a terminal, and keeps it off.
[[nodiscard]] std::unique_lock<std::mutex> holdProgress();

} // namespace dmxc::tools
