//===- TuningDatabase.cpp - what dmxc tune found --------------------------===//
#include "TuningDatabase.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Support/JsonDepth.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using nlohmann::json;

namespace dmxc::driver {

static constexpr int64_t kVersion = 1;

std::string TuningRecord::line() const {
  json object{{"v", kVersion},
              {"region", region},
              {"target", target},
              {"level", level},
              {"effect", effect},
              {"clocks", clocks},
              {"default_clocks", defaultClocks}};
  object["decided"] = json::parse(decided);
  if (!family.empty())
    object["family"] = family;
  return object.dump();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static json jsonOfValue(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isInteger(1) ? json(integer.getValue().getBoolValue()) : json(integer.getInt());
  if (auto text = dyn_cast<StringAttr>(value))
    return text.str();
  json object = json::object();
  for (NamedAttribute entry : cast<DictionaryAttr>(value))
    object[entry.getName().str()] = jsonOfValue(entry.getValue());
  return object;
}

std::string jsonOf(DictionaryAttr decided) { return jsonOfValue(decided).dump(); }

/// What a decision, or a scope's, may be; null for anything else.
static Attribute valueOfJson(const json &value, Builder &b, bool mayNest) {
  if (value.is_boolean())
    return b.getBoolAttr(value.get<bool>());
  if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return {};
    return b.getI64IntegerAttr(value.get<int64_t>());
  }
  if (value.is_string())
    return b.getStringAttr(value.get<std::string>());
  if (!value.is_object() || !mayNest)
    return {};
  NamedAttrList list;
  for (const auto &[key, inner] : value.items()) {
    Attribute attr = key.empty() ? Attribute() : valueOfJson(inner, b, /*mayNest=*/false);
    if (!attr)
      return {};
    list.set(key, attr);
  }
  return list.getDictionary(b.getContext());
}

static DictionaryAttr decidedOfJson(const std::string &text, MLIRContext *context) {
  Builder b(context);
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  NamedAttrList list;
  if (!object.is_object())
    return {};
  for (const auto &[key, value] : object.items()) {
    Attribute attr = key.empty() ? Attribute() : valueOfJson(value, b, /*mayNest=*/true);
    if (!attr)
      return {};
    list.set(key, attr);
  }
  return list.getDictionary(context);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static void warn(const std::string &place, const std::string &text, Diagnostics &diagnostics) {
  Diagnostic warning;
  warning.severity = Severity::Warning;
  warning.id = "tuning-db";
  warning.file = place;
  warning.text = text;
  diagnostics.report(std::move(warning));
}

/// Fills a record; what is wrong with the line, or "".
static std::string parseRecord(const std::string &line, TuningRecord &record) {
  if (!jsonDepthIsBounded(line))
    return "its brackets are nested deeper than " + std::to_string(kMaxJsonDepth) + " levels";
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded())
    return "this is no JSON: a line that was cut, or not UTF-8, or a number beyond all bounds";
  if (!object.is_object())
    return "a record is a JSON object";
  auto version = object.find("v");
  if (version == object.end() || !version->is_number_integer() || *version != kVersion)
    return "the record is of version " + (version == object.end() ? "none" : version->dump()) +
           ", this dmxc knows version " + std::to_string(kVersion) + "; tune again";
  for (const auto &[key, value] : object.items()) {
    std::string *text = key == "region"   ? &record.region
                        : key == "family" ? &record.family
                        : key == "target" ? &record.target
                        : key == "level"  ? &record.level
                        : key == "effect" ? &record.effect
                                          : nullptr;
    int64_t *number = key == "clocks" ? &record.clocks : key == "default_clocks" ? &record.defaultClocks : nullptr;
    if (text && value.is_string())
      *text = value.get<std::string>();
    else if (number && value.is_number_integer() &&
             (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)))
      *number = value.get<int64_t>();
    else if (key == "decided" && value.is_object())
      record.decided = value.dump();
    else if (key != "v")
      return "'" + key + "' is " + (text || number || key == "decided" ? "of another type" : "no key of a record");
  }
  if (record.region.empty() || record.target.empty() || record.level.empty() || record.decided.empty())
    return "a record has region, target, level and decided";
  return "";
}

static std::string keyOf(const std::string &region, const std::string &target, const std::string &level) {
  return region + "\n" + target + "\n" + level;
}

Status TuningDatabase::read(const std::string &path, Diagnostics &diagnostics) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  std::string_view rest(reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size());
  for (size_t number = 1; !rest.empty(); ++number) {
    size_t end = std::min(rest.find('\n'), rest.size());
    if (std::string line(rest.substr(0, end)); !line.empty())
      add(line, path + ":" + std::to_string(number), diagnostics);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Status::ok();
}

void TuningDatabase::add(const std::string &line, const std::string &place, Diagnostics &diagnostics) {
  TuningRecord record;
  if (std::string wrong = parseRecord(line, record); !wrong.empty()) {
    warn(place, wrong + "; the line is not used", diagnostics);
    return;
  }
  // Of two records the faster one, then the first in the alphabet: the order of lines is no matter.
  auto [row, isNew] = rows.try_emplace(keyOf(record.region, record.target, record.level), Row{record, place});
  TuningRecord &known = row->second.record;
  if (!isNew && std::pair(record.clocks, record.line()) < std::pair(known.clocks, known.line()))
    row->second = {record, place};
}

bool TuningDatabase::has(const std::string &region, const std::string &target, const std::string &level) const {
  return rows.contains(keyOf(region, target, level));
}

//===----------------------------------------------------------------------===//
// Using
//===----------------------------------------------------------------------===//

std::string levelsOf(const Options &options, StringRef target) {
  for (const TargetChoice &choice : options.targets)
    if (choice.name == target && !choice.levels.empty())
      return llvm::join(choice.levels, "+");
  return "default";
}

/// A region's text without names, places and constants' values.
static std::string anonymous(dmir::RegionOp region) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(region.getContext()));
  OpBuilder b(module->getBodyRegion());
  auto type = b.getFunctionType(region->getOperandTypes(), {});
  auto function = func::FuncOp::create(b, b.getUnknownLoc(), "region", type);
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  std::string text;
  for (auto [input, argument] : llvm::zip_equal(region.getInputs(), function.getArguments())) {
    mapping.map(input, argument);
    text += dmir::isConstant(input) ? "c" : "v";
  }
  auto copy = cast<dmir::RegionOp>(b.clone(*region.getOperation(), mapping));
  copy.removeStrategyAttr();
  copy.removePlacementAttr();
  for (Operation &op : *copy.getBlock())
    forgetDerived(&op);
  llvm::raw_string_ostream stream(text);
  // The generic form has numbers in the place of names.
  copy->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
  return text;
}

static std::string digestOf(const std::string &text) {
  return "sha256:" + Sha256::hexOf(std::as_bytes(std::span(text.data(), text.size())));
}

std::string fingerprintOf(dmir::RegionOp region) { return digestOf(anonymous(region)); }

std::string familyOf(dmir::RegionOp region) {
  std::string text = anonymous(region), family;
  for (size_t i = 0; i < text.size();) { // 32x512xf32 becomes ?x?xf32
    size_t end = i;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    if (end > i && end < text.size() && text[end] == 'x')
      family += '?';
    else
      family.append(text, i, std::max<size_t>(end - i, 1));
    i = std::max(end, i + 1);
  }
  return digestOf(family);
}

void TuningDatabase::apply(ModuleOp module, const Options &options, const PhaseContext &phases, Schedule &schedule,
                           Diagnostics &diagnostics) const {
  if (rows.empty())
    return;
  module.walk([&](dmir::RegionOp region) {
    std::string device = region.getDevice().str(), level = levelsOf(options, device);
    auto row = rows.find(keyOf(fingerprintOf(region), device, level));
    if (row == rows.end()) {
      if (const TargetBackend *target = phases.target(device))
        applyOther(region, *target, level, schedule);
      return;
    }
    const auto &[record, place] = row->second;
    DictionaryAttr decided = decidedOfJson(record.decided, module.getContext());
    Status done = decided ? schedule.decide(region, decided, place.empty() ? "tuner" : place)
                          : Status(modelError("'decided' has a value that is no whole number, text or truth value"));
    if (!done)
      warn(place, done.error().message + "; the default is used", diagnostics);
  });
}

/// Takes the record of the family that the target expects most of. Without a cost model nobody knows whether a record
/// of other sizes is worth anything here, and none is taken.
bool TuningDatabase::applyOther(dmir::RegionOp region, const TargetBackend &target, const std::string &level,
                                Schedule &schedule) const {
  const std::optional<double> usual = target.estimate(region, decidedOf(region));
  if (!usual)
    return false;
  const std::string family = familyOf(region);
  std::vector<std::tuple<double, DictionaryAttr, std::string>> fits;
  for (const auto &[key, row] : rows) {
    const TuningRecord &record = row.record;
    if (record.family != family || record.target != target.name() || record.level != level)
      continue;
    DictionaryAttr decided = decidedOfJson(record.decided, region.getContext());
    std::optional<double> expected = decided ? target.estimate(region, decided) : std::nullopt;
    if (expected && *expected <= *usual)
      fits.emplace_back(*expected, decided, row.place);
  }
  llvm::stable_sort(fits, [](const auto &a, const auto &b) { return std::get<0>(a) < std::get<0>(b); });
  return llvm::any_of(fits, [&](const auto &fit) {
    const auto &[expected, decided, place] = fit; // what is outside of a domain here is no fault of the record's
    return bool(schedule.decide(region, decided, (place.empty() ? "tuner" : place) + ", of other sizes"));
  });
}

} // namespace dmxc::driver
