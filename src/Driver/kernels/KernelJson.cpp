//===- KernelJson.cpp - values of a kernel file ---------------------------===//
#include "KernelJson.h"

#include "dmxc/Support/Diagnostic.h"
#include "dmxc/Support/JsonDepth.h"

#include <algorithm>

namespace dmxc::driver {

using nlohmann::json;

/// Of an expression, as it stands and with all that its names stand for in it: products of sums grow fast.
static constexpr size_t kMostText = 200;

json parseKernelJson(const std::string &file, std::string_view text) {
  if (!jsonDepthIsBounded(text))
    throw modelError(file + ": its brackets are nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto seen = [&](int, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  json value = json::parse(text, seen, /*allow_exceptions=*/false);
  if (value.is_discarded())
    throw modelError(file +
                     ": this is no JSON; a kernel file is {\"kernels\": [...]}, see schemas/kernels.schema.json");
  if (!twice.empty())
    throw modelError(file + ": the key '" + twice + "' stands twice in one object");
  return value;
}

KernelJson::KernelJson(const json &value, std::string file, std::string path)
    : value(value), file(std::move(file)), path(std::move(path)) {}

std::string KernelJson::place() const { return path.empty() ? file : file + ": " + path; }

void KernelJson::fail(const std::string &clause) const { throw modelError(place() + ": " + clause); }

KernelJson KernelJson::inner(const json &other, const std::string &step) const {
  return {other, file, path.empty() || step[0] == '[' ? path + step : path + "." + step};
}

void KernelJson::onlyKeys(const std::vector<std::string> &keys) const {
  if (!value.is_object())
    fail("an object is expected");
  for (const auto &[key, ignored] : value.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string near = nearestName(key, keys), all;
      for (const std::string &name : keys)
        all += (all.empty() ? "" : ", ") + name;
      fail("there is no key '" + key + "'; " + (near.empty() ? "there are " + all : "did you mean '" + near + "'?"));
    }
}

bool KernelJson::has(const char *key) const { return value.is_object() && value.contains(key); }

const json &KernelJson::find(const char *key) const {
  if (!has(key))
    fail("the key '" + std::string(key) + "' is missing");
  return value.at(key);
}

KernelJson KernelJson::at(const char *key) const {
  KernelJson found = inner(find(key), key);
  if (!found.value.is_object())
    found.fail("an object is expected");
  return found;
}

std::string KernelJson::toText() const {
  if (!value.is_string() || value.get_ref<const std::string &>().empty())
    fail("a text is expected");
  std::string text = value.get<std::string>();
  if (text.find('\0') != std::string::npos)
    fail("the text holds a byte 0");
  return text;
}

std::string KernelJson::text(const char *key) const { return inner(find(key), key).toText(); }

std::string KernelJson::textOr(const char *key, const std::string &otherwise) const {
  return has(key) ? text(key) : otherwise;
}

static std::optional<int64_t> integerOf(const json &value) {
  bool fits = value.is_number_integer() &&
              (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  return fits ? std::optional(value.get<int64_t>()) : std::nullopt;
}

int64_t KernelJson::toInteger() const {
  std::optional<int64_t> number = integerOf(value);
  if (!number)
    fail("an integer of 64 bits is expected");
  return *number;
}

int64_t KernelJson::integerOr(const char *key, int64_t otherwise) const {
  return has(key) ? inner(find(key), key).toInteger() : otherwise;
}

bool KernelJson::flagOr(const char *key, bool otherwise) const {
  if (!has(key))
    return otherwise;
  if (!find(key).is_boolean())
    inner(find(key), key).fail("true or false is expected");
  return find(key).get<bool>();
}

std::vector<KernelJson> KernelJson::list(const char *key, size_t least) const {
  std::vector<KernelJson> items;
  if (!has(key) && least == 0)
    return items;
  KernelJson array = inner(find(key), key);
  if (!array.value.is_array() || array.value.size() < least)
    array.fail(least ? "an array with something in it is expected" : "an array is expected");
  for (size_t i = 0; i < array.value.size(); ++i)
    items.push_back(array.inner(array.value[i], "[" + std::to_string(i) + "]"));
  return items;
}

std::vector<std::string> KernelJson::texts(const char *key) const {
  std::vector<std::string> all;
  for (const KernelJson &item : list(key, 0))
    all.push_back(item.toText());
  return all;
}

std::vector<int64_t> KernelJson::integers(const char *key) const {
  std::vector<int64_t> all;
  for (const KernelJson &item : list(key, 0))
    all.push_back(item.toInteger());
  return all;
}

Dim KernelJson::toDim() const {
  if (std::optional<int64_t> number = integerOf(value))
    return *number;
  if (!value.is_string())
    fail("a number, or an expression over dims as a text, is expected");
  if (value.get_ref<const std::string &>().size() > kMostText)
    fail("the expression is longer than " + std::to_string(kMostText) + " letters; name parts of it in 'dims'");
  Result<Dim> dim = Dim::parse(value.get_ref<const std::string &>());
  if (!dim)
    fail("'" + value.get<std::string>() + "' is no expression: " + dim.error().message);
  return *dim;
}

Dim KernelJson::dim(const char *key, int64_t otherwise) const {
  return has(key) ? inner(find(key), key).toDim() : Dim(otherwise);
}

std::vector<std::string> KernelJson::keys() const {
  std::vector<std::string> all;
  for (auto item = value.begin(); item != value.end(); ++item)
    all.push_back(item.key());
  return all;
}

std::vector<Dim> KernelJson::dims(const char *key) const {
  std::vector<Dim> all;
  constexpr size_t most = 32; // of a tensor of a bundle
  for (const KernelJson &item : [&] {
         find(key);
         return list(key, 0);
       }())
    all.push_back(item.toDim());
  if (all.size() > most)
    inner(find(key), key).fail("a tensor has up to " + std::to_string(most) + " dims");
  return all;
}

std::map<std::string, dmir::KernelDecl::Value> KernelJson::values() const {
  std::map<std::string, dmir::KernelDecl::Value> all;
  for (const auto &[key, item] : value.items())
    if (item.is_boolean())
      all[key] = item.get<bool>();
    else if (std::optional<int64_t> number = integerOf(item))
      all[key] = *number;
    else if (item.is_number_float())
      all[key] = item.get<double>();
    else
      all[key] = inner(item, key).toText();
  return all;
}

//===--- Named dims ------------------------------------------------------------===//

NamedDims::NamedDims(const KernelJson &kernel, std::set<std::string> names) : known(std::move(names)) {
  if (!kernel.has("dims"))
    return;
  KernelJson dims = kernel.at("dims");
  for (const auto &[name, ignored] : dims.values())
    if (known.count(name))
      dims.fail("'" + name + "' is an attribute or the dim of an operand already");
    else
      named[name] = dims.dim(name.c_str(), 0);
  for (const auto &[name, dim] : std::map(named))
    resolve(Dim::symbol(name), dims);
}

Dim NamedDims::resolve(Dim dim, const KernelJson &place) {
  Dim resolved = dim.substitute([&](std::string_view symbol) {
    std::string name(symbol);
    if (known.count(name))
      return Dim::symbol(symbol);
    auto found = named.find(name);
    if (found == named.end())
      place.fail("no operand has the dim '" + name + "' alone as an axis, and neither 'dims' nor 'attributes' has it");
    if (std::find(open.begin(), open.end(), name) != open.end())
      place.fail("the dim '" + name + "' is an expression of itself");
    open.push_back(name);
    Dim value = resolve(found->second, place);
    open.pop_back();
    return value;
  });
  if (resolved.str().size() > kMostText)
    place.fail("the expression '" + dim.str() + "' has more than " + std::to_string(kMostText) +
               " letters with all that its names stand for");
  return resolved;
}

} // namespace dmxc::driver
