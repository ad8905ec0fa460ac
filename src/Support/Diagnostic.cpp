//===- Diagnostic.cpp - messages about the user's model -------------------===//
#include "dmxc/Support/Diagnostic.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace dmxc {

void Diagnostics::report(Diagnostic diagnostic) {
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
  std::string text = d.file.empty() ? "dmxc: " : d.file + ": ";
  if (!d.node.empty())
    text += "node '" + d.node + "': ";
  text += painted(d.severity, color) + " " + d.text;
  if (!d.id.empty())
    text += " [" + d.id + "]";
  for (const auto &[severity, line] : d.attached)
    text += "\n  " + painted(severity, color) + " " + line;
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
