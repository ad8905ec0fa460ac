//===- Forms.cpp - constants as the array has them in DDR -----------------===//
#include "Kernel.h"
#include "place/Runs.h"

#include "dmxc/Support/Tensor.h"
#include "schemas/aie/Border.h"

#include <cstring>
#include <limits>
#include <tuple>

using namespace mlir;
using namespace dmxc;

namespace {

namespace hw = dmx::aie;

// Of a form: rows of elements, and for a convolution how the window walks.
constexpr StringRef kForm = "form", kSize = "size", kRows = "rows", kPitchKey = "pitch";
constexpr StringRef kStrides = "strides", kDilations = "dilations", kGroups = "groups", kPixels = "pixels_a_row",
                    kTile = "tile", kNegated = "negated";
// Of columns that lie panel after panel: rows of one, as wide as the pitch; of a bias the columns of a core, those of a
// matrix step and those that lie together in a row of one.
constexpr StringRef kDepth = "depth", kColumns = "columns";
// Of a matrix without tiles of zeros: the rows that each block of so many columns has, of all `depth`.
constexpr StringRef kKept = "kept", kBlock = "block";

int64_t numberOf(DictionaryAttr form, StringRef key, int64_t most = UINT32_MAX) {
  auto value = form.getAs<IntegerAttr>(key);
  return value && value.getInt() > 0 && value.getInt() <= most ? value.getInt() : 0;
}

/// Puts numbers of the constant into elements of the form.
class Packing {
public:
  Packing(const Tensor &constant, hw::Element element, bool negated, std::span<std::byte> out)
      : from(constant.data()), to(out.data()), element(element), negated(negated) {
    std::memset(out.data(), 0, out.size());
  }
  void put(int64_t number, int64_t place) {
    if (element == hw::Element::I8) {
      to[place] = from[number];
      return;
    }
    uint64_t width = hw::hostBytesOf(element);
    uint32_t bits = 0;
    std::memcpy(&bits, from + width * static_cast<uint64_t>(number), width);
    if (negated)
      bits = element == hw::Element::I32 ? 0 - bits : bits ^ uint32_t(1) << (8 * width - 1);
    bits = hw::toForm(element, bits);
    int64_t bytes = hw::bytesOf(element);
    std::memcpy(to + bytes * place, &bits, static_cast<size_t>(bytes));
  }

  bool isZero(int64_t number) const {
    uint64_t width = hw::hostBytesOf(element), bits = 0;
    std::memcpy(&bits, from + width * static_cast<uint64_t>(number), width);
    bool isFloat = element != hw::Element::I8 && element != hw::Element::I32;
    return (isFloat ? bits & ~(uint64_t(1) << (8 * width - 1)) : bits) == 0; // of either sign
  }

private:
  const std::byte *from;
  std::byte *to;
  hw::Element element;
  bool negated;
};

/// How a constant's numbers are stored; nullopt of others.
std::optional<hw::Element> storedAs(StringRef form, DType type) {
  return hw::elementOf(type == DType::U8 ? "i8" : dtypeName(type), std::string_view(form));
}

/// Columns that lie panel after panel.
struct Panels {
  int64_t depth, width; ///< rows of a panel, and its columns
  int64_t placeOf(int64_t row, int64_t column) const { return (column / width * depth + row) * width + column % width; }
};

/// Rows of each block of columns that a form says; nullopt where that is none.
std::optional<std::vector<aie::Runs>> keptRowsOf(DictionaryAttr form) {
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  auto list = form.getAs<ArrayAttr>(kKept);
  std::optional<std::vector<aie::Runs>> all = list ? kernels::readRuns(list) : std::nullopt;
  if (all && llvm::any_of(*all, [](const aie::Runs &runs) { return kernels::firstOutOfOrder(runs, any); }))
    return std::nullopt;
  return all;
}

/// Where rows of a matrix lie that is without tiles of zeros: block of columns after block, in each its panels with the
/// rows that are kept.
class KeptPanels {
public:
  KeptPanels(ArrayRef<aie::Runs> blocks, int64_t depth, int64_t block, int64_t width) : block(block), width(width) {
    for (const auto &runs : blocks) {
      std::vector<int64_t> &rows = places.emplace_back(static_cast<size_t>(depth), int64_t(-1));
      int64_t count = 0;
      for (auto [from, to] : runs)
        for (int64_t row = from; row < to && row < depth; ++row)
          rows[static_cast<size_t>(row)] = count++;
      begins.push_back(elements);
      depths.push_back(count);
      elements += count * block;
    }
  }
  /// Elements of all that is kept.
  int64_t size() const { return elements; }
  /// -1 of what is left out.
  int64_t placeOf(int64_t row, int64_t column) const {
    auto at = static_cast<size_t>(column / block);
    int64_t kept = places[at][static_cast<size_t>(row)];
    return kept < 0 ? -1 : begins[at] + (column % block / width * depths[at] + kept) * width + column % width;
  }

private:
  int64_t block, width, elements = 0;
  std::vector<std::vector<int64_t>> places; ///< of the rows of each block
  std::vector<int64_t> begins, depths;
};

/// As the pair of tiles of b that a core takes it for: of each row of a matrix step so many columns, over and over; of
/// each matrix so many numbers.
void packBias(Packing &packing, int64_t count, int64_t matrices, int64_t pixels, ArrayRef<int64_t> columns,
              const Panels &pairs) {
  int64_t tile = columns[0], step = columns[1], run = columns[2], panelsOfOne = pairs.depth / matrices;
  for (int64_t first = 0; first < count * pixels; first += tile)
    for (int64_t word = 0; word < pairs.width; ++word) {
      int64_t ofStep = word / run % (tile / step), part = word / run / (tile / step) % (step / run);
      int64_t column = first + ofStep * step + part * run + word % run;
      if (column < count * pixels)
        for (int64_t matrix = 0; matrix < matrices; ++matrix)
          packing.put(matrix * count + column % count, (matrix * panelsOfOne + first / tile) * pairs.width + word);
    }
}

/// Row k of the form is what tile, plane, column and channel of the kernel k is (place/ImageWalk.h), column n an output
/// of one of the pixels of a row; a matrix of some groups, which has so many columns, follows the other.
void packWeights(Packing &packing, const aie::ImageWalk &w, int64_t tile, int64_t columns, const Panels &panels) {
  int64_t height = w.number(w.down.taps), width = w.number(w.across.taps);
  int64_t channels = w.channels / w.together, outputs = w.outputs / w.together; // of a group
  int64_t numbers = outputs * w.groups * channels * height * width;
  for (int64_t number = 0; number < numbers; ++number) {
    int64_t x = number % width, y = number / width % height, channel = number / (width * height) % channels;
    int64_t output = number / (width * height * channels), group = output / outputs;
    int64_t k = w.kOf(y, x, tile) + group % w.together * channels + channel;
    int64_t column = group / w.together * columns + output % w.outputs;
    for (int64_t beside = 0; beside < w.pixels; ++beside)
      packing.put(number, panels.placeOf(k + beside * w.across.stride * w.pixel(), column + beside * w.outputs));
  }
}

/// Two numbers of a form, each of at least 1.
std::optional<std::pair<int64_t, int64_t>> pairOf(DictionaryAttr form, StringRef key) {
  auto both = form.getAs<DenseI64ArrayAttr>(key);
  if (!both || both.size() != 2 ||
      llvm::any_of(both.asArrayRef(), [](int64_t one) { return one < 1 || one > INT32_MAX; }))
    return std::nullopt;
  return std::pair(both[0], both[1]);
}

/// The walk whose weights these are, as far as they say.
std::optional<aie::ImageWalk> imageWalkOf(DictionaryAttr form, const Tensor &weights, int64_t bytes) {
  auto strides = pairOf(form, kStrides), dilations = pairOf(form, kDilations), groups = pairOf(form, kGroups);
  int64_t pixels = numberOf(form, kPixels);
  if (!strides || !dilations || !groups || weights.rank() < 3 || weights.rank() > 4 || !pixels ||
      groups->first % groups->second || weights.shape()[0] % groups->first)
    return std::nullopt;
  aie::ImageWalk w;
  w.groups = groups->first;
  w.outputs = weights.shape()[0] / w.groups;
  w.channels = weights.shape()[1];
  w.setTogether(groups->second);
  w.down.taps = weights.rank() == 4 ? weights.shape()[2] : 1;
  w.across.taps = weights.shape().back();
  std::tie(w.down.stride, w.across.stride) = *strides;
  std::tie(w.down.dilation, w.across.dilation) = *dilations;
  w.pixels = pixels;
  w.bytes = bytes;
  return w;
}

/// Those of a bias; nullopt where they are none.
std::optional<SmallVector<int64_t>> columnsOf(DictionaryAttr form) {
  auto all = form.getAs<DenseI64ArrayAttr>(kColumns);
  constexpr int64_t most = 1 << 20;
  if (!all || all.size() != 3 || llvm::any_of(all.asArrayRef(), [](int64_t one) { return one < 1 || one > most; }) ||
      all[0] % all[1] || all[1] % all[2])
    return std::nullopt;
  return SmallVector<int64_t>(all.asArrayRef());
}

} // namespace

DictionaryAttr aie::formOf(Builder &b, const Mapping &mapping, const Operand &operand) {
  auto [rows, pitch] = mapping.formOf(operand.part);
  int64_t bytes = operand.isRow() ? 4 : mapping.numbers.bytes;
  NamedAttrList form;
  StringRef wide = isa<FloatType>(operand.tensor.getElementType()) ? "f32" : "i32";
  form.set(kForm, b.getStringAttr(bytes == 4 ? wide : mapping.numbers.name));
  if (operand.negated)
    form.set(kNegated, b.getUnitAttr());
  for (auto [key, value] : {std::pair(kSize, bytes * rows * pitch), {kRows, rows}, {kPitchKey, pitch}})
    form.set(key, b.getI64IntegerAttr(value));
  if (operand.part == Part::B)
    form.set(kDepth, b.getI64IntegerAttr(mapping.paddedK()));
  if (operand.part == Part::B && !mapping.runs.empty()) {
    form.set(kKept, kernels::writeRuns(b.getContext(), mapping.runs, 2 * mapping.numbers.k));
    form.set(kBlock, b.getI64IntegerAttr(mapping.blockN()));
  }
  if (operand.isRow())
    form.set(kColumns, b.getDenseI64ArrayAttr({mapping.numbers.n, mapping.numbers.step.n, mapping.biasRun()}));
  if (mapping.image && operand.part == Part::B) {
    const ImageWalk &w = *mapping.image;
    form.set(kStrides, b.getDenseI64ArrayAttr({w.down.stride, w.across.stride}));
    form.set(kDilations, b.getDenseI64ArrayAttr({w.down.dilation, w.across.dilation}));
    form.set(kTile, b.getI64IntegerAttr(mapping.numbers.k));
  }
  if (mapping.image && operand.part != Part::A) {
    form.set(kGroups, b.getDenseI64ArrayAttr({mapping.image->groups, mapping.image->together}));
    form.set(kPixels, b.getI64IntegerAttr(mapping.image->pixels));
  }
  return form.getDictionary(b.getContext());
}

DictionaryAttr aie::formOfB(const Mapping &mapping, DictionaryAttr packed) {
  for (auto [i, operand] : llvm::enumerate(mapping.operands))
    if (operand.part == Part::B && packed)
      return packed.getAs<DictionaryAttr>(std::to_string(i));
  return {};
}

Status aie::readRuns(const hw::Machine &machine, DictionaryAttr form, Mapping &mapping) {
  mapping.runs.clear();
  if (!form.contains(kKept))
    return Status::ok();
  auto wrong = [](const std::string &why) {
    return modelError("'kept' of the form of its second operand has for each block of columns rows from, to, from, to, "
                      "...: " +
                      why + "; leave it out, and all rows are kept");
  };
  std::optional<std::vector<aie::Runs>> kept = keptRowsOf(form);
  const int64_t pair = 2 * mapping.numbers.k;
  if (!kept)
    return wrong("it has something else");
  for (const auto &rows : *kept)
    for (Runs &runs = mapping.runs.emplace_back(); auto [from, to] : rows) {
      if (from % pair || to % pair)
        return wrong("they are whole pairs of tiles of " + std::to_string(mapping.numbers.k) + ", and some are from " +
                     std::to_string(from) + " to " + std::to_string(to));
      runs.emplace_back(from / pair, to / pair);
    }
  std::optional<std::string> why = refusesRuns(machine, mapping);
  return why ? wrong(*why) : Status::ok();
}

/// Refuses to leave out what is not zero.
static Status packKept(DictionaryAttr form, const Tensor &constant, Packing &packing, size_t bytes) {
  std::optional<std::vector<aie::Runs>> kept = keptRowsOf(form);
  const int64_t block = numberOf(form, kBlock), depth = numberOf(form, kDepth), pitch = numberOf(form, kPitchKey);
  const int64_t columns = constant.shape().back(), rows = constant.numElements() / columns;
  if (!kept || !block || !pitch || block % pitch || depth < rows ||
      columns > static_cast<int64_t>(kept->size()) * block)
    return modelError("'kept' of a packed form does not say which rows each block of columns has of a constant of " +
                      shapeString(constant.shape()));
  KeptPanels panels(*kept, depth, block, pitch);
  if (static_cast<uint64_t>(panels.size()) * bytes != static_cast<uint64_t>(numberOf(form, kSize)))
    return modelError("'kept' of a packed form has " + std::to_string(panels.size()) + " numbers, its 'size' others");
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (int64_t place = panels.placeOf(row, column); place >= 0)
        packing.put(row * columns + column, place);
      else if (!packing.isZero(row * columns + column))
        return modelError("'kept' of a packed form leaves out row " + std::to_string(row) + ", column " +
                          std::to_string(column) +
                          " of its constant, which is not zero; leave 'packed' out of the "
                          "strategy, and it is derived");
  return Status::ok();
}

Status aie::pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  auto name = form.getAs<StringAttr>(kForm);
  std::optional<hw::Element> element = storedAs(name ? name.getValue() : "", constant.dtype());
  int64_t bytes = element ? hw::bytesOf(*element) : 4, rows = numberOf(form, kRows), pitch = numberOf(form, kPitchKey);
  auto wrong = [&] {
    return Error{ErrorKind::Model, "a constant of " + shapeString(constant.shape()) +
                                       " does not fit its form for the array, " + std::to_string(rows) + " rows of " +
                                       std::to_string(pitch)};
  };
  if (!element || static_cast<uint64_t>(bytes * rows) * static_cast<uint64_t>(pitch) != out.size() ||
      constant.numElements() == 0 || !pitch)
    return wrong();
  Packing packing(constant, *element, form.contains(kNegated), out);
  if (form.contains(kKept))
    return packKept(form, constant, packing, static_cast<size_t>(bytes));
  Panels panels{form.contains(kDepth) ? numberOf(form, kDepth) : rows, pitch};
  if (!panels.depth || rows % panels.depth)
    return wrong();
  int64_t width = rows / panels.depth * pitch;
  if (form.contains(kStrides)) {
    std::optional<ImageWalk> walk = imageWalkOf(form, constant, bytes);
    int64_t tile = numberOf(form, kTile);
    int64_t columns = walk ? width / walk->matrices() : 0; // of a matrix
    if (!walk || !tile || walk->k(tile) > panels.depth || walk->n() > columns || columns % pitch)
      return wrong();
    packWeights(packing, *walk, tile, columns, panels);
    return Status::ok();
  }
  if (form.contains(kColumns)) { // a bias, whose dims but one are 1
    auto groups = pairOf(form, kGroups).value_or(std::pair<int64_t, int64_t>(1, 1));
    int64_t pixels = form.contains(kPixels) ? numberOf(form, kPixels) : 1, count = constant.numElements();
    int64_t matrices = groups.first / groups.second;
    std::optional<SmallVector<int64_t>> columns = columnsOf(form);
    if (!columns || !pixels || !matrices || count % matrices || rows % matrices ||
        count > rows * (*columns)[0] / pixels)
      return wrong();
    packBias(packing, count / matrices, matrices, pixels, *columns, panels);
    return Status::ok();
  }
  int64_t columns = constant.rank() ? constant.shape().back() : 1;
  if (constant.numElements() / columns > panels.depth || columns > width)
    return wrong();
  for (int64_t i = 0; i < constant.numElements(); ++i)
    packing.put(i, panels.placeOf(i / columns, i % columns));
  return Status::ok();
}
