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
  Resolver(const std::vector<ModelInput> &inputs, const ImportOptions &options, Diagnostics &diagnostics)
      : given(options, diagnostics, "torch-dim"), inputs(inputs), options(options) {
    for (const ModelInput &input : inputs)
      for (Dim dim : input.dims)
        dim.forEachSymbol([&](std::string_view name) { symbols.insert(std::string(name)); });
  }

  void applyDims();
  void applyShapes();
  Dim substituted(Dim dim) const {
    return dim.substitute([&](std::string_view name) {
      std::optional<int64_t> size = given.sizeOf(name);
      return size ? Dim(*size) : Dim::symbol(name);
    });
  }
  void narrow(SymbolBounds &bounds);

  SizeOptions given;

private:
  /// A dim that has a size from the command line tells its symbol.
  void fixBy(Dim dim, int64_t size, const std::string &by) {
    std::optional<std::string> symbol = onlySymbol(dim);
    std::optional<Line> line = symbol ? lineOf(dim, *symbol) : std::nullopt;
    if (!line)
      return;
    __int128 units = static_cast<__int128>(size) - line->rest;
    if (units < 0 || units % line->factor != 0)
      return given.error(by + " must be " + dim.str());
    given.fix(*symbol, static_cast<int64_t>(units / line->factor), by);
  }

  const std::vector<ModelInput> &inputs;
  const ImportOptions &options;
  std::set<std::string> symbols;
};

void Resolver::applyDims() {
  for (const auto &[name, bounds] : options.dims) {
    if (!symbols.count(name))
      given.unknown("--dim " + name + ": the program has no symbolic dim of this name", name,
                    {symbols.begin(), symbols.end()});
    else if (bounds.min == bounds.max)
      given.fix(name, bounds.min, "--dim " + name + "=" + std::to_string(bounds.min));
  }
}

void Resolver::applyShapes() {
  for (const std::string &name : options.absent)
    given.error("--shape " + name + "=none: the inputs of a program are tensors");
  for (const auto &[name, shape] : options.shapes) {
    std::string by = "--shape " + name + "=" + shapeString(shape);
    auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ModelInput &i) { return i.name == name; });
    if (input == inputs.end()) {
      std::vector<std::string> names;
      for (const ModelInput &known : inputs)
        names.push_back(known.name);
      given.unknown(by + ": the program has no input of this name", name, names);
      continue;
    }
    if (input->dims.size() != shape.size()) {
      given.error(by + ": the input has " + std::to_string(input->dims.size()) + " dims");
      continue;
    }
    for (size_t i = 0; i < shape.size(); ++i)
      fixBy(input->dims[i], shape[i], by + ": dim " + std::to_string(i));
    for (size_t i = 0; i < shape.size(); ++i)
      if (Dim dim = substituted(input->dims[i]); dim.valueOr(shape[i]) != shape[i])
        given.error(by + ": the program fixes dim " + std::to_string(i) + " to " + dim.str());
  }
}

void Resolver::narrow(SymbolBounds &bounds) {
  SymbolBounds left;
  for (const std::string &symbol : symbols) {
    auto declared = bounds.find(symbol);
    DimBounds range = declared == bounds.end() ? DimBounds{0, INT64_MAX} : declared->second;
    // Exporters write 2 for what was not 0 or 1 when they ran it, and PyTorch takes these in runs.
    const int64_t least = range.min == 2 ? 0 : range.min;
    if (std::optional<int64_t> size = given.sizeOf(symbol)) {
      if (*size < least || *size > range.max)
        given.error("the dim '" + symbol + "' is given as " + std::to_string(*size) +
                    "; the program was exported for " + std::to_string(range.min) + " to " + std::to_string(range.max));
      continue;
    }
    if (auto option = options.dims.find(symbol); option != options.dims.end()) {
      if (option->second.min < least || option->second.max > range.max)
        given.error("--dim " + symbol + "=" + std::to_string(option->second.min) + ".." +
                    std::to_string(option->second.max) + ": the program was exported for " + std::to_string(range.min) +
                    " to " + std::to_string(range.max));
      range = option->second;
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
  for (const ModelInput &input : resolved.inputs)
    for (Dim dim : input.dims)
      dim.forEachSymbol([&](std::string_view name) { open.insert(std::string(name)); });
  for (const std::string &symbol : open)
    resolved.symbols.emplace(symbol, Dim::symbol(symbol));
  for (const ModelInput &input : resolved.inputs)
    for (Dim dim : input.dims)
      open.erase(dim.symbolName().value_or(""));
  for (const ModelInput &input : std::vector<ModelInput>(resolved.inputs))
    for (size_t i = 0; i < input.dims.size(); ++i)
      for (const std::string &symbol : std::set<std::string>(open)) {
        std::optional<Line> line = lineOf(input.dims[i], symbol);
        if (!line)
          continue;
        std::string size = nameOfDim(input.name, i);
        resolved.symbols[symbol] = Dim::floorDiv(Dim::symbol(size) - line->rest, line->factor);
        if (auto range = bounds.find(symbol); range != bounds.end())
          bounds[size] = {boundOf(*line, range->second.min), boundOf(*line, range->second.max)};
        bounds.erase(symbol);
        open.erase(symbol);
      }
  for (ModelInput &input : resolved.inputs)
    for (Dim &dim : input.dims)
      dim = dim.substitute([&](std::string_view name) { return resolved.symbols.at(std::string(name)); });
  return open;
}

} // namespace

std::optional<ResolvedInputs> resolveInputs(std::vector<ModelInput> inputs, SymbolBounds &bounds,
                                            const ImportOptions &options, Diagnostics &diagnostics) {
  Resolver resolver(inputs, options, diagnostics);
  resolver.applyDims();
  resolver.applyShapes();
  resolver.narrow(bounds);
  if (resolver.given.failed())
    return std::nullopt;
  ResolvedInputs resolved;
  for (const auto &[symbol, size] : resolver.given.sizes())
    resolved.symbols.emplace(symbol, size);
  for (ModelInput &input : inputs)
    for (Dim &dim : input.dims)
      dim = resolver.substituted(dim);
  resolved.inputs = std::move(inputs);
  for (const std::string &symbol : solveDims(resolved, bounds))
    resolver.given.error("no size of an input tells the dim '" + symbol + "'", ErrorKind::Usage,
                         "--dim " + symbol + "=SIZE fixes it");
  if (resolver.given.failed())
    return std::nullopt;
  return resolved;
}

} // namespace dmxc::torchfe
