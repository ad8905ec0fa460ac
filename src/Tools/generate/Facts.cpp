//===- Facts.cpp - what a bundle says of itself as a decoder --------------===//
#include "Facts.h"

#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/CommandLine.h"

#include <charconv>
#include <sstream>

namespace dmxc::tools {

Result<std::vector<int64_t>> idsOf(const std::string &text, const std::string &what) {
  constexpr const char *between = " \t\r\n,[]";
  std::vector<int64_t> ids;
  for (size_t at = text.find_first_not_of(between); at != std::string::npos; at = text.find_first_not_of(between, at)) {
    size_t end = std::min(text.find_first_of(between, at), text.size());
    int64_t id = 0;
    auto [last, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || last != text.data() + end)
      return usageError(what + ": '" + visible(text.substr(at, end - at)) +
                        "' is no token id; ids are numbers between spaces or commas (python3 -m dmxrt.generate takes "
                        "text)");
    ids.push_back(id);
    at = end;
  }
  return ids;
}

DecoderNames mergedNames(DecoderNames told, const DecoderNames &said) {
  for (auto name : {&DecoderNames::ids, &DecoderNames::mask, &DecoderNames::positions, &DecoderNames::logits})
    if ((told.*name).empty())
      told.*name = said.*name;
  if (told.caches.empty())
    told.caches = said.caches;
  return told;
}

namespace {

/// One number; 0 where nothing is said.
Result<int64_t> numberOf(const ModelSession &session, const char *key) {
  auto ids = idsOf(session.metadata(key), std::string("the bundle's ") + key);
  if (!ids || ids->size() > 1)
    return modelError(std::string("the bundle's ") + key + " is '" + visible(session.metadata(key)) +
                      "', not a number; take it out of the model's file, or say it with a flag");
  return ids->empty() ? 0 : ids->front();
}

} // namespace

Result<DecoderFacts> decoderFacts(const ModelSession &session) {
  DecoderFacts facts;
  const std::string version = session.metadata("generate.version");
  if (version.empty())
    return facts;
  if (version != "1")
    return modelError("what the bundle says of itself as a decoder is of version " + visible(version) +
                      ", and this dmx-generate knows 1; use a newer one");
  facts.names.ids = session.metadata("generate.ids");
  facts.names.mask = session.metadata("generate.mask");
  facts.names.positions = session.metadata("generate.positions");
  facts.names.logits = session.metadata("generate.logits");
  std::istringstream caches(session.metadata("generate.caches"));
  for (std::string line; std::getline(caches, line);)
    if (auto pair = splitPair(line))
      facts.names.caches.push_back(*pair);
  auto stops = idsOf(session.metadata("generate.eos"), "the bundle's generate.eos");
  if (!stops)
    return Error{ErrorKind::Model, stops.error().message};
  facts.stopIds = *stops;
  for (auto [key, field] :
       {std::pair("generate.context", &DecoderFacts::context), {"generate.vocabulary", &DecoderFacts::vocabulary}}) {
    auto number = numberOf(session, key);
    if (!number)
      return number.takeError();
    facts.*field = *number;
  }
  return facts;
}

} // namespace dmxc::tools
