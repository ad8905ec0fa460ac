//===- InputShapes.cpp - sizes of the user's inputs -----------------------===//
#include "InputShapes.h"

#include <algorithm>
#include <set>

namespace dmxc::torchfe {
namespace {

/// dim == factor * symbol + rest, with a positive factor.
struct Line {
  int64_t factor, rest;
};
std::optional<Line> lineOf(Dim dim, const std::string &symbol) {
  auto at = [&](int64_t value) { return dim.substitute([&](std::string_view) { return Dim(value); }).known(); };
  std::optional<int64_t> rest = at(0), next = at(1);
  int64_t factor = 0;
  if (!rest || !next || __builtin_sub_overflow(*next, *rest, &factor) || factor <= 0 ||
      !(Dim(factor) * Dim::symbol(symbol) + *rest == dim))
    return std::nullopt;
  return Line{factor, *rest};
}

/// The symbol of a dim that mentions no other.
std::optional<std::string> onlySymbol(Dim dim) {
  std::set<std::string> names;
  dim.forEachSymbol([&](std::string_view name) { names.insert(std::string(name)); });
  return names.size() == 1 ? std::optional(*names.begin()) : std::nullopt;
}

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
  void error(const std::string &text, const std::string &help = "") {
    failed = true;
    Diagnostic diagnostic{Severity::Error, "torch-dim", options.path, "", text, ErrorKind::Usage, {}};
    if (!help.empty())
      diagnostic.help(help);
    diagnostics.report(std::move(diagnostic));
  }
  /// Those that the command line gives.
  const std::map<std::string, int64_t, std::less<>> &sizes() const { return known; }
  bool failed = false;

private:
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

  /// A dim that has a size from the command line tells its symbol.
  void fixBy(Dim dim, int64_t size, const std::string &by) {
    std::optional<std::string> symbol = onlySymbol(dim);
    std::optional<Line> line = symbol ? lineOf(dim, *symbol) : std::nullopt;
    if (!line)
      return;
    __int128 units = static_cast<__int128>(size) - line->rest;
    if (units < 0 || units % line->factor != 0)
      return error(by + " must be " + dim.str());
    fix(*symbol, static_cast<int64_t>(units / line->factor), by);
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
      fixBy(input->dims[i], shape[i], by + ": dim " + std::to_string(i));
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

/// Its value for a bound of the symbol.
int64_t boundOf(const Line &line, int64_t bound) {
  int64_t value = 0;
  bool tooLarge =
      __builtin_mul_overflow(bound, line.factor, &value) || __builtin_add_overflow(value, line.rest, &value);
  return tooLarge ? INT64_MAX : std::max<int64_t>(value, 0);
}

/// Symbols that no dim is alone, as exporters write them for sizes that must be multiples: where a dim is 2*s + 1, s is
/// half of its size without 1. Returns the symbols that no dim tells.
std::set<std::string> solveDims(ResolvedInputs &resolved, SymbolBounds &bounds) {
  std::set<std::string> open;
  for (const ProgramInput &input : resolved.inputs)
    for (Dim dim : input.dims)
      dim.forEachSymbol([&](std::string_view name) { open.insert(std::string(name)); });
  for (const std::string &symbol : open)
    resolved.symbols.emplace(symbol, Dim::symbol(symbol));
  for (const ProgramInput &input : resolved.inputs)
    for (Dim dim : input.dims)
      open.erase(dim.symbolName().value_or(""));
  for (const ProgramInput &input : std::vector<ProgramInput>(resolved.inputs))
    for (size_t i = 0; i < input.dims.size(); ++i)
      for (const std::string &symbol : std::set<std::string>(open)) {
        std::optional<Line> line = lineOf(input.dims[i], symbol);
        if (!line)
          continue;
        std::string size = nameOfDim(input, i);
        resolved.symbols[symbol] = Dim::floorDiv(Dim::symbol(size) - line->rest, line->factor);
        if (auto range = bounds.find(symbol); range != bounds.end())
          bounds[size] = {boundOf(*line, range->second.min), boundOf(*line, range->second.max)};
        bounds.erase(symbol);
        open.erase(symbol);
      }
  for (ProgramInput &input : resolved.inputs)
    for (Dim &dim : input.dims)
      dim = dim.substitute([&](std::string_view name) { return resolved.symbols.at(std::string(name)); });
  return open;
}

} // namespace

std::string nameOfDim(const ProgramInput &input, size_t axis) { return input.name + "_d" + std::to_string(axis); }

std::optional<ResolvedInputs> resolveInputs(std::vector<ProgramInput> inputs, SymbolBounds &bounds,
                                            const ImportOptions &options, Diagnostics &diagnostics) {
  Resolver resolver(inputs, options, diagnostics);
  resolver.applyDims();
  resolver.applyShapes();
  resolver.narrow(bounds);
  if (resolver.failed)
    return std::nullopt;
  ResolvedInputs resolved;
  for (const auto &[symbol, size] : resolver.sizes())
    resolved.symbols.emplace(symbol, size);
  for (ProgramInput &input : inputs)
    for (Dim &dim : input.dims)
      dim = resolver.substituted(dim);
  resolved.inputs = std::move(inputs);
  for (const std::string &symbol : solveDims(resolved, bounds))
    resolver.error("no size of an input tells the dim '" + symbol + "'", "--dim " + symbol + "=SIZE fixes it");
  if (resolver.failed)
    return std::nullopt;
  return resolved;
}

} // namespace dmxc::torchfe
