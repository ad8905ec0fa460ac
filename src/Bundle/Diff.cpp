//===- Diff.cpp - what differs between two bundles ------------------------===//
#include "dmxc/Bundle/Diff.h"

#include "Json.h"

#include <cstring>
#include <set>

namespace dmxc::bundle {

using json::Value;

namespace {

class Differ {
public:
  Differ(const Bundle &a, const Bundle &b) : a(a), b(b) {}

  std::vector<Difference> run() {
    manifests();
    entries();
    graphs();
    weights();
    return std::move(found);
  }

private:
  void add(const char *what, const std::string &name, const std::string &left, const std::string &right) {
    if (left != right)
      found.push_back({what, name, shorten(left), shorten(right)});
  }
  static std::string shorten(const std::string &text) {
    constexpr size_t most = 200;
    return text.size() <= most ? text : text.substr(0, most - 3) + "...";
  }
  static std::string text(const Value &value) {
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Value::error_handler_t::replace);
  }

  void values(const char *what, const std::string &name, const Value *x, const Value *y, unsigned depth);
  void lists(const char *what, const std::string &name, const Value &x, const Value &y, unsigned depth);
  void manifests();
  void entries();
  void graphs();
  void weights();
  void weightsOf(const std::string &name);

  const Bundle &a;
  const Bundle &b;
  std::vector<Difference> found;
};

/// The name by which an element of a list is matched, if it has one.
std::string keyOf(const Value &element) {
  if (!element.is_object())
    return {};
  for (const char *key : {"name", "target"})
    if (auto it = element.find(key); it != element.end() && it->is_string() && !it->get<std::string>().empty())
      return it->get<std::string>();
  return {};
}

/// Positions by name and occurrence, so that equal names still pair up.
std::vector<std::string> keysOf(const Value &list) {
  std::map<std::string, int> seen;
  std::vector<std::string> keys;
  size_t i = 0;
  for (const Value &element : list) {
    std::string key = keyOf(element);
    if (key.empty())
      key = "[" + std::to_string(i) + "]";
    int times = seen[key]++;
    keys.push_back(times ? key + "#" + std::to_string(times + 1) : key);
    ++i;
  }
  return keys;
}

void Differ::lists(const char *what, const std::string &name, const Value &x, const Value &y, unsigned depth) {
  std::vector<std::string> left = keysOf(x), right = keysOf(y);
  std::map<std::string, size_t> byKey;
  for (size_t i = 0; i < right.size(); ++i)
    byKey[right[i]] = i;
  std::set<std::string> matched;
  for (size_t i = 0; i < left.size(); ++i) {
    auto it = byKey.find(left[i]);
    matched.insert(left[i]);
    values(what, name + "/" + left[i], &x[i], it == byKey.end() ? nullptr : &y[it->second], depth);
  }
  for (size_t i = 0; i < right.size(); ++i)
    if (!matched.count(right[i]))
      values(what, name + "/" + right[i], nullptr, &y[i], depth);
}

void Differ::values(const char *what, const std::string &name, const Value *x, const Value *y, unsigned depth) {
  if (x && y && *x == *y)
    return;
  if (x && y && depth && x->is_object() && y->is_object()) {
    for (auto &item : x->items()) {
      auto it = y->find(item.key());
      values(what, name.empty() ? item.key() : name + "." + item.key(), &item.value(), it == y->end() ? nullptr : &*it,
             depth - 1);
    }
    for (auto &item : y->items())
      if (!x->contains(item.key()))
        values(what, name.empty() ? item.key() : name + "." + item.key(), nullptr, &item.value(), depth - 1);
    return;
  }
  bool named = x && y && x->is_array() && y->is_array() &&
               ((!x->empty() && (*x)[0].is_object()) || (!y->empty() && (*y)[0].is_object()));
  if (depth && named)
    return lists(what, name, *x, *y, depth - 1);
  add(what, name, x ? text(*x) : "", y ? text(*y) : "");
}

void Differ::manifests() {
  Value x = Value::parse(toJson(a.manifest())), y = Value::parse(toJson(b.manifest()));
  x.erase("entries");
  y.erase("entries");
  values("manifest", "", &x, &y, 6);
}

void Differ::entries() {
  auto describe = [](const EntryDesc *row) {
    return row ? std::to_string(row->size) + " bytes, sha256 " + row->sha256 : "";
  };
  for (const EntryDesc &row : a.manifest().entries)
    add("entry", row.name, describe(&row), describe(b.manifest().findEntry(row.name)));
  for (const EntryDesc &row : b.manifest().entries)
    if (!a.manifest().findEntry(row.name))
      add("entry", row.name, "", describe(&row));
  auto signer = [](const std::optional<Signature> &signature) {
    return signature ? "version " + std::to_string(signature->version) + ", key " + signature->key : "";
  };
  add("entry", std::string(signatureName), signer(a.signature()), signer(b.signature()));
}

void Differ::graphs() {
  Value x = Value::parse(toJson(a.graphs())), y = Value::parse(toJson(b.graphs()));
  auto graphOf = [](const Value &root, const std::string &name) -> const Value * {
    for (const Value &graph : root["graphs"])
      if (graph["name"] == name)
        return &graph;
    return nullptr;
  };
  auto partOf = [](const Value &graph, const char *part) -> const Value & {
    static const Value none = Value::array();
    auto it = graph.find(part);
    return it == graph.end() ? none : *it;
  };
  std::set<std::string> names;
  for (const Bundle *side : {&a, &b})
    for (const GraphDesc &graph : side->graphs().graphs)
      names.insert(graph.name);
  for (const std::string &name : names) {
    const Value *left = graphOf(x, name), *right = graphOf(y, name);
    if (!left || !right) {
      add("graph", name, left ? "present" : "", right ? "present" : "");
      continue;
    }
    for (const char *part : {"dims", "constraints", "arenas", "buffers", "queues", "tasks"}) {
      std::string singular = part;
      singular.pop_back();
      const char *what = part == std::string("buffers") ? "buffer" : part == std::string("tasks") ? "task" : "graph";
      values(what, name + "/" + singular, &partOf(*left, part), &partOf(*right, part), 2);
    }
  }
}

void Differ::weights() {
  for (const EntryDesc &row : a.manifest().entries) {
    const EntryDesc *other = b.manifest().findEntry(row.name);
    if (row.name.ends_with(".safetensors") && other && other->sha256 != row.sha256)
      weightsOf(row.name);
  }
}

void Differ::weightsOf(const std::string &name) {
  const BundleEntry *left = a.find(name), *right = b.find(name);
  if (!left || !right)
    return;
  auto x = readWeights(left->bytes), y = readWeights(right->bytes);
  if (!x || !y)
    return add("weight", name, x ? "readable" : x.error().message, y ? "readable" : y.error().message);
  auto describe = [](const WeightInfo &info) {
    return info.dtype + " " + dmxc::shapeString(info.shape) + (info.packing.empty() ? "" : " packed " + info.packing);
  };
  std::map<std::string, const WeightInfo *> others;
  for (const WeightInfo &info : *y)
    others[info.name] = &info;
  for (const WeightInfo &info : *x) {
    auto it = others.find(info.name);
    if (it == others.end()) {
      add("weight", info.name, describe(info), "");
      continue;
    }
    const WeightInfo &peer = *it->second;
    others.erase(it);
    add("weight", info.name, describe(info), describe(peer));
    if (info.size == peer.size && describe(info) == describe(peer) &&
        std::memcmp(left->bytes.data() + info.offset, right->bytes.data() + peer.offset, info.size) != 0)
      add("weight", info.name, describe(info) + " with other bytes", describe(peer));
  }
  for (const WeightInfo &info : *y)
    if (others.count(info.name))
      add("weight", info.name, "", describe(info));
}

} // namespace

std::vector<Difference> diff(const Bundle &a, const Bundle &b) { return Differ(a, b).run(); }

} // namespace dmxc::bundle
