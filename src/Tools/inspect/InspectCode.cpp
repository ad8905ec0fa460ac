//===- InspectCode.cpp - code objects that a viewer knows -----------------===//
#include "InspectCode.h"

#include <algorithm>
#include <cstdio>

namespace dmxc::tools {

using namespace bundle;

const Json &partOf(const Json &object, const char *key) {
  static const Json none;
  auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : none;
}

std::string textOf(const Json &object, const char *key) {
  const Json &part = partOf(object, key);
  return part.is_string() ? part.get<std::string>() : std::string();
}

double numberOf(const Json &object, const char *key) {
  const Json &part = partOf(object, key);
  return part.is_number() ? part.get<double>() : 0;
}

int64_t wholeOf(const Json &object, const char *key) {
  const Json &part = partOf(object, key);
  if (part.is_number_integer())
    return part.get<int64_t>();
  constexpr double most = 9e18; // below what a cast may have
  return static_cast<int64_t>(std::clamp(numberOf(object, key), -most, most));
}

const CodeViewer *findCodeViewer(std::string_view target) {
  for (const CodeViewer &viewer : codeViewers())
    if (viewer.target == target)
      return &viewer;
  return nullptr;
}

namespace {

Error unsound(const CodeObject &object, const std::string &why) {
  return modelError("'" + object.bundle + "': entry '" + object.target->entry + "': " + why);
}

Json parsed(const std::string &text) { return jsonDepthIsBounded(text) ? Json::parse(text, nullptr, false) : Json(); }

CodeObject objectOf(const Bundle &bundle, const TargetDesc &target) {
  CodeObject object{&target, findCodeViewer(target.target), {}, bundle.path()};
  if (const BundleEntry *entry = bundle.find(target.entry))
    object.bytes = entry->bytes;
  return object;
}

/// Both texts around the first place where they differ, when they are long.
void shorten(Difference &difference) {
  constexpr size_t most = 600, before = 80;
  if (difference.a.size() <= most && difference.b.size() <= most)
    return;
  auto [x, y] = std::mismatch(difference.a.begin(), difference.a.end(), difference.b.begin(), difference.b.end());
  auto at = static_cast<size_t>(x - difference.a.begin());
  for (std::string *side : {&difference.a, &difference.b}) {
    size_t begin = at > before ? at - before : 0;
    bool cut = side->size() > begin + most;
    *side = (begin ? "..." : "") + side->substr(std::min(begin, side->size()), most) + (cut ? "..." : "");
  }
}

/// What differs in two objects of one format; nothing when a side is not sound, of which `unsoundSide` then tells.
std::vector<Difference> compareObjects(const CodeObject &x, const CodeObject &y) {
  std::vector<Difference> out;
  const std::string &entry = x.target->entry;
  auto soundness = [](const CodeObject &object) {
    Result<Json> read = object.describe("", false);
    return read ? std::string("sound") : read.error().message;
  };
  std::string left = soundness(x), right = soundness(y), error;
  if (left != "sound" || right != "sound")
    return {{"code", entry, left, right}};
  Json list = parsed(x.viewer->compare(x.bytes, y.bytes, error).value_or("[]"));
  for (const Json &item : list) {
    out.push_back({textOf(item, "what"), entry + ": " + textOf(item, "name"), textOf(item, "a"), textOf(item, "b")});
    shorten(out.back());
  }
  return out;
}

} // namespace

Result<Json> CodeObject::describe(const std::string &kernel, bool full) const {
  std::string error = "it is not in the bundle";
  std::optional<std::string> text;
  if (bytes.data())
    text = viewer->describe(bytes, kernel, full, error);
  if (!text)
    return unsound(*this, error);
  return parsed(*text);
}

Result<std::string> CodeObject::print(const std::string &kernel) const {
  std::string error;
  std::optional<std::string> text = viewer->print(bytes, kernel, error);
  if (!text)
    return unsound(*this, error);
  return std::move(*text);
}

std::vector<CodeObject> codeObjects(const Bundle &bundle) {
  std::vector<CodeObject> objects;
  for (const TargetDesc &target : bundle.manifest().targets)
    if (CodeObject object = objectOf(bundle, target); object.viewer)
      objects.push_back(std::move(object));
  return objects;
}

void addCodeTables(const CodeObject &object, const Json &description, bool full, View &view) {
  const std::string &entry = object.target->entry;
  Table counts{"instructions in " + entry, {"kernel", "runs on", "streams", "all"}, {}};
  Table prints{"footprints in " + entry, {"kernel"}, {}};
  const Json &kernels = partOf(description, "kernels");
  if (kernels.empty())
    return;
  for (auto [title, key] : {std::pair(&counts, "instructions"), std::pair(&prints, "footprint")})
    for (const auto &item : partOf(kernels[0], key).items())
      title->columns.push_back(item.key());
  for (const Json &kernel : kernels) {
    Json name = textOf(kernel, "name");
    uint64_t all = 0;
    std::vector<Json> groups, bytes{name};
    for (const Json &count : partOf(kernel, "instructions")) {
      all += count.get<uint64_t>();
      groups.push_back(count);
    }
    std::vector<Json> row{name, textOf(kernel, "runs_on"), partOf(kernel, "streams").size(), all};
    row.insert(row.end(), groups.begin(), groups.end());
    counts.add(std::move(row));
    for (const Json &one : partOf(kernel, "footprint"))
      bytes.push_back(one);
    prints.add(std::move(bytes));
  }
  view.tables.push_back(std::move(counts));
  if (!full)
    return;
  view.tables.push_back(std::move(prints));
  Table memories{"memories of " + entry, {"memory", "per", "units", "capacity", "footprint", "share"}, {}};
  for (const Json &memory : partOf(description, "memories")) {
    char share[32];
    std::snprintf(share, sizeof share, "%.2f %%",
                  100 * numberOf(memory, "footprint") / std::max(numberOf(memory, "capacity"), 1.0));
    memories.add({textOf(memory, "memory"), textOf(memory, "per"), partOf(memory, "units"), partOf(memory, "capacity"),
                  partOf(memory, "footprint"), share});
  }
  view.tables.push_back(std::move(memories));
}

void addRangeTables(const CodeObject &object, const Json &description, View &view) {
  for (const Json &kernel : partOf(description, "kernels")) {
    Table table{"memory of '" + textOf(kernel, "name") + "' in " + object.target->entry,
                {"memory", "units", "begin", "end", "bytes", "kind", "first step", "last step", "name"},
                {}};
    for (const Json &range : partOf(partOf(kernel, "map"), "ranges"))
      table.add({textOf(range, "memory"), textOf(range, "units"), partOf(range, "begin"), partOf(range, "end"),
                 wholeOf(range, "end") - wholeOf(range, "begin"), textOf(range, "kind"), partOf(range, "first"),
                 partOf(range, "last"), textOf(range, "name")});
    view.tables.push_back(std::move(table));
  }
}

void explainCode(const Bundle &a, const Bundle &b, std::vector<Difference> &differences) {
  std::vector<Difference> out;
  for (Difference &difference : differences) {
    auto isIts = [&](const CodeObject &object) { return object.target->entry == difference.name; };
    std::vector<CodeObject> left = codeObjects(a), right = codeObjects(b);
    auto x = std::find_if(left.begin(), left.end(), isIts), y = std::find_if(right.begin(), right.end(), isIts);
    std::vector<Difference> inside;
    if (difference.what == "entry" && x != left.end() && y != right.end() && x->viewer == y->viewer)
      inside = compareObjects(*x, *y);
    if (inside.empty())
      out.push_back(std::move(difference));
    else
      std::move(inside.begin(), inside.end(), std::back_inserter(out));
  }
  differences = std::move(out);
}

} // namespace dmxc::tools
