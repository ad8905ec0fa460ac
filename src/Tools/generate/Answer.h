//===- Answer.h - what was generated, and how fast --------------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Decoder.h"

namespace dmxc::tools {

/// Why no further token came.
enum class Ending { Stop, Length, Context, Interrupted };

/// Runs of a decoder and what they took.
struct Pace {
  uint64_t tokens = 0, runs = 0, cacheBytes = 0;
  double ms = 0;
  void add(const Pace &other);
  double perSecond() const { return ms > 0 ? static_cast<double>(tokens) * 1000 / ms : 0; }
};

struct Answer {
  std::vector<int64_t> prompt, ids;
  Ending ending = Ending::Length;
  uint64_t seed = 0;
  Pace prefill, decode; ///< of the prompt, and of the tokens behind the first that is generated
};

/// What a whole execution reports.
struct GenerateReport {
  std::string bundle;
  dmx_session_info info = {};
  double loadMs = 0, sessionMs = 0;
  bool isSampled = false;
  std::vector<Answer> answers;
};

void printFigures(const GenerateReport &report, std::ostream &out);
/// JSON, ends with a newline.
std::string jsonOf(const GenerateReport &report);

} // namespace dmxc::tools
