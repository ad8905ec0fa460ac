//===- Tasks.cpp - what tasks of all engines say --------------------------===//
#include "Tasks.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using hw::ConfigKey;

int64_t TaskNumbers::of(std::optional<AffineMap> map, int64_t otherwise, unsigned result) const {
  constexpr int64_t most = int64_t(1) << 40; // as far as the machine's steps
  if (!map)
    return otherwise;
  std::optional<Dims> values = indices.at(*map, operands);
  if (values && (*values)[result] <= most && (*values)[result] >= -most)
    return (*values)[result];
  access.fail("has a number that the machine cannot count to");
  return 0;
}

int64_t dmxc::corsair::stages::otherwiseOf(hw::Opcode opcode, StringRef field) {
  const hw::InstructionInfo &info = hw::infoOf(opcode);
  return info.fields[info.field({field.data(), field.size()})].byDefault;
}

int64_t dmxc::corsair::stages::otherwiseOf(ConfigKey key) { return hw::findConfigKey(key)->byDefault; }

bool dmxc::corsair::stages::isMaskOf(int64_t mask, int64_t count, const char *what, Accesses &access) {
  return (mask > 0 && mask >> count == 0) || access.fail("names " + std::string(what) + " " + std::to_string(mask) +
                                                         ", a mask of those from 0 to " + std::to_string(count - 1));
}

bool dmxc::corsair::stages::readKind(StringRef name, hw::ElemKind &kind, Accesses &access) {
  std::optional<hw::ElemKind> known = hw::elemKindFromName(name.str());
  kind = known.value_or(hw::ElemKind::Raw);
  return known || access.fail("names the kind '" + name.str() + "', which the device does not have");
}

bool dmxc::corsair::stages::readWindow(std::optional<DictionaryAttr> text, hw::Window &window, Accesses &access,
                                       int64_t *channels) {
  int64_t none = 1;
  const std::pair<ConfigKey, int64_t *> all[] = {
      {ConfigKey::WinH, &window.h},   {ConfigKey::WinW, &window.w},   {ConfigKey::WinKH, &window.kh},
      {ConfigKey::WinKW, &window.kw}, {ConfigKey::WinSH, &window.sh}, {ConfigKey::WinSW, &window.sw},
      {ConfigKey::WinPH, &window.ph}, {ConfigKey::WinPW, &window.pw}, {ConfigKey::WinDH, &window.dh},
      {ConfigKey::WinDW, &window.dw}, {ConfigKey::WinOW, &window.ow}, {ConfigKey::WinC, channels ? channels : &none}};
  for (auto [key, number] : all) {
    const hw::ConfigKeyInfo &info = *hw::findConfigKey(key);
    const StringRef name = StringRef(info.name).drop_front(StringRef("win_").size());
    auto value = text ? text->getAs<IntegerAttr>(name) : IntegerAttr();
    *number = value ? value.getInt() : info.byDefault;
    if (*number < info.min || *number > info.max)
      return access.fail("has a window whose '" + name.str() + "' is " + std::to_string(*number) + ", allowed are " +
                         std::to_string(info.min) + " to " + std::to_string(info.max));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

bool Walked::read(dlir::DescriptorOp op, Accesses &access) {
  if (!readKind(op.getKind(), kind, access) || !readKind(op.getTo().value_or(op.getKind()), to, access) ||
      !readKind(op.getIndexKind().value_or("i32"), indexKind, access) ||
      !readWindow(op.getWindow(), window, access, &channels))
    return false;
  if (op.getDims().size() > 4)
    return access.fail("walks over " + std::to_string(op.getDims().size()) + " dims, a descriptor has four");
  to = to == hw::ElemKind::Raw ? kind : to;
  auto four = [](ArrayRef<int64_t> from, int64_t otherwise, int64_t (&into)[4]) {
    std::fill(std::begin(into), std::end(into), otherwise);
    llvm::copy(from, into);
  };
  four(op.getDims(), 1, n);
  four(op.getSource(), 0, s);
  four(op.getTarget(), 0, t);
  four(op.getLow().value_or(ArrayRef<int64_t>()), otherwiseOf(ConfigKey::Lo0), low);
  four(op.getHigh().value_or(ArrayRef<int64_t>()), otherwiseOf(ConfigKey::Hi0), high);
  unit = static_cast<int64_t>(op.getUnit());
  retype = op.getRetype(), sourceRows = op.getSourceRows(), targetRows = op.getTargetRows();
  tail = given(op.getTail(), ConfigKey::Tail);
  sourceBand = given(op.getSourceBand(), ConfigKey::SrcBand);
  targetBand = given(op.getTargetBand(), ConfigKey::DstBand);
  sourceUnit = given(op.getSourceUnitStep(), ConfigKey::SrcSlice);
  targetUnit = given(op.getTargetUnitStep(), ConfigKey::DstSlice);
  sourceSubunit = given(op.getSourceSubunitStep(), ConfigKey::SrcCore);
  elementStride = given(op.getElementStride(), ConfigKey::ElemStride);
  indexPitch = given(op.getIndexPitch(), ConfigKey::IndexPitch);
  indexRange = given(op.getIndexRange(), ConfigKey::IndexRange);
  return replaceCount(-1, access);
}

bool Walked::replaceCount(int64_t count, Accesses &access) {
  constexpr Wide most = Wide(1) << 34; // what is walked over takes time
  if (count < -1)
    return access.fail("counts " + std::to_string(count) + " items");
  n[0] = count < 0 ? n[0] : count;
  const Wide items = Wide(n[0]) * n[1];
  return (items <= most && items * n[2] <= most && items * n[2] * n[3] <= most && unit <= most) ||
         access.fail("walks over more items than any memory has");
}
