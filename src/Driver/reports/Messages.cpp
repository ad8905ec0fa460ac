//===- Messages.cpp - diagnostics on stderr -------------------------------===//
#include "dmxc/Driver/Messages.h"

#include "dmxc/Tools/Progress.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace dmxc::driver {

namespace {

/// "Relu (ai.onnx opset 13): the reason", "torch.ops.aten.relu.default: the reason": the operator and the rest.
std::pair<std::string, std::string> splitOperator(const std::string &text) {
  size_t colon = text.find(": "), open = text.find(" (");
  if (open != std::string::npos && open < colon)
    colon = text.find("): ", open) == std::string::npos ? std::string::npos : text.find("): ", open) + 1;
  std::string op = colon == std::string::npos ? "" : text.substr(0, colon);
  bool isName = !op.empty() && op.substr(0, op.find(" (")).find(' ') == std::string::npos;
  return isName ? std::pair(op, text.substr(colon + 2)) : std::pair(std::string(), text);
}

struct Group {
  std::string op, reason;
  std::vector<const Diagnostic *> errors;
};

/// By `key`, in the order of the first of each.
template <typename Key> std::vector<Group> groupsBy(const std::vector<Diagnostic> &errors, Key key) {
  std::vector<Group> groups;
  std::map<std::string, size_t> numbers;
  for (const Diagnostic &error : errors) {
    auto [op, reason] = splitOperator(error.text);
    std::string severity = error.severity == Severity::Error ? "error" : "other";
    auto [place, isNew] =
        numbers.try_emplace(severity + "\n" + error.file + "\n" + error.id + "\n" + key(op, reason), groups.size());
    if (isNew)
      groups.push_back({op, reason, {}});
    groups[place->second].errors.push_back(&error);
  }
  return groups;
}

Diagnostic merged(const Group &group, bool namesOperators, bool &leftOut) {
  constexpr size_t most = 3;
  Diagnostic all = *group.errors.front();
  if (group.errors.size() == 1)
    return all;
  all.node.clear();
  all.text = (namesOperators || group.op.empty() ? "" : group.op + ": ") + group.reason + ": " +
             std::to_string(group.errors.size()) + " nodes: ";
  for (size_t i = 0; i < std::min(most, group.errors.size()); ++i) {
    std::string op = splitOperator(group.errors[i]->text).first;
    all.text +=
        (i ? ", " : "") + (namesOperators ? op.substr(0, op.find(" (")) + " " : "") + "'" + group.errors[i]->node + "'";
  }
  if (group.errors.size() > most)
    all.text += " and " + std::to_string(group.errors.size() - most) + " more";
  // What only one node has would be taken for the others' too.
  size_t before = all.attached.size();
  std::erase_if(all.attached, [&](const auto &line) {
    return std::any_of(group.errors.begin(), group.errors.end(), [&](const Diagnostic *error) {
      return std::find(error->attached.begin(), error->attached.end(), line) == error->attached.end();
    });
  });
  leftOut |= group.errors.size() > most || all.attached.size() < before;
  return all;
}

} // namespace

std::vector<Diagnostic> grouped(const std::vector<Diagnostic> &errors, bool &leftOut) {
  constexpr size_t most = 3; // operators that a reason is said for one by one
  std::map<std::string, std::set<std::string>> operators;
  for (const Diagnostic &error : errors) {
    auto [op, reason] = splitOperator(error.text);
    operators[reason].insert(op);
  }
  auto isShared = [&](const std::string &reason) { return operators[reason].size() > most; };
  std::vector<Group> groups = groupsBy(errors, [&](const std::string &op, const std::string &reason) {
    return isShared(reason) ? reason : op + "\n" + reason;
  });
  std::vector<Diagnostic> result;
  for (const Group &group : groups)
    result.push_back(merged(group, isShared(group.reason), leftOut));
  return result;
}

void Messages::print(const Diagnostic &diagnostic) {
  std::string text = options.jsonDiagnostics ? renderJson(diagnostic) : renderText(diagnostic, color);
  if (const std::string &path = options.stdinFile; !path.empty())
    for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at))
      text.replace(at, path.size(), shownModel(options));
  auto hold = tools::holdProgress();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Messages::take(const Diagnostic &diagnostic) {
  bool isGrouped = diagnostic.severity == Severity::Error || diagnostic.severity == Severity::Warning;
  bool waits = isGrouped && !diagnostic.node.empty();
  if (waits && !options.jsonDiagnostics && !options.allErrors)
    waiting.push_back(diagnostic);
  else
    print(diagnostic);
}

bool Messages::flush() {
  bool leftOut = false;
  for (const Diagnostic &error : grouped(waiting, leftOut))
    print(error);
  waiting.clear();
  return leftOut;
}

} // namespace dmxc::driver
