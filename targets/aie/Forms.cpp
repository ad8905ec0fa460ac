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
constexpr StringRef kStrides = "strides", kTogether = "pixels_a_row", kTile = "tile";

int64_t numberOf(DictionaryAttr form, StringRef key, int64_t most = UINT32_MAX) {
  auto value = form.getAs<IntegerAttr>(key);
  return value && value.getInt() > 0 && value.getInt() <= most ? value.getInt() : 0;
}

/// Puts numbers of 4 bytes of the constant into elements of the form.
class Packing {
public:
  Packing(const Tensor &constant, bool rounds, std::span<std::byte> out)
      : from(constant.data()), to(out.data()), rounds(rounds) {
    std::memset(out.data(), 0, out.size());
  }
  void put(int64_t number, int64_t element) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + 4 * number, 4);
    uint16_t rounded = hw::toBf16(bits);
    if (rounds)
      std::memcpy(to + 2 * element, &rounded, 2);
    else
      std::memcpy(to + 4 * element, &bits, 4);
  }

private:
  const std::byte *from;
  std::byte *to;
  bool rounds;
};

/// Row k of the form is what tile, plane, column and channel of the kernel k is (place/Window.h), column n an output of
/// one of the pixels of a row.
void packWeights(Packing &packing, const aie::Window &w, int64_t tile, int64_t pitch) {
  int64_t row = 0; // of the kernel, as k has them
  for (int64_t plane = 0; plane < w.planes(); ++plane)
    for (int64_t y = plane; y < w.kernelHeight; y += w.strideHeight, ++row)
      for (int64_t beside = 0; beside < w.together; ++beside)
        for (int64_t x = 0; x < w.kernelWidth; ++x)
          for (int64_t channel = 0; channel < w.channels; ++channel) {
            int64_t k = row * w.runTiles(tile) * tile + (beside * w.strideWidth + x) * w.pixel() + channel;
            for (int64_t output = 0; output < w.outputs; ++output)
              packing.put(((output * w.channels + channel) * w.kernelHeight + y) * w.kernelWidth + x,
                          k * pitch + beside * w.outputs + output);
          }
}

/// The window whose weights these are, as far as they say.
std::optional<aie::Window> windowOf(DictionaryAttr form, const Tensor &weights, int64_t bytes) {
  auto strides = form.getAs<DenseI64ArrayAttr>(kStrides);
  int64_t together = numberOf(form, kTogether);
  if (!strides || strides.size() != 2 || weights.rank() < 3 || weights.rank() > 4 || !together ||
      llvm::any_of(strides.asArrayRef(), [](int64_t stride) { return stride < 1 || stride > INT32_MAX; }))
    return std::nullopt;
  aie::Window w;
  w.outputs = weights.shape()[0];
  w.channels = weights.shape()[1];
  w.kernelHeight = weights.rank() == 4 ? weights.shape()[2] : 1;
  w.kernelWidth = weights.shape().back();
  w.strideHeight = strides[0];
  w.strideWidth = strides[1];
  w.together = together;
  w.bytes = bytes;
  return w;
}

} // namespace

DictionaryAttr aie::formOf(Builder &b, const Product &product, const Operand &operand) {
  auto [rows, pitch] = product.formOf(operand.part);
  bool rounds = operand.part != Part::Bias && product.numbers->bytes == 2;
  int64_t bytes = rounds ? 2 : 4;
  NamedAttrList form;
  form.set(kForm, b.getStringAttr(rounds ? "bf16" : operand.tensor.getElementType().isF32() ? "f32" : "i32"));
  for (auto [key, value] : {std::pair(kSize, bytes * rows * pitch), {kRows, rows}, {kPitchKey, pitch}})
    form.set(key, b.getI64IntegerAttr(value));
  if (product.window && operand.part == Part::B) {
    form.set(kStrides, b.getDenseI64ArrayAttr({product.window->strideHeight, product.window->strideWidth}));
    form.set(kTile, b.getI64IntegerAttr(product.numbers->k));
  }
  if (product.window && operand.part != Part::A)
    form.set(kTogether, b.getI64IntegerAttr(product.window->together));
  return form.getDictionary(b.getContext());
}

Status aie::pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  auto name = form.getAs<StringAttr>(kForm);
  bool rounds = name && name.getValue() == "bf16";
  int64_t bytes = rounds ? 2 : 4, rows = numberOf(form, kRows), pitch = numberOf(form, kPitchKey);
  bool known = constant.dtype() == DType::F32 || constant.dtype() == DType::I32;
  auto wrong = [&] {
    return Error{ErrorKind::Model, "a constant of " + shapeString(constant.shape()) +
                                       " does not fit its form for the array, " + std::to_string(rows) + " rows of " +
                                       std::to_string(pitch)};
  };
  if (!known || static_cast<uint64_t>(bytes * rows) * static_cast<uint64_t>(pitch) != out.size() ||
      constant.numElements() == 0)
    return wrong();
  Packing packing(constant, rounds, out);
  if (form.contains(kStrides)) {
    std::optional<Window> window = windowOf(form, constant, bytes);
    int64_t tile = numberOf(form, kTile);
    if (!window || !tile || window->k(tile) > rows || window->n() > pitch)
      return wrong();
    packWeights(packing, *window, tile, pitch);
    return Status::ok();
  }
  int64_t columns = constant.rank() ? constant.shape().back() : 1, together = 1;
  if (form.contains(kTogether)) { // a bias, whose dims but one are 1
    columns = constant.numElements();
    together = numberOf(form, kTogether);
  }
  if (constant.numElements() / columns > rows || together == 0 || columns > pitch / together)
    return wrong();
  for (int64_t i = 0; i < constant.numElements(); ++i)
    for (int64_t beside = 0; beside < together; ++beside)
      packing.put(i, i / columns * pitch + beside * columns + i % columns);
  return Status::ok();
}
