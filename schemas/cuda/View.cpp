//===- View.cpp - what dmx-inspect shows of kernels in PTX ----------------===//
#include "Assembler.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmx::cuda {

using Text = std::optional<std::string>;
using Bytes = std::span<const std::byte>;
using Json = nlohmann::ordered_json;

namespace {

/// A kernel's record in the launch table and its text.
struct Kernel {
  Json launch;
  std::string text;
  std::string name() const { return launch.value("name", ""); }
};

/// The comment that the entry begins with, without its slashes, and what stands behind it.
std::pair<std::string, std::string_view> splitComment(std::string_view text) {
  std::string comment;
  while (text.starts_with("//")) {
    size_t end = std::min(text.find('\n'), text.size());
    comment.append(text.substr(2, end - 2)).append("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {std::move(comment), text};
}

/// Behind the body of the entry at `begin`; blocks of inline assembly and vectors have braces of their own.
size_t endOfEntry(std::string_view code, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < code.size(); ++i) {
    depth += code[i] == '{' ? 1 : code[i] == '}' ? -1 : 0;
    if (code[i] == '}' && depth == 0)
      return i + 1;
  }
  return code.size();
}

/// The kernel with the tables in front of it.
std::string textOf(std::string_view code, const std::string &name) {
  constexpr std::string_view header = ".address_size 64";
  size_t end = code.find(header);
  end = end == code.npos ? 0 : end + header.size();
  for (size_t at; (at = code.find(".entry ", end)) != code.npos;) {
    size_t begin = end;
    end = endOfEntry(code, at);
    if (!code.substr(at).starts_with(".entry " + name + "("))
      continue;
    std::string_view text = code.substr(begin, end - begin);
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    return std::string(text) + "\n";
  }
  return {};
}

std::optional<std::vector<Kernel>> kernelsOf(Bytes code, std::string_view only, std::string &error) {
  auto [comment, rest] = splitComment({reinterpret_cast<const char *>(code.data()), code.size()});
  // What nests deeper is none of a launch table's, and would be copied and printed by recursion.
  Json table = Json::parse(comment, [](int depth, auto, const auto &) { return depth <= 32; }, false);
  if (!table.is_object() || !table.contains("kernels") || !table["kernels"].is_array()) {
    error = "it does not begin with a launch table";
    return std::nullopt;
  }
  std::vector<Kernel> kernels;
  for (const Json &launch : table["kernels"]) {
    if (!launch.is_object() || !launch.contains("name") || !launch["name"].is_string()) {
      error = "its launch table has a kernel without a name";
      return std::nullopt;
    }
    Kernel kernel{launch, textOf(rest, launch["name"].get<std::string>())};
    if (kernel.text.empty()) {
      error = "kernel '" + kernel.name() + "' of its launch table is not there";
      return std::nullopt;
    }
    if (only.empty() || kernel.name() == only)
      kernels.push_back(std::move(kernel));
  }
  return kernels;
}

/// The roots of a kernel's instructions.
std::vector<std::string_view> instructionsOf(std::string_view text) {
  std::vector<std::string_view> roots;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("@"))
      line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    bool instruction = !line.empty() && line[0] >= 'a' && line[0] <= 'z' && line.find(';') != line.npos;
    if (instruction)
      roots.push_back(line.substr(0, line.find_first_of(" \t;")));
  }
  return roots;
}

/// Instructions by what they are: of memory, of control, of floats, moves and conversions, of integers and predicates.
Json countsOf(const Kernel &kernel) {
  Json counts = {{"memory", 0}, {"float", 0}, {"integer", 0}, {"move", 0}, {"control", 0}};
  for (std::string_view each : instructionsOf(kernel.text)) {
    std::string_view root = each.substr(0, each.find('.'));
    auto is = [&](std::initializer_list<std::string_view> names) { return std::ranges::count(names, root) > 0; };
    const char *group =
        is({"ld", "st", "atom", "cp", "prefetch", "ldmatrix", "stmatrix"})                                  ? "memory"
        : is({"bra", "brx", "ret", "exit", "bar", "barrier", "mbarrier", "fence", "setmaxnreg", "elect"})   ? "control"
        : is({"mov", "cvt", "cvta", "selp"})                                                                ? "move"
        : each.find(".f32") != each.npos || each.find(".f64") != each.npos || each.find("f16") != each.npos ? "float"
                                                                                                            : "integer";
    counts[group] = counts[group].get<int>() + 1;
  }
  return counts;
}

} // namespace

Text describeCode(Bytes code, std::string_view kernel, bool, std::string &error) {
  auto kernels = kernelsOf(code, kernel, error);
  if (!kernels)
    return std::nullopt;
  Json list = Json::array();
  for (const Kernel &each : *kernels)
    list.push_back({{"name", each.name()},
                    {"runs_on", "sm_90a"},
                    {"streams", Json::array({each.name()})},
                    {"instructions", countsOf(each)},
                    {"footprint", Json::object()},
                    {"launch", each.launch}});
  Json all = {{"machine", {{"name", "sm_90a"}}}, {"memories", Json::array()}, {"kernels", list}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Each kernel's nodes and launch, then its text. Of one that is asked for by name also what it needs, where an
/// assembler can say it.
Text printCode(Bytes code, std::string_view kernel, std::string &error) {
  auto kernels = kernelsOf(code, kernel, error);
  if (!kernels)
    return std::nullopt;
  std::string text;
  for (const Kernel &each : *kernels) {
    Json nodes = each.launch.value("nodes", Json::array()), dims = each.launch.value("dims", Json::array());
    for (const Json &node : nodes)
      text += "// node " + node.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    text += "// grid " + each.launch.value("grid", Json()).dump() + " of blocks of " +
            each.launch.value("block", Json()).dump() + " threads; dims " + dims.dump() + "\n";
    if (!kernel.empty())
      if (std::string used = resourcesOf({reinterpret_cast<const char *>(code.data()), code.size()}, each.name());
          !used.empty())
        text += "// ptxas: " + used + "\n";
    text += each.text + "\n";
  }
  return text;
}

Text compareCode(Bytes a, Bytes b, std::string &error) {
  auto left = kernelsOf(a, "", error), right = kernelsOf(b, "", error);
  if (!left || !right)
    return std::nullopt;
  Json all = Json::array();
  auto add = [&](const std::string &what, const std::string &name, const std::string &x, const std::string &y) {
    if (x != y)
      all.push_back({{"what", what}, {"name", name}, {"a", x}, {"b", y}});
  };
  auto find = [](const std::vector<Kernel> &list, const std::string &name) {
    return std::ranges::find_if(list, [&](const Kernel &kernel) { return kernel.name() == name; });
  };
  for (const Kernel &kernel : *left) {
    auto other = find(*right, kernel.name());
    bool there = other != right->end();
    add("launch", kernel.name(), kernel.launch.dump(), there ? other->launch.dump() : "");
    add("kernel", kernel.name(), kernel.text, there ? other->text : "");
  }
  for (const Kernel &kernel : *right)
    if (find(*left, kernel.name()) == left->end())
      add("kernel", kernel.name(), "", kernel.text);
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace dmx::cuda
