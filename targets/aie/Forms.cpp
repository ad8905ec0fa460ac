//===- Forms.cpp - constants as the array has them in DDR -----------------===//
#include "Kernel.h"

#include "dmxc/Support/Tensor.h"
#include "schemas/aie/Border.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;

namespace {

namespace hw = dmx::aie;

// Of a form: rows of elements, and for a convolution how the window walks.
constexpr StringRef kForm = "form", kSize = "size", kRows = "rows", kPitchKey = "pitch";
constexpr StringRef kStrides = "strides", kPixels = "pixels_a_row", kTile = "tile", kNegated = "negated";

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
    uint32_t bits = 0;
    std::memcpy(&bits, from + 4 * number, 4);
    if (negated)
      bits = element == hw::Element::I32 ? 0 - bits : bits ^ 0x80000000;
    uint16_t rounded = hw::toBf16(bits);
    if (element == hw::Element::Bf16)
      std::memcpy(to + 2 * place, &rounded, 2);
    else
      std::memcpy(to + 4 * place, &bits, 4);
  }

private:
  const std::byte *from;
  std::byte *to;
  hw::Element element;
  bool negated;
};

/// How a constant's numbers are stored; nullopt of others.
std::optional<hw::Element> storedAs(StringRef name, DType type) {
  if (type == DType::F32)
    return name == "bf16" ? hw::Element::Bf16 : name == "f32" ? std::optional(hw::Element::F32) : std::nullopt;
  if (type == DType::I32 && name == "i32")
    return hw::Element::I32;
  return name == "i8" && (type == DType::I8 || type == DType::U8) ? std::optional(hw::Element::I8) : std::nullopt;
}

/// Row k of the form is what tile, plane, column and channel of the kernel k is (place/ImageWalk.h), column n an output
/// of one of the pixels of a row.
void packWeights(Packing &packing, const aie::ImageWalk &w, int64_t tile, int64_t pitch) {
  int64_t height = w.number(w.down.taps), width = w.number(w.across.taps);
  int64_t row = 0; // of the kernel, as k has them
  for (int64_t plane = 0; plane < w.planes(); ++plane)
    for (int64_t y = plane; y < height; y += w.down.stride, ++row)
      for (int64_t beside = 0; beside < w.pixels; ++beside)
        for (int64_t x = 0; x < width; ++x)
          for (int64_t channel = 0; channel < w.channels; ++channel) {
            int64_t k = row * w.runTiles(tile) * tile + (beside * w.across.stride + x) * w.pixel() + channel;
            for (int64_t output = 0; output < w.outputs; ++output)
              packing.put(((output * w.channels + channel) * height + y) * width + x,
                          k * pitch + beside * w.outputs + output);
          }
}

/// The walk whose weights these are, as far as they say.
std::optional<aie::ImageWalk> imageWalkOf(DictionaryAttr form, const Tensor &weights, int64_t bytes) {
  auto strides = form.getAs<DenseI64ArrayAttr>(kStrides);
  int64_t pixels = numberOf(form, kPixels);
  if (!strides || strides.size() != 2 || weights.rank() < 3 || weights.rank() > 4 || !pixels ||
      llvm::any_of(strides.asArrayRef(), [](int64_t stride) { return stride < 1 || stride > INT32_MAX; }))
    return std::nullopt;
  aie::ImageWalk w;
  w.outputs = weights.shape()[0];
  w.channels = weights.shape()[1];
  w.down.taps = weights.rank() == 4 ? weights.shape()[2] : 1;
  w.across.taps = weights.shape().back();
  w.down.stride = strides[0];
  w.across.stride = strides[1];
  w.pixels = pixels;
  w.bytes = bytes;
  return w;
}

} // namespace

DictionaryAttr aie::formOf(Builder &b, const Mapping &mapping, const Operand &operand) {
  auto [rows, pitch] = mapping.formOf(operand.part);
  int64_t bytes = operand.part == Part::Bias || operand.part == Part::Scales ? 4 : mapping.numbers.bytes;
  NamedAttrList form;
  StringRef wide = operand.tensor.getElementType().isF32() ? "f32" : "i32";
  form.set(kForm, b.getStringAttr(bytes == 4 ? wide : mapping.numbers.name));
  if (operand.negated)
    form.set(kNegated, b.getUnitAttr());
  for (auto [key, value] : {std::pair(kSize, bytes * rows * pitch), {kRows, rows}, {kPitchKey, pitch}})
    form.set(key, b.getI64IntegerAttr(value));
  if (mapping.image && operand.part == Part::B) {
    form.set(kStrides, b.getDenseI64ArrayAttr({mapping.image->down.stride, mapping.image->across.stride}));
    form.set(kTile, b.getI64IntegerAttr(mapping.numbers.k));
  }
  if (mapping.image && operand.part != Part::A)
    form.set(kPixels, b.getI64IntegerAttr(mapping.image->pixels));
  return form.getDictionary(b.getContext());
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
      constant.numElements() == 0)
    return wrong();
  Packing packing(constant, *element, form.contains(kNegated), out);
  if (form.contains(kStrides)) {
    std::optional<ImageWalk> walk = imageWalkOf(form, constant, bytes);
    int64_t tile = numberOf(form, kTile);
    if (!walk || !tile || walk->k(tile) > rows || walk->n() > pitch)
      return wrong();
    packWeights(packing, *walk, tile, pitch);
    return Status::ok();
  }
  int64_t columns = constant.rank() ? constant.shape().back() : 1, pixels = 1;
  if (form.contains(kPixels)) { // a bias, whose dims but one are 1
    columns = constant.numElements();
    pixels = numberOf(form, kPixels);
  }
  if (constant.numElements() / columns > rows || pixels == 0 || columns > pitch / pixels)
    return wrong();
  for (int64_t i = 0; i < constant.numElements(); ++i)
    for (int64_t beside = 0; beside < pixels; ++beside)
      packing.put(i, i / columns * pitch + beside * columns + i % columns);
  return Status::ok();
}
