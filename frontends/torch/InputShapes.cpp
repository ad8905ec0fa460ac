//===- InputShapes.cpp - sizes of the user's inputs -----------------------===//
#include "InputShapes.h"

#include <algorithm>
#include <set>

namespace dmxc::torchfe {
namespace {

class Resolver {
public:
  Resolver(const std::vector<ProgramInput> &inputs, const ImportOptions &options, Diagnostics &diagnostics)
      : inputs(inputs), options(options), diagnostics(diagnostics) {
    for (const ProgramInput &input : inputs)
      for (Dim dim : input.dims)
        dim.forEachSymbol([&](std::string_view name) { symbols.insert(std::string(name)); });
  }

  void applyDims();
  void applyShapes();
  Dim substituted(Dim dim) const {
    return dim.substitute([&](std::string_view name) {
      auto found = known.find(name);
      return found == known.end() ? Dim::symbol(name) : Dim(found->second);
    });
  }
  void narrow(SymbolBounds &bounds);
  bool failed = false;

private:
  void error(const std::string &text, const std::string &help = "") {
    failed = true;
    Diagnostic diagnostic{Severity::Error, "torch-dim", options.path, "", text, ErrorKind::Usage, {}};
    if (!help.empty())
      diagnostic.help(help);
    diagnostics.report(std::move(diagnostic));
  }
  void unknown(const std::string &text, const std::string &name, const std::vector<std::string> &names) {
    std::string near = nearestName(name, names);
    error(text + (names.empty() ? " (it has none at all)" : ""), near.empty() ? "" : "did you mean '" + near + "'?");
  }
  void fix(const std::string &symbol, int64_t size, const std::string &by) {
    auto [place, isNew] = known.try_emplace(symbol, size);
    if (!isNew && place->second != size)
      error(by + ": the dim '" + symbol + "' is given both as " + std::to_string(place->second) + " and as " +
            std::to_string(size));
  }

  const std::vector<ProgramInput> &inputs;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  std::set<std::string> symbols;
  std::map<std::string, int64_t, std::less<>> known;
};

void Resolver::applyDims() {
  for (const auto &[name, bounds] : options.dims) {
    if (!symbols.count(name))
      unknown("--dim " + name + ": the program has no symbolic dim of this name", name,
              {symbols.begin(), symbols.end()});
    else if (bounds.min == bounds.max)
      fix(name, bounds.min, "--dim " + name + "=" + std::to_string(bounds.min));
  }
}

void Resolver::applyShapes() {
  for (const std::string &name : options.absent)
    error("--shape " + name + "=none: the inputs of a program are tensors");
  for (const auto &[name, shape] : options.shapes) {
    std::string by = "--shape " + name + "=" + shapeString(shape);
    auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ProgramInput &i) { return i.name == name; });
    if (input == inputs.end()) {
      std::vector<std::string> names;
      for (const ProgramInput &known : inputs)
        names.push_back(known.name);
      unknown(by + ": the program has no input of this name", name, names);
      continue;
    }
    if (input->dims.size() != shape.size()) {
      error(by + ": the input has " + std::to_string(input->dims.size()) + " dims");
      continue;
    }
    for (size_t i = 0; i < shape.size(); ++i)
      if (std::optional<std::string> symbol = input->dims[i].symbolName())
        fix(*symbol, shape[i], by);
    for (size_t i = 0; i < shape.size(); ++i)
      if (Dim dim = substituted(input->dims[i]); dim.valueOr(shape[i]) != shape[i])
        error(by + ": the program fixes dim " + std::to_string(i) + " to " + dim.str());
  }
}

void Resolver::narrow(SymbolBounds &bounds) {
  SymbolBounds left;
  for (const std::string &symbol : symbols) {
    auto declared = bounds.find(symbol);
    DimBounds range = declared == bounds.end() ? DimBounds{0, INT64_MAX} : declared->second;
    if (auto size = known.find(symbol); size != known.end()) {
      if (size->second < range.min || size->second > range.max)
        error("the dim '" + symbol + "' is given as " + std::to_string(size->second) +
              "; the program was exported for " + std::to_string(range.min) + " to " + std::to_string(range.max));
      continue;
    }
    if (auto given = options.dims.find(symbol); given != options.dims.end()) {
      if (given->second.min < range.min || given->second.max > range.max)
        error("--dim " + symbol + "=" + std::to_string(given->second.min) + ".." + std::to_string(given->second.max) +
              ": the program was exported for " + std::to_string(range.min) + " to " + std::to_string(range.max));
      range = given->second;
    }
    left[symbol] = range;
  }
  bounds = left;
}

} // namespace

std::optional<std::vector<ProgramInput>> resolveInputs(std::vector<ProgramInput> inputs, SymbolBounds &bounds,
                                                       const ImportOptions &options, Diagnostics &diagnostics) {
  Resolver resolver(inputs, options, diagnostics);
  resolver.applyDims();
  resolver.applyShapes();
  resolver.narrow(bounds);
  if (resolver.failed)
    return std::nullopt;
  for (ProgramInput &input : inputs)
    for (Dim &dim : input.dims)
      dim = resolver.substituted(dim);
  return inputs;
}

} // namespace dmxc::torchfe
