//===- Devices.cpp - devices of sessions, and their settings --------------===//

#include "DeviceLibrary.h"
#include "RehearsalDevice.h"
#include "runtime/bundle/Manifest.h"

#include <algorithm>
#include <charconv>

namespace dmxrt {
namespace {

const DeviceKind *linkedKind(std::string_view target) {
  for (const DeviceKind *kind : deviceKinds())
    if (kind->target == target)
      return kind;
  return nullptr;
}

Result<const DeviceKind *> findKind(std::string_view target) {
  if (const DeviceKind *kind = linkedKind(target))
    return kind;
  if (DeviceOpener open = deviceOpener())
    return open(target);
  std::string have;
  for (const DeviceKind *kind : deviceKinds())
    have += cat(have.empty() ? "" : ", ", kind->target);
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle runs on target '", target,
              "', which this runtime has no device for; it has: ", have,
              "; compile the model for one of these, or link libdmxrt-", target, ".a");
}

const SettingSpec *findSetting(const DeviceKind &kind, std::string_view key) {
  for (const SettingSpec &spec : kind.settings)
    if (spec.key == key)
      return &spec;
  return nullptr;
}

/// Reads the value of a setting; false when it is none that the device takes.
bool readValue(const SettingSpec &spec, std::string_view text, Setting &out) {
  out = {spec.key, std::string(text)};
  bool free = spec.values.find('|') == text.npos;
  if (!spec.max)
    return !text.empty() &&
           (free || (text.find('|') == text.npos && cat("|", spec.values, "|").find(cat("|", text, "|")) != text.npos));
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out.number);
  return failed == std::errc() && end == text.data() + text.size() && out.number <= spec.max;
}

/// "target cpu knows cpu.spin_us=0..1000000 and cpu.pin=0|1"
std::string knownSettings(std::span<const DeviceKind *const> kinds) {
  std::string out;
  for (const DeviceKind *kind : kinds) {
    out += cat(out.empty() ? "" : "; ", "target ", kind->target, " knows");
    for (size_t i = 0; i < kind->settings.size(); ++i)
      out += cat(i == 0                          ? " "
                 : i + 1 < kind->settings.size() ? ", "
                                                 : " and ",
                 kind->target, ".", kind->settings[i].key, "=", kind->settings[i].values);
  }
  return out;
}

/// Adds one of the options to the lists of the devices it is for.
Status addSetting(const std::string &text, std::span<const DeviceKind *const> kinds,
                  std::vector<std::vector<Setting>> &lists) {
  size_t equals = std::min(text.find('='), text.size());
  std::string_view key = std::string_view(text).substr(0, equals), target;
  std::string_view value = std::string_view(text).substr(std::min(equals + 1, text.size()));
  size_t dot = key.find('.');
  if (dot != key.npos) {
    target = key.substr(0, dot);
    key = key.substr(dot + 1);
  }
  auto wrong = [&](std::span<const DeviceKind *const> asked, const auto &...why) {
    return fail(DMX_STATUS_INVALID_ARGUMENT, "device option '", text, "' ", why..., "; ", knownSettings(asked));
  };
  bool known = false, addressed = false;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (dot != text.npos && target != kinds[i]->target)
      continue;
    addressed = true;
    const SettingSpec *spec = findSetting(*kinds[i], key);
    if (!spec && dot != text.npos)
      return wrong(kinds.subspan(i, 1), "is not known");
    if (!spec)
      continue;
    Setting setting;
    if (!readValue(*spec, value, setting))
      return wrong(kinds.subspan(i, 1), "has a value other than ", spec->values);
    lists[i].push_back(std::move(setting));
    known = true;
  }
  if (!addressed)
    return wrong(kinds, "is for target '", target, "', which this model does not run on");
  return known ? Status() : Status(wrong(kinds, "is not known"));
}

} // namespace

bool runsOnHost(std::string_view target) {
  const DeviceKind *kind = linkedKind(target);
  return kind && kind->runsOnHost;
}

std::string_view hostTarget() {
  for (const DeviceKind *kind : deviceKinds())
    if (kind->runsOnHost)
      return kind->target;
  return {};
}

static Result<std::vector<const DeviceKind *>> findKinds(std::span<const std::string> targets) {
  std::vector<const DeviceKind *> kinds;
  for (const std::string &target : targets) {
    auto kind = findKind(target);
    if (!kind)
      return kind.takeError();
    kinds.push_back(*kind);
  }
  return kinds;
}

Result<std::vector<std::unique_ptr<Device>>> createRehearsalDevices(std::span<const std::string> targets,
                                                                    size_t variant) {
  auto kinds = findKinds(targets);
  if (!kinds)
    return kinds.takeError();
  std::vector<std::unique_ptr<Device>> devices;
  for (const DeviceKind *kind : *kinds)
    devices.push_back(std::make_unique<RehearsalDevice>(*kind, variant));
  return devices;
}

Result<std::vector<std::unique_ptr<Device>>> createDevices(std::span<const std::string> targets,
                                                           const DeviceOptions &options) {
  auto kinds = findKinds(targets);
  if (!kinds)
    return kinds.takeError();
  std::vector<std::vector<Setting>> settings(kinds->size());
  for (const std::string &text : options.settings)
    if (Status status = addSetting(text, *kinds, settings); !status)
      return status.takeError();
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t i = 0; i < kinds->size(); ++i) {
    auto made = (*kinds)[i]->create(options, settings[i]);
    if (!made)
      return made.takeError();
    devices.push_back(std::move(*made));
  }
  return devices;
}

Status checkCode(std::string_view target, std::span<const std::byte> bytes, int32_t &contracts) {
  auto kind = findKind(target);
  contracts = -1;
  return kind ? (*kind)->checkCode(bytes, contracts) : Status();
}

std::vector<std::string_view> codeForRequests(std::span<const TargetCode> codes) {
  std::vector<std::string_view> others;
  for (size_t i = 0; i < codes.size(); ++i) {
    const std::string &target = codes[i].target;
    auto isOf = [&](const TargetCode &code) { return code.target == target; };
    if (std::any_of(codes.begin(), codes.begin() + i, isOf))
      continue; // seen
    auto kind = findKind(target);
    if (!kind || !(*kind)->select)
      continue;
    Result<const TargetCode *> best = (*kind)->select(codes, "");
    if (!best)
      continue;
    for (const TargetCode &code : codes)
      for (std::string_view entry : {std::string_view(code.entry), std::string_view(code.common)})
        if (isOf(code) && entry != (*best)->entry && entry != (*best)->common)
          others.push_back(entry);
  }
  return others;
}

} // namespace dmxrt
