//===- Generate.h - what dmx-generate does ----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Tools/Roles.h"

#include <iosfwd>

namespace dmxc::tools {

/// How a token is chosen from logits.
struct SamplingOptions {
  double temperature = 0;       ///< 0: the best one
  int64_t topK = 0;             ///< among the best K alone; 0: all
  double topP = 1;              ///< among the best ones that have this share of the probability
  double repetitionPenalty = 1; ///< logits of tokens that were there are divided by it, negative ones multiplied
  std::optional<uint64_t> seed; ///< the same choices each time; else others each time
};

/// The command line of dmx-generate (tools/dmx-generate), one field a flag.
struct GenerateOptions {
  std::string bundle;
  SessionSettings session;
  DecoderNames names;
  std::vector<std::string> prompts; ///< token ids as text, one prompt each
  std::string promptsFile;          ///< a prompt a line; "-": stdin
  int64_t randomPrompt = 0;         ///< one of that many random ids; 0: none
  SamplingOptions sampling;
  std::vector<int64_t> stopIds; ///< empty: those that the bundle says
  bool ignoreStops = false;
  int64_t maxTokens = 128;
  int64_t context = 0; ///< most tokens, prompt and answer together; 0: as the bundle says
  int64_t lookup = 0;  ///< tokens that are guessed and checked in one run; 0: none
  std::string jsonFile;
  bool benchmark = false;
  bool quiet = false;
};

/// Generates token ids for each prompt and writes them to `out` as they come, a line a prompt. Gives the signal that
/// ended it, 0 for none: what was said until then is written, and the caller is to die of it. The error says what to
/// print on stderr and, by its kind, the exit code.
Result<int> generate(const GenerateOptions &options, std::ostream &out);

} // namespace dmxc::tools
