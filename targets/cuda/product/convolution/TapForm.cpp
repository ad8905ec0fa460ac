//===- TapForm.cpp - weights tap by tap ---------------------------------------===//

#include "TapForm.h"

#include "schemas/cuda/Layouts.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// The fewest weights of an output and a channel of a group, taken together, that are worth tensor cores: of a set of
/// 16 groups one in 16 is no zero.
static constexpr int64_t kFewestOfGroup = 16;

/// Groups that a tile of tensor cores has together. 1: a group is enough, or so small that zeros would be most of it.
static int64_t groupsTogether(int64_t groups, int64_t rows, int64_t channels) {
  if (rows * channels < kFewestOfGroup)
    return 1;
  int64_t most = 1;
  for (int64_t together = 2; together * rows <= dmx::cuda::kMmaRows; ++together)
    if (groups % together == 0)
      most = together;
  return most;
}

/// Whether the windows' places in an image are known and fit 32 bits, those of taps outside, too.
static bool placesFit(const kernels::Windows &windows, int64_t channels) {
  constexpr int64_t most = int64_t{1} << 30;
  int64_t last = 0;
  auto add = [&](Dim pixels, Dim apart) {
    if (!pixels.known() || !apart.known() || *pixels.known() > most || *apart.known() < 0 || *apart.known() > most ||
        *pixels.known() * *apart.known() > most)
      return false;
    last += *pixels.known() * *apart.known();
    return last <= most;
  };
  for (const kernels::WindowAxis &axis : windows.axes)
    if (!axis.in.known() || *axis.in.known() < 1 || !axis.out.known() || !axis.low.known() || !axis.taps.known() ||
        !add(axis.in + axis.low + axis.out * axis.stride + axis.taps * axis.dilation, axis.apart))
      return false;
  return add(channels, windows.channelsApart);
}

std::optional<TapForm> TapForm::of(const kernels::Contraction &product) {
  if (!product.windows || !product.lhs || !product.rhs)
    return std::nullopt;
  Dim taps = 1;
  for (const kernels::WindowAxis &axis : product.windows->axes)
    taps *= axis.taps;
  std::optional<int64_t> rows = product.m.known(), channels = product.windows->channels.known(),
                         offset = product.lhs->offset.known(), apart = product.lhsRow.known();
  if (!rows || !channels || !taps.known() || !offset || !apart || *rows < 1 || *channels < 1)
    return std::nullopt;
  auto groups = static_cast<int64_t>(cast<dmir::ConvOp>(product.op).getGroups());
  const int64_t together = groupsTogether(groups, *rows, *channels);
  if (!placesFit(*product.windows, together * *channels))
    return std::nullopt;
  return TapForm{groups * *rows, *rows, *channels, together, *taps.known(), *offset, *apart};
}

bool TapForm::is(DictionaryAttr form) {
  auto name = form.getAs<StringAttr>("form");
  return name && name.getValue() == kForm;
}

DictionaryAttr TapForm::write(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList form;
  form.set("form", b.getStringAttr(kForm));
  form.set("size", b.getI64IntegerAttr(bytes()));
  each(*this, [&](StringRef name, int64_t value) { form.set(name, b.getI64IntegerAttr(value)); });
  return form.getDictionary(context);
}

/// Whether it takes elements of a constant of so many, and writes so many bytes.
bool TapForm::fits(int64_t elements, size_t room) const {
  constexpr int64_t most = int64_t{1} << 31;
  for (int64_t value : {outputs, rows, channels, together, taps, apart})
    if (value < 1 || value >= most)
      return false;
  if (offset < 0 || offset >= most || outputs % rows != 0 || channels * taps >= most ||
      channelsOfSet() >= most / taps || pitch() >= most)
    return false;
  return offset + (outputs - 1) * apart + channels * taps <= elements && static_cast<size_t>(bytes()) == room;
}

Status TapForm::pack(DictionaryAttr given, const Tensor &constant, std::span<std::byte> out) {
  TapForm form;
  bool whole = dtypeBits(constant.dtype()) == 8 * kElementBytes;
  each(form, [&](StringRef key, int64_t &value) {
    auto number = given.getAs<IntegerAttr>(key);
    whole = whole && number && number.getType().isInteger(64);
    value = whole ? number.getInt() : 0;
  });
  if (!whole || !form.fits(constant.numElements(), out.size()))
    return modelError("a constant of " + std::to_string(constant.numElements()) +
                      " elements has a packed form of the cuda target that does not fit it; leave the form out of the "
                      "strategy and it is derived");
  std::fill(out.begin(), out.end(), std::byte{0});
  const int64_t ofTap = form.unitsOfTap() * kUnit;
  for (int64_t output = 0; output < form.outputs; ++output) {
    const std::byte *from = constant.raw().data() + (form.offset + output * form.apart) * kElementBytes;
    int64_t first = output * form.pitch() + output / form.rows % form.together * form.channels;
    for (int64_t channel = 0; channel < form.channels; ++channel)
      for (int64_t tap = 0; tap < form.taps; ++tap)
        std::memcpy(out.data() + (first + tap * ofTap + channel) * kElementBytes,
                    from + (channel * form.taps + tap) * kElementBytes, kElementBytes);
  }
  return Status::ok();
}
