//===- Facts.h - what a bundle says of itself as a decoder ------*- C++ -*-===//
//
// Private to the Tools room. Texts of the manifest's model.metadata under `generate.` (schemas/FORMAT.md), which dmxc
// takes from the folder that the model lies in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Tools/Generate.h"

namespace dmxc::tools {

struct DecoderFacts {
  DecoderNames names;
  std::vector<int64_t> stopIds;
  int64_t context = 0, vocabulary = 0; ///< 0: nothing is said
};

/// Nothing is said of most bundles. ErrorKind::Model for what is not in their form, or of a later version.
Result<DecoderFacts> decoderFacts(const ModelSession &session);

/// What `told` leaves empty as `said`.
DecoderNames mergedNames(DecoderNames told, const DecoderNames &said);

/// Numbers between spaces, commas and brackets: "[1, 2, 3]". `what` is named in an error, ErrorKind::Usage.
Result<std::vector<int64_t>> idsOf(const std::string &text, const std::string &what);

} // namespace dmxc::tools
