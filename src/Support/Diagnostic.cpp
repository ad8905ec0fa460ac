//===- Diagnostic.cpp - messages about the user's model -------------------===//
#include "dmxc/Support/Diagnostic.h"

#include "dmxc/Support/Visible.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace dmxc {

namespace {

/// "ui8" is u8 to users, "i1" bool, "!dmir.block_fp<BFP16_64R>" BFP16_64R.
std::string elementName(std::string_view type) {
  if (size_t open = type.find('<'); type.starts_with("!dmir.block_fp") && open != std::string_view::npos)
    return std::string(type.substr(open + 1, type.size() - open - 2));
  if (type == "i1")
    return "bool";
  std::string name(type.starts_with("ui") ? "u" + std::string(type.substr(2)) : type);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

/// "4x?xf32, #dmir.dims<"n">" becomes "f32[4xn]".
std::string tensorName(std::string_view inside) {
  std::vector<std::string> names;
  std::string_view dims = inside.substr(std::min(inside.find("#dmir.dims<"), inside.size()));
  for (size_t at = dims.find('"'); at != std::string_view::npos; at = dims.find('"', at + 1)) {
    size_t end = std::min(dims.find('"', at + 1), dims.size());
    names.emplace_back(dims.substr(at + 1, end - at - 1));
    at = end;
  }
  std::string shape;
  size_t next = 0;
  while (!inside.empty() && (std::isdigit(static_cast<unsigned char>(inside[0])) || inside[0] == '?')) {
    size_t end = std::min(inside.find('x'), inside.size());
    bool open = inside[0] == '?';
    shape +=
        (shape.empty() ? "" : "x") + (open && next < names.size() ? names[next] : std::string(inside.substr(0, end)));
    next += open;
    inside.remove_prefix(std::min(end + 1, inside.size()));
  }
  return elementName(inside.substr(0, inside.find(", "))) + "[" + shape + "]";
}

/// Without the numbers that constraints have in the IR's own documents ("C3: ").
std::string withoutNumbers(std::string text) {
  for (size_t at = text.find('C'); at != std::string::npos; at = text.find('C', at + 1)) {
    size_t end = text.find_first_not_of("0123456789", at + 1);
    if ((at == 0 || text[at - 1] == ' ') && end > at + 1 && end != std::string::npos && text.compare(end, 2, ": ") == 0)
      text.erase(at, end + 2 - at);
  }
  return text;
}

/// With types as messages write them, not as MLIR does.
std::string withPlainTypes(std::string text) {
  constexpr std::string_view start = "tensor<";
  for (size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    size_t end = at + start.size();
    for (int depth = 1; end < text.size() && depth; ++end)
      depth += (text[end] == '<') - (text[end] == '>');
    std::string name = tensorName(std::string_view(text).substr(at + start.size(), end - 1 - at - start.size()));
    bool quoted = at > 0 && text[at - 1] == '\'' && end < text.size() && text[end] == '\'';
    text.replace(at - quoted, end - at + 2 * quoted, name);
  }
  return text;
}

} // namespace

void Diagnostics::report(Diagnostic diagnostic) {
  bool isText = diagnostic.id.starts_with("mlir-"); // where types are what the user wrote
  auto plain = [&](std::string text) {
    text = withoutNumbers(std::move(text));
    return isText ? text : withPlainTypes(std::move(text));
  };
  diagnostic.text = plain(std::move(diagnostic.text));
  for (auto &line : diagnostic.attached)
    line.second = plain(std::move(line.second));
  std::lock_guard lock(mutex);
  if (diagnostic.severity == Severity::Warning && warningsAsErrors)
    diagnostic.severity = Severity::Error;
  reported.push_back(std::move(diagnostic));
  if (consumer)
    consumer(reported.back());
}

void Diagnostics::report(const Error &error, const std::string &id, const std::string &file) {
  Diagnostic diagnostic;
  diagnostic.id = id;
  diagnostic.file = file;
  diagnostic.text = error.message;
  diagnostic.kind = error.kind;
  report(std::move(diagnostic));
}

size_t Diagnostics::errorCount() const {
  std::lock_guard lock(mutex);
  return std::count_if(reported.begin(), reported.end(),
                       [](const Diagnostic &d) { return d.severity == Severity::Error; });
}

int Diagnostics::exitCode() const {
  std::lock_guard lock(mutex);
  for (const Diagnostic &d : reported)
    if (d.severity == Severity::Error)
      return exitCodeOf(d.kind);
  return 0;
}

namespace {
struct SeverityName {
  const char *text, *color;
};
SeverityName nameOf(Severity severity) {
  switch (severity) {
  case Severity::Note:
    return {"note", "\033[1;36m"};
  case Severity::Help:
    return {"help", "\033[1;32m"};
  case Severity::Warning:
    return {"warning", "\033[1;35m"};
  case Severity::Error:
    break;
  }
  return {"error", "\033[1;31m"};
}
std::string painted(Severity severity, bool color) {
  SeverityName name = nameOf(severity);
  return color ? std::string(name.color) + name.text + ":\033[0m" : std::string(name.text) + ":";
}
} // namespace

std::string renderText(const Diagnostic &d, bool color) {
  // A path is said once. Names in it are other people's.
  bool isSaid = d.node.empty() && d.text.find("'" + d.file + "'") != std::string::npos;
  std::string text = d.file.empty() || isSaid ? "dmxc: " : d.file + ": ";
  if (!d.node.empty())
    text += "node '" + d.node + "': ";
  text = visible(text) + painted(d.severity, color) + " " + visible(d.text);
  if (!d.id.empty())
    text += " [" + d.id + "]";
  for (const auto &[severity, line] : d.attached)
    text += "\n  " + painted(severity, color) + " " + visible(line);
  return text;
}

std::string renderJson(const Diagnostic &d) {
  nlohmann::ordered_json json;
  json["severity"] = nameOf(d.severity).text;
  json["id"] = d.id;
  json["file"] = d.file;
  json["node"] = d.node;
  json["message"] = d.text;
  json["attached"] = nlohmann::ordered_json::array();
  for (const auto &[severity, line] : d.attached)
    json["attached"].push_back({{"severity", nameOf(severity).text}, {"message", line}});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string nearestName(const std::string &text, const std::vector<std::string> &names) {
  std::string best;
  size_t bestDistance = std::max<size_t>(text.size() / 3, 1) + 1;
  for (const std::string &name : names) {
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 1; i <= text.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= name.size(); ++j) {
        size_t change = diagonal + (text[i - 1] != name[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < bestDistance) {
      bestDistance = row.back();
      best = name;
    }
  }
  return best;
}

} // namespace dmxc
