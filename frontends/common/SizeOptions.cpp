//===- SizeOptions.cpp - sizes that --dim and --shape give ----------------===//
#include "SizeOptions.h"

namespace dmxc::frontend {

std::string nameOfDim(const std::string &input, size_t axis) { return input + "_d" + std::to_string(axis); }

void SizeOptions::error(const std::string &text, ErrorKind kind, const std::string &help) {
  anyError = true;
  Diagnostic diagnostic{Severity::Error, id, options.path, "", text, kind, {}};
  if (!help.empty())
    diagnostic.help(help);
  diagnostics.report(std::move(diagnostic));
}

void SizeOptions::unknown(const std::string &text, const std::string &name, const std::vector<std::string> &names) {
  std::string near = nearestName(name, names);
  error(text + (names.empty() ? " (it has none at all)" : ""), ErrorKind::Usage,
        near.empty() ? "" : "did you mean '" + near + "'?");
}

void SizeOptions::fix(const std::string &symbol, int64_t size, const std::string &by) {
  auto [place, isNew] = known.try_emplace(symbol, size);
  if (!isNew && place->second != size)
    error(by + ": the dim '" + symbol + "' is given both as " + std::to_string(place->second) + " and as " +
          std::to_string(size));
}

std::optional<int64_t> SizeOptions::sizeOf(std::string_view symbol) const {
  auto found = known.find(symbol);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

} // namespace dmxc::frontend
